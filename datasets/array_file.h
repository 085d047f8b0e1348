/* NPY and NPZ files as samples: row i of all arrays, with an axis of size 1 in front, is sample i. */
#ifndef TARE_DATASETS_ARRAY_FILE_H
#define TARE_DATASETS_ARRAY_FILE_H

#include "datasets/sample.h"

struct tare_array_file;

/* NPZ: each array is the input with its name; all have the same number of rows. NPY: one input, named after the file
 * without ".npy". Uncompressed arrays are memory-mapped. TARE_CORRUPT, TARE_UNSUPPORTED, TARE_SHAPE with path and
 * array. */
tare_status tare_array_file_open(struct tare_array_file **out, const char *path) TARE_WARN_UNUSED;
/* The same for a file's bytes, which the array file takes ownership of (tare_free), also on failure. `path`
 * determines the input name of an NPY ("array" for "-"; without ".gz") and is printed in errors. */
tare_status tare_array_file_open_bytes(struct tare_array_file **out, const char *path, uint8_t *bytes,
                                       size_t size) TARE_WARN_UNUSED;
/* Several NPY files joined into one: array i is the input names[i]. */
tare_status tare_array_file_join(struct tare_array_file **out, const char *const *names, const char *const *paths,
                                 size_t count) TARE_WARN_UNUSED;
void tare_array_file_close(struct tare_array_file *file);
int64_t tare_array_file_rows(const struct tare_array_file *file);
/* Where row i of the first array begins in the file (in the member, for a compressed one). */
int64_t tare_array_file_offset(const struct tare_array_file *file, int64_t row);
/* Sample number `row`; reset *out also after a failure. */
tare_status tare_array_file_sample(struct tare_sample *out, const struct tare_array_file *file,
                                   int64_t row) TARE_WARN_UNUSED;

#endif
