/* Hints are complete command lines that can be pasted into a shell: with the program by the path that it was called by
 * unless the shell finds this program as "tare". */
#include "cli/hint.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"

#include <limits.h>
#include <stdarg.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NAMES = 1000 };

/* ---- the program ---- */

/* Whether the first "tare" in the folders of PATH is the program at `path`. *failed: out of memory. */
static bool is_on_path(const char *path, bool *failed) {
    const char *folders = getenv("PATH");
    struct tare_strbuf name = { 0 };
    bool found = false, same = false;
    for (const char *rest = folders; rest && !found; rest = strchr(rest, ':') ? strchr(rest, ':') + 1 : NULL) {
        const size_t size = strcspn(rest, ":");
        name.size = 0;
        tare_strbuf_append(&name, size ? rest : ".", size ? size : 1);
        tare_strbuf_puts(&name, "/tare");
        if (name.failed) break;
        found = tare_file_kind_of(tare_strbuf_text(&name)) == TARE_FILE_REGULAR &&
                access(tare_strbuf_text(&name), X_OK) == 0;
        same = found && tare_path_is_same(tare_strbuf_text(&name), path);
    }
    *failed = name.failed;
    tare_strbuf_free(&name);
    return same;
}

void tare_hint_put_program(struct tare_strbuf *out) {
    const char *path = program_invocation_name;
    bool failed = false;
    if (!strchr(path, '/') || is_on_path(path, &failed))
        tare_strbuf_puts(out, "tare");
    else
        tare_strbuf_shell_word(out, path);
    out->failed |= failed; /* not known: no hint */
}

/* A command line that begins with "tare", as results contain them, for this program. */
static void hint_put_command(struct tare_strbuf *out, const char *command) {
    static const char name[] = "tare ";
    const bool names_program = strncmp(command, name, sizeof name - 1) == 0;
    if (names_program) tare_hint_put_program(out);
    tare_strbuf_puts(out, names_program ? command + strlen("tare") : command);
}

void tare_hint_put_next(struct tare_strbuf *out, const char *command) {
    if (!command) return;
    tare_strbuf_puts(out, "next: ");
    hint_put_command(out, command);
    tare_strbuf_putc(out, '\n');
}

/* ---- notes ---- */

static void put_word(struct tare_strbuf *out, const char *word) {
    tare_strbuf_putc(out, ' ');
    tare_strbuf_shell_word(out, word);
}

static void print_line(const struct tare_log *log, struct tare_strbuf *line) {
    /* A command without its result has no next one. */
    if (!line->failed && fflush(stdout) == 0 && !ferror(stdout)) tare_note(log, "next: %s", tare_strbuf_text(line));
    tare_strbuf_free(line);
}

void tare_hint(const struct tare_log *log, ...) {
    struct tare_strbuf line = { 0 };
    const char *word;
    va_list words;
    va_start(words, log);
    tare_hint_put_program(&line);
    while ((word = va_arg(words, const char *)))
        put_word(&line, word);
    va_end(words);
    print_line(log, &line);
}

void tare_hint_words(const struct tare_log *log, const char *const *words) {
    struct tare_strbuf line = { 0 };
    tare_hint_put_program(&line);
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
    else {
        if (*last == '-' && size > 1) tare_strbuf_puts(out, "./"); /* not an option */
        tare_strbuf_append(out, last, size);
    }
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
