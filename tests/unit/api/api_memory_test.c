/* Records, metrics and reports in the caller's memory: what programs pass to libtare instead of files, and receive
 * instead of files. The expectations are the results of the same work on files. */
#include "include/tare/tare.h"

#include "support/api_check.h"
#include "support/temp.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const samples = GLYPHS "calibration.tfrecord.gz", *const labelled = GLYPHS "eval.tfrecord.gz";

static tare_model *open_glyphs(void) {
    tare_model *model;
    OK(tare_model_open(&model, NULL, GLYPHS "saved_model"));
    return model;
}

/* A callback that reads a file, up to `limit` records, and fails at record `fail_at`. */
struct source {
    tare_reader *reader;
    int64_t given, limit, fail_at;
};

static struct source open_source(const char *path, int64_t limit) {
    struct source source = { .limit = limit, .fail_at = -1 };
    OK(tare_reader_open(&source.reader, NULL, &path, 1, NULL));
    return source;
}

static tare_status next(void *arg, const tare_array **arrays, size_t *count) {
    struct source *source = arg;
    if (source->given == source->fail_at) return TARE_ERROR_IO;
    if (source->given++ == source->limit) return TARE_OK;
    return tare_reader_next(source->reader, arrays, count);
}

static tare_records records_of(struct source *source) {
    return (tare_records){ .struct_size = sizeof(tare_records), .name = "pictures", .arg = source, .next = next };
}

static size_t entries(const char *folder) {
    DIR *directory = opendir(folder);
    size_t count = 0;
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count - 2;
}

/* Temporary files of the library go to an own folder, which must be empty afterwards. */
static const char *own_temporary_folder(void) {
    const char *folder = temp_path("tmp");
    char command[700];
    snprintf(command, sizeof command, "mkdir -p '%s'", folder);
    assert_int_equal(system(command), 0);
    setenv("TMPDIR", folder, 1);
    return folder;
}

/* ---- calibration ---- */

/* The tensors of a calibration's report: everything but the name of the data. */
static char *tensors_of(const tare_calibration *calibration, const char *options) {
    char *text, *tensors;
    OK(tare_calibration_report(&text, calibration, options));
    const char *at = strstr(text, "\"algorithms\"");
    assert_non_null(at);
    tensors = strdup(at);
    tare_text_free(text);
    return tensors;
}

static void calibrate_records__equals_calibration_of_the_file(void **state) {
    tare_model *model = open_glyphs();
    struct source source = open_source(samples, 100);
    const tare_records records = records_of(&source);
    tare_calibration *from_records, *from_file;
    (void)state;
    OK(tare_model_calibrate_records(&from_records, model, &records, "threads=2"));
    OK(tare_model_calibrate(&from_file, model, &samples, 1, "limit=100"));
    assert_int_equal(tare_calibration_record_count(from_records), 100);
    char *a = tensors_of(from_records, "algorithms=mse"), *b = tensors_of(from_file, "algorithms=mse");
    assert_string_equal(a, b);
    free(a);
    free(b);
    tare_calibration_close(from_records);
    tare_calibration_close(from_file);
    tare_reader_close(source.reader);
    tare_model_close(model);
}

static void calibrate_records__with_hessians_leaves_no_temporary_file(void **state) {
    const char *folder = own_temporary_folder();
    tare_model *model = open_glyphs(), *quantized;
    struct source source = open_source(samples, 60);
    const tare_records records = records_of(&source);
    tare_calibration *calibration;
    (void)state;
    OK(tare_model_calibrate_records(&calibration, model, &records, "hessians"));
    assert_int_equal(entries(folder), 0);
    OK(tare_model_quantize(&quantized, model, "static", calibration, "passes=gptq")); /* needs the Hessians */
    tare_model_close(quantized);
    tare_calibration_close(calibration);
    tare_reader_close(source.reader);
    tare_model_close(model);
}

static void calibrate_records__of_a_function_equals_that_of_the_file(void **state) {
    const char *folder = own_temporary_folder();
    tare_model *model = open_glyphs();
    struct source source = open_source(samples, 20);
    const tare_records records = records_of(&source);
    tare_calibration *from_records, *from_file;
    (void)state;
    OK(tare_model_calibrate_records(&from_records, model, &records, "function=tpu_func"));
    OK(tare_model_calibrate(&from_file, model, &samples, 1, "function=tpu_func limit=20"));
    assert_int_equal(entries(folder), 0);
    char *a = tensors_of(from_records, NULL), *b = tensors_of(from_file, NULL);
    assert_string_equal(a, b);
    free(a);
    free(b);
    tare_calibration_close(from_records);
    tare_calibration_close(from_file);
    REFUSED(tare_model_calibrate_records(&from_records, model, &records, "function=tpu_func state=s"), TARE_ERROR_USAGE,
            "state and function exclude each other");
    tare_reader_close(source.reader);
    tare_model_close(model);
}

/* Two images; the second has a wrong shape. */
static tare_status next_misshapen(void *arg, const tare_array **arrays, size_t *count) {
    static const float pixels[28 * 28] = { 0 };
    static tare_array image = { .name = "image", .dtype = TARE_DTYPE_FLOAT, .rank = 4, .data = pixels };
    int *given = arg;
    const int64_t dims[] = { 1, 28, *given == 1 ? 27 : 28, 1 };
    memcpy(image.dims, dims, sizeof dims);
    *arrays = (*given)++ < 2 ? &image : NULL;
    *count = 1;
    return TARE_OK;
}

static void records__have_their_name_in_errors(void **state) {
    const char *folder = own_temporary_folder();
    tare_model *model = open_glyphs();
    tare_calibration *calibration;
    tare_comparison *comparison;
    int given = 0;
    tare_records records = { .struct_size = sizeof records, .name = "pictures", .arg = &given, .next = next_misshapen };
    tare_comparison_task task = { .struct_size = sizeof task, .records = &records, .options = "methods=weight_only" };
    (void)state;
    REFUSED(tare_model_calibrate_records(&calibration, model, &records, "hessians"), TARE_ERROR_SHAPE,
            "pictures: record 1: input image: expected shape");
    assert_null(strstr(tare_error_text(), folder));
    given = 0;
    REFUSED(tare_model_calibrate_records(&calibration, model, &records, "hessians name=mine"), TARE_ERROR_SHAPE,
            "mine: record 1: input image: expected shape");
    given = 0;
    REFUSED(tare_comparison_open(&comparison, model, &task), TARE_ERROR_SHAPE,
            "pictures: record 1: input image: expected shape");
    assert_null(strstr(tare_error_text(), folder));
    given = 0;
    task = (tare_comparison_task){ .struct_size = sizeof task,
                                   .paths = &labelled,
                                   .n_paths = 1,
                                   .sample_records = &records,
                                   .options = "methods=static" };
    REFUSED(tare_comparison_open(&comparison, model, &task), TARE_ERROR_SHAPE,
            "pictures: record 1: input image: expected shape");
    assert_null(strstr(tare_error_text(), folder));
    records.name = "\"";
    REFUSED(tare_model_calibrate_records(&calibration, model, &records, NULL), TARE_ERROR_INVALID_ARGUMENT,
            "the name may not contain a double quote");
    tare_model_close(model);
}

/* So that the same records are not added twice. */
static void records__have_their_name_in_calibrations(void **state) {
    static const char *const options[] = { "channels", "hessians", "name=mine channels", "name=mine hessians" };
    tare_calibration *calibrations[4];
    tare_model *model = open_glyphs();
    char *text;
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct source source = open_source(samples, 5);
        const tare_records records = records_of(&source);
        OK(tare_model_calibrate_records(&calibrations[i], model, &records, options[i]));
        OK(tare_calibration_describe(&text, calibrations[i]));
        assert_non_null(strstr(text, i < 2 ? "\"file\": \"pictures\"" : "\"file\": \"mine\""));
        tare_text_free(text);
        tare_reader_close(source.reader);
    }
    REFUSED(tare_calibration_add(calibrations[0], calibrations[1]), TARE_ERROR_INVALID_ARGUMENT,
            "record 0 of 'pictures' is in both");
    OK(tare_calibration_add(calibrations[0], calibrations[3]));
    for (int i = 0; i < 4; i++)
        tare_calibration_close(calibrations[i]);
    tare_model_close(model);
}

static void calibrate_records__reports_failures_of_the_callback(void **state) {
    const char *folder = own_temporary_folder();
    tare_model *model = open_glyphs();
    struct source source = open_source(samples, 100);
    tare_records records = records_of(&source);
    tare_calibration *calibration;
    (void)state;
    source.fail_at = 5;
    REFUSED(tare_model_calibrate_records(&calibration, model, &records, NULL), TARE_ERROR_IO,
            "record 5: the callback failed");
    assert_null(calibration);
    REFUSED(tare_model_calibrate_records(&calibration, model, &records, "hessians"), TARE_ERROR_IO, "record 0");
    assert_int_equal(entries(folder), 0);
    source.fail_at = -1;
    source.limit = source.given;
    REFUSED(tare_model_calibrate_records(&calibration, model, &records, NULL), TARE_ERROR_INVALID_ARGUMENT, "");
    records.struct_size = 8;
    REFUSED(tare_model_calibrate_records(&calibration, model, &records, NULL), TARE_ERROR_INVALID_ARGUMENT,
            "tare_records: struct_size is 8");
    records = records_of(&source);
    records.next = NULL;
    REFUSED(tare_model_calibrate_records(&calibration, model, &records, NULL), TARE_ERROR_INVALID_ARGUMENT,
            "tare_records: next must be set");
    records = records_of(&source);
    records.reserved[2] = 1;
    REFUSED(tare_model_calibrate_records(&calibration, model, &records, NULL), TARE_ERROR_INVALID_ARGUMENT,
            "reserved member 2");
    tare_reader_close(source.reader);
    tare_model_close(model);
}

static void histogram__counts_the_finite_values(void **state) {
    tare_model *model = open_glyphs();
    tare_calibration *calibration;
    tare_calibration_bin *bins;
    size_t count;
    int64_t total = 0;
    char *text;
    (void)state;
    OK(tare_model_calibrate(&calibration, model, &samples, 1, "limit=10"));
    OK(tare_calibration_histogram(&bins, &count, calibration, "__inference_tpu_func_101", "image", 0));
    assert_true(count > 1);
    for (size_t i = 0; i < count; i++) {
        total += bins[i].count;
        assert_true(bins[i].low <= bins[i].high && bins[i].count > 0);
        if (i) assert_true(bins[i - 1].high < bins[i].low);
    }
    assert_int_equal(total, 10 * 28 * 28);
    tare_calibration_bins_free(bins);
    REFUSED(tare_calibration_histogram(&bins, &count, calibration, NULL, "nothing", 0), TARE_ERROR_NOT_FOUND,
            "tensor nothing:0 was not observed");
    assert_null(bins);
    OK(tare_calibration_report(&text, calibration, "html algorithms=mse"));
    assert_non_null(strstr(text, "<svg"));
    tare_text_free(text);
    REFUSED(tare_calibration_report(&text, calibration, "algorithms=best"), TARE_ERROR_USAGE, "best");
    REFUSED(tare_calibration_report(&text, calibration, "tensor=("), TARE_ERROR_USAGE, "");
    tare_calibration_close(calibration);
    tare_model_close(model);
}

static void state__is_kept_by_a_failing_call_and_continued_by_the_next(void **state) {
    tare_model *model = open_glyphs();
    struct source source = open_source(samples, 100);
    tare_records records = records_of(&source);
    tare_calibration *calibration, *expected, *refused;
    char options[700];
    (void)state;
    snprintf(options, sizeof options, "state=\"%s\" threads=1", temp_path("a.state"));
    source.fail_at = 60;
    REFUSED(tare_model_calibrate_records(&calibration, model, &records, options), TARE_ERROR_IO, "record 60");
    OK(tare_calibration_open(&calibration, temp_path("a.state")));
    assert_int_equal(tare_calibration_record_count(calibration), 60);
    tare_calibration_close(calibration);
    tare_reader_close(source.reader);
    source = open_source(samples, 100);
    OK(tare_model_calibrate_records(&calibration, model, &records, options));
    assert_int_equal(tare_calibration_record_count(calibration), 100);
    OK(tare_model_calibrate(&expected, model, &samples, 1, "limit=100"));
    char *a = tensors_of(calibration, "algorithms=mse"), *b = tensors_of(expected, "algorithms=mse");
    assert_string_equal(a, b);
    free(a);
    free(b);
    assert_int_equal(access(temp_path("a.state"), F_OK), -1);
    REFUSED(tare_model_calibrate(&refused, model, &samples, 1, "hessians state=x"), TARE_ERROR_USAGE, "exclude");
    assert_null(refused);
    tare_calibration_close(calibration);
    tare_calibration_close(expected);
    tare_reader_close(source.reader);
    tare_model_close(model);
}

/* ---- comparison ---- */

/* The figure after the n-th occurrence of a key. */
static double figure(const char *json, const char *key, int n) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    for (; (json = strstr(json, quoted)); n--) {
        json += strlen(quoted);
        if (!n) return strtod(json, NULL);
    }
    fail_msg("no %s", quoted);
    return 0;
}

/* Share of the records whose largest output is the label. */
struct hits {
    int64_t right, records, models;
    bool fails;
};

static tare_status begin_hits(void *arg) {
    struct hits *hits = arg;
    hits->right = hits->records = 0;
    hits->models++;
    return TARE_OK;
}

static tare_status add_hit(void *arg, const tare_array *outputs, size_t n_outputs, const tare_array *record,
                           size_t n_record) {
    struct hits *hits = arg;
    const float *p = outputs[0].data;
    int64_t best = 0;
    if (hits->fails) return TARE_ERROR_TYPE;
    if (n_outputs != 1 || strcmp(outputs[0].name, "probabilities") != 0) return TARE_ERROR_INTERNAL;
    for (int64_t i = 1; i < 10; i++)
        if (p[i] > p[best]) best = i;
    for (size_t i = 0; i < n_record; i++)
        if (strcmp(record[i].name, "label") == 0) hits->right += *(const int64_t *)record[i].data == best;
    hits->records++;
    return TARE_OK;
}

static tare_status end_hits(void *arg, double *value) {
    const struct hits *hits = arg;
    *value = (double)hits->right / (double)hits->records;
    return TARE_OK;
}

static tare_metric metric_of(struct hits *hits) {
    return (tare_metric){ .struct_size = sizeof(tare_metric),
                          .name = "hits",
                          .arg = hits,
                          .begin = begin_hits,
                          .record = add_hit,
                          .end = end_hits };
}

static void comparison__of_records_equals_that_of_the_file(void **state) {
    const char *folder = own_temporary_folder();
    tare_model *model = open_glyphs();
    struct source source = open_source(labelled, 80);
    const tare_records records = records_of(&source);
    tare_comparison_task task = { .struct_size = sizeof task,
                                  .records = &records,
                                  .options = "methods=weight_only,dynamic threads=2" };
    tare_comparison *comparison;
    char *json, *expected, *text;
    (void)state;
    OK(tare_comparison_open(&comparison, model, &task));
    assert_int_equal(entries(folder), 0);
    OK(tare_comparison_report(&json, comparison, TARE_COMPARISON_JSON));
    OK(tare_model_compare(&expected, model, &labelled, 1, NULL, "methods=weight_only,dynamic limit=80"));
    assert_non_null(strstr(json, "\"data\": \"pictures\""));
    for (int i = 0; i < 3; i++)
        assert_true(figure(json, "top1", i) == figure(expected, "top1", i));
    assert_non_null(strstr(json, "\"measure\": {\n    \"name\": \"top1\""));
    tare_text_free(json);
    tare_text_free(expected);
    OK(tare_comparison_report(&text, comparison, TARE_COMPARISON_HTML));
    assert_non_null(strstr(text, "<svg"));
    tare_text_free(text);
    OK(tare_comparison_report(&text, comparison, TARE_COMPARISON_CSV));
    assert_non_null(strstr(text, "probabilities,weight_only"));
    tare_text_free(text);
    OK(tare_comparison_report(&text, comparison, TARE_COMPARISON_TEXT));
    assert_non_null(strstr(text, "No model is recommended: "));
    tare_text_free(text);
    REFUSED(tare_comparison_report(&text, comparison, 9), TARE_ERROR_INVALID_ARGUMENT, "unknown format 9");
    assert_null(text);
    tare_comparison_close(comparison);
    tare_reader_close(source.reader);
    tare_model_close(model);
}

static void comparison__calibrates_with_records_as_with_their_file(void **state) {
    static const char options[] = "methods=static auto limit=20";
    const char *folder = own_temporary_folder();
    tare_model *model = open_glyphs();
    struct source source = open_source(samples, 300);
    const tare_records records = records_of(&source);
    tare_comparison_task task = {
        .struct_size = sizeof task, .paths = &labelled, .n_paths = 1, .sample_records = &records, .options = options
    };
    tare_comparison *comparison;
    char *json, *expected;
    (void)state;
    OK(tare_comparison_open(&comparison, model, &task));
    assert_int_equal(entries(folder), 0);
    OK(tare_comparison_report(&json, comparison, TARE_COMPARISON_JSON));
    tare_comparison_close(comparison);
    task.sample_records = NULL;
    task.samples = &samples;
    task.n_samples = 1;
    OK(tare_comparison_open(&comparison, model, &task));
    OK(tare_comparison_report(&expected, comparison, TARE_COMPARISON_JSON));
    for (int i = 0; i < 2; i++)
        assert_true(figure(json, "sqnr_db", i) == figure(expected, "sqnr_db", i));
    assert_non_null(strstr(json, "\"calibration samples\": \"pictures\""));
    assert_non_null(strstr(json, "OUT --data SAMPLES --method static"));
    assert_null(strstr(json, folder));
    tare_text_free(json);
    tare_text_free(expected);
    tare_comparison_close(comparison);
    tare_reader_close(source.reader);
    tare_model_close(model);
}

static void comparison__ranks_by_the_metric_of_the_caller(void **state) {
    tare_model *model = open_glyphs();
    struct hits hits = { 0 };
    tare_metric metric = metric_of(&hits);
    tare_comparison_task task = { .struct_size = sizeof task,
                                  .paths = &labelled,
                                  .n_paths = 1,
                                  .metric = &metric,
                                  .options = "methods=weight_only limit=50 threads=2" };
    tare_comparison *comparison;
    char name[] = "hits", *text;
    (void)state;
    metric.name = name;
    OK(tare_comparison_open(&comparison, model, &task));
    memset(name, 'x', sizeof name - 1); /* borrowed for the call only */
    metric.name = "hits";
    assert_int_equal(hits.models, 2); /* float and weight_only */
    assert_int_equal(hits.records, 50);
    OK(tare_comparison_report(&text, comparison, TARE_COMPARISON_JSON));
    assert_non_null(strstr(text, "\"name\": \"hits\""));
    assert_true(fabs(figure(text, "value", 0) - figure(text, "top1", 0)) < 1e-12);
    assert_true(fabs(figure(text, "value", 1) - figure(text, "top1", 1)) < 1e-12);
    tare_text_free(text);
    OK(tare_comparison_report(&text, comparison, TARE_COMPARISON_HTML));
    assert_non_null(strstr(text, "hits"));
    tare_text_free(text);
    tare_comparison_close(comparison);
    hits.fails = true;
    REFUSED(tare_comparison_open(&comparison, model, &task), TARE_ERROR_TYPE, "metric hits: the callback failed");
    assert_null(comparison);
    metric.record = NULL;
    REFUSED(tare_comparison_open(&comparison, model, &task), TARE_ERROR_INVALID_ARGUMENT, "must be set");
    tare_model_close(model);
}

static void comparison__refuses_tasks_that_do_not_fit(void **state) {
    tare_model *model = open_glyphs();
    struct source source = open_source(labelled, 5);
    const tare_records records = records_of(&source);
    tare_comparison_task task = { .struct_size = 1 };
    tare_calibration *calibration;
    tare_comparison *comparison;
    (void)state;
    REFUSED(tare_comparison_open(&comparison, model, &task), TARE_ERROR_INVALID_ARGUMENT, "struct_size is 1");
    task = (tare_comparison_task){ .struct_size = sizeof task };
    REFUSED(tare_comparison_open(&comparison, model, &task), TARE_ERROR_INVALID_ARGUMENT, "no data files");
    task.paths = &labelled;
    task.n_paths = 1;
    task.records = &records;
    REFUSED(tare_comparison_open(&comparison, model, &task), TARE_ERROR_INVALID_ARGUMENT, "exclude each other");
    task.records = NULL;
    task.samples = &samples;
    task.n_samples = 1;
    task.sample_records = &records;
    REFUSED(tare_comparison_open(&comparison, model, &task), TARE_ERROR_INVALID_ARGUMENT, "exclude each other");
    task.sample_records = NULL;
    OK(tare_model_calibrate(&calibration, model, &samples, 1, "limit=5"));
    task.calibration = calibration;
    REFUSED(tare_comparison_open(&comparison, model, &task), TARE_ERROR_INVALID_ARGUMENT, "a calibration and samples");
    tare_calibration_close(calibration);
    tare_reader_close(source.reader);
    tare_model_close(model);
}

/* ---- models and runners ---- */

static void report__lists_the_layers(void **state) {
    tare_model *model = open_glyphs(), *quantized;
    char *text;
    (void)state;
    OK(tare_model_quantize_report(&quantized, &text, model, "weight_only", NULL, NULL));
    assert_true(figure(text, "quantized_ops", 0) >= 2);
    assert_true(figure(text, "weight_bytes", 0) < 0.5 * figure(text, "float_weight_bytes", 0));
    assert_non_null(strstr(text, "\"layers\": ["));
    tare_text_free(text);
    tare_model_close(quantized);
    OK(tare_model_quantize_report(NULL, &text, model, "weight_only", NULL, NULL));
    assert_non_null(strstr(text, "\"weight_sqnr_db\""));
    tare_text_free(text);
    REFUSED(tare_model_quantize_report(NULL, &text, model, "static", NULL, NULL), TARE_ERROR_USAGE,
            "needs representative samples");
    assert_null(text);
    tare_model_close(model);
}

/* A model made in two steps, so that the second one is loaded from a temporary directory. */
static tare_model *made_twice(const tare_model *model) {
    tare_model *quantized, *converted;
    OK(tare_model_quantize(&quantized, model, "weight_only", NULL, NULL));
    OK(tare_model_convert(&converted, NULL, quantized, NULL, NULL, 0));
    tare_model_close(quantized);
    return converted;
}

static char *comparison_of(const tare_model *model, int format) {
    const tare_comparison_task task = {
        .struct_size = sizeof task, .paths = &labelled, .n_paths = 1, .options = "methods=bfloat16 limit=4"
    };
    tare_comparison *comparison;
    char *text;
    OK(tare_comparison_open(&comparison, model, &task));
    OK(tare_comparison_report(&text, comparison, format));
    tare_comparison_close(comparison);
    return text;
}

static void made_models__have_a_name_in_reports(void **state) {
    const char *folder = own_temporary_folder();
    tare_model *model = open_glyphs(), *made[] = { made_twice(model), made_twice(model) };
    char *texts[2];
    (void)state;
    for (int i = 0; i < 2; i++)
        OK(tare_model_describe(&texts[i], made[i]));
    assert_string_equal(texts[0], texts[1]);
    assert_non_null(strstr(texts[0], "\"path\": \"model\""));
    tare_text_free(texts[0]);
    tare_text_free(texts[1]);
    for (int i = 0; i < 2; i++)
        OK(tare_model_check(&texts[i], made[i], "estimate"));
    assert_string_equal(texts[0], texts[1]);
    assert_non_null(strstr(texts[0], "\"model\": \"model\""));
    tare_text_free(texts[0]);
    tare_text_free(texts[1]);
    for (int format = TARE_COMPARISON_JSON; format <= TARE_COMPARISON_TEXT; format++) {
        texts[0] = comparison_of(made[0], format);
        assert_null(strstr(texts[0], folder));
        if (format == TARE_COMPARISON_CSV) assert_non_null(strstr(texts[0], "tare convert MODEL OUT"));
        tare_text_free(texts[0]);
    }
    tare_model_close(made[0]);
    tare_model_close(made[1]);
    tare_model_close(model);
}

static void taken_outputs__outlive_runner_and_model(void **state) {
    static float pixels[28 * 28];
    const tare_array image = {
        .name = "image", .dtype = TARE_DTYPE_FLOAT, .rank = 4, .dims = { 1, 28, 28, 1 }, .data = pixels
    };
    tare_model *model = open_glyphs();
    const tare_array *arrays, *again;
    tare_outputs *outputs, *none;
    tare_runner *runner;
    size_t count;
    float first[10], sum = 0;
    (void)state;
    OK(tare_runner_open(&runner, model, NULL));
    REFUSED(tare_runner_take(&none, runner, &again, &count), TARE_ERROR_INVALID_ARGUMENT, "no outputs");
    OK(tare_runner_run(runner, &image, 1, &again, &count));
    memcpy(first, again[0].data, sizeof first);
    OK(tare_runner_take(&outputs, runner, &arrays, &count));
    REFUSED(tare_runner_take(&none, runner, &again, &count), TARE_ERROR_INVALID_ARGUMENT, "no outputs");
    assert_null(none);
    pixels[100] = 9;
    OK(tare_runner_run(runner, &image, 1, &again, &count));
    tare_runner_close(runner);
    tare_model_close(model);
    assert_int_equal(count, 1);
    assert_string_equal(arrays[0].name, "probabilities");
    assert_memory_equal(arrays[0].data, first, sizeof first);
    for (int i = 0; i < 10; i++)
        sum += ((float *)(uintptr_t)arrays[0].data)[i] *= 2; /* may be written */
    assert_true(fabsf(sum - 2) < 1e-5F);
    tare_outputs_close(outputs);
}

static void runner__calls_a_function_by_its_alias(void **state) {
    static float pixels[28 * 28];
    const tare_array image = {
        .name = "image", .dtype = TARE_DTYPE_FLOAT, .rank = 4, .dims = { 1, 28, 28, 1 }, .data = pixels
    };
    tare_model *model = open_glyphs();
    const tare_array *outputs;
    tare_runner *runner;
    size_t count;
    (void)state;
    OK(tare_runner_open_function(&runner, model, "tpu_func", &image, 1));
    OK(tare_runner_run(runner, &image, 1, &outputs, &count));
    assert_int_equal(outputs[0].dims[1], 10);
    tare_runner_close(runner);
    REFUSED(tare_runner_open_function(&runner, model, "nothing", &image, 1), TARE_ERROR_NOT_FOUND, "nothing");
    assert_null(runner);
    tare_model_close(model);
}

static void model__is_chosen_by_its_tags(void **state) {
    tare_model *model, *quantized;
    (void)state;
    OK(tare_model_open_tagged(&model, NULL, GLYPHS "saved_model", "serve"));
    OK(tare_model_quantize(&quantized, model, "weight_only", NULL, NULL)); /* loads the model again */
    tare_model_close(quantized);
    tare_model_close(model);
    OK(tare_model_open_tagged(&model, NULL, GLYPHS "saved_model", NULL));
    tare_model_close(model);
    REFUSED(tare_model_open_tagged(&model, NULL, GLYPHS "saved_model", "serve,tpu"), TARE_ERROR_NOT_FOUND, "serve");
    REFUSED(tare_model_open_tagged(&model, NULL, GLYPHS "saved_model", ""), TARE_ERROR_NOT_FOUND, "serve");
    assert_null(model);
}

static void assert_opened_by(const tare_model *model, const char *directory, const char *tags) {
    tare_model *opened;
    OK(tare_model_write(model, directory, 0));
    OK(tare_model_open_tagged(&opened, NULL, directory, tags));
    tare_model_close(opened);
    OK(tare_model_open(&opened, NULL, directory)); /* the only MetaGraph */
    tare_model_close(opened);
}

static void converted_model__has_the_tags_of_tpu_servers(void **state) {
    tare_model *model, *converted, *kept, *batched;
    (void)state;
    OK(tare_model_open(&model, NULL, GLYPHS "saved_model"));
    OK(tare_model_convert(&converted, NULL, model, "", NULL, TARE_CONVERT_FIND_FUNCTIONS));
    OK(tare_model_convert(&kept, NULL, model, "", NULL, TARE_CONVERT_FIND_FUNCTIONS | TARE_CONVERT_KEEP_TAGS));
    OK(tare_model_convert(&batched, NULL, converted,
                          "batch_options { num_batch_threads: 1 max_batch_size: 2 allowed_batch_sizes: 2 }", NULL, 0));
    assert_opened_by(converted, temp_path("converted_tags"), "serve,tpu");
    assert_opened_by(kept, temp_path("kept_tags"), "serve");
    assert_opened_by(batched, temp_path("batched_tags"), "tpu,serve");
    tare_model_close(batched);
    tare_model_close(kept);
    tare_model_close(converted);
    tare_model_close(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calibrate_records__equals_calibration_of_the_file),
        cmocka_unit_test(calibrate_records__of_a_function_equals_that_of_the_file),
        cmocka_unit_test(calibrate_records__with_hessians_leaves_no_temporary_file),
        cmocka_unit_test(records__have_their_name_in_errors),
        cmocka_unit_test(records__have_their_name_in_calibrations),
        cmocka_unit_test(calibrate_records__reports_failures_of_the_callback),
        cmocka_unit_test(state__is_kept_by_a_failing_call_and_continued_by_the_next),
        cmocka_unit_test(histogram__counts_the_finite_values),
        cmocka_unit_test(comparison__of_records_equals_that_of_the_file),
        cmocka_unit_test(comparison__calibrates_with_records_as_with_their_file),
        cmocka_unit_test(comparison__ranks_by_the_metric_of_the_caller),
        cmocka_unit_test(comparison__refuses_tasks_that_do_not_fit),
        cmocka_unit_test(report__lists_the_layers),
        cmocka_unit_test(made_models__have_a_name_in_reports),
        cmocka_unit_test(taken_outputs__outlive_runner_and_model),
        cmocka_unit_test(runner__calls_a_function_by_its_alias),
        cmocka_unit_test(model__is_chosen_by_its_tags),
        cmocka_unit_test(converted_model__has_the_tags_of_tpu_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
