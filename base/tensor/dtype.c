/* The dtype table. */
#include "base/tensor/dtype.h"

#include <stdio.h>
#include <string.h>

static const struct tare_dtype_info table[TARE_DT_COUNT] = {
#define X(id, number, size, class, spec, name) [number] = { TARE_DT_##id, size, TARE_CLASS_##class, spec, name },
    TARE_DTYPE_LIST(X)
#undef X
};

static const char *const ref_names[TARE_DT_COUNT] = {
#define X(id, number, size, class, spec, name) [number] = name "_ref",
    TARE_DTYPE_LIST(X)
#undef X
};

const struct tare_dtype_info *tare_dtype_get(int dtype) {
    int base = tare_dtype_base(dtype);
    return base > 0 && base < TARE_DT_COUNT ? &table[base] : NULL;
}

const char *tare_dtype_name(int dtype) {
    static _Thread_local char other[32];
    const struct tare_dtype_info *info = tare_dtype_get(dtype);
    if (info) return tare_dtype_is_ref(dtype) ? ref_names[info->dtype] : info->name;
    snprintf(other, sizeof other, "dtype %d", dtype);
    return other;
}

static bool same(const char *name, const char *text, size_t size) {
    return *name == *text && strlen(name) == size && memcmp(name, text, size) == 0;
}

int tare_dtype_from_name(const char *name, size_t size) {
    bool ref = size > 4 && memcmp(name + size - 4, "_ref", 4) == 0;
    if (ref) size -= 4;
    if (size == 0) return TARE_DT_INVALID;
    for (int i = 1; i < TARE_DT_COUNT; i++) {
        if (same(table[i].name, name, size) || same(table[i].spec_name, name, size))
            return ref ? i + TARE_DT_REF_OFFSET : i;
    }
    return TARE_DT_INVALID;
}

size_t tare_dtype_size(int dtype) {
    const struct tare_dtype_info *info = tare_dtype_get(dtype);
    return info ? info->size : 0;
}

bool tare_dtype_is_floating(int dtype) {
    const struct tare_dtype_info *info = tare_dtype_get(dtype);
    return info && info->class == TARE_CLASS_FLOAT;
}

bool tare_dtype_is_integer(int dtype) {
    const struct tare_dtype_info *info = tare_dtype_get(dtype);
    return info && (info->class == TARE_CLASS_SIGNED || info->class == TARE_CLASS_UNSIGNED);
}

bool tare_dtype_is_complex(int dtype) {
    const struct tare_dtype_info *info = tare_dtype_get(dtype);
    return info && info->class == TARE_CLASS_COMPLEX;
}
