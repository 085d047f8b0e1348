/* The two lanes of the hash, eight bytes at a time. */
#include "calib/hash.h"

#include <string.h>

void tare_hash_begin(struct tare_hash *hash) {
    *hash = (struct tare_hash){ .lanes = { 0x9e3779b97f4a7c15ULL, 0xc2b2ae3d27d4eb4fULL } };
}

static uint64_t rotl(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

/* One load; compilers do not always make one of shifts and ors. */
static uint64_t load_word(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static void mix(uint64_t lanes[2], uint64_t word) {
    lanes[0] = rotl(lanes[0] ^ word, 29) * 0xff51afd7ed558ccdULL;
    lanes[1] = rotl(lanes[1] ^ word, 37) * 0x87c37b91114253d5ULL;
}

/* The lanes stay in registers: the bytes could be those of `lanes` for all a compiler knows. */
static void mix_words(uint64_t lanes[2], const uint8_t *bytes, size_t words) {
    uint64_t own[2] = { lanes[0], lanes[1] };
    for (size_t i = 0; i < words; i++)
        mix(own, load_word(bytes + 8 * i));
    memcpy(lanes, own, sizeof own);
}

void tare_hash_add(struct tare_hash *hash, const void *data, size_t size) {
    const uint8_t *bytes = data;
    size_t held = hash->size % 8;
    hash->size += size;
    if (held > 0) {
        size_t more = size < 8 - held ? size : 8 - held;
        if (more > 0) memcpy(hash->rest + held, bytes, more);
        if (held + more < 8) return;
        mix_words(hash->lanes, hash->rest, 1);
        bytes += more;
        size -= more;
    }
    mix_words(hash->lanes, bytes, size / 8);
    if (size % 8 > 0) memcpy(hash->rest, bytes + size - size % 8, size % 8);
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
        mix(hash->lanes, load_word(hash->rest));
    }
    mix(hash->lanes, hash->size);
    for (int i = 0; i < 2; i++) {
        uint64_t h = hash->lanes[i];
        h ^= h >> 32;
        h *= 0xd6e8feb86659fd93ULL;
        out[i] = h ^ h >> 32;
    }
}
