/* Distinguishes samples, examples and sequence examples by the numbers and wire types of their fields. */
#include "datasets/record_kind.h"

#include "base/varint.h"

#include <stdbool.h>
#include <stdint.h>

struct bytes {
    const uint8_t *at, *end;
};

struct field {
    uint64_t number, value; /* value: of a varint */
    int type;
    struct bytes body; /* of a length-delimited one */
};

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

static bool skip(struct bytes *in, uint64_t size) {
    if (size > (uint64_t)(in->end - in->at)) return false;
    in->at += size;
    return true;
}

static bool read_field(struct field *out, struct bytes *in) {
    uint64_t tag, size;
    if (!tare_varint_next(&tag, &in->at, in->end)) return false;
    out->number = tag >> 3;
    out->type = (int)(tag & 7);
    if (!out->number) return false;
    switch (out->type) {
    case VARINT:
        return tare_varint_next(&out->value, &in->at, in->end);
    case FIXED64:
        return skip(in, 8);
    case FIXED32:
        return skip(in, 4);
    case LENGTH:
        if (!tare_varint_next(&size, &in->at, in->end)) return false;
        out->body.at = in->at;
        if (!skip(in, size)) return false;
        out->body.end = in->at;
        return true;
    default:
        return false;
    }
}

/* Values of lists are not checked: packed and unpacked ones are both valid. */
static bool is_feature(struct bytes in) {
    struct field field;
    while (in.at < in.end)
        if (!read_field(&field, &in) || field.number > 3 || field.type != LENGTH) return false;
    return true;
}

static bool is_feature_list(struct bytes in) {
    struct field field;
    while (in.at < in.end)
        if (!read_field(&field, &in) || field.number != 1 || field.type != LENGTH || !is_feature(field.body))
            return false;
    return true;
}

static bool is_tensor(struct bytes in) {
    enum { DTYPE = 1, SHAPE = 2, LAST_FIELD = 18 }; /* of TensorProto */
    struct field field;
    bool has_dtype = false;
    while (in.at < in.end) {
        if (!read_field(&field, &in) || field.number > LAST_FIELD) return false;
        if (field.number == DTYPE && field.type != VARINT) return false;
        if (field.number == SHAPE && field.type != LENGTH) return false;
        has_dtype |= field.number == DTYPE;
    }
    return has_dtype;
}

/* A map entry: 1: key, 2: value, which may be left out where its default means something. */
static bool is_entry(struct bytes in, bool (*is_value)(struct bytes in), bool has_default) {
    struct field field;
    bool has_value = has_default;
    while (in.at < in.end) {
        if (!read_field(&field, &in) || field.type != LENGTH || field.number > 2) return false;
        if (field.number == 2 && !is_value(field.body)) return false;
        has_value |= field.number == 2;
    }
    return has_value;
}

/* A message that is nothing but a map in field 1. */
static bool is_map(struct bytes in, bool (*is_value)(struct bytes in)) {
    struct field field;
    while (in.at < in.end)
        if (!read_field(&field, &in) || field.number != 1 || field.type != LENGTH ||
            !is_entry(field.body, is_value, true))
            return false;
    return true;
}

enum tare_record_kind tare_record_kind_of(const void *data, size_t size) {
    struct bytes in = { data, (const uint8_t *)data + size };
    bool sample = size > 0, example = size > 0, sequence = size > 0;
    while (in.at < in.end && (sample || example || sequence)) {
        struct field field;
        bool first, second, features;
        if (!read_field(&field, &in) || field.type != LENGTH) return TARE_RECORD_OTHER;
        first = field.number == 1;
        second = field.number == 2;
        features = first && is_map(field.body, is_feature);
        sample = sample && second && is_entry(field.body, is_tensor, false);
        example = example && features;
        sequence = sequence && (features || (second && is_map(field.body, is_feature_list)));
    }
    if (sample) return TARE_RECORD_SAMPLE;
    if (example) return TARE_RECORD_EXAMPLE;
    return sequence ? TARE_RECORD_SEQUENCE_EXAMPLE : TARE_RECORD_OTHER;
}

const char *tare_record_kind_name(enum tare_record_kind kind) {
    static const char *const names[] = { "unknown", "RepresentativeDataSample", "tf.Example", "tf.SequenceExample" };
    return names[kind];
}
