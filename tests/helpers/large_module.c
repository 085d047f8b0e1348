/* Writes a StableHLO module with one large constant, for tests of memory:
 *
 *   large_module FILE BYTES
 *       main() returns a float32 vector of BYTES bytes, all zero, which are a hole in the file where file systems have
 *       holes. The bytes around it are those of the same module with four elements (VHLO 1.8.0, MLIR bytecode 6). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
    uint8_t data[256];
    size_t size;
};

static void put(struct bytes *out, const void *data, size_t size) {
    memcpy(out->data + out->size, data, size);
    out->size += size;
}

/* The varint of MLIR bytecode: the zero bits below the lowest one tell the number of further bytes. */
static void put_varint(struct bytes *out, uint64_t value) {
    int count = 1;
    while (count < 9 && value >> (7 * count))
        count++;
    const uint64_t word = (value << 1 | 1) << (count - 1);
    for (int i = 0; i < count; i++)
        out->data[out->size++] = (uint8_t)(word >> (8 * i));
}

/* Everything between the dialects and the constant's data, and what follows the data. */
static void make_parts(struct bytes *before, struct bytes *after, uint64_t bytes) {
    static const uint8_t sizes[] = { 0x0f, 0x07, 0x01, 0x05, 0x07, 0x0b, 0x03, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b };
    static const uint8_t attributes[] = { 0x1f, 0x05, 0x05, 0x03, 0x01, 0x23, 0x01, 0x1d, 0x01, 0x1d, 0x03 };
    static const uint8_t function_type[] = { 0x11, 0x01, 0x03, 0x03 };
    struct bytes constant = { .size = 0 }, type = { .size = 0 }, offsets = { .size = 0 };
    put(&constant, "\x1f\x03", 2); /* a tensor of type 1 */
    put_varint(&constant, bytes);
    put(&type, "\x29\x03", 2); /* a ranked tensor with one dimension */
    put_varint(&type, bytes / 4 << 1);
    put(&type, "\x05", 1);
    put(&offsets, sizes, sizeof sizes);
    put_varint(&offsets, (constant.size + bytes) << 1 | 1);
    put(&offsets, "\x03\x07\x13", 3);
    put_varint(&offsets, type.size << 1 | 1);
    put(&offsets, "\x07", 1);
    put(before, "\x03", 1);
    put_varint(before, offsets.size);
    put(before, offsets.data, offsets.size);
    put(before, "\x02", 1);
    put_varint(before, sizeof attributes + constant.size + bytes + sizeof function_type + type.size + 1);
    put(before, attributes, sizeof attributes);
    put(before, constant.data, constant.size);
    put(after, function_type, sizeof function_type);
    put(after, type.data, type.size);
    put(after, "\x09", 1);
}

int main(int argc, char **argv) {
    static const char head[] = "ML\xefR\x0dStableHLO_v1.8.0\0\x01\x19\x05\x0d\x11\x09\x01\x03\x17\x03\x07\x1b\x1f\x23";
    static const char tail[] = "\x04\x41\x05\x01\x50\x01\x05\x07\x04\x31\x03\x01\x05\x07\x50\x01\x03\x07\x04\x1d\x03"
                               "\x03\x09\x03\x42\x01\x01\x03\x03\x05\x04\x01\x03\x01\x06\x03\x01\x05\x01\x00\x99\x13"
                               "\x11\x15\x19\x0f\x0b\x11\x09\x0f\x0bmain\0public\0big\0builtin\0vhlo\0module\0"
                               "constant_v1\0return_v1\0func_v1\0\x08\x19\x07\x03\x0d\x0b\x05\x07\x05\x09\x0b\x05\x07"
                               "\x01";
    const uint64_t bytes = argc == 3 ? strtoull(argv[2], NULL, 10) / 8 * 8 : 0;
    FILE *file = bytes ? fopen(argv[1], "wb") : NULL;
    struct bytes before = { .size = 0 }, after = { .size = 0 };
    if (!file) return 1;
    make_parts(&before, &after, bytes);
    fwrite(head, 1, sizeof head - 1, file);
    fwrite(before.data, 1, before.size, file);
    fseek(file, (long)bytes, SEEK_CUR);
    fwrite(after.data, 1, after.size, file);
    fwrite(tail, 1, sizeof tail - 1, file);
    return fclose(file) ? 1 : 0;
}
