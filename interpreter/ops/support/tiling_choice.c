#include "interpreter/ops/support/tiling_choice.h"

#include "base/arena.h"
#include "base/thread.h"
#include "interpreter/ops/support/split.h"
#include "interpreter/session.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* A tile must fit in the second-level cache together with the weights. */
enum { FLOATS_OF_TILE = 128 * 1024 };

/* The cost of writing and reading again an element of an array between two tilings, in multiply-adds that take as long,
 * where a part of the array fits in the second-level cache and where not. */
enum { COST_OF_NEAR = 3, COST_OF_FAR = 32 };

/* ---- one thread ---- */

static int64_t size_of(const struct tare_tiling_stage *stage) {
    return stage->conv.out[1] * stage->conv.out[2] * stage->conv.out_channels;
}

/* The last stage of a bfloat16 tiling is a convolution, which rounds. */
static bool can_end(const struct tare_tiling *all, int n) {
    return !all->stages[0].is_widening || tare_tiling_computes(&all->stages[n - 1]);
}

/* A tiling ends at a small tensor, so that the output written to memory is not large. */
static bool may_end(const struct tare_tiling *all, int n, int most) {
    if (!can_end(all, n)) return false;
    if (n == most) return true;
    const int64_t here = size_of(&all->stages[n - 1]);
    return here <= size_of(&all->stages[n - 2]) && here <= size_of(&all->stages[n]);
}

static bool choose_longest(struct tare_tiling *all) {
    const int most = all->n_stages;
    for (int n = most; n >= 2; n--) {
        all->n_stages = n;
        if (may_end(all, n, most) && tare_tiling_plan(all, FLOATS_OF_TILE)) return true;
    }
    return false;
}

/* ---- several threads ---- */

struct search {
    const struct tare_tiling *all;
    struct tare_pool *pool;
    int first; /* the first stage that is not a widening */
    /* by stage: the least cost of it and those that follow; 0 after the last */
    double costs[TARE_TILING_MAX_STAGES + 1];
};

/* Multiply-adds that take as long as so many lines of a stage: columns are computed in panels, and a depthwise kernel
 * computes half as many in the same time. */
static double cost_of_lines(const struct tare_tiling_stage *stage, int64_t lines) {
    const struct tare_conv *conv = &stage->conv;
    const double positions = (double)lines * (double)conv->out[2];
    if (!tare_tiling_computes(stage)) return positions * (double)conv->out_channels;
    if (conv->groups > 1) return 2 * positions * (double)conv->out_channels * (double)tare_conv_patch(conv);
    const int64_t panels = (conv->out_channels + TARE_GEMM_PANEL - 1) / TARE_GEMM_PANEL;
    return positions * (double)(panels * TARE_GEMM_PANEL) * (double)tare_conv_patch(conv);
}

/* The cost of stages [from, to) for a part of the last one's lines; at a boundary, both parts compute what both need.
 */
static double cost_of_part(const struct tare_tiling *all, int from, int to, int part, int parts) {
    int64_t first, end;
    double cost = 0;
    tare_split_part(&first, &end, all->stages[to - 1].conv.out[1], part, parts);
    for (int s = to - 1; s >= from; s--) {
        cost += cost_of_lines(&all->stages[s], end - first);
        tare_tiling_needed(&all->stages[s].conv, first, end, &first, &end);
    }
    return cost * (double)all->batch;
}

/* A convolution alone can be divided by output channels as well (split.h). */
static double cost_of_columns(const struct tare_tiling_stage *stage, double whole, int parts) {
    const int64_t columns = (stage->conv.out_channels + 2 * TARE_GEMM_PANEL - 1) / (2 * TARE_GEMM_PANEL);
    if (!tare_tiling_computes(stage) || stage->conv.groups > 1 || columns < parts) return whole;
    return whole * tare_split_imbalance(columns, parts) / parts;
}

/* The parts of stages [from, to), and their cost. */
static int choose_parts(const struct search *search, int from, int to, double *cost) {
    const struct tare_tiling *all = search->all;
    const struct tare_tiling_stage *last = &all->stages[to - 1];
    const double whole = cost_of_part(all, from, to, 0, 1), floats = (double)(size_of(last) * all->batch);
    const int parts = tare_split_count(search->pool, whole, last->conv.out[1]);
    double divided = 0;
    for (int part = 0; part < parts; part++)
        divided = fmax(divided, cost_of_part(all, from, to, part, parts));
    if (to == from + 1) divided = fmin(divided, cost_of_columns(last, whole, parts));
    divided += tare_split_least_work(search->pool);
    const int chosen = parts > 1 && divided < whole ? parts : 1;
    const double share = floats / chosen;
    *cost = chosen > 1 ? divided : whole;
    if (to < all->n_stages) *cost += share * (share > FLOATS_OF_TILE ? COST_OF_FAR : COST_OF_NEAR);
    return chosen;
}

/* Stages from `from` on are divided into tilings with the least cost: sets that cost, and returns the stage that the
 * first tiling ends before, at most `most`. */
static int best_end(struct search *search, int from, int most) {
    int best = from + 1;
    search->costs[from] = INFINITY;
    for (int to = from + 1; to <= most; to++) {
        double cost;
        if (to > from + 1 && !can_end(search->all, to)) continue;
        (void)choose_parts(search, from, to, &cost);
        if (cost + search->costs[to] > search->costs[from]) continue;
        search->costs[from] = cost + search->costs[to];
        best = to;
    }
    return best;
}

/* The first tiling of the division with the least cost, or else a shorter one. Where it begins with the stage after,
 * the same costs give the rest of the division. */
static bool choose_fastest(struct tare_tiling *all, struct tare_pool *pool) {
    struct search search = { .all = all, .pool = pool, .first = all->stages[0].is_widening ? 1 : 0 };
    const int n = all->n_stages;
    double cost;
    for (int s = n - 1; s > search.first; s--)
        (void)best_end(&search, s, n);
    for (int most = n; most > 1; most--) {
        all->n_stages = n;
        const int end = best_end(&search, search.first, most);
        all->parts = choose_parts(&search, search.first, end, &cost);
        all->n_stages = most = end;
        if (end > 1 && can_end(all, end) && tare_tiling_plan(all, FLOATS_OF_TILE)) return true;
    }
    return false;
}

/* ---- kept choices ---- */

enum { MOST_KEPT = 4 };

struct tare_kept_tiling {
    struct tare_kept_tiling *next;
    int threads, n_given;
    double least_work;
    bool is_chosen;
    struct tare_tiling tiling; /* planned; of its stages, all that were given, only the shapes are valid */
};

static bool is_same(const struct tare_tiling_stage *a, const struct tare_tiling_stage *b) {
    return a->is_padding == b->is_padding && a->is_widening == b->is_widening &&
           a->conv.pad_value == b->conv.pad_value &&
           memcmp(&a->conv, &b->conv, offsetof(struct tare_conv, pad_value)) == 0;
}

static bool fits(const struct tare_kept_tiling *kept, const struct tare_tiling *given, struct tare_pool *pool) {
    if (kept->tiling.batch != given->batch || kept->n_given != given->n_stages) return false;
    if (kept->threads != tare_pool_size(pool) || kept->least_work != tare_split_least_work(pool)) return false;
    for (int s = 0; s < given->n_stages; s++)
        if (!is_same(&given->stages[s], &kept->tiling.stages[s])) return false;
    return true;
}

/* The kept choice for these shapes; if *is_new, a place for it. It becomes the first. NULL: choices are not kept. */
static struct tare_kept_tiling *find(struct tare_kernel *kernel, const struct tare_tiling *given,
                                     struct tare_pool *pool, bool *is_new) {
    struct tare_kept_tiling **at = kernel->tilings, *found;
    *is_new = true;
    if (!at) return NULL;
    for (int i = 1; *at; i++, at = &(*at)->next) {
        *is_new = !fits(*at, given, pool);
        if (!*is_new || i == MOST_KEPT) break;
    }
    found = *at ? *at : TARE_NEW(tare_session_arena(kernel->session), struct tare_kept_tiling);
    if (!found) {
        tare_error_clear();
        return NULL;
    }
    if (*at) *at = found->next;
    found->next = *kernel->tilings;
    *kernel->tilings = found;
    return found;
}

static bool choose(struct tare_tiling *tiling, struct tare_pool *pool) {
    tiling->parts = 1;
    return pool ? choose_fastest(tiling, pool) : choose_longest(tiling);
}

bool tare_tiling_choose(struct tare_tiling *tiling, struct tare_pool *pool, struct tare_kernel *kernel) {
    bool is_new;
    struct tare_kept_tiling *kept = find(kernel, tiling, pool, &is_new);
    if (!kept) return choose(tiling, pool);
    if (is_new) {
        struct tare_kept_tiling *next = kept->next;
        *kept = (struct tare_kept_tiling){ .next = next,
                                           .threads = tare_pool_size(pool),
                                           .least_work = tare_split_least_work(pool),
                                           .n_given = tiling->n_stages,
                                           .tiling = *tiling };
        kept->is_chosen = choose(&kept->tiling, pool);
    }
    const struct tare_tiling *made = &kept->tiling;
    tiling->n_stages = made->n_stages;
    tiling->parts = made->parts;
    tiling->lines = made->lines;
    tiling->images = made->images;
    tiling->scratch = made->scratch;
    memcpy(tiling->room, made->room, sizeof tiling->room);
    return kept->is_chosen;
}
