/* Int8 convolutions of 3×3 taps and stride 1 by Winograd's algorithm, with exact int32 sums; see winograd_int.c. */
#ifndef TARE_INTERPRETER_KERNELS_WINOGRAD_INT_H
#define TARE_INTERPRETER_KERNELS_WINOGRAD_INT_H

#include "interpreter/kernels/integer/conv_int.h"

/* True for convolutions that tare_conv_int_is_direct accepts and that are faster so: products of 16-bit integers
 * (pairs), a 3×3 kernel, and channels that fill vectors. Depends only on the form, the channels, strides, dilations and
 * the kernel. */
bool tare_winograd_int_is_for(enum tare_igemm_form form, const struct tare_conv *conv);
/* The packed filter; 0 when a size overflows. */
size_t tare_winograd_int_packed_bytes(const struct tare_conv *conv);
/* TARE_NO_MEMORY. */
tare_status tare_winograd_int_pack(void *packed, const struct tare_conv *conv, const int8_t *filter);
/* Sums and bytes that a block needs. */
int64_t tare_winograd_int_sums(const struct tare_conv *conv);
size_t tare_winograd_int_scratch(const struct tare_conv *conv);
/* `scratch` is aligned to 64 bytes. */
void tare_winograd_int_at(enum tare_cpu_level level, const struct tare_conv_int_sink *sink,
                          const struct tare_conv *conv, const int8_t *input, const void *packed, int32_t *sums,
                          void *scratch);

#endif
