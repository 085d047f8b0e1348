/* Search for the clipping range with the smallest quantization error on the histogram ("mse", "mse_symmetric").
 *
 * The candidates are [low * 2^-a, high * 2^-b], where low <= 0 <= high are the extremes extended to contain zero and
 * a, b >= 0 are exponents in octaves. A geometric grid suits activations: with long tails, the best range may
 * be orders of magnitude narrower than the extremes. The search has two stages:
 *
 * 1. A coarse grid, two points per octave and COARSE_STEPS per end. The BEST points with the smallest error are kept,
 *    because the error may have several local minima, for one because the zero point is rounded.
 * 2. From each kept point, a pattern search: move to the best of the eight neighbors while one is better (at most MOVES
 *    times), then halve the step, down to 2^-11 octaves.
 *
 * An end at 0 is not searched; symmetric ranges move both ends together, which leaves one dimension. Each candidate is
 * evaluated as it will be deployed: tare_qparams_of_range computes scale and zero point, and
 * tare_quantization_error_within sums the rounding and clipping error over prefix sums, until the sum exceeds the error
 * that the candidate must not exceed. Ties are resolved by is_better, so the result depends on the histogram only. */
#include "calib/algos/search.h"

#include <math.h>

enum {
    COARSE_STEPS = 30, /* per end, two per octave: down to about 2^-15 of the extremes */
    BEST = 4,          /* coarse points that are refined */
};
static const double COARSE_EXPONENT = 0.5, FINEST_EXPONENT = 0x1p-11;

/* A candidate range: how many octaves each end is inside the extremes, and its error. */
struct place {
    double a, b, error;
};

struct search {
    const struct tare_bins *bins;
    const struct tare_qscheme *scheme;
    double reach_low, reach_high; /* magnitudes of the extremes; 0: that end stays at 0 */
    bool together;                /* both ends move as one */
    int64_t candidates;
};

static struct tare_range range_at(const struct search *s, double a, double b) {
    return (struct tare_range){ .low = -s->reach_low * exp2(-a), .high = s->reach_high * exp2(-b) };
}

/* An error above `limit` may be incomplete. */
static struct place evaluate(struct search *s, double a, double b, double limit) {
    a = a < 0 ? 0 : a;
    b = b < 0 ? 0 : b;
    struct tare_range range = range_at(s, a, b);
    struct tare_qparams grid = tare_qparams_of_range(range.low, range.high, s->scheme);
    s->candidates++;
    return (struct place){ a, b, tare_quantization_error_within(&grid, s->bins, limit) };
}

/* Smaller error first; of equal errors the wider range, then the one with the lower low end. */
static bool is_better(const struct place *x, const struct place *y) {
    if (x->error != y->error) return x->error < y->error;
    if (x->a + x->b != y->a + y->b) return x->a + x->b < y->a + y->b;
    return x->a < y->a;
}

static void keep(struct place best[BEST], int *count, struct place place) {
    int at = *count < BEST ? (*count)++ : BEST;
    while (at > 0 && is_better(&place, &best[at - 1])) {
        if (at < BEST) best[at] = best[at - 1];
        at--;
    }
    if (at < BEST) best[at] = place;
}

/* The best of `start` and its eight neighbors. */
static struct place best_neighbour(struct search *s, struct place start, double step) {
    struct place best = start;
    for (int i = -1; i <= 1; i++) {
        for (int j = -1; j <= 1; j++) {
            bool still = i == 0 && j == 0;
            bool dead = s->together ? i != j : (i != 0 && s->reach_low == 0) || (j != 0 && s->reach_high == 0);
            if (still || dead) continue;
            struct place next = evaluate(s, start.a + i * step, start.b + j * step, best.error);
            if (is_better(&next, &best)) best = next;
        }
    }
    return best;
}

static struct place refine(struct search *s, struct place best) {
    enum { MOVES = 12 };
    for (double step = COARSE_EXPONENT / 2; step >= FINEST_EXPONENT; step *= 0.5) {
        for (int moves = 0; moves < MOVES; moves++) {
            struct place next = best_neighbour(s, best, step);
            if (next.a == best.a && next.b == best.b) break;
            best = next;
        }
    }
    return best;
}

static struct tare_range search(struct search *s) {
    struct place best[BEST];
    int count = 0;
    int steps_low = s->together || s->reach_low == 0 ? 1 : COARSE_STEPS;
    int steps_high = s->reach_high == 0 ? 1 : COARSE_STEPS;
    for (int i = 0; i < steps_low; i++) {
        for (int j = 0; j < steps_high; j++) {
            const double b = COARSE_EXPONENT * j, a = s->together ? b : COARSE_EXPONENT * i;
            keep(best, &count, evaluate(s, a, b, count < BEST ? INFINITY : best[BEST - 1].error));
        }
    }
    struct place found = best[0];
    for (int i = 0; i < count; i++) {
        struct place refined = refine(s, best[i]);
        if (is_better(&refined, &found)) found = refined;
    }
    struct tare_range range = range_at(s, found.a, found.b);
    range.candidates = s->candidates;
    return range;
}

struct tare_range tare_search_range(const struct tare_bins *bins, const struct tare_qscheme *scheme) {
    struct search s = {
        .bins = bins, .scheme = scheme, .reach_low = fmax(0, -bins->low), .reach_high = fmax(0, bins->high)
    };
    if (s.reach_low == 0 && s.reach_high == 0) return (struct tare_range){ .candidates = 1 };
    return search(&s);
}

struct tare_range tare_search_symmetric(const struct tare_bins *bins, const struct tare_qscheme *scheme) {
    double reach = fmax(fabs(bins->low), fabs(bins->high));
    struct search s = { .bins = bins, .scheme = scheme, .reach_low = reach, .reach_high = reach, .together = true };
    if (reach == 0) return (struct tare_range){ .candidates = 1 };
    return search(&s);
}
