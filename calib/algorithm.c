/* Selects a calibration algorithm by name and runs it. */
#include "calib/algorithm.h"
#include "base/format.h"

#include "base/alloc.h"
#include "base/control.h"
#include "base/option.h"
#include "base/strbuf.h"
#include "calib/algos/rows.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW(name) &tare_algorithm_##name,
#define NAME(name) #name,
static const struct tare_algorithm *const rows[] = { TARE_ALGORITHMS(ROW) };
const char *const tare_algorithm_names[] = { TARE_ALGORITHMS(NAME) NULL };
enum { ROWS = sizeof rows / sizeof *rows };

const struct tare_algorithm *const *tare_algorithm_list(size_t *count) {
    *count = ROWS;
    return rows;
}

static const struct tare_algorithm *row_of(const struct tare_algorithm_choice *choice) {
    return choice->row ? choice->row : rows[0];
}

static bool is_called(const struct tare_algorithm *row, const char *name, size_t size) {
    if (strlen(row->name) == size && memcmp(row->name, name, size) == 0) return true;
    for (const char *const *other = row->tensorflow_names; other && *other; other++) {
        if (strlen(*other) == size && memcmp(*other, name, size) == 0) return true;
    }
    return false;
}

static tare_status unknown_algorithm(const char *name, size_t size) {
    struct tare_strbuf all = { 0 };
    for (size_t i = 0; i < ROWS; i++)
        tare_strbuf_printf(&all, "%s%s", i ? ", " : "", tare_algorithm_names[i]);
    char given[64];
    snprintf(given, sizeof given, "%.*s", (int)(size < sizeof given ? size : sizeof given - 1), name);
    const char *near = tare_nearest_name(given, tare_algorithm_names);
    tare_status status =
        near ? TARE_FAIL(TARE_USAGE, "unknown algorithm '%s' (did you mean '%s'?)", given, near)
             : TARE_FAIL(TARE_USAGE, "unknown algorithm '%s' (known: %s)", given, tare_strbuf_text(&all));
    tare_strbuf_free(&all);
    return status;
}

static tare_status parse_parameter(struct tare_algorithm_choice *choice, const char *text, size_t size) {
    const struct tare_algorithm_parameter *parameters = choice->row->parameters;
    const char *equals = memchr(text, '=', size);
    size_t name_size = equals ? (size_t)(equals - text) : size;
    for (int i = 0; i < TARE_ALGORITHM_PARAMETERS && parameters[i].name; i++) {
        if (strlen(parameters[i].name) != name_size || memcmp(parameters[i].name, text, name_size) != 0) continue;
        char number[64] = "";
        size_t length = equals ? size - name_size - 1 : 0;
        if (length < sizeof number) memcpy(number, equals ? equals + 1 : text, length);
        char *end = number;
        double value = tare_read_double(number, &end);
        if (length == 0 || length >= sizeof number || *end != '\0' || !isfinite(value) || value < parameters[i].min ||
            value > parameters[i].max)
            return TARE_FAIL(TARE_USAGE, "algorithm '%s': %s is '%.*s' (expected a number from %g to %g)",
                             choice->row->name, parameters[i].name, (int)length, equals ? equals + 1 : "",
                             parameters[i].min, parameters[i].max);
        choice->values[i] = value;
        return TARE_OK;
    }
    struct tare_strbuf all = { 0 };
    for (int i = 0; i < TARE_ALGORITHM_PARAMETERS && parameters[i].name; i++)
        tare_strbuf_printf(&all, "%s%s", i ? ", " : "", parameters[i].name);
    tare_status status = TARE_FAIL(TARE_USAGE, "algorithm '%s' has no parameter '%.*s' (known: %s)", choice->row->name,
                                   (int)name_size, text, all.size ? tare_strbuf_text(&all) : "none");
    tare_strbuf_free(&all);
    return status;
}

tare_status tare_algorithm_parse(struct tare_algorithm_choice *out, const char *text) {
    size_t name_size = strcspn(text, ":");
    *out = (struct tare_algorithm_choice){ 0 };
    for (size_t i = 0; i < ROWS && !out->row; i++) {
        if (is_called(rows[i], text, name_size)) out->row = rows[i];
    }
    if (!out->row) return unknown_algorithm(text, name_size);
    for (int i = 0; i < TARE_ALGORITHM_PARAMETERS; i++)
        out->values[i] = out->row->parameters[i].fallback;
    const char *at = text + name_size;
    while (*at != '\0') {
        at++; /* ':' or ',' */
        size_t size = strcspn(at, ",");
        TARE_TRY(parse_parameter(out, at, size));
        at += size;
    }
    return TARE_OK;
}

bool tare_algorithm_equal(const struct tare_algorithm_choice *a, const struct tare_algorithm_choice *b) {
    for (int i = 0; i < TARE_ALGORITHM_PARAMETERS; i++) {
        if (a->values[i] != b->values[i]) return false;
    }
    return row_of(a) == row_of(b);
}

/* Length of the algorithm at the start of `text`, including its parameters. */
static size_t item_length(const char *text) {
    size_t length = strcspn(text, ",");
    while (text[length] == ',') {
        const char *next = text + length + 1;
        size_t size = strcspn(next, ",");
        if (!memchr(next, '=', size) || memchr(next, ':', size)) break;
        length += 1 + size;
    }
    return length;
}

tare_status tare_algorithm_parse_list(struct tare_algorithm_choice *out, size_t *count, size_t most, const char *text) {
    *count = 0;
    for (const char *at = text;; at++) {
        size_t length = item_length(at);
        char item[256];
        if (length >= sizeof item) return TARE_FAIL(TARE_USAGE, "algorithm '%.32s…' is too long", at);
        memcpy(item, at, length);
        item[length] = '\0';
        if (*count == most) return TARE_FAIL(TARE_USAGE, "more than %zu algorithms", most);
        TARE_TRY(tare_algorithm_parse(&out[*count], item));
        for (size_t i = 0; i < *count; i++) {
            if (tare_algorithm_equal(&out[i], &out[*count]))
                return TARE_FAIL(TARE_USAGE, "algorithm '%s' is given twice", item);
        }
        ++*count;
        at += length;
        if (*at == '\0') return TARE_OK;
    }
}

void tare_algorithm_print(struct tare_strbuf *out, const struct tare_algorithm_choice *choice) {
    const struct tare_algorithm_parameter *parameters = row_of(choice)->parameters;
    char separator = ':';
    tare_strbuf_puts(out, row_of(choice)->name);
    for (int i = 0; i < TARE_ALGORITHM_PARAMETERS && parameters[i].name; i++) {
        if (choice->values[i] == parameters[i].fallback) continue;
        tare_strbuf_printf(out, "%c%s=%.10g", separator, parameters[i].name, choice->values[i]);
        separator = ',';
    }
}

/* ---- stored ranges ----
 *
 * A search compares hundreds or thousands of ranges, and many callers ask for the same one: every variant of a
 * comparison, the warnings about a model, its explanation. Each range is therefore computed once per algorithm, scheme
 * and number of samples, and stored with the statistics, in a list, since a tensor has few of them. Statistics are
 * const for the callers; the list is the only part that changes, and one lock guards all lists. */

struct stored_range {
    struct tare_stored_result list;
    int64_t samples; /* statistics with more samples have other ranges */
    struct tare_algorithm_choice choice;
    struct tare_qscheme scheme;
    struct tare_range range;
};

static pthread_mutex_t stored_ranges_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_of(const struct stored_range *stored, const struct tare_statistics *statistics,
                  const struct tare_algorithm_choice *choice, const struct tare_qscheme *scheme) {
    return stored->samples == statistics->samples && tare_algorithm_equal(&stored->choice, choice) &&
           stored->scheme.bits == scheme->bits && stored->scheme.symmetric == scheme->symmetric &&
           stored->scheme.narrow == scheme->narrow && stored->scheme.format == scheme->format;
}

/* The range found earlier for these statistics; false if there is none. Entries never change and live as long as the
 * statistics. */
static bool find_range(struct tare_range *out, const struct tare_statistics *statistics,
                       const struct tare_algorithm_choice *choice, const struct tare_qscheme *scheme) {
    const struct tare_stored_result *at;
    pthread_mutex_lock(&stored_ranges_lock);
    at = statistics->ranges;
    while (at && !is_of((const struct stored_range *)at, statistics, choice, scheme))
        at = at->next;
    pthread_mutex_unlock(&stored_ranges_lock);
    if (at) *out = ((const struct stored_range *)at)->range;
    return at != NULL;
}

/* Without memory nothing is stored, and the range is searched again where it is needed. */
static void store_range(const struct tare_statistics *statistics, const struct tare_algorithm_choice *choice,
                        const struct tare_qscheme *scheme, const struct tare_range *range) {
    struct tare_statistics *owner = (struct tare_statistics *)(uintptr_t)statistics;
    const int64_t mark = tare_control_failures();
    struct stored_range *stored = tare_calloc(1, sizeof *stored);
    if (!stored) {
        tare_error_clear();
        tare_control_forgive(mark);
        return;
    }
    *stored =
        (struct stored_range){ .samples = statistics->samples, .choice = *choice, .scheme = *scheme, .range = *range };
    pthread_mutex_lock(&stored_ranges_lock);
    stored->list.next = owner->ranges;
    owner->ranges = &stored->list;
    pthread_mutex_unlock(&stored_ranges_lock);
}

/* ---- ranges ---- */

tare_status tare_algorithm_range_of_bins(struct tare_range *out, const struct tare_algorithm_choice *choice,
                                         const struct tare_statistics *statistics, const struct tare_bins *bins,
                                         const struct tare_qscheme *deployed) {
    struct tare_qscheme tight = *deployed; /* a search would make a range so narrow that the headroom is used */
    const struct tare_qscheme *scheme = &tight;
    tight.headroom = 0;
    if (find_range(out, statistics, choice, scheme)) return TARE_OK;
    *out = (struct tare_range){ .candidates = 1 };
    TARE_TRY(row_of(choice)->range(out, statistics, bins, choice->values, scheme));
    if (scheme->symmetric) {
        out->high = fmax(fabs(out->low), fabs(out->high));
        out->low = -out->high;
    }
    store_range(statistics, choice, scheme, out);
    return TARE_OK;
}

static bool has_counts(const struct tare_statistics *statistics) {
    return statistics->histogram.n_pages > 0 || statistics->histogram.zeros > 0;
}

tare_status tare_algorithm_range(struct tare_range *out, const struct tare_algorithm_choice *choice,
                                 const struct tare_statistics *statistics, const struct tare_qscheme *scheme) {
    struct tare_bins bins;
    if (find_range(out, statistics, choice, scheme)) return TARE_OK;
    if (row_of(choice)->of_extremes && has_counts(statistics)) {
        memset(&bins, 0, sizeof bins);
        if (tare_statistics_extremes(&bins.low, &bins.high, statistics))
            return tare_algorithm_range_of_bins(out, choice, statistics, &bins, scheme);
    }
    TARE_TRY(tare_bins_make(&bins, statistics));
    tare_status status = tare_algorithm_range_of_bins(out, choice, statistics, &bins, scheme);
    tare_bins_free(&bins);
    return status;
}

struct tare_range_quality tare_range_quality_of(const struct tare_range *range, const struct tare_bins *bins,
                                                const struct tare_qscheme *scheme) {
    struct tare_qparams grid = tare_qparams_of_range(range->low, range->high, scheme);
    struct tare_quantization_error error = tare_quantization_error_of(&grid, bins);
    double total = tare_bins_total(bins), whole = error.rounding + error.clipping;
    return (struct tare_range_quality){
        .rounding_mse = error.rounding / total,
        .clipping_mse = error.clipping / total,
        .clipped = error.clipped / total,
        .sqnr_db = whole > 0 ? 10 * log10(bins->squares[bins->count] / whole) : HUGE_VAL,
    };
}
