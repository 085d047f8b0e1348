/* Random numbers. Stateless ops and variable-based generators return TensorFlow's numbers: the same Philox streams,
 * groups and formulas. Stateful ops draw from the session's stream, which restarts with each run; their numbers
 * differ from TensorFlow's, so the outputs of a model that uses them are not reproducible against TensorFlow. */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/random/random_source.h"

#include "interpreter/inference/infer.h"
#include "interpreter/session.h"
#include "base/tensor/number.h"

#include <math.h>

enum distribution { UNIFORM, NORMAL, TRUNCATED_NORMAL, INTEGERS, ALL_INTEGERS };

/* A row's aux. */
struct random_form {
    enum distribution distribution;
    int seeds;     /* input with a stateless op's seeds, or with key, counter and algorithm; 0: stateful */
    bool keyed;    /* key, counter, algorithm */
    int minimum;   /* input with the lower bound (INTEGERS) */
    bool resource; /* input 0 is a generator's state */
    int shape;     /* input that contains the shape */
};

/* `numbers`: how many the op draws. */
static tare_status find_source(struct tare_philox *out, struct tare_kernel *kernel, int64_t numbers) {
    const struct random_form *form = kernel->op->aux;
    if (form->resource)
        return tare_random_from_state(out, kernel, form->shape == 2 ? &kernel->inputs[1] : NULL, (uint64_t)numbers);
    if (!form->seeds) return tare_random_from_session(out, kernel);
    return form->keyed ? tare_random_from_key(out, kernel, form->seeds)
                       : tare_random_from_seeds(out, &kernel->inputs[form->seeds]);
}

/* ---- filling ---- */

static void draw_normals(double pair[2], struct tare_philox *source, int dtype) {
    float narrow[2];
    if (dtype == TARE_DT_DOUBLE) {
        tare_philox_normals(source, pair);
        return;
    }
    tare_philox_normals_f32(source, narrow);
    pair[0] = (double)narrow[0];
    pair[1] = (double)narrow[1];
}

static void fill_normal(struct tare_tensor *out, struct tare_philox *source) {
    double pair[2] = { 0 };
    for (int64_t i = 0; i < out->elements; i++) {
        if (i % 2 == 0) draw_normals(pair, source, out->dtype);
        tare_tensor_set_f64(out, i, pair[i % 2]);
    }
}

/* Numbers beyond two standard deviations are redrawn. Numbers come in groups of 4 (double: 2); each group has 256
 * words per number of the stream reserved. */
static void fill_truncated(struct tare_tensor *out, const struct tare_philox *source) {
    const int64_t group = out->dtype == TARE_DT_DOUBLE ? 2 : 4;
    for (int64_t first = 0; first < out->elements; first += group) {
        const int64_t last = first + group < out->elements ? first + group : out->elements;
        struct tare_philox own = *source;
        tare_philox_skip(&own, (uint64_t)first * 64);
        for (int64_t i = first; i < last;) {
            double pair[2];
            draw_normals(pair, &own, out->dtype);
            for (int k = 0; k < 2 && i < last; k++)
                if (fabs(pair[k]) < 2) tare_tensor_set_f64(out, i++, pair[k]);
        }
    }
}

/* Stays below 1 after rounding to a narrower dtype. */
static double below_one(struct tare_philox *source, int dtype) {
    switch (dtype) {
    case TARE_DT_DOUBLE:
        return tare_philox_double(source);
    case TARE_DT_HALF:
        return (tare_philox_next(source) & 0x3ff) / 1024.0;
    case TARE_DT_BFLOAT16:
        return (tare_philox_next(source) & 0x7f) / 128.0;
    default:
        return tare_philox_float(source);
    }
}

static void fill_reals(struct tare_tensor *out, struct tare_philox *source, enum distribution distribution) {
    if (distribution == NORMAL) fill_normal(out, source);
    if (distribution == TRUNCATED_NORMAL) fill_truncated(out, source);
    for (int64_t i = 0; distribution == UNIFORM && i < out->elements; i++)
        tare_tensor_set_f64(out, i, below_one(source, out->dtype));
}

static void fill_words(struct tare_tensor *out, struct tare_philox *source) {
    bool wide = tare_dtype_size(out->dtype) == 8;
    for (int64_t i = 0; i < out->elements; i++) {
        if (wide)
            TARE_DATA(uint64_t, out)[i] = tare_philox_next64(source);
        else
            TARE_DATA(uint32_t, out)[i] = tare_philox_next(source);
    }
}

/* minimum <= x < maximum, by the remainder of a random word. */
static tare_status fill_range(struct tare_tensor *out, struct tare_philox *source, const struct tare_tensor *minimum,
                              const struct tare_tensor *maximum) {
    bool wide = tare_dtype_size(out->dtype) == 8;
    uint64_t low, range;
    if (minimum->elements != 1 || maximum->elements != 1)
        return TARE_FAIL(TARE_SHAPE, "minval and maxval have %lld and %lld elements (expected 1)",
                         (long long)minimum->elements, (long long)maximum->elements);
    low = (uint64_t)tare_tensor_get_i64(minimum, 0);
    range = (uint64_t)tare_tensor_get_i64(maximum, 0) - low;
    if (out->elements && tare_tensor_get_i64(minimum, 0) >= tare_tensor_get_i64(maximum, 0) &&
        out->dtype != TARE_DT_UINT64)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Need minval < maxval, got %lld >= %lld",
                         (long long)tare_tensor_get_i64(minimum, 0), (long long)tare_tensor_get_i64(maximum, 0));
    for (int64_t i = 0; i < out->elements; i++) {
        uint64_t word = wide ? tare_philox_next64(source) : tare_philox_next(source);
        uint64_t x = low + (range ? word % range : word);
        if (wide)
            TARE_DATA(uint64_t, out)[i] = x;
        else
            TARE_DATA(uint32_t, out)[i] = (uint32_t)x;
    }
    return TARE_OK;
}

static tare_status infer_shape_input(struct tare_infer *infer) {
    const struct random_form *form = infer->node->def->row->aux;
    return tare_infer_shape_input(&infer->outputs[0], infer, (size_t)form->shape);
}

static tare_status run_random(struct tare_kernel *kernel) {
    const struct random_form *form = kernel->op->aux;
    struct tare_philox source;
    struct tare_shape *shape;
    int64_t numbers;
    TARE_TRY(tare_operand_shapes(kernel, &shape));
    if (!tare_shape_is_known(shape)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "a dimension is negative");
    TARE_TRY(tare_shape_elements(&numbers, shape));
    TARE_TRY(find_source(&source, kernel, numbers));
    TARE_TRY(tare_kernel_output(kernel, 0, kernel->node->output_dtypes[0], shape));
    const int dtype = kernel->outputs[0].dtype;
    const bool whole = form->distribution == ALL_INTEGERS || form->distribution == INTEGERS;
    if (whole ? !tare_dtype_is_integer(dtype) || tare_dtype_size(dtype) < 4
              : !tare_dtype_is_floating(dtype) || tare_dtype_size(dtype) < 2)
        return TARE_FAIL(TARE_UNSUPPORTED, "random numbers of %s", tare_dtype_name(dtype));
    switch (form->distribution) {
    case ALL_INTEGERS:
        fill_words(&kernel->outputs[0], &source);
        return TARE_OK;
    case INTEGERS:
        return fill_range(&kernel->outputs[0], &source, &kernel->inputs[form->minimum],
                          &kernel->inputs[form->minimum + 1]);
    default:
        fill_reals(&kernel->outputs[0], &source, form->distribution);
        return TARE_OK;
    }
}

/* ---- deriving keys from seeds ---- */

static tare_status infer_key_counter(struct tare_infer *infer) {
    infer->outputs[0] = tare_shape_make(1, 1);
    infer->outputs[1] = tare_shape_make(1, 2);
    if (infer->n_outputs > 2) infer->outputs[2] = tare_shape_scalar();
    return TARE_OK;
}

static tare_status give_algorithm(struct tare_kernel *kernel, size_t i) {
    struct tare_shape scalar = tare_shape_scalar();
    TARE_TRY(tare_kernel_output(kernel, i, TARE_DT_INT32, &scalar));
    TARE_DATA(int32_t, &kernel->outputs[i])[0] = TARE_RANDOM_PHILOX;
    return TARE_OK;
}

static tare_status run_algorithm(struct tare_kernel *kernel) {
    return give_algorithm(kernel, 0);
}

static tare_status run_key_counter(struct tare_kernel *kernel) {
    struct tare_shape one = tare_shape_make(1, 1), two = tare_shape_make(1, 2);
    struct tare_philox source;
    TARE_TRY(tare_random_from_seeds(&source, &kernel->inputs[0]));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_UINT64, &one));
    TARE_TRY(tare_kernel_output(kernel, 1, TARE_DT_UINT64, &two));
    TARE_DATA(uint64_t, &kernel->outputs[0])[0] = source.key[0] | (uint64_t)source.key[1] << 32;
    TARE_DATA(uint64_t, &kernel->outputs[1])[0] = source.counter[0] | (uint64_t)source.counter[1] << 32;
    TARE_DATA(uint64_t, &kernel->outputs[1])[1] = source.counter[2] | (uint64_t)source.counter[3] << 32;
    return kernel->n_outputs > 2 ? give_algorithm(kernel, 2) : TARE_OK;
}

/* ---- sampling from given probabilities ---- */

static tare_status infer_multinomial(struct tare_infer *infer) {
    int64_t samples = TARE_UNKNOWN_DIM;
    TARE_TRY(tare_infer_want_rank(infer, 0, 2));
    tare_operand_scalar(infer, 1, &samples);
    infer->outputs[0] = tare_shape_make(2, -1, -1);
    if (infer->inputs[0].rank == 2) infer->outputs[0].dims[0] = infer->inputs[0].dims[0];
    infer->outputs[0].dims[1] = samples;
    return TARE_OK;
}

/* Selects class k of one row with probability proportional to exp(logits). */
static int64_t pick(const double *cumulated, int64_t classes, double at) {
    int64_t low = 0, high = classes - 1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (cumulated[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void cumulate(double *out, const struct tare_tensor *logits, int64_t row, int64_t classes) {
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < classes; k++) {
        double x = tare_tensor_get_f64(logits, row * classes + k);
        if (isfinite(x) && x > largest) largest = x;
    }
    for (int64_t k = 0; k < classes; k++) {
        double x = tare_tensor_get_f64(logits, row * classes + k);
        if (isfinite(x)) sum += tare_exp(x - largest);
        out[k] = sum;
    }
}

static tare_status run_multinomial(struct tare_kernel *kernel) {
    const struct tare_tensor *logits = &kernel->inputs[0];
    struct tare_tensor *out = &kernel->outputs[0];
    struct tare_philox source;
    struct tare_shape *shape;
    double *cumulated;
    int64_t classes;
    TARE_TRY(find_source(&source, kernel, 0));
    TARE_TRY(tare_operand_shapes(kernel, &shape));
    classes = logits->shape.dims[1];
    if (!tare_shape_is_known(shape) || (classes == 0 && shape->dims[0] && shape->dims[1]))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "num_samples is negative, or there are no classes");
    TARE_TRY(tare_kernel_output(kernel, 0, kernel->node->output_dtypes[0], shape));
    cumulated = tare_arena_calloc(kernel->scratch, (size_t)classes + 1, sizeof *cumulated);
    if (!cumulated) return TARE_NO_MEMORY;
    for (int64_t row = 0; row < shape->dims[0] && shape->dims[1]; row++) {
        cumulate(cumulated, logits, row, classes);
        for (int64_t i = 0; i < shape->dims[1]; i++) {
            int64_t k = pick(cumulated, classes, tare_philox_double(&source) * cumulated[classes - 1]);
            if (out->dtype == TARE_DT_INT64)
                TARE_DATA(int64_t, out)[row * shape->dims[1] + i] = k;
            else
                TARE_DATA(int32_t, out)[row * shape->dims[1] + i] = (int32_t)k;
        }
    }
    return TARE_OK;
}

/* Shuffles rows (Fisher and Yates, from the first one on). */
static tare_status run_shuffle(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    int64_t rows = in->shape.rank ? in->shape.dims[0] : 1, size = rows ? in->elements / rows : 0;
    int64_t *order = tare_arena_calloc(kernel->scratch, (size_t)rows + 1, sizeof *order);
    struct tare_philox source;
    if (!order) return TARE_NO_MEMORY;
    TARE_TRY(find_source(&source, kernel, 0));
    TARE_TRY(tare_kernel_output(kernel, 0, in->dtype, &in->shape));
    for (int64_t i = 0; i < rows; i++)
        order[i] = i;
    if (rows > UINT32_MAX)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%lld rows (expected at most 2^32)", (long long)rows);
    for (int64_t i = 0; i + 1 < rows; i++) {
        const int64_t k = i + tare_philox_next(&source) % (uint32_t)(rows - i), moved = order[i];
        order[i] = order[k];
        order[k] = moved;
    }
    for (int64_t i = 0; i < rows; i++)
        TARE_TRY(tare_move_run(&kernel->outputs[0], i * size, in, order[i] * size, size));
    return TARE_OK;
}

/* ---- generators stored in variables ---- */

static tare_status infer_nothing(struct tare_infer *infer) {
    (void)infer;
    return TARE_OK;
}

static tare_status infer_state(struct tare_infer *infer) {
    infer->outputs[0] = tare_shape_make(1, -1);
    return TARE_OK;
}

static tare_status run_skip(struct tare_kernel *kernel) {
    if (kernel->inputs[1].elements != 1 || kernel->inputs[2].elements != 1)
        return TARE_FAIL(TARE_SHAPE, "algorithm and delta must be scalars");
    return tare_random_skip(kernel, &kernel->inputs[1], (uint64_t)tare_tensor_get_i64(&kernel->inputs[2], 0), NULL);
}

static tare_status run_read_and_skip(struct tare_kernel *kernel) {
    if (kernel->inputs[1].elements != 1 || kernel->inputs[2].elements != 1)
        return TARE_FAIL(TARE_SHAPE, "alg and delta must be scalars");
    return tare_random_skip(kernel, &kernel->inputs[1], (uint64_t)tare_tensor_get_i64(&kernel->inputs[2], 0),
                            &kernel->outputs[0]);
}

#define FORM(name, ...) static const struct random_form name = { __VA_ARGS__ }
FORM(uniform, UNIFORM, 0, false, 0, false, 0);
FORM(normal, NORMAL, 0, false, 0, false, 0);
FORM(truncated, TRUNCATED_NORMAL, 0, false, 0, false, 0);
FORM(integers, INTEGERS, 0, false, 1, false, 0);
FORM(seeded_uniform, UNIFORM, 1, false, 0, false, 0);
FORM(seeded_normal, NORMAL, 1, false, 0, false, 0);
FORM(seeded_truncated, TRUNCATED_NORMAL, 1, false, 0, false, 0);
FORM(seeded_integers, INTEGERS, 1, false, 2, false, 0);
FORM(seeded_words, ALL_INTEGERS, 1, false, 0, false, 0);
FORM(keyed_uniform, UNIFORM, 1, true, 0, false, 0);
FORM(keyed_normal, NORMAL, 1, true, 0, false, 0);
FORM(keyed_truncated, TRUNCATED_NORMAL, 1, true, 0, false, 0);
FORM(keyed_integers, INTEGERS, 1, true, 4, false, 0);
FORM(keyed_words, ALL_INTEGERS, 1, true, 0, false, 0);
FORM(seeded_classes, UNIFORM, 2, false, 0, false, 0);
FORM(keyed_rows, UNIFORM, 1, true, 0, false, 0);
FORM(generator_uniform, UNIFORM, 0, false, 0, true, 2);
FORM(generator_normal, NORMAL, 0, false, 0, true, 2);
FORM(generator_normal_v1, NORMAL, 0, false, 0, true, 1);
FORM(generator_truncated, TRUNCATED_NORMAL, 0, false, 0, true, 2);
FORM(generator_integers, INTEGERS, 0, false, 3, true, 2);
FORM(generator_words, ALL_INTEGERS, 0, false, 0, true, 2);
FORM(any_words, ALL_INTEGERS, 0, false, 0, false, 0);
#undef FORM

#define RANDOM(op, form, extra)                                                                                        \
    { .name = op, .infer = infer_shape_input, .run = run_random, .aux = &form, .flags = extra }
#define DRAWN(op, form) RANDOM(op, form, TARE_OP_STATEFUL)
#define GENERATED(op, form) RANDOM(op, form, TARE_OP_STATEFUL | TARE_OP_WRITES)
#define STATELESS(op, form) RANDOM(op, form, 0)

const struct tare_op tare_ops_random[] = {
    DRAWN("RandomUniform", uniform),
    DRAWN("RandomStandardNormal", normal),
    DRAWN("TruncatedNormal", truncated),
    DRAWN("RandomUniformInt", integers),
    { .name = "RandomShuffle",
      .infer = tare_infer_same,
      .run = run_shuffle,
      .aux = &uniform,
      .flags = TARE_OP_STATEFUL },
    { .name = "Multinomial",
      .infer = infer_multinomial,
      .run = run_multinomial,
      .aux = &uniform,
      .flags = TARE_OP_STATEFUL },
    { .name = "StatelessMultinomial", .infer = infer_multinomial, .run = run_multinomial, .aux = &seeded_classes },
    STATELESS("StatelessRandomUniform", seeded_uniform),
    STATELESS("StatelessRandomNormal", seeded_normal),
    STATELESS("StatelessTruncatedNormal", seeded_truncated),
    STATELESS("StatelessRandomUniformInt", seeded_integers),
    STATELESS("StatelessRandomUniformFullInt", seeded_words),
    STATELESS("StatelessRandomUniformV2", keyed_uniform),
    STATELESS("StatelessRandomNormalV2", keyed_normal),
    STATELESS("StatelessTruncatedNormalV2", keyed_truncated),
    STATELESS("StatelessRandomUniformIntV2", keyed_integers),
    STATELESS("StatelessRandomUniformFullIntV2", keyed_words),
    { .name = "StatelessRandomGetAlg", .infer = tare_infer_scalar, .run = run_algorithm, .flags = TARE_OP_STATEFUL },
    { .name = "StatelessRandomGetKeyCounter", .infer = infer_key_counter, .run = run_key_counter },
    { .name = "StatelessRandomGetKeyCounterAlg", .infer = infer_key_counter, .run = run_key_counter },
    GENERATED("StatefulUniform", generator_uniform),
    GENERATED("StatefulStandardNormal", generator_normal_v1),
    GENERATED("StatefulStandardNormalV2", generator_normal),
    GENERATED("StatefulTruncatedNormal", generator_truncated),
    GENERATED("StatefulUniformInt", generator_integers),
    GENERATED("StatefulUniformFullInt", generator_words),
    DRAWN("NonDeterministicInts", any_words),
    { .name = "StatelessShuffle", .infer = tare_infer_same, .run = run_shuffle, .aux = &keyed_rows },
    { .name = "RngSkip", .infer = infer_nothing, .run = run_skip, .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { .name = "RngReadAndSkip",
      .infer = infer_state,
      .run = run_read_and_skip,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { 0 },
};
