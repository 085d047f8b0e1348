/* Reading MLIR bytecode integers and sections. */
#include "convert/stablehlo/input.h"

#include <string.h>

enum { ALIGNED = 0x80, PADDING = 0xcb };

tare_status tare_mlir_corrupt(const struct tare_mlir_input *in, const char *what) {
    return TARE_FAIL(TARE_CORRUPT, "%s at byte %zu", what, in->at);
}

tare_status tare_mlir_byte(uint8_t *out, struct tare_mlir_input *in) {
    if (in->at >= in->end) return tare_mlir_corrupt(in, "unexpected end of a section");
    *out = in->data[in->at++];
    return TARE_OK;
}

tare_status tare_mlir_bytes(const uint8_t **out, struct tare_mlir_input *in, uint64_t size) {
    if (size > tare_mlir_left(in)) return tare_mlir_corrupt(in, "unexpected end of a section");
    *out = in->data + in->at;
    in->at += (size_t)size;
    return TARE_OK;
}

tare_status tare_mlir_varint(uint64_t *out, struct tare_mlir_input *in) {
    const uint8_t *rest;
    uint8_t first;
    uint64_t value = 0;
    TARE_TRY(tare_mlir_byte(&first, in));
    const int more = first ? __builtin_ctz(first) : 8;
    TARE_TRY(tare_mlir_bytes(&rest, in, (uint64_t)more));
    for (int i = more - 1; i >= 0; i--)
        value = value << 8 | rest[i];
    *out = more == 8 ? value : value << (7 - more) | first >> (more + 1);
    return TARE_OK;
}

tare_status tare_mlir_signed(int64_t *out, struct tare_mlir_input *in) {
    uint64_t value;
    TARE_TRY(tare_mlir_varint(&value, in));
    *out = (int64_t)(value >> 1 ^ -(value & 1));
    return TARE_OK;
}

tare_status tare_mlir_flagged(uint64_t *out, bool *flag, struct tare_mlir_input *in) {
    TARE_TRY(tare_mlir_varint(out, in));
    *flag = *out & 1;
    *out >>= 1;
    return TARE_OK;
}

tare_status tare_mlir_count(size_t *out, struct tare_mlir_input *in, size_t item_bytes) {
    uint64_t count;
    TARE_TRY(tare_mlir_varint(&count, in));
    if (count > tare_mlir_left(in) / item_bytes) return tare_mlir_corrupt(in, "a count exceeds the section");
    *out = (size_t)count;
    return TARE_OK;
}

tare_status tare_mlir_index(size_t *out, struct tare_mlir_input *in, size_t count, const char *what) {
    uint64_t index;
    TARE_TRY(tare_mlir_varint(&index, in));
    if (index >= count)
        return TARE_FAIL(TARE_CORRUPT, "%s %llu at byte %zu (expected below %zu)", what, (unsigned long long)index,
                         in->at, count);
    *out = (size_t)index;
    return TARE_OK;
}

/* Padding up to an absolute offset that is a multiple of the alignment. */
static tare_status skip_padding(struct tare_mlir_input *in) {
    uint64_t alignment;
    TARE_TRY(tare_mlir_varint(&alignment, in));
    if (!alignment || alignment & (alignment - 1) || alignment > 1 << 20)
        return tare_mlir_corrupt(in, "the alignment of a section is not a power of two");
    while (in->at % alignment) {
        uint8_t byte;
        TARE_TRY(tare_mlir_byte(&byte, in));
        if (byte != PADDING) return tare_mlir_corrupt(in, "invalid padding");
    }
    return TARE_OK;
}

tare_status tare_mlir_section(int *id, struct tare_mlir_input *content, struct tare_mlir_input *in) {
    uint8_t number;
    uint64_t size;
    const uint8_t *start;
    TARE_TRY(tare_mlir_byte(&number, in));
    TARE_TRY(tare_mlir_varint(&size, in));
    if (number & ALIGNED) TARE_TRY(skip_padding(in));
    *content = *in;
    TARE_TRY(tare_mlir_bytes(&start, in, size));
    content->end = in->at;
    *id = number & ~ALIGNED;
    return TARE_OK;
}

tare_status tare_mlir_at_end(const struct tare_mlir_input *in, const char *what) {
    if (in->at == in->end) return TARE_OK;
    return TARE_FAIL(TARE_CORRUPT, "%s: %zu unread bytes at byte %zu", what, tare_mlir_left(in), in->at);
}
