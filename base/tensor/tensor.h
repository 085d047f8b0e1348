/* Tensors: dtype, shape and a view into a reference-counted buffer, row-major and dense.
 *
 * A struct tare_tensor is a small value. Copy it with tare_tensor_share, which adds a reference; release it with
 * tare_tensor_reset. Elements of DT_STRING are struct tare_str whose bytes belong to the buffer; elements of
 * DT_RESOURCE and DT_VARIANT are struct tare_object pointers, each holding a reference (NULL: uninitialised). */
#ifndef TARE_BASE_TENSOR_TENSOR_H
#define TARE_BASE_TENSOR_TENSOR_H

#include "base/status.h"
#include "base/tensor/dtype.h"
#include "base/tensor/shape.h"

struct tare_buffer;

struct tare_str {
    const char *data; /* not NUL-terminated in general */
    size_t size;
};

/* A reference-counted object, the value of a resource or variant element. The first member of the actual struct. */
struct tare_object {
    _Atomic int references;
    const struct tare_object_type *type;
};
struct tare_object_type {
    const char *name; /* "TensorList", "Variable", "HashTable": for messages and casts */
    void (*destroy)(struct tare_object *object);
};
void tare_object_init(struct tare_object *object, const struct tare_object_type *type); /* one reference */
struct tare_object *tare_object_ref(struct tare_object *object);                        /* NULL stays NULL */
void tare_object_unref(struct tare_object *object);

struct tare_tensor {
    int dtype;  /* a base dtype, never a reference dtype; TARE_DT_INVALID: no tensor */
    bool splat; /* `data` has one element, the value of all (a compressed constant); never passed to kernels */
    struct tare_shape shape; /* always fully known */
    int64_t elements;        /* product of the dims */
    void *data;              /* first element; not NULL unless elements is 0 */
    struct tare_buffer *buffer;
};

/* Allocates a tensor with its own buffer: 64-byte aligned, numeric bytes uninitialised, strings and objects zeroed
 * (empty). An empty tensor has space for one element, zeroed. TARE_SHAPE for a shape that is not fully known or too
 * large, TARE_NO_MEMORY. */
tare_status tare_tensor_new(struct tare_tensor *out, int dtype, const struct tare_shape *shape) TARE_WARN_UNUSED;
/* A tensor over memory of another owner (a mapped checkpoint); `release(arg)` is called with the last reference (NULL:
 * the memory outlives every use). `data` must be aligned for the dtype: TARE_INVALID_ARGUMENT if not. */
tare_status tare_tensor_wrap(struct tare_tensor *out, int dtype, const struct tare_shape *shape, const void *data,
                             void (*release)(void *arg), void *arg) TARE_WARN_UNUSED;
/* True for a tensor created by tare_tensor_wrap with this release function. */
bool tare_tensor_is_view_of(const struct tare_tensor *tensor, void (*release)(void *arg));
/* Adds a reference to the same elements. *out is overwritten, not released. */
void tare_tensor_share(struct tare_tensor *out, const struct tare_tensor *tensor);
/* The same elements with another shape; TARE_SHAPE if the numbers of elements differ. */
tare_status tare_tensor_share_as(struct tare_tensor *out, const struct tare_tensor *tensor,
                                 const struct tare_shape *shape) TARE_WARN_UNUSED;
/* Rows first … first+count-1 of axis 0, sharing the buffer. */
tare_status tare_tensor_share_rows(struct tare_tensor *out, const struct tare_tensor *tensor, int64_t first,
                                   int64_t count) TARE_WARN_UNUSED;
/* A deep copy with its own buffer; expands a splat. */
tare_status tare_tensor_copy(struct tare_tensor *out, const struct tare_tensor *tensor) TARE_WARN_UNUSED;
/* True if this is the only reference to a buffer allocated by this module: it may be written in place. */
bool tare_tensor_is_exclusive(const struct tare_tensor *tensor);
/* Drops the reference and zeroes the tensor. No-op for a zeroed tensor. */
void tare_tensor_reset(struct tare_tensor *tensor);
/* Bytes of the elements (for strings: of the element table). */
size_t tare_tensor_bytes(const struct tare_tensor *tensor);

/* Sets element i of a DT_STRING tensor to a copy of the bytes, owned by the tensor's buffer. */
tare_status tare_tensor_set_string(struct tare_tensor *tensor, int64_t i, const void *data,
                                   size_t size) TARE_WARN_UNUSED;
/* Sets element i of a DT_RESOURCE or DT_VARIANT tensor; takes ownership of the caller's reference. */
void tare_tensor_set_object(struct tare_tensor *tensor, int64_t i, struct tare_object *object);

/* Typed views: TARE_DATA(float, t)[i]. */
#define TARE_DATA(type, tensor) ((type *)(tensor)->data)
#define TARE_CONST_DATA(type, tensor) ((const type *)(tensor)->data)

/* Constants for tests and passes. */
tare_status tare_tensor_scalar_f32(struct tare_tensor *out, float value) TARE_WARN_UNUSED;
tare_status tare_tensor_scalar_i32(struct tare_tensor *out, int32_t value) TARE_WARN_UNUSED;
tare_status tare_tensor_scalar_i64(struct tare_tensor *out, int64_t value) TARE_WARN_UNUSED;
tare_status tare_tensor_from(struct tare_tensor *out, int dtype, const struct tare_shape *shape,
                             const void *values) TARE_WARN_UNUSED;
/* Element i of an integer or bool tensor as int64. */
int64_t tare_tensor_get_i64(const struct tare_tensor *tensor, int64_t i);
/* Element i of a real (also 8-bit), integer or bool tensor as double. */
double tare_tensor_get_f64(const struct tare_tensor *tensor, int64_t i);
/* Element i of `a` minus element i of `b`, real, integer or bool tensors. The difference of two integers is exact
 * before it is rounded to double: it is not 0 for 64-bit integers that round to the same double. */
double tare_tensor_difference(const struct tare_tensor *a, const struct tare_tensor *b, int64_t i);
/* Element i of any numeric tensor as a complex number. */
_Complex double tare_tensor_get_c128(const struct tare_tensor *tensor, int64_t i);
/* Writes element i of an integer or bool tensor: the low bits of the value. */
void tare_tensor_set_i64(struct tare_tensor *tensor, int64_t i, int64_t value);
/* Writes element i of any numeric tensor. Floating-point elements are rounded once, to nearest, integers lose the
 * fraction and saturate (NaN becomes 0), complex ones have no imaginary part. */
void tare_tensor_set_f64(struct tare_tensor *tensor, int64_t i, double value);
/* The same for a complex number; other dtypes store its real part. */
void tare_tensor_set_c128(struct tare_tensor *tensor, int64_t i, _Complex double value);
/* True if dtype, shape and the bits of every element are equal: -0 differs from 0, a NaN equals itself. Objects are
 * compared by identity. */
bool tare_tensor_same_bits(const struct tare_tensor *a, const struct tare_tensor *b);

/* Allocates buffers and keeps freed ones for reuse; one thread at a time. Buffers may be freed on any thread and return
 * to their pool, whose memory lives until the last of them is freed. */
struct tare_buffer_pool;
struct tare_buffer_pool *tare_buffer_pool_new(void);
void tare_buffer_pool_free(struct tare_buffer_pool *pool);
/* Frees the buffers that are not in use. */
void tare_buffer_pool_trim(struct tare_buffer_pool *pool);
/* Limits the total size of the buffers in use (0: no limit); a request beyond it is TARE_NO_MEMORY. */
void tare_buffer_pool_limit(struct tare_buffer_pool *pool, size_t bytes);
/* Bytes of the buffers in use. */
size_t tare_buffer_pool_bytes(struct tare_buffer_pool *pool);
/* The most bytes in use since the previous call, or since the pool was created. */
size_t tare_buffer_pool_watch(struct tare_buffer_pool *pool);
/* Like tare_tensor_new, with numeric buffers from the pool (NULL: without a pool). */
tare_status tare_tensor_new_pooled(struct tare_tensor *out, int dtype, const struct tare_shape *shape,
                                   struct tare_buffer_pool *pool) TARE_WARN_UNUSED;

#endif
