/* One file of a data set as a sequence of records, whatever its format: TFRecord, NPY, NPZ, CSV, an image or a folder
 * of images. The format is detected from the contents. */
#ifndef TARE_DATASETS_DATA_FILE_H
#define TARE_DATASETS_DATA_FILE_H

#include "base/file.h"
#include "datasets/spec.h"

struct tare_data_file;

/* Instead of a path: "arrays:NAME=FILE.npy,NAME=FILE.npy" are NPY files with equal numbers of rows, joined into records
 * with one key per file. */
#define TARE_DATA_ARRAYS "arrays:"
/* Appends what a path stands for: the files of a pattern, those of a folder of records (data_folder.h), or itself. */
tare_status tare_data_files_add(struct tare_file_list *files, const char *path) TARE_WARN_UNUSED;
/* TARE_USAGE if standard input is among the files more than once: its second reader would find it empty. */
tare_status tare_data_files_check(const struct tare_file_list *files) TARE_WARN_UNUSED;
/* The first path that can be read only once: "-", standard input, or a pipe; NULL: none. */
const char *tare_data_read_once(const char *const *paths, size_t count);
bool tare_data_is_arrays(const char *path);
/* Where FILE begins in "NAME=FILE.npy", up to a comma; NULL: nowhere. A name may contain "=": of several, the first is
 * taken after which a file of that name exists, or else the first. */
const char *tare_data_array_file(const char *item);
/* The name of array `i` of such a path, not terminated, and its length; NULL after the last one. */
const char *tare_data_arrays_name(size_t *length, const char *path, size_t i);

struct tare_data_record {
    int64_t number;      /* in the file, from 0 */
    int64_t offset;      /* of its first byte in the uncompressed file; 0 in a folder */
    const uint8_t *data; /* bytes of a TFRecord, valid until the next call; NULL in other formats */
    size_t size;
};

/* "-" is standard input. CSV files, compressed arrays and arrays in pipes are read into memory. `labels` (NULL: none)
 * is for images, see image_folder.h; TARE_USAGE for files of other formats. */
tare_status tare_data_file_open(struct tare_data_file **out, const char *path, const char *labels) TARE_WARN_UNUSED;
/* Opens the file `i` of a data set, in order from 0; closes `before`, the one before it (NULL for the first), and
 * reuses its buffers. The first CSV file reads the columns of all later ones: a column has one dtype in all of them. */
tare_status tare_data_file_open_of(struct tare_data_file **out, const struct tare_file_list *files, size_t i,
                                   const char *labels, struct tare_data_file *before) TARE_WARN_UNUSED;
/* Joins several NPY files, each the values of one input. */
tare_status tare_data_file_join(struct tare_data_file **out, const char *const *names, const char *const *paths,
                                size_t count) TARE_WARN_UNUSED;
void tare_data_file_close(struct tare_data_file *file);
/* "TFRecord", "NPY", "NPZ", "CSV", "images"; "TFRecord, gzip" … */
const char *tare_data_file_format(const struct tare_data_file *file);
/* Class names of images by class index; NULL and 0 in other formats. */
const char *const *tare_data_file_classes(const struct tare_data_file *file, size_t *count);
/* Reads the next record; *end after the last one. After TARE_CORRUPT, a bad record, the next call continues with the
 * following record or sets *end, like tare_tfrecord_next. */
tare_status tare_data_file_next(struct tare_data_record *out, bool *end, struct tare_data_file *file) TARE_WARN_UNUSED;
/* True if the last call failed because the file ends inside a record. */
bool tare_data_file_is_cut(const struct tare_data_file *file);
/* Number and offset of the record that the next call will read. */
void tare_data_file_position(struct tare_data_record *out, const struct tare_data_file *file);
/* Converts a record to a sample; NULL spec: the record is a sample. Reset *out also after a failure. */
tare_status tare_data_file_decode(struct tare_sample *out, const struct tare_data_file *file,
                                  const struct tare_data_record *record,
                                  const struct tare_dataset_spec *spec) TARE_WARN_UNUSED;
/* Converts a record to a sample without a spec, for display: features become tensors unchanged. *kind is
 * "RepresentativeDataSample", "tf.Example", "tf.SequenceExample", "arrays", "CSV row", "image", or "unknown", whose
 * only key is "(bytes)". */
tare_status tare_data_file_look(struct tare_sample *out, const char **kind, const struct tare_data_file *file,
                                const struct tare_data_record *record) TARE_WARN_UNUSED;

#endif
