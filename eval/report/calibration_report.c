/* Computes the rows of the report from the statistics. */
#include "eval/report/calibration_report.h"
#include "base/format.h"

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/thread.h"

#include <inttypes.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

/* ---- a tensor ---- */

/* Distributes each bin over the plot columns that it covers. */
static void draw(struct tare_calibration_report_tensor *t, const struct tare_bins *bins) {
    double width = (t->plot_high - t->plot_low) / TARE_CALIBRATION_REPORT_COLUMNS;
    for (size_t i = 0; i < bins->count && width > 0; i++) {
        const struct tare_histogram_bin *bin = &bins->bins[i];
        if (bin->low == 0 && bin->high == 0) continue;
        double from = (bin->low - t->plot_low) / width, to = (bin->high - t->plot_low) / width;
        int first = (int)floor(from), last = (int)floor(to);
        first = first < 0 ? 0 : first >= TARE_CALIBRATION_REPORT_COLUMNS ? TARE_CALIBRATION_REPORT_COLUMNS - 1 : first;
        last = last < first                              ? first
               : last >= TARE_CALIBRATION_REPORT_COLUMNS ? TARE_CALIBRATION_REPORT_COLUMNS - 1
                                                         : last;
        for (int at = first; at <= last; at++) {
            double part = first == last ? 1 : (fmin(to, at + 1) - fmax(from, at)) / (to - from);
            if (part > 0) t->columns[at] += part * (double)bin->count;
        }
    }
}

static tare_status fill_ranges(struct tare_calibration_report_tensor *t, const struct tare_calibration_report *report,
                               const struct tare_bins *bins) {
    for (size_t i = 0; i < report->n_algorithms; i++) {
        struct tare_calibration_report_range *r = &t->ranges[i];
        TARE_TRY(tare_algorithm_range_of_bins(&r->range, &report->choices[i], &t->tensor->statistics, bins,
                                              &report->scheme));
        r->grid = tare_qparams_of_range(r->range.low, r->range.high, &report->scheme);
        r->quality = tare_range_quality_of(&r->range, bins, &report->scheme);
    }
    return TARE_OK;
}

static tare_status make_room(struct tare_calibration_report_tensor *t, struct tare_calibration_report *report) {
    t->points = TARE_NEW_ARRAY(&report->arena, struct tare_convergence_point, TARE_STATISTICS_BUCKETS);
    t->ranges = TARE_NEW_ARRAY(&report->arena, struct tare_calibration_report_range, report->n_algorithms + 1);
    t->columns = TARE_NEW_ARRAY(&report->arena, double, TARE_CALIBRATION_REPORT_COLUMNS);
    return t->points && t->ranges && t->columns ? TARE_OK : TARE_NO_MEMORY;
}

/* Changes only its tensor. */
static tare_status fill_values(struct tare_calibration_report_tensor *t, const struct tare_calibration_report *report) {
    const struct tare_statistics *s = &t->tensor->statistics;
    struct tare_bins bins;
    double finite = (double)tare_histogram_finite(&s->histogram);
    t->mean = tare_exact_sum_value(&s->sum) / finite;
    t->rms = sqrt(tare_exact_sum_value(&s->sum_of_squares) / finite);
    t->plot_low = fmin(t->low, 0);
    t->plot_high = fmax(t->high, 0);
    t->n_points = tare_convergence(t->points, s);
    TARE_TRY(tare_bins_make(&bins, s));
    draw(t, &bins);
    tare_status status = fill_ranges(t, report, &bins);
    tare_bins_free(&bins);
    return status;
}

/* The full name, "function/node:output". */
static const char *name_of(struct tare_arena *arena, const struct tare_calibration_tensor *tensor) {
    struct tare_strbuf name = { 0 };
    tare_strbuf_printf(&name, "%s%s%s:%d", tensor->function, *tensor->function != '\0' ? "/" : "", tensor->node,
                       tensor->output);
    const char *kept = name.failed ? NULL : tare_arena_strdup(arena, tare_strbuf_text(&name));
    tare_strbuf_free(&name);
    return kept;
}

static tare_status add_tensor(struct tare_calibration_report *report, const struct tare_calibration_tensor *tensor,
                              const regex_t *expected) {
    const char *name = name_of(&report->arena, tensor);
    if (!name) return TARE_NO_MEMORY;
    if (expected && regexec(expected, name, 0, NULL, 0) != 0) return TARE_OK;
    struct tare_calibration_report_tensor *t = &report->tensors[report->n_tensors++];
    t->tensor = tensor;
    t->name = report->function && *report->function != '\0' ? name + strlen(report->function) + 1 : name;
    t->elements = tare_statistics_elements(&tensor->statistics);
    t->not_finite = t->elements - tare_histogram_finite(&tensor->statistics.histogram);
    t->has_range = tare_statistics_extremes(&t->low, &t->high, &tensor->statistics);
    return t->has_range ? make_room(t, report) : TARE_OK;
}

struct filling {
    struct tare_calibration_report *report;
    int threads;
};

/* Every threads-th tensor. */
static tare_status fill_share(void *arg, int worker) {
    const struct filling *filling = arg;
    for (size_t i = (size_t)worker; i < filling->report->n_tensors; i += (size_t)filling->threads) {
        struct tare_calibration_report_tensor *t = &filling->report->tensors[i];
        if (t->has_range) TARE_TRY(tare_error_prefix(fill_values(t, filling->report), "'%s'", t->name));
    }
    return TARE_OK;
}

static tare_status add_tensors(struct tare_calibration_report *report, const regex_t *expected) {
    const struct tare_calibration *c = report->calibration;
    report->tensors = TARE_NEW_ARRAY(&report->arena, struct tare_calibration_report_tensor, c->n_tensors + 1);
    if (!report->tensors) return TARE_NO_MEMORY;
    report->function = c->n_tensors > 0 ? c->tensors[0]->function : NULL;
    for (size_t i = 1; i < c->n_tensors && report->function; i++) {
        if (strcmp(c->tensors[i]->function, report->function) != 0) report->function = NULL;
    }
    for (size_t i = 0; i < c->n_tensors; i++)
        TARE_TRY(add_tensor(report, c->tensors[i], expected));
    struct filling filling = { report, tare_cpu_count() };
    if ((size_t)filling.threads > report->n_tensors)
        filling.threads = report->n_tensors > 0 ? (int)report->n_tensors : 1;
    return tare_threads_run(filling.threads, fill_share, &filling);
}

/* ---- the report ---- */

static tare_status choose_algorithms(struct tare_calibration_report *report, const char *names) {
    size_t count;
    const struct tare_algorithm *const *rows = tare_algorithm_list(&count);
    if (names) {
        TARE_TRY(tare_algorithm_parse_list(report->choices, &report->n_algorithms, TARE_CALIBRATION_REPORT_ALGORITHMS,
                                           names));
    } else {
        for (size_t i = 0; i < count && i < TARE_CALIBRATION_REPORT_ALGORITHMS; i++)
            TARE_TRY(tare_algorithm_parse(&report->choices[report->n_algorithms++], rows[i]->name));
    }
    for (size_t i = 0; i < report->n_algorithms; i++) {
        struct tare_strbuf text = { 0 };
        tare_algorithm_print(&text, &report->choices[i]);
        report->algorithms[i] = text.failed ? NULL : tare_arena_strdup(&report->arena, tare_strbuf_text(&text));
        tare_strbuf_free(&text);
        if (!report->algorithms[i]) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

/* Classes and ranges of characters follow the locale in which an expression is compiled. */
static tare_status compile(regex_t *out, const char *expression) {
    const locale_t before = uselocale(tare_locale_c());
    const int failure = regcomp(out, expression, REG_EXTENDED | REG_NOSUB);
    char text[128];
    if (failure != 0) regerror(failure, out, text, sizeof text);
    uselocale(before);
    return failure == 0 ? TARE_OK : TARE_FAIL(TARE_USAGE, "bad regular expression '%s': %s", expression, text);
}

tare_status tare_calibration_report_make(struct tare_calibration_report *out,
                                         const struct tare_calibration *calibration, const char *title,
                                         const struct tare_calibration_report_options *options) {
    regex_t expected;
    *out = (struct tare_calibration_report){ .calibration = calibration, .title = title, .scheme = options->scheme };
    if (out->scheme.bits == 0) out->scheme = tare_qscheme_activation;
    TARE_TRY(choose_algorithms(out, options->algorithms));
    TARE_TRY(tare_calibration_warnings(&out->warnings, calibration));
    if (!options->tensors) return add_tensors(out, NULL);
    TARE_TRY(compile(&expected, options->tensors));
    tare_status status = add_tensors(out, &expected);
    regfree(&expected);
    return status;
}

void tare_calibration_report_free(struct tare_calibration_report *report) {
    tare_calibration_warning_list_free(&report->warnings);
    tare_arena_free(&report->arena);
    *report = (struct tare_calibration_report){ 0 };
}

/* ---- numbers ---- */

const char *tare_calibration_value_text(char text[TARE_CALIBRATION_NUMBER], double value) {
    tare_format(text, TARE_CALIBRATION_NUMBER, "%.5g", value == 0 ? 0 : value);
    return text;
}

const char *tare_calibration_sqnr_text(char text[TARE_CALIBRATION_NUMBER], double sqnr_db) {
    if (isinf(sqnr_db))
        snprintf(text, TARE_CALIBRATION_NUMBER, "exact");
    else
        tare_format(text, TARE_CALIBRATION_NUMBER, "%.2f", sqnr_db);
    return text;
}

const char *tare_calibration_share_text(char text[TARE_CALIBRATION_NUMBER], double share) {
    tare_format(text, TARE_CALIBRATION_NUMBER, "%.3g%%", 100 * share);
    return text;
}

const char *tare_calibration_count_text(char text[TARE_CALIBRATION_NUMBER], int64_t count) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, count), used = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-') text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

const char *tare_calibration_record_text(char text[TARE_CALIBRATION_NUMBER], const struct tare_calibration *calibration,
                                         int32_t input, int64_t record) {
    if (calibration->n_inputs > 1)
        snprintf(text, TARE_CALIBRATION_NUMBER, "%d:%" PRId64, (int)input + 1, record);
    else
        snprintf(text, TARE_CALIBRATION_NUMBER, "%" PRId64, record);
    return text;
}
