/* Outputs can be created, are none of the files that the command reads, and no two are one file. */
#include "cli/output_check.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/format.h"
#include "base/log.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "cli/log.h"
#include "convert/saved_model.h"
#include "datasets/data_file.h"
#include "eval/jobs/job_key.h"

#include <errno.h>
#include <fnmatch.h>
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

static bool is_model(const char *folder) {
    static const char *const files[] = { "saved_model.pb", "saved_model.pbtxt", "saved_model.cpb" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (tare_file_kind_in(folder, files[i]) == TARE_FILE_REGULAR) return true;
    return false;
}

/* Files of a SavedModel are written only with the whole model. */
static tare_status check_no_part(const char *path) {
    char *at = tare_path_resolve(path), *slash;
    tare_status status = at ? TARE_OK : TARE_NO_MEMORY;
    struct tare_output_rules rules;
    tare_saved_model_output_rules(&rules, NULL, false);
    while (status == TARE_OK && (slash = strrchr(at, '/'))) {
        *slash = '\0';
        if (rules.is_part(slash + 1) && is_model(at))
            status = TARE_FAIL(TARE_INVALID_ARGUMENT,
                               "the output '%s' is a part of the SavedModel '%s' (choose another file)", path, at);
    }
    tare_free(at);
    return status;
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
    return status == TARE_OK ? check_no_part(path) : status;
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
    const char *value = input ? tare_data_array_file(input) : NULL;
    if (input) TARE_TRY(add_files(files, input));
    return value ? add_files(files, value) : TARE_OK;
}

tare_status tare_command_check_file_apart(const char *path, const char *const *inputs, size_t count) {
    struct tare_file_list files = { 0 };
    tare_status status = tare_command_check_file_output(path);
    for (size_t i = 0; path && i < count && status == TARE_OK; i++)
        status = add_input(&files, inputs[i]);
    if (path && status == TARE_OK)
        status = tare_output_check_all_apart(path, (const char *const *)files.names, files.count);
    tare_file_list_free(&files);
    return status;
}

/* ---- outputs apart from inputs and from each other ---- */

/* Options of what a command writes, and OUT; every other option and argument with a path is read. */
static const char *const files[] = { "output",       "report",     "html",    "node-data",
                                     "write-recipe", "draft-spec", "weights", "log-file" },
                         *const folders[] = { "output_model_dir", "output-dir", "state", "save-model" };
enum { MOST_OUTPUTS = 16 };

struct output {
    const char *path, *beside;
    char name[32];          /* "--report" or "OUT" */
    bool is_file, is_apart; /* is_apart: no input may be in it. Others are folders that files are added to */
};

struct outputs {
    struct output items[MOST_OUTPUTS];
    size_t count;
};

static const char *text_at(const void *values, size_t offset) {
    return *(const char *const *)(const void *)((const char *)values + offset);
}

static bool is_one_of(const char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static bool is_file(const struct tare_option *row) {
    return is_one_of(files, sizeof files / sizeof *files, row->name) && row->kind == TARE_OPTION_STRING;
}

static bool is_folder(const struct tare_option *row) {
    return is_one_of(folders, sizeof folders / sizeof *folders, row->name);
}

static void add_output(struct outputs *out, const char *path, const char *dashes, const char *name, const char *beside,
                       bool is_file) {
    struct output *added = &out->items[out->count];
    if (!path || out->count == MOST_OUTPUTS) return;
    *added = (struct output){ .path = path, .beside = beside, .is_file = is_file, .is_apart = is_file || !*dashes };
    snprintf(added->name, sizeof added->name, "%s%s", dashes, name);
    out->count++;
}

static void find_outputs(struct outputs *out, const void *values, const struct tare_option_set *set) {
    struct tare_option_walk walk = tare_option_walk(set->options);
    for (const struct tare_option *row; (row = tare_option_next(&walk));)
        /* a PREFIX and a FOLDER are checked file by file */
        if (is_file(row) || is_folder(row))
            add_output(out, text_at(values, walk.offset), "--", row->name, row->beside,
                       is_file(row) && strcmp(row->placeholder, "PREFIX") != 0 &&
                           strcmp(row->placeholder, "FOLDER") != 0);
    for (const struct tare_argument *row = set->arguments; row && row->name; row++)
        if (strcmp(row->name, "OUT") == 0)
            add_output(out, text_at(values, row->offset), "", row->name, row->beside, false);
}

static tare_status add_value(struct tare_file_list *inputs, const void *values, size_t offset, bool is_list) {
    const struct tare_option_list *list = (const void *)((const char *)values + offset);
    if (!is_list) return add_input(inputs, text_at(values, offset));
    for (size_t i = 0; i < list->count; i++)
        TARE_TRY(add_input(inputs, list->items[i]));
    return TARE_OK;
}

static bool is_input(const struct tare_option *row) {
    static const char *const words[] = { "FILE", "DIR", "MODEL", "OTHER", "LIB" };
    if (!row->placeholder || is_file(row) || is_folder(row)) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(row->placeholder, words[i])) return row->kind == TARE_OPTION_STRING || row->kind == TARE_OPTION_LIST;
    return false;
}

static tare_status find_inputs(struct tare_file_list *out, const void *values, const struct tare_option_set *set) {
    struct tare_option_walk walk = tare_option_walk(set->options);
    for (const struct tare_option *row; (row = tare_option_next(&walk));)
        if (is_input(row)) TARE_TRY(add_value(out, values, walk.offset, row->kind == TARE_OPTION_LIST));
    for (const struct tare_argument *row = set->arguments; row && row->name; row++)
        if (strcmp(row->name, "OUT") != 0)
            TARE_TRY(add_value(out, values, row->offset, row->flags & TARE_OPTION_REPEATABLE));
    return TARE_OK;
}

static bool matches_one(const char *patterns, const char *text) {
    char pattern[32];
    for (int size; sscanf(patterns, "%31s%n", pattern, &size) == 1; patterns += size)
        if (fnmatch(pattern, text, 0) == 0) return true;
    return false;
}

/* Whether `path` is one of the files that are written next to the output. */
static tare_status is_beside(bool *out, const char *path, const struct output *output) {
    size_t size;
    const char *name = tare_path_last(&size, output->path);
    char *at = tare_path_resolve(path), *folder = at ? tare_path_folder(at) : NULL;
    struct tare_strbuf expected = { 0 };
    tare_strbuf_printf(&expected, "%.*s.", (int)(name - output->path), output->path);
    const tare_status status = folder && !expected.failed ? TARE_OK : TARE_NO_MEMORY;
    *out = status == TARE_OK && tare_path_is_same(folder, tare_strbuf_text(&expected)) &&
           strncmp(tare_path_base(at), name, size) == 0 && matches_one(output->beside, tare_path_base(at) + size);
    tare_strbuf_free(&expected);
    tare_free(folder);
    tare_free(at);
    return status;
}

/* `a`: a file. */
static tare_status check_pair(const struct output *a, const struct output *b) {
    bool is_inside = false, beside = false;
    if (tare_path_is_same(a->path, b->path) && tare_file_kind_of(a->path) != TARE_FILE_OTHER)
        return TARE_FAIL(TARE_USAGE, "%s %s is also %s (expected a file of its own)", a->name, a->path, b->name);
    if (!b->is_file) TARE_TRY(tare_path_is_inside(&is_inside, a->path, b->path));
    if (is_inside)
        return TARE_FAIL(TARE_USAGE, "%s %s is inside %s (expected a file of its own)", a->name, a->path, b->name);
    if (b->beside) TARE_TRY(is_beside(&beside, a->path, b));
    if (beside)
        return TARE_FAIL(TARE_USAGE, "%s %s is also a file of %s (expected a file of its own)", a->name, a->path,
                         b->name);
    return TARE_OK;
}

static tare_status check_pairs(const struct outputs *outputs) {
    for (size_t i = 0; i < outputs->count; i++)
        for (size_t k = 0; k < outputs->count; k++) {
            const struct output *a = &outputs->items[i], *b = &outputs->items[k];
            if (a->is_file && (k < i || !b->is_file)) TARE_TRY(check_pair(a, b));
        }
    return TARE_OK;
}

/* A new file does no harm in a folder of data or of models; a log is open while the folder is read. */
static bool may_be_in(const char *input, const struct output *out) {
    return out->is_file && strcmp(out->name, "--log-file") != 0 && tare_file_kind_of(out->path) == TARE_FILE_NONE &&
           tare_file_kind_of(input) == TARE_FILE_DIRECTORY && !is_model(input);
}

static tare_status check_apart(const struct output *out, const struct tare_file_list *inputs) {
    for (size_t i = 0; out->is_apart && i < inputs->count; i++)
        if (!may_be_in(inputs->names[i], out)) TARE_TRY(tare_output_check_apart(out->path, inputs->names[i]));
    return out->is_file ? tare_command_check_file_output(out->path) : TARE_OK;
}

tare_status tare_command_check_outputs(const void *values, const struct tare_option_set *set) {
    struct outputs outputs = { 0 };
    struct tare_file_list inputs = { 0 };
    tare_status status;
    find_outputs(&outputs, values, set);
    status = check_pairs(&outputs);
    if (status == TARE_OK && outputs.count) status = find_inputs(&inputs, values, set);
    for (size_t i = 0; i < outputs.count && status == TARE_OK; i++)
        status = check_apart(&outputs.items[i], &inputs);
    tare_file_list_free(&inputs);
    return status;
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
