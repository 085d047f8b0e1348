/* The steps of elementary functions over a vocabulary of lanes, which the includer names: VEC holds floats, IVEC as
 * many int32, and V(name) is an operation on them (v8.h, v1.h). FUNCTION(name) is what a function is called, with the
 * attribute TARGET. There are no branches, and each step is one rounding, so that all vocabularies have the same bits.
 * The polynomials are weighted least-maximum fits (Lawson's iteration in extended precision), relative error below 5e-9
 * before rounding. */

#define S(x) V(set)(x)
#define EACH TARE_ALWAYS_INLINE TARGET VEC

/* exp(x) = 2^k exp(r), |r| <= log(2)/2. Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits; 2^k
 * is multiplied in halves, so that results below the normal range are rounded once. */
#define EXP_MAGIC 0x1.8p23f
#define EXP_PER_LOG 0x1.715476p0f
#define EXP_LOG_HIGH 0x1.63p-1f
#define EXP_LOG_LOW -0x1.bd0106p-13f
#define EXP_ONE (127 << 23)

/* exp(r) - 1 */
EACH FUNCTION(expm1_reduced)(VEC r) {
    VEC p = S(0x1.9f081p-13f);
    p = V(fma)(p, r, S(0x1.6d8dbp-10f));
    p = V(fma)(p, r, S(0x1.111272p-7f));
    p = V(fma)(p, r, S(0x1.55548ep-5f));
    p = V(fma)(p, r, S(0x1.555554p-3f));
    p = V(fma)(p, r, S(0.5f));
    return V(fma)(V(mul)(r, r), p, r);
}

/* y 2^k: the low nine bits of `shifted` are k with its sign. */
EACH FUNCTION(scaled)(VEC y, VEC shifted) {
    const IVEC whole = V(shift_left)(V(bits)(shifted), 23), half = V(shift_left)(V(shift_right)(whole, 24), 23);
    const IVEC one = V(set_int)(EXP_ONE);
    const VEC first = V(of_bits)(V(add_int)(half, one));
    const VEC second = V(of_bits)(V(add_int)(V(sub_int)(whole, half), one));
    return V(mul)(V(mul)(y, first), second);
}

/* t - k log(2), where k is `shifted` less EXP_MAGIC */
EACH FUNCTION(exp_rest)(VEC t, VEC shifted) {
    const VEC k = V(sub)(shifted, S(EXP_MAGIC));
    return V(sub_product)(V(sub_product)(t, k, S(EXP_LOG_HIGH)), k, S(EXP_LOG_LOW));
}

/* exp(x) of -104 <= x <= 89 */
EACH FUNCTION(exp_within)(VEC x) {
    const VEC shifted = V(fma)(x, S(EXP_PER_LOG), S(EXP_MAGIC));
    const VEC y = V(add)(S(1), FUNCTION(expm1_reduced)(FUNCTION(exp_rest)(x, shifted)));
    return FUNCTION(scaled)(y, shifted);
}

EACH FUNCTION(exp)(VEC x) {
    return FUNCTION(exp_within)(V(max)(S(-104), V(min)(S(89), x)));
}

/* 2^k (exp(r) - 1) + (2^k - 1), by 2^(k - 1), as 2^128 is not a float. */
EACH FUNCTION(expm1)(VEC x) {
    const VEC t = V(max)(S(-20), V(min)(S(89), x));
    const VEC shifted = V(fma)(t, S(EXP_PER_LOG), S(EXP_MAGIC));
    const VEC y = FUNCTION(expm1_reduced)(FUNCTION(exp_rest)(t, shifted));
    const IVEC whole = V(shift_left)(V(bits)(shifted), 23);
    const VEC scale = V(of_bits)(V(add_int)(whole, V(set_int)(EXP_ONE - (1 << 23))));
    return V(with_sign)(V(mul)(S(2), V(fma)(scale, y, V(sub)(scale, S(0.5f)))), x);
}

EACH FUNCTION(tanh)(VEC x) {
    const VEC a = V(abs)(x), u = V(mul)(a, a);
    VEC p = S(-0x1.75da22p-8f);
    p = V(fma)(p, u, S(0x1.5224f6p-6f));
    p = V(fma)(p, u, S(-0x1.b83c1cp-5f));
    p = V(fma)(p, u, S(0x1.110726p-3f));
    p = V(fma)(p, u, S(-0x1.555532p-2f));
    const VEC near = V(fma)(V(mul)(a, u), p, a);
    const VEC power = FUNCTION(exp_within)(V(min)(S(89), V(mul)(S(2), a)));
    const VEC far = V(sub)(S(1), V(div)(S(2), V(add)(power, S(1))));
    return V(with_sign)(V(if_less)(a, S(0.625f), near, far), x);
}

/* exp of a negative number only: no overflow, and small results keep their digits. */
EACH FUNCTION(sigmoid)(VEC x) {
    const VEC z = FUNCTION(exp_within)(V(max)(S(-104), V(negative_abs)(x)));
    return V(div)(V(if_less)(x, S(0), z, S(1)), V(add)(S(1), z));
}

/* erf(a), 0 <= a < 1 */
EACH FUNCTION(erf_near)(VEC a) {
    const VEC u = V(mul)(a, a);
    VEC p = S(0x1.496a3p-14f);
    p = V(fma)(p, u, S(-0x1.a3f7p-11f));
    p = V(fma)(p, u, S(0x1.5405b2p-8f));
    p = V(fma)(p, u, S(-0x1.b7f90ep-6f));
    p = V(fma)(p, u, S(0x1.ce2cf8p-4f));
    p = V(fma)(p, u, S(-0x1.81273ep-2f));
    p = V(fma)(p, u, S(0x1.06eba8p-3f)); /* the slope 2 / sqrt(pi) less 1 */
    return V(fma)(a, p, a);
}

EACH FUNCTION(erf)(VEC x) {
    const VEC a = V(min)(S(3.95f), V(abs)(x)); /* from 3.92 on the result is 1 */
    VEC q = S(0x1.6c066cp-16f);                /* -log(erfc(a)) */
    q = V(fma)(q, a, S(-0x1.ceeadp-12f));
    q = V(fma)(q, a, S(0x1.1398fp-8f));
    q = V(fma)(q, a, S(-0x1.9d0bcep-6f));
    q = V(fma)(q, a, S(0x1.bc18ccp-4f));
    q = V(fma)(q, a, S(0x1.4434fp-1f));
    q = V(fma)(q, a, S(0x1.212c2cp+0f));
    q = V(fma)(q, a, S(-0x1.8b3e2ap-13f));
    const VEC far = V(sub)(S(1), FUNCTION(exp_within)(V(sub)(S(0), q)));
    return V(with_sign)(V(if_less)(a, S(1), FUNCTION(erf_near)(a), far), x);
}

/* erfc(a) = exp(-a^2) f(a) / (1 + 2 a), where f is a polynomial in (a - 2) / (a + 2). a^2 is its rounded value and a
 * rest, of which exp takes both. */
EACH FUNCTION(erfc)(VEC x) {
    const VEC a = V(min)(S(10.5f), V(abs)(x)); /* from 10.1 on the result is 0 */
    const VEC square = V(mul)(a, a), rest = V(sub_product)(square, a, a);
    const VEC shifted = V(sub_product)(S(EXP_MAGIC), square, S(EXP_PER_LOG));
    const VEC r = V(add)(FUNCTION(exp_rest)(V(sub)(S(0), square), shifted), rest);
    const VEC q = V(div)(V(sub)(a, S(2)), V(add)(a, S(2)));
    VEC p = S(-0x1.ac9bdcp-12f);
    p = V(fma)(p, q, S(-0x1.44a9ccp-10f));
    p = V(fma)(p, q, S(0x1.5b0e3ap-10f));
    p = V(fma)(p, q, S(0x1.1b334cp-7f));
    p = V(fma)(p, q, S(-0x1.083f62p-7f));
    p = V(fma)(p, q, S(-0x1.bc13cep-5f));
    p = V(fma)(p, q, S(0x1.4ffc9cp-3f));
    p = V(fma)(p, q, S(-0x1.5407f8p-3f));
    p = V(fma)(p, q, S(-0x1.7bf61ep-4f));
    p = V(fma)(p, q, S(0x1.46e80ep+0f));
    const VEC factor = V(div)(p, V(fma)(S(2), a, S(1)));
    const VEC power = V(add)(S(1), FUNCTION(expm1_reduced)(r));
    const VEC upper = FUNCTION(scaled)(V(mul)(power, factor), shifted);
    const VEC far = V(if_less)(x, S(0), V(sub)(S(2), upper), upper);
    return V(if_less)(a, S(0.5f), V(sub)(S(1), V(with_sign)(FUNCTION(erf_near)(a), x)), far);
}
#undef S
#undef EACH
#undef EXP_MAGIC
#undef EXP_PER_LOG
#undef EXP_LOG_HIGH
#undef EXP_LOG_LOW
#undef EXP_ONE
