#include "interpreter/ops/support/floats.h"

#include "base/alloc.h"
#include "base/tensor/number.h"
#include "interpreter/kernels/pipeline.h"
#include "interpreter/ops/support/split.h"
#include "interpreter/session.h"

#include <math.h>
#include <string.h>

#define CONVERT(type, expression)                                                                                      \
    for (int64_t i = 0; i < count; i++) {                                                                              \
        const type x = ((const type *)from)[i];                                                                        \
        to[i] = (expression);                                                                                          \
    }                                                                                                                  \
    break

/* bfloat16 elements in whole units of a pipeline; the others are converted one by one. */
static int64_t whole_units(int64_t count) {
    return count - count % TARE_PIPELINE_UNIT;
}

static void from_bfloat16(float *to, const uint16_t *from, int64_t count) {
    static const struct tare_pipeline widening = { .from = TARE_LANE_BFLOAT16, .to = TARE_LANE_FLOAT };
    const int64_t whole = whole_units(count);
    tare_pipeline_run(to, from, &widening, whole);
    for (int64_t i = whole; i < count; i++)
        to[i] = tare_float_from_bfloat16(from[i]);
}

static void to_bfloat16(uint16_t *to, const float *from, int64_t count) {
    static const struct tare_pipeline rounding = {
        .from = TARE_LANE_FLOAT, .to = TARE_LANE_BFLOAT16, .n_stages = 1, .stages = { { .code = TARE_STAGE_BFLOAT16 } }
    };
    const int64_t whole = whole_units(count);
    tare_pipeline_run(to, from, &rounding, whole);
    for (int64_t i = whole; i < count; i++)
        to[i] = tare_bfloat16_from_float(from[i]);
}

void tare_floats_from(float *to, int dtype, const void *from, int64_t count) {
    switch (dtype) {
    case TARE_DT_FLOAT:
        memcpy(to, from, (size_t)count * sizeof *to);
        break;
    case TARE_DT_HALF:
        CONVERT(uint16_t, tare_float_from_half(x));
    case TARE_DT_BFLOAT16:
        from_bfloat16(to, from, count);
        break;
    case TARE_DT_DOUBLE:
        CONVERT(double, (float)x);
    case TARE_DT_INT8:
    case TARE_DT_QINT8:
        CONVERT(int8_t, (float)x);
    case TARE_DT_UINT8:
    case TARE_DT_QUINT8:
        CONVERT(uint8_t, (float)x);
    case TARE_DT_INT16:
        CONVERT(int16_t, (float)x);
    case TARE_DT_UINT16:
        CONVERT(uint16_t, (float)x);
    case TARE_DT_INT32:
        CONVERT(int32_t, (float)x);
    case TARE_DT_UINT32:
        CONVERT(uint32_t, (float)x);
    case TARE_DT_INT64:
        CONVERT(int64_t, (float)x);
    case TARE_DT_UINT64:
        CONVERT(uint64_t, (float)x);
    default:
        break;
    }
}
#undef CONVERT

void tare_floats_to(void *to, int dtype, const float *from, int64_t count) {
    if (dtype == TARE_DT_FLOAT) {
        memcpy(to, from, (size_t)count * sizeof *from);
        return;
    }
    if (dtype == TARE_DT_BFLOAT16) {
        to_bfloat16(to, from, count);
        return;
    }
    uint16_t *narrow = to;
    for (int64_t i = 0; i < count; i++)
        narrow[i] = tare_half_from_float(from[i]);
}

/* ---- operands and results, converted on the threads of the session ---- */

struct conversion {
    int dtype; /* of `other` */
    float *floats;
    const float *values; /* NULL: `floats` are converted from `other` */
    void *other;
    int64_t count;
};

enum { UNIT = 4096 }; /* elements */

static void convert_part(void *arg, int part, int64_t first, int64_t end) {
    const struct conversion *c = arg;
    const int64_t at = first * UNIT, count = (end * UNIT < c->count ? end * UNIT : c->count) - at;
    char *other = (char *)c->other + (size_t)at * tare_dtype_size(c->dtype);
    (void)part;
    if (c->values)
        tare_floats_to(other, c->dtype, c->values + at, count);
    else
        tare_floats_from(c->floats + at, c->dtype, other, count);
}

static tare_status convert(struct tare_kernel *kernel, struct conversion *c) {
    enum { MULTIPLY_ADDS = 8 }; /* of a convolution that take the time of an element */
    struct tare_pool *threads = tare_session_op_pool(kernel->session);
    const int64_t units = (c->count + UNIT - 1) / UNIT;
    const int parts = tare_split_count(threads, MULTIPLY_ADDS * (double)c->count, units);
    return tare_split_range(threads, parts, units, convert_part, c);
}

static float *scratch_floats(struct tare_kernel *kernel, int64_t count) {
    size_t bytes;
    if (!tare_mul_size(&bytes, (size_t)count, sizeof(float))) return NULL;
    return tare_arena_alloc(kernel->scratch, bytes);
}

const float *tare_floats_in(struct tare_kernel *kernel, const struct tare_tensor *tensor) {
    static const float nothing = 0;
    if (tensor->elements == 0) return &nothing; /* its data may be NULL, which would mean no memory */
    if (tensor->dtype == TARE_DT_FLOAT) return tensor->data;
    float *copy = scratch_floats(kernel, tensor->elements);
    struct conversion c = { .dtype = tensor->dtype, .floats = copy, .other = tensor->data, .count = tensor->elements };
    return copy && convert(kernel, &c) == TARE_OK ? copy : NULL;
}

float *tare_floats_out(struct tare_kernel *kernel, size_t i) {
    const struct tare_tensor *output = &kernel->outputs[i];
    if (output->dtype == TARE_DT_FLOAT) return output->data;
    return scratch_floats(kernel, output->elements);
}

void tare_floats_round(struct tare_kernel *kernel, size_t i, const float *values) {
    struct tare_tensor *output = &kernel->outputs[i];
    struct conversion c = {
        .dtype = output->dtype, .values = values, .other = output->data, .count = output->elements
    };
    if (output->dtype != TARE_DT_FLOAT && output->elements > 0) (void)convert(kernel, &c); /* a part cannot fail */
}

static float narrowed(int dtype, float x) {
    if (dtype == TARE_DT_HALF) return tare_float_from_half(tare_half_from_float(x));
    return dtype == TARE_DT_BFLOAT16 ? tare_float_from_bfloat16(tare_bfloat16_from_float(x)) : x;
}

double tare_floats_range(int dtype, double start, double limit, double delta) {
    if (dtype == TARE_DT_DOUBLE) return ceil(fabs((limit - start) / delta));
    const float span = narrowed(dtype, (float)limit - (float)start);
    return (double)ceilf(fabsf(narrowed(dtype, span / (float)delta)));
}

double tare_floats_step(int dtype, double start, double delta, int64_t i) {
    if (dtype == TARE_DT_DOUBLE) return start + (double)i * delta;
    const float distance = narrowed(dtype, narrowed(dtype, (float)i) * (float)delta);
    return (double)narrowed(dtype, (float)start + distance);
}
