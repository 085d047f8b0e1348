#include "graph/object_index.h"

tare_status tare_model_index_objects(struct tare_map *out, struct tare_arena *arena,
                                     const struct tare_graph_model *model) {
    for (size_t i = model->n_variables; i-- > 0;) { /* backwards, so that each list is in order */
        struct tare_object_variable *entry = TARE_NEW(arena, struct tare_object_variable);
        if (!entry) return TARE_NO_MEMORY;
        *entry = (struct tare_object_variable){ .id = model->variables[i].object_id, .variable = &model->variables[i] };
        if (entry->id < 0) continue;
        entry->next = tare_map_get_n(out, (const char *)&entry->id, sizeof entry->id);
        if (!tare_map_set_n(out, (const char *)&entry->id, sizeof entry->id, entry)) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

const struct tare_object_variable *tare_object_variables(const struct tare_map *index, int id) {
    return tare_map_get_n(index, (const char *)&id, sizeof id);
}
