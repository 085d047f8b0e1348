/* Command line options described by rows. A row contains an option's names, kind, offset in a struct, default, bounds
 * and help text. One parser and one help printer serve every command and every "name=value" list. A row of kind
 * TARE_OPTION_GROUP includes another table, so that several commands share the options of one nested struct.
 *
 * '-' and '_' are equivalent in long names. Values are written --name value or --name=value, flags --name or --no-name;
 * "--" ends the options. If an option is repeated, the last value is used, except for lists. */
#ifndef TARE_BASE_OPTION_H
#define TARE_BASE_OPTION_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tare_strbuf;

enum tare_option_kind {
    TARE_OPTION_FLAG,   /* bool */
    TARE_OPTION_STRING, /* const char *, borrowed from the arguments or the default */
    TARE_OPTION_INT,    /* int */
    TARE_OPTION_INT64,  /* int64_t */
    TARE_OPTION_DOUBLE, /* double */
    TARE_OPTION_CHOICE, /* int: index into `choices` */
    TARE_OPTION_LIST,   /* struct tare_option_list: one element for each use of the option */
    TARE_OPTION_READ,   /* what `read` sets in the struct of the table and `print` appends; `size` bytes at `offset` */
    TARE_OPTION_GROUP,  /* no option itself: the rows of `group`, with offsets relative to this row's */
};

enum { TARE_OPTION_DEPTH = 4 }; /* maximum nesting of groups, the outermost table included */

enum tare_option_flags {
    TARE_OPTION_REQUIRED = 1,
    TARE_OPTION_HIDDEN = 2,     /* not in the help */
    TARE_OPTION_REPEATABLE = 4, /* positional arguments: takes all that are left (the last row; kind LIST) */
};

struct tare_option_list {
    const char **items;
    size_t count, capacity;
};

/* A row. A table ends with a row without a name. Numbers are limited to [min, max] if the two differ, and to `choices`
 * if an integer has any. */
struct tare_option {
    const char *name; /* of a group: any text */
    char letter;      /* short name, as in -o; 0: none */
    enum tare_option_kind kind;
    size_t offset;        /* offset of the value in the struct */
    const char *fallback; /* default, as on a command line; NULL: zero, NULL or empty */
    double min, max;
    const char *const *choices; /* ends with NULL */
    const char *placeholder;    /* "FILE"; NULL: the default of the kind */
    const char *help;           /* one sentence without a full stop */
    unsigned flags;
    const char *fallback_text; /* default as shown in the help ("none"); NULL: `fallback` */
    const struct tare_option *group;
    const char *const *words; /* for completion: known words of a text or comma-separated list; ends with NULL */
    /* Other options, separated by spaces: without any of them this one has no effect, and is an error on the command
     * line. Names that the set lacks are passed over; NULL, or all are: it needs none. */
    const char *needs;
    /* Offset in the struct of a uint64_t in which the parser sets bit i if row i of this table is given; 0: none. */
    size_t given;
    size_t size;
    tare_status (*read)(void *values, const char *text);
    void (*print)(struct tare_strbuf *out, const void *values);
    const char *without; /* of a group: rows to leave out, separated by spaces; their values are not set */
    /* Of a file or folder to write: endings of further files that are written next to it, as patterns of fnmatch(3),
     * separated by spaces: ".state". NULL: none. */
    const char *beside;
};

/* The beginning of a row, and of an argument: { TARE_OPTION(struct options, "json", FLAG, json), .help = "print JSON" }
 */
#define TARE_OPTION(type, row_name, row_kind, member)                                                                  \
    .name = row_name, .kind = TARE_OPTION_##row_kind, .offset = offsetof(type, member)
/* The same for the struct that the file defines as TARE_ROW_STRUCT; and with the bits of the rows that are given in its
 * member `given`. */
#define TARE_ROW(row_name, row_kind, member) TARE_OPTION(TARE_ROW_STRUCT, row_name, row_kind, member)
#define TARE_GIVEN_ROW(row_name, row_kind, member)                                                                     \
    TARE_ROW(row_name, row_kind, member), .given = offsetof(TARE_ROW_STRUCT, given)
#define TARE_ARGUMENT(type, row_name, member) .name = row_name, .offset = offsetof(type, member)

/* The row that includes the table `rows` for the nested struct `member` of `type`. */
#define TARE_OPTION_NESTED(type, member, rows)                                                                         \
    { .name = #member, .kind = TARE_OPTION_GROUP, .offset = offsetof(type, member), .group = rows }

/* The same without some of its rows. */
#define TARE_OPTION_NESTED_WITHOUT(type, member, rows, names)                                                          \
    { .name = #member, .kind = TARE_OPTION_GROUP, .offset = offsetof(type, member), .group = rows, .without = names }

/* A positional argument; kind STRING, or LIST if it is repeatable. */
struct tare_argument {
    const char *name; /* "MODEL" */
    size_t offset;
    const char *help;
    unsigned flags;
    const char *beside; /* as of an option */
};

struct tare_option_set {
    const char *program;                   /* "tare inspect" */
    const char *summary;                   /* one or more sentences, for the help */
    const struct tare_option *options;     /* at most 64, groups expanded; NULL: none */
    const struct tare_argument *arguments; /* NULL: none */
    const char *const *examples;           /* complete command lines, ends with NULL; NULL: none */
};

struct tare_option_outcome {
    bool help;      /* -h or --help was given; nothing else was checked */
    uint64_t given; /* bit i: row i, groups expanded, was given */
};

/* Iterates over the rows of a table with its groups expanded:
 *     struct tare_option_walk walk = tare_option_walk(rows);
 *     for (const struct tare_option *row; (row = tare_option_next(&walk));) … */
struct tare_option_walk {
    const struct tare_option *first[TARE_OPTION_DEPTH], *next[TARE_OPTION_DEPTH];
    size_t base[TARE_OPTION_DEPTH];
    const char *without[TARE_OPTION_DEPTH];
    int depth;
    size_t offset;  /* of the current row's value in the outermost struct */
    unsigned index; /* of the current row */
};
struct tare_option_walk tare_option_walk(const struct tare_option *rows);
/* The next row, never a group; NULL at the end. */
const struct tare_option *tare_option_next(struct tare_option_walk *walk);

/* Sets the defaults, then parses argv[0] … argv[argc-1] (without the program name) into `values`. Returns TARE_USAGE
 * for an invalid command line. Strings in `values` borrow from argv. Release lists with tare_options_free, also after a
 * failure. */
tare_status tare_options_parse(void *values, struct tare_option_outcome *outcome, const struct tare_option_set *set,
                               int argc, char *const *argv) TARE_WARN_UNUSED;
/* The row of this name, also in groups; '-' and '_' are equivalent. NULL: none. */
const struct tare_option *tare_option_find(const struct tare_option *rows, const char *name);
/* Sets one value by the name of its row. */
tare_status tare_option_set_value(void *values, const struct tare_option *rows, const char *name,
                                  const char *text) TARE_WARN_UNUSED;
/* Copies the values of the rows in `mask` (bit i: row i of a table without groups). */
void tare_options_copy(void *to, const void *from, const struct tare_option *rows, uint64_t mask);
/* Appends the value of a row, as on a command line and not quoted; not for lists. `values`: the struct of its table. */
void tare_option_put_value(struct tare_strbuf *out, const struct tare_option *row, const void *values);
/* Appends the option of a row as a command line has it: " --bits 4", " --no-color"; not for lists. */
void tare_option_put(struct tare_strbuf *out, const struct tare_option *row, const void *values);
/* Whether the value differs from the default. */
bool tare_option_is_changed(const struct tare_option *row, const void *values);
/* Sets the value of each row to its default. */
tare_status tare_options_defaults(void *values, const struct tare_option *rows) TARE_WARN_UNUSED;
void tare_options_free(void *values, const struct tare_option_set *set);

/* Whether the option `name` was given on the command line. */
bool tare_option_was_given(const struct tare_option_set *set, const struct tare_option_outcome *outcome,
                           const char *name);

/* A heading in the help and the options below it, by name in this order, separated by spaces. */
struct tare_option_heading {
    const char *title, *names;
};
enum { TARE_OPTION_FEW = 12 }; /* so many options need no headings */
/* Appends usage line, summary, arguments, options and examples, wrapped at 80 columns. Many options are listed below
 * `headings`, which end with a row without title; those that no heading has are the first. NULL: one list. */
void tare_options_help(struct tare_strbuf *out, const struct tare_option_set *set,
                       const struct tare_option_heading *headings);
/* The heading of an option; NULL: none has it. */
const struct tare_option_heading *tare_option_heading_of(const struct tare_option_heading *headings, const char *name);
/* Appends the options of a table alone, as in tare_options_help. */
void tare_option_rows_help(struct tare_strbuf *out, const struct tare_option *rows);
/* Placeholder of the row's value in the help ("FILE", "N"); NULL for a flag. */
const char *tare_option_placeholder(const struct tare_option *row);
/* Appends the row's help text, its choices, its default, and whether it is required or repeatable. */
void tare_option_describe(struct tare_strbuf *out, const struct tare_option *row);

/* The name with the smallest edit distance to `text`, 0 if only their case differs; NULL if that exceeds a third of the
 * longer text's length. `names` ends with NULL. */
const char *tare_nearest_name(const char *text, const char *const *names);
/* Number of insertions, deletions, replacements and swaps of neighbours (optimal string alignment). Only the first 64
 * bytes of each text are compared. */
size_t tare_edit_distance(const char *a, const char *b);

#endif
