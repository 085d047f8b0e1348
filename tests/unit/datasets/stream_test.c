/* Detection of compressed streams by their first bytes. */
#include "support/mini_model.h"
#include "support/temp.h"

#include "base/alloc.h"
#include "datasets/stream.h"

#include <string.h>
#include <zlib.h>

static void assert_stream(const char *name, const void *file, size_t size, const char *compression, const void *content,
                          size_t content_size) {
    struct tare_stream *stream;
    uint8_t *data;
    size_t got;
    mini_ok(tare_stream_open(&stream, temp_file(name, file, size), NULL));
    assert_string_equal(tare_stream_compression(stream), compression);
    mini_ok(tare_stream_take_all(&data, &got, stream));
    assert_int_equal(got, content_size);
    assert_memory_equal(data, content, got);
    tare_free(data);
    tare_stream_close(stream);
}

static void zlib_header__is_recognised_for_every_level(void **state) {
    static const char text[] = "some text that is long enough to compress, compress, compress";
    (void)state;
    for (int level = 0; level <= 9; level++) {
        uint8_t packed[256];
        uLongf size = sizeof packed;
        assert_int_equal(compress2(packed, &size, (const Bytef *)text, sizeof text, level), Z_OK);
        assert_stream("packed", packed, size, "zlib", text, sizeof text);
    }
}

/* RFC 1950: the first two bytes, as a big-endian number, are a multiple of 31; method 8, window at most 2^(7 + 8). */
static void bytes_that_are_no_zlib_header__are_read_as_they_are(void **state) {
    static const struct {
        uint8_t bytes[6];
        const char *why;
    } files[] = {
        { { 0x78, 0x9d, 'p', 'l', 'a', 'i' }, "not a multiple of 31" },
        { { 0x78, 0x00, 'p', 'l', 'a', 'i' }, "not a multiple of 31" },
        { { 0x79, 0x18, 'p', 'l', 'a', 'i' }, "another method" },
        { { 0x88, 0x1c, 'p', 'l', 'a', 'i' }, "too large a window" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        print_message("%s\n", files[i].why);
        assert_stream("plain", files[i].bytes, sizeof files[i].bytes, "none", files[i].bytes, sizeof files[i].bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zlib_header__is_recognised_for_every_level),
        cmocka_unit_test(bytes_that_are_no_zlib_header__are_read_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
