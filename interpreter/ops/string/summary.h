/* Tensors as text, as TensorFlow's Tensor::SummarizeValue prints them: control characters, quotes and backslashes of
 * strings are escaped as in C; complex numbers and qint32 are question marks in one line. */
#ifndef TARE_INTERPRETER_OPS_STRING_SUMMARY_H
#define TARE_INTERPRETER_OPS_STRING_SUMMARY_H

#include "base/strbuf.h"
#include "base/tensor/tensor.h"

#include <stdint.h>

/* Appends the first and last `most` entries of each dimension, strings in quotes: "[[0 ... 4]\n [5 ... 9]]". -1: all.
 */
void tare_summarize_edges(struct tare_strbuf *out, const struct tare_tensor *tensor, int64_t most);
/* Appends the first `most` elements without the outer brackets: "[1 2][3...]...". -1: all. */
void tare_summarize_first(struct tare_strbuf *out, const struct tare_tensor *tensor, int64_t most);

#endif
