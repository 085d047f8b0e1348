/* Depthwise int8 convolutions with one output per channel, exact int32 sums: some lines of output positions at a time,
 * with padding of any value (tare_conv.pad_value); see depthwise_lines.c. */
#ifndef TARE_INTERPRETER_KERNELS_DEPTHWISE_LINES_H
#define TARE_INTERPRETER_KERNELS_DEPTHWISE_LINES_H

#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/integer/gemm_int.h"

/* The form of the lanes at a level; see the variants below. */
struct tare_depthwise_form;
/* The form of a level for a convolution; NULL: the level has none, or the convolution does not have two spatial
 * dimensions and a kernel of at most 64 × 64. */
const struct tare_depthwise_form *tare_depthwise_form_at(enum tare_cpu_level level, const struct tare_conv *conv);
/* True if the form of the level computes tiles (depthwise_tiles_loop.h), for which a filter is packed differently. */
bool tare_depthwise_is_tiled(enum tare_cpu_level level, const struct tare_conv *conv);
/* The packed filter depends on the form, the kernel and the channels only. */
size_t tare_depthwise_packed_bytes(const struct tare_depthwise_form *form, const struct tare_conv *conv);
/* `packed` is aligned to 64 bytes; the filter is [kernel…, channels]. */
void tare_depthwise_pack(void *packed, const struct tare_depthwise_form *form, const struct tare_conv *conv,
                         const int8_t *filter);
size_t tare_depthwise_scratch_bytes(const struct tare_depthwise_form *form, const struct tare_conv *conv);
/* Output lines that one call computes at most, at least 1. */
int64_t tare_depthwise_lines(const struct tare_depthwise_form *form, const struct tare_conv *conv);
/* `count` output lines of an image from line `line` on, whose first position is row 0 of `output`; `scratch` is aligned
 * to 64 bytes. */
void tare_depthwise_run(const struct tare_depthwise_form *form, const struct tare_igemm_output *output,
                        const struct tare_conv *conv, const int8_t *image, int64_t line, int64_t count,
                        const void *packed, void *scratch);

/* ---- for the variants only ---- */

enum { TARE_DEPTHWISE_MOST_ROWS = 4, TARE_DEPTHWISE_LANE = 4 }; /* rows of a lane; bytes of a lane */

/* One vector of channels of one line: `count` vectors of sums, `step` bytes apart in the interleaved lanes and
 * `out_step` elements apart in the output. `inside`: lanes that are stored of each vector, `last` of the last one. */
struct tare_depthwise_walk {
    const char *x;
    int64_t group_step, tap_step, step; /* bytes */
    const char *start, *weights;
    int64_t groups, taps;
    int64_t count, out_step;
    int inside, last;
};

struct tare_depthwise_form {
    int rows, lanes; /* rows of a lane, lanes of a vector */
    /* Interleaves `count` elements of each row (NULL: padding) to lanes. Writes up to 256 bytes too many. */
    void (*interleave)(char *to, const int8_t *const rows[TARE_DEPTHWISE_MOST_ROWS], int64_t count, int8_t pad_value);
    void (*walk)(const struct tare_igemm_output *output, const struct tare_depthwise_walk *walk);
    /* If `run` is set, these functions instead; scratch_bytes NULL: none. */
    void (*run)(const struct tare_igemm_output *output, const struct tare_conv *conv, const int8_t *image, int64_t line,
                int64_t count, const void *packed, void *scratch);
    size_t (*scratch_bytes)(const struct tare_conv *conv);
    size_t (*packed_bytes)(const struct tare_conv *conv);
    void (*pack)(void *packed, const struct tare_conv *conv, const int8_t *filter);
    int64_t (*most_lines)(const struct tare_conv *conv);
};
extern const struct tare_depthwise_form tare_depthwise_tiles_int8_vnni, tare_depthwise_tiles_int8_avx2,
    tare_depthwise_vnni, tare_depthwise_avx_vnni, tare_depthwise_avx2;

#endif
