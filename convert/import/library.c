/* The function library of a file, read one function at a time.
 *
 * A model that is loaded for inspection has no messages in memory: its functions are decoded from the mapped file when
 * they are asked for (convert/import/node_defs.h). */
#include "convert/import/import.h"
#include "convert/source.h"

size_t tare_import_function_count(const struct tare_saved_model *source) {
    const Tensorflow__FunctionDefLibrary *library = source->meta->graph_def->library;
    if (source->wire) return source->wire->n_functions;
    return library ? library->n_function : 0;
}

tare_status tare_import_function(Tensorflow__FunctionDef **out, struct tare_node_defs *nodes,
                                 struct tare_arena *scratch, const struct tare_saved_model *source, size_t i) {
    const struct tare_message_part *part = source->wire ? &source->wire->functions[i] : NULL;
    if (part) {
        tare_arena_reset(scratch);
        TARE_TRY(tare_function_def_read(out, scratch, part, source->wire));
    } else {
        *out = source->meta->graph_def->library->function[i];
    }
    *nodes = tare_node_defs_of_function(*out, part, source->wire);
    return TARE_OK;
}
