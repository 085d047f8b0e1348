/* Compares an earlier list of ops with the registered ones. */
#include "cli/ops/published.h"
#include "eval/report/json_text.h"
#include "graph/definitions/op_compat.h"
#include "graph/definitions/opspec.h"
#include "interpreter/plugins/plugin.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* ---- reading ---- */

static tare_status read_items(struct tare_opspec_items *out, struct tare_arena *arena, const json_t *op,
                              const char *key) {
    const json_t *array = json_object_get(op, key);
    if (!json_is_array(array)) return TARE_FAIL(TARE_CORRUPT, "\"%s\" is not an array of specifications", key);
    out->texts = TARE_NEW_ARRAY(arena, const char *, json_array_size(array) + 1);
    if (!out->texts) return TARE_NO_MEMORY;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *text = json_string_value(json_array_get(array, i));
        if (!text) return TARE_FAIL(TARE_CORRUPT, "\"%s\"[%zu] is not a string", key, i);
        out->texts[out->count++] = text;
    }
    return TARE_OK;
}

static tare_status read_definition(struct tare_op_def **out, struct tare_opspec_memory *memory, const json_t *op) {
    struct tare_opspec_source source = { .name = json_string_value(json_object_get(op, "name")),
                                         .is_stateful = json_is_true(json_object_get(op, "stateful")) };
    TARE_TRY(read_items(&source.attrs, &memory->arena, op, "attrs"));
    TARE_TRY(read_items(&source.inputs, &memory->arena, op, "inputs"));
    TARE_TRY(read_items(&source.outputs, &memory->arena, op, "outputs"));
    return tare_opspec_parse_items(out, memory, &source);
}

static tare_status open_list(json_t **root, const json_t **ops, const char *path) {
    json_error_t error;
    *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!*root && error.line < 0) return TARE_FAIL(TARE_IO, "%s: %s", path, error.text);
    if (!*root)
        return TARE_FAIL(TARE_CORRUPT, "%s: line %d, column %d: %s", path, error.line, error.column, error.text);
    *ops = json_object_get(*root, "ops");
    if (json_is_array(*ops)) return TARE_OK;
    return TARE_FAIL(TARE_CORRUPT, "%s: not a list of ops: \"ops\" is missing (write one with 'tare ops --json')",
                     path);
}

/* ---- comparing ---- */

struct comparison {
    const struct tare_op_registry *registry;
    json_t *found; /* array of { op, change } */
};

static tare_status report(struct comparison *comparison, const char *op, const char *format, ...) TARE_PRINTF(3, 4);
static tare_status report(struct comparison *comparison, const char *op, const char *format, ...) {
    va_list args;
    json_t *text;
    va_start(args, format);
    text = json_vsprintf(format, args);
    va_end(args);
    return json_array_append_new(comparison->found,
                                 json_pack("{s:o, s:o}", "op", tare_json_text(op), "change", text)) == 0
               ? TARE_OK
               : TARE_NO_MEMORY;
}

/* Whether `list`, separated by "; ", contains the item of that length. */
static bool holds(const char *list, const char *item, size_t size) {
    for (;;) {
        const char *end = strstr(list, "; ");
        size_t length = end ? (size_t)(end - list) : strlen(list);
        if (length == size && memcmp(list, item, size) == 0) return true;
        if (!end) return false;
        list = end + 2;
    }
}

/* Removing a kernel breaks models that use it. */
static tare_status compare_kernels(struct comparison *comparison, const json_t *op, const struct tare_op_def *def) {
    const char *before = json_string_value(json_object_get(op, "kernels")), *now = tare_plugin_kernels_of(def);
    if (!json_is_true(json_object_get(op, "runs"))) return TARE_OK;
    if (!def->row || !def->row->run) return report(comparison, def->name, "Kernels removed");
    if (!now || !*now) return TARE_OK; /* built in, or a kernel for all dtypes */
    if (!before || !*before)
        return report(comparison, def->name, "Kernel for every type replaced by kernels for %s", now);
    while (*before) {
        const char *end = strstr(before, "; ");
        size_t size = end ? (size_t)(end - before) : strlen(before);
        if (!holds(now, before, size))
            TARE_TRY(report(comparison, def->name, "Kernel for %.*s removed", (int)size, before));
        before += size + (end ? 2 : 0);
    }
    return TARE_OK;
}

static tare_status compare_op(struct comparison *comparison, const json_t *op) {
    const char *name = json_string_value(json_object_get(op, "name"));
    const struct tare_op_def *now;
    struct tare_opspec_memory memory = { 0 };
    struct tare_op_changes changes = { 0 };
    struct tare_op_def *before;
    tare_status status;
    if (!name) return TARE_FAIL(TARE_CORRUPT, "an op has no name");
    status = tare_error_prefix(read_definition(&before, &memory, op), "op %s", name);
    now = tare_ops_find(comparison->registry, name);
    if (status == TARE_OK && !now) status = report(comparison, name, "Op removed");
    if (status == TARE_OK && now) status = tare_op_compare(&changes, before, now);
    for (size_t i = 0; i < changes.count && status == TARE_OK; i++)
        status = report(comparison, name, "%s", changes.items[i]);
    if (status == TARE_OK && now) status = compare_kernels(comparison, op, now);
    tare_op_changes_free(&changes);
    tare_opspec_memory_free(&memory);
    return status;
}

static void print(const struct comparison *comparison, bool json) {
    if (json) {
        json_t *root = json_pack("{s:O}", "changes", comparison->found);
        if (root) json_dumpf(root, stdout, JSON_INDENT(2));
        printf("\n");
        json_decref(root);
        return;
    }
    for (size_t i = 0; i < json_array_size(comparison->found); i++) {
        const json_t *change = json_array_get(comparison->found, i);
        printf("%s: %s\n", json_string_value(json_object_get(change, "op")),
               json_string_value(json_object_get(change, "change")));
    }
}

tare_status tare_ops_check_published(const char *path, const struct tare_op_registry *registry, bool json) {
    struct comparison comparison = { .registry = registry, .found = json_array() };
    json_t *root = NULL;
    const json_t *ops = NULL;
    size_t count;
    tare_status status = comparison.found ? open_list(&root, &ops, path) : TARE_NO_MEMORY;
    for (size_t i = 0; status == TARE_OK && i < json_array_size(ops); i++)
        status = tare_error_prefix(compare_op(&comparison, json_array_get(ops, i)), "%s", path);
    if (status == TARE_OK) print(&comparison, json);
    fflush(stdout); /* print the details before the error that counts them */
    count = json_array_size(comparison.found);
    if (status == TARE_OK && count)
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: %zu change%s break%s published ops (expected none)", path, count,
                           count == 1 ? "" : "s", count == 1 ? "s" : "");
    json_decref(comparison.found);
    json_decref(root);
    return status;
}
