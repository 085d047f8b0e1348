/* Decoding and encoding images in memory: PNG, JPEG, BMP, GIF. Pixels are stored in rows from top to bottom with
 * interleaved channels. Independent of ops and data sets. */
#ifndef TARE_BASE_IMAGE_CODEC_H
#define TARE_BASE_IMAGE_CODEC_H

#include "base/strbuf.h"
#include "base/tensor/tensor.h"

/* Returns memory for the decoded pixels once the size is known; NULL with the error text set on failure. */
typedef void *(*tare_codec_make_fn)(void *arg, int64_t height, int64_t width, int64_t channels);

struct tare_jpeg_options {
    int ratio; /* 1, 2, 4, 8: downscaling factor while decoding */
    bool fancy_upscaling, recover_truncated;
    bool accurate_dct; /* otherwise the fast integer transform, TensorFlow's default */
    bool crop;         /* decode only the window below, in pixels of the whole image */
    int64_t top, left, height, width;
};

/* channels: 0: as in the file; otherwise 1, 3 (JPEG) or 1 … 4 (PNG). Pixels have 8 bits per channel, or 16 bits in
 * native byte order (PNG with `wide`). TARE_INVALID_ARGUMENT for a damaged file. */
tare_status tare_png_decode(struct tare_str file, int channels, bool wide, tare_codec_make_fn make, void *arg);
tare_status tare_jpeg_decode(struct tare_str file, int channels, const struct tare_jpeg_options *options,
                             tare_codec_make_fn make, void *arg);
tare_status tare_bmp_decode(struct tare_str file, int channels, tare_codec_make_fn make, void *arg);
/* Bytes of the pixels of a PNG before they are compressed, by its header; 0 if it has none. */
uint64_t tare_png_packed_size(struct tare_str file);
tare_status tare_jpeg_size(struct tare_str file, int64_t *height, int64_t *width, int64_t *channels);

/* Number of frames of a GIF, and the largest height and width of a frame. */
tare_status tare_gif_size(struct tare_str file, int64_t *frames, int64_t *height, int64_t *width);
/* Decodes the first `frames` frames, each painted over the previous one, as RGB: pixels[frames][height][width][3].
 * Uncovered pixels of the first frame are black. `frames`, `height` and `width` are those of tare_gif_size. */
tare_status tare_gif_decode(struct tare_str file, int64_t frames, int64_t height, int64_t width, uint8_t *pixels);

tare_status tare_png_encode(struct tare_strbuf *out, const void *pixels, int64_t height, int64_t width, int channels,
                            bool wide, int compression);
tare_status tare_jpeg_encode(struct tare_strbuf *out, const void *pixels, int64_t height, int64_t width, int channels,
                             int quality, bool progressive, bool optimize, bool downsample);

#endif
