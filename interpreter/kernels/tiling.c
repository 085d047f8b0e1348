#include "interpreter/kernels/tiling.h"

#include "base/alloc.h"
#include "base/clamp.h"
#include "base/control.h"
#include "base/tensor/number.h"
#include "interpreter/kernels/bfloat16_to_float.h"

#include <math.h>
#include <string.h>

/* The array between two stages; level 0 is the tiling's input, the last one its output. Of the others a buffer holds
 * the lines [first, end). */
struct level {
    float *data;
    int64_t line;       /* floats */
    int64_t lines;      /* of the whole array */
    int64_t first, end; /* of the input all lines, of the output none before `end` is looked at again */
    int64_t keep;       /* lines in front of it are needed no more */
    int64_t room;       /* most lines held so far */
    float most;         /* bound of the magnitudes, of a bfloat16 tiling; INFINITY: not known */
};

struct walk {
    const struct tare_tiling *tiling;
    enum tare_cpu_level level;
    bool compute; /* else it is only counted what is needed */
    struct level levels[TARE_TILING_MAX_STAGES + 1];
    const void *input;
    struct tare_gemm_epilogue last; /* of the last stage of a bfloat16 tiling */
    float *scratch;
    int64_t scratch_floats; /* needed */
    int64_t images, first_image;
    bool whole; /* one tile: every array from its first line to its last, so that images follow each other */
};

bool tare_tiling_supports(const struct tare_tiling_stage *stage) {
    const struct tare_conv *conv = &stage->conv;
    if (conv->in[0] != 1 || conv->out[0] != 1 || conv->kernel[0] != 1 || conv->stride[0] != 1 || conv->pad[0] != 0)
        return false;
    for (int i = 0; i < 3; i++) {
        if (conv->base_dilation[i] != 1 || conv->pad[i] < 0 || conv->kernel[i] < 1 || conv->in[i] < 1 ||
            conv->out[i] < 1)
            return false;
    }
    if (conv->in_channels < 1 || conv->out_channels < 1) return false;
    if (!tare_tiling_computes(stage)) return conv->in_channels == conv->out_channels;
    return conv->groups == 1 || (tare_conv_is_depthwise(conv) && conv->in_channels == conv->out_channels);
}

void tare_tiling_needed(const struct tare_conv *conv, int64_t from, int64_t to, int64_t *first, int64_t *end) {
    const int64_t reach = (conv->kernel[1] - 1) * conv->dilation[1] + 1;
    *first = tare_clamp(from * conv->stride[1] - conv->pad[1], 0, conv->in[1]);
    *end = tare_clamp((to - 1) * conv->stride[1] - conv->pad[1] + reach, *first, conv->in[1]);
}

/* ---- one stage ---- */

static void pad_lines(const struct tare_conv *conv, float *output, const float *input, int64_t from, int64_t to) {
    const int64_t in_line = conv->in[2] * conv->in_channels, out_line = conv->out[2] * conv->in_channels;
    const int64_t left = tare_clamp(conv->pad[2] * conv->in_channels, 0, out_line);
    const int64_t inside = in_line < out_line - left ? in_line : out_line - left;
    int64_t held = tare_clamp(from - conv->pad[1], 0, conv->in[1]); /* the line that `input` begins with */
    for (int64_t line = from; line < to; line++, output += out_line) {
        const int64_t source = line - conv->pad[1];
        if (source < 0 || source >= conv->in[1]) {
            memset(output, 0, (size_t)out_line * sizeof *output);
            continue;
        }
        memset(output, 0, (size_t)left * sizeof *output);
        memcpy(output + left, input + (source - held) * in_line, (size_t)inside * sizeof *output);
        memset(output + left + inside, 0, (size_t)(out_line - left - inside) * sizeof *output);
    }
}

/* bfloat16 lines [from, to) of each image. */
static void widen_lines(struct walk *walk, float *output, int64_t from, int64_t to) {
    const struct level *in = &walk->levels[0];
    struct level *out = &walk->levels[1];
    const int64_t count = (to - from) * in->line;
    for (int64_t i = 0; i < walk->images; i++, output += out->lines * out->line) {
        const uint16_t *lines = (const uint16_t *)walk->input + (i * in->lines + from) * in->line;
        out->most = tare_widen_at(walk->level, output, lines, count, out->most);
    }
}

static const struct tare_gemm_epilogue *epilogue_of(const struct walk *walk, int s) {
    return walk->last.to && s == walk->tiling->n_stages - 1 ? &walk->last : walk->tiling->stages[s].epilogue;
}

/* Where lines from `from` on of the level are stored; of a bfloat16 output only the current tile is. */
static float *lines_of(const struct walk *walk, const struct level *level, int64_t from) {
    if (walk->last.to && level == &walk->levels[walk->tiling->n_stages]) return level->data;
    return level->data + (from - level->first) * level->line;
}

/* Sets the bound of a stage's output from that of its input. True if all sums of its bounded epilogue are known to be
 * within the bound that the epilogue requires; then none of them is NaN. */
static bool set_bound(struct walk *walk, int s, const struct tare_gemm_epilogue *epilogue) {
    const struct tare_tiling_bounds *bounds = walk->tiling->stages[s].bounds;
    const float in = walk->levels[s].most;
    float *out = &walk->levels[s + 1].most;
    const bool is_certain = bounds && in * bounds->sum <= TARE_EPILOGUE_MOST;
    *out = walk->tiling->stages[s].is_padding ? in : INFINITY;
    if (!is_certain || epilogue->addend_bfloat16) return is_certain;
    *out = in * bounds->gain + bounds->offset;
    if (epilogue->relu && epilogue->limit < *out) *out = epilogue->limit;
    return true;
}

/* Lines [from, to) of stage `s`, appended to its level; the level before has the lines they need. */
static void run_stage(struct walk *walk, int s, int64_t from, int64_t to) {
    const struct tare_tiling_stage *stage = &walk->tiling->stages[s];
    const struct level *in = &walk->levels[s], *out = &walk->levels[s + 1];
    const bool has_scratch = tare_tiling_computes(stage) && stage->conv.groups == 1;
    int64_t first, end;
    if (!walk->compute && !has_scratch) return;
    struct tare_conv conv = stage->conv;
    tare_tiling_needed(&stage->conv, from, to, &first, &end);
    if (walk->whole) first = 0, end = conv.in[1];
    conv.batch = walk->images;
    conv.in[1] = end - first;
    conv.out[1] = to - from;
    conv.pad[1] = first - (from * conv.stride[1] - stage->conv.pad[1]);
    if (!walk->compute) {
        const int64_t floats = (int64_t)tare_conv_dense_scratch(&conv);
        if (floats > walk->scratch_floats) walk->scratch_floats = floats;
        return;
    }
    float *output = lines_of(walk, out, from);
    if (stage->is_widening) {
        widen_lines(walk, output, from, to);
        return;
    }
    const float *input = s == 0 ? walk->input : in->data;
    struct tare_gemm_epilogue shifted;
    const struct tare_gemm_epilogue *epilogue = epilogue_of(walk, s);
    const bool is_certain = set_bound(walk, s, epilogue);
    input += (first - in->first) * in->line;
    if (epilogue) {
        shifted = tare_epilogue_shifted(epilogue, (walk->first_image * out->lines + from) * out->line, 0);
        shifted.is_certain = is_certain;
    }
    if (stage->is_padding) {
        for (int64_t i = 0; i < walk->images; i++)
            pad_lines(&stage->conv, output + i * out->lines * out->line, input + i * in->lines * in->line, from, to);
    } else if (conv.groups > 1) {
        tare_conv_depthwise_at(walk->level, output, &conv, input, stage->weights, !epilogue ? NULL : &shifted, NULL);
    } else {
        tare_conv_dense_at(walk->level, output, &conv, input, stage->weights, !epilogue ? NULL : &shifted,
                           walk->scratch);
    }
}

/* ---- tiles ---- */

/* Drops the lines that are not needed any more and makes room for those up to `end`. */
static void slide(struct walk *walk, struct level *level, int64_t end) {
    const int64_t drop = level->keep - level->first;
    if (drop > 0) {
        if (walk->compute)
            memmove(level->data, level->data + drop * level->line,
                    (size_t)((level->end - level->keep) * level->line) * sizeof *level->data);
        level->first = level->keep;
    }
    if (end - level->first > level->room) level->room = end - level->first;
}

/* Output lines of stage 1 at a time, so that the lines that stage 0 converts are still in the first-level cache when
 * they are used. All of them where the weights do not fit in the cache as well, or a piece would be small. */
static int64_t lines_of_piece(const struct tare_tiling *tiling) {
    enum { MOST_FLOATS = 6 * 1024, MOST_WEIGHTS = 5 * 1024, LEAST_POSITIONS = 128 };
    const struct tare_conv *conv = &tiling->stages[1].conv;
    const int64_t line = conv->in[2] * conv->in_channels;
    const int64_t lines = (MOST_FLOATS / line - conv->kernel[1] + 1) / conv->stride[1];
    const bool is_large = tare_conv_patch(conv) * conv->out_channels > MOST_WEIGHTS;
    if (tiling->images > 1 || !tare_tiling_computes(&tiling->stages[1]) || is_large) return INT64_MAX;
    return lines * conv->out[2] < LEAST_POSITIONS ? INT64_MAX : lines;
}

/* Stages 0, a widening, and 1 up to output line `to` of stage 1, in pieces. */
static void run_widened(struct walk *walk, int64_t to) {
    const int64_t most = lines_of_piece(walk->tiling);
    struct level *in = &walk->levels[1], *out = &walk->levels[2];
    const bool whole = walk->whole;
    walk->whole = false;
    while (out->end < to) {
        const int64_t piece = to - out->end > most ? out->end + most : to;
        int64_t first, end;
        tare_tiling_needed(&walk->tiling->stages[1].conv, out->end, piece, &first, &end);
        in->keep = tare_clamp(first, in->first, in->end);
        slide(walk, in, end);
        if (end > in->end) run_stage(walk, 0, in->end, end);
        in->end = end > in->end ? end : in->end;
        run_stage(walk, 1, out->end, piece);
        out->end = piece;
    }
    walk->whole = whole;
}

/* The next tile: output lines up to `to`. */
static void run_tile(struct walk *walk, int64_t to) {
    const int n = walk->tiling->n_stages;
    int64_t expected[TARE_TILING_MAX_STAGES + 1];
    expected[n] = to;
    for (int s = n - 1; s >= 0; s--) {
        struct level *in = &walk->levels[s];
        const struct level *out = &walk->levels[s + 1];
        int64_t first, end;
        tare_tiling_needed(&walk->tiling->stages[s].conv, out->end, expected[s + 1], &first, &end);
        expected[s] = end > in->end && expected[s + 1] > out->end ? end : in->end;
        if (walk->whole) expected[s] = in->lines;
        in->keep = first < in->end ? first : in->end;
        if (in->keep < in->first) in->keep = in->first;
    }
    int s = 0;
    if (n > 1 && walk->tiling->stages[0].is_widening && lines_of_piece(walk->tiling) < INT64_MAX) {
        if (n > 2) slide(walk, &walk->levels[2], expected[2]);
        run_widened(walk, expected[2]);
        s = 2;
    }
    for (; s < n; s++) {
        struct level *out = &walk->levels[s + 1];
        if (s + 1 < n) slide(walk, out, expected[s + 1]);
        if (expected[s + 1] > out->end) run_stage(walk, s, out->end, expected[s + 1]);
        out->end = expected[s + 1];
    }
}

/* Output lines [*first, *end) of a part of each image. */
static void lines_of_part(const struct tare_tiling *tiling, int part, int64_t *first, int64_t *end) {
    const int64_t all = tiling->stages[tiling->n_stages - 1].conv.out[1];
    *first = all * part / tiling->parts;
    *end = all * (part + 1) / tiling->parts;
}

/* Empty buffers, before output line `from` is computed. */
static void start_at(struct walk *walk, int64_t from) {
    const int n = walk->tiling->n_stages;
    walk->levels[n].first = walk->levels[n].end = from;
    for (int s = n - 1; s >= 1; s--) {
        struct level *in = &walk->levels[s];
        const int64_t out = walk->levels[s + 1].end;
        int64_t first, end;
        tare_tiling_needed(&walk->tiling->stages[s].conv, out, out + 1, &first, &end);
        in->first = in->end = in->keep = first;
    }
}

static void run_images(struct walk *walk, int64_t lines, int part) {
    int64_t from, all;
    lines_of_part(walk->tiling, part, &from, &all);
    start_at(walk, from);
    walk->whole = walk->tiling->parts == 1 && lines >= all;
    for (int64_t to = from + lines; to < all + lines; to += lines)
        run_tile(walk, to < all ? to : all);
}

static void open_walk(struct walk *walk, const struct tare_tiling *tiling) {
    *walk = (struct walk){ .tiling = tiling, .images = 1 };
    for (int s = 0; s < tiling->n_stages; s++) {
        const struct tare_conv *conv = &tiling->stages[s].conv;
        walk->levels[s].line = conv->in[2] * conv->in_channels;
        walk->levels[s].lines = conv->in[1];
        walk->levels[s + 1].line = conv->out[2] * conv->out_channels;
        walk->levels[s + 1].lines = conv->out[1];
    }
    walk->levels[0].end = walk->levels[0].lines;
}

/* ---- plan ---- */

/* Buffers and scratch for tiles of `lines`; floats of the buffers and of a tile's input and output. */
static int64_t measure(struct tare_tiling *tiling, int64_t lines) {
    struct walk walk;
    int64_t floats = 0;
    open_walk(&walk, tiling);
    walk.images = tiling->images;
    for (int part = 0; part < tiling->parts; part++)
        run_images(&walk, lines, part);
    const struct level *input = &walk.levels[0], *output = &walk.levels[tiling->n_stages];
    floats += lines * output->line + (lines * input->lines + output->lines - 1) / output->lines * input->line;
    tiling->lines = lines;
    tiling->scratch = walk.scratch_floats;
    for (int s = 1; s < tiling->n_stages; s++) {
        tiling->room[s] = walk.levels[s].room;
        floats += walk.levels[s].room * walk.levels[s].line;
    }
    return floats;
}

/* Floats of the intermediate arrays, of the first input and last output (one image), and of all weights. */
static int64_t count_between(const struct tare_tiling *tiling) {
    int64_t floats = 0;
    for (int s = 1; s < tiling->n_stages; s++) {
        const struct tare_conv *conv = &tiling->stages[s].conv;
        floats += conv->in[1] * conv->in[2] * conv->in_channels;
    }
    return floats;
}
static int64_t count_ends(const struct tare_tiling *tiling) {
    const struct tare_conv *first = &tiling->stages[0].conv, *last = &tiling->stages[tiling->n_stages - 1].conv;
    return first->in[1] * first->in[2] * first->in_channels + last->out[1] * last->out[2] * last->out_channels;
}
static int64_t count_weights(const struct tare_tiling *tiling) {
    int64_t floats = 0;
    for (int s = 0; s < tiling->n_stages; s++) {
        const struct tare_conv *conv = &tiling->stages[s].conv;
        if (tare_tiling_computes(&tiling->stages[s])) floats += tare_conv_patch(conv) * conv->out_channels;
    }
    return floats;
}

static int count_convolutions(const struct tare_tiling *tiling) {
    int count = 0;
    for (int s = 0; s < tiling->n_stages; s++)
        count += tare_tiling_computes(&tiling->stages[s]);
    return count;
}

/* ---- bounds ---- */

/* Adds the magnitudes of `rows` rows of packed weights to the sums of a panel. */
static void add_packed(float sums[TARE_GEMM_PANEL], const float *weights, int64_t rows) {
    for (int64_t i = 0; i < rows; i++, weights += TARE_GEMM_PANEL)
        for (int j = 0; j < TARE_GEMM_PANEL; j++)
            sums[j] += fabsf(weights[j]);
}

static void add_filter(float *sums, const float *weights, int64_t rows, int64_t stride, int64_t columns) {
    for (int64_t i = 0; i < rows; i++, weights += stride)
        for (int64_t j = 0; j < columns; j++)
            sums[j] += fabsf(weights[j]);
}

/* Rounding increases magnitudes by less than this factor: the additions of at most 2^20 weights' magnitudes, as many
 * products in the convolution, and the steps of the epilogue. */
static const float slack = 1.25f;

static void add_column(struct tare_tiling_bounds *bounds, const struct tare_gemm_epilogue *e, float sum, int64_t j) {
    const float shift = (e->bias ? fabsf(e->bias[j]) : 0) + (e->mean ? fabsf(e->mean[j]) : 0);
    const float factor = e->mean ? fabsf(e->factor[j]) : 1, offset = e->mean ? fabsf(e->offset[j]) : 0;
    bounds->sum = fmaxf(bounds->sum, slack * sum);
    bounds->gain = fmaxf(bounds->gain, slack * sum * factor);
    bounds->offset = fmaxf(bounds->offset, slack * (shift * factor + offset));
}

struct tare_tiling_bounds tare_tiling_bounds_of(const struct tare_conv *conv, const float *weights,
                                                const struct tare_gemm_epilogue *epilogue) {
    const int64_t columns = conv->out_channels, rows = tare_conv_patch(conv);
    struct tare_tiling_bounds bounds = { 0 };
    for (int64_t first = 0; first < columns; first += TARE_GEMM_PANEL) {
        const int64_t left = columns - first, count = left < TARE_GEMM_PANEL ? left : TARE_GEMM_PANEL;
        float sums[TARE_GEMM_PANEL] = { 0 };
        if (conv->groups == 1)
            add_packed(sums, weights + first * rows, rows);
        else
            add_filter(sums, weights + first, rows, columns, count);
        for (int64_t j = 0; j < count; j++)
            add_column(&bounds, epilogue, sums[j], first + j);
    }
    return bounds;
}

bool tare_tiling_plan(struct tare_tiling *tiling, int64_t floats) {
    const int64_t height = tiling->stages[tiling->n_stages - 1].conv.out[1];
    if (tiling->parts < 1) tiling->parts = 1;
    if (tiling->parts > height) tiling->parts = (int)height;
    const int64_t all = (height + tiling->parts - 1) / tiling->parts; /* lines of a part */
    if (tiling->n_stages < 2 || tiling->n_stages > TARE_TILING_MAX_STAGES || tiling->batch < 1) return false;
    const int64_t between = count_between(tiling), weights = count_weights(tiling);
    const int64_t image = between + count_ends(tiling);
    int64_t tiles = (image / tiling->parts + floats - 1) / floats, lines = 0;
    tiling->images = tiling->parts > 1 ? 1 : tare_clamp(floats / image, 1, tiling->batch);
    for (int64_t before = 0;; tiles++, before = lines) {
        lines = (all + tiles - 1) / tiles;
        if (lines == before) continue;
        if (measure(tiling, lines) <= floats || lines == 1 || tiling->images > 1) break;
    }
    const int64_t passes = (all + lines - 1) / lines * ((tiling->batch + tiling->images - 1) / tiling->images);
    /* Each part reads the weights as well, as the parts of one convolution always do. */
    const int64_t readers = count_convolutions(tiling) > 1 ? tiling->parts : 1;
    return weights * (passes * readers - 1) <= between * tiling->batch;
}

size_t tare_tiling_scratch(const struct tare_tiling *tiling) {
    int64_t floats = tiling->scratch + 16;
    for (int s = 1; s < tiling->n_stages; s++) {
        const struct tare_conv *conv = &tiling->stages[s].conv;
        int64_t level;
        if (!tare_mul_i64(&level, tiling->room[s] * tiling->images, conv->in[2] * conv->in_channels + 16) ||
            !tare_add_i64(&floats, floats, level) || floats > INT64_MAX / (int64_t)sizeof(float))
            return 0;
    }
    if (tiling->stages[0].is_widening) {
        const struct tare_conv *conv = &tiling->stages[tiling->n_stages - 1].conv;
        int64_t level;
        if (!tare_mul_i64(&level, tiling->lines * tiling->images, conv->out[2] * conv->out_channels) ||
            !tare_add_i64(&floats, floats, level) || floats > INT64_MAX / (int64_t)sizeof(float))
            return 0;
    }
    return (size_t)floats;
}

static void run_part(enum tare_cpu_level level, const struct tare_tiling *tiling, void *output, const void *input,
                     float *scratch, int part) {
    const int n = tiling->n_stages;
    struct walk walk;
    open_walk(&walk, tiling);
    walk.level = level;
    walk.compute = true;
    walk.scratch = scratch;
    scratch += (tiling->scratch + 15) / 16 * 16;
    for (int s = 1; s < n; s++) {
        walk.levels[s].data = scratch;
        scratch += (tiling->room[s] * tiling->images * walk.levels[s].line + 15) / 16 * 16;
    }
    const bool is_bfloat16 = tiling->stages[0].is_widening;
    if (is_bfloat16) {
        walk.last = *tiling->stages[n - 1].epilogue;
        walk.last.to = output;
    }
    int64_t from, end;
    lines_of_part(tiling, part, &from, &end);
    for (int64_t i = 0; i < tiling->batch; i += tiling->images) {
        if (tare_control_is_stopped()) return;
        walk.first_image = i;
        walk.images = tiling->batch - i < tiling->images ? tiling->batch - i : tiling->images;
        const int64_t in = i * walk.levels[0].lines * walk.levels[0].line;
        walk.input = is_bfloat16 ? (const void *)((const uint16_t *)input + in) : (const float *)input + in;
        walk.levels[n].data =
            is_bfloat16 ? scratch : (float *)output + (i * walk.levels[n].lines + from) * walk.levels[n].line;
        run_images(&walk, tiling->lines, part);
    }
}

void tare_tiling_run_part(const struct tare_tiling *tiling, void *output, const void *input, float *scratch, int part) {
    run_part(tare_cpu_level(), tiling, output, input, scratch, part);
}

void tare_tiling_run_at(enum tare_cpu_level level, const struct tare_tiling *tiling, void *output, const void *input,
                        float *scratch) {
    for (int part = 0; part < tiling->parts; part++)
        run_part(level, tiling, output, input, scratch, part);
}
