/* tare run: runs a signature or a function on records or arrays and writes its outputs. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "cli/command.h"
#include "cli/log.h"
#include "cli/plugins.h"
#include "cli/run_arrays.h"
#include "cli/run_outputs.h"
#include "cli/run_report.h"
#include "convert/saved_model.h"
#include "eval/function_signature.h"
#include "eval/model_inputs.h"
#include "eval/runner.h"
#include "eval/served_batches.h"
#include "workflow/data_options.h"
#include "workflow/record_count.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct run_options {
    const char *model, *signature, *function, *output_dir;
    struct tare_data_options records;
    struct tare_option_list data, inputs, outputs;
    int64_t limit;
    int threads, batch;
    bool profile, check_numerics, trace, reference, quiet, json, per_record, batching;
    struct tare_option_list plugins;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct run_options, "data", LIST, data), .placeholder = "FILE",
      .help = "records: TFRecord (plain, GZIP or ZLIB), NPY, NPZ, CSV or images, a quoted pattern, or - for standard "
              "input" },
    TARE_OPTION_NESTED(struct run_options, records, tare_data_rows),
    { TARE_OPTION(struct run_options, "input", LIST, inputs), .placeholder = "NAME=FILE",
      .help = "read input NAME from a .npy file, instead of --data" },
    { TARE_OPTION(struct run_options, "signature", STRING, signature), .placeholder = "S",
      .help = "signature to run (default: serving_default)" },
    { TARE_OPTION(struct run_options, "function", STRING, function), .placeholder = "F",
      .help = "function to call instead of a signature, given by alias, path (layer.call) or name; of several concrete "
              "functions, the one that matches the inputs' dtypes and shapes and the defaults of other arguments" },
    { TARE_OPTION(struct run_options, "output-dir", STRING, output_dir), .placeholder = "DIR",
      .help = "write each output to DIR/OUTPUT.npy, strings to .txt" },
    { TARE_OPTION(struct run_options, "output", LIST, outputs), .placeholder = "NAME",
      .help = "compute only this output (default: all)" },
    { TARE_OPTION(struct run_options, "per-record", FLAG, per_record), .needs = "output-dir",
      .help = "write one file per record, DIR/OUTPUT.recN.npy; required for outputs whose shapes differ" },
    { TARE_OPTION(struct run_options, "limit", INT64, limit), .min = 0, .max = 1e15, .needs = "data",
      .help = "run only the first N records (default: all)" },
    { TARE_OPTION(struct run_options, "threads", INT, threads), .min = 0, .max = 1024,
      .help = "number of threads (default: one per processor; one worker for a stateful model)" },
    { TARE_OPTION(struct run_options, "batch", INT, batch), .fallback = "1", .min = 1, .max = 65536,
      .help = "maximum number of examples to concatenate on axis 0; used only where it does not change results" },
    { TARE_OPTION(struct run_options, "batching", FLAG, batching),
      .help =
          "run BatchFunction ops as a server does: records are requests that are joined up to max_batch_size, padded "
          "to allowed_batch_sizes and split; report batches and padding (default: each record is a batch)" },
    { TARE_OPTION(struct run_options, "profile", FLAG, profile),
      .help = "print the time spent per op type and the slowest nodes" },
    { TARE_OPTION(struct run_options, "check-numerics", FLAG, check_numerics),
      .help = "stop at the first NaN or infinity and report its node and record" },
    { TARE_OPTION(struct run_options, "trace", FLAG, trace),
      .help = "print each node and its output shapes as it runs" },
    { TARE_OPTION(struct run_options, "reference", FLAG, reference),
      .help = "use the reference kernels instead of the fast ones" },
    { TARE_OPTION(struct run_options, "quiet", FLAG, quiet), .help = "suppress progress and notes on standard error" },
    { TARE_OPTION(struct run_options, "json", FLAG, json), .help = "print a summary as JSON instead of the values" },
    TARE_PLUGIN_OPTION(struct run_options),
    TARE_LOG_OPTIONS(struct run_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct run_options, "MODEL", model),
      .help = "SavedModel directory, or a file of a StableHLO module", .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = {
    "tare run my_model --data samples.tfrecord.gz --output-dir outputs",
    "tare run my_model --input image=image.npy",
    "tare run my_model --function preprocess --input text=text.npy",
    "tare run converted --data samples.tfrecord.gz --batching",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare run",
    .summary = "Runs a signature or function of a SavedModel on the CPU. Outputs of different records are concatenated "
               "on axis 0 if the signature leaves the first dimension of its outputs open, and stacked on a new axis "
               "otherwise; outputs of --input keep their shapes. Results do not depend on --threads or --batch.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

struct run_state {
    const struct run_options *options;
    struct tare_log log;
    struct tare_graph_model *model;
    const struct tare_signature *signature, *written; /* what runs; with the outputs that are written */
    struct tare_session **sessions;
    int threads, batch;
    bool stateful;
    struct tare_served_batches *batches; /* --batching; NULL otherwise */
    struct tare_run_outputs *outputs;
    struct tare_progress *progress;
    int64_t records;
};

/* ---- records and arrays ---- */

static tare_status on_record(void *arg, const struct tare_sample *sample, const struct tare_record *where,
                             const struct tare_tensor *outputs) {
    struct run_state *state = arg;
    (void)sample;
    (void)where;
    state->records++;
    tare_progress_advance(state->progress, 1);
    return tare_run_outputs_take(state->outputs, outputs);
}

static void on_begin(void *arg, const char *file, int64_t record) {
    (void)arg;
    fprintf(stderr, "%s: record %lld\n", file, (long long)record);
}

static tare_status run_samples(struct run_state *state) {
    const struct run_options *given = state->options;
    struct tare_runner_options options = { .paths = given->data.items,
                                           .n_paths = given->data.count,
                                           .limit = given->limit,
                                           .spec = given->records.spec,
                                           .feedback = &given->records.feedback,
                                           .batch = state->batch,
                                           .interrupted = &tare_interrupted,
                                           .begin = given->trace ? on_begin : NULL };
    struct tare_progress_options shown = { .label = "running", .unit = "records", .total = -1, .quiet = given->quiet };
    struct tare_source_options counted = { .limit = given->limit };
    struct tare_record_counter *counter;
    tare_status status;
    TARE_TRY(tare_runner_find_rows(&options, state->signature));
    counted.rows = options.rows;
    if (options.rows > 1) tare_run_outputs_join_rows(state->outputs, options.rows);
    state->progress = tare_progress_new(&shown);
    counter = tare_record_counter_start(given->data.items, given->data.count, &counted, state->progress);
    status = state->batches
                 ? tare_served_batches_run(state->batches, state->sessions[0], &options, on_record, state)
                 : tare_run_records_on(state->sessions, state->threads, state->signature, &options, on_record, state);
    tare_record_counter_end(counter);
    tare_progress_free(state->progress);
    return status;
}

static tare_status run_arrays(struct run_state *state, const struct tare_run_arrays *arrays) {
    state->records = 1;
    return tare_run_arrays_run(state->outputs, arrays, state->sessions[0], state->signature);
}

/* ---- what to run ---- */

/* Selects the concrete function that matches the arrays or the first record. */
static tare_status pick_function(struct run_state *state, struct tare_run_arrays *arrays) {
    const struct run_options *options = state->options;
    const struct tare_call_arguments given = { .keys = arrays->keys, .values = arrays->values, .count = arrays->count };
    struct tare_graph *function;
    tare_status status = options->data.count ? tare_function_pick_for(&function, state->model, options->function,
                                                                      options->data.items, options->data.count,
                                                                      options->records.spec, &options->records.feedback)
                                             : tare_function_pick(&function, state->model, options->function, &given);
    if (status == TARE_OK) status = tare_run_arrays_drop_bound(arrays, function);
    if (status == TARE_OK) status = tare_function_signature(&state->signature, state->model, function);
    return tare_error_prefix(status, "%s", options->model);
}

/* Joins lines: "a\nb\n" becomes "a; b". */
static void join_lines(struct tare_strbuf *text) {
    struct tare_strbuf joined = { 0 };
    for (size_t i = 0; i + 1 < text->size; i++) {
        if (text->data[i] == '\n')
            tare_strbuf_puts(&joined, "; ");
        else
            tare_strbuf_putc(&joined, text->data[i]);
    }
    tare_strbuf_free(text);
    *text = joined;
}

static bool is_chosen(const struct tare_option_list *names, const char *output) {
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], output) == 0) return true;
    return false;
}

/* A signature with only the requested outputs, in that order, and one that also has those that are fed back. */
static tare_status choose_outputs(struct run_state *state) {
    const struct tare_option_list *names = &state->options->outputs;
    const struct tare_signature *all = state->signature;
    struct tare_signature *chosen = TARE_NEW_ARRAY(&state->model->arena, struct tare_signature, 2), *run = chosen + 1;
    if (!chosen) return TARE_NO_MEMORY;
    *chosen = *all;
    chosen->outputs = TARE_NEW_ARRAY(&state->model->arena, struct tare_binding, names->count + all->n_outputs);
    chosen->n_outputs = 0;
    if (!chosen->outputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < names->count; i++) {
        struct tare_strbuf known = { 0 };
        size_t k = 0;
        while (k < all->n_outputs && strcmp(all->outputs[k].key, names->items[i]) != 0)
            tare_strbuf_printf(&known, "%s%s", k ? ", " : "", all->outputs[k].key), k++;
        if (k < all->n_outputs) chosen->outputs[chosen->n_outputs++] = all->outputs[k];
        const tare_status status = k < all->n_outputs ? TARE_OK
                                                      : TARE_FAIL(TARE_USAGE, "--output %s: unknown output (%s has %s)",
                                                                  names->items[i], all->key, tare_strbuf_text(&known));
        tare_strbuf_free(&known);
        TARE_TRY(status);
    }
    *run = *chosen;
    for (size_t i = 0; i < all->n_outputs; i++)
        if (tare_feedback_reads(&state->options->records.feedback, all->outputs[i].key) &&
            !is_chosen(names, all->outputs[i].key))
            run->outputs[run->n_outputs++] = all->outputs[i];
    state->signature = run;
    state->written = chosen;
    return TARE_OK;
}

/* Stateful models run on one worker, whatever --threads says: records update the state, and print, in their order. */
static tare_status choose_workers(struct run_state *state) {
    const struct run_options *options = state->options;
    struct tare_strbuf found = { 0 };
    state->threads = options->threads ? options->threads : tare_cpu_count();
    state->batch = options->check_numerics ? 1 : options->batch;
    const tare_status status = tare_session_state_ops(&state->stateful, state->model, state->signature, &found);
    join_lines(&found);
    if (status == TARE_OK && state->stateful) {
        state->threads = 1;
        tare_note(&state->log, "%s is stateful (%s): it runs on one worker", state->signature->key,
                  tare_strbuf_text(&found));
    }
    const bool feeds_back = tare_feedback_is_given(&options->records.feedback);
    if (feeds_back) tare_note(&state->log, "records run in order, one at a time (--feedback)");
    if (!options->data.count || options->trace || options->batching || feeds_back) state->threads = 1;
    tare_strbuf_free(&found);
    return status;
}

static void print_trace(const char *line) {
    fprintf(stderr, "%s\n", line);
}

static tare_status prepare(struct run_state *state, struct tare_run_arrays *arrays) {
    const struct run_options *options = state->options;
    struct tare_session_options session = { .profile = options->profile,
                                            .check_numerics = options->check_numerics,
                                            .trace = options->trace ? print_trace : NULL,
                                            .use_reference_kernels = options->reference };
    TARE_TRY(tare_run_arrays_read(arrays, &options->inputs));
    TARE_TRY(tare_command_load_to_run(&state->model, options->model));
    TARE_TRY(options->function ? pick_function(state, arrays)
                               : tare_pick_signature(&state->signature, state->model, options->signature));
    if (!options->data.count && !options->inputs.count) TARE_TRY(tare_run_arrays_missing(state->signature));
    TARE_TRY(tare_feedback_check(&options->records.feedback, state->signature));
    state->written = state->signature;
    if (options->outputs.count) TARE_TRY(choose_outputs(state));
    TARE_TRY(tare_session_check_ops(state->model, state->signature));
    TARE_TRY(choose_workers(state));
    if (options->batching) {
        TARE_TRY(
            tare_error_prefix(tare_served_batches_new(&state->batches, state->model, state->signature), "--batching"));
        state->signature = state->written = tare_served_batches_signature(state->batches);
    }
    session.op_threads = (options->threads ? options->threads : tare_cpu_count()) / state->threads;
    TARE_TRY(tare_run_outputs_new(&state->outputs, state->written, options->output_dir,
                                  options->per_record   ? TARE_RUN_OUTPUTS_PER_RECORD
                                  : options->data.count ? TARE_RUN_OUTPUTS_JOINED
                                                        : TARE_RUN_OUTPUTS_ONCE,
                                  options->json));
    TARE_TRY(tare_run_outputs_check_apart(state->outputs, &options->data));
    TARE_TRY(tare_run_outputs_check_apart(state->outputs, &options->inputs));
    return tare_sessions_new(&state->sessions, state->threads, state->model, &session);
}

/* ---- the command ---- */

static tare_status report(const struct run_state *state, double seconds) {
    const struct run_options *options = state->options;
    const struct tare_run_summary summary = {
        options->model, state->signature->key,     state->records, state->threads, state->batch, state->stateful,
        seconds,        state->written->n_outputs, state->batches
    };
    struct tare_arena arena = { 0 };
    struct tare_run_profile profile = { 0 };
    tare_status status = TARE_OK;
    if (options->profile) status = tare_run_profile_make(&profile, &arena, state->sessions, state->threads);
    if (status == TARE_OK && options->profile && !options->json) tare_run_profile_print(&profile);
    if (status == TARE_OK && state->batches && !options->json) tare_run_batching_print(state->batches);
    if (status == TARE_OK && options->json)
        status = tare_run_summary_print(&summary, state->outputs, options->profile ? &profile : NULL);
    tare_arena_free(&arena);
    return status;
}

static tare_status check_usage(const struct run_options *options) {
    if (options->data.count && options->inputs.count)
        return TARE_FAIL(TARE_USAGE, "--data and --input are mutually exclusive");
    if (options->signature && options->function)
        return TARE_FAIL(TARE_USAGE, "--signature and --function are mutually exclusive");
    if (options->batching && !options->data.count)
        return TARE_FAIL(TARE_USAGE, "--batching requires --data, whose records are the requests");
    if (tare_feedback_is_given(&options->records.feedback) && (!options->data.count || options->batching))
        return TARE_FAIL(TARE_USAGE, "--feedback requires --data, whose records run in order, and no --batching");
    if (options->records.spec_path && options->inputs.count)
        return TARE_FAIL(TARE_USAGE,
                         "--spec: applies to --data, not to --input (expected --data FILE.npy, with 'feature: "
                         "\"FILE\"' in the spec, or arrays of the model's dtypes)");
    const struct tare_option_list *outputs = &options->outputs;
    for (size_t i = 0; i < outputs->count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(outputs->items[j], outputs->items[i]) == 0)
                return TARE_FAIL(TARE_USAGE, "--output %s is given twice", outputs->items[i]);
    return TARE_OK;
}

static tare_status run(int argc, char *const *argv) {
    struct run_options options = { 0 };
    struct run_state state = { .options = &options };
    struct tare_run_arrays arrays = { 0 };
    bool done;
    double began;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    state.log = tare_command_log(options.quiet);
    TARE_CHECK(check_usage(&options));
    TARE_CHECK(tare_data_options_open(&options.records));
    TARE_CHECK(prepare(&state, &arrays));
    began = tare_clock_seconds();
    TARE_CHECK(options.data.count ? run_samples(&state) : run_arrays(&state, &arrays));
    if (options.data.count && state.records == 0)
        TARE_CHECK(TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: no records (expected at least 1)", options.data.items[0]));
    tare_data_options_warn(&state.log, options.records.spec);
    TARE_CHECK(tare_run_outputs_commit(state.outputs));
    if (options.output_dir)
        tare_note(&state.log, "wrote the outputs of %" PRId64 " record%s to %s", state.records,
                  state.records == 1 ? "" : "s", options.output_dir);
    status = report(&state, tare_clock_seconds() - began);
done:
    tare_run_outputs_free(state.outputs);
    tare_sessions_free(state.sessions, state.threads);
    tare_served_batches_free(state.batches);
    tare_run_arrays_free(&arrays);
    tare_model_free(state.model);
    tare_data_options_close(&options.records);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_run = {
    .name = "run", .summary = "run a signature or a function on the CPU", .run = run, .options = &set
};
