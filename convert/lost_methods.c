/* Compares the methods of a file's root object with the functions that passes have left. */
#include "convert/lost_methods.h"
#include "convert/source.h"
#include "base/strbuf.h"

#include <string.h>

static bool remains(const struct tare_graph_model *model, const char *function) {
    for (size_t i = 0; i < model->n_concretes; i++)
        if (strcmp(model->concretes[i].graph->name, function) == 0) return true;
    return false;
}

/* Keras writes some that are for its own loader. */
static bool is_for_users(const char *name) {
    return strncmp(name, "call_and_return_", strlen("call_and_return_")) != 0 &&
           (*name != '_' || strcmp(name, "__call__") == 0);
}

/* Whether a function object had traces and has none of them left. */
static bool is_lost(const struct tare_graph_model *model, const Tensorflow__SavedObject *object) {
    const Tensorflow__SavedFunction *function =
        object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_FUNCTION ? object->function : NULL;
    for (size_t i = 0; function && i < function->n_concrete_functions; i++)
        if (remains(model, function->concrete_functions[i])) return false;
    return function && function->n_concrete_functions;
}

tare_status tare_lost_methods(const char **out, struct tare_arena *arena, const struct tare_graph_model *model) {
    enum { MOST_NAMED = 5 };
    const struct tare_saved_model *source = tare_source_of(model);
    const Tensorflow__SavedObjectGraph *objects = source ? source->meta->object_graph_def : NULL;
    const Tensorflow__SavedObject *root = objects && objects->n_nodes ? objects->nodes[0] : NULL;
    struct tare_strbuf text = { 0 };
    size_t lost = 0;
    *out = NULL;
    for (size_t i = 0; root && i < root->n_children; i++) {
        const Tensorflow__TrackableObjectGraph__TrackableObject__ObjectReference *child = root->children[i];
        if ((size_t)child->node_id >= objects->n_nodes || !is_for_users(child->local_name)) continue;
        if (!is_lost(model, objects->nodes[child->node_id])) continue;
        if (lost++ < MOST_NAMED) tare_strbuf_printf(&text, "%s%s", lost > 1 ? ", " : "", child->local_name);
    }
    if (lost > MOST_NAMED) tare_strbuf_printf(&text, " and %zu more", lost - MOST_NAMED);
    if (lost && !text.failed) *out = tare_arena_strdup(arena, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return lost && !*out ? TARE_NO_MEMORY : TARE_OK;
}
