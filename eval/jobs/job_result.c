/* One job's result as JSON. */
#include "eval/jobs/job_result.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "eval/report/json_text.h"

#include <math.h>
#include <string.h>

static const char *const outcome_names[] = { "done", "rejected", "failed" };

struct tare_job_result tare_job_result_new(const char *name) {
    return (struct tare_job_result){ .name = name,
                                     .key = "",
                                     .run = "",
                                     .outcome = TARE_JOB_FAILED,
                                     .top1 = NAN,
                                     .measure_value = NAN,
                                     .float_measure_value = NAN,
                                     .loss = NAN,
                                     .loss_high = NAN,
                                     .mae = NAN,
                                     .cycles = NAN,
                                     .float_cycles = NAN,
                                     .tpu_seconds = NAN,
                                     .float_tpu_seconds = NAN,
                                     .tpu_bytes = NAN,
                                     .float_top1 = NAN,
                                     .agreement = NAN,
                                     .sqnr_db = NAN };
}

#define FIGURE(member)                                                                                                 \
    { #member, offsetof(struct tare_job_result, member) }
static const struct {
    const char *key;
    size_t offset;
} chip_figures[] = { FIGURE(cycles), FIGURE(float_cycles), FIGURE(tpu_seconds), FIGURE(float_tpu_seconds),
                     FIGURE(tpu_bytes) };
enum { N_CHIP_FIGURES = sizeof chip_figures / sizeof *chip_figures };
#undef FIGURE

/* ---- writing ---- */

static void put_text(json_t *object, const char *key, const char *value) {
    if (value && *value) json_object_set_new(object, key, tare_json_text(value));
}

/* JSON has no infinity; the SQNR of an exact model is the string "exact". */
static void put_number(json_t *object, const char *key, double value) {
    if (isnan(value)) return;
    json_object_set_new(object, key, isinf(value) ? tare_json_text(value > 0 ? "exact" : "none") : json_real(value));
}

static void put_integer(json_t *object, const char *key, int64_t value) {
    if (value) json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *texts_json(const char *const *texts, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, tare_json_text(texts[i]));
    return list;
}

static json_t *result_json(const struct tare_job_result *r) {
    json_t *object = json_object();
    put_text(object, "name", r->name);
    put_text(object, "outcome", outcome_names[r->outcome]);
    put_text(object, "reason", r->reason);
    json_object_set_new(object, "warnings", texts_json(r->warnings, r->n_warnings));
    put_text(object, "output", r->output);
    put_text(object, "output_hash", r->output_hash);
    put_text(object, "key", r->key);
    put_text(object, "run", r->run);
    put_number(object, "top1", r->top1);
    put_number(object, "float_top1", r->float_top1);
    put_number(object, "agreement", r->agreement);
    put_number(object, "sqnr_db", r->sqnr_db);
    put_text(object, "measure", r->measure);
    put_number(object, "float_measure_value", r->float_measure_value);
    put_number(object, "measure_value", r->measure_value);
    put_number(object, "loss", r->loss);
    put_number(object, "loss_high", r->loss_high);
    put_number(object, "mae", r->mae);
    put_integer(object, "records", r->records);
    put_text(object, "chip", r->chip);
    put_text(object, "compiler", r->compiler);
    for (size_t i = 0; i < N_CHIP_FIGURES; i++)
        put_number(object, chip_figures[i].key, *(const double *)((const char *)r + chip_figures[i].offset));
    put_integer(object, "size_bytes", r->size_bytes);
    put_integer(object, "float_bytes", r->float_bytes);
    put_integer(object, "peak_bytes", r->peak_bytes);
    put_integer(object, "attempts", r->attempts);
    put_number(object, "seconds", r->seconds);
    return object;
}

tare_status tare_job_result_save(const struct tare_job_result *result, const char *path) {
    struct tare_strbuf text = { 0 };
    tare_status status = tare_json_write(&text, result_json(result));
    if (status == TARE_OK) status = tare_file_write(path, tare_strbuf_text(&text), text.size);
    tare_strbuf_free(&text);
    return status;
}

tare_status tare_batch_json(struct tare_strbuf *out, const struct tare_batch_report *report) {
    json_t *root = json_object(), *jobs = json_array();
    for (size_t i = 0; i < report->count; i++)
        json_array_append_new(jobs, result_json(&report->results[i]));
    put_text(root, "batch", report->title);
    json_object_set_new(root, "jobs_total", json_integer((json_int_t)report->count));
    json_object_set_new(root, "jobs_failed", json_integer((json_int_t)tare_batch_failed(report)));
    json_object_set_new(root, "jobs_skipped", json_integer((json_int_t)report->skipped));
    put_number(root, "seconds", report->seconds);
    json_object_set_new(root, "jobs", jobs);
    return tare_json_write(out, root);
}

/* ---- reading ---- */

static const char *read_text(struct tare_arena *arena, const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? tare_arena_strdup(arena, text) : NULL;
}

static double read_number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    if (json_is_number(value)) return json_number_value(value);
    if (json_is_string(value)) return strcmp(json_string_value(value), "exact") == 0 ? INFINITY : -INFINITY;
    return NAN;
}

static int64_t read_integer(const json_t *object, const char *key) {
    return (int64_t)json_integer_value(json_object_get(object, key));
}

static tare_status read_warnings(struct tare_job_result *out, struct tare_arena *arena, const json_t *root) {
    const json_t *list = json_object_get(root, "warnings");
    const char **texts = TARE_NEW_ARRAY(arena, const char *, json_array_size(list) + 1);
    if (!texts) return TARE_NO_MEMORY;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text && !(texts[out->n_warnings++] = tare_arena_strdup(arena, text))) return TARE_NO_MEMORY;
    }
    out->warnings = texts;
    return TARE_OK;
}

static tare_status read_result(struct tare_job_result *out, struct tare_arena *arena, const json_t *root) {
    const char *outcome = json_string_value(json_object_get(root, "outcome"));
    *out = tare_job_result_new(read_text(arena, root, "name"));
    for (int i = 0; i < 3 && outcome; i++)
        if (strcmp(outcome, outcome_names[i]) == 0) out->outcome = (enum tare_job_outcome)i;
    if (!out->name || !outcome) return TARE_FAIL(TARE_CORRUPT, "not a result of a job");
    out->key = read_text(arena, root, "key");
    out->run = read_text(arena, root, "run");
    if (!out->key) out->key = "";
    if (!out->run) out->run = "";
    out->reason = read_text(arena, root, "reason");
    out->output = read_text(arena, root, "output");
    out->output_hash = read_text(arena, root, "output_hash");
    out->top1 = read_number(root, "top1");
    out->float_top1 = read_number(root, "float_top1");
    out->agreement = read_number(root, "agreement");
    out->sqnr_db = read_number(root, "sqnr_db");
    out->measure = read_text(arena, root, "measure");
    out->float_measure_value = read_number(root, "float_measure_value");
    out->measure_value = read_number(root, "measure_value");
    out->loss = read_number(root, "loss");
    out->loss_high = read_number(root, "loss_high");
    out->mae = read_number(root, "mae");
    out->records = read_integer(root, "records");
    out->chip = read_text(arena, root, "chip");
    out->compiler = read_text(arena, root, "compiler");
    for (size_t i = 0; i < N_CHIP_FIGURES; i++)
        *(double *)((char *)out + chip_figures[i].offset) = read_number(root, chip_figures[i].key);
    out->size_bytes = read_integer(root, "size_bytes");
    out->float_bytes = read_integer(root, "float_bytes");
    out->peak_bytes = read_integer(root, "peak_bytes");
    out->attempts = (int)read_integer(root, "attempts");
    out->seconds = json_number_value(json_object_get(root, "seconds"));
    return read_warnings(out, arena, root);
}

tare_status tare_job_result_load(struct tare_job_result *out, struct tare_arena *arena, const char *path) {
    json_error_t error;
    json_t *root;
    char *text;
    size_t size;
    tare_status status;
    TARE_TRY(tare_file_read(&text, &size, path));
    root = tare_json_parse(text, size, &error);
    status = root ? read_result(out, arena, root) : TARE_FAIL(TARE_CORRUPT, "line %d: %s", error.line, error.text);
    json_decref(root);
    tare_free(text);
    return tare_error_prefix(status, "%s", path);
}
