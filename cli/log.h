/* --verbose and --log-file, the options of every command that works on files. Messages go to standard error, and with
 * --log-file all of them, whatever --quiet suppresses, also to a file: one line each, with time and level. */
#ifndef TARE_CLI_LOG_H
#define TARE_CLI_LOG_H

#include "base/log.h"
#include "base/option.h"
#include "base/warnings.h"

extern const struct tare_option tare_log_rows[];
/* The rows; `type` must have a member `struct tare_log_options logging`. */
#define TARE_LOG_OPTIONS(type) TARE_OPTION_NESTED(type, logging, tare_log_rows)

/* Opens the log with the options of a command, if `set` has the rows, and writes the command line to it. For
 * tare_command_parse. */
tare_status tare_command_log_open(const void *values, const struct tare_option_set *set, int argc,
                                  char *const *argv) TARE_WARN_UNUSED;
/* Logs the outcome with time and memory, and closes the log file. `text`: the error, NULL after success. Returns the
 * exit status: 1 after success if a part of the log could not be written, which is printed. For tare_main. */
int tare_command_log_close(int exit_status, const char *text);

/* The log of the command. `quiet`: standard error shows only warnings. */
struct tare_log tare_command_log(bool quiet);
/* The warnings that were written so far, each once: for the report of the command. */
const struct tare_warnings *tare_command_warnings(void);
/* Writes a message that the command prints itself to the log file alone. */
void tare_command_log_to_file(enum tare_log_level level, const char *text);

#endif
