/* SpaceToDepth and DepthToSpace: moves blocks of height and width to channels and back. */
#include "base/alloc.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

#include <string.h>

/* Finds the height, width and channel dimensions of the data format; *deep is set if the op moves blocks to
 * channels. */
static tare_status layout(const struct tare_node *node, int *height, int *channel, bool *deep) {
    const char *format = tare_node_string(node, "data_format", "NHWC");
    if (strcmp(format, "NHWC") != 0 && strcmp(format, "NCHW") != 0)
        return TARE_FAIL(TARE_UNSUPPORTED, "data_format %s (only NHWC and NCHW run on a CPU)", format);
    *height = format[1] == 'H' ? 1 : 2;
    *channel = format[1] == 'H' ? 3 : 1;
    *deep = node->op[0] == 'S';
    return TARE_OK;
}

static tare_status infer_blocks(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0];
    struct tare_shape *out = &infer->outputs[0];
    int64_t block = tare_node_int(infer->node, "block_size", 2);
    int height, channel;
    bool deep;
    TARE_TRY(layout(infer->node, &height, &channel, &deep));
    TARE_TRY(tare_operand_rank(infer, 0, "input", 4));
    if (block < 2 || block > INT32_MAX)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Block size should be > 1, but was: %lld", (long long)block);
    if (in->rank == TARE_UNKNOWN_RANK) {
        *out = tare_operand_unknown_dims(4);
        return TARE_OK;
    }
    *out = *in;
    for (int d = 1; d < 4; d++) {
        bool is_channel = d == channel, divide = is_channel != deep;
        int64_t by = is_channel ? block * block : block;
        if (in->dims[d] < 0) continue;
        if (divide && in->dims[d] % by)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s %lld should be divisible by %lld",
                             is_channel    ? "Input depth dimension"
                             : d == height ? "Image height"
                                           : "Image width",
                             (long long)in->dims[d], (long long)by);
        if (!divide && !tare_mul_i64(&out->dims[d], in->dims[d], by))
            return TARE_FAIL(TARE_SHAPE, "dimension %d of the result is too large", d);
        if (divide) out->dims[d] = in->dims[d] / by;
    }
    return TARE_OK;
}

/* Both directions iterate over (batch, y, x, block row, block column, channel) of the tensor with blocks, which is
 * the memory order of the deep tensor. */
static tare_status run_blocks(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    int64_t block = tare_node_int(kernel->node, "block_size", 2), wide[TARE_MAX_RANK], deep_strides[TARE_MAX_RANK];
    const struct tare_shape *deep_shape, *wide_shape;
    struct tare_move move = { 0 };
    int height, channel;
    bool deep;
    TARE_TRY(tare_operand_output(kernel, 0));
    TARE_TRY(layout(kernel->node, &height, &channel, &deep));
    wide_shape = deep ? &in->shape : &kernel->outputs[0].shape;
    deep_shape = deep ? &kernel->outputs[0].shape : &in->shape;
    tare_move_strides(wide, wide_shape);
    tare_move_strides(deep_strides, deep_shape);
    {
        int64_t channels = wide_shape->dims[channel], y = wide[height], x = wide[height + 1];
        int64_t step = deep_strides[channel];
        const int64_t all[6][3] = { { deep_shape->dims[0], wide[0], deep_strides[0] },
                                    { deep_shape->dims[height], y * block, deep_strides[height] },
                                    { deep_shape->dims[height + 1], x * block, deep_strides[height + 1] },
                                    { block, y, step * block * channels },
                                    { block, x, step * channels },
                                    { channels, wide[channel], step } };
        for (int i = 0; i < 6; i++)
            tare_move_dim(&move, all[i][0], deep ? all[i][1] : all[i][2], deep ? all[i][2] : all[i][1]);
    }
    return tare_move_apply(&kernel->outputs[0], in, &move);
}

#define BLOCKS(op_name)                                                                                                \
    {                                                                                                                  \
        .name = op_name, .infer = infer_blocks, .run = run_blocks, .flags = TARE_OP_MOVE,                              \
        .quant = TARE_QUANT_PASS_THROUGH                                                                               \
    }

const struct tare_op tare_ops_space_depth[] = { BLOCKS("DepthToSpace"), BLOCKS("SpaceToDepth"), { 0 } };
#undef BLOCKS
