/* Depthwise int8 convolutions with one output per channel, exact int32 sums: the VNNI form, line by line. */
#ifndef TARE_INTERPRETER_KERNELS_DEPTHWISE_VNNI_H
#define TARE_INTERPRETER_KERNELS_DEPTHWISE_VNNI_H

#include "interpreter/kernels/conv.h"

/* Two spatial dimensions, kernels of up to 64 × 64. */
bool tare_depthwise_vnni_supports(const struct tare_conv *conv);
size_t tare_depthwise_vnni_packed_bytes(const struct tare_conv *conv);
/* `packed` is aligned to 64 bytes; the filter is [kernel…, channels]. */
void tare_depthwise_vnni_pack(void *packed, const struct tare_conv *conv, const int8_t *filter);
size_t tare_depthwise_vnni_scratch_bytes(const struct tare_conv *conv);
/* Output line `line` of an image; `scratch` is aligned to 64 bytes. The machine must have VNNI. */
void tare_depthwise_vnni_line(int32_t *output, const struct tare_conv *conv, const int8_t *image, int64_t line,
                              const void *packed, void *scratch);

#endif
