/* The four precisions of LAPACK. */
#ifndef TARE_INTERPRETER_KERNELS_LAPACK_TYPE_H
#define TARE_INTERPRETER_KERNELS_LAPACK_TYPE_H

#include <stdbool.h>
#include <stddef.h>

/* Element type of a routine: float, double, float complex, double complex. */
enum tare_lapack_type { TARE_LAPACK_S, TARE_LAPACK_D, TARE_LAPACK_C, TARE_LAPACK_Z };

static inline bool tare_lapack_is_complex(enum tare_lapack_type type) {
    return type >= TARE_LAPACK_C;
}
/* Bytes of an element, and of its real component. */
static inline size_t tare_lapack_size(enum tare_lapack_type type) {
    return (size_t)(type == TARE_LAPACK_S ? 4 : type == TARE_LAPACK_Z ? 16 : 8);
}
static inline size_t tare_lapack_real_size(enum tare_lapack_type type) {
    return type == TARE_LAPACK_S || type == TARE_LAPACK_C ? 4 : 8;
}

#endif
