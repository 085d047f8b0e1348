/* Selects elements by a condition (Select, SelectV2) or clamps them (ClipByValue). Select copies elements of any
 * dtype by their size. */
#include "interpreter/ops/support/elementwise.h"
#include "interpreter/ops/families.h"

#include <string.h>

/* ---- Select (condition: scalar, one value per row, or the shape of the operands) and SelectV2 (broadcast) ---- */

static tare_status infer_select(struct tare_infer *infer) {
    const struct tare_shape *condition = &infer->inputs[0];
    struct tare_shape *out = &infer->outputs[0];
    TARE_TRY(tare_shape_merge(out, &infer->inputs[1], &infer->inputs[2]));
    if (condition->rank <= 0 || out->rank < 0) return TARE_OK;
    if (condition->rank == 1 && out->rank > 1) {
        struct tare_shape rows = { .rank = 1, .dims = { out->dims[0] } };
        TARE_TRY(tare_shape_merge(&rows, &rows, condition));
        out->dims[0] = rows.dims[0];
        return TARE_OK;
    }
    return tare_shape_merge(out, out, condition);
}

/* Copies one element: number, string or variant. */
static tare_status put(struct tare_tensor *to, int64_t at, const struct tare_tensor *from, int64_t i) {
    const size_t size = tare_dtype_size(to->dtype);
    if (to->dtype == TARE_DT_STRING) {
        const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, from)[i];
        return tare_tensor_set_string(to, at, text->data, text->size);
    }
    if (tare_dtype_get(to->dtype)->class == TARE_CLASS_OBJECT)
        tare_tensor_set_object(to, at, tare_object_ref(TARE_DATA(struct tare_object *, from)[i]));
    else
        memcpy((char *)to->data + (size_t)at * size, (const char *)from->data + (size_t)i * size, size);
    return TARE_OK;
}

#define PICK(type)                                                                                                     \
    static void pick_##type(type *to, const bool *c, const type *t, const type *e, int64_t n, const bool one[3]) {     \
        if (one[0]) {                                                                                                  \
            const type *from = c[0] ? t : e;                                                                           \
            const bool single = c[0] ? one[1] : one[2];                                                                \
            for (int64_t i = 0; i < n; i++)                                                                            \
                to[i] = from[single ? 0 : i];                                                                          \
        } else if (one[1] || one[2]) {                                                                                 \
            for (int64_t i = 0; i < n; i++)                                                                            \
                to[i] = c[i] ? t[one[1] ? 0 : i] : e[one[2] ? 0 : i];                                                  \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const type x = t[i], y = e[i];                                                                         \
                to[i] = c[i] ? x : y;                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }
PICK(uint8_t)
PICK(uint16_t)
PICK(uint32_t)
PICK(uint64_t)
#undef PICK

/* Selects one row of a broadcast plan, for elements of 1, 2, 4 or 8 bytes. */
static bool pick_row(void *to, const bool *c, const void *t, const void *e, const struct tare_broadcast *plan,
                     size_t size) {
    switch (size) {
    case 1:
        pick_uint8_t(to, c, t, e, plan->inner, plan->is_one);
        return true;
    case 2:
        pick_uint16_t(to, c, t, e, plan->inner, plan->is_one);
        return true;
    case 4:
        pick_uint32_t(to, c, t, e, plan->inner, plan->is_one);
        return true;
    case 8:
        pick_uint64_t(to, c, t, e, plan->inner, plan->is_one);
        return true;
    default:
        return false;
    }
}

static tare_status pick_slowly(struct tare_kernel *kernel, int64_t at, const struct tare_broadcast_walk *walk,
                               const struct tare_broadcast *plan) {
    const bool *c = kernel->inputs[0].data;
    for (int64_t i = 0; i < plan->inner; i++) {
        const int which = c[walk->offsets[0] + (plan->is_one[0] ? 0 : i)] ? 1 : 2;
        TARE_TRY(put(&kernel->outputs[0], at + i, &kernel->inputs[which],
                     walk->offsets[which] + (plan->is_one[which] ? 0 : i)));
    }
    return TARE_OK;
}

static tare_status select_by_plan(struct tare_kernel *kernel, const struct tare_broadcast *plan) {
    struct tare_broadcast_walk walk = { .offsets = { 0 } };
    const struct tare_tensor *t = &kernel->inputs[1], *e = &kernel->inputs[2];
    const size_t size = tare_dtype_size(t->dtype);
    const int class = tare_dtype_get(t->dtype)->class;
    const bool plain = class != TARE_CLASS_STRING && class != TARE_CLASS_OBJECT;
    TARE_TRY(tare_kernel_output(kernel, 0, t->dtype, &plan->shape));
    for (int64_t at = 0; at < kernel->outputs[0].elements; at += plan->inner) {
        if (!plain || !pick_row((char *)kernel->outputs[0].data + (size_t)at * size,
                                TARE_CONST_DATA(bool, &kernel->inputs[0]) + walk.offsets[0],
                                (const char *)t->data + walk.offsets[1] * (int64_t)size,
                                (const char *)e->data + walk.offsets[2] * (int64_t)size, plan, size))
            TARE_TRY(pick_slowly(kernel, at, &walk, plan));
        tare_broadcast_next(&walk, plan);
    }
    return TARE_OK;
}

static tare_status run_select_v2(struct tare_kernel *kernel) {
    struct tare_broadcast plan;
    TARE_TRY(tare_broadcast_plan(&plan, kernel->inputs, 3));
    return select_by_plan(kernel, &plan);
}

static tare_status run_select(struct tare_kernel *kernel) {
    struct tare_broadcast plan;
    struct tare_tensor operands[3] = { kernel->inputs[0], kernel->inputs[1], kernel->inputs[2] };
    const struct tare_shape *t = &operands[1].shape, *e = &operands[2].shape;
    struct tare_shape *c = &operands[0].shape;
    char a[TARE_SHAPE_TEXT_SIZE], b[TARE_SHAPE_TEXT_SIZE];
    if (!tare_shape_equal(t, e))
        return TARE_FAIL(TARE_SHAPE, "'then' and 'else' must have the same size. but received: %s vs. %s",
                         tare_shape_text(a, t), tare_shape_text(b, e));
    const bool rows = c->rank == 1 && t->rank > 1 && c->dims[0] == t->dims[0];
    if (c->rank != 0 && !rows && !tare_shape_equal(c, t))
        return TARE_FAIL(TARE_SHAPE, "'cond' must be a scalar, a vector of rows or like 'then' (got %s and %s)",
                         tare_shape_text(a, c), tare_shape_text(b, t));
    if (rows) { /* the condition becomes a column that is broadcast along the rows */
        c->rank = t->rank;
        for (int d = 1; d < t->rank; d++)
            c->dims[d] = 1;
    }
    TARE_TRY(tare_broadcast_plan(&plan, operands, 3));
    return select_by_plan(kernel, &plan);
}

/* ---- ClipByValue: max(min(t, high), low), so low wins where it is above high; NaN is preserved ---- */

static tare_status infer_clip(struct tare_infer *infer) {
    infer->outputs[0] = infer->inputs[0];
    for (int i = 1; i < 3; i++) {
        if (infer->inputs[i].rank == 0) continue;
        if (infer->inputs[i].rank > 0 && infer->inputs[0].rank > 0)
            TARE_TRY(tare_shape_merge(&infer->outputs[0], &infer->outputs[0], &infer->inputs[i]));
    }
    return TARE_OK;
}

TARE_LOOP2_FLOATS(at_least, x < y ? y : x)
TARE_LOOP2_SIGNED(at_least, x < y ? y : x)
TARE_LOOP2_BITS(at_least, x < y ? y : x)
TARE_LOOP2_FLOATS(at_most, y < x ? y : x)
TARE_LOOP2_SIGNED(at_most, y < x ? y : x)
TARE_LOOP2_BITS(at_most, y < x ? y : x)
static const tare_loop2 at_least_loops[TARE_DT_COUNT] = { TARE_BY_FLOATS(at_least), TARE_BY_SIGNED(at_least),
                                                          TARE_BY_UNSIGNED(at_least) };
static const tare_loop2 at_most_loops[TARE_DT_COUNT] = { TARE_BY_FLOATS(at_most), TARE_BY_SIGNED(at_most),
                                                         TARE_BY_UNSIGNED(at_most) };

static tare_status run_clip(struct tare_kernel *kernel) {
    const struct tare_tensor *t = &kernel->inputs[0], *low = &kernel->inputs[1], *high = &kernel->inputs[2];
    char a[TARE_SHAPE_TEXT_SIZE], b[TARE_SHAPE_TEXT_SIZE], c[TARE_SHAPE_TEXT_SIZE];
    if (!at_least_loops[t->dtype]) return TARE_FAIL(TARE_UNSUPPORTED, "dtype %s", tare_dtype_name(t->dtype));
    for (int i = 1; i < 3; i++) {
        const struct tare_shape *limit = &kernel->inputs[i].shape;
        if (limit->rank != 0 && !tare_shape_equal(limit, &t->shape))
            return TARE_FAIL(
                TARE_SHAPE,
                "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. "
                "Input shape: %s clip_value_min shape: %s clip_value_max shape: %s",
                tare_shape_text(a, &t->shape), tare_shape_text(b, &low->shape), tare_shape_text(c, &high->shape));
    }
    TARE_TRY(tare_kernel_output_like0(kernel, 0));
    if (t->elements == 0) return TARE_OK;
    void *to = kernel->outputs[0].data;
    at_most_loops[t->dtype](to, t->data, high->data, t->elements, false, high->shape.rank == 0);
    at_least_loops[t->dtype](to, to, low->data, t->elements, false, low->shape.rank == 0);
    return TARE_OK;
}

const struct tare_op tare_ops_select[] = {
    { .name = "Select", .infer = infer_select, .run = run_select, .flags = TARE_OP_MOVE },
    { .name = "SelectV2", .infer = tare_infer_broadcast, .run = run_select_v2, .flags = TARE_OP_MOVE },
    { .name = "ClipByValue",
      .infer = infer_clip,
      .run = run_clip,
      .flags = TARE_OP_ELEMENTWISE | TARE_OP_IN_PLACE | TARE_OP_ARITHMETIC },
    { 0 },
};
