/* Comparison of tensors by a stated tolerance. */
#ifndef TARE_TESTS_TENSOR_COMPARE_H
#define TARE_TESTS_TENSOR_COMPARE_H

#include "base/strbuf.h"
#include "base/tensor/tensor.h"

/* A value fits when |got - expected| <= absolute + relative * |expected|, or when the two are at most `ulps`
 * representable values apart. NaN fits NaN. All zero: the same bits (so -0 is not 0), NaN payloads aside. Integers,
 * strings and bools are always exact. */
struct tolerance {
    double absolute, relative;
    int64_t ulps;
};

/* True when dtype, shape and every element fit. Else `why` gets one line: the first element that differs and both
 * values, and how many differ. */
bool tensors_agree(struct tare_strbuf *why, const struct tare_tensor *got, const struct tare_tensor *expected,
                   struct tolerance tolerance);

#endif
