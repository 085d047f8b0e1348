/* Packed weights of nodes, and the table of those that sessions share. An entry of the table lives as long as a node
 * uses it, and every user holds its source tensor, so that an address in the table always belongs to the same values.
 */
#include "interpreter/ops/support/weights.h"

#include "base/alloc.h"

#include <pthread.h>
#include <sys/mman.h>

enum { MOST_CHANGES = 2, ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

/* Large weights are read sequentially in every run: huge pages need 512 times fewer address translations. Parts of the
 * block that do not fill a huge page stay in small pages, so that no additional memory is used. */
static void ask_for_huge_pages(void *block, size_t size) {
    const uintptr_t start = ((uintptr_t)block + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    const uintptr_t end = ((uintptr_t)block + size) / HUGE_PAGE * HUGE_PAGE;
    if (block && end > start) (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}

/* ---- shared forms ---- */

struct tare_shared_weights {
    struct tare_shared_weights *next; /* in the same bucket */
    const void *owner;
    struct tare_tensor source; /* only its address, dtype and shape: the users hold the references */
    int64_t key;
    void *packed;
    size_t users;
};

enum { FIRST_BUCKETS = 256 };
/* The table doubles when it has as many entries as buckets, and is freed with its last entry. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the table and all counts of users */
static struct tare_shared_weights **table;
static size_t n_buckets, n_entries; /* n_buckets: 0 or a power of two */

static struct tare_shared_weights **bucket_of(const void *owner, const void *data) {
    const uint64_t hash = ((uint64_t)(uintptr_t)owner ^ (uint64_t)(uintptr_t)data << 17) * 0x9e3779b97f4a7c15u;
    return &table[hash >> 32 & (n_buckets - 1)];
}

/* With the lock held: room for one more entry. False if there is no table and no memory. */
static bool grow_table(void) {
    struct tare_shared_weights **old = table, **grown;
    const size_t n_old = n_buckets;
    if (n_entries < n_buckets) return true;
    grown = tare_calloc(n_old ? 2 * n_old : FIRST_BUCKETS, sizeof *grown);
    if (!grown) return n_old; /* longer lists */
    table = grown, n_buckets = n_old ? 2 * n_old : FIRST_BUCKETS;
    for (size_t i = 0; i < n_old; i++) {
        for (struct tare_shared_weights *entry = old[i], *next; entry; entry = next) {
            struct tare_shared_weights **bucket = bucket_of(entry->owner, entry->source.data);
            next = entry->next;
            entry->next = *bucket;
            *bucket = entry;
        }
    }
    tare_free(old);
    return true;
}

/* With the lock held: removes an entry. */
static void remove_entry(const struct tare_shared_weights *entry) {
    struct tare_shared_weights **at = bucket_of(entry->owner, entry->source.data);
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    if (--n_entries) return;
    tare_free(table);
    table = NULL, n_buckets = 0;
}

static bool is_same_tensor(const struct tare_tensor *a, const struct tare_tensor *b) {
    return a->data == b->data && a->dtype == b->dtype && tare_shape_equal(&a->shape, &b->shape);
}

/* With the lock held: adds a user to the published form; NULL if there is none. */
static struct tare_shared_weights *take_locked(const void *owner, const struct tare_tensor *tensor, int64_t key) {
    struct tare_shared_weights *shared = n_buckets ? *bucket_of(owner, tensor->data) : NULL;
    while (shared && !(shared->owner == owner && shared->key == key && is_same_tensor(&shared->source, tensor)))
        shared = shared->next;
    if (shared) shared->users++;
    return shared;
}

static struct tare_shared_weights *take_shared(const void *owner, const struct tare_tensor *tensor, int64_t key) {
    struct tare_shared_weights *shared;
    pthread_mutex_lock(&lock);
    shared = take_locked(owner, tensor, key);
    pthread_mutex_unlock(&lock);
    return shared;
}

/* Returns the form that is published now: an earlier one, or `own`. NULL: out of memory. */
static struct tare_shared_weights *take_or_add(struct tare_shared_weights *own) {
    struct tare_shared_weights *shared;
    pthread_mutex_lock(&lock);
    shared = take_locked(own->owner, &own->source, own->key);
    if (!shared && grow_table()) {
        struct tare_shared_weights **bucket = bucket_of(own->owner, own->source.data);
        own->next = *bucket;
        *bucket = shared = own;
        n_entries++;
    }
    pthread_mutex_unlock(&lock);
    return shared;
}

/* Removes a user, and the form with the last one. */
static void leave_shared(struct tare_shared_weights *shared) {
    bool last;
    pthread_mutex_lock(&lock);
    last = --shared->users == 0;
    if (last) remove_entry(shared);
    pthread_mutex_unlock(&lock);
    if (!last) return;
    tare_free(shared->packed);
    tare_free(shared);
}

/* ---- one node ---- */

/* After a few different tensors the input is an activation, which no other session has. */
static bool is_cached(const struct tare_weights *weights) {
    return weights->changes <= MOST_CHANGES;
}

static void use_shared(struct tare_weights *weights, const struct tare_tensor *tensor,
                       struct tare_shared_weights *shared) {
    weights->shared = shared;
    weights->packed = shared->packed;
    weights->key = shared->key;
    tare_tensor_share(&weights->source, tensor);
}

void *tare_weights_find(struct tare_weights *weights, const struct tare_tensor *tensor, int64_t key) {
    struct tare_shared_weights *shared;
    if (weights->packed && weights->key == key && is_same_tensor(&weights->source, tensor)) return weights->packed;
    if (!weights->owner || !is_cached(weights)) return NULL;
    shared = take_shared(weights->owner, tensor, key);
    if (!shared) return NULL;
    if (weights->packed) weights->changes++;
    tare_weights_reset(weights);
    use_shared(weights, tensor, shared);
    return weights->packed;
}

void *tare_weights_make(struct tare_weights *weights, const struct tare_tensor *tensor, int64_t key, size_t size,
                        struct tare_arena *scratch) {
    if (weights->packed) weights->changes++;
    tare_weights_reset(weights);
    if (!is_cached(weights)) {
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

/* Another session may have published the same form since it was looked for: then that one is used. */
static void publish_own(struct tare_weights *weights) {
    struct tare_shared_weights *own = tare_calloc(1, sizeof *own);
    if (!own) {
        tare_error_clear(); /* without memory for the entry, or for the table, the form stays this node's */
        return;
    }
    *own = (struct tare_shared_weights){
        .owner = weights->owner, .source = weights->source, .key = weights->key, .packed = weights->packed, .users = 1
    };
    weights->shared = take_or_add(own);
    if (weights->shared == own) return;
    if (!weights->shared) {
        tare_error_clear();
        tare_free(own);
        return;
    }
    tare_free(own->packed);
    tare_free(own);
    weights->packed = weights->shared->packed;
}

void *tare_weights_publish(struct tare_weights *weights, void *packed) {
    if (!weights || !weights->owner || weights->shared || packed != weights->packed) return packed;
    publish_own(weights);
    return weights->packed;
}

void tare_weights_reset(struct tare_weights *weights) {
    if (weights->shared)
        leave_shared(weights->shared);
    else
        tare_free(weights->packed);
    weights->shared = NULL;
    weights->packed = NULL;
    tare_tensor_reset(&weights->source);
}
