/* Elementary functions of one double, by single roundings in one order: the same bits on every CPU, where those of C
 * libraries differ in the last place (glibc's between arm64 and x86-64, and between x86-64 with and without FMA). At
 * most 1 ulp from the exact value for exp, expm1, log, log1p, pow, sin and cos, 3 ulp for the others
 * (tests/unit/interpreter/kernels/elementary_double_test.c); rounded to float, almost always the exactly rounded
 * result. Special values as in C's annex F. */
#ifndef TARE_INTERPRETER_KERNELS_ELEMENTARY_DOUBLE_H
#define TARE_INTERPRETER_KERNELS_ELEMENTARY_DOUBLE_H

double tare_exp(double x);
double tare_expm1(double x);
double tare_log(double x);
double tare_log1p(double x);
double tare_pow(double x, double y);
float tare_pow_float(float x, float y);
double tare_sigmoid(double x);

double tare_sin(double x);
double tare_cos(double x);
double tare_tan(double x);
double tare_asin(double x);
double tare_acos(double x);
double tare_atan(double x);
double tare_atan2(double y, double x);

double tare_sinh(double x);
double tare_cosh(double x);
double tare_tanh(double x);
double tare_asinh(double x);
double tare_acosh(double x);
double tare_atanh(double x);

#endif
