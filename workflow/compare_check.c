/* Checks of a comparison before the first record: which combinations of methods and settings are applicable, with the
 * calibration that was given. Others become rows with a reason; the comparison fails only when none is left. */
#include "base/log.h"
#include "calib/format/file.h"
#include "datasets/data_file.h"
#include "workflow/compare_internal.h"

tare_status tare_workflow_compare_skip(struct tare_compare_job *c, const struct tare_variant *variant,
                                       const char *reason) {
    const char *algorithm, *granularity;
    TARE_TRY(tare_variant_texts(&algorithm, &granularity, &c->result.arena, variant));
    return tare_comparison_skip(&c->result, variant->name, algorithm, variant->sets_granularity ? NULL : granularity,
                                reason);
}

static tare_status refuse(struct tare_compare_job *c, struct tare_variant *variant, const char *reason) {
    variant->refused = tare_arena_strdup(&c->result.arena, reason);
    return variant->refused ? TARE_OK : TARE_NO_MEMORY;
}

/* ---- calibration ---- */

static const char NEEDS_SAMPLES[] =
    "needs representative samples (give --data SAMPLES --eval FILE, or --calibration FILE.calib)";

bool tare_workflow_compare_needs_hessians(const struct tare_compare_job *c) {
    return c->options->automatic || tare_variants_need_hessians(&c->variants);
}

static bool has_calibration(const struct tare_compare_task *task) {
    return task->calibration || task->calibration_file || task->n_calibration_data;
}

/* Passes that a calibration file cannot serve. Hessians come from samples, also next to a file. */
static tare_status check_passes(struct tare_compare_job *c, struct tare_variant *variant,
                                const struct tare_calibration *calibration) {
    const struct tare_quant_pass *const *passes = variant->plan.passes;
    for (size_t i = 0; passes && passes[i] && !variant->refused; i++) {
        const struct tare_quant_pass *const one[] = { passes[i], NULL };
        tare_status status;
        if (passes[i]->needs_hessians && c->task->n_calibration_data) continue;
        status = tare_calibration_check_passes(calibration, one);
        if (status == TARE_OK) continue;
        if (status != TARE_INVALID_ARGUMENT) return status;
        TARE_TRY(refuse(c, variant, tare_error_text()));
        tare_error_clear();
    }
    return TARE_OK;
}

static tare_status check_against_file(struct tare_compare_job *c) {
    struct tare_calibration *loaded = NULL;
    const struct tare_calibration *calibration = c->task->calibration;
    tare_status status = TARE_OK;
    if (!calibration) {
        if (!c->task->calibration_file || !tare_variants_calibrate(&c->variants)) return TARE_OK;
        TARE_TRY(tare_calibration_load(&loaded, c->task->calibration_file));
        calibration = loaded;
    }
    for (size_t i = 0; i < c->variants.count && status == TARE_OK; i++)
        status = check_passes(c, &c->variants.variants[i], calibration);
    tare_calibration_free(loaded);
    return status;
}

/* Every model reads the records. */
static tare_status check_data(const struct tare_compare_job *c) {
    size_t models = c->options->with.count;
    for (size_t i = 0; i < c->variants.count; i++)
        models += !c->variants.variants[i].refused;
    const char *once = tare_data_read_once(c->task->data, c->task->n_data);
    if (!once || models < 2) return TARE_OK;
    return TARE_FAIL(
        TARE_USAGE,
        "--data %s: a pipe can be read only once, but each of %zu models reads the records (copy them to a "
        "file first)",
        once, models);
}

static tare_status check_calibration(struct tare_compare_job *c) {
    const struct tare_compare_task *task = c->task;
    if (task->calibration_file && task->n_calibration_data && !tare_workflow_compare_needs_hessians(c))
        return TARE_FAIL(TARE_USAGE,
                         "--calibration and samples are mutually exclusive (with --eval, --data are samples)");
    if (c->options->automatic && !task->n_calibration_data)
        return TARE_FAIL(TARE_USAGE, "--auto needs representative samples (give --data SAMPLES --eval FILE)");
    if (has_calibration(task)) return check_against_file(c);
    for (size_t i = 0; i < c->variants.count; i++) {
        struct tare_variant *variant = &c->variants.variants[i];
        if (variant->refused || !tare_variant_calibrates(variant)) continue;
        c->uncalibrated++;
        TARE_TRY(refuse(c, variant, NEEDS_SAMPLES));
    }
    return TARE_OK;
}

/* A variant that is refused may have used them. A rule of the recipe may need ranges as well, which the variants know.
 */
static void warn_of_unused_samples(const struct tare_compare_job *c) {
    const struct tare_compare_task *task = c->task;
    bool used = c->options->automatic || c->options->rest;
    for (size_t i = 0; i < c->variants.count && !used; i++)
        used = tare_variant_calibrates(&c->variants.variants[i]);
    if (used) return;
    if (task->calibration_file || task->n_calibration_data)
        tare_warn(&c->log, "%s not used: no method of the comparison needs activation ranges",
                  task->n_calibration_data ? "the samples are" : "--calibration is");
}

/* ---- the outcome ---- */

static tare_status list_refused(struct tare_compare_job *c) {
    size_t left = 0;
    const struct tare_variant *first = NULL;
    for (size_t i = 1; i < c->variants.count; i++) {
        const struct tare_variant *variant = &c->variants.variants[i];
        left += !variant->refused;
        if (!variant->refused) continue;
        if (!first) first = variant;
        TARE_TRY(tare_workflow_compare_skip(c, variant, variant->refused));
    }
    if (!first || left || c->options->with.count) return TARE_OK;
    if (c->uncalibrated)
        return TARE_FAIL(
            TARE_USAGE,
            "method %s needs representative samples (give --data SAMPLES --eval FILE, or --calibration FILE.calib)",
            first->name);
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: %s", first->name, first->refused);
}

tare_status tare_workflow_compare_check(struct tare_compare_job *c) {
    TARE_TRY(check_calibration(c));
    warn_of_unused_samples(c);
    TARE_TRY(tare_workflow_compare_check_given(c));
    TARE_TRY(check_data(c));
    return list_refused(c);
}
