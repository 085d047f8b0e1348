/* Calibrations: collecting them from files, reading, writing, adding and describing them. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "calib/file.h"
#include "eval/report/calibration_report.h"
#include "workflow/option_text.h"
#include "api/calibrating.h"
#include "api/handles.h"

#include <string.h>

tare_status tare_public_calibration(tare_calibration **out, struct tare_calibration *calibration) {
    *out = tare_calloc(1, sizeof **out);
    if (*out)
        (*out)->calibration = calibration;
    else
        tare_calibration_free(calibration);
    return *out ? TARE_OK : TARE_NO_MEMORY;
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
    *out = (struct tare_public_calibrating){ 0 };
    TARE_TRY(tare_option_text_read(out, &out->arena, &set, text));
    TARE_TRY(tare_data_options_open(&out->records));
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
        .on_progress = context ? context->progress : NULL,
        .progress_arg = context ? context->progress_arg : NULL,
        .interrupted = tare_public_interrupted(context),
    };
    TARE_TRY(tare_public_path(&path, model));
    return tare_load_prepared_with(&out->prepared, path, tare_public_ops(context));
}

void tare_public_calibrating_free(struct tare_public_calibrating *calibrating) {
    tare_model_free(calibrating->prepared);
    tare_data_options_close(&calibrating->records);
    tare_options_free(calibrating, &set);
    tare_arena_free(&calibrating->arena);
}

/* ---- from files ---- */

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
    TARE_CHECK(tare_workflow_calibrate(&made, calibrating.prepared, &calibrating.options));
    status = tare_public_calibration(out, made);
done:
    tare_public_calibrating_free(&calibrating);
    return status;
}

tare_status tare_model_calibrate(tare_calibration **out, const tare_model *model, const char *const *paths,
                                 size_t n_paths, const char *options) {
    tare_public_begin();
    return tare_public_end(calibrate(out, model, paths, n_paths, options));
}

/* ---- reading, writing, describing ---- */

static tare_status open_file(tare_calibration **out, const char *path) {
    struct tare_calibration *calibration;
    *out = NULL;
    TARE_TRY(tare_calibration_load(&calibration, path));
    return tare_public_calibration(out, calibration);
}

tare_status tare_calibration_open(tare_calibration **out, const char *path) {
    tare_public_begin();
    return tare_public_end(open_file(out, path));
}

void tare_calibration_close(tare_calibration *calibration) {
    if (!calibration) return;
    tare_calibration_free(calibration->calibration);
    tare_free(calibration);
}

tare_status tare_calibration_write(const tare_calibration *calibration, const char *path) {
    tare_public_begin();
    return tare_public_end(tare_calibration_save(calibration->calibration, path));
}

tare_status tare_calibration_add(tare_calibration *calibration, const tare_calibration *other) {
    tare_public_begin();
    return tare_public_end(tare_calibration_merge(calibration->calibration, other->calibration));
}

int64_t tare_calibration_record_count(const tare_calibration *calibration) {
    return tare_calibration_records(calibration->calibration);
}

static tare_status describe(char **json, const tare_calibration *calibration) {
    const struct tare_calibration_report_options options = { 0 };
    struct tare_calibration_report report = { 0 };
    struct tare_strbuf text = { 0 };
    tare_status status;
    *json = NULL;
    TARE_CHECK(tare_calibration_report_make(&report, calibration->calibration, "calibration", &options));
    TARE_CHECK(tare_calibration_report_json(&text, &report));
    status = tare_public_text(json, &text);
done:
    tare_calibration_report_free(&report);
    tare_strbuf_free(&text);
    return status;
}

tare_status tare_calibration_describe(char **json, const tare_calibration *calibration) {
    tare_public_begin();
    return tare_public_end(describe(json, calibration));
}
