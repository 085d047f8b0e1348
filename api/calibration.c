/* Calibrations: reading, writing, copying, adding and describing them. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "calib/format/file.h"
#include "eval/report/calibration_report.h"
#include "workflow/option_text.h"
#include "api/calibrating.h"
#include "api/handles.h"

#include <stdlib.h>

tare_status tare_public_calibration(tare_calibration **out, struct tare_calibration *calibration) {
    tare_status status = tare_control_verify();
    *out = status == TARE_OK ? tare_calloc(1, sizeof **out) : NULL;
    if (!*out) {
        tare_calibration_free(calibration);
        return status != TARE_OK ? status : TARE_NO_MEMORY;
    }
    (*out)->contents = calibration;
    pthread_mutex_init(&(*out)->lock, NULL);
    pthread_mutex_init(&(*out)->adding, NULL);
    return TARE_OK;
}

/* Functions that change the contents have a handle that is not const, so that no handle is a const object. */
static tare_calibration *writable(const tare_calibration *calibration) {
    return (tare_calibration *)(uintptr_t)calibration;
}

struct tare_calibration *tare_public_contents(const tare_calibration *calibration) {
    struct tare_calibration *contents;
    if (!calibration) return NULL;
    pthread_mutex_lock(&writable(calibration)->lock);
    contents = tare_calibration_share(calibration->contents);
    pthread_mutex_unlock(&writable(calibration)->lock);
    return contents;
}

/* ---- reading and writing ---- */

static tare_status open_file(tare_calibration **out, const char *path) {
    struct tare_calibration *calibration;
    *out = NULL;
    TARE_TRY(tare_calibration_load(&calibration, path));
    return tare_public_calibration(out, calibration);
}

tare_status tare_calibration_open(tare_calibration **out, const char *path) {
    tare_public_begin(NULL, 0);
    return tare_public_end(open_file(out, path));
}

void tare_calibration_close(tare_calibration *calibration) {
    if (!calibration) return;
    tare_calibration_free(calibration->contents);
    pthread_mutex_destroy(&calibration->adding);
    pthread_mutex_destroy(&calibration->lock);
    tare_free(calibration);
}

tare_status tare_calibration_write(const tare_calibration *calibration, const char *path) {
    struct tare_calibration *contents = tare_public_contents(calibration);
    tare_status status;
    tare_public_begin(NULL, 0);
    status = tare_calibration_save(contents, path);
    tare_calibration_free(contents);
    return tare_public_end(status);
}

int64_t tare_calibration_record_count(const tare_calibration *calibration) {
    struct tare_calibration *contents = tare_public_contents(calibration);
    const int64_t records = tare_calibration_records(contents);
    tare_calibration_free(contents);
    return records;
}

/* ---- copying and adding ---- */

tare_status tare_calibration_copy(tare_calibration **out, const tare_calibration *calibration) {
    tare_public_begin(NULL, 0);
    return tare_public_end(tare_public_calibration(out, tare_public_contents(calibration)));
}

static tare_status add(struct tare_calibration *sum, const tare_calibration *other) {
    struct tare_calibration *contents = tare_public_contents(other);
    const tare_status status = tare_calibration_merge(sum, contents);
    tare_calibration_free(contents);
    return status;
}

/* *out: the contents with those of the others. */
static tare_status add_up(struct tare_calibration **out, const tare_calibration *calibration,
                          const tare_calibration *const *others, size_t count) {
    struct tare_calibration *contents = tare_public_contents(calibration);
    tare_status status = tare_calibration_duplicate(out, contents);
    tare_calibration_free(contents);
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        status = add(*out, others[i]);
    return status == TARE_OK ? tare_control_verify() : status;
}

/* Readers wait for the exchange of a pointer only. */
static void replace(tare_calibration *calibration, struct tare_calibration *contents) {
    struct tare_calibration *before;
    pthread_mutex_lock(&calibration->lock);
    before = calibration->contents;
    calibration->contents = contents;
    pthread_mutex_unlock(&calibration->lock);
    tare_calibration_free(before);
}

tare_status tare_calibration_add_all(tare_calibration *calibration, const tare_calibration *const *others,
                                     size_t count) {
    struct tare_calibration *sum = NULL;
    tare_status status;
    tare_public_begin(NULL, 0);
    pthread_mutex_lock(&calibration->adding);
    status = add_up(&sum, calibration, others, count);
    if (status == TARE_OK)
        replace(calibration, sum);
    else
        tare_calibration_free(sum);
    pthread_mutex_unlock(&calibration->adding);
    return tare_public_end(status);
}

tare_status tare_calibration_add(tare_calibration *calibration, const tare_calibration *other) {
    return tare_calibration_add_all(calibration, &other, 1);
}

/* ---- reports ---- */

struct report_values {
    const char *algorithms, *tensors;
    bool html;
};

static const struct tare_option report_rows[] = {
    { TARE_OPTION(struct report_values, "algorithms", STRING, algorithms), .placeholder = "A,…",
      .help = "calibration algorithms to report (default: all)" },
    { TARE_OPTION(struct report_values, "tensor", STRING, tensors), .placeholder = "REGEX",
      .help = "report only tensors whose name, FUNCTION/NODE:OUTPUT, matches REGEX" },
    { TARE_OPTION(struct report_values, "html", FLAG, html), .help = "HTML page" },
    { 0 },
};
static const struct tare_option_set report_set = { .program = "tare_calibration_report", .options = report_rows };

static tare_status write_report(char **out, const struct tare_calibration *calibration,
                                const struct report_values *values) {
    const struct tare_calibration_report_options options = { .algorithms = values->algorithms,
                                                             .tensors = values->tensors };
    struct tare_calibration_report report = { 0 };
    struct tare_strbuf text = { 0 };
    tare_status status;
    TARE_CHECK(tare_calibration_report_make(&report, calibration, "calibration", &options));
    if (values->html)
        tare_calibration_report_html(&text, &report);
    else
        TARE_CHECK(tare_calibration_report_json(&text, &report));
    status = tare_public_text(out, &text);
done:
    tare_calibration_report_free(&report);
    tare_strbuf_free(&text);
    return status;
}

static tare_status read_and_report(char **out, const struct tare_calibration *calibration, const char *options) {
    struct report_values values = { 0 };
    struct tare_arena arena = { 0 };
    tare_status status = tare_option_text_read(&values, &arena, &report_set, options);
    *out = NULL;
    if (status == TARE_OK) status = write_report(out, calibration, &values);
    tare_options_free(&values, &report_set);
    tare_arena_free(&arena);
    return status;
}

tare_status tare_calibration_report(char **text, const tare_calibration *calibration, const char *options) {
    struct tare_calibration *contents = tare_public_contents(calibration);
    tare_status status;
    tare_public_begin(NULL, 0);
    status = read_and_report(text, contents, options);
    tare_calibration_free(contents);
    return tare_public_end(status);
}

tare_status tare_calibration_describe(char **json, const tare_calibration *calibration) {
    return tare_calibration_report(json, calibration, NULL);
}

/* ---- histograms ---- */

static tare_status histogram(tare_calibration_bin **bins, size_t *count, const struct tare_calibration *calibration,
                             const char *function, const char *node, int output) {
    const struct tare_calibration_tensor *tensor =
        tare_calibration_find(calibration, function ? function : "", node, output);
    struct tare_histogram_bin *list;
    size_t n = 0;
    *bins = NULL;
    *count = 0;
    if (!tensor)
        return TARE_FAIL(TARE_NOT_FOUND, "tensor %s%s%s:%d was not observed", function ? function : "",
                         function && *function ? "/" : "", node, output);
    TARE_TRY(tare_histogram_list(&list, &n, &tensor->statistics.histogram));
    if (n) *bins = calloc(n, sizeof **bins);
    for (size_t i = 0; *bins && i < n; i++)
        (*bins)[i] = (tare_calibration_bin){ list[i].low, list[i].high, list[i].count };
    tare_free(list);
    if (n && !*bins) return TARE_NO_MEMORY;
    *count = n;
    return TARE_OK;
}

tare_status tare_calibration_histogram(tare_calibration_bin **bins, size_t *count, const tare_calibration *calibration,
                                       const char *function, const char *node, int output) {
    struct tare_calibration *contents = tare_public_contents(calibration);
    tare_status status;
    tare_public_begin(NULL, 0);
    status = histogram(bins, count, contents, function, node, output);
    tare_calibration_free(contents);
    return tare_public_end(status);
}

void tare_calibration_bins_free(tare_calibration_bin *bins) {
    free(bins);
}
