/* Tensors as programs have them: a name, an element type, a shape, and dense row-major elements in memory. The same
 * struct describes an input or output of a signature; then it has no data, and dims may be unknown. */
#ifndef TARE_ARRAY_H
#define TARE_ARRAY_H

#include "api.h"
#include "dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TARE_ARRAY_MAX_RANK = 12, /* the most dims of an array */
    TARE_ARRAY_UNKNOWN = -1   /* a rank or a dim that a signature leaves open */
};

typedef struct tare_array {
    const char *name;                  /* of the input or output: the key of the signature, "image"; ended by NUL */
    int32_t dtype;                     /* enum tare_element_type */
    int32_t rank;                      /* 0: a scalar, one element; TARE_ARRAY_UNKNOWN in descriptions only */
    int64_t dims[TARE_ARRAY_MAX_RANK]; /* the first `rank` count; TARE_ARRAY_UNKNOWN in descriptions only */
    const void *data; /* elements, row-major, without gaps, in the machine's byte order, aligned for their type; may be
                         NULL where there are none. TARE_STRING: struct tare_text, one an element */
} tare_array;

/* An element of a TARE_STRING array. */
typedef struct tare_text {
    const char *data; /* not ended by NUL */
    size_t size;      /* bytes */
} tare_text;

/* Bytes of one element; 0 for a number that is no element type. */
TARE_API size_t tare_element_size(int32_t dtype);
/* "float32", "bfloat16": NumPy's name where it has one; "dtype 77" for a number that is none (good until the thread's
 * next call). */
TARE_API const char *tare_element_name(int32_t dtype);
/* The type of a name ("float32", "float", "half"); 0 when there is none. */
TARE_API int32_t tare_element_from_name(const char *name);
/* Frees a text that a function of tare gave to the caller (reports). NULL is fine. */
TARE_API void tare_text_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
