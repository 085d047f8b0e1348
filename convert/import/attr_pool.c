/* Tables of texts, shapes and attribute lists. */
#include "convert/import/attr_pool.h"

#include <string.h>

enum {
    LONGEST = 1024,     /* bytes of attributes worth a look */
    FIRST_LISTS = 4096, /* kept whatever they are; beyond, every list must have saved another one */
};

void tare_attr_pool_end(struct tare_attr_pool *pool) {
    tare_map_free(&pool->texts);
    tare_map_free(&pool->shapes);
    tare_map_free(&pool->lists);
    tare_map_free(&pool->args);
    tare_arena_free(&pool->own);
}

const char *tare_attr_pool_text(struct tare_attr_pool *pool, const char *text) {
    const char *copy = tare_map_get(&pool->texts, text);
    if (copy) return copy;
    copy = tare_arena_strdup(pool->arena, text);
    return copy && tare_map_set(&pool->texts, copy, (char *)(uintptr_t)copy) ? copy : NULL;
}

const struct tare_shape *tare_attr_pool_shape(struct tare_attr_pool *pool, const struct tare_shape *shape) {
    struct tare_shape key;
    struct tare_shape *copy;
    memset(&key, 0, sizeof key); /* what the rank leaves unused counts as zeros */
    key.rank = shape->rank;
    for (int i = 0; i < shape->rank; i++)
        key.dims[i] = shape->dims[i];
    copy = tare_map_get_n(&pool->shapes, (const char *)&key, sizeof key);
    if (copy) return copy;
    copy = tare_arena_extend(pool->arena, &key, 1, 0, sizeof key);
    return copy && tare_map_set_n(&pool->shapes, (const char *)copy, sizeof *copy, copy) ? copy : NULL;
}

struct tare_node *tare_attr_pool_arg(struct tare_attr_pool *pool, struct tare_graph *graph, const char *name,
                                     int dtype) {
    const int64_t key[] = { dtype, (int64_t)graph->n_args };
    const struct tare_node *like = tare_map_get_n(&pool->args, (const char *)key, sizeof key);
    struct tare_node *arg;
    int64_t *kept;
    if (like) return tare_graph_add_arg_like(graph, name, like);
    kept = tare_arena_extend(&pool->own, key, 2, 0, sizeof *key);
    arg = kept ? tare_graph_add_arg(graph, name, dtype) : NULL;
    return arg && tare_map_set_n(&pool->args, (const char *)kept, sizeof key, arg) ? arg : NULL;
}

struct tare_shared_attrs *tare_attr_pool_list(struct tare_attr_pool *pool, struct tare_message_part bytes,
                                              tare_status *status) {
    struct tare_shared_attrs *entry;
    *status = TARE_OK;
    if (!bytes.data || bytes.size > LONGEST) return NULL;
    entry = tare_map_get_n(&pool->lists, (const char *)bytes.data, bytes.size);
    if (entry) {
        pool->hits++;
        return entry;
    }
    if (pool->lists.count >= FIRST_LISTS && pool->lists.count > pool->hits) return NULL;
    entry = TARE_NEW(&pool->own, struct tare_shared_attrs);
    if (entry && tare_map_set_n(&pool->lists, (const char *)bytes.data, bytes.size, entry)) return entry;
    *status = TARE_NO_MEMORY;
    return NULL;
}
