/* The subcommands of tare dataset, one file each. */
#ifndef TARE_CLI_DATASET_H
#define TARE_CLI_DATASET_H

#include "cli/command.h"

extern const struct tare_command tare_dataset_info, tare_dataset_head, tare_dataset_make_command,
    tare_dataset_split_command, tare_dataset_export;

/* Prints "tare: left out: TEXT" to standard error for the first skipped record, and writes all to the log file. `arg`
 * is an int64_t *, their count, which begins with 0. */
void tare_dataset_print_bad(void *arg, const char *text);
/* After the last record: how many were skipped, if more than the one that was printed. */
void tare_dataset_print_bad_count(int64_t count);
/* `arg` is a struct tare_progress *. */
void tare_dataset_advance(void *arg, int64_t records);

#endif
