/* Completion for zsh: one function per command, with the specifications of _arguments. */
#include "cli/completion/completion.h"

#include <string.h>

/* Text for single quotes, with a backslash before the characters of `special`. */
static void put_text(struct tare_strbuf *out, const char *text, const char *special) {
    for (; *text; text++) {
        for (const char *c = special; *c; c++)
            if (*c == *text) tare_strbuf_putc(out, '\\');
        if (*text == '\'')
            tare_strbuf_puts(out, "'\\''");
        else
            tare_strbuf_putc(out, *text);
    }
}

static void put_function(struct tare_strbuf *out, const char *path) {
    tare_strbuf_puts(out, "_tare_");
    for (; *path; path++)
        tare_strbuf_putc(out, *path == ' ' ? '_' : *path);
}

/* ":MESSAGE:ACTION" */
static void put_action(struct tare_strbuf *out, const struct tare_option *row) {
    enum tare_completion_kind kind = tare_completion_of(row);
    if (kind == TARE_COMPLETE_NOTHING) return;
    tare_strbuf_putc(out, ':');
    put_text(out, tare_option_placeholder(row), ":\\");
    tare_strbuf_puts(out, kind == TARE_COMPLETE_FILES     ? ":_files"
                          : kind == TARE_COMPLETE_FOLDERS ? ":_files -/"
                          : kind == TARE_COMPLETE_WORDS   ? ":("
                          : kind == TARE_COMPLETE_LIST    ? ":_sequence compadd - "
                                                          : ": ");
    if (kind != TARE_COMPLETE_WORDS && kind != TARE_COMPLETE_LIST) return;
    for (const char *const *choice = tare_completion_choices(row); *choice; choice++)
        tare_strbuf_printf(out, choice == tare_completion_choices(row) ? "%s" : " %s", *choice);
    if (kind == TARE_COMPLETE_WORDS) tare_strbuf_putc(out, ')');
}

/* '(-o --output)'{-o+,--output=}'[help]:FILE:_files' */
static void put_option(struct tare_strbuf *out, const struct tare_option *row) {
    bool flag = row->kind == TARE_OPTION_FLAG;
    tare_strbuf_puts(out, "        ");
    if (row->kind == TARE_OPTION_LIST)
        tare_strbuf_puts(out, "'*'");
    else if (row->letter)
        tare_strbuf_printf(out, "'(-%c --%s)'", row->letter, row->name);
    else if (flag && row->fallback)
        tare_strbuf_printf(out, "'(--%s --no-%s)'", row->name, row->name);
    if (row->letter)
        tare_strbuf_printf(out, "{-%c%s,--%s%s}", row->letter, flag ? "" : "+", row->name, flag ? "" : "=");
    else if (flag && row->fallback)
        tare_strbuf_printf(out, "{--%s,--no-%s}", row->name, row->name);
    else
        tare_strbuf_printf(out, "--%s%s", row->name, flag ? "" : "=");
    tare_strbuf_puts(out, "'[");
    put_text(out, row->help ? row->help : "", "[]:\\");
    tare_strbuf_putc(out, ']');
    put_action(out, row);
    tare_strbuf_puts(out, "' \\\n");
}

static void put_argument(struct tare_strbuf *out, const struct tare_argument *row, int place) {
    struct tare_strbuf words = { 0 };
    if (row->flags & TARE_OPTION_REPEATABLE)
        tare_strbuf_printf(out, "        '*:%s:", row->name);
    else
        tare_strbuf_printf(out, "        '%d:%s:", place, row->name);
    if (tare_completion_words(&words, row))
        tare_strbuf_printf(out, "(%s)", tare_strbuf_text(&words));
    else
        tare_strbuf_puts(out, "_files");
    tare_strbuf_puts(out, "' \\\n");
    tare_strbuf_free(&words);
}

static void put_parts(struct tare_strbuf *out, const struct tare_command *command, const char *path) {
    tare_strbuf_puts(out, "    local curcontext=\"$curcontext\" context state state_descr line\n"
                          "    typeset -A opt_args\n"
                          "    _arguments -C '(- *)'{-h,--help}'[show help]' '1:part:->part' '*::argument:->argument'\n"
                          "    case $state in\n    part) local -a parts; parts=(\n");
    for (const struct tare_command *const *part = command->parts; *part; part++) {
        tare_strbuf_printf(out, "        '%s:", (*part)->name);
        put_text(out, (*part)->summary, ":\\");
        tare_strbuf_puts(out, "'\n");
    }
    tare_strbuf_puts(out, "        ); _describe part parts ;;\n    argument) ");
    put_function(out, path);
    tare_strbuf_puts(out, "_$words[1] ;;\n    esac\n}\n");
}

static void put_command(void *arg, const struct tare_command *command, const char *path) {
    struct tare_strbuf *out = arg;
    int place = 1;
    put_function(out, path);
    tare_strbuf_puts(out, "() {\n");
    if (command->parts) {
        put_parts(out, command, path);
        return;
    }
    tare_strbuf_puts(out, "    _arguments -s \\\n");
    struct tare_completion_walk walk = tare_completion_walk(command);
    for (const struct tare_option *row; (row = tare_completion_next(&walk));)
        put_option(out, row);
    for (const struct tare_argument *row = command->options->arguments; row && row->name; row++)
        put_argument(out, row, place++);
    tare_strbuf_puts(out, "        '(- *)'{-h,--help}'[show help]'\n}\n");
}

static void put_name(void *arg, const struct tare_command *command, const char *path) {
    struct tare_strbuf *out = arg;
    if (strcmp(command->name, path) != 0) return; /* a part */
    tare_strbuf_printf(out, "        '%s:", path);
    put_text(out, command->summary, ":\\");
    tare_strbuf_puts(out, "'\n");
}

void tare_completion_zsh(struct tare_strbuf *out) {
    tare_strbuf_puts(out, "#compdef tare\n# zsh completion of tare, made by 'tare completion zsh'\n\n");
    tare_command_each(put_command, out);
    tare_strbuf_puts(out,
                     "_tare() {\n"
                     "    local curcontext=\"$curcontext\" context state state_descr line\n"
                     "    typeset -A opt_args\n"
                     "    _arguments -C '(- *)'{-h,--help}'[show help]' '(- *)'{-V,--version}'[print the version]' \\\n"
                     "        '1:command:->command' '*::argument:->argument'\n"
                     "    case $state in\n    command) local -a commands; commands=(\n");
    tare_command_each(put_name, out);
    tare_strbuf_puts(out, "        ); _describe command commands ;;\n"
                          "    argument) (( $+functions[_tare_$words[1]] )) && _tare_$words[1] ;;\n    esac\n}\n"
                          "if [ \"$funcstack[1]\" = _tare ]; then _tare \"$@\"; else compdef _tare tare; fi\n");
}
