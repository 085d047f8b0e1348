/* Single values of tensors as text. */
#ifndef TARE_CLI_VALUE_TEXT_H
#define TARE_CLI_VALUE_TEXT_H

#include "base/strbuf.h"
#include "base/tensor/tensor.h"

/* Appends element i: floating-point numbers with so many significant digits, complex ones as 1+2j, integers exactly,
 * and ? for resources and variants. Strings are the caller's. */
void tare_value_put(struct tare_strbuf *out, const struct tare_tensor *value, int64_t i, int digits);

#endif
