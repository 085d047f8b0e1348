/* tare completion: prints a shell script that completes commands, options and their values. */
#include "cli/completion/completion.h"
#include "cli/limits.h"

#include <stdio.h>
#include <string.h>

struct completion_options {
    const char *shell;
};

static const struct {
    const char *name;
    void (*write)(struct tare_strbuf *out);
} shells[] = { { "bash", tare_completion_bash }, { "zsh", tare_completion_zsh }, { "fish", tare_completion_fish } };

static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct completion_options, "SHELL", shell), .help = "bash, zsh or fish",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = {
    "source <(tare completion bash)",
    "tare completion zsh > ~/.zsh/completions/_tare",
    "tare completion fish > ~/.config/fish/completions/tare.fish",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare completion",
    .summary = "Prints a completion script for commands, options and their values. The Debian package installs the "
               "scripts for all three shells.",
    .arguments = arguments,
    .examples = examples,
};

struct tare_completion_walk tare_completion_walk(const struct tare_command *command) {
    return (struct tare_completion_walk){ .options = tare_option_walk(command->options->options),
                                          .of_every_command = command->parts };
}

const struct tare_option *tare_completion_next(struct tare_completion_walk *walk) {
    const struct tare_option *row = tare_option_next(&walk->options);
    while (row && (row->flags & TARE_OPTION_HIDDEN))
        row = tare_option_next(&walk->options);
    if (row || walk->of_every_command) return row;
    walk->of_every_command = true;
    walk->options = tare_option_walk(tare_limits_rows);
    return tare_option_next(&walk->options);
}

enum tare_completion_kind tare_completion_of(const struct tare_option *row) {
    const char *placeholder = tare_option_placeholder(row);
    if (row->kind == TARE_OPTION_FLAG || !placeholder) return TARE_COMPLETE_NOTHING;
    if (row->choices) return TARE_COMPLETE_WORDS;
    if (row->words) return strstr(placeholder, ",…") ? TARE_COMPLETE_LIST : TARE_COMPLETE_WORDS;
    if (strcmp(placeholder, "DIR") == 0) return TARE_COMPLETE_FOLDERS;
    if (strstr(placeholder, "FILE") || strstr(placeholder, "LIB") || strstr(placeholder, ".tfrecord"))
        return TARE_COMPLETE_FILES;
    return TARE_COMPLETE_TEXT;
}

const char *const *tare_completion_choices(const struct tare_option *row) {
    return row->choices ? row->choices : row->words;
}

static void append_name(void *arg, const struct tare_command *command, const char *path) {
    if (strcmp(command->name, path) == 0) tare_strbuf_printf(arg, "%s ", path);
}

bool tare_completion_words(struct tare_strbuf *out, const struct tare_argument *row) {
    if (strcmp(row->name, "COMMAND") == 0) return tare_command_each(append_name, out), true;
    if (strcmp(row->name, "SHELL") != 0) return false;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        tare_strbuf_printf(out, "%s ", shells[i].name);
    return true;
}

static tare_status print_script(const char *shell) {
    struct tare_strbuf text = { 0 };
    bool failed;
    size_t i = 0;
    while (i < sizeof shells / sizeof *shells && strcmp(shells[i].name, shell) != 0)
        i++;
    if (i == sizeof shells / sizeof *shells)
        return TARE_FAIL(TARE_USAGE, "completion: unknown shell (expected bash, zsh or fish, got '%s')", shell);
    shells[i].write(&text);
    failed = text.failed;
    if (!failed) tare_strbuf_print(&text, stdout);
    tare_strbuf_free(&text);
    return failed ? TARE_NO_MEMORY : TARE_OK;
}

static tare_status run(int argc, char *const *argv) {
    struct completion_options options;
    bool done;
    TARE_TRY(tare_command_parse(&options, &done, &set, argc, argv));
    return done ? TARE_OK : print_script(options.shell);
}

const struct tare_command tare_command_completion = {
    .name = "completion", .summary = "print a completion script for bash, zsh or fish", .run = run, .options = &set
};
