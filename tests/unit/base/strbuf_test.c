/* Texts on standard error: each line in one piece, with control characters visible. */
#include "base/strbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* The pieces in which a text arrives on standard error: a socket of packets keeps them apart. */
static int pieces(char *out, size_t size, const struct tare_strbuf *text) {
    int ends[2], count = 0;
    size_t used = 0;
    ssize_t got;
    const int saved = dup(STDERR_FILENO);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    fflush(stderr);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    tare_strbuf_print(text, stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    for (; (got = read(ends[0], out + used, size - 1 - used)) > 0; count++)
        used += (size_t)got;
    out[used] = '\0';
    close(ends[0]);
    return count;
}

static void line__is_written_at_once(void **state) {
    struct tare_strbuf text = { 0 };
    char out[64];
    (void)state;
    tare_strbuf_puts(&text, "one\ttext \x1b[31m, \xc3\xa9\n");
    assert_int_equal(pieces(out, sizeof out, &text), 1);
    assert_string_equal(out, "one\ttext \\u001b[31m, \xc3\xa9\n");
    tare_strbuf_free(&text);
}

static void long_text__is_written_in_large_pieces(void **state) {
    static char out[20000];
    struct tare_strbuf text = { 0 };
    (void)state;
    for (int i = 0; i < 10000; i++)
        tare_strbuf_putc(&text, (char)('a' + i % 26));
    const int count = pieces(out, sizeof out, &text);
    assert_true(count >= 2 && count <= 4);
    assert_int_equal(strlen(out), 10000);
    assert_memory_equal(out, text.data, 10000);
    tare_strbuf_free(&text);
}

static void empty_text__is_not_written(void **state) {
    const struct tare_strbuf text = { 0 };
    char out[8];
    (void)state;
    assert_int_equal(pieces(out, sizeof out, &text), 0);
}

static void expect_word(const char *expected, const char *word) {
    struct tare_strbuf text = { 0 };
    tare_strbuf_shell_word(&text, word);
    assert_string_equal(tare_strbuf_text(&text), expected);
    tare_strbuf_free(&text);
}

static void shell_word__is_one_word_on_one_line(void **state) {
    (void)state;
    expect_word("a/b.c=1", "a/b.c=1");
    expect_word("''", "");
    expect_word("'a b'", "a b");
    expect_word("'it'\\''s \\'", "it's \\");
    expect_word("$'a\\012b \\'c\\\\ \xc3\xa9'", "a\nb 'c\\ \xc3\xa9");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shell_word__is_one_word_on_one_line),
        cmocka_unit_test(line__is_written_at_once),
        cmocka_unit_test(long_text__is_written_in_large_pieces),
        cmocka_unit_test(empty_text__is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
