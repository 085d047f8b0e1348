/* Images: formats, cutting, scaling of easy cases by eye (numpy's answers are in tests/golden/examples.py), damage.
 */
#include "base/image/image.h"
#include "base/alloc.h"
#include "base/image/codec.h"
#include "support/memory_use.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <png.h>
#include <stdio.h>
#include <string.h>

enum { HEIGHT = 6, WIDTH = 8 };

/* An image of each format; row y, column x, channel c is 10 * y + x + 80 * c. */
static void make_file(struct tare_strbuf *out, enum tare_image_format format) {
    unsigned char pixels[HEIGHT * WIDTH * 3];
    for (int i = 0; i < HEIGHT * WIDTH * 3; i++)
        pixels[i] = (unsigned char)(10 * (i / (WIDTH * 3)) + i / 3 % WIDTH + 80 * (i % 3));
    if (format == TARE_IMAGE_PNG) {
        assert_int_equal(tare_png_encode(out, pixels, HEIGHT, WIDTH, 3, false, -1), TARE_OK);
    } else if (format == TARE_IMAGE_JPEG) {
        assert_int_equal(tare_jpeg_encode(out, pixels, HEIGHT, WIDTH, 3, 95, true, true, true), TARE_OK);
    } else { /* bottom-up, blue first, rows of a multiple of four bytes as they are */
        static const unsigned char head[54] = { 'B', 'M', 0, 0,     0, 0, 0, 0,      0, 0, 54, 0, 0, 0,  40,
                                                0,   0,   0, WIDTH, 0, 0, 0, HEIGHT, 0, 0, 0,  1, 0, 24, 0 };
        tare_strbuf_append(out, head, sizeof head);
        for (int y = HEIGHT - 1; y >= 0; y--)
            for (int x = 0; x < WIDTH; x++)
                for (int c = 2; c >= 0; c--)
                    tare_strbuf_putc(out, (char)pixels[(y * WIDTH + x) * 3 + c]);
    }
}

static const enum tare_image_format formats[] = { TARE_IMAGE_JPEG, TARE_IMAGE_PNG, TARE_IMAGE_BMP };

static void decode__knows_formats_by_their_first_bytes(void **state) {
    (void)state;
    for (int f = 0; f < 3; f++) {
        struct tare_strbuf file = { 0 };
        struct tare_tensor image;
        make_file(&file, formats[f]);
        if (tare_image_decode(&image, (struct tare_str){ file.data, file.size }, TARE_IMAGE_ANY, 0) != TARE_OK)
            fail_msg("format %d: %s", formats[f], tare_error_text());
        assert_int_equal(image.shape.dims[0], HEIGHT);
        assert_int_equal(image.shape.dims[1], WIDTH);
        assert_int_equal(image.shape.dims[2], 3);
        if (formats[f] != TARE_IMAGE_JPEG)
            for (int i = 0; i < HEIGHT * WIDTH * 3; i++)
                assert_int_equal(TARE_DATA(uint8_t, &image)[i], 10 * (i / (WIDTH * 3)) + i / 3 % WIDTH + 80 * (i % 3));
        tare_tensor_reset(&image);
        for (int expected = 0; expected < 3; expected++) {
            tare_status status =
                tare_image_decode(&image, (struct tare_str){ file.data, file.size }, formats[expected], 3);
            assert_int_equal(status, expected == f ? TARE_OK : TARE_TYPE);
            tare_tensor_reset(&image);
        }
        tare_strbuf_free(&file);
    }
}

/* The JPEG with an APP1 segment after its first marker. */
static int orientation_with(const char *segment, size_t size) {
    struct tare_strbuf jpeg = { 0 }, file = { 0 };
    const char head[4] = { (char)0xff, (char)0xe1, (char)((size + 2) >> 8), (char)(size + 2) };
    make_file(&jpeg, TARE_IMAGE_JPEG);
    tare_strbuf_append(&file, jpeg.data, 2);
    tare_strbuf_append(&file, head, sizeof head);
    tare_strbuf_append(&file, segment, size);
    tare_strbuf_append(&file, jpeg.data + 2, jpeg.size - 2);
    const int found = tare_image_orientation((struct tare_str){ file.data, file.size });
    for (size_t cut = 0; cut <= 6 + size; cut++) /* of a damaged file, no byte beyond its end is read */
        if (tare_image_orientation((struct tare_str){ file.data, cut }) != 1) assert_int_equal(cut, 6 + size);
    tare_strbuf_free(&jpeg);
    tare_strbuf_free(&file);
    return found;
}

#define WITH(text) orientation_with(text, sizeof text - 1)

static void orientation__is_that_of_the_exif_segment(void **state) {
    struct tare_strbuf file = { 0 };
    (void)state;
    for (int f = 0; f < 3; f++) {
        make_file(&file, formats[f]);
        assert_int_equal(tare_image_orientation((struct tare_str){ file.data, file.size }), 1);
        tare_strbuf_free(&file);
    }
    /* two entries, in both byte orders: the width, then the orientation */
    assert_int_equal(WITH("Exif\0\0MM\0\x2a\0\0\0\x08\0\x02\1\0\0\3\0\0\0\1\0\5\0\0"
                          "\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"),
                     6);
    assert_int_equal(WITH("Exif\0\0II\x2a\0\x08\0\0\0\x02\0\0\1\3\0\1\0\0\0\5\0\0\0"
                          "\x12\1\3\0\1\0\0\0\3\0\0\0\0\0\0\0"),
                     3);
    /* no such entry; a value that does not exist; another type; another segment; a directory outside of it */
    assert_int_equal(WITH("Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\1\0\0\3\0\0\0\1\0\5\0\0\0\0\0\0"), 1);
    assert_int_equal(WITH("Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\1\x12\0\3\0\0\0\1\0\x09\0\0\0\0\0\0"), 1);
    assert_int_equal(WITH("Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\1\x12\0\4\0\0\0\1\0\6\0\0\0\0\0\0"), 1);
    assert_int_equal(WITH("Exim\0\0MM\0\x2a\0\0\0\x08\0\x01\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"), 1);
    assert_int_equal(WITH("Exif\0\0MM\0\x2a\xff\xff\xff\xf0\0\x01\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"), 1);
}

/* The PNG with an eXIf chunk after its first one, IHDR. */
static void orientation__is_that_of_the_exif_chunk(void **state) {
    static const char chunk[] = "\0\0\0\x1a"
                                "eXIfMM\0\x2a\0\0\0\x08\0\x01\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0????";
    enum { IHDR_END = 8 + 8 + 13 + 4, SIZE = sizeof chunk - 1 };
    struct tare_strbuf png = { 0 }, file = { 0 };
    (void)state;
    make_file(&png, TARE_IMAGE_PNG);
    tare_strbuf_append(&file, png.data, IHDR_END);
    tare_strbuf_append(&file, chunk, SIZE);
    tare_strbuf_append(&file, png.data + IHDR_END, png.size - IHDR_END);
    assert_int_equal(tare_image_orientation((struct tare_str){ file.data, file.size }), 6);
    for (size_t cut = 0; cut < IHDR_END + SIZE - 4; cut++)
        assert_int_equal(tare_image_orientation((struct tare_str){ file.data, cut }), 1);
    file.data[IHDR_END] = '\x7f'; /* the length is beyond the end */
    assert_int_equal(tare_image_orientation((struct tare_str){ file.data, file.size }), 1);
    tare_strbuf_free(&png);
    tare_strbuf_free(&file);
}

/* Pixels 1 and 2 of 2 bits, gray, of a palette and of a palette with alpha; the values are those of tf.io.decode_png.
 */
static void decode__adds_alpha_as_tensorflow(void **state) {
    static const struct {
        const char *file;
        size_t size;
        unsigned char values[8];
    } cases[] = {
        { "\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\002\000\000\000\001\002\000\000"
          "\000\000\233\371\070\367\000\000\000\012\111\104\101\124\170\332\143\110\000\000\000\142\000\141\034\020\003"
          "\177\000\000\000\000\111\105\116\104\256\102\140\202",
          67,
          { 85, 85, 85, 3, 170, 170, 170, 3 } },
        { "\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\002\000\000\000\001\002\003\000"
          "\000\000\211\114\227\031\000\000\000\014\120\114\124\105\012\024\036\050\062\074\106\120\132\144\156\170\306"
          "\110\167\337\000\000\000\012\111\104\101\124\170\332\143\110\000\000\000\142\000\141\034\020\003\177\000\000"
          "\000\000\111\105\116\104\256\102\140\202",
          91,
          { 40, 50, 60, 3, 70, 80, 90, 3 } },
        { "\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\002\000\000\000\001\002\003\000"
          "\000\000\211\114\227\031\000\000\000\014\120\114\124\105\012\024\036\050\062\074\106\120\132\144\156\170\306"
          "\110\167\337\000\000\000\002\164\122\116\123\000\115\176\376\360\025\000\000\000\012\111\104\101\124\170\332"
          "\143\110\000\000\000\142\000\141\034\020\003\177\000\000\000\000\111\105\116\104\256\102\140\202",
          105,
          { 40, 50, 60, 77, 70, 80, 90, 255 } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_tensor image;
        const struct tare_str file = { cases[i].file, cases[i].size };
        if (tare_image_decode(&image, file, TARE_IMAGE_PNG, 4) != TARE_OK) fail_msg("%zu: %s", i, tare_error_text());
        assert_int_equal(image.elements, sizeof cases[i].values);
        assert_memory_equal(TARE_DATA(uint8_t, &image), cases[i].values, sizeof cases[i].values);
        tare_tensor_reset(&image);
    }
}

static void decode__refuses_absurd_sizes(void **state) {
    /* a progressive JPEG and a PNG whose headers claim 60000 x 60000 pixels */
    struct tare_strbuf jpeg = { 0 }, png = { 0 };
    struct tare_tensor image;
    (void)state;
    make_file(&jpeg, TARE_IMAGE_JPEG);
    for (size_t i = 0; i + 9 < jpeg.size; i++)
        if ((unsigned char)jpeg.data[i] == 0xff && (unsigned char)jpeg.data[i + 1] == 0xc2)
            memcpy(jpeg.data + i + 5, "\xea\x60\xea\x60", 4);
    assert_int_equal(tare_image_decode(&image, (struct tare_str){ jpeg.data, jpeg.size }, TARE_IMAGE_ANY, 0),
                     TARE_SHAPE);
    assert_non_null(strstr(tare_error_text(), "an image of 60000 x 60000 pixels cannot be encoded in"));
    make_file(&png, TARE_IMAGE_PNG);
    memcpy(png.data + 16, "\0\0\xea\x60\0\0\xea\x60\x08\x02\0\0\0\x0f\xb0\xe2\x15", 17); /* with its checksum */
    assert_int_equal(tare_image_decode(&image, (struct tare_str){ png.data, png.size }, TARE_IMAGE_ANY, 0), TARE_SHAPE);
    assert_non_null(strstr(tare_error_text(), "an image of 60000 x 60000 pixels cannot be encoded in"));
    tare_strbuf_free(&jpeg);
    tare_strbuf_free(&png);
}

/* 2 x 1 pixels of 8 bits with a palette of two entries, of the colors black and `second`. */
static tare_status decode_palette(uint32_t second, unsigned char compression) {
    unsigned char file[66] = { 'B', 'M', 0, 0, 0, 0, 0, 0, 0, 0, 62, 0, 0, 0, 40,
                               0,   0,   0, 2, 0, 0, 0, 1, 0, 0, 0,  1, 0, 8 };
    struct tare_tensor image;
    file[30] = compression;
    memcpy(file + 58, &second, sizeof second);
    file[63] = 1;
    const tare_status status =
        tare_image_decode(&image, (struct tare_str){ (const char *)file, sizeof file }, TARE_IMAGE_ANY, 0);
    if (status == TARE_OK) assert_int_equal(TARE_DATA(uint8_t, &image)[1], 1);
    tare_tensor_reset(&image);
    return status;
}

static void decode__refuses_indices_and_codes_as_pixels(void **state) {
    (void)state;
    assert_int_equal(decode_palette(0x010101, 0), TARE_OK);
    assert_int_equal(decode_palette(0xff0000, 0), TARE_UNSUPPORTED);
    assert_non_null(strstr(tare_error_text(), "a BMP with a palette of colors"));
    assert_int_equal(decode_palette(0x010101, 1), TARE_UNSUPPORTED);
    assert_non_null(strstr(tare_error_text(), "a BMP with run-length encoding"));
}

static void append(png_structp png, png_bytep data, size_t size) {
    tare_strbuf_append(png_get_io_ptr(png), data, size);
}

/* A white square of one bit a pixel, which deflate compresses by several hundreds. */
static void make_white(struct tare_strbuf *out, unsigned side) {
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    unsigned char *row = tare_malloc(side / 8 + 1);
    memset(row, 0xff, side / 8 + 1);
    png_set_write_fn(png, out, append, NULL);
    png_set_IHDR(png, info, side, side, 1, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (unsigned y = 0; y < side; y++)
        png_write_row(png, row);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    tare_free(row);
}

static void decode__reads_what_deflate_compresses_most(void **state) {
    enum { SIDE = 8400 }; /* a little more than 64 MiB of pixels */
    struct tare_strbuf file = { 0 };
    struct tare_tensor image;
    (void)state;
    make_white(&file, SIDE);
    assert_true(file.size < SIDE * SIDE / 2048);
    if (tare_image_decode(&image, (struct tare_str){ file.data, file.size }, TARE_IMAGE_ANY, 0) != TARE_OK)
        fail_msg("%s", tare_error_text());
    assert_int_equal(image.elements, SIDE * SIDE);
    assert_int_equal(TARE_DATA(uint8_t, &image)[SIDE * SIDE - 1], 255);
    tare_tensor_reset(&image);
    /* The same bytes cannot have 60000 x 60000 pixels of one bit. */
    memcpy(file.data + 16, "\0\0\xea\x60\0\0\xea\x60\1\0\0\0\0\xa8\xa9\x48\xef", 17);
    assert_int_equal(tare_image_decode(&image, (struct tare_str){ file.data, file.size }, TARE_IMAGE_ANY, 0),
                     TARE_SHAPE);
    assert_non_null(strstr(tare_error_text(), "an image of 60000 x 60000 pixels cannot be encoded in"));
    tare_strbuf_free(&file);
}

/* One channel: row y, column x is 10 * y + x. */
static void make_image(struct tare_tensor *out, int64_t height, int64_t width) {
    struct tare_shape shape = { .rank = 3, .dims = { height, width, 1 } };
    assert_int_equal(tare_tensor_new(out, TARE_DT_UINT8, &shape), TARE_OK);
    for (int64_t i = 0; i < out->elements; i++)
        TARE_DATA(uint8_t, out)[i] = (uint8_t)(10 * (i / width) + i % width);
}

static void crop__keeps_the_middle(void **state) {
    struct tare_tensor image;
    (void)state;
    make_image(&image, 5, 8);
    assert_int_equal(tare_image_crop(&image, 2, 3), TARE_OK);
    assert_int_equal(image.shape.dims[0], 2);
    assert_int_equal(image.shape.dims[1], 3);
    assert_int_equal(TARE_DATA(uint8_t, &image)[0], 12); /* 1 of 3 rows and 2 of 5 columns go off in front */
    assert_int_equal(TARE_DATA(uint8_t, &image)[5], 24);
    assert_int_equal(tare_image_crop(&image, 3, 3), TARE_SHAPE);
    assert_int_equal(tare_image_crop(&image, 0, 3), TARE_SHAPE);
    tare_tensor_reset(&image);
    make_image(&image, 5, 8);
    assert_int_equal(tare_image_crop_fraction(&image, 0.5), TARE_OK);
    assert_int_equal(image.shape.dims[0], 3); /* (5 - 2.5) / 2 = 1.25: one row off at both ends */
    assert_int_equal(image.shape.dims[1], 4);
    assert_int_equal(TARE_DATA(uint8_t, &image)[0], 12);
    assert_int_equal(tare_image_crop_fraction(&image, 0), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_image_crop_fraction(&image, 1), TARE_OK);
    assert_int_equal(image.shape.dims[0], 3);
    tare_tensor_reset(&image);
}

enum { ANTIALIAS = TARE_RESIZE_MITCHELL + 1 }; /* bilinear with antialias */

static void check(int64_t height, int64_t width, int64_t new_height, int64_t new_width, int rule,
                  const float *expected) {
    struct tare_tensor image;
    make_image(&image, height, width);
    const struct tare_resize how = { .rule = rule == ANTIALIAS ? TARE_RESIZE_BILINEAR : rule,
                                     .antialias = rule == ANTIALIAS };
    assert_int_equal(tare_image_resize(&image, new_height, new_width, &how), TARE_OK);
    assert_int_equal(image.dtype, TARE_DT_FLOAT);
    for (int64_t i = 0; i < new_height * new_width; i++)
        if (TARE_DATA(float, &image)[i] != expected[i])
            fail_msg("rule %d, element %d: got %.9g, expected %.9g", rule, (int)i, TARE_DATA(float, &image)[i],
                     expected[i]);
    tare_tensor_reset(&image);
}

static void resize__follows_its_rule(void **state) {
    (void)state;
    /* halves of 0 1 2 3 */
    check(1, 4, 1, 2, TARE_RESIZE_BILINEAR, (const float[]){ 0.5f, 2.5f });
    check(1, 4, 1, 2, TARE_RESIZE_NEAREST, (const float[]){ 1, 3 });
    check(1, 4, 1, 2, TARE_RESIZE_AREA, (const float[]){ 0.5f, 2.5f });
    check(1, 4, 1, 2, ANTIALIAS, (const float[]){ 5.0f / 7, 16.0f / 7 }); /* weights 3 3 1 and 1 3 3 */
    /* in float, (3 + 0.5) * (124 / 14) is below 31 */
    check(1, 124, 1, 14, TARE_RESIZE_NEAREST,
          (const float[]){ 4, 13, 22, 30, 39, 48, 57, 66, 75, 84, 92, 101, 110, 119 });
    /* twice as large: neighbours at quarters, borders repeated */
    check(2, 1, 4, 1, TARE_RESIZE_BILINEAR, (const float[]){ 0, 2.5f, 7.5f, 10 });
    check(2, 1, 4, 1, ANTIALIAS, (const float[]){ 0, 2.5f, 7.5f, 10 });
    check(2, 1, 4, 1, TARE_RESIZE_NEAREST, (const float[]){ 0, 0, 10, 10 });
    check(2, 1, 4, 1, TARE_RESIZE_AREA, (const float[]){ 0, 0, 10, 10 });
    /* the same size changes nothing, one pixel is spread */
    for (int rule = TARE_RESIZE_BILINEAR; rule <= ANTIALIAS; rule++) {
        if (rule > TARE_RESIZE_BICUBIC && rule < ANTIALIAS) continue; /* sums of sines, and rules that blur */
        check(2, 3, 2, 3, rule, (const float[]){ 0, 1, 2, 10, 11, 12 });
        check(1, 1, 2, 2, rule, (const float[]){ 0, 0, 0, 0 });
    }
    /* part of a pixel counts by its part */
    check(1, 3, 1, 2, TARE_RESIZE_AREA, (const float[]){ 1.0f / 3, 5.0f / 3 });
}

static void resize__refuses_no_pixels(void **state) {
    struct tare_tensor image;
    (void)state;
    make_image(&image, 2, 2);
    const struct tare_resize how = { .rule = TARE_RESIZE_AREA };
    assert_int_equal(tare_image_resize(&image, 0, 2, &how), TARE_SHAPE);
    assert_int_equal(tare_image_resize(&image, 2, -1, &how), TARE_SHAPE);
    tare_tensor_reset(&image);
}

/* Every cut and 200 changed bytes of each format: an image or a refusal. */
static void damaged__files_are_decoded_or_refused(void **state) {
    unsigned random = 3;
    (void)state;
    for (int f = 0; f < 3; f++) {
        struct tare_strbuf file = { 0 };
        struct tare_tensor image;
        int refused = 0;
        char *copy;
        make_file(&file, formats[f]);
        copy = tare_malloc(file.size);
        for (size_t cut = 0; cut < file.size; cut++) {
            char *part = tare_malloc(cut); /* of its own, so that a read behind its end is seen */
            memcpy(part, file.data, cut);
            refused += tare_image_decode(&image, (struct tare_str){ part, cut }, TARE_IMAGE_ANY, 0) != TARE_OK;
            tare_tensor_reset(&image);
            tare_free(part);
        }
        /* what stands behind the last pixel is not missed: a JPEG's end mark */
        assert_true(refused >= (int)file.size - 2);
        for (int n = 0; n < 200; n++) {
            memcpy(copy, file.data, file.size);
            random = random * 1664525u + 1013904223u;
            copy[(random >> 8) % file.size] ^= (char)(1 + (random >> 4) % 255);
            if (tare_image_decode(&image, (struct tare_str){ copy, file.size }, TARE_IMAGE_ANY, 3) != TARE_OK)
                assert_true(strlen(tare_error_text()) > 0);
            tare_tensor_reset(&image);
        }
        tare_free(copy);
        tare_strbuf_free(&file);
    }
}

/* The last test: no forged size was believed. */
static void memory__stays_small(void **state) {
    (void)state;
    assert_true(memory_used() < ((int64_t)200 << 20));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode__knows_formats_by_their_first_bytes),
        cmocka_unit_test(orientation__is_that_of_the_exif_segment),
        cmocka_unit_test(decode__adds_alpha_as_tensorflow),
        cmocka_unit_test(orientation__is_that_of_the_exif_chunk),
        cmocka_unit_test(decode__refuses_absurd_sizes),
        cmocka_unit_test(decode__refuses_indices_and_codes_as_pixels),
        cmocka_unit_test(decode__reads_what_deflate_compresses_most),
        cmocka_unit_test(crop__keeps_the_middle),
        cmocka_unit_test(resize__follows_its_rule),
        cmocka_unit_test(resize__refuses_no_pixels),
        cmocka_unit_test(damaged__files_are_decoded_or_refused),
        cmocka_unit_test(memory__stays_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
