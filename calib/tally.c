/* Counting into a tally. */
#include "calib/tally.h"

#include "base/alloc.h"
#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

/* From this many values on, counting into one flat table and adding its touched pages at the end costs less than
 * looking up the page of each value. */
enum { FLAT_FROM = 8192 };

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

void tare_tally_empty(struct tare_tally *tally) {
    tally->n_slots = 0;
    tally->pending = 0;
    tally->zeros = tally->nans = tally->positive_infinities = tally->negative_infinities = 0;
    tally->largest = 0;
    tally->has_sign[0] = tally->has_sign[1] = false;
}

void tare_tally_begin(struct tare_tally *tally, int64_t expected) {
    tare_tally_empty(tally);
    tally->flat = expected >= FLAT_FROM;
}

static void count_flat(struct tare_tally *tally, int used) {
    uint32_t *counts = tally->counts;
    const uint32_t *slots = tally->slots;
    int i = 0;
    for (; i + 4 <= used; i += 4) { /* two slots a load */
        uint64_t pairs[2];
        memcpy(pairs, slots + i, sizeof pairs);
        for (int k = 0; k < 2; k++) {
            counts[(uint32_t)pairs[k]]++;
            counts[pairs[k] >> 32]++;
        }
    }
    for (; i < used; i++)
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

/* Of the values with a sign, none of which is larger in magnitude. */
static void note_largest(struct tare_tally *tally, int sign, float magnitude) {
    if (!(magnitude > 0)) return;
    tally->has_sign[sign] = true;
    if (tally->largest < tare_float_bits(magnitude)) tally->largest = tare_float_bits(magnitude);
}

void tare_tally_add(struct tare_tally *tally, struct tare_scan *scan, const float *values, int64_t count) {
    int64_t zeros = scan->zeros;
    for (int64_t done = 0; done < count; done += TARE_SCAN_BLOCK) {
        const int block = count - done < TARE_SCAN_BLOCK ? (int)(count - done) : TARE_SCAN_BLOCK;
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
    note_largest(tally, 0, scan->high);
    note_largest(tally, 1, -scan->low);
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
