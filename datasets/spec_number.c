/* Scaling numbers and converting their dtype. */
#include "datasets/spec_input.h"
#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

/* Converts integers of any width exactly: double would lose the lower bits of int64. */
static tare_status store_whole(struct tare_tensor *out, int64_t i, const struct tare_tensor *from) {
    static const struct {
        int dtype;
        int64_t least, most;
    } ranges[] = {
        { TARE_DT_INT8, INT8_MIN, INT8_MAX },
        { TARE_DT_INT16, INT16_MIN, INT16_MAX },
        { TARE_DT_INT32, INT32_MIN, INT32_MAX },
        { TARE_DT_INT64, INT64_MIN, INT64_MAX },
        { TARE_DT_UINT8, 0, UINT8_MAX },
        { TARE_DT_UINT16, 0, UINT16_MAX },
        { TARE_DT_UINT32, 0, UINT32_MAX },
        { TARE_DT_UINT64, 0, INT64_MAX },
        { TARE_DT_BOOL, 0, 1 },
    };
    int64_t x = tare_tensor_get_i64(from, i);
    size_t r = 0;
    if (from->dtype == TARE_DT_UINT64 && TARE_CONST_DATA(uint64_t, from)[i] > INT64_MAX && out->dtype != from->dtype)
        return TARE_FAIL(TARE_TYPE, "value %llu does not fit %s",
                         (unsigned long long)TARE_CONST_DATA(uint64_t, from)[i], tare_dtype_name(out->dtype));
    while (ranges[r].dtype != out->dtype)
        r++;
    if (x < ranges[r].least || x > ranges[r].most)
        return TARE_FAIL(TARE_TYPE, "value %lld does not fit %s", (long long)x, tare_dtype_name(out->dtype));
    memcpy((char *)out->data + (size_t)i * tare_dtype_size(out->dtype), &x, tare_dtype_size(out->dtype));
    return TARE_OK;
}

/* Rounds half to even and clips to the range of the dtype. */
static tare_status store_rounded(struct tare_tensor *out, int64_t i, double x) {
    bool is_signed = tare_dtype_get(out->dtype)->class == TARE_CLASS_SIGNED;
    int bits = out->dtype == TARE_DT_BOOL ? 1 : (int)tare_dtype_size(out->dtype) * 8 - (is_signed ? 1 : 0);
    double least = is_signed ? -ldexp(1, bits) : 0, over = ldexp(1, bits);
    uint64_t whole;
    if (isnan(x)) return TARE_FAIL(TARE_TYPE, "NaN cannot be converted to %s", tare_dtype_name(out->dtype));
    x = tare_round_half_even(x);
    if (x >= over)
        whole = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    else if (x < 0)
        whole = (uint64_t)(int64_t)fmax(x, least);
    else
        whole = (uint64_t)x;
    memcpy((char *)out->data + (size_t)i * tare_dtype_size(out->dtype), &whole, tare_dtype_size(out->dtype));
    return TARE_OK;
}

/* Finite numbers must stay finite. */
static tare_status check_finite(double x, bool became_infinite, int dtype) {
    if (!became_infinite || !isfinite(x)) return TARE_OK;
    return TARE_FAIL(TARE_TYPE, "value %g does not fit %s", x, tare_dtype_name(dtype));
}

static tare_status store(struct tare_tensor *out, int64_t i, double x) {
    uint16_t bits;
    switch (out->dtype) {
    case TARE_DT_FLOAT:
        TARE_DATA(float, out)[i] = (float)x;
        return check_finite(x, isinf((float)x), out->dtype);
    case TARE_DT_DOUBLE:
        TARE_DATA(double, out)[i] = x;
        return TARE_OK;
    case TARE_DT_HALF:
        TARE_DATA(uint16_t, out)[i] = bits = tare_half_from_double(x);
        return check_finite(x, (bits & 0x7fff) == 0x7c00, out->dtype);
    case TARE_DT_BFLOAT16:
        TARE_DATA(uint16_t, out)[i] = bits = tare_bfloat16_from_double(x);
        return check_finite(x, (bits & 0x7fff) == 0x7f80, out->dtype);
    default:
        return store_rounded(out, i, x);
    }
}

static bool is_whole(int dtype) {
    return tare_dtype_is_integer(dtype) || dtype == TARE_DT_BOOL;
}

/* The value of mean or std for element i: a single value is for all channels; none: `absent`. */
static double channel(const double *values, size_t count, int64_t i, double absent) {
    if (!count) return absent;
    return values[count == 1 ? 0 : (size_t)(i % (int64_t)count)];
}

static tare_status fill(struct tare_tensor *out, const Tare__DatasetInput *input, const struct tare_tensor *from,
                        bool scaled) {
    double scale = input->scale != 0 ? input->scale : 1;
    for (int64_t i = 0; i < from->elements; i++) {
        double x;
        if (!scaled && is_whole(from->dtype) && is_whole(out->dtype)) {
            TARE_TRY(store_whole(out, i, from));
            continue;
        }
        x = tare_tensor_get_f64(from, i);
        if (scaled)
            x = (x * scale - channel(input->mean, input->n_mean, i, 0)) / channel(input->std, input->n_std, i, 1);
        if (input->truncate) x = trunc(x);
        TARE_TRY(store(out, i, x));
    }
    return TARE_OK;
}

bool tare__spec_number_fits(int dtype, double x) {
    const bool is_signed = tare_dtype_get(dtype)->class == TARE_CLASS_SIGNED;
    const int bits = dtype == TARE_DT_BOOL ? 1 : (int)tare_dtype_size(dtype) * 8 - (is_signed ? 1 : 0);
    if (!is_whole(dtype)) return true;
    x = tare_round_half_even(x);
    return x >= (is_signed ? -ldexp(1, bits) : 0) && x < ldexp(1, bits);
}

static tare_status check_channels(const struct tare_tensor *value, size_t count, const char *what) {
    int64_t channels = value->shape.rank ? value->shape.dims[value->shape.rank - 1] : 1;
    if (count <= 1 || channels == (int64_t)count) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "%s has %zu values (expected 1, or one for each of %lld channels)", what, count,
                     (long long)channels);
}

/* Arithmetic on float8 is not supported. */
static bool is_number(int dtype) {
    return is_whole(dtype) || (tare_dtype_is_floating(dtype) && tare_dtype_size(dtype) > 1);
}

tare_status tare__spec_convert(struct tare_tensor *value, const Tare__DatasetInput *input, int dtype) {
    bool scaled = input->scale != 0 || input->n_mean || input->n_std;
    struct tare_tensor out;
    tare_status status;
    if (dtype == TARE_DT_INVALID) dtype = scaled && is_whole(value->dtype) ? TARE_DT_FLOAT : value->dtype;
    if (dtype == value->dtype && !scaled) return TARE_OK;
    if (value->dtype == TARE_DT_STRING && is_number(dtype))
        return TARE_FAIL(TARE_TYPE,
                         "string values cannot be converted to %s%s (list the texts as class_name, in the order of "
                         "their numbers; or set raw_type, if the bytes are numbers)",
                         scaled ? "scaled " : "", tare_dtype_name(dtype));
    if (!is_number(value->dtype) || !is_number(dtype))
        return TARE_FAIL(TARE_TYPE, "%s values cannot be converted to %s%s", tare_dtype_name(value->dtype),
                         scaled ? "scaled " : "", tare_dtype_name(dtype));
    TARE_TRY(check_channels(value, input->n_mean, "mean"));
    TARE_TRY(check_channels(value, input->n_std, "std"));
    TARE_TRY(tare_tensor_new(&out, dtype, &value->shape));
    status = fill(&out, input, value, scaled);
    if (status != TARE_OK) {
        tare_tensor_reset(&out);
        return status;
    }
    tare_tensor_reset(value);
    *value = out;
    return TARE_OK;
}
