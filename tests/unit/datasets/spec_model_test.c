/* Specs on data sets that other programs wrote: CIFAR-10 as tf.Example records becomes the very samples that another
 * tool made of it; photographs go through decoding, scaling and cutting. */
#include "datasets/source.h"
#include "datasets/survey.h"
#include "support/models.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *data;

static struct tare_source *open_source(const char *name, const struct tare_dataset_spec *spec) {
    const struct tare_source_options options = { .spec = spec, .prefetch = 4 };
    struct tare_source *source;
    char path[600];
    const char *paths[] = { path };
    snprintf(path, sizeof path, "%s/%s", data, name);
    if (tare_source_new(&source, paths, 1, &options) != TARE_OK) fail_msg("%s", tare_error_text());
    return source;
}

static void cifar__examples_become_the_samples(void **state) {
    static const char text[] = "input { name: \"input_1\" feature: \"image\" source: RAW raw_type: UINT8 type: FLOAT32 "
                               "shape: [32, 32, 3] }\n"
                               "label { shape: 1 whole: true }";
    struct tare_dataset_spec *spec;
    struct tare_source *examples, *samples;
    int count = 0;
    (void)state;
    assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "cifar.spec"), TARE_OK);
    examples = open_source("datasets/cifar10/eval-1000.example.tfrecord.gz", spec);
    samples = open_source("datasets/cifar10/eval-1000.tfrecord.gz", NULL);
    for (;; count++) {
        struct tare_sample example, sample;
        struct tare_record where;
        struct tare_content_hash a, b;
        bool end, also_end;
        if (tare_source_next(&example, &where, &end, examples, NULL, NULL) != TARE_OK)
            fail_msg("%s", tare_error_text());
        assert_int_equal(tare_source_next(&sample, &where, &also_end, samples, NULL, NULL), TARE_OK);
        assert_int_equal(end, also_end);
        if (end) break;
        a = tare_content_hash_sample(&example);
        b = tare_content_hash_sample(&sample);
        if (memcmp(&a, &b, sizeof a) != 0) fail_msg("record %d differs", count);
        tare_sample_reset(&example);
        tare_sample_reset(&sample);
    }
    assert_int_equal(count, 1000);
    tare_source_free(examples);
    tare_source_free(samples);
    tare_dataset_spec_free(spec);
}

static void flowers__become_inputs_of_an_image_model(void **state) {
    static const char text[] = "input { name: \"x\" feature: \"image_raw\" image { channels: 3 "
                               "step { resize { shorter_side: 256 method: ANTIALIAS } } "
                               "step { crop { height: 224 width: 224 } } } mean: 127.5 std: 127.5 }\n"
                               "label { }";
    struct tare_dataset_spec *spec;
    struct tare_survey_options options = { .limit = 0 };
    struct tare_survey survey;
    char path[600];
    const char *paths[] = { path };
    (void)state;
    snprintf(path, sizeof path, "%s/tfrecords/tfx-hist-images/flowers.tfrecord", data);
    assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "flowers.spec"), TARE_OK);
    options.spec = spec;
    assert_int_equal(tare_survey_files(&survey, paths, 1, &options), TARE_OK);
    assert_int_equal(survey.bad, 0);
    assert_int_equal(survey.records, 25);
    assert_int_equal(survey.keys[0].elements, 25 * 224 * 224 * 3);
    assert_true(survey.keys[0].least >= -1 && survey.keys[0].least < -0.95);
    assert_true(survey.keys[0].most <= 1 && survey.keys[0].most > 0.95);
    assert_true(survey.keys[1].least == 0 && survey.keys[1].most == 4);
    tare_survey_free(&survey);
    tare_dataset_spec_free(spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cifar__examples_become_the_samples),
        cmocka_unit_test(flowers__become_inputs_of_an_image_model),
    };
    data = test_data(".");
    if (!data) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
