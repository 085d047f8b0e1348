/* Which records of a file have been counted: sorted runs of record numbers. */
#ifndef TARE_CALIB_RECORD_SET_H
#define TARE_CALIB_RECORD_SET_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tare_record_run {
    int64_t first, end; /* end is not in it */
};

/* Zero it to start. Runs are ascending, not empty, and do not touch. */
struct tare_record_set {
    struct tare_record_run *runs;
    size_t count, capacity;
};

/* Adds first … end-1. TARE_INVALID_ARGUMENT if one of them is already in the set. */
tare_status tare_record_set_add(struct tare_record_set *set, int64_t first, int64_t end) TARE_WARN_UNUSED;
/* Adds all of another set; TARE_INVALID_ARGUMENT, and no change, when they have a record in common. */
tare_status tare_record_set_merge(struct tare_record_set *set, const struct tare_record_set *other) TARE_WARN_UNUSED;
bool tare_record_set_has(const struct tare_record_set *set, int64_t number);
/* The lowest record that both have, -1 when there is none. */
int64_t tare_record_set_common(const struct tare_record_set *a, const struct tare_record_set *b);
int64_t tare_record_set_size(const struct tare_record_set *set);
void tare_record_set_free(struct tare_record_set *set);

#endif
