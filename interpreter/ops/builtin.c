/* The registry of built-in ops: the rows of the op families, then the catalogue for every name without a row. */
#include "interpreter/ops/builtin.h"
#include "base/alloc.h"
#include "graph/definitions/registry.h"
#include "interpreter/ops/catalogue.h"
#include "interpreter/ops/families.h"

#include <pthread.h>

static struct tare_op_registry builtin;
static pthread_once_t builtin_once = PTHREAD_ONCE_INIT;

/* Keeps the first error: out of memory, or a defect of this program, not of its input. */
static void note_error(const char *name, tare_status status) {
    if (builtin.status != TARE_OK) return;
    if (status != TARE_NO_MEMORY) {
        status = tare_error_prefix(TARE_INTERNAL, "internal error: built-in op '%s'", name);
        builtin.error = tare_strdup(tare_error_text());
    }
    builtin.status = status == TARE_NO_MEMORY || !builtin.error ? TARE_NO_MEMORY : status;
}

static tare_status add_catalogue_entry(const struct tare_catalogue_entry *entry) {
    const struct tare_op row = { .name = entry->name,
                                 .inputs = entry->inputs,
                                 .outputs = entry->outputs,
                                 .attrs = entry->attrs,
                                 .flags = entry->is_stateful ? TARE_OP_STATEFUL : 0 };
    struct tare_op_def *def;
    TARE_TRY(tare_opspec_parse(&def, &builtin.memory, &row));
    def->row = NULL;
    return tare_ops_add_def(&builtin, def);
}

static void fill_builtin(void) {
    static const struct tare_op *const families[] = {
#define X(family) tare_ops_##family,
        TARE_OP_FAMILIES(X)
#undef X
    };
    struct tare_map broken = { 0 }; /* a row that does not parse must not be replaced by its catalogue entry */
    tare_status status;
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const struct tare_op *row = families[f]; row->name; row++)
            if ((status = tare_ops_add(&builtin, row)) != TARE_OK) {
                note_error(row->name, status);
                if (!tare_map_set(&broken, row->name, (void *)row)) note_error(row->name, TARE_NO_MEMORY);
            }
    for (const struct tare_catalogue_entry *entry = tare_catalogue; entry->name; entry++)
        if (!tare_map_get(&builtin.by_name, entry->name) && !tare_map_get(&broken, entry->name) &&
            (status = add_catalogue_entry(entry)) != TARE_OK)
            note_error(entry->name, status);
    tare_map_free(&broken);
    tare_error_clear();
}

const struct tare_op_registry *tare_ops_builtin(void) {
    pthread_once(&builtin_once, fill_builtin);
    return &builtin;
}
