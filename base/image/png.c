/* PNG in memory by libpng. Errors of libpng return through longjmp, so that memory to be freed is never held in local
 * variables. */
#include "base/alloc.h"
#include "base/image/codec.h"

#include <png.h>
#include <setjmp.h>
#include <string.h>

struct png_state {
    struct tare_str file;
    size_t at;
    struct tare_strbuf *out;
    char text[128];
    png_bytep *rows;
};

static void on_error(png_structp png, png_const_charp text) {
    struct png_state *state = png_get_error_ptr(png);
    snprintf(state->text, sizeof state->text, "%s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static void on_read(png_structp png, png_bytep to, size_t size) {
    struct png_state *state = png_get_io_ptr(png);
    if (size > state->file.size - state->at) png_error(png, "the file ends early");
    memcpy(to, state->file.data + state->at, size);
    state->at += size;
}

static void on_write(png_structp png, png_bytep data, size_t size) {
    struct png_state *state = png_get_io_ptr(png);
    tare_strbuf_append(state->out, data, size);
    if (state->out->failed) png_error(png, "out of memory");
}

static void on_flush(png_structp png) {
    (void)png;
}

static uint64_t load_word(const char *at) {
    const unsigned char *bytes = (const unsigned char *)at;
    return (uint64_t)bytes[0] << 24 | (uint64_t)bytes[1] << 16 | (uint64_t)bytes[2] << 8 | bytes[3];
}

uint64_t tare_png_packed_size(struct tare_str file) {
    enum { WIDTH = 16, HEIGHT = 20, DEPTH = 24, COLOR = 25, HEADER_SIZE = 33 };
    static const unsigned channels[] = { [PNG_COLOR_TYPE_GRAY] = 1,
                                         [PNG_COLOR_TYPE_RGB] = 3,
                                         [PNG_COLOR_TYPE_PALETTE] = 1,
                                         [PNG_COLOR_TYPE_GRAY_ALPHA] = 2,
                                         [PNG_COLOR_TYPE_RGB_ALPHA] = 4 };
    if (file.size < HEADER_SIZE) return 0;
    const unsigned depth = (unsigned char)file.data[DEPTH], color = (unsigned char)file.data[COLOR];
    if (color >= sizeof channels / sizeof *channels || depth > 16) return 0;
    const uint64_t row = (load_word(file.data + WIDTH) * channels[color] * depth + 7) / 8;
    return load_word(file.data + HEIGHT) * (row + 1); /* each row begins with the byte of its filter */
}

/* Sets the transformations to the expected channels and depth. */
static void set_transforms(png_structp png, png_infop info, int *channels, bool wide, bool *stretch) {
    int color = png_get_color_type(png, info), depth = png_get_bit_depth(png, info);
    bool transparent = png_get_valid(png, info, PNG_INFO_tRNS) != 0, alpha, gray;
    if (*channels == 0) {
        *channels = png_get_channels(png, info);
        if (color == PNG_COLOR_TYPE_PALETTE) *channels = transparent ? 4 : 3;
    }
    alpha = *channels % 2 == 0;
    gray = *channels <= 2;
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (color == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (transparent && alpha) png_set_tRNS_to_alpha(png);
    if (depth == 16 && !wide) png_set_strip_16(png);
    *stretch = wide && depth != 16;
    if (wide && depth == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) png_set_swap(png);
    if (!alpha) png_set_strip_alpha(png);
    if (alpha && !(color & PNG_COLOR_MASK_ALPHA) && !transparent)
        png_set_add_alpha(png, (1U << depth) - 1, PNG_FILLER_AFTER); /* as TensorFlow, also for fewer bits than 8 */
    if (gray && (color & PNG_COLOR_MASK_COLOR)) png_set_rgb_to_gray(png, 1, 0.299, 0.587); /* as TensorFlow: BT.601 */
    if (!gray && !(color & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
}

/* Expands the 8-bit values in the first half of the memory to 16 bits, with equal bytes. */
static void stretch_pixels(void *pixels, size_t count) {
    unsigned char *bytes = pixels;
    uint16_t *words = pixels;
    for (size_t i = count; i-- > 0;)
        words[i] = (uint16_t)(bytes[i] * 257);
}

static tare_status read_png(png_structp png, png_infop info, struct png_state *state, int channels, bool wide,
                            tare_codec_make_fn make, void *arg) {
    png_uint_32 height, width;
    unsigned char *pixels;
    bool stretch;
    size_t row;
    png_read_info(png, info);
    height = png_get_image_height(png, info);
    width = png_get_image_width(png, info);
    set_transforms(png, info, &channels, wide, &stretch);
    row = png_get_rowbytes(png, info);
    if (row != (size_t)width * (size_t)channels * (wide && !stretch ? 2 : 1)) png_error(png, "unexpected row size");
    pixels = make(arg, height, width, channels);
    if (!pixels) return TARE_NO_MEMORY;
    state->rows = tare_calloc(height, sizeof *state->rows);
    if (!state->rows) return TARE_NO_MEMORY;
    for (png_uint_32 y = 0; y < height; y++)
        state->rows[y] = pixels + y * row;
    png_read_image(png, state->rows);
    png_read_end(png, info);
    if (stretch) stretch_pixels(pixels, (size_t)height * row);
    return TARE_OK;
}

tare_status tare_png_decode(struct tare_str file, int channels, bool wide, tare_codec_make_fn make, void *arg) {
    struct png_state state = { .file = file };
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    tare_status status;
    if (!info) {
        png_destroy_read_struct(&png, NULL, NULL);
        return TARE_FAIL(TARE_NO_MEMORY, "out of memory");
    }
    png_set_user_limits(png, 1 << 24, 1 << 24);
    if (setjmp(png_jmpbuf(png))) {
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid PNG data, size %zu: %s", file.size, state.text);
    } else {
        png_set_read_fn(png, &state, on_read);
        status = read_png(png, info, &state, channels, wide, make, arg);
    }
    png_destroy_read_struct(&png, &info, NULL);
    tare_free(state.rows);
    return status;
}

tare_status tare_png_encode(struct tare_strbuf *out, const void *pixels, int64_t height, int64_t width, int channels,
                            bool wide, int compression) {
    static const int colors[] = { PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                  PNG_COLOR_TYPE_RGB_ALPHA };
    struct png_state state = { .out = out };
    size_t row = (size_t)(width * channels) * (wide ? 2 : 1);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &state, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    tare_status status = TARE_OK;
    if (!info) {
        png_destroy_write_struct(&png, NULL);
        return TARE_FAIL(TARE_NO_MEMORY, "out of memory");
    }
    if (setjmp(png_jmpbuf(png))) {
        status = TARE_FAIL(out->failed ? TARE_NO_MEMORY : TARE_INVALID_ARGUMENT, "cannot encode the image as PNG: %s",
                           state.text);
    } else {
        png_set_write_fn(png, &state, on_write, on_flush);
        if (compression >= 0) png_set_compression_level(png, compression);
        png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, wide ? 16 : 8, colors[channels - 1],
                     PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
        png_write_info(png, info);
        if (wide && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) png_set_swap(png);
        for (int64_t y = 0; y < height; y++)
            png_write_row(png, (png_const_bytep)pixels + (size_t)y * row);
        png_write_end(png, info);
    }
    png_destroy_write_struct(&png, &info);
    return status;
}
