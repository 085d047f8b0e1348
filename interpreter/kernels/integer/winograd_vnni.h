/* Int8 convolutions of 3×3 taps and stride 1 by Winograd's algorithm with VNNI, with exact int32 sums; see
 * winograd_vnni.c. */
#ifndef TARE_INTERPRETER_KERNELS_WINOGRAD_VNNI_H
#define TARE_INTERPRETER_KERNELS_WINOGRAD_VNNI_H

#include "interpreter/kernels/integer/conv_int.h"

/* True for convolutions that tare_conv_int_is_direct accepts and that are faster so at the level. Depends only on the
 * form, the channels, strides, dilations, the kernel and the width of the output. */
bool tare_winograd_vnni_is_for(enum tare_cpu_level level, enum tare_igemm_form form, const struct tare_conv *conv);
size_t tare_winograd_vnni_packed_bytes(const struct tare_conv *conv);
void tare_winograd_vnni_pack(void *packed, const struct tare_conv *conv, const int8_t *filter);
/* Sums and bytes that a block needs. */
int64_t tare_winograd_vnni_sums(const struct tare_conv *conv);
size_t tare_winograd_vnni_scratch(const struct tare_conv *conv);
/* `scratch` is aligned to 64 bytes. */
void tare_winograd_vnni_run(const struct tare_conv_int_sink *sink, const struct tare_conv *conv, const int8_t *input,
                            const void *packed, int32_t *sums, void *scratch);

#endif
