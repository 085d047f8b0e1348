/* RepresentativeDataSample records. */
#include "datasets/sample.h"
#include "base/alloc.h"
#include "base/map.h"
#include "proto/message.h"
#include "proto/tensor_message.h"
#include "proto/tensorflow/representative_data.pb-c.h"

#include <string.h>

enum {
    LARGEST_EXPANSION = 1 << 28,
    FEW =
        16, /* number of keys that are searched linearly; more are hashed, which bounds the time for hostile records */
};

typedef Tensorflow__Quantization__RepresentativeDataSample sample_message;

/* The slot of a key: a new one, or that of an earlier duplicate, which is replaced. NULL: out of memory. */
static struct tare_tensor *place_of(struct tare_sample *sample, struct tare_map *places, const char *key) {
    struct tare_tensor *place = places ? tare_map_get(places, key) : NULL;
    for (size_t i = 0; !places && !place && i < sample->count; i++)
        if (strcmp(sample->keys[i], key) == 0) place = &sample->values[i];
    if (!place) {
        place = &sample->values[sample->count];
        if (places && !tare_map_set(places, key, place)) return NULL;
        sample->keys[sample->count++] = key;
    }
    tare_tensor_reset(place);
    return place;
}

/* Expands a splat for kernels, up to a bound: a few bytes can describe many elements. */
static tare_status expand(struct tare_tensor *value) {
    struct tare_tensor whole;
    if (!value->splat) return TARE_OK;
    if (tare_tensor_bytes(value) > LARGEST_EXPANSION)
        return TARE_FAIL(TARE_SHAPE, "one value is repeated for %lld elements (expected at most %d bytes)",
                         (long long)value->elements, LARGEST_EXPANSION);
    TARE_TRY(tare_tensor_copy(&whole, value));
    tare_tensor_reset(value);
    *value = whole;
    return TARE_OK;
}

static tare_status decode_values(struct tare_sample *out, const sample_message *message, struct tare_map *places) {
    for (size_t i = 0; i < message->n_tensor_proto_inputs; i++) {
        const Tensorflow__TensorEntry *entry = message->tensor_proto_inputs[i];
        struct tare_tensor *value = place_of(out, places, entry->key);
        tare_status status = value ? tare_tensor_from_message(value, entry->value, TARE_TENSOR_COPY) : TARE_NO_MEMORY;
        if (status == TARE_OK) status = expand(value);
        TARE_TRY(tare_error_prefix(status, "input %s", entry->key));
    }
    return TARE_OK;
}

tare_status tare_sample_decode(struct tare_sample *out, const void *data, size_t size) {
    struct tare_map places = { 0 };
    ProtobufCMessage *parsed;
    const sample_message *message;
    tare_status status;
    memset(out, 0, sizeof *out);
    TARE_TRY(tare_message_unpack(&parsed, &tensorflow__quantization__representative_data_sample__descriptor,
                                 &out->arena, data, size, "sample"));
    message = (const sample_message *)parsed;
    out->keys = TARE_NEW_ARRAY(&out->arena, const char *, message->n_tensor_proto_inputs + 1);
    out->values = TARE_NEW_ARRAY(&out->arena, struct tare_tensor, message->n_tensor_proto_inputs + 1);
    if (!out->keys || !out->values) return TARE_NO_MEMORY;
    status = decode_values(out, message, message->n_tensor_proto_inputs > FEW ? &places : NULL);
    tare_map_free(&places);
    return status;
}

void tare_sample_reset(struct tare_sample *sample) {
    for (size_t i = 0; i < sample->count; i++)
        tare_tensor_reset(&sample->values[i]);
    tare_arena_free(&sample->arena);
    memset(sample, 0, sizeof *sample);
}

const struct tare_tensor *tare_sample_find(const struct tare_sample *sample, const char *key) {
    for (size_t i = 0; i < sample->count; i++)
        if (strcmp(sample->keys[i], key) == 0) return &sample->values[i];
    return NULL;
}

tare_status tare_sample_encode(void **data, size_t *size, const char *const *keys, const struct tare_tensor *values,
                               size_t count) {
    struct tare_arena arena = { 0 };
    sample_message message = TENSORFLOW__QUANTIZATION__REPRESENTATIVE_DATA_SAMPLE__INIT;
    uint8_t *bytes = NULL;
    tare_status status = TARE_NO_MEMORY;
    message.tensor_proto_inputs = TARE_NEW_ARRAY(&arena, Tensorflow__TensorEntry *, count + 1);
    if (!message.tensor_proto_inputs) goto done;
    for (size_t i = 0; i < count; i++) {
        Tensorflow__TensorEntry *entry = TARE_NEW(&arena, Tensorflow__TensorEntry);
        if (!entry) goto done;
        tensorflow__tensor_entry__init(entry);
        entry->key = (char *)(uintptr_t)keys[i];
        TARE_CHECK(tare_tensor_to_message(&entry->value, &arena, &values[i], TARE_TENSOR_BORROW));
        message.tensor_proto_inputs[message.n_tensor_proto_inputs++] = entry;
    }
    status = tare_message_pack(&bytes, size, &message.base);
    *data = bytes;
done:
    tare_arena_free(&arena);
    return status;
}
