/* Complex numbers in double for kernels of small matrices: plain products and quotients, without the treatment of
 * infinities and overflow that C's complex types have. */
#ifndef TARE_INTERPRETER_KERNELS_SMALL_NUMBER_H
#define TARE_INTERPRETER_KERNELS_SMALL_NUMBER_H

#include "interpreter/kernels/cpu.h"

struct tare_number {
    double re, im;
};

TARE_ALWAYS_INLINE struct tare_number tare_number_conjugate(struct tare_number x) {
    return (struct tare_number){ x.re, -x.im };
}
TARE_ALWAYS_INLINE struct tare_number tare_number_scale(double factor, struct tare_number x) {
    return (struct tare_number){ factor * x.re, factor * x.im };
}
/* sum + x · y */
TARE_ALWAYS_INLINE struct tare_number tare_number_add_product(struct tare_number sum, struct tare_number x,
                                                              struct tare_number y) {
    return (struct tare_number){ sum.re + (x.re * y.re - x.im * y.im), sum.im + (x.re * y.im + x.im * y.re) };
}
/* |x|² */
TARE_ALWAYS_INLINE double tare_number_square(struct tare_number x) {
    return x.re * x.re + x.im * x.im;
}
/* x / y */
TARE_ALWAYS_INLINE struct tare_number tare_number_quotient(struct tare_number x, struct tare_number y) {
    const struct tare_number zero = { 0, 0 };
    return tare_number_scale(1 / tare_number_square(y), tare_number_add_product(zero, x, tare_number_conjugate(y)));
}

#endif
