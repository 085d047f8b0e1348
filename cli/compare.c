/* tare compare: float against each method on the same records. */
#include "base/progress.h"
#include "base/thread.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/data_options.h"
#include "cli/plugins.h"
#include "cli/quantizing.h"
#include "cli/report_file.h"
#include "cli/version.h"
#include "convert/saved_model.h"
#include "eval/comparison.h"
#include "eval/model_inputs.h"
#include "eval/job_key.h"
#include "eval/sensitivity.h"
#include "eval/variant.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct compare_options {
    const char *model, *signature, *label, *methods, *algorithms, *granularities, *calibration, *report, *recipe;
    struct tare_option_list data, calibration_data;
    struct tare_data_options records;
    int64_t limit, sensitivity_limit;
    int batch, worst, threads, bits;
    bool depthwise, explain, sensitivity, json, quiet;
    struct tare_option_list plugins;
};

static const struct tare_option rows[] = {
    { .name = "data", .kind = TARE_OPTION_LIST, .offset = offsetof(struct compare_options, data), .placeholder = "FILE",
      .help = "records to measure with, labelled or not", .flags = TARE_OPTION_REQUIRED },
    TARE_DATA_OPTIONS(struct compare_options, records),
    { .name = "calibration-data", .kind = TARE_OPTION_LIST, .offset = offsetof(struct compare_options, calibration_data),
      .placeholder = "FILE", .help = "representative samples for methods that ask for ranges" },
    { .name = "calibration", .kind = TARE_OPTION_STRING, .offset = offsetof(struct compare_options, calibration),
      .placeholder = "FILE.calib", .help = "a calibration file of this model instead of samples" },
    { .name = "methods", .kind = TARE_OPTION_STRING, .offset = offsetof(struct compare_options, methods),
      .fallback = "float,static,weight_only", .placeholder = "M,…",
      .help = "methods to compare; with +bfloat16 the rest is computed in bfloat16, with +PASS an accuracy pass runs (equalization, "
              "weight_clipping, bias_correction)" },
    { .name = "algorithms", .kind = TARE_OPTION_STRING, .offset = offsetof(struct compare_options, algorithms),
      .fallback = "min_max", .placeholder = "A,…", .help = "range algorithms, each with its parameters: percentile:p=99.9" },
    { .name = "granularities", .kind = TARE_OPTION_STRING, .offset = offsetof(struct compare_options, granularities),
      .fallback = "per_channel", .placeholder = "G,…", .help = "scales of the weights: per_channel, per_tensor, per_block:N" },
    { .name = "bits", .kind = TARE_OPTION_INT, .offset = offsetof(struct compare_options, bits), .fallback = "8", .min = 4,
      .max = 8, .help = "bits of the weights: 8 or 4" },
    { .name = "signature", .kind = TARE_OPTION_STRING, .offset = offsetof(struct compare_options, signature),
      .placeholder = "S", .help = "signature to run (default serving_default)" },
    { .name = "label", .kind = TARE_OPTION_STRING, .offset = offsetof(struct compare_options, label),
      .fallback = "label", .placeholder = "KEY", .help = "key of the class index in the records, or of an output: what it should be" },
    { .name = "depthwise", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct compare_options, depthwise),
      .help = "quantize depthwise convolutions, too" },
    { .name = "limit", .kind = TARE_OPTION_INT64, .offset = offsetof(struct compare_options, limit), .min = 0, .max = 1e15,
      .help = "records to measure with (default all)" },
    { .name = "batch", .kind = TARE_OPTION_INT, .offset = offsetof(struct compare_options, batch), .fallback = "8",
      .min = 1, .max = 65536, .help = "samples to run together" },
    { .name = "explain", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct compare_options, explain),
      .help = "also print what each layer loses by the first quantizing method, and what would help" },
    { .name = "sensitivity", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct compare_options, sensitivity),
      .help = "also measure layer by layer what the first quantizing method loses" },
    { .name = "sensitivity-limit", .kind = TARE_OPTION_INT64, .offset = offsetof(struct compare_options, sensitivity_limit),
      .fallback = "200", .min = 1, .max = 1e15, .help = "records for that" },
    { .name = "write-recipe", .kind = TARE_OPTION_STRING, .offset = offsetof(struct compare_options, recipe),
      .placeholder = "FILE", .help = "write a recipe that leaves the worst layers in float (for tare quantize --recipe)" },
    { .name = "worst", .kind = TARE_OPTION_INT, .offset = offsetof(struct compare_options, worst), .fallback = "1",
      .min = 1, .max = 1000000, .help = "how many layers that recipe leaves in float" },
    { .name = "threads", .kind = TARE_OPTION_INT, .offset = offsetof(struct compare_options, threads), .min = 0, .max = 1024,
      .help = "workers (default: one a processor)" },
    { .name = "json", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct compare_options, json), .help = "write JSON" },
    { .name = "report", .kind = TARE_OPTION_STRING, .offset = offsetof(struct compare_options, report),
      .placeholder = "FILE", .help = "also write FILE: .html, .json or .csv" },
    { .name = "quiet", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct compare_options, quiet),
      .help = "no progress on standard error" },
    TARE_PLUGIN_OPTION(struct compare_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { .name = "MODEL", .offset = offsetof(struct compare_options, model), .help = "SavedModel directory",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = {
    "tare compare my_model --calibration-data samples.tfrecord.gz --data eval.tfrecord.gz --report compare.html",
    "tare compare my_model --calibration my_model.calib --data eval.tfrecord.gz --methods static,weight_only,bfloat16 "
    "--algorithms min_max,percentile:p=99.9,entropy,mse",
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
    struct tare_variant_list variants;
    struct tare_comparison result;
    struct tare_runner_options runner;
    struct tare_calibration *calibration; /* NULL: no method asks for one */
    struct tare_sensitivity sensitivity;  /* when asked for */
};

/* ---- calibration ---- */

static const char *needing_samples(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->variants[i].algorithm || tare_quant_passes_need_channels(list->variants[i].quantization.options.passes))
            return list->variants[i].method;
    return "";
}

static tare_status check_calibration_given(const struct comparing *c) {
    const struct compare_options *options = c->options;
    if (options->calibration && options->calibration_data.count)
        return TARE_FAIL(TARE_USAGE, "give --calibration or --calibration-data, not both");
    if (!tare_variants_calibrate(&c->variants) || options->calibration || options->calibration_data.count) return TARE_OK;
    return TARE_FAIL(TARE_USAGE, "method %s needs samples: give --calibration-data FILE or --calibration FILE.calib", needing_samples(&c->variants));
}

/* Once for all methods and algorithms. */
static tare_status calibrate(struct comparing *c) {
    const struct compare_options *options = c->options;
    struct tare_model *model;
    tare_status status;
    if (!tare_variants_calibrate(&c->variants)) return TARE_OK;
    TARE_TRY(tare_command_load_prepared(&model, options->model));
    if (options->calibration) {
        status = tare_calibration_load_for(&c->calibration, model, options->calibration);
    } else {
        c->result.calibrations++;
        const struct tare_calibrating_options calibrating = { .signature = options->signature,
                                                              .data = options->calibration_data.items,
                                                              .n_data = options->calibration_data.count,
                                                              .spec = options->records.spec,
                                                              .channels = tare_variants_need_channels(&c->variants) };
        status = tare_calibrate_files(&c->calibration, model, &calibrating);
    }
    tare_model_free(model);
    c->result.calibration = c->calibration;
    return status;
}

/* ---- models ---- */

static tare_status add_row(struct comparing *c, const struct tare_model *model, const struct tare_variant *variant,
                           const struct tare_quant_report *report) {
    const struct tare_signature *signature;
    struct tare_comparison_row *row;
    TARE_TRY(tare_pick_signature(&signature, model, c->options->signature));
    if (!c->result.signature) c->result.signature = tare_arena_strdup(&c->result.arena, signature->key);
    TARE_TRY(tare_comparison_add(&row, &c->result, model, signature, &c->runner, c->options->label));
    row->method = variant->method;
    row->algorithm = variant->algorithm;
    row->granularity = variant->granularity;
    row->quantized = (int64_t)report->quantized;
    row->quantizable = (int64_t)report->count;
    return TARE_OK;
}

/* The model as it was given: not even prepared. */
static tare_status compare_float(struct comparing *c) {
    const struct tare_quant_report none = { 0 };
    struct tare_model *model;
    tare_status status;
    TARE_TRY(tare_command_load(&model, c->options->model));
    status = add_row(c, model, &c->variants.variants[0], &none);
    tare_model_free(model);
    return status;
}

static const struct tare_variant *first_quantizing(const struct tare_variant_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->variants[i].granularity) return &list->variants[i];
    return NULL;
}

/* The reports explain the layers of the first method that quantizes. */
static tare_status explain(struct comparing *c, const struct tare_variant *variant, const struct tare_quant_report *report) {
    if (variant != first_quantizing(&c->variants)) return TARE_OK;
    return tare_explain(&c->result.explanations, &c->result.arena, report, variant, c->calibration);
}

static tare_status compare_variant(struct comparing *c, struct tare_variant *variant) {
    struct tare_quant_report report;
    struct tare_arena arena = { 0 };
    struct tare_model *model;
    tare_status status;
    variant->quantization.options.depthwise = c->options->depthwise;
    TARE_TRY(tare_command_load_prepared(&model, c->options->model));
    status = tare_variant_apply(&report, &arena, model, variant, c->calibration);
    if (status == TARE_OK) status = add_row(c, model, variant, &report);
    if (status == TARE_OK) status = explain(c, variant, &report);
    tare_model_free(model);
    tare_arena_free(&arena);
    return tare_error_prefix(status, "%s", variant->method);
}

static struct tare_progress *new_progress(const struct comparing *c, int64_t total) {
    const struct tare_progress_options options = { .label = "comparing", .unit = "records", .total = total,
                                                   .quiet = c->options->quiet };
    return tare_progress_new(&options);
}

/* Float tells how many records there are. */
static tare_status compare_all(struct comparing *c) {
    tare_status status;
    TARE_TRY(calibrate(c));
    c->result.progress = new_progress(c, c->options->limit ? c->options->limit : -1);
    status = compare_float(c);
    tare_progress_free(c->result.progress);
    c->result.progress = new_progress(c, c->result.records * (int64_t)(c->variants.count - 1));
    for (size_t i = 1; i < c->variants.count && status == TARE_OK; i++) status = compare_variant(c, &c->variants.variants[i]);
    tare_progress_free(c->result.progress);
    c->result.progress = NULL;
    return status;
}

/* ---- sensitivity ---- */

static tare_status measure_sensitivity(struct comparing *c) {
    const struct compare_options *options = c->options;
    struct tare_runner_options runner = c->runner;
    struct tare_variant variant;
    const struct tare_sensitivity_task task = { .model = options->model, .ops = tare_command_registry(),
                                                .variant = &variant,
                                                .calibration = c->calibration, .signature = options->signature,
                                                .label = options->label, .runner = &runner,
                                                .threads = c->result.threads, .quiet = options->quiet };
    variant = *first_quantizing(&c->variants);
    variant.quantization.options.depthwise = options->depthwise;
    if (!runner.limit || runner.limit > options->sensitivity_limit) runner.limit = options->sensitivity_limit;
    TARE_TRY(tare_sensitivity_measure(&c->sensitivity, &task));
    c->result.sensitivity = &c->sensitivity;
    return TARE_OK;
}

static tare_status write_recipe(const struct comparing *c) {
    struct tare_strbuf text = { 0 };
    tare_status status;
    tare_sensitivity_recipe(&text, &c->sensitivity, (size_t)c->options->worst);
    status = tare_report_write(c->options->recipe, &text);
    tare_strbuf_free(&text);
    return status;
}

/* ---- what the figures were made of ---- */

static void add_line(struct comparing *c, const char *name, const char *value) {
    struct tare_comparison *r = &c->result;
    if (value && r->n_manifest < sizeof r->manifest / sizeof *r->manifest)
        r->manifest[r->n_manifest++] = (struct tare_manifest_row){ name, value };
}

static const char *join(struct tare_arena *arena, const struct tare_option_list *list) {
    struct tare_strbuf text = { 0 };
    const char *joined;
    for (size_t i = 0; i < list->count; i++) tare_strbuf_printf(&text, "%s%s", i ? ", " : "", list->items[i]);
    joined = text.size ? tare_arena_strdup(arena, tare_strbuf_text(&text)) : NULL;
    tare_strbuf_free(&text);
    return joined;
}

static void describe(struct comparing *c, double seconds) {
    const struct compare_options *o = c->options;
    struct tare_arena *arena = &c->result.arena;
    char hash[TARE_KEY_SIZE];
    time_t now = time(NULL);
    struct tm date;
    char text[32] = "";
    if (gmtime_r(&now, &date)) strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &date);
    add_line(c, "made", tare_arena_printf(arena, "%s by tare %s in %.1f s on %d threads", text, TARE_VERSION, seconds, c->result.threads));
    add_line(c, "model", o->model);
    if (tare_folder_key(hash, o->model) == TARE_OK) add_line(c, "hash of its files", tare_arena_strdup(arena, hash));
    tare_error_clear();
    add_line(c, "records", join(arena, &o->data));
    add_line(c, "calibration samples", join(arena, &o->calibration_data));
    add_line(c, "calibration file", o->calibration);
    add_line(c, "calibrations", c->calibration ? tare_arena_printf(arena, "%lld", (long long)c->result.calibrations) : NULL);
    add_line(c, "methods", o->methods);
    add_line(c, "algorithms", o->algorithms);
    add_line(c, "granularities", o->granularities);
    if (o->depthwise) add_line(c, "depthwise", "quantized, too");
}

/* ---- reports ---- */

static tare_status write_report(const struct comparing *c) {
    struct tare_strbuf text = { 0 };
    const char *path = c->options->report;
    tare_status status = TARE_OK;
    switch (tare_report_kind(path)) {
    case TARE_REPORT_HTML: tare_comparison_html(&text, &c->result); break;
    case TARE_REPORT_CSV: tare_comparison_csv(&text, &c->result); break;
    default: status = tare_comparison_json(&text, &c->result);
    }
    if (status == TARE_OK) status = tare_report_write(path, &text);
    tare_strbuf_free(&text);
    return status;
}

static void print_tables(struct tare_strbuf *text, const struct comparing *c) {
    tare_comparison_table(text, &c->result);
    if (!c->options->explain) return;
    tare_strbuf_printf(text, "\nlayers of %s\n", first_quantizing(&c->variants)->method);
    tare_explanations_table(text, &c->result.explanations);
}

static tare_status print_result(const struct comparing *c) {
    struct tare_strbuf text = { 0 };
    tare_status status = TARE_OK;
    if (c->options->json)
        status = tare_comparison_json(&text, &c->result);
    else
        print_tables(&text, c);
    if (status == TARE_OK) fputs(tare_strbuf_text(&text), stdout);
    tare_strbuf_free(&text);
    return status;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static tare_status run(int argc, char *const *argv) {
    const double start = seconds();
    struct compare_options options = { 0 };
    struct comparing c = { .options = &options };
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_report_check(options.report));
    TARE_CHECK(tare_data_options_open(&options.records));
    TARE_CHECK(tare_variants_parse(&c.variants, &c.result.arena, options.methods, options.algorithms, options.granularities, options.bits));
    TARE_CHECK(check_calibration_given(&c));
    options.sensitivity |= options.recipe != NULL;
    if ((options.sensitivity || options.explain) && !first_quantizing(&c.variants))
        TARE_CHECK(TARE_FAIL(TARE_USAGE, "--%s needs a method that quantizes", options.sensitivity ? "sensitivity" : "explain"));
    c.runner = (struct tare_runner_options){ .paths = options.data.items,
                                             .n_paths = options.data.count,
                                             .limit = options.limit,
                                             .spec = options.records.spec,
                                             .batch = options.batch,
                                             .interrupted = &tare_interrupted };
    c.result.threads = options.threads ? options.threads : tare_cpu_count();
    c.result.model = options.model;
    c.result.data = options.data.items[0];
    TARE_CHECK(compare_all(&c));
    if (options.sensitivity) TARE_CHECK(measure_sensitivity(&c));
    if (options.recipe) TARE_CHECK(write_recipe(&c));
    describe(&c, seconds() - start);
    TARE_CHECK(print_result(&c));
    if (options.report) status = write_report(&c);
done:
    tare_calibration_free(c.calibration);
    tare_sensitivity_free(&c.sensitivity);
    tare_comparison_free(&c.result);
    tare_data_options_close(&options.records);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_compare = {
    .name = "compare", .summary = "measure what each method costs in accuracy", .run = run, .options = &set
};
