/* Help texts from option rows. */
#include "base/option.h"
#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>

enum { LINE = 80, LABEL = 30 };

/* Appends words of `text` from column *column on, breaking lines before LINE and indenting them by `indent`. */
static void wrap(struct tare_strbuf *out, const char *text, size_t indent, size_t *column) {
    bool first = true;
    while (*text) {
        size_t size = strcspn(text, " ");
        if (!first && *column + 1 + size > LINE) {
            tare_strbuf_printf(out, "\n%*s", (int)indent, "");
            *column = indent;
        } else if (!first) {
            tare_strbuf_putc(out, ' ');
            *column += 1;
        }
        tare_strbuf_append(out, text, size);
        *column += size;
        text += size;
        while (*text == ' ')
            text++;
        first = false;
    }
}

const char *tare_option_placeholder(const struct tare_option *row) {
    if (row->placeholder) return row->placeholder;
    switch (row->kind) {
    case TARE_OPTION_FLAG:
        return NULL;
    case TARE_OPTION_INT:
    case TARE_OPTION_INT64:
        return "N";
    case TARE_OPTION_DOUBLE:
        return "X";
    case TARE_OPTION_CHOICE:
        return "NAME";
    default:
        return "TEXT";
    }
}

static void label_of(struct tare_strbuf *out, const struct tare_option *row) {
    const char *placeholder = tare_option_placeholder(row);
    if (row->letter)
        tare_strbuf_printf(out, "-%c, ", row->letter);
    else
        tare_strbuf_puts(out, "    ");
    tare_strbuf_puts(out, row->kind == TARE_OPTION_FLAG && row->fallback ? "--[no-]" : "--");
    tare_strbuf_puts(out, row->name);
    if (placeholder) tare_strbuf_printf(out, " %s", placeholder);
}

void tare_option_describe(struct tare_strbuf *out, const struct tare_option *row) {
    tare_strbuf_puts(out, row->help ? row->help : "");
    for (int i = 0; row->choices && row->choices[i]; i++)
        tare_strbuf_printf(out, "%s%s", i == 0 ? ": " : row->choices[i + 1] ? ", " : " or ", row->choices[i]);
    if (row->flags & TARE_OPTION_REQUIRED)
        tare_strbuf_puts(out, " (required)");
    else if (row->kind == TARE_OPTION_LIST)
        tare_strbuf_puts(out, " (may be repeated)");
    else if (row->fallback_text)
        tare_strbuf_printf(out, " (default: %s)", row->fallback_text);
    else if (row->fallback && row->fallback[0] && !(row->kind == TARE_OPTION_FLAG && row->fallback[0] == 'f'))
        tare_strbuf_printf(out, " (default: %s)", row->kind == TARE_OPTION_FLAG ? "on" : row->fallback);
}

static void print_row(struct tare_strbuf *out, const char *label, const char *help, size_t width) {
    size_t column = tare_text_width(label) + 2;
    tare_strbuf_printf(out, "  %s", label);
    if (column + 2 > width) {
        tare_strbuf_printf(out, "\n%*s", (int)width, "");
    } else {
        tare_strbuf_printf(out, "%*s", (int)(width - column), "");
    }
    column = width;
    wrap(out, help, width, &column);
    tare_strbuf_putc(out, '\n');
}

static void print_usage(struct tare_strbuf *out, const struct tare_option_set *set) {
    size_t column, indent;
    struct tare_strbuf words = { 0 };

    tare_strbuf_printf(&words, "[options]");
    struct tare_option_walk walk = tare_option_walk(set->options);
    for (const struct tare_option *row; (row = tare_option_next(&walk));) {
        if (!(row->flags & TARE_OPTION_REQUIRED)) continue;
        /* The name and its value are one word, which is not wrapped. */
        tare_strbuf_printf(&words, " --%s=%s", row->name,
                           tare_option_placeholder(row) ? tare_option_placeholder(row) : "");
    }
    for (const struct tare_argument *row = set->arguments; row && row->name; row++) {
        const char *more = row->flags & TARE_OPTION_REPEATABLE ? "…" : "";
        tare_strbuf_printf(&words, row->flags & TARE_OPTION_REQUIRED ? " %s%s" : " [%s%s]", row->name, more);
    }
    tare_strbuf_printf(out, "Usage: %s ", set->program);
    indent = column = strlen("Usage:  ") + strlen(set->program);
    wrap(out, tare_strbuf_text(&words), indent, &column);
    tare_strbuf_putc(out, '\n');
    tare_strbuf_free(&words);
}

static size_t rows_width(const struct tare_option *rows) {
    size_t width = strlen("-h, --help");
    struct tare_option_walk walk = tare_option_walk(rows);
    for (const struct tare_option *row; (row = tare_option_next(&walk));) {
        struct tare_strbuf label = { 0 };
        label_of(&label, row);
        size_t own = tare_text_width(tare_strbuf_text(&label));
        if (!(row->flags & TARE_OPTION_HIDDEN) && own > width && own <= LABEL - 4) width = own;
        tare_strbuf_free(&label);
    }
    return width;
}

static size_t label_width(const struct tare_option_set *set) {
    size_t width = rows_width(set->options);
    for (const struct tare_argument *row = set->arguments; row && row->name; row++)
        if (strlen(row->name) > width && strlen(row->name) <= LABEL - 4) width = strlen(row->name);
    return width + 4;
}

static void print_option(struct tare_strbuf *out, const struct tare_option *row, size_t width) {
    struct tare_strbuf label = { 0 }, help = { 0 };
    if (row->flags & TARE_OPTION_HIDDEN) return;
    label_of(&label, row);
    tare_option_describe(&help, row);
    print_row(out, tare_strbuf_text(&label), tare_strbuf_text(&help), width);
    tare_strbuf_free(&label);
    tare_strbuf_free(&help);
}

static void print_rows(struct tare_strbuf *out, const struct tare_option *rows, size_t width) {
    struct tare_option_walk walk = tare_option_walk(rows);
    for (const struct tare_option *row; (row = tare_option_next(&walk));)
        print_option(out, row, width);
}

/* ---- headings ---- */

/* The next name of a list; its size is 0 at the end. */
static const char *next_name(size_t *size, const char **list) {
    const char *name = *list;
    *size = strcspn(name, " ");
    *list += *size + ((*list)[*size] == ' ');
    return name;
}

const struct tare_option_heading *tare_option_heading_of(const struct tare_option_heading *headings, const char *name) {
    for (; headings && headings->title; headings++) {
        const char *list = headings->names;
        size_t size;
        for (const char *at = next_name(&size, &list); size; at = next_name(&size, &list))
            if (strlen(name) == size && strncmp(at, name, size) == 0) return headings;
    }
    return NULL;
}

/* The options below one heading; those that none has, if `heading` is NULL. */
static void print_part(struct tare_strbuf *out, const struct tare_option *rows,
                       const struct tare_option_heading *headings, const struct tare_option_heading *heading,
                       size_t width) {
    const char *list = heading ? heading->names : "-";
    struct tare_strbuf part = { 0 };
    size_t size;
    for (const char *at = next_name(&size, &list); size; at = next_name(&size, &list)) {
        struct tare_option_walk walk = tare_option_walk(rows);
        for (const struct tare_option *row; (row = tare_option_next(&walk));)
            if (heading ? strlen(row->name) == size && strncmp(at, row->name, size) == 0
                        : !tare_option_heading_of(headings, row->name))
                print_option(&part, row, width);
    }
    if (part.size) tare_strbuf_printf(out, "\n%s:\n%s", heading ? heading->title : "Options", tare_strbuf_text(&part));
    out->failed |= part.failed;
    tare_strbuf_free(&part);
}

static size_t count_rows(const struct tare_option *rows) {
    struct tare_option_walk walk = tare_option_walk(rows);
    size_t count = 0;
    for (const struct tare_option *row; (row = tare_option_next(&walk));)
        count += !(row->flags & TARE_OPTION_HIDDEN);
    return count;
}

static void print_options(struct tare_strbuf *out, const struct tare_option *rows,
                          const struct tare_option_heading *headings, size_t width) {
    if (!headings || count_rows(rows) <= TARE_OPTION_FEW) {
        tare_strbuf_puts(out, "\nOptions:\n");
        print_rows(out, rows, width);
    } else {
        print_part(out, rows, headings, NULL, width);
        for (const struct tare_option_heading *heading = headings; heading->title; heading++)
            print_part(out, rows, headings, heading, width);
    }
    print_row(out, "-h, --help", "show this help", width);
}

void tare_option_rows_help(struct tare_strbuf *out, const struct tare_option *rows) {
    print_rows(out, rows, rows_width(rows) + 4);
}

void tare_options_help(struct tare_strbuf *out, const struct tare_option_set *set,
                       const struct tare_option_heading *headings) {
    size_t width = label_width(set), column = 0;

    print_usage(out, set);
    if (set->summary) {
        tare_strbuf_putc(out, '\n');
        wrap(out, set->summary, 0, &column);
        tare_strbuf_putc(out, '\n');
    }
    if (set->arguments && set->arguments->name) tare_strbuf_puts(out, "\nArguments:\n");
    for (const struct tare_argument *row = set->arguments; row && row->name; row++)
        print_row(out, row->name, row->help ? row->help : "", width);
    print_options(out, set->options, headings, width);
    if (set->examples && set->examples[0]) tare_strbuf_puts(out, "\nExamples:\n");
    for (const char *const *example = set->examples; example && *example; example++)
        tare_strbuf_printf(out, "  %s\n", *example);
}
