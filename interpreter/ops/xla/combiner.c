/* Recognizes the function that an XLA op reduces, scatters or compares with (combiner.h) and evaluates it: directly for
 * common bodies, otherwise by a call into the executor. */
#include "interpreter/ops/xla/combiner.h"

#include "base/alloc.h"
#include "graph/model.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/session.h"

#include <math.h>
#include <string.h>

/* ---- recognition of common functions ---- */

/* Skips identities. */
static struct tare_edge origin_of(struct tare_edge edge) {
    while (edge.node && strcmp(edge.node->op, "Identity") == 0)
        edge = edge.node->inputs[0];
    return edge;
}

/* Follows identities back to a function argument and returns its index; -1: not an argument. */
static int argument_of(const struct tare_graph *function, struct tare_edge edge) {
    edge = origin_of(edge);
    for (size_t i = 0; edge.node && i < function->n_args; i++)
        if (function->args[i] == edge.node) return (int)i;
    return -1;
}

/* The extreme in what modules of StableHLO become, where NaN in either argument is the result: an op that keeps NaN of
 * the first one, and a selection of the second one where that is NaN. The edge itself: it is something else. */
static struct tare_edge extreme_of(const struct tare_graph *function, struct tare_edge edge) {
    static const char *const extremes[] = { "Maximum", "Minimum", NULL };
    const struct tare_node *select = edge.node;
    if (!tare_node_is(select, "SelectV2")) return edge;
    const struct tare_edge is_nan = origin_of(select->inputs[0]), extreme = origin_of(select->inputs[2]);
    const bool takes_second = tare_node_is(is_nan.node, "IsNan") &&
                              argument_of(function, is_nan.node->inputs[0]) == 1 &&
                              argument_of(function, select->inputs[1]) == 1;
    return takes_second && extreme.node && tare_op_is_one_of(extreme.node->op, extremes) ? extreme : edge;
}

static enum tare_combining kind_of(const struct tare_graph *function) {
    static const struct {
        const char *op;
        enum tare_combining kind;
    } known[] = { { "Add", TARE_COMBINE_ADD },         { "AddV2", TARE_COMBINE_ADD },
                  { "Mul", TARE_COMBINE_MULTIPLY },    { "Maximum", TARE_COMBINE_MAXIMUM },
                  { "Minimum", TARE_COMBINE_MINIMUM }, { "LogicalAnd", TARE_COMBINE_AND },
                  { "LogicalOr", TARE_COMBINE_OR } };
    struct tare_edge result = function->returns[0].edge;
    if (function->n_args != 2 || function->n_returns != 1) return TARE_COMBINE_CALL;
    const int whole = argument_of(function, result);
    if (whole >= 0) return whole == 0 ? TARE_COMBINE_FIRST : TARE_COMBINE_SECOND;
    result = extreme_of(function, origin_of(result));
    if (!result.node || result.node->n_inputs != 2) return TARE_COMBINE_CALL;
    const int left = argument_of(function, result.node->inputs[0]),
              right = argument_of(function, result.node->inputs[1]);
    if (left < 0 || right < 0 || left == right) return TARE_COMBINE_CALL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(result.node->op, known[i].op) == 0) return known[i].kind;
    return TARE_COMBINE_CALL;
}

tare_status tare_combiner_open(struct tare_combiner *out, struct tare_kernel *kernel, const char *attr, size_t count,
                               size_t results) {
    *out =
        (struct tare_combiner){ .kernel = kernel, .count = count, .function = tare_node_function(kernel->node, attr) };
    if (!out->function) return TARE_FAIL(TARE_NOT_FOUND, "attribute %s does not name a function of the model", attr);
    if (out->function->n_args != 2 * count || out->function->n_returns != results)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "function %s has %zu arguments and %zu results (expected %zu and %zu)",
                         out->function->name, out->function->n_args, out->function->n_returns, 2 * count, results);
    out->kind = kind_of(out->function);
    out->scalars = TARE_NEW_ARRAY(kernel->scratch, struct tare_tensor, 3 * count);
    return out->scalars ? TARE_OK : TARE_NO_MEMORY;
}

bool tare_combiner_is_direct(const struct tare_node *node) {
    static const char *const reductions[] = { "XlaReduce", "XlaVariadicReduce", "XlaVariadicReduceV2", NULL };
    const struct tare_graph *function =
        tare_op_is_one_of(node->op, reductions) ? tare_node_function(node, "reducer") : NULL;
    return function && function->n_returns == 1 && kind_of(function) != TARE_COMBINE_CALL;
}

/* ---- calls ---- */

static tare_status scalar_of(struct tare_tensor *out, const struct tare_tensor *tensor, int64_t at) {
    const struct tare_shape scalar = tare_shape_scalar();
    TARE_TRY(tare_tensor_new(out, tensor->dtype, &scalar));
    return tare_move_run(out, 0, tensor, at, 1);
}

static void end(struct tare_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (tensors[i].dtype) tare_tensor_reset(&tensors[i]);
}

/* Calls the function with scalars[0 … 2 * count - 1], which it consumes. */
static tare_status call(const struct tare_combiner *c, struct tare_tensor *results, size_t n_results) {
    const tare_status status = tare_kernel_call(c->kernel, c->function, c->scalars, 2 * c->count, results, n_results);
    end(c->scalars, 2 * c->count);
    return status;
}

static tare_status store(struct tare_tensor *to, int64_t at, const struct tare_tensor *result) {
    if (result->elements != 1 || result->dtype != to->dtype)
        return TARE_FAIL(TARE_TYPE, "the function returns %lld elements of %s (expected 1 of %s)",
                         (long long)result->elements, tare_dtype_name(result->dtype), tare_dtype_name(to->dtype));
    return tare_move_run(to, at, result, 0, 1);
}

static tare_status fold_call(const struct tare_combiner *c, struct tare_tensor *to, int64_t at,
                             const struct tare_tensor *from, int64_t place) {
    struct tare_tensor *results = c->scalars + 2 * c->count;
    tare_status status = TARE_OK;
    memset(c->scalars, 0, 3 * c->count * sizeof *c->scalars);
    for (size_t k = 0; k < c->count; k++) {
        TARE_CHECK(scalar_of(&c->scalars[k], &to[k], at));
        TARE_CHECK(scalar_of(&c->scalars[c->count + k], &from[k], place));
    }
    TARE_CHECK(call(c, results, c->count));
    for (size_t k = 0; k < c->count; k++)
        TARE_CHECK(store(&to[k], at, &results[k]));
done:
    end(c->scalars, 3 * c->count);
    return status;
}

tare_status tare_combiner_compare(bool *out, const struct tare_combiner *c, const struct tare_tensor *tensors,
                                  int64_t a, int64_t b) {
    struct tare_tensor result = { 0 };
    tare_status status = TARE_OK;
    memset(c->scalars, 0, 2 * c->count * sizeof *c->scalars);
    for (size_t k = 0; k < c->count; k++) {
        TARE_CHECK(scalar_of(&c->scalars[2 * k], &tensors[k], a));
        TARE_CHECK(scalar_of(&c->scalars[2 * k + 1], &tensors[k], b));
    }
    TARE_CHECK(call(c, &result, 1));
    if (result.dtype != TARE_DT_BOOL || result.elements != 1)
        TARE_CHECK(TARE_FAIL(TARE_TYPE, "function %s does not return a bool", c->function->name));
    *out = TARE_CONST_DATA(bool, &result)[0];
done:
    end(c->scalars, 2 * c->count);
    end(&result, 1);
    return status;
}

/* ---- recognized functions, computed without a call ---- */

static double combined_reals(double a, double x, enum tare_combining kind) {
    switch (kind) {
    case TARE_COMBINE_ADD:
        return a + x;
    case TARE_COMBINE_MULTIPLY:
        return a * x;
    case TARE_COMBINE_MAXIMUM:
        return x > a || isnan(x) ? x : a;
    default:
        return x < a || isnan(x) ? x : a;
    }
}

static uint64_t combined_bits(uint64_t a, uint64_t x, enum tare_combining kind, bool has_sign) {
    const uint64_t flip = has_sign ? UINT64_C(1) << 63 : 0; /* maps signed order to unsigned order */
    switch (kind) {
    case TARE_COMBINE_ADD:
        return a + x;
    case TARE_COMBINE_MULTIPLY:
        return a * x;
    case TARE_COMBINE_AND:
        return a & x;
    case TARE_COMBINE_OR:
        return a | x;
    case TARE_COMBINE_MAXIMUM:
        return (x ^ flip) > (a ^ flip) ? x : a;
    default:
        return (x ^ flip) < (a ^ flip) ? x : a;
    }
}

/* Narrow dtypes are rounded at each step, as by the function itself. */
static void fold_reals(struct tare_tensor *to, int64_t at, const struct tare_tensor *from, const int64_t *places,
                       int64_t n, enum tare_combining kind) {
    const bool rounds = to->dtype != TARE_DT_FLOAT && to->dtype != TARE_DT_DOUBLE;
    double sum = tare_tensor_get_f64(to, at);
    for (int64_t i = 0; i < n; i++) {
        sum = combined_reals(sum, tare_tensor_get_f64(from, places[i]), kind);
        if (!rounds) continue;
        tare_tensor_set_f64(to, at, sum);
        sum = tare_tensor_get_f64(to, at);
    }
    tare_tensor_set_f64(to, at, sum);
}

static void fold_bits(struct tare_tensor *to, int64_t at, const struct tare_tensor *from, const int64_t *places,
                      int64_t n, enum tare_combining kind) {
    const bool has_sign = tare_dtype_get(to->dtype)->class == TARE_CLASS_SIGNED;
    uint64_t value = (uint64_t)tare_tensor_get_i64(to, at);
    for (int64_t i = 0; i < n; i++)
        value = combined_bits(value, (uint64_t)tare_tensor_get_i64(from, places[i]), kind, has_sign);
    tare_tensor_set_i64(to, at, (int64_t)value);
}

static void fold_complex(struct tare_tensor *to, int64_t at, const struct tare_tensor *from, const int64_t *places,
                         int64_t n, enum tare_combining kind) {
    _Complex double sum = tare_tensor_get_c128(to, at);
    for (int64_t i = 0; i < n; i++) {
        const _Complex double x = tare_tensor_get_c128(from, places[i]);
        sum = kind == TARE_COMBINE_ADD ? sum + x : sum * x;
    }
    tare_tensor_set_c128(to, at, sum);
}

tare_status tare_combiner_fold(const struct tare_combiner *c, struct tare_tensor *to, int64_t at,
                               const struct tare_tensor *from, const int64_t *places, int64_t n) {
    const enum tare_dtype_class class = tare_dtype_get(to->dtype)->class;
    const bool logical = c->kind == TARE_COMBINE_AND || c->kind == TARE_COMBINE_OR;
    if (n == 0 || c->kind == TARE_COMBINE_FIRST) return TARE_OK;
    if (c->kind == TARE_COMBINE_SECOND) return tare_move_run(to, at, from, places[n - 1], 1);
    if (c->kind != TARE_COMBINE_CALL && class == TARE_CLASS_FLOAT && !logical) {
        fold_reals(to, at, from, places, n, c->kind);
        return TARE_OK;
    }
    if (c->kind != TARE_COMBINE_CALL &&
        (logical ? class == TARE_CLASS_BOOL : class == TARE_CLASS_SIGNED || class == TARE_CLASS_UNSIGNED)) {
        fold_bits(to, at, from, places, n, c->kind);
        return TARE_OK;
    }
    if (class == TARE_CLASS_COMPLEX && (c->kind == TARE_COMBINE_ADD || c->kind == TARE_COMBINE_MULTIPLY)) {
        fold_complex(to, at, from, places, n, c->kind);
        return TARE_OK;
    }
    for (int64_t i = 0; i < n; i++)
        TARE_TRY(fold_call(c, to, at, from, places[i]));
    return TARE_OK;
}
