/* Varints: the encodings of protobuf's documentation, the limits of 64 bits, and damaged bytes. */
#include "base/strbuf.h"
#include "base/varint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const struct {
    uint64_t value;
    size_t size;
    uint8_t bytes[TARE_VARINT_MAX];
} encodings[] = {
    { 0, 1, { 0 } },
    { 1, 1, { 1 } },
    { 127, 1, { 0x7f } },
    { 128, 2, { 0x80, 0x01 } },
    { 150, 2, { 0x96, 0x01 } }, /* the example of protobuf's documentation */
    { 16383, 2, { 0xff, 0x7f } },
    { 16384, 3, { 0x80, 0x80, 0x01 } },
    { (uint64_t)1 << 63, 10, { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01 } },
    { (uint64_t)-2, 10, { 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01 } },
    { UINT64_MAX, 10, { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01 } },
};

enum { ENCODINGS = sizeof encodings / sizeof encodings[0] };

static void varint__write_encodes_in_as_few_bytes_as_possible(void **state) {
    (void)state;
    for (size_t i = 0; i < ENCODINGS; i++) {
        uint8_t bytes[TARE_VARINT_MAX];
        struct tare_strbuf buf = { 0 };
        assert_int_equal(tare_varint_write(bytes, encodings[i].value), encodings[i].size);
        assert_memory_equal(bytes, encodings[i].bytes, encodings[i].size);
        tare_strbuf_append_varint(&buf, encodings[i].value);
        assert_int_equal(buf.size, encodings[i].size);
        assert_memory_equal(buf.data, encodings[i].bytes, encodings[i].size);
        tare_strbuf_free(&buf);
    }
}

static void varint__read_returns_the_byte_after_the_value(void **state) {
    (void)state;
    for (size_t i = 0; i < ENCODINGS; i++) {
        uint8_t bytes[TARE_VARINT_MAX + 1];
        uint64_t value = 77;
        memcpy(bytes, encodings[i].bytes, encodings[i].size);
        bytes[encodings[i].size] = 0xff; /* belongs to the next value */
        assert_ptr_equal(tare_varint_read(&value, bytes, bytes + encodings[i].size + 1), bytes + encodings[i].size);
        assert_true(value == encodings[i].value);
    }
}

static void varint__truncated_encodings_fail_at_every_length(void **state) {
    (void)state;
    for (size_t i = 0; i < ENCODINGS; i++) {
        for (size_t size = 0; size < encodings[i].size; size++) {
            const uint8_t *at = encodings[i].bytes;
            uint64_t value = 77;
            assert_null(tare_varint_read(&value, at, at + size));
            assert_false(tare_varint_next(&value, &at, at + size));
            assert_ptr_equal(at, encodings[i].bytes);
            assert_int_equal(value, 77);
        }
    }
}

static void varint__more_than_ten_bytes_fail(void **state) {
    const uint8_t bytes[] = { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01 };
    uint64_t value;
    (void)state;
    assert_null(tare_varint_read(&value, bytes, bytes + sizeof bytes));
}

static void varint__padded_encodings_are_read(void **state) {
    const uint8_t bytes[] = { 0x81, 0x80, 0x00 },
                  wide[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f };
    uint64_t value;
    (void)state;
    assert_ptr_equal(tare_varint_read(&value, bytes, bytes + sizeof bytes), bytes + sizeof bytes);
    assert_int_equal(value, 1);
    assert_ptr_equal(tare_varint_read(&value, wide, wide + sizeof wide), wide + sizeof wide);
    assert_true(value == UINT64_MAX);
}

static void varint__next_reads_consecutive_values(void **state) {
    const uint8_t bytes[] = { 0x05, 0x96, 0x01, 0x00 }, *at = bytes;
    uint64_t value;
    (void)state;
    assert_true(tare_varint_next(&value, &at, bytes + sizeof bytes));
    assert_int_equal(value, 5);
    assert_true(tare_varint_next(&value, &at, bytes + sizeof bytes));
    assert_int_equal(value, 150);
    assert_true(tare_varint_next(&value, &at, bytes + sizeof bytes));
    assert_int_equal(value, 0);
    assert_false(tare_varint_next(&value, &at, bytes + sizeof bytes));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varint__write_encodes_in_as_few_bytes_as_possible),
        cmocka_unit_test(varint__read_returns_the_byte_after_the_value),
        cmocka_unit_test(varint__truncated_encodings_fail_at_every_length),
        cmocka_unit_test(varint__more_than_ten_bytes_fail),
        cmocka_unit_test(varint__padded_encodings_are_read),
        cmocka_unit_test(varint__next_reads_consecutive_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
