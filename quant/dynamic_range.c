/* Ranges of rows; see the header.
 *
 *     high = max(0, max x), low = min(0, min x)
 *     scale = max(high / 255 - low / 255, 1e-30 / 255)
 *     zp = round(127 - high / scale)
 *     x_q = clip(floor(x / scale + zp + 0.5), -128, 127)
 *
 * Dividing first avoids an overflow of high - low. The quotient high / scale is at most 255 (1 + 2^-22), so that zp is
 * in [-128, 127], and zero has the code zp exactly: an activation may be padded with zeros before it is quantized.
 *
 * TensorFlow truncates zp, and computes it and the scale in float64, which a TPU has no units for; here they are
 * float32. With u = 2^-24, two quotients and a difference of numbers of unlike signs have a relative error of at most
 * 2 u + u^2, and float64 rounded to float32 one of u: the scales differ by at most 3.01 u, and not at all if low or
 * high is 0. The error of high / scale is below 255 * 4 u < 2^-14, and zp is rounded to 2^-10 before it is truncated:
 * it is TensorFlow's integer unless 127 - high / scale is within 2^-10 of an integer, and otherwise TensorFlow's or
 * that integer, which is nearer. */
#include "quant/dynamic_range.h"
#include "quant/xla.h"

static const float SMALLEST_SCALE = 1e-30f / 255; /* dynamic-degenerate: avoids division by 0 for all zeros */
enum { STEPS = 1024 };                            /* zp is rounded to 1 / STEPS before it is truncated */

/* ---- rows ---- */

int tare_quant_row_axes(int32_t axes[TARE_MAX_RANK], const struct tare_quant_product *product) {
    int count = 0;
    if (product->spatial) {
        for (int axis = 0; axis < product->spatial + 2; axis++)
            if (axis != product->dims.input_batch) axes[count++] = axis;
        return count;
    }
    for (int axis = 0, kept = 0; axis < TARE_MAX_RANK; axis++) {
        if (product->squeezed_left >> axis & 1) continue;
        for (int i = 0; i < product->n_contracted; i++)
            if (product->left_contracted[i] == kept) axes[count++] = axis;
        kept++;
    }
    return count;
}

static struct tare_edge emit_of_images(struct tare_emit *emit, const char *name,
                                       const struct tare_quant_product *product, struct tare_edge value) {
    struct tare_shape shape = { .rank = product->spatial + 2 };
    if (product->dims.input_batch == product->dims.output_batch) return value;
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = i == product->dims.output_batch ? -1 : 1;
    return tare_emit_reshape(emit, name, value, &shape);
}

/* Contracted axes last. */
static struct tare_edge emit_ordered(struct tare_emit *emit, const char *name, const struct tare_quant_product *p,
                                     struct tare_edge value) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE,
                                              emit->status == TARE_OK ? tare_edge_dtype(value) : 0 },
                                            { "Tperm", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    const int rank = p->n_batch + p->n_contracted + p->n_free_left;
    bool listed[TARE_MAX_RANK] = { false }, moves = false;
    int32_t order[TARE_MAX_RANK];
    int count = 0;
    for (int i = 0; i < p->n_contracted; i++)
        listed[p->left_contracted[i]] = true;
    for (int i = 0; i < p->n_batch; i++)
        listed[order[count++] = p->left_batch[i]] = true;
    for (int axis = 0; axis < rank; axis++)
        if (!listed[axis]) order[count++] = axis;
    for (int i = 0; i < p->n_contracted; i++)
        order[count++] = p->left_contracted[i];
    for (int i = 0; i < count - p->n_contracted; i++)
        moves |= order[i] != i;
    if (!moves) return value;
    const struct tare_edge inputs[] = { value, tare_emit_vector(emit, "rows/perm", rank, order) };
    return tare_emit_node(emit, "Transpose", name, inputs, 2, attrs);
}

struct tare_edge tare_emit_of_rows(struct tare_emit *emit, const char *name, const struct tare_quant_product *product,
                                   struct tare_edge value) {
    const int rows = product->n_batch + product->n_free_left;
    unsigned unused = 0;
    if (product->spatial) return emit_of_images(emit, name, product, value);
    if (product->squeezed_left) value = tare_emit_squeezed(emit, name, value, product->squeezed_left);
    value = emit_ordered(emit, name, product, value);
    for (int i = product->n_free_right; i < product->n_contracted; i++)
        unused |= 1u << (rows + i);
    if (unused) value = tare_emit_squeezed(emit, name, value, unused);
    for (int i = product->n_contracted; i < product->n_free_right && emit->status == TARE_OK; i++) {
        const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, tare_edge_dtype(value) },
                                                { "Tdim", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                                { 0 } };
        const struct tare_edge inputs[] = { value, tare_emit_i32(emit, "rows/axis", rows) };
        value = tare_emit_node(emit, "ExpandDims", name, inputs, 2, attrs);
    }
    return value;
}

/* ---- parameters ---- */

struct tare_edge tare_emit_extreme(struct tare_emit *emit, const char *reduce, const char *limit, const char *name,
                                   struct tare_edge x, const int32_t *axes, int n_axes) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                            { "Tidx", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { "keep_dims", TARE_EMIT_BOOL, true },
                                            { 0 } };
    const struct tare_edge inputs[] = { x, tare_emit_vector(emit, "dynamic/axes", n_axes, axes) };
    const struct tare_edge extreme = tare_emit_node(emit, reduce, name, inputs, 2, attrs);
    return tare_emit_binary(emit, limit, name, tare_emit_f32(emit, "dynamic/zero", 0), extreme);
}

/* Rounded to a multiple of 1 / STEPS, which the conversion to int32 truncates. */
static struct tare_edge emit_steps(struct tare_emit *emit, struct tare_edge z) {
    z = tare_emit_binary(emit, "Mul", "dynamic/steps", z, tare_emit_f32(emit, "dynamic/steps", STEPS));
    z = tare_emit_unary(emit, "Round", "dynamic/round", z);
    return tare_emit_binary(emit, "Mul", "dynamic/step", z, tare_emit_f32(emit, "dynamic/step", 1.0f / STEPS));
}

void tare_emit_dynamic_parameters(struct tare_emit *emit, struct tare_edge x, const int32_t *axes, int n_axes,
                                  enum tare_zero_point_rule rule, struct tare_edge *scale,
                                  struct tare_edge *zero_point) {
    const struct tare_edge high = tare_emit_extreme(emit, "Max", "Maximum", "dynamic/high", x, axes, n_axes);
    const struct tare_edge low = tare_emit_extreme(emit, "Min", "Minimum", "dynamic/low", x, axes, n_axes);
    const struct tare_edge codes = tare_emit_f32(emit, "dynamic/codes", 255);
    const struct tare_edge above = tare_emit_binary(emit, "Div", "dynamic/above", high, codes);
    struct tare_edge z;
    *scale = tare_emit_binary(emit, "Sub", "dynamic/scale", above,
                              tare_emit_binary(emit, "Div", "dynamic/below", low, codes));
    *scale = tare_emit_binary(emit, "Maximum", "dynamic/scale", *scale,
                              tare_emit_f32(emit, "dynamic/smallest", SMALLEST_SCALE));
    z = tare_emit_binary(emit, "Div", "dynamic/zero_point", high, *scale);
    z = tare_emit_binary(emit, "Sub", "dynamic/zero_point", tare_emit_f32(emit, "dynamic/qmax", 127), z);
    z = rule == TARE_ZERO_POINT_TRUNCATED ? emit_steps(emit, z) : tare_emit_unary(emit, "Round", "dynamic/round", z);
    *zero_point = tare_emit_cast(emit, "dynamic/zero_point", z, TARE_DT_INT32);
}

struct tare_edge tare_emit_dynamic_codes(struct tare_emit *emit, struct tare_edge x, struct tare_edge scale,
                                         struct tare_edge zero_point) {
    struct tare_edge q = tare_emit_binary(emit, "Div", "quantize/div", x, scale);
    q = tare_emit_binary(emit, "AddV2", "quantize/add", q,
                         tare_emit_cast(emit, "quantize/zero_point", zero_point, TARE_DT_FLOAT));
    q = tare_emit_binary(emit, "AddV2", "quantize/half", q, tare_emit_f32(emit, "quantize/one_half", 0.5f));
    q = tare_emit_unary(emit, "Floor", "quantize/floor", q);
    q = tare_emit_binary(emit, "Maximum", "quantize/maximum", q, tare_emit_f32(emit, "quantize/qmin", -128));
    q = tare_emit_binary(emit, "Minimum", "quantize/minimum", q, tare_emit_f32(emit, "quantize/qmax", 127));
    return tare_emit_cast(emit, "quantize/cast", q, TARE_DT_INT8);
}
