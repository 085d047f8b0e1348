#include "interpreter/kernels/transpose.h"

#if TARE_KERNELS_X86
#include <immintrin.h>

/* Blocks of 4 by 4. */
static TARE_TARGET_AVX2 void transpose_avx2(double *to, int64_t to_step, const double *from, int64_t from_step,
                                            int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i += 4)
        for (int64_t j = 0; j < columns; j += 4) {
            const double *at = from + i * from_step + j;
            double *out = to + j * to_step + i;
            __m256d r[4]; /* rows 0 and 2, then 1 and 3: columns 0 and 1, then 2 and 3 */
            TARE_UNROLL
            for (int k = 0; k < 4; k++) {
                const double *row = at + k % 2 * from_step + k / 2 * 2;
                r[k] = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(row)),
                                            _mm_loadu_pd(row + 2 * from_step), 1);
            }
            _mm256_storeu_pd(out, _mm256_unpacklo_pd(r[0], r[1]));
            _mm256_storeu_pd(out + to_step, _mm256_unpackhi_pd(r[0], r[1]));
            _mm256_storeu_pd(out + 2 * to_step, _mm256_unpacklo_pd(r[2], r[3]));
            _mm256_storeu_pd(out + 3 * to_step, _mm256_unpackhi_pd(r[2], r[3]));
        }
}
#endif

static void transpose_plain(double *to, int64_t to_step, const double *from, int64_t from_step, int64_t rows,
                            int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * to_step + i] = from[i * from_step + j];
}

void tare_transpose_double(enum tare_cpu_level level, double *to, int64_t to_step, const double *from,
                           int64_t from_step, int64_t rows, int64_t columns) {
    int64_t whole_rows = 0, whole_columns = 0;
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX2) {
        whole_rows = rows / 4 * 4;
        whole_columns = columns / 4 * 4;
        transpose_avx2(to, to_step, from, from_step, whole_rows, whole_columns);
    }
#else
    (void)level;
#endif
    if (whole_columns < columns)
        transpose_plain(to + whole_columns * to_step, to_step, from + whole_columns, from_step, whole_rows,
                        columns - whole_columns);
    if (whole_rows < rows)
        transpose_plain(to + whole_rows, to_step, from + whole_rows * from_step, from_step, rows - whole_rows, columns);
}

/* In tiles, so that source and target lines stay in the cache. */
#define CASE(size, type)                                                                                               \
    case size:                                                                                                         \
        for (int64_t first = 0; first < columns; first += TILE)                                                        \
            for (int64_t i = 0; i < rows; i++)                                                                         \
                for (int64_t j = first; j < columns && j < first + TILE; j++)                                          \
                    ((type *)to)[j * rows + i] = ((const type *)from)[i * columns + j];                                \
        break

void tare_transpose(void *to, const void *from, size_t element_size, int64_t rows, int64_t columns) {
    enum { TILE = 8 }; /* columns of a power of two fall into few sets of the cache */
    if (element_size == sizeof(double) && rows >= 4) {
        for (int64_t first = 0; first < columns; first += TILE)
            tare_transpose_double(tare_cpu_level(), (double *)to + first * rows, rows, (const double *)from + first,
                                  columns, rows, columns - first < TILE ? columns - first : TILE);
        return;
    }
    switch (element_size) {
        CASE(1, uint8_t);
        CASE(2, uint16_t);
        CASE(4, float);
        CASE(8, double);
        CASE(16, _Complex double);
    }
}
#undef CASE
