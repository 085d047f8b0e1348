/* Initializes tables from the lines of a text file. */
#ifndef TARE_INTERPRETER_OPS_STATE_TABLE_FILE_H
#define TARE_INTERPRETER_OPS_STATE_TABLE_FILE_H

#include "interpreter/ops/state/hash_table.h"

/* The part of a line that is the key or the value: a column number from 0, or one of these. */
enum { TARE_TABLE_LINE_NUMBER = -1, TARE_TABLE_WHOLE_LINE = -2 };

struct tare_table_file {
    int64_t key_index, value_index;
    int64_t vocab_size; /* number of lines to read; -1: all */
    char delimiter;
    int64_t offset; /* added to line numbers */
};

/* Reads the file into the table. TARE_CORRUPT: the error text contains the line number. */
tare_status tare_table_read_file(struct tare_table *table, const char *path, const struct tare_table_file *form);

#endif
