/* tare man: generates the manual pages from the option rows. The build generates all of them for 'cmake --install'. */
#include "base/ascii.h"
#include "base/file.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/limits.h"
#include "include/tare/version.h"
#include "interpreter/kernels/cpu.h"

#include <stdio.h>
#include <string.h>

struct man_options {
    struct tare_option_list command;
    const char *folder;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct man_options, "output-dir", STRING, folder), .placeholder = "DIR",
      .help = "write all manual pages to DIR instead of printing one" },
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct man_options, "COMMAND", command), .help = "command to document (default: tare itself)",
      .flags = TARE_OPTION_REPEATABLE },
    { 0 },
};
static const char *const examples[] = { "tare man calibrate | man -l -", NULL };
static const struct tare_option_set set = {
    .program = "tare man",
    .summary = "Prints a manual page in roff.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* Escapes roff: a line must not begin with a control character, and '-' must remain an ASCII hyphen. */
static void put_text(struct tare_strbuf *out, const char *text) {
    if (*text == '.' || *text == '\'') tare_strbuf_puts(out, "\\&");
    for (; *text; text++) {
        if (*text == '\\')
            tare_strbuf_puts(out, "\\e");
        else if (*text == '-')
            tare_strbuf_puts(out, "\\-");
        else if (*text == '\'')
            tare_strbuf_puts(out, "\\(aq");
        else
            tare_strbuf_putc(out, *text);
    }
}

static void put_line(struct tare_strbuf *out, const char *text) {
    put_text(out, text);
    tare_strbuf_putc(out, '\n');
}

/* "dataset make" -> tare-dataset-make; "" -> tare. `separator` replaces spaces and follows "tare". */
static void put_page_name(struct tare_strbuf *out, const char *path, const char *separator) {
    tare_strbuf_puts(out, "tare");
    if (*path) tare_strbuf_puts(out, separator);
    for (; *path; path++) {
        if (*path == ' ')
            tare_strbuf_puts(out, separator);
        else
            tare_strbuf_putc(out, *path);
    }
}

static void put_heading(struct tare_strbuf *out, const char *path, const char *summary) {
    struct tare_strbuf name = { 0 };
    put_page_name(&name, path, "-");
    tare_strbuf_puts(out, ".TH ");
    for (const char *c = tare_strbuf_text(&name); *c; c++)
        tare_strbuf_putc(out, tare_upper(*c));
    tare_strbuf_printf(out, " 1 \"\" \"tare %s\" \"tare\"\n.SH NAME\n", TARE_VERSION);
    put_text(out, tare_strbuf_text(&name));
    tare_strbuf_puts(out, " \\- ");
    put_line(out, summary);
    tare_strbuf_free(&name);
}

static void put_synopsis(struct tare_strbuf *out, const struct tare_option_set *options) {
    tare_strbuf_puts(out, ".SH SYNOPSIS\n.B ");
    put_line(out, options->program);
    if (options->options) tare_strbuf_puts(out, "[\\fIoptions\\fR]\n");
    struct tare_option_walk walk = tare_option_walk(options->options);
    for (const struct tare_option *row; (row = tare_option_next(&walk));) {
        if (!(row->flags & TARE_OPTION_REQUIRED)) continue;
        tare_strbuf_puts(out, "\\fB\\-\\-");
        put_text(out, row->name);
        tare_strbuf_puts(out, "\\fR ");
        if (tare_option_placeholder(row)) tare_strbuf_printf(out, "\\fI%s\\fR", tare_option_placeholder(row));
        tare_strbuf_putc(out, '\n');
    }
    for (const struct tare_argument *row = options->arguments; row && row->name; row++) {
        const char *more = row->flags & TARE_OPTION_REPEATABLE ? " …" : "";
        tare_strbuf_printf(out, row->flags & TARE_OPTION_REQUIRED ? "\\fI%s\\fR%s\n" : "[\\fI%s\\fR%s]\n", row->name,
                           more);
    }
}

static void put_option(struct tare_strbuf *out, const struct tare_option *row) {
    struct tare_strbuf help = { 0 };
    tare_strbuf_puts(out, ".TP\n");
    if (row->letter) tare_strbuf_printf(out, "\\fB\\-%c\\fR, ", row->letter);
    tare_strbuf_puts(out, "\\fB\\-\\-");
    put_text(out, row->name);
    tare_strbuf_puts(out, "\\fR");
    if (row->kind == TARE_OPTION_FLAG && row->fallback) {
        tare_strbuf_puts(out, ", \\fB\\-\\-no\\-");
        put_text(out, row->name);
        tare_strbuf_puts(out, "\\fR");
    }
    if (tare_option_placeholder(row)) {
        tare_strbuf_puts(out, " \\fI");
        put_text(out, tare_option_placeholder(row));
        tare_strbuf_puts(out, "\\fR");
    }
    tare_strbuf_putc(out, '\n');
    tare_option_describe(&help, row);
    put_line(out, tare_strbuf_text(&help));
    tare_strbuf_free(&help);
}

static void put_reference(void *arg, const struct tare_command *command, const char *path) {
    struct tare_strbuf *out = arg;
    tare_strbuf_puts(out, ".TP\n.BR ");
    put_page_name(out, path, "\\-");
    tare_strbuf_puts(out, " (1)\n");
    put_line(out, command->summary);
}

static void put_statuses(struct tare_strbuf *out) {
    tare_strbuf_puts(out,
                     ".SH EXIT STATUS\n"
                     ".TP\n.B 0\nsuccess\n.TP\n.B 1\nfailure; one line on standard error describes it\n"
                     ".TP\n.B 2\ninvalid command line\n.TP\n.B 130\ninterrupted by a signal after an orderly stop\n");
}

static void put_command(struct tare_strbuf *out, const struct tare_command *command) {
    const struct tare_option_set *options = command->options;
    put_heading(out, options->program + strlen("tare "), command->summary);
    put_synopsis(out, options);
    tare_strbuf_puts(out, ".SH DESCRIPTION\n");
    put_line(out, options->summary);
    for (const struct tare_command *const *part = command->parts; part && *part; part++)
        put_reference(out, *part, (*part)->options->program + strlen("tare "));
    if (options->arguments && options->arguments->name) tare_strbuf_puts(out, ".SH ARGUMENTS\n");
    for (const struct tare_argument *row = options->arguments; row && row->name; row++) {
        tare_strbuf_printf(out, ".TP\n.I %s\n", row->name);
        put_line(out, row->help ? row->help : "");
    }
    tare_strbuf_puts(out, ".SH OPTIONS\n");
    struct tare_option_walk walk = tare_option_walk(options->options);
    for (const struct tare_option *row; (row = tare_option_next(&walk));)
        if (!(row->flags & TARE_OPTION_HIDDEN)) put_option(out, row);
    tare_strbuf_puts(out, ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nshow the help\n");
    put_statuses(out);
    if (options->examples && options->examples[0]) tare_strbuf_puts(out, ".SH EXAMPLES\n.nf\n");
    for (const char *const *example = options->examples; example && *example; example++)
        put_line(out, *example);
    if (options->examples && options->examples[0]) tare_strbuf_puts(out, ".fi\n");
    tare_strbuf_puts(out, ".SH SEE ALSO\n.BR tare (1)\n");
}

static void put_overview(struct tare_strbuf *out) {
    put_heading(out, "", "calibrate, quantize and convert TensorFlow SavedModels for Cloud TPU inference");
    tare_strbuf_puts(out,
                     ".SH SYNOPSIS\n.B tare\n.I COMMAND\n[\\fIARGUMENT\\fR …]\n.SH DESCRIPTION\n"
                     "Collects activation statistics of a TensorFlow 2 SavedModel over representative samples, "
                     "compares the accuracy of quantization methods, and writes the quantized model for Cloud TPU. "
                     "Data is written to standard output, messages and progress to standard error.\n"
                     ".SH COMMANDS\n");
    tare_command_each(put_reference, out);
    tare_strbuf_puts(out, ".SH OPTIONS OF EVERY COMMAND\n");
    for (const struct tare_option *row = tare_limits_rows; row->name; row++)
        put_option(out, row);
    put_statuses(out);
    tare_strbuf_puts(out, ".SH ENVIRONMENT\n"
                          ".TP\n.B NO_COLOR\nif set and not empty, output is not colored\n"
                          ".TP\n.B TARE_CPU\nhighest instruction set of the kernels: ");
    tare_cpu_put_level_names(out);
    tare_strbuf_puts(out, ", instead of the highest one that the CPU supports\n");
}

struct writer {
    const char *folder;
    tare_status status;
};

static tare_status write_page(const char *folder, const char *path, const struct tare_strbuf *page) {
    struct tare_strbuf name = { 0 };
    tare_status status;
    tare_strbuf_printf(&name, "%s/", folder);
    put_page_name(&name, path, "-");
    tare_strbuf_puts(&name, ".1");
    status =
        name.failed || page->failed ? TARE_NO_MEMORY : tare_file_write(tare_strbuf_text(&name), page->data, page->size);
    tare_strbuf_free(&name);
    return status;
}

static void write_command(void *arg, const struct tare_command *command, const char *path) {
    struct writer *writer = arg;
    struct tare_strbuf page = { 0 };
    if (writer->status != TARE_OK) return;
    put_command(&page, command);
    writer->status = write_page(writer->folder, path, &page);
    tare_strbuf_free(&page);
}

static tare_status write_pages(const char *folder) {
    struct writer writer = { .folder = folder };
    struct tare_strbuf page = { 0 };
    TARE_TRY(tare_file_make_folders(folder, NULL));
    put_overview(&page);
    writer.status = write_page(folder, "", &page);
    tare_strbuf_free(&page);
    tare_command_each(write_command, &writer);
    return writer.status;
}

static tare_status print_page(const struct tare_option_list *words) {
    const struct tare_command *command = NULL;
    struct tare_strbuf page = { 0 };
    TARE_TRY(tare_command_find(&command, words->items, words->count));
    if (command)
        put_command(&page, command);
    else
        put_overview(&page);
    tare_strbuf_print(&page, stdout);
    tare_strbuf_free(&page);
    return TARE_OK;
}

static tare_status run(int argc, char *const *argv) {
    struct man_options options;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (!done) status = options.folder ? write_pages(options.folder) : print_page(&options.command);
done:
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_man = {
    .name = "man", .summary = "print a manual page", .run = run, .options = &set, .hidden = true
};
