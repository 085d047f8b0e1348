/* Reference-counted buffers, the pool that recycles them, and the tensors that view them. */
#include "base/tensor/tensor.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/poison.h"
#include "base/tensor/float8.h"
#include "base/tensor/narrow.h"
#include "base/tensor/number.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { SIZE_CLASSES = 160 };

struct tare_buffer {
    _Atomic int references;
    int dtype; /* determines how elements are released */
    int64_t elements;
    struct tare_arena text; /* bytes of string elements */
    void (*release)(void *arg);
    void *release_arg; /* with a release function: the owner's argument */
    struct tare_buffer_pool *pool;
    struct tare_buffer *next; /* in the pool's free list */
    int size_class;
    size_t size; /* bytes that count towards the pool's limit */
    void *data;  /* memory owned by the buffer; NULL for wrapped memory */
};

struct tare_buffer_pool {
    pthread_mutex_t lock; /* of all that follows */
    int references;       /* the owner and each buffer in use */
    size_t out, kept;     /* bytes of the buffers in use and of the free ones */
    size_t most;          /* most of `out` since tare_buffer_pool_watch */
    size_t limit;         /* of out; 0: none */
    struct tare_buffer *free[SIZE_CLASSES];
};

void tare_object_init(struct tare_object *object, const struct tare_object_type *type) {
    atomic_init(&object->references, 1);
    object->type = type;
}

struct tare_object *tare_object_ref(struct tare_object *object) {
    if (object) atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
    return object;
}

void tare_object_unref(struct tare_object *object) {
    if (object && atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) == 1)
        object->type->destroy(object);
}

struct tare_buffer_pool *tare_buffer_pool_new(void) {
    struct tare_buffer_pool *pool = tare_calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pool->references = 1;
    return pool;
}

static void pool_empty(struct tare_buffer_pool *pool) {
    for (int i = 0; i < SIZE_CLASSES; i++) {
        struct tare_buffer *buffer = pool->free[i];
        pool->free[i] = NULL;
        while (buffer) {
            struct tare_buffer *next = buffer->next;
            tare_free(buffer->data);
            tare_free(buffer);
            buffer = next;
        }
    }
    pool->kept = 0;
}

/* Drops a reference and releases the lock; frees the pool with the last reference. */
static void pool_unref(struct tare_buffer_pool *pool) {
    const bool is_last = --pool->references == 0;
    pthread_mutex_unlock(&pool->lock);
    if (!is_last) return;
    pool_empty(pool);
    pthread_mutex_destroy(&pool->lock);
    tare_free(pool);
}

void tare_buffer_pool_free(struct tare_buffer_pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool_unref(pool);
}

void tare_buffer_pool_trim(struct tare_buffer_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool_empty(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* Four size classes per power of two: a buffer is at most a quarter larger than requested. */
static int size_class_of(size_t size, size_t *rounded) {
    const size_t least = 256;
    if (size <= least) return *rounded = least, 0;
    const int power = 63 - __builtin_clzll((size - 1) / least); /* size is in (least << power, least << (power + 1)] */
    const size_t unit = least / 4 << power, steps = (size - (least << power) + unit - 1) / unit;
    const int class = 4 * power + (int)steps;
    *rounded = (least << power) + steps * unit;
    return class < SIZE_CLASSES ? class : -1;
}

void tare_buffer_pool_limit(struct tare_buffer_pool *pool, size_t bytes) {
    pthread_mutex_lock(&pool->lock);
    pool->limit = bytes;
    pthread_mutex_unlock(&pool->lock);
}

size_t tare_buffer_pool_bytes(struct tare_buffer_pool *pool) {
    size_t bytes;
    pthread_mutex_lock(&pool->lock);
    bytes = pool->out;
    pthread_mutex_unlock(&pool->lock);
    return bytes;
}

size_t tare_buffer_pool_watch(struct tare_buffer_pool *pool) {
    size_t most;
    pthread_mutex_lock(&pool->lock);
    most = pool->most;
    pool->most = pool->out;
    pthread_mutex_unlock(&pool->lock);
    return most;
}

/* With the lock held: true if `bytes` more may be allocated. Frees unused buffers if necessary. */
static bool pool_has_room(struct tare_buffer_pool *pool, size_t bytes) {
    if (!pool->limit) return true;
    if (bytes > pool->limit || pool->out > pool->limit - bytes) return false;
    if (pool->kept > pool->limit - bytes - pool->out) pool_empty(pool);
    return true;
}

static tare_status pool_is_full(struct tare_buffer_pool *pool, size_t bytes) {
    return TARE_FAIL(TARE_NO_MEMORY,
                     "%zu bytes more than the memory limit allows (expected at most %zu, got %zu in use)", bytes,
                     pool->limit, pool->out);
}

/* Even an empty tensor has space for one zeroed element: an op that reads a scalar from a model's empty tensor gets 0
 * instead of reading out of bounds. */
enum { ONE_ELEMENT = 16 };

static struct tare_buffer *new_buffer(size_t bytes) {
    struct tare_buffer *buffer = tare_calloc(1, sizeof *buffer);
    if (!buffer) return NULL;
    buffer->data = tare_malloc_aligned(bytes ? bytes : ONE_ELEMENT);
    if (buffer->data) return buffer;
    tare_free(buffer);
    return NULL;
}

/* Of a recycled buffer only the bytes of the present elements may be accessed. */
static void limit_access(const struct tare_buffer *buffer, size_t bytes, size_t rounded) {
    const size_t used = bytes ? bytes : ONE_ELEMENT;
    tare_unpoison(buffer->data, used);
    if (rounded > used) tare_poison((const char *)buffer->data + used, rounded - used);
}

static tare_status pool_take(struct tare_buffer **out, struct tare_buffer_pool *pool, size_t bytes) {
    size_t rounded;
    int class = size_class_of(bytes, &rounded);
    struct tare_buffer *buffer = NULL;
    bool room;
    if (class < 0) return TARE_FAIL(TARE_NO_MEMORY, "no memory for %zu bytes", bytes);
    pthread_mutex_lock(&pool->lock);
    if (pool->free[class]) {
        buffer = pool->free[class];
        pool->free[class] = buffer->next;
        pool->kept -= rounded;
    }
    room = pool_has_room(pool, rounded);
    if (room) pool->out += rounded, pool->references++;
    if (pool->out > pool->most) pool->most = pool->out;
    pthread_mutex_unlock(&pool->lock);
    if (!room) {
        if (buffer) {
            tare_free(buffer->data);
            tare_free(buffer);
        }
        return pool_is_full(pool, rounded);
    }
    if (!buffer) buffer = new_buffer(rounded);
    if (!buffer) {
        pthread_mutex_lock(&pool->lock);
        pool->out -= rounded;
        pool_unref(pool);
        return TARE_NO_MEMORY;
    }
    limit_access(buffer, bytes, rounded);
    buffer->size_class = class;
    buffer->size = rounded;
    buffer->pool = pool;
    *out = buffer;
    return TARE_OK;
}

static void pool_return(struct tare_buffer *buffer) {
    struct tare_buffer_pool *pool = buffer->pool;
    tare_poison(buffer->data, buffer->size);
    pthread_mutex_lock(&pool->lock);
    buffer->next = pool->free[buffer->size_class];
    pool->free[buffer->size_class] = buffer;
    pool->out -= buffer->size;
    pool->kept += buffer->size;
    pool_unref(pool);
}

/* True if that was the last reference. The only reference cannot be shared meanwhile, so that no atomic subtraction is
 * needed. */
static bool drop_reference(struct tare_buffer *buffer) {
    return atomic_load_explicit(&buffer->references, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) == 1;
}

static void buffer_unref(struct tare_buffer *buffer) {
    if (!buffer || !drop_reference(buffer)) return;
    if (buffer->dtype == TARE_DT_RESOURCE || buffer->dtype == TARE_DT_VARIANT)
        for (int64_t i = 0; i < buffer->elements; i++)
            tare_object_unref(((struct tare_object **)buffer->data)[i]);
    if (buffer->pool) {
        pool_return(buffer);
        return;
    }
    tare_arena_free(&buffer->text);
    if (buffer->release) buffer->release(buffer->release_arg);
    tare_free(buffer->data);
    tare_free(buffer);
}

/* Sets all but the memory; zeros on failure. */
static tare_status describe(struct tare_tensor *out, int dtype, const struct tare_shape *shape, size_t *bytes) {
    const size_t size = tare_dtype_size(dtype);
    int64_t elements;
    memset(out, 0, sizeof *out);
    if (!size || tare_dtype_is_ref(dtype))
        return TARE_FAIL(TARE_TYPE, "%s is not a tensor dtype", tare_dtype_name(dtype));
    TARE_TRY(tare_shape_elements(&elements, shape));
    if (!tare_mul_size(bytes, (size_t)elements, size) || *bytes > (size_t)INT64_MAX / 2)
        return TARE_FAIL(TARE_SHAPE, "a tensor of %lld elements is too large", (long long)elements);
    out->dtype = dtype;
    out->shape = *shape;
    out->elements = elements;
    return TARE_OK;
}

static tare_status take_buffer(struct tare_buffer **buffer, struct tare_buffer_pool *pool, size_t bytes,
                               enum tare_dtype_class class) {
    if (pool && class != TARE_CLASS_STRING && class != TARE_CLASS_OBJECT) return pool_take(buffer, pool, bytes);
    if (pool && pool->limit && bytes > pool->limit) return pool_is_full(pool, bytes);
    *buffer = new_buffer(bytes);
    return *buffer ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_tensor_new_pooled(struct tare_tensor *out, int dtype, const struct tare_shape *shape,
                                   struct tare_buffer_pool *pool) {
    struct tare_buffer *buffer = NULL;
    size_t bytes;
    TARE_TRY(describe(out, dtype, shape, &bytes));
    const enum tare_dtype_class class = tare_dtype_get(dtype)->class;
    const tare_status status = take_buffer(&buffer, pool, bytes, class);
    if (status != TARE_OK) {
        memset(out, 0, sizeof *out);
        return status;
    }
    if (!bytes) memset(buffer->data, 0, ONE_ELEMENT);
    if (class == TARE_CLASS_STRING || class == TARE_CLASS_OBJECT) memset(buffer->data, 0, bytes);
    atomic_init(&buffer->references, 1);
    buffer->dtype = dtype;
    buffer->elements = out->elements;
    out->data = buffer->data;
    out->buffer = buffer;
    return TARE_OK;
}

tare_status tare_tensor_new(struct tare_tensor *out, int dtype, const struct tare_shape *shape) {
    return tare_tensor_new_pooled(out, dtype, shape, NULL);
}

static size_t alignment_of(int dtype) {
    size_t size = tare_dtype_size(dtype);
    return size > 8 ? 8 : size;
}

tare_status tare_tensor_wrap(struct tare_tensor *out, int dtype, const struct tare_shape *shape, const void *data,
                             void (*release)(void *arg), void *arg) {
    struct tare_tensor made;
    size_t bytes;
    memset(out, 0, sizeof *out);
    TARE_TRY(describe(&made, dtype, shape, &bytes));
    if ((uintptr_t)data % alignment_of(dtype))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "memory is not aligned for %s", tare_dtype_name(dtype));
    made.buffer = tare_calloc(1, sizeof *made.buffer);
    if (!made.buffer) return TARE_NO_MEMORY;
    atomic_init(&made.buffer->references, 1);
    made.buffer->release = release;
    made.buffer->release_arg = arg;
    made.data = (void *)(uintptr_t)data;
    *out = made;
    return TARE_OK;
}

bool tare_tensor_is_view_of(const struct tare_tensor *tensor, void (*release)(void *arg)) {
    return tensor->buffer && tensor->buffer->release == release;
}

void tare_tensor_share(struct tare_tensor *out, const struct tare_tensor *tensor) {
    *out = *tensor;
    if (out->buffer) atomic_fetch_add_explicit(&out->buffer->references, 1, memory_order_relaxed);
}

tare_status tare_tensor_share_as(struct tare_tensor *out, const struct tare_tensor *tensor,
                                 const struct tare_shape *shape) {
    int64_t elements;
    TARE_TRY(tare_shape_elements(&elements, shape));
    if (elements != tensor->elements) {
        char from[TARE_SHAPE_TEXT_SIZE], to[TARE_SHAPE_TEXT_SIZE];
        return TARE_FAIL(TARE_SHAPE, "shape %s has a different number of elements than %s", tare_shape_text(to, shape),
                         tare_shape_text(from, &tensor->shape));
    }
    tare_tensor_share(out, tensor);
    out->shape = *shape;
    return TARE_OK;
}

tare_status tare_tensor_share_rows(struct tare_tensor *out, const struct tare_tensor *tensor, int64_t first,
                                   int64_t count) {
    int64_t row;
    if (tensor->shape.rank < 1 || first < 0 || count < 0 || first > tensor->shape.dims[0] - count)
        return TARE_FAIL(TARE_SHAPE, "rows %lld to %lld are outside the tensor", (long long)first,
                         (long long)(first + count));
    row = tensor->shape.dims[0] ? tensor->elements / tensor->shape.dims[0] : 0;
    tare_tensor_share(out, tensor);
    out->shape.dims[0] = count;
    out->elements = row * count;
    if (!out->splat) out->data = (char *)out->data + (size_t)(row * first) * tare_dtype_size(tensor->dtype);
    return TARE_OK;
}

static tare_status copy_strings(struct tare_tensor *out, const struct tare_tensor *tensor) {
    for (int64_t i = 0; i < tensor->elements; i++) {
        const struct tare_str *from = &TARE_CONST_DATA(struct tare_str, tensor)[tensor->splat ? 0 : i];
        TARE_TRY(tare_tensor_set_string(out, i, from->data, from->size));
    }
    return TARE_OK;
}

tare_status tare_tensor_copy(struct tare_tensor *out, const struct tare_tensor *tensor) {
    struct tare_tensor made;
    size_t size = tare_dtype_size(tensor->dtype);
    tare_status status = tare_tensor_new(&made, tensor->dtype, &tensor->shape);
    enum tare_dtype_class class;

    memset(out, 0, sizeof *out);
    if (status != TARE_OK) return status;
    class = tare_dtype_get(tensor->dtype)->class;
    if (class == TARE_CLASS_STRING) {
        status = copy_strings(&made, tensor);
    } else if (class == TARE_CLASS_OBJECT) {
        for (int64_t i = 0; i < tensor->elements; i++)
            TARE_DATA(struct tare_object *, &made)
        [i] = tare_object_ref(TARE_DATA(struct tare_object *, tensor)[tensor->splat ? 0 : i]);
    } else if (!tensor->splat) {
        if (made.elements) memcpy(made.data, tensor->data, tare_tensor_bytes(&made));
    } else {
        for (int64_t i = 0; i < made.elements; i++)
            memcpy((char *)made.data + (size_t)i * size, tensor->data, size);
    }
    if (status != TARE_OK) {
        tare_tensor_reset(&made);
        return status;
    }
    *out = made;
    return TARE_OK;
}

bool tare_tensor_is_exclusive(const struct tare_tensor *tensor) {
    return tensor->buffer && tensor->buffer->data && !tensor->splat &&
           atomic_load_explicit(&tensor->buffer->references, memory_order_acquire) == 1;
}

void tare_tensor_reset(struct tare_tensor *tensor) {
    buffer_unref(tensor->buffer);
    memset(tensor, 0, sizeof *tensor);
}

size_t tare_tensor_bytes(const struct tare_tensor *tensor) {
    return (size_t)tensor->elements * tare_dtype_size(tensor->dtype);
}

tare_status tare_tensor_set_string(struct tare_tensor *tensor, int64_t i, const void *data, size_t size) {
    char *copy = tare_arena_strndup(&tensor->buffer->text, data, size);
    if (!copy) return TARE_NO_MEMORY;
    TARE_DATA(struct tare_str, tensor)[i] = (struct tare_str){ copy, size };
    return TARE_OK;
}

void tare_tensor_set_object(struct tare_tensor *tensor, int64_t i, struct tare_object *object) {
    struct tare_object **slot = &TARE_DATA(struct tare_object *, tensor)[i];
    tare_object_unref(*slot);
    *slot = object;
}

tare_status tare_tensor_from(struct tare_tensor *out, int dtype, const struct tare_shape *shape, const void *values) {
    TARE_TRY(tare_tensor_new(out, dtype, shape));
    if (out->elements) memcpy(out->data, values, tare_tensor_bytes(out));
    return TARE_OK;
}

tare_status tare_tensor_scalar_f32(struct tare_tensor *out, float value) {
    struct tare_shape scalar = tare_shape_scalar();
    return tare_tensor_from(out, TARE_DT_FLOAT, &scalar, &value);
}

tare_status tare_tensor_scalar_i32(struct tare_tensor *out, int32_t value) {
    struct tare_shape scalar = tare_shape_scalar();
    return tare_tensor_from(out, TARE_DT_INT32, &scalar, &value);
}

tare_status tare_tensor_scalar_i64(struct tare_tensor *out, int64_t value) {
    struct tare_shape scalar = tare_shape_scalar();
    return tare_tensor_from(out, TARE_DT_INT64, &scalar, &value);
}

int64_t tare_tensor_get_i64(const struct tare_tensor *t, int64_t i) {
    if (t->splat) i = 0;
    switch (t->dtype) {
    case TARE_DT_BOOL:
    case TARE_DT_UINT8:
    case TARE_DT_QUINT8:
    case TARE_DT_UINT4:
    case TARE_DT_UINT2:
        return TARE_CONST_DATA(uint8_t, t)[i];
    case TARE_DT_INT8:
    case TARE_DT_QINT8:
    case TARE_DT_INT4:
    case TARE_DT_INT2:
        return TARE_CONST_DATA(int8_t, t)[i];
    case TARE_DT_UINT16:
    case TARE_DT_QUINT16:
        return TARE_CONST_DATA(uint16_t, t)[i];
    case TARE_DT_INT16:
    case TARE_DT_QINT16:
        return TARE_CONST_DATA(int16_t, t)[i];
    case TARE_DT_UINT32:
        return TARE_CONST_DATA(uint32_t, t)[i];
    case TARE_DT_INT32:
    case TARE_DT_QINT32:
        return TARE_CONST_DATA(int32_t, t)[i];
    case TARE_DT_UINT64:
        return (int64_t)TARE_CONST_DATA(uint64_t, t)[i];
    case TARE_DT_INT64:
        return TARE_CONST_DATA(int64_t, t)[i];
    default:
        return 0;
    }
}

double tare_tensor_get_f64(const struct tare_tensor *t, int64_t i) {
    int64_t at = t->splat ? 0 : i;
    switch (t->dtype) {
    case TARE_DT_FLOAT:
        return TARE_CONST_DATA(float, t)[at];
    case TARE_DT_DOUBLE:
        return TARE_CONST_DATA(double, t)[at];
    case TARE_DT_HALF:
        return tare_float_from_half(TARE_CONST_DATA(uint16_t, t)[at]);
    case TARE_DT_BFLOAT16:
        return tare_float_from_bfloat16(TARE_CONST_DATA(uint16_t, t)[at]);
    case TARE_DT_FLOAT8_E5M2:
    case TARE_DT_FLOAT8_E4M3FN:
    case TARE_DT_FLOAT8_E4M3FNUZ:
    case TARE_DT_FLOAT8_E4M3B11FNUZ:
    case TARE_DT_FLOAT8_E5M2FNUZ:
        return tare_float8_decode(tare_float8_format(t->dtype), TARE_CONST_DATA(uint8_t, t)[at]);
    case TARE_DT_UINT64:
        return (double)TARE_CONST_DATA(uint64_t, t)[at];
    default:
        return (double)tare_tensor_get_i64(t, i);
    }
}

static __int128 whole_number(const struct tare_tensor *t, int64_t i) {
    const int64_t x = tare_tensor_get_i64(t, i);
    return t->dtype == TARE_DT_UINT64 ? (__int128)(uint64_t)x : x;
}

double tare_tensor_difference(const struct tare_tensor *a, const struct tare_tensor *b, int64_t i) {
    if (tare_dtype_is_integer(a->dtype) && tare_dtype_is_integer(b->dtype))
        return (double)(whole_number(a, i) - whole_number(b, i));
    return tare_tensor_get_f64(a, i) - tare_tensor_get_f64(b, i);
}

_Complex double tare_tensor_get_c128(const struct tare_tensor *t, int64_t i) {
    const int64_t at = t->splat ? 0 : i;
    if (t->dtype == TARE_DT_COMPLEX64) return (_Complex double)TARE_CONST_DATA(_Complex float, t)[at];
    if (t->dtype == TARE_DT_COMPLEX128) return TARE_CONST_DATA(_Complex double, t)[at];
    return tare_tensor_get_f64(t, i);
}

void tare_tensor_set_i64(struct tare_tensor *t, int64_t i, int64_t value) {
    switch (tare_dtype_size(t->dtype)) {
    case 1:
        TARE_DATA(uint8_t, t)[i] = (uint8_t)value;
        break;
    case 2:
        TARE_DATA(uint16_t, t)[i] = (uint16_t)value;
        break;
    case 4:
        TARE_DATA(uint32_t, t)[i] = (uint32_t)value;
        break;
    default:
        TARE_DATA(uint64_t, t)[i] = (uint64_t)value;
        break;
    }
}

/* Least and greatest value of an integer dtype, the latter below 2^63. */
static void integer_limits(int dtype, double *low, double *high) {
    const struct tare_dtype_info *info = tare_dtype_get(dtype);
    const int bits = tare_dtype_bits(dtype);
    const bool is_unsigned =
        info->class == TARE_CLASS_UNSIGNED || (info->class == TARE_CLASS_QUANTIZED && info->spec_name[1] == 'u');
    *low = is_unsigned ? 0 : -ldexp(1, bits - 1);
    *high = is_unsigned ? ldexp(1, bits) - 1 : ldexp(1, bits - 1) - 1;
}

static int64_t saturated(double value, int dtype) {
    double low, high;
    if (dtype == TARE_DT_BOOL) return value != 0;
    if (isnan(value)) return 0;
    integer_limits(dtype, &low, &high);
    if (value <= low) return dtype == TARE_DT_INT64 ? INT64_MIN : (int64_t)low;
    if (value >= high) /* 2^63 - 1 and 2^64 - 1 are not representable as double */
        return dtype == TARE_DT_INT64 ? INT64_MAX : dtype == TARE_DT_UINT64 ? -1 : (int64_t)high;
    return dtype == TARE_DT_UINT64 ? (int64_t)(uint64_t)value : (int64_t)value;
}

void tare_tensor_set_f64(struct tare_tensor *t, int64_t i, double value) {
    switch (t->dtype) {
    case TARE_DT_FLOAT:
        TARE_DATA(float, t)[i] = (float)value;
        break;
    case TARE_DT_DOUBLE:
        TARE_DATA(double, t)[i] = value;
        break;
    case TARE_DT_HALF:
        TARE_DATA(uint16_t, t)[i] = tare_half_from_double(value);
        break;
    case TARE_DT_BFLOAT16:
        TARE_DATA(uint16_t, t)[i] = tare_bfloat16_from_double(value);
        break;
    case TARE_DT_FLOAT8_E5M2:
    case TARE_DT_FLOAT8_E4M3FN:
    case TARE_DT_FLOAT8_E4M3FNUZ:
    case TARE_DT_FLOAT8_E4M3B11FNUZ:
    case TARE_DT_FLOAT8_E5M2FNUZ:
        TARE_DATA(uint8_t, t)[i] = tare_float8_encode(tare_float8_format(t->dtype), value);
        break;
    case TARE_DT_COMPLEX64:
        TARE_DATA(_Complex float, t)[i] = (float)value;
        break;
    case TARE_DT_COMPLEX128:
        TARE_DATA(_Complex double, t)[i] = value;
        break;
    default:
        tare_tensor_set_i64(t, i, saturated(value, t->dtype));
        break;
    }
}

void tare_tensor_set_c128(struct tare_tensor *t, int64_t i, _Complex double value) {
    if (t->dtype == TARE_DT_COMPLEX64)
        TARE_DATA(_Complex float, t)[i] = (_Complex float)value;
    else if (t->dtype == TARE_DT_COMPLEX128)
        TARE_DATA(_Complex double, t)[i] = value;
    else
        tare_tensor_set_f64(t, i, __real__ value);
}

static bool same_element(const struct tare_tensor *a, int64_t i, const struct tare_tensor *b, int64_t k) {
    if (a->dtype == TARE_DT_STRING) {
        const struct tare_str *x = &TARE_CONST_DATA(struct tare_str, a)[i],
                              *y = &TARE_CONST_DATA(struct tare_str, b)[k];
        return x->size == y->size && (x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
    }
    const size_t size = tare_dtype_size(a->dtype);
    return memcmp((const char *)a->data + (size_t)i * size, (const char *)b->data + (size_t)k * size, size) == 0;
}

bool tare_tensor_same_bits(const struct tare_tensor *a, const struct tare_tensor *b) {
    if (a->dtype != b->dtype || !tare_shape_equal(&a->shape, &b->shape)) return false;
    if (a->elements == 0 || (a->data == b->data && a->splat == b->splat)) return true;
    if (a->dtype != TARE_DT_STRING && !a->splat && !b->splat)
        return memcmp(a->data, b->data, tare_tensor_bytes(a)) == 0;
    for (int64_t i = 0; i < (a->splat && b->splat ? 1 : a->elements); i++)
        if (!same_element(a, a->splat ? 0 : i, b, b->splat ? 0 : i)) return false;
    return true;
}
