/* Registries of op definitions. A registry may have a parent, in which it looks up what it does not define itself. */
#include "graph/definitions/registry.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

struct tare_op_registry *tare_ops_new(const struct tare_op_registry *parent) {
    struct tare_op_registry *registry = tare_calloc(1, sizeof *registry);
    if (registry) registry->parent = parent;
    return registry;
}

void tare_ops_free(struct tare_op_registry *registry) {
    if (!registry) return;
    tare_map_free(&registry->by_name);
    tare_opspec_memory_free(&registry->memory);
    tare_free(registry->defs);
    tare_free(registry->error);
    tare_free(registry);
}

void tare_ops_attach(struct tare_op_registry *registry, const void *data) {
    registry->attached = data;
}

const void *tare_ops_attached(const struct tare_op_registry *registry) {
    while (registry && !registry->attached)
        registry = registry->parent;
    return registry ? registry->attached : NULL;
}

tare_status tare_ops_add_def(struct tare_op_registry *registry, const struct tare_op_def *def) {
    if (tare_map_get(&registry->by_name, def->name))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Op with name %s is already registered", def->name);
    TARE_TRY(tare_opspec_validate(def));
    if (!TARE_GROW(registry->defs, registry->n_defs, registry->defs_capacity)) return TARE_NO_MEMORY;
    registry->defs[registry->n_defs++] = def;
    return tare_map_set(&registry->by_name, def->name, (void *)def) ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_ops_add(struct tare_op_registry *registry, const struct tare_op *row) {
    struct tare_op_def *def;
    if (!row->name) return TARE_FAIL(TARE_INVALID_ARGUMENT, "an op row has no name");
    TARE_TRY(tare_opspec_parse(&def, &registry->memory, row));
    return tare_ops_add_def(registry, def);
}

const struct tare_op_def *tare_ops_find(const struct tare_op_registry *registry, const char *name) {
    for (; registry; registry = registry->parent) {
        const struct tare_op_def *def =
            registry->look_up ? registry->look_up(name) : tare_map_get(&registry->by_name, name);
        if (def) return def;
    }
    return NULL;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const struct tare_op_def *const *)a)->name, (*(const struct tare_op_def *const *)b)->name);
}

tare_status tare_ops_list_all(const struct tare_op_def *const **out, size_t *count, struct tare_arena *arena,
                              const struct tare_op_registry *registry) {
    const struct tare_op_def **list;
    size_t total = 0;
    for (const struct tare_op_registry *r = registry; r; r = r->parent) {
        if (r->look_up) r->look_up(NULL);
        total += r->n_defs;
    }
    TARE_TRY(tare_ops_check(registry));
    list = TARE_NEW_ARRAY(arena, const struct tare_op_def *, total + 1);
    if (!list) return TARE_NO_MEMORY;
    *count = 0;
    for (const struct tare_op_registry *r = registry; r; r = r->parent)
        for (size_t i = 0; i < r->n_defs; i++)
            if (tare_ops_find(registry, r->defs[i]->name) == r->defs[i]) list[(*count)++] = r->defs[i]; /* not hidden */
    if (*count) qsort(list, *count, sizeof *list, by_name);
    *out = list;
    return TARE_OK;
}

tare_status tare_ops_check(const struct tare_op_registry *registry) {
    for (; registry; registry = registry->parent) {
        if (registry->status == TARE_NO_MEMORY) return TARE_NO_MEMORY;
        if (registry->status != TARE_OK) return TARE_FAIL(registry->status, "%s", registry->error);
    }
    return TARE_OK;
}
