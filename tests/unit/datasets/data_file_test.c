/* Arrays and images as data sets, by the way that TFRecords go. */
#include "datasets/data_file.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "datasets/array_file.h"
#include "datasets/source.h"
#include "datasets/survey.h"
#include "base/image/codec.h"
#include "support/memory_use.h"
#include "support/temp.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define GOLDEN TARE_SOURCE_DIR "/tests/golden/npy/"

/* tests/golden/npy/make.py: x is arange(24) of shape [4, 2, 3], y is arange(4) */
static void check_row(const struct tare_sample *sample, int row) {
    const struct tare_tensor *x = tare_sample_find(sample, "x"), *y = tare_sample_find(sample, "y");
    assert_non_null(x);
    assert_non_null(y);
    assert_int_equal(x->shape.rank, 3);
    assert_int_equal(x->shape.dims[0], 1);
    for (int i = 0; i < 6; i++)
        assert_true(TARE_CONST_DATA(float, x)[i] == (float)(row * 6 + i));
    assert_int_equal(y->shape.rank, 1);
    assert_int_equal(tare_tensor_get_i64(y, 0), row);
}

static void arrays__rows_are_samples(void **state) {
    const char *paths[] = { GOLDEN "samples.npz", GOLDEN "compressed.npz" };
    (void)state;
    for (size_t prefetch = 0; prefetch < 2; prefetch++) {
        struct tare_source_options options = { .prefetch = prefetch };
        struct tare_record where;
        struct tare_source *source;
        struct tare_sample sample;
        bool end;
        if (tare_source_new(&source, paths, 2, &options) != TARE_OK) fail_msg("%s", tare_error_text());
        for (int i = 0; i < 8; i++) {
            assert_int_equal(tare_source_next(&sample, &where, &end, source, NULL, NULL), TARE_OK);
            assert_false(end);
            assert_int_equal(where.file, i / 4);
            assert_int_equal(where.number, i % 4);
            assert_int_equal(where.index, i);
            check_row(&sample, i % 4);
            if (i == 1)
                assert_memory_equal(TARE_CONST_DATA(struct tare_str, tare_sample_find(&sample, "name"))->data, "bb", 2);
            tare_sample_reset(&sample);
        }
        assert_int_equal(tare_source_next(&sample, &where, &end, source, NULL, NULL), TARE_OK);
        assert_true(end);
        tare_source_free(source);
    }
}

static void arrays__of_one_file_are_named_by_it(void **state) {
    struct tare_array_file *file;
    struct tare_sample sample;
    (void)state;
    assert_int_equal(tare_array_file_open(&file, GOLDEN "i2.npy"), TARE_OK);
    assert_int_equal(tare_array_file_rows(file), 2);
    assert_int_equal(tare_array_file_offset(file, 1) - tare_array_file_offset(file, 0), 24);
    assert_int_equal(tare_array_file_offset(file, 2), tare_file_size(GOLDEN "i2.npy"));
    assert_int_equal(tare_array_file_sample(&sample, file, 1), TARE_OK);
    assert_string_equal(sample.keys[0], "i2");
    assert_int_equal(TARE_CONST_DATA(int16_t, &sample.values[0])[0], 8);
    tare_sample_reset(&sample);
    tare_array_file_close(file);
}

static void write_compressed(const char *name, const char *from, size_t cut) {
    char *bytes;
    size_t size;
    gzFile file = gzopen(temp_path(name), "wb");
    assert_non_null(file);
    assert_int_equal(tare_file_read(&bytes, &size, from), TARE_OK);
    assert_int_equal(gzwrite(file, bytes, (unsigned)size), size);
    assert_int_equal(gzclose(file), Z_OK);
    tare_free(bytes);
    if (!cut) return;
    assert_int_equal(tare_file_read(&bytes, &size, temp_path(name)), TARE_OK);
    temp_file(name, bytes, size - cut);
    tare_free(bytes);
}

static void arrays__may_be_compressed(void **state) {
    struct tare_data_file *file;
    struct tare_data_record record;
    struct tare_sample sample;
    bool end;
    (void)state;
    write_compressed("packed.npz.gz", GOLDEN "samples.npz", 0);
    assert_int_equal(tare_data_file_open(&file, temp_path("packed.npz.gz"), NULL), TARE_OK);
    assert_string_equal(tare_data_file_format(file), "NPZ, gzip");
    assert_int_equal(tare_data_file_next(&record, &end, file), TARE_OK);
    assert_int_equal(tare_data_file_next(&record, &end, file), TARE_OK);
    assert_int_equal(tare_data_file_decode(&sample, file, &record, NULL), TARE_OK);
    check_row(&sample, 1);
    tare_sample_reset(&sample);
    tare_data_file_close(file);
    write_compressed("i2.npy.gz", GOLDEN "i2.npy", 0);
    assert_int_equal(tare_data_file_open(&file, temp_path("i2.npy.gz"), NULL), TARE_OK);
    assert_int_equal(tare_data_file_next(&record, &end, file), TARE_OK);
    assert_int_equal(tare_data_file_decode(&sample, file, &record, NULL), TARE_OK);
    assert_string_equal(sample.keys[0], "i2");
    tare_sample_reset(&sample);
    tare_data_file_close(file);
    write_compressed("i2.npy.gz", GOLDEN "i2.npy", 9);
    assert_int_equal(tare_data_file_open(&file, temp_path("i2.npy.gz"), NULL), TARE_CORRUPT);
    assert_non_null(strstr(tare_error_text(), "i2.npy.gz: the compressed data ends early"));
}

static void arrays__that_do_not_go_together_are_named(void **state) {
    struct tare_array_file *file;
    (void)state;
    assert_int_equal(tare_array_file_open(&file, GOLDEN "uneven.npz"), TARE_SHAPE);
    assert_non_null(strstr(tare_error_text(), "uneven.npz: array 'y' has 3 rows (expected 4 as array 'x')"));
    static const char *const names[] = { "x", "x" };
    static const char *const twice[] = { GOLDEN "text_big_fortran.npy", GOLDEN "text_big_fortran.npy" };
    assert_int_equal(tare_array_file_join(&file, names, twice, 2), TARE_CORRUPT);
    assert_non_null(strstr(tare_error_text(), "two arrays are named 'x'"));
    assert_int_equal(tare_array_file_open(&file, GOLDEN "scalar.npz"), TARE_SHAPE);
    assert_non_null(strstr(tare_error_text(), "array 'y' is a scalar"));
}

/* Whatever the bytes are: rows or a refusal, no crash and no absurd amounts of memory. */
static void arrays__survive_damage(void **state) {
    static const char *const names[] = { GOLDEN "samples.npz", GOLDEN "compressed.npz", GOLDEN "text_big_fortran.npy" };
    unsigned random = 7;
    (void)state;
    for (int n = 0; n < 3; n++) {
        int refused = 0, opened = 0;
        char *bytes;
        size_t size;
        assert_int_equal(tare_file_read(&bytes, &size, names[n]), TARE_OK);
        for (size_t i = 0; i < size + 200; i++) {
            struct tare_array_file *file;
            struct tare_sample sample;
            char old = 0, *spot = bytes;
            if (i >= size) {
                random = random * 1664525u + 1013904223u;
                spot = bytes + (random >> 8) % size;
                old = *spot;
                *spot ^= (char)(1 + (random >> 4) % 255);
            }
            temp_file("damaged.npz", bytes, i < size ? i : size);
            if (tare_array_file_open(&file, temp_path("damaged.npz")) != TARE_OK) {
                assert_true(strlen(tare_error_text()) > 0);
                refused++;
            } else {
                for (int64_t row = 0; row < tare_array_file_rows(file) && row < 10; row++) {
                    (void)!tare_array_file_sample(&sample, file, row);
                    tare_sample_reset(&sample);
                }
                tare_array_file_close(file);
                opened++;
            }
            if (i >= size) *spot = old;
        }
        assert_true(refused >= (int)size); /* every cut at least */
        assert_true(opened > 0);
        tare_free(bytes);
    }
}

/* ---- images ---- */

static void write_image(const char *name, unsigned char value) {
    struct tare_strbuf png = { 0 };
    unsigned char pixels[12];
    memset(pixels, value, sizeof pixels);
    assert_int_equal(tare_png_encode(&png, pixels, 2, 2, 3, false, -1), TARE_OK);
    temp_file(name, png.data, png.size);
    tare_strbuf_free(&png);
}

static int make_images(void **state) {
    (void)state;
    mkdir(temp_path("pets"), 0777);
    mkdir(temp_path("pets/dog"), 0777);
    mkdir(temp_path("pets/cat"), 0777);
    write_image("pets/dog/a.png", 10);
    write_image("pets/cat/b.PNG", 20);
    write_image("pets/cat/c.png", 30);
    temp_file("pets/cat/.hidden.png", "", 0);
    temp_file("pets/notes.txt", "nothing", 7);
    return 0;
}

static struct tare_dataset_spec *image_spec(void) {
    static const char text[] = "input { name: \"x\" feature: \"image/encoded\" source: PNG }\n"
                               "label { feature: \"image/class/label\" }";
    struct tare_dataset_spec *spec;
    assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "s"), TARE_OK);
    return spec;
}

/* "value:label " of each image; -1: without a label */
static const char *images_of(struct tare_strbuf *out, const char *path, const char *labels) {
    struct tare_dataset_spec *spec = image_spec();
    struct tare_source_options options = { .spec = spec, .labels = labels };
    struct tare_source *source;
    tare_status status = tare_source_new(&source, &path, 1, &options);
    out->size = 0;
    while (status == TARE_OK) {
        struct tare_sample sample;
        struct tare_record where;
        int64_t label = -1;
        bool end;
        status = tare_source_next(&sample, &where, &end, source, NULL, NULL);
        if (status != TARE_OK || end) break;
        if (tare_sample_find(&sample, "label")) assert_int_equal(tare_sample_label(&label, &sample, "label"), TARE_OK);
        tare_strbuf_printf(out, "%d:%d ", (int)tare_tensor_get_i64(tare_sample_find(&sample, "x"), 11), (int)label);
        tare_sample_reset(&sample);
    }
    if (status != TARE_OK) tare_strbuf_printf(out, "!%s", tare_error_text());
    tare_source_free(source);
    tare_dataset_spec_free(spec);
    return tare_strbuf_text(out);
}

/* JPEG files, the first of which is turned by 90 degrees, in a folder. */
static void images__that_are_turned_are_counted_and_noted(void **state) {
    static const char exif[] = "\xff\xe1\0\x22"
                               "Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0";
    static const char text[] = "input { name: \"x\" feature: \"image/encoded\" image { } }";
    const char *folder = temp_path("turned");
    const unsigned char pixels[12] = { 0 };
    struct tare_strbuf jpeg = { 0 }, turned = { 0 };
    struct tare_dataset_spec *spec;
    struct tare_survey survey;
    (void)state;
    mkdir(folder, 0777);
    assert_int_equal(tare_jpeg_encode(&jpeg, pixels, 2, 2, 3, 95, true, true, true), TARE_OK);
    tare_strbuf_append(&turned, jpeg.data, 2);
    tare_strbuf_append(&turned, exif, sizeof exif - 1);
    tare_strbuf_append(&turned, jpeg.data + 2, jpeg.size - 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "s"), TARE_OK);
        struct tare_survey_options options = { 0 };
        temp_file("turned/a.jpg", i ? turned.data : jpeg.data, i ? turned.size : jpeg.size);
        temp_file("turned/b.jpg", jpeg.data, jpeg.size);
        assert_int_equal(tare_survey_files(&survey, &folder, 1, &options), TARE_OK);
        for (size_t k = 0; k < survey.n_keys; k++)
            if (strcmp(survey.keys[k].name, "image/encoded") == 0) {
                assert_int_equal(survey.keys[k].images, 2);
                assert_int_equal(survey.keys[k].rotated, i);
            }
        tare_survey_free(&survey);
        options.spec = spec;
        assert_int_equal(tare_survey_files(&survey, &folder, 1, &options), TARE_OK);
        assert_int_equal(survey.records, 2);
        assert_int_equal(tare_dataset_spec_met_rotated(spec), i);
        tare_survey_free(&survey);
        tare_dataset_spec_free(spec);
    }
    assert_false(tare_dataset_spec_met_rotated(NULL));
    tare_strbuf_free(&jpeg);
    tare_strbuf_free(&turned);
}

static void images__have_their_folders_as_classes(void **state) {
    struct tare_strbuf out = { 0 };
    struct tare_data_file *file;
    const char *const *classes;
    size_t count;
    (void)state;
    assert_string_equal(images_of(&out, temp_path("pets"), NULL), "20:0 30:0 10:1 ");
    assert_int_equal(tare_data_file_open(&file, temp_path("pets"), NULL), TARE_OK);
    classes = tare_data_file_classes(file, &count);
    assert_int_equal(count, 2);
    assert_string_equal(classes[0], "cat");
    assert_string_equal(classes[1], "dog");
    assert_string_equal(tare_data_file_format(file), "images");
    tare_data_file_close(file);
    tare_strbuf_free(&out);
}

static void folders__without_their_images_are_errors(void **state) {
    struct tare_strbuf out = { 0 };
    const char *const parts[] = { "part", "part/a", "part/a/more", "part/b", "part/.hidden" };
    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        mkdir(temp_path(parts[i]), 0777);
    write_image("part/a/x.png", 10);
    assert_non_null(strstr(images_of(&out, temp_path("part"), NULL), "folder 'b' has no images (remove it if"));
    write_image("part/b/y.png", 20);
    assert_string_equal(images_of(&out, temp_path("part"), NULL), "10:0 20:1 ");
    temp_file("part/a/z.WebP", "RIFF", 4);
    assert_non_null(strstr(images_of(&out, temp_path("part"), NULL), "'a/z.WebP' is not read (expected .jpg"));
    tare_strbuf_free(&out);
}

static void images__are_labelled_by_a_list(void **state) {
    static const char numbers[] = "# path, label\ndog/a.png 7\n\n  cat/c.png, 5\r\n";
    static const char words[] = "dog/a.png\tzebra\ncat/b.PNG\tapple\n";
    static const char mixed[] = "dog/a.png 1\ncat/b.PNG apple\n", none[] = "dog/a.png\n";
    static const char marked[] = "\xef\xbb\xbf"
                                 "dog/a.png 7\n";
    struct tare_strbuf out = { 0 };
    (void)state;
    assert_string_equal(images_of(&out, temp_path("pets"), temp_file("list", numbers, strlen(numbers))), "10:7 30:5 ");
    assert_string_equal(images_of(&out, temp_path("pets"), temp_file("list", words, strlen(words))), "10:1 20:0 ");
    assert_string_equal(images_of(&out, temp_path("pets"), temp_file("list", marked, strlen(marked))), "10:7 ");
    assert_non_null(strstr(images_of(&out, temp_path("pets"), temp_file("list", mixed, strlen(mixed))),
                           "list: some labels are numbers and some are words ('apple')"));
    assert_non_null(strstr(images_of(&out, temp_path("pets"), temp_file("list", none, strlen(none))),
                           "list: line 1: 'dog/a.png' (expected: path label)"));
    tare_strbuf_free(&out);
}

static void lists_of_labels__are_for_images(void **state) {
    static const char list[] = "dog/a.png 7\n", table[] = "a,b\n1,2\n";
    const char *path = temp_file("table.csv", table, strlen(table));
    struct tare_data_file *file;
    (void)state;
    assert_int_equal(tare_data_file_open(&file, path, temp_file("list", list, strlen(list))), TARE_USAGE);
    assert_null(file);
    assert_non_null(strstr(tare_error_text(), "table.csv, CSV (expected images or folders of images)"));
}

static void labels_that_are_no_class_index__are_refused(void **state) {
    static const char *const labels[] = { "-1", "1.5", "99999999999999999999", "1e3" };
    struct tare_strbuf out = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        char text[80];
        snprintf(text, sizeof text, "dog/a.png %s\n", labels[i]);
        const char *got = images_of(&out, temp_path("pets"), temp_file("list", text, strlen(text)));
        if (!strstr(got, "(expected an integer, 0 or more, or a word)")) fail_msg("%s: %s", labels[i], got);
    }
    tare_strbuf_free(&out);
}

/* A list that is given with a file is for this file, numbered by all its words. */
static void files__have_their_own_line_of_a_list(void **state) {
    struct tare_strbuf out = { 0 };
    char text[4000], dog[2000], cat[2000];
    (void)state;
    snprintf(dog, sizeof dog, "%s", temp_path("pets/dog/a.png"));
    snprintf(cat, sizeof cat, "%s", temp_path("pets/cat/b.PNG"));
    snprintf(text, sizeof text, "%.1900s zebra\n%.1900s apple\n", dog, cat);
    const char *list = temp_file("list", text, strlen(text));
    assert_string_equal(images_of(&out, dog, list), "10:1 ");
    assert_string_equal(images_of(&out, cat, list), "20:0 ");
    assert_non_null(strstr(images_of(&out, temp_path("pets/cat/c.png"), list), "has this path"));
    tare_strbuf_free(&out);
}

static void folders_of_other_classes__are_refused(void **state) {
    const char *paths[] = { strdup(temp_path("pets")), strdup(temp_path("birds")) };
    struct tare_dataset_spec *spec = image_spec();
    struct tare_source_options options = { .spec = spec };
    struct tare_source *source;
    tare_status status;
    (void)state;
    mkdir(temp_path("birds"), 0777);
    mkdir(temp_path("birds/cat"), 0777);
    write_image("birds/cat/d.png", 40);
    assert_int_equal(tare_source_new(&source, paths, 2, &options), TARE_OK);
    for (bool end = false; !end;) {
        struct tare_sample sample;
        struct tare_record where;
        if ((status = tare_source_next(&sample, &where, &end, source, NULL, NULL)) != TARE_OK) break;
        tare_sample_reset(&sample);
    }
    assert_int_equal(status, TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_text(), "birds: other classes than "));
    tare_source_free(source);
    tare_dataset_spec_free(spec);
    free((char *)paths[0]);
    free((char *)paths[1]);
}

static void images__need_a_spec_and_have_the_labels_of_their_folders(void **state) {
    const char *path = temp_path("pets/dog/a.png");
    struct tare_strbuf out = { 0 };
    struct tare_record where;
    struct tare_source *source;
    struct tare_sample sample;
    bool end;
    (void)state;
    assert_string_equal(images_of(&out, path, NULL), "10:-1 ");
    assert_int_equal(tare_source_new(&source, &path, 1, NULL), TARE_OK);
    assert_int_equal(tare_source_next(&sample, &where, &end, source, NULL, NULL), TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_text(), "expected also --spec FILE"));
    tare_source_free(source);
    path = temp_path("pets/dog/empty");
    mkdir(path, 0777);
    assert_int_equal(tare_source_new(&source, &path, 1, NULL), TARE_NOT_FOUND);
    assert_non_null(strstr(tare_error_text(), "pets/dog/empty: no records and no images"));
    tare_strbuf_free(&out);
}

static void images__that_are_damaged_are_passed_over(void **state) {
    struct tare_dataset_spec *spec = image_spec();
    struct tare_source_options options = { .spec = spec, .max_bad = 1 };
    const struct tare_bad_record *bad;
    struct tare_record where;
    struct tare_source *source;
    struct tare_sample sample;
    const char *path = temp_path("pets");
    size_t count, given = 0;
    bool end = false;
    (void)state;
    temp_file("pets/cat/bad.png", "\x89PNG\r\n\x1a\nxxxxxx", 14);
    assert_int_equal(tare_source_new(&source, &path, 1, &options), TARE_OK);
    for (;; given++) {
        assert_int_equal(tare_source_next(&sample, &where, &end, source, NULL, NULL), TARE_OK);
        if (end) break;
        tare_sample_reset(&sample);
    }
    assert_int_equal(given, 3);
    bad = tare_source_bad_records(source, &count);
    assert_int_equal(count, 1);
    assert_int_equal(bad[0].reason, TARE_BAD_UNDECODABLE);
    assert_non_null(
        strstr(bad[0].text, "record 1 at 0: cat/bad.png: input 'x': feature 'image/encoded': Invalid PNG data"));
    tare_source_free(source);
    tare_dataset_spec_free(spec);
    remove(temp_path("pets/cat/bad.png"));
}

static void faults__are_reported(void **state) {
    const char *paths[] = { GOLDEN "compressed.npz", temp_path("pets") };
    struct tare_dataset_spec *spec = image_spec();
    (void)state;
    for (int p = 0; p < 2; p++)
        for (int files = 0; files < 2; files++) {
            tare_status status = TARE_IO;
            for (int64_t n = 1; status != TARE_OK; n++) {
                struct tare_source_options options = { .spec = p ? spec : NULL };
                struct tare_source *source;
                bool end = false;
                assert_true(n < 3000);
                if (files)
                    tare_file_fail_at(n);
                else
                    tare_alloc_fail_at(n);
                status = tare_source_new(&source, &paths[p], 1, &options);
                while (status == TARE_OK && !end) {
                    struct tare_sample sample;
                    struct tare_record where;
                    status = tare_source_next(&sample, &where, &end, source, NULL, NULL);
                    if (status == TARE_OK && !end) tare_sample_reset(&sample);
                }
                if (status != TARE_OK) assert_true(strlen(tare_error_text()) > 0);
                tare_source_free(source);
                tare_alloc_fail_at(0);
                tare_file_fail_at(0);
            }
        }
    tare_dataset_spec_free(spec);
}

/* The last test: no forged size was believed. */
static void memory__stays_small(void **state) {
    (void)state;
    assert_true(memory_used() < ((int64_t)200 << 20));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays__rows_are_samples),
        cmocka_unit_test(arrays__of_one_file_are_named_by_it),
        cmocka_unit_test(arrays__may_be_compressed),
        cmocka_unit_test(arrays__that_do_not_go_together_are_named),
        cmocka_unit_test(arrays__survive_damage),
        cmocka_unit_test(images__that_are_turned_are_counted_and_noted),
        cmocka_unit_test(images__have_their_folders_as_classes),
        cmocka_unit_test(labels_that_are_no_class_index__are_refused),
        cmocka_unit_test(files__have_their_own_line_of_a_list),
        cmocka_unit_test(folders_of_other_classes__are_refused),
        cmocka_unit_test(folders__without_their_images_are_errors),
        cmocka_unit_test(images__are_labelled_by_a_list),
        cmocka_unit_test(lists_of_labels__are_for_images),
        cmocka_unit_test(images__need_a_spec_and_have_the_labels_of_their_folders),
        cmocka_unit_test(images__that_are_damaged_are_passed_over),
        cmocka_unit_test(faults__are_reported),
        cmocka_unit_test(memory__stays_small),
    };
    return cmocka_run_group_tests(tests, make_images, NULL);
}
