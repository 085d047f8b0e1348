/* Files of samples: records that map names to tensors. Read: TFRecord files of RepresentativeDataSample or (with a
 * spec) tf.Example, GZIP or ZLIB compressed or not, NPZ, pictures. Written: RepresentativeDataSample, as TensorFlow's
 * TfRecordRepresentativeDatasetSaver writes it. */
#ifndef TARE_SAMPLES_H
#define TARE_SAMPLES_H

#include "array.h"
#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tare_reader_handle tare_reader;
typedef struct tare_writer_handle tare_writer;

/* Reads files one after the other; a path may be a pattern ("samples-*.tfrecord"). `spec`: path of a DatasetSpec
 * (docs/dataset-spec.md), NULL where records are samples. Close it with tare_reader_close. */
TARE_API tare_status tare_reader_open(tare_reader **out, const char *const *paths, size_t n_paths, const char *spec);
/* NULL is fine. */
TARE_API void tare_reader_close(tare_reader *reader);
/* The next record: *arrays of *count tensors, the reader's, good until the next call. *arrays is NULL behind the last
 * record. Errors name file, record and byte; after one the reader can only be closed. */
TARE_API tare_status tare_reader_next(tare_reader *reader, const tare_array **arrays, size_t *count);

/* Writes a file under a temporary name; compressed when `path` ends in ".gz". It appears with tare_writer_close. */
TARE_API tare_status tare_writer_open(tare_writer **out, const char *path);
/* Appends one record; the arrays stay the caller's. */
TARE_API tare_status tare_writer_add(tare_writer *writer, const tare_array *arrays, size_t count);
/* Completes the file; the writer is gone, whatever comes back. */
TARE_API tare_status tare_writer_close(tare_writer *writer);
/* Ends it without a file. NULL is fine. */
TARE_API void tare_writer_discard(tare_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
