/* Cloud TPU chips, for estimates. */
#ifndef TARE_TPU_CHIPS_H
#define TARE_TPU_CHIPS_H

#include <stdbool.h>
#include <stddef.h>

/* One row a chip: figures of one chip (v2, v3, v4, v5p and tpu7x have two cores), from the manufacturer's
 * documentation: name, memory, bandwidth, peaks of bfloat16, int8 and float8, source, what it does not state */
#define TARE_EACH_TPU_CHIP(X)                                                                                          \
    X("v2", 16 * GIB, 700 * GB, 45 * TERA, 0, 0, "cloud.google.com/tpu/docs/v2",                                       \
      "all figures: the page has none and refers to doi.org/10.1145/3360307; the peak is a quarter of the 180 TFLOPS " \
      "that were "                                                                                                     \
      "announced for a board of four chips")                                                                           \
    X("v3", 32 * GIB, 900 * GB, 123 * TERA, 0, 0, "cloud.google.com/tpu/docs/v3", NULL)                                \
    X("v4", 32 * GIB, 1200 * GB, 275 * TERA, 275 * TERA, 0, "cloud.google.com/tpu/docs/v4 (bf16 or int8)", NULL)       \
    X("v5e", 16 * GB, 819 * GB, 197 * TERA, 393 * TERA, 0, "cloud.google.com/tpu/docs/v5e", NULL)                      \
    X("v5p", 95 * GB, 2765 * GB, 459 * TERA, 918 * TERA, 0, "cloud.google.com/tpu/docs/v5p",                           \
      "int8: the page has the bf16 peak only; press reports of the announcement state 918 TOPS")                       \
    X("v6e", 32 * GB, 1640 * GB, 918 * TERA, 1836 * TERA, 920 * TERA, "cloud.google.com/tpu/docs/v6e",                 \
      "float8: jax's tpu_info")                                                                                        \
    X("tpu7x", 206 * GB, 7400 * GB, 2310 * TERA, 0, 4600 * TERA, "jax's tpu_info", NULL)                               \
    X("8i", 309 * GB, 8600 * GB, 1101 * TERA, 0, 8808 * TERA, "jax's tpu_info", NULL)                                  \
    X("8t", 231 * GB, 6400 * GB, 996 * TERA, 996 * TERA, 5977 * TERA, "jax's tpu_info", NULL)

#define TARE_TPU_COUNT(...) +1
enum { TARE_TPU_CHIPS = 0 TARE_EACH_TPU_CHIP(TARE_TPU_COUNT) };
#undef TARE_TPU_COUNT

/* A rate of 0: the chip has no units for products of this type, and computes them at its bfloat16 rate. */
struct tare_tpu_chip {
    const char *name;
    double hbm_bytes;        /* of the chip */
    double hbm_bytes_second; /* bandwidth */
    double bf16_ops_second;  /* peak; a multiply-accumulate is two */
    double int8_ops_second, fp8_ops_second;
    const char *source;
    const char *unsourced; /* which of the figures the source does not state, and who does; NULL: it states all */
};

extern const struct tare_tpu_chip tare_tpu_chips[TARE_TPU_CHIPS];
/* Of estimates and checks that name no chip: the one that is offered for inference. */
#define TARE_DEFAULT_CHIP "v5e"
extern const char *const tare_tpu_chip_names[TARE_TPU_CHIPS + 1]; /* terminated by NULL */

extern const char *const tare_tpu_target_names[TARE_TPU_CHIPS + 2]; /* the same after "any" */

/* Whether the chip multiplies float8 faster than bfloat16 and integers: TPU7x, 8i and 8t. */
bool tare_tpu_chip_prefers_float8(const struct tare_tpu_chip *chip);
/* Why the chip computes products of a model in integers, or in float8, no faster, and what would be: "has no int8
 * units: …"; NULL: it has units for them. */
const char *tare_tpu_chip_lacks(const struct tare_tpu_chip *chip, bool integers, bool float8);

/* The numbers that are multiplied, which choose a rate. */
enum tare_tpu_rate { TARE_TPU_BFLOAT16, TARE_TPU_INT8, TARE_TPU_FLOAT8 };
/* Lower bound of the time on the chip: the longer of computing at peak and moving the bytes at full bandwidth. */
double tare_tpu_chip_seconds(const struct tare_tpu_chip *chip, double macs, enum tare_tpu_rate rate, double bytes);

#endif
