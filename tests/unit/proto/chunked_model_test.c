/* A chunked model that TensorFlow wrote says the same as the text beside it. */
#include "proto/chunked.h"
#include "base/strbuf.h"
#include "base/alloc.h"
#include "proto/message.h"
#include "proto/tensorflow/saved_model.pb-c.h"
#include "proto/text_format.h"
#include "support/text_writer.h"
#include "support/models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of a message's text in byte order: entries of maps come in any order. */
static char **sorted_lines(size_t *count, struct tare_arena *arena, const ProtobufCMessage *message) {
    struct tare_strbuf text = { 0 };
    char **lines, *at;
    *count = 0;
    assert_int_equal(text_writer_put(&text, message), TARE_OK);
    lines = TARE_NEW_ARRAY(arena, char *, text.size);
    at = tare_arena_strdup(arena, tare_strbuf_text(&text));
    for (char *line = strtok(at, "\n"); line; line = strtok(NULL, "\n"))
        lines[(*count)++] = line;
    qsort(lines, *count, sizeof *lines, by_text);
    tare_strbuf_free(&text);
    return lines;
}

static void chunked_model__says_what_its_text_says(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_mapping chunked, text;
    ProtobufCMessage *a, *b;
    char **x, **y;
    size_t n_x, n_y;
    (void)state;
    if (tare_file_map(&chunked, models_path("tf-chunked/saved_model.cpb")) != TARE_OK ||
        tare_file_map(&text, models_path("tf-chunked/saved_model.pbtxt")) != TARE_OK)
        fail_msg("%s", tare_error_text());
    if (tare_chunked_read(&a, &tensorflow__saved_model__descriptor, &arena, chunked.data, chunked.size, "cpb") !=
        TARE_OK)
        fail_msg("%s", tare_error_text());
    assert_int_equal(tare_text_format_read(&b, &tensorflow__saved_model__descriptor, &arena, (const char *)text.data,
                                           text.size, TARE_TEXT_STRICT, "pbtxt"),
                     TARE_OK);
    assert_true(protobuf_c_message_get_packed_size(a) > 180000); /* the constant of 150 x 150 doubles is in it */
    x = sorted_lines(&n_x, &arena, a);
    y = sorted_lines(&n_y, &arena, b);
    assert_int_equal(n_x, n_y);
    for (size_t i = 0; i < n_x; i++)
        assert_string_equal(x[i], y[i]);
    tare_file_unmap(&chunked);
    tare_file_unmap(&text);
    tare_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(chunked_model__says_what_its_text_says) };
    if (!test_data("models")) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
