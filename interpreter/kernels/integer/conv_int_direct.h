/* Dense int8 convolutions without gathered patches; see conv_int_direct.c. */
#ifndef TARE_INTERPRETER_KERNELS_CONV_INT_DIRECT_H
#define TARE_INTERPRETER_KERNELS_CONV_INT_DIRECT_H

#include "interpreter/kernels/integer/conv_int.h"

/* The form for int8 operands at a level. It depends on the filter's shape only. */
enum tare_igemm_form tare_conv_int_form_at(enum tare_cpu_level level, const struct tare_conv *conv);
/* True for convolutions whose taps of a line are adjacent in the input: one group, two spatial dimensions, no dilation
 * along lines. */
bool tare_conv_int_is_direct(enum tare_igemm_form form, const struct tare_conv *conv);
/* Different for filters of the same shape that are packed differently, as lines of the image are long or short: 0 or 1.
 */
int tare_conv_int_direct_packing(enum tare_igemm_form form, const struct tare_conv *conv);
/* The packed filter; 0 when a size overflows. */
size_t tare_conv_int_direct_packed_bytes(enum tare_igemm_form form, const struct tare_conv *conv);
/* TARE_NO_MEMORY. */
tare_status tare_conv_int_direct_pack(void *packed, enum tare_igemm_form form, const struct tare_conv *conv,
                                      const int8_t *filter);
/* Sums and bytes that a block needs. `input`: int16 for halves, otherwise int8. */
int64_t tare_conv_int_direct_sums(const struct tare_conv *conv);
size_t tare_conv_int_direct_scratch(enum tare_igemm_form form, const struct tare_conv *conv);
void tare_conv_int_direct_at(enum tare_cpu_level level, const struct tare_conv_int_sink *sink,
                             const struct tare_conv *conv, const void *input, enum tare_igemm_form form,
                             const void *packed, int32_t *sums, void *scratch);

#endif
