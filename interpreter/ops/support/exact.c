#include "interpreter/ops/support/exact.h"

#include "base/alloc.h"
#include "interpreter/kernels/integer/conv_int_direct.h"
#include "interpreter/kernels/integer/conv_int_phases.h"
#include "interpreter/kernels/integer/winograd_int.h"
#include "interpreter/kernels/integer/winograd_vnni.h"
#include "interpreter/ops/support/exact_split.h"
#include "interpreter/ops/support/few_rows_product.h"
#include "base/tensor/dtype.h"

#include <string.h>

bool tare_exact_dtype(int dtype) {
    switch (dtype) {
    case TARE_DT_INT8:
    case TARE_DT_UINT8:
    case TARE_DT_INT16:
    case TARE_DT_UINT16:
    case TARE_DT_INT32:
    case TARE_DT_UINT32:
    case TARE_DT_QINT8:
    case TARE_DT_QUINT8:
    case TARE_DT_QINT16:
    case TARE_DT_QUINT16:
    case TARE_DT_QINT32:
        return true;
    default:
        return false;
    }
}

static bool is_int8(int dtype) {
    return dtype == TARE_DT_INT8 || dtype == TARE_DT_QINT8;
}

static void *scratch_array(struct tare_arena *scratch, int64_t count, size_t size) {
    size_t bytes;
    return tare_mul_size(&bytes, (size_t)count, size) ? tare_arena_alloc(scratch, bytes) : NULL;
}

#define WIDEN(type)                                                                                                    \
    for (int64_t i = 0; i < count; i++)                                                                                \
        to[i] = (int32_t)((const type *)values)[i];                                                                    \
    break

/* `count` elements widened to int32 (unsigned 32-bit ones keep their bits), in scratch. NULL: no memory. */
static int32_t *exact_widen(struct tare_arena *scratch, const void *values, int dtype, int64_t count) {
    int32_t *to = scratch_array(scratch, count, sizeof *to);
    if (!to) return NULL;
    switch (dtype) {
    case TARE_DT_INT8:
    case TARE_DT_QINT8:
        WIDEN(int8_t);
    case TARE_DT_UINT8:
    case TARE_DT_QUINT8:
        WIDEN(uint8_t);
    case TARE_DT_INT16:
    case TARE_DT_QINT16:
        WIDEN(int16_t);
    case TARE_DT_UINT16:
    case TARE_DT_QUINT16:
        WIDEN(uint16_t);
    default:
        memcpy(to, values, (size_t)count * sizeof *to);
        break;
    }
    return to;
}
#undef WIDEN

/* ---- operands in the kernels' types ---- */

/* The left operand in the form that `form` requires; *fits is false when its values are too large for int16. */
static tare_status left_operand(const void **out, bool *fits, const struct tare_exact *operands, int64_t count,
                                enum tare_igemm_form form) {
    *fits = true;
    *out = operands->lhs;
    if (form != TARE_IGEMM_PAIRS) return TARE_OK;
    int16_t *narrow = scratch_array(operands->scratch, count, sizeof *narrow);
    if (!narrow) return TARE_NO_MEMORY;
    *out = narrow;
    if (is_int8(operands->lhs_dtype)) {
        const int8_t *values = operands->lhs;
        for (int64_t i = 0; i < count; i++)
            narrow[i] = values[i];
        return TARE_OK;
    }
    const int32_t *wide = operands->lhs;
    if (tare_dtype_size(operands->lhs_dtype) < 4)
        wide = exact_widen(operands->scratch, operands->lhs, operands->lhs_dtype, count);
    if (!wide) return TARE_NO_MEMORY;
    *fits = operands->lhs_dtype != TARE_DT_UINT32 && tare_igemm_narrow(narrow, wide, count);
    return TARE_OK;
}

static enum tare_igemm_form form_of(const struct tare_conv *conv, int lhs_dtype, int rhs_dtype) {
    if (lhs_dtype == TARE_EXACT_HALVES) return TARE_IGEMM_HALVES;
    const bool is_narrow = is_int8(lhs_dtype) && is_int8(rhs_dtype);
    if (is_narrow && tare_conv_has_phases(conv)) return tare_conv_int_phases_form(tare_cpu_level());
    return is_narrow ? tare_conv_int_form_at(tare_cpu_level(), conv) : TARE_IGEMM_PAIRS;
}

static bool is_direct(const struct tare_conv *conv, int lhs_dtype, int rhs_dtype) {
    return (is_int8(lhs_dtype) || lhs_dtype == TARE_EXACT_HALVES) && is_int8(rhs_dtype) &&
           tare_conv_int_is_direct(form_of(conv, lhs_dtype, rhs_dtype), conv);
}

/* The other keys have the size of the number of groups at most. */
static const int64_t winograd_vnni_key = INT64_MIN, winograd_key = INT64_MIN + 1, halves_key = INT64_MIN + 2;
static const int64_t phases_key = INT64_MIN + 256; /* plus the pad_value */

static bool has_phases(const struct tare_conv *conv, int lhs_dtype, int rhs_dtype) {
    return is_int8(lhs_dtype) && is_int8(rhs_dtype) &&
           tare_conv_int_has_phases(tare_conv_int_phases_form(tare_cpu_level()), conv);
}

/* The kernel for a convolution that is direct. */
static enum tare_exact_kernel direct_kernel(enum tare_igemm_form form, const struct tare_conv *conv) {
    if (tare_winograd_vnni_is_for(tare_cpu_level(), form, conv)) return TARE_EXACT_WINOGRAD_VNNI;
    return tare_winograd_int_is_for(form, conv) ? TARE_EXACT_WINOGRAD : TARE_EXACT_DIRECT;
}

int64_t tare_exact_key(const struct tare_conv *conv, int lhs_dtype, int rhs_dtype) {
    if (lhs_dtype == TARE_EXACT_HALVES) return halves_key + is_direct(conv, lhs_dtype, rhs_dtype);
    if (tare_conv_is_depthwise(conv))
        return -2 * conv->groups - tare_conv_int_depthwise_packing(tare_cpu_level(), conv);
    if (has_phases(conv, lhs_dtype, rhs_dtype)) return phases_key + conv->pad_value;
    if (!is_direct(conv, lhs_dtype, rhs_dtype)) return conv->groups;
    const enum tare_igemm_form form = form_of(conv, lhs_dtype, rhs_dtype);
    const enum tare_exact_kernel kernel = direct_kernel(form, conv);
    if (kernel == TARE_EXACT_WINOGRAD_VNNI) return winograd_vnni_key;
    return kernel == TARE_EXACT_WINOGRAD ? winograd_key : -tare_conv_int_direct_packing(form, conv);
}

int64_t tare_exact_product_key(int lhs_dtype, int rhs_dtype) {
    if (lhs_dtype == TARE_EXACT_HALVES) return halves_key + 1;
    return is_int8(lhs_dtype) && is_int8(rhs_dtype) ? 0 : 1;
}

static bool is_int8_depthwise(const struct tare_conv *conv, int lhs_dtype, int rhs_dtype) {
    return tare_conv_is_depthwise(conv) && conv->out_channels == conv->in_channels && is_int8(lhs_dtype) &&
           is_int8(rhs_dtype);
}

static enum tare_exact_kernel kernel_of(const struct tare_conv *conv, const struct tare_exact_choice *choice) {
    if (is_int8_depthwise(conv, choice->lhs_dtype, choice->rhs_dtype)) return TARE_EXACT_DEPTHWISE;
    if (has_phases(conv, choice->lhs_dtype, choice->rhs_dtype)) return TARE_EXACT_PHASES;
    if (!is_direct(conv, choice->lhs_dtype, choice->rhs_dtype)) return TARE_EXACT_DENSE;
    return direct_kernel(choice->form, conv);
}

void tare_exact_choose(struct tare_exact_choice *choice, const struct tare_conv *conv, int lhs_dtype, int rhs_dtype) {
    const bool is_same = choice->is_set && choice->lhs_dtype == lhs_dtype && choice->rhs_dtype == rhs_dtype;
    if (is_same && (choice->kernel != TARE_EXACT_PHASES || choice->key == phases_key + conv->pad_value)) return;
    *choice = (struct tare_exact_choice){ .lhs_dtype = lhs_dtype, .rhs_dtype = rhs_dtype };
    choice->form = form_of(conv, lhs_dtype, rhs_dtype);
    choice->kernel = kernel_of(conv, choice);
    choice->key = tare_exact_key(conv, lhs_dtype, rhs_dtype);
    choice->pads = choice->kernel == TARE_EXACT_DEPTHWISE ? tare_conv_int_depthwise_pads(tare_cpu_level(), conv)
                                                          : choice->kernel != TARE_EXACT_DENSE;
    tare_exact_measure(choice, conv);
    choice->is_set = true;
}

static void *kept(const struct tare_exact *operands, int64_t key) {
    return !operands->weights ? NULL : tare_weights_find(operands->weights, operands->source, key);
}

/* Scratch memory aligned to 64 bytes. NULL: no memory. */
static void *aligned_room(struct tare_arena *scratch, size_t bytes) {
    char *block = tare_arena_alloc(scratch, bytes + 64);
    return !block ? NULL : block + (64 - (uintptr_t)block % 64) % 64;
}

static void *room_for_packed(const struct tare_exact *operands, int64_t key, size_t bytes) {
    if (!operands->weights) return aligned_room(operands->scratch, bytes);
    return tare_weights_make(operands->weights, operands->source, key, bytes, operands->scratch);
}

/* The convolution's filter packed; NULL in *out when its values are too large. */
static tare_status packed_filter(void **out, const struct tare_exact *operands, const struct tare_conv *conv,
                                 const struct tare_exact_choice *choice) {
    *out = kept(operands, choice->key);
    if (*out) return TARE_OK;
    const bool bytes = is_int8(operands->rhs_dtype);
    const int32_t *wide = NULL;
    if (!bytes) {
        const int64_t count = tare_conv_patch(conv) * conv->out_channels;
        wide = exact_widen(operands->scratch, operands->rhs, operands->rhs_dtype, count);
        if (!wide) return TARE_NO_MEMORY;
    }
    void *packed = room_for_packed(operands, choice->key, tare_conv_int_packed_bytes(choice->form, conv));
    if (!packed) return TARE_NO_MEMORY;
    *out = packed;
    if (bytes) {
        tare_conv_int_pack(packed, choice->form, conv, operands->rhs);
    } else if (!tare_conv_int_pack_int32(packed, conv, wide)) {
        *out = NULL;
        if (operands->weights) tare_weights_reset(operands->weights);
        return TARE_OK;
    }
    *out = tare_weights_publish(operands->weights, packed);
    return TARE_OK;
}

/* ---- plain ---- */

static tare_status plain_conv(int32_t *output, const struct tare_exact *operands, const struct tare_conv *conv) {
    const int64_t in = conv->batch * conv->in[0] * conv->in[1] * conv->in[2] * conv->in_channels;
    const int32_t *lhs = exact_widen(operands->scratch, operands->lhs, operands->lhs_dtype, in);
    const int32_t *rhs =
        exact_widen(operands->scratch, operands->rhs, operands->rhs_dtype, tare_conv_patch(conv) * conv->out_channels);
    if (!lhs || !rhs) return TARE_NO_MEMORY;
    tare_conv_plain_i32(output, conv, lhs, rhs);
    return TARE_OK;
}

/* ---- convolution ---- */

/* Room for the sums of a block; the output itself without a consumer. */
static int32_t *room_for_sums(int32_t *output, const struct tare_exact *operands, int64_t count) {
    return operands->consumer ? scratch_array(operands->scratch, count, sizeof *output) : output;
}

static tare_status plain_conv_to(int32_t *output, const struct tare_exact *operands, const struct tare_conv *conv,
                                 int64_t first) {
    const int64_t count = tare_conv_rows(conv) * conv->out_channels;
    int32_t *sums = room_for_sums(output, operands, count);
    if (!sums) return TARE_NO_MEMORY;
    TARE_TRY(plain_conv(sums, operands, conv));
    if (operands->consumer) operands->consumer->take(operands->consumer, sums, first, count);
    return TARE_OK;
}

/* The filter in the depthwise kernel's form. NULL: no memory. */
static void *packed_depthwise(const struct tare_exact *operands, const struct tare_conv *conv, int64_t key) {
    void *packed = kept(operands, key);
    if (packed) return packed;
    packed = room_for_packed(operands, key, tare_conv_int_depthwise_packed_bytes(tare_cpu_level(), conv));
    if (!packed) return NULL;
    tare_conv_int_depthwise_pack(tare_cpu_level(), packed, conv, operands->rhs);
    return tare_weights_publish(operands->weights, packed);
}

static size_t direct_bytes(enum tare_exact_kernel kernel, const struct tare_conv *conv, enum tare_igemm_form form) {
    if (kernel == TARE_EXACT_PHASES) return tare_conv_int_phases_packed_bytes(form, conv);
    if (kernel == TARE_EXACT_WINOGRAD_VNNI) return tare_winograd_vnni_packed_bytes(conv);
    return kernel == TARE_EXACT_WINOGRAD ? tare_winograd_int_packed_bytes(conv)
                                         : tare_conv_int_direct_packed_bytes(form, conv);
}

static tare_status pack_direct(void *packed, enum tare_exact_kernel kernel, const struct tare_conv *conv,
                               const void *filter, enum tare_igemm_form form) {
    if (kernel == TARE_EXACT_PHASES) return tare_conv_int_phases_pack(packed, form, conv, filter);
    if (kernel == TARE_EXACT_WINOGRAD) return tare_winograd_int_pack(packed, conv, filter);
    if (kernel == TARE_EXACT_DIRECT) return tare_conv_int_direct_pack(packed, form, conv, filter);
    tare_winograd_vnni_pack(packed, conv, filter);
    return TARE_OK;
}

/* The filter in the form of the kernel: Winograd's algorithm or the direct one. */
static tare_status packed_direct(void **packed, const struct tare_exact *operands, const struct tare_conv *conv,
                                 const struct tare_exact_choice *choice) {
    *packed = kept(operands, choice->key);
    if (*packed) return TARE_OK;
    *packed = room_for_packed(operands, choice->key, direct_bytes(choice->kernel, conv, choice->form));
    if (!*packed) return TARE_NO_MEMORY;
    const tare_status status = pack_direct(*packed, choice->kernel, conv, operands->rhs, choice->form);
    if (status == TARE_OK) *packed = tare_weights_publish(operands->weights, *packed);
    if (status != TARE_OK && operands->weights) tare_weights_reset(operands->weights);
    return status;
}

/* Finds the packed filter and the input in the kernel's type; *found is false if the values are too large for it. */
static tare_status open_run(struct tare_exact_run *run, bool *found, const struct tare_exact *operands,
                            const struct tare_conv *conv) {
    const struct tare_exact_choice *choice = run->choice;
    const int64_t in = conv->batch * conv->in[0] * conv->in[1] * conv->in[2] * conv->in_channels;
    void *packed = NULL;
    *found = true;
    run->input = operands->lhs;
    if (choice->kernel == TARE_EXACT_DEPTHWISE) {
        run->packed = packed_depthwise(operands, conv, choice->key);
        return run->packed ? TARE_OK : TARE_NO_MEMORY;
    }
    if (choice->kernel != TARE_EXACT_DENSE) {
        TARE_TRY(packed_direct(&packed, operands, conv, choice));
    } else {
        TARE_TRY(left_operand(&run->input, found, operands, in, choice->form));
        if (*found) TARE_TRY(packed_filter(&packed, operands, conv, choice));
        *found = packed;
    }
    run->packed = packed;
    return TARE_OK;
}

/* `first`: the consumer's element that is the first of the convolution; 0 without a consumer. */
static tare_status conv_to(int32_t *output, const struct tare_exact *operands, const struct tare_conv *conv,
                           int64_t first) {
    struct tare_exact_choice own = { .is_set = false };
    struct tare_exact_run run = { .choice = operands->choice ? operands->choice : &own,
                                  .conv = conv,
                                  .output = output,
                                  .consumer = operands->consumer,
                                  .first = first };
    bool found;
    if (operands->plain || tare_conv_patch(conv) == 0) return plain_conv_to(output, operands, conv, first);
    if (run.choice == &own) tare_exact_choose(&own, conv, operands->lhs_dtype, operands->rhs_dtype);
    TARE_TRY(open_run(&run, &found, operands, conv));
    if (found) return tare_exact_split(operands->threads, operands->scratch, &run);
    if (!operands->rhs) return TARE_FAIL(TARE_INTERNAL, "the plain filter is gone");
    return plain_conv_to(output, operands, conv, first);
}

tare_status tare_exact_conv(int32_t *output, const struct tare_exact *operands, const struct tare_conv *conv) {
    return conv_to(output, operands, conv, 0);
}

/* ---- product ---- */

static struct tare_conv as_pointwise(int64_t m, int64_t n, int64_t k) {
    return (struct tare_conv){ .batch = 1,
                               .in = { 1, 1, m },
                               .in_channels = k,
                               .kernel = { 1, 1, 1 },
                               .out = { 1, 1, m },
                               .out_channels = n,
                               .stride = { 1, 1, 1 },
                               .dilation = { 1, 1, 1 },
                               .base_dilation = { 1, 1, 1 },
                               .groups = 1 };
}

void tare_exact_choose_product(struct tare_exact_choice *choice, int64_t m, int64_t n, int64_t k, int lhs_dtype,
                               int rhs_dtype) {
    if (choice->is_set && choice->lhs_dtype == lhs_dtype && choice->rhs_dtype == rhs_dtype) return;
    const struct tare_conv conv = as_pointwise(m, n, k);
    tare_exact_choose(choice, &conv, lhs_dtype, rhs_dtype);
}

/* With the kernels for few rows; *done is false if they are not for the product. */
static tare_status few_rows(int32_t *output, const struct tare_exact *operands, int64_t m, int64_t n, int64_t k,
                            bool *done) {
    const int64_t key = tare_exact_product_key(operands->lhs_dtype, operands->rhs_dtype);
    struct tare_few_rows few = { .m = m, .n = n, .k = k, .rhs = operands->rhs };
    *done = false;
    if (operands->plain || !operands->weights || !is_int8(operands->lhs_dtype) || !is_int8(operands->rhs_dtype))
        return TARE_OK;
    TARE_TRY(tare_few_rows_pack(&few, operands->weights, operands->source, key, operands->scratch));
    if (!few.packed) return TARE_OK;
    int32_t *sums = room_for_sums(output, operands, m * n);
    if (!sums) return TARE_NO_MEMORY;
    TARE_TRY(tare_few_rows_int(sums, operands->lhs, &few, operands->threads, operands->scratch));
    if (operands->consumer) operands->consumer->take(operands->consumer, sums, 0, m * n);
    *done = true;
    return TARE_OK;
}

/* What takes the sums of a small product. */
struct small_sink {
    int32_t *output;
    struct tare_consumer *consumer; /* NULL: the output */
};

static void take_small(void *arg, int32_t *sums, int64_t first, int64_t count) {
    const struct small_sink *to = arg;
    if (to->consumer)
        to->consumer->take(to->consumer, sums, first, count);
    else
        memcpy(to->output + first, sums, (size_t)count * sizeof *sums);
}

static void take_small_floats(void *arg, const float *floats, int64_t first, int64_t count) {
    const struct small_sink *to = arg;
    to->consumer->take_floats(to->consumer, floats, first, count);
}

/* A small product with weights that are packed already, such as a step of a recurrent layer: choosing and preparing a
 * kernel takes as long as the product itself. True if it has been computed. */
static bool small_product(int32_t *output, const struct tare_exact *operands, int64_t m, int64_t n, int64_t k) {
    enum { MOST_SUMS = 1024, MOST_BYTES = 4096 };
    _Alignas(64) int32_t sums[MOST_SUMS];
    _Alignas(64) char scratch[MOST_BYTES];
    if (m < 1 || n < 1 || k < 1 || m > MOST_SUMS || n > MOST_SUMS || k > MOST_BYTES || operands->plain) return false;
    if (!operands->weights || !is_int8(operands->lhs_dtype) || !is_int8(operands->rhs_dtype)) return false;
    const struct tare_exact_choice *choice = operands->choice;
    if (!choice || choice->kernel != TARE_EXACT_DIRECT || choice->sums > MOST_SUMS || choice->bytes > MOST_BYTES)
        return false;
    const struct tare_conv conv = as_pointwise(m, n, k);
    const int64_t key = tare_exact_product_key(operands->lhs_dtype, operands->rhs_dtype);
    const void *packed = tare_weights_find(operands->weights, operands->source, key);
    if (!packed) return false;
    struct small_sink to = { output, operands->consumer };
    const struct tare_requantize *requantize = !to.consumer ? NULL : to.consumer->requantize;
    const struct tare_conv_int_sink sink = { .take = take_small,
                                             .take_floats = take_small_floats,
                                             .arg = &to,
                                             .requantize = requantize && requantize->columns == n ? requantize : NULL };
    tare_conv_int_direct_at(tare_cpu_level(), &sink, &conv, operands->lhs, choice->form, packed, sums, scratch);
    return true;
}

tare_status tare_exact_product(int32_t *output, const struct tare_exact *operands, int64_t batch, int64_t m, int64_t n,
                               int64_t k) {
    bool done = false;
    if (k == 0 && !operands->consumer) {
        memset(output, 0, (size_t)(batch * m * n) * sizeof *output);
        return TARE_OK;
    }
    if (batch == 1 && small_product(output, operands, m, n, k)) return TARE_OK;
    if (batch == 1) TARE_TRY(few_rows(output, operands, m, n, k, &done));
    if (done) return TARE_OK;
    const struct tare_conv conv = as_pointwise(m, n, k); /* a product is a convolution with one tap */
    const size_t size = tare_dtype_size(operands->lhs_dtype == TARE_EXACT_HALVES ? TARE_DT_INT16 : operands->lhs_dtype);
    TARE_TRY(tare_conv_check(&conv));
    for (int64_t b = 0; b < batch; b++) {
        struct tare_exact one = *operands;
        one.lhs = (const char *)operands->lhs + (size_t)(b * m * k) * size;
        if (operands->rhs)
            one.rhs = (const char *)operands->rhs + (size_t)(b * k * n) * tare_dtype_size(operands->rhs_dtype);
        if (batch > 1) one.weights = NULL;
        TARE_TRY(conv_to(!output ? NULL : output + b * m * n, &one, &conv, operands->consumer ? b * m * n : 0));
    }
    return TARE_OK;
}
