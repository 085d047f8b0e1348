/* Every pair of calls that docs/library.md allows on one handle at the same time, each on a handle that nothing has
 * used yet; every call on handles of its own in two threads; and handles that go from thread to thread.
 * scripts/check-threads.sh runs it under ThreadSanitizer. */
#include "include/tare/tare.h"

#include "support/api_check.h"
#include "support/temp.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const samples = GLYPHS "calibration.tfrecord.gz", *const records = GLYPHS "eval.tfrecord.gz";

/* The handles that both threads use. */
struct shared {
    tare_context *context;
    tare_model *model;
    tare_calibration *calibration, *other; /* of the model; of different records */
    tare_comparison *comparison;
};

/* ---- calls: each returns a status and leaves nothing ---- */

static tare_status describe(const struct shared *s, int thread) {
    char *json;
    (void)thread;
    const tare_status status = tare_model_describe(&json, s->model);
    tare_text_free(json);
    return status;
}

static tare_status look(const struct shared *s, int thread) {
    tare_array array;
    (void)thread;
    if (tare_model_signature_count(s->model) != 1 || !tare_model_signature_name(s->model, 0))
        return TARE_ERROR_INTERNAL;
    if (tare_model_input_count(s->model, NULL) != 1 || tare_model_output_count(s->model, NULL) != 1)
        return TARE_ERROR_INTERNAL;
    if (tare_model_weight_size(s->model) < 1) return TARE_ERROR_INTERNAL;
    if (!tare_model_function_argument(s->model, "tpu_func", "image")) return TARE_ERROR_INTERNAL;
    const tare_status status = tare_model_input(&array, s->model, NULL, 0);
    return status == TARE_OK ? tare_model_output(&array, s->model, NULL, 0) : status;
}

static tare_status write_model(const struct shared *s, int thread) {
    char path[4096];
    snprintf(path, sizeof path, "%s/written-%d", temp_folder(), thread);
    return tare_model_write(s->model, path, TARE_WRITE_OVERWRITE);
}

static tare_status run(const struct shared *s, int thread) {
    static const float pixels[28 * 28];
    const tare_array image = {
        .name = "image", .dtype = TARE_DTYPE_FLOAT, .rank = 4, .dims = { 1, 28, 28, 1 }, .data = pixels
    };
    const tare_array *outputs;
    tare_runner *runner;
    size_t count;
    tare_status status = thread ? tare_runner_open(&runner, s->model, NULL)
                                : tare_runner_open_function(&runner, s->model, "tpu_func", &image, 1);
    if (status == TARE_OK) status = tare_runner_run(runner, &image, 1, &outputs, &count);
    tare_runner_close(runner);
    return status;
}

static tare_status calibrate(const struct shared *s, int thread) {
    tare_calibration *calibration;
    (void)thread;
    const tare_status status = tare_model_calibrate(&calibration, s->model, &samples, 1, "limit=4 threads=2");
    tare_calibration_close(calibration);
    return status;
}

static tare_status push(const struct shared *s, int thread) {
    static const float pixels[28 * 28];
    const tare_array image = {
        .name = "image", .dtype = TARE_DTYPE_FLOAT, .rank = 4, .dims = { 1, 28, 28, 1 }, .data = pixels
    };
    tare_calibration *calibration = NULL;
    tare_calibrator *calibrator;
    (void)thread;
    tare_status status = tare_calibrator_open(&calibrator, s->model, "threads=2");
    if (status == TARE_OK) status = tare_calibrator_push(calibrator, &image, 1);
    if (status == TARE_OK) status = tare_calibrator_finish(&calibration, calibrator);
    tare_calibrator_close(calibrator);
    tare_calibration_close(calibration);
    return status;
}

/* The records of a callback: one image, some times. */
struct supply {
    tare_array image;
    int left;
};

static tare_status next_record(void *arg, const tare_array **arrays, size_t *count) {
    struct supply *supply = arg;
    *arrays = supply->left-- > 0 ? &supply->image : NULL;
    *count = 1;
    return TARE_OK;
}

static tare_status calibrate_records(const struct shared *s, int thread) {
    static const float pixels[28 * 28];
    struct supply supply = {
        { .name = "image", .dtype = TARE_DTYPE_FLOAT, .rank = 4, .dims = { 1, 28, 28, 1 }, .data = pixels }, 3
    };
    const tare_records all = { .struct_size = sizeof all, .arg = &supply, .next = next_record };
    tare_calibration *calibration;
    (void)thread;
    const tare_status status = tare_model_calibrate_records(&calibration, s->model, &all, "threads=2");
    tare_calibration_close(calibration);
    return status;
}

static tare_status quantize(const struct shared *s, int thread) {
    tare_model *made;
    char *report = NULL;
    tare_status status = thread ? tare_model_quantize(&made, s->model, "static", s->calibration, NULL)
                                : tare_model_quantize_report(&made, &report, s->model, "static", s->calibration, NULL);
    tare_model_close(made);
    tare_text_free(report);
    return status;
}

static tare_status convert(const struct shared *s, int thread) {
    static const char *const options = "tpu_functions { function_alias: 'tpu_func' }";
    tare_model *made;
    const tare_status status =
        thread ? tare_model_convert(&made, NULL, s->model, options, s->calibration, 0)
               : tare_model_convert_quantized(&made, NULL, s->model, options, s->calibration ? "method=static" : NULL,
                                              s->calibration, 0);
    tare_model_close(made);
    return status;
}

static tare_status compare(const struct shared *s, int thread) {
    static const char *const options = "methods=static limit=2 threads=2";
    const tare_comparison_task task = {
        .struct_size = sizeof task, .paths = &records, .n_paths = 1, .calibration = s->calibration, .options = options
    };
    tare_comparison *comparison;
    tare_status status;
    char *json;
    if (thread) {
        status = tare_comparison_open(&comparison, s->model, &task);
        tare_comparison_close(comparison);
        return status;
    }
    status = tare_model_compare(&json, s->model, &records, 1, s->calibration, options);
    tare_text_free(json);
    return status;
}

static tare_status check(const struct shared *s, int thread) {
    char *json;
    (void)thread;
    const tare_status status = tare_model_check(&json, s->model, "estimate");
    tare_text_free(json);
    return status;
}

static tare_status diff(const struct shared *s, int thread) {
    char *text;
    const tare_status status = tare_model_diff(&text, s->model, s->model, thread ? "html" : NULL);
    tare_text_free(text);
    return status;
}

/* The model has no module to unwrap. */
static tare_status export(const struct shared *s, int thread) {
    char path[4096];
    snprintf(path, sizeof path, "%s/exported-%d", temp_folder(), thread);
    tare_status status = tare_model_export(s->model, path, NULL);
    if (status == TARE_OK) status = tare_model_unwrap(s->model, path, 0);
    return status == TARE_ERROR_NOT_FOUND ? TARE_OK : status;
}

/* The first labelled records. */
static const char *few_records(void) {
    static char path[4096];
    const tare_array *arrays;
    tare_reader *reader;
    tare_writer *writer;
    size_t count;
    if (*path) return path;
    snprintf(path, sizeof path, "%s/few.tfrecord", temp_folder());
    OK(tare_reader_open(&reader, NULL, &records, 1, NULL));
    OK(tare_writer_open(&writer, path));
    for (int i = 0; i < 30; i++) {
        OK(tare_reader_next(reader, &arrays, &count));
        OK(tare_writer_add(writer, arrays, count));
    }
    OK(tare_writer_close(writer));
    tare_reader_close(reader);
    return path;
}

static tare_status make_auto(const struct shared *s, int thread) {
    const char *const data = few_records();
    char path[4096];
    snprintf(path, sizeof path, "%s/auto-%d", temp_folder(), thread);
    return tare_model_auto(NULL, s->model, path, &data, 1, "margin=100 overwrite");
}

static tare_status write_calibration(const struct shared *s, int thread) {
    char path[4096];
    snprintf(path, sizeof path, "%s/written-%d.calib", temp_folder(), thread);
    tare_calibration *opened;
    tare_status status = tare_calibration_write(s->calibration, path);
    if (status == TARE_OK) status = tare_calibration_open(&opened, path);
    if (status == TARE_OK) tare_calibration_close(opened);
    return status;
}

static tare_status report_calibration(const struct shared *s, int thread) {
    char *text;
    (void)thread;
    if (tare_calibration_record_count(s->calibration) < 1) return TARE_ERROR_INTERNAL;
    tare_status status = tare_calibration_describe(&text, s->calibration);
    tare_text_free(text);
    if (status == TARE_OK) status = tare_calibration_report(&text, s->calibration, "html");
    if (status == TARE_OK) tare_text_free(text);
    return status;
}

static tare_status look_at_histogram(const struct shared *s, int thread) {
    tare_calibration_bin *bins;
    size_t count;
    (void)thread;
    const tare_status status =
        tare_calibration_histogram(&bins, &count, s->calibration, "__inference_tpu_func_101", "logits", 0);
    tare_calibration_bins_free(bins);
    return status == TARE_ERROR_NOT_FOUND ? TARE_OK : status;
}

static tare_status copy_calibration(const struct shared *s, int thread) {
    tare_calibration *copy;
    (void)thread;
    const tare_status status = tare_calibration_copy(&copy, s->calibration);
    tare_calibration_close(copy);
    return status;
}

/* The second of two additions finds the records there already. */
static tare_status add(const struct shared *s, int thread) {
    const tare_calibration *const other = s->other;
    const tare_status status =
        thread ? tare_calibration_add(s->calibration, other) : tare_calibration_add_all(s->calibration, &other, 1);
    return status == TARE_ERROR_INVALID_ARGUMENT ? TARE_OK : status;
}

static tare_status report_comparison(const struct shared *s, int thread) {
    tare_status status = TARE_OK;
    (void)thread;
    for (int format = TARE_COMPARISON_JSON; format <= TARE_COMPARISON_NODE_DATA && status == TARE_OK; format++) {
        char *text;
        status = tare_comparison_report(&text, s->comparison, format);
        tare_text_free(text);
    }
    return status;
}

static tare_status open_with_context(const struct shared *s, int thread) {
    tare_model *model;
    tare_reader *reader;
    const tare_array *arrays;
    size_t count;
    tare_status status = thread ? tare_model_open(&model, s->context, GLYPHS "saved_model")
                                : tare_model_open_tagged(&model, s->context, GLYPHS "saved_model", "serve");
    tare_model_close(model);
    if (status == TARE_OK) status = tare_reader_open(&reader, s->context, &records, 1, NULL);
    if (status != TARE_OK) return status;
    status = tare_reader_next(reader, &arrays, &count);
    tare_reader_close(reader);
    return status;
}

static tare_status judge_with_context(const struct shared *s, int thread) {
    static const char *const path = GLYPHS "saved_model";
    char *text;
    const tare_status status =
        thread ? tare_diff(&text, s->context, path, path, NULL) : tare_validate(&text, NULL, s->context, path, NULL);
    tare_text_free(text);
    return status;
}

/* run_pair clears the cancellation again. */
static tare_status cancel(const struct shared *s, int thread) {
    (void)thread;
    tare_context_cancel(s->context, 1);
    return TARE_OK;
}

/* ---- pairs ---- */

struct row {
    const char *name;
    tare_status (*call)(const struct shared *shared, int thread);
};

struct thread {
    const struct row *row;
    const struct shared *shared;
    pthread_barrier_t *barrier;
    int number;
    tare_status status;
    char text[512];
};

static void *work(void *arg) {
    struct thread *thread = arg;
    pthread_barrier_wait(thread->barrier);
    thread->status = thread->row->call(thread->shared, thread->number);
    snprintf(thread->text, sizeof thread->text, "%s", tare_error_text());
    return NULL;
}

static void run_pair(const struct row *a, const struct row *b, const struct shared *shared) {
    pthread_barrier_t barrier;
    struct thread threads[2] = { { a, shared, &barrier, 0, TARE_OK, "" }, { b, shared, &barrier, 1, TARE_OK, "" } };
    pthread_t ids[2];
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, work, &threads[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(ids[i], NULL);
    pthread_barrier_destroy(&barrier);
    const bool cancels = a->call == cancel || b->call == cancel;
    for (int i = 0; i < 2; i++)
        if (threads[i].status != TARE_OK && !(cancels && threads[i].status == TARE_ERROR_INTERRUPTED))
            fail_msg("%s and %s: %s", a->name, b->name, threads[i].text);
    if (cancels) tare_context_cancel(shared->context, 0);
}

/* Calls `renew` for the handles of each pair, and releases them after it. */
static void run_pairs(const struct row *rows, size_t count, const struct shared *base,
                      void (*renew)(struct shared *shared), void (*release)(struct shared *shared)) {
    for (size_t a = 0; a < count; a++)
        for (size_t b = a; b < count; b++) {
            struct shared shared = *base;
            renew(&shared);
            run_pair(&rows[a], &rows[b], &shared);
            release(&shared);
        }
}

static const struct row model_rows[] = {
    { "describe", describe },
    { "look", look },
    { "write", write_model },
    { "run", run },
    { "calibrate", calibrate },
    { "push", push },
    { "records", calibrate_records },
    { "quantize", quantize },
    { "convert", convert },
    { "compare", compare },
    { "check", check },
    { "diff", diff },
    { "export", export },
    { "auto", make_auto },
};
enum { N_MODEL_ROWS = sizeof model_rows / sizeof *model_rows };

static void open_model(struct shared *shared) {
    OK(tare_model_open(&shared->model, shared->context, GLYPHS "saved_model"));
}

static void close_model(struct shared *shared) {
    tare_model_close(shared->model);
}

static tare_calibration *calibrated(const tare_model *model, const char *options) {
    tare_calibration *calibration;
    OK(tare_model_calibrate(&calibration, model, &samples, 1, options));
    return calibration;
}

static void opened_model__every_pair_of_calls(void **state) {
    struct shared shared = { 0 };
    (void)state;
    OK(tare_context_open(&shared.context));
    tare_context_set_threads(shared.context, 2);
    tare_context_allow_missing_variables(shared.context, 1);
    open_model(&shared);
    shared.calibration = calibrated(shared.model, "limit=8");
    close_model(&shared);
    (void)few_records(); /* written before there are threads */
    run_pairs(model_rows, N_MODEL_ROWS, &shared, open_model, close_model);
    tare_calibration_close(shared.calibration);
    tare_context_close(shared.context);
}

/* A model that has no directory yet: the first call that needs one writes it. */
static void make_model(struct shared *shared) {
    tare_model *from;
    OK(tare_model_open(&from, NULL, GLYPHS "saved_model"));
    OK(tare_model_quantize(&shared->model, from, "weight_only", NULL, NULL));
    tare_model_close(from);
}

static void made_model__every_pair_of_calls(void **state) {
    static const struct row rows[] = {
        { "describe", describe }, { "look", look },           { "write", write_model },
        { "run", run },           { "calibrate", calibrate }, { "convert", convert },
        { "check", check },       { "diff", diff },           { "export", export },
    };
    struct shared shared = { 0 };
    (void)state;
    run_pairs(rows, sizeof rows / sizeof *rows, &shared, make_model, close_model);
}

static void renew_calibrations(struct shared *shared) {
    OK(tare_calibration_copy(&shared->calibration, shared->calibration));
    OK(tare_calibration_copy(&shared->other, shared->other));
}

static void close_calibrations(struct shared *shared) {
    tare_calibration_close(shared->calibration);
    tare_calibration_close(shared->other);
}

static void calibration__every_pair_of_calls(void **state) {
    static const struct row rows[] = {
        { "write", write_calibration }, { "report", report_calibration },
        { "copy", copy_calibration },   { "add", add },
        { "quantize", quantize },       { "compare", compare },
        { "convert", convert },         { "histogram", look_at_histogram },
    };
    static const char *const more = GLYPHS "eval.tfrecord.gz";
    struct shared shared = { 0 };
    (void)state;
    open_model(&shared);
    shared.calibration = calibrated(shared.model, "limit=8");
    OK(tare_model_calibrate(&shared.other, shared.model, &more, 1, "limit=3"));
    run_pairs(rows, sizeof rows / sizeof *rows, &shared, renew_calibrations, close_calibrations);
    close_calibrations(&shared);
    close_model(&shared);
}

static void keep(struct shared *shared) {
    (void)shared;
}

static void comparison_and_context__every_pair_of_calls(void **state) {
    static const struct row rows[] = { { "report", report_comparison },
                                       { "open", open_with_context },
                                       { "judge", judge_with_context },
                                       { "calibrate", calibrate },
                                       { "cancel", cancel } };
    const tare_comparison_task task = {
        .struct_size = sizeof task, .paths = &records, .n_paths = 1, .options = "methods=weight_only limit=4"
    };
    struct shared shared = { 0 };
    (void)state;
    OK(tare_context_open(&shared.context));
    open_model(&shared);
    OK(tare_comparison_open(&shared.comparison, shared.model, &task));
    run_pairs(rows, sizeof rows / sizeof *rows, &shared, keep, keep);
    tare_comparison_close(shared.comparison);
    close_model(&shared);
    tare_context_close(shared.context);
}

/* ---- handles of each thread's own ---- */

struct own {
    const tare_calibration *from, *other; /* of the model, to be copied */
    int number;
};

static void count_message(void *arg, enum tare_log_level level, const char *text) {
    (void)level;
    (void)text;
    ++*(int *)arg;
}

static void count_progress(void *arg, const char *what, int64_t done, int64_t total) {
    (void)what;
    (void)done;
    (void)total;
    ++*(int *)arg;
}

static void *call_all(void *arg) {
    const struct own *own = arg;
    struct shared shared = { 0 };
    int messages = 0, steps = 0;
    OK(tare_context_open(&shared.context));
    tare_context_on_log(shared.context, TARE_LOG_DETAIL, count_message, &messages);
    tare_context_on_progress(shared.context, count_progress, &steps);
    OK(tare_calibration_copy(&shared.calibration, own->from));
    OK(tare_calibration_copy(&shared.other, own->other));
    open_model(&shared);
    for (size_t i = 0; i < N_MODEL_ROWS; i++)
        OK(model_rows[i].call(&shared, own->number));
    OK(add(&shared, own->number));
    close_model(&shared);
    tare_calibration_close(shared.calibration);
    tare_calibration_close(shared.other);
    tare_context_close(shared.context);
    assert_true(messages > 0 && steps > 0);
    return NULL;
}

static void own_handles__every_call_in_two_threads(void **state) {
    struct shared base = { 0 };
    struct own own[2];
    pthread_t threads[2];
    (void)state;
    open_model(&base);
    base.calibration = calibrated(base.model, "limit=8");
    OK(tare_model_calibrate(&base.other, base.model, &records, 1, "limit=3"));
    (void)few_records();
    for (int i = 0; i < 2; i++) {
        own[i] = (struct own){ base.calibration, base.other, i };
        assert_int_equal(pthread_create(&threads[i], NULL, call_all, &own[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    close_model(&base);
    tare_calibration_close(base.calibration);
    tare_calibration_close(base.other);
}

/* ---- handles that go from thread to thread ---- */

struct handles {
    tare_context *context;
    tare_model *model;
    tare_runner *runner;
    tare_calibrator *calibrator;
    tare_reader *reader;
    tare_writer *writer;
    tare_outputs *outputs;
    tare_calibration *calibration;
    tare_comparison *comparison;
    const char *written; /* name of a file */
};

static void *open_all(void *arg) {
    const tare_comparison_task task = {
        .struct_size = sizeof task, .paths = &records, .n_paths = 1, .options = "methods=weight_only limit=4"
    };
    struct handles *h = arg;
    OK(tare_context_open(&h->context));
    OK(tare_model_open(&h->model, h->context, GLYPHS "saved_model"));
    OK(tare_runner_open(&h->runner, h->model, NULL));
    OK(tare_calibrator_open(&h->calibrator, h->model, "threads=2"));
    OK(tare_reader_open(&h->reader, h->context, &samples, 1, NULL));
    OK(tare_writer_open(&h->writer, h->written));
    OK(tare_comparison_open(&h->comparison, h->model, &task));
    return NULL;
}

static void *use_all(void *arg) {
    struct handles *h = arg;
    const tare_array *record, *outputs;
    size_t count, n_outputs;
    OK(tare_reader_next(h->reader, &record, &count));
    OK(tare_runner_run(h->runner, record, count, &outputs, &n_outputs));
    OK(tare_calibrator_push(h->calibrator, record, count));
    OK(tare_writer_add(h->writer, record, count));
    char *text;
    OK(tare_comparison_report(&text, h->comparison, TARE_COMPARISON_CSV));
    tare_text_free(text);
    if (!h->outputs) OK(tare_runner_take(&h->outputs, h->runner, &outputs, &n_outputs));
    return NULL;
}

static void *finish_all(void *arg) {
    struct handles *h = arg;
    OK(tare_calibrator_finish(&h->calibration, h->calibrator));
    assert_int_equal(tare_calibration_record_count(h->calibration), 2);
    OK(tare_writer_close(h->writer));
    tare_reader_close(h->reader);
    tare_runner_close(h->runner);
    tare_outputs_close(h->outputs);
    tare_calibrator_close(h->calibrator);
    tare_calibration_close(h->calibration);
    tare_comparison_close(h->comparison);
    tare_model_close(h->model);
    tare_context_close(h->context);
    return NULL;
}

static void handles__go_from_thread_to_thread(void **state) {
    static void *(*const steps[])(void *) = { open_all, use_all, use_all, finish_all };
    struct handles handles[2] = { { .written = temp_path("moved.tfrecord") },
                                  { .written = temp_path("other.tfrecord") } };
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) { /* those of two sets at the same time */
        pthread_t threads[2];
        for (int k = 0; k < 2; k++)
            assert_int_equal(pthread_create(&threads[k], NULL, steps[i], &handles[k]), 0);
        for (int k = 0; k < 2; k++)
            pthread_join(threads[k], NULL);
    }
    assert_non_null(handles[0].calibration); /* all steps were done */
    assert_non_null(handles[1].calibration);
}

/* With an argument, only the tests whose names match it: under ThreadSanitizer each takes minutes. */
int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opened_model__every_pair_of_calls),
        cmocka_unit_test(made_model__every_pair_of_calls),
        cmocka_unit_test(calibration__every_pair_of_calls),
        cmocka_unit_test(comparison_and_context__every_pair_of_calls),
        cmocka_unit_test(own_handles__every_call_in_two_threads),
        cmocka_unit_test(handles__go_from_thread_to_thread),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    temp_folder(); /* by one thread */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
