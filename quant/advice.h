/* The thresholds of advice about layers, in one table: warnings of a quantization and the remedies of `compare
 * --explain` say the same of one layer. */
#ifndef TARE_QUANT_ADVICE_H
#define TARE_QUANT_ADVICE_H

#include "quant/quantize.h"

/* Losses of an activation's range relative to the best one that are worth a warning. */
static const double TARE_CLIPPING_DB = 6, TARE_ROUNDING_DB = 12;
static const double TARE_WORTH_DB = 1.5;  /* smaller gains do not justify another algorithm */
static const double TARE_WIDE_SPREAD = 4; /* the median channel then loses two bits to a per-tensor scale */
/* Trained weights reach 35 to 45 dB as 8-bit integers with a scale per channel; fewer bits and float8 have less. */
static const double TARE_POOR_INT8_DB = 25, TARE_POOR_WEIGHT_DB = 15;

/* The SQNR below which int8 activations are too noisy: where the model predicts scores, and where it predicts numbers,
 * whose errors add to those of the model itself. */
static const double TARE_LEAST_DB = 25, TARE_LEAST_DB_OF_NUMBERS = 40;

/* Whether the weight lost clearly more than weights of its format do. */
static inline bool tare_quant_weight_is_poor(const struct tare_quant_outcome *outcome) {
    const bool is_int8 = outcome->bits >= 8 && !outcome->setting.format;
    return outcome->weight_sqnr_db < (is_int8 ? TARE_POOR_INT8_DB : TARE_POOR_WEIGHT_DB);
}

#endif
