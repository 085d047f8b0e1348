/* Integers of 4 and 2 bits: each is in a byte, in memory with its sign extended. Files may leave the upper bits 0. */
#ifndef TARE_BASE_TENSOR_NARROW_H
#define TARE_BASE_TENSOR_NARROW_H

#include "base/tensor/tensor.h"

bool tare_dtype_is_narrow(int dtype);
/* Bits of a value of any dtype. */
int tare_dtype_bits(int dtype);
/* Keeps the low bits and extends the sign; leaves other dtypes alone. */
void tare_tensor_narrow(struct tare_tensor *tensor);

/* The dtype in which files have such integers: int8 or uint8. Other dtypes are their own. */
int tare_dtype_stored(int dtype);
/* Whether a value of the second dtype, int8 or uint8, may have the elements of the first, a narrow one. */
bool tare_dtype_fits_bytes(int dtype, int value);
/* The elements of a tensor of int8 or uint8 as those of a narrow dtype, shared. TARE_INVALID_ARGUMENT for one that does
 * not fit, with its index. */
tare_status tare_tensor_share_narrow(struct tare_tensor *out, const struct tare_tensor *bytes,
                                     int dtype) TARE_WARN_UNUSED;

#endif
