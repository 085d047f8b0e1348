#include "calib/hash.h"

#include <string.h>

void tare_hash_begin(struct tare_hash *hash) {
    *hash = (struct tare_hash){ .lanes = { 0x9e3779b97f4a7c15ULL, 0xc2b2ae3d27d4eb4fULL } };
}

static uint64_t rotl(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

static uint64_t load_word(const uint8_t *bytes) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--)
        word = word << 8 | bytes[i];
    return word;
}

static void mix(struct tare_hash *hash, uint64_t word) {
    hash->lanes[0] = rotl(hash->lanes[0] ^ word, 29) * 0xff51afd7ed558ccdULL;
    hash->lanes[1] = rotl(hash->lanes[1] ^ word, 37) * 0x87c37b91114253d5ULL;
}

void tare_hash_add(struct tare_hash *hash, const void *data, size_t size) {
    const uint8_t *bytes = data;
    size_t held = hash->size % 8;
    hash->size += size;
    if (held > 0) {
        size_t more = size < 8 - held ? size : 8 - held;
        if (more > 0) memcpy(hash->rest + held, bytes, more);
        if (held + more < 8) return;
        mix(hash, load_word(hash->rest));
        bytes += more;
        size -= more;
    }
    for (; size >= 8; bytes += 8, size -= 8)
        mix(hash, load_word(bytes));
    if (size > 0) memcpy(hash->rest, bytes, size);
}

void tare_hash_add_u64(struct tare_hash *hash, uint64_t value) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    tare_hash_add(hash, bytes, sizeof bytes);
}

void tare_hash_add_bytes(struct tare_hash *hash, const void *data, size_t size) {
    tare_hash_add_u64(hash, size);
    tare_hash_add(hash, data, size);
}

void tare_hash_add_text(struct tare_hash *hash, const char *text) {
    tare_hash_add_bytes(hash, text, strlen(text));
}

void tare_hash_end(struct tare_hash *hash, uint64_t out[2]) {
    size_t held = hash->size % 8;
    if (held > 0) {
        memset(hash->rest + held, 0, 8 - held);
        mix(hash, load_word(hash->rest));
    }
    mix(hash, hash->size);
    for (int i = 0; i < 2; i++) {
        uint64_t h = hash->lanes[i];
        h ^= h >> 32;
        h *= 0xd6e8feb86659fd93ULL;
        out[i] = h ^ h >> 32;
    }
}
