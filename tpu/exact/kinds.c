/* The kinds of uses and values that bfloat16 must not touch: one row each, with what is printed, how far the analysis
 * follows the operands back, and the test. docs/converter.md explains the reasons and the cost. */
#include "tpu/exact/internal.h"
#include "tpu/exact/range_values.h"

#include <math.h>
#include <string.h>

static bool has_float_output(const struct tare_node *node) {
    for (size_t i = 0; i < node->n_outputs; i++)
        if (tare_exact_carries_floats(tare_dtype_base(node->output_dtypes[i]))) return true;
    return false;
}

/* Floats that the bfloat16 pass would round. */
static bool is_wide_float(int dtype) {
    return tare_exact_carries_floats(dtype) && dtype != TARE_DT_VARIANT;
}

static const struct tare_value_fact *fact_of(const struct tare_exact_values *v, struct tare_edge edge) {
    return tare_value_fact(v->facts, edge);
}

static bool is_input(const struct tare_exact_values *v, struct tare_edge edge) {
    return tare_fact_is_input(fact_of(v, edge));
}

/* The value of the node's first output. */
static const struct tare_value_fact *fact_of_node(const struct tare_exact_values *v, const struct tare_node *node) {
    return fact_of(v, (struct tare_edge){ (struct tare_node *)(uintptr_t)node, 0 });
}

/* ---- integers ---- */

static bool is_narrow(int dtype) {
    static const int narrow[] = { TARE_DT_INT8, TARE_DT_UINT8, TARE_DT_INT4, TARE_DT_UINT4, TARE_DT_QINT8 };
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (dtype == narrow[i]) return true;
    return false;
}

/* Quantizing values to 8 bits loses more than bfloat16 does: tpu/bfloat16_exact.c keeps its arithmetic, and that of
 * zero points. Whole numbers of inputs up to 256 are exact in bfloat16. */
static bool becomes_integer(const struct tare_exact_values *v, const struct tare_exact_view *view,
                            const struct tare_node *node) {
    int to;
    (void)v;
    (void)view;
    if (!tare_node_is(node, "Cast") || !is_wide_float(tare_edge_dtype(node->inputs[0]))) return false;
    to = tare_dtype_base(node->output_dtypes[0]);
    return tare_dtype_is_integer(to) && !is_narrow(to) && !tare_is_zero_point(node);
}

/* A constant of whole numbers that are not all zero: rounding keeps the sign, so 0 is a safe bound. */
static bool is_whole(const struct tare_tensor *value) {
    enum { MOST = 4096 };
    bool any = false;
    if (!value || value->elements > MOST) return false;
    for (int64_t i = 0; i < value->elements; i++) {
        const double x = tare_tensor_get_f64(value, value->splat ? 0 : i);
        if (!(x > -9.2e18 && x < 9.2e18) || x != (double)(int64_t)x) return false;
        any |= x != 0;
    }
    return any;
}

bool tare_exact_rounds_to_integers(const struct tare_node *node) {
    return tare_op_is_one_of(node->op, (const char *const[]){ "Floor", "Ceil", "Rint", "Round", NULL });
}

/* Ascending whole numbers, as a Range that was folded. */
static bool is_folded_range(const struct tare_tensor *value) {
    enum { SHORTEST = 3 };
    if (!value || value->splat || value->elements < SHORTEST || !is_whole(value)) return false;
    for (int64_t i = 1; i < value->elements; i++)
        if (tare_tensor_get_f64(value, i) <= tare_tensor_get_f64(value, i - 1)) return false;
    return true;
}

/* What an edge counts: 2: a Range or integers of the model's inputs, 1: other whole numbers, 0: neither. */
static int integers_of(const struct tare_exact_values *v, struct tare_edge edge) {
    enum { MOST_STEPS = 16 };
    for (int step = 0; step < MOST_STEPS && edge.node; step++) {
        if (tare_node_is(edge.node, "Const"))
            return is_folded_range(tare_edge_constant(edge)) ? 2 : is_whole(tare_edge_constant(edge));
        if (tare_node_is(edge.node, "Range")) return 2;
        if (tare_exact_rounds_to_integers(edge.node)) return 1;
        if (tare_node_is(edge.node, "Cast") && tare_dtype_is_integer(tare_edge_dtype(edge.node->inputs[0])))
            return tare_node_is_arg(edge.node->inputs[0].node) ? 1 : 2;
        if (!edge.node->n_inputs || !tare_node_has_flag(edge.node, TARE_OP_MOVE | TARE_OP_ARITHMETIC)) return 0;
        edge =
            edge.node->inputs[tare_node_has_flag(edge.node, TARE_OP_MOVE) || fact_of(v, edge.node->inputs[0])->varies ||
                                      edge.node->n_inputs < 2 || !tare_edge_constant(edge.node->inputs[0])
                                  ? 0
                                  : 1];
    }
    return 0;
}

static bool is_zero(struct tare_edge edge) {
    const struct tare_tensor *value = tare_edge_constant(edge);
    return value && value->elements == 1 && is_wide_float(value->dtype) && tare_tensor_get_f64(value, 0) == 0;
}

static bool compares(const struct tare_node *node) {
    return tare_node_has_flag(node, TARE_OP_DISCRETE) && node->n_inputs == 2 && node->n_outputs == 1 &&
           tare_dtype_base(node->output_dtypes[0]) == TARE_DT_BOOL && is_wide_float(tare_edge_dtype(node->inputs[0]));
}

static bool compares_integers(const struct tare_exact_values *v, const struct tare_exact_view *view,
                              const struct tare_node *node) {
    (void)view;
    for (int i = 0; compares(node) && i < 2; i++)
        if (integers_of(v, node->inputs[i]) && !fact_of(v, node->inputs[1 - i])->computed) return true;
    return false;
}

static bool compares_positions(const struct tare_exact_values *v, const struct tare_exact_view *view,
                               const struct tare_node *node) {
    (void)view;
    for (int i = 0; compares(node) && i < 2; i++)
        if (integers_of(v, node->inputs[i]) == 2) return true;
    return false;
}

/* Rounding keeps the sign: a comparison with zero is the same. */
static bool compares_inputs(const struct tare_exact_values *v, const struct tare_exact_view *view,
                            const struct tare_node *node) {
    (void)view;
    if (!compares(node) || is_zero(node->inputs[0]) || is_zero(node->inputs[1])) return false;
    return is_input(v, node->inputs[0]) || is_input(v, node->inputs[1]);
}

static bool compares_results(const struct tare_exact_values *v, const struct tare_exact_view *view,
                             const struct tare_node *node) {
    (void)view;
    return compares(node) && !is_zero(node->inputs[0]) && !is_zero(node->inputs[1]) &&
           (fact_of(v, node->inputs[0])->computed || fact_of(v, node->inputs[1])->computed);
}

/* Quotients and remainders: hours of a time, buckets or the parity of an identifier, phases. */
static bool divides(const struct tare_node *node) {
    static const char *const ops[] = { "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod", NULL };
    return tare_op_is_one_of(node->op, ops) && is_wide_float(tare_edge_dtype(node->inputs[0]));
}

static bool divides_inputs(const struct tare_exact_values *v, const struct tare_exact_view *view,
                           const struct tare_node *node) {
    (void)view;
    return divides(node) && !fact_of(v, node->inputs[0])->computed;
}

/* Quantizing to 8 bits rounds, too, and loses more than bfloat16 does. */
static bool rounds_inputs(const struct tare_exact_values *v, const struct tare_exact_view *view,
                          const struct tare_node *node) {
    (void)view;
    return tare_exact_rounds_to_integers(node) && !tare_ends_narrow(node) && is_input(v, node->inputs[0]);
}

static bool rounds_computed(const struct tare_exact_values *v, const struct tare_exact_view *view,
                            const struct tare_node *node) {
    (void)view;
    return (divides(node) || (tare_exact_rounds_to_integers(node) && !tare_ends_narrow(node))) &&
           fact_of(v, node->inputs[0])->computed;
}

/* The largest element of a row with its position, as JAX finds them. */
static bool finds_position(const struct tare_node *node) {
    static const char *const ops[] = { "XlaVariadicReduce", "XlaVariadicReduceV2", NULL };
    bool is_position = false;
    for (size_t i = 0; tare_op_is_one_of(node->op, ops) && i < node->n_outputs; i++)
        is_position |= tare_dtype_is_integer(tare_dtype_base(node->output_dtypes[i]));
    return is_position && has_float_output(node);
}

static bool is_ordered(const struct tare_exact_values *v, const struct tare_exact_view *view,
                       const struct tare_node *node) {
    (void)view;
    return (tare_node_has_flag(node, TARE_OP_RANK) || finds_position(node)) && !v->options->rounds_outputs;
}

static bool decides_step(const struct tare_exact_values *v, const struct tare_exact_view *view,
                         const struct tare_node *node) {
    (void)v;
    (void)view;
    return tare_node_has_flag(node, TARE_OP_DISCRETE) &&
           !(node->n_outputs == 1 && tare_dtype_base(node->output_dtypes[0]) == TARE_DT_BOOL);
}

/* Outside of the conversion: values are compared, looked up, printed or made integers, and no float comes out. */
static bool uses_digits(const struct tare_exact_values *v, const struct tare_exact_view *view,
                        const struct tare_node *node) {
    (void)v;
    if (view->converted || !node->def || !node->n_outputs || has_float_output(node)) return false;
    if (tare_node_has_flag(node, TARE_OP_SHAPE_ONLY | TARE_OP_CONTROL)) return false;
    for (size_t i = 0; i < node->n_outputs; i++) {
        const int dtype = tare_dtype_base(node->output_dtypes[i]);
        if (dtype == TARE_DT_RESOURCE || dtype == TARE_DT_BFLOAT16) return false;
    }
    return true;
}

/* ---- sizes ---- */

/* Sums and differences of inputs, and what turns ratios into differences. */
static bool is_arithmetic_of_inputs(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                    const struct tare_node *node) {
    static const char *const ops[] = { "AddV2",   "Add",         "AddN",    "Sub",     "SquaredDifference",
                                       "Log",     "Log1p",       "Sum",     "Mean",    "Asinh",
                                       "BiasAdd", "ClipByValue", "Minimum", "Maximum", NULL };
    (void)view;
    return tare_op_is_one_of(node->op, ops) && has_float_output(node) && tare_fact_is_input(fact_of_node(v, node));
}

static bool is_of_one_sign(const struct tare_exact_values *v, struct tare_edge edge) {
    const struct tare_value_fact *fact = fact_of(v, edge);
    if (tare_node_is_arg(edge.node) || !tare_node_has_flag(edge.node, TARE_OP_PRODUCT) || !fact->heavy) return false;
    for (size_t i = 0; i < edge.node->n_inputs; i++)
        if (fact_of(v, edge.node->inputs[i])->heavy) return false;
    return fabsf(fact->mean) >= TARE_HEAVY * fact->dev;
}

/* A product whose own result has a large mean: its weights have one sign, and its operand has a mean. */
static bool follows_large_product(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                  const struct tare_node *node) {
    (void)view;
    for (size_t i = 0; has_float_output(node) && i < node->n_inputs; i++)
        if (is_of_one_sign(v, node->inputs[i])) return true;
    return false;
}

static bool offsets_input_product(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                  const struct tare_node *node) {
    (void)view;
    return tare_offsets_input_product(v->facts, node);
}

/* A product with at most 16 weights, of inputs or of a state that a network corrects. */
static bool is_prediction(const struct tare_exact_values *v, struct tare_edge edge) {
    const struct tare_node *node = tare_exact_before_moves(edge).node;
    return fact_of(v, edge)->computed && tare_exact_is_small_matrix(v, node);
}

/* z − H · s, s + B · u: an input with what is predicted for it, a state with its change, also that of a loop. */
static bool adds_linear_value(const struct tare_exact_values *v, const struct tare_exact_view *view,
                              const struct tare_node *node) {
    static const char *const ops[] = { "AddV2", "Add", "Sub", NULL };
    for (int i = 0; tare_op_is_one_of(node->op, ops) && i < 2; i++)
        if (tare_fact_is_linear(fact_of(v, node->inputs[1 - i])) &&
            (is_input(v, node->inputs[i]) ||
             tare_exact_is_loop_variable(view, tare_exact_before_constants(v, node->inputs[i]))))
            return true;
    for (int i = 0; tare_node_is(node, "Sub") && i < 2; i++)
        if (is_input(v, node->inputs[i]) && is_prediction(v, node->inputs[1 - i])) return true;
    return false;
}

/* Rounding the operand removes what the product is made of. */
static bool is_large_factor(const struct tare_exact_values *v, const struct tare_exact_view *view,
                            const struct tare_node *node) {
    (void)view;
    for (size_t i = 0; tare_node_has_flag(node, TARE_OP_PRODUCT) && i < node->n_inputs; i++)
        if (fact_of(v, node->inputs[i])->heavy && tare_fact_weight(fact_of(v, node->inputs[i])) >= TARE_VERY_HEAVY)
            return true;
    return false;
}

static bool is_heavy(const struct tare_exact_values *v, const struct tare_exact_view *view,
                     const struct tare_node *node) {
    (void)view;
    return has_float_output(node) && tare_passes_values(node) &&
           !tare_node_has_flag(node, TARE_OP_MOVE | TARE_OP_CREATE) && fact_of_node(v, node)->heavy;
}

/* By channel, what rounding its input by one part in 512 adds to the output of a normalization with constants. */
static bool normalizes_large_mean(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                  const struct tare_node *node) {
    enum { SCALE = 1, MEAN = 3, VARIANCE = 4 };
    const struct tare_tensor *scale, *mean, *variance;
    const double limit = 100; /* (mean / deviation)²: a loss of 38 dB */
    double error = 0, signal = 0;
    (void)view;
    if (strncmp(node->op, "FusedBatchNorm", strlen("FusedBatchNorm")) != 0) return false;
    if (fact_of(v, node->inputs[0])->heavy) return true;
    if (tare_node_bool(node, "is_training", true)) return false;
    scale = tare_value_constant(v->facts, node->inputs[SCALE]);
    mean = tare_value_constant(v->facts, node->inputs[MEAN]);
    variance = tare_value_constant(v->facts, node->inputs[VARIANCE]);
    if (!scale || !mean || !variance || mean->elements != scale->elements || variance->elements != scale->elements)
        return false;
    for (int64_t i = 0; i < scale->elements; i++) {
        const double g = tare_tensor_get_f64(scale, i), m = tare_tensor_get_f64(mean, i);
        const double s = tare_tensor_get_f64(variance, i) + tare_node_float(node, "epsilon", 1e-4F);
        error += g * g * m * m / s;
        signal += g * g * tare_tensor_get_f64(variance, i) / s;
    }
    return signal > 0 && error > limit * signal;
}

/* Batch norms in training mode (layer norms of Keras) subtract a mean of their own. */
static bool normalizes(const struct tare_exact_values *v, const struct tare_exact_view *view,
                       const struct tare_node *node) {
    (void)view;
    return strncmp(node->op, "FusedBatchNorm", strlen("FusedBatchNorm")) == 0 &&
           tare_node_bool(node, "is_training", true) &&
           (fact_of(v, node->inputs[0])->wild || is_input(v, node->inputs[0]));
}

/* JAX's precision="highest": jax.image.resize asks for it, for example. */
static bool asks_for_precision(const struct tare_exact_values *v, const struct tare_exact_view *view,
                               const struct tare_node *node) {
    (void)v;
    (void)view;
    return tare_node_has_flag(node, TARE_OP_PRODUCT) && tare_node_string(node, "precision_config", "")[0] &&
           has_float_output(node);
}

/* ---- sums and constants ---- */

static bool is_sum(const struct tare_exact_values *v, const struct tare_exact_view *view,
                   const struct tare_node *node) {
    static const char *const extremes[] = {
        "Max", "Min", "All", "Any", "SegmentMax", "SegmentMin", "UnsortedSegmentMax", "UnsortedSegmentMin", NULL
    };
    (void)view;
    return tare_node_has_flag(node, TARE_OP_REDUCE) && has_float_output(node) &&
           !tare_op_is_one_of(node->op, extremes) && fact_of_node(v, node)->varies;
}

/* Constants of the size of weights are rounded, and computed by the TPU, as before. */
static bool is_constant_arithmetic(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                   const struct tare_node *node) {
    const struct tare_value_fact *fact = fact_of_node(v, node);
    (void)view;
    return has_float_output(node) && node->n_inputs > 0 && !fact->varies && !fact->large &&
           !tare_node_has_flag(node, TARE_OP_MOVE) &&
           (tare_passes_values(node) || tare_node_has_flag(node, TARE_OP_PRODUCT));
}

/* ---- found by a check ---- */

bool tare_exact_is_found(const struct tare_exact_values *v, const struct tare_exact_view *view,
                         const struct tare_node *node) {
    for (size_t i = 0; i < v->options->n_nodes; i++)
        if (strcmp(v->options->nodes[i].node, node->name) == 0 &&
            strcmp(v->options->nodes[i].function, tare_graph_body_name(view->graph)) == 0)
            return true;
    return false;
}

/* ---- the table ---- */

const struct tare_exact_kind tare_exact_kinds[] = {
    { "is an angle", TARE_EXACT_PRODUCT, false, tare_exact_is_large_angle },
    { "is an angle", TARE_EXACT_PRODUCT, false, tare_exact_is_complex_angle },
    { "is a squared distance", TARE_EXACT_PRODUCT, false, tare_exact_is_expanded_distance },
    { "is a covariance", TARE_EXACT_PRODUCT, false, tare_exact_is_covariance },
    { "is a distance of unit vectors", TARE_EXACT_PRODUCT, false, tare_exact_is_cosine_distance },
    { "is a difference of weighted means", TARE_EXACT_PRODUCT, false, tare_exact_differs_by_weights },
    { "is a difference of log-probabilities", TARE_EXACT_PRODUCT, false, tare_exact_compares_probabilities },
    { "is a weighted mean of large values", TARE_EXACT_PRODUCT, false, tare_exact_averages_large_values },
    { "is a weighted mean of inputs", TARE_EXACT_PRODUCT, false, tare_exact_averages_inputs },
    { "loses its mean by the weights", TARE_EXACT_PRODUCT, false, tare_exact_removes_mean },
    { "is a product of inputs that is normalized", TARE_EXACT_PRODUCT, false, tare_exact_normalizes_product },
    { "is a product of inputs with inputs", TARE_EXACT_PRODUCT, false, tare_exact_multiplies_inputs },
    { "is a difference of one product of two inputs", TARE_EXACT_PRODUCT, false, tare_exact_compares_products },
    { "is divided by a part of the same product", TARE_EXACT_PRODUCT, false, tare_exact_is_projection },
    { "is a spectrum whose logarithm is taken", TARE_EXACT_PRODUCT, false, tare_exact_is_log_spectrum },
    { "is solved", TARE_EXACT_PRODUCT, false, tare_exact_is_solved },
    { "is compared with positions", TARE_EXACT_PRODUCT, false, compares_positions },
    { "is a product of inputs with a large offset", TARE_EXACT_PRODUCT, false, offsets_input_product },
    { "is a product of inputs that is added to an input", TARE_EXACT_PRODUCT, false, adds_linear_value },
    { "changes an output, by the check", TARE_EXACT_RESULT, false, tare_exact_is_found },
    { "becomes an integer", TARE_EXACT_RESULT, true, becomes_integer },
    { "is ordered by value", TARE_EXACT_RESULT, true, is_ordered },
    { "decides a step", TARE_EXACT_RESULT, true, decides_step },
    { "is compared with integers", TARE_EXACT_RESULT, true, compares_integers },
    { "is divided to a quotient or remainder", TARE_EXACT_RESULT, true, divides_inputs },
    { "is used on the CPU", TARE_EXACT_RESULT, true, uses_digits },
    { "is compared as an input", TARE_EXACT_RESULT, false, compares_inputs },
    { "is rounded as an input", TARE_EXACT_RESULT, false, rounds_inputs },
    { "is a product of one sign", TARE_EXACT_RESULT, false, follows_large_product },
    { "is normalized by a large mean", TARE_EXACT_RESULT, false, normalizes_large_mean },
    { "is rounded to an integer", TARE_EXACT_ARITHMETIC, false, rounds_computed },
    { "becomes complex", TARE_EXACT_ARITHMETIC, false, tare_exact_becomes_complex },
    { "is compared", TARE_EXACT_ARITHMETIC, false, compares_results },
    { "is arithmetic of inputs", TARE_EXACT_ARITHMETIC, false, is_arithmetic_of_inputs },
    { "is an angle", TARE_EXACT_ARITHMETIC, false, tare_exact_is_angle },
    { "is an exponent", TARE_EXACT_ARITHMETIC, false, tare_exact_is_large_exponent },
    { "has a large mean", TARE_EXACT_ARITHMETIC, false, is_heavy },
    { "is a factor with a large mean", TARE_EXACT_ARITHMETIC, false, is_large_factor },
    { "is multiplied with a precision that the model asks for", TARE_EXACT_ARITHMETIC, false, asks_for_precision },
    { "is a variance by weights", TARE_EXACT_ARITHMETIC, false, tare_exact_is_weighted_variance },
    { "is normalized", TARE_EXACT_ARITHMETIC, false, normalizes },
    { "is computed from constants", TARE_EXACT_ARITHMETIC, false, is_constant_arithmetic },
    { "is a difference of related values", TARE_EXACT_LOCAL, false, tare_exact_differs_from_itself },
    { "is an exponent", TARE_EXACT_LOCAL, false, tare_exact_is_exponent },
    { "is a sum", TARE_EXACT_LOCAL, false, is_sum },
    { NULL, TARE_EXACT_LEVELS, false, NULL },
};
