/* TFRecord files that other programs wrote: as many records as their authors' tools count, and the CIFAR-10 samples. */
#include "base/file.h"
#include "datasets/label.h"
#include "datasets/npy.h"
#include "datasets/source.h"
#include "datasets/tfrecord.h"
#include "support/models.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *data;

static const struct {
    const char *pattern;
    int64_t records; /* of all files together */
} counts[] = {
    { "tfx-mnist/*", 1000 },
    { "tfx-hist-images/*", 25 },
    { "tfx-taxi-csv/*", 424 + 425 + 826 + 826 + 205 + 205 },
    { "tfx-external/*", 15000 },
    { "tfx-transformed/*", 15000 },
    { "tfx-external-sequence/*", 15000 + 4500 + 10500 },
    { "tft-sequence/*", 3 },
    { "proteinfer/*", 4 },
    { "ydf/toy.tfe*", 4 },
    { "ydf/toy.nocompress*", 4 },
    { "ydf/sentences*", 2 },
    { "tf-vocab/*", 173 },
    { "mct-stats/*", 2 },
};

static int64_t count_records(const char *path) {
    struct tare_tfrecord_reader *reader;
    struct tare_tfrecord record;
    int64_t count = 0;
    bool end = false;
    if (tare_tfrecord_open(&reader, path) != TARE_OK) fail_msg("%s", tare_error_text());
    while (!end) {
        if (tare_tfrecord_next(&record, &end, reader) != TARE_OK) fail_msg("%s", tare_error_text());
        count += !end;
    }
    tare_tfrecord_close(reader);
    return count;
}

static void record_counts__are_the_known_ones(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct tare_file_list list = { 0 };
        char pattern[600];
        int64_t count = 0;
        snprintf(pattern, sizeof pattern, "%s/tfrecords/%s", data, counts[i].pattern);
        assert_int_equal(tare_file_glob(&list, pattern), TARE_OK);
        for (size_t f = 0; f < list.count; f++)
            count += count_records(list.names[f]);
        tare_file_list_free(&list);
        if (count != counts[i].records)
            fail_msg("%s: %lld records (expected %lld)", counts[i].pattern, (long long)count,
                     (long long)counts[i].records);
    }
}

static void check_cifar(const char *name, int64_t expected, bool labelled) {
    struct tare_source_options options = { .prefetch = 8 };
    struct tare_shape image = tare_shape_make(4, 1, 32, 32, 3);
    struct tare_source *source;
    char path[600];
    const char *paths[] = { path };
    int64_t classes[10] = { 0 }, count = 0;
    bool end = false;
    snprintf(path, sizeof path, "%s/datasets/cifar10/%s", data, name);
    if (tare_source_new(&source, paths, 1, &options) != TARE_OK) fail_msg("%s", tare_error_text());
    for (;; count++) {
        struct tare_sample sample;
        struct tare_record where;
        const struct tare_tensor *x;
        int64_t label;
        if (tare_source_next(&sample, &where, &end, source, NULL, NULL) != TARE_OK) fail_msg("%s", tare_error_text());
        if (end) break;
        x = tare_sample_find(&sample, "input_1");
        assert_non_null(x);
        assert_int_equal(x->dtype, TARE_DT_FLOAT);
        assert_true(tare_shape_equal(&x->shape, &image));
        for (int64_t i = 0; i < x->elements; i++) {
            float value = TARE_CONST_DATA(float, x)[i];
            assert_true(value >= 0 && value <= 255);
        }
        if (labelled) {
            assert_int_equal(tare_sample_label(&label, &sample, "label"), TARE_OK);
            assert_in_range(label, 0, 9);
            classes[label]++;
        }
        tare_sample_reset(&sample);
    }
    tare_source_free(source);
    assert_int_equal(count, expected);
    for (int i = 0; labelled && i < 10; i++)
        assert_int_equal(classes[i], expected / 10);
}

static void cifar10__samples_are_images_with_labels(void **state) {
    (void)state;
    check_cifar("calibration-512.tfrecord.gz", 512, false);
    check_cifar("eval-1000.tfrecord.gz", 1000, true);
}

static void cifar10__recorded_answers_are_read(void **state) {
    char path[600];
    struct tare_tensor answers;
    (void)state;
    snprintf(path, sizeof path, "%s/datasets/cifar10/resnet8-tflite-float-eval-1000.npy", data);
    if (tare_npy_read(&answers, path) != TARE_OK) fail_msg("%s", tare_error_text());
    assert_int_equal(answers.shape.dims[0], 1000);
    tare_tensor_reset(&answers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(record_counts__are_the_known_ones),
        cmocka_unit_test(cifar10__samples_are_images_with_labels),
        cmocka_unit_test(cifar10__recorded_answers_are_read),
    };
    data = test_data(".");
    if (!data) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
