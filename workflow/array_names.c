/* Compares the names of arrays with the inputs and keys that a command reads. */
#include "workflow/array_names.h"
#include "base/arena.h"
#include "base/option.h"
#include "base/strbuf.h"
#include "datasets/data_file.h"

#include <string.h>

/* Names that are read, with a NULL at the end: the inputs, then other keys. */
static tare_status list_names(const char ***out, struct tare_arena *arena, const struct tare_array_readers *readers) {
    const size_t feeds = readers->signature->n_inputs;
    const char *const keys[] = { readers->label, readers->target, readers->sequence };
    const char **names = TARE_NEW_ARRAY(arena, const char *, feeds + 4);
    size_t count = feeds;
    if (!names) return TARE_NO_MEMORY;
    for (size_t i = 0; i < feeds; i++)
        names[i] = readers->signature->inputs[i].key;
    for (size_t i = 0; i < 3; i++)
        if (keys[i]) names[count++] = keys[i];
    *out = names;
    return TARE_OK;
}

static bool is_in(const char *const *names, const char *name) {
    for (; *names; names++)
        if (strcmp(*names, name) == 0) return true;
    return false;
}

static tare_status unknown_name(const char *name, const char *const *names, const struct tare_array_readers *readers) {
    const char *nearest = tare_nearest_name(name, names);
    struct tare_strbuf list = { 0 };
    tare_status status;
    for (size_t i = 0; names[i]; i++)
        tare_strbuf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    status = TARE_FAIL(TARE_USAGE, "--input %s: unknown input (signature %s is run with %s%s%s%s)", name,
                       readers->signature->key, tare_strbuf_text(&list), nearest ? "; did you mean '" : "",
                       nearest ? nearest : "", nearest ? "'?" : "");
    tare_strbuf_free(&list);
    return status;
}

/* A model with one input reads the only array besides the label, whatever its name (tare_bind_record). */
static bool is_only_value(const char *const *given, size_t count, const char *name,
                          const struct tare_array_readers *readers) {
    size_t values = 0;
    if (readers->signature->n_inputs != 1 || readers->spec) return false;
    for (size_t i = 0; i < count; i++)
        values += strcmp(given[i], readers->label) != 0;
    return values == 1 && strcmp(name, readers->label) != 0;
}

static tare_status check(struct tare_arena *arena, const char *path, const char *const *names,
                         const struct tare_array_readers *readers) {
    const char *item;
    const char **given;
    size_t length, count = 0;
    while (tare_data_arrays_name(&length, path, count))
        count++;
    if (!(given = TARE_NEW_ARRAY(arena, const char *, count + 1))) return TARE_NO_MEMORY;
    for (size_t i = 0; (item = tare_data_arrays_name(&length, path, i)); i++)
        if (!(given[i] = tare_arena_printf(arena, "%.*s", (int)length, item))) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const bool known = readers->spec ? tare_dataset_spec_reads(readers->spec, given[i]) : is_in(names, given[i]);
        if (known || is_only_value(given, count, given[i], readers)) continue;
        if (readers->spec)
            return TARE_FAIL(TARE_USAGE, "--input %s: unknown input (the spec reads no feature of this name)",
                             given[i]);
        return unknown_name(given[i], names, readers);
    }
    return TARE_OK;
}

tare_status tare_workflow_check_array_names(const char *const *paths, size_t n_paths,
                                            const struct tare_array_readers *readers) {
    struct tare_arena arena = { 0 };
    const char **names;
    tare_status status = list_names(&names, &arena, readers);
    for (size_t i = 0; i < n_paths && status == TARE_OK; i++)
        if (tare_data_is_arrays(paths[i])) status = check(&arena, paths[i], names, readers);
    tare_arena_free(&arena);
    return status;
}
