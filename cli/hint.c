/* Hints are complete command lines that can be pasted into a shell. */
#include "cli/hint.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"

#include <stdarg.h>
#include <string.h>

static void put_word(struct tare_strbuf *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=,:+-";
    if (out->size) tare_strbuf_putc(out, ' ');
    if (*word && !word[strspn(word, plain)]) {
        tare_strbuf_puts(out, word);
        return;
    }
    tare_strbuf_putc(out, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            tare_strbuf_puts(out, "'\\''");
        else
            tare_strbuf_putc(out, *word);
    }
    tare_strbuf_putc(out, '\'');
}

void tare_hint(const struct tare_log *log, ...) {
    struct tare_strbuf line = { 0 };
    const char *word;
    va_list words;
    va_start(words, log);
    while ((word = va_arg(words, const char *)))
        put_word(&line, word);
    va_end(words);
    if (!line.failed) tare_note(log, "next: %s", tare_strbuf_text(&line));
    tare_strbuf_free(&line);
}

void tare_hint_name(char **name, const char *model, const char *suffix) {
    struct tare_strbuf text = { 0 };
    size_t size;
    const char *last = tare_path_last(&size, model);
    tare_strbuf_append(&text, last, size);
    tare_strbuf_puts(&text, suffix);
    *name = text.failed ? NULL : tare_strdup(tare_strbuf_text(&text));
    tare_strbuf_free(&text);
}
