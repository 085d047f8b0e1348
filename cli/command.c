/* Finding and running subcommands. */
#include "cli/command.h"
#include "base/strbuf.h"
#include "cli/plugins.h"
#include "cli/version.h"

#include <stdint.h>

#include <stdio.h>
#include <string.h>

volatile sig_atomic_t tare_interrupted;

/* One line a command, in the order of the overview. */
#define COMMANDS(X)                                                                                                    \
    X(inspect)                                                                                                         \
    X(run)                                                                                                             \
    X(calibrate)                                                                                                       \
    X(merge)                                                                                                           \
    X(show)                                                                                                            \
    X(quantize)                                                                                                        \
    X(convert)                                                                                                         \
    X(compare)                                                                                                         \
    X(batch)                                                                                                           \
    X(diff)                                                                                                            \
    X(copy)                                                                                                            \
    X(validate)                                                                                                        \
    X(dataset)                                                                                                         \
    X(ops)                                                                                                             \
    X(version)

#define DECLARE(name) extern const struct tare_command tare_command_##name;
COMMANDS(DECLARE)
#undef DECLARE

#define ROW(name) &tare_command_##name,
const struct tare_command *const tare_commands[] = { COMMANDS(ROW) NULL };
#undef ROW

static void on_signal(int number) {
    (void)number;
    tare_interrupted = 1;
}

/* The first signal asks politely; SA_RESETHAND lets a second one end the program. */
static void catch_signals(void) {
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

tare_status tare_command_parse(void *values, bool *done, const struct tare_option_set *set, int argc,
                               char *const *argv) {
    struct tare_option_outcome outcome;
    TARE_TRY(tare_options_parse(values, &outcome, set, argc, argv));
    *done = outcome.help;
    if (!outcome.help) TARE_TRY(tare_command_load_plugins(values, set));
    if (outcome.help) {
        struct tare_strbuf text = { 0 };
        tare_options_help(&text, set);
        fputs(tare_strbuf_text(&text), stdout);
        tare_strbuf_free(&text);
    }
    return TARE_OK;
}

static const struct tare_command *find(const char *name) {
    for (size_t i = 0; tare_commands[i]; i++)
        if (strcmp(tare_commands[i]->name, name) == 0) return tare_commands[i];
    return NULL;
}

tare_status tare_command_do(const char *name, int argc, char *const *argv) {
    const struct tare_command *command = find(name);
    return command ? command->run(argc, argv) : TARE_FAIL(TARE_USAGE, "there is no command '%s'", name);
}

static void print_overview(FILE *out) {
    fprintf(out, "tare %s calibrates, quantizes and converts TensorFlow 2 SavedModels for Cloud TPU inference.\n\n"
                 "usage: tare COMMAND [ARGUMENT]…\n\n",
            TARE_VERSION);
    for (size_t i = 0; tare_commands[i]; i++)
        fprintf(out, "  %-10s %s\n", tare_commands[i]->name, tare_commands[i]->summary);
    fprintf(out, "\n'tare help COMMAND' tells more of one.\n");
}

static int unknown_command(const char *name) {
    const char *names[64];
    const char *nearest;
    size_t count = 0;
    for (; tare_commands[count] && count < 63; count++) names[count] = tare_commands[count]->name;
    names[count] = NULL;
    nearest = tare_nearest_name(name, names);
    if (nearest)
        fprintf(stderr, "tare: there is no command '%s' (did you mean '%s'?)\n", name, nearest);
    else
        fprintf(stderr, "tare: there is no command '%s' ('tare help' lists them)\n", name);
    return 2;
}

static int print_help(const char *name) {
    const struct tare_command *command;
    char *help[] = { (char *)(uintptr_t)"--help" };
    if (!name) {
        print_overview(stdout);
        return 0;
    }
    command = find(name);
    return command ? command->run(1, help) != TARE_OK : unknown_command(name);
}

static int exit_status(tare_status status) {
    switch (status) {
    case TARE_OK: return 0;
    case TARE_USAGE: return 2;
    case TARE_INTERRUPTED: return 130;
    default: return 1;
    }
}

int tare_main(int argc, char *const *argv) {
    const struct tare_command *command;
    tare_status status;
    if (argc < 2) {
        print_overview(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("tare %s\n", TARE_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help(argc > 2 ? argv[2] : NULL);
    command = find(argv[1]);
    if (!command) return unknown_command(argv[1]);
    catch_signals();
    tare_error_clear();
    status = command->run(argc - 2, argv + 2);
    tare_command_free_plugins();
    if (status != TARE_OK) {
        const char *text = tare_error_text();
        fprintf(stderr, "tare: %s\n", *text ? text : tare_status_name(status));
    }
    if (fflush(stdout) != 0 && status == TARE_OK) {
        fprintf(stderr, "tare: standard output: cannot be written\n");
        return 1;
    }
    return exit_status(status);
}
