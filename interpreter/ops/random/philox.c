/* Philox 4x32-10 and the conversions from its words to uniform and normal numbers (philox.h). The rounds and constants
 * are those of the paper and of TensorFlow's random_distributions.h; tests/golden/philox.py checks them. */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/ops/random/philox.h"

#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

/* Computes the four words at the generator's counter without advancing it. */
static void philox_block(uint32_t out[4], const struct tare_philox *philox) {
    uint32_t a = philox->counter[0], b = philox->counter[1], c = philox->counter[2], d = philox->counter[3];
    uint32_t key0 = philox->key[0], key1 = philox->key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t left = 0xd2511f53u * (uint64_t)a, right = 0xcd9e8d57u * (uint64_t)c;
        a = (uint32_t)(right >> 32) ^ b ^ key0;
        b = (uint32_t)right;
        c = (uint32_t)(left >> 32) ^ d ^ key1;
        d = (uint32_t)left;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

struct tare_philox tare_philox_from(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
    return (struct tare_philox){ .key = { (uint32_t)key, (uint32_t)(key >> 32) },
                                 .counter = { (uint32_t)counter_low, (uint32_t)(counter_low >> 32),
                                              (uint32_t)counter_high, (uint32_t)(counter_high >> 32) },
                                 .used = 4 };
}

struct tare_philox tare_philox_from_seeds(uint64_t seed, uint64_t seed2) {
    static const uint64_t mixing_key = 0x02461e293ec8f720u;
    struct tare_philox mixer = tare_philox_from(mixing_key, seed, seed2);
    uint32_t mix[4];
    philox_block(mix, &mixer);
    return tare_philox_from(mix[0] | (uint64_t)mix[1] << 32, 0, mix[2] | (uint64_t)mix[3] << 32);
}

uint32_t tare_philox_next(struct tare_philox *philox) {
    if (philox->used == 4) {
        philox_block(philox->words, philox);
        philox->used = 0;
        for (int i = 0; i < 4 && ++philox->counter[i] == 0; i++) {
        }
    }
    return philox->words[philox->used++];
}

uint64_t tare_philox_next64(struct tare_philox *philox) {
    uint64_t low = tare_philox_next(philox);
    return low | (uint64_t)tare_philox_next(philox) << 32;
}

float tare_philox_float(struct tare_philox *philox) {
    return tare_float_from_bits(0x3f800000u | (tare_philox_next(philox) & 0x7fffffu)) - 1.0f;
}

void tare_philox_skip(struct tare_philox *philox, uint64_t blocks) {
    const uint64_t low = philox->counter[0] | (uint64_t)philox->counter[1] << 32, sum = low + blocks;
    philox->counter[0] = (uint32_t)sum;
    philox->counter[1] = (uint32_t)(sum >> 32);
    if (sum < low && ++philox->counter[2] == 0) philox->counter[3]++;
    philox->used = 4;
}

double tare_philox_double(struct tare_philox *philox) {
    const uint64_t high = tare_philox_next(philox) & 0xfffffu; /* the first word is the high one, unlike for integers */
    const uint64_t bits = 0x3ff0000000000000u | high << 32 | tare_philox_next(philox);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x - 1.0;
}

void tare_philox_normals_f32(struct tare_philox *philox, float out[2]) {
    const float smallest = 1e-7f, u = tare_philox_float(philox);
    const float v = (float)(2 * M_PI * (double)tare_philox_float(philox));
    const float radius = sqrtf(-2.0f * (float)tare_log((double)(u < smallest ? smallest : u)));
    out[0] = (float)tare_sin((double)v) * radius;
    out[1] = (float)tare_cos((double)v) * radius;
}

void tare_philox_normals(struct tare_philox *philox, double out[2]) {
    const double smallest = 1e-7;
    double u = tare_philox_double(philox), v = 2 * M_PI * tare_philox_double(philox);
    double radius = sqrt(-2.0 * tare_log(u < smallest ? smallest : u));
    out[0] = tare_sin(v) * radius;
    out[1] = tare_cos(v) * radius;
}
