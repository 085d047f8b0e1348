/* Promises of the headers that concern every call: arguments that fit nothing are errors with a text and NULL results,
 * callbacks come one at a time, flags and error texts are the thread's own. */
#include "include/tare/tare.h"

#include "support/api_check.h"
#include "support/temp.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const samples = GLYPHS "calibration.tfrecord.gz";
static float pixels[28 * 28];
static const tare_array image = {
    .name = "image", .dtype = TARE_DTYPE_FLOAT, .rank = 4, .dims = { 1, 28, 28, 1 }, .data = pixels
};

static tare_model *open_glyphs(tare_context *context) {
    tare_model *model;
    OK(tare_model_open(&model, context, GLYPHS "saved_model"));
    return model;
}

/* ---- arguments ---- */

static void arrays__that_fit_nothing_are_refused(void **state) {
    static const tare_text no_text = { NULL, 5 };
    const struct {
        tare_array array;
        tare_status status;
        const char *text;
    } cases[] = {
        { { .name = "image", .dtype = 1, .rank = 13, .data = pixels }, TARE_ERROR_SHAPE, "rank 13" },
        { { .name = "image", .dtype = 1, .rank = -1, .data = pixels }, TARE_ERROR_SHAPE, "got -1" },
        { { .name = "image", .dtype = 1, .rank = 1, .dims = { -1 }, .data = pixels }, TARE_ERROR_SHAPE, "not known" },
        { { .name = "image", .dtype = 1, .rank = 2, .dims = { INT64_MAX, 2 }, .data = pixels },
          TARE_ERROR_SHAPE,
          "too many elements" },
        { { .name = "image", .dtype = 1, .rank = 1, .dims = { 1 } }, TARE_ERROR_INVALID_ARGUMENT, "data is NULL" },
        { { .dtype = 1, .data = pixels }, TARE_ERROR_INVALID_ARGUMENT, "has no name" },
        { { .name = "image", .dtype = -5, .data = pixels }, TARE_ERROR_TYPE, "dtype -5" },
        { { .name = "image", .dtype = TARE_DTYPE_RESOURCE, .data = pixels }, TARE_ERROR_TYPE, "resource" },
        { { .name = "image", .dtype = 101, .data = pixels }, TARE_ERROR_TYPE, "float32_ref" },
        { { .name = "image", .dtype = 1, .data = (const char *)pixels + 1 }, TARE_ERROR_INVALID_ARGUMENT, "aligned" },
        { { .name = "image", .dtype = 1, .data = pixels, .reserved = { 0, 0, 0, 1 } },
          TARE_ERROR_INVALID_ARGUMENT,
          "reserved" },
        { { .name = "image", .dtype = TARE_DTYPE_STRING, .data = &no_text }, TARE_ERROR_INVALID_ARGUMENT, "5 bytes" },
    };
    tare_model *model = open_glyphs(NULL);
    const tare_array *outputs = &image;
    tare_writer *writer;
    tare_runner *runner;
    size_t count = 1;
    (void)state;
    OK(tare_runner_open(&runner, model, NULL));
    OK(tare_writer_open(&writer, temp_path("refused.tfrecord")));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        REFUSED(tare_runner_run(runner, &cases[i].array, 1, &outputs, &count), cases[i].status, cases[i].text);
        assert_null(outputs);
        assert_int_equal(count, 0);
        if (strcmp(cases[i].text, "aligned") == 0) continue; /* is copied */
        REFUSED(tare_writer_add(writer, &cases[i].array, 1), cases[i].status, cases[i].text);
    }
    REFUSED(tare_runner_run(runner, NULL, 0, &outputs, &count), TARE_ERROR_INVALID_ARGUMENT, "image");
    OK(tare_runner_run(runner, &image, 1, &outputs, &count)); /* a refusal does no harm */
    assert_string_equal(tare_error_text(), "");
    tare_runner_close(runner);
    tare_writer_discard(writer);
    tare_model_close(model);
}

static void arrays__may_be_empty(void **state) {
    const tare_array none = { .name = "image", .dtype = TARE_DTYPE_FLOAT, .rank = 4, .dims = { 0, 28, 28, 1 } };
    tare_model *model = open_glyphs(NULL);
    const tare_array *outputs;
    tare_runner *runner;
    size_t count;
    (void)state;
    OK(tare_runner_open(&runner, model, NULL));
    OK(tare_runner_run(runner, &none, 1, &outputs, &count));
    assert_int_equal(outputs[0].dims[0], 0);
    assert_int_equal(outputs[0].dims[1], 10);
    tare_runner_close(runner);
    tare_model_close(model);
}

static void names__that_are_empty_are_refused_before_the_work(void **state) {
    char before[4096], *text;
    tare_model *model = open_glyphs(NULL), *other;
    tare_context *context;
    tare_writer *writer;
    tare_runner *runner;
    tare_reader *reader;
    struct stat unused;
    (void)state;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(temp_folder()), 0); /* files beside "" would be here */
    OK(tare_context_open(&context));
    REFUSED(tare_model_open(&other, NULL, ""), TARE_ERROR_NOT_FOUND, "no such directory");
    assert_null(other);
    REFUSED(tare_model_write(model, "", 0), TARE_ERROR_INVALID_ARGUMENT, "empty name");
    REFUSED(tare_model_export(model, "", NULL), TARE_ERROR_INVALID_ARGUMENT, "empty name");
    REFUSED(tare_model_auto(NULL, model, "", &samples, 1, NULL), TARE_ERROR_INVALID_ARGUMENT, "empty name");
    assert_int_not_equal(stat(".html", &unused), 0);
    REFUSED(tare_writer_open(&writer, ""), TARE_ERROR_INVALID_ARGUMENT, "empty name");
    assert_null(writer);
    REFUSED(tare_runner_open(&runner, model, ""), TARE_ERROR_NOT_FOUND, "there is no signature ''");
    REFUSED(tare_runner_open_function(&runner, model, "", NULL, 0), TARE_ERROR_NOT_FOUND, "there is no function ''");
    REFUSED(tare_reader_open(&reader, context, NULL, 0, NULL), TARE_ERROR_NOT_FOUND, "no data files");
    REFUSED(tare_context_add_plugin(context, ""), TARE_ERROR_IO, "plugin");
    REFUSED(tare_validate(&text, NULL, context, "", NULL), TARE_ERROR_NOT_FOUND, "no such directory");
    assert_null(text);
    tare_context_close(context);
    tare_model_close(model);
    assert_int_equal(chdir(before), 0);
}

/* The text of an error stays one readable line, however long the options are. */
static void options__that_are_huge_are_refused(void **state) {
    enum { SIZE = 1 << 20 };
    char *options = malloc(SIZE);
    tare_model *model = open_glyphs(NULL);
    tare_calibration *calibration;
    (void)state;
    assert_non_null(options);
    memset(options, '"', SIZE - 1);
    options[SIZE - 1] = '\0';
    REFUSED(tare_model_calibrate(&calibration, model, &samples, 1, options), TARE_ERROR_USAGE, "unterminated quote");
    assert_true(strlen(tare_error_text()) < 200);
    memset(options, 'x', SIZE - 1);
    REFUSED(tare_model_calibrate(&calibration, model, &samples, 1, options), TARE_ERROR_USAGE, "unknown option");
    for (size_t i = 1; i + 1 < SIZE; i += 2)
        options[i] = ' ';
    REFUSED(tare_model_calibrate(&calibration, model, &samples, 1, options), TARE_ERROR_USAGE, "more than 127");
    assert_null(calibration);
    free(options);
    tare_model_close(model);
}

/* ---- threads ---- */

struct progress {
    atomic_int inside, most, calls;
};

static void count_progress(void *arg, const char *what, int64_t done, int64_t total) {
    struct progress *p = arg;
    const int now = atomic_fetch_add(&p->inside, 1) + 1;
    (void)what;
    (void)done;
    (void)total;
    if (now > atomic_load(&p->most)) atomic_store(&p->most, now);
    atomic_fetch_add(&p->calls, 1);
    usleep(20000); /* long enough for another one to begin */
    atomic_fetch_sub(&p->inside, 1);
}

static void *calibrate_twice(void *arg) {
    for (int i = 0; i < 2; i++) {
        tare_calibration *calibration;
        OK(tare_model_calibrate(&calibration, arg, &samples, 1, "limit=40 threads=2"));
        tare_calibration_close(calibration);
    }
    return NULL;
}

static void progress__of_several_calls_comes_one_at_a_time(void **state) {
    struct progress progress = { 0 };
    tare_context *context;
    tare_model *model;
    pthread_t threads[3];
    (void)state;
    OK(tare_context_open(&context));
    tare_context_on_progress(context, count_progress, &progress);
    model = open_glyphs(context);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, calibrate_twice, model), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_true(atomic_load(&progress.calls) >= 6);
    assert_int_equal(atomic_load(&progress.most), 1);
    tare_model_close(model);
    tare_context_close(context);
}

/* A flag of the caller has no reason: any value but 0 is an interruption. */
static void flag__of_any_value_interrupts(void **state) {
    static const int values[] = { 1, 2, 3, -1 };
    volatile sig_atomic_t flag = 0;
    tare_model *model = open_glyphs(NULL);
    tare_calibration *calibration;
    (void)state;
    tare_thread_cancel_by(&flag);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        flag = values[i];
        REFUSED(tare_model_calibrate(&calibration, model, &samples, 1, NULL), TARE_ERROR_INTERRUPTED, "interrupted");
    }
    flag = 0;
    OK(tare_model_calibrate(&calibration, model, &samples, 1, "limit=4"));
    tare_calibration_close(calibration);
    tare_thread_cancel_by(NULL);
    tare_model_close(model);
}

static void *fail_often(void *arg) {
    tare_model *model;
    const char *name = arg;
    for (int i = 0; i < 200; i++)
        REFUSED(tare_model_open(&model, NULL, name), TARE_ERROR_NOT_FOUND, name);
    return NULL;
}

static void error_text__is_the_threads_own(void **state) {
    static char *const names[] = { "/nowhere/one", "/nowhere/two" };
    pthread_t threads[2];
    tare_model *model;
    (void)state;
    REFUSED(tare_model_open(&model, NULL, "/nowhere/three"), TARE_ERROR_NOT_FOUND, "three");
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fail_often, names[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_non_null(strstr(tare_error_text(), "three"));
    model = open_glyphs(NULL);
    assert_string_equal(tare_error_text(), ""); /* after success */
    tare_model_close(model);
}

/* ---- callbacks ---- */

struct nested {
    tare_model *model;
    int messages;
};

static void describe_again(void *arg, enum tare_log_level level, const char *text) {
    struct nested *nested = arg;
    char *json;
    assert_true(level <= TARE_LOG_DETAIL && *text && !strchr(text, '\n'));
    OK(tare_model_describe(&json, nested->model));
    tare_text_free(json);
    nested->messages++;
}

static void log__may_call_the_library(void **state) {
    struct nested nested = { 0 };
    tare_context *context;
    (void)state;
    OK(tare_context_open(&context));
    tare_context_on_log(context, TARE_LOG_DETAIL, describe_again, &nested);
    nested.model = open_glyphs(context);
    OK(tare_model_export(nested.model, temp_path("logged.mlirbc"), NULL));
    assert_true(nested.messages > 0);
    tare_model_close(nested.model);
    tare_context_close(context);
}

/* ---- reports ---- */

static size_t occurrences(const char *text, const char *of) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, of)); at++)
        count++;
    return count;
}

static void text_report__has_each_table_once(void **state) {
    static const char *const records = GLYPHS "eval.tfrecord.gz";
    const tare_comparison_task task = { .struct_size = sizeof task,
                                        .paths = &records,
                                        .n_paths = 1,
                                        .options = "methods=dynamic sensitivity sensitivity-limit=4 limit=4" };
    tare_model *model = open_glyphs(NULL);
    tare_comparison *comparison;
    char *text;
    (void)state;
    OK(tare_comparison_open(&comparison, model, &task));
    OK(tare_comparison_report(&text, comparison, TARE_COMPARISON_TEXT));
    assert_int_equal(occurrences(text, "sensitivity to dynamic"), 1);
    assert_int_equal(occurrences(text, "all but it"), 1);
    tare_text_free(text);
    tare_comparison_close(comparison);
    tare_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays__that_fit_nothing_are_refused),
        cmocka_unit_test(arrays__may_be_empty),
        cmocka_unit_test(names__that_are_empty_are_refused_before_the_work),
        cmocka_unit_test(options__that_are_huge_are_refused),
        cmocka_unit_test(progress__of_several_calls_comes_one_at_a_time),
        cmocka_unit_test(flag__of_any_value_interrupts),
        cmocka_unit_test(error_text__is_the_threads_own),
        cmocka_unit_test(log__may_call_the_library),
        cmocka_unit_test(text_report__has_each_table_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
