/* Completion for fish: one line per option, with the condition that the words begin with its command. */
#include "cli/completion/completion.h"

#include <string.h>

static const char conditions[] =
    "# True if the words after 'tare' begin with these.\n"
    "function __tare_at\n"
    "    set -l words (commandline -opc)\n"
    "    set -l last (math (count $argv) + 1)\n"
    "    test (count $words) -ge $last; and test \"$words[2..$last]\" = \"$argv\"\n"
    "end\n"
    "# True if these are all of the words after 'tare'.\n"
    "function __tare_only\n"
    "    set -l words (commandline -opc)\n"
    "    test \"$words[2..]\" = \"$argv\"\n"
    "end\n"
    "# The words after what a comma-separated list already contains.\n"
    "function __tare_list\n"
    "    set -l typed (commandline -ct | string replace -r '[^,]*$' '' | string replace -r "
    "'^.*=' '')\n"
    "    for word in $argv\n"
    "        string match -q \"*,$word,*\" \",$typed\"; or echo \"$typed$word\"\n"
    "    end\n"
    "end\n"
    "complete -c tare -f\n"
    "complete -c tare -n __tare_only -s V -l version -d 'print the version'\n"
    "complete -c tare -s h -l help -d 'show help'\n";

static void put_text(struct tare_strbuf *out, const char *text) {
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') tare_strbuf_putc(out, '\\');
        tare_strbuf_putc(out, *text);
    }
}

static void put_option(struct tare_strbuf *out, const struct tare_option *row, const char *path) {
    enum tare_completion_kind kind = tare_completion_of(row);
    tare_strbuf_printf(out, "complete -c tare -n '__tare_at %s' -l %s", path, row->name);
    if (row->letter) tare_strbuf_printf(out, " -s %c", row->letter);
    if (kind == TARE_COMPLETE_FILES) tare_strbuf_puts(out, " -r -F");
    if (kind == TARE_COMPLETE_FOLDERS) tare_strbuf_puts(out, " -x -a '(__fish_complete_directories)'");
    if (kind == TARE_COMPLETE_TEXT) tare_strbuf_puts(out, " -x");
    if (kind == TARE_COMPLETE_WORDS || kind == TARE_COMPLETE_LIST) {
        const char *const *choices = tare_completion_choices(row);
        tare_strbuf_puts(out, kind == TARE_COMPLETE_LIST ? " -x -a '(__tare_list " : " -x -a '");
        for (const char *const *choice = choices; *choice; choice++)
            tare_strbuf_printf(out, choice == choices ? "%s" : " %s", *choice);
        tare_strbuf_puts(out, kind == TARE_COMPLETE_LIST ? ")'" : "'");
    }
    tare_strbuf_puts(out, " -d '");
    put_text(out, row->help ? row->help : "");
    tare_strbuf_puts(out, "'\n");
    if (row->kind == TARE_OPTION_FLAG && row->fallback)
        tare_strbuf_printf(out, "complete -c tare -n '__tare_at %s' -l no-%s\n", path, row->name);
}

static void put_command(void *arg, const struct tare_command *command, const char *path) {
    struct tare_strbuf *out = arg, words = { 0 };
    const struct tare_argument *argument = command->options->arguments;
    const char *last = strrchr(path, ' ');
    tare_strbuf_printf(out, "complete -c tare -n '__tare_only%s%.*s' -a %s -d '", last ? " " : "",
                       (int)(last ? last - path : 0), path, command->name);
    put_text(out, command->summary);
    tare_strbuf_puts(out, "'\n");
    struct tare_completion_walk walk = tare_completion_walk(command);
    for (const struct tare_option *row; (row = tare_completion_next(&walk));)
        put_option(out, row, path);
    if (!command->parts && argument && argument->name) {
        if (tare_completion_words(&words, argument))
            tare_strbuf_printf(out, "complete -c tare -n '__tare_at %s' -a '%s'\n", path, tare_strbuf_text(&words));
        else
            tare_strbuf_printf(out, "complete -c tare -n '__tare_at %s' -F\n", path);
    }
    tare_strbuf_free(&words);
}

void tare_completion_fish(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "# fish completion of tare, made by 'tare completion fish'\n\n");
    tare_strbuf_puts(out, conditions);
    tare_command_each(put_command, out);
}
