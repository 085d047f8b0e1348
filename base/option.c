/* The option parser. Help texts and nearest names are in option_help.c.
 *
 * Tables may include other tables as groups (TARE_OPTION_GROUP). Every function walks the expanded table with
 * tare_option_next, which adds up the offsets of the enclosing groups: a value's address is always the caller's struct
 * plus walk.offset. */
#include "base/option.h"
#include "base/format.h"
#include "base/alloc.h"
#include "base/strbuf.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 64 };

static char plain(char c) {
    return c == '_' ? '-' : c;
}

struct tare_option_walk tare_option_walk(const struct tare_option *rows) {
    /* index wraps to 0 at the first row. */
    return (struct tare_option_walk){ .first = { rows }, .next = { rows }, .index = UINT_MAX };
}

/* Whether a list of names, separated by spaces, has this one. */
static bool lists(const char *names, const char *name) {
    const size_t size = strlen(name);
    while (names && *names) {
        const size_t length = strcspn(names, " ");
        if (length == size && strncmp(names, name, size) == 0) return true;
        names += length + (names[length] == ' ');
    }
    return false;
}

static bool is_left_out(const struct tare_option_walk *walk, const struct tare_option *row) {
    for (int i = 1; i <= walk->depth; i++)
        if (lists(walk->without[i], row->name)) return true;
    return false;
}

const struct tare_option *tare_option_next(struct tare_option_walk *walk) {
    for (;;) {
        const struct tare_option *row = walk->next[walk->depth];
        if (!row || !row->name) {
            if (walk->depth == 0) return NULL;
            walk->depth--;
            continue;
        }
        walk->next[walk->depth]++;
        walk->offset = walk->base[walk->depth] + row->offset;
        if (is_left_out(walk, row)) continue;
        if (row->kind != TARE_OPTION_GROUP) return walk->index++, row;
        if (walk->depth + 1 == TARE_OPTION_DEPTH) continue; /* deeper groups are a bug that the option tests find */
        walk->depth++;
        walk->first[walk->depth] = walk->next[walk->depth] = row->group;
        walk->base[walk->depth] = walk->offset;
        walk->without[walk->depth] = row->without;
    }
}

/* Whether the names differ at most in '-' and '_'; `size` is the length of `text`. */
static bool same_name(const char *name, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (!name[i] || plain(name[i]) != plain(text[i])) return false;
    return name[size] == '\0';
}

/* The row of that name, with its offset and index in *walk. */
static const struct tare_option *find_row(struct tare_option_walk *walk, const struct tare_option *rows,
                                          const char *text, size_t size) {
    *walk = tare_option_walk(rows);
    for (const struct tare_option *row; (row = tare_option_next(walk));)
        if (same_name(row->name, text, size)) return row;
    return NULL;
}

static const struct tare_option *find_letter(struct tare_option_walk *walk, const struct tare_option *rows,
                                             char letter) {
    *walk = tare_option_walk(rows);
    for (const struct tare_option *row; (row = tare_option_next(walk));)
        if (row->letter == letter) return row;
    return NULL;
}

static tare_status wrong_value(const struct tare_option *row, const char *text, const char *expected) {
    return TARE_FAIL(TARE_USAGE, "option '--%s': invalid value (expected %s, got '%s')", row->name, expected, text);
}

static tare_status check_bounds(const struct tare_option *row, const char *text, double value) {
    char expected[96];
    if (row->min == row->max || (value >= row->min && value <= row->max)) return TARE_OK;
    if (isinf(row->max) || row->max >= 9e18)
        tare_format(expected, sizeof expected, "at least %.17g", row->min);
    else
        tare_format(expected, sizeof expected, "%.17g to %.17g", row->min, row->max);
    return wrong_value(row, text, expected);
}

/* Appends "a, b or c". */
static void list_choices(char *out, size_t size, const struct tare_option *row) {
    size_t used = 0;
    for (int i = 0; row->choices[i] && used < size; i++) {
        const char *separator = i == 0 ? "" : row->choices[i + 1] ? ", " : " or ";
        used += (size_t)snprintf(out + used, size - used, "%s%s", separator, row->choices[i]);
    }
}

static tare_status check_choices(const struct tare_option *row, const char *text, long long value) {
    char expected[256] = "";
    if (!row->choices) return TARE_OK;
    for (int i = 0; row->choices[i]; i++)
        if (strtoll(row->choices[i], NULL, 10) == value) return TARE_OK;
    list_choices(expected, sizeof expected, row);
    return wrong_value(row, text, expected);
}

static tare_status set_integer(void *place, const struct tare_option *row, const char *text) {
    char *end;
    long long value;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (!*text || *end || errno || (row->kind == TARE_OPTION_INT && (value > INT_MAX || value < INT_MIN)))
        return wrong_value(row, text, "an integer");
    TARE_TRY(check_bounds(row, text, (double)value));
    TARE_TRY(check_choices(row, text, value));
    if (row->kind == TARE_OPTION_INT)
        *(int *)place = (int)value;
    else
        *(int64_t *)place = value;
    return TARE_OK;
}

static tare_status set_double(double *place, const struct tare_option *row, const char *text) {
    char *end;
    double value = tare_read_double(text, &end);
    if (!*text || *end || isnan(value)) return wrong_value(row, text, "a number");
    TARE_TRY(check_bounds(row, text, value));
    *place = value;
    return TARE_OK;
}

static tare_status set_flag(bool *place, const struct tare_option *row, const char *text) {
    static const char *const yes[] = { "true", "1", "yes", "on" }, *const no[] = { "false", "0", "no", "off" };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (strcmp(text, yes[i]) == 0) return *place = true, TARE_OK;
        if (strcmp(text, no[i]) == 0) return *place = false, TARE_OK;
    }
    return wrong_value(row, text, "true or false");
}

static tare_status set_choice(int *place, const struct tare_option *row, const char *text) {
    char expected[256] = "";
    for (int i = 0; row->choices[i]; i++)
        if (same_name(row->choices[i], text, strlen(text))) return *place = i, TARE_OK;
    list_choices(expected, sizeof expected, row);
    return wrong_value(row, text, expected);
}

static tare_status append(struct tare_option_list *list, const char *text) {
    if (!TARE_GROW(list->items, list->count, list->capacity)) return TARE_NO_MEMORY;
    list->items[list->count++] = text;
    return TARE_OK;
}

static tare_status set_text(void *place, const struct tare_option *row, const char *text) {
    switch (row->kind) {
    case TARE_OPTION_FLAG:
        return set_flag(place, row, text);
    case TARE_OPTION_STRING:
        return *(const char **)place = text, TARE_OK;
    case TARE_OPTION_INT:
    case TARE_OPTION_INT64:
        return set_integer(place, row, text);
    case TARE_OPTION_DOUBLE:
        return set_double(place, row, text);
    case TARE_OPTION_CHOICE:
        return set_choice(place, row, text);
    case TARE_OPTION_LIST:
        return append(place, text);
    case TARE_OPTION_READ:
        return row->read((char *)place - row->offset, text);
    case TARE_OPTION_GROUP:
        break;
    }
    return TARE_FAIL(TARE_INTERNAL, "option '--%s' has no kind", row->name);
}

static size_t size_of(const struct tare_option *row) {
    static const size_t sizes[] = { sizeof(bool),
                                    sizeof(char *),
                                    sizeof(int),
                                    sizeof(int64_t),
                                    sizeof(double),
                                    sizeof(int),
                                    sizeof(struct tare_option_list) };
    return row->kind == TARE_OPTION_READ ? row->size : sizes[row->kind];
}

/* The values of a table whose row *walk has just returned. */
static void *values_of(void *values, const struct tare_option_walk *walk) {
    return (char *)values + walk->base[walk->depth];
}

static void note_given(void *values, const struct tare_option *row, const struct tare_option_walk *walk) {
    uint64_t *given = (uint64_t *)(void *)((char *)values_of(values, walk) + row->given);
    if (row->given) *given |= UINT64_C(1) << (row - walk->first[walk->depth]);
}

tare_status tare_options_defaults(void *values, const struct tare_option *rows) {
    struct tare_option_walk walk = tare_option_walk(rows);
    for (const struct tare_option *row; (row = tare_option_next(&walk));) {
        void *place = (char *)values + walk.offset;
        memset(place, 0, size_of(row));
        if (row->given) memset((char *)values_of(values, &walk) + row->given, 0, sizeof(uint64_t));
        if (row->fallback) TARE_TRY(set_text(place, row, row->fallback));
    }
    return TARE_OK;
}

static tare_status unknown(const struct tare_option *rows, const char *text, size_t size) {
    const char *names[MOST_ROWS + 2];
    const char *near;
    char asked[128];
    size_t count = 0;
    struct tare_option_walk walk = tare_option_walk(rows);

    for (const struct tare_option *row; count < MOST_ROWS && (row = tare_option_next(&walk));)
        if (!(row->flags & TARE_OPTION_HIDDEN)) names[count++] = row->name;
    names[count++] = "help";
    names[count] = NULL;
    snprintf(asked, sizeof asked, "%.*s", (int)(size < 100 ? size : 100), text);
    near = tare_nearest_name(asked, names);
    if (near) return TARE_FAIL(TARE_USAGE, "unknown option '--%s' (did you mean '--%s'?)", asked, near);
    return TARE_FAIL(TARE_USAGE, "unknown option '--%s'", asked);
}

struct parser {
    void *values;
    struct tare_option_outcome *outcome;
    const struct tare_option_set *set;
    int argc, next;
    char *const *argv;
};

/* Sets the value of a row that *walk found: `attached` (after '=' or the letter) or, if that is NULL, the next
 * argument. */
static tare_status take_value(struct parser *parser, const struct tare_option *row, const struct tare_option_walk *walk,
                              const char *attached) {
    const char *text = attached;
    void *place = (char *)parser->values + walk->offset;
    parser->outcome->given |= UINT64_C(1) << walk->index;
    note_given(parser->values, row, walk);
    if (!text && row->kind == TARE_OPTION_FLAG) text = "true";
    if (!text) {
        if (parser->next >= parser->argc) return TARE_FAIL(TARE_USAGE, "option '--%s' needs a value", row->name);
        text = parser->argv[parser->next++];
        if (text[0] == '-' && text[1] == '-' && text[2])
            return TARE_FAIL(TARE_USAGE, "option '--%s' needs a value (got '%s'; write --%s=%s if that is the value)",
                             row->name, text, row->name, text);
    }
    if (row->kind == TARE_OPTION_LIST && row->fallback) {
        /* A list on the command line replaces the default. */
        struct tare_option_list *list = place;
        if (list->count == 1 && list->items[0] == row->fallback) list->count = 0;
    }
    if (row->kind == TARE_OPTION_READ) return tare_error_prefix(set_text(place, row, text), "--%s", row->name);
    return set_text(place, row, text);
}

static tare_status parse_long(struct parser *parser, const char *text) {
    const char *equals = strchr(text, '=');
    size_t size = equals ? (size_t)(equals - text) : strlen(text);
    struct tare_option_walk walk;
    const struct tare_option *row = find_row(&walk, parser->set->options, text, size);

    if (row) return take_value(parser, row, &walk, equals ? equals + 1 : NULL);
    if (same_name("help", text, size)) return parser->outcome->help = true, TARE_OK;
    if (size > 3 && strncmp(text, "no", 2) == 0 && plain(text[2]) == '-') {
        row = find_row(&walk, parser->set->options, text + 3, size - 3);
        if (row && row->kind == TARE_OPTION_FLAG) {
            if (equals) return TARE_FAIL(TARE_USAGE, "option '--no-%s' takes no value", row->name);
            return take_value(parser, row, &walk, "false");
        }
    }
    return unknown(parser->set->options, text, size);
}

static tare_status parse_letters(struct parser *parser, const char *text) {
    for (; *text; text++) {
        struct tare_option_walk walk;
        const struct tare_option *row = find_letter(&walk, parser->set->options, *text);
        if (!row) {
            if (*text == 'h') return parser->outcome->help = true, TARE_OK;
            return TARE_FAIL(TARE_USAGE, "unknown option '-%c'", *text);
        }
        if (row->kind != TARE_OPTION_FLAG) return take_value(parser, row, &walk, text[1] ? text + 1 : NULL);
        TARE_TRY(take_value(parser, row, &walk, NULL));
    }
    return TARE_OK;
}

static tare_status take_argument(struct parser *parser, const struct tare_argument **row, const char *text) {
    void *place;
    if (!*row || !(*row)->name) return TARE_FAIL(TARE_USAGE, "unexpected argument '%s'", text);
    place = (char *)parser->values + (*row)->offset;
    if ((*row)->flags & TARE_OPTION_REPEATABLE) return append(place, text);
    *(const char **)place = text;
    (*row)++;
    return TARE_OK;
}

/* Iterates over the names of `needs` that the set has. */
static bool next_needed(char name[64], const char **list, const struct tare_option_set *set) {
    struct tare_option_walk walk;
    while (**list) {
        const size_t size = strcspn(*list, " ");
        snprintf(name, 64, "%.*s", (int)size, *list);
        *list += size + ((*list)[size] == ' ');
        if (find_row(&walk, set->options, name, strlen(name))) return true;
    }
    return false;
}

/* An option that changes nothing without another one is likely a mistake. */
static tare_status check_needs(const struct parser *parser, const struct tare_option *row) {
    struct tare_strbuf missing = { 0 };
    const char *list = row->needs ? row->needs : "";
    char name[64];
    bool is_met = false;
    tare_status status = TARE_OK;
    while (next_needed(name, &list, parser->set)) {
        is_met |= tare_option_was_given(parser->set, parser->outcome, name);
        tare_strbuf_printf(&missing, "%s--%s", missing.size ? " or " : "", name);
    }
    if (missing.size && !is_met)
        status = TARE_FAIL(TARE_USAGE, "option '--%s' has no effect without %s", row->name, tare_strbuf_text(&missing));
    tare_strbuf_free(&missing);
    return status;
}

static tare_status check_required(const struct parser *parser, const struct tare_argument *left) {
    for (; left && left->name; left++) {
        const struct tare_option_list *list = (const void *)((const char *)parser->values + left->offset);
        if ((left->flags & TARE_OPTION_REPEATABLE) && list->count) break;
        if (left->flags & TARE_OPTION_REQUIRED) return TARE_FAIL(TARE_USAGE, "missing argument %s", left->name);
    }
    struct tare_option_walk walk = tare_option_walk(parser->set->options);
    for (const struct tare_option *row; (row = tare_option_next(&walk));) {
        const bool was_given = parser->outcome->given >> walk.index & 1;
        if ((row->flags & TARE_OPTION_REQUIRED) && !was_given)
            return TARE_FAIL(TARE_USAGE, "missing option '--%s'", row->name);
        if (was_given) TARE_TRY(check_needs(parser, row));
    }
    return TARE_OK;
}

tare_status tare_options_parse(void *values, struct tare_option_outcome *outcome, const struct tare_option_set *set,
                               int argc, char *const *argv) {
    struct parser parser = { .values = values, .outcome = outcome, .set = set, .argc = argc, .argv = argv };
    const struct tare_argument *argument = set->arguments;
    bool only_arguments = false;

    memset(outcome, 0, sizeof *outcome);
    for (const struct tare_argument *row = set->arguments; row && row->name; row++)
        memset((char *)values + row->offset, 0,
               row->flags & TARE_OPTION_REPEATABLE ? sizeof(struct tare_option_list) : sizeof(char *));
    TARE_TRY(tare_options_defaults(values, set->options));
    while (parser.next < argc && !outcome->help) {
        const char *text = argv[parser.next++];
        if (only_arguments || text[0] != '-' || !text[1])
            TARE_TRY(take_argument(&parser, &argument, text));
        else if (text[1] != '-')
            TARE_TRY(parse_letters(&parser, text + 1));
        else if (text[2])
            TARE_TRY(parse_long(&parser, text + 2));
        else
            only_arguments = true;
    }
    return outcome->help ? TARE_OK : check_required(&parser, argument);
}

const struct tare_option *tare_option_find(const struct tare_option *rows, const char *name) {
    struct tare_option_walk walk;
    return find_row(&walk, rows, name, strlen(name));
}

tare_status tare_option_set_value(void *values, const struct tare_option *rows, const char *name, const char *text) {
    struct tare_option_walk walk;
    const struct tare_option *row = find_row(&walk, rows, name, strlen(name));
    if (!row) return unknown(rows, name, strlen(name));
    note_given(values, row, &walk);
    return set_text((char *)values + walk.offset, row, text);
}

void tare_options_copy(void *to, const void *from, const struct tare_option *rows, uint64_t mask) {
    for (size_t i = 0; rows[i].name; i++)
        if (mask >> i & 1) memcpy((char *)to + rows[i].offset, (const char *)from + rows[i].offset, size_of(&rows[i]));
}

/* ---- values as text ---- */

void tare_option_put_value(struct tare_strbuf *out, const struct tare_option *row, const void *values) {
    const void *value = (const char *)values + row->offset;
    switch (row->kind) {
    case TARE_OPTION_FLAG:
        tare_strbuf_puts(out, *(const bool *)value ? "true" : "false");
        return;
    case TARE_OPTION_STRING:
        tare_strbuf_puts(out, *(const char *const *)value ? *(const char *const *)value : "");
        return;
    case TARE_OPTION_INT:
        tare_strbuf_printf(out, "%d", *(const int *)value);
        return;
    case TARE_OPTION_INT64:
        tare_strbuf_printf(out, "%lld", (long long)*(const int64_t *)value);
        return;
    case TARE_OPTION_DOUBLE:
        tare_strbuf_printf(out, "%.17g", *(const double *)value);
        return;
    case TARE_OPTION_CHOICE:
        tare_strbuf_puts(out, row->choices[*(const int *)value]);
        return;
    case TARE_OPTION_READ:
        row->print(out, values);
        return;
    case TARE_OPTION_LIST:
    case TARE_OPTION_GROUP:
        return;
    }
}

/* The text of a default; numbers and flags without one are 0. */
static const char *default_text(const struct tare_option *row) {
    if (row->fallback) return row->fallback;
    return row->kind == TARE_OPTION_FLAG ? "false" : row->kind == TARE_OPTION_STRING ? "" : "0";
}

bool tare_option_is_changed(const struct tare_option *row, const void *values) {
    struct tare_strbuf text = { 0 };
    tare_option_put_value(&text, row, values);
    const bool changed = strcmp(tare_strbuf_text(&text), default_text(row)) != 0;
    tare_strbuf_free(&text);
    return changed;
}

void tare_option_put(struct tare_strbuf *out, const struct tare_option *row, const void *values) {
    struct tare_strbuf text = { 0 };
    tare_option_put_value(&text, row, values);
    if (row->kind == TARE_OPTION_FLAG) {
        tare_strbuf_printf(out, " --%s%s", strcmp(tare_strbuf_text(&text), "false") == 0 ? "no-" : "", row->name);
    } else {
        tare_strbuf_printf(out, " --%s ", row->name);
        tare_strbuf_shell_word(out, tare_strbuf_text(&text));
    }
    out->failed |= text.failed;
    tare_strbuf_free(&text);
}

bool tare_option_was_given(const struct tare_option_set *set, const struct tare_option_outcome *outcome,
                           const char *name) {
    struct tare_option_walk walk;
    const struct tare_option *row = find_row(&walk, set->options, name, strlen(name));
    return row && (outcome->given >> walk.index & 1);
}

static void free_list(void *values, size_t offset) {
    struct tare_option_list *list = (struct tare_option_list *)(void *)((char *)values + offset);
    tare_free(list->items);
    memset(list, 0, sizeof *list);
}

void tare_options_free(void *values, const struct tare_option_set *set) {
    struct tare_option_walk walk = tare_option_walk(set->options);
    for (const struct tare_option *row; (row = tare_option_next(&walk));)
        if (row->kind == TARE_OPTION_LIST) free_list(values, walk.offset);
    for (const struct tare_argument *row = set->arguments; row && row->name; row++)
        if (row->flags & TARE_OPTION_REPEATABLE) free_list(values, row->offset);
}
