/* Integer weights by constant and settings; see the header. A large bias increases the scales of a layer's weight,
 * which then depend on the range of its activation: such weights are neither stored nor taken from the store. */
#include "quant/weight_store.h"

#include <string.h>

/* Without padding between the members: it is compared as bytes. */
struct weight_key {
    const void *values;
    int64_t dtype, splat, rank, dims[TARE_MAX_RANK];
    int64_t batches, rows, columns, order[TARE_MAX_RANK], reversed;
    int64_t settings[TARE_WEIGHT_SETTINGS], is_table;
};

struct tare_stored_weight {
    struct weight_key key;
    struct tare_tensor constant; /* a share, so that no other constant can have its address */
    struct tare_quantized_weight quantized;
    uint64_t hash; /* of the constant, as in struct tare_quant_layer */
    double sqnr_db, channel_spread;
    struct tare_stored_weight *previous;
};

static bool is_storable(const struct tare_quant_weight_store *store, const struct tare_quant_layer *layer) {
    return store && layer->weight && !layer->held && !layer->own_integers && !layer->changed;
}

static struct weight_key key_of(const struct tare_quant_layer *layer) {
    const struct tare_quant_product *product = &layer->product;
    struct weight_key key = { .values = layer->weight->data,
                              .dtype = layer->weight->dtype,
                              .splat = layer->weight->splat,
                              .rank = product->arranged.rank,
                              .batches = product->batches,
                              .rows = product->rows,
                              .columns = product->columns,
                              .reversed = product->reversed,
                              .is_table = layer->kind == TARE_KIND_GATHER };
    tare_quant_weight_settings(key.settings, &layer->setting);
    for (int i = 0; i < TARE_MAX_RANK; i++) {
        key.dims[i] = i < product->arranged.rank ? product->arranged.dims[i] : 0;
        key.order[i] = product->order[i];
    }
    return key;
}

static double *copy_scales(struct tare_arena *arena, const struct tare_quantized_weight *weight) {
    double *scales = TARE_NEW_ARRAY(arena, double, (size_t)weight->n_scales + 1);
    if (scales) memcpy(scales, weight->scales, (size_t)weight->n_scales * sizeof *scales);
    return scales;
}

tare_status tare_quant_weight_store_find(bool *found, struct tare_quant_weight_store *store, struct tare_arena *arena,
                                         struct tare_quant_layer *layer) {
    const struct tare_stored_weight *stored = NULL;
    *found = false;
    if (is_storable(store, layer)) {
        const struct weight_key key = key_of(layer);
        stored = tare_map_get_n(&store->by_key, (const char *)&key, sizeof key);
    }
    if (!stored || !tare_quant_bias_has_room(layer, &stored->quantized)) return TARE_OK;
    layer->quantized = stored->quantized;
    layer->quantized.scales = copy_scales(arena, &stored->quantized);
    if (!layer->quantized.scales) return TARE_NO_MEMORY;
    tare_tensor_share(&layer->quantized.values, &stored->quantized.values);
    layer->weight_hash = stored->hash;
    layer->outcome->weight_sqnr_db = stored->sqnr_db;
    layer->outcome->channel_spread = stored->channel_spread;
    store->found++;
    *found = true;
    return TARE_OK;
}

tare_status tare_quant_weight_store_add(struct tare_quant_weight_store *store, struct tare_quant_layer *layer) {
    const size_t bytes = tare_tensor_bytes(&layer->quantized.values);
    struct tare_stored_weight *stored;
    /* Scales that this layer's bias has increased are those of no other layer. */
    if (!is_storable(store, layer) || layer->scales_for_bias || bytes > TARE_WEIGHT_STORE_BYTES - store->bytes)
        return TARE_OK;
    stored = TARE_NEW(&store->arena, struct tare_stored_weight);
    if (!stored) return TARE_NO_MEMORY;
    stored->key = key_of(layer);
    if (tare_map_get_n(&store->by_key, (const char *)&stored->key, sizeof stored->key)) return TARE_OK;
    stored->quantized = layer->quantized;
    stored->quantized.scales = copy_scales(&store->arena, &layer->quantized);
    if (!stored->quantized.scales ||
        !tare_map_set_n(&store->by_key, (const char *)&stored->key, sizeof stored->key, stored))
        return TARE_NO_MEMORY;
    tare_tensor_share(&stored->quantized.values, &layer->quantized.values);
    tare_tensor_share(&stored->constant, layer->weight);
    stored->hash = layer->weight_hash;
    stored->sqnr_db = layer->outcome->weight_sqnr_db;
    stored->channel_spread = layer->outcome->channel_spread;
    stored->previous = store->last;
    store->last = stored;
    store->bytes += bytes;
    return TARE_OK;
}

/* ---- squares ---- */

/* Without padding between the members: it is compared as bytes. */
struct squares_key {
    const void *values;
    int64_t dtype, splat, elements;
};

struct tare_stored_squares {
    struct squares_key key;
    struct tare_tensor constant; /* a share, so that no other constant can have its address */
    double squares;
    struct tare_stored_squares *previous;
};

static double sum_of_squares(const struct tare_tensor *weight) {
    const bool plain = weight->dtype == TARE_DT_FLOAT && !weight->splat;
    const float *values = weight->data;
    double sum = 0;
    for (int64_t i = 0; i < weight->elements; i++) {
        const double value = plain ? values[i] : tare_tensor_get_f64(weight, i);
        sum += value * value;
    }
    return sum;
}

tare_status tare_quant_weight_store_squares(double *out, struct tare_quant_weight_store *store,
                                            const struct tare_tensor *weight) {
    const struct squares_key key = { weight->data, weight->dtype, weight->splat, weight->elements };
    struct tare_stored_squares *stored = store ? tare_map_get_n(&store->squares, (const char *)&key, sizeof key) : NULL;
    *out = stored ? stored->squares : sum_of_squares(weight);
    if (stored || !store) return TARE_OK;
    stored = TARE_NEW(&store->arena, struct tare_stored_squares);
    if (!stored) return TARE_NO_MEMORY;
    stored->key = key;
    stored->squares = *out;
    if (!tare_map_set_n(&store->squares, (const char *)&stored->key, sizeof stored->key, stored)) return TARE_NO_MEMORY;
    tare_tensor_share(&stored->constant, weight);
    stored->previous = store->last_squares;
    store->last_squares = stored;
    return TARE_OK;
}

void tare_quant_weight_store_free(struct tare_quant_weight_store *store) {
    for (struct tare_stored_squares *stored = store->last_squares; stored; stored = stored->previous)
        tare_tensor_reset(&stored->constant);
    tare_map_free(&store->squares);
    for (struct tare_stored_weight *stored = store->last; stored; stored = stored->previous) {
        tare_tensor_reset(&stored->quantized.values);
        tare_tensor_reset(&stored->constant);
    }
    tare_map_free(&store->by_key);
    tare_arena_free(&store->arena);
    *store = (struct tare_quant_weight_store){ 0 };
}
