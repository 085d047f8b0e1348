/* Shape functions of libraries: partial shapes and their arithmetic. A completely unknown shape is NULL or has
 * unknown rank. */
#include "base/alloc.h"
#include "interpreter/kernel.h"
#include "interpreter/inference/infer.h"
#include "interpreter/plugins/host.h"

#include <string.h>

static const struct tare_shape nothing = { .rank = TARE_UNKNOWN_RANK };

static const struct tare_shape *or_nothing(const tare_op_shape *shape) {
    return shape ? tare_shape_of(shape) : &nothing;
}

/* The arena of new shapes, which are valid until the node is finished. */
static struct tare_shape *new_shape(tare_op_context *c) {
    return TARE_NEW(c->infer ? c->infer->arena : c->kernel->scratch, struct tare_shape);
}

static int keep(tare_op_context *c, const struct tare_shape *shape, const tare_op_shape **out) {
    struct tare_shape *made = new_shape(c);
    if (!made) return TARE_NO_MEMORY;
    *made = *shape;
    *out = tare_plugin_shape(made);
    return TARE_OK;
}

static const tare_op_shape *input_shape(tare_op_context *c, size_t i) {
    return c->infer && i < c->infer->n_inputs ? tare_plugin_shape(&c->infer->inputs[i]) : NULL;
}

static const tare_op_tensor *input_value(tare_op_context *c, size_t i) {
    return c->infer && i < c->infer->n_inputs ? tare_plugin_tensor(c->infer->input_values[i]) : NULL;
}

static int shape_from_input(tare_op_context *c, size_t i, const tare_op_shape **out) {
    struct tare_shape shape;
    if (!c->infer || i >= c->infer->n_inputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the node has no input %zu to take a shape from", i);
    TARE_TRY(tare_infer_shape_input(&shape, c->infer, i));
    return keep(c, &shape, out);
}

static int set_output_shape(tare_op_context *c, size_t i, const tare_op_shape *shape) {
    if (!c->infer || i >= c->infer->n_outputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "a shape for output %zu (the node has %zu outputs)", i,
                         c->infer ? c->infer->n_outputs : 0);
    c->infer->outputs[i] = *or_nothing(shape);
    return TARE_OK;
}

static int shape_rank(const tare_op_shape *shape) {
    return or_nothing(shape)->rank;
}

static int64_t shape_dim(const tare_op_shape *shape, int axis) {
    const struct tare_shape *s = or_nothing(shape);
    if (axis < 0) axis += s->rank;
    return s->rank >= 0 && axis >= 0 && axis < s->rank ? s->dims[axis] : TARE_UNKNOWN_DIM;
}

static tare_status too_many(int64_t rank) {
    return TARE_FAIL(TARE_SHAPE, "a shape of rank %lld (at most %d)", (long long)rank, TARE_MAX_RANK);
}

static int make_shape(tare_op_context *c, int rank, const int64_t *dims, const tare_op_shape **out) {
    struct tare_shape shape = nothing;
    if (rank > TARE_MAX_RANK) return too_many(rank);
    if (rank >= 0) {
        shape.rank = rank;
        for (int i = 0; i < rank; i++)
            shape.dims[i] = TARE_UNKNOWN_DIM;
        if (dims) TARE_TRY(tare_shape_from_dims(&shape, rank, dims));
    }
    return keep(c, &shape, out);
}

/* `least` and `most` -1: no bound. An unknown rank becomes known when both are the same. */
static int with_rank(tare_op_context *c, const tare_op_shape *shape, int least, int most, const tare_op_shape **out) {
    const struct tare_shape *s = or_nothing(shape);
    bool exact = least == most;
    if (s->rank < 0) return exact ? make_shape(c, least, NULL, out) : keep(c, s, out);
    if ((least >= 0 && s->rank < least) || (most >= 0 && s->rank > most))
        return TARE_FAIL(TARE_SHAPE, "Shape must be %s %d but is rank %d",
                         exact             ? "rank"
                         : s->rank < least ? "at least rank"
                                           : "at most rank",
                         s->rank < least ? least : most, s->rank);
    *out = shape;
    return TARE_OK;
}

static int merge(tare_op_context *c, const tare_op_shape *a, const tare_op_shape *b, const tare_op_shape **out) {
    struct tare_shape shape;
    TARE_TRY(tare_shape_merge(&shape, or_nothing(a), or_nothing(b)));
    return keep(c, &shape, out);
}

static int broadcast(tare_op_context *c, const tare_op_shape *a, const tare_op_shape *b, const tare_op_shape **out) {
    struct tare_shape shape = nothing;
    if (or_nothing(a)->rank >= 0 && or_nothing(b)->rank >= 0)
        TARE_TRY(tare_shape_broadcast(&shape, or_nothing(a), or_nothing(b)));
    return keep(c, &shape, out);
}

/* A bound of a range of dims: from the end if negative, clipped to the rank. */
static int clip(int at, int rank) {
    if (at < 0) at += rank;
    return at > rank ? rank : at;
}

static int subshape(tare_op_context *c, const tare_op_shape *shape, int first, int last, const tare_op_shape **out) {
    const struct tare_shape *s = or_nothing(shape);
    struct tare_shape part = { 0 };
    int from = clip(first, s->rank), to = clip(last, s->rank);
    if (s->rank < 0) return keep(c, &nothing, out);
    if (from < 0 || to < from)
        return TARE_FAIL(TARE_SHAPE, "dims %d to %d of a shape of rank %d", first, last, s->rank);
    for (int i = from; i < to; i++)
        part.dims[part.rank++] = s->dims[i];
    return keep(c, &part, out);
}

static int concatenate(tare_op_context *c, const tare_op_shape *a, const tare_op_shape *b, const tare_op_shape **out) {
    const struct tare_shape *front = or_nothing(a), *back = or_nothing(b);
    struct tare_shape whole = *front;
    if (front->rank < 0 || back->rank < 0) return keep(c, &nothing, out);
    if (front->rank + back->rank > TARE_MAX_RANK) return too_many(front->rank + back->rank);
    for (int i = 0; i < back->rank; i++)
        whole.dims[whole.rank++] = back->dims[i];
    return keep(c, &whole, out);
}

static int replace_dim(tare_op_context *c, const tare_op_shape *shape, int axis, int64_t dim,
                       const tare_op_shape **out) {
    struct tare_shape changed = *or_nothing(shape);
    int at = axis < 0 ? axis + changed.rank : axis;
    if (changed.rank < 0) return keep(c, &nothing, out);
    if (at < 0 || at >= changed.rank) return TARE_FAIL(TARE_SHAPE, "dim %d of a shape of rank %d", axis, changed.rank);
    if (dim < TARE_UNKNOWN_DIM) return TARE_FAIL(TARE_SHAPE, "a dim of %lld", (long long)dim);
    changed.dims[at] = dim;
    return keep(c, &changed, out);
}

/* ---- dims ---- */

static int dim_merge(int64_t a, int64_t b, int64_t *out) {
    if (a >= 0 && b >= 0 && a != b)
        return TARE_FAIL(TARE_SHAPE, "Dimensions must be equal, but are %lld and %lld", (long long)a, (long long)b);
    *out = a >= 0 ? a : b;
    return TARE_OK;
}

static int overflow(int64_t a, char sign, int64_t b) {
    return TARE_FAIL(TARE_SHAPE, "dim %lld %c %lld is too large", (long long)a, sign, (long long)b);
}

static int divide(int64_t a, int64_t b, bool exactly, int64_t *out) {
    if (b == 0) return TARE_FAIL(TARE_SHAPE, "Divisor must be positive but is 0");
    if (b == 1) return *out = a, TARE_OK;
    if (a < 0 || b < 0) return *out = TARE_UNKNOWN_DIM, TARE_OK;
    if (exactly && a % b != 0)
        return TARE_FAIL(TARE_SHAPE, "Dimension size must be evenly divisible by %lld but is %lld", (long long)b,
                         (long long)a);
    *out = a / b;
    return TARE_OK;
}

static int subtract(int64_t a, int64_t b, int64_t *out) {
    if (b == 0) return *out = a, TARE_OK;
    if (a < 0 || b < 0) return *out = TARE_UNKNOWN_DIM, TARE_OK;
    if (a < b)
        return TARE_FAIL(TARE_SHAPE, "Negative dimension size caused by subtracting %lld from %lld", (long long)b,
                         (long long)a);
    *out = a - b;
    return TARE_OK;
}

static int dim_arithmetic(int operation, int64_t a, int64_t b, int64_t *out) {
    bool known = a >= 0 && b >= 0;
    switch (operation) {
    case '+':
        if (!known) return *out = a == 0 ? b : b == 0 ? a : TARE_UNKNOWN_DIM, TARE_OK;
        return tare_add_i64(out, a, b) ? TARE_OK : overflow(a, '+', b);
    case '-':
        return subtract(a, b, out);
    case '*':
        if (a == 0 || b == 0) return *out = 0, TARE_OK;
        if (!known) return *out = a == 1 ? b : b == 1 ? a : TARE_UNKNOWN_DIM, TARE_OK;
        return tare_mul_i64(out, a, b) ? TARE_OK : overflow(a, '*', b);
    case '/':
        return divide(a, b, false, out);
    case '%':
        return divide(a, b, true, out);
    default:
        return TARE_FAIL(TARE_INTERNAL, "no arithmetic '%c' on dims", operation);
    }
}

/* ---- the row's function ---- */

tare_status tare_plugin_infer(struct tare_infer *infer) {
    const struct tare_op_entry *op = infer->node->def->row->aux;
    struct tare_op_context context = { .op = op, .node = infer->node, .infer = infer };
    tare_status status = tare_plugin_status(op->shape_function(&context), "the shape function");
    for (struct tare_plugin_read *read = context.reads; read; read = read->next)
        tare_tensor_reset(&read->value);
    return status;
}

void tare_plugin_host_shapes(struct tare_op_host *host) {
    host->input_shape = input_shape;
    host->input_value = input_value;
    host->shape_from_input = shape_from_input;
    host->set_output_shape = set_output_shape;
    host->shape_rank = shape_rank;
    host->shape_dim = shape_dim;
    host->make_shape = make_shape;
    host->with_rank = with_rank;
    host->merge = merge;
    host->broadcast = broadcast;
    host->subshape = subshape;
    host->concatenate = concatenate;
    host->replace_dim = replace_dim;
    host->dim_merge = dim_merge;
    host->dim_arithmetic = dim_arithmetic;
}
