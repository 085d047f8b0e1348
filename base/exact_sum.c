/* Exact sums: wide integer addition with carry.
 *
 * Floating-point addition rounds, so its result depends on the order and grouping of the terms: threads, batches or
 * resumed runs would produce different bits. Every finite double is an integer multiple of 2^-1074, so a sum of doubles
 * is an integer in this unit. Integer addition is associative and commutative, hence the words do not depend on the
 * order in which terms are added or partial sums are merged. tare_exact_sum_value rounds once, at the end. A term
 * touches two words and usually no carry beyond them; negative terms are subtracted (two's complement). */
#include "base/exact_sum.h"

#include <math.h>
#include <string.h>

enum { UNIT_EXPONENT = 1074 }; /* the unit is 2^-1074 */

/* words += value << (64 * at), with carry up to the last word. */
static void add_at(uint64_t *words, int at, unsigned __int128 value) {
    uint64_t parts[2] = { (uint64_t)value, (uint64_t)(value >> 64) };
    unsigned carry = 0;
    for (int i = at; i < TARE_EXACT_SUM_WORDS; i++) {
        uint64_t part = i - at < 2 ? parts[i - at] : 0;
        if (i - at >= 2 && !carry) return;
        unsigned __int128 total = (unsigned __int128)words[i] + part + carry;
        words[i] = (uint64_t)total;
        carry = (unsigned)(total >> 64);
    }
}

static void subtract_at(uint64_t *words, int at, unsigned __int128 value) {
    uint64_t parts[2] = { (uint64_t)value, (uint64_t)(value >> 64) };
    unsigned borrow = 0;
    for (int i = at; i < TARE_EXACT_SUM_WORDS; i++) {
        uint64_t part = i - at < 2 ? parts[i - at] : 0;
        if (i - at >= 2 && !borrow) return;
        unsigned __int128 total = (unsigned __int128)words[i] - part - borrow;
        words[i] = (uint64_t)total;
        borrow = (unsigned)(total >> 64) & 1;
    }
}

bool tare_exact_sum_add(struct tare_exact_sum *sum, double term) {
    uint64_t bits;
    memcpy(&bits, &term, sizeof bits);
    int exponent = (int)(bits >> 52) & 0x7ff;
    uint64_t mantissa = bits & 0xfffffffffffffULL;
    if (exponent == 0x7ff) return false;
    if (exponent == 0) {
        exponent = 1; /* subnormals have the same unit as the smallest normal numbers */
    } else {
        mantissa |= 1ULL << 52;
    }
    if (mantissa == 0) return true;
    int shift = exponent - 1;
    unsigned __int128 value = (unsigned __int128)mantissa << (shift & 63);
    if (bits >> 63) {
        subtract_at(sum->words, shift >> 6, value);
    } else {
        add_at(sum->words, shift >> 6, value);
    }
    return true;
}

void tare_exact_sum_merge(struct tare_exact_sum *sum, const struct tare_exact_sum *other) {
    unsigned carry = 0;
    for (int i = 0; i < TARE_EXACT_SUM_WORDS; i++) {
        unsigned __int128 total = (unsigned __int128)sum->words[i] + other->words[i] + carry;
        sum->words[i] = (uint64_t)total;
        carry = (unsigned)(total >> 64);
    }
}

/* Bits low … low + 63 of a magnitude. */
static uint64_t bits_from(const uint64_t *words, int low) {
    int word = low >> 6, shift = low & 63;
    uint64_t value = words[word] >> shift;
    if (shift && word + 1 < TARE_EXACT_SUM_WORDS) value |= words[word + 1] << (64 - shift);
    return value;
}

static bool any_below(const uint64_t *words, int bit) {
    for (int i = 0; i < bit >> 6; i++) {
        if (words[i]) return true;
    }
    return (bit & 63) && (words[bit >> 6] << (64 - (bit & 63)));
}

double tare_exact_sum_value(const struct tare_exact_sum *sum) {
    uint64_t words[TARE_EXACT_SUM_WORDS];
    memcpy(words, sum->words, sizeof words);
    bool negative = words[TARE_EXACT_SUM_WORDS - 1] >> 63;
    if (negative) {
        unsigned carry = 1;
        for (int i = 0; i < TARE_EXACT_SUM_WORDS; i++) {
            words[i] = ~words[i] + carry;
            carry = carry && words[i] == 0;
        }
    }
    int top = TARE_EXACT_SUM_WORDS - 1;
    while (top >= 0 && words[top] == 0)
        top--;
    if (top < 0) return 0.0;
    int highest = top * 64 + 63 - __builtin_clzll(words[top]);
    double value;
    if (highest <= 52) {
        value = ldexp((double)words[0], -UNIT_EXPONENT);
    } else {
        int low = highest - 52;
        uint64_t mantissa = bits_from(words, low) & ((1ULL << 53) - 1);
        bool half = (words[(low - 1) >> 6] >> ((low - 1) & 63)) & 1;
        if (half && (any_below(words, low - 1) || (mantissa & 1))) mantissa++;
        value = ldexp((double)mantissa, low - UNIT_EXPONENT); /* exact: the mantissa was rounded above */
    }
    return negative ? -value : value;
}

bool tare_exact_sum_equal(const struct tare_exact_sum *a, const struct tare_exact_sum *b) {
    return memcmp(a->words, b->words, sizeof a->words) == 0;
}
