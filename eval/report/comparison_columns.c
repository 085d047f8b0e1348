/* The columns of a comparison's reports, and the tables, CSV and JSON made of them. */
#include "eval/report/comparison_columns.h"
#include "base/strbuf.h"
#include "eval/report/comparison_page.h"
#include "eval/report/csv.h"
#include "eval/report/json_text.h"
#include "eval/verdict.h"

#include <math.h>

/* ---- figures ---- */

static double share(int64_t part, int64_t whole) {
    return whole ? (double)part / (double)whole : NAN;
}

static bool is_float(const struct tare_comparison_cell *cell) {
    return cell->row == cell->comparison->rows;
}

/* `m`: the figures of the output, `r`: the row of the model. */
#define FIGURE(name, expression)                                                                                       \
    static double name(const struct tare_comparison_cell *cell) {                                                      \
        const struct tare_metrics *m = cell->metrics;                                                                  \
        const struct tare_comparison_row *r = cell->row;                                                               \
        (void)m;                                                                                                       \
        (void)r;                                                                                                       \
        return expression;                                                                                             \
    }
#define MEASURE(name, kind) FIGURE(name, tare_measure_value(tare_measure_find(TARE_MEASURE_##kind), m))

FIGURE(examples, (double)m->rows)
FIGURE(labelled, (double)m->labelled)
FIGURE(labelled_any, m->labelled ? (double)m->labelled : NAN)
FIGURE(top1, share(m->top1, m->labelled))
FIGURE(top5, share(m->top5, m->labelled))
FIGURE(top5_of_more, m->classes > 5 ? share(m->top5, m->labelled) : NAN)
FIGURE(gained, m->labelled && !is_float(cell) ? (double)m->gained : NAN)
FIGURE(lost, m->labelled && !is_float(cell) ? (double)m->lost : NAN)
FIGURE(auc, tare_auc_value(&m->auc))
FIGURE(f1, tare_metrics_f1(m))
FIGURE(mae, m->expected.count ? m->expected_error / (double)m->expected.count : NAN)
FIGURE(rmse, m->expected.count ? sqrt(m->expected_squared_error / (double)m->expected.count) : NAN)
FIGURE(r2, tare_metrics_r2(m))
MEASURE(iou, IOU)
MEASURE(pixel_accuracy, PIXEL_ACCURACY)
MEASURE(sequence, SEQUENCE)
MEASURE(psnr, PSNR)
MEASURE(ssim, SSIM)
FIGURE(agreement, share(m->agree, m->ranked))
FIGURE(sqnr, tare_metrics_sqnr_db(m))
FIGURE(cosine, tare_metrics_cosine(m))
FIGURE(mean_error, tare_metrics_mean_error(m))
FIGURE(relative_error, tare_metrics_relative_error(m))
FIGURE(max_error, m->max_abs_error)
FIGURE(max_error_record, (double)m->max_abs_record)
FIGURE(record_of_error, m->max_abs_error > 0 ? (double)m->max_abs_record : NAN)
FIGURE(not_finite, (double)m->not_finite)
FIGURE(unlike, (double)m->unlike)
FIGURE(size, (double)r->size_bytes)
FIGURE(hbm, r->hbm_bytes)
FIGURE(activations, r->activation_bytes)
FIGURE(macs, r->macs)
FIGURE(integer_share, r->macs > 0 ? r->integer_macs / r->macs : NAN)
FIGURE(tpu_seconds, r->tpu_seconds)
FIGURE(tpu_cycles, r->tpu_cycles > 0 ? r->tpu_cycles : NAN)
FIGURE(relative_time, r->tpu_seconds / cell->comparison->rows->tpu_seconds)
FIGURE(seconds, r->seconds)
FIGURE(recommended, r == tare_verdict_of(cell->comparison).row)

static double top1_limit(const struct tare_comparison_cell *cell, bool high) {
    double limits[2] = { NAN, NAN };
    if (cell->metrics->labelled)
        tare_share_interval(&limits[0], &limits[1], cell->metrics->top1, cell->metrics->labelled);
    return limits[high];
}
FIGURE(top1_low, top1_limit(cell, false))
FIGURE(top1_high, top1_limit(cell, true))

/* ---- the measure, at the output by which it ranks the models ---- */

static bool is_measured(const struct tare_comparison_cell *cell) {
    return cell->metrics == tare_measured_of(cell->comparison, cell->row);
}

static double measure_limit(const struct tare_comparison_cell *cell, bool high) {
    double limits[2] = { NAN, NAN };
    if (is_measured(cell))
        tare_measure_interval(&limits[0], &limits[1], tare_measure_of(cell->comparison), cell->metrics);
    return limits[high];
}

static double difference_limit(const struct tare_comparison_cell *cell, bool high) {
    double difference, limits[2] = { NAN, NAN };
    if (is_measured(cell) && !is_float(cell))
        tare_measure_difference(&difference, &limits[0], &limits[1], tare_measure_of(cell->comparison), cell->metrics,
                                tare_measured_of(cell->comparison, cell->comparison->rows));
    return limits[high];
}
FIGURE(measure_value, is_measured(cell) ? tare_measure_value(tare_measure_of(cell->comparison), m) : NAN)
FIGURE(measure_low, measure_limit(cell, false))
FIGURE(measure_high, measure_limit(cell, true))
FIGURE(difference_low, difference_limit(cell, false))
FIGURE(difference_high, difference_limit(cell, true))

/* ---- texts ---- */

#define TEXT(name, expression)                                                                                         \
    static const char *name(const struct tare_comparison_cell *cell) {                                                 \
        return expression;                                                                                             \
    }
TEXT(output, cell->comparison->output_keys[cell->metrics - cell->row->outputs])
TEXT(method, cell->row->method)
TEXT(algorithm, cell->row->algorithm)
TEXT(granularity, cell->row->granularity)
TEXT(measure_key, is_measured(cell) ? tare_measure_key(tare_measure_of(cell->comparison)) : NULL)
TEXT(quantize_command, cell->row->quantize)
TEXT(convert_command, cell->row->convert)

/* ---- cells of tables ---- */

static void put_measure(struct tare_report_table *table, const struct tare_comparison_cell *cell) {
    const struct tare_measure *measure = tare_measure_of(cell->comparison);
    const double value = is_float(cell) && measure->kind == TARE_MEASURE_SQNR ? NAN : measure_value(cell);
    struct tare_strbuf text = { 0 };
    tare_measure_put(&text, measure, value);
    tare_report_table_text(table, isnan(value) ? NULL : tare_strbuf_text(&text));
    tare_strbuf_free(&text);
}

/* Difference of a measure from float, marked when its interval does not contain 0. */
static void put_difference(struct tare_report_table *table, const struct tare_comparison_cell *cell,
                           const struct tare_measure *measure) {
    const size_t at = (size_t)(cell->metrics - cell->row->outputs);
    double difference, low, high;
    tare_measure_difference(&difference, &low, &high, measure, cell->metrics, &cell->comparison->rows->outputs[at]);
    if (is_float(cell) || measure->kind == TARE_MEASURE_SQNR || isnan(difference))
        tare_report_table_skip(table);
    else
        tare_report_table_cell(table, *measure->unit ? "%+.2f %s" : "%+.3g %s", difference,
                               low > 0 || high < 0 ? "*" : " ");
}

static void put_measure_difference(struct tare_report_table *table, const struct tare_comparison_cell *cell) {
    put_difference(table, cell, tare_measure_of(cell->comparison));
}

static void put_top1_difference(struct tare_report_table *table, const struct tare_comparison_cell *cell) {
    put_difference(table, cell, tare_measure_find(TARE_MEASURE_TOP1));
}

static void put_top1_interval(struct tare_report_table *table, const struct tare_comparison_cell *cell) {
    if (cell->metrics->labelled)
        tare_report_table_cell(table, "%.1f – %.1f", 100 * top1_low(cell), 100 * top1_high(cell));
    else
        tare_report_table_skip(table);
}

static void put_sqnr(struct tare_report_table *table, const struct tare_comparison_cell *cell) {
    tare_report_table_db(table, sqnr(cell));
}

static void put_max_error(struct tare_report_table *table, const struct tare_comparison_cell *cell) {
    const struct tare_metrics *m = cell->metrics;
    if (m->max_abs_error > 0)
        tare_report_table_cell(table, "%.3g at %lld", m->max_abs_error, (long long)m->max_abs_record);
    else
        tare_report_table_number(table, "%.3g", m->max_abs_error);
}

static void put_quantized(struct tare_report_table *table, const struct tare_comparison_cell *cell) {
    if (cell->row->quantizable)
        tare_report_table_cell(table, "%lld of %lld", (long long)cell->row->quantized,
                               (long long)cell->row->quantizable);
    else
        tare_report_table_skip(table);
}

static void put_front(struct tare_report_table *table, const struct tare_comparison_cell *cell) {
    const struct tare_comparison *c = cell->comparison;
    const size_t r = (size_t)(cell->row - c->rows);
    const bool by_size = tare_comparison_on_front(c, TARE_AGAINST_SIZE, r);
    const bool by_time = tare_comparison_has_times(c) && tare_comparison_on_front(c, TARE_AGAINST_TIME, r);
    tare_report_table_text(table, by_size && by_time ? "size and time" : by_size ? "size" : by_time ? "time" : NULL);
}

/* ---- the table ---- */

#define SUMMARY TARE_SUMMARY_COLUMNS
#define MODEL TARE_MODEL_COLUMNS
#define COST TARE_COST_COLUMNS

const struct tare_comparison_column tare_comparison_columns[] = {
    { "output", .text = output, .csv = 1 },
    { "method", .text = method, .csv = 2 },
    { "algorithm", .text = algorithm, .csv = 3 },
    { "granularity", .text = granularity, .csv = 4 },
    { "rows", examples, .csv = 5, .csv_format = "%.0f" },
    { "labelled", labelled, .csv = 6, .csv_format = "%.0f" },
    { "labelled", labelled_any, .json = MODEL, .json_form = TARE_JSON_COUNT },
    { NULL, .tables = SUMMARY, .put = put_measure },
    { NULL, .tables = SUMMARY, .put = put_measure_difference, .heading = "vs float",
      .help = "difference from the float model; * its 95 % interval does not contain 0" },
    { "top1", top1, .csv = 7, .csv_format = "%.6f", .json = MODEL, .tables = MODEL, .heading = "top-1", .decimals = 2,
      .help = "share of labelled records that are predicted correctly; for a single score, at the threshold",
      .diff = { "top-1 %", 100, "%.2f" } },
    { "top1_low", top1_low, .csv = 18, .json = MODEL },
    { "top1_high", top1_high, .csv = 19, .json = MODEL },
    { NULL, .tables = MODEL, .put = put_top1_interval, .heading = "95 % interval",
      .help = "Wilson's score interval of top-1, in percent" },
    { NULL, .tables = MODEL, .put = put_top1_difference, .heading = "vs float",
      .help = "difference of top-1 in percentage points; * its 95 % interval does not contain 0" },
    { "top5", top5, .csv = 8, .csv_format = "%.6f" },
    { "top5", top5_of_more, .json = MODEL, .tables = MODEL, .heading = "top-5", .decimals = 2,
      .diff = { "top-5 %", 100, "%.2f" } },
    { "gained", gained, .json = MODEL, .json_form = TARE_JSON_COUNT },
    { "lost", lost, .json = MODEL, .json_form = TARE_JSON_COUNT },
    { "auc", auc, .csv = 9, .json = MODEL, .tables = MODEL, .heading = "AUC", .format = "%.4f",
      .help = "area under the ROC curve of two classes", .diff = { "AUC", 1, "%.4f" } },
    { "f1", f1, .csv = 23, .tables = MODEL, .heading = "F1", .format = "%.4f",
      .help = "F1 of the positive class of a single score", .diff = { "F1", 1, "%.4f" } },
    { "mae", mae, .csv = 24, .tables = MODEL, .heading = "MAE", .format = "%.4g",
      .help = "mean absolute error against the expected values", .json = MODEL, .json_key = "expected_mean_abs_error",
      .diff = { "MAE", 1, "%.4g" } },
    { "mae", .diff = { "MAE", 1, "%.4g" } }, /* of a batch */
    { "rmse", rmse, .csv = 25, .tables = MODEL, .heading = "RMSE", .format = "%.4g",
      .help = "root mean squared error against the expected values", .json = MODEL, .json_key = "expected_rms_error",
      .diff = { "RMSE", 1, "%.4g" } },
    { "r2", r2, .csv = 26, .tables = MODEL, .heading = "R²", .format = "%.4f",
      .help = "coefficient of determination against the expected values", .json = MODEL, .json_key = "expected_r2",
      .diff = { "R²", 1, "%.4f" } },
    { "f1", f1, .json = MODEL },
    { "iou", iou, .csv = 27, .json = MODEL, .diff = { "IoU %", 1, "%.2f" } },
    { "pixel_accuracy", pixel_accuracy, .csv = 28, .json = MODEL, .diff = { "by position %", 1, "%.2f" } },
    { "sequence", sequence, .csv = 29, .json = MODEL, .diff = { "sequences %", 1, "%.2f" } },
    { "psnr", psnr, .csv = 30, .json = MODEL, .diff = { "PSNR dB", 1, "%.2f" } },
    { "ssim", ssim, .csv = 31, .json = MODEL, .diff = { "SSIM", 1, "%.4f" } },
    { "measure", .text = measure_key, .csv = 32 },
    { "measure_value", measure_value, .csv = 33, .diff = { "measure", 1, "%.4g" } },
    { "measure_low", measure_low, .csv = 34 },
    { "measure_high", measure_high, .csv = 35 },
    { "difference_low", difference_low, .csv = 36 },
    { "difference_high", difference_high, .csv = 37 },
    { "loss", .diff = { "loss", 1, "%.2f" } }, /* of a batch */
    { "agreement", agreement, .csv = 10, .csv_format = "%.6f", .json = MODEL, .tables = MODEL, .heading = "agree",
      .decimals = 2, .help = "share of records with the same predicted class as float",
      .diff = { "agree %", 100, "%.2f" } },
    { "sqnr_db", sqnr, .csv = 11, .json = MODEL, .json_form = TARE_JSON_ALWAYS, .tables = MODEL, .put = put_sqnr,
      .heading = "SQNR dB", .help = "energy of the float outputs over the energy of the difference",
      .diff = { "SQNR dB", 1, "%.2f" } },
    { "cosine", cosine, .csv = 12, .json = MODEL, .json_form = TARE_JSON_ALWAYS, .tables = MODEL, .heading = "cosine",
      .format = "%.6f", .help = "cosine of the angle between the outputs and those of float" },
    { "max_abs_error", max_error, .csv = 14, .json = MODEL, .json_form = TARE_JSON_ALWAYS },
    { "max_abs_error_record", record_of_error, .csv = 17 },
    { "max_abs_error_record", max_error_record, .json = MODEL, .json_form = TARE_JSON_COUNT },
    { "mean_abs_error", mean_error, .csv = 13, .json = MODEL, .json_form = TARE_JSON_ALWAYS, .tables = MODEL,
      .heading = "mean error", .format = "%.3g", .help = "mean absolute difference from float" },
    { "relative_error", relative_error, .csv = 16, .json = MODEL, .json_form = TARE_JSON_ALWAYS, .tables = MODEL,
      .heading = "relative", .decimals = 2, .help = "mean error relative to the mean magnitude", .only = TARE_IN_PAGE },
    { NULL, .tables = MODEL, .put = put_max_error, .heading = "max error",
      .help = "largest difference from float, and its record" },
    { "not_finite", not_finite, .json = MODEL, .json_form = TARE_JSON_COUNT },
    { "unlike", unlike, .json = MODEL, .json_form = TARE_JSON_COUNT },
    { "size_bytes", size, .csv = 15, .csv_format = "%.0f", .tables = SUMMARY | COST, .heading = "MB", .factor = 1e-6,
      .format = "%.3f", .help = "size of constants and variables", .diff = { "weights MB", 1e-6, "%.3f" } },
    { "hbm_bytes", hbm, .csv = 20, .tables = COST, .heading = "HBM MB", .factor = 1e-6, .format = "%.3f",
      .help = "weights in the memory of the chip" },
    { NULL, .tables = COST, .put = put_quantized, .heading = "ops quantized" },
    { "macs", macs, .json = COST },
    { "integer_share", integer_share, .csv = 21, .json = COST, .tables = COST, .heading = "integer MACs", .decimals = 1,
      .help = "share of the multiply-accumulates on integers of 8 or 4 bits" },
    { "tpu_seconds", tpu_seconds, .csv = 22, .json = COST, .tables = SUMMARY | COST, .heading = "est. µs",
      .factor = 1e6, .format = "%.3g", .help = "estimated time per example on the chip",
      .diff = { "est. µs", 1e6, "%.3g" } },
    { "tpu_cycles", tpu_cycles, .csv = 41, .csv_format = "%.0f", .json = COST, .tables = SUMMARY | COST,
      .heading = "cycles", .format = "%.0f", .help = "of a batch on the chip, by Google's TPU compiler",
      .diff = { "cycles", 1, "%.0f" } },
    { "hbm_bytes", hbm, .json = COST },
    { "hbm_activation_bytes", activations, .json = COST },
    { NULL, relative_time, .tables = COST, .heading = "vs float", .format = "%.2f",
      .help = "estimated time relative to float" },
    { "seconds", seconds, .tables = COST, .heading = "seconds here", .format = "%.2f",
      .help = "measured time of all records on this machine", .diff = { "seconds", 1, "%.2f" } },
    { NULL, .tables = COST, .put = put_front, .heading = "Pareto-optimal in", .left = true, .only = TARE_IN_PAGE,
      .help = "no other model is as accurate and smaller, or as accurate and faster" },
    { "quantize_command", .text = quantize_command, .csv = 38 },
    { "convert_command", .text = convert_command, .csv = 39 },
    { "recommended", recommended, .csv = 40, .csv_format = "%.0f" },
};
const size_t tare_comparison_n_columns = sizeof tare_comparison_columns / sizeof *tare_comparison_columns;

/* ---- tables ---- */

/* An arrow marks the recommended model. */
static void put_name(struct tare_report_table *table, const struct tare_comparison_cell *cell) {
    const struct tare_comparison *c = cell->comparison;
    struct tare_strbuf name = { 0 };
    tare_comparison_put_name(&name, cell->row);
    if (cell->row == tare_verdict_of(c).row) tare_strbuf_puts(&name, " ←");
    tare_report_table_row(table);
    tare_report_table_series(table, tare_comparison_series(c, (size_t)(cell->row - c->rows)), tare_strbuf_text(&name));
    tare_strbuf_free(&name);
}

static void put_cell(struct tare_report_table *table, const struct tare_comparison_column *column,
                     const struct tare_comparison_cell *cell) {
    const double factor = column->factor > 0 ? column->factor : 1;
    if (column->put)
        column->put(table, cell);
    else if (column->format)
        tare_report_table_number(table, column->format, factor * column->value(cell));
    else
        tare_report_table_share(table, column->decimals, column->value(cell));
}

void tare_comparison_put(struct tare_strbuf *out, enum tare_report_form form, const struct tare_comparison *c,
                         unsigned group, size_t output_index) {
    struct tare_report_column columns[TARE_REPORT_COLUMNS] = {
        { .heading = "model",
          .left = true,
          .help = "method, calibration algorithm, and granularity of the weights unless per channel" }
    };
    size_t count = 1;
    for (size_t i = 0; i < tare_comparison_n_columns; i++) {
        const struct tare_comparison_column *k = &tare_comparison_columns[i];
        const char *heading = k->heading ? k->heading : tare_measure_of(c)->title;
        if (k->tables & group)
            columns[count++] =
                (struct tare_report_column){ .heading = heading, .help = k->help, .left = k->left, .only = k->only };
    }
    struct tare_report_table *table = tare_report_table_new(form, columns);
    if (group != TARE_SUMMARY_COLUMNS) tare_report_table_fit(table, c->text_width);
    if (group == TARE_COST_COLUMNS || (group == TARE_MODEL_COLUMNS && output_index + 1 == c->n_outputs))
        tare_report_table_explain(table);
    for (size_t r = 0; r < c->n_rows; r++) {
        const struct tare_comparison_cell cell = { c, &c->rows[r], &c->rows[r].outputs[output_index] };
        put_name(table, &cell);
        for (size_t k = 0; k < tare_comparison_n_columns; k++)
            if (tare_comparison_columns[k].tables & group) put_cell(table, &tare_comparison_columns[k], &cell);
    }
    tare_report_table_end(out, table);
}

/* ---- JSON ---- */

const char *tare_comparison_json_key(const struct tare_comparison_column *column) {
    return column->json_key ? column->json_key : column->key;
}

void tare_comparison_set(json_t *object, const struct tare_comparison_cell *cell, unsigned group) {
    for (size_t i = 0; i < tare_comparison_n_columns; i++) {
        const struct tare_comparison_column *k = &tare_comparison_columns[i];
        const double value = k->json == group ? k->value(cell) : NAN;
        if (k->json != group || (!isfinite(value) && k->json_form != TARE_JSON_ALWAYS)) continue;
        json_object_set_new(object, tare_comparison_json_key(k),
                            k->json_form == TARE_JSON_COUNT ? json_integer((json_int_t)value)
                                                            : tare_json_number(value));
    }
}

/* ---- CSV ---- */

static const struct tare_comparison_column *csv_column(int place) {
    for (size_t k = 0; k < tare_comparison_n_columns; k++)
        if (tare_comparison_columns[k].csv == place) return &tare_comparison_columns[k];
    return NULL;
}

static void csv_row(struct tare_strbuf *out, const struct tare_comparison_cell *cell) {
    const struct tare_comparison_column *column;
    for (int place = 1; (column = csv_column(place)); place++) {
        const double value = column->value ? column->value(cell) : NAN;
        if (place > 1) tare_strbuf_putc(out, ',');
        if (column->text) tare_csv_text(out, column->text(cell));
        if (!isnan(value)) tare_strbuf_printf(out, column->csv_format ? column->csv_format : "%.9g", value);
    }
    tare_strbuf_puts(out, "\r\n");
}

void tare_comparison_csv(struct tare_strbuf *out, const struct tare_comparison *c) {
    const struct tare_comparison_column *column;
    for (int place = 1; (column = csv_column(place)); place++)
        tare_strbuf_printf(out, "%s%s", place > 1 ? "," : "", column->key);
    tare_strbuf_puts(out, "\r\n");
    for (size_t r = 0; r < c->n_rows; r++)
        for (size_t i = 0; i < c->n_outputs; i++)
            csv_row(out, &(struct tare_comparison_cell){ c, &c->rows[r], &c->rows[r].outputs[i] });
}

void tare_comparison_put_skipped(struct tare_strbuf *out, const struct tare_comparison_skipped *skipped) {
    tare_strbuf_puts(out, skipped->method);
    if (skipped->algorithm) tare_strbuf_printf(out, " %s", skipped->algorithm);
    if (skipped->granularity) tare_strbuf_printf(out, " %s", skipped->granularity);
}
