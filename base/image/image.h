/* Images as tensors [height, width, channels]: decoding, cropping, resizing. docs/dataset-spec.md describes the rules
 * by name. */
#ifndef TARE_BASE_IMAGE_IMAGE_H
#define TARE_BASE_IMAGE_IMAGE_H

#include "base/tensor/tensor.h"

enum tare_image_format {
    TARE_IMAGE_ANY, /* detected from the first bytes */
    TARE_IMAGE_JPEG,
    TARE_IMAGE_PNG,
    TARE_IMAGE_BMP,
};

/* Weights by the distance between the centers of old and new pixels (docs/numerics.md, image-resize). */
enum tare_resize_rule {
    TARE_RESIZE_BILINEAR,
    TARE_RESIZE_NEAREST, /* the pixel at the new pixel's center */
    TARE_RESIZE_AREA,    /* mean over the area of the new pixel */
    TARE_RESIZE_BICUBIC, /* Keys' cubic, a = -0.5 */
    TARE_RESIZE_LANCZOS3,
    TARE_RESIZE_LANCZOS5,
    TARE_RESIZE_GAUSSIAN, /* sigma 0.5, radius 1.5 */
    TARE_RESIZE_MITCHELL, /* Mitchell-Netravali's cubic, B = C = 1/3 */
};

struct tare_resize {
    enum tare_resize_rule rule;
    bool antialias; /* when downscaling, the filter is as wide in new pixels as otherwise in old ones */
    bool pil;       /* as PIL.Image.resize: always with `antialias`, bytes between and after the two passes */
};

/* The format by the first bytes; TARE_IMAGE_ANY if it is none of them. */
enum tare_image_format tare_image_format_of(struct tare_str file);
/* The EXIF orientation of a JPEG or PNG file, 1 … 8; 1, upright, for other files, those without one, and damaged ones.
 */
int tare_image_orientation(struct tare_str file);
/* Decodes an image to uint8. channels: 0: as in the file; 1, 3, 4 (PNG and BMP only). 16-bit PNG is reduced to the
 * upper bytes; EXIF orientation is ignored, as in TensorFlow. TARE_TYPE if the bytes have another format than `format`,
 * TARE_CORRUPT if they are damaged, TARE_SHAPE if the size is impossible for the number of bytes. */
tare_status tare_image_decode(struct tare_tensor *out, struct tare_str file, enum tare_image_format format,
                              int channels) TARE_WARN_UNUSED;
/* Replaces an image (uint8 or float32) by its center; an odd margin is larger at the bottom and right. TARE_SHAPE if
 * the image is smaller. */
tare_status tare_image_crop(struct tare_tensor *image, int64_t height, int64_t width) TARE_WARN_UNUSED;
/* The center, as tf.image.central_crop: with equal margins at both ends. 0 < fraction <= 1. */
tare_status tare_image_crop_fraction(struct tare_tensor *image, double fraction) TARE_WARN_UNUSED;
/* Replaces an image (uint8 or float32) by a float32 image of the new size. Sums are computed in double. With how->pil
 * the image and the result are uint8 (TARE_TYPE otherwise), and the rule is bilinear, nearest, bicubic or lanczos3. */
tare_status tare_image_resize(struct tare_tensor *image, int64_t height, int64_t width,
                              const struct tare_resize *how) TARE_WARN_UNUSED;
/* Puts an image (uint8 or float32) into the middle of a larger one; an odd margin is larger at the bottom and right.
 * values: of the new pixels, one or one for each channel. TARE_SHAPE if the image is larger or their number is another,
 * TARE_TYPE if an image of bytes cannot have them. */
tare_status tare_image_pad(struct tare_tensor *image, int64_t height, int64_t width, const double *values,
                           size_t count) TARE_WARN_UNUSED;

#endif
