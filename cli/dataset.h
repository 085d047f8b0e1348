/* The parts of tare dataset, one file each. */
#ifndef TARE_CLI_DATASET_H
#define TARE_CLI_DATASET_H

#include "cli/command.h"

extern const struct tare_command tare_dataset_info, tare_dataset_head, tare_dataset_make_command,
    tare_dataset_split_command;

/* A line on standard error: "tare: left out: TEXT". For records that are passed over. */
void tare_dataset_print_bad(void *arg, const char *text);
/* struct tare_progress * as `arg`. */
void tare_dataset_advance(void *arg, int64_t records);

#endif
