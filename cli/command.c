/* Finds and runs subcommands, and maps their status to the exit status. */
#include "cli/command.h"
#include "cli/headings.h"
#include "base/clock.h"
#include "base/control.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/visible.h"
#include "cli/limits.h"
#include "cli/log.h"
#include "cli/output_check.h"
#include "cli/output/json_error.h"
#include "cli/output/visible_output.h"
#include "cli/plugins.h"
#include "include/tare/version.h"
#include "interpreter/kernels/cpu.h"

#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

volatile sig_atomic_t tare_interrupted;

/* One line per command, in the order of the overview. */
#define COMMANDS(X)                                                                                                    \
    X(auto)                                                                                                            \
    X(inspect)                                                                                                         \
    X(run)                                                                                                             \
    X(calibrate)                                                                                                       \
    X(merge)                                                                                                           \
    X(show)                                                                                                            \
    X(quantize)                                                                                                        \
    X(convert)                                                                                                         \
    X(compare)                                                                                                         \
    X(batch)                                                                                                           \
    X(check)                                                                                                           \
    X(export)                                                                                                          \
    X(diff)                                                                                                            \
    X(unwrap)                                                                                                          \
    X(copy)                                                                                                            \
    X(validate)                                                                                                        \
    X(dataset)                                                                                                         \
    X(ops)                                                                                                             \
    X(completion)                                                                                                      \
    X(man)                                                                                                             \
    X(help)                                                                                                            \
    X(version)

#define DECLARE(name) extern const struct tare_command tare_command_##name;
COMMANDS(DECLARE)
#undef DECLARE

#define ROW(name) &tare_command_##name,
static const struct tare_command *const all_commands[] = { COMMANDS(ROW) NULL };
#undef ROW

static const int stop_signals[] = { SIGINT, SIGTERM, SIGHUP };

/* The first signal requests an orderly stop; a second one, of any kind, ends the program at once. Within a tenth of a
 * second it is the same request: timeout(1), for example, signals its child and the group that the child is in. */
static void on_signal(int number) {
    static volatile int64_t first_ns;
    if (!tare_interrupted) first_ns = tare_clock_ns();
    if (tare_interrupted && tare_clock_ns() - first_ns > 100000000) {
        signal(number, SIG_DFL);
        raise(number);
    }
    tare_interrupted = TARE_STOP_INTERRUPTED;
}

/* A signal that the parent ignores (nohup, a background job of a shell without job control) stays ignored. A file that
 * becomes larger than the process may write (ulimit -f) is an error of the write, as a full disk is, and so is a pipe
 * whose reader has ended. */
static void catch_signals(void) {
    const struct sigaction action = { .sa_handler = on_signal };
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof stop_signals / sizeof *stop_signals; i++) {
        struct sigaction before;
        if (sigaction(stop_signals[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        sigaction(stop_signals[i], &action, NULL);
    }
}

void tare_command_stop_with_parent(void) {
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

/* Reports are built without a check of each step: a failed allocation is remembered, and the command fails. */
static void *json_allocate(size_t size) {
    void *block = malloc(size);
    if (!block) tare_control_note_failed_allocation(size);
    return block;
}

tare_status tare_command_parse(void *values, bool *done, const struct tare_option_set *set, int argc,
                               char *const *argv) {
    struct tare_option_outcome outcome;
    TARE_TRY(tare_options_parse(values, &outcome, set, argc, argv));
    *done = outcome.help;
    if (!outcome.help) TARE_TRY(tare_command_check_outputs(values, set));
    if (!outcome.help) TARE_TRY(tare_command_log_open(values, set, argc, argv));
    if (!outcome.help) TARE_TRY(tare_command_load_plugins(values, set));
    if (outcome.help) {
        struct tare_strbuf text = { 0 };
        tare_options_help(&text, set, tare_command_headings);
        tare_strbuf_print(&text, stdout);
        tare_strbuf_free(&text);
    }
    return TARE_OK;
}

static const struct tare_command *find(const struct tare_command *const *commands, const char *name) {
    for (; commands && *commands; commands++)
        if (strcmp((*commands)->name, name) == 0) return *commands;
    return NULL;
}

tare_status tare_command_do(const char *name, int argc, char *const *argv) {
    const struct tare_command *command;
    TARE_TRY(tare_command_find(&command, &name, 1));
    return command->run(argc, argv);
}

static tare_status unknown_command(const struct tare_command *const *commands, const char *name) {
    const char *names[64];
    const char *nearest;
    size_t count = 0;
    for (; commands && *commands && count < 63; commands++)
        if (!(*commands)->hidden) names[count++] = (*commands)->name;
    names[count] = NULL;
    nearest = tare_nearest_name(name, names);
    if (nearest) return TARE_FAIL(TARE_USAGE, "unknown command '%s' (did you mean '%s'?)", name, nearest);
    return TARE_FAIL(TARE_USAGE, "unknown command '%s' ('tare help' lists them)", name);
}

tare_status tare_command_find(const struct tare_command **out, const char *const *words, size_t count) {
    const struct tare_command *const *commands = all_commands;
    for (size_t i = 0; i < count; i++) {
        *out = find(commands, words[i]);
        if (!*out) return unknown_command(commands, words[i]);
        commands = (*out)->parts;
    }
    return TARE_OK;
}

void tare_command_each(void (*visit)(void *arg, const struct tare_command *command, const char *path), void *arg) {
    for (size_t i = 0; all_commands[i]; i++) {
        const struct tare_command *const *part = all_commands[i]->parts;
        if (all_commands[i]->hidden) continue;
        visit(arg, all_commands[i], all_commands[i]->name);
        for (; part && *part; part++)
            visit(arg, *part, (*part)->options->program + strlen("tare "));
    }
}

void tare_command_overview(struct tare_strbuf *out) {
    tare_strbuf_printf(
        out,
        "tare %s calibrates, quantizes and converts TensorFlow 2 SavedModels for Cloud TPU inference.\n\n"
        "usage: tare COMMAND [ARGUMENT]…\n\n",
        TARE_VERSION);
    for (size_t i = 0; all_commands[i]; i++)
        if (!all_commands[i]->hidden)
            tare_strbuf_printf(out, "  %-11s %s\n", all_commands[i]->name, all_commands[i]->summary);
    tare_strbuf_putc(out, '\n');
    tare_strbuf_puts(out, "Options of every command:\n");
    tare_option_rows_help(out, tare_limits_rows);
    tare_strbuf_puts(out, "\nRun 'tare help COMMAND' for the options of a command.\n");
}

static void print_overview(FILE *out) {
    struct tare_strbuf text = { 0 };
    tare_command_overview(&text);
    tare_strbuf_print(&text, out);
    tare_strbuf_free(&text);
}

size_t tare_command_width(FILE *stream) {
    const int file = stream == stdout ? STDOUT_FILENO : fileno(stream);
    struct winsize size;
    if (!isatty(file) || ioctl(file, TIOCGWINSZ, &size) != 0) return 0;
    return size.ws_col;
}

static int exit_status(tare_status status) {
    switch (status) {
    case TARE_OK:
        return 0;
    case TARE_USAGE:
        return 2;
    case TARE_INTERRUPTED:
        return 130;
    default:
        return 1;
    }
}

static tare_status run_command(int argc, char *const *argv) {
    const char *name = argv[1];
    const struct tare_command *command;
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) name = "version";
    TARE_TRY(tare_command_find(&command, &name, 1));
    return command->run(argc - 2, argv + 2);
}

/* As every program whose reader has seen enough (| head): without a message, but after all cleanup. */
static void end_without_reader(void) {
    struct pollfd output = { .fd = STDOUT_FILENO };
    if (poll(&output, 1, 0) != 1 || !(output.revents & POLLERR)) return;
    (void)tare_command_log_close(1, "standard output: its reader has ended");
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

/* Prints the error, if any; `json`: also on standard output. */
static int finish(tare_status status, bool json) {
    /* A write of a full buffer may have failed before; that leaves nothing for fflush to write. */
    const bool written = fflush(stdout) == 0 && !ferror(stdout);
    const char *text = NULL;
    char line[4 * 4096];
    if ((status == TARE_OK || status == TARE_IO) && !written) end_without_reader();
    if (status == TARE_OK && !written) status = TARE_FAIL(TARE_IO, "standard output: cannot be written");
    if (status != TARE_OK) {
        text = tare_visible_line(line, sizeof line, *tare_error_text() ? tare_error_text() : tare_status_name(status));
        fprintf(stderr, "%s %s\n", tare_log_colors_on(stderr) ? "\033[31mtare:\033[0m" : "tare:", text);
        if (json && written)
            tare_print_json_error(status, *tare_error_text() ? tare_error_text() : text, exit_status(status));
    }
    return tare_command_log_close(exit_status(status), text);
}

/* The library ignores a value that is not a name, but a person who sets it here expects that level. */
static tare_status check_environment(void) {
    const char *level = getenv("TARE_CPU");
    struct tare_strbuf names = { 0 };
    tare_status status;
    if (!level || !*level || tare_cpu_is_level_name(level)) return TARE_OK;
    tare_cpu_put_level_names(&names);
    status = TARE_FAIL(TARE_USAGE,
                       "environment variable TARE_CPU: unknown level '%s' (expected %s; unset it for the highest one "
                       "of this machine)",
                       level, tare_strbuf_text(&names));
    tare_strbuf_free(&names);
    return status;
}

int tare_main(int argc, char **argv) {
    static struct tare_control control;
    const bool json = tare_json_is_requested(argc, argv);
    tare_status status;
    control = (struct tare_control){ .cancelled = &tare_interrupted, .has_reason = true };
    catch_signals();
    tare_make_stdout_visible();
    json_set_alloc_funcs(json_allocate, free);
    tare_error_clear();
    tare_control_set(&control);
    status = tare_limits_apply(&argc, argv);
    if (status == TARE_OK && argc < 2) {
        print_overview(stderr);
        return 2;
    }
    if (status == TARE_OK) status = check_environment();
    if (status == TARE_OK) status = run_command(argc, argv);
    tare_command_free_plugins();
    if (status == TARE_OK) status = tare_control_verify();
    status = tare_control_conclude(status);
    if (status == TARE_NO_MEMORY && tare_control_has_committed())
        status = TARE_FAIL(status, "what was written is complete, but then: %s", tare_error_text());
    return finish(status, json);
}
