/* Depthwise int8 convolutions with one output per channel, exact int32 sums: the VNNI form, some lines at a time. */
#ifndef TARE_INTERPRETER_KERNELS_DEPTHWISE_VNNI_H
#define TARE_INTERPRETER_KERNELS_DEPTHWISE_VNNI_H

#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/gemm_int.h"

/* Two spatial dimensions, kernels of up to 64 × 64. */
bool tare_depthwise_vnni_supports(const struct tare_conv *conv);
/* The packed filter depends on the kernel and the channels only. */
size_t tare_depthwise_vnni_packed_bytes(const struct tare_conv *conv);
/* `packed` is aligned to 64 bytes; the filter is [kernel…, channels]. */
void tare_depthwise_vnni_pack(void *packed, const struct tare_conv *conv, const int8_t *filter);
size_t tare_depthwise_vnni_scratch_bytes(const struct tare_conv *conv);
/* Output lines that one call computes at most, at least 1. */
int64_t tare_depthwise_vnni_lines(const struct tare_conv *conv);
/* `count` output lines of an image from line `line` on, whose first position is row 0 of `output`; `scratch` is aligned
 * to 64 bytes. The machine must have VNNI. */
void tare_depthwise_vnni_run(const struct tare_igemm_output *output, const struct tare_conv *conv, const int8_t *image,
                             int64_t line, int64_t count, const void *packed, void *scratch);

#endif
