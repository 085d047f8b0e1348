/* Constants are looked up by their type and a few of their words, and compared where these agree: large ones are not
 * read. */
#include "graph/shared_constants.h"

#include "base/map.h"

#include <string.h>

enum { LEAST = 64, WORDS = 8 };

struct key {
    int64_t dtype, rank, dims[TARE_MAX_RANK];
    uint64_t words[WORDS]; /* from all parts of the value */
};

static const struct tare_tensor *value_of(const struct tare_node *node) {
    const bool is_free = !node->dead && tare_node_is(node, "Const") && node->n_controls == 0;
    const struct tare_tensor *value =
        is_free ? tare_edge_constant((struct tare_edge){ (struct tare_node *)node, 0 }) : NULL;
    const bool is_plain = value && value->dtype != TARE_DT_STRING && !value->splat;
    return is_plain && tare_tensor_bytes(value) >= LEAST ? value : NULL;
}

static void make_key(struct key *key, const struct tare_tensor *value) {
    const size_t bytes = tare_tensor_bytes(value);
    memset(key, 0, sizeof *key);
    key->dtype = value->dtype;
    key->rank = value->shape.rank;
    for (int i = 0; i < value->shape.rank; i++)
        key->dims[i] = value->shape.dims[i];
    for (size_t i = 0; i < WORDS; i++)
        memcpy(&key->words[i], (const char *)value->data + (bytes - sizeof *key->words) / (WORDS - 1) * i,
               sizeof *key->words);
}

static tare_status share(struct tare_map *known, struct tare_arena *arena, struct tare_node *node) {
    const struct tare_tensor *value = value_of(node);
    struct key *key = value ? TARE_NEW(arena, struct key) : NULL;
    if (!value) return TARE_OK;
    if (!key) return TARE_NO_MEMORY;
    make_key(key, value);
    struct tare_node *first = tare_map_get_n(known, (const char *)key, sizeof *key);
    if (!first) return tare_map_set_n(known, (const char *)key, sizeof *key, node) ? TARE_OK : TARE_NO_MEMORY;
    if (memcmp(value_of(first)->data, value->data, tare_tensor_bytes(value)) != 0) return TARE_OK;
    tare_graph_replace_uses(node->graph, (struct tare_edge){ node, 0 }, (struct tare_edge){ first, 0 }, NULL);
    return TARE_OK;
}

tare_status tare_graph_share_constants(struct tare_graph *graph) {
    struct tare_arena arena = { 0 };
    struct tare_map known = { 0 };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < graph->n_nodes && status == TARE_OK; i++)
        status = share(&known, &arena, graph->nodes[i]);
    tare_map_free(&known);
    tare_arena_free(&arena);
    return status;
}
