/* Shell completion scripts, generated from the option rows. */
#ifndef TARE_CLI_COMPLETION_COMPLETION_H
#define TARE_CLI_COMPLETION_COMPLETION_H

#include "base/option.h"
#include "base/strbuf.h"
#include "cli/command.h"

/* Kinds of values that a shell can complete. */
enum tare_completion_kind {
    TARE_COMPLETE_NOTHING, /* a flag: no value */
    TARE_COMPLETE_WORDS,   /* the row's choices, or its words */
    TARE_COMPLETE_LIST,    /* the row's words, separated by commas */
    TARE_COMPLETE_FILES,
    TARE_COMPLETE_FOLDERS,
    TARE_COMPLETE_TEXT, /* free text: nothing to complete */
};

/* Iterates over the options of a command that are shown, then, unless it only has parts, over those of every command.
 */
struct tare_completion_walk {
    struct tare_option_walk options;
    bool of_every_command; /* the walk is at them, or leaves them out */
};
struct tare_completion_walk tare_completion_walk(const struct tare_command *command);
const struct tare_option *tare_completion_next(struct tare_completion_walk *walk); /* NULL at the end */

/* Derived from the row's kind and placeholder. */
enum tare_completion_kind tare_completion_of(const struct tare_option *row);
/* The choices or words of a row of kind WORDS or LIST. */
const char *const *tare_completion_choices(const struct tare_option *row);
/* Appends the possible values of an argument, each followed by a space: the commands for COMMAND, the shells for SHELL.
 * Returns false, and appends nothing, for other arguments, which are files. */
bool tare_completion_words(struct tare_strbuf *out, const struct tare_argument *row);

/* Append the complete script. */
void tare_completion_bash(struct tare_strbuf *out);
void tare_completion_zsh(struct tare_strbuf *out);
void tare_completion_fish(struct tare_strbuf *out);

#endif
