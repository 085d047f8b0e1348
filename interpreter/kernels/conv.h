/* Convolutions over channels-last arrays (conv_geometry.h): the gathering of patches for the matrix product, and
 * depthwise.
 *
 * An output element is one chain (dot-fma-chain) over kernel depth, height, width, then channel; padding multiplies
 * zeros (dense) or is skipped (depthwise). */
#ifndef TARE_INTERPRETER_KERNELS_CONV_H
#define TARE_INTERPRETER_KERNELS_CONV_H

#include "interpreter/kernels/conv_geometry.h"
#include "interpreter/kernels/gemm.h"

/* A block of patches: of group `group`, from an input of `element_size` bytes per element, as tare_gemm_rows.gather. */
struct tare_conv_patches {
    const struct tare_conv *conv;
    const void *input;
    int64_t group;
    size_t element_size;
};
/* Row stride in elements. Padding is zero bytes. */
void tare_conv_gather(const struct tare_conv_patches *patches, void *block, int64_t stride, int64_t first_row,
                      int64_t rows, int64_t first_k, int64_t count_k);

/* Packed weights of a dense convolution: one packed matrix per group. */
size_t tare_conv_packed_floats(const struct tare_conv *conv);
void tare_conv_pack(float *packed, const struct tare_conv *conv, const float *filter);
void tare_conv_pack_int8(float *packed, const struct tare_conv *conv, const int8_t *filter);
/* Dense or grouped, with an epilogue (NULL: none; an addend has the layout of the output). `scratch` holds
 * tare_conv_dense_scratch floats. */
size_t tare_conv_dense_scratch(const struct tare_conv *conv);
void tare_conv_dense(float *output, const struct tare_conv *conv, const float *input, const float *packed,
                     const struct tare_gemm_epilogue *epilogue, float *scratch);
void tare_conv_dense_at(enum tare_cpu_level level, float *output, const struct tare_conv *conv, const float *input,
                        const float *packed, const struct tare_gemm_epilogue *epilogue, float *scratch);
/* True if tare_conv_dense, and its parts, store each output element once, after its addend was loaded, so that a simple
 * epilogue's addend may be the output: of a dense convolution whose k is not cut. */
bool tare_conv_adds_in_place(const struct tare_conv *conv);

/* Parts of a convolution, for several threads. True where output lines can be computed separately: two spatial
 * dimensions without input dilation. */
bool tare_conv_has_lines(const struct tare_conv *conv);
/* The convolution of output lines [at, at + count), counted over all images and within one image; returns the offset of
 * its first input element. Lines before the image become padding; if all lines that are read are before or after it,
 * its height is 0. Its scratch is at most that of the whole. */
int64_t tare_conv_take_lines(struct tare_conv *part, const struct tare_conv *conv, int64_t at, int64_t count);
/* True where tare_conv_dense computes output channels separately: one group, not direct. */
bool tare_conv_has_columns(const struct tare_conv *conv);
/* As tare_conv_dense for output channels [first, first + count) only; `first` is a multiple of TARE_GEMM_PANEL. */
void tare_conv_dense_columns(float *output, const struct tare_conv *conv, const float *input, const float *packed,
                             const struct tare_gemm_epilogue *epilogue, float *scratch, int64_t first, int64_t count);

/* Depthwise with out_channels / in_channels outputs per channel; the filter is [kernel…, out_channels], not packed.
 * The epilogue is that of tare_conv_dense. `scratch` holds tare_conv_depthwise_scratch floats (0 for multiplier 1). */
size_t tare_conv_depthwise_scratch(const struct tare_conv *conv);
void tare_conv_depthwise(float *output, const struct tare_conv *conv, const float *input, const float *filter,
                         const struct tare_gemm_epilogue *epilogue, float *scratch);
void tare_conv_depthwise_at(enum tare_cpu_level level, float *output, const struct tare_conv *conv, const float *input,
                            const float *filter, const struct tare_gemm_epilogue *epilogue, float *scratch);

/* The scalar reference implementation for tests: the same chain, one output after another. Integers wrap. */
void tare_conv_plain_f32(float *output, const struct tare_conv *conv, const float *input, const float *filter);
void tare_conv_plain_f64(double *output, const struct tare_conv *conv, const double *input, const double *filter);
void tare_conv_plain_i32(int32_t *output, const struct tare_conv *conv, const int32_t *input, const int32_t *filter);
void tare_conv_plain_i64(int64_t *output, const struct tare_conv *conv, const int64_t *input, const int64_t *filter);
void tare_conv_plain_c64(_Complex float *output, const struct tare_conv *conv, const _Complex float *input,
                         const _Complex float *filter);
void tare_conv_plain_c128(_Complex double *output, const struct tare_conv *conv, const _Complex double *input,
                          const _Complex double *filter);

/* ---- for the depthwise variants only ---- */

/* One output row segment of `count` positions, all of whose taps are inside horizontally: for channels [0, channels),
 * taps [h0, h1) x [w0, w1) of one depth slice. Strides in elements. */
struct tare_depthwise_row {
    void *output;       /* float; int32 of the integer kernels */
    const void *input;  /* of tap (0, 0) at the first position (may point outside; only valid taps are read) */
    const void *filter; /* of tap (0, 0); float or int8, both */
    int64_t count, channels;
    int64_t output_step, input_step; /* between positions */
    int64_t h0, h1, w0, w1;
    int64_t input_h, input_w;   /* between taps */
    int64_t filter_h, filter_w; /* between taps */
    bool accumulate;            /* go on with the chain in output */
    const struct tare_gemm_epilogue
        *epilogue; /* of the first position and channel; NULL: nothing is to do (integers) */
};
typedef void tare_depthwise_kernel(const struct tare_depthwise_row *row);
tare_depthwise_kernel tare_depthwise_row_plain, tare_depthwise_row_v8, tare_depthwise_row_avx512;
tare_depthwise_kernel tare_depthwise_row_int8_plain, tare_depthwise_row_int8_avx2, tare_depthwise_row_int8_avx512;
/* A whole image of two spatial dimensions, multiplier 1. */
struct tare_depthwise_image {
    const struct tare_conv *conv;
    float *output;
    const float *input, *filter;
    const struct tare_gemm_epilogue *epilogue; /* of the image's first element; NULL: none */
};
typedef void tare_depthwise_image_kernel(const struct tare_depthwise_image *image);
/* NULL: no kernel for that convolution. */
tare_depthwise_image_kernel *tare_depthwise_tiles_v8(const struct tare_conv *conv);
tare_depthwise_image_kernel *tare_depthwise_tiles_avx512(const struct tare_conv *conv);
/* Line `at` of an image's output with multiplier 1, without epilogue; elements of the output have 4 bytes, those of
 * input and filter `in_size`. */
void tare_depthwise_one_line(tare_depthwise_kernel *kernel, const struct tare_conv *conv, void *output,
                             const void *image, const void *filter, size_t in_size, int64_t at);

#endif
