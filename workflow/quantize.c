/* The main line of a quantization: prepare, calibrate, search, build. */
#include "workflow/quantize.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "convert/lost_methods.h"
#include "eval/model_inputs.h"
#include "quant/fake_quant.h"
#include "quant/recipe.h"
#include "tpu/chips.h"
#include "workflow/calibrate.h"
#include "workflow/cpu_check.h"
#include "workflow/evaluation_data.h"
#include "workflow/quality_check.h"
#include "workflow/speed_estimate.h"

#include <string.h>

/* ---- requests ---- */

static tare_status check_measuring(const struct tare_quantize_request *request) {
    const bool has_target = tare_workflow_mixed_precision_requested(&request->target);
    TARE_TRY(tare_workflow_mixed_precision_open(&request->target));
    if (has_target && !request->eval.count)
        return TARE_FAIL(
            TARE_USAGE,
            "a target (--max-drop, --min-sqnr, --max-mae, --max-size) needs evaluation records (give --eval FILE)");
    if (request->automatic && !request->data.count)
        return TARE_FAIL(TARE_USAGE, "--auto needs representative samples (give --data FILE)");
    if (request->automatic && (request->plan.recipe || request->plan.recipe_file))
        return TARE_FAIL(TARE_USAGE,
                         "--auto and --recipe (or --rule) are mutually exclusive: auto chooses the layers itself");
    if (request->automatic && !request->plan.setting.method)
        return TARE_FAIL(TARE_USAGE, "--auto needs a method other than float");
    return TARE_OK;
}

/* A chip that multiplies float8 faster than integers gets float8, unless the numbers are given. */
static tare_status choose_format(struct tare_quantize_request *request) {
    struct tare_quant_setting *setting = &request->plan.setting;
    const bool given = setting->given >> TARE_SET_FORMAT & 1 || setting->given >> TARE_SET_BITS & 1 ||
                       setting->given >> TARE_SET_ACTIVATION_BITS & 1;
    if (!request->chip || given || !setting->method || !setting->method->integer_inputs ||
        request->plan.op_set != TARE_OP_SET_XLA || !tare_tpu_chip_prefers_float8(&tare_tpu_chips[request->chip - 1]))
        return TARE_OK;
    setting->format = TARE_FORMAT_E4M3;
    setting->given |= 1u << TARE_SET_FORMAT;
    request->prefers_float8 = true;
    return tare_quant_check_setting(setting);
}

/* What the chip of the request has no units for, or that it was given float8. */
static tare_status warn_of_units(struct tare_quantized *out, struct tare_arena *arena,
                                 const struct tare_quantize_request *request) {
    const struct tare_quant_setting *setting = &out->plan.setting;
    const struct tare_tpu_chip *chip = request->chip ? &tare_tpu_chips[request->chip - 1] : NULL;
    if (!chip || !setting->method || !setting->method->integer_inputs) return TARE_OK;
    const char *lacks = tare_tpu_chip_lacks(chip, !setting->format, setting->format);
    if (lacks) return tare_quant_add_warning(&out->report, arena, "a Cloud TPU %s %s", chip->name, lacks);
    if (!request->prefers_float8) return TARE_OK;
    return tare_quant_add_warning(&out->report, arena,
                                  "a Cloud TPU %s multiplies float8 fastest: --format fp8_e4m3 was chosen (--format "
                                  "sets another one); the module that tare export writes has these products",
                                  chip->name);
}

tare_status tare_workflow_quantize_open(struct tare_quantize_request *request, struct tare_arena *arena) {
    TARE_TRY(tare_quant_plan_open(&request->plan, arena));
    TARE_TRY(choose_format(request));
    TARE_TRY(check_measuring(request));
    TARE_TRY(tare_data_options_open(&request->records));
    return tare_workflow_keep_expected(request->records.spec, request->label, request->target_key);
}

bool tare_workflow_quantize_requested(const struct tare_quantize_request *request) {
    return tare_quant_plan_is_given(&request->plan) || request->data.count || request->calibration ||
           request->automatic || request->chip || tare_workflow_mixed_precision_requested(&request->target);
}

void tare_workflow_quantize_close(struct tare_quantize_request *request) {
    tare_data_options_close(&request->records);
}

/* ---- samples ---- */

struct tare_quantize_needs tare_workflow_quantize_needs(const struct tare_quantize_request *request,
                                                        const struct tare_quant_plan *plan) {
    return (struct tare_quantize_needs){ .calibration = request->automatic || tare_quant_plan_needs_calibration(plan),
                                         .channels = request->automatic || tare_quant_plan_needs_channels(plan),
                                         .hessians = request->automatic || tare_quant_plan_needs_hessians(plan) };
}

static tare_status needs_samples(const char *what) {
    return TARE_FAIL(TARE_USAGE, "%s needs representative samples (give --data FILE or --calibration FILE)", what);
}

tare_status tare_workflow_quantize_check_samples(const struct tare_quantize_request *request,
                                                 const struct tare_quant_plan *plan) {
    const struct tare_quantize_needs needs = tare_workflow_quantize_needs(request, plan);
    if (!needs.calibration) return TARE_OK;
    if (request->calibration && request->data.count && !needs.hessians)
        return TARE_FAIL(TARE_USAGE, "--calibration and --data are mutually exclusive");
    if (request->calibration || request->data.count || (!needs.hessians && !needs.channels)) return TARE_OK;
    return needs_samples(request->automatic ? "--auto" : "an accuracy pass");
}

static void warn_of_unused_samples(const struct tare_quantize_task *task) {
    const struct tare_quantize_request *request = task->request;
    if ((request->data.count && !task->checks_later) || request->calibration)
        tare_warn(task->log, "--%s: neither the method nor a rule of the recipe needs activation ranges",
                  request->data.count ? "data only checks the result" : "calibration is not used");
}

/* Whether the model can be quantized as its training set the ranges. */
static tare_status check_samples(bool *trained, const struct tare_quantize_task *task,
                                 const struct tare_quant_plan *plan, const struct tare_graph_model *model) {
    const struct tare_quantize_request *request = task->request;
    *trained = false;
    if (task->calibration) return TARE_OK;
    TARE_TRY(tare_workflow_quantize_check_samples(request, plan));
    if (request->calibration || request->data.count) return TARE_OK;
    *trained = tare_quant_is_trained(model);
    return *trained ? TARE_OK : needs_samples("static quantization");
}

/* *out stays NULL if nothing needs statistics. */
static tare_status calibrate(struct tare_calibration **out, const struct tare_quantize_task *task,
                             const struct tare_quant_plan *plan, const struct tare_graph_model *model) {
    const struct tare_quantize_request *request = task->request;
    const struct tare_quantize_needs needs = tare_workflow_quantize_needs(request, plan);
    const struct tare_calibrate_options options = { .signature = request->signature,
                                                    .data = request->data.items,
                                                    .n_data = request->data.count,
                                                    .limit = request->limit,
                                                    .spec = request->records.spec,
                                                    .feedback = &request->records.feedback,
                                                    .progress = !task->quiet,
                                                    .channels = needs.channels,
                                                    .hessians = needs.hessians,
                                                    .interrupted = task->interrupted };
    bool trained;
    if (!needs.calibration) {
        warn_of_unused_samples(task);
        return TARE_OK;
    }
    TARE_TRY(check_samples(&trained, task, plan, model));
    if (trained) return TARE_OK;
    if (task->calibration) {
        TARE_TRY(tare_calibration_fit(out, task->calibration, model, "the calibration"));
        if (!*out) *out = tare_calibration_share(task->calibration);
        if (task->calibration_log) TARE_TRY(tare_workflow_calibrate_log(task->calibration_log, *out));
        return options.hessians && options.n_data ? tare_workflow_calibrate_hessians(*out, model, &options) : TARE_OK;
    }
    TARE_TRY(tare_workflow_calibrate_from(out, model, request->calibration, &options));
    if (!task->log) return TARE_OK;
    tare_data_options_warn(task->log, request->records.spec);
    return tare_workflow_calibrate_log(task->log, *out);
}

/* ---- what is found by measuring ---- */

/* The records of --eval; the calibration is added when there is one. */
static struct tare_evaluation evaluation_of(const struct tare_quantize_task *task, struct tare_variant_source *source) {
    const struct tare_quantize_request *request = task->request;
    return (struct tare_evaluation){ .source = source,
                                     .signature = request->signature,
                                     .records = { .paths = request->eval.items,
                                                  .n_paths = request->eval.count,
                                                  .spec = request->records.spec,
                                                  .feedback = &request->records.feedback,
                                                  .batch = TARE_RUNNER_BATCH,
                                                  .interrupted = task->interrupted },
                                     .label = request->label,
                                     .target_key = request->target_key,
                                     .metric = request->metric,
                                     .threads = tare_cpu_count(),
                                     .quiet = task->quiet };
}

/* Warns of evaluation records that the calibration has seen. */
static tare_status check_leakage(const struct tare_quantize_task *task, const struct tare_graph_model *model,
                                 const struct tare_evaluation *evaluation) {
    struct tare_leakage leakage;
    if (!task->request->eval.count || !task->log) return TARE_OK;
    TARE_TRY(tare_workflow_find_leakage(&leakage, model, evaluation));
    tare_workflow_warn_of_leakage(task->log, &leakage);
    return TARE_OK;
}

static struct tare_variant variant_of(const struct tare_quant_plan *plan) {
    return (struct tare_variant){ .name = plan->setting.method ? plan->setting.method->name : "float", .plan = *plan };
}

/* Replaces the plan by the one that was chosen. */
static tare_status choose(struct tare_quantized *out, const struct tare_option_list *samples,
                          const struct tare_evaluation *evaluation) {
    const struct tare_variant variant = variant_of(&out->plan);
    const struct tare_autotune_task choosing = {
        .evaluation = evaluation, .data = samples->items, .n_data = samples->count, .variant = &variant
    };
    TARE_TRY(tare_workflow_autotune_choose(&out->automatic, &choosing));
    out->plan = out->automatic.variant.plan;
    return TARE_OK;
}

/* Adds a rule for each layer whose precision is not that of the plan. */
static tare_status search_target(struct tare_quantized *out, struct tare_arena *arena,
                                 const struct tare_mixed_precision_request *target,
                                 const struct tare_evaluation *evaluation) {
    enum { SENSITIVITY_RECORDS = 200 };
    const struct tare_variant variant = variant_of(&out->plan);
    const struct tare_mixed_precision_task searching = {
        .options = target, .evaluation = evaluation, .variant = &variant, .sensitivity_limit = SENSITIVITY_RECORDS
    };
    TARE_TRY(tare_workflow_mixed_precision_run(&out->targeting, &searching));
    TARE_TRY(tare_workflow_mixed_precision_check(&out->targeting));
    return tare_workflow_mixed_precision_apply(&out->plan, arena, &out->targeting);
}

static tare_status search(struct tare_quantized *out, struct tare_arena *arena,
                          const struct tare_quantize_request *request, const struct tare_evaluation *evaluation) {
    if (request->automatic) TARE_TRY(choose(out, &request->data, evaluation));
    if (!tare_workflow_mixed_precision_requested(&request->target)) return TARE_OK;
    return search_target(out, arena, &request->target, evaluation);
}

/* Adds a rule for each layer that does not become faster on the chip of the request. */
static tare_status choose_layers(struct tare_quantized *out, struct tare_arena *arena,
                                 const struct tare_graph_model *model, const struct tare_quantize_request *request,
                                 const struct tare_calibration *calibration) {
    const struct tare_fastest_task choosing = { .model = model,
                                                .plan = &out->plan,
                                                .calibration = calibration,
                                                .signature = request->signature,
                                                .chip = request->chip - 1,
                                                .batch = request->batch };
    if (!request->chip || !tare_quant_plan_quantizes(&out->plan)) return TARE_OK;
    TARE_TRY(tare_workflow_fastest(&out->fastest, arena, &choosing));
    return tare_workflow_fastest_apply(&out->plan, arena, &out->fastest);
}

/* ---- the model ---- */

/* Builds the model by the plan. */
static tare_status build(struct tare_quantized *out, struct tare_arena *arena, struct tare_graph_model *model,
                         const struct tare_quantize_task *task, const struct tare_calibration *calibration) {
    struct tare_quant_plan plan = out->plan;
    double before, after;
    plan.warns = true;
    plan.quiet = task->quiet;
    TARE_TRY(tare_workflow_estimate_speed(&before, model));
    TARE_TRY(tare_pipeline_quantize(&out->report, arena, model, &plan, calibration));
    TARE_TRY(tare_workflow_estimate_speed(&after, model));
    if (!out->fastest.chip && !task->speed_is_known)
        TARE_TRY(tare_workflow_warn_of_slower(&out->report, arena, before, after));
    if (out->fastest.chip) TARE_TRY(tare_workflow_fastest_explain(&out->report, arena, &out->fastest));
    TARE_TRY(warn_of_units(out, arena, task->request));
    if (!task->is_placed_later) TARE_TRY(tare_workflow_warn_of_left(&out->report, arena, model));
    if (!task->without_layers) TARE_TRY(tare_explain(&out->layers, arena, &out->report, calibration, false));
    if (task->request->allow_unquantized || out->fastest.n_float || !tare_quant_plan_quantizes(&plan)) return TARE_OK;
    const tare_status status = tare_workflow_quantize_check(&out->report);
    if (status != TARE_UNSUPPORTED) return status;
    return TARE_FAIL(status, "%s (--allow-unquantized accepts this)", tare_error_text());
}

static tare_status write_recipe(const struct tare_quantized *quantized, const struct tare_quantize_request *request) {
    const struct tare_sample_options samples = { .data = request->data.items,
                                                 .n_data = request->data.count,
                                                 .calibration = request->calibration,
                                                 .spec = request->records.spec_path,
                                                 .feedback = &request->records.feedback,
                                                 .signature = request->signature,
                                                 .limit = request->limit };
    struct tare_strbuf text = { 0 };
    tare_status status;
    if (!request->write_recipe) return TARE_OK;
    tare_workflow_recipe_put(&text, &quantized->plan, &samples, &quantized->automatic, &quantized->targeting.result,
                             &quantized->fastest);
    status = text.failed ? TARE_NO_MEMORY : tare_file_write(request->write_recipe, tare_strbuf_text(&text), text.size);
    tare_strbuf_free(&text);
    return status;
}

tare_status tare_workflow_quantize(struct tare_quantized *out, struct tare_arena *arena, struct tare_graph_model *model,
                                   const struct tare_quantize_task *task) {
    const struct tare_quantize_request *request = task->request;
    struct tare_variant_source source = { .model = task->path, .ops = task->ops };
    struct tare_evaluation evaluation = evaluation_of(task, &source);
    const struct tare_signature *signature;
    struct tare_calibration *calibration = NULL;
    tare_status status;
    *out = (struct tare_quantized){ .plan = request->plan };
    if (request->signature) TARE_TRY(tare_pick_signature(&signature, model, request->signature));
    TARE_TRY(tare_model_weight_bytes(&out->float_bytes, model));
    model->keep_variables_from = request->plan.keep_variables ? 1 : 0;
    model->keep_gradients = request->plan.keep_variables && !tare_quant_plan_quantizes(&request->plan);
    TARE_TRY(tare_error_prefix(tare_pipeline_prepare(model, out->prepared), "%s", task->path));
    out->composites = model->composites;
    if (request->eval.count) TARE_TRY(tare_workflow_check_label(&evaluation));
    TARE_CHECK(calibrate(&calibration, task, &out->plan, model));
    evaluation.calibration = calibration;
    TARE_CHECK(check_leakage(task, model, &evaluation));
    TARE_CHECK(search(out, arena, request, &evaluation));
    tare_variant_source_close(&source);
    TARE_CHECK(choose_layers(out, arena, model, request, calibration));
    TARE_CHECK(build(out, arena, model, task, calibration));
    TARE_CHECK(tare_workflow_check_quality(out, arena, model, task));
    TARE_CHECK(tare_model_weight_bytes(&out->bytes, model));
    TARE_CHECK(tare_lost_methods(&out->lost_methods, arena, model));
    status = write_recipe(out, request);
done:
    tare_variant_source_close(&source);
    tare_calibration_free(calibration);
    return status;
}

void tare_workflow_quantized_free(struct tare_quantized *quantized) {
    tare_workflow_autotune_free(&quantized->automatic);
    tare_workflow_mixed_precision_close(&quantized->targeting);
}

/* ---- text ---- */

void tare_workflow_lost_log(const struct tare_log *log, const char *methods) {
    if (methods)
        tare_note(log,
                  "methods of the loaded object that no signature and no alias calls are removed: %s "
                  "(SaveOptions(function_aliases=...) keeps them)",
                  methods);
}

void tare_workflow_quantize_log(const struct tare_log *log, const struct tare_quantized *quantized) {
    for (size_t i = 0; i < quantized->report.n_unused_rules; i++) {
        const char *hint = quantized->report.unused_hints[i];
        tare_warn(log, "%s: rule matches no layer%s%s%s", quantized->report.unused_rules[i],
                  hint ? " (did you mean " : "", hint ? hint : "", hint ? "?)" : "");
    }
    for (size_t i = 0; i < quantized->report.n_warnings; i++)
        tare_warn(log, "%s", quantized->report.warnings[i]);
    for (size_t i = 0; i < quantized->report.n_notes; i++)
        tare_note(log, "%s", quantized->report.notes[i]);
    tare_workflow_lost_log(log, quantized->lost_methods);
}

void tare_workflow_quantize_tables(struct tare_strbuf *out, const struct tare_quantized *quantized) {
    if (quantized->automatic.method) tare_workflow_autotune_table(out, &quantized->automatic);
    if (quantized->targeting.result.points) tare_target_table(out, &quantized->targeting.result);
    if (!quantized->fastest.chip) return;
    tare_workflow_fastest_put(out, &quantized->fastest);
    tare_strbuf_putc(out, '\n');
}

/* A path with a line break would end a comment. */
static void put_path(struct tare_strbuf *out, const char *option, const char *path) {
    if (!path) return;
    tare_strbuf_printf(out, " --%s ", option);
    tare_strbuf_shell_word(out, strpbrk(path, "\r\n") ? "FILE" : path);
}

static void put_samples(struct tare_strbuf *out, const struct tare_quant_plan *plan,
                        const struct tare_sample_options *samples) {
    if (!tare_quant_plan_needs_calibration(plan)) return;
    for (size_t i = 0; i < samples->n_data; i++)
        put_path(out, "data", samples->data[i]);
    put_path(out, "spec", samples->n_data ? samples->spec : NULL);
    if (samples->n_data) tare_feedback_put(out, samples->feedback);
    put_path(out, "calibration", samples->calibration);
    put_path(out, "signature", samples->signature);
    if (samples->n_data && samples->limit) tare_strbuf_printf(out, " --limit %lld", (long long)samples->limit);
}

void tare_workflow_plan_put(struct tare_strbuf *out, const struct tare_quant_plan *plan,
                            const struct tare_sample_options *samples) {
    put_samples(out, plan, samples);
    tare_quant_plan_put(out, plan);
}

void tare_workflow_recipe_put(struct tare_strbuf *out, const struct tare_quant_plan *plan,
                              const struct tare_sample_options *samples, const struct tare_autotune *automatic,
                              const struct tare_target_result *target, const struct tare_fastest *fastest) {
    tare_strbuf_puts(out, "# tare quantize MODEL OUT");
    put_samples(out, plan, samples);
    tare_strbuf_puts(out, " --recipe FILE\n");
    if (automatic && automatic->method) tare_workflow_autotune_heading(out, automatic);
    if (target && target->points) tare_target_heading(out, target);
    if (fastest && fastest->chip) {
        tare_strbuf_puts(out, "# ");
        tare_workflow_fastest_put(out, fastest);
        tare_strbuf_putc(out, '\n');
    }
    tare_quant_plan_write(out, plan);
}

struct reason {
    const char *text;
    size_t count;
};

/* The most frequent reason; of several, the first one. */
static tare_status main_reason(struct reason *out, const struct tare_quant_report *report) {
    struct tare_map by_text = { 0 };
    struct reason *reasons = tare_calloc(report->count + 1, sizeof *reasons);
    size_t n_reasons = 0;
    tare_status status = reasons ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < report->count && status == TARE_OK; i++) {
        const char *refused = report->outcomes[i].refused;
        struct reason *reason = refused ? tare_map_get(&by_text, refused) : NULL;
        if (refused && !reason) {
            reason = &reasons[n_reasons++];
            reason->text = refused;
            if (!tare_map_set(&by_text, refused, reason)) status = TARE_NO_MEMORY;
        }
        if (reason) reason->count++;
    }
    for (size_t i = 0; i < n_reasons; i++)
        if (reasons[i].count > out->count) *out = reasons[i];
    tare_map_free(&by_text);
    tare_free(reasons);
    return status;
}

tare_status tare_workflow_quantize_check(const struct tare_quant_report *report) {
    struct reason reason = { .text = "unknown" };
    if (report->quantized) return TARE_OK;
    if (!report->count && report->integer_products)
        return TARE_FAIL(
            TARE_UNSUPPORTED,
            "nothing was quantized: the model has no quantizable op (%zu products multiply integers already)",
            report->integer_products);
    if (!report->count) return TARE_FAIL(TARE_UNSUPPORTED, "nothing was quantized: the model has no quantizable op");
    TARE_TRY(main_reason(&reason, report));
    return TARE_FAIL(TARE_UNSUPPORTED, "none of %zu quantizable ops was quantized; reason for %zu of them: %s",
                     report->count, reason.count, reason.text);
}
