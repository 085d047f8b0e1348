/* Dividing int8 convolutions (exact_split.h).
 *
 * A part is a range of units. Units are output lines of all images (two or four where a kernel computes them together),
 * groups of positions where the convolution is a matrix product, or groups of output channels. Parts of output channels
 * read the whole input, but only their own weights; they are chosen for weights that are larger than the input. Sums
 * that are passed to a consumer are those of whole positions, so output channels are divided only where the kernel
 * requantizes. */
#include "interpreter/ops/support/exact_split.h"

#include "base/alloc.h"
#include "interpreter/kernels/integer/conv_int_direct.h"
#include "interpreter/kernels/integer/conv_int_phases.h"
#include "interpreter/kernels/integer/winograd_int.h"
#include "interpreter/kernels/integer/winograd_vnni.h"
#include "interpreter/ops/support/split.h"

#include <pthread.h>
#include <string.h>

enum { POSITIONS = 14, CHANNELS = 64, ALIGNMENT = 64 }; /* of 14, 28 and 56 positions a line: equal parts */

/* What is divided, and the memory of the parts. */
struct split {
    const struct tare_exact_run *run;
    struct tare_conv conv; /* as run->conv; lines of one position if it is a matrix product */
    int64_t unit;          /* lines or output channels of a unit */
    int64_t units;
    int parts;
    bool by_channels;
    const struct tare_requantize *requantize; /* NULL: none */
    pthread_mutex_t lock;                     /* of the consumer */
    struct part *memory;
};

struct part {
    struct split *split;
    int64_t first; /* element of the consumer or the output at which the current lines begin */
    int32_t *sums;
    void *scratch;
    struct tare_requantize requantize; /* with ranges of its own */
    struct tare_value_range range;
};

static enum tare_exact_kernel kernel_of(const struct split *s) {
    return s->run->choice->kernel;
}
static enum tare_igemm_form form_of(const struct split *s) {
    return s->run->choice->form;
}

/* ---- geometry ---- */

static bool is_product(const struct tare_conv *conv) {
    return conv->groups == 1 && conv->kernel[0] == 1 && conv->kernel[1] == 1 && conv->kernel[2] == 1 &&
           conv->stride[1] == 1 && conv->stride[2] == 1 && conv->pad[1] == 0 && conv->pad[2] == 0 &&
           conv->out[1] == conv->in[1] && conv->out[2] == conv->in[2] && tare_conv_has_lines(conv);
}

/* A matrix product with one row per line. */
static struct tare_conv as_rows(const struct tare_conv *conv) {
    struct tare_conv rows = *conv;
    rows.batch = rows.in[0] = rows.out[0] = rows.in[2] = rows.out[2] = 1;
    rows.in[1] = rows.out[1] = tare_conv_rows(conv);
    return rows;
}

static int64_t units_per_image(const struct split *s) {
    return (s->conv.out[1] + s->unit - 1) / s->unit;
}

/* ---- kernels ---- */

static int64_t sums_of(const struct tare_exact_choice *choice, const struct tare_conv *conv) {
    switch (choice->kernel) {
    case TARE_EXACT_DIRECT:
        return tare_conv_int_direct_sums(conv);
    case TARE_EXACT_WINOGRAD:
        return tare_winograd_int_sums(conv);
    case TARE_EXACT_WINOGRAD_VNNI:
        return tare_winograd_vnni_sums(conv);
    case TARE_EXACT_DEPTHWISE:
        return tare_conv_int_depthwise_sums(tare_cpu_level(), conv);
    case TARE_EXACT_PHASES:
        return tare_conv_int_phases_sums(conv);
    default:
        return tare_conv_int_block_sums(conv);
    }
}

static size_t scratch_of(const struct tare_exact_choice *choice, const struct tare_conv *conv) {
    switch (choice->kernel) {
    case TARE_EXACT_DIRECT:
        return tare_conv_int_direct_scratch(choice->form, conv);
    case TARE_EXACT_WINOGRAD:
        return tare_winograd_int_scratch(conv);
    case TARE_EXACT_WINOGRAD_VNNI:
        return tare_winograd_vnni_scratch(conv);
    case TARE_EXACT_DEPTHWISE:
        return tare_conv_int_depthwise_scratch_bytes(tare_cpu_level(), conv);
    case TARE_EXACT_PHASES:
        return tare_conv_int_phases_scratch(choice->form, conv);
    default:
        return tare_igemm_scratch_bytes();
    }
}

void tare_exact_measure(struct tare_exact_choice *choice, const struct tare_conv *conv) {
    choice->sums = sums_of(choice, conv);
    choice->bytes = scratch_of(choice, conv);
}

static void run_kernel(const struct part *part, const struct tare_conv_int_sink *sink, const struct tare_conv *conv,
                       const void *input) {
    const struct tare_exact_run *run = part->split->run;
    const enum tare_igemm_form form = run->choice->form;
    int32_t *output = run->consumer ? NULL : run->output + part->first;
    switch (run->choice->kernel) {
    case TARE_EXACT_DIRECT:
        tare_conv_int_direct_at(tare_cpu_level(), sink, conv, input, form, run->packed, part->sums, part->scratch);
        break;
    case TARE_EXACT_WINOGRAD:
        tare_winograd_int_at(tare_cpu_level(), sink, conv, input, run->packed, part->sums, part->scratch);
        break;
    case TARE_EXACT_WINOGRAD_VNNI:
        tare_winograd_vnni_run(sink, conv, input, run->packed, part->sums, part->scratch);
        break;
    case TARE_EXACT_PHASES:
        tare_conv_int_phases_at(tare_cpu_level(), sink, conv, input, form, run->packed, part->sums, part->scratch);
        break;
    case TARE_EXACT_DEPTHWISE:
        if (output)
            tare_conv_int_depthwise_at(tare_cpu_level(), output, conv, input, run->packed, part->scratch);
        else
            tare_conv_int_depthwise_to(tare_cpu_level(), sink, conv, input, run->packed, part->sums, part->scratch);
        break;
    default:
        if (output)
            tare_conv_int_dense(output, conv, input, form, run->packed, part->scratch);
        else
            tare_conv_int_dense_to(sink, conv, input, form, run->packed, part->sums, part->scratch);
        break;
    }
}

/* ---- parts ---- */

/* Stores sums, or passes them to the consumer. */
static void take(void *arg, int32_t *sums, int64_t first, int64_t count) {
    const struct part *part = arg;
    struct split *s = part->split;
    struct tare_consumer *consumer = s->run->consumer;
    if (!consumer) {
        memcpy(s->run->output + part->first + first, sums, (size_t)count * sizeof *sums);
        return;
    }
    pthread_mutex_lock(&s->lock);
    consumer->take(consumer, sums, part->first + first, count);
    pthread_mutex_unlock(&s->lock);
}

static void take_floats(void *arg, const float *floats, int64_t first, int64_t count) {
    const struct part *part = arg;
    struct tare_consumer *consumer = part->split->run->consumer;
    pthread_mutex_lock(&part->split->lock);
    consumer->take_floats(consumer, floats, part->first + first, count);
    pthread_mutex_unlock(&part->split->lock);
}

static struct tare_conv_int_sink sink_of(struct part *part) {
    return (struct tare_conv_int_sink){ .take = take,
                                        .take_floats = take_floats,
                                        .arg = part,
                                        .requantize = part->split->requantize ? &part->requantize : NULL,
                                        .element = part->first };
}

/* Output lines [at, at + count), counted over all images. */
static void run_lines(struct part *part, int64_t at, int64_t count) {
    const struct split *s = part->split;
    const bool is_wide =
        form_of(s) == TARE_IGEMM_HALVES || (kernel_of(s) == TARE_EXACT_DENSE && form_of(s) == TARE_IGEMM_PAIRS);
    struct tare_conv lines;
    const int64_t offset = tare_conv_take_lines(&lines, &s->conv, at, count);
    part->first = s->run->first + at * s->conv.out[2] * s->conv.out_channels;
    const struct tare_conv_int_sink sink = sink_of(part);
    run_kernel(part, &sink, &lines, (const char *)s->run->input + offset * (is_wide ? 2 : 1));
}

static void run_channels(struct part *part, int64_t first, int64_t end) {
    const struct split *s = part->split;
    part->first = s->run->first;
    struct tare_conv_int_sink sink = sink_of(part);
    sink.first_channel = first * s->unit;
    sink.channels = (end * s->unit < s->conv.out_channels ? end * s->unit : s->conv.out_channels) - sink.first_channel;
    run_kernel(part, &sink, &s->conv, s->run->input);
}

/* The lines of units [at, end) that belong to the image of unit `at`; returns their number and sets *first, counted
 * over all images, and *next, the unit after them. */
static int64_t lines_of(const struct split *s, int64_t at, int64_t end, int64_t *first, int64_t *next) {
    const int64_t per_image = units_per_image(s), all = s->conv.out[1];
    const int64_t image = at / per_image, line = at % per_image * s->unit;
    *next = (image + 1) * per_image < end ? (image + 1) * per_image : end;
    *first = image * all + line;
    const int64_t last = (*next - image * per_image) * s->unit;
    return (last < all ? last : all) - line;
}

/* Collects the part's own ranges. */
static void begin_requantize(struct part *part) {
    const struct tare_requantize *whole = part->split->requantize;
    if (!whole) return;
    part->requantize = *whole;
    if (whole->real.range) {
        tare_value_range_begin(&part->range);
        part->requantize.real.range = &part->range;
    }
}

static void end_requantize(const struct part *part) {
    const struct tare_requantize *whole = part->split->requantize;
    if (whole && whole->real.range) tare_value_range_merge(whole->real.range, &part->range);
}

static void run_part(void *arg, int number, int64_t first, int64_t end) {
    struct split *s = arg;
    struct part *part = &s->memory[number];
    begin_requantize(part);
    if (s->by_channels) {
        run_channels(part, first, end);
        return;
    }
    for (int64_t at = first, next, line; at < end; at = next) {
        const int64_t count = lines_of(s, at, end, &line, &next);
        run_lines(part, line, count);
    }
}

static void run_whole(struct split *s) {
    struct part *part = &s->memory[0];
    part->first = s->run->first;
    struct tare_conv_int_sink sink = sink_of(part);
    sink.requantize = s->requantize;
    run_kernel(part, &sink, &s->conv, s->run->input);
}

/* ---- choosing ---- */

/* Multiply-adds, as many as a float kernel computes in the same time: those of the sums and of what follows them. */
static double work_of(const struct tare_exact_run *run) {
    enum { AFTER_SUM = 16 };
    const struct tare_conv *conv = run->conv;
    const double sums = (double)tare_conv_rows(conv) * (double)conv->out_channels;
    const double work = sums * (double)tare_conv_patch(conv), after = sums * AFTER_SUM;
    const enum tare_igemm_form form = run->choice->form;
    if (run->choice->kernel == TARE_EXACT_DEPTHWISE) return work + after;
    return (form == TARE_IGEMM_TILES ? work / 8 : form == TARE_IGEMM_QUADS ? work / 3 : work) + after;
}

static bool is_weight_bound(const struct split *s) {
    const struct tare_conv *conv = &s->conv;
    const double weights = (double)tare_conv_patch(conv) * (double)conv->out_channels;
    return weights > 2.0 * (double)(conv->in[1] * conv->in[2] * conv->in_channels) * (double)conv->batch;
}

static void set_lines(struct split *s) {
    const bool has_pairs = kernel_of(s) == TARE_EXACT_WINOGRAD || kernel_of(s) == TARE_EXACT_DEPTHWISE;
    const bool has_positions = kernel_of(s) == TARE_EXACT_DIRECT && is_product(&s->conv);
    if (has_positions) s->conv = as_rows(&s->conv);
    const bool has_tiles = kernel_of(s) == TARE_EXACT_WINOGRAD_VNNI;
    s->unit = has_positions ? POSITIONS : has_tiles ? 4 : has_pairs ? 2 : 1;
    s->units = tare_conv_has_lines(&s->conv) ? s->conv.batch * s->conv.in[0] * units_per_image(s) : 1;
}

static void choose_parts(struct split *s, struct tare_pool *threads) {
    const double work = work_of(s->run);
    const bool has_channels = s->requantize && !s->requantize->real.is_passed &&
                              tare_igemm_requantizes(tare_cpu_level()) &&
                              (kernel_of(s) == TARE_EXACT_DIRECT || kernel_of(s) == TARE_EXACT_WINOGRAD ||
                               kernel_of(s) == TARE_EXACT_WINOGRAD_VNNI);
    const int64_t channels = (s->conv.out_channels + CHANNELS - 1) / CHANNELS;
    set_lines(s);
    s->parts = tare_split_count(threads, work, s->units);
    if (!has_channels) return;
    const int parts = tare_split_count(threads, work, channels);
    const double by_lines = tare_split_imbalance(s->units, s->parts),
                 by_channels = tare_split_imbalance(channels, parts);
    const bool is_better = by_channels < by_lines - 0.1 || (is_weight_bound(s) && by_channels < by_lines + 0.02);
    s->by_channels = parts > s->parts || (parts > 1 && parts == s->parts && is_better);
    if (!s->by_channels) return;
    s->unit = CHANNELS;
    s->units = channels;
    s->parts = parts;
}

/* ---- running ---- */

/* The sums and bytes that the parts need: blocks of fewer lines may be larger than those of all. A matrix product needs
 * the same with one row per line. */
static void measure(const struct split *s, int64_t *sums, size_t *bytes) {
    struct tare_conv lines;
    *sums = s->run->choice->sums;
    *bytes = s->run->choice->bytes;
    if (s->by_channels || s->parts == 1) return;
    for (int part = 0; part < s->parts; part++) {
        int64_t at, end, next, first;
        tare_split_part(&at, &end, s->units, part, s->parts);
        for (; at < end; at = next) {
            const int64_t count = lines_of(s, at, end, &first, &next);
            (void)tare_conv_take_lines(&lines, &s->conv, first, count);
            const int64_t part_sums = sums_of(s->run->choice, &lines);
            const size_t part_bytes = scratch_of(s->run->choice, &lines);
            if (part_sums > *sums) *sums = part_sums;
            if (part_bytes > *bytes) *bytes = part_bytes;
        }
    }
}

/* True if the kernel stores no sums for a consumer: it requantizes them, or stores them in the output itself. */
static bool needs_no_sums(const struct split *s) {
    const enum tare_exact_kernel kernel = kernel_of(s);
    if (kernel == TARE_EXACT_DENSE || kernel == TARE_EXACT_DEPTHWISE) return !s->run->consumer;
    return kernel != TARE_EXACT_PHASES && s->requantize && !s->requantize->real.is_passed &&
           tare_igemm_requantizes(tare_cpu_level());
}

/* The requantization that the kernel may compute; NULL: none. */
static const struct tare_requantize *requantize_for(const struct split *s) {
    const struct tare_requantize *requantize = !s->run->consumer ? NULL : s->run->consumer->requantize;
    const bool fits = requantize && requantize->columns == s->conv.out_channels &&
                      (!requantize->real.is_passed || kernel_of(s) == TARE_EXACT_DIRECT);
    return fits ? requantize : NULL;
}

static tare_status open_part(struct split *s, struct part *part, struct tare_arena *arena, size_t sums, size_t bytes) {
    char *scratch = tare_arena_alloc(arena, bytes + 2 * ALIGNMENT);
    part->split = s;
    part->sums = tare_arena_alloc(arena, sums + ALIGNMENT);
    if (!scratch || !part->sums) return TARE_NO_MEMORY;
    part->scratch = scratch + (ALIGNMENT - (uintptr_t)scratch % ALIGNMENT) % ALIGNMENT;
    return TARE_OK;
}

/* `one`: the memory of a single part. */
static tare_status make_parts(struct split *s, struct part *one, struct tare_arena *arena) {
    int64_t sums;
    size_t bytes, sums_bytes;
    measure(s, &sums, &bytes);
    if (needs_no_sums(s)) sums = 0;
    s->memory = s->parts == 1 ? one : TARE_NEW_ARRAY(arena, struct part, (size_t)s->parts);
    if (!s->memory || !tare_mul_size(&sums_bytes, (size_t)sums, sizeof(int32_t))) return TARE_NO_MEMORY;
    for (int i = 0; i < s->parts; i++)
        TARE_TRY(open_part(s, &s->memory[i], arena, sums_bytes, bytes));
    return TARE_OK;
}

tare_status tare_exact_split(struct tare_pool *threads, struct tare_arena *scratch, const struct tare_exact_run *run) {
    struct split s = { .run = run, .conv = *run->conv, .lock = PTHREAD_MUTEX_INITIALIZER, .units = 1, .parts = 1 };
    s.requantize = requantize_for(&s);
    if (threads && tare_conv_rows(run->conv) > 0) choose_parts(&s, threads);
    struct part one;
    TARE_TRY(make_parts(&s, &one, scratch));
    if (s.parts == 1) {
        run_whole(&s);
        return TARE_OK;
    }
    TARE_TRY(tare_split_range(threads, s.parts, s.units, run_part, &s));
    for (int i = 0; i < s.parts; i++)
        end_requantize(&s.memory[i]);
    return TARE_OK;
}
