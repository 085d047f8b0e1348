/* Special functions that the C library does not have, computed in double with an error of a few ulp. */
#ifndef TARE_INTERPRETER_KERNELS_SPECIAL_SPECIAL_H
#define TARE_INTERPRETER_KERNELS_SPECIAL_SPECIAL_H

/* Derivative of log |gamma|. -inf at 0 (+inf at -0), NaN at negative integers and -inf. */
double tare_digamma(double x);
/* Inverse of erf: ±inf at ±1, NaN outside. */
double tare_erfinv(double x);
/* Quantile of the normal distribution: -inf at 0, inf at 1, NaN outside. */
double tare_ndtri(double p);
/* log |gamma(x)|; as lgamma, but does not write a global variable. */
double tare_lgamma(double x);

#endif
