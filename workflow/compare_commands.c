/* Command lines and recipes that build the models of a comparison, from the plans by which they were measured. */
#include "base/strbuf.h"
#include "eval/sensitivity.h"
#include "eval/verdict.h"
#include "quant/recipe.h"
#include "workflow/compare_internal.h"

#include <string.h>

static const char *const SAMPLES[] = { "SAMPLES" };
static const char BFLOAT16_OPTION[] = " --bfloat16 analysis";

/* Samples that are in memory have no file. */
static bool has_sample_files(const struct tare_compare_task *task) {
    return task->n_calibration_data && !task->calibration_data_name;
}

static struct tare_sample_options samples_of(const struct tare_compare_job *c) {
    const struct tare_compare_task *task = c->task;
    const bool has_file = task->calibration_file || has_sample_files(task);
    return (struct tare_sample_options){ .data = has_file ? task->calibration_data : SAMPLES,
                                         .n_data = has_file ? task->n_calibration_data : 1,
                                         .calibration = task->calibration_file,
                                         .spec = task->spec_path,
                                         .feedback = task->feedback,
                                         .signature = c->options->signature };
}

static tare_status take(const char **out, struct tare_arena *arena, struct tare_strbuf *text) {
    *out = text->failed ? NULL : tare_arena_strdup(arena, tare_strbuf_text(text));
    tare_strbuf_free(text);
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

const char *tare_workflow_model_word(const char *directory, const char *name) {
    return name ? "MODEL" : directory;
}

static void begin(struct tare_strbuf *out, const struct tare_compare_job *c, const char *command) {
    tare_strbuf_printf(out, "tare %s ", command);
    tare_strbuf_shell_word(out, tare_workflow_model_word(c->task->model, c->task->model_name));
}

static void begin_output(struct tare_strbuf *out, const struct tare_compare_job *c, const char *command) {
    begin(out, c, command);
    tare_strbuf_putc(out, ' ');
    tare_strbuf_shell_word(out, c->task->output ? c->task->output : "OUT");
}

tare_status tare_workflow_compare_commands(struct tare_comparison_row *row, struct tare_compare_job *c,
                                           const struct tare_variant *variant) {
    const struct tare_sample_options samples = samples_of(c);
    const bool quantizes = tare_quant_plan_quantizes(&variant->plan);
    struct tare_strbuf text = { 0 };
    if (quantizes) {
        tare_quant_plan_write(&text, &variant->plan);
        TARE_TRY(take(&row->plan, &c->result.arena, &text));
    }
    if (quantizes && !variant->bfloat16) {
        begin_output(&text, c, "quantize");
        tare_workflow_plan_put(&text, &variant->plan, &samples);
        TARE_TRY(take(&row->quantize, &c->result.arena, &text));
    }
    if (!c->can_convert) return TARE_OK;
    begin_output(&text, c, "convert");
    if (quantizes) tare_workflow_plan_put(&text, &variant->plan, &samples);
    if (!quantizes && !variant->bfloat16)
        tare_strbuf_puts(&text, " --keep-variables"); /* what was measured is not folded */
    if (variant->bfloat16)
        tare_strbuf_puts(&text, BFLOAT16_OPTION);
    else
        tare_strbuf_puts(&text, " --tpu_functions auto --converter_options_string 'bfloat16_optimization: DISABLED'");
    return take(&row->convert, &c->result.arena, &text);
}

/* The variant that the recipe and a search for a mix start from. */
static const struct tare_variant *base_variant(struct tare_compare_job *c) {
    return c->options->automatic ? &c->automatic.variant : tare_workflow_compare_first_quantizing(c);
}

/* The plan of the recipe, with the rules that were found. */
static tare_status recipe_plan(struct tare_quant_plan *out, struct tare_compare_job *c, size_t worst) {
    struct tare_arena *arena = &c->result.arena;
    struct tare_strbuf text = { 0 };
    *out = base_variant(c)->plan;
    if (c->result.target) return tare_workflow_mixed_precision_apply(out, arena, &c->targeting);
    if (c->options->automatic) return TARE_OK;
    tare_sensitivity_recipe(&text, &c->sensitivity, worst);
    return tare_quant_recipe_extend(out, arena, &text, "worst");
}

tare_status tare_workflow_compare_recipe(struct tare_strbuf *out, struct tare_compare_job *c, size_t worst) {
    const struct tare_sample_options samples = samples_of(c);
    struct tare_quant_plan plan;
    TARE_TRY(recipe_plan(&plan, c, worst));
    tare_workflow_recipe_put(out, &plan, &samples, &c->automatic, c->result.target, NULL);
    return TARE_OK;
}

static void put_files(struct tare_strbuf *out, const char *option, const char *const *paths, size_t count) {
    for (size_t i = 0; i < count; i++) {
        tare_strbuf_printf(out, " --%s ", option);
        tare_strbuf_shell_word(out, paths[i]);
    }
}

/* How records are read and measured. */
static void put_records(struct tare_strbuf *out, const struct tare_compare_job *c) {
    const struct tare_compare_request *options = c->options;
    const char *spec = c->task->spec_path;
    put_files(out, "spec", &spec, spec ? 1 : 0);
    tare_feedback_put(out, c->task->feedback);
    put_files(out, "signature", &options->signature, options->signature ? 1 : 0);
    put_files(out, "target", &options->target_key, options->target_key ? 1 : 0);
    put_files(out, "label", &options->label, options->label && strcmp(options->label, "label") != 0 ? 1 : 0);
    if (options->metric) put_files(out, "metric", &tare_metric_names[options->metric], 1);
}

/* Where models are worse than float, settings chosen by measurement may help, and after these, layers in higher
 * precision until the loss is within the margin. */
static tare_status suggest(struct tare_compare_job *c) {
    const struct tare_compare_task *task = c->task;
    const struct tare_compare_request *options = c->options;
    const char *const records[] = { "EVAL" };
    struct tare_strbuf text = { 0 };
    begin_output(&text, c, !options->automatic ? "auto" : task->tpu ? "convert" : "quantize");
    put_files(&text, "data", has_sample_files(task) ? task->calibration_data : SAMPLES,
              has_sample_files(task) ? task->n_calibration_data : 1);
    put_files(&text, "eval", task->data_name ? records : task->data, task->data_name ? 1 : task->n_data);
    put_records(&text, c);
    if (!options->automatic && options->margin != TARE_MARGIN)
        tare_strbuf_printf(&text, " --margin %g", options->margin);
    if (options->automatic && tare_verdict_of(&c->result).tested)
        tare_strbuf_printf(&text, " --max-drop %g", options->margin);
    else if (options->automatic)
        tare_strbuf_printf(&text, " --min-sqnr %d", TARE_VERDICT_DB);
    return take(&c->result.next, &c->result.arena, &text);
}

/* The same with more records, which may decide it. */
static tare_status suggest_records(struct tare_compare_job *c) {
    const struct tare_compare_task *task = c->task;
    const struct tare_compare_request *options = c->options;
    const bool has_more = options->limit && c->result.records >= options->limit && !task->data_name;
    struct tare_strbuf text = { 0 };
    if (task->output)
        begin_output(&text, c, "auto");
    else
        begin(&text, c, "compare");
    put_files(&text, "with", options->with.items, options->with.count);
    put_files(&text, "methods", &options->methods, options->methods && !task->output ? 1 : 0);
    put_files(&text, "calibration", &task->calibration_file, task->calibration_file ? 1 : 0);
    put_files(&text, "data", task->calibration_data_name ? SAMPLES : task->calibration_data,
              task->calibration_data_name ? 1 : task->n_calibration_data);
    put_files(&text, "eval", has_more ? task->data : (const char *const[]){ "EVAL" }, has_more ? task->n_data : 1);
    put_records(&text, c);
    if (options->margin != TARE_MARGIN) tare_strbuf_printf(&text, " --margin %g", options->margin);
    if (task->tpu) tare_strbuf_puts(&text, " --tpu");
    if (options->automatic && !task->output) tare_strbuf_puts(&text, " --auto");
    return take(&c->result.next, &c->result.arena, &text);
}

static bool reaches_decibels(const struct tare_comparison *c) {
    for (size_t r = 1; r < c->n_rows; r++)
        if (tare_worst_sqnr_db(NULL, c, c->rows[r].outputs) >= TARE_VERDICT_DB) return true;
    return false;
}

/* A finished model that keeps up with float; NULL: none. */
static const char *good_given(const struct tare_compare_job *c) {
    if (c->result.target || !tare_verdict_is_good(&c->result)) return NULL;
    for (size_t r = 1; r < c->result.n_rows; r++)
        if (c->result.rows[r].path) return c->result.rows[r].path;
    return NULL;
}

/* What a finished model needs before it is served. */
static tare_status suggest_validation(struct tare_compare_job *c, const char *path) {
    struct tare_strbuf text = { 0 };
    tare_strbuf_puts(&text, "tare validate ");
    tare_strbuf_shell_word(&text, path);
    return take(&c->result.next, &c->result.arena, &text);
}

tare_status tare_workflow_compare_next(struct tare_compare_job *c) {
    const struct tare_sample_options samples = samples_of(c);
    const struct tare_verdict verdict = tare_verdict_of(&c->result);
    struct tare_quant_plan plan;
    struct tare_strbuf text = { 0 };
    if (verdict.row ? verdict.row->path != NULL : good_given(c) != NULL)
        return suggest_validation(c, verdict.row ? verdict.row->path : good_given(c));
    if (verdict.row) {
        c->result.next = verdict.row->quantize ? verdict.row->quantize : verdict.row->convert;
        return TARE_OK;
    }
    if (verdict.reason == TARE_VERDICT_WORSE || verdict.reason == TARE_VERDICT_BROKEN ||
        (verdict.reason == TARE_VERDICT_UNDECIDED && !reaches_decibels(&c->result)))
        return suggest(c);
    if (verdict.reason == TARE_VERDICT_UNDECIDED) return suggest_records(c);
    if (verdict.reason == TARE_VERDICT_GUESS && !c->task->data_name) {
        tare_strbuf_puts(&text, "tare dataset head ");
        tare_strbuf_shell_word(&text, c->task->data[0]);
        put_files(&text, "spec", &c->task->spec_path, c->task->spec_path ? 1 : 0);
        return take(&c->result.next, &c->result.arena, &text);
    }
    if (verdict.reason != TARE_VERDICT_TARGET) return TARE_OK;
    if (!c->result.target->chosen) return TARE_OK;
    TARE_TRY(recipe_plan(&plan, c, 0));
    const bool bfloat16 = base_variant(c)->bfloat16;
    begin_output(&text, c, bfloat16 ? "convert" : "quantize");
    tare_workflow_plan_put(&text, &plan, &samples);
    if (bfloat16) tare_strbuf_puts(&text, BFLOAT16_OPTION);
    return take(&c->result.next, &c->result.arena, &text);
}
