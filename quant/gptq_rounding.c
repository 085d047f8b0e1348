/* Error-compensated rounding.
 *
 * The error of a column is e' H e with e = w - ŵ. With rows in the order in which they are rounded and H = R R', R
 * upper triangular, it is
 *
 *     Σ_j R_jj² (e_j + Σ_{k<j} e_k R_kj / R_jj)²
 *
 * so row j is rounded to the grid value nearest to w_j + Σ_{k<j} e_k R_kj / R_jj. That is GPTQ's update without the
 * inverse of H (Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers",
 * ICLR 2023), which is Babai's nearest plane (Chen et al., "The Geometry of LLM Quantization: GPTQ as Babai's Nearest
 * Plane Algorithm", 2025). R comes from the Cholesky factor of H with its rows in reverse: index a here is the place in
 * that reversed order.
 */
#include "quant/gptq_rounding.h"

#include "base/alloc.h"
#include "base/control.h"
#include "base/thread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLICE = 32, /* columns rounded together */
    LANES = 8,
    BLOCK = 64, /* rows of the factor that are computed together, so that each row above is read once for all */
    WORTH_THREADS = 256, /* rows */
};

struct work {
    const struct tare_compensation *how;
    struct tare_quantized_weight *weight;
    int64_t rows, columns;
    int64_t first, end;        /* columns to round */
    struct tare_qparams codes; /* without scale */
    int64_t *order;            /* place a -> row */
    double *factor;            /* L, rows * rows, by places; only its lower half and diagonal */
    double damping;            /* added to the diagonal of H in the minimized error */
    int64_t block;             /* first row of the current block of the factor */
    double *before, *after;    /* error by column */
    int threads;
};

/* ---- the factor ---- */

/* Sums in lanes of a fixed order, so that the compiler can vectorize it. */
static double dot(const double *a, const double *b, int64_t count) {
    double lanes[LANES] = { 0 }, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++)
            lanes[k] += a[i + k] * b[i + k];
    for (; i < count; i++)
        sum += a[i] * b[i];
    for (int k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

static double entry(const struct work *w, int64_t a, int64_t b) {
    return w->how->hessian[w->order[a] * w->rows + w->order[b]] + (a == b ? w->damping : 0);
}

/* Columns to the left of the block, in independent rows of it. */
static tare_status factorize_share(void *arg, int worker) {
    struct work *w = arg;
    const int64_t end = w->block + BLOCK < w->rows ? w->block + BLOCK : w->rows;
    for (int64_t b = 0; b < w->block; b++) {
        const double *above = &w->factor[b * w->rows];
        TARE_TRY(tare_control_check());
        for (int64_t a = w->block + worker; a < end; a += w->threads) {
            double *row = &w->factor[a * w->rows];
            row[b] = (entry(w, a, b) - dot(row, above, b)) / above[b];
        }
    }
    return TARE_OK;
}

/* L L' = H by places; *definite is false when a pivot is not positive. */
static tare_status factorize(bool *definite, struct work *w) {
    *definite = false;
    for (w->block = 0; w->block < w->rows; w->block += BLOCK) {
        const int64_t end = w->block + BLOCK < w->rows ? w->block + BLOCK : w->rows;
        TARE_TRY(tare_threads_run(w->threads, factorize_share, w));
        for (int64_t a = w->block; a < end; a++) {
            double *row = &w->factor[a * w->rows];
            TARE_TRY(tare_control_check());
            for (int64_t b = w->block; b < a; b++)
                row[b] = (entry(w, a, b) - dot(row, &w->factor[b * w->rows], b)) / w->factor[b * w->rows + b];
            const double pivot = entry(w, a, a) - dot(row, row, a);
            if (!(pivot > 0) || !isfinite(pivot)) return TARE_OK;
            row[a] = sqrt(pivot);
        }
    }
    *definite = true;
    return TARE_OK;
}

struct place {
    double size;
    int64_t row;
};

static int by_size(const void *x, const void *y) {
    const struct place *a = x, *b = y;
    if (a->size != b->size) return a->size < b->size ? -1 : 1;
    return (a->row < b->row) - (a->row > b->row);
}

/* Rows are rounded from the last place to the first. */
static tare_status choose_order(struct work *w) {
    struct place *places = tare_malloc((size_t)w->rows * sizeof *places);
    if (!places) return TARE_NO_MEMORY;
    for (int64_t a = 0; a < w->rows; a++)
        places[a] = (struct place){ w->how->hessian[a * w->rows + a], a };
    if (w->how->act_order) qsort(places, (size_t)w->rows, sizeof *places, by_size);
    for (int64_t a = 0; a < w->rows; a++)
        w->order[a] = w->how->act_order ? places[a].row : w->rows - 1 - a;
    tare_free(places);
    return TARE_OK;
}

/* Increases damping if rounding made the matrix indefinite. *ready is false if the Hessian is zero or stays
 * indefinite. */
static tare_status prepare_factor(bool *ready, struct work *w) {
    double mean = 0, damp = w->how->damp > 0 ? w->how->damp : 1e-9;
    for (int64_t i = 0; i < w->rows; i++)
        mean += w->how->hessian[i * w->rows + i] / (double)w->rows;
    *ready = false;
    if (!(mean > 0) || !isfinite(mean)) return TARE_OK;
    for (int attempt = 0; attempt < 8 && !*ready; attempt++, damp *= 10) {
        w->damping = damp * mean;
        TARE_TRY(factorize(ready, w));
    }
    return TARE_OK;
}

/* ---- rounding ---- */

/* A run of columns, and scratch memory to round them. */
struct slice {
    struct work *w;
    int64_t first, count;
    double *error;    /* rows * SLICE, by row: w - ŵ */
    double *carried;  /* rows * SLICE, by place: Σ_{b>a} e_b L_ba */
    uint8_t *rounded; /* rows * SLICE */
};

static double scale_at(const struct work *w, int64_t row, int64_t column) {
    return w->weight->scales[tare_weight_scale_index(w->weight, 0, row, column)];
}

static void round_rows(struct slice *s) {
    const struct work *w = s->w;
    memset(s->carried, 0, (size_t)(w->rows * SLICE) * sizeof *s->carried);
    for (int64_t a = w->rows - 1; a >= 0; a--) {
        const int64_t row = w->order[a];
        const double *factor = &w->factor[a * w->rows];
        double *error = &s->error[row * SLICE];
        if (tare_control_is_stopped()) return;
        for (int64_t n = 0; n < s->count; n++) {
            const double real = (double)w->how->real[row * w->columns + s->first + n];
            const double scale = scale_at(w, row, s->first + n);
            const uint8_t q = tare_weight_encode(&w->codes, real + s->carried[a * SLICE + n] / factor[a], scale);
            s->rounded[row * SLICE + n] = q;
            error[n] = real - tare_weight_decode(w->codes.format, q) * scale;
        }
        for (int64_t b = 0; b < a; b++)
            for (int64_t n = 0; n < SLICE; n++)
                s->carried[b * SLICE + n] += error[n] * factor[b];
    }
}

/* e' H e of each column of `error`; `carried` is overwritten. */
static void measure(double errors[SLICE], struct slice *s) {
    const struct work *w = s->w;
    double *pull = s->carried; /* row i of H e */
    for (int n = 0; n < SLICE; n++)
        errors[n] = 0;
    for (int64_t i = 0; i < w->rows; i++) {
        const double *h = &w->how->hessian[i * w->rows], *e = &s->error[i * SLICE];
        if (tare_control_is_stopped()) return;
        for (int n = 0; n < SLICE; n++)
            pull[n] = w->damping * e[n];
        for (int64_t j = 0; j < w->rows; j++)
            for (int n = 0; n < SLICE; n++)
                pull[n] += h[j] * s->error[j * SLICE + n];
        for (int n = 0; n < SLICE; n++)
            errors[n] += e[n] * pull[n];
    }
}

/* Stores the new integers of the columns whose error they reduce. */
static void finish_columns(struct slice *s) {
    const struct work *w = s->w;
    uint8_t *values = TARE_DATA(uint8_t, &w->weight->values);
    double before[SLICE], after[SLICE];
    measure(after, s);
    for (int64_t i = 0; i < w->rows; i++)
        for (int64_t n = 0; n < s->count; n++) {
            const int64_t at = i * w->columns + s->first + n;
            s->error[i * SLICE + n] = (double)w->how->real[at] -
                                      scale_at(w, i, s->first + n) * tare_weight_decode(w->codes.format, values[at]);
        }
    measure(before, s);
    for (int64_t n = 0; n < s->count; n++) {
        w->before[s->first + n] = before[n];
        w->after[s->first + n] = fmin(before[n], after[n]);
        for (int64_t i = 0; after[n] < before[n] && i < w->rows; i++)
            values[i * w->columns + s->first + n] = s->rounded[i * SLICE + n];
    }
}

/* ---- all columns ---- */

static tare_status round_share(void *arg, int worker) {
    struct work *w = arg;
    struct slice s = { .w = w };
    double *room = tare_calloc((size_t)w->rows * (2 * SLICE), sizeof *room);
    s.rounded = tare_calloc((size_t)w->rows, SLICE);
    if (room && s.rounded) {
        s.error = room;
        s.carried = room + w->rows * SLICE;
        for (s.first = w->first + (int64_t)worker * SLICE; s.first < w->end; s.first += (int64_t)w->threads * SLICE) {
            s.count = w->end - s.first < SLICE ? w->end - s.first : SLICE;
            memset(s.error, 0, (size_t)(w->rows * SLICE) * sizeof *s.error);
            round_rows(&s);
            finish_columns(&s);
        }
    }
    tare_free(s.rounded);
    tare_free(room);
    return room && s.rounded ? tare_control_check() : TARE_NO_MEMORY;
}

static tare_status allocate(struct work *w) {
    const size_t square = (size_t)w->rows * (size_t)w->rows;
    w->order = tare_calloc((size_t)w->rows, sizeof *w->order);
    w->factor = tare_calloc(square, sizeof *w->factor);
    w->before = tare_calloc((size_t)w->columns, sizeof *w->before);
    w->after = tare_calloc((size_t)w->columns, sizeof *w->after);
    return w->order && w->factor && w->before && w->after ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_round_compensated(struct tare_compensated *out, struct tare_quantized_weight *weight,
                                   const struct tare_qscheme *scheme, const struct tare_compensation *how) {
    struct work w = { .how = how, .weight = weight, .rows = weight->layout.rows, .columns = weight->layout.columns };
    bool ready;
    tare_status status;
    *out = (struct tare_compensated){ 0, 0 };
    TARE_TRY(tare_qparams_from_range(&w.codes, 0, 1, scheme)); /* for qmin and qmax */
    w.first = how->first;
    w.end = how->count ? how->first + how->count : w.columns;
    w.threads = w.rows < WORTH_THREADS ? 1 : how->threads > 0 ? how->threads : tare_cpu_count();
    TARE_CHECK(allocate(&w));
    TARE_CHECK(choose_order(&w));
    TARE_CHECK(prepare_factor(&ready, &w));
    if (!ready) goto done;
    TARE_CHECK(tare_threads_run(w.threads, round_share, &w));
    for (int64_t n = w.first; n < w.end; n++) {
        out->before += w.before[n];
        out->after += w.after[n];
    }
done:
    tare_free(w.order);
    tare_free(w.factor);
    tare_free(w.before);
    tare_free(w.after);
    return status;
}
