#include "tpu/exact/weights.h"
#include "base/tensor/tensor.h"
#include "graph/flags.h"
#include "graph/graph.h"
#include "graph/op.h"

#include <math.h>

static struct tare_edge before_moves(struct tare_edge edge) {
    while (!tare_node_is_arg(edge.node) && tare_node_has_flag(edge.node, TARE_OP_MOVE) && edge.node->n_inputs)
        edge = edge.node->inputs[0];
    return edge;
}

/* ---- signs ---- */

bool tare_has_one_sign(const struct tare_tensor *values) {
    bool positive = false, negative = false;
    for (int64_t i = 0; i < (values->splat ? 1 : values->elements); i++) {
        const double x = tare_tensor_get_f64(values, i);
        positive |= x > 0;
        negative |= !(x >= 0);
    }
    return positive != negative;
}

static bool is_positive_constant(const struct tare_value_facts *facts, struct tare_edge edge) {
    enum { MOST = 64 * 1024 };
    const struct tare_tensor *value = tare_value_constant(facts, edge);
    return value && value->data && value->elements > 0 && value->elements <= MOST &&
           tare_dtype_is_floating(value->dtype) && tare_tensor_get_f64(value, 0) >= 0 && tare_has_one_sign(value);
}

static bool is_positive(const struct tare_value_facts *facts, struct tare_edge edge, int depth) {
    static const char *const positive[] = { "Softmax", "Sigmoid", "Exp", "Square", "Abs", "Softplus", NULL };
    static const char *const passing[] = { "Mul", "RealDiv", "DivNoNan", "AddV2", "Maximum", NULL };
    static const char *const reducing[] = { "Sum", "Mean", NULL };
    enum { DEEPEST = 12 };
    const struct tare_node *node;
    edge = before_moves(edge);
    node = edge.node;
    if (depth > DEEPEST || tare_node_is_arg(node)) return false;
    if (tare_op_is_one_of(node->op, positive)) return true;
    if (tare_node_is(node, "Cast")) return tare_edge_dtype(node->inputs[0]) == TARE_DT_BOOL;
    if (tare_op_is_one_of(node->op, reducing)) return is_positive(facts, node->inputs[0], depth + 1);
    if (!tare_op_is_one_of(node->op, passing)) return is_positive_constant(facts, edge);
    return is_positive(facts, node->inputs[0], depth + 1) && is_positive(facts, node->inputs[1], depth + 1);
}

bool tare_is_positive(const struct tare_value_facts *facts, struct tare_edge edge) {
    return is_positive(facts, edge, 0);
}

bool tare_is_written_softmax(const struct tare_node *node) {
    const struct tare_node *sum;
    if (!tare_node_is(node, "RealDiv") || !tare_node_is(node->inputs[0].node, "Exp")) return false;
    sum = before_moves(node->inputs[1]).node;
    return tare_node_is(sum, "Sum") && sum->inputs[0].node == node->inputs[0].node;
}

/* ---- sums ---- */

bool tare_find_weighted_sum(struct tare_weighted_sum *out, const struct tare_value_facts *facts,
                            const struct tare_node *node) {
    if (tare_node_is(node, "Sum")) {
        node = before_moves(node->inputs[0]).node;
        if (tare_node_is_arg(node) || !tare_node_is(node, "Mul")) return false;
    } else if (!tare_node_has_flag(node, TARE_OP_PRODUCT) || node->n_inputs < 2) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        *out = (struct tare_weighted_sum){ .weights = node->inputs[i], .values = node->inputs[1 - i] };
        if (tare_value_fact(facts, out->weights)->varies && tare_is_positive(facts, out->weights) &&
            !tare_edge_equal(out->weights, out->values))
            return true;
    }
    return false;
}

/* ---- tables ---- */

/* How the elements of a table are grouped: group g has the elements g · first + i · step. */
struct grouping {
    int64_t groups, first, count, step;
};

/* The root mean square of the means of groups, and of what deviates from them, of at most MOST elements of MOST groups.
 */
static struct tare_value_fact of_groups(const struct tare_tensor *table, struct grouping by) {
    enum { MOST = 256 };
    const int64_t next_group = by.groups / MOST + 1, next = by.count / MOST + 1;
    double means = 0, deviations = 0, total = 0;
    int64_t groups = 0;
    for (int64_t g = 0; g < by.groups; g += next_group, groups++) {
        double sum = 0, squares = 0;
        int64_t n = 0;
        for (int64_t i = 0; i < by.count; i += next, n++) {
            const double x = tare_tensor_get_f64(table, table->splat ? 0 : g * by.first + i * by.step);
            sum += x;
            squares += x * x;
        }
        sum /= (double)n;
        total += sum;
        means += sum * sum;
        deviations += fmax(0, squares / (double)n - sum * sum);
    }
    if (!isfinite(total)) return (struct tare_value_fact){ .dev = 1 };
    return (struct tare_value_fact){ .mean = (float)copysign(sqrt(means / (double)groups), total),
                                     .dev = (float)sqrt(deviations / (double)groups) };
}

/* By column, or by row where the mean is larger then; two numbers may be near each other by chance. */
static struct tare_value_fact of_rows(const struct tare_value_facts *facts, struct tare_edge table) {
    enum { FEWEST = 3 };
    const struct tare_tensor *value = tare_value_constant(facts, before_moves(table));
    const struct tare_value_fact *all = tare_value_fact(facts, table);
    struct tare_value_fact best = { .dev = 1 };
    int64_t columns, rows;
    if (!value && all->spread > 0) return (struct tare_value_fact){ .mean = all->mean, .dev = all->spread };
    if (!value || !value->data || !tare_dtype_is_floating(value->dtype) || value->elements < FEWEST) return best;
    columns = value->shape.rank > 0 ? value->shape.dims[value->shape.rank - 1] : 1;
    rows = value->elements / columns;
    if (rows >= FEWEST) best = of_groups(value, (struct grouping){ columns, 1, rows, columns });
    if (columns >= FEWEST) {
        const struct tare_value_fact other = of_groups(value, (struct grouping){ rows, columns, columns, 1 });
        if (tare_fact_weight(&other) > tare_fact_weight(&best)) best = other;
    }
    return best;
}

bool tare_find_mean_of_rows(struct tare_value_fact *out, const struct tare_value_facts *facts,
                            const struct tare_node *node) {
    enum { TYPICAL_LENGTH = 16 };
    struct tare_weighted_sum sum;
    if (!tare_find_weighted_sum(&sum, facts, node) || tare_value_fact(facts, sum.values)->varies) return false;
    *out = of_rows(facts, sum.values);
    out->dev /= sqrtf(TYPICAL_LENGTH);
    return fabsf(out->mean) >= TARE_HEAVY * out->dev;
}
