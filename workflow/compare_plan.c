/* Plans a comparison for --dry-run and estimates its time and memory from one batch of the float model. */
#include "base/clock.h"
#include "workflow/compare_internal.h"
#include "base/strbuf.h"
#include "convert/saved_model.h"
#include "datasets/source.h"
#include "eval/model_inputs.h"

#include <math.h>
#include <sys/resource.h>

/* Runs one batch per worker, as the comparison does. */
struct trial {
    int64_t sample_rows; /* of the data for calibration (datasets/source.h) */
    double seconds;      /* per record, with all workers */
    double answer_bytes; /* of the outputs of one record */
    int64_t records, peak_bytes;
    const char *signature;
    size_t n_outputs;
};

static tare_status count_answer(void *arg, const struct tare_sample *sample, const struct tare_record *where,
                                const struct tare_tensor *outputs) {
    struct trial *trial = arg;
    (void)sample;
    (void)where;
    for (size_t i = 0; i < trial->n_outputs; i++)
        trial->answer_bytes += (double)tare_tensor_bytes(&outputs[i]);
    trial->records++;
    return TARE_OK;
}

static tare_status run_batches(struct trial *trial, struct tare_compare_job *c, const struct tare_graph_model *model,
                               const struct tare_signature *signature) {
    struct tare_runner_options runner = c->evaluation.records;
    struct tare_session **sessions;
    const int threads = c->evaluation.threads;
    const int64_t records = (int64_t)threads * (runner.batch > 0 ? runner.batch : 1);
    double start;
    tare_status status;
    if (!runner.limit || runner.limit > records) runner.limit = records;
    TARE_TRY(tare_session_check_ops(model, signature));
    TARE_TRY(tare_sessions_new(&sessions, threads, model, NULL));
    status =
        tare_run_records_on(sessions, threads, signature, &runner, count_answer, trial); /* creates plans and kernels */
    *trial = (struct trial){ .sample_rows = trial->sample_rows,
                             .signature = trial->signature,
                             .n_outputs = trial->n_outputs };
    start = tare_clock_seconds();
    if (status == TARE_OK) status = tare_run_records_on(sessions, threads, signature, &runner, count_answer, trial);
    if (trial->records) {
        trial->seconds = (tare_clock_seconds() - start) / (double)trial->records;
        trial->answer_bytes /= (double)trial->records;
    }
    tare_sessions_free(sessions, threads);
    return status;
}

static tare_status try_float(struct trial *trial, struct tare_compare_job *c) {
    const struct tare_saved_model_options options = { .ops = c->task->ops };
    const struct tare_signature *signature;
    struct tare_graph_model *model;
    struct rusage usage;
    tare_status status;
    TARE_TRY(tare_saved_model_load(&model, c->task->model, &options));
    TARE_CHECK(tare_pick_signature(&signature, model, c->options->signature));
    TARE_CHECK(tare_workflow_compare_check_keys(c, model));
    trial->signature = tare_arena_strdup(&c->result.arena, signature->key);
    trial->n_outputs = signature->n_outputs;
    TARE_CHECK(trial->signature ? TARE_OK : TARE_NO_MEMORY);
    TARE_CHECK(tare_runner_find_rows(&c->evaluation.records, signature));
    TARE_CHECK(tare_rows_at_a_time(&trial->sample_rows, signature, c->task->calibration_data,
                                   c->task->n_calibration_data, c->task->spec));
    status = run_batches(trial, c, model, signature);
    trial->peak_bytes = getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
done:
    tare_model_free(model);
    return status;
}

static tare_status count_records(int64_t *out, const char *const *paths, size_t n_paths,
                                 const struct tare_source_options *options) {
    struct tare_source *source;
    bool end = false;
    tare_status status = TARE_OK;
    *out = 0;
    TARE_TRY(tare_source_new(&source, paths, n_paths, options));
    while (status == TARE_OK && !end) {
        struct tare_sample sample;
        struct tare_record where;
        status = tare_source_next(&sample, &where, &end, source, NULL, NULL);
        if (status != TARE_OK || end) break;
        tare_sample_reset(&sample);
        ++*out;
    }
    tare_source_free(source);
    return status;
}

static void put_name(struct tare_strbuf *out, const struct tare_variant *v) {
    struct tare_arena arena = { 0 };
    const char *algorithm, *granularity;
    if (tare_variant_texts(&algorithm, &granularity, &arena, v) != TARE_OK) out->failed = true;
    tare_strbuf_puts(out, v->name);
    if (algorithm) tare_strbuf_printf(out, " %s", algorithm);
    if (granularity && !v->sets_granularity) tare_strbuf_printf(out, " %s", granularity);
    tare_arena_free(&arena);
}

/* The models to run, then those that are not applicable, with the reason. */
static void put_models(struct tare_strbuf *out, const struct tare_compare_job *c) {
    const struct tare_variant_list *list = &c->variants;
    tare_strbuf_puts(out, "models: ");
    for (size_t i = 0; i < list->count; i++) {
        if (list->variants[i].refused) continue;
        if (i) tare_strbuf_puts(out, ", ");
        put_name(out, &list->variants[i]);
    }
    for (size_t i = 0; i < c->options->with.count; i++)
        tare_strbuf_printf(out, ", %s", c->given[i]);
    for (size_t i = 0; i < list->count; i++) {
        if (!list->variants[i].refused) continue;
        tare_strbuf_puts(out, "\nnot measured: ");
        put_name(out, &list->variants[i]);
        tare_strbuf_printf(out, ": %s", list->variants[i].refused);
    }
}

static size_t count_models(const struct tare_compare_job *c) {
    size_t count = c->options->with.count;
    for (size_t i = 0; i < c->variants.count; i++)
        count += !c->variants.variants[i].refused;
    return count;
}

tare_status tare_workflow_compare_plan(struct tare_strbuf *out, struct tare_compare_job *c) {
    const struct tare_compare_task *task = c->task;
    const bool calibrates = tare_variants_calibrate(&c->variants);
    const bool by_samples = calibrates && !task->calibration && !task->calibration_file;
    struct tare_source_options all = { .spec = task->spec }, evaluated = { .limit = c->evaluation.records.limit,
                                                                           .takes = c->evaluation.records.takes,
                                                                           .takes_arg = c->evaluation.records.takes_arg,
                                                                           .spec = task->spec };
    const size_t models = count_models(c);
    struct trial trial = { 0 };
    int64_t records, samples = 0;
    double seconds;
    TARE_TRY(try_float(&trial, c));
    evaluated.rows = c->evaluation.records.rows;
    all.rows = trial.sample_rows;
    TARE_TRY(count_records(&records, task->data, task->n_data, &evaluated));
    if (by_samples) TARE_TRY(count_records(&samples, task->calibration_data, task->n_calibration_data, &all));
    seconds = trial.seconds * ((double)records * (double)models + (double)samples);
    tare_strbuf_printf(out, "%s, signature %s: would run %zu models over %lld records\n", task->model, trial.signature,
                       models, (long long)records);
    put_models(out, c);
    if (by_samples)
        tare_strbuf_printf(out, "\ncalibration: once, on %lld samples\n", (long long)samples);
    else
        tare_strbuf_printf(out, "\ncalibration: %s\n", calibrates ? "from a file" : "none is needed");
    tare_strbuf_printf(out, "time: about %.1f s on %d threads, by %.3g ms a record of the float model%s\n", seconds,
                       c->evaluation.threads, 1e3 * trial.seconds,
                       c->options->sensitivity || c->options->automatic ||
                               tare_workflow_mixed_precision_requested(&c->options->target)
                           ? "; layer by layer comes on top"
                           : "");
    tare_strbuf_printf(out, "memory: about %.0f MB; %.2f MB of float answers in a temporary file\n",
                       (double)trial.peak_bytes / 1e6, trial.answer_bytes * (double)records / 1e6);
    return TARE_OK;
}
