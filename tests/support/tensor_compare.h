/* Comparison of tensors with a tolerance. */
#ifndef TARE_TESTS_TENSOR_COMPARE_H
#define TARE_TESTS_TENSOR_COMPARE_H

#include "base/strbuf.h"
#include "base/tensor/tensor.h"

/* Two values match if |got - expected| <= absolute + relative * |expected|, or if they are at most `ulps`
 * representable values apart. NaN matches NaN. All zero: equal bits (so -0 differs from 0), except NaN payloads.
 * Integers, strings and bools are always compared exactly. */
struct tolerance {
    double absolute, relative;
    int64_t ulps;
};

/* Returns true if dtype, shape and all elements match. Otherwise `why` receives one line: the first mismatch with
 * both values, and the number of mismatches. */
bool tensors_agree(struct tare_strbuf *why, const struct tare_tensor *got, const struct tare_tensor *expected,
                   struct tolerance tolerance);
/* Reads "abs X", "rel X", "ulp N" in any order; sets those that are named. TARE_INVALID_ARGUMENT for other words. */
tare_status tolerance_from_text(struct tolerance *out, const char *text);

#endif
