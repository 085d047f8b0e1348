/* Regular expressions with the syntax and the matches of RE2, for the string ops. */
#ifndef TARE_INTERPRETER_OPS_STRING_REGEX_MATCH_H
#define TARE_INTERPRETER_OPS_STRING_REGEX_MATCH_H

#include "base/strbuf.h"
#include "base/tensor/tensor.h"

struct tare_regex {
    struct pcre2_real_code_8 *codes[2]; /* for UTF-8 text; for text in which TARE_RE2_BYTE stands for other bytes */
    struct pcre2_real_match_data_8 *match;
};

/* TARE_INVALID_ARGUMENT: "Invalid pattern: …, error: …". */
tare_status tare_regex_make(struct tare_regex *out, const char *pattern, size_t size) TARE_WARN_UNUSED;
void tare_regex_free(struct tare_regex *regex);

/* A text to search. */
struct tare_subject {
    struct tare_str text;      /* UTF-8 */
    struct tare_str original;  /* the same, or with bytes that `text` has TARE_RE2_BYTE for */
    size_t *origin;            /* place in `original` of each place in `text`; NULL: they are the same */
    struct tare_strbuf buffer; /* of `text` */
};

/* Borrows the text. */
tare_status tare_subject_make(struct tare_subject *out, struct tare_str text) TARE_WARN_UNUSED;
void tare_subject_free(struct tare_subject *subject);
/* Appends what the original has from `first` to `last` in the text. */
void tare_subject_copy(struct tare_strbuf *out, const struct tare_subject *subject, size_t first, size_t last);
/* The size of the character at `at`; 0: it is not UTF-8. */
size_t tare_subject_character(struct tare_str text, size_t at);

enum tare_regex_anchor { TARE_REGEX_ANYWHERE, TARE_REGEX_WHOLE };

/* *found: whether there is a match at or after `start`, or of the whole text. tare_regex_places then has its place, and
 * those of groups if `groups` asks for them. */
tare_status tare_regex_search(bool *found, const struct tare_regex *regex, const struct tare_subject *subject,
                              size_t start, enum tare_regex_anchor anchor, bool groups) TARE_WARN_UNUSED;
size_t tare_regex_groups(const struct tare_regex *regex);
/* Begin and end of the match, then of each group; SIZE_MAX: the group has no match. */
const size_t *tare_regex_places(const struct tare_regex *regex);

#endif
