/* The command that a user probably runs next, printed as a note after the work. */
#ifndef TARE_CLI_HINT_H
#define TARE_CLI_HINT_H

#include "base/log.h"
#include "base/strbuf.h"

/* "tare" if a shell finds this program by that name, otherwise the path by which it was called, quoted. */
void tare_hint_put_program(struct tare_strbuf *out);
/* The line "next: tare …" of a result; none for NULL. */
void tare_hint_put_next(struct tare_strbuf *out, const char *command);

/* Logs the note "next: tare …". The words of the command after the program follow as texts, quoted for the shell where
 * necessary, and end with NULL; placeholders for what the program does not know are in capitals: "EVAL.tfrecord". */
void tare_hint(const struct tare_log *log, ...) __attribute__((sentinel));

/* The same for an array of words, which ends with NULL. */
void tare_hint_words(const struct tare_log *log, const char *const *words);

/* The name of a new file or folder in the working folder for a model: the last part of its path and `suffix`; with _2,
 * _3 … before the suffix if that exists. *name is the caller's to tare_free; NULL: no memory. */
void tare_hint_name(char **name, const char *model, const char *suffix);
/* The prefix of new files for a model, a data file, a pattern or "-", without extension: PREFIX and each of `suffixes`,
 * which ends with NULL, do not exist yet. */
void tare_hint_prefix(char **prefix, const char *path, const char *const *suffixes);

#endif
