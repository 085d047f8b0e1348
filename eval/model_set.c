/* Models that share most of their computation, together or one after another; see the header. */
#include "eval/model_set.h"
#include "base/alloc.h"
#include "eval/measure.h"
#include "eval/model_inputs.h"
#include "eval/prefix_cache/prefix_cache.h"

static const int64_t DEFAULT_MEMORY = (int64_t)1 << 30;

struct running {
    const struct tare_model_set *set;
    struct tare_comparison_pass *passes; /* by model */
};

static bool is_silent(const struct tare_model_set *set, size_t number) {
    return set->is_silent && set->is_silent[number];
}

/* ---- one after another ---- */

static tare_status measure_model(const struct tare_model_set *set, size_t number) {
    const struct tare_signature *signature;
    struct tare_comparison_row *row;
    struct tare_graph_model *model;
    tare_status status;
    TARE_TRY(set->make(set->arg, &model, number));
    status = tare_pick_signature(&signature, model, set->signature);
    if (status == TARE_OK)
        status = tare_comparison_add(&row, set->comparison, model, signature, set->runner, set->label);
    if (status == TARE_OK) set->measured(set->arg, number, row->outputs);
    tare_model_free(model);
    return status;
}

static tare_status measure_whole(const struct tare_model_set *set) {
    for (size_t i = 0; i < set->count; i++)
        if (!is_silent(set, i)) TARE_TRY(measure_model(set, i));
    return TARE_OK;
}

/* ---- together ---- */

static tare_status make(void *arg, struct tare_graph_model **out, size_t number) {
    const struct tare_model_set *set = ((const struct running *)arg)->set;
    return set->make(set->arg, out, number);
}

static tare_status on_record(void *arg, size_t number, const struct tare_sample *sample,
                             const struct tare_tensor *outputs) {
    const struct running *running = arg;
    return is_silent(running->set, number) ? TARE_OK
                                           : tare_comparison_pass_record(&running->passes[number], sample, outputs);
}

static tare_status begin_passes(struct running *running) {
    const struct tare_model_set *set = running->set;
    const struct tare_signature *signature;
    struct tare_graph_model *model;
    tare_status status;
    TARE_TRY(set->make(set->arg, &model, 0));
    status = tare_pick_signature(&signature, model, set->signature);
    for (size_t i = 0; i < set->count && status == TARE_OK; i++)
        status = tare_comparison_pass_begin(&running->passes[i], set->comparison, signature, set->label);
    tare_model_free(model);
    return status;
}

static void finish(struct running *running, size_t number) {
    const struct tare_comparison *c = running->set->comparison;
    struct tare_metrics *outputs = running->passes[number].outputs;
    const size_t output = tare_measured_output(c);
    tare_metrics_finish(&outputs[output], &c->rows[0].outputs[output]);
    running->set->measured(running->set->arg, number, outputs);
}

/* Runs each model from the first layer that differs; sets *suited to false, without results, when that is not possible.
 */
static tare_status run_parts(struct tare_prefix_cache_report *report, struct running *running) {
    const struct tare_model_set *set = running->set;
    const struct tare_prefix_cache_task task = { .n_models = set->count,
                                                 .make = make,
                                                 .record = on_record,
                                                 .arg = running,
                                                 .signature = set->signature,
                                                 .runner = set->runner,
                                                 .threads = set->comparison->threads,
                                                 .memory = set->memory ? set->memory : DEFAULT_MEMORY };
    tare_status status = begin_passes(running);
    if (status == TARE_OK) status = tare_prefix_cache_run(report, &task);
    for (size_t i = 0; i < set->count && status == TARE_OK && !report->unsuited; i++)
        if (!is_silent(set, i)) finish(running, i);
    for (size_t i = 0; i < set->count; i++)
        if (running->passes[i].comparison) tare_comparison_pass_end(&running->passes[i]);
    return status;
}

static tare_status measure_parts(bool *suited, struct tare_model_set_report *report, const struct tare_model_set *set) {
    struct running running = { set, tare_calloc(set->count + 1, sizeof *running.passes) };
    struct tare_prefix_cache_report run = { 0 };
    tare_status status = running.passes ? run_parts(&run, &running) : TARE_NO_MEMORY;
    tare_free(running.passes);
    *suited = !run.unsuited;
    report->nodes += run.nodes;
    report->whole_nodes += run.whole_nodes;
    if (run.kept_bytes > report->kept_bytes) report->kept_bytes = run.kept_bytes;
    return status;
}

tare_status tare_model_set_measure(struct tare_model_set_report *report, const struct tare_model_set *set) {
    bool suited = false;
    if (!set->count) return TARE_OK;
    if (!report->whole && set->memory >= 0) TARE_TRY(measure_parts(&suited, report, set));
    if (suited) return TARE_OK;
    report->whole = true;
    return measure_whole(set);
}
