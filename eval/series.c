/* Numbers by example, in memory or in an unnamed file. */
#include "eval/series.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_IN_MEMORY = 64 << 10 }; /* bytes; a multiple of the page size */

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

static tare_status move_to_file(void **data, size_t count, size_t capacity, size_t *grown, size_t element) {
    void *mapped;
    TARE_TRY(tare_spill_map(&mapped, *grown * element));
    if (count) memcpy(mapped, *data, count * element);
    tare_spill_forget(mapped, *grown, element);
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
        TARE_TRY(move_to_file(data, count, *capacity, &grown, element));
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

tare_status tare_series_add(struct tare_series *series, double value) {
    TARE_TRY(TARE_SPILL_GROW(series->values, series->count, series->capacity));
    series->values[series->count++] = value;
    return TARE_OK;
}

void tare_series_forget(const struct tare_series *series) {
    tare_spill_forget(series->values, series->capacity, sizeof *series->values);
}

void tare_series_reset(struct tare_series *series) {
    tare_spill_free(series->values, series->capacity, sizeof *series->values);
    *series = (struct tare_series){ 0 };
}
