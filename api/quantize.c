/* tare_model_quantize and tare_model_convert. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "convert/saved_model.h"
#include "eval/report/composites.h"
#include "eval/report/quant_report.h"
#include "workflow/convert_report.h"
#include "workflow/convert.h"
#include "workflow/option_text.h"
#include "api/handles.h"
#include "workflow/quantize.h"

#include <string.h>

/* ---- quantizing ---- */

struct quantize_values {
    struct tare_quantize_request how;
};

static const struct tare_option rows[] = {
    TARE_OPTION_NESTED(struct quantize_values, how, tare_quantize_rows),
    { 0 },
};
static const struct tare_option_set set = { .program = "tare_model_quantize", .options = rows };

/* The method comes first, so that the option text can override it. */
static tare_status read_options(struct quantize_values *out, struct tare_arena *arena, const char *method,
                                const char *options) {
    const char *text;
    if (method && strchr(method, '"')) return TARE_FAIL(TARE_USAGE, "method: unknown method '%s'", method);
    text = tare_arena_printf(arena, "method=\"%s\" %s", method ? method : "static", options ? options : "");
    return text ? tare_option_text_read(out, arena, &set, text) : TARE_NO_MEMORY;
}

/* The result for each layer, as `tare quantize --json`. */
static tare_status describe(char **json, const struct tare_quantized *quantized, const struct tare_warnings *warnings) {
    struct tare_strbuf text = { 0 };
    tare_status status = tare_quant_report_json(&text, &quantized->report, &quantized->layers, quantized->float_bytes,
                                                quantized->bytes, &quantized->composites, warnings);
    if (status == TARE_OK) status = tare_public_text(json, &text);
    tare_strbuf_free(&text);
    return status;
}

/* The messages of a call, whose warnings are in its report, with those of a calibration, which the caller has had. */
struct logs {
    struct tare_warnings warnings;
    struct tare_log all, silent;
};

static void open_logs(struct logs *out, const struct tare_context_handle *context) {
    const struct tare_log caller = tare_public_log(context);
    *out = (struct logs){ 0 };
    out->all = tare_warnings_log(&out->warnings, &caller);
    out->silent = tare_warnings_silent(&out->warnings);
}

/* What a quantization of the caller's model needs beyond the request. */
static tare_status task_of(struct tare_quantize_task *out, const struct logs *logs, const tare_model *model,
                           const struct tare_quantize_request *request, struct tare_calibration *calibration) {
    *out = (struct tare_quantize_task){ .request = request,
                                        .ops = tare_public_ops(model->context),
                                        .calibration = calibration,
                                        .log = &logs->all,
                                        .calibration_log = &logs->silent,
                                        .quiet = true,
                                        .interrupted = tare_public_interrupted(model->context) };
    return tare_public_path(&out->path, model);
}

static tare_status quantize_model(tare_model **out, char **json, const tare_model *model, const char *method,
                                  struct tare_calibration *calibration, const char *options) {
    struct logs logs;
    struct quantize_values values = { 0 };
    struct tare_quantize_task task;
    struct tare_quantized quantized = { 0 };
    struct tare_arena arena = { 0 };
    struct tare_graph_model *made = NULL;
    tare_status status;
    open_logs(&logs, model->context);
    if (out) *out = NULL;
    if (json) *json = NULL;
    TARE_CHECK(read_options(&values, &arena, method, options));
    TARE_CHECK(tare_workflow_quantize_open(&values.how, &arena));
    TARE_CHECK(tare_public_check_values(model));
    TARE_CHECK(task_of(&task, &logs, model, &values.how, calibration));
    TARE_CHECK(tare_public_load(&made, model));
    TARE_CHECK(tare_workflow_quantize(&quantized, &arena, made, &task));
    tare_workflow_quantize_log(&logs.all, &quantized);
    tare_composites_log(&logs.all, &quantized.composites);
    if (json) TARE_CHECK(describe(json, &quantized, &logs.warnings));
    if (!out) goto done;
    status = tare_public_made(out, model, made);
    made = NULL;
done:
    if (status != TARE_OK && json) {
        tare_text_free(*json);
        *json = NULL;
    }
    tare_workflow_quantized_free(&quantized);
    tare_model_free(made);
    tare_workflow_quantize_close(&values.how);
    tare_options_free(&values, &set);
    tare_warnings_free(&logs.warnings);
    tare_arena_free(&arena);
    return status;
}

tare_status tare_model_quantize(tare_model **out, const tare_model *model, const char *method,
                                const tare_calibration *calibration, const char *options) {
    return tare_model_quantize_report(out, NULL, model, method, calibration, options);
}

tare_status tare_model_quantize_report(tare_model **out, char **report, const tare_model *model, const char *method,
                                       const tare_calibration *calibration, const char *options) {
    struct tare_calibration *contents = tare_public_contents(calibration);
    tare_status status;
    tare_public_begin(model->context, model->family);
    status = quantize_model(out, report, model, method, contents, options);
    tare_calibration_free(contents);
    return tare_public_end(status);
}

/* ---- converting ---- */

struct steps {
    const struct tare_context_handle *context;
    int64_t done;
};

static void step(void *arg) {
    struct steps *steps = arg;
    const tare_progress_function report = tare_public_progress(steps->context);
    steps->done++;
    if (report) report((void *)(uintptr_t)steps->context, "converting", steps->done, TARE_WORKFLOW_CONVERT_STEPS);
}

static tare_status check_calibration(const struct tare_converter_options *converter,
                                     const struct tare_calibration *calibration) {
    if (calibration && converter->quantization.n_datasets)
        return TARE_FAIL(TARE_USAGE, "a calibration and representative_datasets exclude each other");
    return TARE_OK;
}

static tare_status convert(struct tare_graph_model *made, char **report, struct tare_arena *arena,
                           const tare_model *model, const struct tare_converter_options *converter,
                           const struct tare_quantize_request *request, struct tare_calibration *calibration) {
    struct logs logs;
    struct steps steps = { .context = model->context };
    struct tare_convert_options options = { .converter = converter, .step = step, .step_arg = &steps };
    struct tare_converted converted = { 0 };
    tare_status status;
    open_logs(&logs, model->context);
    TARE_TRY(task_of(&options.quantize, &logs, model, request, calibration));
    status = tare_workflow_convert_run(&converted, arena, made, &options);
    tare_workflow_convert_log(&logs.all, &converted, converter, status);
    if (status == TARE_OK && report)
        status = tare_convert_report_json(report, &converted.conversion, converter, converted.prepared,
                                          &converted.checked, &logs.warnings);
    tare_workflow_quantized_free(&converted.quantized);
    tare_warnings_free(&logs.warnings);
    return status;
}

/* Options of a quantization, or a calibration, request one. */
static tare_status read_converter(struct tare_converter_options *out, struct tare_arena *arena, const char *text,
                                  const struct tare_quantize_request *request, bool calibrated) {
    TARE_TRY(tare_converter_options_parse(out, arena, text, strlen(text), &request->plan));
    out->keeps_variables |= request->plan.keep_variables;
    if (!calibrated && !tare_workflow_quantize_requested(request)) return TARE_OK;
    return tare_converter_options_quantize(out, arena, &request->plan);
}

tare_status tare_model_convert(tare_model **out, char **report, const tare_model *model, const char *converter_options,
                               const tare_calibration *calibration, unsigned flags) {
    return tare_model_convert_quantized(out, report, model, converter_options, NULL, calibration, flags);
}

tare_status tare_model_convert_quantized(tare_model **out, char **report, const tare_model *model,
                                         const char *converter_options, const char *quantize_options,
                                         const tare_calibration *calibration, unsigned flags) {
    const char *text = converter_options ? converter_options : "";
    struct quantize_values values = { 0 };
    struct tare_converter_options converter;
    struct tare_arena arena = { 0 };
    struct tare_graph_model *made = NULL;
    struct tare_calibration *contents = tare_public_contents(calibration);
    tare_status status;
    tare_public_begin(model->context, model->family);
    *out = NULL;
    if (report) *report = NULL;
    if (flags & ~(unsigned)(TARE_CONVERT_ALLOW_INCOMPATIBLE | TARE_CONVERT_FIND_FUNCTIONS |
                            TARE_CONVERT_BFLOAT16_OUTPUTS | TARE_CONVERT_KEEP_TAGS | TARE_CONVERT_ALLOW_DEPENDENT_ROWS))
        TARE_CHECK(TARE_FAIL(TARE_INVALID_ARGUMENT, "unknown flags %#x", flags));
    TARE_CHECK(tare_option_text_read(&values, &arena, &set, quantize_options));
    TARE_CHECK(tare_workflow_quantize_open(&values.how, &arena));
    TARE_CHECK(read_converter(&converter, &arena, text, &values.how, contents != NULL));
    converter.allow_incompatible |= (flags & TARE_CONVERT_ALLOW_INCOMPATIBLE) != 0;
    converter.allows_dependent_rows = flags & TARE_CONVERT_ALLOW_DEPENDENT_ROWS;
    converter.automatic = (flags & TARE_CONVERT_FIND_FUNCTIONS) && converter.n_functions == 0;
    converter.rounds_outputs = flags & TARE_CONVERT_BFLOAT16_OUTPUTS;
    converter.keeps_tags = flags & TARE_CONVERT_KEEP_TAGS;
    TARE_CHECK(check_calibration(&converter, contents));
    TARE_CHECK(tare_public_check_values(model));
    TARE_CHECK(tare_public_load(&made, model));
    TARE_CHECK(convert(made, report, &arena, model, &converter, &values.how, contents));
    status = tare_public_made(out, model, made);
    made = NULL;
done:
    if (status != TARE_OK && report) {
        tare_text_free(*report);
        *report = NULL;
    }
    tare_model_free(made);
    tare_calibration_free(contents);
    tare_workflow_quantize_close(&values.how);
    tare_options_free(&values, &set);
    tare_arena_free(&arena);
    return tare_public_end(status);
}
