/* Completion for bash. The tables are generated from the rows; one function, which needs only bash itself, reads them
 * for all commands. bash splits words at '=', which the function reverts. */
#include "cli/completion/completion.h"

#include <string.h>

static const char reader[] =
    "_tare() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} what=\n"
    "    COMPREPLY=()\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$(_tare_arguments '') --help --version -V\" -- \"$cur\")\n"
    "        return\n"
    "    fi\n"
    "    if [ \"$COMP_CWORD\" -gt 2 ] && [ -n \"$(_tare_options \"$command ${COMP_WORDS[2]}\")\" ]; then\n"
    "        command+=\" ${COMP_WORDS[2]}\"\n"
    "    fi\n"
    "    if [ \"$cur\" = '=' ]; then\n"
    "        cur=\n"
    "    elif [ \"$option\" = '=' ]; then\n"
    "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    case $option in -*) what=$(_tare_value \"$command ${option//_/-}\") ;; esac\n"
    "    if [ -z \"$what\" ]; then\n"
    "        case $cur in\n"
    "        -*) what=$(_tare_options \"$command\") ;;\n"
    "        *) what=$(_tare_arguments \"$command\") ;;\n"
    "        esac\n"
    "    fi\n"
    "    case $what in\n"
    "    :files)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "        ;;\n"
    "    :folders)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
    "        ;;\n"
    "    :text) ;;\n"
    "    ':list '*)\n"
    "        # Completes the word after the last comma, without words that the list already contains.\n"
    "        local done= word words=\n"
    "        case $cur in *,*) done=${cur%,*}, ;; esac\n"
    "        for word in ${what#:list }; do\n"
    "            case ,$done in *,\"$word\",*) ;; *) words+=\" $word\" ;; esac\n"
    "        done\n"
    "        compopt -o nospace 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -P \"$done\" -W \"$words\" -- \"${cur##*,}\")\n"
    "        ;;\n"
    "    *) mapfile -t COMPREPLY < <(compgen -W \"$what\" -- \"$cur\") ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _tare tare\n";

static void put_options(void *arg, const struct tare_command *command, const char *path) {
    struct tare_strbuf *out = arg;
    tare_strbuf_printf(out, "    '%s') echo '", path);
    struct tare_completion_walk walk = tare_completion_walk(command);
    for (const struct tare_option *row; (row = tare_completion_next(&walk));) {
        tare_strbuf_printf(out, "--%s ", row->name);
        if (row->kind == TARE_OPTION_FLAG && row->fallback) tare_strbuf_printf(out, "--no-%s ", row->name);
    }
    tare_strbuf_puts(out, "--help' ;;\n");
}

/* The option as the function looks it up: with '-' instead of '_'. */
static void put_label(struct tare_strbuf *out, const char *path, const struct tare_option *row) {
    tare_strbuf_printf(out, "    '%s --", path);
    for (const char *c = row->name; *c; c++)
        tare_strbuf_putc(out, *c == '_' ? '-' : *c);
    tare_strbuf_putc(out, '\'');
    if (row->letter) tare_strbuf_printf(out, " | '%s -%c'", path, row->letter);
}

static void put_values(void *arg, const struct tare_command *command, const char *path) {
    static const char *const names[] = { "", "", ":list ", ":files", ":folders", ":text" };
    struct tare_strbuf *out = arg;
    struct tare_completion_walk walk = tare_completion_walk(command);
    for (const struct tare_option *row; (row = tare_completion_next(&walk));) {
        enum tare_completion_kind kind = tare_completion_of(row);
        if (kind == TARE_COMPLETE_NOTHING) continue;
        put_label(out, path, row);
        tare_strbuf_printf(out, ") echo '%s", names[kind]);
        const bool words = kind == TARE_COMPLETE_WORDS || kind == TARE_COMPLETE_LIST;
        for (const char *const *choice = words ? tare_completion_choices(row) : NULL; choice && *choice; choice++)
            tare_strbuf_printf(out, choice == tare_completion_choices(row) ? "%s" : " %s", *choice);
        tare_strbuf_puts(out, "' ;;\n");
    }
}

static void put_arguments(void *arg, const struct tare_command *command, const char *path) {
    struct tare_strbuf *out = arg, words = { 0 };
    const struct tare_argument *row = command->options->arguments;
    for (const struct tare_command *const *part = command->parts; part && *part; part++)
        tare_strbuf_printf(&words, "%s ", (*part)->name);
    if (words.size || (row && row->name && tare_completion_words(&words, row)))
        tare_strbuf_printf(out, "    '%s') echo '%s' ;;\n", path, tare_strbuf_text(&words));
    tare_strbuf_free(&words);
}

void tare_completion_bash(struct tare_strbuf *out) {
    static const struct tare_argument commands = { .name = "COMMAND" };
    tare_strbuf_puts(out, "# bash completion of tare, made by 'tare completion bash'\n\n"
                          "_tare_options() { # COMMAND\n    case $1 in\n");
    tare_command_each(put_options, out);
    tare_strbuf_puts(out, "    esac\n}\n_tare_value() { # 'COMMAND OPTION'; nothing for a flag\n    case $1 in\n");
    tare_command_each(put_values, out);
    tare_strbuf_puts(out,
                     "    esac\n}\n_tare_arguments() { # COMMAND; '' for the commands\n    case $1 in\n    '') echo '");
    tare_completion_words(out, &commands);
    tare_strbuf_puts(out, "' ;;\n");
    tare_command_each(put_arguments, out);
    tare_strbuf_puts(out, "    *) echo :files ;;\n    esac\n}\n");
    tare_strbuf_puts(out, reader);
}
