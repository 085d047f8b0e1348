/* RandomIndexShuffle: the place of an index in a random permutation of 0 … max_index, by a cipher whose blocks hold the
 * largest index and are encrypted again until the result is in range (Black and Rogaway: "Ciphers with arbitrary finite
 * domains"). The cipher is Simon (Beaulieu et al., 2013) with three key words and any even block size. */
#include "interpreter/inference/infer.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"

#include <math.h>

enum { KEYS = 3, LEAST_ROUNDS = 4, MOST_ROUNDS = 1024, LEAST_BITS = 16, MOST_BITS = 64 };

struct cipher {
    int bits; /* of a word, half a block */
    uint64_t mask;
    int rounds;
    uint64_t keys[MOST_ROUNDS];
};

static uint64_t rotate_left(const struct cipher *c, uint64_t x, int n) {
    n %= c->bits;
    return n ? (x << n | x >> (c->bits - n)) & c->mask : x;
}

static void set_keys(struct cipher *c, const uint32_t key[KEYS]) {
    uint64_t z = 0x7369f885192c0ef5u; /* the constant sequence z3, lowest bit first */
    for (int i = 0; i < KEYS; i++)
        c->keys[i] = key[i] & c->mask;
    for (int i = KEYS; i < c->rounds; i++, z >>= 1) {
        const uint64_t last = c->keys[i - 1];
        c->keys[i] = (0xfffffffcu & c->mask) ^ (z & 1) ^ c->keys[i - KEYS] ^ rotate_left(c, last, c->bits - 3) ^
                     rotate_left(c, last, c->bits - 4);
    }
}

static uint64_t round_function(const struct cipher *c, uint64_t x) {
    return (rotate_left(c, x, 1) & rotate_left(c, x, 8)) ^ rotate_left(c, x, 2);
}

static uint64_t encrypt(const struct cipher *c, uint64_t block) {
    uint64_t left = block >> c->bits & c->mask, right = block & c->mask;
    for (int i = 0; i < c->rounds; i += 2) {
        left ^= round_function(c, right) ^ c->keys[i];
        right ^= round_function(c, left) ^ c->keys[i + 1];
    }
    return left << c->bits | right;
}

static uint64_t shuffled(struct cipher *c, uint64_t index, const uint32_t key[KEYS], uint64_t most) {
    int bits = most ? (int)ceil(log2((double)most)) : 0;
    if (!most) return 0;
    bits += bits % 2;
    bits = bits < LEAST_BITS ? LEAST_BITS : bits > MOST_BITS ? MOST_BITS : bits;
    c->bits = bits / 2;
    c->mask = (UINT64_C(1) << c->bits) - 1;
    set_keys(c, key);
    do
        index = encrypt(c, index);
    while (index > most);
    return index;
}

static tare_status infer_index_shuffle(struct tare_infer *infer) {
    const struct tare_shape *index = &infer->inputs[0], *seed = &infer->inputs[1], *most = &infer->inputs[2];
    if (index->rank < 0 || seed->rank < 0 || most->rank < 0) return TARE_OK;
    infer->outputs[0] = tare_shape_scalar();
    if (index->rank || seed->rank > 1 || most->rank) {
        const struct tare_shape *by = index->rank ? index : most->rank ? most : seed;
        infer->outputs[0] = tare_shape_make(1, by->dims[0]);
    }
    return TARE_OK;
}

static tare_status check_shapes(const struct tare_kernel *kernel, int64_t count) {
    const struct tare_shape *index = &kernel->inputs[0].shape, *seed = &kernel->inputs[1].shape,
                            *most = &kernel->inputs[2].shape;
    char got[TARE_SHAPE_TEXT_SIZE];
    if (index->rank > 1 || (index->rank == 1 && index->dims[0] != count))
        return TARE_FAIL(TARE_SHAPE, "Index must be a scalar or vector, got %s", tare_shape_text(got, index));
    if (!(seed->rank == 1 && seed->dims[0] == KEYS) &&
        !(seed->rank == 2 && seed->dims[0] == count && seed->dims[1] == KEYS))
        return TARE_FAIL(TARE_SHAPE, "Seed must be a vector of size [3] or a matrix of size [%lld, 3] but got %s.",
                         (long long)count, tare_shape_text(got, seed));
    if (most->rank > 1 || (most->rank == 1 && most->dims[0] != count))
        return TARE_FAIL(TARE_SHAPE, "Maxval must be a scalar or a vector of the same size as index but got %s",
                         tare_shape_text(got, most));
    return TARE_OK;
}

static tare_status run_index_shuffle(struct tare_kernel *kernel) {
    const struct tare_tensor *index = &kernel->inputs[0], *seed = &kernel->inputs[1], *most = &kernel->inputs[2];
    const int64_t rounds = tare_node_int(kernel->node, "rounds", LEAST_ROUNDS);
    int64_t count = index->elements > most->elements ? index->elements : most->elements;
    struct cipher *cipher = tare_arena_calloc(kernel->scratch, 1, sizeof *cipher);
    struct tare_shape shape = tare_shape_scalar();
    if (seed->elements / KEYS > count) count = seed->elements / KEYS;
    if (!cipher) return TARE_NO_MEMORY;
    TARE_TRY(check_shapes(kernel, count));
    if (rounds < LEAST_ROUNDS || rounds > MOST_ROUNDS || rounds % 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "rounds is %lld (expected an even number from %d to %d)",
                         (long long)rounds, LEAST_ROUNDS, MOST_ROUNDS);
    cipher->rounds = (int)rounds;
    if (index->shape.rank || seed->shape.rank > 1 || most->shape.rank) shape = tare_shape_make(1, count);
    TARE_TRY(tare_kernel_output(kernel, 0, index->dtype, &shape));
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = seed->shape.rank > 1 ? i * KEYS : 0;
        const uint32_t key[KEYS] = { (uint32_t)tare_tensor_get_i64(seed, row),
                                     (uint32_t)tare_tensor_get_i64(seed, row + 1),
                                     (uint32_t)tare_tensor_get_i64(seed, row + 2) };
        const uint64_t place = shuffled(cipher, (uint64_t)tare_tensor_get_i64(index, index->shape.rank ? i : 0), key,
                                        (uint64_t)tare_tensor_get_i64(most, most->shape.rank ? i : 0));
        if (tare_dtype_size(index->dtype) == 8)
            TARE_DATA(uint64_t, &kernel->outputs[0])[i] = place;
        else
            TARE_DATA(uint32_t, &kernel->outputs[0])[i] = (uint32_t)place;
    }
    return TARE_OK;
}

const struct tare_op tare_ops_index_shuffle[] = {
    { .name = "RandomIndexShuffle", .infer = infer_index_shuffle, .run = run_index_shuffle },
    { 0 },
};
