/* Signal and noise of places. */
#include "workflow/bfloat16/places.h"
#include "base/spread.h"
#include "base/tensor/tensor.h"

#include <math.h>

enum { MOST_BYTES = 1 << 30 };

struct tare_bf16_place *tare_bf16_place_of(struct tare_bf16_places *places, const char *function, const char *name,
                                           bool adds) {
    const char *key = tare_arena_printf(places->arena, "%s\n%s", function, name);
    const uintptr_t found = key ? (uintptr_t)tare_map_get(&places->by_name, key) : 0;
    struct tare_bf16_place *grown;
    if (!key || found) return key ? &places->items[found - 1] : NULL;
    if (!adds) return NULL;
    grown = tare_arena_append(places->arena, places->items, places->count, sizeof *grown);
    function = tare_arena_strdup(places->arena, function);
    if (!grown || !function || !tare_map_set(&places->by_name, key, (void *)(uintptr_t)(places->count + 1)))
        return NULL;
    places->items = grown;
    places->items[places->count] = (struct tare_bf16_place){ .function = function, .name = name };
    return &places->items[places->count++];
}

static double squared_error(const struct tare_tensor *want, const struct tare_tensor *got) {
    double noise = 0;
    for (int64_t i = 0; i < want->elements; i++) {
        const double x = tare_tensor_get_f64(want, i), y = tare_tensor_get_f64(got, i);
        if (x != y && !(isnan(x) && isnan(y))) noise += isfinite(x - y) ? (x - y) * (x - y) : INFINITY;
    }
    return noise;
}

static bool same_shapes(const struct tare_bf16_place *place) {
    for (int r = 1; r < place->count; r++)
        if (!tare_shape_equal(&place->values[r].shape, &place->values[0].shape)) return false;
    return place->count > 1;
}

/* Of what a record stored; what is not finite is 0. */
static double finite_at(const struct tare_tensor *value, int64_t i) {
    const double x = tare_tensor_get_f64(value, i);
    return isfinite(x) ? x : 0;
}

/* The sum of squared distances from the mean over records, element by element; over all elements if records differ in
 * shape. */
static double signal_of(const struct tare_bf16_place *place) {
    struct tare_spread all = { 0 };
    double signal = 0;
    if (same_shapes(place)) {
        for (int64_t i = 0; i < place->values[0].elements; i++) {
            struct tare_spread own = { 0 };
            for (int r = 0; r < place->count; r++)
                tare_spread_add(&own, finite_at(&place->values[r], i));
            signal += own.squares;
        }
        return signal;
    }
    for (int r = 0; r < place->count; r++)
        for (int64_t i = 0; i < place->values[r].elements; i++)
            tare_spread_add(&all, finite_at(&place->values[r], i));
    return all.squares;
}

double tare_bf16_place_sqnr(const struct tare_bf16_place *place) {
    const double signal = place->compared ? signal_of(place) : 0;
    if (!place->compared || place->noise == 0 || signal <= 0) return 999;
    return 10 * log10(signal / place->noise);
}

tare_status tare_bf16_place_store(struct tare_bf16_places *places, struct tare_bf16_place *place, int record,
                                  const struct tare_tensor *value) {
    if (place->count != record || record >= TARE_BF16_RECORDS) return TARE_OK;
    places->bytes += tare_tensor_bytes(value);
    if (places->bytes > MOST_BYTES) return TARE_OK;
    return tare_tensor_copy(&place->values[place->count++], value);
}

void tare_bf16_place_compare(struct tare_bf16_place *place, int record, const struct tare_tensor *value) {
    if (place->compared != record || record >= place->count ||
        !tare_shape_equal(&value->shape, &place->values[record].shape))
        return;
    place->noise += squared_error(&place->values[record], value);
    place->compared++;
}

void tare_bf16_places_free(struct tare_bf16_places *places) {
    for (size_t i = 0; i < places->count; i++)
        for (int r = 0; r < places->items[i].count; r++)
            tare_tensor_reset(&places->items[i].values[r]);
    tare_map_free(&places->by_name);
}
