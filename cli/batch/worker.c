/* Runs one task of a batch in a child process: calibrate, or quantize/convert and evaluate. The output is written to a
 * folder ".NAME.batch" next to its final path and renamed when the job has passed its limits. */
#include "cli/batch/worker.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/control.h"
#include "base/file.h"
#include "base/output.h"
#include "base/visible.h"
#include "cli/batch/page.h"
#include "cli/command.h"
#include "cli/log.h"
#include "cli/plugins.h"
#include "cli/ranks.h"
#include "convert/saved_model.h"
#include "eval/jobs/job_measure.h"
#include "workflow/check/job_check.h"
#include "workflow/evaluation_data.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- commands ---- */

static void add(struct tare_batch_command *c, const char *word) {
    if (c->count < TARE_BATCH_WORDS) c->items[c->count++] = word;
}

static void add_value(struct tare_batch_command *c, const char *option, const char *value) {
    if (!value) return;
    add(c, option);
    add(c, value);
}

static void add_list(struct tare_batch_command *c, const char *option, const struct tare_text_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        if (option) add(c, option);
        add(c, list->items[i]);
    }
}

static void calibration_of(struct tare_batch_command *out, const struct tare_task *task) {
    *out = (struct tare_batch_command){ .name = "calibrate" };
    add(out, task->job->model);
    add_list(out, "--data", &task->job->data);
    add_value(out, "--spec", task->job->spec);
    add_value(out, "--signature", task->job->signature);
    add_value(out, "-o", task->calibration_path);
}

void tare_batch_command_of(struct tare_batch_command *out, const struct tare_task *task, const char *folder) {
    const struct tare_job *job = task->job;
    *out = (struct tare_batch_command){ .name = job->converts ? "convert" : "quantize" };
    add(out, job->model);
    add(out, folder);
    add_list(out, NULL, &job->plan);
    add_value(out, "--converter_options_string", job->converter_options);
    add_value(out, "--converter_options_file", job->converter_options_file);
    add_value(out, "--calibration", task->calibration_path ? task->calibration_path : job->calibration);
    if (task->takes_samples) add_list(out, "--data", &job->data);
    if (task->takes_samples) add_value(out, "--spec", job->spec);
    add_value(out, "--signature", !job->converts || task->takes_samples ? job->signature : NULL);
    add_list(out, NULL, &job->arguments);
}

static tare_status run_command(const struct tare_batch_command *c) {
    if (c->count == TARE_BATCH_WORDS)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "more than %d words in a command", TARE_BATCH_WORDS);
    return tare_command_do(c->name, c->count, (char *const *)(uintptr_t)c->items);
}

/* ---- the output folder ---- */

/* ".NAME.batch" next to the output: a fixed name, so that leftovers of a killed run are found. */
static char *workshop_of(const char *output) {
    char *folder = tare_path_folder(output), *path = NULL, name[NAME_MAX + 16];
    snprintf(name, sizeof name, ".%s.batch", tare_path_base(output));
    if (folder) path = tare_path_join(folder, name);
    tare_free(folder);
    return path;
}

/* Removes the partial output of a killed process: a model is written to ".NAME.tmp-…" next to its final path
 * (base/output.h), here inside the working folder. */
static tare_status remove_leftovers(const char *workshop) {
    struct tare_file_list names = { 0 };
    char *folder = tare_path_folder(workshop), prefix[NAME_MAX + 32];
    tare_status status = folder ? TARE_OK : TARE_NO_MEMORY;
    snprintf(prefix, sizeof prefix, ".%s.tmp-", tare_path_base(workshop));
    if (status == TARE_OK && tare_file_kind_of(folder) == TARE_FILE_DIRECTORY) status = tare_file_list(&names, folder);
    for (size_t i = 0; i < names.count && status == TARE_OK; i++) {
        char *path;
        if (strncmp(names.names[i], prefix, strlen(prefix)) != 0) continue;
        path = tare_path_join(folder, names.names[i]);
        status = path ? tare_file_remove_tree(path) : TARE_NO_MEMORY;
        tare_free(path);
    }
    tare_file_list_free(&names);
    tare_free(folder);
    return status == TARE_OK ? tare_file_remove_tree(workshop) : status;
}

/* Moves the finished model to `path`: the output, or the output with ".rejected" appended. */
static tare_status move_to(struct tare_job_result *result, const char *input, const char *workshop, const char *path,
                           bool overwrite) {
    static char hash[TARE_KEY_SIZE];
    struct tare_output_rules rules;
    TARE_TRY(tare_folder_key(hash, workshop));
    tare_saved_model_output_rules(&rules, input, overwrite);
    TARE_TRY(tare_output_move(workshop, path, &rules));
    result->output = path;
    result->output_hash = hash;
    return TARE_OK;
}

/* Of a model that is not kept, a page remains. */
static tare_status reject(struct tare_job_result *result, const struct tare_task *task, const char *workshop) {
    const struct tare_job *job = task->job;
    char *aside; /* freed when the process exits */
    result->outcome = TARE_JOB_REJECTED;
    if (!job->keep_rejected) {
        TARE_TRY(tare_file_remove_tree(task->page_path));
        return tare_error_dismiss(tare_batch_page_write(job, workshop, job->output, task->page_path));
    }
    aside = tare_malloc(strlen(job->output) + sizeof ".rejected");
    if (!aside) return TARE_NO_MEMORY;
    sprintf(aside, "%s.rejected", job->output);
    return move_to(result, job->model, workshop, aside, true);
}

static tare_status check_output(const struct tare_job *job, bool overwrite) {
    struct tare_output_rules rules;
    tare_saved_model_output_rules(&rules, job->model, overwrite);
    return tare_output_dir_check(job->output, &rules);
}

static tare_status check_label(const struct tare_job *job, const struct tare_dataset_spec *spec) {
    const struct tare_evaluation evaluation = { .label = job->label,
                                                .records = { .paths = job->evaluation.items,
                                                             .n_paths = job->evaluation.count,
                                                             .limit = job->evaluation_limit,
                                                             .spec = spec,
                                                             .interrupted = &tare_interrupted } };
    return job->evaluation.count ? tare_workflow_check_label(&evaluation) : TARE_OK;
}

static tare_status make(struct tare_job_result *result, struct tare_arena *arena, const struct tare_task *task,
                        const struct tare_dataset_spec *spec, const char *workshop, bool overwrite) {
    static char reason[160];
    const struct tare_job *job = task->job;
    struct tare_batch_command command;
    TARE_TRY(check_output(job, overwrite));
    TARE_TRY(check_label(job, spec));
    TARE_TRY(remove_leftovers(workshop));
    tare_batch_command_of(&command, task, workshop);
    TARE_TRY(run_command(&command));
    TARE_TRY(tare_job_measure(result, job, workshop, spec, tare_command_registry(), &tare_interrupted));
    if (tare_job_breaks_limit(reason, result, &job->limits)) {
        result->reason = reason;
        return reject(result, task, workshop);
    }
    TARE_TRY(tare_check_job(&result->reason, result, arena, job, workshop, tare_command_registry()));
    if (result->reason) return reject(result, task, workshop);
    TARE_TRY(move_to(result, job->model, workshop, job->output, overwrite));
    result->outcome = TARE_JOB_DONE;
    return TARE_OK;
}

/* ---- one process per output ---- */

/* Keeps the error of the task, if it has one, not that of the cleanup. */
static tare_status remove_workshop(const char *workshop, tare_status status) {
    char text[4096];
    tare_status removed;
    snprintf(text, sizeof text, "%s", tare_error_text());
    removed = tare_file_remove_tree(workshop);
    if (status == TARE_OK) return removed;
    tare_error_set(text);
    return status;
}

static tare_status make_locked(struct tare_job_result *result, struct tare_arena *arena, const struct tare_task *task,
                               const char *workshop, bool overwrite) {
    struct tare_dataset_spec *spec = NULL;
    struct tare_output_lock lock = { .fd = -1 };
    char *folder = tare_path_folder(workshop);
    size_t existed = SIZE_MAX; /* length of the part of the folder that existed before */
    tare_status status = folder ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK && task->job->spec) status = tare_dataset_spec_load(&spec, task->job->spec);
    if (status == TARE_OK) status = tare_workflow_keep_expected(spec, task->job->label, task->job->target);
    if (status == TARE_OK) status = tare_file_make_folders(folder, &existed);
    if (status == TARE_OK) status = tare_output_lock(&lock, task->job->output);
    if (status == TARE_OK) status = remove_workshop(workshop, make(result, arena, task, spec, workshop, overwrite));
    tare_output_unlock(&lock);
    tare_dataset_spec_free(spec);
    if (folder) tare_file_remove_made_folders(folder, existed);
    tare_free(folder);
    return status;
}

static tare_status do_job(struct tare_job_result *result, struct tare_arena *arena, const struct tare_task *task,
                          bool overwrite) {
    char *workshop = workshop_of(task->job->output);
    tare_status status = workshop ? make_locked(result, arena, task, workshop, overwrite) : TARE_NO_MEMORY;
    tare_free(workshop);
    return status;
}

/* ---- the process ---- */

/* Redirects the output of the commands to the task's log. */
static void redirect(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    dup2(fd, 1);
    dup2(fd, 2);
    close(fd);
}

static int64_t peak_memory(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

/* Makes this process end when the batch process ends, however that ends, and ends it at once if that is over already.
 */
static void stop_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
}

_Noreturn void tare_batch_child(const struct tare_task *task, const struct tare_batch_setup *setup, pid_t parent) {
    struct tare_job_result result = tare_job_result_new(task->name);
    struct tare_batch_command command;
    struct tare_control saving = { 0 };
    struct tare_arena arena = { 0 }; /* until the process exits */
    double start = tare_clock_seconds();
    tare_status status;
    stop_with(parent);
    tare_ranks_leave(); /* under mpirun, `tare calibrate` would split the records among all ranks */
    tare_command_stop_with_parent();
    redirect(task->log_path);
    tare_error_clear();
    calibration_of(&command, task);
    status = task->is_calibration ? run_command(&command) : do_job(&result, &arena, task, setup->overwrite);
    if (status == TARE_OK) status = tare_control_verify();
    status = tare_control_conclude(status);
    if (status == TARE_OK && task->is_calibration) result.outcome = TARE_JOB_DONE;
    if (status != TARE_OK) {
        const char *text = tare_error_text();
        result.outcome = TARE_JOB_FAILED;
        result.reason = *text ? text : tare_status_name(status);
        char line[4 * 4096];
        fprintf(stderr, "tare: %s\n", tare_visible_line(line, sizeof line, result.reason));
    }
    result.warnings = tare_command_warnings()->texts;
    result.n_warnings = tare_command_warnings()->count;
    result.key = task->key;
    result.run = setup->run;
    result.attempts = task->attempts;
    result.seconds = tare_clock_seconds() - start;
    result.peak_bytes = peak_memory();
    fflush(NULL);
    tare_control_set(
        &saving); /* the result is saved after a failed allocation too, but not if one fails in saving it */
    if (status != TARE_INTERRUPTED && tare_job_result_save(&result, task->result_path) != TARE_OK) _exit(1);
    _exit(status == TARE_INTERRUPTED ? 130 : status == TARE_OK ? 0 : 1);
}
