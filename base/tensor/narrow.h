/* Integers of 4 and 2 bits: each is in a byte, in memory with its sign extended. Files may leave the upper bits 0. */
#ifndef TARE_BASE_TENSOR_NARROW_H
#define TARE_BASE_TENSOR_NARROW_H

#include "base/tensor/tensor.h"

bool tare_dtype_is_narrow(int dtype);
/* Bits of a value of any dtype. */
int tare_dtype_bits(int dtype);
/* Keeps the low bits and extends the sign; leaves other dtypes alone. */
void tare_tensor_narrow(struct tare_tensor *tensor);

#endif
