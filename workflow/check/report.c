/* What a check found, as text and as JSON. */
#include "workflow/check/report.h"
#include "base/format.h"
#include "base/strbuf.h"
#include "base/text_table.h"
#include "eval/report/json_text.h"
#include "tpu/cost/schedule.h"

#include <math.h>
#include <stdio.h>

/* ---- text ---- */

double tare_check_cycles(const struct tare_check *check) {
    double sum = 0;
    for (size_t i = 0; i < check->n_parts; i++)
        sum += check->parts[i].cycles;
    return sum;
}

double tare_check_seconds(const struct tare_check *check) {
    double sum = 0;
    for (size_t i = 0; i < check->n_parts; i++)
        sum += check->parts[i].seconds;
    return sum;
}

/* "1,234,567" */
static void put_count(struct tare_strbuf *out, double count) {
    char digits[32];
    const int size = tare_format(digits, sizeof digits, "%.0f", count);
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
    const struct tare_check_op *ops = compiled ? part->ops : part->estimated_ops;
    const size_t count = compiled ? part->n_ops : part->n_estimated_ops;
    for (size_t i = 0; i < count && i < top; i++) {
        const struct tare_check_op *op = &ops[i];
        struct tare_strbuf cycles = { 0 };
        tare_text_table_row(table);
        tare_text_table_cell(table, "%s", op->node ? op->node : "(the compiler's)");
        tare_text_table_cell(table, "%s", op->op);
        if (compiled) {
            put_count(&cycles, op->cycles);
            tare_text_table_cell(table, "%s", tare_strbuf_text(&cycles));
        } else {
            tare_text_table_skip(table);
        }
        tare_text_table_cell(table, "%.0f %%", total > 0 ? 100 * (compiled ? op->cycles : op->seconds) / total : 0);
        if (*op->products)
            tare_text_table_cell(table, "%s", op->products);
        else
            tare_text_table_skip(table);
        tare_strbuf_free(&cycles);
    }
    if (top && count) tare_text_table_print(out, table);
    tare_text_table_free(table);
}

void tare_check_put(struct tare_strbuf *out, const struct tare_check *check, const char *model,
                    const struct tare_check_request *request, size_t top) {
    const struct tare_tpu_chip *chip = &tare_tpu_chips[request->chip];
    tare_strbuf_printf(out, "%s on a Cloud TPU %s, batch %lld, ", model, chip->name, (long long)request->batch);
    if (check->compiler)
        tare_strbuf_printf(out, "compiled by %s\n", check->compiler);
    else
        tare_strbuf_printf(out, "estimated: %s\n", check->why);
    for (size_t i = 0; i < check->n_parts; i++) {
        put_part(out, &check->parts[i], chip);
        put_ops(out, &check->parts[i], top);
    }
}

void tare_check_put_ratio(struct tare_strbuf *out, const struct tare_check *check, const char *model,
                          const struct tare_check *other, const char *with) {
    const double cycles = tare_check_cycles(check) / tare_check_cycles(other);
    const double seconds = tare_check_seconds(check) / tare_check_seconds(other);
    if (isfinite(cycles))
        tare_strbuf_printf(out, "%s takes %.2f times the cycles of %s\n", model, cycles, with);
    else if (isfinite(seconds))
        tare_strbuf_printf(out, "%s takes an estimated %.2f times the time of %s\n", model, seconds, with);
}

/* ---- JSON ---- */

static json_t *ops_json(const struct tare_check_op *ops, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_pack("{s:o, s:o, s:o, s:o, s:o}", "node", tare_json_text(ops[i].node), "op",
                                               tare_json_text(ops[i].op), "products", tare_json_text(ops[i].products),
                                               "cycles", tare_json_number(ops[i].cycles), "seconds",
                                               tare_json_number(ops[i].seconds)));
    return array;
}

static json_t *part_json(const struct tare_check_part *part, double clock) {
    json_t *object = json_object(), *products = json_array();
    for (size_t i = 0; i < part->n_products; i++)
        json_array_append_new(products, tare_json_text(part->products[i]));
    json_object_set_new(object, "function", tare_json_text(part->function));
    json_object_set_new(object, "error", tare_json_text(part->error));
    json_object_set_new(object, "cycles", tare_json_number(part->cycles));
    json_object_set_new(object, "seconds", tare_json_number(part->cycles / clock));
    json_object_set_new(object, "estimated_seconds", tare_json_number(part->seconds));
    json_object_set_new(object, "products", products);
    json_object_set_new(object, "memory",
                        json_pack("{s:o, s:o, s:o, s:o}", "code", tare_json_number(part->code), "arguments",
                                  tare_json_number(part->arguments), "results", tare_json_number(part->results),
                                  "temporary", tare_json_number(part->temporary)));
    json_object_set_new(object, "ops", ops_json(part->ops, part->n_ops));
    json_object_set_new(object, "estimated_ops", ops_json(part->estimated_ops, part->n_estimated_ops));
    return object;
}

json_t *tare_check_json(const struct tare_check *check, const char *model, const struct tare_check_request *request) {
    json_t *parts = json_array();
    for (size_t i = 0; i < check->n_parts; i++)
        json_array_append_new(parts, part_json(&check->parts[i], tare_tpu_chip_clock(request->chip)));
    return json_pack("{s:o, s:s, s:I, s:o, s:o, s:o}", "model", tare_json_text(model), "chip",
                     tare_tpu_chip_names[request->chip], "batch", (json_int_t)request->batch, "compiler",
                     tare_json_text(check->compiler), "estimated_because", tare_json_text(check->why), "computations",
                     parts);
}
