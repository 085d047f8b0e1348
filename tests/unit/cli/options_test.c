/* Every option of every command can be looked up: it has a help, and so has every argument; commands have examples. */
#include "cli/command.h"
#include "cli/headings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct seen {
    size_t options, arguments;
};

static void check_help(const char *path, const char *name, const char *help) {
    if (!help || strlen(help) < 8) fail_msg("tare %s: %s has no help", path, name);
    if (help[strlen(help) - 1] == '.') fail_msg("tare %s: the help of %s ends in a full stop: %s", path, name, help);
}

static void check(void *arg, const struct tare_command *command, const char *path) {
    struct seen *seen = arg;
    const struct tare_option_set *set = command->options;
    if (!command->summary || !*command->summary) fail_msg("tare %s has no summary", path);
    struct tare_option_walk walk = tare_option_walk(set->options);
    for (const struct tare_option *row; (row = tare_option_next(&walk)); seen->options++)
        check_help(path, row->name, row->help);
    for (const struct tare_argument *row = set->arguments; row && row->name; row++, seen->arguments++)
        check_help(path, row->name, row->help);
}

static void options__have_a_help(void **state) {
    struct seen seen = { 0 };
    (void)state;
    tare_command_each(check, &seen);
    if (seen.options < 100 || seen.arguments < 10)
        fail_msg("%zu options and %zu arguments were looked at (expected 100 and 10 at least)", seen.options,
                 seen.arguments);
}

static void check_headings(void *arg, const struct tare_command *command, const char *path) {
    struct tare_option_walk walk = tare_option_walk(command->options->options);
    size_t visible = 0, *grouped = arg;
    const char *without = NULL;
    for (const struct tare_option *row; (row = tare_option_next(&walk));) {
        if (row->flags & TARE_OPTION_HIDDEN) continue;
        visible++;
        if (!tare_option_heading_of(tare_command_headings, row->name)) without = row->name;
    }
    if (visible <= TARE_OPTION_FEW) return;
    (*grouped)++;
    if (without) fail_msg("tare %s: --%s is below no heading of cli/headings.c", path, without);
}

static void many_options__are_below_headings(void **state) {
    size_t grouped = 0;
    (void)state;
    tare_command_each(check_headings, &grouped);
    if (grouped < 5) fail_msg("%zu commands have headings (expected 5 at least)", grouped);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(options__have_a_help),
                                        cmocka_unit_test(many_options__are_below_headings) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
