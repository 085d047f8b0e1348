#include "interpreter/kernels/rowwise.h"

/* Four rows at a time, so that the sums are loaded and stored once for them. */
#define FORM(level, target)                                                                                            \
    static target void add_##level(float *to, const float *from, const float *bias, int64_t rows, int64_t columns) {   \
        for (int64_t i = 0; i < rows; i++, to += columns, from += columns) {                                           \
            TARE_INDEPENDENT                                                                                           \
            for (int64_t j = 0; j < columns; j++)                                                                      \
                to[j] = from[j] + bias[j];                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static target void normalize_##level(float *to, const float *from, const float *mean, const float *factor,         \
                                         const float *offset, int64_t rows, int64_t columns) {                         \
        for (int64_t i = 0; i < rows; i++, to += columns, from += columns) {                                           \
            TARE_INDEPENDENT                                                                                           \
            for (int64_t j = 0; j < columns; j++)                                                                      \
                to[j] = (from[j] - mean[j]) * factor[j] + offset[j];                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    static target void sum_##level(double *sums, const float *from, int64_t rows, int64_t columns) {                   \
        for (; rows >= 4; rows -= 4, from += 4 * columns) {                                                            \
            const float *second = from + columns, *third = second + columns, *fourth = third + columns;                \
            TARE_INDEPENDENT                                                                                           \
            for (int64_t j = 0; j < columns; j++)                                                                      \
                sums[j] = sums[j] + (double)from[j] + (double)second[j] + (double)third[j] + (double)fourth[j];        \
        }                                                                                                              \
        for (; rows > 0; rows--, from += columns) {                                                                    \
            TARE_INDEPENDENT                                                                                           \
            for (int64_t j = 0; j < columns; j++)                                                                      \
                sums[j] += (double)from[j];                                                                            \
        }                                                                                                              \
    }
TARE_EVERY_FORM(FORM)
#undef FORM

void tare_rowwise_add_at(enum tare_cpu_level level, float *to, const float *from, const float *bias, int64_t rows,
                         int64_t columns) {
    TARE_FORM(level, add)(to, from, bias, rows, columns);
}
void tare_rowwise_normalize_at(enum tare_cpu_level level, float *to, const float *from, const float *mean,
                               const float *factor, const float *offset, int64_t rows, int64_t columns) {
    TARE_FORM(level, normalize)(to, from, mean, factor, offset, rows, columns);
}
void tare_rowwise_sum_at(enum tare_cpu_level level, double *sums, const float *from, int64_t rows, int64_t columns) {
    TARE_FORM(level, sum)(sums, from, rows, columns);
}

void tare_rowwise_add(float *to, const float *from, const float *bias, int64_t rows, int64_t columns) {
    tare_rowwise_add_at(tare_cpu_level(), to, from, bias, rows, columns);
}
void tare_rowwise_normalize(float *to, const float *from, const float *mean, const float *factor, const float *offset,
                            int64_t rows, int64_t columns) {
    tare_rowwise_normalize_at(tare_cpu_level(), to, from, mean, factor, offset, rows, columns);
}
void tare_rowwise_sum(double *sums, const float *from, int64_t rows, int64_t columns) {
    tare_rowwise_sum_at(tare_cpu_level(), sums, from, rows, columns);
}
