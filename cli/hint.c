/* Hints are complete command lines that can be pasted into a shell. */
#include "cli/hint.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 1000 };

static void put_word(struct tare_strbuf *out, const char *word) {
    if (out->size) tare_strbuf_putc(out, ' ');
    tare_strbuf_shell_word(out, word);
}

static void print_line(const struct tare_log *log, struct tare_strbuf *line) {
    if (!line->failed) tare_note(log, "next: %s", tare_strbuf_text(line));
    tare_strbuf_free(line);
}

void tare_hint(const struct tare_log *log, ...) {
    struct tare_strbuf line = { 0 };
    const char *word;
    va_list words;
    va_start(words, log);
    while ((word = va_arg(words, const char *)))
        put_word(&line, word);
    va_end(words);
    print_line(log, &line);
}

void tare_hint_words(const struct tare_log *log, const char *const *words) {
    struct tare_strbuf line = { 0 };
    for (size_t i = 0; words[i]; i++)
        put_word(&line, words[i]);
    print_line(log, &line);
}

/* ---- new names ---- */

/* The last part of the path; of the real path if that has no name, as ".". */
static void put_last(struct tare_strbuf *out, const char *path) {
    char room[PATH_MAX];
    size_t size;
    const char *last = tare_path_last(&size, path);
    if (size <= 2 && strspn(last, ".") >= size && realpath(path, room)) last = tare_path_last(&size, room);
    if (size == 0 || *last == '/')
        tare_strbuf_puts(out, "model");
    else
        tare_strbuf_append(out, last, size);
}

static bool is_taken(const char *stem, size_t number, const char *const *suffixes, struct tare_strbuf *name) {
    for (size_t i = 0; suffixes[i]; i++) {
        name->size = 0;
        tare_strbuf_puts(name, stem);
        if (number > 1) tare_strbuf_printf(name, "_%zu", number);
        tare_strbuf_puts(name, suffixes[i]);
        if (!name->failed && tare_file_kind_of(tare_strbuf_text(name)) != TARE_FILE_NONE) return true;
    }
    return false;
}

/* The stem, numbered so that none of its files exists; `name` then holds the last of them. */
static size_t free_number(const char *stem, const char *const *suffixes, struct tare_strbuf *name) {
    size_t number = 1;
    while (number < MOST_NAMES && is_taken(stem, number, suffixes, name))
        number++;
    return number;
}

void tare_hint_name(char **name, const char *model, const char *suffix) {
    struct tare_strbuf stem = { 0 }, text = { 0 };
    put_last(&stem, model);
    free_number(tare_strbuf_text(&stem), (const char *const[]){ suffix, NULL }, &text);
    *name = stem.failed || text.failed ? NULL : tare_strdup(tare_strbuf_text(&text));
    tare_strbuf_free(&stem);
    tare_strbuf_free(&text);
}

/* Length of the name of a data file or pattern without its extensions: "train" of "train-*.tfrecord.gz". */
static size_t stem_length(const char *name) {
    size_t size = *name ? 1 + strcspn(name + 1, ".*?[") : 0;
    while (size && strchr("-_*?[.", name[size - 1]))
        size--;
    return size;
}

void tare_hint_prefix(char **prefix, const char *path, const char *const *suffixes) {
    struct tare_strbuf last = { 0 }, stem = { 0 }, text = { 0 };
    put_last(&last, path);
    const char *name = tare_strbuf_text(&last);
    const size_t size = tare_file_kind_of(path) == TARE_FILE_DIRECTORY ? last.size : stem_length(name);
    tare_strbuf_append(&stem, size ? name : "data", size ? size : strlen("data"));
    const size_t number = free_number(tare_strbuf_text(&stem), suffixes, &text);
    if (number > 1) tare_strbuf_printf(&stem, "_%zu", number);
    *prefix = last.failed || stem.failed || text.failed ? NULL : tare_strdup(tare_strbuf_text(&stem));
    tare_strbuf_free(&last);
    tare_strbuf_free(&stem);
    tare_strbuf_free(&text);
}
