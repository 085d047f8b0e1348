/* Counting into the floating-point histogram, merging, and reading it in order. */
#include "calib/histogram.h"

#include "base/alloc.h"
#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

enum {
    BIN_BITS = 9,
    NOWHERE_PAGE = TARE_SCAN_NO_SLOT >> BIN_BITS, /* of values that are not finite: never contains counts */
    /* From this many values on, counting into one flat table and adding its touched pages at the end costs less than
     * looking up the page of each value. */
    FLAT_FROM = 8192,
};

struct tare_tally {
    uint32_t *counts; /* TARE_SCAN_SLOTS, all zero while the tally is empty or not flat */
    uint32_t *slots;  /* of the values so far, or, when flat, of one block */
    tare_scan_fn *scan;
    bool flat;
    int n_slots;
    int64_t pending; /* values in counts */
    int64_t nowhere[TARE_HISTOGRAM_BINS];
    int64_t zeros, nans, positive_infinities, negative_infinities;
    /* Range of the pending values: bits without sign. */
    uint32_t smallest, largest;
};

struct tare_tally *tare_tally_new(void) {
    struct tare_tally *tally = tare_calloc(1, sizeof *tally);
    if (!tally) return NULL;
    tally->scan = tare_scan_best(tare_cpu_level());
    tally->counts = tare_malloc_aligned(TARE_SCAN_SLOTS * sizeof *tally->counts);
    tally->slots = tare_malloc_aligned((FLAT_FROM + TARE_SCAN_BLOCK) * sizeof *tally->slots);
    if (!tally->counts || !tally->slots) {
        tare_tally_free(tally);
        return NULL;
    }
    memset(tally->counts, 0, TARE_SCAN_SLOTS * sizeof *tally->counts);
    tare_tally_begin(tally, 0);
    return tally;
}

void tare_tally_free(struct tare_tally *tally) {
    if (!tally) return;
    tare_free(tally->counts);
    tare_free(tally->slots);
    tare_free(tally);
}

void tare_tally_set_scan(struct tare_tally *tally, tare_scan_fn *scan) {
    tally->scan = scan;
}

/* ---- into the tally ---- */

static void make_empty(struct tare_tally *tally) {
    tally->n_slots = 0;
    tally->pending = 0;
    tally->zeros = tally->nans = tally->positive_infinities = tally->negative_infinities = 0;
    tally->smallest = UINT32_MAX;
    tally->largest = 0;
}

void tare_tally_begin(struct tare_tally *tally, int64_t expected) {
    make_empty(tally);
    tally->flat = expected >= FLAT_FROM;
}

static void count_flat(struct tare_tally *tally, int used) {
    uint32_t *counts = tally->counts;
    const uint32_t *slots = tally->slots;
    for (int i = 0; i < used; i++)
        counts[slots[i]]++;
}

static void count_special(struct tare_tally *tally, const float *values, int count) {
    for (int i = 0; i < count; i++) {
        if (isnan(values[i])) {
            tally->nans++;
        } else if (isinf(values[i])) {
            *(values[i] > 0 ? &tally->positive_infinities : &tally->negative_infinities) += 1;
        }
    }
}

/* A few slots are only stored, and later counted in the histogram directly. */
static void keep_slots(struct tare_tally *tally, int used) {
    tally->n_slots += used;
    if (tally->n_slots <= FLAT_FROM) return;
    count_flat(tally, tally->n_slots);
    tally->n_slots = 0;
    tally->flat = true;
}

void tare_tally_add(struct tare_tally *tally, struct tare_scan *scan, const float *values, int64_t count) {
    int64_t zeros = scan->zeros;
    for (int64_t done = 0; done < count; done += TARE_SCAN_BLOCK) {
        int block = count - done < TARE_SCAN_BLOCK ? (int)(count - done) : TARE_SCAN_BLOCK;
        int64_t not_finite = scan->not_finite;
        int used = tally->scan(scan, tally->slots + tally->n_slots, values + done, block);
        if (scan->not_finite != not_finite) count_special(tally, values + done, block);
        if (tally->flat)
            count_flat(tally, used);
        else
            keep_slots(tally, used);
    }
    tally->pending += count;
    tally->zeros += scan->zeros - zeros;
    if (scan->smallest < tally->smallest) tally->smallest = scan->smallest;
    if (scan->largest > tally->largest) tally->largest = scan->largest;
}

/* A counter has 32 bits. */
bool tare_tally_is_full(const struct tare_tally *tally) {
    return tally->pending > INT32_MAX;
}

int64_t tare_tally_nans(const struct tare_tally *tally) {
    return tally->nans;
}

int64_t tare_tally_infinities(const struct tare_tally *tally) {
    return tally->positive_infinities + tally->negative_infinities;
}

/* ---- into the histogram ---- */

int64_t *tare_histogram_page(struct tare_histogram *histogram, int page) {
    if (!histogram->pages[page]) histogram->pages[page] = tare_calloc(TARE_HISTOGRAM_BINS, sizeof(int64_t));
    return histogram->pages[page];
}

/* Adds the counters of one page to the histogram and zeroes them. */
static tare_status flush_page(struct tare_histogram *histogram, uint32_t *counts, int page) {
    uint32_t any = 0;
    for (int i = 0; i < TARE_HISTOGRAM_BINS; i++)
        any |= counts[i];
    if (any == 0) return TARE_OK;
    int64_t *bins = tare_histogram_page(histogram, page);
    for (int i = 0; bins && i < TARE_HISTOGRAM_BINS; i++)
        bins[i] += counts[i];
    memset(counts, 0, TARE_HISTOGRAM_BINS * sizeof *counts);
    return !bins ? TARE_NO_MEMORY : TARE_OK;
}

static tare_status flush_counts(struct tare_histogram *histogram, struct tare_tally *tally) {
    tare_status status = TARE_OK;
    if (tally->smallest > tally->largest) return TARE_OK;
    int first = (int)(tally->smallest >> 23), last = (int)(tally->largest >> 23);
    for (int page = first; page <= last; page++) {
        for (int sign = 0; sign < 2; sign++) {
            int at = page + sign * (TARE_HISTOGRAM_PAGES / 2);
            tare_status one = flush_page(histogram, tally->counts + ((size_t)at << BIN_BITS), at);
            if (status == TARE_OK) status = one; /* the tally is emptied even then */
        }
    }
    return status;
}

/* Slots without a count are added to an unused page: cheaper than a branch that zeros make unpredictable. */
static tare_status count_direct(struct tare_histogram *histogram, struct tare_tally *tally) {
    const uint32_t *slots = tally->slots;
    tare_status status = TARE_OK;
    histogram->pages[NOWHERE_PAGE] = tally->nowhere;
    for (int i = 0; i < tally->n_slots; i++) {
        int64_t *bins = histogram->pages[slots[i] >> BIN_BITS];
        if (!bins) {
            bins = tare_histogram_page(histogram, (int)(slots[i] >> BIN_BITS));
            if (!bins) {
                status = TARE_NO_MEMORY;
                break;
            }
        }
        bins[slots[i] & (TARE_HISTOGRAM_BINS - 1)]++;
    }
    histogram->pages[NOWHERE_PAGE] = NULL;
    return status;
}

tare_status tare_histogram_take(struct tare_histogram *histogram, struct tare_tally *tally) {
    tare_status status = tally->flat ? flush_counts(histogram, tally) : count_direct(histogram, tally);
    histogram->zeros += tally->zeros;
    histogram->nans += tally->nans;
    histogram->positive_infinities += tally->positive_infinities;
    histogram->negative_infinities += tally->negative_infinities;
    make_empty(tally);
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
    for (int page = 0; page < TARE_HISTOGRAM_PAGES; page++) {
        const int64_t *from = other->pages[page];
        if (!from) continue;
        int64_t *to = tare_histogram_page(histogram, page);
        if (!to) return TARE_NO_MEMORY;
        for (int i = 0; i < TARE_HISTOGRAM_BINS; i++)
            to[i] += from[i];
    }
    histogram->zeros += other->zeros;
    histogram->nans += other->nans;
    histogram->positive_infinities += other->positive_infinities;
    histogram->negative_infinities += other->negative_infinities;
    return TARE_OK;
}

void tare_histogram_reset(struct tare_histogram *histogram) {
    for (int page = 0; page < TARE_HISTOGRAM_PAGES; page++)
        tare_free(histogram->pages[page]);
    memset(histogram, 0, sizeof *histogram);
}

static bool pages_equal(const int64_t *a, const int64_t *b) {
    static const int64_t nothing[TARE_HISTOGRAM_BINS];
    return memcmp(!a ? nothing : a, !b ? nothing : b, TARE_HISTOGRAM_PAGE_BYTES) == 0;
}

bool tare_histogram_equal(const struct tare_histogram *a, const struct tare_histogram *b) {
    for (int page = 0; page < TARE_HISTOGRAM_PAGES; page++) {
        if (!pages_equal(a->pages[page], b->pages[page])) return false;
    }
    return a->zeros == b->zeros && a->nans == b->nans && a->positive_infinities == b->positive_infinities &&
           a->negative_infinities == b->negative_infinities;
}

int64_t tare_histogram_finite(const struct tare_histogram *histogram) {
    int64_t total = histogram->zeros;
    for (int page = 0; page < TARE_HISTOGRAM_PAGES; page++) {
        const int64_t *bins = histogram->pages[page];
        for (int i = 0; bins && i < TARE_HISTOGRAM_BINS; i++)
            total += bins[i];
    }
    return total;
}

size_t tare_histogram_bytes(const struct tare_histogram *histogram) {
    size_t pages = 0;
    for (int page = 0; page < TARE_HISTOGRAM_PAGES; page++)
        pages += histogram->pages[page] != NULL;
    return sizeof *histogram + pages * TARE_HISTOGRAM_PAGE_BYTES;
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

static size_t list_page(struct tare_histogram_bin *bins, const struct tare_histogram *histogram, int page) {
    const int64_t *counts = histogram->pages[page];
    bool negative = page >= TARE_HISTOGRAM_PAGES / 2;
    size_t used = 0;
    for (int i = 0; counts && i < TARE_HISTOGRAM_BINS; i++) {
        int bin = negative ? TARE_HISTOGRAM_BINS - 1 - i : i;
        if (counts[bin] == 0) continue;
        bins[used] = tare_histogram_bounds(page, bin);
        bins[used++].count = counts[bin];
    }
    return used;
}

tare_status tare_histogram_list(struct tare_histogram_bin **bins, size_t *count,
                                const struct tare_histogram *histogram) {
    *bins = NULL;
    *count = 0;
    size_t total = histogram->zeros != 0;
    for (int page = 0; page < TARE_HISTOGRAM_PAGES; page++) {
        const int64_t *counts = histogram->pages[page];
        for (int i = 0; counts && i < TARE_HISTOGRAM_BINS; i++)
            total += counts[i] != 0;
    }
    if (total == 0) return TARE_OK;
    struct tare_histogram_bin *list = tare_calloc(total, sizeof *list);
    if (!list) return TARE_NO_MEMORY;
    size_t used = 0;
    for (int page = TARE_HISTOGRAM_PAGES - 1; page >= TARE_HISTOGRAM_PAGES / 2; page--)
        used += list_page(list + used, histogram, page);
    if (histogram->zeros != 0) list[used++] = (struct tare_histogram_bin){ 0, 0, histogram->zeros };
    for (int page = 0; page < TARE_HISTOGRAM_PAGES / 2; page++)
        used += list_page(list + used, histogram, page);
    *bins = list;
    *count = used;
    return TARE_OK;
}
