/* Converting quantized values to real numbers and back: real = (stored - zero point) * scale. */
#include "convert/stablehlo/lower.h"

#include "base/tensor/number.h"

struct tare_edge tare_lower_per_channel(struct tare_lowering *l, const struct tare_shlo_type *type, bool scales,
                                        int dtype) {
    const struct tare_shlo_quantized *q = tare_shlo_quantized_of(type);
    struct tare_shape shape = { .rank = q->axis < 0 ? 0 : (int)type->rank };
    struct tare_tensor tensor;
    struct tare_edge edge = { 0 };
    for (int d = 0; d < shape.rank && d < TARE_MAX_RANK; d++)
        shape.dims[d] = d == q->axis ? (int64_t)q->count : 1;
    if (l->status == TARE_OK && (q->axis >= (int64_t)type->rank || type->rank > TARE_MAX_RANK || !q->count))
        tare_lower_fail(l, TARE_CORRUPT, "the quantized dimension is out of range");
    if (l->status == TARE_OK) l->status = tare_tensor_new(&tensor, dtype, &shape);
    if (l->status != TARE_OK) return edge;
    for (size_t i = 0; i < q->count; i++)
        tare_tensor_set_f64(&tensor, (int64_t)i, scales ? q->scales[i] : (double)q->zero_points[i]);
    edge = tare_lower_tensor(l, &tensor);
    tare_tensor_reset(&tensor);
    return edge;
}

/* int32 has more bits than a float's fraction. */
static int work_dtype(const struct tare_shlo_quantized *q) {
    return tare_shlo_type_bits(q->storage) > 16 ? TARE_DT_DOUBLE : TARE_DT_FLOAT;
}

struct tare_edge tare_lower_dequantize(struct tare_lowering *l, struct tare_edge x, const struct tare_shlo_type *type) {
    const struct tare_shlo_quantized *q = tare_shlo_quantized_of(type);
    const int work = work_dtype(q);
    x = tare_lower_cast(l, x, work);
    if (!tare_shlo_is_centred(q)) x = tare_lower_binary(l, "Sub", x, tare_lower_per_channel(l, type, false, work));
    x = tare_lower_binary(l, "Mul", x, tare_lower_per_channel(l, type, true, work));
    return tare_lower_cast(l, x, tare_shlo_dtype(q->expressed));
}

struct tare_edge tare_lower_quantize(struct tare_lowering *l, struct tare_edge x, const struct tare_shlo_type *type) {
    const struct tare_shlo_quantized *q = tare_shlo_quantized_of(type);
    const int work = work_dtype(q);
    const struct tare_edge scale = tare_lower_per_channel(l, type, true, work);
    x = tare_lower_binary(l, "RealDiv", tare_lower_cast(l, x, work), scale);
    if (!tare_shlo_is_centred(q)) x = tare_lower_binary(l, "AddV2", x, tare_lower_per_channel(l, type, false, work));
    x = tare_lower_binary(l, "Maximum", x, tare_lower_scalar(l, work, (double)q->minimum));
    x = tare_lower_binary(l, "Minimum", x, tare_lower_scalar(l, work, (double)q->maximum));
    return tare_lower_cast(l, tare_lower_unary(l, "Rint", x), tare_shlo_dtype(q->storage));
}
