/* Image files: the family's cases, and round trips of files that the encoders wrote. */
#include "base/strbuf.h"
#include "base/image/codec.h"
#include "support/op_case.h"
#include "support/op_family.h"
#include "support/tensor_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { HEIGHT = 24, WIDTH = 40, QUALITY_95_ERROR = 6 }; /* measured: 3; smooth colors, chroma at full resolution */

struct image {
    int64_t height, width, channels;
    unsigned char pixels[HEIGHT * WIDTH * 4 * 2];
};

static void *keep(void *arg, int64_t height, int64_t width, int64_t channels) {
    struct image *image = arg;
    image->height = height;
    image->width = width;
    image->channels = channels;
    return (size_t)(height * width * channels) <= sizeof image->pixels ? image->pixels : NULL;
}

static void paint(unsigned char *pixels, int channels) {
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            for (int c = 0; c < channels; c++)
                pixels[(y * WIDTH + x) * channels + c] = (unsigned char)(40 + 3 * x +
                                                                         (c == 1   ? 2 * y
                                                                          : c == 2 ? -x
                                                                                   : 0));
}

static struct tare_str text_of(const struct tare_strbuf *buf) {
    return (struct tare_str){ buf->data, buf->size };
}

static void jpeg__round_trip_is_close(void **state) {
    static const int channels[] = { 1, 3 };
    (void)state;
    for (int i = 0; i < 4; i++) {
        unsigned char pixels[HEIGHT * WIDTH * 3];
        int n = channels[i & 1];
        struct tare_strbuf file = { 0 };
        struct tare_jpeg_options options = { .ratio = 1, .fancy_upscaling = true };
        struct image image;
        int64_t dims[3];
        paint(pixels, n);
        assert_int_equal(tare_jpeg_encode(&file, pixels, HEIGHT, WIDTH, n, 95, i > 1, i > 1, false), TARE_OK);
        assert_int_equal(tare_jpeg_decode(text_of(&file), 0, &options, keep, &image), TARE_OK);
        assert_int_equal(image.height * 1000 + image.width * 10 + image.channels, HEIGHT * 1000 + WIDTH * 10 + n);
        for (int k = 0; k < HEIGHT * WIDTH * n; k++)
            assert_in_range(image.pixels[k] + QUALITY_95_ERROR - pixels[k], 0, 2 * QUALITY_95_ERROR);
        assert_int_equal(tare_jpeg_size(text_of(&file), &dims[0], &dims[1], &dims[2]), TARE_OK);
        assert_int_equal(dims[0] * 1000 + dims[1] * 10 + dims[2], HEIGHT * 1000 + WIDTH * 10 + n);
        tare_strbuf_free(&file);
    }
}

static void jpeg__window_and_ratio(void **state) {
    unsigned char pixels[HEIGHT * WIDTH * 3];
    struct tare_strbuf file = { 0 };
    struct tare_jpeg_options whole = { .ratio = 1 },
                             crop = { 1, .crop = true, .top = 5, .left = 9, .height = 10, .width = 12 };
    static struct image all, part;
    (void)state;
    paint(pixels, 3);
    assert_int_equal(tare_jpeg_encode(&file, pixels, HEIGHT, WIDTH, 3, 90, false, false, true), TARE_OK);
    assert_int_equal(tare_jpeg_decode(text_of(&file), 3, &whole, keep, &all), TARE_OK);
    assert_int_equal(tare_jpeg_decode(text_of(&file), 3, &crop, keep, &part), TARE_OK);
    assert_int_equal(part.height * 100 + part.width, 1012);
    for (int y = 0; y < 10; y++)
        assert_memory_equal(part.pixels + y * 36, all.pixels + ((y + 5) * WIDTH + 9) * 3, 36);
    crop.left = 30;
    assert_int_equal(tare_jpeg_decode(text_of(&file), 3, &crop, keep, &part), TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_text(), "Invalid crop window"));
    whole.ratio = 4;
    assert_int_equal(tare_jpeg_decode(text_of(&file), 1, &whole, keep, &all), TARE_OK);
    assert_int_equal(all.height * 1000 + all.width * 10 + all.channels, HEIGHT / 4 * 1000 + WIDTH / 4 * 10 + 1);
    tare_strbuf_free(&file);
}

static void jpeg__truncated_or_corrupted_files_fail_or_decode_but_never_crash(void **state) {
    unsigned char pixels[HEIGHT * WIDTH * 3];
    struct tare_strbuf file = { 0 };
    struct tare_jpeg_options options = { .ratio = 1 };
    static struct image image;
    (void)state;
    paint(pixels, 3);
    assert_int_equal(tare_jpeg_encode(&file, pixels, HEIGHT, WIDTH, 3, 90, false, false, true), TARE_OK);
    for (size_t size = 0; size + 40 < file.size; size += 7) {
        struct tare_str cut = { file.data, size };
        assert_int_equal(tare_jpeg_decode(cut, 3, &options, keep, &image), TARE_INVALID_ARGUMENT);
    }
    for (size_t at = 2; at < file.size; at += 3) {
        file.data[at] = (char)(file.data[at] ^ 0x55);
        if (tare_jpeg_decode(text_of(&file), 3, &options, keep, &image) != TARE_OK)
            assert_true(tare_error_text()[0] != 0);
        file.data[at] = (char)(file.data[at] ^ 0x55);
    }
    options.recover_truncated = true;
    assert_int_equal(tare_jpeg_decode((struct tare_str){ file.data, file.size - 60 }, 3, &options, keep, &image),
                     TARE_OK);
    tare_strbuf_free(&file);
}

/* Two frames of 3 x 2 pixels, byte by byte: palette, a transparent color, an interlaced frame. */
static const unsigned char small_gif[] = { 0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 0x03, 0x00, 0x02, 0x00, 0x81,
                                           0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0x00, 0x00, 0x00, 0xff, 0x00,
                                           0x00, 0x00, 0xff, 0x21, 0xf9, 0x04, 0x01, 0x00, 0x00, 0x02, 0x00,
                                           0x2c, 0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x02, 0x00, 0x00, 0x02,
                                           0x03, 0x44, 0x64, 0x52, 0x00, 0x2c, 0x00, 0x00, 0x00, 0x00, 0x03,
                                           0x00, 0x02, 0x00, 0x40, 0x02, 0x03, 0x44, 0x64, 0x52, 0x00, 0x3b };

static void gif__truncated_or_corrupted_files_fail_or_decode_but_never_crash(void **state) {
    unsigned char file[sizeof small_gif];
    int64_t frames, height, width;
    (void)state;
    for (size_t size = 0; size <= sizeof file; size++)
        for (int changed = 0; changed < 256; changed += size == sizeof file ? 1 : 256)
            for (size_t at = 6; at < (size == sizeof file ? size : 7); at++) {
                unsigned char *exact =
                    malloc(size ? size : 1); /* exact size, so that an out-of-bounds read is detected */
                assert_non_null(exact);
                memcpy(exact, small_gif, size);
                if (at < size) exact[at] = (unsigned char)(exact[at] ^ changed);
                const struct tare_str text = { (char *)exact, size };
                if (tare_gif_size(text, &frames, &height, &width) == TARE_OK && frames * height * width < 1 << 20) {
                    uint8_t *pixels = malloc((size_t)(3 * frames * height * width));
                    assert_non_null(pixels);
                    if (tare_gif_decode(text, frames, height, width, pixels) != TARE_OK) {
                        assert_non_null(strstr(tare_error_text(), "GIF"));
                        assert_true(size < sizeof file || changed);
                    }
                    free(pixels);
                } else {
                    assert_true(size < sizeof file || changed);
                }
                free(exact);
            }
}

static void gif__with_a_forged_size_is_rejected(void **state) {
    unsigned char file[sizeof small_gif];
    int64_t frames, height, width;
    (void)state;
    memcpy(file, small_gif, sizeof file);
    file[38] = file[39] = file[40] = file[41] = 255; /* 65535 x 65535 */
    assert_int_equal(tare_gif_size((struct tare_str){ (char *)file, sizeof file }, &frames, &height, &width),
                     TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_text(), "more pixels than its bytes can encode"));
}

static void png__round_trip_is_exact(void **state) {
    unsigned char pixels[HEIGHT * WIDTH * 4 * 2];
    static struct image image;
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)(i * 37);
    for (int channels = 1; channels <= 4; channels++)
        for (int wide = 0; wide < 2; wide++) {
            struct tare_strbuf file = { 0 };
            assert_int_equal(tare_png_encode(&file, pixels, HEIGHT, WIDTH, channels, wide, wide ? 9 : -1), TARE_OK);
            assert_int_equal(tare_png_decode(text_of(&file), 0, wide, keep, &image), TARE_OK);
            assert_int_equal(image.channels, channels);
            assert_memory_equal(image.pixels, pixels, HEIGHT * WIDTH * channels * (1 + wide));
            tare_strbuf_free(&file);
        }
}

/* ---- the ops around the codecs ---- */

static const char *file_text(struct tare_strbuf *out, const struct tare_strbuf *file) {
    out->size = 0;
    tare_strbuf_puts(out, "string[] \"");
    for (size_t i = 0; i < file->size; i++)
        tare_strbuf_printf(out, "\\x%02x", (unsigned char)file->data[i]);
    tare_strbuf_puts(out, "\"");
    return tare_strbuf_text(out);
}

static const char *image_text(struct tare_strbuf *out, const unsigned char *pixels, int64_t height, int64_t width,
                              int64_t channels) {
    out->size = 0;
    tare_strbuf_printf(out, "uint8[%d,%d,%d]", (int)height, (int)width, (int)channels);
    for (int64_t i = 0; i < height * width * channels; i++)
        tare_strbuf_printf(out, " %d", pixels[i]);
    return tare_strbuf_text(out);
}

static bool check(const char *op, const char *attrs, const char *a, const char *b, const char *out) {
    struct op_case test = { .op = op,
                            .attrs = attrs,
                            .where = "image files",
                            .n_inputs = b ? 2 : 1,
                            .n_outputs = 1,
                            .dynamic = strncmp(op, "Decode", 6) == 0 };
    bool passed;
    assert_int_equal(tensor_from_text(&test.inputs[0], a), TARE_OK);
    if (b) assert_int_equal(tensor_from_text(&test.inputs[1], b), TARE_OK);
    assert_int_equal(tensor_from_text(&test.outputs[0], out), TARE_OK);
    passed = op_case_run(&test);
    op_case_reset(&test);
    return passed;
}

static void ops__return_what_the_codecs_return(void **state) {
    unsigned char pixels[9 * 7 * 3];
    struct tare_strbuf a = { 0 }, b = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)(60 + i / 2);
    for (int channels = 1; channels <= 3; channels += 2) {
        struct tare_strbuf png = { 0 }, jpeg = { 0 };
        struct tare_jpeg_options options = { .ratio = 1, .fancy_upscaling = true };
        static struct image image;
        assert_int_equal(tare_png_encode(&png, pixels, 9, 7, channels, false, -1), TARE_OK);
        assert_true(check("EncodePng", "", image_text(&a, pixels, 9, 7, channels), NULL, file_text(&b, &png)));
        assert_int_equal(tare_jpeg_encode(&jpeg, pixels, 9, 7, channels, 95, false, false, true), TARE_OK);
        assert_true(check("EncodeJpeg", channels == 1 ? "format: 'grayscale'" : "",
                          image_text(&a, pixels, 9, 7, channels), NULL, file_text(&b, &jpeg)));
        assert_int_equal(tare_jpeg_decode(text_of(&jpeg), 0, &options, keep, &image), TARE_OK);
        image_text(&b, image.pixels, 9, 7, channels);
        assert_true(check("DecodeJpeg", "", file_text(&a, &jpeg), NULL, tare_strbuf_text(&b)));
        assert_true(check("DecodeImage", "expand_animations: false", file_text(&a, &jpeg), NULL, tare_strbuf_text(&b)));
        image_text(&b, image.pixels + (2 * 7 + 0) * channels, 3, 7, channels);
        assert_true(check("DecodeAndCropJpeg", "", file_text(&a, &jpeg), "int32[4] 2 0 3 7", tare_strbuf_text(&b)));
        assert_true(check("ExtractJpegShape", "", file_text(&a, &jpeg), NULL,
                          channels == 1 ? "int32[3] 9 7 1" : "int32[3] 9 7 3"));
        tare_strbuf_free(&png);
        tare_strbuf_free(&jpeg);
    }
    tare_strbuf_free(&a);
    tare_strbuf_free(&b);
}

int main(void) {
    const struct CMUnitTest more[] = {
        cmocka_unit_test(jpeg__round_trip_is_close),
        cmocka_unit_test(jpeg__window_and_ratio),
        cmocka_unit_test(jpeg__truncated_or_corrupted_files_fail_or_decode_but_never_crash),
        cmocka_unit_test(gif__truncated_or_corrupted_files_fail_or_decode_but_never_crash),
        cmocka_unit_test(gif__with_a_forged_size_is_rejected),
        cmocka_unit_test(png__round_trip_is_exact),
        cmocka_unit_test(ops__return_what_the_codecs_return),
    };
    return op_family_main(TARE_SOURCE_DIR, "image_file", more, sizeof more / sizeof *more);
}
