/* Sizes of the parts of a data set, and the assignment of records. */
#include "datasets/partition.h"
#include "base/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static tare_status add(struct tare_partition *out, int64_t size) {
    if (out->count == TARE_PARTITION_MOST) return TARE_FAIL(TARE_USAGE, "more than %d parts", TARE_PARTITION_MOST);
    out->sizes[out->count++] = size;
    return TARE_OK;
}

tare_status tare_partition_equally(struct tare_partition *out, int64_t records, int64_t parts) {
    *out = (struct tare_partition){ .count = 0 };
    if (parts < 1 || parts > TARE_PARTITION_MOST)
        return TARE_FAIL(TARE_USAGE, "%lld parts (expected 1 to %d)", (long long)parts, TARE_PARTITION_MOST);
    for (int64_t i = 0; i < parts; i++)
        TARE_TRY(add(out, records / parts + (i < records % parts)));
    return TARE_OK;
}

/* Parses the next number of "a,b,c"; moves *at after it and its comma. */
static bool next_number(double *out, const char **at) {
    char *end;
    *out = tare_read_double(*at, &end);
    if (end == *at || (*end && *end != ',') || (*end == ',' && !end[1]) || !(*out >= 0)) return false;
    *at = *end ? end + 1 : end;
    return true;
}

static tare_status add_rest(struct tare_partition *out, int64_t records, int64_t used) {
    return used < records ? add(out, records - used) : TARE_OK;
}

tare_status tare_partition_parse_counts(struct tare_partition *out, int64_t records, const char *text) {
    int64_t used = 0;
    double number;
    *out = (struct tare_partition){ .count = 0 };
    for (const char *at = text; *at || at == text;) {
        if (!next_number(&number, &at) || number != floor(number) || number > 1e15)
            return TARE_FAIL(TARE_USAGE, "'%s' is not a list of record counts (as in 100,50)", text);
        if ((int64_t)number > records - used)
            return TARE_FAIL(TARE_USAGE, "%s: there are only %lld records", text, (long long)records);
        used += (int64_t)number;
        TARE_TRY(add(out, (int64_t)number));
    }
    return add_rest(out, records, used);
}

tare_status tare_partition_parse_fractions(struct tare_partition *out, int64_t records, const char *text) {
    static const double SLACK = 1e-9; /* 0.7 + 0.2 + 0.1 is a little over or under 1 */
    double sum = 0, number;
    int64_t used = 0;
    *out = (struct tare_partition){ .count = 0 };
    for (const char *at = text; *at || at == text;) {
        int64_t until;
        if (!next_number(&number, &at) || number > 1)
            return TARE_FAIL(TARE_USAGE, "'%s' is not a list of shares (as in 0.8,0.1)", text);
        sum += number;
        if (sum > 1 + SLACK) return TARE_FAIL(TARE_USAGE, "%s: the shares are more than the whole", text);
        until = sum > 1 - SLACK ? records : (int64_t)floor(sum * (double)records + 0.5);
        TARE_TRY(add(out, until - used));
        used = until;
    }
    return add_rest(out, records, used);
}

static uint64_t next_random(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* A uniformly distributed number below `bound`, by rejection sampling. */
static uint64_t below(uint64_t *state, uint64_t bound) {
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound, x;
    do
        x = next_random(state);
    while (x >= limit);
    return x % bound;
}

void tare_partition_assign(uint16_t *parts, const struct tare_partition *partition, bool shuffle, uint64_t seed) {
    int64_t records = 0;
    for (size_t part = 0; part < partition->count; part++)
        for (int64_t i = 0; i < partition->sizes[part]; i++)
            parts[records++] = (uint16_t)part;
    for (int64_t i = records - 1; shuffle && i > 0; i--) {
        int64_t k = (int64_t)below(&seed, (uint64_t)i + 1);
        uint16_t part = parts[i];
        parts[i] = parts[k];
        parts[k] = part;
    }
}
