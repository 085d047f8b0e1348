/* Hashes of jobs and folders: what `batch --resume` compares to find jobs that need not run again. */
#include "eval/jobs/job_key.h"
#include "base/alloc.h"
#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void tare_key_finish(char out[TARE_KEY_SIZE], struct tare_hash *hash) {
    uint64_t lanes[2];
    tare_hash_end(hash, lanes);
    snprintf(out, TARE_KEY_SIZE, "%016" PRIx64 "%016" PRIx64, lanes[0], lanes[1]);
}

static void add_text(struct tare_hash *hash, const char *text) {
    tare_hash_add_text(hash, text ? text : "");
}

static void add_list(struct tare_hash *hash, const struct tare_text_list *list) {
    tare_hash_add_u64(hash, list->count);
    for (size_t i = 0; i < list->count; i++)
        add_text(hash, list->items[i]);
}

/* ---- contents ---- */

/* Reads the mapped file in pieces and drops their pages, so that hashing takes little memory for files of any size. */
static tare_status add_contents(struct tare_hash *hash, const char *path) {
    enum { PIECE = 1 << 20 };
    struct tare_mapping mapping;
    const enum tare_file_kind kind = tare_file_kind_of(path);
    if (kind != TARE_FILE_REGULAR && kind != TARE_FILE_NONE) /* opening a pipe would block until its writer opens it */
        return TARE_FAIL(TARE_IO, "%s cannot be hashed: it is not a regular file", path);
    TARE_TRY(tare_file_map(&mapping, path));
    tare_hash_add_u64(hash, mapping.size);
    for (size_t at = 0; at < mapping.size; at += PIECE) {
        const size_t size = mapping.size - at < PIECE ? mapping.size - at : PIECE;
        tare_hash_add(hash, mapping.data + at, size);
        tare_file_forget(mapping.data + at, size);
    }
    tare_file_unmap(&mapping);
    return TARE_OK;
}

/* Calls `file` for every file in `folder` and its subfolders, in order of their names. */
static tare_status walk(const char *folder, tare_status (*file)(void *arg, const char *path, const char *name),
                        void *arg) {
    struct tare_file_list list = { 0 };
    tare_status status = tare_file_list(&list, folder);
    for (size_t i = 0; i < list.count && status == TARE_OK; i++) {
        char *path = tare_path_join(folder, list.names[i]);
        if (!path)
            status = TARE_NO_MEMORY;
        else if (tare_file_kind_of(path) == TARE_FILE_DIRECTORY)
            status = walk(path, file, arg);
        else
            status = file(arg, path, list.names[i]);
        tare_free(path);
    }
    tare_file_list_free(&list);
    return status;
}

static tare_status hash_file(void *arg, const char *path, const char *name) {
    tare_hash_add_text(arg, name);
    return add_contents(arg, path);
}

static tare_status count_file(void *arg, const char *path, const char *name) {
    int64_t size = tare_file_size(path);
    (void)name;
    *(int64_t *)arg += size > 0 ? size : 0;
    return TARE_OK;
}

tare_status tare_folder_bytes(int64_t *bytes, const char *folder) {
    *bytes = 0;
    const tare_status status = walk(folder, count_file, bytes);
    if (status != TARE_OK) *bytes = 0;
    return tare_error_dismiss(status);
}

tare_status tare_folder_key(char out[TARE_KEY_SIZE], const char *folder) {
    struct tare_hash hash;
    tare_hash_begin(&hash);
    TARE_TRY(walk(folder, hash_file, &hash));
    tare_key_finish(out, &hash);
    return TARE_OK;
}

/* Expands glob patterns to file names. */
static tare_status add_files(struct tare_hash *hash, const struct tare_text_list *patterns) {
    struct tare_file_list files = { 0 };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < patterns->count && status == TARE_OK; i++)
        status = tare_file_glob(&files, patterns->items[i]);
    for (size_t i = 0; i < files.count && status == TARE_OK; i++)
        status = add_contents(hash, files.names[i]);
    tare_file_list_free(&files);
    return status;
}

tare_status tare_files_key(char out[TARE_KEY_SIZE], const char *const *patterns, size_t count) {
    const struct tare_text_list list = { patterns, count };
    struct tare_hash hash;
    tare_hash_begin(&hash);
    TARE_TRY(add_files(&hash, &list));
    tare_key_finish(out, &hash);
    return TARE_OK;
}

tare_status tare_file_key(char out[TARE_KEY_SIZE], const char *path) {
    struct tare_hash hash;
    tare_hash_begin(&hash);
    TARE_TRY(add_contents(&hash, path));
    tare_key_finish(out, &hash);
    return TARE_OK;
}

static tare_status add_file(struct tare_hash *hash, const char *path) {
    return path ? add_contents(hash, path) : TARE_OK;
}

/* ---- jobs ---- */

static tare_status begin(struct tare_hash *hash, const struct tare_job *job, const char *version) {
    tare_hash_begin(hash);
    add_text(hash, version);
    add_text(hash, job->model);
    add_text(hash, job->signature);
    add_list(hash, &job->data);
    TARE_TRY(add_file(hash, job->spec));
    TARE_TRY(walk(job->model, hash_file, hash));
    return add_files(hash, &job->data);
}

tare_status tare_job_calibration_key(char out[TARE_KEY_SIZE], const struct tare_job *job, const char *version) {
    struct tare_hash hash;
    TARE_TRY(begin(&hash, job, version));
    tare_key_finish(out, &hash);
    return TARE_OK;
}

static void add_settings(struct tare_hash *hash, const struct tare_job *job) {
    const char *texts[] = { job->name,        job->output, job->method, job->algorithm, job->converter_options,
                            job->calibration, job->label,  job->target, job->metric,    job->converter_options_file,
                            job->recipe };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        add_text(hash, texts[i]);
    add_list(hash, &job->arguments);
    add_list(hash, &job->evaluation);
    tare_hash_add_u64(hash, (uint64_t)job->evaluation_limit);
    tare_hash_add(hash, &job->limits.max_drop, sizeof job->limits.max_drop);
    tare_hash_add(hash, &job->limits.min_sqnr_db, sizeof job->limits.min_sqnr_db);
    tare_hash_add(hash, &job->limits.max_mae, sizeof job->limits.max_mae);
    tare_hash_add(hash, &job->limits.margin, sizeof job->limits.margin);
    tare_hash_add_u64(hash, (uint64_t)job->limits.max_size_bytes);
    tare_hash_add_u64(hash, (uint64_t)job->limits.chip);
    tare_hash_add_u64(hash, (uint64_t)job->limits.chip_batch);
    tare_hash_add(hash, &job->limits.max_time, sizeof job->limits.max_time);
    tare_hash_add_u64(hash, job->keep_rejected);
}

/* Other arguments may name files (a recipe, a topology), also as `--option=FILE`. */
static tare_status add_argument_files(struct tare_hash *hash, const struct tare_text_list *words) {
    for (size_t i = 0; i < words->count; i++) {
        const char *path = words->items[i], *value = strchr(path, '=');
        if (path[0] == '-' && value) path = value + 1;
        if (*path && tare_file_kind_of(path) == TARE_FILE_REGULAR) TARE_TRY(add_contents(hash, path));
    }
    return TARE_OK;
}

tare_status tare_job_key(char out[TARE_KEY_SIZE], const struct tare_job *job, const char *version) {
    struct tare_hash hash;
    TARE_TRY(begin(&hash, job, version));
    add_settings(&hash, job);
    TARE_TRY(add_file(&hash, job->converter_options_file));
    TARE_TRY(add_file(&hash, job->recipe));
    TARE_TRY(add_file(&hash, job->calibration));
    TARE_TRY(add_files(&hash, &job->evaluation));
    TARE_TRY(add_argument_files(&hash, &job->arguments));
    tare_key_finish(out, &hash);
    return TARE_OK;
}
