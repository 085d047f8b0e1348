/* Checks of the setting of a layer. */
#include "quant/rewrite.h"

enum tare_quant_granularity tare_quant_default_granularity(enum tare_quant_op_set op_set) {
    return op_set == TARE_OP_SET_UNIFORM_QUANTIZED ? TARE_PER_TENSOR : TARE_PER_CHANNEL;
}

tare_status tare_quant_check_setting(const struct tare_quant_setting *setting) {
    if (!setting->method) return TARE_OK;
    if (setting->bits && setting->bits != 8 && setting->bits != 4)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "weights of %d bits (expected 8 or 4)", setting->bits);
    if (setting->activation_bits && setting->activation_bits != 8 && setting->activation_bits != 16)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "activations of %d bits (expected 8 or 16)", setting->activation_bits);
    if (setting->activation_bits == 16 && !setting->method->takes_wide)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "method %s has no activations of 16 bits (static in the op set XLA has)",
                         setting->method->name);
    if (setting->granularity != TARE_PER_BLOCK) return TARE_OK;
    if (setting->block != 32 && setting->block != 64 && setting->block != 128 && setting->block != 256)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "blocks of %lld rows (expected 32, 64, 128 or 256)",
                         (long long)setting->block);
    if (!setting->method->takes_blocks)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "method %s has no weights in blocks (weight_only has)",
                         setting->method->name);
    return TARE_OK;
}
