/* Subcommands: one file and one row each. A command parses its options by rows, calls workflow/, and prints results to
 * standard output, messages and progress to standard error. */
#ifndef TARE_CLI_COMMAND_H
#define TARE_CLI_COMMAND_H

#include "base/option.h"
#include "base/status.h"
#include "cli/interrupted.h"

#include <stdio.h>

struct tare_quantize_needs; /* workflow/quantize.h */
struct tare_strbuf;

struct tare_command {
    const char *name;
    const char *summary; /* one line for "tare help" */
    /* Takes the arguments after the command name. TARE_USAGE becomes exit status 2, every other failure 1. */
    tare_status (*run)(int argc, char *const *argv);
    /* Reads the plan of a quantization from the arguments, without running it; NULL: the command does not quantize. */
    tare_status (*needs)(struct tare_quantize_needs *out, int argc, char *const *argv);
    const struct tare_option_set *options;   /* for help, man pages and completion */
    const struct tare_command *const *parts; /* subcommands, ends with NULL; NULL: none */
    bool hidden;                             /* not in the overview, man pages and completion */
};

/* Parses a command's options and loads the libraries of --plugin (cli/plugins.h). Sets *done if the help was requested
 * and printed. */
tare_status tare_command_parse(void *values, bool *done, const struct tare_option_set *set, int argc,
                               char *const *argv);
/* Finds the command or subcommand with these words ("dataset", "make"). TARE_USAGE, with the nearest name, if there is
 * none. */
tare_status tare_command_find(const struct tare_command **out, const char *const *words, size_t count) TARE_WARN_UNUSED;
/* Calls `visit` for every command that is not hidden, followed by its subcommands. `path` is "dataset make". */
void tare_command_each(void (*visit)(void *arg, const struct tare_command *command, const char *path), void *arg);
/* Appends the output of 'tare help'. */
void tare_command_overview(struct tare_strbuf *out);
/* Width in columns of the terminal that the stream is connected to; 0 if it is not a terminal. */
size_t tare_command_width(FILE *stream);
/* Runs a command in this process; TARE_USAGE if the name is unknown. */
tare_status tare_command_do(const char *name, int argc, char *const *argv);
/* Makes the forked process stop on SIGTERM only: its parent forwards what the terminal sends to both. */
void tare_command_stop_with_parent(void);
/* Runs the command line; returns the exit status 0, 1, 2 or 130. */
int tare_main(int argc, char **argv);

#endif
