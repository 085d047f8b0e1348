/* The public functions of include/tare/ on the example model: what a program gets from them, and what it is told when
 * it asks for something wrong. */
#include "include/tare/tare.h"

#include "support/temp.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GLYPHS TARE_SOURCE_DIR "/examples/glyphs/"
static const char *const samples = GLYPHS "calibration.tfrecord.gz", *const records = GLYPHS "eval.tfrecord.gz";

static void ok_at(tare_status status, int line) {
    if (status != TARE_OK) fail_msg("line %d: %s: %s", line, tare_status_name(status), tare_error_text());
}
#define OK(call) ok_at((call), __LINE__)

static void refused_at(tare_status status, tare_status expected, const char *text, int line) {
    if (status != expected)
        fail_msg("line %d: status %s (expected %s): %s", line, tare_status_name(status), tare_status_name(expected),
                 tare_error_text());
    if (!strstr(tare_error_text(), text)) fail_msg("line %d: '%s' has no '%s'", line, tare_error_text(), text);
}
#define REFUSED(call, status, text) refused_at((call), (status), (text), __LINE__)

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

/* One picture of the eval set, and what the float model says of it. */
static void first_picture(tare_reader **reader, const tare_array **arrays, size_t *count) {
    OK(tare_reader_open(reader, &records, 1, NULL));
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

static void version__is_that_of_the_header(void **state) {
    char text[32];
    (void)state;
    assert_string_equal(tare_version(), TARE_VERSION);
    snprintf(text, sizeof text, "%d.%d.%d", TARE_VERSION_MAJOR, TARE_VERSION_MINOR, TARE_VERSION_PATCH);
    assert_string_equal(text, TARE_VERSION);
}

static void elements__have_names_and_sizes(void **state) {
    (void)state;
    assert_int_equal(tare_element_size(TARE_FLOAT), 4);
    assert_int_equal(tare_element_size(TARE_BFLOAT16), 2);
    assert_int_equal(tare_element_size(TARE_STRING), sizeof(tare_text));
    assert_int_equal(tare_element_size(99), 0);
    assert_string_equal(tare_element_name(TARE_HALF), "float16");
    assert_int_equal(tare_element_from_name("half"), TARE_HALF);
    assert_int_equal(tare_element_from_name("nothing"), 0);
}

static void model__tells_its_signatures(void **state) {
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
    assert_int_equal(array.dtype, TARE_FLOAT);
    assert_int_equal(array.rank, 4);
    assert_int_equal(array.dims[0], TARE_ARRAY_UNKNOWN);
    assert_int_equal(array.dims[1], 28);
    assert_null(array.data);
    REFUSED(tare_model_output(&array, model, NULL, 7), TARE_NOT_FOUND, "there is no number 7");
    REFUSED(tare_model_output(&array, model, "nothing", 0), TARE_NOT_FOUND, "there is no signature 'nothing'");
    assert_true(tare_model_weight_size(model) > 100000);
    OK(tare_model_describe(&json, model));
    assert_non_null(strstr(json, "\"tpu_func\""));
    tare_text_free(json);
    tare_model_close(model);
    REFUSED(tare_model_open(&model, NULL, "/nowhere/at/all"), TARE_NOT_FOUND, "/nowhere/at/all");
    assert_null(model);
}

static void runner__answers_as_the_trainer_did(void **state) {
    tare_model *model = open_glyphs(NULL);
    const tare_array *inputs, *outputs;
    size_t n_inputs, n_outputs, best = 0;
    tare_reader *reader;
    tare_runner *runner;
    (void)state;
    first_picture(&reader, &inputs, &n_inputs);
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

static void runner__says_what_does_not_fit(void **state) {
    static float pixels[28 * 28];
    tare_array image = { .name = "image", .dtype = TARE_FLOAT, .rank = 4, .dims = { 1, 28, 28, 1 }, .data = pixels },
               wrong;
    tare_model *model = open_glyphs(NULL);
    const tare_array *outputs;
    size_t count;
    tare_runner *runner;
    (void)state;
    OK(tare_runner_open(&runner, model, NULL));
    wrong = image, wrong.name = "picture";
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_INVALID_ARGUMENT, "{image}. Got: {picture}");
    assert_null(outputs);
    wrong = image, wrong.dims[1] = 27;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_SHAPE, "expected shape [?,28,28,1]");
    wrong = image, wrong.dtype = TARE_INT32;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_TYPE, "expected float32, got int32");
    wrong = image, wrong.dtype = TARE_RESOURCE;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_TYPE, "array image: resource cannot be given");
    wrong = image, wrong.data = NULL;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_INVALID_ARGUMENT, "no data for 784 elements");
    wrong = image, wrong.rank = -1;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_SHAPE, "rank -1");
    wrong = image, wrong.rank = 13;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_SHAPE, "array image");
    wrong = image, wrong.dims[0] = INT64_MAX;
    REFUSED(tare_runner_run(runner, &wrong, 1, &outputs, &count), TARE_SHAPE, "array image");
    tare_array twice[] = { image, image };
    REFUSED(tare_runner_run(runner, twice, 2, &outputs, &count), TARE_INVALID_ARGUMENT, "array image is given twice");
    OK(tare_runner_run(runner, &image, 1, &outputs, &count)); /* nothing of that stays */
    tare_runner_close(runner);
    REFUSED(tare_runner_open(&runner, model, "nothing"), TARE_NOT_FOUND, "there is no signature 'nothing'");
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
    REFUSED(tare_calibration_add(calibration, small), TARE_INVALID_ARGUMENT, "is in both");
    OK(tare_calibration_describe(&json, again));
    assert_non_null(strstr(json, "\"records\": 300"));
    tare_text_free(json);
    tare_calibration_close(again);
    tare_calibration_close(small);
    tare_calibration_close(calibration);
    REFUSED(tare_model_calibrate(&again, model, &samples, 1, "bathc=2"), TARE_USAGE, "did you mean '--batch'");
    REFUSED(tare_model_calibrate(&again, model, &samples, 1, "signature=\"my own\""), TARE_NOT_FOUND, "'my own'");
    REFUSED(tare_model_calibrate(&again, model, &samples, 1, "signature=\"my own"), TARE_USAGE, "unterminated quote");
    REFUSED(tare_model_calibrate(&again, model, &samples, 0, NULL), TARE_INVALID_ARGUMENT, "there are no files");
    assert_null(again);
    tare_model_close(model);
}

static size_t push_all(tare_calibrator *calibrator) {
    const tare_array *arrays;
    tare_reader *reader;
    size_t count, pushed = 0;
    OK(tare_reader_open(&reader, &samples, 1, NULL));
    for (;; pushed++) {
        OK(tare_reader_next(reader, &arrays, &count));
        if (!arrays) break;
        OK(tare_calibrator_push(calibrator, arrays, count));
    }
    tare_reader_close(reader);
    return pushed;
}

static void calibrator__counts_as_from_a_file(void **state) {
    tare_model *model = open_glyphs(NULL), *a, *b;
    tare_calibration *pushed, *from_file = calibrate(model, NULL), *none;
    tare_calibrator *calibrator;
    tare_array wrong = { .name = "x", .dtype = TARE_FLOAT, .data = &wrong };
    char pb[2][600];
    (void)state;
    OK(tare_calibrator_open(&calibrator, model, "name=pictures threads=2"));
    REFUSED(tare_calibrator_push(calibrator, &wrong, 1), TARE_INVALID_ARGUMENT, "Got: {x}");
    assert_int_equal(push_all(calibrator), 300);
    OK(tare_calibrator_finish(&pushed, calibrator));
    REFUSED(tare_calibrator_finish(&none, calibrator), TARE_INVALID_ARGUMENT, "has given its calibration already");
    REFUSED(
        tare_calibrator_push(
            calibrator, &(tare_array){ .name = "image", .dtype = TARE_FLOAT, .rank = 4, .dims = { 0, 28, 28, 1 } }, 1),
        TARE_INVALID_ARGUMENT, "takes no more samples");
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
    REFUSED(tare_model_write(a, first, 0), TARE_INVALID_ARGUMENT, first);
    OK(tare_model_write(a, first, TARE_OVERWRITE));
    REFUSED(tare_model_write(a, first, 6), TARE_INVALID_ARGUMENT, "flags 0x6");
    tare_model_close(a);
    tare_model_close(b);
    tare_calibration_close(pushed);
    tare_calibration_close(from_file);
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

static void quantize__says_what_is_missing(void **state) {
    tare_model *model = open_glyphs(NULL), *made, *again;
    (void)state;
    REFUSED(tare_model_quantize(&made, model, "static", NULL, NULL), TARE_INVALID_ARGUMENT, "needs a calibration");
    REFUSED(tare_model_quantize(&made, model, "statik", NULL, NULL), TARE_USAGE, "did you mean static");
    REFUSED(tare_model_quantize(&made, model, "weight_only", NULL, "bits=5"), TARE_USAGE, "expected 4 or 8");
    assert_null(made);
    OK(tare_model_quantize(&made, model, "weight_only", NULL, "bits=4 granularity=per_tensor"));
    assert_true(tare_model_weight_size(made) < tare_model_weight_size(model) / 3);
    REFUSED(tare_model_quantize(&again, made, "weight_only", NULL, NULL), TARE_INVALID_ARGUMENT,
            "was made from another");
    tare_model_close(made);
    tare_model_close(model);
}

static void hessians__are_counted_for_gptq(void **state) {
    tare_model *model = open_glyphs(NULL), *made, *plain;
    tare_calibration *with = calibrate(model, "limit=20 hessians"), *without = calibrate(model, "limit=20");
    tare_calibrator *calibrator;
    (void)state;
    OK(tare_model_quantize(&plain, model, "weight_only", without, "bits=4"));
    OK(tare_model_quantize(&made, model, "weight_only", with, "bits=4 passes=gptq"));
    tare_model_close(made);
    REFUSED(tare_model_quantize(&made, model, "weight_only", without, "bits=4 passes=gptq"), TARE_INVALID_ARGUMENT,
            "gptq");
    REFUSED(tare_calibrator_open(&calibrator, model, "hessians"), TARE_UNSUPPORTED, "give files");
    tare_model_close(plain);
    tare_calibration_close(with);
    tare_calibration_close(without);
    tare_model_close(model);
}

struct told {
    int progress, messages;
    int64_t done;
    tare_context *cancel; /* at the first progress */
    char text[512];
};

static void on_progress(void *arg, const char *what, int64_t done, int64_t total) {
    struct told *told = arg;
    told->progress += what != NULL && total >= -1;
    told->done = done;
    if (told->cancel) tare_context_cancel(told->cancel, 1);
}

static void on_message(void *arg, const char *text) {
    struct told *told = arg;
    told->messages++;
    snprintf(told->text, sizeof told->text, "%s", text);
}

static const char tpu[] =
    "tpu_functions { function_alias: \"tpu_func\" } external_feature_configs { quantization_options { } }";

static void convert__gives_model_and_report(void **state) {
    struct told told = { 0 };
    tare_context *context;
    OK(tare_context_open(&context));
    tare_context_on_progress(context, on_progress, &told);
    tare_context_on_message(context, on_message, &told);
    tare_model *model = open_glyphs(context), *made;
    tare_calibration *calibration = calibrate(model, NULL);
    char *report;
    (void)state;
    assert_true(told.progress > 0);
    assert_int_equal(told.done, 300);
    OK(tare_model_convert(&made, &report, model, tpu, calibration, 0));
    assert_non_null(strstr(report, "\"tpu_cost\""));
    assert_int_equal(told.done, 3);
    tare_text_free(report);
    tare_model_close(made);
    REFUSED(tare_model_convert(&made, &report, model, "tpu_function { }", NULL, 0), TARE_INVALID_ARGUMENT,
            "tpu_functions");
    assert_null(report);
    REFUSED(tare_model_convert(&made, NULL, model, "", calibration, 0), TARE_USAGE, "needs quantization_options");
    REFUSED(tare_model_convert(&made, NULL, model, tpu, NULL, 8), TARE_INVALID_ARGUMENT, "flags 0x8");
    REFUSED(tare_model_convert(&made, NULL, model, tpu, NULL, TARE_FIND_FUNCTIONS), TARE_INVALID_ARGUMENT,
            "exclude each other");
    assert_null(made);
    OK(tare_model_convert(&made, NULL, model, "", NULL, TARE_FIND_FUNCTIONS));
    tare_model_close(made);
    tare_calibration_close(calibration);
    tare_model_close(model);
    tare_context_close(context);
}

static void compare__gives_the_figures(void **state) {
    tare_model *model = open_glyphs(NULL);
    tare_calibration *calibration = calibrate(model, "limit=50");
    char *json;
    (void)state;
    OK(tare_model_compare(&json, model, &records, 1, calibration, "methods=static limit=100 depthwise"));
    assert_non_null(strstr(json, "\"records\": 100"));
    assert_non_null(strstr(json, "\"static\""));
    tare_text_free(json);
    REFUSED(tare_model_compare(&json, model, &records, 1, NULL, "methods=static"), TARE_USAGE, "method static needs");
    OK(tare_model_compare(&json, model, &records, 1, NULL, "limit=10")); /* what needs no calibration */
    assert_non_null(strstr(json, "\"weight_only\""));
    assert_non_null(strstr(json, "\"skipped\""));
    tare_text_free(json);
    REFUSED(tare_model_compare(&json, model, &records, 0, NULL, "methods=dynamic"), TARE_INVALID_ARGUMENT, "no files");
    tare_calibration_close(calibration);
    tare_model_close(model);
}

static void cancel__stops_calibration_and_comparison(void **state) {
    struct told told = { 0 };
    tare_context *context;
    OK(tare_context_open(&context));
    tare_model *model = open_glyphs(context);
    tare_calibration *calibration;
    char *json;
    (void)state;
    told.cancel = context;
    tare_context_on_progress(context, on_progress, &told);
    REFUSED(tare_model_calibrate(&calibration, model, &samples, 1, "batch=1"), TARE_INTERRUPTED, "interrupted");
    assert_null(calibration);
    REFUSED(tare_model_compare(&json, model, &records, 1, NULL, "methods=weight_only"), TARE_INTERRUPTED,
            "interrupted");
    told.cancel = NULL;
    tare_context_cancel(context, 0);
    OK(tare_model_calibrate(&calibration, model, &samples, 1, "limit=20"));
    tare_calibration_close(calibration);
    tare_model_close(model);
    tare_context_close(context);
}

static void writer__writes_what_the_reader_reads(void **state) {
    const float values[] = { 1, -2, 3 };
    const tare_text texts[] = { { "a\0b", 3 }, { "", 0 } };
    const tare_array written[] = { { .name = "x", .dtype = TARE_FLOAT, .rank = 1, .dims = { 3 }, .data = values },
                                   { .name = "s", .dtype = TARE_STRING, .rank = 1, .dims = { 2 }, .data = texts } };
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
    OK(tare_reader_open(&reader, paths, 1, NULL));
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
    REFUSED(tare_reader_open(&reader, (const char *const[]){ "/nowhere.tfrecord" }, 1, NULL), TARE_NOT_FOUND,
            "/nowhere.tfrecord");
}

static void *run_many(void *arg) {
    static float pixels[28 * 28];
    const tare_array image = {
        .name = "image", .dtype = TARE_FLOAT, .rank = 4, .dims = { 1, 28, 28, 1 }, .data = pixels
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
        cmocka_unit_test(version__is_that_of_the_header),
        cmocka_unit_test(elements__have_names_and_sizes),
        cmocka_unit_test(model__tells_its_signatures),
        cmocka_unit_test(runner__answers_as_the_trainer_did),
        cmocka_unit_test(runner__says_what_does_not_fit),
        cmocka_unit_test(calibration__survives_its_file_and_describes_itself),
        cmocka_unit_test(calibrator__counts_as_from_a_file),
        cmocka_unit_test(calibrator__may_be_closed_at_any_time),
        cmocka_unit_test(quantize__says_what_is_missing),
        cmocka_unit_test(hessians__are_counted_for_gptq),
        cmocka_unit_test(convert__gives_model_and_report),
        cmocka_unit_test(compare__gives_the_figures),
        cmocka_unit_test(cancel__stops_calibration_and_comparison),
        cmocka_unit_test(writer__writes_what_the_reader_reads),
        cmocka_unit_test(model__serves_runners_on_several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
