/* A calibration as aligned tables for a terminal. */
#include "base/strbuf.h"
#include "base/text_table.h"
#include "eval/report/calibration_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void heading(struct tare_strbuf *out, const char *text, bool colour) {
    tare_strbuf_printf(out, "\n%s%s%s\n", colour ? "\033[1m" : "", text, colour ? "\033[0m" : "");
}

static void finish(struct tare_strbuf *out, struct tare_text_table *table,
                   const struct tare_calibration_report *report) {
    out->failed = out->failed || !table;
    tare_text_table_fit(table, report->text_width);
    tare_text_table_print(out, table);
    tare_text_table_free(table);
}

static void put_records(struct tare_strbuf *out, struct tare_text_table *table, const struct tare_record_set *records) {
    struct tare_strbuf text = { 0 };
    enum { SHOWN = 4 };
    for (size_t i = 0; i < records->count && i < SHOWN; i++) {
        const struct tare_record_run *run = &records->runs[i];
        tare_strbuf_printf(&text, "%s%" PRId64, i > 0 ? ", " : "", run->first);
        if (run->end - run->first > 1) tare_strbuf_printf(&text, "–%" PRId64, run->end - 1);
    }
    if (records->count > SHOWN) tare_strbuf_printf(&text, ", … (%zu runs)", records->count);
    tare_text_table_cell(table, "%s", tare_strbuf_text(&text));
    out->failed = out->failed || text.failed;
    tare_strbuf_free(&text);
}

static void print_inputs(struct tare_strbuf *out, const struct tare_calibration_report *report, bool colour) {
    static const struct tare_text_table_column columns[] = {
        { .heading = "input" },
        { .heading = "signature", .left = true },
        { .heading = "records" },
        { .heading = "passed over" },
        { .heading = "numbers", .left = true },
        { .heading = "file", .left = true },
        { 0 },
    };
    const struct tare_calibration *c = report->calibration;
    struct tare_text_table *table = tare_text_table_new(columns);
    char number[TARE_CALIBRATION_NUMBER];
    heading(out, "Inputs", colour);
    for (size_t i = 0; i < c->n_inputs; i++) {
        tare_text_table_row(table);
        tare_text_table_cell(table, "%zu", i + 1);
        tare_text_table_cell(table, "%s", c->inputs[i].signature);
        tare_text_table_cell(table, "%s",
                             tare_calibration_count_text(number, tare_record_set_size(&c->inputs[i].records)));
        if (c->inputs[i].n_bad > 0)
            tare_text_table_cell(table, "%zu", c->inputs[i].n_bad);
        else
            tare_text_table_skip(table);
        put_records(out, table, &c->inputs[i].records);
        tare_text_table_cell(table, "%s", c->inputs[i].file);
    }
    finish(out, table, report);
}

static void print_bad(struct tare_strbuf *out, const struct tare_calibration_report *report, bool colour) {
    const struct tare_calibration *c = report->calibration;
    if (tare_calibration_bad_records(c) == 0) return;
    heading(out, "Records passed over", colour);
    for (size_t i = 0; i < c->n_inputs; i++) {
        for (size_t k = 0; k < c->inputs[i].n_bad; k++) {
            const struct tare_calibration_bad *bad = &c->inputs[i].bad[k];
            tare_strbuf_printf(out, "%s: %s (%s, from byte %" PRId64 " on)\n", c->inputs[i].file, bad->text,
                               bad->reason, bad->offset);
        }
    }
}

static void extreme_cells(struct tare_text_table *table, const struct tare_calibration *c,
                          const struct tare_extreme *extreme) {
    char text[TARE_CALIBRATION_NUMBER];
    tare_text_table_cell(table, "%s", tare_calibration_value_text(text, extreme->value));
    tare_text_table_cell(table, "%s", tare_calibration_record_text(text, c, extreme->input, extreme->record));
}

static void tensor_row(struct tare_text_table *table, const struct tare_calibration *c,
                       const struct tare_calibration_report_tensor *t) {
    const struct tare_statistics *s = &t->tensor->statistics;
    char text[TARE_CALIBRATION_NUMBER];
    tare_text_table_row(table);
    tare_text_table_cell(table, "%s", t->name);
    tare_text_table_cell(table, "%s", tare_calibration_count_text(text, t->elements));
    if (t->elements == 0) return;
    tare_text_table_cell(table, "%.1f", 100 * (double)s->histogram.zeros / (double)t->elements);
    if (t->has_range) {
        extreme_cells(table, c, &s->lowest[0]);
        extreme_cells(table, c, &s->highest[0]);
        tare_text_table_cell(table, "%s", tare_calibration_value_text(text, t->mean));
        tare_text_table_cell(table, "%s", tare_calibration_value_text(text, t->rms));
    } else {
        for (int i = 0; i < 6; i++)
            tare_text_table_skip(table);
    }
    if (s->histogram.nans > 0)
        tare_text_table_cell(table, "%s", tare_calibration_count_text(text, s->histogram.nans));
    else
        tare_text_table_skip(table);
    if (t->not_finite > s->histogram.nans)
        tare_text_table_cell(table, "%s", tare_calibration_count_text(text, t->not_finite - s->histogram.nans));
    else
        tare_text_table_skip(table);
    if (s->channels > 0) tare_text_table_cell(table, "%" PRId64, s->channels);
}

static void print_tensors(struct tare_strbuf *out, const struct tare_calibration_report *report, bool colour) {
    static const struct tare_text_table_column columns[] = {
        { .heading = "tensor", .left = true },
        { .heading = "values" },
        { .heading = "zeros %" },
        { .heading = "min" },
        { .heading = "by record" },
        { .heading = "max" },
        { .heading = "by record" },
        { .heading = "mean" },
        { .heading = "rms" },
        { .heading = "NaN" },
        { .heading = "infinite" },
        { .heading = "channels" },
        { 0 },
    };
    struct tare_text_table *table = tare_text_table_new(columns);
    heading(out, "Tensors", colour);
    for (size_t i = 0; i < report->n_tensors; i++)
        tensor_row(table, report->calibration, &report->tensors[i]);
    finish(out, table, report);
}

static void range_row(struct tare_text_table *table, const char *name, const char *algorithm,
                      const struct tare_calibration_report_range *r) {
    char text[TARE_CALIBRATION_NUMBER];
    tare_text_table_row(table);
    tare_text_table_cell(table, "%s", name);
    tare_text_table_cell(table, "%s", algorithm);
    tare_text_table_cell(table, "%s", tare_calibration_value_text(text, r->range.low));
    tare_text_table_cell(table, "%s", tare_calibration_value_text(text, r->range.high));
    tare_text_table_cell(table, "%s", tare_calibration_value_text(text, r->grid.scale));
    tare_text_table_cell(table, "%d", r->grid.zero_point);
    tare_text_table_cell(table, "%s", tare_calibration_share_text(text, r->quality.clipped));
    tare_text_table_cell(table, "%s", tare_calibration_sqnr_text(text, r->quality.sqnr_db));
}

static void print_ranges(struct tare_strbuf *out, const struct tare_calibration_report *report, bool colour) {
    static const struct tare_text_table_column columns[] = {
        { .heading = "tensor", .left = true },
        { .heading = "algorithm", .left = true },
        { .heading = "low" },
        { .heading = "high" },
        { .heading = "scale" },
        { .heading = "zero point" },
        { .heading = "clipped" },
        { .heading = "SQNR dB" },
        { 0 },
    };
    struct tare_text_table *table = tare_text_table_new(columns);
    char title[80];
    snprintf(title, sizeof title, "Ranges on the int%d grid (%s)", report->scheme.bits,
             report->scheme.symmetric ? "symmetric" : "asymmetric");
    heading(out, title, colour);
    for (size_t i = 0; i < report->n_tensors; i++) {
        const struct tare_calibration_report_tensor *t = &report->tensors[i];
        for (size_t a = 0; a < report->n_algorithms && t->has_range; a++)
            range_row(table, a == 0 ? t->name : "", report->algorithms[a], &t->ranges[a]);
    }
    finish(out, table, report);
}

/* The convergence points of all tensors, one column per power of two, from 1 to the largest number of records. */
static void print_convergence(struct tare_strbuf *out, const struct tare_calibration_report *report, bool colour) {
    enum { MOST = TARE_STATISTICS_BUCKETS };
    char names[MOST][24];
    struct tare_text_table_column columns[MOST + 3] = { { .heading = "tensor", .left = true },
                                                        { .heading = "99% after" } };
    int64_t most = 0;
    for (size_t i = 0; i < report->n_tensors; i++) {
        const struct tare_calibration_report_tensor *t = &report->tensors[i];
        if (t->n_points > 0 && t->points[t->n_points - 1].records > most) most = t->points[t->n_points - 1].records;
    }
    int powers = 0;
    for (; powers < MOST && (int64_t)1 << powers <= most; powers++) {
        snprintf(names[powers], sizeof names[powers], "%" PRId64, (int64_t)1 << powers);
        columns[powers + 2].heading = names[powers];
    }
    if (powers == 0) return;
    heading(out,
            "Part of the whole range seen in the first 1, 2, 4 … records, in percent (zero belongs to every range)",
            colour);
    struct tare_text_table *table = tare_text_table_new(columns);
    for (size_t i = 0; i < report->n_tensors; i++) {
        const struct tare_calibration_report_tensor *t = &report->tensors[i];
        if (t->n_points == 0) continue;
        tare_text_table_row(table);
        tare_text_table_cell(table, "%s", t->name);
        tare_text_table_cell(table, "%" PRId64, tare_convergence_records(t->points, t->n_points, 0.99));
        size_t at = 0;
        for (int power = 0; power < powers; power++) {
            while (at + 1 < t->n_points && t->points[at + 1].records <= (int64_t)1 << power)
                at++;
            if (t->points[at].records <= (int64_t)1 << power)
                tare_text_table_cell(table, "%.1f", 100 * t->points[at].share);
            else
                tare_text_table_skip(table);
        }
    }
    finish(out, table, report);
}

static void print_coverage(struct tare_strbuf *out, const struct tare_calibration_report *report, bool colour) {
    static const struct tare_text_table_column columns[] = {
        { .heading = "node", .left = true },     { .heading = "op", .left = true }, { .heading = "side", .left = true },
        { .heading = "function", .left = true }, { .heading = "records" },          { 0 },
    };
    const struct tare_calibration *c = report->calibration;
    if (c->coverage.count == 0) return;
    struct tare_text_table *table = tare_text_table_new(columns);
    heading(out, "Branches", colour);
    for (size_t i = 0; i < c->coverage.count; i++) {
        const struct tare_coverage_side *side = &c->coverage.sides[i];
        char text[TARE_CALIBRATION_NUMBER], name[TARE_COVERAGE_SIDE_TEXT];
        tare_text_table_row(table);
        tare_text_table_cell(table, "%s%s%s", side->function, *side->function != '\0' ? "/" : "", side->node);
        tare_text_table_cell(table, "%s", side->op);
        tare_text_table_cell(table, "%s", tare_coverage_side_text(name, side));
        tare_text_table_cell(table, "%s", side->target);
        tare_text_table_cell(table, "%s", tare_calibration_count_text(text, side->records));
    }
    finish(out, table, report);
}

static void print_warnings(struct tare_strbuf *out, const struct tare_calibration_report *report, bool colour) {
    if (report->warnings.count == 0) {
        tare_strbuf_puts(out, "\nNo warnings.\n");
        return;
    }
    heading(out, "Warnings", colour);
    for (size_t i = 0; i < report->warnings.count; i++)
        tare_strbuf_printf(out, "%swarning:%s %s\n", colour ? "\033[33m" : "", colour ? "\033[0m" : "",
                           report->warnings.items[i].text);
}

void tare_calibration_report_text(struct tare_strbuf *out, const struct tare_calibration_report *report, bool colour) {
    const struct tare_calibration *c = report->calibration;
    char number[TARE_CALIBRATION_NUMBER];
    tare_strbuf_printf(out, "%s%s%s\n", colour ? "\033[1m" : "", report->title, colour ? "\033[0m" : "");
    tare_strbuf_printf(out, "model fingerprint %016" PRIx64 "%016" PRIx64 ", %s%s\n", c->fingerprint[0],
                       c->fingerprint[1], c->settings, c->channels ? ", with channels" : "");
    tare_strbuf_printf(out, "%s records, ", tare_calibration_count_text(number, tare_calibration_records(c)));
    if (report->n_tensors < c->n_tensors) tare_strbuf_printf(out, "%zu of ", report->n_tensors);
    tare_strbuf_printf(out, "%zu tensors", c->n_tensors);
    if (report->function && *report->function != '\0') tare_strbuf_printf(out, " in function %s", report->function);
    tare_strbuf_putc(out, '\n');
    print_inputs(out, report, colour);
    print_bad(out, report, colour);
    print_tensors(out, report, colour);
    print_ranges(out, report, colour);
    print_convergence(out, report, colour);
    print_coverage(out, report, colour);
    print_warnings(out, report, colour);
}
