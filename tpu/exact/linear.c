/* Linear functions of inputs, whose mean is not known: weighted means, filters that remove a mean, projections that are
 * divided by one of their elements, differences of one function of two inputs, spectra. */
#include "tpu/exact/internal.h"
#include "base/tensor/tensor.h"

#include <math.h>
#include <string.h>

enum { MOST_WEIGHTS = 64 * 1024 };

static const struct tare_value_fact *fact_of(const struct tare_exact_values *v, struct tare_edge edge) {
    return tare_value_fact(v->facts, edge);
}

static bool is_linear(const struct tare_exact_values *v, struct tare_edge edge) {
    return tare_fact_is_input(fact_of(v, edge)) || tare_fact_is_linear(fact_of(v, edge));
}

/* The constant operand of a product, with its number; *operand: the other one. NULL: none, or too large. */
static const struct tare_tensor *weights_of(const struct tare_exact_values *v, const struct tare_node *node,
                                            struct tare_edge *operand) {
    const struct tare_tensor *weights;
    size_t at;
    if (!tare_node_has_flag(node, TARE_OP_PRODUCT) || node->n_inputs != 2) return NULL;
    at = fact_of(v, node->inputs[1])->varies ? 0 : 1;
    *operand = node->inputs[1 - at];
    if (fact_of(v, node->inputs[at])->varies || !fact_of(v, *operand)->varies) return NULL;
    weights = tare_value_constant(v->facts, tare_exact_before_moves(node->inputs[at]));
    if (!weights || !weights->data || weights->elements < 2 || weights->elements > MOST_WEIGHTS) return NULL;
    return weights->dtype == TARE_DT_FLOAT ? weights : NULL;
}

/* ---- weights ---- */

/* Weights of one sign: a blur, a window, bands of a spectrum; also what a model computes from constants, as the window
 * of a measure of similarity: softmax(−x²). */
bool tare_exact_is_weighted_mean(const struct tare_exact_values *v, const struct tare_node *node) {
    struct tare_edge operand;
    const struct tare_tensor *weights = weights_of(v, node, &operand);
    if (weights) return tare_has_one_sign(weights);
    return tare_node_has_flag(node, TARE_OP_PRODUCT) && node->n_inputs == 2 && !fact_of(v, node->inputs[1])->varies &&
           !tare_value_constant(v->facts, tare_exact_before_moves(node->inputs[1])) &&
           tare_is_positive(v->facts, node->inputs[1]);
}

/* A mean of inputs by weights of one sign, or, where those are constants, of linear functions of inputs: attention over
 * prices, correspondences of points, a moving average, the enlargement of an image. */
bool tare_exact_averages_inputs(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                const struct tare_node *node) {
    struct tare_weighted_sum sum;
    bool linear = true;
    (void)view;
    if (tare_find_weighted_sum(&sum, v->facts, node)) return tare_fact_is_input(fact_of(v, sum.values));
    for (size_t i = 0; i < node->n_inputs; i++)
        linear &= !fact_of(v, node->inputs[i])->varies || is_linear(v, node->inputs[i]);
    return linear && tare_exact_is_weighted_mean(v, node);
}

/* Probabilities · a table of prices, positions on the globe: rounding any of them removes what varies. */
bool tare_exact_averages_large_values(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                      const struct tare_node *node) {
    struct tare_value_fact mean;
    (void)view;
    return tare_find_mean_of_rows(&mean, v->facts, node);
}

/* The number of results that the constant computes from each operand, if its elements i, i + n … belong to result i; 0:
 * not known. */
static int64_t results_of(const struct tare_node *node, const struct tare_tensor *weights) {
    const struct tare_shape *shape = &weights->shape;
    int64_t results = shape->rank > 1 ? shape->dims[shape->rank - 1] : 0;
    if (tare_op_is_one_of(node->op, (const char *const[]){ "Conv2D", "Conv3D", NULL })) return results;
    if (tare_node_is(node, "DepthwiseConv2dNative")) return shape->rank == 4 ? results * shape->dims[2] : 0;
    if (tare_node_is(node, "MatMul") && !tare_node_bool(node, "transpose_b", false)) return results;
    return 0;
}

static bool sums_to_zero(const struct tare_tensor *weights, int64_t results) {
    enum { SMALL = 16 };
    const double most = weights->elements <= SMALL ? 0.05 : 1e-4;
    bool any = false;
    for (int64_t r = 0; r < results; r++) {
        double sum = 0, size = 0;
        for (int64_t i = r; i < weights->elements; i += results) {
            sum += tare_tensor_get_f64(weights, i);
            size += fabs(tare_tensor_get_f64(weights, i));
        }
        if (fabs(sum) > most * size) return false;
        any |= size > 0;
    }
    return any;
}

/* Derivatives, edges, pre-emphasis, x − mean(x) as a product: weights whose sum is zero remove the mean of inputs. */
bool tare_exact_removes_mean(const struct tare_exact_values *v, const struct tare_exact_view *view,
                             const struct tare_node *node) {
    struct tare_edge operand;
    const struct tare_tensor *weights = weights_of(v, node, &operand);
    const int64_t results = weights && !weights->splat && is_linear(v, operand) ? results_of(node, weights) : 0;
    (void)view;
    return results > 0 && weights->elements % results == 0 && sums_to_zero(weights, results);
}

/* As little is known about the result as about the operands: adjacency · features, a state · its covariance. */
bool tare_exact_multiplies_inputs(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                  const struct tare_node *node) {
    (void)view;
    return tare_node_has_flag(node, TARE_OP_PRODUCT) && node->n_inputs == 2 &&
           tare_fact_is_input(fact_of(v, node->inputs[0])) && tare_fact_is_input(fact_of(v, node->inputs[1]));
}

/* ---- projections ---- */

/* The product of inputs before moves and arithmetic with constants; NULL: something else. */
static const struct tare_node *linear_product(const struct tare_exact_values *v, struct tare_edge edge) {
    const struct tare_node *node = tare_exact_before_constants(v, edge).node;
    if (tare_node_is_arg(node) || !tare_node_has_flag(node, TARE_OP_PRODUCT)) return NULL;
    return fact_of(v, (struct tare_edge){ (struct tare_node *)(uintptr_t)node, 0 })->nonlinear ? NULL : node;
}

static bool are_same_weights(const struct tare_exact_values *v, const struct tare_node *a, const struct tare_node *b) {
    struct tare_edge operand;
    const struct tare_tensor *weights = weights_of(v, a, &operand);
    return weights && weights == weights_of(v, b, &operand);
}

/* f(a) − f(b) of one linear function: nearly equal where its inputs are. */
bool tare_exact_compares_products(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                  const struct tare_node *node) {
    const struct tare_node *terms[2];
    (void)view;
    if (!tare_op_is_one_of(node->op, (const char *const[]){ "Sub", "SquaredDifference", NULL })) return false;
    for (int i = 0; i < 2; i++)
        terms[i] = linear_product(v, node->inputs[i]);
    return terms[0] && terms[1] && terms[0] != terms[1] && are_same_weights(v, terms[0], terms[1]);
}

/* A rotation, a camera: as cheap in float32 as the arithmetic around it. */
bool tare_exact_is_small_matrix(const struct tare_exact_values *v, const struct tare_node *node) {
    enum { MOST = 16 };
    struct tare_edge operand;
    const struct tare_tensor *weights = tare_node_is_arg(node) ? NULL : weights_of(v, node, &operand);
    return weights && weights->elements <= MOST;
}

/* What the edge is one over: 1 / x, by RealDiv or Reciprocal. No node: something else. */
static struct tare_edge reciprocal_of(const struct tare_exact_values *v, struct tare_edge edge) {
    const struct tare_node *node = tare_exact_before_moves(edge).node;
    if (tare_node_is_arg(node)) return (struct tare_edge){ NULL, 0 };
    if (tare_op_is_one_of(node->op, (const char *const[]){ "Reciprocal", "Inv", NULL })) return node->inputs[0];
    if (tare_op_is_one_of(node->op, (const char *const[]){ "RealDiv", "Div", "DivNoNan", NULL }) &&
        !fact_of(v, node->inputs[0])->varies)
        return node->inputs[1];
    return (struct tare_edge){ NULL, 0 };
}

/* Whether both are parts of one product: of inputs, or with a small matrix. */
static bool are_parts_of_projection(const struct tare_exact_values *v, struct tare_edge above, struct tare_edge below) {
    const struct tare_node *product = tare_exact_before_constants(v, above).node;
    if (tare_node_is_arg(product) || !tare_node_has_flag(product, TARE_OP_PRODUCT)) return false;
    if (tare_exact_before_constants(v, below).node != product) return false;
    return linear_product(v, above) || tare_exact_is_small_matrix(v, product);
}

/* Cameras and homographies: (x, y) / z of one linear function of coordinates, which inputs are or a network computes.
 */
bool tare_exact_is_projection(const struct tare_exact_values *v, const struct tare_exact_view *view,
                              const struct tare_node *node) {
    (void)view;
    if (tare_op_is_one_of(node->op, (const char *const[]){ "RealDiv", "Div", "DivNoNan", NULL }))
        return are_parts_of_projection(v, node->inputs[0], node->inputs[1]);
    for (int i = 0; tare_node_is(node, "Mul") && i < 2; i++) {
        const struct tare_edge below = reciprocal_of(v, node->inputs[i]);
        if (below.node && are_parts_of_projection(v, node->inputs[1 - i], below)) return true;
    }
    return false;
}

/* ---- spectra ---- */

static bool has_spectrum(const struct tare_exact_values *v, struct tare_edge edge, int depth) {
    static const char *const ops[] = { "AddV2", "Add",  "AddN", "Maximum", "Mul", "RealDiv",
                                       "Sqrt",  "Mean", "Sum",  "Pow",     NULL };
    enum { DEEPEST = 12 };
    const struct tare_node *node = tare_exact_before_moves(edge).node;
    if (depth > DEEPEST || tare_node_is_arg(node)) return false;
    if (tare_exact_is_square(node) && linear_product(v, node->inputs[0])) return true;
    if (!tare_op_is_one_of(node->op, ops) && !tare_exact_is_weighted_mean(v, node)) return false;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (fact_of(v, node->inputs[i])->varies && has_spectrum(v, node->inputs[i], depth + 1)) return true;
    return false;
}

/* The logarithm of squares of a linear function of inputs: a quiet band is as far from the loud ones as the rounding of
 * the input is. */
bool tare_exact_is_log_spectrum(const struct tare_exact_values *v, const struct tare_exact_view *view,
                                const struct tare_node *node) {
    (void)view;
    return tare_op_is_one_of(node->op, (const char *const[]){ "Log", "Log1p", NULL }) &&
           has_spectrum(v, node->inputs[0], 0);
}

/* ---- linear algebra ---- */

/* Rounding makes matrices indefinite, and solutions of other problems. */
bool tare_exact_is_solved(const struct tare_exact_values *v, const struct tare_exact_view *view,
                          const struct tare_node *node) {
    static const char *const ops[] = { "Cholesky",
                                       "Lu",
                                       "Qr",
                                       "Svd",
                                       "MatrixInverse",
                                       "MatrixDeterminant",
                                       "MatrixSolve",
                                       "MatrixSolveLs",
                                       "SelfAdjointEigV2",
                                       "MatrixTriangularSolve",
                                       "TridiagonalSolve",
                                       "BandedTriangularSolve",
                                       "MatrixLogarithm",
                                       "LogMatrixDeterminant",
                                       "MatrixSquareRoot",
                                       "MatrixExponential",
                                       "XlaSvd",
                                       "XlaSelfAdjointEig",
                                       NULL };
    (void)v;
    (void)view;
    return tare_op_is_one_of(node->op, ops) && tare_exact_carries_floats(tare_edge_dtype(node->inputs[0]));
}
