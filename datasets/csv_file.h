/* CSV files (RFC 4180) as records of features. The first row names the columns; every other row is a record with one
 * value per column. The separator is a comma, semicolon or tab, whichever occurs first in the first row. */
#ifndef TARE_DATASETS_CSV_FILE_H
#define TARE_DATASETS_CSV_FILE_H

#include "datasets/features.h"

struct tare_csv_file;

/* True if the bytes are the beginning of a text whose first two lines have the same separator. */
bool tare_csv_is_start(const uint8_t *head, size_t size);
/* Parses a whole file, which it takes ownership of (tare_free), also on failure; `path` is used in errors. A column is
 * int64 if all its values are integers that int64 holds, float32 if all are numbers and one is not an integer,
 * otherwise string. TARE_CORRUPT for a file without column names, with duplicate names, or with NUL bytes. */
tare_status tare_csv_file_open(struct tare_csv_file **out, const char *path, uint8_t *bytes,
                               size_t size) TARE_WARN_UNUSED;
void tare_csv_file_close(struct tare_csv_file *file);
/* Number of records, and the offset of one's first byte in the file; row <= rows. */
int64_t tare_csv_file_rows(const struct tare_csv_file *file);
int64_t tare_csv_file_offset(const struct tare_csv_file *file, int64_t row);
/* The values of a record as features like those of a tf.Example; an empty value of a numeric column is absent, one that
 * float32 does not hold is invalid. Reset *out also after a failure. TARE_CORRUPT with the line if the number of values
 * is wrong or a quoted value is not closed. */
tare_status tare_csv_file_read(struct tare_features *out, const struct tare_csv_file *file,
                               int64_t row) TARE_WARN_UNUSED;

/* The columns of several files, so that a column has one dtype in all of them. Usage: add all files, then share the
 * columns with each file that is read. */
struct tare_csv_columns;
struct tare_csv_columns *tare_csv_columns_new(void); /* NULL: out of memory */
void tare_csv_columns_free(struct tare_csv_columns *columns);
tare_status tare_csv_columns_add(struct tare_csv_columns *columns, const struct tare_csv_file *file) TARE_WARN_UNUSED;
/* The columns must outlive the file. TARE_TYPE if the file was not added and a column has values of another dtype. */
tare_status tare_csv_file_share(struct tare_csv_file *file, const struct tare_csv_columns *columns) TARE_WARN_UNUSED;

#endif
