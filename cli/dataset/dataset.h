/* The subcommands of tare dataset, one file each. */
#ifndef TARE_CLI_DATASET_H
#define TARE_CLI_DATASET_H

#include "cli/command.h"

extern const struct tare_command tare_dataset_info, tare_dataset_head, tare_dataset_make_command,
    tare_dataset_split_command;

/* Prints "tare: left out: TEXT" to standard error, for skipped records. */
void tare_dataset_print_bad(void *arg, const char *text);
/* `arg` is a struct tare_progress *. */
void tare_dataset_advance(void *arg, int64_t records);

#endif
