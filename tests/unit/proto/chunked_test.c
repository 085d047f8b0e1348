/* Chunked messages and the riegeli files that hold them: files made here, uncompressed, to the letter of the format.
 * The real one, compressed, is in chunked_model_test.c. */
#include "proto/chunked.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "proto/highway_hash.h"
#include "proto/message.h"
#include "proto/riegeli.h"
#include "proto/tensorflow/chunk.pb-c.h"
#include "proto/tensorflow/graph.pb-c.h"
#include "proto/text_format.h"
#include "support/text_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const uint64_t KEY[4] = { 0x2f696c6567656952u, 0x0a7364726f636572u, 0x2f696c6567656952u, 0x0a7364726f636572u };

/* ---- writing riegeli ---- */

static void put64(uint8_t *out, uint64_t x) {
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(x >> (8 * i));
}

/* Bytes of a chunk; at every 64 KiB stands a block header, which readers pass over (here without meaning). */
static void put_bytes(struct tare_strbuf *file, const uint8_t *data, size_t size) {
    for (size_t i = 0; i < size; i++) {
        static const uint8_t header[24] = { 0xee };
        if (file->size % 65536 == 0) tare_strbuf_append(file, header, sizeof header);
        tare_strbuf_append(file, data + i, 1);
    }
}

static void put_chunk(struct tare_strbuf *file, char type, uint64_t n_records, uint64_t decoded, const void *data,
                      size_t size) {
    uint8_t header[40];
    put64(header + 8, size);
    put64(header + 16, tare_highway_hash64(KEY, data, size));
    put64(header + 24, n_records << 8 | (uint8_t)type);
    put64(header + 32, decoded);
    put64(header, tare_highway_hash64(KEY, header + 8, 32));
    put_bytes(file, header, sizeof header);
    put_bytes(file, data, size);
}

static void put_varint(struct tare_strbuf *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        tare_strbuf_putc(out, (char)(value | 0x80));
    tare_strbuf_putc(out, (char)value);
}

static void start(struct tare_strbuf *file) {
    put_chunk(file, 's', 0, 0, "", 0);
}

static void put_records(struct tare_strbuf *file, char compression, size_t count, const void *const *records,
                        const size_t *sizes) {
    struct tare_strbuf lengths = { 0 }, data = { 0 };
    size_t decoded = 0;
    for (size_t i = 0; i < count; i++) {
        put_varint(&lengths, sizes[i]);
        decoded += sizes[i];
    }
    tare_strbuf_putc(&data, compression);
    put_varint(&data, lengths.size);
    tare_strbuf_append(&data, lengths.data, lengths.size);
    for (size_t i = 0; i < count; i++)
        tare_strbuf_append(&data, records[i], sizes[i]);
    put_chunk(file, 'r', count, decoded, data.data, data.size);
    tare_strbuf_free(&lengths);
    tare_strbuf_free(&data);
}

/* ---- riegeli ---- */

/* The first 64 bytes of every file are fixed by the format: our own writer above must give them. */
static void signature__has_the_bytes_of_the_format(void **state) {
    static const uint8_t expected[40] = { 0x91, 0xba, 0xc2, 0x3c, 0x92, 0x87, 0xe1, 0xa9, 0,    0,    0,    0,   0,
                                          0,    0,    0,    0xe1, 0x9f, 0x13, 0xc0, 0xe9, 0xb1, 0xc3, 0x72, 0x73 };
    struct tare_strbuf file = { 0 };
    (void)state;
    start(&file);
    assert_int_equal(file.size, 64);
    assert_memory_equal(file.data + 24, expected, sizeof expected);
    tare_strbuf_free(&file);
}

static tare_status read_file(struct tare_riegeli_record **records, size_t *count, struct tare_arena *arena,
                             const struct tare_strbuf *file) {
    return tare_riegeli_read(records, count, arena, (const uint8_t *)file->data, file->size);
}

static void records__are_read_across_blocks(void **state) {
    enum { LARGE = 200000 };
    struct tare_arena arena = { 0 };
    struct tare_strbuf file = { 0 };
    struct tare_riegeli_record *records;
    uint8_t *large = malloc(LARGE);
    const void *const first[] = { "one", large, "" };
    const size_t sizes[] = { 3, LARGE, 0 };
    size_t count;
    (void)state;
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (uint8_t)(i * 7 + i / 256);
    start(&file);
    put_records(&file, 0, 3, first, sizes);
    put_chunk(&file, 'p', 0, 0, "pad", 3);
    put_records(&file, 0, 1, (const void *const[]){ "last" }, (const size_t[]){ 4 });
    if (read_file(&records, &count, &arena, &file) != TARE_OK) fail_msg("%s", tare_error_text());
    assert_int_equal(count, 4);
    assert_int_equal(records[0].position, 64);
    assert_memory_equal(records[0].data, "one", 3);
    assert_int_equal(records[1].position, 65);
    assert_int_equal(records[1].size, LARGE);
    assert_memory_equal(records[1].data, large, LARGE);
    assert_int_equal(records[2].size, 0);
    assert_memory_equal(records[3].data, "last", 4);
    free(large);
    tare_strbuf_free(&file);
    tare_arena_free(&arena);
}

/* Every byte of a small file is covered by a hash, but for the block header. */
static void damage__is_noticed_at_every_byte(void **state) {
    struct tare_strbuf file = { 0 };
    (void)state;
    start(&file);
    put_records(&file, 0, 2, (const void *const[]){ "abc", "de" }, (const size_t[]){ 3, 2 });
    for (size_t i = 24; i < file.size; i++) {
        struct tare_arena arena = { 0 };
        struct tare_riegeli_record *records;
        size_t count;
        file.data[i] ^= 0x10;
        if (read_file(&records, &count, &arena, &file) != TARE_CORRUPT) fail_msg("byte %zu was not noticed", i);
        file.data[i] ^= 0x10;
        tare_arena_free(&arena);
    }
    for (size_t size = 1; size < file.size; size++) {
        struct tare_arena arena = { 0 };
        struct tare_riegeli_record *records;
        size_t count;
        tare_status status = tare_riegeli_read(&records, &count, &arena, (const uint8_t *)file.data, size);
        if (size == 64) /* a file with its signature only is whole, and empty */
            assert_true(status == TARE_OK && count == 0);
        else if (status != TARE_CORRUPT)
            fail_msg("a cut to %zu bytes was not noticed", size);
        tare_arena_free(&arena);
    }
    tare_strbuf_free(&file);
}

static void other_forms__are_refused(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_strbuf file = { 0 };
    struct tare_riegeli_record *records;
    size_t count;
    (void)state;
    start(&file);
    put_records(&file, 'z', 1, (const void *const[]){ "abc" }, (const size_t[]){ 3 });
    assert_int_equal(read_file(&records, &count, &arena, &file), TARE_UNSUPPORTED);
    assert_string_equal(tare_error_text(), "the chunk at byte 64 has compression 0x7a (expected none or brotli)");
    tare_strbuf_free(&file);
    start(&file);
    put_chunk(&file, 't', 1, 3, "abc", 3);
    assert_int_equal(read_file(&records, &count, &arena, &file), TARE_UNSUPPORTED);
    assert_string_equal(tare_error_text(), "the chunk at byte 64 is transposed");
    tare_strbuf_free(&file);
    tare_strbuf_puts(&file, "this is no riegeli file at all, whatever its name, however long the text in it may be");
    assert_int_equal(read_file(&records, &count, &arena, &file), TARE_CORRUPT);
    assert_string_equal(tare_error_text(), "chunk at byte 0: not a riegeli file");
    tare_strbuf_free(&file);
    tare_arena_free(&arena);
}

/* A few bytes must not ask for gigabytes. */
static void sizes__are_bounded_by_the_file(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_strbuf file = { 0 }, data = { 0 };
    struct tare_riegeli_record *records;
    size_t count;
    (void)state;
    tare_strbuf_putc(&data, 'b');
    put_varint(&data, 6);
    put_varint(&data, (uint64_t)1 << 34); /* decompressed size of the sizes */
    tare_strbuf_puts(&data, "x");
    start(&file);
    put_chunk(&file, 'r', 1, 1, data.data, data.size);
    tare_alloc_largest();
    assert_int_equal(read_file(&records, &count, &arena, &file), TARE_CORRUPT);
    assert_string_equal(tare_error_text(), "chunk at byte 64: expands too much");
    assert_true(tare_alloc_largest() < 1 << 20);
    tare_strbuf_free(&file);
    tare_strbuf_free(&data);
    tare_arena_free(&arena);
}

/* ---- chunked messages ---- */

static ProtobufCMessage *from_text(struct tare_arena *arena, const ProtobufCMessageDescriptor *descriptor,
                                   const char *text) {
    ProtobufCMessage *message;
    if (tare_text_format_read(&message, descriptor, arena, text, strlen(text), TARE_TEXT_STRICT, "text") != TARE_OK)
        fail_msg("%s", tare_error_text());
    return message;
}

/* A file of parts: GraphDefs and NodeDefs as text, raw bytes with a leading '='; positions are 64, 65 … Then the index.
 */
static void make_file(struct tare_strbuf *file, struct tare_arena *arena, const char *const *parts, const char *index) {
    const void *records[16];
    size_t sizes[16], count = 0;
    for (; parts[count]; count++) {
        uint8_t *bytes;
        if (*parts[count] == '=') {
            records[count] = parts[count] + 1;
            sizes[count] = strlen(parts[count] + 1);
            continue;
        }
        assert_int_equal(tare_message_pack(&bytes, &sizes[count],
                                           from_text(arena,
                                                     *parts[count] == 'G' ? &tensorflow__graph_def__descriptor
                                                                          : &tensorflow__node_def__descriptor,
                                                     parts[count] + 1)),
                         TARE_OK);
        records[count] = tare_arena_strndup(arena, (char *)bytes, sizes[count]);
        tare_free(bytes);
    }
    {
        uint8_t *bytes;
        assert_int_equal(
            tare_message_pack(&bytes, &sizes[count], from_text(arena, &tensorflow__chunk_metadata__descriptor, index)),
            TARE_OK);
        records[count] = tare_arena_strndup(arena, (char *)bytes, sizes[count]);
        tare_free(bytes);
        count++;
    }
    start(file);
    put_records(file, 0, count, records, sizes);
}

#define CHUNKS "chunks { offset: 64 } chunks { offset: 65 } chunks { offset: 66 } chunks { offset: 67 } "

static tare_status read_graph(ProtobufCMessage **out, struct tare_arena *arena, const char *const *parts,
                              const char *index) {
    struct tare_strbuf file = { 0 };
    tare_status status;
    make_file(&file, arena, parts, index);
    status = tare_chunked_read(out, &tensorflow__graph_def__descriptor, arena, file.data, file.size, "model.cpb");
    tare_strbuf_free(&file);
    return status;
}

static void expect_graph(const char *const *parts, const char *index, const char *expected) {
    struct tare_arena arena = { 0 };
    struct tare_strbuf text = { 0 };
    ProtobufCMessage *message;
    if (read_graph(&message, &arena, parts, index) != TARE_OK) fail_msg("%s", tare_error_text());
    assert_int_equal(text_writer_put(&text, message), TARE_OK);
    assert_string_equal(tare_strbuf_text(&text), expected);
    tare_strbuf_free(&text);
    tare_arena_free(&arena);
}

static void parts__go_to_their_fields(void **state) {
    (void)state;
    /* Elements of a list: of the parent's own type, by number, and behind the last. */
    expect_graph(
        (const char *const[]){ "Gnode { name: 'a' }", "Gnode { name: 'b' } version: 3", "Nop: 'Relu'", "Nname: 'c'",
                               NULL },
        CHUNKS "message { chunk_index: 0 chunked_fields { message { chunk_index: 1 } }"
               " chunked_fields { field_tag { field: 1 } field_tag { index: 0 } message { chunk_index: 2 } }"
               " chunked_fields { field_tag { field: 1 } field_tag { index: 2 } message { chunk_index: 3 } } }",
        "node {\n  name: \"a\"\n  op: \"Relu\"\n}\nnode {\n  name: \"b\"\n}\nnode {\n  name: \"c\"\n}\nversion: 3\n");
    /* Bytes, in two parts, deep in an entry of a map; the entry's oneof is entered on the way. */
    expect_graph(
        (const char *const[]){ "Gnode { name: 'a' attr { key: 'value' value { } } }", "=12", "=345", NULL },
        CHUNKS
        "message { chunk_index: 0 chunked_fields { field_tag { field: 1 } field_tag { index: 0 } field_tag { field: 5 }"
        " field_tag { map_key { s: 'value' } } field_tag { field: 2 } message { chunk_index: 1 } } "
        "chunked_fields { field_tag { field: 1 } field_tag { index: 0 } field_tag { field: 5 }"
        " field_tag { map_key { s: 'value' } } field_tag { field: 2 } message { chunk_index: 2 } } }",
        "node {\n  name: \"a\"\n  attr {\n    key: \"value\"\n    value {\n      s: \"12345\"\n    }\n  }\n}\n");
    /* A part without chunk only leads on. */
    expect_graph((const char *const[]){ "Nname: 'n'", NULL },
                 CHUNKS "message { chunked_fields { field_tag { field: 1 } message { chunk_index: 0 } } }",
                 "node {\n  name: \"n\"\n}\n");
}

static void expect_fault(const char *index, const char *expected) {
    struct tare_arena arena = { 0 };
    ProtobufCMessage *message;
    assert_int_not_equal(read_graph(&message, &arena, (const char *const[]){ "Gnode { name: 'a' }", NULL }, index),
                         TARE_OK);
    assert_string_equal(tare_error_text(), expected);
    assert_null(message);
    tare_arena_free(&arena);
}

static void wrong_indices__are_refused(void **state) {
    (void)state;
    expect_fault("", "model.cpb: its index does not describe a message");
    expect_fault(CHUNKS "message { chunk_index: 4 }", "model.cpb: part 4 is not in the list of 4");
    expect_fault(CHUNKS "message { chunk_index: 3 }", "model.cpb: part 3 has no record at 67");
    expect_fault(CHUNKS "message { chunk_index: 0 chunked_fields { message { chunk_index: 0 } } }",
                 "model.cpb: part 0 is used twice");
    expect_fault(CHUNKS "message { chunked_fields { field_tag { index: 0 } } }",
                 "model.cpb: the path of a part does not begin with a field of a message");
    expect_fault(CHUNKS "message { chunked_fields { field_tag { field: 77 } } }",
                 "model.cpb: a part belongs into field 77 of tensorflow.GraphDef");
    expect_fault(CHUNKS "message { chunked_fields { field_tag { field: 1 } field_tag { index: 1 } } }",
                 "model.cpb: field node has no element 1 of 0");
    expect_fault(CHUNKS "message { chunk_index: 0 chunked_fields { field_tag { field: 1 } field_tag { index: 0 }"
                        " field_tag { field: 5 } field_tag { map_key { s: 'value' } } } }",
                 "model.cpb: field attr has no entry 'value'");
    expect_fault(CHUNKS
                 "message { chunked_fields { field_tag { field: 1 } field_tag { index: 0 } field_tag { field: 1 }"
                 " message { chunk_index: 0 } } }",
                 "model.cpb: a part is the text name");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signature__has_the_bytes_of_the_format),
        cmocka_unit_test(records__are_read_across_blocks),
        cmocka_unit_test(damage__is_noticed_at_every_byte),
        cmocka_unit_test(other_forms__are_refused),
        cmocka_unit_test(sizes__are_bounded_by_the_file),
        cmocka_unit_test(parts__go_to_their_fields),
        cmocka_unit_test(wrong_indices__are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
