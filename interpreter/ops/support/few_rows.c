#include "interpreter/ops/support/few_rows.h"

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
