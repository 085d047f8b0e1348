/* Batch normalization, by the formulas of StableHLO's specification. All dimensions but the feature dimension are
 * reduced; sums are divided by the number of reduced elements. */
#include "convert/stablehlo/lower.h"

struct norm {
    struct tare_lowering *l;
    struct tare_edge x;
    int dtype;
    size_t rank;
    int64_t feature;
    int64_t axes[TARE_MAX_RANK], kept[TARE_MAX_RANK]; /* reduced dims; the shape of a feature vector: -1 at `feature` */
    struct tare_edge count;                           /* of reduced elements */
};

static struct tare_edge call(struct norm *s, const char *op, struct tare_edge x, struct tare_edge y) {
    return tare_lower_binary(s->l, op, x, y);
}
/* A vector of features, in a shape that broadcasts with the operand. */
static struct tare_edge spread(struct norm *s, struct tare_edge vector) {
    return tare_lower_reshape(s->l, vector, tare_lower_longs(s->l, s->kept, s->rank));
}
static struct tare_edge sum(struct norm *s, struct tare_edge x) {
    return call(s, "Sum", x, tare_lower_longs(s->l, s->axes, s->rank - 1));
}
static struct tare_edge mean(struct norm *s, struct tare_edge x) {
    return call(s, "RealDiv", sum(s, x), s->count);
}
static struct tare_edge deviation(struct norm *s, struct tare_edge variance) {
    const struct tare_shlo_attr *epsilon = tare_shlo_op_attr(s->l->op, "epsilon");
    double value = 0;
    if (!epsilon || epsilon->kind != TARE_SHLO_ATTR_FLOAT)
        tare_lower_fail(s->l, TARE_CORRUPT, "attribute 'epsilon' is missing");
    else
        value = tare_shlo_float_of_bits(epsilon->type->kind, epsilon->bits);
    return tare_lower_unary(s->l, "Sqrt", call(s, "AddV2", variance, tare_lower_scalar(s->l, s->dtype, value)));
}

static bool open_norm(struct norm *s, struct tare_lowering *l) {
    const struct tare_shlo_type *type = tare_lower_in_type(l, 0);
    size_t n = 0;
    *s = (struct norm){ .l = l, .x = tare_lower_in(l, 0), .dtype = tare_lower_in_dtype(l, 0), .rank = type->rank };
    s->feature = tare_lower_int(l, "feature_index");
    if (!type->rank || type->rank > TARE_MAX_RANK || s->feature < 0 || s->feature >= (int64_t)type->rank)
        tare_lower_fail(l, TARE_CORRUPT, "feature_index is out of range");
    for (size_t d = 0; d < type->rank && l->status == TARE_OK; d++) {
        s->kept[d] = (int64_t)d == s->feature ? -1 : 1;
        if ((int64_t)d != s->feature) s->axes[n++] = (int64_t)d;
    }
    const struct tare_edge axis = tare_lower_scalar(l, TARE_DT_INT32, (double)s->feature);
    const struct tare_edge all = tare_lower_unary(l, "Size", s->x), shape = tare_lower_unary(l, "Shape", s->x);
    const struct tare_edge gather[] = { shape, axis, tare_lower_scalar(l, TARE_DT_INT32, 0) };
    const struct tare_edge features = tare_lower_end(l, tare_lower_begin(l, "GatherV2", gather, 3));
    const struct tare_edge one = tare_lower_scalar(l, TARE_DT_INT32, 1);
    const struct tare_edge some = tare_lower_binary(l, "Maximum", features, one);
    s->count = tare_lower_cast(l, tare_lower_binary(l, "FloorDiv", all, some), s->dtype);
    return l->status == TARE_OK;
}

/* (x - mean) / sqrt(variance + epsilon) * scale + offset */
static struct tare_edge normalize(struct norm *s, struct tare_edge scale, struct tare_edge offset,
                                  struct tare_edge average, struct tare_edge variance) {
    const struct tare_edge centred = call(s, "Sub", s->x, spread(s, average));
    const struct tare_edge normal = call(s, "RealDiv", centred, spread(s, deviation(s, variance)));
    const struct tare_edge last = spread(s, offset);
    return call(s, "AddV2", call(s, "Mul", normal, spread(s, scale)), last);
}

static void lower_inference(struct tare_lowering *l, const void *arg) {
    struct norm s;
    (void)arg;
    if (!open_norm(&s, l)) return;
    const struct tare_edge scale = tare_lower_in(l, 1), offset = tare_lower_in(l, 2), average = tare_lower_in(l, 3);
    tare_lower_set(l, normalize(&s, scale, offset, average, tare_lower_in(l, 4)));
}

static void lower_training(struct tare_lowering *l, const void *arg) {
    struct norm s;
    (void)arg;
    if (!open_norm(&s, l)) return;
    const struct tare_edge scale = tare_lower_in(l, 1), offset = tare_lower_in(l, 2), average = mean(&s, s.x);
    const struct tare_edge centred = call(&s, "Sub", s.x, spread(&s, average));
    const struct tare_edge variance = mean(&s, call(&s, "Mul", centred, centred));
    l->outputs[0] = normalize(&s, scale, offset, average, variance);
    l->outputs[1] = average;
    l->outputs[2] = variance;
}

/* Derivatives by the operand, the scale and the offset, from (operand, scale, mean, variance, grad_output). */
static void lower_grad(struct tare_lowering *l, const void *arg) {
    struct norm s;
    (void)arg;
    if (!open_norm(&s, l)) return;
    const struct tare_edge scale = tare_lower_in(l, 1), average = tare_lower_in(l, 2), variance = tare_lower_in(l, 3);
    const struct tare_edge grad = tare_lower_in(l, 4), sqrt_variance = deviation(&s, variance);
    const struct tare_edge centred = call(&s, "Sub", s.x, spread(&s, average));
    const struct tare_edge by_centred = sum(&s, call(&s, "Mul", grad, centred)), by_offset = sum(&s, grad);
    const struct tare_edge epsilon_variance = call(&s, "Mul", sqrt_variance, sqrt_variance);
    /* scale / sqrt(variance + epsilon) / n * (n grad - sum(grad) - centred * sum(grad * centred) / (variance +
     * epsilon)) */
    const struct tare_edge slope = call(&s, "RealDiv", by_centred, epsilon_variance);
    const struct tare_edge sloped = call(&s, "Mul", centred, spread(&s, slope)), offsets = spread(&s, by_offset);
    const struct tare_edge inner = call(&s, "Sub", call(&s, "Sub", call(&s, "Mul", grad, s.count), offsets), sloped);
    const struct tare_edge factor = call(&s, "RealDiv", call(&s, "RealDiv", scale, sqrt_variance), s.count);
    l->outputs[0] = call(&s, "Mul", inner, spread(&s, factor));
    l->outputs[1] = call(&s, "RealDiv", by_centred, sqrt_variance);
    l->outputs[2] = by_offset;
}

const struct tare_lowering_row tare_lower_normalization[] = {
    { "batch_norm_inference", lower_inference, NULL },
    { "batch_norm_training", lower_training, NULL },
    { "batch_norm_grad", lower_grad, NULL },
    { 0 },
};
