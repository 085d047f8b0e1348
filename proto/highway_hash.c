/* HighwayHash: four lanes of 64 bits, mixed by 32-bit products and a shuffle of bytes in pairs of lanes. */
#include "proto/highway_hash.h"

#include <string.h>

enum { LANES = 4, PACKET = 32, FINAL_ROUNDS = 4 };

struct state {
    uint64_t v0[LANES], v1[LANES], mul0[LANES], mul1[LANES];
};

static const uint64_t INIT0[LANES] = { 0xdbe6d5d5fe4cce2fu, 0xa4093822299f31d0u, 0x13198a2e03707344u,
                                       0x243f6a8885a308d3u };
static const uint64_t INIT1[LANES] = { 0x3bd39e10cb0ef593u, 0xc0acf169b5f18a8cu, 0xbe5466cf34e90c6cu,
                                       0x452821e638d01377u };

static uint64_t swap_halves(uint64_t x) {
    return x << 32 | x >> 32;
}

static uint64_t product(uint64_t low, uint64_t high) {
    return (low & UINT32_MAX) * (high >> 32);
}

/* Adds the bytes of two lanes, permuted, to two lanes. */
static void zip(uint64_t to[2], const uint64_t from[2]) {
    static const uint8_t order[16] = { 3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7 };
    for (int lane = 0; lane < 2; lane++) {
        uint64_t sum = 0;
        for (int i = 0; i < 8; i++) {
            unsigned source = order[lane * 8 + i];
            sum |= (from[source / 8] >> (source % 8 * 8) & 0xff) << (8 * i);
        }
        to[lane] += sum;
    }
}

static void update(struct state *s, const uint64_t lanes[LANES]) {
    for (int i = 0; i < LANES; i++) {
        s->v1[i] += s->mul0[i] + lanes[i];
        s->mul0[i] ^= product(s->v1[i], s->v0[i]);
        s->v0[i] += s->mul1[i];
        s->mul1[i] ^= product(s->v0[i], s->v1[i]);
    }
    zip(s->v0, s->v1);
    zip(s->v0 + 2, s->v1 + 2);
    zip(s->v1, s->v0);
    zip(s->v1 + 2, s->v0 + 2);
}

static void update_packet(struct state *s, const uint8_t packet[PACKET]) {
    uint64_t lanes[LANES] = { 0 };
    for (int i = 0; i < PACKET; i++)
        lanes[i / 8] |= (uint64_t)packet[i] << (i % 8 * 8);
    update(s, lanes);
}

static uint64_t rotate_halves(uint64_t x, unsigned count) {
    uint32_t low = (uint32_t)x, high = (uint32_t)(x >> 32);
    low = low << count | low >> (32 - count);
    high = high << count | high >> (32 - count);
    return (uint64_t)high << 32 | low;
}

/* The last 1 to 31 bytes: whole words stay in place; the position of the other bytes depends on their number. */
static void update_rest(struct state *s, const uint8_t *data, unsigned size) {
    uint8_t packet[PACKET] = { 0 };
    unsigned words = size & ~3u, tail = size & 3;
    for (int i = 0; i < LANES; i++) {
        s->v0[i] += (uint64_t)size << 32 | size;
        s->v1[i] = rotate_halves(s->v1[i], size);
    }
    memcpy(packet, data, words);
    if (size >= 16) {
        memcpy(packet + PACKET - 4, data + size - 4, 4);
    } else if (tail) {
        packet[16] = data[words];
        packet[17] = data[words + tail / 2];
        packet[18] = data[size - 1];
    }
    update_packet(s, packet);
}

uint64_t tare_highway_hash64(const uint64_t key[4], const void *data, size_t size) {
    const uint8_t *at = data;
    struct state s;
    for (int i = 0; i < LANES; i++) {
        s.mul0[i] = INIT0[i];
        s.mul1[i] = INIT1[i];
        s.v0[i] = INIT0[i] ^ key[i];
        s.v1[i] = INIT1[i] ^ swap_halves(key[i]);
    }
    for (; size >= PACKET; size -= PACKET, at += PACKET)
        update_packet(&s, at);
    if (size) update_rest(&s, at, (unsigned)size);
    for (int i = 0; i < FINAL_ROUNDS; i++) {
        uint64_t turned[LANES];
        for (int k = 0; k < LANES; k++)
            turned[k] = swap_halves(s.v0[(k + 2) % LANES]);
        update(&s, turned);
    }
    return s.v0[0] + s.v1[0] + s.mul0[0] + s.mul1[0];
}
