/* The geometry of a convolution over channels-last arrays.
 *
 * Arrays: input [batch, depth, height, width, in_channels], filter [kernel…, in_channels / groups, out_channels],
 * output [batch, out…, out_channels]. Two spatial dimensions have depth 1. */
#ifndef TARE_INTERPRETER_KERNELS_CONV_GEOMETRY_H
#define TARE_INTERPRETER_KERNELS_CONV_GEOMETRY_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct tare_conv {
    int64_t batch;
    int64_t in[3], in_channels; /* depth, height, width */
    int64_t kernel[3];
    int64_t out[3], out_channels;
    int64_t stride[3], dilation[3];
    int64_t base_dilation[3]; /* zeros between the input's elements: 1 is none, 2 is one */
    int64_t pad[3];           /* in front, of the dilated input; may be negative */
    int64_t groups;
    int8_t pad_value; /* what padding contains; other than 0 only for kernels that say so */
};

/* TARE_SHAPE / TARE_INVALID_ARGUMENT if the geometry is invalid (non-positive stride, channels that are not divisible
 * by the groups, a product that overflows). */
tare_status tare_conv_check(const struct tare_conv *conv);
/* True when each group has one input channel, there are several, and the input is not dilated: the depthwise kernel. */
bool tare_conv_is_depthwise(const struct tare_conv *conv);
/* Output positions of all images; elements of a patch (k of the matrix product). */
int64_t tare_conv_rows(const struct tare_conv *conv);
int64_t tare_conv_patch(const struct tare_conv *conv);

/* A convolution of a dilated input as several of the input itself. On a dilated axis, only some taps of an output meet
 * elements of the input, every output `base_dilation` positions further the same ones: a phase. The taps between them
 * meet zeros and are skipped. */
struct tare_conv_phase {
    struct tare_conv conv; /* its output are those positions, its filter those taps */
    int64_t offset[3];     /* the first position */
    int64_t tap[3], step[3];
};
/* True for an input that is dilated, not by more than 64, with one group and a stride of 1 on dilated axes. */
bool tare_conv_has_phases(const struct tare_conv *conv);
/* Phase `at`, from 0 on; false: there are no more. */
bool tare_conv_take_phase(struct tare_conv_phase *phase, const struct tare_conv *conv, int64_t at);
/* Tap `at` of the phase among those of `conv`, and the position in the output of `conv` where line `at` begins. */
int64_t tare_conv_phase_tap(const struct tare_conv_phase *phase, const struct tare_conv *conv, int64_t at);
int64_t tare_conv_phase_line(const struct tare_conv_phase *phase, const struct tare_conv *conv, int64_t at);

#endif
