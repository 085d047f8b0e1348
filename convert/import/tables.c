/* Lookup tables whose contents the restore operation imports from the checkpoint. */
#include "convert/import/import.h"
#include "convert/import/restores.h"
#include "convert/source.h"

#include <string.h>

static tare_status read_part(struct tare_tensor *out, struct tare_saved_model *source, const struct tare_restored *part,
                             int dtype) {
    struct tare_bundle_entry entry;
    TARE_TRY(tare_bundle_check_slice(&entry, source->bundle, part->key, part->slice));
    if (dtype && entry.dtype != dtype)
        return TARE_FAIL(TARE_TYPE, "%s: the checkpoint has %s (expected %s)", part->key, tare_dtype_name(entry.dtype),
                         tare_dtype_name(dtype));
    return source->without_values ? TARE_OK : tare_bundle_read_slice(out, source->bundle, part->key, part->slice);
}

static bool is_known(const struct tare_graph_model *model, const struct tare_node *node) {
    for (size_t i = 0; i < model->n_tables; i++)
        if (model->tables[i].node == node) return true;
    return false;
}

/* Ops that create a table that lives as long as the session. Other targets of an import (an argument, a variable) are
 * ignored. */
static bool makes_table(const struct tare_node *node) {
    static const char *const ops[] = { "HashTable",
                                       "HashTableV2",
                                       "MutableHashTableOfTensors",
                                       "MutableHashTable",
                                       "MutableHashTableV2",
                                       "MutableHashTableOfTensorsV2",
                                       "MutableDenseHashTable",
                                       "MutableDenseHashTableV2" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(node->op, ops[i]) == 0) return node->n_outputs == 1;
    return false;
}

static tare_status import_table(struct tare_graph_model *model, struct tare_saved_model *source,
                                const struct tare_restore *restore) {
    struct tare_table_content *table = &model->tables[model->n_tables++];
    int keys = tare_node_type(restore->target, "key_dtype", TARE_DT_INVALID);
    int values = tare_node_type(restore->target, "value_dtype", TARE_DT_INVALID);
    *table = (struct tare_table_content){ .node = restore->target,
                                          .keys_key = restore->keys.key,
                                          .values_key = restore->value.key };
    TARE_TRY(read_part(&table->keys, source, &restore->keys, keys));
    return read_part(&table->values, source, &restore->value, values);
}

tare_status tare_import_tables(struct tare_graph_model *model, struct tare_saved_model *source,
                               const struct tare_restores *restores) {
    size_t count = 0;
    for (size_t i = 0; i < restores->count; i++)
        count += restores->items[i].keys.key != NULL;
    model->tables = TARE_NEW_ARRAY(&model->arena, struct tare_table_content, count + 1);
    if (!model->tables) return TARE_NO_MEMORY;
    for (size_t i = 0; i < restores->count; i++) {
        const struct tare_restore *restore = &restores->items[i];
        if (!restore->keys.key || !makes_table(restore->target) || is_known(model, restore->target) ||
            !tare_bundle_has(source->bundle, restore->keys.key) || !tare_bundle_has(source->bundle, restore->value.key))
            continue;
        TARE_TRY(tare_error_prefix(import_table(model, source, restore), "table %s", restore->target->name));
    }
    return TARE_OK;
}
