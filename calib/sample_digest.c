/* Digests of samples. New digests are appended and sorted in when they are as many as the sorted ones, so adding n
 * digests takes O(n log n), and a set has at most 2 TARE_DIGESTS_MOST. */
#include "calib/sample_digest.h"

#include "base/alloc.h"
#include "calib/hash.h"

#include <stdlib.h>

enum { LEAST_ROOM = 1024 }; /* unsorted digests that are always allowed */

static void add_tensor(struct tare_hash *hash, const struct tare_tensor *tensor) {
    tare_hash_add_u64(hash, (uint64_t)tensor->dtype);
    tare_hash_add_u64(hash, (uint64_t)tensor->shape.rank);
    for (int i = 0; i < tensor->shape.rank; i++)
        tare_hash_add_u64(hash, (uint64_t)tensor->shape.dims[i]);
    if (tensor->dtype != TARE_DT_STRING) {
        tare_hash_add_bytes(hash, tensor->data, tare_tensor_bytes(tensor));
        return;
    }
    const struct tare_str *strings = tensor->data;
    for (int64_t i = 0; i < tensor->elements; i++)
        tare_hash_add_bytes(hash, strings[i].data, strings[i].size);
}

uint64_t tare_sample_digest(const struct tare_tensor *inputs, size_t count) {
    struct tare_hash hash;
    uint64_t words[2];
    tare_hash_begin(&hash);
    for (size_t i = 0; i < count; i++)
        add_tensor(&hash, &inputs[i]);
    tare_hash_end(&hash, words);
    return words[0];
}

static int by_value(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void tare_digest_set_finish(struct tare_digest_set *set) {
    size_t used = 0;
    if (set->sorted == set->count) return;
    qsort(set->items, set->count, sizeof *set->items, by_value);
    for (size_t i = 0; i < set->count && used < TARE_DIGESTS_MOST; i++)
        if (!used || set->items[used - 1] != set->items[i]) set->items[used++] = set->items[i];
    set->count = set->sorted = used;
}

tare_status tare_digest_set_add(struct tare_digest_set *set, uint64_t digest) {
    if (set->sorted == TARE_DIGESTS_MOST && digest > set->items[TARE_DIGESTS_MOST - 1]) return TARE_OK;
    if (!TARE_GROW(set->items, set->count, set->capacity)) return TARE_NO_MEMORY;
    set->items[set->count++] = digest;
    if (set->count - set->sorted >= (set->sorted > LEAST_ROOM ? set->sorted : LEAST_ROOM)) tare_digest_set_finish(set);
    return TARE_OK;
}

tare_status tare_digest_set_merge(struct tare_digest_set *set, const struct tare_digest_set *other) {
    for (size_t i = 0; i < other->count; i++)
        TARE_TRY(tare_digest_set_add(set, other->items[i]));
    tare_digest_set_finish(set);
    return TARE_OK;
}

bool tare_digest_set_has(const struct tare_digest_set *set, uint64_t digest) {
    return set->count && bsearch(&digest, set->items, set->count, sizeof *set->items, by_value);
}

bool tare_digest_set_decides(const struct tare_digest_set *set, uint64_t digest) {
    return set->count < TARE_DIGESTS_MOST || digest <= set->items[set->count - 1];
}

void tare_digest_set_free(struct tare_digest_set *set) {
    tare_free(set->items);
    *set = (struct tare_digest_set){ 0 };
}
