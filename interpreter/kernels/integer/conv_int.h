/* Convolutions of small integers with exact int32 sums that wrap; geometry and layouts as interpreter/kernels/conv.h.
 */
#ifndef TARE_INTERPRETER_KERNELS_CONV_INT_H
#define TARE_INTERPRETER_KERNELS_CONV_INT_H

#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/integer/gemm_int.h"

/* Dense or grouped. The filter is packed in `form`, one matrix per group; input elements int8 for quads, int16 for
 * pairs and halves. */
size_t tare_conv_int_packed_bytes(enum tare_igemm_form form, const struct tare_conv *conv);
void tare_conv_int_pack(void *packed, enum tare_igemm_form form, const struct tare_conv *conv, const int8_t *filter);
/* Of an int32 filter, as pairs; false when a weight is outside -32767 … 32767. */
bool tare_conv_int_pack_int32(void *packed, const struct tare_conv *conv, const int32_t *filter);
void tare_conv_int_dense(int32_t *output, const struct tare_conv *conv, const void *input, enum tare_igemm_form form,
                         const void *packed, void *scratch);

/* Takes whole positions of the output in order, all channels of each, instead of an output array: elements
 * [first, first + count). It may overwrite the sums. */
struct tare_conv_int_sink {
    void (*take)(void *arg, int32_t *sums, int64_t first, int64_t count);
    /* Takes floats of a requantization that is passed on: of the direct kernel at a level that requantizes. */
    void (*take_floats)(void *arg, const float *floats, int64_t first, int64_t count);
    void *arg;
    /* What a kernel may do instead of passing the sums to `take`; NULL: none. `element`: that of the first position and
     * channel in the requantized result. */
    const struct tare_requantize *requantize;
    int64_t element;
    /* Output channels to compute, of the direct and Winograd kernels, only with `requantize` at a level that
     * requantizes (tare_igemm_requantizes); `first_channel` is a multiple of 64. `channels` 0: all. */
    int64_t first_channel, channels;
};
/* As tare_conv_int_dense, with `sums` for tare_conv_int_block_sums(conv) sums. */
int64_t tare_conv_int_block_sums(const struct tare_conv *conv);
void tare_conv_int_dense_to(const struct tare_conv_int_sink *sink, const struct tare_conv *conv, const void *input,
                            enum tare_igemm_form form, const void *packed, int32_t *sums, void *scratch);
/* Depthwise with one output per channel (multiplier 1), int8 against int8. The filter is packed in the level's form;
 * `packed` and `scratch` are aligned to 64 bytes. */
size_t tare_conv_int_depthwise_packed_bytes(enum tare_cpu_level level, const struct tare_conv *conv);
void tare_conv_int_depthwise_pack(enum tare_cpu_level level, void *packed, const struct tare_conv *conv,
                                  const int8_t *filter);
size_t tare_conv_int_depthwise_scratch_bytes(enum tare_cpu_level level, const struct tare_conv *conv);
void tare_conv_int_depthwise_at(enum tare_cpu_level level, int32_t *output, const struct tare_conv *conv,
                                const int8_t *input, const void *packed, void *scratch);
/* Different for filters of the same kernel and channels that are packed differently: 0 or 1. */
int tare_conv_int_depthwise_packing(enum tare_cpu_level level, const struct tare_conv *conv);
/* True if the level's depthwise kernel supports a pad_value other than 0 for the convolution. */
bool tare_conv_int_depthwise_pads(enum tare_cpu_level level, const struct tare_conv *conv);
/* With `sums` for tare_conv_int_depthwise_sums sums. */
int64_t tare_conv_int_depthwise_sums(enum tare_cpu_level level, const struct tare_conv *conv);
void tare_conv_int_depthwise_to(enum tare_cpu_level level, const struct tare_conv_int_sink *sink,
                                const struct tare_conv *conv, const int8_t *input, const void *packed, int32_t *sums,
                                void *scratch);

#endif
