/* The portable scan, and code that the variants share. */
#include "calib/scan.h"

#include "base/tensor/number.h"

#include <math.h>

void tare_scan_begin(struct tare_scan *scan) {
    *scan = (struct tare_scan){ .low = INFINITY, .high = -INFINITY };
}

int tare_scan_plain(struct tare_scan *scan, uint32_t *slots, const float *values, int count) {
    int used = 0;
    for (int i = 0; i < count; i++) {
        uint32_t bits = tare_float_bits(values[i]), magnitude = bits & 0x7fffffffu;
        if (magnitude >= 0x7f800000u) {
            scan->not_finite++;
            continue;
        }
        if (values[i] < scan->low) scan->low = values[i] + 0.0f;
        if (values[i] > scan->high) scan->high = values[i] + 0.0f;
        if (magnitude == 0) {
            scan->zeros++;
            continue;
        }
        double value = values[i];
        scan->sums[i % TARE_SCAN_LANES] += value;
        scan->squares[i % TARE_SCAN_LANES] += value * value;
        slots[used++] = bits >> TARE_SCAN_SHIFT;
    }
    return used;
}

tare_scan_fn *tare_scan_best(enum tare_cpu_level level) {
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX512) return tare_scan_avx512;
    if (level >= TARE_CPU_AVX2) return tare_scan_avx2;
#endif
    (void)level;
    return tare_scan_plain;
}

double tare_scan_total(const double lanes[TARE_SCAN_LANES]) {
    double parts[TARE_SCAN_LANES];
    for (int i = 0; i < TARE_SCAN_LANES; i++)
        parts[i] = lanes[i];
    for (int width = TARE_SCAN_LANES / 2; width >= 1; width /= 2) {
        for (int i = 0; i < width; i++)
            parts[i] += parts[i + width];
    }
    return parts[0];
}
