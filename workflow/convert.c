/* The whole conversion of a loaded model: calibration, quantization, TPU placement. */
#include "workflow/convert.h"
#include "workflow/batching/rows_check.h"
#include "base/strbuf.h"
#include "graph/calls.h"
#include "graph/gradients.h"
#include "convert/lost_methods.h"
#include "convert/pass.h"
#include "eval/model_inputs.h"
#include "eval/report/composites.h"
#include "workflow/dataset_path.h"
#include "workflow/integer_outputs.h"
#include "quant/fake_quant.h"
#include "tpu/detect_converted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text is TensorFlow's. */
static tare_status check_training(const struct tare_graph_model *model, const struct tare_quant_plan *plan) {
    const struct tare_quant_method *method = plan->setting.method;
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

/* The function that a signature calls; NULL: none. */
static const struct tare_graph *called_by(const struct tare_signature *signature) {
    const struct tare_node *node = signature->n_outputs ? signature->outputs[0].edge.node : NULL;
    while (node && tare_node_is(node, "Identity") && node->n_inputs)
        node = node->inputs[0].node;
    return node ? tare_node_function(node, "f") : NULL;
}

/* The loader of objects finds no signature where the function of one is none of its functions. */
static void forget_function(struct tare_graph_model *model, const struct tare_graph *function) {
    size_t kept = 0;
    for (size_t s = 0; s < model->n_signatures; s++)
        if (called_by(&model->signatures[s]) == function) return;
    for (size_t c = 0; c < model->n_concretes; c++)
        if (!function || model->concretes[c].graph != function) model->concretes[kept++] = model->concretes[c];
    model->n_concretes = kept;
}

static bool is_named(const struct tare_quantization *quantization, const struct tare_signature *signature) {
    for (size_t i = 0; i < quantization->n_signatures; i++)
        if (strcmp(signature->key, quantization->signatures[i]) == 0) return true;
    return false;
}

/* The functions that the named signatures call, directly or not. */
struct named {
    const struct tare_quantization *quantization;
    struct tare_arena *arena;
    bool *live; /* by function; NULL: not known yet */
    bool all;   /* every signature is named, or none of the model: none is dropped */
};

static tare_status find_named(struct named *named, const struct tare_graph_model *model) {
    struct tare_graph_model as_written = *model;
    as_written.signatures = TARE_NEW_ARRAY(named->arena, struct tare_signature, model->n_signatures + 1);
    as_written.n_signatures = 0;
    if (!as_written.signatures) return TARE_NO_MEMORY;
    for (size_t s = 0; s < model->n_signatures; s++)
        if (is_named(named->quantization, &model->signatures[s]))
            as_written.signatures[as_written.n_signatures++] = model->signatures[s];
    named->all = !as_written.n_signatures || as_written.n_signatures == model->n_signatures;
    return tare_model_reachable_functions(&named->live, named->arena, &as_written, false);
}

/* Layers of other functions stay float. */
static bool is_called(void *arg, const struct tare_graph *graph, const struct tare_node *op) {
    struct named *named = arg;
    const struct tare_graph_model *model = graph->model;
    (void)op;
    if (!named->live && find_named(named, model) != TARE_OK) named->all = true;
    for (size_t i = 0; !named->all && i < model->n_functions; i++)
        if (model->functions[i] == graph) return named->live[i];
    return true;
}

/* As TensorFlow's quantizer: the signatures that the options name are written, others are dropped; serving_default if
 * they name none. Aliases keep their functions. A calibration is one of all signatures: they go after it is used. */
static tare_status drop_signatures(struct tare_graph_model *model, struct tare_arena *arena,
                                   const struct tare_quantization *quantization, const struct tare_log *log) {
    const size_t all = model->n_signatures;
    struct tare_signature *sorted = TARE_NEW_ARRAY(arena, struct tare_signature, all + 1);
    size_t count = 0, dropped = 0, changes = 0;
    if (!sorted) return TARE_NO_MEMORY;
    for (size_t s = 0; s < all; s++)
        if (is_named(quantization, &model->signatures[s])) sorted[count++] = model->signatures[s];
    for (size_t s = 0; s < all; s++)
        if (!is_named(quantization, &model->signatures[s])) sorted[count + dropped++] = model->signatures[s];
    if (!count || !dropped) return TARE_OK;
    tare_note(log, "%zu of %zu signatures are written: those that signature_keys of quantization_options names%s",
              count, all, quantization->names_signatures ? "" : " (none: serving_default)");
    model->dropped_signatures = TARE_NEW_ARRAY(&model->arena, struct tare_dropped_signature, dropped);
    if (!model->dropped_signatures) return TARE_NO_MEMORY;
    memcpy(model->signatures, sorted, all * sizeof *sorted);
    model->n_signatures = count;
    for (size_t s = count; s < all; s++) {
        const struct tare_graph *function = called_by(&sorted[s]);
        model->dropped_signatures[model->n_dropped_signatures++] =
            (struct tare_dropped_signature){ sorted[s].key, function ? function->name : NULL };
        forget_function(model, function);
    }
    return tare_pass_prune.run(model, &changes);
}

/* The data sets of the options as values of --data. */
static tare_status list_datasets(struct tare_option_list *out, struct tare_arena *arena,
                                 const struct tare_quantization *quantization) {
    out->items = TARE_NEW_ARRAY(arena, const char *, quantization->n_datasets + 1);
    if (!out->items) return TARE_NO_MEMORY;
    for (; out->count < quantization->n_datasets; out->count++) {
        const struct tare_dataset_file *dataset = &quantization->datasets[out->count];
        struct tare_strbuf path = { 0 };
        const tare_status status = tare_workflow_dataset_path(&path, dataset->path);
        out->items[out->count] = tare_arena_printf(arena, "%s=%s", dataset->signature, tare_strbuf_text(&path));
        tare_strbuf_free(&path);
        TARE_TRY(status);
        if (!out->items[out->count]) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

/* The text is TensorFlow's. */
static tare_status check_samples(const struct tare_graph_model *model, const struct tare_convert_options *options,
                                 const struct tare_quantize_request *request) {
    const struct tare_quantization *quantization = &options->converter->quantization;
    const bool has_any = request->data.count || request->calibration || options->quantize.calibration;
    if (!quantization->from_text || has_any || !tare_quant_plan_needs_calibration(&request->plan)) return TARE_OK;
    if (!tare_quant_plan_needs_channels(&request->plan) && tare_quant_is_trained(model)) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT,
                     "When `representative_dataset` is not provided, the model should be trained with "
                     "quantization-aware training (QAT). (representative_datasets has no entry for '%s')",
                     quantization->signatures[0]);
}

static tare_status quantize(struct tare_converted *out, struct tare_arena *arena, struct tare_graph_model *model,
                            const struct tare_convert_options *options) {
    const struct tare_quantization *quantization = &options->converter->quantization;
    struct tare_quantize_request request = *options->quantize.request;
    struct tare_quantize_task task = options->quantize;
    struct named named = { .quantization = quantization, .arena = arena };
    task.request = &request;
    task.is_placed_later = true;
    task.checks_later = options->converter->bfloat16 && options->converter->extent == TARE_BF16_CHECKED;
    request.plan = quantization->plan;
    if (quantization->from_text) {
        request.plan.accepts = is_called;
        request.plan.accepts_arg = &named;
    }
    if (!request.data.count) TARE_TRY(list_datasets(&request.data, arena, quantization));
    TARE_TRY(check_signatures(model, quantization));
    if (quantization->from_text) TARE_TRY(check_training(model, &request.plan));
    TARE_TRY(check_samples(model, options, &request));
    TARE_TRY(tare_workflow_quantize(&out->quantized, arena, model, &task));
    out->was_quantized = true;
    out->prepared = out->quantized.prepared;
    return quantization->from_text ? drop_signatures(model, arena, quantization, options->quantize.log) : TARE_OK;
}

/* A float model with batch normalizations is frozen, and they are folded: unfolded ones take up to 1.8 times as long on
 * a TPU. One that was converted before stays as it is. */
static tare_status fold(struct tare_converted *out, struct tare_arena *arena, struct tare_graph_model *model,
                        const struct tare_convert_options *options) {
    const size_t norms = tare_count_batch_norms(model);
    struct tare_tpu_converted existing;
    TARE_TRY(tare_tpu_detect_converted(&existing, arena, model));
    if (!norms || existing.tpu_calls || existing.batchers) return TARE_OK;
    if (options->converter->keeps_variables) {
        out->unfolded = norms;
        return TARE_OK;
    }
    TARE_TRY(tare_error_prefix(tare_pipeline_prepare(model, out->folded), "%s", options->quantize.path));
    out->prepared = out->folded;
    return TARE_OK;
}

static void step(const struct tare_convert_options *options) {
    if (options->step) options->step(options->step_arg);
}

/* The request with its data: the representative datasets of the options, unless there is --data. */
static tare_status list_samples(struct tare_quantize_request *out, struct tare_arena *arena,
                                const struct tare_converter_options *converter,
                                const struct tare_convert_options *options) {
    *out = *options->quantize.request;
    return out->data.count || !converter->has_quantization ? TARE_OK
                                                           : list_datasets(&out->data, arena, &converter->quantization);
}

/* Where functions were split automatically and there are samples, the model must return the same integers as before. */
static tare_status place(struct tare_converted *out, struct tare_arena *arena, struct tare_graph_model *model,
                         const struct tare_converter_options *converter, const struct tare_tpu_memory *before,
                         const struct tare_convert_options *options) {
    const bool checks = converter->automatic && converter->has_quantization && converter->quantization.n_datasets;
    struct tare_integer_outputs integers = { 0 };
    struct tare_quantize_request request;
    struct tare_rows_check rows;
    tare_status status;
    if (checks) TARE_CHECK(tare_integer_outputs_record(&integers, model, &converter->quantization));
    TARE_CHECK(tare_pipeline_place(&out->conversion, arena, model, converter, before));
    if (checks)
        TARE_CHECK(tare_integer_outputs_check(&integers, model, &converter->quantization, &out->conversion.split));
    TARE_CHECK(list_samples(&request, arena, converter, options));
    rows.samples = &request;
    rows.allows = converter->allows_dependent_rows;
    status = tare_workflow_check_rows(&out->conversion.batching, arena, model, &rows);
done:
    tare_integer_outputs_free(&integers);
    return status;
}

/* With samples, a copy is converted and run first: what changes outputs stays float32. */
static tare_status check_bfloat16(struct tare_converted *out, struct tare_converter_options *converter,
                                  struct tare_arena *arena, const struct tare_graph_model *model,
                                  const struct tare_convert_options *options) {
    struct tare_quantize_request request;
    if (!converter->bfloat16 || converter->extent != TARE_BF16_CHECKED) return TARE_OK;
    TARE_TRY(list_samples(&request, arena, converter, options));
    TARE_TRY(tare_workflow_bfloat16_check(&out->checked, arena, model, converter, &request));
    converter->float_nodes = out->checked.nodes;
    converter->n_float_nodes = out->checked.n_nodes;
    return TARE_OK;
}

tare_status tare_workflow_convert_find_functions(struct tare_converter_options *converter, struct tare_arena *arena,
                                                 const struct tare_graph_model *model) {
    struct tare_tpu_converted existing;
    if (converter->automatic || converter->n_functions) return TARE_OK;
    TARE_TRY(tare_tpu_detect_converted(&existing, arena, model));
    converter->automatic = !existing.tpu_calls;
    return TARE_OK;
}

tare_status tare_workflow_convert_run(struct tare_converted *out, struct tare_arena *arena,
                                      struct tare_graph_model *model, const struct tare_convert_options *options) {
    struct tare_converter_options checked = *options->converter;
    const struct tare_converter_options *converter = &checked;
    struct tare_tpu_memory before;
    tare_status status;
    *out = (struct tare_converted){ .module_error = model->module_error, .module_note = model->module_note };
    TARE_TRY(tare_pipeline_refuse_tf1(model, converter)); /* before samples run */
    /* Functions that are found automatically are measured once they are known. */
    if (!converter->automatic) TARE_TRY(tare_pipeline_memory(&before, arena, model, converter));
    step(options);
    if (converter->keeps_variables && !converter->has_quantization) {
        model->keep_gradients = true;
        TARE_TRY(tare_model_keep_captured(model));
    }
    TARE_TRY(converter->has_quantization ? quantize(out, arena, model, options) : fold(out, arena, model, options));
    step(options);
    TARE_TRY(check_bfloat16(out, &checked, arena, model, options));
    status = place(out, arena, model, converter, converter->automatic ? NULL : &before, options);
    if (status == TARE_OK) step(options);
    if (status == TARE_OK && !out->was_quantized) status = tare_lost_methods(&out->lost_methods, arena, model);
    return status;
}

/* ---- findings ---- */

/* Whether the finding is the only reason of the failure and thus in its text. */
static void warn_of_findings(const struct tare_log *log, const struct tare_conversion *conversion, tare_status status) {
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
static void print_float32(const struct tare_log *log, const struct tare_bf16_kept_list *kept) {
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

/* What the check measured, in two lines at most. */
static void print_checked(const struct tare_log *log, const struct tare_bfloat16_checked *checked) {
    const struct tare_bfloat16_output *worst = NULL;
    if (checked->skipped) tare_note(log, "bfloat16 was not checked: %s", checked->skipped);
    for (size_t i = 0; i < checked->n_outputs; i++)
        if (!worst || checked->outputs[i].sqnr < worst->sqnr) worst = &checked->outputs[i];
    if (!worst) return;
    if (checked->n_nodes)
        tare_note(log,
                  "bfloat16 left %.1f dB of what varies between records, from node '%s'%s%s on: %zu node%s stay%s "
                  "float32 by the check of %lld records",
                  checked->before, checked->nodes[0].node, checked->nodes[0].function[0] ? " in " : "",
                  checked->nodes[0].function, checked->n_nodes, checked->n_nodes == 1 ? "" : "s",
                  checked->n_nodes == 1 ? "s" : "", (long long)checked->records);
    if (worst->sqnr < TARE_BFLOAT16_DB)
        tare_warn(log,
                  "bfloat16 leaves output '%s' of '%s' %.1f dB of what varies between records (expected %d or more: "
                  "set bfloat16_optimization: DISABLED, or name ops in the filterlist)",
                  worst->key, worst->signature, worst->sqnr, TARE_BFLOAT16_DB);
}

static void print_notes(const struct tare_log *log, const struct tare_conversion *conversion) {
    const struct tare_tpu_converted *existing = &conversion->existing;
    if (existing->tpu_calls)
        tare_note(log, "the model has been converted for TPU before: %zu TPUPartitionedCall (%s) are kept unchanged",
                  existing->tpu_calls, existing->first);
    for (size_t i = 0; i < conversion->split.n_notes; i++)
        tare_note(log, "%s", conversion->split.notes[i]);
    tare_composites_log(log, &conversion->composites);
    print_float32(log, &conversion->kept);
    if (conversion->bfloat16)
        tare_note(log,
                  "%s is bfloat16 already: all else stays float32, as with bfloat16_optimization: DISABLED "
                  "(skip_safety_checks: true in bfloat16_optimization_options converts it)",
                  conversion->bfloat16);
    if (conversion->keeps_modules)
        tare_note(log,
                  "the filterlist names XlaCallModule: the computation of the model's modules stays float32, and all "
                  "else, as with bfloat16_optimization: DISABLED");
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
    if (converted->was_quantized) tare_workflow_quantize_log(log, &converted->quantized);
    warn_of_findings(log, &converted->conversion, status);
    if (status == TARE_OK && converted->module_error)
        tare_warn(log, "%s; it stays a module, in float32, and fails on a TPU unless XLA supports it there",
                  converted->module_error);
    if (status == TARE_OK && converted->module_note) tare_warn(log, "%s", converted->module_note);
    if (status == TARE_OK) print_checked(log, &converted->checked);
    if (status == TARE_OK && converted->conversion.seeds.count)
        tare_warn(log,
                  "%zu assignment%s removed that only advance%s a seed (%s), because a TPU function cannot write "
                  "variables: layers that draw from them draw the same numbers in each request (--keep-variables keeps "
                  "the assignments, on the CPU)",
                  converted->conversion.seeds.count, converted->conversion.seeds.count == 1 ? " is" : "s are",
                  converted->conversion.seeds.count == 1 ? "s" : "", converted->conversion.seeds.first);
    for (size_t i = 0; status == TARE_OK && i < converted->conversion.batching.n_warnings; i++)
        tare_warn(log, "%s", converted->conversion.batching.warnings[i]);
    if (status == TARE_OK) print_notes(log, &converted->conversion);
    if (status == TARE_OK) tare_workflow_lost_log(log, converted->lost_methods);
    if (status == TARE_OK && converted->unfolded)
        tare_note(log,
                  "%zu batch normalization%s not folded because variables stay (--keep-variables, convert_checkpoint, "
                  "filterlist): this takes a TPU up to 1.8 times as long, by model and chip (tare check compares)",
                  converted->unfolded, converted->unfolded == 1 ? " is" : "s are");
}
