/* Variants that share their first layers: a part that stays float in several of them, such as preprocessing or layers
 * that are too small to be quantized, and layers that are quantized equally. They run together through
 * eval/prefix_cache/prefix_cache.h: what a product, a loop or another costly op computes in several models is computed
 * once and fed into the later ones. The outputs, and so all figures, have the same bits as those of separate runs.
 *
 * Bounds: values of shared edges and the models that are kept for them take at most KEPT_BYTES; records are processed
 * in parts that fit. Variants with more than MODEL_BYTES of weights in total are not made before they run, and share
 * nothing. Models with state, and comparisons by a metric of the caller, whose functions expect one model after
 * another, run one by one. */
#include "base/alloc.h"
#include "base/progress.h"
#include "eval/model_inputs.h"
#include "eval/prefix_cache/prefix_cache.h"
#include "graph/clone.h"
#include "workflow/compare_internal.h"

#include <string.h>

static const int64_t MODEL_BYTES = 512 << 20;

/* ---- models ---- */

tare_status tare_workflow_compare_make(struct tare_made_variant *made, struct tare_compare_job *c,
                                       const struct tare_variant *variant) {
    struct tare_variant warning = *variant;
    if (made->model) return TARE_OK;
    warning.plan.warns = true;
    warning.plan.quiet = c->task->quiet;
    warning.plan.threads = c->result.threads;
    return tare_variant_source_make(&made->model, &made->report, &made->arena, &c->source, &warning, c->calibration);
}

void tare_workflow_compare_drop(struct tare_made_variant *made) {
    if (made->pass.comparison) tare_comparison_pass_end(&made->pass);
    tare_model_free(made->model);
    tare_arena_free(&made->arena);
    *made = (struct tare_made_variant){ 0 };
}

/* The variants that run together. */
struct sharing {
    struct tare_compare_job *job;
    struct tare_made_variant **made;
    size_t count;
};

/* A variant that cannot be made fails again, with its message, when it is its turn. */
static tare_status make_all(struct sharing *sharing, struct tare_made_variant *made) {
    const struct tare_variant_list *variants = &sharing->job->variants;
    int64_t bytes, total = 0;
    for (size_t i = 1; i < variants->count && total <= MODEL_BYTES; i++) {
        if (variants->variants[i].refused) continue;
        const tare_status status = tare_workflow_compare_make(&made[i], sharing->job, &variants->variants[i]);
        TARE_TRY(tare_error_dismiss(status));
        if (status != TARE_OK) {
            tare_workflow_compare_drop(&made[i]);
            continue;
        }
        TARE_TRY(tare_model_weight_bytes(&bytes, made[i].model));
        total += bytes;
        sharing->made[sharing->count++] = &made[i];
    }
    for (size_t i = 0; i < variants->count && total > MODEL_BYTES; i++)
        tare_workflow_compare_drop(&made[i]);
    if (total > MODEL_BYTES) sharing->count = 0;
    return TARE_OK;
}

static tare_status clone_made(void *arg, struct tare_graph_model **out, size_t number) {
    return tare_model_clone(out, ((const struct sharing *)arg)->made[number]->model);
}

/* Removes variants that share nothing with another one. */
static tare_status keep_sharers(struct sharing *sharing, const struct tare_prefix_cache_task *task) {
    bool *shares = tare_calloc(sharing->count + 1, sizeof *shares);
    size_t count = 0;
    tare_status status = shares ? tare_prefix_cache_find_shared(shares, task) : TARE_NO_MEMORY;
    for (size_t i = 0; i < sharing->count && status == TARE_OK; i++)
        if (shares[i]) sharing->made[count++] = sharing->made[i];
    sharing->count = count;
    tare_free(shares);
    return status;
}

/* ---- runs ---- */

static tare_status on_record(void *arg, size_t number, const struct tare_sample *sample,
                             const struct tare_tensor *outputs) {
    return tare_comparison_pass_record(&((const struct sharing *)arg)->made[number]->pass, sample, outputs);
}

static tare_status begin_passes(const struct sharing *sharing) {
    struct tare_compare_job *c = sharing->job;
    for (size_t i = 0; i < sharing->count; i++) {
        struct tare_made_variant *made = sharing->made[i];
        const struct tare_signature *signature;
        TARE_TRY(tare_pick_signature(&signature, made->model, c->options->signature));
        TARE_TRY(tare_session_check_ops(made->model, signature));
        TARE_TRY(tare_comparison_pass_begin(&made->pass, &c->result, signature, c->options->label));
    }
    return TARE_OK;
}

/* A failure is reported when the variants run one by one. */
static tare_status run_passes(bool *done, struct sharing *sharing, const struct tare_prefix_cache_task *task) {
    struct tare_prefix_cache_report report = { 0 };
    tare_status status = begin_passes(sharing);
    if (status == TARE_OK) status = tare_prefix_cache_run(&report, task);
    *done = status == TARE_OK && !report.unsuited;
    for (size_t i = 0; i < sharing->count; i++) {
        struct tare_made_variant *made = sharing->made[i];
        made->measured = *done;
        made->seconds = task->seconds[i];
        if (*done) continue;
        tare_progress_advance(sharing->job->result.progress, -made->pass.record);
        if (made->pass.comparison) tare_comparison_pass_end(&made->pass);
        made->pass = (struct tare_comparison_pass){ 0 };
    }
    return tare_error_dismiss(status);
}

/* Runs the variants that share enough; if only some of them may run in batches, these alone. */
static tare_status run_together(struct sharing *sharing, struct tare_prefix_cache_task *task) {
    bool done = false, *dependent = tare_calloc(sharing->count + 1, sizeof *dependent);
    tare_status status = dependent ? TARE_OK : TARE_NO_MEMORY;
    task->dependent = dependent;
    task->seconds = tare_calloc(sharing->count + 1, sizeof *task->seconds);
    if (!task->seconds) status = TARE_NO_MEMORY;
    for (bool fewer = true; fewer && !done && status == TARE_OK;) {
        size_t count = 0;
        task->n_models = sharing->count;
        status = keep_sharers(sharing, task);
        if (status != TARE_OK || sharing->count < 2) break;
        task->n_models = sharing->count;
        memset(dependent, 0, sharing->count * sizeof *dependent);
        status = run_passes(&done, sharing, task);
        for (size_t i = 0; i < sharing->count && !done; i++)
            if (!dependent[i]) sharing->made[count++] = sharing->made[i];
        fewer = count < sharing->count;
        if (!done) sharing->count = count;
    }
    tare_free(task->seconds);
    tare_free(dependent);
    return status;
}

static tare_status has_state(bool *stateful, const struct tare_compare_job *c, const struct tare_graph_model *model) {
    const struct tare_signature *signature;
    TARE_TRY(tare_pick_signature(&signature, model, c->options->signature));
    return tare_session_state_ops(stateful, model, signature, NULL);
}

int64_t tare_workflow_compare_memory(const struct tare_compare_request *options) {
    return options->sensitivity_memory > 0 ? options->sensitivity_memory * 1000000 : -1;
}

tare_status tare_workflow_compare_share(struct tare_made_variant *made, struct tare_compare_job *c) {
    struct sharing sharing = { .job = c, .made = tare_calloc(c->variants.count + 1, sizeof *sharing.made) };
    struct tare_prefix_cache_task task = { .make = clone_made,
                                           .record = on_record,
                                           .arg = &sharing,
                                           .signature = c->options->signature,
                                           .runner = &c->runner,
                                           .threads = c->result.threads,
                                           .memory = tare_workflow_compare_memory(c->options),
                                           .costly_only = true };
    bool stateful = false;
    tare_status status = sharing.made ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK && task.memory > 0 && !c->result.custom && c->variants.count > 2)
        status = make_all(&sharing, made);
    if (status == TARE_OK && sharing.count) status = has_state(&stateful, c, sharing.made[0]->model);
    if (status == TARE_OK && !stateful && sharing.count > 1) status = run_together(&sharing, &task);
    tare_free(sharing.made);
    return status;
}
