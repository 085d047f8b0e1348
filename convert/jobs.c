/* Reading and filling in jobs. */
#include "convert/jobs.h"
#include "convert/job_method.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "convert/model_hint.h"
#include "proto/field.h"
#include "tpu/chips.h"
#include "proto/tare/batch.pb-c.h"
#include "proto/text_format.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- defaults ---- */

/* Strings and messages are pointers, NULL when unset; scalars have a separate flag. */
static bool is_pointer(const ProtobufCFieldDescriptor *field) {
    return field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE;
}

static void *member(const void *message, unsigned offset) {
    return (char *)(uintptr_t)message + offset;
}

static bool is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    if (field->label == PROTOBUF_C_LABEL_REPEATED) return *(size_t *)member(message, field->quantifier_offset) > 0;
    if (!is_pointer(field)) return *(protobuf_c_boolean *)member(message, field->quantifier_offset);
    const void *value = *(void **)member(message, field->offset);
    return value && value != field->default_value;
}

/* Copies the defaults to unset fields, also in messages of both; they are in one arena, so pointers can be shared. */
static void fill_in(ProtobufCMessage *job, const ProtobufCMessage *defaults) {
    for (unsigned i = 0; i < job->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &job->descriptor->fields[i];
        bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        const size_t size = repeated ? sizeof(void *) : tare_field_value_size(field);
        if (!is_set(defaults, field)) continue;
        if (is_set(job, field)) {
            if (!repeated && field->type == PROTOBUF_C_TYPE_MESSAGE)
                fill_in(*(void **)member(job, field->offset), *(void **)member(defaults, field->offset));
            continue;
        }
        memcpy(member(job, field->offset), member(defaults, field->offset), size);
        if (repeated)
            *(size_t *)member(job, field->quantifier_offset) = *(size_t *)member(defaults, field->quantifier_offset);
        else if (!is_pointer(field))
            *(protobuf_c_boolean *)member(job, field->quantifier_offset) = 1;
    }
}

/* ---- placeholders and paths ---- */

struct context {
    struct tare_arena *arena;
    const char *folder; /* of the job file; "" if paths are used unchanged */
    const char *name, *model, *method, *algorithm;
};

/* The last component of a path, without trailing slashes. */
static const char *base_name(struct tare_arena *arena, const char *path) {
    char *copy = tare_arena_strdup(arena, path);
    size_t size = copy ? strlen(copy) : 0;
    while (size > 1 && copy[size - 1] == '/')
        copy[--size] = '\0';
    return copy ? tare_path_base(copy) : NULL;
}

static const char *const placeholders[] = { "{name}", "{model}", "{method}", "{algorithm}" };

enum { PLACEHOLDERS = sizeof placeholders / sizeof *placeholders };

/* Of the placeholder that the text begins with, PLACEHOLDERS if with none. */
static size_t placeholder_at(const char *text) {
    size_t i = 0;
    while (i < PLACEHOLDERS && strncmp(text, placeholders[i], strlen(placeholders[i])) != 0)
        i++;
    return i;
}

static tare_status expand(const char **out, const struct context *c, const char *text) {
    const char *const values[PLACEHOLDERS] = { c->name, c->model, c->method, c->algorithm };
    struct tare_strbuf result = { 0 };
    while (*text) {
        const size_t i = placeholder_at(text);
        if (i == PLACEHOLDERS) {
            tare_strbuf_putc(&result, *text++);
            continue;
        }
        tare_strbuf_puts(&result, values[i] ? values[i] : "");
        text += strlen(placeholders[i]);
    }
    *out = result.failed ? NULL : tare_arena_strdup(c->arena, tare_strbuf_text(&result));
    tare_strbuf_free(&result);
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

/* Leaves NULL. */
static tare_status text_of(const char **out, const struct context *c, const char *text) {
    *out = NULL;
    return text ? expand(out, c, text) : TARE_OK;
}

/* A word in braces that is no placeholder would become a part of the path. What replaces one may have braces. */
static tare_status check_placeholders(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    for (const char *brace = text; brace && (brace = strchr(brace, '{')); brace++) {
        const size_t size = strspn(brace + 1, letters);
        if (size && brace[1 + size] == '}' && placeholder_at(brace) == PLACEHOLDERS)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "%s: unknown placeholder %.*s (expected {name}, {model}, {method} or {algorithm})", text,
                             (int)size + 2, brace);
    }
    return TARE_OK;
}

static tare_status path_of(const char **out, const struct context *c, const char *text) {
    char *joined;
    TARE_TRY(check_placeholders(text));
    TARE_TRY(text_of(out, c, text));
    if (!*out || **out == '/' || !*c->folder) return TARE_OK;
    joined = tare_path_join(c->folder, *out);
    *out = joined ? tare_arena_strdup(c->arena, joined) : NULL;
    tare_free(joined);
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status list_of(struct tare_text_list *out, const struct context *c, char **texts, size_t count,
                           tare_status (*one)(const char **, const struct context *, const char *)) {
    const char **items = TARE_NEW_ARRAY(c->arena, const char *, count + 1);
    if (!items) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        TARE_TRY(one(&items[i], c, texts[i]));
    *out = (struct tare_text_list){ items, count };
    return TARE_OK;
}

/* ---- one job ---- */

/* A limit below 0, or NaN, would be no limit. */
static tare_status check_limits(const Tare__BatchLimits *m) {
    const struct {
        const char *name;
        bool is_set;
        double value, least;
    } limits[] = { { "max_drop", m->has_max_drop, m->max_drop, 0 },
                   { "min_sqnr_db", m->has_min_sqnr_db, m->min_sqnr_db, -DBL_MAX },
                   { "max_mae", m->has_max_mae, m->max_mae, 0 },
                   { "margin", m->has_margin, m->margin, 0 },
                   { "max_time", m->has_max_time, m->max_time, 0 },
                   { "chip_batch", m->has_chip_batch, (double)m->chip_batch, 1 },
                   { "max_size_bytes", m->has_max_size_bytes, (double)m->max_size_bytes, 0 } };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].is_set && !(limits[i].value >= limits[i].least && limits[i].value <= DBL_MAX))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "limits: %s is %g (expected a finite number%s)", limits[i].name,
                             limits[i].value,
                             limits[i].least == 0   ? ", 0 or more"
                             : limits[i].least == 1 ? ", 1 or more"
                                                    : "");
    return TARE_OK;
}

/* Whether an argument is one of the options, with or without a value; '-' and '_' are equivalent. */
static bool is_one_of(const char *argument, const char *const *options) {
    for (; *options; options++) {
        size_t at = 0;
        while ((*options)[at] && (argument[at] == '_' ? '-' : argument[at]) == (*options)[at])
            at++;
        if (!(*options)[at] && (!argument[at] || argument[at] == '=')) return true;
    }
    return false;
}

static tare_status check_argument(const char *argument) {
    static const char *const without_model[] = { "--dry-run", "--help", "-h", NULL };
    static const char *const fields[] = { "--method",
                                          "--algorithm",
                                          "--signature",
                                          "--data",
                                          "--calibration",
                                          "--spec",
                                          "--input-model-dir",
                                          "--output-model-dir",
                                          "--converter-options-string",
                                          "--converter-options-file",
                                          NULL };
    const bool writes_none = is_one_of(argument, without_model);
    if (!writes_none && !is_one_of(argument, fields)) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "arguments: %s cannot be among them (%s)", argument,
                     writes_none ? "no model would be written" : "use the field of the job");
}

/* And leaves out what the job has no use for. */
static tare_status check_job(struct tare_job *job) {
    const struct tare_job_limits *limits = &job->limits;
    for (size_t i = 0; i < job->arguments.count; i++)
        TARE_TRY(check_argument(job->arguments.items[i]));
    if (!job->output) return TARE_FAIL(TARE_INVALID_ARGUMENT, "no output is given");
    if (job->converter_options && job->converter_options_file)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "give converter_options or converter_options_file, not both");
    if (!job->plan.count && !job->converts && !job->arguments.count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "nothing to do: give method, recipe, converter_options or converter_options_file");
    if (job->calibration && job->data.count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "give data or calibration, not both");
    if (limits->max_mae >= 0 && !job->target)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "max_mae needs expected values (give their key: target)");
    if ((limits->max_drop >= 0 || limits->min_sqnr_db > -HUGE_VAL || limits->max_mae >= 0 || limits->margin >= 0) &&
        !job->evaluation.count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "a limit on accuracy needs evaluation records");
    if (limits->max_time >= 0 && !limits->chip)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "max_time is a limit on a chip (give its name: chip)");
    if (job->evaluation_limit < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "evaluation_limit is %lld (expected 0 or more)",
                         (long long)job->evaluation_limit);
    if (job->method && strcmp(job->method, "bfloat16") == 0) { /* samples would ask for a quantization */
        job->data = (struct tare_text_list){ 0 };
        job->calibration = NULL;
    }
    return TARE_OK;
}

enum { CHIP_BATCH = 8 }; /* the default, as of tare check */

static tare_status read_chip(int *out, const char *name) {
    for (*out = 1; *out <= TARE_TPU_CHIPS; ++*out)
        if (strcmp(tare_tpu_chips[*out - 1].name, name) == 0) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "limits: unknown chip '%s' (expected a name such as v5e, v6e or tpu7x)",
                     name);
}

static tare_status read_limits(struct tare_job_limits *out, const Tare__BatchLimits *message) {
    struct tare_job_limits limits = { -1, -HUGE_VAL, -1, -1, -1, 0, CHIP_BATCH, -1 };
    *out = limits;
    if (!message) return TARE_OK;
    TARE_TRY(check_limits(message));
    if (message->chip) TARE_TRY(read_chip(&limits.chip, message->chip));
    if (message->has_chip_batch) limits.chip_batch = message->chip_batch;
    if (message->has_max_time) limits.max_time = message->max_time;
    if (message->has_max_drop) limits.max_drop = message->max_drop;
    if (message->has_min_sqnr_db) limits.min_sqnr_db = message->min_sqnr_db;
    if (message->has_max_mae) limits.max_mae = message->max_mae;
    if (message->has_margin) limits.margin = message->margin;
    if (message->has_max_size_bytes) limits.max_size_bytes = message->max_size_bytes;
    *out = limits;
    return TARE_OK;
}

static const char CONVERT[] = "convert";

/* What {method} stands for: the method without the signs that paths and URLs do not have. */
static tare_status method_name(const char **out, struct tare_arena *arena, const char *method, bool converts) {
    char *name = tare_arena_strdup(arena, method ? method : converts ? CONVERT : "quantize");
    for (char *c = name; c && *c; c++)
        if (strchr(":=,", *c)) *c = '-';
    *out = name;
    return name ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_word(struct tare_job *job, struct tare_arena *arena, const char *option, const char *value) {
    return value ? tare_text_list_add(&job->plan, arena, tare_arena_printf(arena, "%s=%s", option, value)) : TARE_OK;
}

/* Of the method, the algorithm and the recipe; an algorithm alone has no use in a conversion. */
static tare_status set_plan(struct tare_job *job, struct tare_arena *arena) {
    bool bfloat16 = false;
    if (job->method) TARE_TRY(tare_job_method_words(&job->plan, &bfloat16, arena, job->method));
    TARE_TRY(add_word(job, arena, "--recipe", job->recipe));
    if (job->plan.count) TARE_TRY(add_word(job, arena, "--algorithm", job->algorithm));
    job->converts = job->converts || bfloat16;
    return TARE_OK;
}

static tare_status name_job(struct tare_job *job, struct context *c, bool converts, const char *given) {
    struct tare_strbuf name = { 0 };
    if (given) {
        TARE_TRY(expand(&job->name, c, given));
    } else {
        tare_strbuf_printf(&name, "%s-%s", c->model, c->method);
        if (c->algorithm) tare_strbuf_printf(&name, "-%s", c->algorithm);
        if (converts && strcmp(c->method, CONVERT) != 0) tare_strbuf_printf(&name, "-%s", CONVERT);
        job->name = name.failed ? NULL : tare_arena_strdup(c->arena, tare_strbuf_text(&name));
        tare_strbuf_free(&name);
    }
    if (!job->name) return TARE_NO_MEMORY;
    c->name = job->name;
    if (!*job->name || strchr(job->name, '/') || *job->name == '.')
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' cannot be a name: it also names files", job->name);
    return TARE_OK;
}

static tare_status read_job(struct tare_job *job, struct tare_arena *arena, const Tare__BatchJob *m,
                            const char *folder) {
    struct context c = { .arena = arena, .folder = folder, .algorithm = m->algorithm };
    const bool converts = m->converter_options || m->converter_options_file;
    memset(job, 0, sizeof *job);
    if (!m->model) return TARE_FAIL(TARE_INVALID_ARGUMENT, "no model is given");
    if (!(c.model = base_name(arena, m->model))) return TARE_NO_MEMORY;
    TARE_TRY(method_name(&c.method, arena, m->method, converts));
    TARE_TRY(name_job(job, &c, converts, m->name));
    TARE_TRY(path_of(&job->model, &c, m->model));
    TARE_TRY(path_of(&job->output, &c, m->output));
    TARE_TRY(path_of(&job->converter_options_file, &c, m->converter_options_file));
    TARE_TRY(path_of(&job->recipe, &c, m->recipe));
    TARE_TRY(path_of(&job->calibration, &c, m->calibration));
    TARE_TRY(path_of(&job->spec, &c, m->spec));
    TARE_TRY(text_of(&job->converter_options, &c, m->converter_options));
    TARE_TRY(text_of(&job->method, &c, m->method));
    TARE_TRY(text_of(&job->algorithm, &c, m->algorithm));
    job->converts = converts;
    TARE_TRY(set_plan(job, arena));
    TARE_TRY(text_of(&job->signature, &c, m->signature));
    TARE_TRY(text_of(&job->label, &c, m->label));
    TARE_TRY(text_of(&job->target, &c, m->target));
    TARE_TRY(text_of(&job->metric, &c, m->metric));
    TARE_TRY(list_of(&job->arguments, &c, m->arguments, m->n_arguments, text_of));
    TARE_TRY(list_of(&job->data, &c, m->data, m->n_data, path_of));
    TARE_TRY(list_of(&job->evaluation, &c, m->evaluation, m->n_evaluation, path_of));
    job->evaluation_limit = m->has_evaluation_limit ? m->evaluation_limit : 0;
    TARE_TRY(read_limits(&job->limits, m->limits));
    job->keep_rejected = m->keep_rejected;
    return check_job(job);
}

/* Two jobs with the same output folder or the same name would overwrite each other. */
static tare_status check_distinct(const struct tare_jobs *jobs) {
    struct tare_map names = { 0 }, outputs = { 0 };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < jobs->count && status == TARE_OK; i++) {
        struct tare_job *job = &jobs->jobs[i];
        const struct tare_job *same = tare_map_get(&outputs, job->output);
        if (tare_map_get(&names, job->name))
            status = TARE_FAIL(TARE_INVALID_ARGUMENT, "two jobs have the name '%s'", job->name);
        else if (same)
            status = TARE_FAIL(TARE_INVALID_ARGUMENT, "jobs '%s' and '%s' both write %s", same->name, job->name,
                               job->output);
        else if (!tare_map_set(&names, job->name, job) || !tare_map_set(&outputs, job->output, job))
            status = TARE_NO_MEMORY;
    }
    tare_map_free(&names);
    tare_map_free(&outputs);
    return status;
}

/* ---- files ---- */

static tare_status read_jobs(struct tare_jobs *out, struct tare_arena *arena, const Tare__BatchJobs *message,
                             const char *folder) {
    if (!message->n_job) return TARE_FAIL(TARE_INVALID_ARGUMENT, "there is no job in it");
    out->jobs = TARE_NEW_ARRAY(arena, struct tare_job, message->n_job);
    if (!out->jobs) return TARE_NO_MEMORY;
    out->count = message->n_job;
    for (size_t i = 0; i < message->n_job; i++) {
        if (message->defaults) fill_in(&message->job[i]->base, &message->defaults->base);
        TARE_TRY(tare_error_prefix(read_job(&out->jobs[i], arena, message->job[i], folder), "job %zu%s%s", i + 1,
                                   message->job[i]->name ? " " : "",
                                   message->job[i]->name ? message->job[i]->name : ""));
    }
    return check_distinct(out);
}

tare_status tare_jobs_read(struct tare_jobs *out, struct tare_arena *arena, const char *path) {
    ProtobufCMessage *message;
    char *text, *folder = tare_path_folder(path);
    size_t size;
    tare_status status = folder ? tare_file_read(&text, &size, path) : TARE_NO_MEMORY;
    memset(out, 0, sizeof *out);
    if (status == TARE_OK) {
        status =
            tare_text_format_read(&message, &tare__batch_jobs__descriptor, arena, text, size, TARE_TEXT_CLOSED, NULL);
        if (status == TARE_OK)
            status = read_jobs(out, arena, (const Tare__BatchJobs *)message, strcmp(folder, ".") == 0 ? "" : folder);
        status = tare_error_prefix(status, "%s", path);
        tare_free(text);
    }
    tare_free(folder);
    return status;
}

/* ---- folders ---- */

static tare_status expand_list(struct tare_text_list *list, const struct context *c) {
    return list_of(list, c, (char **)(uintptr_t)list->items, list->count, path_of);
}

static tare_status add_folder_job(struct tare_jobs *out, struct tare_arena *arena,
                                  const struct tare_jobs_of_folder *from, const char *model, const char *method) {
    struct context c = { .arena = arena, .folder = "", .algorithm = from->common.algorithm };
    struct tare_job *grown = tare_arena_append(arena, out->jobs, out->count, sizeof *grown), *job;
    if (!grown) return TARE_NO_MEMORY;
    out->jobs = grown;
    job = &grown[out->count++];
    *job = from->common;
    job->model = tare_arena_strdup(arena, model);
    job->method = method;
    if (!job->model || !(c.model = base_name(arena, model))) return TARE_NO_MEMORY;
    TARE_TRY(set_plan(job, arena));
    TARE_TRY(method_name(&c.method, arena, method, job->converts));
    TARE_TRY(name_job(job, &c, false, NULL));
    TARE_TRY(path_of(&job->output, &c, job->output));
    TARE_TRY(path_of(&job->calibration, &c, job->calibration));
    TARE_TRY(path_of(&job->spec, &c, job->spec));
    TARE_TRY(expand_list(&job->data, &c));
    TARE_TRY(expand_list(&job->evaluation, &c));
    return tare_error_prefix(check_job(job), "%s", job->name);
}

tare_status tare_jobs_of_folder(struct tare_jobs *out, struct tare_arena *arena,
                                const struct tare_jobs_of_folder *from) {
    struct tare_file_list names = { 0 };
    tare_status status = tare_file_list(&names, from->folder);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < names.count && status == TARE_OK; i++) {
        char *model = tare_path_join(from->folder, names.names[i]);
        if (!model) status = TARE_NO_MEMORY;
        for (size_t k = 0; status == TARE_OK && from->methods[k] && tare_is_saved_model_folder(model); k++)
            status = add_folder_job(out, arena, from, model, from->methods[k]);
        tare_free(model);
    }
    tare_file_list_free(&names);
    if (status == TARE_OK && !out->count)
        status = TARE_FAIL(TARE_NOT_FOUND, "%s: no folder in it holds a SavedModel", from->folder);
    return status == TARE_OK ? check_distinct(out) : status;
}
