/* Pooling: MaxPool, AvgPool and MaxPoolWithArgmax, in 2 and 3 dimensions. */
#include "interpreter/kernels/pool.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/floats.h"
#include "interpreter/ops/support/split.h"
#include "interpreter/ops/support/window.h"

#include "base/alloc.h"
#include "interpreter/session.h"

#include <math.h>
#include <string.h>

/* A row's aux. */
struct pool_kind {
    int spatial;
    bool average;
    bool sizes_are_inputs; /* ksize and strides are inputs 1 and 2 */
};
static const struct pool_kind kind_max = { 2, false, false }, kind_max_v2 = { 2, false, true },
                              kind_max_3d = { 3, false, false }, kind_average = { 2, true, false },
                              kind_average_3d = { 3, true, false };

static const struct pool_kind *kind_of(const struct tare_node *node) {
    return node->def->row->aux;
}

/* ---- geometry ---- */

static tare_status vector_input(int64_t values[5], size_t *count, const struct tare_tensor *tensor, const char *what) {
    if (tensor->shape.rank != 1 || tensor->elements > 5)
        return TARE_FAIL(TARE_SHAPE, "%s is not a vector of 4 or 5 elements", what);
    *count = (size_t)tensor->elements;
    for (size_t i = 0; i < *count; i++)
        values[i] = tare_tensor_get_i64(tensor, (int64_t)i);
    return TARE_OK;
}

/* `ksize` and `strides` are inputs 1 and 2 if the row sets sizes_are_inputs. */
static tare_status parse_pool(struct tare_window *window, const struct tare_node *node, const struct tare_tensor *ksize,
                              const struct tare_tensor *strides) {
    TARE_TRY(tare_window_parse(window, node, kind_of(node)->spatial));
    if (kind_of(node)->sizes_are_inputs) {
        int64_t values[5];
        size_t count;
        TARE_TRY(vector_input(values, &count, ksize, "ksize"));
        TARE_TRY(tare_window_set_size(window, values, count));
        TARE_TRY(vector_input(values, &count, strides, "strides"));
        TARE_TRY(tare_window_set_stride(window, values, count));
    }
    if (window->size_of_batch != 1 || window->size_of_channels != 1 || window->stride_of_batch != 1 ||
        window->stride_of_channels != 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "pooling over batch or channels");
    return TARE_OK;
}

static tare_status infer_pool(struct tare_infer *infer) {
    struct tare_window window;
    struct tare_layout input, output;
    const struct pool_kind *kind = kind_of(infer->node);
    const struct tare_tensor *ksize = NULL, *strides = NULL;
    if (infer->inputs[0].rank < 0) return TARE_OK;
    if (kind->sizes_are_inputs) {
        ksize = infer->input_values[1];
        strides = infer->input_values[2];
        if (!ksize || !strides) {
            infer->outputs[0] = tare_shape_make(4, -1, -1, -1, -1);
            return TARE_OK;
        }
    }
    TARE_TRY(parse_pool(&window, infer->node, ksize, strides));
    TARE_TRY(tare_layout_of(&input, &infer->inputs[0], &window, "input"));
    output = input;
    for (int i = 3 - kind->spatial; i < 3; i++) {
        int64_t pad;
        if (input.spatial[i] >= 0)
            TARE_TRY(tare_window_output(&output.spatial[i], &pad, &window, i, input.spatial[i], window.size[i]));
    }
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = tare_layout_shape(&output, &window);
    return TARE_OK;
}

static tare_status geometry(struct tare_pooling *pool, struct tare_layout *input, struct tare_layout *output,
                            const struct tare_window *window, const struct tare_shape *shape) {
    TARE_TRY(tare_layout_of(input, shape, window, "input"));
    *output = *input;
    pool->batch = input->batch;
    pool->channels = input->channels;
    for (int i = 0; i < 3; i++) {
        pool->in[i] = input->spatial[i];
        pool->size[i] = window->size[i];
        pool->stride[i] = window->stride[i];
        TARE_TRY(tare_window_output(&pool->out[i], &pool->pad[i], window, i, pool->in[i], pool->size[i]));
        output->spatial[i] = pool->out[i];
    }
    return TARE_OK;
}

static int64_t positions_of(const struct tare_pooling *pool) {
    return pool->out[0] * pool->out[1] * pool->out[2];
}

/* ---- reference loops for any dtype ---- */

#define EACH_POSITION(body)                                                                                            \
    const int64_t positions = positions_of(pool);                                                                      \
    for (int64_t b = 0; b < pool->batch; b++) {                                                                        \
        for (int64_t i = 0; i < positions; i++) {                                                                      \
            const int64_t line = i / pool->out[2];                                                                     \
            const int64_t at[3] = { line / pool->out[1], line % pool->out[1], i % pool->out[2] };                      \
            int64_t first[3], last[3];                                                                                 \
            for (int axis = 0; axis < 3; axis++)                                                                       \
                tare_pool_range(pool, axis, at[axis], &first[axis], &last[axis]);                                      \
            for (int64_t c = 0; c < pool->channels; c++)                                                               \
                body                                                                                                   \
        }                                                                                                              \
    }
#define EACH_ELEMENT(body)                                                                                             \
    for (int64_t d = first[0]; d < last[0]; d++) {                                                                     \
        for (int64_t h = first[1]; h < last[1]; h++) {                                                                 \
            for (int64_t w = first[2]; w < last[2]; w++) {                                                             \
                const int64_t place = (((d * pool->in[1]) + h) * pool->in[2] + w) * pool->channels + c;                \
                body                                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }

#define PLAIN_MAX(type, suffix, lowest)                                                                                \
    static void plain_max_##suffix(void *to, const struct tare_pooling *pool, const void *from) {                      \
        const int64_t image = pool->in[0] * pool->in[1] * pool->in[2] * pool->channels;                                \
        type *output = to;                                                                                             \
        EACH_POSITION({                                                                                                \
            const type *input = (const type *)from + b * image;                                                        \
            type best = lowest;                                                                                        \
            EACH_ELEMENT(if (input[place] > best) best = input[place];)                                                \
            *output++ = best;                                                                                          \
        })                                                                                                             \
    }
#define PLAIN_AVERAGE(type, suffix)                                                                                    \
    static void plain_average_##suffix(void *to, const struct tare_pooling *pool, const void *from) {                  \
        const int64_t image = pool->in[0] * pool->in[1] * pool->in[2] * pool->channels;                                \
        type *output = to;                                                                                             \
        EACH_POSITION({                                                                                                \
            const type *input = (const type *)from + b * image;                                                        \
            type sum = 0;                                                                                              \
            int64_t count = 0;                                                                                         \
            EACH_ELEMENT({                                                                                             \
                sum += input[place];                                                                                   \
                count++;                                                                                               \
            })                                                                                                         \
            *output++ = sum / (type)count;                                                                             \
        })                                                                                                             \
    }
PLAIN_MAX(float, f32, -INFINITY)
PLAIN_MAX(double, f64, -(double)INFINITY)
PLAIN_MAX(int8_t, i8, INT8_MIN)
PLAIN_MAX(uint8_t, u8, 0)
PLAIN_MAX(int16_t, i16, INT16_MIN)
PLAIN_MAX(uint16_t, u16, 0)
PLAIN_MAX(int32_t, i32, INT32_MIN)
PLAIN_MAX(int64_t, i64, INT64_MIN)
PLAIN_AVERAGE(float, f32)
PLAIN_AVERAGE(double, f64)

typedef void plain_function(void *to, const struct tare_pooling *pool, const void *from);

static plain_function *plain_of(int dtype, bool average) {
    switch (dtype) {
    case TARE_DT_FLOAT:
    case TARE_DT_HALF:
    case TARE_DT_BFLOAT16:
        return average ? plain_average_f32 : plain_max_f32;
    case TARE_DT_DOUBLE:
        return average ? plain_average_f64 : plain_max_f64;
    case TARE_DT_INT8:
    case TARE_DT_QINT8:
        return plain_max_i8;
    case TARE_DT_UINT8:
        return plain_max_u8;
    case TARE_DT_INT16:
        return plain_max_i16;
    case TARE_DT_UINT16:
        return plain_max_u16;
    case TARE_DT_INT32:
        return plain_max_i32;
    case TARE_DT_INT64:
        return plain_max_i64;
    default:
        return NULL;
    }
}

/* ---- execution ---- */

struct run {
    const struct tare_pooling *pool;
    char *to;
    const char *from;
    int dtype; /* of `from` */
    bool average;
    int64_t elements;          /* of the result */
    size_t to_size, from_size; /* bytes of an element */
};

static void run_whole(const struct run *run, const struct tare_pooling *pool, void *to, const void *from) {
    const bool is_signed = run->dtype == TARE_DT_INT8 || run->dtype == TARE_DT_QINT8;
    if (run->dtype == TARE_DT_BFLOAT16)
        tare_pool_bfloat16(to, pool, from, run->average);
    else if (run->dtype != TARE_DT_FLOAT && run->average)
        tare_pool_average_codes(to, pool, from, is_signed);
    else if (run->dtype != TARE_DT_FLOAT)
        tare_pool_max_bytes(to, pool, from, is_signed);
    else if (run->average)
        tare_pool_average_f32(to, pool, from);
    else
        tare_pool_max_f32(to, pool, from);
}

/* Output lines [first, end) of all images. */
static void run_lines(void *arg, int part, int64_t first, int64_t end) {
    const struct run *run = arg;
    const struct tare_pooling *pool = run->pool;
    const size_t line = (size_t)(pool->out[2] * pool->channels) * run->to_size;
    (void)part;
    for (int64_t at = first, count; at < end; at += count) {
        const int64_t left = pool->out[1] - at % pool->out[1];
        struct tare_pooling lines;
        count = left < end - at ? left : end - at;
        const int64_t offset = tare_pooling_take_lines(&lines, pool, at, count);
        run_whole(run, &lines, run->to + (size_t)at * line, run->from + (size_t)offset * run->from_size);
    }
}

/* With the kernels, on the threads of the session. */
static tare_status fast(struct tare_kernel *kernel, struct run *run) {
    enum { MULTIPLY_ADDS = 16 }; /* that take the time of one element of a window */
    const struct tare_pooling *pool = run->pool;
    const double window = (double)(pool->size[0] * pool->size[1] * pool->size[2]);
    const double work = MULTIPLY_ADDS * window * (double)run->elements;
    struct tare_pool *threads = tare_session_op_pool(kernel->session);
    const int64_t lines = tare_pooling_lines(pool);
    const int parts = tare_split_count(threads, work, lines);
    if (parts > 1) return tare_split_range(threads, parts, lines, run_lines, run);
    run_whole(run, pool, run->to, run->from);
    return TARE_OK;
}

/* The attributes are read once, unless inputs replace them. */
static tare_status prepare_pool(struct tare_kernel *kernel) {
    if (kind_of(kernel->node)->sizes_are_inputs) return TARE_OK;
    struct tare_window *window = tare_calloc(1, sizeof *window);
    kernel->state = window;
    return !window ? TARE_NO_MEMORY : parse_pool(window, kernel->node, NULL, NULL);
}

static tare_status window_of(struct tare_window *window, const struct tare_kernel *kernel) {
    if (kind_of(kernel->node)->sizes_are_inputs)
        return parse_pool(window, kernel->node, &kernel->inputs[1], &kernel->inputs[2]);
    *window = *(const struct tare_window *)kernel->state;
    return TARE_OK;
}

/* Floats where output 0 is computed: it itself, or scratch memory if it is of another dtype or a consumer takes it. */
static float *floats_of_output(struct tare_kernel *kernel, int64_t elements, bool passes) {
    size_t bytes;
    if (!passes) return tare_floats_out(kernel, 0);
    return tare_mul_size(&bytes, (size_t)elements, sizeof(float)) ? tare_arena_alloc(kernel->scratch, bytes) : NULL;
}

static void finish_floats(struct tare_kernel *kernel, float *values, int64_t elements, bool passes) {
    if (passes)
        kernel->consumer->take(kernel->consumer, values, 0, elements);
    else
        tare_floats_round(kernel, 0, values);
}

/* The dtype of the node's tensors; input 0 may have bytes in place of floats (TARE_OP_TAKES_CODES). */
static int dtype_of(const struct tare_kernel *kernel) {
    return kernel->node->output_dtypes[0];
}

/* Creates output 0, unless it consists of floats that a consumer takes. */
static tare_status begin_output(struct tare_kernel *kernel, bool *passes, const struct tare_shape *shape, bool plain) {
    if (!plain && tare_floats_dtype(dtype_of(kernel))) TARE_TRY(tare_kernel_begin_rows(kernel, shape));
    *passes = kernel->consumer && kernel->consumer->accepted;
    return *passes ? TARE_OK : tare_kernel_output(kernel, 0, dtype_of(kernel), shape);
}

static const float *floats_of_codes(const struct tare_kernel *kernel, const struct tare_tensor *input) {
    float *floats = TARE_NEW_ARRAY(kernel->scratch, float, input->elements);
    for (int64_t i = 0; floats && i < input->elements; i++)
        floats[i] =
            input->dtype == TARE_DT_INT8 ? (float)TARE_DATA(int8_t, input)[i] : (float)TARE_DATA(uint8_t, input)[i];
    return floats;
}

/* Input 0 in a form that the loops read, with channels last: as it is, or as floats. */
static tare_status read_input(struct run *run, struct tare_kernel *kernel, const struct tare_window *window,
                              const struct tare_layout *layout, bool plain) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const int64_t *size = run->pool->size;
    const bool is_bfloat16 = input->dtype == TARE_DT_BFLOAT16 && !plain && !window->channels_first; /* else later */
    const bool is_many = plain || size[0] * size[1] * size[2] > TARE_POOL_MOST_CODES;
    const void *from = input->data;
    run->dtype = input->dtype;
    if (input->dtype != dtype_of(kernel) && is_many)
        from = floats_of_codes(kernel, input);
    else if (tare_floats_dtype(input->dtype) && !is_bfloat16)
        from = tare_floats_in(kernel, input);
    if (from != input->data) run->dtype = TARE_DT_FLOAT;
    run->from_size = tare_dtype_size(run->dtype);
    run->from = from ? tare_window_input(kernel, window, layout, from, run->from_size) : NULL;
    return run->from ? TARE_OK : TARE_NO_MEMORY;
}

/* Output 0, or the elements that a consumer takes. */
static tare_status compute(struct tare_kernel *kernel, struct run *run, const struct tare_window *window, bool passes,
                           bool plain) {
    const struct tare_pooling *pool = run->pool;
    const bool floats = tare_floats_dtype(dtype_of(kernel));
    plain_function *loop = plain_of(dtype_of(kernel), run->average);
    if (!loop) return TARE_FAIL(TARE_UNSUPPORTED, "dtype %s", tare_dtype_name(dtype_of(kernel)));
    void *target = floats ? floats_of_output(kernel, run->elements, passes) : kernel->outputs[0].data;
    run->to = target;
    run->to_size = floats ? sizeof(float) : tare_dtype_size(dtype_of(kernel));
    if (window->channels_first) run->to = tare_arena_alloc(kernel->scratch, (size_t)run->elements * run->to_size);
    if (!run->to || !target) return TARE_NO_MEMORY;
    if (!plain && (floats || run->to_size == 1))
        TARE_TRY(fast(kernel, run));
    else
        loop(run->to, pool, run->from);
    if (window->channels_first)
        tare_layout_to_first(target, run->to, pool->batch, pool->channels, positions_of(pool), run->to_size);
    if (floats) finish_floats(kernel, target, run->elements, passes);
    return TARE_OK;
}

static tare_status run_any(struct tare_kernel *kernel, bool plain) {
    struct tare_window window;
    struct tare_pooling pool;
    struct tare_layout in, out;
    struct run run = { .pool = &pool, .average = kind_of(kernel->node)->average };
    bool passes;
    TARE_TRY(window_of(&window, kernel));
    TARE_TRY(geometry(&pool, &in, &out, &window, &kernel->inputs[0].shape));
    const struct tare_shape shape = tare_layout_shape(&out, &window);
    TARE_TRY(begin_output(kernel, &passes, &shape, plain));
    run.elements = passes ? pool.batch * positions_of(&pool) * pool.channels : kernel->outputs[0].elements;
    if (run.elements == 0) return TARE_OK;
    TARE_TRY(read_input(&run, kernel, &window, &in, plain));
    return compute(kernel, &run, &window, passes, plain);
}

static tare_status run_pool(struct tare_kernel *kernel) {
    return run_any(kernel, false);
}
static tare_status reference_pool(struct tare_kernel *kernel) {
    return run_any(kernel, true);
}

/* Whether element i is above element j, whose value as a double is the same. */
static bool exceeds(const struct tare_tensor *tensor, int64_t i, int64_t j) {
    if (tensor->dtype == TARE_DT_INT64)
        return TARE_CONST_DATA(int64_t, tensor)[i] > TARE_CONST_DATA(int64_t, tensor)[j];
    if (tensor->dtype != TARE_DT_UINT64) return false;
    return TARE_CONST_DATA(uint64_t, tensor)[i] > TARE_CONST_DATA(uint64_t, tensor)[j];
}

/* The first of equal maxima wins; a window without comparable elements (NaN) yields its first element. */
static void maxima_with_places(struct tare_tensor *output, struct tare_tensor *places, const struct tare_pooling *pool,
                               const struct tare_tensor *input, bool with_batch) {
    const int64_t image = pool->in[0] * pool->in[1] * pool->in[2] * pool->channels;
    const size_t size = tare_dtype_size(input->dtype);
    int64_t at_output = 0;
    EACH_POSITION({
        double best = 0;
        int64_t best_place = -1;
        EACH_ELEMENT({
            const double x = tare_tensor_get_f64(input, b * image + place);
            if (best_place < 0 || x > best ||
                (x == best && exceeds(input, b * image + place, b * image + best_place))) {
                best = x;
                best_place = place;
            }
        })
        if (best_place < 0) best_place = 0;
        memcpy((char *)output->data + (size_t)at_output * size,
               (const char *)input->data + (size_t)(b * image + best_place) * size, size);
        if (with_batch) best_place += b * image;
        if (places->dtype == TARE_DT_INT32)
            TARE_DATA(int32_t, places)[at_output] = (int32_t)best_place;
        else
            TARE_DATA(int64_t, places)[at_output] = best_place;
        at_output++;
    })
}
#undef EACH_POSITION
#undef EACH_ELEMENT
#undef PLAIN_MAX
#undef PLAIN_AVERAGE

static tare_status run_argmax(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct tare_window window;
    struct tare_pooling pool;
    struct tare_layout in, out;
    TARE_TRY(parse_pool(&window, kernel->node, NULL, NULL));
    TARE_TRY(geometry(&pool, &in, &out, &window, &input->shape));
    const struct tare_shape shape = tare_layout_shape(&out, &window);
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &shape));
    TARE_TRY(tare_kernel_output(kernel, 1, tare_node_type(kernel->node, "Targmax", TARE_DT_INT64), &shape));
    if (kernel->outputs[0].elements > 0 && input->elements > 0)
        maxima_with_places(&kernel->outputs[0], &kernel->outputs[1], &pool, input,
                           tare_node_bool(kernel->node, "include_batch_in_index", false));
    return TARE_OK;
}

#define ROW(op, kind, passes, role)                                                                                    \
    {                                                                                                                  \
        .name = op, .infer = infer_pool, .prepare = prepare_pool, .release = tare_free, .run = run_pool,               \
        .reference = reference_pool, .aux = &kind, .flags = passes, .quant = role                                      \
    }

const struct tare_op tare_ops_pool[] = {
    ROW("MaxPool", kind_max, 0, TARE_QUANT_PASS_THROUGH),
    ROW("MaxPoolV2", kind_max_v2, 0, TARE_QUANT_PASS_THROUGH),
    ROW("MaxPool3D", kind_max_3d, 0, TARE_QUANT_PASS_THROUGH),
    ROW("AvgPool", kind_average, TARE_OP_PASSES_ROWS | TARE_OP_TAKES_CODES, TARE_QUANT_PASS_THROUGH),
    ROW("AvgPool3D", kind_average_3d, TARE_OP_PASSES_ROWS | TARE_OP_TAKES_CODES, TARE_QUANT_PASS_THROUGH),
    { .name = "MaxPoolWithArgmax", .infer = infer_pool, .run = run_argmax, .aux = &kind_max },
    { 0 },
};
#undef ROW
