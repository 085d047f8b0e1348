/* The registry of built-in ops: the rows of the op families, defined by the catalogue unless they define themselves,
 * and the entries of the catalogue without a row. A definition is parsed when it is looked up first: a model uses few.
 */
#include "interpreter/ops/builtin.h"
#include "base/alloc.h"
#include "graph/definitions/registry.h"
#include "interpreter/ops/catalogue.h"
#include "interpreter/ops/families.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct tare_op_registry builtin;
static struct tare_map rows; /* of all families, by name */
static size_t n_entries;     /* of the catalogue */
static pthread_once_t builtin_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t builtin_lock = PTHREAD_MUTEX_INITIALIZER;

static const struct tare_op *const families[] = {
#define X(family) tare_ops_##family,
    TARE_OP_FAMILIES(X)
#undef X
};

/* Keeps the first error: out of memory, or a defect of this program, not of its input. */
static void note_error(const char *name, tare_status status) {
    if (builtin.status != TARE_OK) return;
    if (status != TARE_NO_MEMORY) {
        status = tare_error_prefix(TARE_INTERNAL, "internal error: built-in op '%s'", name);
        builtin.error = tare_strdup(tare_error_text());
    }
    builtin.status = status == TARE_NO_MEMORY || !builtin.error ? TARE_NO_MEMORY : status;
}

static tare_status add_catalogue_entry(const struct tare_catalogue_entry *entry, const struct tare_op *row) {
    const struct tare_op defined = { .name = entry->name,
                                     .inputs = entry->inputs,
                                     .outputs = entry->outputs,
                                     .attrs = entry->attrs,
                                     .flags = entry->is_stateful ? TARE_OP_STATEFUL : 0 };
    struct tare_op_def *def;
    TARE_TRY(tare_opspec_parse(&def, &builtin.memory, &defined));
    def->row = row;
    return tare_ops_add_def(&builtin, def);
}

static int compare_entry(const void *name, const void *entry) {
    return strcmp(name, ((const struct tare_catalogue_entry *)entry)->name);
}

static bool defines_itself(const struct tare_op *row) {
    return row && (row->inputs || row->outputs || row->attrs);
}

static const struct tare_op_def *find(const char *name) {
    const struct tare_op_def *def = tare_map_get(&builtin.by_name, name);
    if (def) return def;
    const struct tare_op *row = tare_map_get(&rows, name);
    const struct tare_catalogue_entry *entry =
        defines_itself(row) ? NULL : bsearch(name, tare_catalogue, n_entries, sizeof *tare_catalogue, compare_entry);
    if (!row && !entry) return NULL;
    const tare_status status = entry ? add_catalogue_entry(entry, row) : tare_ops_add(&builtin, row);
    if (status == TARE_OK) return tare_map_get(&builtin.by_name, name);
    note_error(name, status);
    tare_error_clear();
    return NULL;
}

static const struct tare_op_def *look_up(const char *name) {
    const struct tare_op_def *def = NULL;
    pthread_mutex_lock(&builtin_lock);
    if (name) def = find(name);
    for (size_t f = 0; !name && f < sizeof families / sizeof *families; f++)
        for (const struct tare_op *row = families[f]; row->name; row++)
            find(row->name);
    for (size_t i = 0; !name && i < n_entries; i++)
        find(tare_catalogue[i].name);
    pthread_mutex_unlock(&builtin_lock);
    return def;
}

static void fill_builtin(void) {
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const struct tare_op *row = families[f]; row->name; row++) {
            if (tare_map_get(&rows, row->name))
                note_error(row->name, TARE_FAIL(TARE_INVALID_ARGUMENT, "two rows have this name"));
            else if (!tare_map_set(&rows, row->name, (void *)row))
                note_error(row->name, TARE_NO_MEMORY);
        }
    while (tare_catalogue[n_entries].name)
        n_entries++;
    builtin.look_up = look_up;
    tare_error_clear();
}

const struct tare_op_registry *tare_ops_builtin(void) {
    pthread_once(&builtin_once, fill_builtin);
    return &builtin;
}
