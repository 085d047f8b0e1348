/* tare batch: processes many models, each in its own process. */
#include "cli/batch/batch.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/control.h"
#include "base/file.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/thread.h"
#include "cli/batch/schedule.h"
#include "cli/command.h"
#include "cli/plugins.h"
#include "cli/report_file.h"
#include "eval/variant.h"
#include "include/tare/version.h"
#include "tpu/chips.h"
#include "workflow/quantize.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TARE_ROW_STRUCT struct tare_batch_settings
static const struct tare_option rows[] = {
    { TARE_ROW("jobs", INT, processes), .min = 0, .max = 1024,
      .help = "number of processes to run at once (default: one per processor)" },
    { TARE_ROW("memory", INT64, memory), .min = 0, .max = 1e9, .placeholder = "MB",
      .help = "maximum estimated memory of all running jobs together, in MB (default: most of the free memory)" },
    { TARE_ROW("resume", FLAG, resume), .help = "skip jobs that are finished and unchanged" },
    { TARE_ROW("retries", INT, retries), .fallback = "1", .min = 0, .max = 100,
      .help = "number of times to retry a job whose process crashed" },
    { TARE_ROW("overwrite", FLAG, overwrite), .help = "replace existing outputs" },
    { TARE_ROW("state", STRING, state), .placeholder = "DIR",
      .help = "directory for results, logs and shared calibrations (default: JOBS.state)" },
    { TARE_ROW("report", STRING, report), .placeholder = "FILE",
      .help = "also write a report to FILE (.html, .json or .csv; .xml: JUnit's, for CI)" },
    { TARE_ROW("json", FLAG, json), .help = "print JSON" },
    { TARE_ROW("dry-run", FLAG, dry_run), .help = "print the planned jobs without running them" },
    { TARE_ROW("quiet", FLAG, quiet), .help = "suppress progress on standard error" },
    { TARE_ROW("methods", STRING, methods), .placeholder = "M,…",
      .help = "for a folder of models: methods to apply to each model, named as in tare compare: "
              "static,weight_only:bits=4+gptq,static+bfloat16" },
    { TARE_ROW("output-dir", STRING, output_dir), .placeholder = "DIR",
      .help = "for a folder of models: directory for the outputs, named {model}-{method}" },
    { TARE_ROW("data", LIST, data), .placeholder = "FILE", .needs = "output-dir",
      .help = "for a folder of models: representative samples; {model} is replaced by the model name" },
    { TARE_ROW("calibration", STRING, calibration), .placeholder = "FILE", .needs = "output-dir",
      .help = "for a folder of models: calibration file; {model} is replaced by the model name" },
    { TARE_ROW("spec", STRING, spec), .placeholder = "FILE", .needs = "output-dir",
      .help = "for a folder of models: DatasetSpec of samples and records; {model} is replaced by the model name" },
    { TARE_ROW("algorithm", STRING, algorithm), .placeholder = "A", .needs = "output-dir",
      .help = "for a folder of models: calibration algorithm" },
    { TARE_ROW("signature", STRING, signature), .placeholder = "S", .needs = "output-dir",
      .help = "for a folder of models: signature that samples and records belong to" },
    { TARE_ROW("eval", LIST, evaluation), .placeholder = "FILE", .needs = "output-dir",
      .help = "for a folder of models: records to evaluate with" },
    { TARE_ROW("evaluation", LIST, evaluation), .placeholder = "FILE", .needs = "output-dir",
      .flags = TARE_OPTION_HIDDEN, .help = "the same as --eval" },
    { TARE_ROW("label", STRING, label), .fallback = "label", .placeholder = "KEY", .needs = "output-dir",
      .help = "for a folder of models: record key of the class index" },
    { TARE_ROW("limit", INT64, limit), .min = 0, .max = 1e15, .needs = "output-dir",
      .help = "for a folder of models: evaluate only the first N records (default: all)" },
    { TARE_ROW("max-drop", DOUBLE, max_drop), .fallback = "-1", .fallback_text = "none", .min = -1, .max = 100,
      .placeholder = "POINTS", .needs = "output-dir",
      .help = "for a folder of models: reject outputs that lose more than POINTS percentage points of top-1" },
    { TARE_ROW("margin", DOUBLE, margin), .fallback = "-1", .fallback_text = "none", .min = -1, .max = 100,
      .placeholder = "POINTS", .needs = "output-dir",
      .help = "for a folder of models: reject outputs that may lose more than POINTS, by the 95 % interval of the "
              "records" },
    { TARE_ROW("min-sqnr", DOUBLE, min_sqnr), .fallback = "-1000", .fallback_text = "none", .min = -1000, .max = 1000,
      .placeholder = "DB", .needs = "output-dir",
      .help = "for a folder of models: reject outputs with an SQNR below DB decibels" },
    { TARE_ROW("max-size", INT64, max_size), .fallback = "-1", .fallback_text = "none", .min = -1, .max = 1e18,
      .placeholder = "BYTES", .needs = "output-dir",
      .help = "for a folder of models: reject outputs larger than BYTES" },
    { TARE_ROW("chip", CHOICE, chip), .fallback = "any", .choices = tare_tpu_target_names, .needs = "output-dir",
      .help =
          "for a folder of models: reject outputs that Google's TPU compiler rejects for this Cloud TPU chip, or that "
          "do not fit into its memory" },
    { TARE_ROW("chip-batch", INT64, chip_batch), .fallback = "8", .min = 1, .max = 1 << 20, .needs = "chip",
      .help = "batch size on the chip" },
    { TARE_ROW("max-time", DOUBLE, max_time), .fallback = "-1", .fallback_text = "none", .min = -1, .max = 1000,
      .placeholder = "RATIO", .needs = "chip",
      .help = "for a folder of models: reject outputs that take more than RATIO times as long on the chip as the float "
              "model in bfloat16" },
    { TARE_ROW("keep-rejected", FLAG, keep_rejected), .needs = "output-dir",
      .help = "for a folder of models: keep rejected outputs as NAME.rejected" },
    TARE_PLUGIN_OPTION(struct tare_batch_settings),
    TARE_LOG_OPTIONS(struct tare_batch_settings),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct tare_batch_settings, "JOBS", jobs),
      .help = "job file (BatchJobs in text format) or folder of SavedModels", .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = {
    "tare batch jobs.textproto --report batch.html",
    "tare batch models --methods static,weight_only --data 'samples/{model}.tfrecord.gz' --output-dir quantized "
    "--resume",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare batch",
    .summary = "Quantizes or converts many models, each in its own process, so that one failure does not stop the "
               "others. Evaluates the outputs, rejects those that violate a limit, and resumes after an interruption. "
               "Under mpirun, jobs are distributed over the ranks.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* ---- jobs ---- */

static struct tare_text_list as_list(const struct tare_option_list *list) {
    return (struct tare_text_list){ list->items, list->count };
}

static tare_status jobs_of_folder(struct tare_batch_run *b) {
    const struct tare_batch_settings *o = b->options;
    struct tare_jobs_of_folder from = { .folder = o->jobs };
    struct tare_job *common = &from.common;
    if (!o->methods || !o->output_dir)
        return TARE_FAIL(TARE_USAGE, "a folder of models needs --methods M,… and --output-dir DIR");
    TARE_TRY(tare_variant_names(&from.methods, &b->arena, o->methods, o->algorithm));
    *common = (struct tare_job){ .algorithm = o->algorithm,
                                 .data = as_list(&o->data),
                                 .calibration = o->calibration,
                                 .spec = o->spec,
                                 .signature = o->signature,
                                 .evaluation = as_list(&o->evaluation),
                                 .label = o->label,
                                 .evaluation_limit = o->limit,
                                 .keep_rejected = o->keep_rejected,
                                 .limits = { o->max_drop, o->min_sqnr <= -1000 ? -HUGE_VAL : o->min_sqnr, o->max_size,
                                             -1, o->margin, o->chip, o->chip_batch, o->max_time } };
    common->output = tare_arena_printf(&b->arena, "%s/{name}", o->output_dir);
    if (!common->output) return TARE_NO_MEMORY;
    return tare_jobs_of_folder(&b->jobs, &b->arena, &from);
}

static tare_status read_jobs(struct tare_batch_run *b) {
    const char *path = b->options->jobs;
    if (tare_file_kind_of(path) == TARE_FILE_DIRECTORY) return jobs_of_folder(b);
    if (b->options->methods || b->options->output_dir)
        return TARE_FAIL(TARE_USAGE, "--methods and --output-dir are for a folder of models, and '%s' is none", path);
    return tare_jobs_read(&b->jobs, &b->arena, path);
}

/* ---- tasks ---- */

/* By the plan of the job. An invalid one needs nothing: the job reports the error. */
static tare_status read_needs(struct tare_quantize_needs *out, struct tare_task *task) {
    const struct tare_command *command;
    struct tare_batch_command line;
    *out = (struct tare_quantize_needs){ 0 };
    if (!task->job->data.count) return TARE_OK;
    task->takes_samples = true;
    tare_batch_command_of(&line, task, task->job->output);
    TARE_TRY(tare_command_find(&command, &line.name, 1));
    const tare_status status = command->needs(out, line.count, (char *const *)(uintptr_t)line.items);
    task->takes_samples = out->channels || out->hessians;
    return tare_error_dismiss(status);
}

static tare_status name_files(struct tare_task *task, struct tare_batch_run *b, const char *stem) {
    int64_t bytes;
    TARE_TRY(tare_folder_bytes(&bytes, task->job->model));
    task->result_path = tare_arena_printf(&b->arena, "%s/%s.json", b->state, stem);
    task->log_path = tare_arena_printf(&b->arena, "%s/%s.log", b->state, stem);
    task->page_path = tare_arena_printf(&b->arena, "%s/%s.html", b->state, stem);
    task->memory = ((int64_t)64 << 20) + 6 * bytes;
    return task->result_path && task->log_path && task->page_path ? TARE_OK : TARE_NO_MEMORY;
}

/* The calibration that the job shares with others; added by the first job that needs it. */
static tare_status find_calibration(struct tare_task **out, struct tare_batch_run *b, const struct tare_job *job) {
    struct tare_task *task = &b->tasks[b->n_calibrations];
    char key[TARE_KEY_SIZE];
    const char *stem;
    const tare_status status = tare_job_calibration_key(key, job, b->version);
    if (status == TARE_NO_MEMORY) return status;
    if (status != TARE_OK) {
        tare_error_clear(); /* the task reports unreadable files */
        snprintf(key, sizeof key, "%zu", b->n_calibrations);
    }
    for (size_t i = 0; i < b->n_calibrations; i++)
        if (strcmp(b->tasks[i].key, key) == 0) {
            *out = &b->tasks[i];
            return TARE_OK;
        }
    stem = tare_arena_printf(&b->arena, ".calibration-%s", key);
    if (!stem) return TARE_NO_MEMORY;
    *task = (struct tare_task){ .name = stem, .job = job, .is_calibration = true };
    memcpy(task->key, key, sizeof key);
    task->calibration_path = tare_arena_printf(&b->arena, "%s/%s.calib", b->state, stem);
    TARE_TRY(name_files(task, b, stem));
    b->n_calibrations++;
    *out = task;
    return task->calibration_path ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status make_task(struct tare_task *task, struct tare_batch_run *b, const struct tare_job *job) {
    struct tare_quantize_needs needs;
    *task = (struct tare_task){ .name = job->name, .job = job };
    TARE_TRY(read_needs(&needs, task));
    if (needs.calibration && !task->takes_samples) {
        TARE_TRY(find_calibration(&task->calibration, b, job));
        task->calibration_path = task->calibration->calibration_path;
    }
    const tare_status status = tare_job_key(task->key, job, b->version);
    if (status == TARE_NO_MEMORY) return status;
    if (status != TARE_OK) {
        tare_error_clear();
        task->key[0] = '\0';
    }
    return name_files(task, b, job->name);
}

/* Calibrations run first: jobs are appended once all calibrations are known. */
static tare_status make_tasks(struct tare_batch_run *b) {
    struct tare_task *jobs = TARE_NEW_ARRAY(&b->arena, struct tare_task, b->jobs.count);
    b->tasks = TARE_NEW_ARRAY(&b->arena, struct tare_task, 2 * b->jobs.count);
    if (!jobs || !b->tasks) return TARE_NO_MEMORY;
    for (size_t i = 0; i < b->jobs.count; i++)
        TARE_TRY(make_task(&jobs[i], b, &b->jobs.jobs[i]));
    memcpy(b->tasks + b->n_calibrations, jobs, b->jobs.count * sizeof *jobs);
    b->n_tasks = b->n_calibrations + b->jobs.count;
    return TARE_OK;
}

/* ---- resuming ---- */

static tare_status is_unchanged(bool *out, const struct tare_task *task, const struct tare_job_result *result) {
    char hash[TARE_KEY_SIZE];
    *out = false;
    if (!*task->key || strcmp(result->key, task->key) != 0 || result->outcome == TARE_JOB_FAILED) return TARE_OK;
    if (task->is_calibration) {
        *out = tare_file_kind_of(task->calibration_path) == TARE_FILE_REGULAR;
    } else if (!result->output) {
        *out = true; /* rejected in an earlier run: the same inputs produce the same result */
    } else if (result->output_hash) {
        TARE_TRY(tare_folder_key(hash, result->output));
        *out = strcmp(hash, result->output_hash) == 0;
    }
    return TARE_OK;
}

static tare_status find_done(struct tare_task *task, struct tare_arena *arena) {
    tare_status status;
    task->skip = false;
    if (tare_file_kind_of(task->result_path) != TARE_FILE_REGULAR) return TARE_OK;
    status = tare_job_result_load(&task->result, arena, task->result_path);
    if (status == TARE_OK) status = is_unchanged(&task->skip, task, &task->result);
    return tare_error_dismiss(status); /* what cannot be read is done again */
}

static tare_status look_back(struct tare_batch_run *b) {
    for (size_t i = 0; i < b->n_tasks; i++)
        TARE_TRY(find_done(&b->tasks[i], &b->arena));
    for (size_t i = 0; i < b->n_calibrations; i++) { /* no remaining job needs this calibration */
        bool expected = false;
        for (size_t k = b->n_calibrations; k < b->n_tasks; k++)
            expected |= b->tasks[k].calibration == &b->tasks[i] && !b->tasks[k].skip;
        b->tasks[i].skip |= !expected;
    }
    return TARE_OK;
}

/* ---- ranks ---- */

static tare_status open_state(struct tare_batch_run *b) {
    TARE_TRY(tare_file_make_folders(b->state, NULL));
    return b->ranks.rank == 0 ? tare_output_lock(&b->lock, b->state) : TARE_OK;
}

/* Jobs that share a calibration are assigned to one rank; the others are distributed round-robin. */
static void share_out(struct tare_batch_run *b) {
    size_t next = 0;
    if (b->ranks.count < 2) return;
    for (size_t i = 0; i < b->n_tasks; i++) {
        struct tare_task *task = &b->tasks[i];
        size_t turn = task->calibration ? (size_t)(task->calibration - b->tasks) : next++;
        task->rank = (int)(turn % (size_t)b->ranks.count);
        task->foreign = task->rank != b->ranks.rank;
    }
}

static bool has_result(struct tare_batch_run *b, struct tare_task *task) {
    const bool has = tare_file_kind_of(task->result_path) == TARE_FILE_REGULAR &&
                     tare_job_result_load(&task->result, &b->arena, task->result_path) == TARE_OK &&
                     strcmp(task->result.run, b->presence.run) == 0;
    if (!has) tare_error_clear();
    return has;
}

/* A job of a lost rank fails; its result is not saved, so that a resumed run repeats it. */
static void give_up(struct tare_batch_run *b, struct tare_task *task, const char *reason) {
    task->result = tare_job_result_new(task->name);
    task->result.reason = reason;
    task->result.run = b->presence.run;
}

static tare_status wait_for_result(struct tare_batch_run *b, struct tare_task *task, const char **lost) {
    const struct timespec nap = { .tv_nsec = 50000000 };
    while (!has_result(b, task)) {
        if (tare_interrupted) return TARE_FAIL(TARE_INTERRUPTED, "%s (continue with --resume)", tare_control_reason());
        if (*lost) {
            give_up(b, task, *lost);
            break;
        }
        /* What it wrote before it ended counts: the result is looked for once more. */
        TARE_TRY(tare_batch_presence_look(lost, &b->arena, &b->presence, task->rank));
        if (!*lost) nanosleep(&nap, NULL);
    }
    return TARE_OK;
}

/* Rank 0 waits for the other ranks' result files of this run. */
static tare_status gather(struct tare_batch_run *b) {
    const char **lost = TARE_NEW_ARRAY(&b->arena, const char *, (size_t)b->ranks.count);
    if (!lost) return TARE_NO_MEMORY;
    for (size_t i = b->n_calibrations; i < b->n_tasks; i++) {
        struct tare_task *task = &b->tasks[i];
        if (task->foreign && !task->skip) TARE_TRY(wait_for_result(b, task, &lost[task->rank]));
    }
    return TARE_OK;
}

/* ---- running ---- */

/* Most of the free memory; 1 GiB if that is unknown. */
static int64_t memory_budget(const struct tare_batch_settings *options) {
    long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (options->memory) return options->memory * 1000000;
    return pages > 0 && size > 0 ? (int64_t)pages * size / 10 * 9 : (int64_t)1 << 30;
}

static tare_status run_tasks(struct tare_batch_run *b) {
    const struct tare_batch_settings *o = b->options;
    const struct tare_progress_options progress = {
        .label = "batch", .unit = "jobs", .total = (int64_t)b->jobs.count, .quiet = o->quiet || b->ranks.rank > 0
    };
    struct tare_batch_schedule schedule = {
        .tasks = b->tasks,
        .count = b->n_tasks,
        .processes = o->processes ? o->processes : tare_cpu_count(),
        .memory = memory_budget(o),
        .retries = o->retries,
        .setup = { .run = b->presence.run, .overwrite = o->overwrite || o->resume },
        .presence = &b->presence,
    };
    tare_status status;
    if (b->ranks.count == 1) TARE_TRY(open_state(b));
    schedule.progress = tare_progress_new(&progress);
    status = tare_batch_schedule_run(&schedule, &b->arena);
    tare_progress_free(schedule.progress);
    if (status == TARE_OK && b->ranks.rank == 0) status = gather(b);
    return status;
}

/* ---- the whole ---- */

/* A different op library makes a different job. */
static tare_status set_version(struct tare_batch_run *b) {
    const struct tare_option_list *plugins = &b->options->plugins;
    char key[TARE_KEY_SIZE];
    b->version = TARE_VERSION;
    if (!plugins->count) return TARE_OK;
    TARE_TRY(tare_files_key(key, plugins->items, plugins->count));
    b->version = tare_arena_printf(&b->arena, "%s with %s", TARE_VERSION, key);
    return b->version ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status run_batch(struct tare_batch_run *b) {
    const struct tare_batch_settings *o = b->options;
    b->started = tare_clock_seconds();
    b->state = o->state ? o->state : tare_arena_printf(&b->arena, "%s.state", o->jobs);
    if (!b->state) return TARE_NO_MEMORY;
    if (!o->dry_run && b->ranks.count > 1) {
        TARE_TRY(open_state(b));
        TARE_TRY(tare_batch_presence_join(&b->presence, &b->arena, b->state, &b->ranks));
    }
    TARE_TRY(read_jobs(b));
    TARE_TRY(set_version(b));
    TARE_TRY(make_tasks(b));
    if (o->resume) TARE_TRY(look_back(b));
    if (o->dry_run) return tare_batch_plan_print(b, memory_budget(o));
    share_out(b);
    TARE_TRY(run_tasks(b));
    return b->ranks.rank == 0 ? tare_batch_report_print(b) : TARE_OK;
}

static tare_status run(int argc, char *const *argv) {
    struct tare_batch_settings options;
    struct tare_batch_run b = { .options = &options };
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    if (!options.report || tare_report_kind(options.report) != TARE_REPORT_JUNIT)
        TARE_CHECK(tare_report_check(options.report));
    b.ranks = tare_ranks_of_environment();
    status = run_batch(&b);
    tare_batch_presence_end(&b.presence, status);
done:
    tare_output_unlock(&b.lock);
    tare_arena_free(&b.arena);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_batch = {
    .name = "batch", .summary = "quantize or convert many models", .run = run, .options = &set
};
