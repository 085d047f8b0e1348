/* NumPy's .npy files. */
#ifndef TARE_DATASETS_NPY_H
#define TARE_DATASETS_NPY_H

#include "base/tensor/tensor.h"

/* An array in memory (format 1.0, 2.0, 3.0; bool, integers, float16/32/64, complex, bytes (S) and text (U), which
 * become strings in UTF-8; C or Fortran order, either byte order). Borrows the bytes. */
struct tare_npy_view {
    int dtype;
    struct tare_shape shape;
    size_t item;                 /* bytes of an element in the file */
    bool swapped, fortran, wide; /* wide: text of four bytes a character */
    const uint8_t *data;
};
/* TARE_CORRUPT for what is no array or is cut, TARE_UNSUPPORTED for other element types. */
tare_status tare_npy_view_open(struct tare_npy_view *out, const void *bytes, size_t size) TARE_WARN_UNUSED;
/* Rows first … first+count-1 of axis 0, which are there, as a tensor of its own. */
tare_status tare_npy_view_rows(struct tare_tensor *out, const struct tare_npy_view *view, int64_t first,
                               int64_t count) TARE_WARN_UNUSED;

/* Reads a whole array into a tensor of its own. Errors as above, with the path. */
tare_status tare_npy_read(struct tare_tensor *out, const char *path) TARE_WARN_UNUSED;

/* Writes rows to PATH as they come: the first axis grows. NumPy has no bfloat16: it is written as float32, which holds
 * it exactly; quantized and 4-bit types as the integers that store them. */
struct tare_npy_writer;
/* `row` is the shape of one row; the file's shape is [rows, row…]. */
tare_status tare_npy_create(struct tare_npy_writer **out, const char *path, int dtype,
                            const struct tare_shape *row) TARE_WARN_UNUSED;
/* Appends the elements of a tensor: whole rows. */
tare_status tare_npy_append(struct tare_npy_writer *writer, const struct tare_tensor *rows) TARE_WARN_UNUSED;
/* Completes the file and ends the writer, also on failure. */
tare_status tare_npy_commit(struct tare_npy_writer *writer) TARE_WARN_UNUSED;
void tare_npy_abort(struct tare_npy_writer *writer);
/* A whole tensor in one go. */
tare_status tare_npy_write(const char *path, const struct tare_tensor *tensor) TARE_WARN_UNUSED;

#endif
