/* The whole conversion of a loaded model: calibration, quantization, TPU placement. */
#include "workflow/convert.h"
#include "base/strbuf.h"
#include "calib/format/file.h"
#include "calib/fingerprint.h"
#include "eval/model_inputs.h"
#include "workflow/calibrate.h"
#include "workflow/dataset_path.h"
#include "workflow/integer_outputs.h"
#include "workflow/quantize.h"
#include "quant/fake_quant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options for the calibration of a data set. */
struct counting {
    const struct tare_graph_model *model;
    bool channels, hessians;
    const volatile sig_atomic_t *interrupted;
};

/* Calibrates with a data set; if *out is set, adds Hessians to it instead. */
static tare_status count_dataset(struct tare_calibration **out, const struct counting *counting,
                                 const struct tare_dataset_file *dataset) {
    struct tare_strbuf path = { 0 };
    struct tare_calibrate_options options = { .signature = dataset->signature,
                                              .n_data = 1,
                                              .channels = counting->channels,
                                              .interrupted = counting->interrupted };
    const char *text;
    tare_status status = tare_workflow_dataset_path(&path, dataset->path);
    text = tare_strbuf_text(&path);
    options.data = &text;
    if (status == TARE_OK)
        status = *out ? tare_workflow_calibrate_hessians(*out, counting->model, &options)
                      : tare_workflow_calibrate(out, counting->model, &options);
    tare_strbuf_free(&path);
    return status;
}

/* Calibrates every signature with samples and merges the statistics. */
static tare_status calibrate(struct tare_calibration **out, const struct tare_convert_options *options,
                             const struct counting *counting) {
    const struct tare_quantization *quantization = &options->converter->quantization;
    if (options->calibration_file) return tare_calibration_load_for(out, counting->model, options->calibration_file);
    if (!quantization->n_datasets && !counting->channels && !counting->hessians &&
        tare_quant_is_trained(counting->model))
        return TARE_OK;
    if (!quantization->n_datasets)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "When `representative_dataset` is not provided, the model should be trained with "
                         "quantization-aware training (QAT). (representative_datasets has no entry for '%s')",
                         quantization->signatures[0]);
    for (size_t i = 0; i < quantization->n_datasets; i++) {
        struct tare_calibration *calibration = NULL;
        tare_status status;
        TARE_TRY(count_dataset(&calibration, counting, &quantization->datasets[i]));
        if (!*out) {
            *out = calibration;
            continue;
        }
        status = tare_calibration_merge(*out, calibration);
        tare_calibration_free(calibration);
        TARE_TRY(status);
    }
    if (options->log) TARE_TRY(tare_workflow_calibrate_log(options->log, *out));
    for (size_t i = 0; counting->hessians && i < quantization->n_datasets; i++)
        TARE_TRY(count_dataset(out, counting, &quantization->datasets[i]));
    return TARE_OK;
}

/* The text is TensorFlow's. */
static tare_status check_training(const struct tare_graph_model *model, const struct tare_quant_options *options) {
    const struct tare_quant_method *method = options->setting.method;
    if (!method || method->needs_ranges || !tare_quant_is_trained(model)) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT,
                     "The models trained with quantization-aware training (QAT) is not supported for %s quantization.",
                     method == &tare_method_dynamic ? "dynamic-range" : "weight-only");
}

/* The default, serving_default, is not checked: a calibration may belong to the only signature of the model. */
static tare_status check_signatures(const struct tare_graph_model *model,
                                    const struct tare_quantization *quantization) {
    for (size_t i = 0; quantization->names_signatures && i < quantization->n_signatures; i++) {
        const struct tare_signature *signature;
        TARE_TRY(
            tare_error_prefix(tare_pick_signature(&signature, model, quantization->signatures[i]), "signature_keys"));
    }
    return TARE_OK;
}

static tare_status quantize(struct tare_converted *out, struct tare_arena *arena, struct tare_graph_model *model,
                            const struct tare_convert_options *options) {
    struct tare_calibration *made = NULL;
    const struct tare_calibration *used;
    const struct tare_quant_options *how = &options->converter->quantization.options;
    struct tare_quant_report report;
    struct counting counting = { .model = model, .interrupted = options->interrupted };
    bool needed;
    tare_status status;
    TARE_TRY(check_training(model, how));
    needed = tare_workflow_quantize_needs_samples(how, &counting.channels);
    counting.hessians = tare_workflow_quantize_needs_hessians(how);
    if (needed && options->calibration)
        TARE_TRY(tare_calibration_fit(&made, options->calibration, model, "the calibration"));
    if (needed && !options->calibration) TARE_CHECK(calibrate(&made, options, &counting));
    used = !needed ? NULL : made ? made : options->calibration;
    status = tare_workflow_quantize_run(&report, arena, model, how, used);
    if (status == TARE_OK) status = tare_explain(&out->layers, arena, &report, used, false);
    if (status == TARE_OK) out->quantized = report;
    if (status == TARE_OK && !options->allow_unquantized) status = tare_workflow_quantize_check(&report);
    out->was_quantized = status == TARE_OK;
done:
    tare_calibration_free(made);
    return status;
}

static void step(const struct tare_convert_options *options) {
    if (options->step) options->step(options->step_arg);
}

/* Where functions were split automatically and there are samples, the model must return the same integers as before. */
static tare_status place(struct tare_converted *out, struct tare_arena *arena, struct tare_graph_model *model,
                         const struct tare_converter_options *converter, const struct tare_tpu_memory *before) {
    const bool checks = converter->automatic && converter->has_quantization && converter->quantization.n_datasets;
    struct tare_integer_outputs integers = { 0 };
    tare_status status;
    if (checks) TARE_CHECK(tare_integer_outputs_record(&integers, model, &converter->quantization));
    TARE_CHECK(tare_pipeline_place(&out->conversion, arena, model, converter, before));
    if (checks) status = tare_integer_outputs_check(&integers, model, &converter->quantization, &out->conversion.split);
done:
    tare_integer_outputs_free(&integers);
    return status;
}

tare_status tare_workflow_convert_run(struct tare_converted *out, struct tare_arena *arena,
                                      struct tare_graph_model *model, const struct tare_convert_options *options) {
    const struct tare_converter_options *converter = options->converter;
    struct tare_tpu_memory before;
    tare_status status;
    *out = (struct tare_converted){ .module_error = model->module_error };
    /* Functions that are found automatically are measured once they are known. */
    if (!converter->automatic) TARE_TRY(tare_pipeline_memory(&before, arena, model, converter));
    if (converter->has_quantization) {
        TARE_TRY(check_signatures(model, &converter->quantization));
        model->keep_variables_from = converter->quantization.options.keep_variables ? 1 : 0;
        TARE_TRY(tare_pipeline_prepare(model, out->prepared));
        step(options);
        TARE_TRY(quantize(out, arena, model, options));
    } else {
        step(options);
    }
    step(options);
    status = place(out, arena, model, converter, converter->automatic ? NULL : &before);
    if (status == TARE_OK) step(options);
    return status;
}

/* ---- telling ---- */

/* Whether the finding is the only reason of the failure and thus in its text. */
static void tell_findings(const struct tare_log *log, const struct tare_conversion *conversion, tare_status status) {
    size_t errors = 0;
    for (size_t i = 0; i < conversion->n_findings; i++)
        errors += tare_tpu_finding_is_error(conversion->findings[i].kind);
    if (status != TARE_OK && errors < 2) return;
    for (size_t i = 0; i < conversion->n_findings; i++) {
        bool error = status != TARE_OK && tare_tpu_finding_is_error(conversion->findings[i].kind);
        tare_warn(log, "%s%s", error ? "error: " : "", conversion->findings[i].text);
    }
}

/* A reason is "what (Op 'node' in function)": only the first part is common to several uses. */
static size_t reason_stem(const char *reason) {
    const char *place = strstr(reason, " (");
    return place ? (size_t)(place - reason) : strlen(reason);
}

/* One line per kind of reason, with the number of nodes, the first use and the number of other uses. */
static void tell_float32(const struct tare_log *log, const struct tare_bf16_kept_list *kept) {
    for (size_t i = 0; i < kept->count; i++) {
        const char *reason = kept->items[i].reason;
        const size_t stem = reason_stem(reason);
        size_t nodes = 0, uses = 0;
        bool known = false;
        for (size_t k = 0; k < kept->count && !known; k++) {
            const char *other = kept->items[k].reason;
            const bool same = reason_stem(other) == stem && strncmp(other, reason, stem) == 0;
            bool repeated = false;
            for (size_t b = 0; same && b < k && !repeated; b++)
                repeated = strcmp(kept->items[b].reason, other) == 0;
            known = same && k < i;
            nodes += same;
            uses += same && !repeated;
        }
        if (known) continue;
        if (uses > 1)
            tare_note(log, "%zu nodes stay float32: the value %s and %zu other%s", nodes, reason, uses - 1,
                      uses == 2 ? "" : "s");
        else
            tare_note(log, "%zu node%s stay%s float32: the value %s", nodes, nodes == 1 ? "" : "s",
                      nodes == 1 ? "s" : "", reason);
    }
}

static void tell_notes(const struct tare_log *log, const struct tare_conversion *conversion) {
    const struct tare_tpu_converted *existing = &conversion->existing;
    if (existing->tpu_calls)
        tare_note(log, "the model has been converted for TPU before: %zu TPUPartitionedCall (%s) are kept unchanged",
                  existing->tpu_calls, existing->first);
    for (size_t i = 0; i < conversion->split.n_notes; i++)
        tare_note(log, "%s", conversion->split.notes[i]);
    for (size_t i = 0; i < conversion->composites.count; i++) {
        const struct tare_composite *composite = &conversion->composites.items[i];
        tare_note(log, "function %s (%s) %s%s", composite->function, composite->implements,
                  composite->reason ? "stays composite: " : "was fused", composite->reason ? composite->reason : "");
    }
    tell_float32(log, &conversion->kept);
    for (size_t i = 0; i < conversion->batching.n_notes; i++)
        tare_note(log, "%s", conversion->batching.notes[i]);
    for (size_t i = 0; i < conversion->n_advice; i++)
        tare_note(log, "%s", conversion->advice[i]);
    if (conversion->stripped.assertions)
        tare_note(log, "removed %zu Assert op%s from the TPU functions, as compilation would",
                  conversion->stripped.assertions, conversion->stripped.assertions == 1 ? "" : "s");
}

void tare_workflow_convert_log(const struct tare_log *log, const struct tare_converted *converted,
                               const struct tare_converter_options *converter, tare_status status) {
    if (converter->has_quantization && converter->quantization.warning)
        tare_warn(log, "%s", converter->quantization.warning);
    for (size_t i = 0; converted->was_quantized && i < converted->quantized.n_unused_rules; i++)
        tare_warn(log, "%s: rule matches no layer", converted->quantized.unused_rules[i]);
    for (size_t i = 0; converted->was_quantized && i < converted->quantized.n_warnings; i++)
        tare_warn(log, "%s", converted->quantized.warnings[i]);
    tell_findings(log, &converted->conversion, status);
    if (status == TARE_OK && converted->module_error)
        tare_warn(log, "%s; it stays a module, in float32, and fails on a TPU unless XLA supports it there",
                  converted->module_error);
    if (status == TARE_OK) tell_notes(log, &converted->conversion);
}
