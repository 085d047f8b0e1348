/* Image files in memory: PNG, JPEG, BMP, GIF. Pixels are rows of interleaved channels. Knows nothing of ops and
 * data sets. */
#ifndef TARE_BASE_IMAGE_CODEC_H
#define TARE_BASE_IMAGE_CODEC_H

#include "base/strbuf.h"
#include "base/tensor/tensor.h"

/* Gives memory for the decoded pixels once their number is known. */
typedef void *(*tare_codec_make_fn)(void *arg, int64_t height, int64_t width, int64_t channels);

struct tare_jpeg_options {
    int ratio; /* 1, 2, 4, 8: the image is made smaller while it is decoded */
    bool fancy_upscaling, fast_dct, accurate_dct, recover_truncated;
    bool crop; /* the window below, in pixels of the whole image */
    int64_t top, left, height, width;
};

/* channels: 0 as in the file, else 1, 3 (JPEG) or 1 … 4 (PNG). 8-bit pixels; 16-bit ones (wide) for PNG in the
 * machine's byte order. TARE_INVALID_ARGUMENT for a damaged file. */
tare_status tare_png_decode(struct tare_str file, int channels, bool wide, tare_codec_make_fn make, void *arg);
tare_status tare_jpeg_decode(struct tare_str file, int channels, const struct tare_jpeg_options *options,
                             tare_codec_make_fn make, void *arg);
tare_status tare_bmp_decode(struct tare_str file, int channels, tare_codec_make_fn make, void *arg);
tare_status tare_jpeg_size(struct tare_str file, int64_t *height, int64_t *width, int64_t *channels);

/* Frames of a GIF and the size of the largest. */
tare_status tare_gif_size(struct tare_str file, int64_t *frames, int64_t *height, int64_t *width);
/* The first `frames` frames, each painted over the one before it, as RGB: pixels[frames][height][width][3]. What a
 * frame does not cover is black in the first. The numbers come from tare_gif_size. */
tare_status tare_gif_decode(struct tare_str file, int64_t frames, int64_t height, int64_t width, uint8_t *pixels);

tare_status tare_png_encode(struct tare_strbuf *out, const void *pixels, int64_t height, int64_t width, int channels,
                            bool wide, int compression);
tare_status tare_jpeg_encode(struct tare_strbuf *out, const void *pixels, int64_t height, int64_t width, int channels,
                             int quality, bool progressive, bool optimize, bool downsample);

#endif
