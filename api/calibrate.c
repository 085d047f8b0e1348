/* Calibration of files, and the options that every way to calibrate has in common. */
#include "base/alloc.h"
#include "base/file.h"
#include "workflow/option_text.h"
#include "api/calibrating.h"
#include "api/handles.h"

#include <unistd.h>

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
    { TARE_OPTION(struct tare_public_calibrating, "name", STRING, name), .fallback = "memory", .placeholder = "N",
      .help = "name of samples from memory in the calibration" },
    { TARE_OPTION(struct tare_public_calibrating, "state", STRING, state), .placeholder = "FILE",
      .help = "file for the statistics of an interrupted call, from which the next one continues" },
    { TARE_OPTION(struct tare_public_calibrating, "hessians", FLAG, hessians),
      .help = "collect statistics per channel and read the files a second time, for GPTQ" },
    { 0 },
};
static const struct tare_option_set set = { .program = "tare_model_calibrate", .options = rows };

tare_status tare_public_calibrating_read(struct tare_public_calibrating *out, const tare_model *model,
                                         const char *text) {
    const struct tare_context_handle *context = model->context;
    const char *path;
    *out = (struct tare_public_calibrating){ .context = context, .log = tare_public_log(context) };
    TARE_TRY(tare_option_text_read(out, &out->arena, &set, text));
    TARE_TRY(tare_data_options_open(&out->records));
    if (out->state && out->hessians) return TARE_FAIL(TARE_USAGE, "state and hessians exclude each other");
    out->options = (struct tare_calibrate_options){
        .signature = out->how.signature,
        .spec = out->records.spec,
        .feedback = &out->records.feedback,
        .threads = out->how.threads ? out->how.threads
                   : context        ? context->threads
                                    : 0,
        .batch = out->how.batch,
        .limit = out->how.limit,
        .sample = out->how.sample,
        .seed = out->how.seed,
        .max_bad = out->how.max_bad,
        .observe_all = out->how.observe == TARE_OBSERVE_ALL,
        .channels = out->how.channels || out->hessians,
        .hessians = out->hessians,
        .state_path = out->state,
        .log = &out->log,
        .on_progress = tare_public_progress(context),
        .progress_arg = (void *)(uintptr_t)context,
        .interrupted = tare_public_interrupted(context),
    };
    TARE_TRY(tare_workflow_calibrate_check(&out->options));
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

tare_status tare_public_calibrate_files(tare_calibration **out, const tare_model *model, const char *const *paths,
                                        size_t n_paths, const char *name, const char *options) {
    struct tare_public_calibrating calibrating;
    struct tare_calibration *made = NULL;
    tare_status status;
    *out = NULL;
    TARE_CHECK(tare_public_calibrating_read(&calibrating, model, options));
    if (!n_paths) TARE_CHECK(TARE_FAIL(TARE_INVALID_ARGUMENT, "no data files"));
    calibrating.options.data = paths;
    calibrating.options.n_data = n_paths;
    TARE_CHECK(tare_workflow_calibrate_check_function(&calibrating.options, calibrating.how.function));
    TARE_CHECK(tare_workflow_calibrate_function(&calibrating.options, calibrating.prepared, calibrating.how.function));
    TARE_CHECK(calibrating.state ? calibrate_with_state(&made, &calibrating)
                                 : tare_workflow_calibrate(&made, calibrating.prepared, &calibrating.options));
    if (name) TARE_CHECK(tare_calibration_name_inputs(made, name));
    tare_data_options_warn(&calibrating.log, calibrating.records.spec);
    status = tare_public_calibrated(out, made, model->context);
    made = NULL;
done:
    tare_calibration_free(made);
    tare_public_calibrating_free(&calibrating);
    return status;
}

tare_status tare_model_calibrate(tare_calibration **out, const tare_model *model, const char *const *paths,
                                 size_t n_paths, const char *options) {
    tare_public_begin(model->context, model->family);
    return tare_public_end(tare_public_calibrate_files(out, model, paths, n_paths, NULL, options));
}
