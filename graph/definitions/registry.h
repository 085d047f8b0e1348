/* The representation of a registry of op definitions, for the modules that fill one (the functions are in graph/op.h).
 */
#ifndef TARE_GRAPH_DEFINITIONS_REGISTRY_H
#define TARE_GRAPH_DEFINITIONS_REGISTRY_H

#include "base/map.h"
#include "graph/definitions/opspec.h"

struct tare_op_registry {
    const struct tare_op_registry *parent;
    struct tare_opspec_memory memory;
    struct tare_map by_name;
    /* Of a registry that parses its definitions when they are looked up: the definition, NULL if there is none. Without
     * a name it parses all of them and returns NULL. Takes a lock; NULL: `by_name` has all definitions. */
    const struct tare_op_def *(*look_up)(const char *name);
    const struct tare_op_def **defs; /* own definitions, with and without a row, in insertion order */
    size_t n_defs, defs_capacity;
    const void *attached;
    tare_status status; /* of parsing definitions; TARE_NO_MEMORY: ops are missing */
    char *error;        /* first built-in row or entry that does not parse; NULL: none */
};

#endif
