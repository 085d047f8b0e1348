/* Tensors in a program's memory: name, element type, shape, and dense row-major elements. The same struct describes an
 * input or output of a signature; it then has no data, and dims may be unknown. */
#ifndef TARE_ARRAY_H
#define TARE_ARRAY_H

#include "api.h"
#include "dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TARE_ARRAY_MAX_RANK = 12, /* largest rank of an array */
    TARE_ARRAY_UNKNOWN = -1   /* a rank or dim that a signature does not specify; in descriptions only */
};

typedef struct tare_array {
    const char *name;                  /* input or output of the signature, "image"; NUL-terminated */
    int32_t dtype;                     /* enum tare_element_type */
    int32_t rank;                      /* 0: a scalar, one element; or TARE_ARRAY_UNKNOWN */
    int64_t dims[TARE_ARRAY_MAX_RANK]; /* the first `rank` are used; TARE_ARRAY_UNKNOWN where not specified */
    const void *data;     /* row-major elements without gaps, in native byte order, aligned for their type; may be NULL
                             if there are none. TARE_DTYPE_STRING: one struct tare_text per element */
    uint64_t reserved[4]; /* zero: arrays with other values are refused. For members of later versions */
} tare_array;

/* An element of a TARE_DTYPE_STRING array. */
typedef struct tare_text {
    const char *data; /* not NUL-terminated */
    size_t size;      /* bytes */
} tare_text;

/* Bytes per element in memory; 0 if `dtype` is not an element type. */
TARE_API size_t tare_element_size(int32_t dtype);
/* "float32", "bfloat16": NumPy's name if it has one, otherwise TensorFlow's; "dtype 77" if `dtype` is not an element
 * type. Valid until the thread's next call. */
TARE_API const char *tare_element_name(int32_t dtype);
/* The element type of a name ("float32", "float", "half"); 0 if there is none. */
TARE_API int32_t tare_element_from_name(const char *name);
/* Frees a string that the library returned to the caller (JSON reports). No-op if NULL. */
TARE_API void tare_text_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
