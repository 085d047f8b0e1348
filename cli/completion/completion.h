/* Completion scripts of the shells, written from the option rows. */
#ifndef TARE_CLI_COMPLETION_COMPLETION_H
#define TARE_CLI_COMPLETION_COMPLETION_H

#include "base/option.h"
#include "base/strbuf.h"

/* What a shell can offer for a value. */
enum tare_completion_kind {
    TARE_COMPLETE_NOTHING, /* a flag: there is no value */
    TARE_COMPLETE_WORDS,   /* the row's choices */
    TARE_COMPLETE_FILES,
    TARE_COMPLETE_FOLDERS,
    TARE_COMPLETE_TEXT, /* a value that only the user knows */
};

/* By the row's kind and placeholder. */
enum tare_completion_kind tare_completion_of(const struct tare_option *row);
/* Appends the words that may stand for an argument, by its name, with a blank behind each: for COMMAND the commands,
 * for SHELL the shells. False, and nothing appended, for the others: files. */
bool tare_completion_words(struct tare_strbuf *out, const struct tare_argument *row);

/* Append the whole script. */
void tare_completion_bash(struct tare_strbuf *out);
void tare_completion_zsh(struct tare_strbuf *out);
void tare_completion_fish(struct tare_strbuf *out);

#endif
