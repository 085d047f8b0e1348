/* Adding tallies to the floating-point histogram, merging, and reading it in order.
 *
 * All pages of a histogram have counters of one width, the narrowest for an upper bound of the counts. The bound grows
 * with the number of values added; before the width grows, the bound is replaced by the largest count. So counting
 * needs no check of each counter. */
#include "calib/histogram.h"

#include "base/alloc.h"
#include "base/tensor/number.h"
#include "calib/tally.h"

#include <math.h>
#include <string.h>

enum { BIN_BITS = 9 };

/* The counters follow. */
struct tare_histogram_page {
    uint64_t number;
};
_Static_assert(sizeof(struct tare_histogram_page) == TARE_HISTOGRAM_PAGE_HEAD, "size of a page's head");

/* ---- pages ---- */

/* DO(type of a counter) for counters of `width` bytes */
#define OF_WIDTH(width, DO)                                                                                            \
    switch (width) {                                                                                                   \
    case 1:                                                                                                            \
        DO(uint8_t);                                                                                                   \
        break;                                                                                                         \
    case 2:                                                                                                            \
        DO(uint16_t);                                                                                                  \
        break;                                                                                                         \
    case 4:                                                                                                            \
        DO(uint32_t);                                                                                                  \
        break;                                                                                                         \
    default:                                                                                                           \
        DO(int64_t);                                                                                                   \
        break;                                                                                                         \
    }

static void *counters_of(const struct tare_histogram_page *page) {
    return (void *)(uintptr_t)(page + 1);
}

static void get_counts(int64_t counts[TARE_HISTOGRAM_BINS], const void *counters, int width) {
#define GET(type)                                                                                                      \
    for (int i = 0; i < TARE_HISTOGRAM_BINS; i++)                                                                      \
    counts[i] = ((const type *)counters)[i]
    OF_WIDTH(width, GET)
#undef GET
}

static void add_counts(void *counters, int width, const int64_t counts[TARE_HISTOGRAM_BINS]) {
#define ADD(type)                                                                                                      \
    for (int i = 0; i < TARE_HISTOGRAM_BINS; i++)                                                                      \
    ((type *)counters)[i] += (type)counts[i]
    OF_WIDTH(width, ADD)
#undef ADD
}

static int64_t largest_counter(const void *counters, int width) {
    int64_t largest = 0;
#define COMPARE(type)                                                                                                  \
    {                                                                                                                  \
        type most = 0;                                                                                                 \
        for (int i = 0; i < TARE_HISTOGRAM_BINS; i++)                                                                  \
            most = ((const type *)counters)[i] > most ? ((const type *)counters)[i] : most;                            \
        largest = most;                                                                                                \
    }
    OF_WIDTH(width, COMPARE)
#undef COMPARE
    return largest;
}

/* Bytes of the narrowest counter that can be `count`. */
static int width_for(int64_t count) {
    return count <= UINT8_MAX ? 1 : count <= UINT16_MAX ? 2 : count <= UINT32_MAX ? 4 : 8;
}

static struct tare_histogram_page *new_page(int number, int width) {
    struct tare_histogram_page *page = tare_calloc(1, sizeof *page + (size_t)TARE_HISTOGRAM_BINS * (size_t)width);
    if (page) page->number = (uint64_t)number;
    return page;
}

static void free_pages(struct tare_histogram_page **pages, int count) {
    for (int i = 0; i < count; i++)
        tare_free(pages[i]);
    tare_free(pages);
}

static tare_status widen(struct tare_histogram *histogram, int width) {
    struct tare_histogram_page **pages = NULL;
    if (histogram->n_pages > 0) {
        pages = tare_calloc((size_t)histogram->capacity, sizeof *pages);
        if (!pages) return TARE_NO_MEMORY;
    }
    for (int i = 0; i < histogram->n_pages; i++) {
        int64_t counts[TARE_HISTOGRAM_BINS];
        pages[i] = new_page(tare_histogram_read_page(counts, histogram, i), width);
        if (!pages[i]) {
            free_pages(pages, i);
            return TARE_NO_MEMORY;
        }
        add_counts(counters_of(pages[i]), width, counts);
    }
    if (pages) {
        free_pages(histogram->pages, histogram->n_pages);
        histogram->pages = pages;
    }
    histogram->width = width;
    return TARE_OK;
}

/* Makes the counters wide enough for counts up to `largest`. */
static tare_status expect_counter(struct tare_histogram *histogram, int64_t largest) {
    if (histogram->width < width_for(largest)) TARE_TRY(widen(histogram, width_for(largest)));
    if (histogram->bound < largest) histogram->bound = largest;
    return TARE_OK;
}

/* Makes them wide enough to count `more` values. */
static tare_status expect_values(struct tare_histogram *histogram, int64_t more) {
    if (histogram->width == sizeof(int64_t)) return TARE_OK; /* as wide as the numbers of values */
    if (histogram->width < width_for(histogram->bound + more)) {
        histogram->bound = 0;
        for (int i = 0; i < histogram->n_pages; i++) {
            const int64_t largest = largest_counter(counters_of(histogram->pages[i]), histogram->width);
            if (largest > histogram->bound) histogram->bound = largest;
        }
        /* With a width that half as many values would need, the bound would be computed again soon. */
        if (histogram->width < width_for(2 * (histogram->bound + more)))
            TARE_TRY(widen(histogram, width_for(2 * (histogram->bound + more))));
    }
    histogram->bound += more;
    return TARE_OK;
}

/* Place in the list of pages of the first page with at least this number. */
static int place_of(const struct tare_histogram *histogram, int number) {
    int low = 0, high = histogram->n_pages;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (histogram->pages[middle]->number < (uint64_t)number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static tare_status insert_page(struct tare_histogram *histogram, int at, int number) {
    if (histogram->n_pages == histogram->capacity) {
        const int capacity = histogram->capacity ? 2 * histogram->capacity : 8;
        struct tare_histogram_page **grown = tare_realloc(histogram->pages, (size_t)capacity, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        histogram->pages = grown;
        histogram->capacity = capacity;
    }
    struct tare_histogram_page *page = new_page(number, histogram->width);
    if (!page) return TARE_NO_MEMORY;
    memmove(&histogram->pages[at + 1], &histogram->pages[at],
            (size_t)(histogram->n_pages - at) * sizeof *histogram->pages);
    histogram->pages[at] = page;
    histogram->n_pages++;
    return TARE_OK;
}

/* The counters of a page, which is created if necessary; NULL: no memory. */
static void *counters_at(struct tare_histogram *histogram, int number) {
    const int at = place_of(histogram, number);
    if (at == histogram->n_pages || histogram->pages[at]->number != (uint64_t)number) {
        if (insert_page(histogram, at, number) != TARE_OK) return NULL;
    }
    return counters_of(histogram->pages[at]);
}

tare_status tare_histogram_add_page(struct tare_histogram *histogram, int number,
                                    const int64_t counts[TARE_HISTOGRAM_BINS]) {
    const int at = place_of(histogram, number);
    const bool found = at < histogram->n_pages && histogram->pages[at]->number == (uint64_t)number;
    int64_t sums[TARE_HISTOGRAM_BINS] = { 0 }, largest = 0;
    if (found) tare_histogram_read_page(sums, histogram, at);
    for (int i = 0; i < TARE_HISTOGRAM_BINS; i++) {
        sums[i] += counts[i];
        if (sums[i] > largest) largest = sums[i];
    }
    TARE_TRY(expect_counter(histogram, largest));
    void *counters = counters_at(histogram, number);
    if (!counters) return TARE_NO_MEMORY;
    add_counts(counters, histogram->width, counts);
    for (int i = 0; i < TARE_HISTOGRAM_BINS; i++)
        histogram->counted += counts[i];
    return TARE_OK;
}

int tare_histogram_read_page(int64_t counts[TARE_HISTOGRAM_BINS], const struct tare_histogram *histogram, int i) {
    get_counts(counts, counters_of(histogram->pages[i]), histogram->width);
    return (int)histogram->pages[i]->number;
}

/* ---- into the histogram ---- */

/* Adds the counters of one page to the histogram (NULL: after a failure) and zeroes them. *left: values of which the
 * pages that follow have what this page has not. */
static tare_status flush_page(struct tare_histogram *histogram, uint32_t *counts, int page, int64_t *left) {
    uint32_t sum = 0; /* a tally has fewer than 2^32 values */
    for (int i = 0; i < TARE_HISTOGRAM_BINS; i++)
        sum += counts[i];
    if (sum == 0) return TARE_OK;
    *left -= sum;
    void *counters = histogram ? counters_at(histogram, page) : NULL;
    if (counters) {
#define FLUSH(type)                                                                                                    \
    for (int i = 0; i < TARE_HISTOGRAM_BINS; i++)                                                                      \
    ((type *)counters)[i] += (type)counts[i]
        OF_WIDTH(histogram->width, FLUSH)
#undef FLUSH
    }
    memset(counts, 0, TARE_HISTOGRAM_BINS * sizeof *counts);
    return counters ? TARE_OK : TARE_NO_MEMORY;
}

/* From the page of the largest value downwards, until all `counted` values are found. */
static tare_status flush_counts(struct tare_histogram *histogram, struct tare_tally *tally, int64_t counted) {
    tare_status status = TARE_OK;
    int64_t left = counted;
    for (int page = (int)(tally->largest >> 23); left > 0; page--) {
        for (int sign = 0; sign < 2; sign++) {
            if (!tally->has_sign[sign]) continue;
            int at = page + sign * (TARE_HISTOGRAM_PAGES / 2);
            tare_status one = flush_page(histogram, tally->counts + ((size_t)at << BIN_BITS), at, &left);
            if (status == TARE_OK) status = one; /* the tally is emptied even then */
        }
    }
    return status;
}

static tare_status count_slots(struct tare_histogram *histogram, struct tare_tally *tally) {
#define COUNT(type)                                                                                                    \
    for (int i = 0; i < tally->n_slots; i++) {                                                                         \
        const uint32_t slot = tally->slots[i];                                                                         \
        type *counters = tally->counters[slot >> BIN_BITS];                                                            \
        if (!counters) {                                                                                               \
            counters = counters_at(histogram, (int)(slot >> BIN_BITS));                                                \
            if (!counters) return TARE_NO_MEMORY;                                                                      \
            tally->counters[slot >> BIN_BITS] = counters;                                                              \
        }                                                                                                              \
        counters[slot & (TARE_HISTOGRAM_BINS - 1)]++;                                                                  \
    }
    OF_WIDTH(histogram->width, COUNT)
#undef COUNT
    return TARE_OK;
}

static tare_status count_direct(struct tare_histogram *histogram, struct tare_tally *tally) {
    tare_status status;
    for (int i = 0; i < histogram->n_pages; i++)
        tally->counters[histogram->pages[i]->number] = counters_of(histogram->pages[i]);
    status = count_slots(histogram, tally);
    for (int i = 0; i < histogram->n_pages; i++)
        tally->counters[histogram->pages[i]->number] = NULL;
    return status;
}

tare_status tare_histogram_take(struct tare_histogram *histogram, struct tare_tally *tally) {
    const int64_t counted = tally->pending - tally->zeros - tally->nans - tare_tally_infinities(tally);
    tare_status status = expect_values(histogram, counted);
    if (tally->flat)
        status = flush_counts(status == TARE_OK ? histogram : NULL, tally, counted);
    else if (status == TARE_OK)
        status = count_direct(histogram, tally);
    if (status == TARE_OK) histogram->counted += counted;
    histogram->zeros += tally->zeros;
    histogram->nans += tally->nans;
    histogram->positive_infinities += tally->positive_infinities;
    histogram->negative_infinities += tally->negative_infinities;
    tare_tally_empty(tally);
    return status;
}

/* All values; each count is at least 0, so that none of them can overflow where their sum does not. */
static int64_t all_values(const struct tare_histogram *histogram) {
    return tare_histogram_finite(histogram) + histogram->nans + histogram->positive_infinities +
           histogram->negative_infinities;
}

tare_status tare_histogram_merge(struct tare_histogram *histogram, const struct tare_histogram *other) {
    int64_t total;
    if (!tare_add_i64(&total, all_values(histogram), all_values(other)))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "more values than can be counted");
    for (int i = 0; i < other->n_pages; i++) {
        int64_t counts[TARE_HISTOGRAM_BINS];
        const int page = tare_histogram_read_page(counts, other, i);
        TARE_TRY(tare_histogram_add_page(histogram, page, counts));
    }
    histogram->zeros += other->zeros;
    histogram->nans += other->nans;
    histogram->positive_infinities += other->positive_infinities;
    histogram->negative_infinities += other->negative_infinities;
    return TARE_OK;
}

void tare_histogram_reset(struct tare_histogram *histogram) {
    free_pages(histogram->pages, histogram->n_pages);
    memset(histogram, 0, sizeof *histogram);
}

static bool pages_equal(const struct tare_histogram *a, const struct tare_histogram *b, int i) {
    int64_t counts[2][TARE_HISTOGRAM_BINS];
    return tare_histogram_read_page(counts[0], a, i) == tare_histogram_read_page(counts[1], b, i) &&
           memcmp(counts[0], counts[1], sizeof counts[0]) == 0;
}

bool tare_histogram_equal(const struct tare_histogram *a, const struct tare_histogram *b) {
    if (a->n_pages != b->n_pages) return false; /* each page contains counts */
    for (int i = 0; i < a->n_pages; i++) {
        if (!pages_equal(a, b, i)) return false;
    }
    return a->zeros == b->zeros && a->nans == b->nans && a->positive_infinities == b->positive_infinities &&
           a->negative_infinities == b->negative_infinities;
}

int64_t tare_histogram_finite(const struct tare_histogram *histogram) {
    return histogram->zeros + histogram->counted;
}

size_t tare_histogram_bytes(const struct tare_histogram *histogram) {
    const size_t page = sizeof(struct tare_histogram_page) + (size_t)TARE_HISTOGRAM_BINS * (size_t)histogram->width;
    return sizeof *histogram + (size_t)histogram->capacity * sizeof(void *) + (size_t)histogram->n_pages * page;
}

struct tare_histogram_bin tare_histogram_bounds(int page, int bin) {
    uint32_t first = (uint32_t)(page * TARE_HISTOGRAM_BINS + bin) << TARE_SCAN_SHIFT;
    uint32_t last = first + ((1u << TARE_SCAN_SHIFT) - 1);
    if ((first & 0x7fffffffu) == 0) first++; /* zero has a bin of its own */
    struct tare_histogram_bin out = { tare_float_from_bits(first), tare_float_from_bits(last), 0 };
    if (page >= TARE_HISTOGRAM_PAGES / 2) {
        double low = out.high;
        out.high = out.low;
        out.low = low;
    }
    return out;
}

/* Appends the bins of page i of `pages` that have counts. */
static void list_page(struct tare_histogram_bin *bins, size_t *used, const struct tare_histogram *histogram, int i) {
    int64_t counts[TARE_HISTOGRAM_BINS];
    const int page = tare_histogram_read_page(counts, histogram, i);
    const bool negative = page >= TARE_HISTOGRAM_PAGES / 2;
    for (int k = 0; k < TARE_HISTOGRAM_BINS; k++) {
        const int bin = negative ? TARE_HISTOGRAM_BINS - 1 - k : k;
        if (counts[bin] == 0) continue;
        bins[*used] = tare_histogram_bounds(page, bin);
        bins[(*used)++].count = counts[bin];
    }
}

static size_t count_bins(const struct tare_histogram *histogram) {
    int64_t counts[TARE_HISTOGRAM_BINS];
    size_t total = 0;
    for (int i = 0; i < histogram->n_pages; i++) {
        tare_histogram_read_page(counts, histogram, i);
        for (int k = 0; k < TARE_HISTOGRAM_BINS; k++)
            total += counts[k] != 0;
    }
    return total;
}

tare_status tare_histogram_list(struct tare_histogram_bin **bins, size_t *count,
                                const struct tare_histogram *histogram) {
    const size_t total = count_bins(histogram) + (histogram->zeros != 0);
    const int negative = place_of(histogram, TARE_HISTOGRAM_PAGES / 2); /* the first page of negative values */
    *bins = NULL;
    *count = 0;
    if (total == 0) return TARE_OK;
    struct tare_histogram_bin *list = tare_malloc(total * sizeof *list); /* a few thousand bins, all of them filled */
    if (!list) return TARE_NO_MEMORY;
    for (int i = histogram->n_pages - 1; i >= negative; i--)
        list_page(list, count, histogram, i);
    if (histogram->zeros != 0) list[(*count)++] = (struct tare_histogram_bin){ 0, 0, histogram->zeros };
    for (int i = 0; i < negative; i++)
        list_page(list, count, histogram, i);
    *bins = list;
    return TARE_OK;
}
