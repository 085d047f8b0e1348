/* NumPy's .npy files. */
#ifndef TARE_DATASETS_NPY_H
#define TARE_DATASETS_NPY_H

#include "base/tensor/tensor.h"

/* A view of an array in memory (format 1.0, 2.0, 3.0; bool, integers, float16/32/64, complex, bytes (S) and text (U),
 * which become UTF-8 strings; C or Fortran order, either byte order). Borrows the bytes. */
struct tare_npy_view {
    int dtype;
    struct tare_shape shape;
    size_t item;                 /* bytes per element in the file */
    bool swapped, fortran, wide; /* wide: text with four bytes per character */
    const uint8_t *data;
};
/* TARE_CORRUPT for bytes that are not an array, a truncated array, or an empty one with absurd dimensions;
 * TARE_UNSUPPORTED for other element types. */
tare_status tare_npy_view_open(struct tare_npy_view *out, const void *bytes, size_t size) TARE_WARN_UNUSED;
/* Copies rows first … first+count-1 of axis 0 into a new tensor. TARE_SHAPE if they do not exist. */
tare_status tare_npy_view_rows(struct tare_tensor *out, const struct tare_npy_view *view, int64_t first,
                               int64_t count) TARE_WARN_UNUSED;

/* Reads a whole array into a new tensor. Errors as above, with the path. */
tare_status tare_npy_read(struct tare_tensor *out, const char *path) TARE_WARN_UNUSED;

/* Writes rows to a file: the first axis grows. bfloat16, which NumPy lacks, is written as float32 without loss;
 * so are 8-bit floats; quantized and 4-bit types as the integers that store them. */
struct tare_npy_writer;
/* `row` is the shape of one row; the file's shape is [rows, row…]. */
tare_status tare_npy_create(struct tare_npy_writer **out, const char *path, int dtype,
                            const struct tare_shape *row) TARE_WARN_UNUSED;
/* Appends the elements of a tensor, a whole number of rows. */
tare_status tare_npy_append(struct tare_npy_writer *writer, const struct tare_tensor *rows) TARE_WARN_UNUSED;
/* Completes the file and frees the writer, also on failure. */
tare_status tare_npy_commit(struct tare_npy_writer *writer) TARE_WARN_UNUSED;
void tare_npy_abort(struct tare_npy_writer *writer);
/* Writes a whole tensor. */
tare_status tare_npy_write(const char *path, const struct tare_tensor *tensor) TARE_WARN_UNUSED;

#endif
