/* Ranges by what they depend on: the edge and the settings. */
#include "quant/range_cache.h"

#include "quant/layer.h"

#include <string.h>

/* What a range depends on; zeroed before it is set, so that equal keys have equal bytes. */
struct range_key {
    const struct tare_node *node;
    size_t output;
    struct tare_algorithm_choice algorithm;
    struct tare_qscheme scheme;
    int64_t entry; /* of its counter; below 0: all */
};

struct cached_range {
    struct range_key key;
    bool found;
    double low, high;
};

static void set_key(struct range_key *key, struct tare_edge edge, int64_t entry,
                    const struct tare_quant_setting *setting) {
    const struct tare_qscheme scheme = tare_quant_activation_scheme(setting);
    memset(key, 0, sizeof *key);
    key->node = edge.node;
    key->entry = entry;
    key->output = (size_t)edge.index;
    memcpy(&key->algorithm, &setting->algorithm, sizeof key->algorithm);
    key->scheme.bits = scheme.bits;
    key->scheme.symmetric = scheme.symmetric;
    key->scheme.narrow = scheme.narrow;
    key->scheme.format = scheme.format;
}

static tare_status search(struct cached_range **out, struct tare_quant_range_cache *cache,
                          const struct tare_quant_ranges *ranges, const struct range_key *key, struct tare_edge edge,
                          const struct tare_quant_setting *setting) {
    struct cached_range *range = TARE_NEW(cache->arena, struct cached_range);
    if (!range) return TARE_NO_MEMORY;
    memcpy(&range->key, key, sizeof *key);
    cache->searches++;
    TARE_TRY(key->entry < 0 ? ranges->find(ranges->arg, edge, setting, &range->found, &range->low, &range->high)
                            : ranges->find_entry(ranges->arg, edge, key->entry, setting, &range->found, &range->low,
                                                 &range->high));
    if (!tare_map_set_n(&cache->ranges, (const char *)&range->key, sizeof range->key, range)) return TARE_NO_MEMORY;
    *out = range;
    return TARE_OK;
}

tare_status tare_quant_find_range(bool *found, double *low, double *high, struct tare_quant_range_cache *cache,
                                  const struct tare_quant_ranges *ranges, struct tare_edge edge,
                                  const struct tare_quant_setting *setting) {
    return tare_quant_find_entry_range(found, low, high, cache, ranges, edge, -1, setting);
}

tare_status tare_quant_find_entry_range(bool *found, double *low, double *high, struct tare_quant_range_cache *cache,
                                        const struct tare_quant_ranges *ranges, struct tare_edge edge, int64_t entry,
                                        const struct tare_quant_setting *setting) {
    struct range_key key;
    struct cached_range *range;
    *found = false;
    if (!ranges || !ranges->find || (entry >= 0 && !ranges->find_entry)) return TARE_OK;
    set_key(&key, edge, entry, setting);
    range = tare_map_get_n(&cache->ranges, (const char *)&key, sizeof key);
    if (!range) TARE_TRY(search(&range, cache, ranges, &key, edge, setting));
    *found = range->found;
    *low = range->low;
    *high = range->high;
    return TARE_OK;
}

void tare_quant_range_cache_close(struct tare_quant_range_cache *cache) {
    tare_map_free(&cache->ranges);
}
