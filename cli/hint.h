/* The command that a user probably runs next, printed as a note after the work. */
#ifndef TARE_CLI_HINT_H
#define TARE_CLI_HINT_H

#include "base/log.h"

/* Logs the note "next: tare …". The words follow as texts, quoted for the shell where necessary, and end with NULL;
 * placeholders for what the program does not know are in capitals: "EVAL.tfrecord". */
void tare_hint(const struct tare_log *log, ...) __attribute__((sentinel));

/* The name of a new file or folder for the model: the last part of its path and `suffix`. *name is the caller's to
 * tare_free; NULL: no memory. */
void tare_hint_name(char **name, const char *model, const char *suffix);

#endif
