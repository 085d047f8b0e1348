/* Features of records: decoding of examples, in which a sequence example is the general case. */
#include "datasets/features.h"
#include "base/map.h"
#include "proto/message.h"
#include "proto/tensorflow/example.pb-c.h"

#include <float.h>
#include <string.h>

/* Collects the values of all steps of a feature into one tensor. */
struct gathering {
    struct tare_arena *arena;
    Tensorflow__Feature *const *steps;
    size_t count;
    int64_t *lengths;
    int64_t total;
};

static int dtype_of(const Tensorflow__Feature *feature) {
    switch (feature->kind_case) {
    case TENSORFLOW__FEATURE__KIND_BYTES_LIST:
        return TARE_DT_STRING;
    case TENSORFLOW__FEATURE__KIND_FLOAT_LIST:
        return TARE_DT_FLOAT;
    case TENSORFLOW__FEATURE__KIND_INT64_LIST:
        return TARE_DT_INT64;
    default:
        return TARE_DT_INVALID;
    }
}

static size_t length_of(const Tensorflow__Feature *feature) {
    switch (feature->kind_case) {
    case TENSORFLOW__FEATURE__KIND_BYTES_LIST:
        return feature->bytes_list->n_value;
    case TENSORFLOW__FEATURE__KIND_FLOAT_LIST:
        return feature->float_list->n_value;
    case TENSORFLOW__FEATURE__KIND_INT64_LIST:
        return feature->int64_list->n_value;
    default:
        return 0;
    }
}

static void copy_values(void *to, const Tensorflow__Feature *feature) {
    size_t count = length_of(feature);
    struct tare_str *strings = to;
    if (!count) return;
    switch (feature->kind_case) {
    case TENSORFLOW__FEATURE__KIND_FLOAT_LIST:
        memcpy(to, feature->float_list->value, count * sizeof(float));
        break;
    case TENSORFLOW__FEATURE__KIND_INT64_LIST:
        memcpy(to, feature->int64_list->value, count * sizeof(int64_t));
        break;
    default:
        for (size_t i = 0; i < count; i++) {
            const ProtobufCBinaryData *value = &feature->bytes_list->value[i];
            strings[i] = (struct tare_str){ value->len ? (const char *)value->data : "", value->len };
        }
    }
}

/* The type of all steps; steps without a list are compatible with any type. */
static tare_status find_type(int *dtype, const struct gathering *g, const char *key) {
    *dtype = TARE_DT_INVALID;
    for (size_t i = 0; i < g->count; i++) {
        int step = dtype_of(g->steps[i]);
        if (step == TARE_DT_INVALID || step == *dtype) continue;
        if (*dtype != TARE_DT_INVALID)
            return TARE_FAIL(TARE_TYPE, "feature list '%s': step %zu has %s (expected %s as in earlier steps)", key, i,
                             tare_dtype_name(step), tare_dtype_name(*dtype));
        *dtype = step;
    }
    return TARE_OK;
}

static tare_status gather(struct tare_feature *out, struct gathering *g, const char *key) {
    struct tare_shape shape;
    size_t element;
    char *data;
    int dtype;
    TARE_TRY(find_type(&dtype, g, key));
    out->key = key;
    out->from_example = true;
    if (dtype == TARE_DT_INVALID && g->count) return TARE_OK; /* absent */
    if (dtype == TARE_DT_INVALID) dtype = TARE_DT_FLOAT;      /* no steps: elements of any type */
    g->lengths = TARE_NEW_ARRAY(g->arena, int64_t, g->count + 1);
    if (!g->lengths) return TARE_NO_MEMORY;
    for (size_t i = 0; i < g->count; i++)
        g->total += g->lengths[i] = (int64_t)length_of(g->steps[i]);
    element = tare_dtype_size(dtype);
    data = tare_arena_calloc(g->arena, (size_t)g->total + 1, element);
    if (!data) return TARE_NO_MEMORY;
    shape = (struct tare_shape){ .rank = 1, .dims = { g->total } };
    TARE_TRY(tare_tensor_wrap(&out->values, dtype, &shape, data, NULL, NULL));
    for (size_t i = 0; i < g->count; i++) {
        copy_values(data, g->steps[i]);
        data += (size_t)g->lengths[i] * element;
    }
    return TARE_OK;
}

/* The slot of a key: a new one, or that of an earlier feature, which is replaced. */
static struct tare_feature *place_of(struct tare_features *features, struct tare_map *places, const char *key) {
    struct tare_feature *place = tare_map_get(places, key);
    if (!place) {
        place = &features->items[features->count];
        if (!tare_map_set(places, key, place)) return NULL;
        features->count++;
    }
    tare_tensor_reset(&place->values);
    *place = (struct tare_feature){ .key = key };
    return place;
}

static tare_status add(struct tare_features *out, struct tare_map *places, const char *key,
                       Tensorflow__Feature *const *steps, size_t count, bool is_list) {
    struct gathering g = { .arena = &out->arena, .steps = steps, .count = count };
    struct tare_feature *feature = place_of(out, places, key);
    if (!feature) return TARE_NO_MEMORY;
    TARE_TRY(gather(feature, &g, key));
    feature->is_list = is_list;
    feature->lengths = g.lengths;
    feature->steps = count;
    return TARE_OK;
}

static tare_status add_all(struct tare_features *out, const Tensorflow__Features *features,
                           const Tensorflow__FeatureLists *lists) {
    size_t count = (features ? features->n_feature : 0) + (lists ? lists->n_feature_list : 0);
    struct tare_map places = { 0 };
    tare_status status = TARE_OK;
    out->items = TARE_NEW_ARRAY(&out->arena, struct tare_feature, count + 1);
    if (!out->items) return TARE_NO_MEMORY;
    for (size_t i = 0; features && i < features->n_feature && status == TARE_OK; i++)
        status = add(out, &places, features->feature[i]->key, &features->feature[i]->value, 1, false);
    for (size_t i = 0; lists && i < lists->n_feature_list && status == TARE_OK; i++) {
        const Tensorflow__FeatureList *list = lists->feature_list[i]->value;
        status = add(out, &places, lists->feature_list[i]->key, list->feature, list->n_feature, true);
    }
    tare_map_free(&places);
    return status;
}

/* An Example is a SequenceExample without feature lists: the same field holds its features. */
tare_status tare_features_decode(struct tare_features *out, const void *data, size_t size) {
    ProtobufCMessage *parsed;
    const Tensorflow__SequenceExample *example;
    memset(out, 0, sizeof *out);
    TARE_TRY(
        tare_message_unpack(&parsed, &tensorflow__sequence_example__descriptor, &out->arena, data, size, "example"));
    example = (const Tensorflow__SequenceExample *)parsed;
    return add_all(out, example->context, example->feature_lists);
}

tare_status tare_features_of_sample(struct tare_features *out, const struct tare_sample *sample) {
    memset(out, 0, sizeof *out);
    out->items = TARE_NEW_ARRAY(&out->arena, struct tare_feature, sample->count + 1);
    if (!out->items) return TARE_NO_MEMORY;
    for (size_t i = 0; i < sample->count; i++) {
        struct tare_feature *feature = &out->items[i];
        feature->key = tare_arena_strdup(&out->arena, sample->keys[i]);
        if (!feature->key) return TARE_NO_MEMORY;
        tare_tensor_share(&feature->values, &sample->values[i]);
        out->count++;
    }
    return TARE_OK;
}

/* A new feature after the last one, which the caller counts; NULL: no memory. */
static struct tare_feature *next_place(struct tare_features *features, const char *key) {
    struct tare_feature *items =
        tare_arena_append(&features->arena, features->items, features->count, sizeof *features->items);
    struct tare_feature *feature;
    if (!items) return NULL;
    features->items = items;
    feature = &items[features->count];
    feature->key = tare_arena_strdup(&features->arena, key);
    feature->from_example = true;
    return feature->key ? feature : NULL;
}

static tare_status add_one(struct tare_features *features, const char *key, int dtype, const void *value) {
    const struct tare_shape one = { .rank = 1, .dims = { 1 } };
    struct tare_feature *feature = next_place(features, key);
    if (!feature) return TARE_NO_MEMORY;
    TARE_TRY(tare_tensor_wrap(&feature->values, dtype, &one, value, NULL, NULL));
    features->count++;
    return TARE_OK;
}

tare_status tare_features_add_absent(struct tare_features *features, const char *key, int dtype) {
    struct tare_feature *feature = next_place(features, key);
    if (!feature) return TARE_NO_MEMORY;
    feature->absent = dtype;
    features->count++;
    return TARE_OK;
}

tare_status tare_features_add_invalid(struct tare_features *features, const char *key, const char *reason) {
    struct tare_feature *feature = reason ? next_place(features, key) : NULL;
    if (!feature) return TARE_NO_MEMORY;
    feature->reason = reason;
    features->count++;
    return TARE_OK;
}

tare_status tare_features_add_bytes(struct tare_features *features, const char *key, const void *data, size_t size) {
    struct tare_str *text = TARE_NEW(&features->arena, struct tare_str);
    const char *copy = text ? tare_arena_strndup(&features->arena, data, size) : NULL;
    if (!copy) return TARE_NO_MEMORY;
    *text = (struct tare_str){ copy, size };
    return add_one(features, key, TARE_DT_STRING, text);
}

tare_status tare_features_add_text(struct tare_features *features, const char *key, const void *data, size_t size,
                                   const char *reason) {
    TARE_TRY(tare_features_add_bytes(features, key, data, size));
    features->items[features->count - 1].reason = reason;
    return TARE_OK;
}

tare_status tare_features_add_int(struct tare_features *features, const char *key, int64_t value) {
    int64_t *copy = TARE_NEW(&features->arena, int64_t);
    if (!copy) return TARE_NO_MEMORY;
    *copy = value;
    return add_one(features, key, TARE_DT_INT64, copy);
}

tare_status tare_features_add_float(struct tare_features *features, const char *key, float value) {
    float *copy = TARE_NEW(&features->arena, float);
    if (!copy) return TARE_NO_MEMORY;
    *copy = value;
    return add_one(features, key, TARE_DT_FLOAT, copy);
}

void tare_features_reset(struct tare_features *features) {
    for (size_t i = 0; i < features->count; i++)
        tare_tensor_reset(&features->items[i].values);
    tare_arena_free(&features->arena);
    memset(features, 0, sizeof *features);
}

const struct tare_feature *tare_features_find(const struct tare_features *features, const char *key) {
    for (size_t i = 0; i < features->count; i++)
        if (features->items[i].values.dtype != TARE_DT_INVALID && strcmp(features->items[i].key, key) == 0)
            return &features->items[i];
    return NULL;
}

static bool is_invalid(const struct tare_feature *feature) {
    return feature->reason && feature->values.dtype == TARE_DT_INVALID;
}

static tare_status report_invalid(const struct tare_feature *feature) {
    return TARE_FAIL(TARE_TYPE, "%s does not fit float32 (expected -%g to %g)", feature->reason, (double)FLT_MAX,
                     (double)FLT_MAX);
}

tare_status tare_features_check(const struct tare_features *features, const char *key) {
    for (size_t i = 0; i < features->count; i++)
        if (is_invalid(&features->items[i]) && strcmp(features->items[i].key, key) == 0)
            return report_invalid(&features->items[i]);
    return TARE_OK;
}

int tare_features_dtype(const struct tare_features *features, const char *key) {
    for (size_t i = 0; i < features->count; i++) {
        const struct tare_feature *feature = &features->items[i];
        if (strcmp(feature->key, key) == 0)
            return feature->values.dtype != TARE_DT_INVALID ? feature->values.dtype : feature->absent;
    }
    return TARE_DT_INVALID;
}

/* [steps, length] if all steps have equal lengths. */
static struct tare_shape shape_of(const struct tare_feature *feature) {
    if (!feature->is_list || feature->steps == 0) return feature->values.shape;
    for (size_t i = 1; i < feature->steps; i++)
        if (feature->lengths[i] != feature->lengths[0]) return feature->values.shape;
    return (struct tare_shape){ .rank = 2, .dims = { (int64_t)feature->steps, feature->lengths[0] } };
}

tare_status tare_features_to_sample(struct tare_sample *out, const struct tare_features *features) {
    memset(out, 0, sizeof *out);
    out->keys = TARE_NEW_ARRAY(&out->arena, const char *, features->count + 1);
    out->values = TARE_NEW_ARRAY(&out->arena, struct tare_tensor, features->count + 1);
    if (!out->keys || !out->values) return TARE_NO_MEMORY;
    for (size_t i = 0; i < features->count; i++) {
        const struct tare_feature *feature = &features->items[i];
        struct tare_shape shape = shape_of(feature);
        if (is_invalid(feature)) return report_invalid(feature);
        if (feature->values.dtype == TARE_DT_INVALID) continue;
        out->keys[out->count] = tare_arena_strdup(&out->arena, feature->key);
        if (!out->keys[out->count]) return TARE_NO_MEMORY;
        TARE_TRY(tare_tensor_copy(&out->values[out->count], &feature->values));
        out->values[out->count++].shape = shape;
    }
    return TARE_OK;
}
