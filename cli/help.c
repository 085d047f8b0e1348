/* tare help: prints the list of commands, or the help of a command or subcommand. */
#include "base/strbuf.h"
#include "cli/command.h"

#include <stdio.h>

struct help_options {
    struct tare_option_list command;
};

static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct help_options, "COMMAND", command), .help = "command and subcommand, as in \"dataset make\"",
      .flags = TARE_OPTION_REPEATABLE },
    { 0 },
};
static const char *const examples[] = { "tare help calibrate", "tare help dataset make", NULL };
static const struct tare_option_set set = {
    .program = "tare help",
    .summary = "Lists the commands, or prints the help of one command.",
    .arguments = arguments,
    .examples = examples,
};

static tare_status print_help(const struct tare_option_list *words) {
    char option[] = "--help", *argv[] = { option, NULL };
    const struct tare_command *command;
    struct tare_strbuf text = { 0 };
    if (words->count) {
        TARE_TRY(tare_command_find(&command, words->items, words->count));
        return command->run(1, argv);
    }
    tare_command_overview(&text);
    tare_strbuf_print(&text, stdout);
    tare_strbuf_free(&text);
    return TARE_OK;
}

static tare_status run(int argc, char *const *argv) {
    struct help_options options;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (!done) status = print_help(&options.command);
done:
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_help = {
    .name = "help", .summary = "list the commands, or print the help of one", .run = run, .options = &set
};
