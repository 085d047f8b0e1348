/* tare show: prints the statistics in a calibration file. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "calib/format/file.h"
#include "cli/command.h"
#include "cli/hint.h"
#include "cli/log.h"
#include "cli/report_file.h"
#include "eval/report/calibration_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct show_options {
    struct tare_option_list files;
    const char *algorithms, *tensors, *report, *html;
    bool json;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct show_options, "algorithms", STRING, algorithms), .placeholder = "A,…",
      .help = "calibration algorithms to show, with optional parameters: min_max,percentile:p=99.9 (default: all)" },
    { TARE_OPTION(struct show_options, "tensor", STRING, tensors), .placeholder = "REGEX",
      .help = "show only tensors whose name, FUNCTION/NODE:OUTPUT, matches REGEX" },
    { TARE_OPTION(struct show_options, "json", FLAG, json), .help = "print JSON" },
    { TARE_OPTION(struct show_options, "report", STRING, report), .placeholder = "FILE",
      .help = "also write FILE: a page with the histograms and the clipping range of each algorithm (.html), or all "
              "figures (.json)" },
    { TARE_OPTION(struct show_options, "html", STRING, html), .placeholder = "FILE",
      .help = "the page of --report in a FILE of any name", .flags = TARE_OPTION_HIDDEN },
    TARE_LOG_OPTIONS(struct show_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct show_options, "FILE", files), .help = "calibration files; several are merged first",
      .flags = TARE_OPTION_REQUIRED | TARE_OPTION_REPEATABLE },
    { 0 },
};
static const char *const examples[] = {
    "tare show my_model.calib",
    "tare show my_model.calib --tensor 'conv|dense' --algorithms min_max,percentile:p=99.9,mse",
    "tare show part*.calib --report calibration.html",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare show",
    .summary =
        "Shows the statistics in a calibration file. For each tensor: its distribution, the records with its extreme "
        "values, the clipping range that each algorithm chooses with its quantization error, and the growth of the "
        "range with the number of records. Then warnings, such as branches that no record executed.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status load(struct tare_calibration **out, const struct tare_option_list *files) {
    TARE_TRY(tare_calibration_load(out, files->items[0]));
    for (size_t i = 1; i < files->count; i++) {
        struct tare_calibration *next;
        TARE_TRY(tare_calibration_load(&next, files->items[i]));
        tare_status status = tare_error_prefix(tare_calibration_merge(*out, next), "%s", files->items[i]);
        tare_calibration_free(next);
        if (status != TARE_OK) return status;
    }
    return TARE_OK;
}

static tare_status write_report(const struct tare_calibration_report *report, const char *path, bool page) {
    struct tare_strbuf text = { 0 };
    tare_status status = TARE_OK;
    if (!path) return TARE_OK;
    if (page)
        tare_calibration_report_html(&text, report);
    else
        status = tare_calibration_report_json(&text, report);
    if (status == TARE_OK) status = tare_report_write(path, &text);
    tare_strbuf_free(&text);
    return status;
}

static tare_status print(const struct tare_calibration_report *report, const struct show_options *options) {
    struct tare_strbuf text = { 0 };
    const bool page = options->report && tare_report_kind(options->report) == TARE_REPORT_HTML;
    tare_status status = write_report(report, options->html, true);
    if (status == TARE_OK) status = write_report(report, options->report, page);
    if (status == TARE_OK && options->json) status = tare_calibration_report_json(&text, report);
    if (status == TARE_OK && !options->json) tare_calibration_report_text(&text, report, tare_log_colors_on(stdout));
    if (status == TARE_OK) status = tare_strbuf_status(&text);
    if (status == TARE_OK) tare_strbuf_print(&text, stdout);
    tare_strbuf_free(&text);
    return status;
}

/* The ranges are compared by the accuracy that they give; several files are merged first. */
static void print_next(const struct show_options *options) {
    const struct tare_log log = tare_command_log(options->json);
    const char *first = options->files.items[0];
    const char **words = tare_calloc(options->files.count + 4, sizeof *words);
    size_t count = 0;
    if (options->files.count == 1)
        tare_hint(&log, "compare", "MODEL", "--calibration", first, "--eval", "EVAL.tfrecord", NULL);
    else if (words) {
        words[count++] = "merge";
        for (size_t i = 0; i < options->files.count; i++)
            words[count++] = options->files.items[i];
        words[count++] = "-o";
        words[count] = "ALL.calib";
        tare_hint_words(&log, words);
    }
    tare_free(words);
}

static tare_status run(int argc, char *const *argv) {
    struct show_options options;
    struct tare_calibration *calibration = NULL;
    struct tare_calibration_report report = { 0 };
    struct tare_strbuf title = { 0 };
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_report_check_page(options.report));
    TARE_CHECK(load(&calibration, &options.files));
    tare_strbuf_puts(&title, options.files.items[0]);
    if (options.files.count > 1) tare_strbuf_printf(&title, " and %zu more", options.files.count - 1);
    const struct tare_calibration_report_options expected = { .algorithms = options.algorithms,
                                                              .tensors = options.tensors };
    TARE_CHECK(tare_calibration_report_make(&report, calibration, tare_strbuf_text(&title), &expected));
    report.text_width = tare_command_width(stdout);
    if (options.tensors && report.n_tensors == 0)
        status = TARE_FAIL(TARE_NOT_FOUND, "no tensor name matches '%s' (%zu tensors in the file)", options.tensors,
                           calibration->n_tensors);
    else
        status = print(&report, &options);
    if (status == TARE_OK) print_next(&options);
done:
    tare_calibration_report_free(&report);
    tare_calibration_free(calibration);
    tare_strbuf_free(&title);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_show = {
    .name = "show", .summary = "show the statistics in a calibration file", .run = run, .options = &set
};
