/* Appends to a growing buffer, and reads within its end. */
#include "calib/format/wire.h"

#include "base/alloc.h"
#include "base/tensor/number.h"
#include "base/varint.h"

#include <math.h>
#include <string.h>

void tare_wire_begin(struct tare_wire_writer *out, tare_status (*take)(void *arg, const void *data, size_t size),
                     void *arg) {
    out->take = take;
    out->arg = arg;
    out->status = TARE_OK;
    out->used = 0;
    tare_hash_begin(&out->hash);
}

static void hand_out(struct tare_wire_writer *out) {
    tare_hash_add(&out->hash, out->buffer, out->used);
    if (out->status == TARE_OK) out->status = out->take(out->arg, out->buffer, out->used);
    out->used = 0;
}

void tare_wire_put(struct tare_wire_writer *out, const void *data, size_t size) {
    while (size > 0) {
        size_t piece = sizeof out->buffer - out->used;
        if (piece > size) piece = size;
        memcpy(out->buffer + out->used, data, piece);
        out->used += piece;
        data = (const char *)data + piece;
        size -= piece;
        if (out->used == sizeof out->buffer) hand_out(out);
    }
}

tare_status tare_wire_end_with_checksum(struct tare_wire_writer *out) {
    uint64_t sum[2];
    hand_out(out);
    tare_hash_end(&out->hash, sum);
    tare_wire_put_u64(out, sum[0]);
    hand_out(out);
    return out->status;
}

void tare_wire_put_u64(struct tare_wire_writer *out, uint64_t value) {
    char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(value >> (8 * i));
    tare_wire_put(out, bytes, sizeof bytes);
}

void tare_wire_put_varint(struct tare_wire_writer *out, uint64_t value) {
    uint8_t bytes[TARE_VARINT_MAX];
    if (sizeof out->buffer - out->used > TARE_VARINT_MAX) /* a byte stays free: a full buffer is handed out at once */
        out->used += tare_varint_write((uint8_t *)out->buffer + out->used, value);
    else
        tare_wire_put(out, bytes, tare_varint_write(bytes, value));
}

void tare_wire_put_float(struct tare_wire_writer *out, float value) {
    uint32_t bits = tare_float_bits(value);
    char bytes[4] = { (char)bits, (char)(bits >> 8), (char)(bits >> 16), (char)(bits >> 24) };
    tare_wire_put(out, bytes, sizeof bytes);
}

void tare_wire_put_text(struct tare_wire_writer *out, const char *text) {
    size_t size = strlen(text);
    tare_wire_put_varint(out, size);
    tare_wire_put(out, text, size);
}

void tare_wire_put_sum(struct tare_wire_writer *out, const struct tare_exact_sum *sum) {
    bool negative = sum->words[TARE_EXACT_SUM_WORDS - 1] >> 63;
    uint64_t sign = negative ? UINT64_MAX : 0;
    int first = 0, end = TARE_EXACT_SUM_WORDS;
    while (first < TARE_EXACT_SUM_WORDS && sum->words[first] == 0)
        first++;
    while (end > first && sum->words[end - 1] == sign)
        end--;
    if (first == TARE_EXACT_SUM_WORDS) first = end = 0;
    tare_wire_put_varint(out, (uint64_t)first);
    tare_wire_put_varint(out, (uint64_t)(end - first) << 1 | negative);
    for (int i = first; i < end; i++)
        tare_wire_put_u64(out, sum->words[i]);
}

void tare_wire_fail(struct tare_wire_reader *in, const char *what) {
    if (in->status == TARE_OK) in->status = TARE_FAIL(TARE_CORRUPT, "%s at byte %zu", what, in->offset);
}

/* True if `size` more bytes are available. */
static bool has(struct tare_wire_reader *in, size_t size) {
    if (in->status != TARE_OK) return false;
    if (in->size - in->offset >= size) return true;
    tare_wire_fail(in, "unexpected end");
    return false;
}

uint64_t tare_wire_u64(struct tare_wire_reader *in) {
    if (!has(in, 8)) return 0;
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | in->data[in->offset + (size_t)i];
    in->offset += 8;
    return value;
}

/* Only the shortest encoding is valid, so that equal contents have equal bytes: no padding by a zero byte, no bits
 * above the 64th. */
uint64_t tare_wire_varint(struct tare_wire_reader *in, uint64_t most) {
    if (!has(in, 1)) return 0;
    uint64_t value;
    const uint8_t *at = in->data + in->offset, *end = in->data + in->size;
    const uint8_t *after = tare_varint_read(&value, at, end);
    if (!after && end - at < TARE_VARINT_MAX) {
        in->offset = in->size;
        tare_wire_fail(in, "unexpected end");
        return 0;
    }
    const size_t size = after ? (size_t)(after - at) : TARE_VARINT_MAX;
    const uint8_t last = at[size - 1];
    in->offset += size;
    if (after && value <= most && (size == 1 || last != 0) && (size < TARE_VARINT_MAX || last == 1)) return value;
    tare_wire_fail(in, "bad number");
    return 0;
}

size_t tare_wire_count(struct tare_wire_reader *in, size_t item) {
    uint64_t count = tare_wire_varint(in, UINT64_MAX);
    if (in->status == TARE_OK && count > (in->size - in->offset) / item) tare_wire_fail(in, "bad count");
    return in->status == TARE_OK ? (size_t)count : 0;
}

float tare_wire_float(struct tare_wire_reader *in) {
    if (!has(in, 4)) return 0;
    uint32_t bits = 0;
    for (int i = 3; i >= 0; i--)
        bits = bits << 8 | in->data[in->offset + (size_t)i];
    float value = tare_float_from_bits(bits);
    if (!isfinite(value) || bits == 0x80000000u) {
        tare_wire_fail(in, "bad value");
        return 0;
    }
    in->offset += 4;
    return value;
}

char *tare_wire_text(struct tare_wire_reader *in) {
    size_t size = tare_wire_count(in, 1);
    if (in->status != TARE_OK) return NULL;
    const uint8_t *bytes = in->data + in->offset;
    if (memchr(bytes, '\0', size)) {
        tare_wire_fail(in, "bad text");
        return NULL;
    }
    char *text = tare_malloc(size + 1);
    if (!text) {
        in->status = TARE_NO_MEMORY;
        return NULL;
    }
    memcpy(text, bytes, size);
    text[size] = '\0';
    in->offset += size;
    return text;
}

void tare_wire_sum(struct tare_wire_reader *in, struct tare_exact_sum *out) {
    memset(out, 0, sizeof *out);
    uint64_t first = tare_wire_varint(in, TARE_EXACT_SUM_WORDS - 1);
    uint64_t kind = tare_wire_varint(in, 2 * TARE_EXACT_SUM_WORDS + 1), count = kind >> 1;
    if (in->status == TARE_OK && first + count > TARE_EXACT_SUM_WORDS) tare_wire_fail(in, "bad sum");
    if (in->status != TARE_OK) return;
    for (uint64_t i = 0; i < count; i++)
        out->words[first + i] = tare_wire_u64(in);
    uint64_t sign = kind & 1 ? UINT64_MAX : 0;
    for (uint64_t i = first + count; i < TARE_EXACT_SUM_WORDS; i++)
        out->words[i] = sign;
    if (in->status != TARE_OK) memset(out, 0, sizeof *out);
}
