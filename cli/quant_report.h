/* The quantization report of quantize and convert. */
#ifndef TARE_CLI_QUANT_REPORT_H
#define TARE_CLI_QUANT_REPORT_H

#include "eval/explain.h"

/* Prints the result for each quantizable op to standard error. */
void tare_print_quant_report(const struct tare_quant_report *report, const struct tare_explanation_list *layers);

#endif
