/* Calibrations: reading, writing, adding and describing them. */
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
    if (*out)
        (*out)->calibration = calibration;
    else
        tare_calibration_free(calibration);
    return *out || status != TARE_OK ? status : TARE_NO_MEMORY;
}

/* ---- reading, writing, describing ---- */

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
    tare_calibration_free(calibration->calibration);
    tare_free(calibration);
}

tare_status tare_calibration_write(const tare_calibration *calibration, const char *path) {
    tare_public_begin(NULL, 0);
    return tare_public_end(tare_calibration_save(calibration->calibration, path));
}

tare_status tare_calibration_add(tare_calibration *calibration, const tare_calibration *other) {
    tare_public_begin(NULL, 0);
    return tare_public_end(tare_calibration_merge(calibration->calibration, other->calibration));
}

int64_t tare_calibration_record_count(const tare_calibration *calibration) {
    return tare_calibration_records(calibration->calibration);
}

struct report_values {
    const char *algorithms, *tensors;
    bool html;
};

static const struct tare_option report_rows[] = {
    { .name = "algorithms",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct report_values, algorithms),
      .placeholder = "A,…",
      .help = "calibration algorithms to report (default: all)" },
    { .name = "tensor",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct report_values, tensors),
      .placeholder = "REGEX",
      .help = "report only tensors whose name, FUNCTION/NODE:OUTPUT, matches REGEX" },
    { .name = "html", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct report_values, html), .help = "HTML page" },
    { 0 },
};
static const struct tare_option_set report_set = { .program = "tare_calibration_report", .options = report_rows };

static tare_status write_report(char **out, const tare_calibration *calibration, const struct report_values *values) {
    const struct tare_calibration_report_options options = { .algorithms = values->algorithms,
                                                             .tensors = values->tensors };
    struct tare_calibration_report report = { 0 };
    struct tare_strbuf text = { 0 };
    tare_status status;
    TARE_CHECK(tare_calibration_report_make(&report, calibration->calibration, "calibration", &options));
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

static tare_status read_and_report(char **out, const tare_calibration *calibration, const char *options) {
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
    tare_public_begin(NULL, 0);
    return tare_public_end(read_and_report(text, calibration, options));
}

tare_status tare_calibration_describe(char **json, const tare_calibration *calibration) {
    return tare_calibration_report(json, calibration, NULL);
}

/* ---- histograms ---- */

static tare_status histogram(tare_calibration_bin **bins, size_t *count, const tare_calibration *calibration,
                             const char *function, const char *node, int output) {
    const struct tare_calibration_tensor *tensor =
        tare_calibration_find(calibration->calibration, function ? function : "", node, output);
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
    tare_public_begin(NULL, 0);
    return tare_public_end(histogram(bins, count, calibration, function, node, output));
}

void tare_calibration_bins_free(tare_calibration_bin *bins) {
    free(bins);
}
