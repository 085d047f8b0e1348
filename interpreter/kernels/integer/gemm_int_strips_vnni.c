/* The sums of a strip, seven rows by 32 columns, fill 14 registers, so of two strips one is converted to bytes in its
 * registers while the other is multiplied. Conversions are mostly additions, which Zen 5 executes in other units than
 * products, but out of order only if both kinds are near each other: some groups of k are multiplied between two rows
 * that are converted. Nor are the sums stored, 28 at a time, which delays the products. Four registers are left, so the
 * operands of the conversion are in memory, and each is read once for the two vectors of a row: 512-bit loads, two a
 * cycle, are as scarce as products. */
#include "interpreter/kernels/integer/gemm_int_strips_vnni.h"

#if TARE_KERNELS_X86
#include <string.h>

enum { ROWS = TARE_STRIP_ROWS, GROUP = 64, AHEAD = 2 * ROWS };

/* ---- multiplication ---- */

/* Where the product is: A at a group of k, the weights of the group, and what is prefetched with it. */
struct position {
    const char *a, *weights, *ahead;
    int64_t stride, three, five; /* of A, and its multiples */
};

/* At most one addition of a scaled distance, which is an address of an instruction: pointers to all rows would not fit
 * in registers. */
TARE_ALWAYS_INLINE const char *row_of(const struct position *at, const int row) {
    return row == 3   ? at->a + at->three
           : row == 5 ? at->a + at->five
           : row == 6 ? at->a + 2 * at->three
                      : at->a + row * at->stride;
}

/* As assembly: with the intrinsic, gcc 12 copies the sums between registers and memory. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i add_products(__m512i sum, __m512i bytes, __m512i weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(weights));
    return sum;
}

/* Adds the products of one group of k. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void multiply(__m512i sum[ROWS][2], struct position *at,
                                                  const struct tare_strips *s) {
    const __m512i first = _mm512_loadu_si512(at->weights), second = _mm512_loadu_si512(at->weights + s->panel_stride);
    __builtin_prefetch(at->ahead, 0, 2);
    __asm__("" : "+r"(at->a)); /* not the addresses of rows */
    TARE_UNROLL
    for (int i = 0; i < ROWS; i++) {
        int32_t group;
        memcpy(&group, row_of(at, i), sizeof group);
        const __m512i x = _mm512_set1_epi32(group);
        sum[i][0] = add_products(sum[i][0], x, first);
        sum[i][1] = add_products(sum[i][1], x, second);
    }
    at->a += 4;
    at->weights += GROUP;
    at->ahead += s->ahead_step;
}

TARE_ALWAYS_INLINE TARE_TARGET_VNNI void begin_strip(__m512i sum[ROWS][2], struct position *at,
                                                     const struct tare_strips *s) {
    at->weights = s->weights;
    TARE_UNROLL
    for (int i = 0; i < ROWS; i++) {
        sum[i][0] = _mm512_load_si512(s->start);
        sum[i][1] = _mm512_load_si512(s->start + TARE_ROW_LANES);
    }
}

/* ---- conversion ---- */

/* Makes the address of the operands one that the compiler does not know: it would move all of them to registers before
 * the loop, and sums to memory instead. */
TARE_ALWAYS_INLINE const struct tare_quantizer *hidden(const struct tare_quantizer *q) {
    __asm__("" : "+r"(q));
    return q;
}

/* An operand in a register: compilers would read it from memory for each vector. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 operand(__m512 x) {
    __asm__("" : "+v"(x));
    return x;
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i integer_operand(__m512i x) {
    __asm__("" : "+v"(x));
    return x;
}

/* For both vectors of a row: x[i] = value, where `o` is an operand that is read before. */
#define FOR_BOTH(x, value)                                                                                             \
    do {                                                                                                               \
        TARE_UNROLL                                                                                                    \
        for (int i = 0; i < 2; i++)                                                                                    \
            (x)[i] = value;                                                                                            \
    } while (0)
#define FOR_BOTH_WITH(x, read, y, value)                                                                               \
    do {                                                                                                               \
        const __typeof__(y) o = read(y);                                                                               \
        FOR_BOTH(x, value);                                                                                            \
    } while (0)

/* See tare_addend_real. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void read_addend(__m512 real[2], const struct tare_quantizer *q,
                                                       const char *addend, const bool is_unsigned) {
    __m512i x[2];
    TARE_UNROLL
    for (int i = 0; i < 2; i++) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(addend + i * TARE_ROW_LANES));
        x[i] = is_unsigned ? _mm512_cvtepu8_epi32(bytes) : _mm512_cvtepi8_epi32(bytes);
    }
    FOR_BOTH_WITH(x, integer_operand, q->addend_zero, _mm512_sub_epi32(x[i], o));
    FOR_BOTH_WITH(real, operand, q->addend_scale, _mm512_mul_ps(_mm512_cvtepi32_ps(x[i]), o));
}

/* The rounded results of a row, before the last clamping: see tare_rounded_total and tare_rounded_alone. Operation by
 * operation, so that both vectors share an operand that is read. `addend`: its elements, with `has_addend`. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void round_row(__m512i sum[2], const struct tare_quantizer *quantizer,
                                                     const char *addend, const bool is_unsigned,
                                                     const bool has_addend) {
    const struct tare_quantizer *q = hidden(quantizer);
    __m512 x[2], other[2];
    __m512i bits[2];
    FOR_BOTH(x, _mm512_mul_ps(_mm512_cvtepi32_ps(sum[i]), q->scale[i]));
    FOR_BOTH_WITH(x, operand, q->add, _mm512_add_ps(x[i], o));
    if (has_addend) {
        FOR_BOTH_WITH(bits, operand, q->shift, _mm512_castps_si512(_mm512_add_ps(x[i], o)));
        FOR_BOTH_WITH(bits, integer_operand, q->first_low, _mm512_max_epi32(bits[i], o));
        FOR_BOTH_WITH(bits, integer_operand, q->first_high, _mm512_min_epi32(bits[i], o));
        FOR_BOTH_WITH(x, operand, q->shifted_zero_point, _mm512_sub_ps(_mm512_castsi512_ps(bits[i]), o));
        FOR_BOTH_WITH(x, operand, q->result_scale, _mm512_mul_ps(x[i], o));
        read_addend(other, q, addend, is_unsigned);
        FOR_BOTH(x, _mm512_add_ps(x[i], other[i]));
        FOR_BOTH_WITH(x, operand, q->second_add, _mm512_add_ps(x[i], o));
    }
    FOR_BOTH(sum, _mm512_cvt_roundps_epi32(x[i], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* See tare_packed_bytes: of two rows whose integers have been packed to 16 bits. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i packed(const struct tare_quantizer *q, __m512i first, __m512i second,
                                                     const bool is_unsigned) {
    __m512i x;
    if (is_unsigned)
        x = _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(first, second), q->low), q->high);
    else
        x = _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(first, second), q->low), q->high);
    return tare_bytes_in_order(x);
}

/* Where the next row that is converted goes. */
struct target {
    const char *addend;
    uint8_t *to;
};

/* Converts row `row` of a strip to 16 bits, and two rows, or the last, to bytes. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void convert_row(__m512i sum[ROWS][2], const int row, struct target *target,
                                                       const struct tare_strips *s, const bool is_unsigned,
                                                       const bool has_addend) {
    const char *addend = target->addend;
    round_row(sum[row], s->quantizer, addend, is_unsigned, has_addend);
    sum[row][0] = _mm512_packs_epi32(sum[row][0], sum[row][1]);
    if (row % 2 == 1 || row == ROWS - 1) {
        const __m512i bytes = packed(hidden(s->quantizer), sum[row - row % 2][0], sum[row][0], is_unsigned);
        if (row % 2 == 1) {
            _mm256_storeu_si256((__m256i *)(void *)(target->to - s->stride), _mm512_castsi512_si256(bytes));
            _mm256_storeu_si256((__m256i *)(void *)target->to, _mm512_extracti64x4_epi64(bytes, 1));
        } else
            _mm256_storeu_si256((__m256i *)(void *)target->to, _mm512_castsi512_si256(bytes));
    }
    __builtin_prefetch(target->to + AHEAD * s->stride, 1);
    if (has_addend) {
        __builtin_prefetch(addend + AHEAD * s->stride);
        target->addend += s->stride;
    }
    target->to += s->stride;
}

/* ---- strips ---- */

/* Multiplies a strip and converts another. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void run_strip(__m512i sum[ROWS][2], __m512i done[ROWS][2], struct position *at,
                                                   struct target *target, const struct tare_strips *s,
                                                   const bool is_unsigned, const bool has_addend) {
    const int64_t few = s->groups / ROWS, rest = s->groups - (ROWS - 1) * few;
    begin_strip(sum, at, s);
    TARE_UNROLL
    for (int row = 0; row < ROWS; row++) {
        convert_row(done, row, target, s, is_unsigned, has_addend);
        for (int64_t g = row < ROWS - 1 ? few : rest; g > 0; g--)
            multiply(sum, at, s);
    }
    at->a += ROWS * s->a_stride - 4 * s->groups;
}

TARE_ALWAYS_INLINE TARE_TARGET_VNNI void run_strips(const struct tare_strips *strips, int64_t count,
                                                    int32_t sums[ROWS][2 * TARE_ROW_LANES], const bool is_unsigned,
                                                    const bool has_addend) {
    const struct tare_strips s = *strips;
    struct position at = {
        .a = s.a, .ahead = s.ahead, .stride = s.a_stride, .three = 3 * s.a_stride, .five = 5 * s.a_stride
    };
    struct target target = { s.addend, s.to };
    __m512i even[ROWS][2], odd[ROWS][2];
    begin_strip(even, &at, &s);
    for (int64_t g = 0; g < s.groups; g++)
        multiply(even, &at, &s);
    at.a += ROWS * s.a_stride - 4 * s.groups;
    for (; count > 2; count -= 2) {
        run_strip(odd, even, &at, &target, &s, is_unsigned, has_addend);
        run_strip(even, odd, &at, &target, &s, is_unsigned, has_addend);
    }
    TARE_UNROLL
    for (int i = 0; i < ROWS; i++) {
        _mm512_store_si512(sums[i], even[i][0]);
        _mm512_store_si512(sums[i] + TARE_ROW_LANES, even[i][1]);
    }
}

#define RUN(name, is_unsigned, has_addend)                                                                             \
    static TARE_TARGET_VNNI void name(const struct tare_strips *strips, int64_t count,                                 \
                                      int32_t sums[ROWS][2 * TARE_ROW_LANES]) {                                        \
        run_strips(strips, count, sums, is_unsigned, has_addend);                                                      \
    }
RUN(run_int8, false, false)
RUN(run_int8_addend, false, true)
RUN(run_uint8, true, false)
RUN(run_uint8_addend, true, true)
#undef RUN

void tare_strips_run(const struct tare_strips *strips, int64_t count,
                     int32_t sums[TARE_STRIP_ROWS][2 * TARE_ROW_LANES]) {
    if (strips->is_unsigned)
        (strips->addend ? run_uint8_addend : run_uint8)(strips, count, sums);
    else
        (strips->addend ? run_int8_addend : run_int8)(strips, count, sums);
}
#endif
