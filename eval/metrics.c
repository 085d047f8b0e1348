/* Accuracy metrics of outputs, added record by record. */
#include "eval/metrics.h"
#include "base/alloc.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One row: elements first … first+count-1 of a real tensor. */
struct row {
    const struct tare_tensor *tensor;
    int64_t first, count;
};

static double element(const struct row *row, int64_t i) {
    return tare_tensor_get_f64(row->tensor, row->first + i);
}

/* Index of the largest element, the first on a tie, ignoring NaN; -1 when all are NaN. */
static int64_t largest(const struct row *row) {
    int64_t best = -1;
    double value = 0;
    for (int64_t i = 0; i < row->count; i++) {
        double x = element(row, i);
        if (isnan(x) || (best >= 0 && !(x > value))) continue;
        best = i;
        value = x;
    }
    return best;
}

/* Number of elements that rank before the label's, the largest first, ties in their order. */
static int64_t rank_of(const struct row *row, int64_t label) {
    double value = element(row, label);
    int64_t rank = 0;
    if (isnan(value)) return row->count;
    for (int64_t i = 0; i < row->count; i++) {
        double x = element(row, i);
        rank += x > value || (x == value && i < label);
    }
    return rank;
}

static bool is_class_number(const struct row *row) {
    return row->count == 1 && tare_dtype_is_integer(row->tensor->dtype);
}

/* The class that a row predicts; false when it predicts none. */
static bool chosen_class(int64_t *out, const struct row *row) {
    if (is_class_number(row))
        *out = tare_tensor_get_i64(row->tensor, row->first);
    else if (row->count > 1)
        *out = largest(row);
    else
        return false;
    return true;
}

/* Rank of the label, 0: correct, below 5: in the top 5; -1: the output cannot express the label. */
static int64_t label_rank(const struct row *row, int64_t label) {
    if (is_class_number(row)) return tare_tensor_get_i64(row->tensor, row->first) == label ? 0 : row->count + 5;
    return row->count > 1 && label < row->count ? rank_of(row, label) : -1;
}

/* One score of a row labelled 0 or 1, at both thresholds. */
static void count_binary(struct tare_binary_counts *c, double threshold, double score, double reference,
                         bool positive) {
    const bool predicted = isnan(score) ? !positive : score >= threshold; /* NaN is wrong */
    const bool before = isnan(reference) ? !positive : reference >= threshold;
    c->count++;
    c->correct += predicted == positive;
    c->gained += predicted == positive && before != positive;
    c->lost += predicted != positive && before == positive;
    c->true_positives += predicted && positive;
    c->false_positives += predicted && !positive;
    c->false_negatives += !predicted && positive;
}

static tare_status judge(struct tare_metrics *m, int64_t label, bool right, bool right_at_zero) {
    struct tare_judged *judged = &m->judged;
    TARE_TRY(TARE_SPILL_GROW(judged->rows, judged->count, judged->capacity));
    TARE_TRY(TARE_SPILL_GROW(judged->sorted, judged->count, judged->sorted_capacity));
    judged->rows[judged->count++] = (struct tare_judgement){ label, right, right_at_zero };
    return TARE_OK;
}

static tare_status add_binary(struct tare_metrics *m, const struct row *value, const struct row *reference,
                              bool positive) {
    const double score = element(value, 0), before = reference ? element(reference, 0) : score;
    const int64_t right = m->at_half.correct, right_at_zero = m->at_zero.correct;
    count_binary(&m->at_half, 0.5, score, before, positive);
    count_binary(&m->at_zero, 0, score, before, positive);
    m->outside_unit |= score < 0 || score > 1;
    return judge(m, positive, m->at_half.correct > right, m->at_zero.correct > right_at_zero);
}

static tare_status add_label(struct tare_metrics *m, const struct row *value, const struct row *reference,
                             int64_t label) {
    int64_t rank;
    if (label < 0) return TARE_OK;
    if (label <= 1 && value->count <= 2 && !is_class_number(value))
        TARE_TRY(tare_auc_add(&m->auc, value->count == 2 ? element(value, 1) - element(value, 0) : element(value, 0),
                              label == 1));
    if (label <= 1 && value->count == 1 && !is_class_number(value))
        TARE_TRY(add_binary(m, value, reference, label == 1));
    if ((rank = label_rank(value, label)) < 0) {
        const bool is_binary = value->count == 1 && !is_class_number(value);
        m->unlabelled += !is_binary || label > 1;
        if (label > m->largest_label) m->largest_label = label;
        return TARE_OK;
    }
    m->labelled++;
    m->classes = value->count;
    m->top1 += rank == 0;
    m->top5 += rank < 5;
    TARE_TRY(judge(m, label, rank == 0, rank == 0));
    if (!reference) return TARE_OK;
    m->gained += rank == 0 && label_rank(reference, label) != 0;
    m->lost += rank != 0 && label_rank(reference, label) == 0;
    return TARE_OK;
}

static void add_agreement(struct tare_metrics *m, const struct row *value, const struct row *reference) {
    int64_t a, b;
    if (!chosen_class(&a, value) || !chosen_class(&b, reference)) return;
    m->ranked++;
    m->agree += a == b;
}

/* Adds an element: the squares of reference and value, their product, and their distance. */
static void add_element(struct tare_metrics *m, double *noise, double signal, double self, double dot, double distance,
                        int64_t record) {
    m->elements++;
    m->signal += signal;
    m->noise += distance * distance;
    *noise += distance * distance;
    m->dot += dot;
    m->self += self;
    m->absolute_error += distance;
    m->absolute_reference += sqrt(signal);
    if (distance > m->max_abs_error) {
        m->max_abs_error = distance;
        m->max_abs_record = record;
    }
}

/* Elements first … first+count-1, one row; *noise: its sum of squares. */
static void add_row_difference(struct tare_metrics *m, double *noise, const struct tare_tensor *value,
                               const struct tare_tensor *reference, int64_t first, int64_t count, int64_t record) {
    const bool integers = tare_dtype_is_integer(value->dtype) && tare_dtype_is_integer(reference->dtype);
    for (int64_t i = first; i < first + count; i++) {
        const double x = tare_tensor_get_f64(value, i), r = tare_tensor_get_f64(reference, i);
        if (isfinite(x) && isfinite(r))
            add_element(m, noise, r * r, x * x, r * x,
                        fabs(integers ? tare_tensor_difference(value, reference, i) : x - r), record);
        else
            m->not_finite += !isfinite(x) && isfinite(r);
        m->undefined += isnan(r);
    }
}

static bool is_finite(_Complex double z) {
    return isfinite(creal(z)) && isfinite(cimag(z));
}

/* Likewise for a complex output: its elements are pairs of numbers. */
static void add_complex_difference(struct tare_metrics *m, double *noise, const struct tare_tensor *value,
                                   const struct tare_tensor *reference, int64_t first, int64_t count, int64_t record) {
    for (int64_t i = first; i < first + count; i++) {
        const _Complex double x = tare_tensor_get_c128(value, i), r = tare_tensor_get_c128(reference, i);
        const double re = creal(r), im = cimag(r), dot = re * creal(x) + im * cimag(x);
        if (is_finite(x) && is_finite(r))
            add_element(m, noise, re * re + im * im, creal(x) * creal(x) + cimag(x) * cimag(x), dot,
                        hypot(creal(x) - re, cimag(x) - im), record);
        else
            m->not_finite += !is_finite(x) && is_finite(r);
        m->undefined += isnan(re) || isnan(im);
    }
}

static tare_status add_difference(struct tare_metrics *m, const struct tare_measured *in,
                                  const struct tare_tensor *reference) {
    const int64_t rows = in->rows > 0 && in->value->elements % in->rows == 0 ? in->rows : 1;
    const int64_t width = in->value->elements / rows;
    const bool is_complex = tare_dtype_is_complex(in->value->dtype) || tare_dtype_is_complex(reference->dtype);
    for (int64_t r = 0; r < rows; r++) {
        double noise = 0;
        (is_complex ? add_complex_difference : add_row_difference)(m, &noise, in->value, reference, r * width, width,
                                                                   in->record);
        TARE_TRY(tare_series_add(&m->row_noise, noise));
    }
    return TARE_OK;
}

/* Elements first … first+count-1 of one row; *absolute, *squared: means over the finite ones, NaN without any. */
static void add_expected_row(struct tare_metrics *m, const struct tare_measured *in, int64_t first, int64_t count,
                             double *absolute, double *squared) {
    int64_t finite = 0;
    double sum = 0, squares = 0;
    for (int64_t i = first; i < first + count; i++) {
        const double expected = tare_tensor_get_f64(in->expected, i), d = tare_tensor_get_f64(in->value, i) - expected;
        if (!isfinite(d)) continue;
        finite++;
        sum += fabs(d);
        squares += d * d;
        tare_spread_add(&m->expected, expected);
    }
    m->expected_error += sum;
    m->expected_squared_error += squares;
    *absolute = finite ? sum / (double)finite : NAN;
    *squared = finite ? squares / (double)finite : NAN;
}

/* The per-row errors of rows without a finite element are NaN. */
static tare_status add_expected(struct tare_metrics *m, const struct tare_measured *in) {
    const int64_t rows = in->rows > 0 && in->value->elements % in->rows == 0 ? in->rows : 1;
    const int64_t width = in->value->elements / rows;
    if (!in->expected || in->expected->dtype == TARE_DT_STRING || in->expected->elements != in->value->elements)
        return TARE_OK;
    for (int64_t r = 0; r < rows; r++) {
        double absolute, squared;
        add_expected_row(m, in, r * width, width, &absolute, &squared);
        TARE_TRY(tare_series_add(&m->errors.absolute, absolute));
        TARE_TRY(tare_series_add(&m->errors.squared, squared));
    }
    return tare_is_images(in->value, rows) ? tare_image_quality_add(&m->images, in->value, in->expected, rows)
                                           : TARE_OK;
}

static bool is_real(const struct tare_tensor *tensor) {
    return tare_dtype_is_floating(tensor->dtype) || tare_dtype_is_integer(tensor->dtype) ||
           tensor->dtype == TARE_DT_BOOL;
}

/* Whether a row has at most one dimension of several elements: the classes. Axis 0 is that of the rows, if it has as
 * many. */
static bool has_class_rows(const struct tare_tensor *output, int64_t rows) {
    const struct tare_shape *shape = &output->shape;
    int several = 0;
    for (int d = shape->rank > 0 && shape->dims[0] == rows; d < shape->rank; d++)
        several += shape->dims[d] > 1;
    return several <= 1;
}

bool tare_metrics_prediction(int64_t *class, double *margin, const struct tare_tensor *output, int64_t rows,
                             int64_t row) {
    const int64_t width = rows ? output->elements / rows : 0;
    const struct row scores = { output, row * width, width };
    double second = -INFINITY;
    *margin = NAN;
    if (!width || !is_real(output) || !has_class_rows(output, rows) || !chosen_class(class, &scores)) return false;
    if (width == 1 || *class < 0) return true;
    for (int64_t i = 0; i < width; i++)
        if (i != *class) second = fmax(second, element(&scores, i));
    *margin = element(&scores, *class) - second;
    return true;
}

static tare_status add_rows(struct tare_metrics *m, const struct tare_measured *in) {
    int64_t width = in->rows ? in->value->elements / in->rows : 0;
    const struct tare_tensor *against = in->reference ? in->reference : in->value;
    for (int64_t r = 0; r < in->rows && width; r++) {
        const struct row value = { in->value, r * width, width }, reference = { against, r * width, width };
        if (has_class_rows(in->value, in->rows)) add_agreement(m, &value, &reference);
        if (in->labels) TARE_TRY(add_label(m, &value, in->reference ? &reference : NULL, in->labels[r]));
    }
    return TARE_OK;
}

static bool is_numeric(const struct tare_tensor *tensor) {
    return is_real(tensor) || tare_dtype_is_complex(tensor->dtype);
}

/* Numbers are compared whatever their dtypes, because a converted model may return bfloat16. */
static bool is_comparable(const struct tare_tensor *a, const struct tare_tensor *b) {
    if (a->elements != b->elements) return false;
    return a->dtype == b->dtype || (is_real(a) && is_real(b)) ||
           (tare_dtype_is_complex(a->dtype) && tare_dtype_is_complex(b->dtype));
}

static double energy(const struct tare_tensor *tensor) {
    double sum = 0;
    for (int64_t i = 0; is_numeric(tensor) && i < tensor->elements; i++) {
        const _Complex double z = tare_tensor_get_c128(tensor, i);
        if (is_finite(z)) sum += creal(z) * creal(z) + cimag(z) * cimag(z);
    }
    return sum;
}

/* The labels of a record whose output cannot be compared: those that the reference can express, none of them right. */
static tare_status add_lost(struct tare_metrics *m, const struct tare_measured *in) {
    struct tare_metrics own = { 0 };
    const int64_t width = in->rows ? in->reference->elements / in->rows : 0;
    tare_status status = TARE_OK;
    for (int64_t r = 0; in->labels && is_real(in->reference) && width && r < in->rows && status == TARE_OK; r++) {
        const struct row reference = { in->reference, r * width, width };
        status = add_label(&own, &reference, NULL, in->labels[r]);
    }
    for (size_t i = 0; i < own.judged.count && status == TARE_OK; i++)
        status = judge(m, own.judged.rows[i].label, false, false);
    m->labelled += own.labelled;
    m->lost += own.top1;
    m->unlabelled += own.unlabelled;
    m->at_half.count += own.at_half.count;
    m->at_half.lost += own.at_half.correct;
    m->at_zero.count += own.at_zero.count;
    m->at_zero.lost += own.at_zero.correct;
    tare_metrics_reset(&own);
    return status;
}

/* A record whose output cannot be compared with the reference's: no row of it is right, and all of both is noise. */
static tare_status add_unlike(struct tare_metrics *m, const struct tare_measured *in) {
    const int64_t rows = in->rows > 0 ? in->rows : 1;
    const double signal = energy(in->reference), noise = signal + energy(in->value);
    m->ranked += in->rows;
    m->unlike += rows;
    m->signal += signal;
    m->noise += noise;
    for (int64_t r = 0; r < rows; r++)
        TARE_TRY(tare_series_add(&m->row_noise, noise / (double)rows));
    return add_lost(m, in);
}

tare_status tare_metrics_add(struct tare_metrics *m, const struct tare_measured *in) {
    const struct tare_tensor *against = in->reference ? in->reference : in->value;
    m->rows += in->rows;
    m->floating = tare_dtype_is_floating(in->value->dtype) || tare_dtype_is_complex(in->value->dtype);
    if (!is_comparable(in->value, against)) return add_unlike(m, in);
    if (in->value->dtype == TARE_DT_STRING) {
        m->ranked += in->rows;
        m->agree += tare_tensor_same_bits(in->value, against) ? in->rows : 0;
        return TARE_OK;
    }
    if (!is_numeric(in->value)) return TARE_OK;
    if (is_real(in->value)) TARE_TRY(add_rows(m, in));
    TARE_TRY(add_difference(m, in, against));
    if (!is_real(in->value)) return TARE_OK;
    if (in->positions) TARE_TRY(tare_positions_add(&m->positions, in->value, in->reference, in->positions, in->rows));
    return add_expected(m, in);
}

void tare_metrics_reset(struct tare_metrics *m) {
    tare_auc_reset(&m->auc);
    tare_positions_reset(&m->positions);
    tare_image_quality_reset(&m->images);
    tare_spill_free(m->judged.rows, m->judged.capacity, sizeof *m->judged.rows);
    tare_spill_free(m->judged.sorted, m->judged.sorted_capacity, sizeof *m->judged.sorted);
    tare_series_reset(&m->row_noise);
    tare_series_reset(&m->errors.absolute);
    tare_series_reset(&m->errors.squared);
    memset(m, 0, sizeof *m);
}

static const struct tare_binary_counts *binary_of(const struct tare_metrics *m, bool logits) {
    return logits ? &m->at_zero : &m->at_half;
}

static int by_label(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* In a loop over all judgements: gives back the pages of those before. */
static void forget_before(const struct tare_judged *judged, size_t i) {
    if (i % TARE_SPILL_AT_ONCE != 0) return;
    tare_spill_forget(judged->rows, judged->capacity, sizeof *judged->rows);
    tare_spill_forget(judged->sorted, judged->sorted_capacity, sizeof *judged->sorted);
}

static void count_majority(struct tare_judged *judged) {
    int64_t *labels = judged->sorted;
    size_t run = 0;
    for (size_t i = 0; i < judged->count; i++) {
        forget_before(judged, i);
        labels[i] = judged->rows[i].label;
    }
    tare_spill_sort(labels, judged->count, judged->sorted_capacity, sizeof *labels, by_label);
    for (size_t i = 0; i < judged->count; i++) {
        forget_before(judged, i);
        run = i && labels[i] == labels[i - 1] ? run + 1 : 1;
        if (run > judged->of_majority) judged->of_majority = run;
    }
    forget_before(judged, 0);
}

void tare_metrics_finish(struct tare_metrics *m, const struct tare_metrics *reference) {
    const struct tare_binary_counts *counts;
    tare_auc_finish(&m->auc);
    count_majority(&m->judged);
    if (m->labelled || !m->at_half.count) return;
    if (reference) m->outside_unit = reference->outside_unit;
    counts = binary_of(m, m->outside_unit);
    m->binary = true;
    m->labelled = counts->count;
    m->top1 = counts->correct;
    m->gained = counts->gained;
    m->lost = counts->lost;
}

bool tare_metrics_is_right(const struct tare_metrics *m, size_t i) {
    const struct tare_judgement *row = &m->judged.rows[i];
    forget_before(&m->judged, i);
    return m->binary && m->outside_unit ? row->right_at_zero : row->right;
}

double tare_metrics_majority(const struct tare_metrics *m) {
    const size_t count = m->judged.count;
    return count ? (double)m->judged.of_majority / (double)count : NAN;
}

double tare_metrics_f1(const struct tare_metrics *m) {
    const struct tare_binary_counts *c = binary_of(m, m->outside_unit);
    const double whole = (double)(2 * c->true_positives + c->false_positives + c->false_negatives);
    return m->binary && whole > 0 ? 2 * (double)c->true_positives / whole : NAN;
}

double tare_metrics_variance(const struct tare_metrics *m) {
    const double n = (double)m->expected.count;
    return n > 0 ? m->expected.squares / n : NAN;
}

double tare_metrics_r2(const struct tare_metrics *m) {
    return m->expected.squares > 0 ? 1 - m->expected_squared_error / m->expected.squares : NAN;
}

double tare_metrics_share(int64_t part, int64_t whole) {
    return whole ? (double)part / (double)whole : 0;
}

double tare_metrics_sqnr_db(const struct tare_metrics *m) {
    if (m->not_finite) return -INFINITY;
    if (m->noise <= 0 && m->unlike) return -INFINITY;
    if (m->noise <= 0) return m->elements ? INFINITY : NAN;
    return m->signal > 0 ? 10 * log10(m->signal / m->noise) : -INFINITY;
}

double tare_metrics_cosine(const struct tare_metrics *m) {
    double scale = sqrt(m->signal) * sqrt(m->self);
    if (scale > 0) return fmin(1, m->dot / scale);
    return m->signal == m->self ? 1 : 0;
}

double tare_metrics_mean_error(const struct tare_metrics *m) {
    return m->elements ? m->absolute_error / (double)m->elements : 0;
}

double tare_metrics_relative_error(const struct tare_metrics *m) {
    if (m->absolute_reference > 0) return m->absolute_error / m->absolute_reference;
    return m->absolute_error > 0 ? INFINITY : 0;
}
