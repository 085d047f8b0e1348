/* Outputs can be created, are none of the files that the command reads, and no two are one file. */
#include "cli/output_check.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/format.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/log.h"
#include "convert/saved_model.h"
#include "eval/jobs/job_key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { GRAPH_GROWTH = 10000 }; /* bytes that TPU placement may add to a graph without a warning */

/* Folders that do not exist are created; the nearest one that exists must be a writable folder. */
static tare_status check_parent(const char *path) {
    char *parent = tare_path_folder(path);
    tare_status status = TARE_OK;
    while (parent && access(parent, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR) && strcmp(parent, ".") != 0) {
        char *above = tare_path_folder(parent);
        tare_free(parent);
        parent = above;
    }
    if (!parent) return TARE_NO_MEMORY;
    if (access(parent, F_OK) == 0 && tare_file_kind_of(parent) != TARE_FILE_DIRECTORY)
        status = TARE_FAIL(TARE_IO, "cannot create '%s': '%s' is not a folder", path, parent);
    else if (access(parent, W_OK | X_OK) != 0)
        status = TARE_FAIL(TARE_IO, "cannot create '%s': %s", path, tare_system_error(errno));
    tare_free(parent);
    return status;
}

/* Names --overwrite where it is what is missing. */
static tare_status name_remedy(tare_status status, const char *path, const char *input, bool overwrite) {
    struct tare_output_rules rules;
    char *text = status == TARE_OK || overwrite ? NULL : tare_strdup(tare_error_text());
    if (!text) return status;
    tare_saved_model_output_rules(&rules, input, true);
    const bool helps = tare_file_kind_of(path) == TARE_FILE_DIRECTORY && tare_output_dir_check(path, &rules) == TARE_OK;
    tare_fail(status, "%s%s", text, helps ? " (replace it with --overwrite, or choose another name)" : "");
    tare_free(text);
    return status;
}

tare_status tare_command_check_model_output(const char *path, const char *input, bool overwrite) {
    struct tare_output_rules rules;
    tare_saved_model_output_rules(&rules, input, overwrite);
    TARE_TRY(name_remedy(tare_output_dir_check(path, &rules), path, input, overwrite));
    return tare_file_kind_of(path) == TARE_FILE_DIRECTORY ? TARE_OK : check_parent(path);
}

tare_status tare_command_check_file_output(const char *path) {
    char *folder;
    tare_status status = TARE_OK;
    if (!path || strcmp(path, "-") == 0 || tare_file_kind_of(path) == TARE_FILE_OTHER) return TARE_OK;
    if (tare_file_kind_of(path) == TARE_FILE_DIRECTORY)
        return TARE_FAIL(TARE_IO, "cannot create '%s': it is a folder", path);
    folder = tare_path_folder(path);
    if (!folder) return TARE_NO_MEMORY;
    if (tare_file_kind_of(folder) != TARE_FILE_DIRECTORY)
        status = TARE_FAIL(TARE_NOT_FOUND, "cannot create '%s': folder '%s' does not exist", path, folder);
    else if (access(folder, W_OK | X_OK) != 0)
        status = TARE_FAIL(TARE_IO, "cannot create '%s': %s", path, tare_system_error(errno));
    tare_free(folder);
    return status;
}

/* What cannot be read is an error of reading it. */
static tare_status add_files(struct tare_file_list *files, const char *pattern) {
    const tare_status status = tare_file_glob(files, pattern);
    if (status == TARE_OK || status == TARE_NO_MEMORY) return status;
    tare_error_clear();
    return TARE_OK;
}

/* The files of a path or a pattern, also after NAME=. */
static tare_status add_input(struct tare_file_list *files, const char *input) {
    const char *value = input ? strchr(input, '=') : NULL;
    if (input) TARE_TRY(add_files(files, input));
    return value ? add_files(files, value + 1) : TARE_OK;
}

tare_status tare_command_check_file_apart(const char *path, const char *const *inputs, size_t count) {
    struct tare_file_list files = { 0 };
    tare_status status = tare_command_check_file_output(path);
    for (size_t i = 0; path && i < count && status == TARE_OK; i++)
        status = add_input(&files, inputs[i]);
    if (path && status == TARE_OK)
        status = tare_output_file_check_apart(path, (const char *const *)files.names, files.count);
    tare_file_list_free(&files);
    return status;
}

tare_status tare_command_check_quantize_files(const struct tare_quantize_request *how, const char *report) {
    const char *const files[] = { how->write_recipe, report };
    for (size_t i = 0; i < 2; i++) {
        TARE_TRY(tare_command_check_file_apart(files[i], how->data.items, how->data.count));
        TARE_TRY(tare_command_check_file_apart(files[i], how->eval.items, how->eval.count));
        TARE_TRY(tare_command_check_file_apart(files[i], &how->calibration, 1));
    }
    return TARE_OK;
}

/* ---- outputs apart from each other ---- */

/* Options of files to write; the log file is first, and apart from all files. */
static const char *const written[] = { "log-file",  "output",       "report",     "html",
                                       "node-data", "write-recipe", "draft-spec", "weights" };
enum { N_WRITTEN = sizeof written / sizeof *written };

tare_status tare_command_check_log_apart(const char *log, const char *path, const char *what) {
    if (!log || !path || !tare_path_is_same(log, path) || tare_file_kind_of(path) == TARE_FILE_OTHER) return TARE_OK;
    return TARE_FAIL(TARE_USAGE, "--log-file %s is also %s (expected a file of its own)", log, what);
}

static tare_status check_pairs(const char *const *paths) {
    for (size_t i = 2; i < N_WRITTEN; i++)
        for (size_t j = 1; j < i && paths[i]; j++)
            if (paths[j] && tare_path_is_same(paths[i], paths[j]) && tare_file_kind_of(paths[i]) != TARE_FILE_OTHER)
                return TARE_FAIL(TARE_USAGE, "--%s %s is also --%s (expected a file of its own)", written[i], paths[i],
                                 written[j]);
    return TARE_OK;
}

static tare_status check_option(const char *log, const struct tare_option *row, const void *value) {
    const struct tare_option_list *list = value;
    const bool is_file = row->placeholder && (strstr(row->placeholder, "FILE") || strstr(row->placeholder, "OUT")) &&
                         strcmp(row->name, "log-file") != 0;
    char what[64];
    snprintf(what, sizeof what, "--%s", row->name);
    if (is_file && row->kind == TARE_OPTION_LIST) return tare_command_check_file_apart(log, list->items, list->count);
    return is_file && row->kind == TARE_OPTION_STRING
               ? tare_command_check_log_apart(log, *(const char *const *)value, what)
               : TARE_OK;
}

/* Messages are appended to the log: a file that the command reads or writes would be damaged. */
static tare_status check_log(const char *log, const void *values, const struct tare_option_set *set) {
    struct tare_option_walk walk = tare_option_walk(set->options);
    for (const struct tare_option *row; (row = tare_option_next(&walk));)
        TARE_TRY(check_option(log, row, (const char *)values + walk.offset));
    for (const struct tare_argument *row = set->arguments; row && row->name; row++) {
        const void *value = (const char *)values + row->offset;
        const struct tare_option_list *list = value;
        if (row->flags & TARE_OPTION_REPEATABLE)
            TARE_TRY(tare_command_check_file_apart(log, list->items, list->count));
        else
            TARE_TRY(tare_command_check_log_apart(log, *(const char *const *)value, row->name));
    }
    return TARE_OK;
}

tare_status tare_command_check_outputs(const void *values, const struct tare_option_set *set) {
    struct tare_option_walk walk = tare_option_walk(set->options);
    const char *paths[N_WRITTEN] = { NULL };
    for (const struct tare_option *row; (row = tare_option_next(&walk));)
        for (size_t i = 0; i < N_WRITTEN; i++)
            if (row->kind == TARE_OPTION_STRING && strcmp(row->name, written[i]) == 0)
                paths[i] = *(const char *const *)(const void *)((const char *)values + walk.offset);
    TARE_TRY(check_pairs(paths));
    return paths[0] ? check_log(paths[0], values, set) : TARE_OK;
}

/* ---- after the work ---- */

tare_status tare_command_warn_of_written(const char *path, const char *input, const struct tare_graph_model *model,
                                         bool quantized, const struct tare_log *log) {
    int64_t before, after;
    TARE_TRY(tare_folder_bytes(&before, input));
    TARE_TRY(tare_folder_bytes(&after, path));
    struct tare_saved_model_info info;
    tare_saved_model_info(&info, model);
    const bool larger = quantized ? after > before : 10 * after > 11 * before && after > before + GRAPH_GROWTH;
    if (before > 0 && larger)
        tare_warn(log, "%s takes %.2f MB, more than its input (%.2f MB): %s", path, (double)after / 1e6,
                  (double)before / 1e6,
                  quantized ? "little of it was quantized, or its weights are few and the nodes around them take more"
                            : "functions that run on both the CPU and the TPU are stored twice");
    if (info.all_tags)
        tare_warn(log, "%s has the MetaGraphs %s; only {%s} was written", input, info.all_tags, info.tags);
    return TARE_OK;
}
