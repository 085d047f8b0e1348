/* tare calibrate: runs representative samples and writes their statistics to a calibration file. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/control.h"
#include "base/output.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "calib/format/file.h"
#include "cli/calibrate_report.h"
#include "cli/command.h"
#include "cli/hint.h"
#include "cli/log.h"
#include "cli/plugins.h"
#include "cli/team.h"
#include "convert/saved_model.h"
#include "datasets/source.h"
#include "interpreter/session.h"
#include "workflow/calibrate.h"
#include "workflow/data_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct calibrate_options {
    const char *model, *output, *shard;
    struct tare_option_list data;
    struct tare_data_options records;
    struct tare_input_files inputs;
    struct tare_calibrate_request how;
    double autosave;
    bool resume, dry_run, quiet, json;
    struct tare_option_list plugins;
    struct tare_log_options logging;
};

#define TARE_ROW_STRUCT struct calibrate_options
static const struct tare_option rows[] = {
    { TARE_ROW("data", LIST, data), .placeholder = "[SIGNATURE=]FILE",
      .help = "representative samples: a file, a quoted pattern, or - for standard input" },
    TARE_OPTION_NESTED(struct calibrate_options, inputs, tare_input_rows),
    TARE_OPTION_NESTED(struct calibrate_options, records, tare_data_rows),
    { TARE_ROW("output", STRING, output), .letter = 'o', .placeholder = "FILE", .beside = ".state",
      .help = "calibration file to write; FILE.state saves the progress of the run" },
    TARE_OPTION_NESTED(struct calibrate_options, how, tare_calibrate_rows),
    { TARE_ROW("shard", STRING, shard), .placeholder = "I/N",
      .help = "process only every N-th record, starting at record I (from 0); combine the shards with tare merge" },
    { TARE_ROW("resume", FLAG, resume), .help = "continue from FILE.state if it exists" },
    { TARE_ROW("autosave", DOUBLE, autosave), .min = 0.001, .max = 1e6, .placeholder = "SECONDS",
      .help = "seconds between two saves of FILE.state (default: 5, or longer so that saving takes 1 % of the time)" },
    { TARE_ROW("dry-run", FLAG, dry_run),
      .help = "check all records, run the first ones, and estimate the time and memory of the run" },
    { TARE_ROW("quiet", FLAG, quiet), .help = "print only warnings on standard error" },
    { TARE_ROW("json", FLAG, json), .help = "print a summary as JSON" },
    TARE_PLUGIN_OPTION(struct calibrate_options),
    TARE_LOG_OPTIONS(struct calibrate_options),
    { 0 },
};
#undef TARE_ROW_STRUCT
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct calibrate_options, "MODEL", model),
      .help = "SavedModel directory, or a file of a StableHLO module", .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = {
    "tare calibrate my_model --data samples.tfrecord.gz -o my_model.calib",
    "tare quantize my_model my_model_int8 --calibration my_model.calib --algorithm percentile",
    "tare calibrate my_model --data 'encode=e-*.tfrecord' --data decode=d.tfrecord -o my_model.calib --resume",
    "mpirun -n 8 tare calibrate my_model --data 'samples-*.tfrecord' -o my_model.calib",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare calibrate",
    .summary =
        "Runs representative samples through a model and collects statistics of the tensors that quantization needs. "
        "The calibration file serves every calibration algorithm, so that changing the algorithm does not run the "
        "model again. Its bytes do not depend on --threads, --batch, shards, ranks or interruptions.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* State of one run of the command. */
struct work {
    struct calibrate_options *options;
    struct tare_calibrate_options job_options;
    struct tare_log log;
    struct tare_team team;
    struct tare_graph_model *model;
    char *state_path;
    struct tare_calibrate_job job;
    struct tare_calibrate_size size;
    struct tare_calibrate_outcome outcome;
    struct tare_calibrate_estimate estimate; /* for --dry-run */
    struct tare_calibration *calibration;
    int64_t resumed;
    double listened;              /* time of the last check for failed ranks */
    struct tare_output_lock lock; /* of the output and its state, on rank 0 */
};

/* ---- what to run ---- */

static tare_status read_shard(struct work *w) {
    const char *text = w->options->shard;
    int end = 0;
    if (!text) {
        w->job_options.shard = w->team.rank;
        w->job_options.shards = w->team.size;
        return TARE_OK;
    }
    int64_t *shard = &w->job_options.shard, *shards = &w->job_options.shards;
    if (sscanf(text, "%" SCNd64 "/%" SCNd64 "%n", shard, shards, &end) != 2 || text[end] || *shards < 1 || *shard < 0 ||
        *shard >= *shards)
        return TARE_FAIL(TARE_USAGE, "--shard %s: invalid shard (expected I/N with 0 <= I < N)", text);
    return TARE_OK;
}

static tare_status check_usage(const struct work *w) {
    const struct calibrate_options *options = w->options;
    const bool input = tare_data_is_standard_input(options->data.items, options->data.count);
    if (!options->output && !options->dry_run) return TARE_FAIL(TARE_USAGE, "missing option --output FILE");
    TARE_TRY(tare_workflow_calibrate_check_function(&w->job_options, options->how.function));
    if (!tare_team_alone(&w->team) && input)
        return TARE_FAIL(TARE_USAGE, "--data -: only one process can read standard input");
    if (options->resume && options->output && strcmp(options->output, "-") == 0)
        return TARE_FAIL(TARE_USAGE, "--resume: a calibration written to standard output has no saved state");
    return TARE_OK;
}

/* FILE.state, one per rank under MPI; none for standard output. */
static tare_status name_state(struct work *w) {
    struct tare_strbuf text = { 0 };
    if (!w->options->output || w->options->dry_run || strcmp(w->options->output, "-") == 0) return TARE_OK;
    tare_strbuf_printf(&text, "%s.state", w->options->output);
    if (!tare_team_alone(&w->team)) tare_strbuf_printf(&text, ".%d-of-%d", w->team.rank, w->team.size);
    if (!text.failed) w->state_path = tare_strdup(tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    w->job_options.state_path = w->state_path;
    return w->state_path ? TARE_OK : TARE_NO_MEMORY;
}

/* Reports stateful signatures; their records cannot be split into shards. */
static tare_status check_signatures(struct work *w) {
    for (size_t i = 0; i < w->job.groups.count; i++) {
        const struct tare_signature *signature = w->job.groups.items[i].signature;
        TARE_TRY(tare_session_check_ops(w->model, signature));
        struct tare_strbuf ops = { 0 };
        bool stateful;
        tare_status status = tare_session_state_ops(&stateful, w->model, signature, &ops);
        char *end = stateful ? strchr(tare_strbuf_text(&ops), '\n') : NULL;
        if (end) *end = '\0';
        if (status == TARE_OK && stateful && w->job_options.shards > 1)
            status = TARE_FAIL(TARE_UNSUPPORTED, "%s is stateful (%s): its records cannot be split into shards",
                               signature->key, tare_strbuf_text(&ops));
        else if (status == TARE_OK && stateful)
            tare_note(&w->log,
                      "%s is stateful (%s): it runs on one worker, one record at a time, and "
                      "cannot be resumed",
                      signature->key, tare_strbuf_text(&ops));
        tare_strbuf_free(&ops);
        TARE_TRY(status);
    }
    if (tare_feedback_is_given(w->job_options.feedback))
        tare_note(&w->log, "records run in order, one at a time, and cannot be resumed (--feedback)");
    return TARE_OK;
}

/* ---- running ---- */

/* Stops this rank when another one has failed. Called a few times per second. */
static void listen(void *arg) {
    struct work *w = arg;
    const double now = tare_clock_seconds();
    if (now < w->listened + 0.2) return;
    w->listened = now;
    if (tare_team_stopped(&w->team)) tare_interrupted = 1;
}

static tare_status prepare(struct work *w) {
    const struct calibrate_options *options = w->options;
    TARE_TRY(read_shard(w));
    TARE_TRY(check_usage(w));
    TARE_TRY(name_state(w));
    if (!options->dry_run && w->team.rank == 0) TARE_TRY(tare_output_lock(&w->lock, options->output));
    TARE_TRY(tare_data_options_open(&w->options->records));
    w->job_options.spec = options->records.spec;
    w->job_options.feedback = &options->records.feedback;
    TARE_TRY(tare_workflow_calibrate_check(&w->job_options));
    TARE_TRY(tare_command_load_prepared(&w->model, options->model));
    if (w->team.rank == 0 && tare_saved_model_is_tf1(w->model))
        tare_note(&w->log, "%s is of TensorFlow 1: 'tare quantize' takes it, 'tare convert' does not", options->model);
    TARE_TRY(tare_error_prefix(tare_workflow_calibrate_function(&w->job_options, w->model, options->how.function), "%s",
                               options->model));
    TARE_TRY(tare_workflow_calibrate_open(&w->job, w->model, &w->job_options));
    TARE_TRY(check_signatures(w));
    TARE_TRY(tare_workflow_calibrate_measure(&w->size, &w->job));
    tare_calibrate_print_size(&w->log, &w->size, &w->team);
    return TARE_OK;
}

static tare_status start(struct work *w) {
    if (w->options->resume) {
        tare_status status = tare_workflow_calibrate_resume(&w->calibration, &w->job);
        if (status != TARE_NOT_FOUND) {
            if (status == TARE_OK) w->resumed = tare_calibration_records(w->calibration);
            if (status == TARE_OK) tare_note(&w->log, "%" PRId64 " records are already in the saved state", w->resumed);
            return status;
        }
        tare_error_clear();
        tare_note(&w->log, "%s does not exist: starting with the first record", w->state_path);
    } else if (w->state_path && tare_file_kind_of(w->state_path) != TARE_FILE_NONE) {
        tare_warn(&w->log, "%s of an earlier run is ignored and will be replaced (continue it with --resume)",
                  w->state_path);
    }
    return tare_workflow_calibrate_start(&w->calibration, &w->job);
}

/* Processes this rank's share of the records. */
static tare_status calibrate(struct work *w) {
    TARE_TRY(prepare(w));
    TARE_TRY(start(w));
    tare_status status = tare_workflow_calibrate_run(w->calibration, &w->outcome, &w->job);
    if (status == TARE_INTERRUPTED && w->state_path && tare_file_kind_of(w->state_path) != TARE_FILE_NONE) {
        char *text = tare_strdup(tare_error_text());
        tare_fail(status, "%s; continue with --resume", text ? text : tare_control_reason());
        tare_free(text);
    }
    TARE_TRY(status);
    if (w->outcome.batch_reason && w->options->how.batch > 1)
        tare_note(&w->log, "--batch %d: records ran one at a time: %s", w->options->how.batch, w->outcome.batch_reason);
    /* Other ranks may still fail. */
    if (!tare_team_alone(&w->team) && w->state_path)
        TARE_TRY(tare_workflow_calibrate_save_state(w->calibration, &w->job));
    return TARE_OK;
}

static tare_status print_json(const struct work *w) {
    const struct tare_calibrate_summary summary = {
        .model = w->options->model,
        .output = w->options->dry_run ? NULL : w->options->output,
        .calibration = w->calibration,
        .size = &w->size,
        .outcome = &w->outcome,
        .estimate = &w->estimate,
        .ranks = tare_team_alone(&w->team) ? 1 : w->team.size,
        .resumed = w->resumed,
    };
    return w->options->json ? tare_calibrate_print_json(&summary) : TARE_OK;
}

static bool has_signatures(const struct tare_option_list *data) {
    for (size_t i = 0; i < data->count; i++)
        if (strchr(data->items[i], '=')) return true;
    return false;
}

/* How the calibration read its records, which others are read by, too. */
static size_t add_reading(const char **words, size_t count, const struct calibrate_options *options) {
    if (options->records.spec_path) words[count++] = "--spec", words[count++] = options->records.spec_path;
    if (options->how.signature) words[count++] = "--signature", words[count++] = options->how.signature;
    return count;
}

/* To compare on the records that a sample has left. */
static void print_rest(const struct work *w) {
    const struct calibrate_options *options = w->options;
    const char **words = tare_calloc(2 * options->data.count + 10, sizeof *words);
    size_t count = 0;
    if (!words) return;
    words[count++] = "compare", words[count++] = options->model;
    words[count++] = "--calibration", words[count++] = options->output;
    for (size_t i = 0; i < options->data.count; i++)
        words[count++] = "--eval", words[count++] = options->data.items[i];
    count = add_reading(words, count, options);
    words[count] = "--rest";
    tare_hint_words(&w->log, words);
    tare_free(words);
}

static void print_compare(const struct work *w) {
    const struct tare_feedback *feedback = &w->options->records.feedback;
    const char **words = tare_calloc(2 * feedback->pairs.count + 13, sizeof *words);
    size_t count = 0;
    if (!words) return;
    words[count++] = "compare", words[count++] = w->options->model;
    words[count++] = "--calibration", words[count++] = w->options->output;
    words[count++] = "--eval", words[count++] = "EVAL.tfrecord";
    count = add_reading(words, count, w->options);
    for (size_t i = 0; i < feedback->pairs.count; i++)
        words[count++] = "--feedback", words[count++] = feedback->pairs.items[i];
    if (feedback->sequence) words[count++] = "--sequence", words[count++] = feedback->sequence;
    tare_hint_words(&w->log, words);
    tare_free(words);
}

/* To convert with the default method (TensorFlow 1: quantize), or to compare methods first. */
static void print_next(const struct work *w) {
    const char *model = w->options->model, *calibration = w->options->output;
    const bool is_tf1 = tare_saved_model_is_tf1(w->model);
    char *output;
    tare_hint_name(&output, model, is_tf1 ? "_int8" : "_tpu");
    if (output) tare_hint(&w->log, is_tf1 ? "quantize" : "convert", model, output, "--calibration", calibration, NULL);
    tare_free(output);
    tare_note(&w->log, "to choose a method first:");
    if (w->options->how.sample && !has_signatures(&w->options->data) && !w->options->inputs.given.count)
        print_rest(w);
    else
        print_compare(w);
}

static tare_status finish(struct work *w) {
    const struct calibrate_options *options = w->options;
    TARE_TRY(tare_calibration_save_held(w->calibration, options->output));
    tare_note(&w->log, "%" PRId64 " records, %zu tensors, %.1f s: %s", tare_calibration_records(w->calibration),
              w->calibration->n_tensors, w->outcome.seconds, options->output);
    /* Warnings about a single shard would mostly concern records of the other shards. */
    if (!options->shard) TARE_TRY(tare_workflow_calibrate_log(&w->log, w->calibration));
    tare_data_options_warn(&w->log, options->records.spec);
    tare_calibrate_print_bad(&w->log, w->calibration, !options->shard);
    if (!options->shard && strcmp(options->output, "-") != 0) print_next(w);
    return print_json(w);
}

static tare_status dry_run(struct work *w) {
    TARE_TRY(prepare(w));
    TARE_TRY(tare_workflow_calibrate_start(&w->calibration, &w->job));
    TARE_TRY(tare_workflow_calibrate_read_only(w->calibration, &w->job));
    tare_note(&w->log, "%" PRId64 " records are valid", tare_calibration_records(w->calibration));
    tare_calibrate_print_bad(&w->log, w->calibration, false);
    TARE_TRY(tare_workflow_calibrate_estimate(&w->estimate, w->calibration, &w->job));
    tare_calibrate_print_estimate(&w->log, &w->estimate);
    if (w->options->output) tare_note(&w->log, "the run would write %s", w->options->output);
    return print_json(w);
}

/* Every rank runs the same steps even after a failure, because the others wait for it. */
static tare_status calibrate_together(struct work *w) {
    tare_status status = calibrate(w);
    status = tare_team_reduce(w->calibration, &w->team, status);
    if (status == TARE_OK && w->team.rank == 0) status = finish(w);
    if (tare_team_verdict(&w->team, status == TARE_OK) && w->state_path) unlink(w->state_path);
    return status;
}

static void fill_options(struct work *w) {
    const struct calibrate_options *options = w->options;
    const bool speaks = w->team.rank == 0;
    w->log = tare_command_log(options->quiet || !speaks);
    w->job_options = (struct tare_calibrate_options){
        .signature = options->how.signature,
        .data = options->data.items,
        .n_data = options->data.count,
        .threads = options->how.threads,
        .batch = options->how.batch,
        .limit = options->how.limit,
        .sample = options->how.sample,
        .seed = options->how.seed,
        .max_bad = options->how.max_bad,
        .observe_all = options->how.observe == TARE_OBSERVE_ALL,
        .channels = options->how.channels,
        .autosave_seconds = options->autosave,
        .log = &w->log,
        .progress = speaks && !options->quiet,
        .tick = tare_team_alone(&w->team) ? NULL : listen,
        .tick_arg = w,
        .interrupted = &tare_interrupted,
    };
}

static tare_status run(int argc, char *const *argv) {
    struct calibrate_options options = { 0 };
    struct work w = { .options = &options };
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_input_files_add(&options.data, &options.inputs));
    if (!options.shard && !options.dry_run) TARE_CHECK(tare_team_begin(&w.team));
    fill_options(&w);
    status = options.dry_run ? dry_run(&w) : calibrate_together(&w);
done:
    tare_workflow_calibrate_close(&w.job);
    tare_calibration_free(w.calibration);
    tare_model_free(w.model);
    tare_free(w.state_path);
    tare_output_unlock(&w.lock);
    tare_team_end(&w.team);
    tare_data_options_close(&options.records);
    tare_input_files_free(&options.inputs);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_calibrate = { .name = "calibrate",
                                                     .summary =
                                                         "collect activation statistics over representative samples",
                                                     .run = run,
                                                     .options = &set };
