#include "interpreter/ops/support/weights.h"

#include "base/alloc.h"

#include <sys/mman.h>

enum { MOST_CHANGES = 2, ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

/* Large weights are read sequentially in every run: huge pages need 512 times fewer address translations. Parts of the
 * block that do not fill a huge page stay in small pages, so that no additional memory is used. */
static void ask_for_huge_pages(void *block, size_t size) {
    const uintptr_t start = ((uintptr_t)block + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    const uintptr_t end = ((uintptr_t)block + size) / HUGE_PAGE * HUGE_PAGE;
    if (block && end > start) (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}

void *tare_weights_find(const struct tare_weights *weights, const struct tare_tensor *tensor, int64_t key) {
    const struct tare_tensor *source = &weights->source;
    if (!weights->packed || source->data != tensor->data || source->dtype != tensor->dtype || weights->key != key ||
        !tare_shape_equal(&source->shape, &tensor->shape))
        return NULL;
    return weights->packed;
}

void *tare_weights_make(struct tare_weights *weights, const struct tare_tensor *tensor, int64_t key, size_t size,
                        struct tare_arena *scratch) {
    if (weights->packed) weights->changes++;
    tare_weights_reset(weights);
    if (weights->changes > MOST_CHANGES) {
        char *block = size > SIZE_MAX - ALIGNMENT ? NULL : tare_arena_alloc(scratch, size + ALIGNMENT);
        if (!block) return NULL;
        return block + (ALIGNMENT - (uintptr_t)block % ALIGNMENT) % ALIGNMENT;
    }
    weights->packed = tare_malloc_aligned(size);
    ask_for_huge_pages(weights->packed, size);
    weights->key = key;
    if (weights->packed) tare_tensor_share(&weights->source, tensor);
    return weights->packed;
}

void tare_weights_reset(struct tare_weights *weights) {
    tare_free(weights->packed);
    weights->packed = NULL;
    tare_tensor_reset(&weights->source);
}
