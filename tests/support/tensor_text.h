/* Tensors written as text, for tables of test cases:
 *
 *   float[2,3] 1 2.5 -inf nan 0x1p-149 -0     int32[] 7      int64[0]      bool[2] true 0
 *   string[2] "a\n" "b"     complex64[2] (1,-2) 3     half[1000] fill 1.5     int32[2,3] iota 0 1
 *
 * dtype, dims, then every element in row-major order; `fill V`: all are V; `iota A B`: A, A+B, A+2B … Integers may be
 * hexadecimal, float8 elements are given as their byte. */
#ifndef TARE_TESTS_TENSOR_TEXT_H
#define TARE_TESTS_TENSOR_TEXT_H

#include "base/strbuf.h"
#include "base/tensor/tensor.h"

tare_status tensor_from_text(struct tare_tensor *out, const char *text);
/* "[2,?]", "[]", "<unknown>"; *end receives the position after the shape. */
tare_status shape_from_text(struct tare_shape *out, const char *text, const char **end);
/* One element, with enough digits to distinguish it from its neighbours. */
void element_to_text(struct tare_strbuf *out, const struct tare_tensor *tensor, int64_t i);
/* dtype, shape and at most `most` elements. */
void tensor_to_text(struct tare_strbuf *out, const struct tare_tensor *tensor, int64_t most);

#endif
