/* TensorFlow 1's element-wise quantized ops: activations, bias, sums and products, concatenation.
 * Each integer tensor is accompanied by its range in two more tensors (interpreter/ops/quantized/quantized_range.h). */
#include "interpreter/ops/quantized/channels.h"
#include "interpreter/ops/support/elementwise.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/quantized/quantized_range.h"

#include "base/alloc.h"

#include <float.h>
#include <math.h>
#include <string.h>

static tare_status infer_two(struct tare_infer *infer) {
    infer->outputs[1] = infer->outputs[2] = tare_shape_scalar();
    if (infer->inputs[0].rank < 0 || infer->inputs[1].rank < 0) return TARE_OK;
    return tare_shape_broadcast(&infer->outputs[0], &infer->inputs[0], &infer->inputs[1]);
}

/* ---- activations: the range is unchanged ---- */

static tare_status clamp(struct tare_kernel *kernel, size_t first_end, bool has_limit, float limit) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct tare_span span;
    if (tare_dtype_base(kernel->node->output_dtypes[0]) != input->dtype)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s from %s", tare_dtype_name(kernel->node->output_dtypes[0]),
                         tare_dtype_name(input->dtype));
    TARE_TRY(tare_span_operand(&span, kernel, first_end, input->dtype));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &input->shape));
    TARE_TRY(tare_span_outputs(kernel, 1, &span));
    const int32_t low = tare_span_quantize(&span, 0);
    const int32_t high = has_limit ? tare_span_quantize(&span, limit) : INT32_MAX;
    for (int64_t i = 0; i < input->elements; i++) {
        int32_t value = tare_quantized_get(input, i);
        value = value > low ? value : low;
        tare_quantized_set(&kernel->outputs[0], i, value < high ? value : high);
    }
    return TARE_OK;
}

static tare_status run_relu(struct tare_kernel *kernel) {
    return clamp(kernel, 1, false, 0);
}
static tare_status run_relu6(struct tare_kernel *kernel) {
    return clamp(kernel, 1, true, 6);
}
static tare_status run_relu_x(struct tare_kernel *kernel) {
    if (kernel->inputs[1].elements != 1)
        return TARE_FAIL(TARE_SHAPE, "max_value has %lld elements (expected 1)", (long long)kernel->inputs[1].elements);
    return clamp(kernel, 2, true, TARE_CONST_DATA(float, &kernel->inputs[1])[0]);
}

/* ---- shape-only ops ---- */

static tare_status infer_reshape(struct tare_infer *infer) {
    const struct tare_tensor *expected = infer->input_values[1];
    int64_t dims[TARE_MAX_RANK], known = 1, elements;
    int count, open = -1;
    infer->outputs[1] = infer->outputs[2] = tare_shape_scalar();
    if (!expected) return TARE_OK;
    TARE_TRY(tare_operand_list(infer, 1, "shape", dims, &count));
    if (count < 0) return TARE_OK;
    for (int d = 0; d < count; d++) {
        if (dims[d] < -1 || (dims[d] == -1 && open >= 0))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "shape contains %lld at %d", (long long)dims[d], d);
        if (dims[d] == -1)
            open = d;
        else if (!tare_mul_i64(&known, known, dims[d]))
            return TARE_FAIL(TARE_SHAPE, "the shape has too many elements");
    }
    if (tare_shape_is_known(&infer->inputs[0])) {
        TARE_TRY(tare_shape_elements(&elements, &infer->inputs[0]));
        if (open >= 0 && known > 0) dims[open] = elements / known;
        if (open >= 0 && known == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "shape leaves dimension %d open", open);
        if (known * (open >= 0 ? dims[open] : 1) != elements)
            return TARE_FAIL(TARE_SHAPE, "%lld elements do not match the shape", (long long)elements);
    }
    return tare_shape_from_dims(&infer->outputs[0], count, dims);
}

static tare_status run_reshape(struct tare_kernel *kernel) {
    struct tare_span span;
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_span_operand(&span, kernel, 2, kernel->inputs[0].dtype));
    TARE_TRY(tare_kernel_forward_as(kernel, 0, 0, &shapes[0]));
    return tare_span_outputs(kernel, 1, &span);
}

/* ---- bias: both operands are converted to a range 2^17 times as wide, so that nothing overflows ---- */

static tare_status run_bias(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0], *bias = &kernel->inputs[1];
    struct tare_span x, b, total = { .dtype = TARE_DT_QINT32 };
    TARE_TRY(tare_span_operand(&x, kernel, 2, input->dtype));
    TARE_TRY(tare_span_operand(&b, kernel, 4, bias->dtype));
    if (kernel->node->output_dtypes[0] != TARE_DT_QINT32 || tare_dtype_size(input->dtype) != 1 ||
        input->dtype != bias->dtype)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s and %s giving %s", tare_dtype_name(input->dtype),
                         tare_dtype_name(bias->dtype), tare_dtype_name(kernel->node->output_dtypes[0]));
    if (input->shape.rank < 2)
        return TARE_FAIL(TARE_SHAPE, "input has rank %d (expected at least 2)", input->shape.rank);
    if (bias->shape.rank != 1 || bias->elements != input->shape.dims[input->shape.rank - 1])
        return TARE_FAIL(TARE_SHAPE, "bias has %lld elements (expected a vector of %lld)", (long long)bias->elements,
                         (long long)input->shape.dims[input->shape.rank - 1]);
    total.max = fmaxf(fmaxf(x.max, -x.min), fmaxf(b.max, -b.min)) * 0x1p17f;
    total.min = -total.max;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_QINT32, &input->shape));
    TARE_TRY(tare_span_outputs(kernel, 1, &total));
    const struct tare_span_reader read_x = tare_span_reader(&x), read_b = tare_span_reader(&b);
    const struct tare_span_writer writer = tare_span_writer(&total);
    const uint32_t zero = (uint32_t)tare_span_quantize(&total, 0);
    for (int64_t i = 0; i < input->elements; i++) {
        const float value = read_x.base + (float)tare_quantized_get(input, i) * read_x.scale;
        const float more = read_b.base + (float)tare_quantized_get(bias, i % bias->elements) * read_b.scale;
        const uint32_t sum =
            (uint32_t)tare_span_write(&writer, value) + (uint32_t)tare_span_write(&writer, more) + zero;
        TARE_DATA(int32_t, &kernel->outputs[0])[i] = (int32_t)sum;
    }
    return TARE_OK;
}

/* ---- sums and products of two tensors ---- */

/* Converts quint8 values to another span: the first two steps are converted exactly, the others follow at equal
 * distances. */
struct ladder {
    int64_t first, step;
};

static struct ladder ladder_of(const struct tare_span *from, const struct tare_span *to) {
    struct ladder ladder = { .first = tare_span_steps(to, tare_span_real(from, 0)) };
    ladder.step = (int32_t)(uint32_t)(tare_span_steps(to, tare_span_real(from, 1)) - ladder.first);
    return ladder;
}

static int32_t climb(const struct ladder *ladder, int32_t value) {
    const int64_t at = ladder->first + value * ladder->step;
    return at < INT32_MIN ? INT32_MIN : at > INT32_MAX ? INT32_MAX : (int32_t)at;
}

struct pair {
    struct tare_span x, y, z;
    struct tare_broadcast plan;
};

static tare_status open_pair(struct pair *pair, struct tare_kernel *kernel) {
    TARE_TRY(tare_span_proper(&pair->x, kernel, 2, kernel->inputs[0].dtype));
    TARE_TRY(tare_span_proper(&pair->y, kernel, 4, kernel->inputs[1].dtype));
    if (kernel->inputs[0].dtype != TARE_DT_QUINT8 || kernel->inputs[1].dtype != TARE_DT_QUINT8 ||
        kernel->node->output_dtypes[0] != TARE_DT_QINT32)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s and %s giving %s (expected quint8 and quint8 giving qint32)",
                         tare_dtype_name(kernel->inputs[0].dtype), tare_dtype_name(kernel->inputs[1].dtype),
                         tare_dtype_name(kernel->node->output_dtypes[0]));
    TARE_TRY(tare_broadcast_plan(&pair->plan, kernel->inputs, 2));
    return tare_kernel_output(kernel, 0, TARE_DT_QINT32, &pair->plan.shape);
}

/* for each output element: *to = expression of x and y, the operands' integers */
#define EACH_PAIR(expression)                                                                                          \
    {                                                                                                                  \
        const uint8_t *a = kernel->inputs[0].data, *b = kernel->inputs[1].data;                                        \
        int32_t *to = kernel->outputs[0].data;                                                                         \
        struct tare_broadcast_walk walk = { 0 };                                                                       \
        for (int64_t row = 0; row < pair.plan.outer; row++, tare_broadcast_next(&walk, &pair.plan))                    \
            for (int64_t i = 0; i < pair.plan.inner; i++) {                                                            \
                const int32_t x = a[walk.offsets[0] + (pair.plan.is_one[0] ? 0 : i)];                                  \
                const int32_t y = b[walk.offsets[1] + (pair.plan.is_one[1] ? 0 : i)];                                  \
                *to++ = (int32_t)(expression);                                                                         \
            }                                                                                                          \
    }

static tare_status run_add(struct tare_kernel *kernel) {
    struct pair pair;
    TARE_TRY(open_pair(&pair, kernel));
    const float low = fminf(pair.x.min, pair.y.min), high = fmaxf(pair.x.max, pair.y.max);
    const float end = fmaxf(fabsf(low), fabsf(high)) * 0x1p14f;
    pair.z = (struct tare_span){ TARE_DT_QINT32, -end, end };
    TARE_TRY(tare_span_outputs(kernel, 1, &pair.z));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    struct ladder lx = ladder_of(&pair.x, &pair.z), ly = ladder_of(&pair.y, &pair.z);
    /* a single element is converted on its own */
    if (kernel->inputs[0].elements == 1)
        lx = (struct ladder){
            tare_span_quantize(&pair.z, tare_span_real(&pair.x, TARE_CONST_DATA(uint8_t, &kernel->inputs[0])[0])), 0
        };
    else if (kernel->inputs[1].elements == 1)
        ly = (struct ladder){
            tare_span_quantize(&pair.z, tare_span_real(&pair.y, TARE_CONST_DATA(uint8_t, &kernel->inputs[1])[0])), 0
        };
    EACH_PAIR((uint32_t)climb(&lx, x) + (uint32_t)climb(&ly, y))
    return TARE_OK;
}

static tare_status run_multiply(struct tare_kernel *kernel) {
    struct pair pair;
    TARE_TRY(open_pair(&pair, kernel));
    pair.z = tare_span_of_products(&pair.x, &pair.y, TARE_DT_QINT32);
    TARE_TRY(tare_span_outputs(kernel, 1, &pair.z));
    const int32_t zero_x = (int32_t)tare_span_steps(&pair.x, 0), zero_y = (int32_t)tare_span_steps(&pair.y, 0);
    EACH_PAIR(((uint32_t)x - (uint32_t)zero_x) * ((uint32_t)y - (uint32_t)zero_y))
    return TARE_OK;
}
#undef EACH_PAIR

/* ---- batch normalization in fixed point: 32 bits for -2^20 to 2^20 ---- */

static tare_status run_batch_norm(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const struct tare_span space = { TARE_DT_QINT32, -0x1p20f, 0x1p20f };
    const float epsilon = tare_node_float(kernel->node, "variance_epsilon", 0);
    const bool scales = tare_node_bool(kernel->node, "scale_after_normalization", false);
    struct tare_span spans[5];
    if (input->dtype != TARE_DT_QUINT8 || kernel->node->output_dtypes[0] != TARE_DT_QINT32)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s giving %s (expected quint8 giving qint32)",
                         tare_dtype_name(input->dtype), tare_dtype_name(kernel->node->output_dtypes[0]));
    if (input->shape.rank != 4) return TARE_FAIL(TARE_SHAPE, "t has rank %d (expected 4)", input->shape.rank);
    const int64_t depth = input->shape.dims[3];
    for (size_t k = 0; k < 5; k++) {
        const struct tare_tensor *vector = &kernel->inputs[3 * k];
        TARE_TRY(tare_span_operand(&spans[k], kernel, 3 * k + 1, TARE_DT_QUINT8));
        if (k > 0 && (vector->shape.rank != 1 || vector->elements != depth))
            return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected a vector of %lld)",
                             kernel->node->def->inputs[3 * k].name, (long long)vector->elements, (long long)depth);
    }
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_QINT32, &input->shape));
    TARE_TRY(tare_span_outputs(kernel, 1, &space));
    const int32_t one = tare_span_quantize(&space, 1);
    for (int64_t c = 0; c < depth; c++) {
        float at[5];
        for (size_t k = 1; k < 5; k++)
            at[k] = tare_span_real(&spans[k], tare_quantized_get(&kernel->inputs[3 * k], c));
        const float scale = 1.0f / sqrtf(at[2] + epsilon) * (scales ? at[4] : 1.0f);
        const int32_t factor = tare_span_quantize(&space, scale);
        const int32_t offset = tare_span_quantize(&space, -at[1] * scale + at[3]);
        for (int64_t i = c; i < input->elements; i += depth) {
            const int32_t x = tare_span_quantize(&space, tare_span_real(&spans[0], tare_quantized_get(input, i)));
            const int32_t product = (int32_t)((uint32_t)x * (uint32_t)factor) / one;
            TARE_DATA(int32_t, &kernel->outputs[0])[i] = (int32_t)((uint32_t)product + (uint32_t)offset);
        }
    }
    return TARE_OK;
}

/* ---- instance normalization: each channel of each image by its own mean and variance, in float ---- */

struct normed {
    int64_t pixels, channels;
    float *values;
    float low, high;
};

static void normalise(struct normed *n, const struct tare_tensor *input, int64_t first, float scale, float epsilon) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n->pixels; i++)
        sum += TARE_CONST_DATA(uint8_t, input)[first + i * n->channels];
    const float mean = (float)(sum / (double)n->pixels);
    for (int64_t i = 0; i < n->pixels; i++) {
        const float x = scale * ((float)TARE_CONST_DATA(uint8_t, input)[first + i * n->channels] - mean);
        squares += (double)x * (double)x;
    }
    const float rate = 1.0f / sqrtf((float)(squares / (double)n->pixels) + epsilon);
    for (int64_t i = 0; i < n->pixels; i++) {
        const int64_t at = first + i * n->channels;
        n->values[at] = scale * ((float)TARE_CONST_DATA(uint8_t, input)[at] - mean) * rate;
        n->low = fminf(n->low, n->values[at]);
        n->high = fmaxf(n->high, n->values[at]);
    }
}

static tare_status run_instance_norm(struct tare_kernel *kernel) {
    const struct tare_node *node = kernel->node;
    const struct tare_tensor *input = &kernel->inputs[0];
    const float separation = tare_node_float(node, "min_separation", 1e-3f);
    struct normed n = { .low = FLT_MAX, .high = -FLT_MAX };
    struct tare_span x;
    TARE_TRY(tare_span_proper(&x, kernel, 1, input->dtype));
    if (input->dtype != TARE_DT_QUINT8)
        return TARE_FAIL(TARE_UNSUPPORTED, "x is %s (expected quint8)", tare_dtype_name(input->dtype));
    if (input->shape.rank != 4) return TARE_FAIL(TARE_SHAPE, "x has rank %d (expected 4)", input->shape.rank);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_QUINT8, &input->shape));
    n.pixels = input->shape.dims[1] * input->shape.dims[2];
    n.channels = input->shape.dims[3];
    n.values = TARE_NEW_ARRAY(kernel->scratch, float, (size_t)input->elements);
    if (!n.values) return TARE_NO_MEMORY;
    for (int64_t i = 0; input->elements > 0 && i < input->shape.dims[0] * n.channels; i++)
        normalise(&n, input, i / n.channels * n.pixels * n.channels + i % n.channels, (x.max - x.min) / 255.0f,
                  tare_node_float(node, "variance_epsilon", 1e-5f));
    if (tare_node_bool(node, "output_range_given", false)) {
        n.low = tare_node_float(node, "given_y_min", 0);
        n.high = tare_node_float(node, "given_y_max", 0);
        if (!(n.low < n.high))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "given_y_min must be less than given_y_max: %g >= %g",
                             (double)n.low, (double)n.high);
    } else if (input->elements == 0) {
        n.low = n.high = 0;
    }
    if (n.high - n.low < separation) n.high = n.low + separation;
    const struct tare_span y = { TARE_DT_QUINT8, n.low, n.high };
    const struct tare_span_writer writer = tare_span_writer(&y);
    for (int64_t i = 0; i < input->elements; i++)
        TARE_DATA(uint8_t, &kernel->outputs[0])[i] = (uint8_t)tare_span_write(&writer, n.values[i]);
    return tare_span_outputs(kernel, 1, &y);
}

/* ---- concatenation in the union of the ranges ---- */

struct parts {
    size_t first, axis, mins; /* indices of inputs */
    size_t count;
};

static struct parts parts_of(const struct tare_node *node) {
    const size_t n = (size_t)tare_node_int(node, "N", 0);
    const bool axis_is_first = strcmp(node->op, "QuantizedConcat") == 0;
    return (struct parts){ axis_is_first ? 1 : 0, axis_is_first ? 0 : n, n + 1, n };
}

static tare_status infer_concat(struct tare_infer *infer) {
    const struct parts parts = parts_of(infer->node);
    struct tare_shape all = infer->inputs[parts.first];
    int64_t axis;
    infer->outputs[1] = infer->outputs[2] = tare_shape_scalar();
    if (all.rank < 0 || !tare_operand_scalar(infer, parts.axis, &axis)) return TARE_OK;
    if (axis < 0 && axis >= -all.rank) axis += all.rank;
    if (axis < 0 || axis >= all.rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected concatenating dimensions in the range [0, %d), but got %lld",
                         all.rank, (long long)axis);
    for (size_t i = 1; i < parts.count; i++) {
        struct tare_shape part = infer->inputs[parts.first + i];
        if (part.rank < 0) return TARE_OK;
        if (part.rank != all.rank)
            return TARE_FAIL(TARE_SHAPE, "Ranks of all input tensors should match: %d and %d", all.rank, part.rank);
        int64_t length = -1;
        if (all.dims[axis] >= 0 && part.dims[axis] >= 0 && !tare_add_i64(&length, all.dims[axis], part.dims[axis]))
            return TARE_FAIL(TARE_SHAPE, "the concatenated dimension is too large");
        all.dims[axis] = part.dims[axis] = length;
        TARE_TRY(tare_shape_merge(&all, &all, &part));
    }
    infer->outputs[0] = all;
    return TARE_OK;
}

static tare_status part_spans(struct tare_kernel *kernel, const struct parts *parts, struct tare_span *spans,
                              struct tare_span *all) {
    const int dtype = kernel->inputs[parts->first].dtype;
    *all = (struct tare_span){ dtype, FLT_MAX, -FLT_MAX };
    for (size_t i = 0; i < parts->count; i++) {
        const struct tare_tensor *min = &kernel->inputs[parts->mins + i], *max = min + parts->count;
        if (min->elements != 1 || max->elements != 1)
            return TARE_FAIL(TARE_SHAPE, "the range of part %zu has %lld and %lld elements (expected 1)", i,
                             (long long)min->elements, (long long)max->elements);
        spans[i] = (struct tare_span){ dtype, TARE_CONST_DATA(float, min)[0], TARE_CONST_DATA(float, max)[0] };
        if (!isfinite(spans[i].min) || !isfinite(spans[i].max))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the range of part %zu is %g to %g", i, (double)spans[i].min,
                             (double)spans[i].max);
        all->min = fminf(all->min, spans[i].min);
        all->max = fmaxf(all->max, spans[i].max);
    }
    if (dtype == TARE_DT_QUINT8 || dtype == TARE_DT_QUINT16) return TARE_OK;
    all->max = fmaxf(fabsf(all->min), fabsf(all->max));
    all->min = -all->max;
    return TARE_OK;
}

static tare_status run_concat(struct tare_kernel *kernel) {
    const struct parts parts = parts_of(kernel->node);
    const struct tare_tensor *first = &kernel->inputs[parts.first];
    struct tare_span *spans = TARE_NEW_ARRAY(kernel->scratch, struct tare_span, parts.count), all;
    struct tare_shape *shapes;
    if (!spans) return TARE_NO_MEMORY;
    if (tare_dtype_get(first->dtype)->class != TARE_CLASS_QUANTIZED)
        return TARE_FAIL(TARE_UNSUPPORTED, "values of %s (expected quantized integers)", tare_dtype_name(first->dtype));
    if (kernel->inputs[parts.axis].elements != 1) return TARE_FAIL(TARE_SHAPE, "the axis is not a scalar");
    TARE_TRY(part_spans(kernel, &parts, spans, &all));
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_kernel_output(kernel, 0, first->dtype, &shapes[0]));
    TARE_TRY(tare_span_outputs(kernel, 1, &all));
    struct tare_tensor *out = &kernel->outputs[0];
    if (out->elements == 0) return TARE_OK;
    int64_t axis = tare_tensor_get_i64(&kernel->inputs[parts.axis], 0), outer = 1, at = 0;
    if (axis < 0) axis += out->shape.rank;
    for (int64_t d = 0; d < axis; d++)
        outer *= out->shape.dims[d];
    for (size_t i = 0; i < parts.count; i++) {
        const struct tare_tensor *part = first + i;
        const int64_t block = part->elements / outer, whole = out->elements / outer;
        const bool same = spans[i].min == all.min && spans[i].max == all.max;
        const size_t size = tare_dtype_size(part->dtype);
        for (int64_t o = 0; o < outer; o++) {
            if (same)
                memcpy((char *)out->data + (size_t)(o * whole + at) * size,
                       (const char *)part->data + (size_t)(o * block) * size, (size_t)block * size);
            else
                tare_span_requantize(out, o * whole + at, &all, part, o * block, &spans[i], block);
        }
        at += block;
    }
    return TARE_OK;
}

/* ---- rows ---- */

#define ACTIVATION(op, more, kernel)                                                                                   \
    TARE_SPAN_OP(op, "features: Tinput, " more "min_features: float, max_features: float",                             \
                 "activations: out_type, min_activations: float, max_activations: float",                              \
                 "Tinput: " TARE_SPAN_DTYPES "; out_type: " TARE_SPAN_DTYPES " = DT_QUINT8", tare_span_infer, kernel)

const struct tare_op tare_ops_legacy_quantized[] = {
    ACTIVATION("QuantizedRelu", "", run_relu),
    ACTIVATION("QuantizedRelu6", "", run_relu6),
    ACTIVATION("QuantizedReluX", "max_value: float, ", run_relu_x),
    TARE_SPAN_OP("QuantizedReshape", "tensor: T, shape: Tshape, input_min: float, input_max: float",
                 "output: T, output_min: float, output_max: float", "T: type; Tshape: {int32, int64} = DT_INT32",
                 infer_reshape, run_reshape),
    TARE_SPAN_OP(
        "QuantizedBiasAdd", "input: T1, bias: T2, min_input: float, max_input: float, min_bias: float, max_bias: float",
        "output: out_type, min_out: float, max_out: float",
        "T1: " TARE_SPAN_DTYPES "; T2: " TARE_SPAN_DTYPES "; out_type: " TARE_SPAN_DTYPES, tare_span_infer, run_bias),
    TARE_SPAN_OP("QuantizedAdd", "x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float",
                 "z: Toutput, min_z: float, max_z: float",
                 "T1: " TARE_SPAN_DTYPES "; T2: " TARE_SPAN_DTYPES "; Toutput: " TARE_SPAN_DTYPES " = DT_QINT32",
                 infer_two, run_add),
    TARE_SPAN_OP("QuantizedMul", "x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float",
                 "z: Toutput, min_z: float, max_z: float",
                 "T1: " TARE_SPAN_DTYPES "; T2: " TARE_SPAN_DTYPES "; Toutput: " TARE_SPAN_DTYPES " = DT_QINT32",
                 infer_two, run_multiply),
    TARE_SPAN_OP(
        "QuantizedBatchNormWithGlobalNormalization",
        "t: Tinput, t_min: float, t_max: float, m: Tinput, m_min: float, m_max: float, v: Tinput, v_min: float, "
        "v_max: float, beta: Tinput, beta_min: float, beta_max: float, gamma: Tinput, gamma_min: float, "
        "gamma_max: float",
        "result: out_type, result_min: float, result_max: float",
        "Tinput: " TARE_SPAN_DTYPES "; out_type: " TARE_SPAN_DTYPES
        "; variance_epsilon: float; scale_after_normalization: bool",
        tare_span_infer, run_batch_norm),
    TARE_SPAN_OP("QuantizedInstanceNorm", "x: T, x_min: float, x_max: float", "y: T, y_min: float, y_max: float",
                 "T: " TARE_SPAN_DTYPES
                 "; output_range_given: bool = false; given_y_min: float = 0; given_y_max: float = 0; "
                 "variance_epsilon: float = 9.999999747378752e-06; min_separation: float = 0.0010000000474974513",
                 tare_span_infer, run_instance_norm),
    TARE_SPAN_OP("QuantizedConcat", "concat_dim: int32, values: N * T, input_mins: N * float, input_maxes: N * float",
                 "output: T, output_min: float, output_max: float", "N: int >= 2; T: type", infer_concat, run_concat),
    TARE_SPAN_OP("QuantizedConcatV2", "values: N * T, axis: Tidx, input_mins: N * float, input_maxes: N * float",
                 "output: T, output_min: float, output_max: float",
                 "N: int >= 2; T: type; Tidx: {int32, int64} = DT_INT32", infer_concat, run_concat),
    { 0 },
};
