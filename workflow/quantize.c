/* Quantizes a model as requested by a user: parses the request, prepares the model, and runs the quantizer. */
#include "workflow/quantize.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "quant/recipe.h"
#include "workflow/speed_estimate.h"

#include <stdio.h>
#include <string.h>

tare_status tare_workflow_quantize_method(const struct tare_quant_method **out, const char *option, const char *name) {
    const char *known[16] = { "float" };
    const char *nearest;
    *out = tare_quant_method_find(name);
    if (*out || strcmp(name, "float") == 0) return TARE_OK;
    for (size_t i = 0; i < 14 && tare_quant_methods[i]; i++)
        known[i + 1] = tare_quant_methods[i]->name;
    nearest = tare_nearest_name(name, known);
    return TARE_FAIL(TARE_USAGE, "%s: unknown method '%s' (%s%s%s)", option, name,
                     nearest ? "did you mean '" : "expected static, dynamic, weight_only or float",
                     nearest ? nearest : "", nearest ? "'?" : "");
}

static tare_status read_recipe(struct tare_quant_recipe **out, struct tare_arena *arena, const char *path) {
    char *data = NULL;
    size_t size = 0;
    tare_status status;
    TARE_TRY(tare_file_read(&data, &size, path));
    status = tare_quant_recipe_new(out, arena);
    if (status == TARE_OK) status = tare_quant_recipe_read(*out, data, size, path);
    tare_free(data);
    return status;
}

tare_status tare_workflow_quantize_apply_layers(struct tare_quant_options *out, struct tare_arena *arena,
                                                const struct tare_layer_request *options) {
    struct tare_quant_recipe *recipe = NULL;
    out->op_set = (enum tare_quant_op_set)options->op_set;
    out->setting.full_range = options->full_range;
    out->setting.symmetric = options->symmetric;
    out->setting.activation_bits = options->activation_bits;
    out->widens = !options->activation_bits;
    out->depthwise = options->depthwise;
    out->two_inputs = options->two_inputs;
    out->integer_adds = options->integer_adds;
    out->min_elements = options->min_elements;
    out->reconstruction_seconds = (double)options->reconstruction_seconds;
    if (options->recipe) TARE_TRY(read_recipe(&recipe, arena, options->recipe));
    out->recipe = recipe;
    if (out->passes || !tare_quant_recipe_passes(recipe)) return TARE_OK;
    return tare_quant_passes_parse(&out->passes, arena, tare_quant_recipe_passes(recipe));
}

tare_status tare_workflow_quantize_read(struct tare_quant_options *out, struct tare_arena *arena,
                                        const struct tare_quantize_request *request) {
    unsigned sets = 0;
    *out = (struct tare_quant_options){ .setting.bits = request->bits, .keep_variables = request->keep_variables };
    TARE_TRY(tare_workflow_quantize_apply_layers(out, arena, &request->layers));
    TARE_TRY(tare_workflow_quantize_method(&out->setting.method, "--method", request->method));
    out->setting.granularity = tare_quant_default_granularity(out->op_set);
    if (request->granularity)
        TARE_TRY(tare_quant_setting_read(&out->setting, &sets, "granularity", request->granularity));
    TARE_TRY(tare_quant_check_setting(&out->setting));
    if (request->passes)
        TARE_TRY(tare_error_prefix(tare_quant_passes_parse(&out->passes, arena, request->passes), "--passes"));
    return tare_algorithm_parse(&out->setting.algorithm, request->algorithm);
}

static void put_setting(struct tare_strbuf *out, const char *option, const char *value, const char *fallback) {
    if (value && strcmp(value, fallback) != 0) tare_strbuf_printf(out, " --%s %s", option, value);
}

static void put_flags(struct tare_strbuf *out, const struct tare_quant_options *options) {
    const struct {
        const char *option;
        bool is_set;
    } flags[] = { { "full-range", options->setting.full_range }, { "symmetric", options->setting.symmetric },
                  { "depthwise", options->depthwise },           { "two-inputs", options->two_inputs },
                  { "integer-adds", options->integer_adds },     { "keep-variables", options->keep_variables } };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].is_set) tare_strbuf_printf(out, " --%s", flags[i].option);
}

/* A path with a line break would end the comment. */
static void put_path(struct tare_strbuf *out, const char *option, const char *path) {
    if (!path) return;
    tare_strbuf_printf(out, " --%s ", option);
    tare_strbuf_shell_word(out, strpbrk(path, "\r\n") ? "FILE" : path);
}

static void put_samples(struct tare_strbuf *out, const struct tare_quantize_samples *samples) {
    for (size_t i = 0; i < samples->n_data; i++)
        put_path(out, "data", samples->data[i]);
    put_path(out, "spec", samples->n_data ? samples->spec : NULL);
    put_path(out, "calibration", samples->calibration);
    put_path(out, "signature", samples->signature);
    if (samples->n_data && samples->limit) tare_strbuf_printf(out, " --limit %lld", (long long)samples->limit);
}

static bool reconstructs(const struct tare_quant_options *options) {
    for (size_t i = 0; options->passes && options->passes[i]; i++)
        if (strcmp(options->passes[i]->name, "reconstruction") == 0) return true;
    return false;
}

void tare_workflow_quantize_command(struct tare_strbuf *out, struct tare_arena *arena,
                                    const struct tare_variant *variant, const struct tare_quantize_samples *samples,
                                    bool automatic) {
    const struct tare_quant_options *options = &variant->options;
    const struct tare_quant_setting *setting = &options->setting;
    char seconds[32];
    bool channels;
    tare_strbuf_printf(out, "# tare quantize MODEL OUT --method %s", setting->method ? setting->method->name : "float");
    if (setting->bits == 4) tare_strbuf_puts(out, " --bits 4");
    if (setting->granularity != tare_quant_default_granularity(options->op_set))
        put_setting(out, "granularity", tare_variant_granularity(arena, variant), "");
    put_setting(out, "algorithm", tare_variant_algorithm(arena, variant), "min_max");
    put_setting(out, "op-set", tare_quant_op_set_names[options->op_set], "xla");
    if (setting->activation_bits) tare_strbuf_printf(out, " --activation-bits %d", setting->activation_bits);
    put_flags(out, options);
    if (options->min_elements) tare_strbuf_printf(out, " --min-elements %lld", (long long)options->min_elements);
    if (!automatic && options->passes && options->passes[0]) {
        tare_strbuf_puts(out, " --passes ");
        tare_quant_passes_print(out, options->passes, ',');
    }
    snprintf(seconds, sizeof seconds, "%.0f", options->reconstruction_seconds);
    if (automatic || reconstructs(options)) put_setting(out, "reconstruction-seconds", seconds, "600");
    if (automatic || tare_workflow_quantize_needs_samples(options, &channels)) put_samples(out, samples);
    tare_strbuf_puts(out, " --recipe FILE\n");
    if (options->recipe)
        tare_strbuf_puts(out, "# The rules below follow those of the recipe that was given: FILE needs both.\n");
}

bool tare_workflow_quantize_needs_hessians(const struct tare_quant_options *options) {
    return tare_quant_passes_need_hessians(options->passes);
}

bool tare_workflow_quantize_needs_samples(const struct tare_quant_options *options, bool *channels) {
    *channels = tare_quant_passes_need_channels(options->passes);
    return *channels || tare_quant_needs_ranges(options);
}

tare_status tare_workflow_quantize_prepare(struct tare_graph_model *model, const struct tare_quant_options *options) {
    model->keep_variables_from = options->keep_variables ? 1 : 0;
    return tare_pipeline_prepare(model, NULL);
}

tare_status tare_workflow_quantize_run(struct tare_quant_report *report, struct tare_arena *arena,
                                       struct tare_graph_model *model, const struct tare_quant_options *options,
                                       const struct tare_calibration *calibration) {
    const struct tare_quant_ranges ranges = tare_ranges_of(calibration);
    struct tare_quant_options warning = *options;
    double before, after;
    warning.warns = true;
    TARE_TRY(tare_calibration_check_passes(calibration, options->passes));
    TARE_TRY(tare_workflow_estimate_speed(&before, model));
    TARE_TRY(tare_pipeline_quantize(report, arena, model, &warning, &ranges));
    TARE_TRY(tare_workflow_estimate_speed(&after, model));
    return tare_workflow_warn_of_slower(report, arena, before, after);
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
    if (!report->count)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "nothing was quantized: the model has no quantizable op (--allow-unquantized accepts this)");
    TARE_TRY(main_reason(&reason, report));
    return TARE_FAIL(
        TARE_UNSUPPORTED,
        "none of %zu quantizable ops was quantized; reason for %zu of them: %s (--allow-unquantized accepts "
        "this)",
        report->count, reason.count, reason.text);
}
