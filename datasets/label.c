/* Labels of samples: class indices, or one-hot rows. */
#include "datasets/label.h"

#include <string.h>

bool tare_label_is_name(const char *key) {
    const char *slash = strrchr(key, '/'), *name = slash ? slash + 1 : key;
    return strcmp(name, "label") == 0 || strcmp(name, "class") == 0 || strcmp(name, "target") == 0;
}

tare_status tare_label_count(int64_t *out, const struct tare_sample *sample, const char *key) {
    const struct tare_tensor *value = tare_sample_find(sample, key);
    if (!value) return TARE_FAIL(TARE_NOT_FOUND, "the sample has no key '%s'", key);
    switch (tare_dtype_get(value->dtype)->class) {
    case TARE_CLASS_FLOAT:
    case TARE_CLASS_SIGNED:
    case TARE_CLASS_UNSIGNED:
    case TARE_CLASS_BOOL:
        break;
    default:
        return TARE_FAIL(TARE_TYPE, "label '%s' is not numeric (got %s)", key, tare_dtype_name(value->dtype));
    }
    *out = value->elements;
    return TARE_OK;
}

tare_status tare_label_get(int64_t *out, const struct tare_sample *sample, const char *key, int64_t row) {
    const struct tare_tensor *value = tare_sample_find(sample, key);
    int64_t count;
    TARE_TRY(tare_label_count(&count, sample, key));
    if (row < 0 || row >= count)
        return TARE_FAIL(TARE_SHAPE, "label '%s' has no row %lld (got %lld elements)", key, (long long)row,
                         (long long)count);
    if (tare_dtype_is_floating(value->dtype)) {
        double number = tare_tensor_get_f64(value, row);
        /* Written so that NaN fails, and values outside of int64 are not converted. */
        if (!(number >= 0 && number < 9e15) || number != (double)(int64_t)number)
            return TARE_FAIL(TARE_TYPE, "label '%s' is not a class index (got %g; give expected values as the target)",
                             key, number);
        *out = (int64_t)number;
        return TARE_OK;
    }
    *out = tare_tensor_get_i64(value, row);
    if (*out < 0) return TARE_FAIL(TARE_TYPE, "label '%s' is not a class index (got %lld)", key, (long long)*out);
    return TARE_OK;
}

/* The position of the 1 among `count` elements from `first` on, the others being 0; -1 if they are not one-hot. */
static int64_t one_hot_class(const struct tare_tensor *value, int64_t first, int64_t count) {
    int64_t found = -1;
    for (int64_t i = 0; i < count; i++) {
        const double x = tare_tensor_get_f64(value, first + i);
        if (x == 0) continue;
        if (x != 1 || found >= 0) return -1;
        found = i;
    }
    return found;
}

tare_status tare_label_class(int64_t *out, const struct tare_sample *sample, const char *key, int64_t row,
                             int64_t rows) {
    const struct tare_tensor *value = tare_sample_find(sample, key);
    int64_t count;
    TARE_TRY(tare_label_count(&count, sample, key));
    if (count == rows) return tare_label_get(out, sample, key, row);
    if (rows < 1 || count % rows || count < 2 * rows)
        return TARE_FAIL(TARE_SHAPE, "label '%s' has the wrong number of elements (expected %lld, got %lld)", key,
                         (long long)rows, (long long)count);
    *out = one_hot_class(value, row * (count / rows), count / rows);
    if (*out >= 0) return TARE_OK;
    return TARE_FAIL(
        TARE_SHAPE,
        "label '%s' has %lld elements for %lld example%s (expected one class index per example, or one-hot "
        "rows)",
        key, (long long)count, (long long)rows, rows == 1 ? "" : "s");
}

tare_status tare_sample_label(int64_t *out, const struct tare_sample *sample, const char *key) {
    int64_t count;
    TARE_TRY(tare_label_count(&count, sample, key));
    if (count != 1)
        return TARE_FAIL(TARE_SHAPE, "label '%s' has %lld elements (expected one class index)", key, (long long)count);
    return tare_label_get(out, sample, key, 0);
}
