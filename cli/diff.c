/* tare diff: compares two models, two folders of .npy files, or two reports. */
#include "base/file.h"
#include "cli/command.h"
#include "cli/log.h"
#include "cli/output_check.h"
#include "cli/plugins.h"
#include "cli/report_file.h"
#include "convert/model_hint.h"
#include "convert/saved_model.h"
#include "eval/array_diff.h"
#include "eval/model_diff.h"
#include "eval/report/report_diff.h"

#include <stdio.h>

enum { SHOWN_WEIGHTS = 20 };

struct diff_options {
    const char *first, *second, *report, *html;
    bool all, json;
    struct tare_option_list plugins;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct diff_options, "all", FLAG, all),
      .help = "list every weight and number that differs, not only the first ones" },
    { TARE_OPTION(struct diff_options, "json", FLAG, json), .help = "print JSON" },
    { TARE_OPTION(struct diff_options, "report", STRING, report), .placeholder = "FILE",
      .help = "also write a report to FILE (.html or .json)" },
    { TARE_OPTION(struct diff_options, "html", STRING, html), .placeholder = "FILE",
      .help = "the page of --report in a FILE of any name, instead of --report", .flags = TARE_OPTION_HIDDEN },
    TARE_PLUGIN_OPTION(struct diff_options),
    TARE_LOG_OPTIONS(struct diff_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct diff_options, "FIRST", first), .flags = TARE_OPTION_REQUIRED,
      .help = "SavedModel directory, .npy file or folder of them, or JSON report of a comparison or batch" },
    { TARE_ARGUMENT(struct diff_options, "SECOND", second), .flags = TARE_OPTION_REQUIRED,
      .help = "the same kind to compare with" },
    { 0 },
};
static const char *const examples[] = { "tare diff my_model my_model_int8",
                                        "tare diff before.json after.json --report diff.html",
                                        "tare diff float_outputs int8_outputs", NULL };
static const struct tare_option_set set = {
    .program = "tare diff",
    .summary = "Compares two models (sizes, ops, signatures, weights, scales), two arrays, the arrays of two folders "
               "(outputs of "
               "tare run --output-dir), or the figures of two reports.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* The kinds of reports; --html asks for a page whatever the name of its file is. */
static enum tare_report_kind report_kind(const struct diff_options *options) {
    if (options->html) return TARE_REPORT_HTML;
    return options->report ? tare_report_kind(options->report) : TARE_REPORT_UNKNOWN;
}

static tare_status diff_models(struct tare_strbuf *out, struct tare_strbuf *page, const struct diff_options *options) {
    const enum tare_report_kind kind = report_kind(options);
    struct tare_model_diff diff = { 0 };
    struct tare_graph_model *first = NULL, *second = NULL;
    tare_status status;
    TARE_CHECK(tare_command_load(&first, options->first));
    TARE_CHECK(tare_command_load(&second, options->second));
    TARE_CHECK(tare_model_diff_make(&diff, first, options->first, second, options->second));
    diff.text_width = tare_command_width(stdout);
    if (kind == TARE_REPORT_HTML) tare_model_diff_html(page, &diff);
    if (kind == TARE_REPORT_JSON) TARE_CHECK(tare_model_diff_json(page, &diff));
    if (options->json)
        status = tare_model_diff_json(out, &diff);
    else
        tare_model_diff_text(out, &diff, options->all ? 0 : SHOWN_WEIGHTS);
done:
    tare_model_diff_free(&diff);
    tare_model_free(first);
    tare_model_free(second);
    return status;
}

static tare_status diff_arrays(struct tare_strbuf *out, struct tare_strbuf *page, const struct diff_options *options) {
    const enum tare_report_kind kind = report_kind(options);
    struct tare_array_diff diff = { 0 };
    tare_status status;
    TARE_CHECK(tare_array_diff_make(&diff, options->first, options->second));
    diff.text_width = tare_command_width(stdout);
    if (kind == TARE_REPORT_HTML) tare_array_diff_html(page, &diff);
    if (kind == TARE_REPORT_JSON) TARE_CHECK(tare_array_diff_json(page, &diff));
    if (options->json)
        status = tare_array_diff_json(out, &diff);
    else
        tare_array_diff_text(out, &diff);
done:
    tare_array_diff_free(&diff);
    return status;
}

static tare_status diff_reports(struct tare_strbuf *out, struct tare_strbuf *page, const struct diff_options *options) {
    const enum tare_report_kind kind = report_kind(options);
    if (kind == TARE_REPORT_HTML) TARE_TRY(tare_report_diff_html(page, options->first, options->second));
    if (kind == TARE_REPORT_JSON) TARE_TRY(tare_report_diff_json(page, options->first, options->second));
    return options->json ? tare_report_diff_json(out, options->first, options->second)
                         : tare_report_diff_text(out, options->first, options->second);
}

static tare_status run(int argc, char *const *argv) {
    struct diff_options options = { 0 };
    struct tare_strbuf text = { 0 }, page = { 0 };
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_report_check_page(options.report));
    if (options.html && options.report) TARE_CHECK(TARE_FAIL(TARE_USAGE, "--html and --report are mutually exclusive"));
    if (options.html) options.report = options.html;
    TARE_CHECK(
        tare_command_check_file_apart(options.report, (const char *const[]){ options.first, options.second }, 2));
    const bool arrays[] = { tare_array_diff_is_arrays(options.first), tare_array_diff_is_arrays(options.second) };
    if ((arrays[0] && tare_is_saved_model_folder(options.second)) ||
        (arrays[1] && tare_is_saved_model_folder(options.first)))
        TARE_CHECK(TARE_FAIL(TARE_USAGE, "%s and %s: a SavedModel and arrays (expected two of one kind)", options.first,
                             options.second));
    if (arrays[0] || arrays[1])
        TARE_CHECK(diff_arrays(&text, &page, &options));
    else if (tare_file_kind_of(options.first) == TARE_FILE_REGULAR &&
             tare_file_kind_of(options.second) == TARE_FILE_REGULAR)
        TARE_CHECK(diff_reports(&text, &page, &options));
    else
        TARE_CHECK(diff_models(&text, &page, &options));
    if (options.report) TARE_CHECK(tare_report_write(options.report, &page));
    tare_strbuf_print(&text, stdout);
done:
    tare_strbuf_free(&text);
    tare_strbuf_free(&page);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_diff = {
    .name = "diff", .summary = "compare two models, folders of arrays or reports", .run = run, .options = &set
};
