/* The tables of chips, and the lower bound of a time. */
#include "tpu/chips.h"

#define GB 1e9
#define GIB 1073741824.0
#define TERA 1e12

#define ROW(...) { __VA_ARGS__ },
#define NAME(name, ...) name,
const struct tare_tpu_chip tare_tpu_chips[TARE_TPU_CHIPS] = { TARE_EACH_TPU_CHIP(ROW) };
const char *const tare_tpu_chip_names[TARE_TPU_CHIPS + 1] = { TARE_EACH_TPU_CHIP(NAME) NULL };
const char *const tare_tpu_target_names[TARE_TPU_CHIPS + 2] = { "any", TARE_EACH_TPU_CHIP(NAME) NULL };

double tare_tpu_chip_seconds(const struct tare_tpu_chip *chip, double macs, int is_int8, double bytes) {
    const double rate = is_int8 && chip->int8_ops_second > 0 ? chip->int8_ops_second : chip->bf16_ops_second;
    double compute = 2 * macs / rate;
    double move = bytes / chip->hbm_bytes_second;
    return compute > move ? compute : move;
}
