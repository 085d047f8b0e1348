/* Options as rows: one row says an option's names, kind, place in a struct, default, bounds and help, and one parser
 * and one help printer serve every command and every "name=value" list.
 *
 * In long names '-' and '_' are the same. Values may be written --name value or --name=value; a flag --name or
 * --no-name; "--" ends the options. The last of several values of one option counts, but for lists. */
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
    TARE_OPTION_LIST,   /* struct tare_option_list: one element each time the option is given */
};

enum tare_option_flags {
    TARE_OPTION_REQUIRED = 1,
    TARE_OPTION_HIDDEN = 2,     /* not in the help */
    TARE_OPTION_REPEATABLE = 4, /* positional arguments: takes all that are left (the last row; kind LIST) */
};

struct tare_option_list {
    const char **items;
    size_t count, capacity;
};

/* A row; arrays end with a row without a name. min and max bind numbers when they differ. */
struct tare_option {
    const char *name;
    char letter; /* -o; 0 for none */
    enum tare_option_kind kind;
    size_t offset;        /* of the value in the struct */
    const char *fallback; /* default, as it would be written; NULL: zero, NULL or empty */
    double min, max;
    const char *const *choices; /* ends with NULL */
    const char *placeholder;    /* "FILE"; NULL: the kind's own */
    const char *help;           /* one sentence without full stop */
    unsigned flags;
    const char *fallback_text; /* what the help calls the default ("none"); NULL: `fallback` itself */
};

/* A row for an argument without a name, in order; kind STRING, or LIST for a repeatable one. */
struct tare_argument {
    const char *name; /* "MODEL" */
    size_t offset;
    const char *help;
    unsigned flags;
};

struct tare_option_set {
    const char *program;                   /* "tare inspect" */
    const char *summary;                   /* a sentence or more, for the help */
    const struct tare_option *options;     /* at most 64; NULL: none */
    const struct tare_argument *arguments; /* NULL: none */
    const char *const *examples;           /* whole command lines, ends with NULL; NULL: none */
};

struct tare_option_outcome {
    bool help;      /* -h or --help was met; nothing else was checked */
    uint64_t given; /* bit i: row i was given */
};

/* Sets the defaults, then parses argv[0] … argv[argc-1] (without the program's name) into `values`. A wrong command
 * line is TARE_USAGE. Strings in `values` borrow from argv. Release lists with tare_options_free, also on failure. */
tare_status tare_options_parse(void *values, struct tare_option_outcome *outcome, const struct tare_option_set *set,
                               int argc, char *const *argv) TARE_WARN_UNUSED;
/* Parses "name=value,name=value" (a flag may stand alone) by rows into `values`, without setting defaults. The strings
 * are kept in `text`, which is cut up and must live as long as the values. */
tare_status tare_options_parse_pairs(void *values, const struct tare_option *rows, char *text) TARE_WARN_UNUSED;
/* Sets one value from its text. TARE_USAGE with "option '--name': …" when it does not fit. */
tare_status tare_option_set_text(void *values, const struct tare_option *row, const char *text) TARE_WARN_UNUSED;
/* Writes each row's default. */
tare_status tare_options_defaults(void *values, const struct tare_option *rows) TARE_WARN_UNUSED;
void tare_options_free(void *values, const struct tare_option_set *set);

/* True when the option `name` stood on the command line. */
bool tare_option_was_given(const struct tare_option_set *set, const struct tare_option_outcome *outcome,
                           const char *name);

/* Appends usage line, summary, arguments, options and examples, wrapped at 80 columns. */
void tare_options_help(struct tare_strbuf *out, const struct tare_option_set *set);
/* What stands for the row's value in help ("FILE", "N"); NULL for a flag. */
const char *tare_option_placeholder(const struct tare_option *row);
/* Appends the row's help with its choices, its default and whether it must or may be given more than once. */
void tare_option_describe(struct tare_strbuf *out, const struct tare_option *row);

/* The name nearest to `text` by edits (insert, delete, replace, swap of neighbours), NULL when none is near enough to
 * be meant: at most a third of the longer text's letters. `names` ends with NULL. */
const char *tare_nearest_name(const char *text, const char *const *names);
/* The number of edits. Only the first 64 bytes of each text count. */
size_t tare_edit_distance(const char *a, const char *b);

#endif
