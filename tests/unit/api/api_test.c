/* The public functions of include/tare/ on the example model: results, and errors for wrong arguments. */
#include "include/tare/tare.h"

#include "support/api_check.h"
#include "support/temp.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const samples = GLYPHS "calibration.tfrecord.gz", *const records = GLYPHS "eval.tfrecord.gz";

static tare_model *open_glyphs(tare_context *context) {
    tare_model *model;
    OK(tare_model_open(&model, context, GLYPHS "saved_model"));
    return model;
}

static tare_calibration *calibrate(const tare_model *model, const char *options) {
    tare_calibration *calibration;
    OK(tare_model_calibrate(&calibration, model, &samples, 1, options));
    return calibration;
}

/* Reads the first image of the evaluation set and its label. */
static void first_image(tare_reader **reader, const tare_array **arrays, size_t *count) {
    OK(tare_reader_open(reader, NULL, &records, 1, NULL));
    OK(tare_reader_next(*reader, arrays, count));
}

static void *contents(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    static char data[1 << 22];
    assert_non_null(file);
    *size = fread(data, 1, sizeof data, file);
    fclose(file);
    return data;
}

static bool same_files(const char *a, const char *b) {
    static char first[1 << 22];
    size_t size, other;
    memcpy(first, contents(a, &size), sizeof first);
    const void *second = contents(b, &other);
    return size == other && size > 0 && memcmp(first, second, size) == 0;
}

/* ---- */

static void version__matches_the_header(void **state) {
    char text[32];
    (void)state;
    assert_string_equal(tare_version(), TARE_VERSION);
    snprintf(text, sizeof text, "%d.%d.%d", TARE_VERSION_MAJOR, TARE_VERSION_MINOR, TARE_VERSION_PATCH);
    assert_string_equal(text, TARE_VERSION);
    assert_int_equal(tare_version_number(), TARE_VERSION_NUMBER);
    assert_int_equal(TARE_VERSION_NUMBER,
                     1000000 * TARE_VERSION_MAJOR + 1000 * TARE_VERSION_MINOR + TARE_VERSION_PATCH);
}

static void elements__have_names_and_sizes(void **state) {
    (void)state;
    assert_int_equal(tare_element_size(TARE_DTYPE_FLOAT), 4);
    assert_int_equal(tare_element_size(TARE_DTYPE_BFLOAT16), 2);
    assert_int_equal(tare_element_size(TARE_DTYPE_STRING), sizeof(tare_text));
    assert_int_equal(tare_element_size(99), 0);
    assert_string_equal(tare_element_name(TARE_DTYPE_HALF), "float16");
    assert_int_equal(tare_element_from_name("half"), TARE_DTYPE_HALF);
    assert_int_equal(tare_element_from_name("nothing"), 0);
}

static void model__lists_its_signatures(void **state) {
    tare_model *model = open_glyphs(NULL);
    tare_array array;
    char *json;
    (void)state;
    assert_int_equal(tare_model_signature_count(model), 1);
    assert_string_equal(tare_model_signature_name(model, 0), "serving_default");
    assert_null(tare_model_signature_name(model, 1));
    assert_int_equal(tare_model_input_count(model, NULL), 1);
    assert_int_equal(tare_model_output_count(model, "serving_default"), 1);
    assert_int_equal(tare_model_input_count(model, "nothing"), 0);
    OK(tare_model_input(&array, model, NULL, 0));
    assert_string_equal(array.name, "image");
    assert_int_equal(array.dtype, TARE_DTYPE_FLOAT);
    assert_int_equal(array.rank, 4);
    assert_int_equal(array.dims[0], TARE_ARRAY_UNKNOWN);
    assert_int_equal(array.dims[1], 28);
    assert_null(array.data);
    REFUSED(tare_model_output(&array, model, NULL, 7), TARE_ERROR_NOT_FOUND, "index 7 is out of range");
    REFUSED(tare_model_output(&array, model, "nothing", 0), TARE_ERROR_NOT_FOUND, "there is no signature 'nothing'");
    assert_true(tare_model_weight_size(model) > 100000);
    OK(tare_model_describe(&json, model));
    assert_non_null(strstr(json, "\"tpu_func\""));
    tare_text_free(json);
    assert_int_equal(tare_model_function_argument(model, "tpu_func", "image"), TARE_DTYPE_FLOAT);
    assert_int_equal(tare_model_function_argument(model, "tpu_func", "nothing"), 0);
    assert_int_equal(tare_model_function_argument(model, "nothing", "image"), 0);
    tare_model_close(model);
    REFUSED(tare_model_open(&model, NULL, "/nowhere/at/all"), TARE_ERROR_NOT_FOUND, "/nowhere/at/all");
    assert_null(model);
}

static void runner__classifies_like_the_trained_model(void **state) {
    tare_model *model = open_glyphs(NULL);
    const tare_array *inputs, *outputs;
    size_t n_inputs, n_outputs, best = 0;
    tare_reader *reader;
    tare_runner *runner;
    (void)state;
    first_image(&reader, &inputs, &n_inputs);
    assert_int_equal(n_inputs, 2);
    size_t image = strcmp(inputs[0].name, "image") != 0;
    OK(tare_runner_open(&runner, model, NULL));
    OK(tare_runner_run(runner, &inputs[image], 1, &outputs, &n_outputs));
    assert_int_equal(n_outputs, 1);
    assert_string_equal(outputs[0].name, "probabilities");
    assert_int_equal(outputs[0].rank, 2);
    assert_int_equal(outputs[0].dims[1], 10);
    const float *p = outputs[0].data;
    for (size_t i = 1; i < 10; i++)
        if (p[i] > p[best]) best = i;
    assert_int_equal(best, *(const int64_t *)inputs[!image].data);
    tare_runner_close(runner);
    tare_reader_close(reader);
    tare_model_close(model);
}

static void runner__reports_inputs_that_do_not_match(void **state) {
    static float pixels[28 * 28];
    tare_array image = { .name = "image",
                         .dtype = TARE_DTYPE_FLOAT,
                         .rank = 4,
                         .dims = { 1, 28, 28, 1 },
                         .data = pixels },
               wrong;
    tare_model *model = open_glyphs(NULL);
    const tare_array *outputs;
    size_t count;
    tare_runner *runner;
    (void)state;
    OK(tare_runner_open(&runner, model, NULL));
    wrong = image, wrong.name = "photo";
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_ERROR_INVALID_ARGUMENT, "{image}. Got: {photo}");
    assert_null(outputs);
    wrong = image, wrong.dims[1] = 27;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_ERROR_SHAPE, "expected shape [?,28,28,1]");
    wrong = image, wrong.dtype = TARE_DTYPE_INT32;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_ERROR_TYPE, "expected float32, got int32");
    wrong = image, wrong.dtype = TARE_DTYPE_RESOURCE;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_ERROR_TYPE,
            "array image: resource is not a dtype of arrays");
    wrong = image, wrong.data = NULL;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_ERROR_INVALID_ARGUMENT,
            "data is NULL (expected 784 elements)");
    wrong = image, wrong.reserved[3] = 1;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_ERROR_INVALID_ARGUMENT, "reserved member 3");
    wrong = image, wrong.rank = -1;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_ERROR_SHAPE, "expected 0 to 12, got -1");
    wrong = image, wrong.rank = 13;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_ERROR_SHAPE, "array image");
    wrong = image, wrong.dims[0] = INT64_MAX;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_ERROR_SHAPE, "array image");
    tare_array twice[] = { image, image };
    REFUSED(tare_runner_run(runner, twice, 2, &outputs, &count), TARE_ERROR_INVALID_ARGUMENT, "duplicate array image");
    tare_array more[] = { image, image };
    more[1].name = "imgae";
    REFUSED(tare_runner_run(runner, more, 2, &outputs, &count), TARE_ERROR_INVALID_ARGUMENT,
            "input imgae: unknown input (serving_default has image)");
    OK(tare_runner_run(runner, &image, 1, &outputs, &count)); /* earlier failures have no effect */
    tare_runner_close(runner);
    REFUSED(tare_runner_open(&runner, model, "nothing"), TARE_ERROR_NOT_FOUND, "there is no signature 'nothing'");
    assert_null(runner);
    tare_model_close(model);
}

static void calibration__survives_its_file_and_describes_itself(void **state) {
    tare_model *model = open_glyphs(NULL);
    tare_calibration *calibration = calibrate(model, "threads=2"), *again, *small = calibrate(model, "limit=7 batch=1");
    char *json;
    (void)state;
    assert_int_equal(tare_calibration_record_count(calibration), 300);
    assert_int_equal(tare_calibration_record_count(small), 7);
    const char *path = temp_path("a.calib");
    const char *other = temp_path("b.calib");
    OK(tare_calibration_write(calibration, path));
    OK(tare_calibration_open(&again, path));
    OK(tare_calibration_write(again, other));
    assert_true(same_files(path, other));
    REFUSED(tare_calibration_add(calibration, small), TARE_ERROR_INVALID_ARGUMENT, "is in both");
    OK(tare_calibration_describe(&json, again));
    assert_non_null(strstr(json, "\"records\": 300"));
    tare_text_free(json);
    tare_calibration_close(again);
    tare_calibration_close(small);
    tare_calibration_close(calibration);
    REFUSED(tare_model_calibrate(&again, model, &samples, 1, "bathc=2"), TARE_ERROR_USAGE, "did you mean '--batch'");
    REFUSED(tare_model_calibrate(&again, model, &samples, 1, "signature=\"my own\""), TARE_ERROR_NOT_FOUND, "'my own'");
    REFUSED(tare_model_calibrate(&again, model, &samples, 1, "signature=\"my own"), TARE_ERROR_USAGE,
            "unterminated quote");
    REFUSED(tare_model_calibrate(&again, model, &samples, 0, NULL), TARE_ERROR_INVALID_ARGUMENT, "no data files");
    assert_null(again);
    tare_model_close(model);
}

static size_t push_all(tare_calibrator *calibrator) {
    const tare_array *arrays;
    tare_reader *reader;
    size_t count, pushed = 0;
    OK(tare_reader_open(&reader, NULL, &samples, 1, NULL));
    for (;; pushed++) {
        OK(tare_reader_next(reader, &arrays, &count));
        if (!arrays) break;
        OK(tare_calibrator_push(calibrator, arrays, count));
    }
    tare_reader_close(reader);
    return pushed;
}

static void calibrator__collects_the_same_statistics_as_from_a_file(void **state) {
    tare_model *model = open_glyphs(NULL), *a, *b;
    tare_calibration *pushed, *from_file = calibrate(model, NULL), *none;
    tare_calibrator *calibrator;
    tare_array wrong = { .name = "x", .dtype = TARE_DTYPE_FLOAT, .data = &wrong };
    char pb[2][600];
    (void)state;
    OK(tare_calibrator_open(&calibrator, model, "name=images threads=2"));
    REFUSED(tare_calibrator_push(calibrator, &wrong, 1), TARE_ERROR_INVALID_ARGUMENT, "Got: {x}");
    assert_int_equal(push_all(calibrator), 300);
    OK(tare_calibrator_finish(&pushed, calibrator));
    REFUSED(tare_calibrator_finish(&none, calibrator), TARE_ERROR_INVALID_ARGUMENT, "already finished");
    REFUSED(tare_calibrator_push(
                calibrator,
                &(tare_array){ .name = "image", .dtype = TARE_DTYPE_FLOAT, .rank = 4, .dims = { 0, 28, 28, 1 } }, 1),
            TARE_ERROR_INVALID_ARGUMENT, "accepts no more samples");
    tare_calibrator_close(calibrator);
    assert_int_equal(tare_calibration_record_count(pushed), 300);
    OK(tare_model_quantize(&a, model, "static", pushed, NULL));
    OK(tare_model_quantize(&b, model, "static", from_file, NULL));
    const char *first = temp_path("pushed");
    const char *second = temp_path("from_file");
    OK(tare_model_write(a, first, 0));
    OK(tare_model_write(b, second, 0));
    snprintf(pb[0], sizeof pb[0], "%s/saved_model.pb", first);
    snprintf(pb[1], sizeof pb[1], "%s/saved_model.pb", second);
    assert_true(same_files(pb[0], pb[1]));
    REFUSED(tare_model_write(a, first, 0), TARE_ERROR_INVALID_ARGUMENT, first);
    OK(tare_model_write(a, first, TARE_WRITE_OVERWRITE));
    REFUSED(tare_model_write(a, first, 6), TARE_ERROR_INVALID_ARGUMENT, "unknown flags 0x6");
    tare_model_close(a);
    tare_model_close(b);
    tare_calibration_close(pushed);
    tare_calibration_close(from_file);
    tare_model_close(model);
}

/* ---- calibrations that are added to ---- */

/* Statistics of one image of this brightness. */
static tare_calibration *calibrate_image(const tare_model *model, const char *options, float brightness) {
    static float pixels[28 * 28];
    const tare_array image = {
        .name = "image", .dtype = TARE_DTYPE_FLOAT, .rank = 4, .dims = { 1, 28, 28, 1 }, .data = pixels
    };
    tare_calibrator *calibrator;
    tare_calibration *made;
    for (size_t i = 0; i < 28 * 28; i++)
        pixels[i] = brightness * (float)i;
    OK(tare_calibrator_open(&calibrator, model, options));
    OK(tare_calibrator_push(calibrator, &image, 1));
    OK(tare_calibrator_finish(&made, calibrator));
    tare_calibrator_close(calibrator);
    return made;
}

static void calibration__adds_all_or_none(void **state) {
    tare_model *model = open_glyphs(NULL);
    tare_calibration *sum = calibrate_image(model, "name=a", 0.1f), *b = calibrate_image(model, "name=b", 0.2f),
                     *c = calibrate_image(model, "name=c", 0.3f), *copy;
    const char *before = temp_path("before.calib"), *after = temp_path("after.calib");
    (void)state;
    OK(tare_calibration_write(sum, before));
    REFUSED(tare_calibration_add_all(sum, (const tare_calibration *const[]){ b, c, b }, 3), TARE_ERROR_INVALID_ARGUMENT,
            "is in both");
    REFUSED(tare_calibration_add(sum, sum), TARE_ERROR_INVALID_ARGUMENT, "is in both");
    OK(tare_calibration_write(sum, after));
    assert_true(same_files(before, after));
    OK(tare_calibration_copy(&copy, sum));
    OK(tare_calibration_add_all(sum, (const tare_calibration *const[]){ b, c }, 2));
    assert_int_equal(tare_calibration_record_count(sum), 3);
    OK(tare_calibration_write(copy, after));
    assert_true(same_files(before, after));
    REFUSED(tare_calibration_add(copy, sum), TARE_ERROR_INVALID_ARGUMENT, "of 'a' is in both");
    tare_calibration_close(copy);
    tare_calibration_close(c);
    tare_calibration_close(b);
    tare_calibration_close(sum);
    tare_model_close(model);
}

static void hessians__remain_when_calibrations_are_added(void **state) {
    tare_model *model = open_glyphs(NULL), *made;
    tare_calibration *sum = calibrate(model, "limit=20 hessians"), *copy,
                     *other = calibrate_image(model, "name=b channels", 0.2f);
    (void)state;
    OK(tare_calibration_copy(&copy, sum));
    OK(tare_calibration_add(sum, other));
    tare_calibration_close(copy);
    OK(tare_model_quantize(&made, model, "weight_only", sum, "bits=4 passes=gptq"));
    tare_model_close(made);
    tare_calibration_close(other);
    tare_calibration_close(sum);
    tare_model_close(model);
}

enum { ADDITIONS = 30 };

struct adding {
    tare_calibration *sum, *parts[ADDITIONS];
    _Atomic bool ended;
};

/* Returns an error, which belongs to no calibration that was ever complete. */
static void *read_while_adding(void *arg) {
    struct adding *adding = arg;
    int64_t least = 0;
    while (!adding->ended) {
        const int64_t count = tare_calibration_record_count(adding->sum);
        tare_calibration_bin *bins;
        size_t n;
        char *json;
        if (count < least || tare_calibration_report(&json, adding->sum, "algorithms=min_max") != TARE_OK) return arg;
        tare_text_free(json);
        if (tare_calibration_histogram(&bins, &n, adding->sum, "", "nothing", 0) != TARE_ERROR_NOT_FOUND) return arg;
        least = count;
    }
    return NULL;
}

static void *add_half(void *arg) {
    struct adding *adding = arg;
    for (size_t i = 0; i < ADDITIONS; i += 2)
        if (tare_calibration_add(adding->sum, adding->parts[i]) != TARE_OK) return arg;
    return NULL;
}

static void calibration__is_read_while_threads_add_to_it(void **state) {
    tare_model *model = open_glyphs(NULL);
    struct adding adding = { .sum = calibrate(model, "limit=20") };
    pthread_t readers[2], adder;
    void *failed;
    (void)state;
    for (int i = 0; i < ADDITIONS; i++) {
        char options[32];
        snprintf(options, sizeof options, "name=%d", i);
        adding.parts[i] = calibrate_image(model, options, 0.01f * (float)(i + 1));
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_while_adding, &adding), 0);
    assert_int_equal(pthread_create(&adder, NULL, add_half, &adding), 0);
    for (size_t i = 1; i < ADDITIONS; i += 2)
        OK(tare_calibration_add(adding.sum, adding.parts[i]));
    pthread_join(adder, &failed);
    assert_null(failed);
    adding.ended = true;
    for (int i = 0; i < 2; i++) {
        pthread_join(readers[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(tare_calibration_record_count(adding.sum), 20 + ADDITIONS);
    for (int i = 0; i < ADDITIONS; i++)
        tare_calibration_close(adding.parts[i]);
    tare_calibration_close(adding.sum);
    tare_model_close(model);
}

/* Each adds the other: whichever is first, one of the two additions fails, and neither waits for ever. */
static void *add_other(void *arg) {
    tare_calibration **pair = arg;
    for (int i = 0; i < 20; i++)
        if (tare_calibration_add(pair[0], pair[1]) != TARE_OK && !strstr(tare_error_text(), "is in both")) return arg;
    return NULL;
}

static void calibrations__may_be_added_to_each_other_at_the_same_time(void **state) {
    tare_model *model = open_glyphs(NULL);
    tare_calibration *a = calibrate_image(model, "name=a", 0.1f), *b = calibrate_image(model, "name=b", 0.2f);
    tare_calibration *pairs[2][2] = { { a, b }, { b, a } };
    pthread_t threads[2];
    void *failed;
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_other, pairs[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_true(tare_calibration_record_count(a) == 2 || tare_calibration_record_count(b) == 2);
    tare_calibration_close(a);
    tare_calibration_close(b);
    tare_model_close(model);
}

static void comparison__keeps_the_calibration_that_it_began_with(void **state) {
    tare_model *model = open_glyphs(NULL);
    tare_calibration *calibration = calibrate(model, "limit=20"), *other = calibrate_image(model, "name=b", 9);
    const tare_comparison_task task = { .struct_size = sizeof task,
                                        .paths = &records,
                                        .n_paths = 1,
                                        .calibration = calibration,
                                        .options = "methods=static limit=10" };
    tare_comparison *comparison;
    char *before, *after;
    (void)state;
    OK(tare_comparison_open(&comparison, model, &task));
    OK(tare_comparison_report(&before, comparison, TARE_COMPARISON_HTML));
    OK(tare_calibration_add(calibration, other));
    OK(tare_comparison_report(&after, comparison, TARE_COMPARISON_HTML));
    assert_string_equal(before, after);
    tare_text_free(after);
    tare_calibration_close(calibration);
    OK(tare_comparison_report(&after, comparison, TARE_COMPARISON_HTML));
    assert_string_equal(before, after);
    tare_text_free(after);
    tare_text_free(before);
    tare_comparison_close(comparison);
    tare_calibration_close(other);
    tare_model_close(model);
}

static void calibrator__without_samples_fails(void **state) {
    tare_model *model = open_glyphs(NULL);
    tare_calibration *none;
    tare_calibrator *calibrator;
    (void)state;
    OK(tare_calibrator_open(&calibrator, model, NULL));
    REFUSED(tare_calibrator_finish(&none, calibrator), TARE_ERROR_INVALID_ARGUMENT, "no records");
    assert_null(none);
    tare_calibrator_close(calibrator);
    tare_model_close(model);
}

static void calibrator__may_be_closed_at_any_time(void **state) {
    tare_model *model = open_glyphs(NULL);
    tare_calibrator *calibrator;
    (void)state;
    OK(tare_calibrator_open(&calibrator, model, NULL));
    tare_calibrator_close(calibrator);
    OK(tare_calibrator_open(&calibrator, model, "batch=1"));
    push_all(calibrator);
    tare_calibrator_close(calibrator);
    tare_calibrator_close(NULL);
    tare_model_close(model);
}

static void quantize__reports_missing_and_invalid_arguments(void **state) {
    tare_model *model = open_glyphs(NULL), *made;
    (void)state;
    REFUSED(tare_model_quantize(&made, model, "static", NULL, NULL), TARE_ERROR_USAGE, "needs representative samples");
    REFUSED(tare_model_quantize(&made, model, "statik", NULL, NULL), TARE_ERROR_USAGE, "did you mean 'static'?");
    REFUSED(tare_model_quantize(&made, model, "weight_only", NULL, "bits=5"), TARE_ERROR_USAGE, "expected 4 or 8");
    assert_null(made);
    OK(tare_model_quantize(&made, model, "weight_only", NULL, "bits=4 granularity=per_tensor"));
    assert_true(tare_model_weight_size(made) < tare_model_weight_size(model) / 3);
    tare_model_close(made);
    tare_model_close(model);
}

static void hessians__are_collected_for_gptq(void **state) {
    tare_model *model = open_glyphs(NULL), *made, *plain;
    tare_calibration *with = calibrate(model, "limit=20 hessians"), *without = calibrate(model, "limit=20");
    tare_calibrator *calibrator;
    (void)state;
    OK(tare_model_quantize(&plain, model, "weight_only", without, "bits=4"));
    OK(tare_model_quantize(&made, model, "weight_only", with, "bits=4 passes=gptq"));
    tare_model_close(made);
    REFUSED(tare_model_quantize(&made, model, "weight_only", without, "bits=4 passes=gptq"),
            TARE_ERROR_INVALID_ARGUMENT, "gptq");
    REFUSED(tare_calibrator_open(&calibrator, model, "hessians"), TARE_ERROR_UNSUPPORTED, "calibrate from files");
    tare_model_close(plain);
    tare_calibration_close(with);
    tare_calibration_close(without);
    tare_model_close(model);
}

static char *conversion_of(const tare_model *model, const char *options, unsigned flags) {
    tare_model *made;
    char *report;
    OK(tare_model_convert(&made, &report, model, options, NULL, flags));
    tare_model_close(made);
    return report;
}

static void functions__are_found_if_none_is_named(void **state) {
    static const char *const texts[] = { "tpu_functions { function_alias: 'tpu_func' }",
                                         "xla_functions { device_type: TPU function_alias: 'tpu_func' }",
                                         "xla_functions { device_type: \"TPU\" function_alias: 'tpu_func' }" };
    tare_model *model = open_glyphs(NULL);
    char *expected = conversion_of(model, texts[0], 0);
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *report = conversion_of(model, texts[i], TARE_CONVERT_FIND_FUNCTIONS);
        assert_string_equal(report, expected);
        tare_text_free(report);
    }
    tare_text_free(expected);
    expected = conversion_of(model, "# not: tpu_functions { }", TARE_CONVERT_FIND_FUNCTIONS);
    assert_non_null(strstr(expected, "\"TPU\""));
    tare_text_free(expected);
    tare_model_close(model);
}

struct calls {
    int progress, messages;
    int64_t done;
    tare_context *cancel; /* at the first progress */
    enum tare_log_level level;
    char text[512];
};

static void on_progress(void *arg, const char *what, int64_t done, int64_t total) {
    struct calls *calls = arg;
    calls->progress += what != NULL && total >= -1;
    calls->done = done;
    if (calls->cancel) tare_context_cancel(calls->cancel, 1);
}

static void on_log(void *arg, enum tare_log_level level, const char *text) {
    struct calls *calls = arg;
    calls->messages++;
    calls->level = level;
    snprintf(calls->text, sizeof calls->text, "%s", text);
}

static const char tpu[] =
    "tpu_functions { function_alias: \"tpu_func\" } external_feature_configs { quantization_options { } }";

static void convert__returns_model_and_report(void **state) {
    struct calls calls = { 0 };
    tare_context *context;
    OK(tare_context_open(&context));
    tare_context_on_progress(context, on_progress, &calls);
    tare_context_on_log(context, TARE_LOG_NOTE, on_log, &calls);
    tare_model *model = open_glyphs(context), *made;
    tare_calibration *calibration = calibrate(model, NULL);
    char *report;
    (void)state;
    assert_true(calls.progress > 0);
    assert_int_equal(calls.done, 300);
    OK(tare_model_convert(&made, &report, model, tpu, calibration, 0));
    assert_non_null(strstr(report, "\"tpu_cost\""));
    assert_int_equal(calls.done, 3);
    tare_text_free(report);
    tare_model_close(made);
    REFUSED(tare_model_convert(&made, &report, model, "tpu_function { }", NULL, 0), TARE_ERROR_INVALID_ARGUMENT,
            "tpu_functions");
    assert_null(report);
    OK(tare_model_convert(&made, NULL, model, "", calibration, TARE_CONVERT_FIND_FUNCTIONS));
    tare_model_close(made);
    REFUSED(tare_model_convert(&made, NULL, model, tpu, NULL, 32), TARE_ERROR_INVALID_ARGUMENT, "unknown flags 0x20");
    OK(tare_model_convert(&made, NULL, model, "", NULL, TARE_CONVERT_FIND_FUNCTIONS));
    tare_model_close(made);
    tare_calibration_close(calibration);
    tare_model_close(model);
    tare_context_close(context);
}

static void compare__returns_json(void **state) {
    tare_model *model = open_glyphs(NULL);
    tare_calibration *calibration = calibrate(model, "limit=50");
    char *json;
    (void)state;
    OK(tare_model_compare(&json, model, &records, 1, calibration, "methods=static limit=100 depthwise"));
    assert_non_null(strstr(json, "\"records\": 100"));
    assert_non_null(strstr(json, "\"static\""));
    tare_text_free(json);
    REFUSED(tare_model_compare(&json, model, &records, 1, NULL, "methods=static"), TARE_ERROR_USAGE,
            "method static needs");
    OK(tare_model_compare(&json, model, &records, 1, NULL, "limit=10")); /* what needs no calibration */
    assert_non_null(strstr(json, "\"weight_only\""));
    assert_non_null(strstr(json, "\"skipped\""));
    tare_text_free(json);
    REFUSED(tare_model_compare(&json, model, &records, 0, NULL, "methods=dynamic"), TARE_ERROR_INVALID_ARGUMENT,
            "no data files");
    tare_calibration_close(calibration);
    tare_model_close(model);
}

static void cancel__stops_calibration_and_comparison(void **state) {
    struct calls calls = { 0 };
    tare_context *context;
    OK(tare_context_open(&context));
    tare_model *model = open_glyphs(context);
    tare_calibration *calibration;
    char *json;
    (void)state;
    calls.cancel = context;
    tare_context_on_progress(context, on_progress, &calls);
    REFUSED(tare_model_calibrate(&calibration, model, &samples, 1, "batch=1"), TARE_ERROR_INTERRUPTED, "interrupted");
    assert_null(calibration);
    REFUSED(tare_model_compare(&json, model, &records, 1, NULL, "methods=weight_only"), TARE_ERROR_INTERRUPTED,
            "interrupted");
    calls.cancel = NULL;
    tare_context_cancel(context, 0);
    OK(tare_model_calibrate(&calibration, model, &samples, 1, "limit=20"));
    tare_calibration_close(calibration);
    tare_model_close(model);
    tare_context_close(context);
}

static void *calibrate_with_flag(void *arg) {
    static const volatile sig_atomic_t cancelled = 1;
    tare_calibration *made;
    const tare_model *model = arg;
    tare_thread_cancel_by(&cancelled);
    const tare_status status = tare_model_calibrate(&made, model, &samples, 1, NULL);
    tare_calibration_close(made);
    return status == TARE_ERROR_INTERRUPTED ? NULL : arg;
}

/* What the calls of one context share does not let the cancellation of one stop another. */
static void cancel__of_a_thread_stops_its_calls_alone(void **state) {
    volatile sig_atomic_t cancelled = 0;
    tare_calibrator *calibrator;
    tare_calibration *made;
    tare_context *context;
    pthread_t thread;
    void *failed;
    (void)state;
    OK(tare_context_open(&context));
    tare_model *model = open_glyphs(context);
    assert_int_equal(pthread_create(&thread, NULL, calibrate_with_flag, model), 0);
    pthread_join(thread, &failed);
    assert_null(failed);
    tare_calibration_close(calibrate(model, "limit=5"));
    tare_thread_cancel_by(&cancelled);
    tare_context_cancel(context, 1);
    OK(tare_calibrator_open(&calibrator, model, NULL));
    tare_calibration_close(calibrate(model, "limit=5"));
    tare_thread_cancel_by(NULL);
    REFUSED(tare_model_calibrate(&made, model, &samples, 1, NULL), TARE_ERROR_INTERRUPTED, "interrupted");
    tare_context_cancel(context, 0);
    cancelled = 1; /* of the calibrator, which has the flag of its opening */
    REFUSED(tare_calibrator_push(calibrator, &(tare_array){ .name = "image" }, 1), TARE_ERROR_INTERRUPTED,
            "interrupted");
    REFUSED(tare_calibrator_finish(&made, calibrator), TARE_ERROR_INTERRUPTED, "interrupted");
    tare_calibrator_close(calibrator);
    tare_calibration_close(calibrate(model, "limit=5"));
    tare_model_close(model);
    tare_context_close(context);
}

static void writer__round_trips_through_the_reader(void **state) {
    const float values[] = { 1, -2, 3 };
    const tare_text texts[] = { { "a\0b", 3 }, { "", 0 } };
    const tare_array written[] = {
        { .name = "x", .dtype = TARE_DTYPE_FLOAT, .rank = 1, .dims = { 3 }, .data = values },
        { .name = "s", .dtype = TARE_DTYPE_STRING, .rank = 1, .dims = { 2 }, .data = texts }
    };
    const tare_array *arrays;
    const char *const path = temp_path("samples.tfrecord.gz");
    const char *const paths[] = { path };
    tare_writer *writer;
    tare_reader *reader;
    size_t count;
    (void)state;
    OK(tare_writer_open(&writer, path));
    OK(tare_writer_add(writer, written, 2));
    OK(tare_writer_close(writer));
    OK(tare_reader_open(&reader, NULL, paths, 1, NULL));
    OK(tare_reader_next(reader, &arrays, &count));
    assert_int_equal(count, 2);
    size_t x = strcmp(arrays[0].name, "x") != 0;
    assert_memory_equal(arrays[x].data, values, sizeof values);
    const tare_text *read = arrays[!x].data;
    assert_int_equal(read[0].size, 3);
    assert_memory_equal(read[0].data, "a\0b", 3);
    assert_int_equal(read[1].size, 0);
    OK(tare_reader_next(reader, &arrays, &count));
    assert_null(arrays);
    tare_reader_close(reader);
    OK(tare_writer_open(&writer, path));
    tare_writer_discard(writer);
    tare_writer_discard(NULL);
    tare_reader_close(NULL);
    REFUSED(tare_reader_open(&reader, NULL, (const char *const[]){ "/nowhere.tfrecord" }, 1, NULL),
            TARE_ERROR_NOT_FOUND, "/nowhere.tfrecord");
}

/* What follows a corrupt record is readable, but it is not the data that the caller asked for. */
static void reader__gives_no_record_after_a_failure(void **state) {
    const float value = 1;
    const tare_array array = { .name = "x", .dtype = TARE_DTYPE_FLOAT, .rank = 1, .dims = { 1 }, .data = &value };
    const char *const path = temp_path("corrupt.tfrecord");
    const tare_array *arrays;
    tare_writer *writer;
    tare_reader *reader;
    size_t count;
    (void)state;
    OK(tare_writer_open(&writer, path));
    for (int i = 0; i < 3; i++)
        OK(tare_writer_add(writer, &array, 1));
    OK(tare_writer_close(writer));
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 14, SEEK_SET), 0);
    assert_int_equal(fputc('!', file), '!');
    assert_int_equal(fclose(file), 0);
    OK(tare_reader_open(&reader, NULL, &path, 1, NULL));
    REFUSED(tare_reader_next(reader, &arrays, &count), TARE_ERROR_CORRUPT, "record 0");
    REFUSED(tare_reader_next(reader, &arrays, &count), TARE_ERROR_INVALID_ARGUMENT, "the reader failed before");
    assert_null(arrays);
    tare_reader_close(reader);
}

static void status__numbers_are_fixed(void **state) {
    (void)state; /* programs built with an older header rely on them */
    assert_int_equal(TARE_OK, 0);
    assert_int_equal(TARE_ERROR_INVALID_ARGUMENT, 1);
    assert_int_equal(TARE_ERROR_UNSUPPORTED, 2);
    assert_int_equal(TARE_ERROR_CORRUPT, 3);
    assert_int_equal(TARE_ERROR_TYPE, 4);
    assert_int_equal(TARE_ERROR_SHAPE, 5);
    assert_int_equal(TARE_ERROR_NOT_FOUND, 6);
    assert_int_equal(TARE_ERROR_IO, 7);
    assert_int_equal(TARE_ERROR_NO_MEMORY, 8);
    assert_int_equal(TARE_ERROR_INTERRUPTED, 9);
    assert_int_equal(TARE_ERROR_USAGE, 10);
    assert_int_equal(TARE_ERROR_INTERNAL, 11);
    assert_string_equal(tare_status_name(TARE_ERROR_SHAPE), "wrong shape");
    assert_string_equal(tare_status_name((tare_status)99), "unknown status");
}

/* The files of a model directory's graph and weights are equal. */
static void assert_same_model(const char *a, const char *b) {
    static const char *const files[] = { "saved_model.pb", "variables/variables.index",
                                         "variables/variables.data-00000-of-00001" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char paths[2][600];
        snprintf(paths[0], sizeof paths[0], "%s/%s", a, files[i]);
        snprintf(paths[1], sizeof paths[1], "%s/%s", b, files[i]);
        if (access(paths[0], F_OK) != 0 && access(paths[1], F_OK) != 0) continue; /* no variables are left */
        if (!same_files(paths[0], paths[1])) fail_msg("%s differs between %s and %s", files[i], a, b);
    }
}

static void convert__of_a_quantized_model_in_memory_equals_that_of_its_directory(void **state) {
    static const char options[] = "tpu_functions { function_alias: \"tpu_func\" }";
    const char *temporary = temp_path("temporary");
    tare_model *model = open_glyphs(NULL), *quantized, *reopened, *from_memory, *from_directory;
    tare_calibration *calibration = calibrate(model, "limit=50");
    (void)state;
    assert_int_equal(mkdir(temporary, 0700), 0);
    assert_int_equal(setenv("TMPDIR", temporary, 1), 0);
    OK(tare_model_quantize(&quantized, model, "static", calibration, NULL));
    OK(tare_model_convert(&from_memory, NULL, quantized, options, NULL, 0));
    const char *directory = temp_path("quantized"), *first = temp_path("from_memory"),
               *second = temp_path("from_directory");
    OK(tare_model_write(quantized, directory, 0));
    OK(tare_model_open(&reopened, NULL, directory));
    OK(tare_model_convert(&from_directory, NULL, reopened, options, NULL, 0));
    OK(tare_model_write(from_memory, first, 0));
    OK(tare_model_write(from_directory, second, 0));
    assert_same_model(first, second);
    tare_model_close(from_memory);
    tare_model_close(from_directory);
    tare_model_close(reopened);
    tare_model_close(quantized);
    assert_int_equal(rmdir(temporary), 0); /* nothing is left in it */
    assert_int_equal(unsetenv("TMPDIR"), 0);
    tare_calibration_close(calibration);
    tare_model_close(model);
}

static void calibrate__accepts_a_quantized_model(void **state) {
    tare_model *model = open_glyphs(NULL), *quantized;
    tare_calibration *calibration;
    char *json;
    (void)state;
    OK(tare_model_quantize(&quantized, model, "weight_only", NULL, NULL));
    OK(tare_model_calibrate(&calibration, quantized, &samples, 1, "limit=10"));
    assert_int_equal(tare_calibration_record_count(calibration), 10);
    OK(tare_model_compare(&json, quantized, &records, 1, NULL, "methods=weight_only limit=10"));
    assert_non_null(strstr(json, "\"records\": 10"));
    tare_text_free(json);
    tare_calibration_close(calibration);
    tare_model_close(quantized);
    tare_model_close(model);
}

static void log__drops_messages_above_its_level(void **state) {
    static const enum tare_log_level levels[] = { TARE_LOG_WARNING, TARE_LOG_DETAIL };
    int messages[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct calls calls = { 0 };
        tare_context *context;
        OK(tare_context_open(&context));
        tare_context_on_log(context, levels[i], on_log, &calls);
        tare_model *model = open_glyphs(context), *converted;
        OK(tare_model_convert(&converted, NULL, model, "", NULL, TARE_CONVERT_FIND_FUNCTIONS));
        messages[i] = calls.messages;
        assert_true(calls.messages == 0 || calls.level <= levels[i]);
        tare_model_close(converted);
        tare_model_close(model);
        tare_context_close(context);
    }
    if (messages[0] >= messages[1]) fail_msg("%d warnings, %d messages", messages[0], messages[1]);
}

static void reader__stops_after_cancellation(void **state) {
    const tare_array *arrays;
    tare_context *context;
    tare_reader *reader;
    size_t count;
    (void)state;
    OK(tare_context_open(&context));
    OK(tare_reader_open(&reader, context, &records, 1, NULL));
    OK(tare_reader_next(reader, &arrays, &count));
    tare_context_cancel(context, 1);
    REFUSED(tare_reader_next(reader, &arrays, &count), TARE_ERROR_INTERRUPTED, "interrupted");
    assert_null(arrays);
    tare_reader_close(reader);
    tare_context_close(context);
}

static void *run_many(void *arg) {
    static float pixels[28 * 28];
    const tare_array image = {
        .name = "image", .dtype = TARE_DTYPE_FLOAT, .rank = 4, .dims = { 1, 28, 28, 1 }, .data = pixels
    };
    const tare_array *outputs;
    tare_runner *runner;
    size_t count;
    if (tare_runner_open(&runner, arg, NULL) != TARE_OK) return arg;
    for (int i = 0; i < 20; i++)
        if (tare_runner_run(runner, &image, 1, &outputs, &count) != TARE_OK) return arg;
    tare_runner_close(runner);
    return NULL;
}

static void model__serves_runners_on_several_threads(void **state) {
    tare_model *model = open_glyphs(NULL);
    pthread_t threads[4];
    void *wrong;
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, model), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    tare_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version__matches_the_header),
        cmocka_unit_test(elements__have_names_and_sizes),
        cmocka_unit_test(model__lists_its_signatures),
        cmocka_unit_test(runner__classifies_like_the_trained_model),
        cmocka_unit_test(runner__reports_inputs_that_do_not_match),
        cmocka_unit_test(calibration__survives_its_file_and_describes_itself),
        cmocka_unit_test(calibrator__collects_the_same_statistics_as_from_a_file),
        cmocka_unit_test(calibration__adds_all_or_none),
        cmocka_unit_test(hessians__remain_when_calibrations_are_added),
        cmocka_unit_test(calibration__is_read_while_threads_add_to_it),
        cmocka_unit_test(calibrations__may_be_added_to_each_other_at_the_same_time),
        cmocka_unit_test(comparison__keeps_the_calibration_that_it_began_with),
        cmocka_unit_test(calibrator__may_be_closed_at_any_time),
        cmocka_unit_test(quantize__reports_missing_and_invalid_arguments),
        cmocka_unit_test(hessians__are_collected_for_gptq),
        cmocka_unit_test(convert__returns_model_and_report),
        cmocka_unit_test(functions__are_found_if_none_is_named),
        cmocka_unit_test(compare__returns_json),
        cmocka_unit_test(cancel__stops_calibration_and_comparison),
        cmocka_unit_test(cancel__of_a_thread_stops_its_calls_alone),
        cmocka_unit_test(writer__round_trips_through_the_reader),
        cmocka_unit_test(model__serves_runners_on_several_threads),
        cmocka_unit_test(status__numbers_are_fixed),
        cmocka_unit_test(convert__of_a_quantized_model_in_memory_equals_that_of_its_directory),
        cmocka_unit_test(calibrate__accepts_a_quantized_model),
        cmocka_unit_test(calibrator__without_samples_fails),
        cmocka_unit_test(log__drops_messages_above_its_level),
        cmocka_unit_test(reader__gives_no_record_after_a_failure),
        cmocka_unit_test(reader__stops_after_cancellation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
