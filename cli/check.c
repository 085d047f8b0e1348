/* tare check: what a model costs on a TPU, by Google's compiler, without a TPU. */
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/hint.h"
#include "cli/log.h"
#include "cli/plugins.h"
#include "cli/report_file.h"
#include "eval/report/json_text.h"
#include "workflow/check/report.h"

#include <stdio.h>

struct check_options {
    const char *model, *with, *report;
    struct tare_check_request how;
    int64_t top;
    struct tare_option_list plugins;
    bool json, quiet;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    TARE_OPTION_NESTED(struct check_options, how, tare_check_rows),
    { TARE_OPTION(struct check_options, "with", STRING, with), .placeholder = "OTHER",
      .help = "also check the model OTHER, such as the float model, and print the ratio" },
    { TARE_OPTION(struct check_options, "top", INT64, top), .placeholder = "N", .min = 0, .max = 1 << 20,
      .fallback = "12", .help = "number of ops to list, the dearest first" },
    { TARE_OPTION(struct check_options, "report", STRING, report), .placeholder = "FILE",
      .help = "also write the compiler's figures and the estimate to FILE (.html or .json)" },
    { TARE_OPTION(struct check_options, "json", FLAG, json), .help = "print JSON" },
    { TARE_OPTION(struct check_options, "quiet", FLAG, quiet), .help = "suppress notes on standard error" },
    TARE_PLUGIN_OPTION(struct check_options),
    TARE_LOG_OPTIONS(struct check_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct check_options, "MODEL", model),
      .help = "SavedModel directory: converted, or as it is, which is then converted in memory",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = { "tare check my_tpu_model --chip v6e --batch 32",
                                        "tare check my_model_int8 --with my_model", NULL };
static const struct tare_option_set set = {
    .program = "tare check",
    .summary =
        "Compiles the computations of a model on the TPU with Google's TPU compiler, which needs no TPU, and lists "
        "what they cost: cycles, integer products, memory. The compiler is part of jax[tpu]; without it the "
        "estimate is printed, and called one.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* ---- the command ---- */

static void warn_of_missing_units(const struct tare_check *check, const char *model,
                                  const struct check_options *options) {
    const struct tare_tpu_chip *chip = &tare_tpu_chips[options->how.chip];
    const struct tare_log log = tare_command_log(true);
    double integers = 0, float8 = 0;
    for (size_t i = 0; i < check->n_parts; i++) {
        integers += check->parts[i].integer_macs;
        float8 += check->parts[i].float8_macs;
    }
    const char *lacks = tare_tpu_chip_lacks(chip, integers > 0, float8 > 0);
    if (lacks) tare_warn(&log, "%s: a Cloud TPU %s %s", model, chip->name, lacks);
}

static tare_status check_model(struct tare_check *out, const char *path, const struct check_options *options) {
    struct tare_graph_model *model;
    TARE_TRY(tare_command_load(&model, path));
    const tare_status status = tare_workflow_check(out, model, &options->how, NULL);
    tare_model_free(model);
    if (status == TARE_OK) warn_of_missing_units(out, path, options);
    return status;
}

/* NULL: no memory. */
static json_t *json_of(const struct tare_check *check, const struct tare_check *other,
                       const struct check_options *options) {
    json_t *root = tare_check_json(check, options->model, &options->how);
    if (root && options->with) json_object_set_new(root, "with", tare_check_json(other, options->with, &options->how));
    return root;
}

static tare_status write_report(const struct tare_check *check, const struct tare_check *other,
                                const struct check_options *options) {
    struct tare_strbuf text = { 0 };
    tare_status status = TARE_OK;
    if (tare_report_kind(options->report) == TARE_REPORT_JSON)
        status = tare_json_write(&text, json_of(check, other, options));
    else
        tare_check_html(&text, &options->how, check, options->model, options->with ? other : NULL, options->with);
    if (status == TARE_OK) status = tare_report_write(options->report, &text);
    tare_strbuf_free(&text);
    return status;
}

static tare_status print(const struct tare_check *check, const struct tare_check *other,
                         const struct check_options *options) {
    struct tare_strbuf text = { 0 };
    tare_status status = TARE_OK;
    if (options->json) {
        status = tare_json_write(&text, json_of(check, other, options));
    } else {
        tare_check_put(&text, check, options->model, &options->how, (size_t)options->top);
        if (options->with) {
            tare_check_put(&text, other, options->with, &options->how, (size_t)options->top);
            tare_check_put_ratio(&text, check, options->model, other, options->with);
        }
    }
    if (status == TARE_OK) status = tare_strbuf_status(&text);
    if (status == TARE_OK) tare_strbuf_print(&text, stdout);
    tare_strbuf_free(&text);
    return status;
}

static tare_status run(int argc, char *const *argv) {
    struct check_options options;
    struct tare_check check = { 0 }, other = { 0 };
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_report_check_page(options.report));
    TARE_CHECK(tare_workflow_check_open(&options.how));
    TARE_CHECK(check_model(&check, options.model, &options));
    if (options.with) TARE_CHECK(check_model(&other, options.with, &options));
    TARE_CHECK(print(&check, &other, &options));
    if (options.report) TARE_CHECK(write_report(&check, &other, &options));
    TARE_CHECK(tare_check_refuse(&check, options.model));
    if (options.with) TARE_CHECK(tare_check_refuse(&other, options.with));
done:
    tare_check_free(&check);
    tare_check_free(&other);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_check = {
    .name = "check", .summary = "compile a model with Google's TPU compiler, without a TPU", .run = run, .options = &set
};
