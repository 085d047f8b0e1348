/* Cloud TPU chips, for estimates. */
#ifndef TARE_TPU_CHIPS_H
#define TARE_TPU_CHIPS_H

#include <stddef.h>

enum { TARE_TPU_CHIPS = 9 };

/* A rate of 0: the chip has no units for products of this type, and computes them at its bfloat16 rate. */
struct tare_tpu_chip {
    const char *name;
    double hbm_bytes;        /* of the chip */
    double hbm_bytes_second; /* bandwidth */
    double bf16_ops_second;  /* peak; a multiply-accumulate is two */
    double int8_ops_second, int4_ops_second, fp8_ops_second;
    const char *source;
    const char *unsourced; /* which of the figures the source does not state, and who does; NULL: it states all */
};

extern const struct tare_tpu_chip tare_tpu_chips[TARE_TPU_CHIPS];
extern const char *const tare_tpu_chip_names[TARE_TPU_CHIPS + 1]; /* terminated by NULL */

extern const char *const tare_tpu_target_names[TARE_TPU_CHIPS + 2]; /* the same after "any" */

/* Lower bound of the time on the chip: the longer of computing at peak and moving the bytes at full bandwidth. */
double tare_tpu_chip_seconds(const struct tare_tpu_chip *chip, double macs, int is_int8, double bytes);

#endif
