/* Hashes of contents: each lane takes eight bytes per step and mixes them with a 128-bit product. */
#include "datasets/content_hash.h"

#include <string.h>

static const uint64_t SEEDS[2] = { UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd1b54a32d192ed03) };
static const uint64_t FACTORS[2] = { UINT64_C(0xff51afd7ed558ccd), UINT64_C(0xc4ceb9fe1a85ec53) };

static uint64_t mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static void add_word(struct tare_content_hash *hash, uint64_t word) {
    for (int lane = 0; lane < 2; lane++)
        hash->words[lane] = mix(hash->words[lane] ^ word ^ SEEDS[lane], FACTORS[lane]) + word;
}

static void add_bytes(struct tare_content_hash *hash, const void *data, size_t size) {
    const char *bytes = data;
    uint64_t word = 0;
    add_word(hash, size);
    for (; size >= 8; size -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        add_word(hash, word);
    }
    word = 0;
    if (size) memcpy(&word, bytes, size);
    add_word(hash, word);
}

struct tare_content_hash tare_content_hash_tensor(const struct tare_tensor *tensor) {
    struct tare_content_hash hash = { { 0, 0 } };
    add_word(&hash, (uint64_t)tensor->dtype << 32 | (uint64_t)tensor->shape.rank);
    for (int i = 0; i < tensor->shape.rank; i++)
        add_word(&hash, (uint64_t)tensor->shape.dims[i]);
    if (tensor->dtype != TARE_DT_STRING) {
        add_bytes(&hash, tensor->data, tensor->elements ? tare_tensor_bytes(tensor) : 0);
        return hash;
    }
    for (int64_t i = 0; i < tensor->elements; i++) {
        const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, tensor)[i];
        add_bytes(&hash, text->data, text->size);
    }
    return hash;
}

struct tare_content_hash tare_content_hash_sample(const struct tare_sample *sample) {
    struct tare_content_hash sum = { { sample->count, sample->count } };
    for (size_t i = 0; i < sample->count; i++) {
        struct tare_content_hash hash = tare_content_hash_tensor(&sample->values[i]);
        add_bytes(&hash, sample->keys[i], strlen(sample->keys[i]));
        for (int lane = 0; lane < 2; lane++)
            sum.words[lane] += hash.words[lane];
    }
    return sum;
}
