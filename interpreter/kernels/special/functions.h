/* More special functions that the C library does not have, in double, with an error of a few ulp (near a root: ulp of
 * 1). Outside of a function's domain: NaN. */
#ifndef TARE_INTERPRETER_KERNELS_SPECIAL_FUNCTIONS_H
#define TARE_INTERPRETER_KERNELS_SPECIAL_FUNCTIONS_H

/* Modified Bessel functions of the first kind; the scaled ones are multiplied by exp(-|x|). */
double tare_bessel_i0(double x);
double tare_bessel_i1(double x);
double tare_bessel_i0_scaled(double x);
double tare_bessel_i1_scaled(double x);
/* exp(-x²) times the integral of exp(t²) from 0 to x. */
double tare_dawson(double x);
/* The exponential integral Ei, x > 0 (-inf at 0). */
double tare_expint(double x);
/* Integrals of cos(pi t²/2) and sin(pi t²/2) from 0 to x. */
double tare_fresnel_cos(double x);
double tare_fresnel_sin(double x);
/* The dilogarithm of 1 - x, x >= 0. */
double tare_spence(double x);
/* The regularized incomplete gamma functions, lower and upper: a > 0, x >= 0. */
double tare_igamma(double a, double x);
double tare_igammac(double a, double x);
/* The regularized incomplete beta function: a, b > 0, 0 <= x <= 1. */
double tare_betainc(double a, double b, double x);
/* Hurwitz's zeta function: x > 1 (inf at 1), q > 0 (inf at 0, -1, -2 …; below zero for whole x only). */
double tare_zeta(double x, double q);
/* Derivative n (a whole number) of digamma. */
double tare_polygamma(double n, double x);

#endif
