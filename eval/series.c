/* Numbers by example, in memory or in an unnamed file. */
#include "eval/series.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_IN_MEMORY = 64 << 10 }; /* bytes; a multiple of the page size */
enum { MOST_DIVISIONS = 128 };      /* of a sorted array: more than twice as many as even divisions need */

static bool is_in_file(size_t capacity, size_t element) {
    return capacity * element > MOST_IN_MEMORY;
}

/* Pages that are given back stay in the shared memory. */
static tare_status map_memory(void **out, size_t size) {
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return TARE_FAIL(TARE_NO_MEMORY, "out of memory (%zu bytes)", size);
    *out = data;
    return TARE_OK;
}

tare_status tare_spill_map(void **out, size_t size) {
    if (size <= TARE_SPILL_LEAST) return map_memory(out, size);
    const int fd = tare_file_open_unnamed();
    if (fd < 0)
        return TARE_FAIL(TARE_IO, "cannot create a temporary file of the evaluation: %s", tare_system_error(errno));
    /* Allocates all blocks now, so that a full disk is an error here and not a signal on writing. */
    const int error = posix_fallocate(fd, 0, (off_t)size);
    void *data = error == 0 ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    if (data == MAP_FAILED)
        return TARE_FAIL(TARE_IO, "a temporary file of the evaluation cannot hold %zu bytes: %s", size,
                         error ? tare_system_error(error) : "no memory");
    *out = data;
    return TARE_OK;
}

static tare_status move_to_file(void **data, size_t count, size_t capacity, size_t grown, size_t element) {
    const size_t size = count * element;
    void *mapped;
    TARE_TRY(tare_spill_map(&mapped, grown * element));
    for (size_t at = 0; at < size; at += MOST_IN_MEMORY) {
        memcpy((char *)mapped + at, (char *)*data + at, size - at < MOST_IN_MEMORY ? size - at : MOST_IN_MEMORY);
        tare_spill_forget(mapped, grown, element);
        tare_spill_forget(*data, capacity, element);
    }
    tare_spill_free(*data, capacity, element);
    *data = mapped;
    return TARE_OK;
}

tare_status tare_spill_grow(void **data, size_t count, size_t *capacity, size_t element) {
    size_t grown = *capacity ? 2 * *capacity : 64;
    if (count < *capacity) {
        if (is_in_file(*capacity, element) &&
            count * element / MOST_IN_MEMORY != (count + 1) * element / MOST_IN_MEMORY)
            tare_spill_forget(*data, *capacity, element);
        return TARE_OK;
    }
    if (is_in_file(grown, element)) {
        TARE_TRY(move_to_file(data, count, *capacity, grown, element));
    } else {
        void *more = tare_realloc(*data, grown, element);
        if (!more) return TARE_NO_MEMORY;
        *data = more;
    }
    *capacity = grown;
    return TARE_OK;
}

void tare_spill_forget(void *data, size_t capacity, size_t element) {
    if (data && is_in_file(capacity, element)) madvise(data, capacity * element, MADV_DONTNEED);
}

void tare_spill_free(void *data, size_t capacity, size_t element) {
    if (data && is_in_file(capacity, element))
        munmap(data, capacity * element);
    else
        tare_free(data);
}

/* ---- sorting ---- */

struct sorting {
    char *data;
    size_t capacity, element, steps;
    int (*compare)(const void *, const void *);
};

static void exchange(const struct sorting *s, size_t a, size_t b) {
    char kept[TARE_SPILL_SORTED], *x = s->data + a * s->element, *y = s->data + b * s->element;
    memcpy(kept, x, s->element);
    memmove(x, y, s->element);
    memcpy(y, kept, s->element);
}

static size_t middle_of(const struct sorting *s, size_t a, size_t b, size_t c) {
    const char *x = s->data + a * s->element, *y = s->data + b * s->element, *z = s->data + c * s->element;
    if (s->compare(x, y) > 0) return middle_of(s, b, a, c);
    return s->compare(y, z) <= 0 ? b : s->compare(x, z) <= 0 ? c : a;
}

/* Puts elements below a middle one before *low, those above it behind *high; it reads and writes at three places. */
static void divide(struct sorting *s, size_t *low, size_t *high) {
    char middle[TARE_SPILL_SORTED];
    const size_t at = middle_of(s, *low, *low + (*high - *low) / 2, *high - 1);
    memcpy(middle, s->data + at * s->element, s->element);
    for (size_t i = *low; i < *high;) {
        const int order = s->compare(s->data + i * s->element, middle);
        if (order < 0)
            exchange(s, i++, (*low)++);
        else if (order > 0)
            exchange(s, i, --*high);
        else
            i++;
        if (++s->steps % TARE_SPILL_AT_ONCE == 0) tare_spill_forget(s->data, s->capacity, s->element);
    }
}

/* `depth`: of divisions that are left before order is feared to be an enemy's. */
static void sort(struct sorting *s, size_t begin, size_t end, int depth) {
    while (end - begin > TARE_SPILL_AT_ONCE && depth--) {
        size_t low = begin, high = end;
        divide(s, &low, &high);
        if (low - begin < end - high) {
            sort(s, begin, low, depth);
            begin = high;
        } else {
            sort(s, high, end, depth);
            end = low;
        }
    }
    if (end > begin) qsort(s->data + begin * s->element, end - begin, s->element, s->compare);
    tare_spill_forget(s->data, s->capacity, s->element);
}

void tare_spill_sort(void *data, size_t count, size_t capacity, size_t element,
                     int (*compare)(const void *, const void *)) {
    struct sorting sorting = { .data = data, .capacity = capacity, .element = element, .compare = compare };
    if (count) sort(&sorting, 0, count, MOST_DIVISIONS);
}

tare_status tare_series_add(struct tare_series *series, double value) {
    TARE_TRY(TARE_SPILL_GROW(series->values, series->count, series->capacity));
    series->values[series->count++] = value;
    return TARE_OK;
}

double tare_series_next(const struct tare_series *series, size_t i) {
    if (i % TARE_SPILL_AT_ONCE == 0) tare_spill_forget(series->values, series->capacity, sizeof *series->values);
    return series->values[i];
}

void tare_series_reset(struct tare_series *series) {
    tare_spill_free(series->values, series->capacity, sizeof *series->values);
    *series = (struct tare_series){ 0 };
}
