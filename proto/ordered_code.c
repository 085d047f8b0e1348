/* The encoders of OrderedCode. */
#include "proto/ordered_code.h"

void tare_ordered_put_unsigned(struct tare_strbuf *out, uint64_t value) {
    int size = 0;
    while (size < 8 && value >> (8 * size))
        size++;
    tare_strbuf_putc(out, (char)size);
    while (size--)
        tare_strbuf_putc(out, (char)(value >> (8 * size)));
}

void tare_ordered_put_signed(struct tare_strbuf *out, int64_t value) {
    uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
    unsigned char bytes[10], header[2];
    int size = 1;
    /* n bytes hold the sign and 7 n - 1 bits; the header has n equal bits from the top, then the opposite one. */
    while (size < 10 && magnitude >> (7 * size - 1 < 64 ? 7 * size - 1 : 63))
        size++;
    for (int i = 0; i < 10; i++)
        bytes[i] = i < 2 ? (unsigned char)(value < 0 ? 0xff : 0) : (unsigned char)((uint64_t)value >> (8 * (9 - i)));
    header[0] = size >= 8 ? 0xff : (unsigned char)(0xff00u >> size);
    header[1] = size > 8 ? (unsigned char)(0xff00u >> (size - 8)) : 0;
    bytes[10 - size] ^= header[0];
    if (size > 1) bytes[11 - size] ^= header[1];
    tare_strbuf_append(out, bytes + 10 - size, (size_t)size);
}

void tare_ordered_put_string(struct tare_strbuf *out, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        tare_strbuf_putc(out, text[i]);
        if (text[i] == '\0')
            tare_strbuf_putc(out, (char)0xff);
        else if ((unsigned char)text[i] == 0xff)
            tare_strbuf_putc(out, '\0');
    }
    tare_strbuf_append(out, "\0\1", 2);
}
