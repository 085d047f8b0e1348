#include "interpreter/ops/support/few_rows_product.h"

#include "base/alloc.h"
#include "interpreter/ops/support/split.h"

/* The keys of the forms in a node's cache; those of other packings are small. */
static int64_t key_of(enum tare_gemv_form form) {
    return INT64_MIN + (int64_t)form;
}

static void find(struct tare_few_rows *few, struct tare_weights *weights, const struct tare_tensor *source) {
    for (int form = TARE_GEMV_BYTES; form <= TARE_GEMV_NIBBLES && !few->packed; form++) {
        few->form = (enum tare_gemv_form)form;
        few->packed = tare_weights_find(weights, source, key_of(few->form));
    }
}

bool tare_few_rows_is_packed(struct tare_weights *weights, const struct tare_tensor *source, int64_t m, int64_t n,
                             int64_t k) {
    struct tare_few_rows few = { .m = m, .n = n, .k = k };
    if (tare_gemv_is_for(m, n, k)) find(&few, weights, source);
    return few.packed != NULL;
}

tare_status tare_few_rows_pack(struct tare_few_rows *few, struct tare_weights *weights,
                               const struct tare_tensor *source, int64_t other_key, struct tare_arena *scratch) {
    few->packed = NULL;
    if (!tare_gemv_is_for(few->m, few->n, few->k) || tare_weights_find(weights, source, other_key)) return TARE_OK;
    find(few, weights, source);
    if (few->packed || !few->rhs) return TARE_OK;
    few->form = tare_gemv_form_of(few->rhs, few->k * few->n);
    const size_t size = tare_gemv_packed_bytes(few->form, few->k, few->n);
    void *packed = size == 0 ? NULL : tare_weights_make(weights, source, key_of(few->form), size, scratch);
    if (!packed) return TARE_NO_MEMORY;
    tare_gemv_pack(packed, few->form, few->rhs, few->k, few->n);
    few->packed = tare_weights_publish(weights, packed);
    return TARE_OK;
}

/* ---- running ---- */

struct run {
    const struct tare_few_rows *few;
    int32_t *sums; /* of int8 rows; NULL: float rows */
    const int8_t *a;
    float *reals;
    const float *real_a;
    char *scratch; /* of all parts */
    size_t stride;
};

static void run_columns(void *arg, int part, int64_t first, int64_t end) {
    const struct run *run = arg;
    const struct tare_few_rows *few = run->few;
    const int64_t left = few->n - first * TARE_GEMV_UNIT, width = (end - first) * TARE_GEMV_UNIT;
    const struct tare_gemv_columns columns = { first * TARE_GEMV_UNIT, left < width ? left : width };
    if (run->sums)
        tare_gemv_int_at(tare_cpu_level(), run->sums, run->a, few->form, few->packed, few->m, few->n, few->k, &columns,
                         run->scratch + (size_t)part * run->stride);
    else
        tare_gemv_float_at(tare_cpu_level(), run->reals, run->real_a, few->form, few->packed, few->m, few->n, few->k,
                           &columns);
}

static int64_t units_of(const struct tare_few_rows *few) {
    return (few->n + TARE_GEMV_UNIT - 1) / TARE_GEMV_UNIT;
}

/* The weights limit the time: a byte takes that of several multiply-adds. */
static int parts_of(const struct tare_few_rows *few, struct tare_pool *threads) {
    enum { MULTIPLY_ADDS = 4 };
    return tare_split_count(threads, MULTIPLY_ADDS * (double)few->n * (double)few->k, units_of(few));
}

tare_status tare_few_rows_int(int32_t *c, const int8_t *a, const struct tare_few_rows *few, struct tare_pool *threads,
                              struct tare_arena *scratch) {
    enum { ALIGNMENT = 64 };
    struct run run = { .few = few, .sums = c, .a = a };
    const int parts = parts_of(few, threads);
    size_t bytes;
    run.stride = (tare_gemv_scratch_bytes(few->m, few->k) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!tare_mul_size(&bytes, run.stride, (size_t)parts)) return TARE_NO_MEMORY;
    char *block = tare_arena_alloc(scratch, bytes + ALIGNMENT);
    if (!block) return TARE_NO_MEMORY;
    run.scratch = block + (ALIGNMENT - (uintptr_t)block % ALIGNMENT) % ALIGNMENT;
    return tare_split_range(threads, parts, units_of(few), run_columns, &run);
}

tare_status tare_few_rows_float(float *c, const float *a, const struct tare_few_rows *few, struct tare_pool *threads) {
    struct run run = { .few = few, .reals = c, .real_a = a };
    return tare_split_range(threads, parts_of(few, threads), units_of(few), run_columns, &run);
}
