/* What a check found as an HTML page: the compiler's figures beside the estimate's. */
#include "base/format.h"
#include "base/strbuf.h"
#include "eval/report/page.h"
#include "eval/report/report_table.h"
#include "include/tare/version.h"
#include "tpu/cost/schedule.h"
#include "workflow/check/report.h"

#include <math.h>
#include <string.h>

struct checked {
    const struct tare_check *check;
    const char *model;
};

struct page {
    struct tare_strbuf *out;
    const struct tare_check_request *request;
    const struct tare_tpu_chip *chip;
    double clock; /* cycles a second; NaN: not known */
};

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* ---- what compiles ---- */

static void put_outcome(struct page *p, const struct checked *m) {
    if (!m->check->compiler) {
        tare_page_note(p->out, "warning", "%s is estimated, not compiled: %s.", name_of(m->model), m->check->why);
        return;
    }
    for (size_t i = 0; i < m->check->n_parts; i++)
        if (m->check->parts[i].error) {
            tare_page_note(p->out, "warning", "%s: %s does not compile: %s", name_of(m->model),
                           m->check->parts[i].function, m->check->parts[i].error);
            return;
        }
    tare_page_note(p->out, "good", "%s compiles for a Cloud TPU %s with %s.", name_of(m->model), p->chip->name,
                   m->check->compiler);
}

/* ---- computations ---- */

static void put_products(struct tare_report_table *table, const struct tare_check_part *part) {
    struct tare_strbuf text = { 0 };
    for (size_t i = 0; i < part->n_products; i++)
        tare_strbuf_printf(&text, "%s%s", i ? ", " : "", part->products[i]);
    tare_report_table_text(table, part->n_products && !text.failed ? tare_strbuf_text(&text) : NULL);
    tare_strbuf_free(&text);
}

static void put_part(struct page *p, struct tare_report_table *table, const struct checked *m,
                     const struct tare_check_part *part) {
    const double used = part->arguments + part->results + part->temporary + part->code;
    tare_report_table_row(table);
    tare_report_table_text(table, name_of(m->model));
    tare_report_table_text(table, part->function);
    tare_report_table_number(table, "%.0f", part->cycles);
    tare_report_table_number(table, "%.3g", 1e6 * part->cycles / p->clock);
    tare_report_table_number(table, "%.3g", 1e6 * part->seconds);
    put_products(table, part);
    tare_report_table_number(table, "%.3f", (part->arguments + part->results) / 1e6);
    tare_report_table_number(table, "%.3f", part->temporary / 1e6);
    tare_report_table_number(table, "%.3f", part->code / 1e6);
    tare_report_table_bar(table, used / p->chip->hbm_bytes);
}

static void put_parts(struct page *p, const struct checked *models, size_t count) {
    static const struct tare_report_column columns[] = {
        { .heading = "model", .left = true, .wraps = true },
        { .heading = "computation", .left = true, .wraps = true },
        { .heading = "cycles", .help = "by the compiler" },
        { .heading = "µs", .help = "these cycles at the clock of the chip" },
        { .heading = "est. µs", .help = "estimated without the compiler" },
        { .heading = "matrix products", .left = true, .wraps = true, .help = "by the types of their numbers" },
        { .heading = "in and out MB", .help = "arguments and results" },
        { .heading = "temporary MB" },
        { .heading = "program MB", .help = "with constants" },
        { .heading = "of memory", .left = true, .help = "share of the memory of the chip" },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(TARE_IN_PAGE, columns);
    for (size_t m = 0; m < count; m++)
        for (size_t i = 0; i < models[m].check->n_parts; i++)
            put_part(p, table, &models[m], &models[m].check->parts[i]);
    tare_page_heading(p->out, "Computations on the TPU");
    tare_report_table_end(p->out, table);
}

/* ---- ops ---- */

static void put_ops(struct page *p, const struct tare_check_op *ops, size_t count, double total, bool compiled) {
    static const struct tare_report_column columns[] = {
        { .heading = "layer", .left = true, .wraps = true },
        { .heading = "op", .left = true },
        { .heading = "cycles" },
        { .heading = "est. µs" },
        { .heading = "share", .left = true },
        { .heading = "products", .left = true, .wraps = true },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(TARE_IN_PAGE, columns);
    for (size_t i = 0; i < count; i++) {
        tare_report_table_row(table);
        tare_report_table_text(table, ops[i].node ? ops[i].node : "(the compiler's)");
        tare_report_table_text(table, ops[i].op);
        tare_report_table_number(table, "%.0f", ops[i].cycles);
        tare_report_table_number(table, "%.3g", compiled ? NAN : 1e6 * ops[i].seconds);
        tare_report_table_bar(table, (compiled ? ops[i].cycles : ops[i].seconds) / total);
        tare_report_table_text(table, *ops[i].products ? ops[i].products : NULL);
    }
    tare_report_table_end(p->out, table);
}

static void put_layers(struct page *p, const struct checked *m, const struct tare_check_part *part) {
    tare_page_heading(p->out, "%s: %s", name_of(m->model), part->function);
    if (part->n_ops) {
        tare_page_element(p->out, "p", "soft small",
                          "Ops as %s compiles them: a line is named after a layer, and has what is fused with it.",
                          m->check->compiler);
        put_ops(p, part->ops, part->n_ops, part->cycles, true);
    }
    tare_page_element(p->out, "p", "soft small", "The estimate: every op with what is expected to be fused with it.");
    put_ops(p, part->estimated_ops, part->n_estimated_ops, part->seconds, false);
}

void tare_check_html(struct tare_strbuf *out, const struct tare_check_request *request, const struct tare_check *check,
                     const char *model, const struct tare_check *other, const char *with) {
    const struct checked models[] = { { check, model }, { other, with } };
    const size_t count = other ? 2 : 1;
    struct page p = { out, request, &tare_tpu_chips[request->chip], tare_tpu_chip_clock(request->chip) };
    struct tare_strbuf ratio = { 0 };
    tare_page_begin(out, "Check of", name_of(model));
    tare_page_element(out, "p", "soft", "On a Cloud TPU %s, in batches of %lld, by tare %s.", p.chip->name,
                      (long long)request->batch, TARE_VERSION);
    for (size_t m = 0; m < count; m++)
        put_outcome(&p, &models[m]);
    if (other) tare_check_put_ratio(&ratio, check, model, other, with);
    if (ratio.size) tare_page_element(out, "p", NULL, "%s", tare_strbuf_text(&ratio));
    put_parts(&p, models, count);
    for (size_t m = 0; m < count; m++)
        for (size_t i = 0; i < models[m].check->n_parts; i++)
            put_layers(&p, &models[m], &models[m].check->parts[i]);
    tare_page_end(out);
    out->failed |= ratio.failed;
    tare_strbuf_free(&ratio);
}
