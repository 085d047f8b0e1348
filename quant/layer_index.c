/* Hash tables of layers. Keys are bytes: a node's or variable's address, an edge's node and output index, or a hash of
 * a weight's values. Layers with the same key form a list, in the order of work->layers. */
#include "quant/layer_index.h"
#include "quant/selection/entries.h"

#include <string.h>

struct edge_key {
    const struct tare_node *node;
    size_t index; /* as wide as the pointer, so that the key has no padding */
};

/* Layers with integers of weights with the same hash. */
struct weight_list {
    uint64_t hash;
    struct weight_entry *first, *last;
};
struct weight_entry {
    const struct tare_quant_layer *layer;
    struct weight_entry *next;
};

struct shared_list {
    struct edge_key key;
    struct tare_quant_shared *first, *last;
};

struct tare_quant_layer_index {
    struct tare_map by_op, by_output, by_replaced, by_variable, by_observed, by_weight, shared;
};

static struct edge_key key_of(struct tare_edge edge) {
    return (struct edge_key){ edge.node, (size_t)edge.index };
}

/* Adds a value, unless the key has one. The key is copied. */
static tare_status add_first(struct tare_map *map, struct tare_arena *arena, const void *key, size_t size,
                             const void *value) {
    if (tare_map_get_n(map, key, size)) return TARE_OK;
    const char *copy = tare_arena_strndup(arena, key, size);
    return copy && tare_map_set_n(map, copy, size, (void *)(uintptr_t)value) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_edge(struct tare_map *map, struct tare_arena *arena, struct tare_edge edge,
                            const struct tare_quant_layer *layer) {
    const struct edge_key key = key_of(edge);
    return add_first(map, arena, &key, sizeof key, layer);
}

static const struct tare_quant_layer *get_edge(const struct tare_map *map, struct tare_edge edge) {
    const struct edge_key key = key_of(edge);
    return tare_map_get_n(map, (const char *)&key, sizeof key);
}

/* From the last layer to the first, so that each list is in order. */
static tare_status add_readers(struct tare_quant_layer_index *index, struct tare_quant_work *work) {
    for (size_t i = work->n_layers; i-- > 0;) {
        struct tare_quant_layer *layer = &work->layers[i];
        if (!layer->variable) continue;
        layer->next_reader =
            tare_map_get_n(&index->by_variable, (const char *)&layer->variable, sizeof layer->variable);
        if (!tare_map_set_n(&index->by_variable, (const char *)&layer->variable, sizeof layer->variable, layer))
            return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status add_users(struct tare_quant_layer_index *index, struct tare_quant_work *work) {
    for (size_t i = work->n_layers; i-- > 0;) {
        struct tare_quant_layer *layer = &work->layers[i];
        struct edge_key *key = TARE_NEW(work->arena, struct edge_key);
        if (!key) return TARE_NO_MEMORY;
        *key = key_of(layer->observed);
        layer->next_user = tare_map_get_n(&index->by_observed, (const char *)key, sizeof *key);
        if (!tare_map_set_n(&index->by_observed, (const char *)key, sizeof *key, layer)) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

tare_status tare_quant_layer_index_new(struct tare_quant_layer_index **out, struct tare_quant_work *work) {
    struct tare_quant_layer_index *index = *out = TARE_NEW(work->arena, struct tare_quant_layer_index);
    if (!index) return TARE_NO_MEMORY;
    for (size_t i = 0; i < work->n_layers; i++) {
        const struct tare_quant_layer *layer = &work->layers[i];
        TARE_TRY(add_first(&index->by_op, work->arena, &layer->op, sizeof layer->op, layer));
        TARE_TRY(add_edge(&index->by_output, work->arena, layer->output, layer));
    }
    TARE_TRY(add_users(index, work));
    return add_readers(index, work);
}

void tare_quant_layer_index_free(struct tare_quant_layer_index *index) {
    if (!index) return;
    tare_map_free(&index->by_op);
    tare_map_free(&index->by_output);
    tare_map_free(&index->by_replaced);
    tare_map_free(&index->by_variable);
    tare_map_free(&index->by_observed);
    tare_map_free(&index->by_weight);
    tare_map_free(&index->shared);
}

const struct tare_quant_layer *tare_quant_layer_of(const struct tare_quant_work *work, const struct tare_node *op) {
    return tare_map_get_n(&work->index->by_op, (const char *)&op, sizeof op);
}

const struct tare_quant_layer *tare_quant_layer_with_output(const struct tare_quant_work *work, struct tare_edge edge) {
    return get_edge(&work->index->by_output, edge);
}

const struct tare_quant_layer *tare_quant_layer_replaced_by(const struct tare_quant_work *work, struct tare_edge edge) {
    return get_edge(&work->index->by_replaced, edge);
}

const struct tare_quant_layer *tare_quant_first_reader(const struct tare_quant_work *work,
                                                       const struct tare_variable *variable) {
    return tare_map_get_n(&work->index->by_variable, (const char *)&variable, sizeof variable);
}

const struct tare_quant_layer *tare_quant_first_user(const struct tare_quant_work *work, struct tare_edge edge) {
    return get_edge(&work->index->by_observed, edge);
}

/* ---- weights ---- */

static uint64_t add_word(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

/* FNV-1a over the values, eight bytes at a time. Equal weights have equal hashes; tare_quant_same_integers resolves
 * collisions. */
static uint64_t hash_of(const struct tare_tensor *weight) {
    const unsigned char *bytes = weight->data;
    size_t size = weight->splat ? tare_dtype_size(weight->dtype) : tare_tensor_bytes(weight);
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)weight->elements;
    uint64_t word;
    for (; size >= 8; bytes += 8, size -= 8) {
        memcpy(&word, bytes, sizeof word);
        hash = add_word(hash, word);
    }
    word = 0;
    memcpy(&word, bytes, size);
    return size ? add_word(hash, word) : hash;
}

static uint64_t hash_of_layer(struct tare_quant_layer *layer) {
    if (!layer->weight_hash) layer->weight_hash = hash_of(layer->weight);
    return layer->weight_hash;
}

const struct tare_quant_layer *tare_quant_same_weight(const struct tare_quant_work *work,
                                                      struct tare_quant_layer *layer) {
    const uint64_t hash = hash_of_layer(layer);
    const struct weight_list *list = tare_map_get_n(&work->index->by_weight, (const char *)&hash, sizeof hash);
    for (const struct weight_entry *entry = list ? list->first : NULL; entry; entry = entry->next)
        if (tare_quant_same_integers(entry->layer, layer)) return entry->layer;
    return NULL;
}

static tare_status add_weight(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    const uint64_t hash = hash_of_layer(layer);
    struct weight_list *list = tare_map_get_n(&work->index->by_weight, (const char *)&hash, sizeof hash);
    struct weight_entry *entry = TARE_NEW(work->arena, struct weight_entry);
    if (!entry) return TARE_NO_MEMORY;
    entry->layer = layer;
    if (!list) {
        list = TARE_NEW(work->arena, struct weight_list);
        if (!list) return TARE_NO_MEMORY;
        list->hash = hash;
        if (!tare_map_set_n(&work->index->by_weight, (const char *)&list->hash, sizeof list->hash, list))
            return TARE_NO_MEMORY;
    }
    if (list->last)
        list->last->next = entry;
    else
        list->first = entry;
    list->last = entry;
    return TARE_OK;
}

tare_status tare_quant_index_rewritten(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    if (layer->replaced.node) TARE_TRY(add_edge(&work->index->by_replaced, work->arena, layer->replaced, layer));
    return layer->weight && !layer->variable && layer->integers.node && !layer->own_integers ? add_weight(work, layer)
                                                                                             : TARE_OK;
}

/* ---- activations that exist as integers ---- */

const struct tare_quant_shared *tare_quant_find_shared(const struct tare_quant_work *work,
                                                       const struct tare_quant_method *method, struct tare_edge real,
                                                       const struct tare_qparams *params) {
    const struct edge_key key = key_of(real);
    const struct shared_list *list = tare_map_get_n(&work->index->shared, (const char *)&key, sizeof key);
    for (const struct tare_quant_shared *shared = list ? list->first : NULL; shared; shared = shared->next)
        if (!shared->entries && shared->method == method && tare_quant_same_params(shared->params, params))
            return shared;
    return NULL;
}

const struct tare_quant_shared *tare_quant_find_shared_entries(const struct tare_quant_work *work,
                                                               struct tare_edge real,
                                                               const struct tare_quant_entries *entries) {
    const struct edge_key key = key_of(real);
    const struct shared_list *list = tare_map_get_n(&work->index->shared, (const char *)&key, sizeof key);
    for (const struct tare_quant_shared *shared = list ? list->first : NULL; shared; shared = shared->next)
        if (tare_quant_same_entries(shared->entries, entries)) return shared;
    return NULL;
}

tare_status tare_quant_add_shared(const struct tare_quant_shared **out, struct tare_quant_work *work,
                                  const struct tare_quant_shared *made) {
    const struct edge_key key = key_of(made->real);
    struct shared_list *list = tare_map_get_n(&work->index->shared, (const char *)&key, sizeof key);
    struct tare_quant_shared *added = TARE_NEW(work->arena, struct tare_quant_shared);
    if (!added) return TARE_NO_MEMORY;
    *added = *made;
    added->next = NULL;
    if (!list) {
        list = TARE_NEW(work->arena, struct shared_list);
        if (!list) return TARE_NO_MEMORY;
        list->key = key;
        if (!tare_map_set_n(&work->index->shared, (const char *)&list->key, sizeof list->key, list))
            return TARE_NO_MEMORY;
    }
    if (list->last)
        list->last->next = added;
    else
        list->first = added;
    list->last = added;
    *out = added;
    return TARE_OK;
}

bool tare_quant_only_feeds_integers(const struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    const size_t uses = tare_graph_count_uses(layer->op->graph, layer->output, NULL);
    size_t as_integers = 0;
    for (const struct tare_use *use = tare_edge_first_use(layer->output); use; use = tare_edge_next_use(use)) {
        const struct tare_quant_layer *user = tare_quant_layer_of(work, use->user);
        if (use->user->dead || !user || user->refused || user->setting.method != layer->setting.method ||
            user->kind == TARE_KIND_GATHER)
            continue;
        as_integers += use->input == user->left && tare_quant_same_params(&user->left_params, &layer->output_params);
        as_integers += !user->weight && use->input == user->right &&
                       tare_quant_same_params(&user->right_params, &layer->output_params);
    }
    return uses > 0 && uses == as_integers;
}
