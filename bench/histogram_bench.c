/* Cost of calibration's hot loop in nanoseconds a value, against one pass of memcpy over the same values in the same
 * run. cc -O2 -I. bench/histogram_bench.c build/calib/libtare_calib.a … (see docs/performance.md) */
#include "base/clock.h"
#include "calib/histogram.h"
#include "calib/tally.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static float normal(uint64_t *seed) {
    double sum = 0;
    for (int i = 0; i < 6; i++) {
        *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
        sum += (double)(*seed >> 40) * 0x1p-24;
    }
    return (float)((sum - 3) * 1.4142135);
}

static double one(struct tare_tally *tally, const float *values, int64_t count, int64_t tensor) {
    struct tare_histogram histogram = { .zeros = 0 };
    double best = 1e9;
    for (int round = 0; round < 20; round++) {
        double start = tare_clock_seconds();
        for (int64_t at = 0; at + tensor <= count; at += tensor) {
            struct tare_scan scan;
            tare_scan_begin(&scan);
            tare_tally_begin(tally, tensor);
            tare_tally_add(tally, &scan, values + at, tensor);
            if (tare_histogram_take(&histogram, tally) != TARE_OK) return -1;
        }
        double used = tare_clock_seconds() - start;
        if (used < best) best = used;
    }
    tare_histogram_reset(&histogram);
    return best / (double)count * 1e9;
}

int main(void) {
    enum { COUNT = 1 << 18 }; /* 1 MiB: a large activation, still in the second-level cache as after its kernel */
    float *values = tare_malloc(COUNT * sizeof *values), *copy = tare_malloc(COUNT * sizeof *copy);
    struct tare_tally *tally = tare_tally_new();
    if (!values || !copy || !tally) return 1;
    const char *const kinds[] = { "normal", "relu" };
    const struct {
        const char *name;
        tare_scan_fn *scan;
    } scans[] = { { "plain", tare_scan_plain }, { "avx2", tare_scan_avx2 }, { "avx512", tare_scan_avx512 } };
    for (int kind = 0; kind < 2; kind++) {
        uint64_t seed = 1;
        for (int i = 0; i < COUNT; i++) {
            values[i] = normal(&seed);
            if (kind == 1 && values[i] < 0) values[i] = 0;
        }
        double start = tare_clock_seconds();
        memcpy(copy, values, COUNT * sizeof *copy);
        printf("%-7s memcpy %.3f ns/value\n", kinds[kind], (tare_clock_seconds() - start) / COUNT * 1e9);
        for (size_t s = 0; s < 3; s++) {
            tare_tally_set_scan(tally, scans[s].scan);
            for (int64_t tensor = 256; tensor <= COUNT; tensor *= 4) {
                printf("%-7s %-6s tensors of %7lld: %.3f ns/value\n", kinds[kind], scans[s].name, (long long)tensor,
                       one(tally, values, COUNT, tensor));
            }
        }
    }
    tare_tally_free(tally);
    tare_free(values);
    tare_free(copy);
    return 0;
}
