/* Dense int8 convolutions of a dilated input, as transposed convolutions are; see conv_int_phases.c. */
#ifndef TARE_INTERPRETER_KERNELS_CONV_INT_PHASES_H
#define TARE_INTERPRETER_KERNELS_CONV_INT_PHASES_H

#include "interpreter/kernels/integer/conv_int.h"

/* The form of a level. */
enum tare_igemm_form tare_conv_int_phases_form(enum tare_cpu_level level);
/* True for convolutions of which each phase is a direct one of this form, or has no taps. */
bool tare_conv_int_has_phases(enum tare_igemm_form form, const struct tare_conv *conv);
/* The packed filter, which depends on the pad_value; 0 when a size overflows. */
size_t tare_conv_int_phases_packed_bytes(enum tare_igemm_form form, const struct tare_conv *conv);
/* TARE_NO_MEMORY. */
tare_status tare_conv_int_phases_pack(void *packed, enum tare_igemm_form form, const struct tare_conv *conv,
                                      const int8_t *filter);
/* Sums and bytes that a block needs. */
int64_t tare_conv_int_phases_sums(const struct tare_conv *conv);
size_t tare_conv_int_phases_scratch(enum tare_igemm_form form, const struct tare_conv *conv);
/* The sums are passed to `take`. */
void tare_conv_int_phases_at(enum tare_cpu_level level, const struct tare_conv_int_sink *sink,
                             const struct tare_conv *conv, const int8_t *input, enum tare_igemm_form form,
                             const void *packed, int32_t *sums, void *scratch);

#endif
