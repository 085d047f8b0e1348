#include "fuzz/wire.h"
#include "base/varint.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FIELDS = 4096, MOST_DEPTH = 12 };

/* One field: [begin, end) with its tag, [payload, end) without; of a length-delimited one, the payload follows the
 * length. */
struct field {
    uint64_t tag;
    const uint8_t *begin, *payload, *end;
};

struct fields {
    struct field items[MOST_FIELDS];
    size_t count;
};

struct output {
    uint8_t *data;
    size_t size, most;
    bool full;
};

static uint64_t draw(uint64_t *seed, uint64_t count) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed % count;
}

/* ---- reading and writing ---- */

static bool read_field(struct field *out, const uint8_t *at, const uint8_t *end) {
    uint64_t value;
    out->begin = at;
    if (!tare_varint_next(&out->tag, &at, end) || out->tag >> 3 == 0 || out->tag >> 3 > 0x1fffffff) return false;
    out->payload = at;
    switch (out->tag & 7) {
    case 0:
        if (!tare_varint_next(&value, &at, end)) return false;
        break;
    case 1:
    case 5:
        if (end - at < ((out->tag & 7) == 1 ? 8 : 4)) return false;
        at += (out->tag & 7) == 1 ? 8 : 4;
        break;
    case 2:
        if (!tare_varint_next(&value, &at, end) || value > (uint64_t)(end - at)) return false;
        out->payload = at;
        at += value;
        break;
    default:
        return false;
    }
    out->end = at;
    return true;
}

/* False unless all bytes are fields, at least one and not too many. */
static bool read_fields(struct fields *out, const uint8_t *data, size_t size) {
    const uint8_t *at = data, *end = data + size;
    out->count = 0;
    while (at < end) {
        if (out->count == MOST_FIELDS || !read_field(&out->items[out->count], at, end)) return false;
        at = out->items[out->count++].end;
    }
    return out->count;
}

static void put(struct output *out, const void *data, size_t size) {
    if (out->full || size > out->most - out->size) {
        out->full = true;
        return;
    }
    if (size) memcpy(out->data + out->size, data, size);
    out->size += size;
}

static void put_varint(struct output *out, uint64_t value) {
    uint8_t bytes[TARE_VARINT_MAX];
    put(out, bytes, tare_varint_write(bytes, value));
}

static void put_field(struct output *out, const struct field *field) {
    put(out, field->begin, (size_t)(field->end - field->begin));
}

static void put_range(struct output *out, const struct fields *fields, size_t first, size_t end) {
    for (size_t i = first; i < end; i++)
        put_field(out, &fields->items[i]);
}

static void put_payload(struct output *out, uint64_t tag, const void *data, size_t size) {
    put_varint(out, tag);
    if ((tag & 7) == 2) put_varint(out, size);
    put(out, data, size);
}

/* ---- mutation ---- */

static void mutate_number(struct output *out, const struct field *field, uint64_t *seed) {
    static const uint64_t special[] = { 0,
                                        1,
                                        2,
                                        3,
                                        7,
                                        0x7f,
                                        0x80,
                                        0xff,
                                        0xffff,
                                        0x7fffffff,
                                        0x80000000,
                                        0xffffffff,
                                        1 << 20,
                                        INT64_MAX,
                                        UINT64_MAX,
                                        (uint64_t)INT64_MIN,
                                        UINT64_MAX - 1 };
    uint64_t value = special[draw(seed, sizeof special / sizeof *special)];
    const size_t size = (size_t)(field->end - field->payload);
    if ((field->tag & 7) == 0) {
        uint64_t old = 0;
        const uint8_t *at = field->payload;
        (void)tare_varint_next(&old, &at, field->end);
        if (draw(seed, 2)) value = draw(seed, 2) ? old + 1 + draw(seed, 4) : old - 1 - draw(seed, 4);
        put_varint(out, field->tag);
        put_varint(out, value);
    } else {
        if (draw(seed, 2)) value = (uint64_t)draw(seed, UINT64_MAX);
        put_payload(out, field->tag, &value, size);
    }
}

static size_t mutate(uint8_t *data, size_t size, size_t most, uint64_t *seed, wire_bytes_fn bytes, int depth);

/* A field with a changed payload: bytes, or a message inside. */
static void mutate_inside(struct output *out, const struct field *field, uint64_t *seed, wire_bytes_fn bytes,
                          int depth) {
    const size_t size = (size_t)(field->end - field->payload), most = size + 64;
    uint8_t *copy;
    if ((field->tag & 7) != 2) {
        mutate_number(out, field, seed);
        return;
    }
    copy = malloc(most);
    if (!copy) abort();
    if (size) memcpy(copy, field->payload, size);
    put_payload(out, field->tag, copy, mutate(copy, size, most, seed, bytes, depth + 1));
    free(copy);
}

static void change_fields(struct output *out, const struct fields *f, uint64_t *seed, wire_bytes_fn bytes, int depth) {
    const size_t i = draw(seed, f->count), j = draw(seed, f->count);
    const struct field *a = &f->items[i], *b = &f->items[j];
    put_range(out, f, 0, i);
    switch (draw(seed, 12)) {
    case 0: /* removed */
        break;
    case 1: /* twice */
        put_field(out, a);
        put_field(out, a);
        break;
    case 2: /* another field in its place */
        put_field(out, b);
        break;
    case 3: /* another field's payload */
        put_payload(out, (a->tag & ~UINT64_C(7)) | (b->tag & 7), b->payload, (size_t)(b->end - b->payload));
        break;
    case 4: /* another number: of a field nearby */
        put_payload(out, ((a->tag >> 3) + 1 + draw(seed, 3)) << 3 | (a->tag & 7), a->payload,
                    (size_t)(a->end - a->payload));
        break;
    default:
        mutate_inside(out, a, seed, bytes, depth);
    }
    put_range(out, f, i + 1, f->count);
}

static size_t mutate(uint8_t *data, size_t size, size_t most, uint64_t *seed, wire_bytes_fn bytes, int depth) {
    struct fields *fields = malloc(sizeof *fields);
    struct output out = { .data = malloc(most ? most : 1), .most = most };
    if (!fields || !out.data) abort();
    if (depth < MOST_DEPTH && draw(seed, 16) && read_fields(fields, data, size)) {
        change_fields(&out, fields, seed, bytes, depth);
        if (!out.full) {
            memcpy(data, out.data, out.size);
            size = out.size;
        }
    } else {
        size = bytes(data, size, most);
    }
    free(out.data);
    free(fields);
    return size;
}

size_t wire_mutate(uint8_t *data, size_t size, size_t most, uint64_t seed, wire_bytes_fn bytes) {
    seed = seed * 0x9e3779b97f4a7c15u | 1;
    return mutate(data, size, most, &seed, bytes, 0);
}

/* ---- crossover ---- */

/* Descends through fields of the same number, a random number of levels, and puts `a` with a field of `b`. */
static bool cross(struct output *out, const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint64_t *seed,
                  int depth) {
    struct fields *fa = malloc(sizeof *fa), *fb = malloc(sizeof *fb);
    bool done = false;
    if (!fa || !fb) abort();
    if (read_fields(fa, a, a_size) && read_fields(fb, b, b_size)) {
        const size_t i = draw(seed, fa->count);
        const struct field *x = &fa->items[i], *y = NULL;
        for (size_t k = 0, from = draw(seed, fb->count); k < fb->count && !y; k++)
            if (fb->items[(from + k) % fb->count].tag == x->tag) y = &fb->items[(from + k) % fb->count];
        if (y) {
            const size_t x_size = (size_t)(x->end - x->payload), y_size = (size_t)(y->end - y->payload);
            struct output inner = { .data = malloc(x_size + y_size + 64), .most = x_size + y_size + 64 };
            if (!inner.data) abort();
            put_range(out, fa, 0, i);
            done = (x->tag & 7) == 2 && depth < MOST_DEPTH && draw(seed, 4) &&
                   cross(&inner, x->payload, x_size, y->payload, y_size, seed, depth + 1);
            if (done) put_payload(out, x->tag, inner.data, inner.size);
            if (!done && draw(seed, 2)) put_field(out, x);
            if (!done) put_field(out, y);
            put_range(out, fa, i + 1, fa->count);
            done = !out->full;
            free(inner.data);
        }
    }
    free(fa);
    free(fb);
    return done;
}

size_t wire_cross(uint8_t *out, size_t most, const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                  uint64_t seed) {
    struct output result = { .data = out, .most = most };
    seed = seed * 0x9e3779b97f4a7c15u | 1;
    return cross(&result, a, a_size, b, b_size, &seed, 0) ? result.size : 0;
}
