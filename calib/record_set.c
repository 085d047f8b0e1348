/* Sorted runs of record numbers, which grow together. */
#include "calib/record_set.h"

#include "base/alloc.h"

#include <string.h>

/* The first run that ends after `number`. Records arrive nearly in order, so the last run is tried first. */
static size_t run_after(const struct tare_record_set *set, int64_t number) {
    if (set->count == 0 || set->runs[set->count - 1].end <= number) return set->count;
    size_t low = 0, high = set->count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->runs[middle].end <= number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool tare_record_set_has(const struct tare_record_set *set, int64_t number) {
    size_t at = run_after(set, number);
    return at < set->count && set->runs[at].first <= number;
}

tare_status tare_record_set_add(struct tare_record_set *set, int64_t first, int64_t end) {
    if (first < 0 || end <= first)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "records %lld to %lld are no range", (long long)first, (long long)end);
    size_t at = run_after(set, first);
    if (at < set->count && set->runs[at].first < end) {
        int64_t common = set->runs[at].first > first ? set->runs[at].first : first;
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "record %lld is counted already", (long long)common);
    }
    bool joins_left = at > 0 && set->runs[at - 1].end == first;
    bool joins_right = at < set->count && set->runs[at].first == end;
    if (joins_left && joins_right) {
        set->runs[at - 1].end = set->runs[at].end;
        memmove(set->runs + at, set->runs + at + 1, (set->count - at - 1) * sizeof *set->runs);
        set->count--;
    } else if (joins_left) {
        set->runs[at - 1].end = end;
    } else if (joins_right) {
        set->runs[at].first = first;
    } else {
        if (!TARE_GROW(set->runs, set->count, set->capacity)) return TARE_NO_MEMORY;
        memmove(set->runs + at + 1, set->runs + at, (set->count - at) * sizeof *set->runs);
        set->runs[at] = (struct tare_record_run){ first, end };
        set->count++;
    }
    return TARE_OK;
}

int64_t tare_record_set_common(const struct tare_record_set *a, const struct tare_record_set *b) {
    size_t i = 0, j = 0;
    while (i < a->count && j < b->count) {
        const struct tare_record_run *x = &a->runs[i], *y = &b->runs[j];
        int64_t first = x->first > y->first ? x->first : y->first;
        if (first < x->end && first < y->end) return first;
        if (x->end <= y->end) {
            i++;
        } else {
            j++;
        }
    }
    return -1;
}

tare_status tare_record_set_merge(struct tare_record_set *set, const struct tare_record_set *other) {
    int64_t common = tare_record_set_common(set, other);
    if (common >= 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "record %lld is counted already", (long long)common);
    if (other->count == 0) return TARE_OK;
    struct tare_record_run *runs = tare_calloc(set->count + other->count, sizeof *runs);
    if (!runs) return TARE_NO_MEMORY;
    size_t i = 0, j = 0, used = 0;
    while (i < set->count || j < other->count) {
        bool mine = j == other->count || (i < set->count && set->runs[i].first < other->runs[j].first);
        struct tare_record_run run = mine ? set->runs[i++] : other->runs[j++];
        if (used > 0 && runs[used - 1].end == run.first) {
            runs[used - 1].end = run.end;
        } else {
            runs[used++] = run;
        }
    }
    size_t capacity = set->count + other->count;
    tare_free(set->runs);
    *set = (struct tare_record_set){ runs, used, capacity };
    return TARE_OK;
}

int64_t tare_record_set_size(const struct tare_record_set *set) {
    int64_t size = 0;
    for (size_t i = 0; i < set->count; i++)
        size += set->runs[i].end - set->runs[i].first;
    return size;
}

void tare_record_set_free(struct tare_record_set *set) {
    tare_free(set->runs);
    *set = (struct tare_record_set){ 0 };
}
