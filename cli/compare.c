/* tare compare: float against each method on the same records. */
#include "base/file.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/quantizing.h"
#include "convert/saved_model.h"
#include "eval/comparison.h"
#include "eval/model_inputs.h"

#include <stdio.h>
#include <string.h>

struct compare_options {
    const char *model, *signature, *label, *methods, *report;
    struct tare_option_list data, calibration_data;
    int64_t limit;
    int batch, weights;
    bool depthwise, json;
};

static const char *const granularities[] = { "per_channel", "per_tensor", NULL };

static const struct tare_option rows[] = {
    { .name = "data", .kind = TARE_OPTION_LIST, .offset = offsetof(struct compare_options, data), .placeholder = "FILE",
      .help = "records to measure with, labelled or not", .flags = TARE_OPTION_REQUIRED },
    { .name = "calibration-data", .kind = TARE_OPTION_LIST, .offset = offsetof(struct compare_options, calibration_data),
      .placeholder = "FILE", .help = "representative samples for the static methods" },
    { .name = "methods", .kind = TARE_OPTION_STRING, .offset = offsetof(struct compare_options, methods),
      .fallback = "float,static,weight_only", .placeholder = "M,…", .help = "methods to compare" },
    { .name = "signature", .kind = TARE_OPTION_STRING, .offset = offsetof(struct compare_options, signature),
      .placeholder = "S", .help = "signature to run (default serving_default)" },
    { .name = "label", .kind = TARE_OPTION_STRING, .offset = offsetof(struct compare_options, label),
      .fallback = "label", .placeholder = "KEY", .help = "key of the class index in the records" },
    { .name = "weights", .kind = TARE_OPTION_CHOICE, .offset = offsetof(struct compare_options, weights),
      .fallback = "per_channel", .choices = granularities, .help = "one scale an output channel, or one a weight" },
    { .name = "depthwise", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct compare_options, depthwise),
      .help = "quantize depthwise convolutions, too" },
    { .name = "limit", .kind = TARE_OPTION_INT64, .offset = offsetof(struct compare_options, limit), .min = 0, .max = 1e15,
      .help = "records to measure with (default all)" },
    { .name = "batch", .kind = TARE_OPTION_INT, .offset = offsetof(struct compare_options, batch), .fallback = "8",
      .min = 1, .max = 65536, .help = "samples to run together" },
    { .name = "json", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct compare_options, json), .help = "write JSON" },
    { .name = "report", .kind = TARE_OPTION_STRING, .offset = offsetof(struct compare_options, report),
      .placeholder = "FILE", .help = "also write FILE: .html, .json or .csv" },
    { 0 },
};
static const struct tare_argument arguments[] = {
    { .name = "MODEL", .offset = offsetof(struct compare_options, model), .help = "SavedModel directory",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = {
    "tare compare my_model --calibration-data samples.tfrecord.gz --data eval.tfrecord.gz --report compare.html",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare compare",
    .summary = "Runs the float model and each quantized one over the same records and prints what each method costs in "
               "accuracy and saves in size.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

struct comparing {
    const struct compare_options *options;
    struct tare_comparison result;
    struct tare_runner_options runner;
    struct tare_calibrated_ranges calibrated; /* made at the first method that needs it */
};

static tare_status observe(struct comparing *c, const struct tare_model *prepared) {
    const struct compare_options *options = c->options;
    if (c->calibrated.calibration) return TARE_OK;
    if (!options->calibration_data.count)
        return TARE_FAIL(TARE_USAGE, "method static needs samples: give --calibration-data FILE");
    c->result.calibrations++;
    TARE_TRY(tare_algorithm_parse(&c->calibrated.algorithm, "min_max"));
    return tare_calibrate_files(&c->calibrated.calibration, prepared, options->signature, options->calibration_data.items,
                          options->calibration_data.count, 0);
}

/* The quantized methods, in the order of the report. */
static const struct method {
    const char *name;
    enum tare_quant_method method;
    const char *algorithm; /* of calibration; NULL: needs no samples */
} quantized_methods[] = {
    { "static", TARE_METHOD_STATIC, "min_max" },
    { "weight_only", TARE_METHOD_WEIGHT_ONLY, NULL },
};
enum { N_QUANTIZED_METHODS = sizeof quantized_methods / sizeof *quantized_methods };

static tare_status quantize(struct comparing *c, const struct method *method, struct tare_model *model,
                            struct tare_quant_report *report, struct tare_arena *arena) {
    const struct compare_options *options = c->options;
    struct tare_quantization quantization = { .method = method->method,
                                              .per_channel = options->weights == 0,
                                              .depthwise = options->depthwise };
    struct tare_quant_ranges ranges = { 0 };
    if (method->algorithm) {
        TARE_TRY(observe(c, model));
        ranges = tare_ranges_of(&c->calibrated);
    }
    return tare_pipeline_quantize(report, arena, model, &quantization, &ranges);
}

/* method NULL: float. */
static tare_status add_model(struct comparing *c, const struct tare_model *model, const struct method *method,
                             const struct tare_quant_report *report) {
    const struct tare_signature *signature;
    struct tare_comparison_row *row;
    TARE_TRY(tare_pick_signature(&signature, model, c->options->signature));
    if (!c->result.signature) c->result.signature = tare_arena_strdup(&c->result.arena, signature->key);
    TARE_TRY(tare_comparison_add(&row, &c->result, model, signature, &c->runner, c->options->label));
    row->method = method ? method->name : "float";
    if (!method) return TARE_OK;
    row->algorithm = method->algorithm;
    row->granularity = granularities[c->options->weights];
    row->quantized = (int64_t)report->quantized;
    row->quantizable = (int64_t)report->count;
    return TARE_OK;
}

static tare_status compare_float(struct comparing *c) {
    struct tare_model *model;
    tare_status status;
    TARE_TRY(tare_saved_model_load(&model, c->options->model, NULL));
    status = add_model(c, model, NULL, NULL);
    tare_model_free(model);
    return status;
}

static tare_status compare_quantized(struct comparing *c, const struct method *method) {
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    struct tare_model *model;
    tare_status status;
    TARE_TRY(tare_load_prepared(&model, c->options->model));
    status = quantize(c, method, model, &report, &arena);
    if (status == TARE_OK) status = add_model(c, model, method, &report);
    tare_model_free(model);
    tare_arena_free(&arena);
    return status;
}

/* Which methods `text` names: wanted[i] for quantized_methods[i]. */
static tare_status parse_methods(bool wanted[N_QUANTIZED_METHODS], const char *text) {
    const char *known[N_QUANTIZED_METHODS + 2] = { "float" };
    char list[256];
    char *save = NULL;
    for (size_t i = 0; i < N_QUANTIZED_METHODS; i++) known[i + 1] = quantized_methods[i].name;
    snprintf(list, sizeof list, "%s", text);
    for (char *name = strtok_r(list, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
        bool found = strcmp(name, "float") == 0;
        const char *nearest;
        for (size_t i = 0; i < N_QUANTIZED_METHODS; i++) {
            if (strcmp(name, quantized_methods[i].name) != 0) continue;
            found = wanted[i] = true;
        }
        if (found) continue;
        nearest = tare_nearest_name(name, known);
        return TARE_FAIL(TARE_USAGE, "--methods: '%s' is not available (float, static and weight_only are%s%s%s)", name,
                         nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    }
    return TARE_OK;
}

/* Float comes first, asked for or not: it is what the others are measured against. */
static tare_status compare_all(struct comparing *c) {
    bool wanted[N_QUANTIZED_METHODS] = { false };
    TARE_TRY(parse_methods(wanted, c->options->methods));
    TARE_TRY(compare_float(c));
    for (size_t i = 0; i < N_QUANTIZED_METHODS; i++)
        if (wanted[i]) TARE_TRY(compare_quantized(c, &quantized_methods[i]));
    return TARE_OK;
}

/* ---- reports ---- */

static bool ends_with(const char *text, const char *ending) {
    size_t a = strlen(text), b = strlen(ending);
    return a >= b && strcmp(text + a - b, ending) == 0;
}

static tare_status check_report_name(const char *path) {
    if (!path || ends_with(path, ".html") || ends_with(path, ".json") || ends_with(path, ".csv")) return TARE_OK;
    return TARE_FAIL(TARE_USAGE, "--report %s: the name must end in .html, .json or .csv", path);
}

static tare_status write_report(const struct comparing *c) {
    struct tare_strbuf text = { 0 };
    const char *path = c->options->report;
    tare_status status = TARE_OK;
    if (ends_with(path, ".html"))
        tare_comparison_html(&text, &c->result);
    else if (ends_with(path, ".csv"))
        tare_comparison_csv(&text, &c->result);
    else
        status = tare_comparison_json(&text, &c->result);
    if (status == TARE_OK && text.failed) status = TARE_FAIL(TARE_NO_MEMORY, "out of memory");
    if (status == TARE_OK) status = tare_file_write(path, tare_strbuf_text(&text), text.size);
    tare_strbuf_free(&text);
    return status;
}

static tare_status print_result(const struct comparing *c) {
    struct tare_strbuf text = { 0 };
    tare_status status = TARE_OK;
    if (c->options->json)
        status = tare_comparison_json(&text, &c->result);
    else
        tare_comparison_table(&text, &c->result);
    if (status == TARE_OK) fputs(tare_strbuf_text(&text), stdout);
    tare_strbuf_free(&text);
    return status;
}

static tare_status run(int argc, char *const *argv) {
    struct compare_options options;
    struct comparing c = { .options = &options };
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(check_report_name(options.report));
    c.runner = (struct tare_runner_options){ .paths = options.data.items,
                                             .n_paths = options.data.count,
                                             .limit = options.limit,
                                             .batch = options.batch,
                                             .interrupted = &tare_interrupted };
    c.result.model = options.model;
    c.result.data = options.data.items[0];
    TARE_CHECK(compare_all(&c));
    TARE_CHECK(print_result(&c));
    if (options.report) status = write_report(&c);
done:
    tare_calibration_free(c.calibrated.calibration);
    tare_comparison_free(&c.result);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_compare = {
    .name = "compare", .summary = "measure what each method costs in accuracy", .run = run, .options = &set
};
