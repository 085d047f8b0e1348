/* A loop with a counter: condition `i < n`, body `i + step`. */
#include "graph/trips.h"

#include <string.h>

struct loop {
    const struct tare_node *node;
    const struct tare_call_site *site;
    const struct tare_graph *condition, *body;
};

static struct tare_edge source(struct tare_edge edge) {
    while (!tare_node_is_arg(edge.node) && strcmp(edge.node->op, "Identity") == 0)
        edge = edge.node->inputs[0];
    return edge;
}

/* A scalar integer constant. */
static bool is_integer(int64_t *out, struct tare_edge edge) {
    const struct tare_tensor *value = tare_edge_constant(edge);
    if (!value || value->elements != 1 || !tare_dtype_is_integer(value->dtype)) return false;
    *out = tare_tensor_get_i64(value, 0);
    return true;
}

static bool is_variable(const struct loop *loop, struct tare_edge edge, size_t *i) {
    edge = source(edge);
    *i = edge.node ? edge.node->position : 0;
    return edge.node && tare_node_is_arg(edge.node) && *i < loop->site->n_args && *i < loop->body->n_returns;
}

/* A number of the condition: a constant, or a variable that keeps its first value. */
static bool is_bound(const struct loop *loop, struct tare_edge edge, int64_t *out) {
    size_t i, kept;
    if (is_integer(out, edge)) return true;
    return is_variable(loop, edge, &i) && is_variable(loop, loop->body->returns[i].edge, &kept) && kept == i &&
           is_integer(out, loop->node->inputs[loop->site->first + i]);
}

/* What the body adds to variable i. */
static bool is_counted(const struct loop *loop, size_t i, int64_t *step) {
    const struct tare_edge next = source(loop->body->returns[i].edge);
    size_t of;
    if (tare_node_is_arg(next.node) || next.node->n_inputs != 2) return false;
    const bool subtracts = strcmp(next.node->op, "Sub") == 0;
    if (!subtracts && strcmp(next.node->op, "AddV2") != 0 && strcmp(next.node->op, "Add") != 0) return false;
    for (size_t k = 0; k < (subtracts ? 1U : 2U); k++)
        if (is_variable(loop, next.node->inputs[k], &of) && of == i && is_bound(loop, next.node->inputs[1 - k], step)) {
            if (subtracts) *step = -*step;
            return *step != 0;
        }
    return false;
}

/* The trips of a counter from `first` in steps while it is below `bound`. */
static int64_t trips_below(int64_t first, int64_t bound, int64_t step) {
    int64_t distance;
    if (step < 0 || __builtin_sub_overflow(bound, first, &distance)) return -1;
    return distance <= 0 ? 0 : (distance - 1) / step + 1;
}

/* Of a comparison of a variable with a bound; `reverses`: of a bound with a variable. */
static int64_t trips_of(const struct loop *loop, const struct tare_node *compare, bool reverses) {
    static const char *const less[] = { "Less", "LessEqual" }, *const greater[] = { "Greater", "GreaterEqual" };
    int64_t bound, first, step;
    size_t i;
    if (!is_variable(loop, compare->inputs[reverses], &i) || !is_bound(loop, compare->inputs[!reverses], &bound) ||
        !is_integer(&first, loop->node->inputs[loop->site->first + i]) || !is_counted(loop, i, &step))
        return -1;
    for (int k = 0; k < 2; k++) {
        const bool is_less = strcmp(compare->op, less[k]) == 0, is_greater = strcmp(compare->op, greater[k]) == 0;
        if (!is_less && !is_greater) continue;
        if (bound == INT64_MAX || bound < -INT64_MAX || first < -INT64_MAX || step < -INT64_MAX) return -1;
        return is_less != reverses ? trips_below(first, bound + k, step) : trips_below(-first, -bound + k, -step);
    }
    return -1;
}

static int64_t trips_while(const struct loop *loop, struct tare_edge more) {
    more = source(more);
    if (tare_node_is_arg(more.node) || more.node->n_inputs != 2) return -1;
    const bool joins = strcmp(more.node->op, "LogicalAnd") == 0;
    const int64_t one = joins ? trips_while(loop, more.node->inputs[0]) : trips_of(loop, more.node, false);
    const int64_t other = joins ? trips_while(loop, more.node->inputs[1]) : trips_of(loop, more.node, true);
    return one < 0 || (other >= 0 && other < one) ? other : one;
}

int64_t tare_loop_trips(const struct tare_node *loop, const struct tare_call_site *site) {
    const struct loop found = { loop, site, site->callees[0], site->callees[1] };
    return found.condition->n_returns == 1 ? trips_while(&found, found.condition->returns[0].edge) : -1;
}
