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

bool tare_tpu_chip_prefers_float8(const struct tare_tpu_chip *chip) {
    enum { WORTH = 2 };
    return chip->fp8_ops_second > chip->bf16_ops_second * WORTH * 0.9 && chip->fp8_ops_second > chip->int8_ops_second;
}

const char *tare_tpu_chip_lacks(const struct tare_tpu_chip *chip, bool integers, bool float8) {
    if (integers && !(chip->int8_ops_second > 0))
        return chip->fp8_ops_second > 0 ? "has no int8 units: integers save memory only (it has float8 units: --format "
                                          "fp8_e4m3, in the module that tare export writes)"
                                        : "has no int8 units: integers save memory only";
    if (float8 && !(chip->fp8_ops_second > 0))
        return chip->int8_ops_second > 0
                   ? "has no float8 units: float8 saves memory only (it has int8 units: --format int8)"
                   : "has no float8 units: float8 saves memory only";
    return NULL;
}

double tare_tpu_chip_seconds(const struct tare_tpu_chip *chip, double macs, enum tare_tpu_rate rate, double bytes) {
    const double own = rate == TARE_TPU_INT8     ? chip->int8_ops_second
                       : rate == TARE_TPU_FLOAT8 ? chip->fp8_ops_second
                                                 : 0;
    double compute = 2 * macs / (own > 0 ? own : chip->bf16_ops_second);
    double move = bytes / chip->hbm_bytes_second;
    return compute > move ? compute : move;
}
