/* Extremes over the first 2^k records. */
#include "calib/convergence.h"

double tare_width_with_zero(double low, double high) {
    return (high > 0 ? high : 0) - (low < 0 ? low : 0);
}

size_t tare_convergence(struct tare_convergence_point *points, const struct tare_statistics *statistics) {
    double low, high;
    size_t count = 0;
    int last = TARE_STATISTICS_BUCKETS - 1;
    if (!tare_statistics_extremes(&low, &high, statistics)) return 0;
    while (last > 0 && !statistics->bucket_used[last])
        last--;
    double whole = tare_width_with_zero(low, high);
    for (int power = 0; power <= last; power++) {
        struct tare_convergence_point *point = &points[count];
        if (!tare_statistics_extremes_until(&point->low, &point->high, statistics, power)) continue;
        point->records = (int64_t)1 << power;
        point->share = whole > 0 ? tare_width_with_zero(point->low, point->high) / whole : 1;
        count++;
    }
    return count;
}

int64_t tare_convergence_records(const struct tare_convergence_point *points, size_t count, double share) {
    for (size_t i = 0; i < count; i++) {
        if (points[i].share >= share) return points[i].records;
    }
    return 0;
}
