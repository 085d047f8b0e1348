/* Pictures as tensors [height, width, channels]: decoding, cutting, scaling. docs/dataset-spec.md describes the rules
 * by their names. */
#ifndef TARE_BASE_IMAGE_PICTURE_H
#define TARE_BASE_IMAGE_PICTURE_H

#include "base/tensor/tensor.h"

enum tare_picture_format {
    TARE_PICTURE_ANY, /* told by the first bytes */
    TARE_PICTURE_JPEG,
    TARE_PICTURE_PNG,
    TARE_PICTURE_BMP,
};

enum tare_resize_rule {
    TARE_RESIZE_BILINEAR,  /* between the four nearest pixels; centres at halves, borders repeated */
    TARE_RESIZE_NEAREST,   /* the pixel that holds the new pixel's centre */
    TARE_RESIZE_AREA,      /* mean over the area of the new pixel */
    TARE_RESIZE_ANTIALIAS, /* triangle of the width of a new pixel, or of an old one where the picture grows */
};

/* TARE_PICTURE_ANY when the bytes begin like none. */
enum tare_picture_format tare_picture_format_of(struct tare_str file);
/* Makes a uint8 picture. channels: 0 as in the file, 1, 3, 4 (PNG and BMP only). 16-bit PNG gives the upper bytes; an
 * orientation mark is ignored, as TensorFlow does. TARE_TYPE when the bytes are of another format than asked for,
 * TARE_CORRUPT for damaged ones, TARE_SHAPE when they claim to be absurdly large. */
tare_status tare_picture_decode(struct tare_tensor *out, struct tare_str file, enum tare_picture_format format,
                                int channels) TARE_WARN_UNUSED;
/* Replaces a picture (uint8 or float32) by its middle; what cannot be halved goes off at the bottom and right.
 * TARE_SHAPE when it is smaller. */
tare_status tare_picture_crop(struct tare_tensor *picture, int64_t height, int64_t width) TARE_WARN_UNUSED;
/* The middle, as tf.image.central_crop: the same number of pixels goes off at both ends. 0 < fraction <= 1. */
tare_status tare_picture_crop_fraction(struct tare_tensor *picture, double fraction) TARE_WARN_UNUSED;
/* Replaces a picture (uint8 or float32) by a float32 one of the new size. Sums are in double. */
tare_status tare_picture_resize(struct tare_tensor *picture, int64_t height, int64_t width,
                                enum tare_resize_rule rule) TARE_WARN_UNUSED;

#endif
