/* XlaRngBitGenerator: the bits of XLA's generators for a state of two or three 64-bit words
 * (xla/hlo/builder/lib/prng.cc, xla/hlo/transforms/expanders/rng_bit_generator_expander.cc). The first word is the key,
 * the others are the counter; the new state has the counter of the next call. The default is Philox, as on CPU. Words
 * of less than 32 bits are the low bits of 32-bit ones. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/random/philox.h"
#include "interpreter/ops/support/operand.h"

#include <string.h>

enum { DEFAULT, THREE_FRY, PHILOX };

static tare_status infer_bits(struct tare_infer *infer) {
    int64_t dims[TARE_MAX_RANK];
    int count;
    TARE_TRY(tare_operand_rank(infer, 1, "initial_state", 1));
    TARE_TRY(tare_operand_list(infer, 2, "shape", dims, &count));
    infer->outputs[0] = infer->inputs[1];
    infer->outputs[1] = tare_shape_unknown();
    return count < 0 ? TARE_OK : tare_shape_from_dims(&infer->outputs[1], count, dims);
}

/* Element i of the output from 64 bits. */
static void put(struct tare_tensor *to, int64_t i, uint64_t bits) {
    memcpy((char *)to->data + (size_t)i * tare_dtype_size(to->dtype), &bits, tare_dtype_size(to->dtype));
}

/* ---- Philox 4x32-10 ---- */

static void fill_philox(struct tare_tensor *to, const uint64_t *state, uint64_t *next, int64_t words) {
    const bool wide = tare_dtype_size(to->dtype) == 8;
    struct tare_philox philox =
        words == 3 ? tare_philox_from(state[0], state[1], state[2]) : tare_philox_from(state[0], state[1], state[0]);
    const uint64_t numbers = (uint64_t)to->elements * (wide ? 2 : 1), blocks = (numbers + 3) / 4;
    for (int64_t i = 0; i < to->elements; i++)
        put(to, i, wide ? tare_philox_next64(&philox) : tare_philox_next(&philox));
    next[1] = state[1] + blocks;
    if (words == 3) next[2] = state[2] + (next[1] < blocks);
}

/* ---- ThreeFry 2x32-20 ---- */

static uint32_t rotate(uint32_t x, int distance) {
    return x << distance | x >> (32 - distance);
}

static void threefry(uint32_t out[2], uint64_t key, uint64_t counter) {
    static const int rotations[2][4] = { { 13, 15, 26, 6 }, { 17, 29, 16, 24 } };
    const uint32_t keys[3] = { (uint32_t)key, (uint32_t)(key >> 32),
                               0x1BD11BDA ^ (uint32_t)key ^ (uint32_t)(key >> 32) };
    uint32_t x0 = (uint32_t)counter + keys[0], x1 = (uint32_t)(counter >> 32) + keys[1];
    for (int group = 0; group < 5; group++) {
        for (int i = 0; i < 4; i++) {
            x0 += x1;
            x1 = rotate(x1, rotations[group % 2][i]) ^ x0;
        }
        x0 += keys[(group + 1) % 3];
        x1 += keys[(group + 2) % 3] + (uint32_t)(group + 1);
    }
    out[0] = x0, out[1] = x1;
}

/* The dimension that is split in halves for outputs of 32 bits: the first even one, or else the largest. */
static int split_dim(const struct tare_shape *shape) {
    int largest = 0;
    for (int d = 0; d < shape->rank; d++) {
        if (shape->dims[d] % 2 == 0) return d;
        if (shape->dims[d] > shape->dims[largest]) largest = d;
    }
    return largest;
}

/* The two words of a block are neighbours along the split dimension; returns the number of blocks. */
static uint64_t fill_halves(struct tare_tensor *to, uint64_t key, uint64_t counter) {
    const struct tare_shape *shape = &to->shape;
    const int split = shape->rank ? split_dim(shape) : 0;
    const int64_t size = shape->rank ? shape->dims[split] : 1, half = (size + 1) / 2;
    int64_t outer = 1, inner = 1;
    uint32_t words[2];
    for (int d = 0; d < split; d++)
        outer *= shape->dims[d];
    for (int d = split + 1; d < shape->rank; d++)
        inner *= shape->dims[d];
    for (int64_t block = 0; block < outer * half * inner; block++) {
        const int64_t before = block / (half * inner), at = block / inner % half, after = block % inner;
        threefry(words, key, counter + (uint64_t)block);
        for (int64_t k = 0; k < 2 && 2 * at + k < size; k++)
            put(to, (before * size + 2 * at + k) * inner + after, words[k]);
    }
    return (uint64_t)(outer * half * inner);
}

static void fill_threefry(struct tare_tensor *to, const uint64_t *state, uint64_t *next) {
    uint32_t words[2];
    uint64_t blocks = (uint64_t)to->elements;
    if (tare_dtype_size(to->dtype) < 8) {
        blocks = to->elements ? fill_halves(to, state[0], state[1]) : 0;
    } else {
        for (int64_t i = 0; i < to->elements; i++) {
            threefry(words, state[0], state[1] + (uint64_t)i);
            put(to, i, (uint64_t)words[1] << 32 | words[0]);
        }
    }
    next[1] = state[1] + blocks;
}

static tare_status run_bits(struct tare_kernel *kernel) {
    const struct tare_tensor *initial = &kernel->inputs[1];
    struct tare_shape *shapes;
    const int64_t algorithm = kernel->inputs[0].elements == 1 ? tare_tensor_get_i64(&kernel->inputs[0], 0) : -1;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    if (algorithm < DEFAULT || algorithm > PHILOX)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "algorithm %lld (expected 0, 1 or 2)", (long long)algorithm);
    if (initial->elements != 2 && (initial->elements != 3 || algorithm == THREE_FRY))
        return TARE_FAIL(TARE_SHAPE, "the state has %lld words (expected 2%s)", (long long)initial->elements,
                         algorithm == THREE_FRY ? "" : " or 3");
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_UINT64, &initial->shape));
    TARE_TRY(tare_kernel_output(kernel, 1, kernel->node->output_dtypes[1], &shapes[1]));
    const uint64_t *state = initial->data;
    uint64_t *next = kernel->outputs[0].data;
    next[0] = state[0];
    if (algorithm == THREE_FRY)
        fill_threefry(&kernel->outputs[1], state, next);
    else
        fill_philox(&kernel->outputs[1], state, next, initial->elements);
    return TARE_OK;
}

const struct tare_op tare_ops_xla_random[] = {
    { .name = "XlaRngBitGenerator",
      .inputs = "algorithm: int32, initial_state: uint64, shape: Tshape",
      .outputs = "output_key: uint64, output: dtype",
      .attrs = "dtype: {uint8, int8, int32, int64, uint32, uint64} = DT_UINT64; Tshape: {int32, int64} = DT_INT32",
      .infer = infer_bits,
      .run = run_bits },
    { 0 },
};
