/* tare diff: compares two models, two folders of .npy files, or two reports. */
#include "cli/command.h"
#include "cli/log.h"
#include "cli/plugins.h"
#include "cli/report_file.h"
#include "workflow/model_files/diff.h"

#include <stdio.h>

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

static tare_status diff_models(struct tare_diff_texts *texts, const struct tare_diff_request *request,
                               const struct diff_options *options) {
    struct tare_graph_model *first = NULL, *second = NULL;
    tare_status status;
    TARE_CHECK(tare_command_load(&first, options->first));
    TARE_CHECK(tare_command_load(&second, options->second));
    status = tare_workflow_diff_models(texts, request, first, options->first, second, options->second);
done:
    tare_model_free(first);
    tare_model_free(second);
    return status;
}

static tare_status make_texts(struct tare_diff_texts *texts, const struct diff_options *options) {
    const struct tare_diff_request request = { .text = !options->json,
                                               .json = options->json || report_kind(options) == TARE_REPORT_JSON,
                                               .html = report_kind(options) == TARE_REPORT_HTML,
                                               .all = options->all,
                                               .text_width = tare_command_width(stdout) };
    enum tare_diff_kind kind;
    TARE_TRY(tare_workflow_diff_kind(&kind, options->first, options->second));
    if (kind == TARE_DIFF_MODELS) return diff_models(texts, &request, options);
    return tare_workflow_diff_files(texts, &request, kind, options->first, options->second);
}

static tare_status run(int argc, char *const *argv) {
    struct diff_options options = { 0 };
    struct tare_diff_texts texts = { 0 };
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_report_check_page(options.report));
    if (options.html && options.report) TARE_CHECK(TARE_FAIL(TARE_USAGE, "--html and --report are mutually exclusive"));
    if (options.html) options.report = options.html;
    TARE_CHECK(make_texts(&texts, &options));
    if (options.report)
        TARE_CHECK(
            tare_report_write(options.report, report_kind(&options) == TARE_REPORT_HTML ? &texts.html : &texts.json));
    tare_strbuf_print(options.json ? &texts.json : &texts.text, stdout);
done:
    tare_diff_texts_free(&texts);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_diff = {
    .name = "diff", .summary = "compare two models, folders of arrays or reports", .run = run, .options = &set
};
