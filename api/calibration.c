/* Calibrations: collecting them from files, reading, writing, adding and describing them. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "calib/file.h"
#include "eval/report/calibration_report.h"
#include "workflow/option_text.h"
#include "api/calibrating.h"
#include "api/handles.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

tare_status tare_public_calibration(tare_calibration **out, struct tare_calibration *calibration) {
    tare_status status = tare_control_verify();
    *out = status == TARE_OK ? tare_calloc(1, sizeof **out) : NULL;
    if (*out)
        (*out)->calibration = calibration;
    else
        tare_calibration_free(calibration);
    return *out || status != TARE_OK ? status : TARE_NO_MEMORY;
}

tare_status tare_public_calibrated(tare_calibration **out, struct tare_calibration *calibration,
                                   const struct tare_context_handle *context) {
    const struct tare_log log = tare_public_log(context);
    tare_status status = log.write ? tare_workflow_calibrate_log(&log, calibration) : TARE_OK;
    if (status == TARE_OK) return tare_public_calibration(out, calibration);
    tare_calibration_free(calibration);
    return status;
}

/* ---- options ---- */

static const struct tare_option rows[] = {
    TARE_OPTION_NESTED(struct tare_public_calibrating, how, tare_calibrate_rows),
    TARE_OPTION_NESTED(struct tare_public_calibrating, records, tare_data_rows),
    { .name = "name",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct tare_public_calibrating, name),
      .fallback = "memory",
      .placeholder = "N",
      .help = "name of samples from memory in the calibration" },
    { .name = "state",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct tare_public_calibrating, state),
      .placeholder = "FILE",
      .help = "file for the statistics of an interrupted call, from which the next one continues" },
    { .name = "hessians",
      .kind = TARE_OPTION_FLAG,
      .offset = offsetof(struct tare_public_calibrating, hessians),
      .help = "collect statistics per channel and read the files a second time, for GPTQ" },
    { 0 },
};
static const struct tare_option_set set = { .program = "tare_model_calibrate", .options = rows };

tare_status tare_public_calibrating_read(struct tare_public_calibrating *out, const tare_model *model,
                                         const char *text) {
    const struct tare_context_handle *context = model->context;
    const char *path;
    *out = (struct tare_public_calibrating){ .context = context };
    TARE_TRY(tare_option_text_read(out, &out->arena, &set, text));
    TARE_TRY(tare_data_options_open(&out->records));
    if (out->state && out->hessians) return TARE_FAIL(TARE_USAGE, "state and hessians exclude each other");
    out->options = (struct tare_calibrate_options){
        .signature = out->how.signature,
        .spec = out->records.spec,
        .threads = out->how.threads ? out->how.threads
                   : context        ? context->threads
                                    : 0,
        .batch = out->how.batch,
        .limit = out->how.limit,
        .max_bad = out->how.max_bad,
        .observe_all = out->how.observe == TARE_OBSERVE_ALL,
        .channels = out->how.channels || out->hessians,
        .hessians = out->hessians,
        .state_path = out->state,
        .on_progress = context ? context->progress : NULL,
        .progress_arg = context ? context->progress_arg : NULL,
        .interrupted = tare_public_interrupted(context),
    };
    TARE_TRY(tare_public_path(&path, model));
    return tare_load_prepared_with(&out->prepared, path, tare_public_ops(context));
}

tare_status tare_public_calibrating_start(struct tare_calibration **out,
                                          const struct tare_public_calibrating *calibrating,
                                          const struct tare_calibrate_job *job) {
    if (calibrating->state && tare_file_kind_of(calibrating->state) != TARE_FILE_NONE)
        return tare_workflow_calibrate_resume(out, job);
    return tare_workflow_calibrate_start(out, job);
}

void tare_public_calibrating_end(const struct tare_public_calibrating *calibrating) {
    if (calibrating->state) unlink(calibrating->state);
}

void tare_public_calibrating_free(struct tare_public_calibrating *calibrating) {
    tare_model_free(calibrating->prepared);
    tare_data_options_close(&calibrating->records);
    tare_options_free(calibrating, &set);
    tare_arena_free(&calibrating->arena);
}

/* ---- from files ---- */

/* With a saved state; hessians, which tare_workflow_calibrate would add, exclude it. */
static tare_status calibrate_with_state(struct tare_calibration **out,
                                        const struct tare_public_calibrating *calibrating) {
    struct tare_calibrate_outcome outcome;
    struct tare_calibrate_job job;
    tare_status status;
    *out = NULL;
    TARE_CHECK(tare_workflow_calibrate_open(&job, calibrating->prepared, &calibrating->options));
    TARE_CHECK(tare_public_calibrating_start(out, calibrating, &job));
    status = tare_workflow_calibrate_run(*out, &outcome, &job);
done:
    tare_workflow_calibrate_close(&job);
    if (status == TARE_OK) {
        tare_public_calibrating_end(calibrating);
        return TARE_OK;
    }
    tare_calibration_free(*out);
    *out = NULL;
    return status;
}

static tare_status calibrate(tare_calibration **out, const tare_model *model, const char *const *paths, size_t n_paths,
                             const char *options) {
    struct tare_public_calibrating calibrating;
    struct tare_calibration *made = NULL;
    tare_status status;
    *out = NULL;
    TARE_CHECK(tare_public_calibrating_read(&calibrating, model, options));
    if (!n_paths) TARE_CHECK(TARE_FAIL(TARE_INVALID_ARGUMENT, "no data files"));
    calibrating.options.data = paths;
    calibrating.options.n_data = n_paths;
    TARE_CHECK(calibrating.state ? calibrate_with_state(&made, &calibrating)
                                 : tare_workflow_calibrate(&made, calibrating.prepared, &calibrating.options));
    status = tare_public_calibrated(out, made, model->context);
done:
    tare_public_calibrating_free(&calibrating);
    return status;
}

tare_status tare_model_calibrate(tare_calibration **out, const tare_model *model, const char *const *paths,
                                 size_t n_paths, const char *options) {
    tare_public_begin(model->context);
    return tare_public_end(calibrate(out, model, paths, n_paths, options));
}

/* ---- from records of the caller ---- */

static tare_status push_all(tare_calibrator *calibrator, const tare_records *records) {
    for (int64_t i = 0;; i++) {
        const tare_array *arrays;
        size_t count;
        TARE_TRY(tare_public_next_record(records, &arrays, &count, i));
        if (!arrays) return TARE_OK;
        TARE_TRY(tare_error_prefix(tare_public_calibrator_push(calibrator, arrays, count, true), "record %lld",
                                   (long long)i));
    }
}

static tare_status stream(tare_calibration **out, const tare_model *model, const tare_records *records,
                          const char *options) {
    tare_calibrator *calibrator;
    tare_status status;
    TARE_TRY(tare_calibrator_open(&calibrator, model, options));
    status = push_all(calibrator, records);
    if (status == TARE_OK) status = tare_calibrator_finish(out, calibrator);
    tare_calibrator_close(calibrator);
    return status;
}

/* Hessians need a second pass over the records. */
static tare_status calibrate_records(tare_calibration **out, const tare_model *model, const tare_records *records,
                                     const char *options) {
    struct tare_public_calibrating calibrating;
    struct tare_public_spool spool = { 0 };
    tare_status status;
    bool twice;
    *out = NULL;
    TARE_TRY(tare_public_check_struct("tare_records", records->struct_size, sizeof *records, records->reserved));
    status = tare_public_calibrating_read(&calibrating, model, options);
    twice = calibrating.hessians;
    tare_public_calibrating_free(&calibrating);
    TARE_TRY(status);
    if (!twice) return stream(out, model, records, options);
    status = tare_public_spool_write(&spool, records, model->context);
    if (status == TARE_OK) status = calibrate(out, model, (const char *const *)&spool.path, 1, options);
    tare_public_spool_remove(&spool);
    return status;
}

tare_status tare_model_calibrate_records(tare_calibration **out, const tare_model *model, const tare_records *records,
                                         const char *options) {
    tare_public_begin(model->context);
    return tare_public_end(calibrate_records(out, model, records, options));
}

/* ---- reading, writing, describing ---- */

static tare_status open_file(tare_calibration **out, const char *path) {
    struct tare_calibration *calibration;
    *out = NULL;
    TARE_TRY(tare_calibration_load(&calibration, path));
    return tare_public_calibration(out, calibration);
}

tare_status tare_calibration_open(tare_calibration **out, const char *path) {
    tare_public_begin(NULL);
    return tare_public_end(open_file(out, path));
}

void tare_calibration_close(tare_calibration *calibration) {
    if (!calibration) return;
    tare_calibration_free(calibration->calibration);
    tare_free(calibration);
}

tare_status tare_calibration_write(const tare_calibration *calibration, const char *path) {
    tare_public_begin(NULL);
    return tare_public_end(tare_calibration_save(calibration->calibration, path));
}

tare_status tare_calibration_add(tare_calibration *calibration, const tare_calibration *other) {
    tare_public_begin(NULL);
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
    tare_public_begin(NULL);
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
    tare_public_begin(NULL);
    return tare_public_end(histogram(bins, count, calibration, function, node, output));
}

void tare_calibration_bins_free(tare_calibration_bin *bins) {
    free(bins);
}
