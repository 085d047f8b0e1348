/* What quantize, convert and compare share: telling what became of each op. */
#ifndef TARE_CLI_QUANTIZING_H
#define TARE_CLI_QUANTIZING_H

#include "cli/calibrating.h"
#include "convert/pipeline.h"
#include "convert/prepared.h"

/* Prints what became of each quantizable op. */
void tare_print_quant_report(const struct tare_quant_report *report);

#endif
