/* String hashes: FarmHash Fingerprint64, SipHash-2-4 and a Murmur variant. All read little-endian words. */
#include "interpreter/ops/string/hash64.h"

#include <string.h>

static const uint64_t K0 = 0xc3a5c85c97cb3127u, K1 = 0xb492b66fbe98f273u, K2 = 0x9ae16a3b2f90404fu;

static uint64_t load64(const unsigned char *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

static uint64_t load32(const unsigned char *p) {
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

static uint64_t rotate_right(uint64_t x, int by) {
    return x >> by | x << (64 - by);
}
static uint64_t rotate_left(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}
static uint64_t shift_mix(uint64_t x) {
    return x ^ x >> 47;
}

static uint64_t mix_pair(uint64_t a, uint64_t b, uint64_t multiplier) {
    uint64_t x = shift_mix((a ^ b) * multiplier);
    return shift_mix((b ^ x) * multiplier) * multiplier;
}

static uint64_t farm_short(const unsigned char *s, size_t n) {
    uint64_t multiplier = K2 + n * 2;
    if (n >= 8) {
        uint64_t a = load64(s) + K2, b = load64(s + n - 8);
        return mix_pair(rotate_right(b, 37) * multiplier + a, (rotate_right(a, 25) + b) * multiplier, multiplier);
    }
    if (n >= 4) return mix_pair(n + (load32(s) << 3), load32(s + n - 4), multiplier);
    if (n > 0) {
        uint64_t y = (uint64_t)s[0] + ((uint64_t)s[n >> 1] << 8), z = n + ((uint64_t)s[n - 1] << 2);
        return shift_mix((y * K2) ^ (z * K0)) * K2;
    }
    return K2;
}

static uint64_t farm_17_to_32(const unsigned char *s, size_t n) {
    uint64_t multiplier = K2 + n * 2, a = load64(s) * K1, b = load64(s + 8);
    uint64_t c = load64(s + n - 8) * multiplier, d = load64(s + n - 16) * K2;
    return mix_pair(rotate_right(a + b, 43) + rotate_right(c, 30) + d, a + rotate_right(b + K2, 18) + c, multiplier);
}

static uint64_t farm_33_to_64(const unsigned char *s, size_t n) {
    uint64_t multiplier = K2 + n * 2, a = load64(s) * K2, b = load64(s + 8);
    uint64_t c = load64(s + n - 8) * multiplier, d = load64(s + n - 16) * K2;
    uint64_t y = rotate_right(a + b, 43) + rotate_right(c, 30) + d;
    uint64_t z = mix_pair(y, a + rotate_right(b + K2, 18) + c, multiplier);
    uint64_t e = load64(s + 16) * multiplier, f = load64(s + 24);
    uint64_t g = (y + load64(s + n - 32)) * multiplier, h = (z + load64(s + n - 24)) * multiplier;
    return mix_pair(rotate_right(e + f, 43) + rotate_right(g, 30) + h, e + rotate_right(f + a, 18) + g, multiplier);
}

struct pair {
    uint64_t first, second;
};

static struct pair mix_32_bytes(const unsigned char *s, uint64_t a, uint64_t b) {
    uint64_t z = load64(s + 24), c;
    a += load64(s);
    b = rotate_right(b + a + z, 21);
    c = a;
    a += load64(s + 8) + load64(s + 16);
    b += rotate_right(a, 44);
    return (struct pair){ a + z, b + c };
}

/* Folds 64 bytes into the state of FarmHash's long form. */
struct farm_state {
    uint64_t x, y, z;
    struct pair v, w;
};

static void farm_step(struct farm_state *state, const unsigned char *s, uint64_t multiplier, uint64_t weight) {
    uint64_t x = state->x, y = state->y, z = state->z;
    struct pair v = state->v, w = state->w;
    x = rotate_right(x + y + v.first + load64(s + 8), 37) * multiplier;
    y = rotate_right(y + v.second + load64(s + 48), 42) * multiplier;
    x ^= w.second * weight;
    y += v.first * weight + load64(s + 40);
    z = rotate_right(z + w.first, 33) * multiplier;
    state->v = mix_32_bytes(s, v.second * multiplier, x + w.first);
    state->w = mix_32_bytes(s + 32, z + w.second, y + load64(s + 16));
    state->x = z;
    state->y = y;
    state->z = x;
}

uint64_t tare_fingerprint64(const void *data, size_t size) {
    const unsigned char *s = data, *end, *tail;
    const uint64_t seed = 81;
    struct farm_state state = { .y = seed * K1 + 113 };
    uint64_t multiplier;
    if (size <= 16) return farm_short(s, size);
    if (size <= 32) return farm_17_to_32(s, size);
    if (size <= 64) return farm_33_to_64(s, size);
    state.x = seed * K2 + load64(s);
    state.z = shift_mix(state.y * K2 + 113) * K2;
    end = s + (size - 1) / 64 * 64;
    tail = s + size - 64;
    for (; s != end; s += 64)
        farm_step(&state, s, K1, 1);
    multiplier = K1 + ((state.z & 0xff) << 1);
    state.w.first += (size - 1) & 63;
    state.v.first += state.w.first;
    state.w.first += state.v.first;
    farm_step(&state, tail, multiplier, 9);
    return mix_pair(mix_pair(state.v.first, state.w.first, multiplier) + shift_mix(state.y) * K0 + state.z,
                    mix_pair(state.v.second, state.w.second, multiplier) + state.x, multiplier);
}

uint64_t tare_fingerprint_concat64(uint64_t a, uint64_t b) {
    const uint64_t multiplier = 0xc6a4a7935bd1e995u;
    uint64_t result = a ^ multiplier;
    result ^= shift_mix(b * multiplier) * multiplier;
    result *= multiplier;
    result = shift_mix(result) * multiplier;
    return shift_mix(result);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] = rotate_left(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

uint64_t tare_siphash24(const void *data, size_t size, uint64_t key0, uint64_t key1) {
    const unsigned char *s = data;
    uint64_t v[4] = { key0 ^ 0x736f6d6570736575u, key1 ^ 0x646f72616e646f6du, key0 ^ 0x6c7967656e657261u,
                      key1 ^ 0x7465646279746573u };
    uint64_t last = (uint64_t)size << 56;
    size_t words = size / 8;
    for (size_t i = 0; i < words; i++)
        sip_word(v, load64(s + 8 * i));
    for (size_t i = words * 8; i < size; i++)
        last |= (uint64_t)s[i] << (8 * (i & 7));
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t tare_murmur64(const void *data, size_t size) {
    const unsigned char *s = data;
    const uint64_t multiplier = 0xc6a4a7935bd1e995u;
    uint64_t hash = 0xDECAFCAFFEu ^ (size * multiplier), last = 0;
    size_t words = size / 8;
    for (size_t i = 0; i < words; i++) {
        hash ^= shift_mix(load64(s + 8 * i) * multiplier) * multiplier;
        hash *= multiplier;
    }
    for (size_t i = words * 8; i < size; i++)
        last |= (uint64_t)s[i] << (8 * (i & 7));
    if (size & 7) hash = (hash ^ last) * multiplier;
    return shift_mix(shift_mix(hash) * multiplier);
}
