/* Padding with a constant (Pad, PadV2) or with mirrored elements (MirrorPad), and MirrorPadGrad. */
#include "base/alloc.h"
#include "interpreter/ops/support/accumulate.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/support/conv_tiling.h"

#include <string.h>

/* Reads and checks the paddings of dimension d. `mirror`: 1 for REFLECT, 0 for SYMMETRIC, -1 for Pad. */
static tare_status padding(int64_t *before, int64_t *after, const struct tare_tensor *paddings, int d, int64_t dim,
                           int mirror) {
    *before = tare_tensor_get_i64(paddings, 2 * d);
    *after = tare_tensor_get_i64(paddings, 2 * d + 1);
    if (*before < 0 || *after < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Paddings must be non-negative: %lld %lld", (long long)*before,
                         (long long)*after);
    if (mirror >= 0 && dim >= 0 && (*before > dim - mirror || *after > dim - mirror))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "paddings must be %s the dimension size: %lld, %lld %s %lld",
                         mirror ? "less than" : "no greater than", (long long)*before, (long long)*after,
                         mirror ? "not less than" : "greater than", (long long)dim);
    return TARE_OK;
}

static int mirror_of(const struct tare_node *node) {
    const char *mode = tare_node_string(node, "mode", NULL);
    return mode ? strcmp(mode, "REFLECT") == 0 : -1;
}

static tare_status infer_pad(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0], *paddings = &infer->inputs[1];
    struct tare_shape *out = &infer->outputs[0];
    char text[TARE_SHAPE_TEXT_SIZE];
    int rank = in->rank;
    TARE_TRY(tare_operand_rank(infer, 1, "paddings", 2));
    if (infer->n_inputs > 2) TARE_TRY(tare_operand_rank(infer, 2, "constant_values", 0));
    if (rank == TARE_UNKNOWN_RANK && paddings->rank == 2 && paddings->dims[0] <= TARE_MAX_RANK)
        rank = (int)paddings->dims[0];
    if (rank < 0) return TARE_OK;
    if (paddings->rank == 2 &&
        ((paddings->dims[1] >= 0 && paddings->dims[1] != 2) || (paddings->dims[0] >= 0 && paddings->dims[0] != rank)))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "The first dimension of paddings must be the rank of inputs, the second 2 (got %s, expected "
                         "[%d,2])",
                         tare_shape_text(text, paddings), rank);
    *out = tare_operand_unknown_dims(rank);
    for (int d = 0; infer->input_values[1] && in->rank != TARE_UNKNOWN_RANK && d < rank; d++) {
        int64_t before, after;
        TARE_TRY(padding(&before, &after, infer->input_values[1], d, in->dims[d], mirror_of(infer->node)));
        if (in->dims[d] >= 0 &&
            (!tare_add_i64(&out->dims[d], in->dims[d], before) || !tare_add_i64(&out->dims[d], out->dims[d], after)))
            return TARE_FAIL(TARE_SHAPE, "dimension %d of the result is too large", d);
    }
    return TARE_OK;
}

struct pad {
    struct tare_tensor *out;
    const struct tare_tensor *in, *value; /* value: NULL for zero */
    int64_t from[TARE_MAX_RANK], to[TARE_MAX_RANK], before[TARE_MAX_RANK], after[TARE_MAX_RANK];
    int inner; /* dimensions from this one on are not padded and are copied as one run */
};

static tare_status pad_edge(const struct pad *pad, int64_t at, int64_t count) {
    if (pad->value) return tare_move_fill(pad->out, at, count, pad->value, 0);
    tare_move_zero(pad->out, at, count);
    return TARE_OK;
}

static tare_status pad_dim(const struct pad *pad, int d, int64_t from, int64_t to) {
    int64_t dim = pad->in->shape.dims[d];
    TARE_TRY(pad_edge(pad, to, pad->before[d] * pad->to[d]));
    to += pad->before[d] * pad->to[d];
    if (d + 1 == pad->inner) {
        TARE_TRY(tare_move_run(pad->out, to, pad->in, from, dim * pad->from[d]));
    } else {
        for (int64_t i = 0; i < dim; i++)
            TARE_TRY(pad_dim(pad, d + 1, from + i * pad->from[d], to + i * pad->to[d]));
    }
    return pad_edge(pad, to + dim * pad->to[d], pad->after[d] * pad->to[d]);
}

static tare_status run_pad(struct tare_kernel *kernel) {
    struct pad pad = { .out = &kernel->outputs[0],
                       .in = &kernel->inputs[0],
                       .value = kernel->n_inputs > 2 ? &kernel->inputs[2] : NULL };
    TARE_TRY(tare_operand_output(kernel, 0));
    tare_move_strides(pad.from, &pad.in->shape);
    tare_move_strides(pad.to, &pad.out->shape);
    for (int d = 0; d < pad.in->shape.rank; d++) {
        TARE_TRY(padding(&pad.before[d], &pad.after[d], &kernel->inputs[1], d, pad.in->shape.dims[d], -1));
        if (pad.before[d] || pad.after[d]) pad.inner = d + 1;
    }
    if (!pad.inner) return tare_move_run(pad.out, 0, pad.in, 0, pad.in->elements);
    return pad.out->elements ? pad_dim(&pad, 0, 0, 0) : TARE_OK;
}

/* A tiling stage for zero padding of the height and width of channels-last images. */
static bool pad_stage(struct tare_tiling_stage *stage, struct tare_gemm_epilogue *room, struct tare_kernel *kernel,
                      struct tare_shape *shape) {
    (void)room;
    const struct tare_tensor *paddings = &kernel->inputs[1];
    int64_t elements;
    *stage = (struct tare_tiling_stage){ .is_padding = true };
    if (shape->rank != 4 || kernel->n_inputs != 2 || paddings->elements != 2 * shape->rank) return false;
    stage->conv = tare_stage_copying_conv(shape);
    for (int d = 0; d < 4; d++) {
        int64_t before, after;
        if (padding(&before, &after, paddings, d, shape->dims[d], -1) != TARE_OK) return false;
        if ((d == 0 || d == 3) && (before != 0 || after != 0)) return false;
        if (!tare_add_i64(&shape->dims[d], shape->dims[d], before) ||
            !tare_add_i64(&shape->dims[d], shape->dims[d], after))
            return false;
        if (d == 1 || d == 2) stage->conv.pad[d] = before;
    }
    stage->conv.out[1] = shape->dims[1];
    stage->conv.out[2] = shape->dims[2];
    return tare_shape_elements(&elements, shape) == TARE_OK && tare_tiling_supports(stage);
}

/* Source coordinate of output coordinate i, reflected at both edges: without the edge element (REFLECT) or with it
 * (SYMMETRIC). */
static int64_t mirrored(int64_t i, int64_t before, int64_t dim, int reflect) {
    i -= before;
    if (i < 0) return reflect ? -i : -i - 1;
    if (i >= dim) return reflect ? 2 * dim - 2 - i : 2 * dim - 1 - i;
    return i;
}

/* Dimensions are processed from the innermost outwards; the padding of dimension d copies whole blocks of the
 * output. */
static tare_status mirror_dim(const struct pad *pad, int d, int64_t from, int64_t to, int reflect) {
    int64_t dim, step;
    if (d == pad->in->shape.rank) return tare_move_run(pad->out, to, pad->in, from, 1);
    dim = pad->in->shape.dims[d];
    step = pad->to[d];
    if (d + 1 == pad->in->shape.rank) {
        TARE_TRY(tare_move_run(pad->out, to + pad->before[d], pad->in, from, dim));
    } else {
        for (int64_t i = 0; i < dim; i++)
            TARE_TRY(mirror_dim(pad, d + 1, from + i * pad->from[d], to + (pad->before[d] + i) * step, reflect));
    }
    for (int64_t edge = 0; edge < pad->before[d] + pad->after[d]; edge++) {
        int64_t i = edge < pad->before[d] ? edge : edge + dim;
        int64_t source = pad->before[d] + mirrored(i, pad->before[d], dim, reflect);
        TARE_TRY(tare_move_run(pad->out, to + i * step, pad->out, to + source * step, step));
    }
    return TARE_OK;
}

static tare_status run_mirror_pad(struct tare_kernel *kernel) {
    struct pad pad = { .out = &kernel->outputs[0], .in = &kernel->inputs[0] };
    TARE_TRY(tare_operand_output(kernel, 0));
    tare_move_strides(pad.from, &pad.in->shape);
    tare_move_strides(pad.to, &pad.out->shape);
    for (int d = 0; d < pad.in->shape.rank; d++)
        TARE_TRY(padding(&pad.before[d], &pad.after[d], &kernel->inputs[1], d, pad.in->shape.dims[d], -1));
    return pad.out->elements ? mirror_dim(&pad, 0, 0, 0, mirror_of(kernel->node)) : TARE_OK;
}

/* ---- MirrorPadGrad: adds each padded element to the element it was copied from ---- */

static tare_status infer_unpad(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0];
    struct tare_shape *out = &infer->outputs[0];
    TARE_TRY(tare_operand_rank(infer, 1, "paddings", 2));
    if (in->rank < 0) return TARE_OK;
    if (infer->inputs[1].rank == 2 && infer->inputs[1].dims[0] >= 0 &&
        (infer->inputs[1].dims[0] != in->rank || infer->inputs[1].dims[1] != 2))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "The first dimension of paddings must be the rank of inputs");
    *out = tare_operand_unknown_dims(in->rank);
    for (int d = 0; infer->input_values[1] && d < in->rank; d++) {
        int64_t before, after;
        TARE_TRY(padding(&before, &after, infer->input_values[1], d, -1, -1));
        if (in->dims[d] < 0) continue;
        out->dims[d] = in->dims[d] - before - after;
        if (out->dims[d] < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "dimension %d is smaller than its paddings", d);
        TARE_TRY(padding(&before, &after, infer->input_values[1], d, out->dims[d], mirror_of(infer->node)));
    }
    return TARE_OK;
}

static tare_status fold_dim(const struct pad *pad, int d, int64_t from, int64_t to, int reflect) {
    const size_t size = tare_dtype_size(pad->in->dtype);
    if (d == pad->in->shape.rank)
        return tare_accumulate(TARE_ACCUMULATE_ADD, pad->in->dtype, (char *)pad->out->data + (size_t)to * size,
                               (const char *)pad->in->data + (size_t)from * size, 1, false);
    for (int64_t i = 0; i < pad->in->shape.dims[d]; i++)
        TARE_TRY(fold_dim(pad, d + 1, from + i * pad->from[d],
                          to + mirrored(i, pad->before[d], pad->out->shape.dims[d], reflect) * pad->to[d], reflect));
    return TARE_OK;
}

static tare_status run_unpad(struct tare_kernel *kernel) {
    struct pad pad = { .out = &kernel->outputs[0], .in = &kernel->inputs[0] };
    TARE_TRY(tare_operand_output(kernel, 0));
    tare_move_strides(pad.from, &pad.in->shape);
    tare_move_strides(pad.to, &pad.out->shape);
    for (int d = 0; d < pad.in->shape.rank; d++)
        TARE_TRY(padding(&pad.before[d], &pad.after[d], &kernel->inputs[1], d, -1, -1));
    tare_move_zero(pad.out, 0, pad.out->elements);
    return pad.out->elements ? fold_dim(&pad, 0, 0, 0, mirror_of(kernel->node)) : TARE_OK;
}

const struct tare_op tare_ops_pad[] = {
    { .name = "MirrorPadGrad",
      .inputs = "input: T, paddings: Tpaddings",
      .outputs = "output: T",
      .attrs =
          "T: {float, double, half, bfloat16, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, "
          "complex128}; Tpaddings: {int32, int64} = DT_INT32; mode: {'REFLECT', 'SYMMETRIC'}",
      .infer = infer_unpad,
      .run = run_unpad },
    { .name = "MirrorPad",
      .infer = infer_pad,
      .run = run_mirror_pad,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "Pad",
      .infer = infer_pad,
      .run = run_pad,
      .run_tiled = tare_run_tiled,
      .tiling_stage = pad_stage,
      .flags = TARE_OP_MOVE,
      .quant = TARE_QUANT_PASS_THROUGH },
    { .name = "PadV2", .infer = infer_pad, .run = run_pad, .flags = TARE_OP_MOVE, .quant = TARE_QUANT_PASS_THROUGH },
    { 0 },
};
