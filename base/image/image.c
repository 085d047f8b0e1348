/* Decoding, cropping and padding images. */
#include "base/image/image.h"
#include "base/image/codec.h"

#include <math.h>
#include <string.h>

enum {
    FREE_PIXELS = 64 << 20, /* bytes of pixels that any file may have; beyond that … */
    LARGEST_GAIN = 2048,    /* … this many per byte of the file: a JPEG block takes at least a bit */
    LARGEST_DEFLATE = 1032, /* in a PNG, of packed pixels: those of 1 bit become 8 to 32 in memory */
};

enum tare_image_format tare_image_format_of(struct tare_str file) {
    if (file.size >= 3 && memcmp(file.data, "\xff\xd8\xff", 3) == 0) return TARE_IMAGE_JPEG;
    if (file.size >= 8 && memcmp(file.data, "\x89PNG\r\n\x1a\n", 8) == 0) return TARE_IMAGE_PNG;
    if (file.size >= 2 && memcmp(file.data, "BM", 2) == 0) return TARE_IMAGE_BMP;
    return TARE_IMAGE_ANY;
}

struct making {
    struct tare_tensor *out;
    struct tare_str file;
    tare_status status;
};

static bool can_be_encoded(struct tare_str file, int64_t bytes) {
    if (tare_image_format_of(file) == TARE_IMAGE_PNG) return tare_png_packed_size(file) / LARGEST_DEFLATE <= file.size;
    return (uint64_t)bytes / LARGEST_GAIN <= file.size;
}

static tare_status check_size(struct tare_str file, int64_t height, int64_t width, int64_t channels) {
    const struct tare_shape shape = tare_shape_make(3, -1, -1, (int)channels);
    struct tare_shape whole = shape;
    int64_t bytes;
    whole.dims[0] = height;
    whole.dims[1] = width;
    TARE_TRY(tare_shape_elements(&bytes, &whole));
    if (height < 1 || width < 1) return TARE_FAIL(TARE_SHAPE, "the image has no pixels");
    if (bytes > FREE_PIXELS && !can_be_encoded(file, bytes))
        return TARE_FAIL(TARE_SHAPE, "an image of %lld x %lld pixels cannot be encoded in %zu bytes", (long long)height,
                         (long long)width, file.size);
    return TARE_OK;
}

static void *make_pixels(void *arg, int64_t height, int64_t width, int64_t channels) {
    struct making *making = arg;
    struct tare_shape shape = { .rank = 3, .dims = { height, width, channels } };
    making->status = check_size(making->file, height, width, channels);
    if (making->status == TARE_OK) making->status = tare_tensor_new(making->out, TARE_DT_UINT8, &shape);
    return making->status == TARE_OK ? making->out->data : NULL;
}

/* libjpeg allocates a whole progressive image before it requests memory for pixels: check the size first. */
static tare_status decode_jpeg(struct making *making, struct tare_str file, int channels) {
    static const struct tare_jpeg_options options = { .ratio = 1, .fancy_upscaling = true };
    int64_t height, width, in_file;
    if (channels > 3)
        return TARE_FAIL(TARE_UNSUPPORTED, "a JPEG has no alpha channel (expected %d channels)", channels);
    TARE_TRY(tare_jpeg_size(file, &height, &width, &in_file));
    TARE_TRY(check_size(file, height, width, in_file));
    return tare_jpeg_decode(file, channels, &options, make_pixels, making);
}

static int64_t load_word(struct tare_str file, int64_t at) {
    const unsigned char *bytes = (const unsigned char *)file.data + at;
    return bytes[0] | (int64_t)bytes[1] << 8 | (int64_t)bytes[2] << 16 | (int64_t)bytes[3] << 24;
}

/* The decoder, as TensorFlow's, takes the bytes for gray values or channels. */
static tare_status check_bmp(struct tare_str file) {
    enum { OFFSET = 10, HEADER = 14, DEPTH = 28, COMPRESSION = 30, LEAST_SIZE = 54, COLORS = 256 };
    if (file.size < LEAST_SIZE) return TARE_OK; /* which the decoder reports */
    const int64_t compression = load_word(file, COMPRESSION), start = HEADER + load_word(file, HEADER);
    if (compression == 1 || compression == 2)
        return TARE_FAIL(TARE_UNSUPPORTED, "a BMP with run-length encoding (expected no compression, or a PNG)");
    if (file.data[DEPTH] != 8) return TARE_OK;
    for (int64_t i = 0, at = start; i < COLORS && at + 4 <= load_word(file, OFFSET); i++, at += 4)
        if (at + 4 <= (int64_t)file.size && (load_word(file, at) & 0xffffff) != i * 0x010101)
            return TARE_FAIL(TARE_UNSUPPORTED,
                             "a BMP with a palette of colors (expected gray values, 24 or 32 bits, or "
                             "a PNG)");
    return TARE_OK;
}

static tare_status decode(struct making *making, struct tare_str file, enum tare_image_format format, int channels) {
    switch (format) {
    case TARE_IMAGE_JPEG:
        return decode_jpeg(making, file, channels);
    case TARE_IMAGE_PNG:
        return tare_png_decode(file, channels, false, make_pixels, making);
    case TARE_IMAGE_BMP:
        TARE_TRY(check_bmp(file));
        return tare_bmp_decode(file, channels, make_pixels, making);
    default:
        return TARE_FAIL(TARE_TYPE, "not an image (expected JPEG, PNG or BMP)");
    }
}

tare_status tare_image_decode(struct tare_tensor *out, struct tare_str file, enum tare_image_format format,
                              int channels) {
    static const char *const names[] = { "no image", "a JPEG", "a PNG", "a BMP" };
    enum tare_image_format is = tare_image_format_of(file);
    struct making making = { .out = out, .file = file };
    tare_status status;
    memset(out, 0, sizeof *out);
    if (format != TARE_IMAGE_ANY && is != format)
        return TARE_FAIL(TARE_TYPE, "the bytes are %s (expected %s)", names[is], names[format]);
    status = decode(&making, file, is, channels);
    if (status == TARE_OK) return TARE_OK;
    tare_tensor_reset(out);
    if (making.status != TARE_OK) return making.status;
    return status == TARE_INVALID_ARGUMENT ? TARE_CORRUPT : status;
}

static tare_status cut(struct tare_tensor *image, int64_t top, int64_t left, int64_t height, int64_t width) {
    struct tare_shape shape = { .rank = 3, .dims = { height, width, image->shape.dims[2] } };
    size_t pixel = (size_t)shape.dims[2] * tare_dtype_size(image->dtype);
    struct tare_tensor out;
    TARE_TRY(tare_tensor_new(&out, image->dtype, &shape));
    for (int64_t y = 0; y < height; y++)
        memcpy(TARE_DATA(uint8_t, &out) + (size_t)(y * width) * pixel,
               TARE_CONST_DATA(uint8_t, image) + (size_t)((top + y) * image->shape.dims[1] + left) * pixel,
               (size_t)width * pixel);
    tare_tensor_reset(image);
    *image = out;
    return TARE_OK;
}

tare_status tare_image_crop(struct tare_tensor *image, int64_t height, int64_t width) {
    int64_t rows = image->shape.dims[0], columns = image->shape.dims[1];
    if (height < 1 || width < 1 || height > rows || width > columns)
        return TARE_FAIL(TARE_SHAPE, "a crop of %lld x %lld is larger than the image of %lld x %lld", (long long)height,
                         (long long)width, (long long)rows, (long long)columns);
    return cut(image, (rows - height) / 2, (columns - width) / 2, height, width);
}

/* Width of the margin at each end. */
static int64_t border(int64_t size, double fraction) {
    return (int64_t)(((double)size - (double)size * fraction) / 2);
}

tare_status tare_image_crop_fraction(struct tare_tensor *image, double fraction) {
    int64_t rows = image->shape.dims[0], columns = image->shape.dims[1], top, left;
    if (!(fraction > 0 && fraction <= 1))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "a crop to %g of each side (expected over 0, up to 1)", fraction);
    top = border(rows, fraction);
    left = border(columns, fraction);
    if (rows <= 2 * top || columns <= 2 * left)
        return TARE_FAIL(TARE_SHAPE, "a crop to %g removes all of an image of %lld x %lld", fraction, (long long)rows,
                         (long long)columns);
    return cut(image, top, left, rows - 2 * top, columns - 2 * left);
}

/* Writes the values of one pixel in the image's dtype. */
static tare_status make_pixel(unsigned char *pixel, const struct tare_tensor *image, const double *values,
                              size_t count) {
    for (int64_t c = 0; c < image->shape.dims[2]; c++) {
        const double value = values[count == 1 ? 0 : c];
        if (image->dtype == TARE_DT_FLOAT) {
            memcpy(pixel + c * (int64_t)sizeof(float), &(float){ (float)value }, sizeof(float));
        } else {
            if (!(value >= 0 && value <= UINT8_MAX && value == floor(value)))
                return TARE_FAIL(TARE_TYPE, "an image of bytes cannot have pixels of %g (expected 0 to 255)", value);
            pixel[c] = (unsigned char)value;
        }
    }
    return TARE_OK;
}

tare_status tare_image_pad(struct tare_tensor *image, int64_t height, int64_t width, const double *values,
                           size_t count) {
    enum { MOST_CHANNELS = 4 };
    const int64_t rows = image->shape.dims[0], columns = image->shape.dims[1], channels = image->shape.dims[2];
    const struct tare_shape shape = { .rank = 3, .dims = { height, width, channels } };
    const size_t pixel = (size_t)channels * tare_dtype_size(image->dtype);
    unsigned char filler[MOST_CHANNELS * sizeof(float)];
    struct tare_tensor out;
    if (rows > height || columns > width)
        return TARE_FAIL(
            TARE_SHAPE,
            "an image of %lld x %lld is larger than %lld x %lld, to which it would be padded (expected a step "
            "before that makes it smaller, or the field pad of resize)",
            (long long)rows, (long long)columns, (long long)height, (long long)width);
    if (channels > MOST_CHANNELS || (count != 1 && (int64_t)count != channels))
        return TARE_FAIL(TARE_SHAPE, "%zu values for pixels of %lld channels (expected 1, or one for each)", count,
                         (long long)channels);
    TARE_TRY(make_pixel(filler, image, values, count));
    TARE_TRY(tare_tensor_new(&out, image->dtype, &shape));
    unsigned char *to = TARE_DATA(unsigned char, &out);
    for (int64_t i = 0; i < height * width; i++)
        memcpy(to + (size_t)i * pixel, filler, pixel);
    to += (size_t)((height - rows) / 2 * width + (width - columns) / 2) * pixel;
    for (int64_t y = 0; y < rows; y++)
        memcpy(to + (size_t)(y * width) * pixel, TARE_CONST_DATA(unsigned char, image) + (size_t)(y * columns) * pixel,
               (size_t)columns * pixel);
    tare_tensor_reset(image);
    *image = out;
    return TARE_OK;
}
