/* Numbers by example. Long arrays are in unnamed temporary files, whose pages the process gives back every 64 KiB and
 * after each use, so that the memory of an evaluation does not grow with its records. */
#ifndef TARE_EVAL_SERIES_H
#define TARE_EVAL_SERIES_H

#include "base/status.h"

#include <stddef.h>

enum { TARE_SPILL_LEAST = 1 << 20 }; /* up to here no file: an evaluation of few records needs no disk */
enum { TARE_SPILL_SORTED = 16, TARE_SPILL_AT_ONCE = 1 << 13 }; /* elements that a loop over an array has in memory */

/* Writable memory in an unnamed file (tare_file_open_unnamed) with room for all of it, of which the process can give
 * back the pages (munmap); a few bytes are in memory. */
tare_status tare_spill_map(void **out, size_t size) TARE_WARN_UNUSED;
/* Makes room for one more element after `count`; *data is NULL at first, and `element` the size of one. */
tare_status tare_spill_grow(void **data, size_t count, size_t *capacity, size_t element) TARE_WARN_UNUSED;
#define TARE_SPILL_GROW(pointer, count, capacity)                                                                      \
    tare_spill_grow((void **)&(pointer), count, &(capacity), sizeof *(pointer))
/* Gives back the memory of an array whose contents are in a file. */
void tare_spill_forget(void *data, size_t capacity, size_t element);
void tare_spill_free(void *data, size_t capacity, size_t element);
/* Sorts `count` elements of at most TARE_SPILL_SORTED bytes in their place, of which few are in memory at a time. */
void tare_spill_sort(void *data, size_t count, size_t capacity, size_t element,
                     int (*compare)(const void *, const void *));

/* Initialise with zeros; release with tare_series_reset. */
struct tare_series {
    double *values;
    size_t count, capacity;
};
tare_status tare_series_add(struct tare_series *series, double value) TARE_WARN_UNUSED;
/* Value i; called for all i in their order, it gives back the pages of those before. */
double tare_series_next(const struct tare_series *series, size_t i);
void tare_series_reset(struct tare_series *series);

#endif
