/* Subcommands: one file and one row each. A command parses its options by rows, calls the library and prints results on
 * stdout; messages and progress go to stderr. */
#ifndef TARE_CLI_COMMAND_H
#define TARE_CLI_COMMAND_H

#include "base/option.h"
#include "base/status.h"

#include <stdio.h>

struct tare_strbuf;

struct tare_command {
    const char *name;
    const char *summary; /* one line for "tare help" */
    /* Arguments behind the command's name. TARE_USAGE becomes exit status 2, every other failure 1. */
    tare_status (*run)(int argc, char *const *argv);
    const struct tare_option_set *options;   /* for help, man pages and completion */
    const struct tare_command *const *parts; /* subcommands of its own, ends with NULL; NULL: none */
    bool hidden;                             /* not in the overview, man pages and completion */
};

/* Every command, ended by a row without name. */
extern const struct tare_command *const tare_commands[];

/* Parses a command's options and loads the libraries of --plugin (cli/plugins.h); *done is set when help was asked for
 * and printed. */
tare_status tare_command_parse(void *values, bool *done, const struct tare_option_set *set, int argc,
                               char *const *argv);
/* The command, or part of one, that the words name ("dataset", "make"). TARE_USAGE, with the nearest name, when there
 * is none. */
tare_status tare_command_find(const struct tare_command **out, const char *const *words, size_t count) TARE_WARN_UNUSED;
/* Calls `visit` for every command and part that is not hidden, a part behind its command. `path` is "dataset make". */
void tare_command_each(void (*visit)(void *arg, const struct tare_command *command, const char *path), void *arg);
/* What 'tare help' prints. */
void tare_command_overview(struct tare_strbuf *out);
/* Characters of a line of the terminal that the stream goes to; 0: it is none, and lines have any length. */
size_t tare_command_width(FILE *stream);
/* Runs a command in this process; TARE_USAGE when there is none of that name. */
tare_status tare_command_do(const char *name, int argc, char *const *argv);
/* Runs the command line; returns the exit status 0, 1, 2 or 130. */
int tare_main(int argc, char *const *argv);

/* Set by SIGINT and SIGTERM, for work that can stop in good order. */
#include <signal.h>
extern volatile sig_atomic_t tare_interrupted;

#endif
