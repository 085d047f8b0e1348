/* Calibrates a prepared model: finds the files of each signature, lists the tensors to observe, and runs the records
 * through calib/engine.h. A saved state is resumed only if model, files and settings are the same. */
#include "workflow/calibrate.h"
#include "base/control.h"
#include "workflow/array_names.h"
#include "base/alloc.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "calib/engine.h"
#include "calib/format/file.h"
#include "calib/fingerprint.h"
#include "calib/hash.h"
#include "calib/warnings.h"
#include "convert/prepared_model.h"
#include "eval/function_signature.h"
#include "eval/model_inputs.h"
#include "workflow/record_count.h"
#include "workflow/sample_feed.h"
#include "quant/hessian.h"
#include "quant/quantize.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is observed ---- */

static int compare_edges(const void *a, const void *b) {
    const struct tare_edge *x = a, *y = b;
    const uintptr_t p = (uintptr_t)x->node, q = (uintptr_t)y->node;
    return p != q ? (p > q) - (p < q) : (x->index > y->index) - (x->index < y->index);
}

static tare_status list_wanted(struct tare_calibrate_job *c) {
    struct tare_edge_list list = { 0 };
    if (c->options->quantizable) {
        list = *c->options->quantizable;
        list.edges = tare_arena_extend(&c->arena, list.edges, list.count, 0, sizeof *list.edges);
        if (!list.edges) return TARE_NO_MEMORY;
    } else {
        TARE_TRY(tare_quant_observed_edges(&list, &c->arena, c->model));
    }
    if (list.count > 1) qsort(list.edges, list.count, sizeof *list.edges, compare_edges);
    c->wanted = list.edges;
    c->n_wanted = list.count;
    c->counters = list.counters;
    c->n_counters = list.n_counters;
    return TARE_OK;
}

/* Nodes that were added to call a function are not part of the model. */
static bool is_scaffold(const struct tare_signature *callee, const struct tare_node *node) {
    for (size_t i = 0; callee && i < callee->n_inputs; i++)
        if (callee->inputs[i].edge.node == node) return true;
    for (size_t i = 0; callee && i < callee->n_outputs; i++)
        if (callee->outputs[i].edge.node == node) return true;
    return false;
}

/* An input that an output could be fed to: a state, also where no layer reads it before other values join it. Samples
 * that never fill it are warned of. */
static bool may_be_state(const struct tare_signature *signature, const struct tare_node *node) {
    for (size_t i = 0; i < signature->n_inputs; i++)
        for (size_t k = 0; signature->inputs[i].edge.node == node && k < signature->n_outputs; k++)
            if (signature->outputs[k].dtype == signature->inputs[i].dtype &&
                tare_shape_compatible(&signature->outputs[k].shape, &signature->inputs[i].shape))
                return true;
    return false;
}

static bool wants_quantizable(void *arg, const struct tare_node *node, size_t output) {
    const struct tare_calibrate_job *c = arg;
    const struct tare_edge edge = { .node = (struct tare_node *)(uintptr_t)node, .index = (int)output };
    if (c->n_wanted && bsearch(&edge, c->wanted, c->n_wanted, sizeof edge, compare_edges)) return true;
    for (size_t i = 0; i < c->groups.count && !is_scaffold(c->options->callee, node); i++)
        if (may_be_state(c->groups.items[i].signature, node)) return true;
    return false;
}

static bool accepts_all(void *arg, const struct tare_node *node, size_t output) {
    const struct tare_calibrate_job *c = arg;
    (void)output;
    return strcmp(node->op, "Const") != 0 && !is_scaffold(c->options->callee, node);
}

static bool accepts_hessian(void *arg, const struct tare_node *node, size_t output) {
    const struct tare_calibrate_job *c = arg;
    return tare_hessians_want(c->hessians, node, output);
}

static bool counter_of(void *arg, const struct tare_node *node, size_t output, struct tare_observed_counter *counter) {
    const struct tare_calibrate_job *c = arg;
    for (size_t i = 0; i < c->n_counters; i++) {
        const struct tare_quant_counter *found = &c->counters[i];
        if (found->edge.node != node || (size_t)found->edge.index != output) continue;
        *counter = found->counter;
        return true;
    }
    return false;
}

/* ---- setting up ---- */

/* Describes the task by a hash of the file names, of which there may be thousands. Threads, batch size and max_bad are
 * left out, because they do not affect the result. */
static tare_status describe_task(struct tare_calibrate_job *c) {
    const struct tare_calibrate_options *options = c->options;
    struct tare_strbuf text = { 0 };
    for (size_t i = 0; i < c->groups.count; i++) {
        const struct tare_data_group *group = &c->groups.items[i];
        struct tare_hash hash;
        uint64_t sum[2];
        tare_hash_begin(&hash);
        for (size_t k = 0; k < group->files.count; k++)
            tare_hash_add_text(&hash, group->files.names[k]);
        tare_hash_end(&hash, sum);
        tare_strbuf_printf(&text, "%s%s from %zu file%s #%08" PRIx64, i ? ", " : "", group->signature->key,
                           group->files.count, group->files.count == 1 ? "" : "s", sum[0] & 0xffffffff);
    }
    if (options->limit > 0) tare_strbuf_printf(&text, ", first %" PRId64 " records", options->limit);
    if (options->sample > 0)
        tare_strbuf_printf(&text, ", a sample of %" PRId64 " by seed %" PRId64, options->sample, options->seed);
    if (options->shards > 1)
        tare_strbuf_printf(&text, ", share %" PRId64 " of %" PRId64, options->shard, options->shards);
    if (options->spec) tare_strbuf_puts(&text, ", by a spec");
    c->task = text.failed ? NULL : tare_arena_strdup(&c->arena, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return c->task ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_workflow_calibrate_check(const struct tare_calibrate_options *options) {
    const bool feeds_back = tare_feedback_is_given(options->feedback);
    if (feeds_back && options->sample)
        return TARE_FAIL(TARE_USAGE, "--feedback and --sample are mutually exclusive: records drawn at random do not "
                                     "follow each other (expected --limit N, or --data with fewer files)");
    if (feeds_back && options->shards > 1)
        return TARE_FAIL(TARE_USAGE,
                         "--feedback: the records of a shard do not follow each other (calibrate some of the "
                         "files in each process, and combine the results with tare merge)");
    if (options->sample && options->limit) return TARE_FAIL(TARE_USAGE, "--sample and --limit are mutually exclusive");
    return TARE_OK;
}

static tare_status check_feedback(const struct tare_calibrate_job *c) {
    for (size_t i = 0; i < c->groups.count; i++)
        TARE_TRY(tare_feedback_check(c->options->feedback, c->groups.items[i].signature));
    return TARE_OK;
}

/* Labels are not used, but the arrays of an evaluation may have them. */
static tare_status check_array_names(const struct tare_data_groups *groups,
                                     const struct tare_calibrate_options *options) {
    for (size_t i = 0; i < groups->count; i++) {
        const struct tare_data_group *group = &groups->items[i];
        const struct tare_array_readers readers = { .signature = group->signature,
                                                    .spec = options->spec,
                                                    .label = "label",
                                                    .sequence =
                                                        options->feedback ? options->feedback->sequence : NULL };
        TARE_TRY(
            tare_workflow_check_array_names((const char *const *)group->files.names, group->files.count, &readers));
    }
    return TARE_OK;
}

static tare_status draw_samples(struct tare_calibrate_job *c) {
    const struct tare_calibrate_options *options = c->options;
    if (options->samples) return TARE_FAIL(TARE_USAGE, "--sample needs files (expected --data)");
    c->drawn = TARE_NEW_ARRAY(&c->arena, struct tare_sampling, c->groups.count + 1);
    if (!c->drawn) return TARE_NO_MEMORY;
    for (size_t i = 0; i < c->groups.count; i++) {
        const struct tare_file_list *files = &c->groups.items[i].files;
        const char *const *names = (const char *const *)files->names;
        int64_t rows;
        TARE_TRY(tare_rows_at_a_time(&rows, c->groups.items[i].signature, names, files->count, options->spec));
        TARE_TRY(tare_sampling_draw(&c->drawn[i], names, files->count, rows, options->sample, (uint64_t)options->seed));
    }
    return TARE_OK;
}

tare_status tare_workflow_calibrate_check_function(const struct tare_calibrate_options *options, const char *function) {
    if (!function) return TARE_OK;
    if (options->signature) return TARE_FAIL(TARE_USAGE, "--signature and --function are mutually exclusive");
    if (tare_data_is_standard_input(options->data, options->n_data))
        return TARE_FAIL(TARE_USAGE,
                         "--function: the concrete function cannot be selected by samples from standard input");
    return TARE_OK;
}

tare_status tare_workflow_calibrate_function(struct tare_calibrate_options *options, struct tare_graph_model *model,
                                             const char *name) {
    struct tare_edge_list *quantizable;
    struct tare_graph *function;
    uint64_t *fingerprint;
    if (!name) return TARE_OK;
    quantizable = TARE_NEW(&model->arena, struct tare_edge_list);
    fingerprint = TARE_NEW_ARRAY(&model->arena, uint64_t, 2);
    if (!quantizable || !fingerprint) return TARE_NO_MEMORY;
    TARE_TRY(tare_model_fingerprint(fingerprint, model)); /* before the call is added */
    TARE_TRY(tare_function_pick_for(&function, model, name, options->data, options->n_data, options->spec,
                                    options->feedback));
    TARE_TRY(tare_quant_observed_edges(quantizable, &model->arena, model));
    options->quantizable = quantizable;
    options->fingerprint = fingerprint;
    return tare_function_signature(&options->callee, model, function);
}

tare_status tare_workflow_calibrate_open(struct tare_calibrate_job *out, const struct tare_graph_model *model,
                                         const struct tare_calibrate_options *options) {
    const struct tare_signature *plain = options->callee;
    *out = (struct tare_calibrate_job){ .model = model, .options = options };
    TARE_TRY(tare_workflow_calibrate_check(options));
    if (!plain && options->signature) TARE_TRY(tare_pick_signature(&plain, model, options->signature));
    if (options->samples)
        TARE_TRY(tare_data_groups_make_one(&out->groups, model, plain));
    else
        TARE_TRY(tare_data_groups_make(&out->groups, model, options->data, options->n_data, plain));
    TARE_TRY(check_array_names(&out->groups, options));
    TARE_TRY(check_feedback(out));
    if (options->sample) TARE_TRY(draw_samples(out));
    if (!options->observe_all) TARE_TRY(list_wanted(out));
    if (options->fingerprint)
        memcpy(out->fingerprint, options->fingerprint, sizeof out->fingerprint);
    else
        TARE_TRY(tare_model_fingerprint(out->fingerprint, model));
    out->settings = options->observe_all ? "observe=all" : "observe=quantizable";
    return describe_task(out);
}

void tare_workflow_calibrate_close(struct tare_calibrate_job *c) {
    for (size_t i = 0; c->drawn && i < c->groups.count; i++)
        tare_sampling_free(&c->drawn[i]);
    tare_data_groups_free(&c->groups);
    tare_arena_free(&c->arena);
    *c = (struct tare_calibrate_job){ 0 };
}

static struct tare_calibration_options engine_options(const struct tare_calibrate_job *c) {
    const struct tare_calibrate_options *options = c->options;
    return (struct tare_calibration_options){
        .threads = options->threads,
        .batch = options->batch,
        .accepts = c->hessians            ? accepts_hessian
                   : options->observe_all ? accepts_all
                                          : wants_quantizable,
        .counter = c->n_counters ? counter_of : NULL,
        .hessians = c->hessians,
        .feedback = options->feedback,
        .accepts_arg = (void *)(uintptr_t)c,
        .state_path = options->state_path,
        .task = c->task,
        .autosave_seconds = options->autosave_seconds,
        .log = options->log,
        .interrupted = options->interrupted,
    };
}

tare_status tare_workflow_calibrate_measure(struct tare_calibrate_size *out, const struct tare_calibrate_job *c) {
    const struct tare_calibration_options options = engine_options(c);
    *out = (struct tare_calibrate_size){ 0 };
    for (size_t i = 0; i < c->groups.count; i++) {
        size_t bytes, tensors;
        TARE_TRY(tare_calibration_bound(&bytes, &tensors, c->model, c->groups.items[i].signature, &options,
                                        c->options->channels));
        out->tensors += tensors;
        out->bytes += bytes;
    }
    if (out->tensors) out->bytes_each = out->bytes / out->tensors;
    return TARE_OK;
}

tare_status tare_workflow_calibrate_start(struct tare_calibration **out, const struct tare_calibrate_job *c) {
    *out = tare_calibration_new(c->fingerprint, c->settings, c->options->channels);
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_workflow_calibrate_resume(struct tare_calibration **out, const struct tare_calibrate_job *c) {
    return tare_calibration_resume(out, c->options->state_path, c->fingerprint, c->settings, c->options->channels,
                                   c->task);
}

tare_status tare_workflow_calibrate_save_state(struct tare_calibration *calibration,
                                               const struct tare_calibrate_job *c) {
    return tare_calibration_save_state(calibration, c->options->state_path, c->task);
}

/* ---- running ---- */

struct shown_progress {
    const struct tare_calibrate_options *options;
    struct tare_progress *progress;
    int64_t reported;
};

static void advance(void *arg, int64_t records) {
    struct shown_progress *shown = arg;
    tare_progress_advance(shown->progress, records - shown->reported);
    shown->reported = records;
    if (shown->options->tick) shown->options->tick(shown->options->tick_arg);
}

/* `source` reads the files; NULL if the caller provides the samples. */
static tare_status run_samples(struct tare_calibration *calibration, struct tare_calibration_outcome *outcome,
                               const struct tare_calibrate_job *c, const struct tare_data_group *group,
                               const struct tare_sample_source *samples, const struct tare_source_options *source) {
    const struct tare_progress_options look = { .label = "calibrating",
                                                .unit = "records",
                                                .total = -1,
                                                .quiet = !c->options->progress,
                                                .on_progress = c->options->on_progress,
                                                .progress_arg = c->options->progress_arg };
    struct tare_calibration_options options = engine_options(c);
    struct shown_progress shown = { .options = c->options, .progress = tare_progress_new(&look) };
    struct tare_record_counter *counter = source ? tare_record_counter_start((const char *const *)group->files.names,
                                                                             group->files.count, source, shown.progress)
                                                 : NULL;
    tare_status status;
    options.progress = advance;
    options.progress_arg = &shown;
    tare_progress_skip(shown.progress, tare_calibration_signature_records(calibration, group->signature->key));
    status = tare_calibration_run(calibration, outcome, c->model, group->signature, samples, &options);
    tare_record_counter_end(counter);
    tare_progress_free(shown.progress);
    return status;
}

/* Number of decoded samples to queue: two per worker, since samples may be large. A single worker decodes plain samples
 * itself, which is faster than handing them over. */
static size_t samples_ahead(const struct tare_calibrate_options *options) {
    enum { LEAST = 4, MOST = 256, AUTO = 8 };
    const int threads = options->threads > 0 ? options->threads : tare_cpu_count();
    if (threads == 1 && !options->spec) return 0;
    const int64_t round = (int64_t)threads * (options->batch > 0 ? options->batch : AUTO);
    return 2 * round < LEAST ? LEAST : 2 * round > MOST ? MOST : (size_t)(2 * round);
}

static bool is_drawn(void *arg, const char *file, const struct tare_record *where) {
    (void)file;
    return tare_sampling_has(arg, where->index);
}

static tare_status open_feed(struct tare_sample_feed *feed, struct tare_source_options *source,
                             const struct tare_calibrate_job *c, const struct tare_data_group *group) {
    const struct tare_calibrate_options *options = c->options;
    *source = (struct tare_source_options){ .shard = options->shard,
                                            .shards = options->shards,
                                            .other_shards = options->other_shards,
                                            .takes = c->drawn ? is_drawn : NULL,
                                            .takes_arg = c->drawn ? &c->drawn[group - c->groups.items] : NULL,
                                            .stop = options->limit,
                                            .max_bad = options->max_bad,
                                            .spec = options->spec,
                                            .prefetch = samples_ahead(options) };
    TARE_TRY(tare_rows_at_a_time(&source->rows, group->signature, (const char *const *)group->files.names,
                                 group->files.count, options->spec));
    return tare_sample_feed_open(feed, group->signature, (const char *const *)group->files.names, group->files.count,
                                 source, options->feedback);
}

static tare_status run_group(struct tare_calibration *calibration, struct tare_calibration_outcome *outcome,
                             const struct tare_calibrate_job *c, const struct tare_data_group *group) {
    struct tare_source_options source;
    struct tare_sample_feed feed;
    tare_status status;
    if (c->options->samples) return run_samples(calibration, outcome, c, group, c->options->samples, NULL);
    status = open_feed(&feed, &source, c, group);
    if (status == TARE_OK) status = run_samples(calibration, outcome, c, group, &feed.source, &source);
    if (status == TARE_OK) status = tare_sample_feed_note_bad(calibration, &feed);
    tare_sample_feed_close(&feed);
    return status;
}

/* A run without records would write a calibration that quantizes nothing. A shard may be empty. */
static tare_status check_records(const struct tare_calibration *calibration, const struct tare_calibrate_job *c,
                                 const struct tare_data_group *group) {
    const char *key = group->signature->key;
    if (c->options->shards > 1 || c->hessians || tare_calibration_signature_records(calibration, key) > 0)
        return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: no records for signature %s (expected at least 1)",
                     group->files.count ? group->files.names[0] : c->options->samples->files[0], key);
}

tare_status tare_workflow_calibrate_run(struct tare_calibration *calibration, struct tare_calibrate_outcome *outcome,
                                        const struct tare_calibrate_job *c) {
    *outcome = (struct tare_calibrate_outcome){ 0 };
    for (size_t i = 0; i < c->groups.count; i++) {
        struct tare_calibration_outcome one = { 0 };
        tare_status status = run_group(calibration, &one, c, &c->groups.items[i]);
        outcome->records += one.records;
        outcome->seconds += one.seconds;
        outcome->threads = one.threads > outcome->threads ? one.threads : outcome->threads;
        outcome->batch = one.batch > outcome->batch ? one.batch : outcome->batch;
        outcome->stateful |= one.stateful;
        if (one.batch_reason) outcome->batch_reason = one.batch_reason;
        TARE_TRY(status);
        TARE_TRY(check_records(calibration, c, &c->groups.items[i]));
    }
    return TARE_OK;
}

static tare_status read_feed(struct tare_calibration *calibration, struct tare_tensor *inputs, size_t n_inputs,
                             const struct tare_sample_feed *feed, const volatile sig_atomic_t *interrupted) {
    const struct tare_sample_source *source = &feed->source;
    for (size_t i = 0; i < source->n_files; i++)
        TARE_TRY(tare_calibration_add_input(calibration, feed->signature->key, source->files[i], NULL));
    for (;;) {
        struct tare_record record = { .number = -1 };
        bool end = false;
        TARE_TRY(source->next(source->arg, inputs, &record, &end, NULL, NULL));
        if (end) return tare_sample_feed_note_bad(calibration, feed);
        for (size_t i = 0; i < n_inputs; i++)
            tare_tensor_reset(&inputs[i]);
        const int32_t at = tare_calibration_find_input(calibration, feed->signature->key, source->files[record.file]);
        TARE_TRY(tare_record_set_add(&calibration->inputs[at].records, record.number, record.number + 1));
        TARE_TRY(tare_flag_check(interrupted));
    }
}

tare_status tare_workflow_calibrate_read_only(struct tare_calibration *calibration,
                                              const struct tare_calibrate_job *c) {
    tare_status status = TARE_OK;
    for (size_t i = 0; i < c->groups.count && status == TARE_OK; i++) {
        const size_t n_inputs = c->groups.items[i].signature->n_inputs;
        struct tare_tensor *inputs = tare_calloc(n_inputs + 1, sizeof *inputs);
        struct tare_source_options source;
        struct tare_sample_feed feed;
        status = open_feed(&feed, &source, c, &c->groups.items[i]);
        if (status == TARE_OK)
            status = inputs ? read_feed(calibration, inputs, n_inputs, &feed, c->options->interrupted) : TARE_NO_MEMORY;
        tare_sample_feed_close(&feed);
        tare_free(inputs);
    }
    return status;
}

static tare_status count_hessians(struct tare_hessians *hessians, const struct tare_graph_model *model,
                                  const struct tare_calibrate_options *options) {
    struct tare_calibration *scratch = NULL; /* records which records were observed */
    struct tare_calibrate_outcome outcome;
    struct tare_calibrate_job job;
    tare_status status;
    TARE_CHECK(tare_workflow_calibrate_open(&job, model, options));
    job.hessians = hessians;
    TARE_CHECK(tare_workflow_calibrate_start(&scratch, &job));
    status = tare_workflow_calibrate_run(scratch, &outcome, &job);
done:
    tare_workflow_calibrate_close(&job);
    tare_calibration_free(scratch);
    return status;
}

tare_status tare_workflow_calibrate_hessians(struct tare_calibration *calibration, const struct tare_graph_model *model,
                                             const struct tare_calibrate_options *options) {
    static const size_t LIMIT = (size_t)2 << 30;
    struct tare_calibrate_options second = *options;
    size_t left_out;
    if (!calibration->hessians && !(calibration->hessians = tare_hessians_new())) return TARE_NO_MEMORY;
    TARE_TRY(tare_quant_want_hessians(calibration->hessians, &left_out, model, calibration, LIMIT));
    tare_note(options->log, "Hessians of %zu layer inputs: %.1f MB%s", tare_hessians_count(calibration->hessians),
              (double)tare_hessians_total_bytes(calibration->hessians) / 1e6,
              left_out ? "; the rest would take too much and is rounded to nearest" : "");
    second.state_path = NULL;
    second.channels = false;
    if (!tare_hessians_count(calibration->hessians)) return TARE_OK;
    return tare_error_prefix(count_hessians(calibration->hessians, model, &second), "Hessians");
}

tare_status tare_workflow_calibrate(struct tare_calibration **out, const struct tare_graph_model *model,
                                    const struct tare_calibrate_options *options) {
    struct tare_calibrate_outcome outcome;
    struct tare_calibrate_job job;
    tare_status status;
    *out = NULL;
    TARE_CHECK(tare_workflow_calibrate_open(&job, model, options));
    TARE_CHECK(tare_workflow_calibrate_start(out, &job));
    status = tare_workflow_calibrate_run(*out, &outcome, &job);
    if (status == TARE_OK && options->hessians) status = tare_workflow_calibrate_hessians(*out, model, options);
done:
    tare_workflow_calibrate_close(&job);
    if (status == TARE_OK) return TARE_OK;
    tare_calibration_free(*out);
    *out = NULL;
    return status;
}

tare_status tare_workflow_calibrate_log(const struct tare_log *log, const struct tare_calibration *calibration) {
    struct tare_calibration_warning_list list;
    const tare_status status = tare_calibration_warnings(&list, calibration);
    for (size_t i = 0; i < list.count && status == TARE_OK; i++)
        tare_warn(log, "%s", list.items[i].text);
    tare_calibration_warning_list_free(&list);
    return status;
}

tare_status tare_workflow_calibrate_from(struct tare_calibration **out, const struct tare_graph_model *model,
                                         const char *file, const struct tare_calibrate_options *options) {
    tare_status status;
    if (!file) return tare_workflow_calibrate(out, model, options);
    TARE_TRY(tare_calibration_load_for(out, model, file));
    if (!options->hessians || !options->n_data) return TARE_OK;
    status = tare_workflow_calibrate_hessians(*out, model, options);
    if (status == TARE_OK) return TARE_OK;
    tare_calibration_free(*out);
    *out = NULL;
    return status;
}
