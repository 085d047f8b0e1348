/* Reading nodes and functions one at a time. */
#include "convert/import/node_defs.h"
#include "base/alloc.h"

enum {
    GRAPH_NODE = 1,
    GRAPH_LIBRARY = 2,
    LIBRARY_FUNCTION = 1,
    FUNCTION_NODE = 3,
    NODE_ATTR = 5,
    GRAPH_DEPTH = 2, /* messages around a GraphDef: the SavedModel, the MetaGraphDef */
};

/* ---- where they are ---- */

static struct tare_node_defs on_wire(const struct tare_message_part *parts, size_t n_parts, uint32_t field,
                                     const struct tare_wire_graph *wire, int depth) {
    struct tare_node_defs all = { .parts = parts, .n_parts = n_parts, .field = field, .reading = wire->reading };
    all.reading.depth = depth;
    return all;
}

struct tare_node_defs tare_node_defs_of_graph(const Tensorflow__GraphDef *graph, const struct tare_wire_graph *wire) {
    if (wire) return on_wire(wire->parts, wire->n_parts, GRAPH_NODE, wire, GRAPH_DEPTH + 1);
    return (struct tare_node_defs){ .defs = graph->node, .n_defs = graph->n_node };
}

struct tare_node_defs tare_node_defs_of_function(const Tensorflow__FunctionDef *function,
                                                 const struct tare_message_part *part,
                                                 const struct tare_wire_graph *wire) {
    if (part) return on_wire(part, 1, FUNCTION_NODE, wire, GRAPH_DEPTH + 3);
    return (struct tare_node_defs){ .defs = function->node_def, .n_defs = function->n_node_def };
}

/* ---- from the first to the last ---- */

/* The next field `all->field`; data NULL at the end. */
static tare_status next_part(struct tare_message_part *out, struct tare_node_walk *walk) {
    const struct tare_node_defs *all = walk->all;
    for (;;) {
        uint32_t field;
        TARE_TRY(tare_message_next(&field, out, &walk->rest, &all->reading));
        if (field == all->field && out->data) return TARE_OK;
        if (field) continue;
        *out = (struct tare_message_part){ NULL, 0 };
        if (walk->at == all->n_parts) return TARE_OK;
        walk->rest = all->parts[walk->at++];
    }
}

static bool leave_attrs(void *arg, ProtobufCMessage *parent, uint32_t field, struct tare_message_part part) {
    (void)arg;
    (void)part;
    return field == NODE_ATTR && parent->descriptor == &tensorflow__node_def__descriptor;
}

tare_status tare_node_walk_next(struct tare_node_walk *walk) {
    const struct tare_node_defs *all = walk->all;
    struct tare_message_reading reading = all->reading;
    ProtobufCMessage *message;
    walk->def = NULL;
    if (!all->parts) {
        if (walk->at < all->n_defs) walk->def = all->defs[walk->at++];
        return TARE_OK;
    }
    TARE_TRY(next_part(&walk->wire, walk));
    if (!walk->wire.data) return TARE_OK;
    if (walk->without_attrs) reading.leave = leave_attrs;
    tare_arena_reset(&walk->scratch);
    TARE_TRY(
        tare_message_unpack_part(&message, &tensorflow__node_def__descriptor, &walk->scratch, walk->wire, &reading));
    walk->def = (const Tensorflow__NodeDef *)message;
    return TARE_OK;
}

void tare_node_walk_end(struct tare_node_walk *walk) {
    tare_arena_free(&walk->scratch);
}

tare_status tare_node_defs_count(size_t *out, const struct tare_node_defs *all) {
    struct tare_node_walk walk = { .all = all };
    struct tare_message_part part;
    *out = all->n_defs;
    if (!all->parts) return TARE_OK;
    for (;; ++*out) {
        TARE_TRY(next_part(&part, &walk));
        if (!part.data) return TARE_OK;
    }
}

struct tare_message_part tare_node_attr_bytes(const struct tare_message_part *node) {
    const struct tare_message_reading reading = { .start = node->data, .what = "a node" };
    const struct tare_message_part none = { NULL, 0 };
    struct tare_message_part rest = *node, payload, found = none;
    for (;;) {
        const uint8_t *from = rest.data;
        uint32_t field;
        if (tare_message_next(&field, &payload, &rest, &reading) != TARE_OK) return none;
        if (!field) return found;
        if (field != NODE_ATTR) continue;
        if (!found.data) found.data = from;
        if (found.data + found.size != from) return none;
        found.size += (size_t)(rest.data - from);
    }
}

/* ---- functions ---- */

static bool leave_nodes(void *arg, ProtobufCMessage *parent, uint32_t field, struct tare_message_part part) {
    (void)arg;
    (void)part;
    return field == FUNCTION_NODE && parent->descriptor == &tensorflow__function_def__descriptor;
}

tare_status tare_function_def_read(Tensorflow__FunctionDef **out, struct tare_arena *arena,
                                   const struct tare_message_part *part, const struct tare_wire_graph *wire) {
    struct tare_message_reading reading = wire->reading;
    ProtobufCMessage *message;
    reading.depth = GRAPH_DEPTH + 2;
    reading.leave = leave_nodes;
    TARE_TRY(tare_message_unpack_part(&message, &tensorflow__function_def__descriptor, arena, *part, &reading));
    *out = (Tensorflow__FunctionDef *)message;
    return TARE_OK;
}

/* ---- listing ---- */

static tare_status check_nodes(const struct tare_node_defs *all) {
    struct tare_node_walk walk = { .all = all };
    tare_status status;
    do
        status = tare_node_walk_next(&walk);
    while (status == TARE_OK && walk.def);
    tare_node_walk_end(&walk);
    return status;
}

static tare_status check_function(const struct tare_wire_graph *wire, const struct tare_message_part *part) {
    const struct tare_node_defs nodes = tare_node_defs_of_function(NULL, part, wire);
    struct tare_arena scratch = { 0 };
    Tensorflow__FunctionDef *function;
    tare_status status = tare_function_def_read(&function, &scratch, part, wire);
    tare_arena_free(&scratch);
    return status == TARE_OK ? check_nodes(&nodes) : status;
}

static tare_status list_functions(struct tare_wire_graph *wire, struct tare_message_part library) {
    for (;;) {
        struct tare_message_part part;
        uint32_t field;
        TARE_TRY(tare_message_next(&field, &part, &library, &wire->reading));
        if (!field) return TARE_OK;
        if (field != LIBRARY_FUNCTION || !part.data) continue;
        if (!TARE_GROW(wire->functions, wire->n_functions, wire->functions_capacity)) return TARE_NO_MEMORY;
        wire->functions[wire->n_functions++] = part;
        TARE_TRY(check_function(wire, &part));
    }
}

static bool leave_most(void *arg, ProtobufCMessage *parent, uint32_t field, struct tare_message_part part) {
    (void)arg;
    (void)part;
    if (parent->descriptor == &tensorflow__graph_def__descriptor) return field == GRAPH_NODE;
    return parent->descriptor == &tensorflow__function_def_library__descriptor && field == LIBRARY_FUNCTION;
}

/* The parts of a GraphDef other than nodes and functions. */
static tare_status check_rest(const struct tare_wire_graph *wire, struct tare_message_part part) {
    struct tare_message_reading reading = wire->reading;
    struct tare_arena scratch = { 0 };
    ProtobufCMessage *message;
    tare_status status;
    reading.depth = GRAPH_DEPTH;
    reading.leave = leave_most;
    status = tare_message_unpack_part(&message, &tensorflow__graph_def__descriptor, &scratch, part, &reading);
    tare_arena_free(&scratch);
    return status;
}

tare_status tare_wire_graph_add(struct tare_wire_graph *wire, struct tare_message_part part) {
    struct tare_message_part rest = part, payload;
    const struct tare_node_defs nodes = on_wire(&part, 1, GRAPH_NODE, wire, GRAPH_DEPTH + 1);
    uint32_t field;
    TARE_TRY(check_rest(wire, part));
    TARE_TRY(check_nodes(&nodes));
    for (;;) {
        TARE_TRY(tare_message_next(&field, &payload, &rest, &wire->reading));
        if (!field) break;
        if (field == GRAPH_LIBRARY && payload.data) TARE_TRY(list_functions(wire, payload));
    }
    if (!TARE_GROW(wire->parts, wire->n_parts, wire->parts_capacity)) return TARE_NO_MEMORY;
    wire->parts[wire->n_parts++] = part;
    return TARE_OK;
}

void tare_wire_graph_free(struct tare_wire_graph *wire) {
    tare_free(wire->parts);
    tare_free(wire->functions);
    *wire = (struct tare_wire_graph){ 0 };
}
