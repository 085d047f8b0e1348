/* The provenance of a comparison: when, from which files, their hashes, and the options. */
#include "workflow/compare_internal.h"
#include "base/strbuf.h"
#include "eval/jobs/job_key.h"
#include "include/tare/version.h"

#include <time.h>

static tare_status add_line(struct tare_compare_job *c, const char *name, const char *value) {
    struct tare_comparison *r = &c->result;
    struct tare_manifest_row *grown = tare_arena_append(&r->arena, r->manifest, r->n_manifest, sizeof *grown);
    if (!name || !value || !grown) return TARE_NO_MEMORY;
    r->manifest = grown;
    grown[r->n_manifest++] = (struct tare_manifest_row){ name, value };
    return TARE_OK;
}

static tare_status add_line_if(struct tare_compare_job *c, bool applies, const char *name, const char *value) {
    return applies ? add_line(c, name, value) : TARE_OK;
}

static const char *join(struct tare_arena *arena, const char *const *items, size_t count) {
    struct tare_strbuf text = { 0 };
    const char *joined;
    for (size_t i = 0; i < count; i++)
        tare_strbuf_printf(&text, "%s%s", i ? ", " : "", items[i]);
    joined = tare_strbuf_status(&text) == TARE_OK ? tare_arena_strdup(arena, tare_strbuf_text(&text)) : NULL;
    tare_strbuf_free(&text);
    return joined;
}

/* Omits files that cannot be hashed (standard input). */
static tare_status add_hash(struct tare_compare_job *c, const char *name, const char *const *paths, size_t count) {
    char hash[TARE_KEY_SIZE];
    if (!count) return TARE_OK;
    const tare_status status = tare_files_key(hash, paths, count);
    if (status != TARE_OK) return tare_error_dismiss(status);
    return add_line(c, name, tare_arena_strdup(&c->result.arena, hash));
}

static tare_status add_folder_hash(struct tare_compare_job *c, const char *name, const char *folder) {
    char hash[TARE_KEY_SIZE];
    const tare_status status = tare_folder_key(hash, folder);
    if (status != TARE_OK) return tare_error_dismiss(status);
    return add_line(c, name, tare_arena_strdup(&c->result.arena, hash));
}

static tare_status add_given(struct tare_compare_job *c) {
    struct tare_arena *arena = &c->result.arena;
    for (size_t i = 0; i < c->options->with.count; i++) {
        const char *path = c->options->with.items[i];
        TARE_TRY(add_line(c, tare_arena_printf(arena, "model %s", c->given[i]), tare_arena_strdup(arena, path)));
        TARE_TRY(add_folder_hash(c, tare_arena_printf(arena, "hash of the files of %s", c->given[i]), path));
    }
    return TARE_OK;
}

static tare_status describe_data(struct tare_compare_job *c) {
    const struct tare_compare_task *task = c->task;
    struct tare_arena *arena = &c->result.arena;
    TARE_TRY(add_line_if(c, task->data_name || task->n_data, "records",
                         task->data_name ? task->data_name : join(arena, task->data, task->n_data)));
    TARE_TRY(add_hash(c, "hash of the records", task->data, task->n_data));
    TARE_TRY(add_line_if(c, task->n_calibration_data, "calibration samples",
                         task->calibration_data_name ? task->calibration_data_name
                                                     : join(arena, task->calibration_data, task->n_calibration_data)));
    TARE_TRY(add_hash(c, "hash of the samples", task->calibration_data, task->n_calibration_data));
    TARE_TRY(add_line_if(c, task->calibration_file, "calibration file", task->calibration_file));
    return add_hash(c, "hash of the calibration", &task->calibration_file, task->calibration_file ? 1 : 0);
}

tare_status tare_workflow_compare_describe(struct tare_compare_job *c, double seconds) {
    struct tare_arena *arena = &c->result.arena;
    struct tare_quant_plan plan = c->plan;
    struct tare_strbuf options = { 0 };
    const char *plain;
    time_t now = time(NULL);
    struct tm date;
    char text[32] = "";
    if (gmtime_r(&now, &date)) strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &date);
    TARE_TRY(add_line(c, "made",
                      tare_arena_printf(arena, "%s by tare %s in %.1f s on %d thread%s", text, TARE_VERSION, seconds,
                                        c->evaluation.threads, c->evaluation.threads == 1 ? "" : "s")));
    TARE_TRY(add_line(c, "model", c->result.model));
    TARE_TRY(add_folder_hash(c, "hash of its files", c->task->model));
    TARE_TRY(describe_data(c));
    if (c->evaluation.calibration)
        TARE_TRY(add_line(c, "calibrations", tare_arena_printf(arena, "%lld", (long long)c->result.calibrations)));
    TARE_TRY(add_given(c));
    TARE_TRY(add_line(c, "methods", c->methods));
    TARE_TRY(add_line(c, "algorithms", c->algorithms));
    TARE_TRY(add_line_if(c, c->options->granularities, "granularities", c->options->granularities));
    plan.setting.method = &tare_method_static; /* the lists above have it, the algorithm and the granularity */
    plan.setting.algorithm = (struct tare_algorithm_choice){ 0 };
    plan.setting.granularity = tare_quant_default_granularity(plan.op_set);
    tare_quant_plan_put(&options, &plan);
    plain = options.size ? tare_arena_strdup(arena, tare_strbuf_text(&options) + 1) : NULL;
    tare_strbuf_free(&options);
    return add_line_if(c, plain != NULL, "options", plain);
}

tare_status tare_workflow_compare_add_file(struct tare_compare_job *c, const char *what, const char *path) {
    struct tare_arena *arena = &c->result.arena;
    const char *name = tare_arena_printf(arena, "%s written", what),
               *of = tare_arena_printf(arena, "hash of the %s", what);
    const char *copy = tare_arena_strdup(arena, path);
    char hash[TARE_KEY_SIZE];
    if (!name || !of || !copy) return TARE_NO_MEMORY;
    TARE_TRY(tare_file_key(hash, path));
    TARE_TRY(add_line(c, name, copy));
    return add_line(c, of, tare_arena_strdup(arena, hash));
}
