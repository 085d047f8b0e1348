/* tare check: what a model costs on a TPU, by Google's compiler, without a TPU. */
#include "base/strbuf.h"
#include "base/text_table.h"
#include "cli/command.h"
#include "cli/hint.h"
#include "cli/log.h"
#include "cli/plugins.h"
#include "eval/report/json_text.h"
#include "workflow/check/check.h"

#include <math.h>
#include <stdio.h>

struct check_options {
    const char *model, *with, *signature;
    int chip;
    int64_t batch, top;
    struct tare_option_list shapes, plugins;
    bool estimate, json, quiet;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct check_options, "chip", CHOICE, chip), .choices = tare_tpu_chip_names, .fallback = "v5e",
      .help = "Cloud TPU chip" },
    { TARE_OPTION(struct check_options, "batch", INT64, batch), .placeholder = "N", .min = 1, .max = 1 << 20,
      .fallback = "8", .help = "size of open first dimensions: a program has one size" },
    { TARE_OPTION(struct check_options, "shape", LIST, shapes), .placeholder = "INPUT=SIZES",
      .help = "shape of an input whose sizes are open, as text=1,128" },
    { TARE_OPTION(struct check_options, "signature", STRING, signature), .placeholder = "KEY",
      .help = "signature to check (default: serving_default, or the only one)" },
    { TARE_OPTION(struct check_options, "with", STRING, with), .placeholder = "OTHER",
      .help = "also check the model OTHER, such as the float model, and print the ratio" },
    { TARE_OPTION(struct check_options, "top", INT64, top), .placeholder = "N", .min = 0, .max = 1 << 20,
      .fallback = "12", .help = "number of ops to list, the dearest first" },
    { TARE_OPTION(struct check_options, "estimate", FLAG, estimate),
      .help = "use the estimate, also where the compiler is installed" },
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

/* ---- text ---- */

static double cycles_of(const struct tare_check *check) {
    double sum = 0;
    for (size_t i = 0; i < check->n_parts; i++)
        sum += check->parts[i].cycles;
    return sum; /* NaN if one is not known */
}

static double seconds_of(const struct tare_check *check) {
    double sum = 0;
    for (size_t i = 0; i < check->n_parts; i++)
        sum += check->parts[i].seconds;
    return sum;
}

/* "1,234,567" */
static void put_count(struct tare_strbuf *out, double count) {
    char digits[32];
    const int size = snprintf(digits, sizeof digits, "%.0f", count);
    for (int i = 0; i < size; i++) {
        if (i && (size - i) % 3 == 0) tare_strbuf_putc(out, ',');
        tare_strbuf_putc(out, digits[i]);
    }
}

static void put_part(struct tare_strbuf *out, const struct tare_check_part *part, const struct tare_tpu_chip *chip) {
    tare_strbuf_printf(out, "  %s: ", part->function);
    if (part->error) {
        tare_strbuf_printf(out, "does not compile: %s\n", part->error);
        return;
    }
    if (isnan(part->cycles)) {
        tare_strbuf_printf(out, "%.2g µs, estimated\n", 1e6 * part->seconds);
        return;
    }
    put_count(out, part->cycles);
    tare_strbuf_puts(out, " cycles\n    products  ");
    for (size_t i = 0; i < part->n_products; i++)
        tare_strbuf_printf(out, "%s%s", i ? ", " : "", part->products[i]);
    tare_strbuf_printf(out,
                       "%s\n    memory    %.2f MB of arguments and results, %.2f MB temporary, %.2f MB of program and "
                       "constants; the chip has %.0f MB\n",
                       part->n_products ? "" : "none", (part->arguments + part->results) / 1e6, part->temporary / 1e6,
                       part->code / 1e6, chip->hbm_bytes / 1e6);
}

static void put_ops(struct tare_strbuf *out, const struct tare_check_part *part, size_t top) {
    static const struct tare_text_table_column columns[] = {
        { .heading = "layer", .left = true },
        { .heading = "op", .left = true },
        { .heading = "cycles" },
        { .heading = "share" },
        { .heading = "products", .left = true },
        { 0 },
    };
    struct tare_text_table *table = tare_text_table_new(columns);
    const bool compiled = !isnan(part->cycles);
    const double total = compiled ? part->cycles : part->seconds;
    for (size_t i = 0; i < part->n_ops && i < top; i++) {
        const struct tare_check_op *op = &part->ops[i];
        struct tare_strbuf count = { 0 };
        tare_text_table_row(table);
        tare_text_table_cell(table, "%s", op->node ? op->node : "(the compiler's)");
        tare_text_table_cell(table, "%s", op->op);
        if (compiled) {
            put_count(&count, op->cycles);
            tare_text_table_cell(table, "%s", tare_strbuf_text(&count));
        } else {
            tare_text_table_skip(table);
        }
        tare_text_table_cell(table, "%.0f %%", total > 0 ? 100 * (compiled ? op->cycles : op->seconds) / total : 0);
        if (*op->products)
            tare_text_table_cell(table, "%s", op->products);
        else
            tare_text_table_skip(table);
        tare_strbuf_free(&count);
    }
    if (top && part->n_ops) tare_text_table_print(out, table);
    tare_text_table_free(table);
}

static void put_check(struct tare_strbuf *out, const struct tare_check *check, const char *model,
                      const struct check_options *options) {
    const struct tare_tpu_chip *chip = &tare_tpu_chips[options->chip];
    tare_strbuf_printf(out, "%s on a Cloud TPU %s, batch %lld, ", model, chip->name, (long long)options->batch);
    if (check->compiler)
        tare_strbuf_printf(out, "compiled by %s\n", check->compiler);
    else
        tare_strbuf_printf(out, "estimated: %s\n", check->why);
    for (size_t i = 0; i < check->n_parts; i++) {
        put_part(out, &check->parts[i], chip);
        put_ops(out, &check->parts[i], (size_t)options->top);
    }
}

static void put_ratio(struct tare_strbuf *out, const struct tare_check *check, const struct tare_check *other,
                      const struct check_options *options) {
    const double cycles = cycles_of(check) / cycles_of(other), seconds = seconds_of(check) / seconds_of(other);
    if (isfinite(cycles))
        tare_strbuf_printf(out, "%s takes %.2f times the cycles of %s\n", options->model, cycles, options->with);
    else if (isfinite(seconds))
        tare_strbuf_printf(out, "%s takes an estimated %.2f times the time of %s\n", options->model, seconds,
                           options->with);
}

/* ---- JSON ---- */

static json_t *part_json(const struct tare_check_part *part) {
    json_t *object = json_object(), *ops = json_array(), *products = json_array();
    for (size_t i = 0; i < part->n_products; i++)
        json_array_append_new(products, tare_json_text(part->products[i]));
    for (size_t i = 0; i < part->n_ops; i++)
        json_array_append_new(
            ops, json_pack("{s:o, s:o, s:o, s:o, s:o}", "node", tare_json_text(part->ops[i].node), "op",
                           tare_json_text(part->ops[i].op), "products", tare_json_text(part->ops[i].products), "cycles",
                           tare_json_number(part->ops[i].cycles), "seconds", tare_json_number(part->ops[i].seconds)));
    json_object_set_new(object, "function", tare_json_text(part->function));
    json_object_set_new(object, "error", tare_json_text(part->error));
    json_object_set_new(object, "cycles", tare_json_number(part->cycles));
    json_object_set_new(object, "estimated_seconds", tare_json_number(part->seconds));
    json_object_set_new(object, "products", products);
    json_object_set_new(object, "memory",
                        json_pack("{s:o, s:o, s:o, s:o}", "code", tare_json_number(part->code), "arguments",
                                  tare_json_number(part->arguments), "results", tare_json_number(part->results),
                                  "temporary", tare_json_number(part->temporary)));
    json_object_set_new(object, "ops", ops);
    return object;
}

static json_t *check_json(const struct tare_check *check, const char *model, const struct check_options *options) {
    json_t *parts = json_array();
    for (size_t i = 0; i < check->n_parts; i++)
        json_array_append_new(parts, part_json(&check->parts[i]));
    return json_pack("{s:o, s:s, s:I, s:o, s:o, s:o}", "model", tare_json_text(model), "chip",
                     tare_tpu_chip_names[options->chip], "batch", (json_int_t)options->batch, "compiler",
                     tare_json_text(check->compiler), "estimated_because", tare_json_text(check->why), "computations",
                     parts);
}

/* ---- the command ---- */

static void warn_of_missing_units(const struct tare_check *check, const char *model,
                                  const struct check_options *options) {
    const struct tare_tpu_chip *chip = &tare_tpu_chips[options->chip];
    const struct tare_log log = tare_command_log(true);
    double integers = 0;
    for (size_t i = 0; i < check->n_parts; i++)
        integers += check->parts[i].integer_macs;
    if (integers > 0 && !(chip->int8_ops_second > 0))
        tare_warn(&log, "%s: a Cloud TPU %s has no int8 units: integers save memory only%s", model, chip->name,
                  chip->fp8_ops_second > 0 ? " (it has float8 units: --format fp8_e4m3)" : "");
}

static tare_status check_model(struct tare_check *out, const char *path, const struct check_options *options) {
    const struct tare_check_request request = { .signature = options->signature,
                                                .chip = options->chip,
                                                .batch = options->batch,
                                                .shapes = options->shapes.items,
                                                .n_shapes = options->shapes.count,
                                                .estimate = options->estimate };
    struct tare_graph_model *model;
    TARE_TRY(tare_command_load(&model, path));
    const tare_status status = tare_workflow_check(out, model, &request);
    tare_model_free(model);
    if (status == TARE_OK) warn_of_missing_units(out, path, options);
    return status;
}

static tare_status print(const struct tare_check *check, const struct tare_check *other,
                         const struct check_options *options) {
    struct tare_strbuf text = { 0 };
    tare_status status = TARE_OK;
    if (options->json) {
        json_t *root = check_json(check, options->model, options);
        if (root && options->with) json_object_set_new(root, "with", check_json(other, options->with, options));
        status = tare_json_write(&text, root);
    } else {
        put_check(&text, check, options->model, options);
        if (options->with) {
            put_check(&text, other, options->with, options);
            put_ratio(&text, check, other, options);
        }
    }
    if (status == TARE_OK) status = tare_strbuf_status(&text);
    if (status == TARE_OK) tare_strbuf_print(&text, stdout);
    tare_strbuf_free(&text);
    return status;
}

static tare_status refuse_failed(const struct tare_check *check, const char *model) {
    for (size_t i = 0; i < check->n_parts; i++)
        if (check->parts[i].error)
            return TARE_FAIL(TARE_UNSUPPORTED, "%s: the TPU compiler rejects %s: %s", model, check->parts[i].function,
                             check->parts[i].error);
    return TARE_OK;
}

static tare_status run(int argc, char *const *argv) {
    struct check_options options;
    struct tare_check check = { 0 }, other = { 0 };
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(check_model(&check, options.model, &options));
    if (options.with) TARE_CHECK(check_model(&other, options.with, &options));
    TARE_CHECK(print(&check, &other, &options));
    TARE_CHECK(refuse_failed(&check, options.model));
    if (options.with) TARE_CHECK(refuse_failed(&other, options.with));
done:
    tare_check_free(&check);
    tare_check_free(&other);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_check = {
    .name = "check", .summary = "compile a model with Google's TPU compiler, without a TPU", .run = run, .options = &set
};
