/* Quality of images against expected ones: PSNR, and SSIM (Wang, Bovik, Sheikh and Simoncelli, "Image Quality
 * Assessment: From Error Visibility to Structural Similarity", IEEE TIP 2004). */
#ifndef TARE_EVAL_IMAGE_QUALITY_H
#define TARE_EVAL_IMAGE_QUALITY_H

#include "base/tensor/tensor.h"
#include "eval/series.h"

#include <stdbool.h>

/* By example. Initialise with zeros; release with tare_image_quality_reset. */
struct tare_image_quality {
    struct tare_series psnr, ssim; /* dB, at most 100; -1 … 1, NaN for images smaller than the window */
};

/* Whether an output with `rows` examples on its first axis is images: floats [rows, height, width] or [rows, height,
 * width, channels] with several lines and columns and at most four channels. */
bool tare_is_images(const struct tare_tensor *value, int64_t rows);
/* Adds the examples of a record; `expected` has as many elements, of any numeric dtype. The peak value is 1, 2 or 255
 * if the expected image is within 0 … 1, -1 … 1 or 0 … 255, otherwise its range. SSIM is the mean over all positions of
 * a window of 11 x 11 with Gaussian weights (1.5) and over the channels. */
tare_status tare_image_quality_add(struct tare_image_quality *q, const struct tare_tensor *value,
                                   const struct tare_tensor *expected, int64_t rows) TARE_WARN_UNUSED;
void tare_image_quality_reset(struct tare_image_quality *q);

#endif
