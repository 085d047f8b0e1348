/* Random numbers: rng_bit_generator as XlaRngBitGenerator, rng as TensorFlow's generators, and the ThreeFry custom
 * calls of GPU exports. */
#include "convert/stablehlo/lower.h"

#include "base/tensor/dtype.h"

#include <string.h>

/* Words of 32 or 64 bits are generated; narrower results are their low bits. */
void tare_lower_random_bits(struct tare_lowering *l, const char *algorithm, struct tare_edge shape) {
    static const char *const algorithms[] = { "DEFAULT", "THREE_FRY", "PHILOX" };
    const int dtype = tare_lower_out_dtype(l, 1), size = (int)tare_dtype_size(dtype);
    const int word = size == 8 ? TARE_DT_UINT64 : TARE_DT_UINT32;
    int code = 0;
    while (code < 2 && strcmp(algorithm, algorithms[code]) != 0)
        code++;
    const struct tare_edge inputs[] = { tare_lower_scalar(l, TARE_DT_INT32, code), tare_lower_in(l, 0), shape };
    struct tare_node *node = tare_lower_begin(l, "XlaRngBitGenerator", inputs, 3);
    tare_lower_attr_type(l, node, "dtype", word);
    l->outputs[0] = tare_lower_end(l, node);
    struct tare_edge bits = { node, 1 };
    if (size < 4) bits = tare_lower_cast(l, bits, size == 2 ? TARE_DT_UINT16 : TARE_DT_UINT8);
    l->outputs[1] = tare_lower_bitcast(l, bits, dtype);
}

static void lower_rng_bit_generator(struct tare_lowering *l, const void *arg) {
    (void)arg;
    if (l->op->n_results != 2) {
        tare_lower_fail(l, TARE_CORRUPT, "%zu results (expected 2)", l->op->n_results);
        return;
    }
    tare_lower_random_bits(l, tare_lower_text(l, "rng_algorithm"), tare_lower_dims(l, tare_lower_out_type(l, 1)));
}

/* Uniform in [a, b) or normal with mean a and standard deviation b. The stream is the implementation's. */
static void lower_rng(struct tare_lowering *l, const void *arg) {
    const bool uniform = strcmp(tare_lower_text(l, "rng_distribution"), "UNIFORM") == 0;
    const int dtype = tare_lower_out_dtype(l, 0);
    const bool real =
        dtype == TARE_DT_FLOAT || dtype == TARE_DT_DOUBLE || dtype == TARE_DT_HALF || dtype == TARE_DT_BFLOAT16;
    const struct tare_edge a = tare_lower_in(l, 0), b = tare_lower_in(l, 1);
    const struct tare_edge shape = tare_lower_cast(l, tare_lower_in(l, 2), TARE_DT_INT64);
    struct tare_edge x;
    (void)arg;
    /* drawn in double, so that integers of any width follow from [0, 1) */
    struct tare_node *node = tare_lower_begin(l, uniform ? "RandomUniform" : "RandomStandardNormal", &shape, 1);
    tare_lower_attr_type(l, node, "dtype", real ? dtype : TARE_DT_DOUBLE);
    x = tare_lower_end(l, node);
    if (node) tare_lower_effect(l, node);
    const int work = real ? dtype : TARE_DT_DOUBLE;
    const struct tare_edge low = tare_lower_cast(l, a, work), high = tare_lower_cast(l, b, work);
    const struct tare_edge scale = uniform ? tare_lower_binary(l, "Sub", high, low) : high;
    x = tare_lower_binary(l, "AddV2", tare_lower_binary(l, "Mul", x, scale), low);
    if (!real) x = tare_lower_unary(l, "Floor", x);
    tare_lower_set(l, tare_lower_cast(l, x, dtype));
}

/* ---- ThreeFry 2x32-20 ---- */

static struct tare_edge add(struct tare_lowering *l, struct tare_edge x, struct tare_edge y) {
    return tare_lower_binary(l, "AddV2", x, y);
}
static struct tare_edge xor (struct tare_lowering * l, struct tare_edge x, struct tare_edge y) {
    return tare_lower_binary(l, "BitwiseXor", x, y);
} static struct tare_edge word(struct tare_lowering *l, double value) {
    return tare_lower_scalar(l, TARE_DT_UINT32, value);
}

static struct tare_edge rotate(struct tare_lowering *l, struct tare_edge x, int distance) {
    const struct tare_edge right = tare_lower_binary(l, "RightShift", x, word(l, 32 - distance));
    return tare_lower_binary(l, "BitwiseOr", tare_lower_binary(l, "LeftShift", x, word(l, distance)), right);
}

/* (key 0, key 1, x0, x1) -> (x0, x1), element by element. */
void tare_lower_threefry(struct tare_lowering *l, const void *arg) {
    static const int rotations[2][4] = { { 13, 15, 26, 6 }, { 17, 29, 16, 24 } };
    (void)arg;
    if (l->op->n_operands != 4 || l->op->n_results != 2 || tare_lower_in_dtype(l, 0) != TARE_DT_UINT32) {
        tare_lower_fail(l, TARE_CORRUPT, "%zu operands and %zu results (expected 4 of ui32 and 2)", l->op->n_operands,
                        l->op->n_results);
        return;
    }
    struct tare_edge keys[3] = { tare_lower_in(l, 0), tare_lower_in(l, 1) };
    keys[2] = xor(l, keys[0], keys[1]);
    keys[2] = xor(l, word(l, 0x1BD11BDA), keys[2]);
    struct tare_edge x0 = add(l, tare_lower_in(l, 2), keys[0]), x1 = add(l, tare_lower_in(l, 3), keys[1]);
    for (int group = 0; group < 5; group++) {
        for (int i = 0; i < 4; i++) {
            x0 = add(l, x0, x1);
            x1 = xor(l, rotate(l, x1, rotations[group % 2][i]), x0);
        }
        x0 = add(l, x0, keys[(group + 1) % 3]);
        const struct tare_edge count = word(l, group + 1);
        x1 = add(l, add(l, x1, keys[(group + 2) % 3]), count);
    }
    l->outputs[0] = x0;
    l->outputs[1] = x1;
}

const struct tare_lowering_row tare_lower_random[] = {
    { "rng_bit_generator", lower_rng_bit_generator, NULL },
    { "rng", lower_rng, NULL },
    { 0 },
};
