/* Dense convolutions without gathered patches, which tare_conv_dense (conv.h) calls. */
#ifndef TARE_INTERPRETER_KERNELS_CONV_DIRECT_H
#define TARE_INTERPRETER_KERNELS_CONV_DIRECT_H

#include "interpreter/kernels/conv_geometry.h"
#include "interpreter/kernels/gemm.h"

/* True where the taps of a line are adjacent in the input and the direct form is faster. */
bool tare_conv_is_direct(const struct tare_conv *conv);
size_t tare_conv_direct_scratch(const struct tare_conv *conv);
enum { TARE_CONV_DIRECT_BLOCK_K = 384 }; /* larger patches are computed in pieces */
void tare_conv_direct_at(enum tare_cpu_level level, float *output, const struct tare_conv *conv, const float *input,
                         const float *packed, const struct tare_gemm_epilogue *epilogue, float *scratch);

#endif
