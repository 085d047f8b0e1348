#include "interpreter/ops/support/split.h"

#include "base/alloc.h"

enum { COLUMNS = 2 * TARE_GEMM_PANEL }; /* of a whole tile */

void tare_split_part(int64_t *first, int64_t *end, int64_t units, int part, int parts) {
    *first = units * part / parts;
    *end = units * (part + 1) / parts;
}

/* Values that another processor needs or has written arrive the later, the longer a run takes: twice the work for each
 * 40 %. A power of two, so that what is chosen from it changes rarely. */
double tare_split_least_work(struct tare_pool *pool) {
    enum { LEAST = 1 << 16, MOST = 1 << 19, NANOSECONDS = 212 };
    const int64_t cost = tare_pool_cost_ns(pool);
    int64_t work = LEAST;
    for (int64_t limit = NANOSECONDS; work < MOST && cost > limit; limit += limit * 2 / 5)
        work *= 2;
    return (double)work;
}

/* Threads of the pool that are worth using for so many multiply-adds, at least 1. */
static int split_parts(struct tare_pool *pool, double work) {
    const int parts = tare_pool_size(pool);
    if (parts == 1) return 1;
    const double least = tare_split_least_work(pool);
    const int most = work < parts * least ? (int)(work / least) : parts;
    return most < 1 ? 1 : most;
}

int tare_split_count(struct tare_pool *pool, double work, int64_t units) {
    const int parts = split_parts(pool, work);
    return parts <= units ? parts : units < 1 ? 1 : (int)units;
}

struct range_split {
    tare_split_function *fn;
    void *arg;
    int64_t units;
    int parts;
};

static tare_status run_range_part(void *arg, int worker) {
    const struct range_split *s = arg;
    int64_t first, end;
    if (worker >= s->parts) return TARE_OK;
    tare_split_part(&first, &end, s->units, worker, s->parts);
    s->fn(s->arg, worker, first, end);
    return TARE_OK;
}

tare_status tare_split_range(struct tare_pool *pool, int parts, int64_t units, tare_split_function *fn, void *arg) {
    struct range_split s = { fn, arg, units, parts };
    return s.parts > 1 ? tare_pool_run(pool, run_range_part, &s) : run_range_part(&s, 0);
}

/* `parts` buffers of `floats` floats, on cache lines of their own. */
static float *buffers_new(struct tare_arena *scratch, int parts, size_t floats, size_t *stride) {
    size_t bytes;
    *stride = (floats + 15) / 16 * 16 + 16;
    if (!tare_mul_size(&bytes, *stride * sizeof(float), (size_t)parts)) return NULL;
    char *block = tare_arena_alloc(scratch, bytes + 64);
    return block ? (float *)(void *)(block + (64 - (uintptr_t)block % 64) % 64) : NULL;
}

double tare_split_imbalance(int64_t units, int parts) {
    return (double)((units + parts - 1) / parts * parts) / (double)units;
}

/* ---- convolutions ---- */

struct conv_split {
    const struct tare_conv *conv;
    float *output;
    const float *input, *weights;
    const struct tare_gemm_epilogue *epilogue;
    float *scratch;
    size_t stride; /* floats from one part's scratch to the next */
    int64_t units; /* lines of all images, or groups of COLUMNS output channels */
    int parts;
    bool by_columns;
};

static void run_whole(const struct conv_split *s, float *scratch) {
    if (tare_conv_is_depthwise(s->conv))
        tare_conv_depthwise(s->output, s->conv, s->input, s->weights, s->epilogue, scratch);
    else
        tare_conv_dense(s->output, s->conv, s->input, s->weights, s->epilogue, scratch);
}

/* Lines [first, end) of all images. */
static void run_lines(const struct conv_split *s, int64_t first, int64_t end, float *scratch) {
    const int64_t line = s->conv->out[2] * s->conv->out_channels;
    for (int64_t at = first; at < end;) {
        const int64_t h = at % s->conv->out[1], count = s->conv->out[1] - h < end - at ? s->conv->out[1] - h : end - at;
        struct tare_gemm_epilogue epilogue;
        struct tare_conv part;
        const int64_t offset = tare_conv_take_lines(&part, s->conv, at, count);
        if (s->epilogue) epilogue = tare_epilogue_shifted(s->epilogue, at * line, 0);
        const struct conv_split lines = { .conv = &part,
                                          .output = s->output + at * line,
                                          .input = s->input + offset,
                                          .weights = s->weights,
                                          .epilogue = !s->epilogue ? NULL : &epilogue };
        run_whole(&lines, scratch);
        at += count;
    }
}

static tare_status run_conv_part(void *arg, int worker) {
    const struct conv_split *s = arg;
    int64_t first, end;
    if (worker >= s->parts) return TARE_OK;
    float *scratch = s->scratch + (size_t)worker * s->stride;
    tare_split_part(&first, &end, s->units, worker, s->parts);
    if (!s->by_columns) {
        run_lines(s, first, end, scratch);
        return TARE_OK;
    }
    const int64_t last = end * COLUMNS < s->conv->out_channels ? end * COLUMNS : s->conv->out_channels;
    tare_conv_dense_columns(s->output, s->conv, s->input, s->weights, s->epilogue, scratch, first * COLUMNS,
                            last - first * COLUMNS);
    return TARE_OK;
}

/* A depthwise kernel computes half as many multiply-adds in the same time. */
static double work_of_conv(const struct tare_conv *conv) {
    const double work = (double)tare_conv_rows(conv) * (double)conv->out_channels * (double)tare_conv_patch(conv);
    return tare_conv_is_depthwise(conv) ? 2 * work : work;
}

/* Columns read the weights once and the input several times, lines the other way round. */
static void choose_conv_parts(struct conv_split *s, struct tare_pool *pool) {
    const struct tare_conv *conv = s->conv;
    const double work = work_of_conv(conv);
    const int64_t lines = tare_conv_has_lines(conv) ? conv->batch * conv->in[0] * conv->out[1] : 1;
    const int64_t columns = tare_conv_has_columns(conv) ? (conv->out_channels + COLUMNS - 1) / COLUMNS : 1;
    const int by_lines = tare_split_count(pool, work, lines), by_columns = tare_split_count(pool, work, columns);
    const bool heavy = (double)conv->out_channels > (double)tare_conv_rows(conv);
    s->by_columns = by_columns > by_lines ||
                    (by_columns == by_lines && by_columns > 1 &&
                     tare_split_imbalance(columns, by_columns) <= tare_split_imbalance(lines, by_lines) + 0.02 &&
                     (heavy || tare_split_imbalance(lines, by_lines) > tare_split_imbalance(columns, by_columns)));
    s->units = s->by_columns ? columns : lines;
    s->parts = s->by_columns ? by_columns : by_lines;
}

/* Scratch of the largest part: that of a part's lines is at most that of the whole. */
static size_t conv_scratch(const struct tare_conv *conv) {
    return tare_conv_is_depthwise(conv) ? tare_conv_depthwise_scratch(conv) : tare_conv_dense_scratch(conv);
}

tare_status tare_split_conv(struct tare_pool *pool, struct tare_arena *scratch, float *output,
                            const struct tare_conv *conv, const float *input, const float *weights,
                            const struct tare_gemm_epilogue *epilogue) {
    struct conv_split s = {
        .conv = conv, .output = output, .input = input, .weights = weights, .epilogue = epilogue, .parts = 1
    };
    if (pool) choose_conv_parts(&s, pool);
    s.scratch = buffers_new(scratch, s.parts, conv_scratch(conv), &s.stride);
    if (!s.scratch) return TARE_NO_MEMORY;
    if (s.parts > 1) return tare_pool_run(pool, run_conv_part, &s);
    run_whole(&s, s.scratch);
    return TARE_OK;
}

/* ---- products ---- */

struct gemm_split {
    const struct tare_split_product *product;
    float *scratch;
    size_t stride;
    int64_t unit, units; /* rows or columns */
    int parts;
    bool by_rows;
};

static tare_status run_gemm_part(void *arg, int worker) {
    const struct gemm_split *s = arg;
    const struct tare_split_product *p = s->product;
    struct tare_gemm_rows rows = *p->rows;
    struct tare_gemm_epilogue epilogue;
    const int64_t all = s->by_rows ? p->m : p->n;
    int64_t first, end;
    if (worker >= s->parts) return TARE_OK;
    tare_split_part(&first, &end, s->units, worker, s->parts);
    first *= s->unit;
    end = end * s->unit < all ? end * s->unit : all;
    const int64_t row = s->by_rows ? first : 0, column = s->by_rows ? 0 : first;
    if (s->by_rows) rows.data += row * rows.stride;
    if (p->epilogue) epilogue = tare_epilogue_shifted(p->epilogue, row * p->ldc + column, column);
    tare_gemm(p->c + row * p->ldc + column, p->ldc, &rows, p->packed + column * p->k, s->by_rows ? end - row : p->m,
              s->by_rows ? p->n : end - column, p->k, !p->epilogue ? NULL : &epilogue,
              s->scratch + (size_t)worker * s->stride);
    return TARE_OK;
}

tare_status tare_split_gemm(struct tare_pool *pool, struct tare_arena *scratch,
                            const struct tare_split_product *product) {
    const double work = (double)product->m * (double)product->n * (double)product->k;
    struct gemm_split s = { .product = product, .parts = 1, .unit = COLUMNS };
    s.by_rows = product->rows->data && product->m > product->n;
    if (s.by_rows) s.unit = TARE_GEMM_TILE_ROWS;
    if (pool) {
        s.units = ((s.by_rows ? product->m : product->n) + s.unit - 1) / s.unit;
        s.parts = tare_split_count(pool, work, s.units);
    }
    s.scratch = buffers_new(scratch, s.parts, tare_gemm_scratch_floats(), &s.stride);
    if (!s.scratch) return TARE_NO_MEMORY;
    if (s.parts > 1) return tare_pool_run(pool, run_gemm_part, &s);
    tare_gemm(product->c, product->ldc, product->rows, product->packed, product->m, product->n, product->k,
              product->epilogue, s.scratch);
    return TARE_OK;
}

/* ---- tiled execution ---- */

struct tiling_split {
    const struct tare_tiling *tiling;
    void *output;
    const void *input;
    float *scratch;
    size_t stride;
};

static tare_status run_tiling_part(void *arg, int worker) {
    const struct tiling_split *s = arg;
    if (worker < s->tiling->parts)
        tare_tiling_run_part(s->tiling, s->output, s->input, s->scratch + (size_t)worker * s->stride, worker);
    return TARE_OK;
}

tare_status tare_split_tiling(struct tare_pool *pool, struct tare_arena *scratch, const struct tare_tiling *tiling,
                              void *output, const void *input) {
    struct tiling_split s = { .tiling = tiling, .output = output, .input = input };
    const size_t floats = tare_tiling_scratch(tiling);
    s.scratch = floats ? buffers_new(scratch, tiling->parts, floats, &s.stride) : NULL;
    if (!s.scratch) return TARE_NO_MEMORY;
    return tiling->parts > 1 ? tare_pool_run(pool, run_tiling_part, &s) : run_tiling_part(&s, 0);
}
