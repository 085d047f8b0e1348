/* Finds the fewest layers that must stay float, or the fewest steps to higher precision, for an accuracy or size
 * target. Steps are ordered by the measured loss of the layer before the step, so that the noisiest layer is improved
 * first and a layer's steps come in their order (for a size target: loss per byte of the step). A binary search finds
 * the shortest prefix of that order that meets the target; then each step of the prefix, the least useful first, is
 * taken back if the target still holds. Every mix that decides is measured on the records. */
#include "eval/target.h"
#include "base/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 256, MOST_RETRIES = 16 };

struct search {
    struct tare_target_result *out;
    const struct tare_target_task *task;
    size_t *order; /* layers, the first candidates for float first */
    size_t count;
};

void tare_target_free(struct tare_target_result *result) {
    tare_arena_free(&result->arena);
    memset(result, 0, sizeof *result);
}

/* ---- the order ---- */

struct scored {
    double score;
    size_t layer;
};

static int by_score(const void *a, const void *b) {
    const struct scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->layer > y->layer) - (x->layer < y->layer);
}

/* Noise of the layer alone relative to the signal; for a size target, per byte of its float weights. */
static tare_status sort_layers(struct search *s) {
    const struct tare_sensitivity *layers = s->task->sensitivity;
    struct scored *scored = TARE_NEW_ARRAY(&s->out->arena, struct scored, layers->count + 1);
    s->count = layers->count;
    s->order = TARE_NEW_ARRAY(&s->out->arena, size_t, layers->count + 1);
    if (!scored || !s->order) return TARE_NO_MEMORY;
    for (size_t i = 0; i < s->count; i++) {
        const double db = layers->layers[i].alone.sqnr_db;
        const double weights = (double)layers->layers[i].weight_elements;
        scored[i] = (struct scored){ pow(10, -db / 10), i };
        if (s->task->target->max_bytes && weights > 0) scored[i].score /= weights;
    }
    qsort(scored, s->count, sizeof *scored, by_score);
    for (size_t i = 0; i < s->count; i++)
        s->order[i] = scored[i].layer;
    return TARE_OK;
}

/* ---- mixes ---- */

static bool limits_accuracy(const struct tare_target *t) {
    return isfinite(t->max_drop) || isfinite(t->min_sqnr_db) || t->max_mae > 0;
}

const struct tare_sensitive_layer *tare_target_step(const struct tare_sensitivity *steps, const size_t *kept,
                                                    size_t n_kept, const char *function, const char *node) {
    size_t count = 0;
    for (size_t i = 0; i < n_kept; i++) {
        const struct tare_sensitive_layer *step = &steps->layers[kept[i]];
        count += strcmp(step->node, node) == 0 && strcmp(step->function, function) == 0;
    }
    for (size_t i = 0; i < steps->count && count; i++) {
        const struct tare_sensitive_layer *step = &steps->layers[i];
        if (step->level == count - 1 && strcmp(step->node, node) == 0 && strcmp(step->function, function) == 0)
            return step;
    }
    return NULL;
}

size_t tare_target_layers(size_t *in_float, const struct tare_sensitivity *steps, const size_t *kept, size_t n_kept) {
    size_t layers = 0;
    *in_float = 0;
    for (size_t i = 0; i < steps->count; i++) {
        const struct tare_sensitive_layer *layer = &steps->layers[i], *last;
        if (layer->level > 0) continue;
        last = tare_target_step(steps, kept, n_kept, layer->function, layer->node);
        layers++;
        *in_float += last && !last->quantized;
    }
    return layers;
}

static double drop_of(const struct search *s, const struct tare_target_point *p) {
    return 100 * (s->task->float_score - p->figures.score);
}

static bool accurate(const struct search *s, const struct tare_target_point *p) {
    const struct tare_target *t = s->task->target;
    if (isfinite(t->max_drop) && !(drop_of(s, p) <= t->max_drop + TARE_POINTS_SLACK)) return false;
    if (t->max_mae > 0 && !(p->figures.mae <= t->max_mae)) return false;
    return !isfinite(t->min_sqnr_db) || p->figures.sqnr_db >= t->min_sqnr_db;
}

static bool small(const struct search *s, int64_t bytes) {
    return !s->task->target->max_bytes || bytes <= s->task->target->max_bytes;
}

static bool same_layers(const struct tare_target_point *p, const size_t *kept, size_t n_kept) {
    return p->n_kept == n_kept && (!n_kept || memcmp(p->kept, kept, n_kept * sizeof *kept) == 0);
}

static bool same_layer(const struct tare_sensitive_layer *a, const struct tare_sensitive_layer *b) {
    return strcmp(a->node, b->node) == 0 && strcmp(a->function, b->function) == 0;
}

/* The mix as the steps that its layers take, in the order of the steps: a layer with k steps of `kept` takes its first
 * k ones, so that sets that lead to the same model are equal. */
static void write_mix(size_t *mix, const struct tare_sensitivity *steps, const size_t *kept, size_t n_kept) {
    size_t count = 0;
    for (size_t i = 0; i < steps->count; i++) {
        const struct tare_sensitive_layer *step = &steps->layers[i];
        size_t taken = 0;
        for (size_t k = 0; k < n_kept && taken <= step->level; k++)
            taken += same_layer(&steps->layers[kept[k]], step);
        if (taken > step->level && count < n_kept) mix[count++] = i;
    }
}

/* Measures a mix unless it was measured before. *out is valid until the next call. */
static tare_status measure(struct tare_target_point **out, struct search *s, const size_t *kept, size_t n_kept) {
    struct tare_target_result *r = s->out;
    struct tare_target_point *p = &r->points[r->n_points];
    size_t *mix = TARE_NEW_ARRAY(&r->arena, size_t, n_kept + 1);
    if (!mix) return TARE_NO_MEMORY;
    write_mix(mix, s->task->sensitivity, kept, n_kept);
    for (size_t i = 0; i < r->n_points; i++)
        if (same_layers(&r->points[i], mix, n_kept)) {
            *out = &r->points[i];
            return TARE_OK;
        }
    if (r->n_points == MOST_POINTS) return TARE_FAIL(TARE_INTERNAL, "more than %d mixes", MOST_POINTS);
    *p = (struct tare_target_point){ .kept = mix, .n_kept = n_kept };
    TARE_TRY(s->task->measure(s->task->arg, p));
    p->meets = accurate(s, p) && small(s, p->size_bytes);
    r->n_points++;
    *out = p;
    return TARE_OK;
}

/* ---- accuracy ---- */

/* Length of the shortest prefix of the order that meets the target when kept in float; `count` + 1: even the whole
 * order does not. */
static tare_status fewest(size_t *out, struct search *s) {
    struct tare_target_point *p;
    size_t fails = 0, meets = s->count;
    TARE_TRY(measure(&p, s, s->order, 0));
    *out = 0;
    if (accurate(s, p)) return TARE_OK;
    TARE_TRY(measure(&p, s, s->order, s->count));
    *out = s->count + 1;
    if (!accurate(s, p)) return TARE_OK;
    while (meets - fails > 1) {
        const size_t middle = fails + (meets - fails) / 2;
        TARE_TRY(measure(&p, s, s->order, middle));
        if (accurate(s, p))
            meets = middle;
        else
            fails = middle;
    }
    *out = meets;
    return TARE_OK;
}

/* Quantizes the layers of the prefix again that the target does not need, the least harmful first. */
static tare_status thin_out(size_t *kept, size_t *n_kept, struct search *s) {
    size_t *fewer = TARE_NEW_ARRAY(&s->out->arena, size_t, *n_kept + 1);
    int tries = 0;
    if (!fewer) return TARE_NO_MEMORY;
    for (size_t i = *n_kept; i-- > 0 && tries < MOST_RETRIES; tries++) {
        struct tare_target_point *p;
        memcpy(fewer, kept, i * sizeof *kept);
        memcpy(fewer + i, kept + i + 1, (*n_kept - i - 1) * sizeof *kept);
        TARE_TRY(measure(&p, s, fewer, *n_kept - 1));
        if (!accurate(s, p)) continue;
        --*n_kept;
        memcpy(kept, fewer, *n_kept * sizeof *kept);
    }
    return TARE_OK;
}

/* ---- size ---- */

/* The longest prefix of the order that may stay float within the size; false: even the fully quantized model is too
 * large. */
static tare_status most_that_fit(bool *any, size_t *out, struct search *s) {
    size_t fits = 0, beyond = s->count + 1;
    int64_t bytes;
    TARE_TRY(s->task->size(s->task->arg, &bytes, s->order, 0));
    *any = small(s, bytes);
    while (*any && beyond - fits > 1) {
        const size_t middle = fits + (beyond - fits) / 2;
        TARE_TRY(s->task->size(s->task->arg, &bytes, s->order, middle));
        if (small(s, bytes))
            fits = middle;
        else
            beyond = middle;
    }
    *out = fits;
    return TARE_OK;
}

/* ---- the outcome ---- */

static int by_size(const void *a, const void *b) {
    const struct tare_target_point *x = a, *y = b;
    if (x->size_bytes != y->size_bytes) return x->size_bytes > y->size_bytes ? -1 : 1;
    return (x->n_kept < y->n_kept) - (x->n_kept > y->n_kept);
}

static double merit(const struct search *s, const struct tare_target_point *p) {
    if (s->task->target->max_mae > 0) return -p->figures.mae;
    return isfinite(s->task->target->max_drop) ? p->figures.score : p->figures.sqnr_db;
}

static void mark_pareto(struct search *s) {
    struct tare_target_result *r = s->out;
    for (size_t i = 0; i < r->n_points; i++) {
        struct tare_target_point *p = &r->points[i];
        p->pareto = true;
        for (size_t k = 0; k < r->n_points; k++) {
            const struct tare_target_point *q = &r->points[k];
            const bool better =
                merit(s, q) > merit(s, p) || (merit(s, q) == merit(s, p) && q->size_bytes < p->size_bytes);
            if (q->size_bytes <= p->size_bytes && better) p->pareto = false;
        }
    }
}

/* Chooses, among the mixes that meet the target, the one with the fewest layers in float; with a size target alone, the
 * most accurate. Ties: the more accurate, then the smaller. */
static bool preferred(const struct search *s, const struct tare_target_point *p, const struct tare_target_point *q) {
    const struct tare_target *t = s->task->target;
    if (limits_accuracy(t) && p->n_kept != q->n_kept) return p->n_kept < q->n_kept;
    if (merit(s, p) != merit(s, q)) return merit(s, p) > merit(s, q);
    return p->size_bytes < q->size_bytes;
}

/* The most accurate mix within the size; if none is, the smallest. */
static const struct tare_target_point *best_of(const struct search *s) {
    const struct tare_target_result *r = s->out;
    const struct tare_target_point *best = NULL;
    for (size_t i = 0; i < r->n_points; i++) {
        const struct tare_target_point *p = &r->points[i];
        const bool fits = small(s, p->size_bytes), best_fits = best && small(s, best->size_bytes);
        if (!best || (fits && !best_fits) ||
            (fits == best_fits && (fits ? merit(s, p) > merit(s, best) : p->size_bytes < best->size_bytes)))
            best = p;
    }
    return best;
}

static tare_status describe_best(struct search *s) {
    const struct tare_target_point *p = best_of(s);
    struct tare_target_result *r = s->out;
    size_t in_float;
    const size_t layers = tare_target_layers(&in_float, s->task->sensitivity, p->kept, p->n_kept);
    struct tare_strbuf text = { 0 };
    tare_strbuf_printf(&text, "%zu of %zu layers in float: ", in_float, layers);
    if (!isnan(p->figures.score)) {
        tare_measure_put_loss(&text, r->measured, drop_of(s, p), 3);
        tare_strbuf_puts(&text, ", ");
    }
    tare_strbuf_printf(&text, "SQNR %.2f dB, %lld bytes", p->figures.sqnr_db, (long long)p->size_bytes);
    r->best = text.failed ? NULL : tare_arena_strdup(&r->arena, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return r->best ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status conclude(struct search *s) {
    struct tare_target_result *r = s->out;
    qsort(r->points, r->n_points, sizeof *r->points, by_size);
    mark_pareto(s);
    for (size_t i = 0; i < r->n_points; i++)
        if (r->points[i].meets && (!r->chosen || preferred(s, &r->points[i], r->chosen))) r->chosen = &r->points[i];
    return r->chosen ? TARE_OK : describe_best(s);
}

static tare_status check(const struct tare_target_task *task) {
    const struct tare_target *t = task->target;
    if (!limits_accuracy(t) && !t->max_bytes) return TARE_FAIL(TARE_INVALID_ARGUMENT, "there is no target");
    if (t->max_mae > 0 && isnan(task->float_mae))
        return TARE_FAIL(
            TARE_INVALID_ARGUMENT,
            "the records have no expected values, so there is no error to limit (name their key: --target)");
    if (!isfinite(t->max_drop) || !isnan(task->float_score)) return TARE_OK;
    if (task->measured->lower_is_better)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "the %s of the float model is 0, so there is no share of it to limit (set a limit in dB: "
                         "--min-sqnr)",
                         task->measured->title);
    return TARE_FAIL(TARE_INVALID_ARGUMENT,
                     "the measure is %s, which compares with the float model, so there is no accuracy drop to limit "
                     "(use records with labels or expected values, or set a limit in dB: --min-sqnr)",
                     task->measured->title);
}

tare_status tare_target_search(struct tare_target_result *out, const struct tare_target_task *task) {
    struct search s = { .out = out, .task = task };
    const bool accuracy = limits_accuracy(task->target);
    struct tare_target_point *p;
    bool any = true;
    size_t n;
    *out = (struct tare_target_result){ .sensitivity = task->sensitivity,
                                        .target = *task->target,
                                        .float_score = task->float_score,
                                        .measured = task->measured };
    TARE_TRY(check(task));
    out->points = TARE_NEW_ARRAY(&out->arena, struct tare_target_point, MOST_POINTS + 1);
    if (!out->points) return TARE_NO_MEMORY;
    TARE_TRY(sort_layers(&s));
    if (accuracy) {
        TARE_TRY(fewest(&n, &s));
        if (n <= s.count) TARE_TRY(thin_out(s.order, &n, &s));
        TARE_TRY(sort_layers(&s));
    }
    if (task->target->max_bytes) {
        TARE_TRY(most_that_fit(&any, &n, &s));
        TARE_TRY(measure(&p, &s, s.order, 0));
        if (any) TARE_TRY(measure(&p, &s, s.order, n));
    }
    return conclude(&s);
}

tare_status tare_target_read_size(int64_t *bytes, const char *text, int64_t whole) {
    static const struct {
        const char *name;
        double factor;
    } units[] = { { "", 1 }, { "B", 1 }, { "kB", 1e3 }, { "MB", 1e6 }, { "GB", 1e9 }, { "%", 0 } };
    char *end;
    const double value = tare_read_double(text, &end);
    for (size_t i = 0; end != text && i < sizeof units / sizeof *units; i++) {
        double size = value * (units[i].factor > 0 ? units[i].factor : (double)whole / 100);
        if (strcmp(end, units[i].name) != 0 || !(size >= 1) || !(size < 9e18)) continue;
        *bytes = (int64_t)size;
        return TARE_OK;
    }
    return TARE_FAIL(TARE_USAGE, "the size is '%s' (expected bytes, 300kB, 1.5MB or a share as 60%%)", text);
}
