/* Data files: records that map names to tensors. Readers support TFRecord files (GZIP, ZLIB or uncompressed) of
 * RepresentativeDataSample or, with a DatasetSpec, of tf.Example, and NPY, NPZ and CSV files and folders of images.
 * Writers write RepresentativeDataSample as TensorFlow's TfRecordRepresentativeDatasetSaver does. */
#ifndef TARE_SAMPLES_H
#define TARE_SAMPLES_H

#include "array.h"
#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Thread-compatible: it has a place in its files. */
typedef struct tare_reader_handle tare_reader;
/* Thread-compatible: records are in the order of the calls. */
typedef struct tare_writer_handle tare_writer;

/* Reads files one after another; a path may be a pattern ("samples-*.tfrecord"). `spec`: path of a DatasetSpec
 * (docs/dataset-spec.md), or NULL if records need none. Release it with tare_reader_close. */
TARE_API TARE_CHECKED tare_status tare_reader_open(tare_reader **out, tare_context *context, const char *const *paths,
                                                   size_t n_paths, const char *spec);
/* Frees the reader and its arrays. No-op if NULL. */
TARE_API void tare_reader_close(tare_reader *reader);
/* Reads the next record: *arrays is an array of *count tensors, owned by the reader and valid until the next call, or
 * NULL after the last record. Errors name file, record and byte; after one, the reader can only be closed. Fails with
 * TARE_ERROR_INTERRUPTED after tare_context_cancel. */
TARE_API TARE_CHECKED tare_status tare_reader_next(tare_reader *reader, const tare_array **arrays, size_t *count);

/* Starts a TFRecord file, GZIP-compressed if `path` ends in ".gz". The file appears with tare_writer_close. */
TARE_API TARE_CHECKED tare_status tare_writer_open(tare_writer **out, const char *path);
/* Appends one record. The arrays are copied. */
TARE_API TARE_CHECKED tare_status tare_writer_add(tare_writer *writer, const tare_array *arrays, size_t count);
/* Completes the file and frees the writer, also on failure. */
TARE_API TARE_CHECKED tare_status tare_writer_close(tare_writer *writer);
/* Frees the writer without writing a file. No-op if NULL. */
TARE_API void tare_writer_discard(tare_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
