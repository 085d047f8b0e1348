/* Wire-format reader for serialized tf.Example and tf.SequenceExample messages. */
#include "interpreter/ops/io/example_wire.h"

#include "base/varint.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct reader {
    const unsigned char *at, *end;
};

static struct reader reader_of(struct tare_str text) {
    const unsigned char *data = (const unsigned char *)(text.data ? text.data : "");
    return (struct reader){ data, data + text.size };
}

static bool read_bytes(struct reader *reader, struct tare_str *bytes) {
    uint64_t size;
    if (!tare_varint_next(&size, &reader->at, reader->end) || size > (uint64_t)(reader->end - reader->at)) return false;
    *bytes = (struct tare_str){ (const char *)reader->at, (size_t)size };
    reader->at += size;
    return true;
}

static bool read_tag(struct reader *reader, uint32_t *field, int *wire) {
    uint64_t tag;
    if (!tare_varint_next(&tag, &reader->at, reader->end) || tag > UINT32_MAX || tag >> 3 == 0) return false;
    *field = (uint32_t)(tag >> 3);
    *wire = (int)(tag & 7);
    return true;
}

static bool skip_field(struct reader *reader, int wire) {
    struct tare_str bytes;
    uint64_t value;
    size_t fixed = wire == WIRE_64 ? 8 : 4;
    if (wire == WIRE_VARINT) return tare_varint_next(&value, &reader->at, reader->end);
    if (wire == WIRE_BYTES) return read_bytes(reader, &bytes);
    if ((wire != WIRE_64 && wire != WIRE_32) || (size_t)(reader->end - reader->at) < fixed) return false;
    reader->at += fixed;
    return true;
}

/* The kind of a Feature is the kind of the first list in it. */
static bool read_feature(struct tare_feature *out, struct tare_str bytes) {
    static const int dtypes[] = { TARE_DT_INVALID, TARE_DT_STRING, TARE_DT_FLOAT, TARE_DT_INT64 };
    struct reader reader = reader_of(bytes);
    *out = (struct tare_feature){ TARE_DT_INVALID, { NULL, 0 } };
    while (reader.at < reader.end) {
        uint32_t field;
        int wire;
        if (!read_tag(&reader, &field, &wire)) return false;
        if (out->dtype == TARE_DT_INVALID && field >= 1 && field <= 3 && wire == WIRE_BYTES) {
            if (!read_bytes(&reader, &out->list)) return false;
            out->dtype = dtypes[field];
        } else if (!skip_field(&reader, wire)) {
            return false;
        }
    }
    return true;
}

/* Reads the next entry of a map<string, message>; *found is false at the end. */
static bool next_entry(struct reader *reader, struct tare_str *name, struct tare_str *value, bool *found) {
    *name = *value = (struct tare_str){ "", 0 };
    for (*found = false; reader->at < reader->end && !*found;) {
        struct tare_str entry;
        struct reader inner;
        uint32_t field;
        int wire;
        if (!read_tag(reader, &field, &wire)) return false;
        if (field != 1 || wire != WIRE_BYTES) {
            if (!skip_field(reader, wire)) return false;
            continue;
        }
        if (!read_bytes(reader, &entry)) return false;
        *found = true;
        inner = reader_of(entry);
        while (inner.at < inner.end) {
            if (!read_tag(&inner, &field, &wire)) return false;
            if (wire == WIRE_BYTES && (field == 1 || field == 2)) {
                if (!read_bytes(&inner, field == 1 ? name : value)) return false;
            } else if (!skip_field(&inner, wire)) {
                return false;
            }
        }
    }
    return true;
}

static bool each_entry(struct tare_str features,
                       void (*fn)(void *arg, struct tare_str name, struct tare_feature feature), void *arg) {
    struct reader reader = reader_of(features);
    for (;;) {
        struct tare_str name, value;
        struct tare_feature feature;
        bool found;
        if (!next_entry(&reader, &name, &value, &found)) return false;
        if (!found) return true;
        if (!read_feature(&feature, value)) return false;
        fn(arg, name, feature);
    }
}

static bool each_list(struct tare_str lists, void (*fn)(void *arg, struct tare_str name, struct tare_str bytes),
                      void *arg) {
    struct reader reader = reader_of(lists);
    for (;;) {
        struct tare_str name, value;
        bool found;
        if (!next_entry(&reader, &name, &value, &found)) return false;
        if (!found) return true;
        fn(arg, name, value);
    }
}

bool tare_feature_list_each(int64_t *count, struct tare_str bytes, void (*fn)(void *arg, struct tare_feature feature),
                            void *arg) {
    struct reader reader = reader_of(bytes);
    *count = 0;
    while (reader.at < reader.end) {
        struct tare_feature feature;
        struct tare_str body;
        uint32_t field;
        int wire;
        if (!read_tag(&reader, &field, &wire)) return false;
        if (field != 1 || wire != WIRE_BYTES) {
            if (!skip_field(&reader, wire)) return false;
            continue;
        }
        if (!read_bytes(&reader, &body) || !read_feature(&feature, body)) return false;
        ++*count;
        if (fn) fn(arg, feature);
    }
    return true;
}

bool tare_sequence_each(struct tare_str sequence,
                        void (*context)(void *arg, struct tare_str name, struct tare_feature feature),
                        void (*list)(void *arg, struct tare_str name, struct tare_str bytes), void *arg) {
    struct reader reader = reader_of(sequence);
    while (reader.at < reader.end) {
        struct tare_str part;
        uint32_t field;
        int wire;
        if (!read_tag(&reader, &field, &wire)) return false;
        if (wire != WIRE_BYTES || (field != 1 && field != 2)) {
            if (!skip_field(&reader, wire)) return false;
            continue;
        }
        if (!read_bytes(&reader, &part)) return false;
        if (field == 1 ? !each_entry(part, context, arg) : !each_list(part, list, arg)) return false;
    }
    return true;
}

bool tare_example_each(struct tare_str example,
                       void (*fn)(void *arg, struct tare_str name, struct tare_feature feature), void *arg) {
    struct reader reader = reader_of(example);
    while (reader.at < reader.end) {
        struct tare_str features;
        uint32_t field;
        int wire;
        if (!read_tag(&reader, &field, &wire)) return false;
        if (field == 1 && wire == WIRE_BYTES) {
            if (!read_bytes(&reader, &features) || !each_entry(features, fn, arg)) return false;
        } else if (!skip_field(&reader, wire)) {
            return false;
        }
    }
    return true;
}

/* Reads the next run of values: a packed run (*packed), or a single value that `run` points to. */
static bool next_run(struct reader *reader, int dtype, struct reader *run, bool *packed, bool *found) {
    int single = dtype == TARE_DT_FLOAT ? WIRE_32 : dtype == TARE_DT_INT64 ? WIRE_VARINT : WIRE_BYTES;
    *found = false;
    while (reader->at < reader->end) {
        struct tare_str bytes;
        uint32_t field;
        int wire;
        if (!read_tag(reader, &field, &wire)) return false;
        *found = field == 1 && (wire == single || wire == WIRE_BYTES);
        *packed = *found && wire != single;
        run->at = reader->at;
        if (*packed || (*found && wire == WIRE_BYTES)) {
            if (!read_bytes(reader, &bytes)) return false;
            *run = reader_of(bytes);
        } else if (!skip_field(reader, wire)) {
            return false;
        } else {
            run->end = reader->at;
        }
        if (*found) return true;
    }
    return true;
}

bool tare_feature_count(int64_t *count, const struct tare_feature *feature) {
    struct reader reader = reader_of(feature->list), run = { NULL, NULL };
    bool packed = false, found = true;
    *count = 0;
    for (;;) {
        uint64_t value;
        if (!next_run(&reader, feature->dtype, &run, &packed, &found)) return false;
        if (!found) return true;
        if (!packed) {
            ++*count;
        } else if (feature->dtype == TARE_DT_FLOAT) {
            if ((run.end - run.at) % 4) return false;
            *count += (run.end - run.at) / 4;
        } else {
            for (; run.at < run.end; ++*count)
                if (!tare_varint_next(&value, &run.at, run.end)) return false;
        }
    }
}

static float little_float(const unsigned char *bytes) {
    uint32_t bits = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

tare_status tare_feature_read(struct tare_tensor *to, int64_t at, const struct tare_feature *feature, bool *malformed) {
    struct reader reader = reader_of(feature->list), run = { NULL, NULL };
    bool packed = false, found = true;
    *malformed = true;
    for (;;) {
        uint64_t value;
        if (!next_run(&reader, feature->dtype, &run, &packed, &found)) return TARE_OK;
        if (!found) break;
        if (feature->dtype == TARE_DT_STRING) {
            TARE_TRY(tare_tensor_set_string(to, at++, run.at, (size_t)(run.end - run.at)));
        } else if (feature->dtype == TARE_DT_FLOAT) {
            for (; run.end - run.at >= 4; run.at += 4)
                TARE_DATA(float, to)[at++] = little_float(run.at);
        } else {
            while (run.at < run.end) {
                if (!tare_varint_next(&value, &run.at, run.end)) return TARE_OK;
                TARE_DATA(int64_t, to)[at++] = (int64_t)value;
            }
        }
    }
    *malformed = false;
    return TARE_OK;
}
