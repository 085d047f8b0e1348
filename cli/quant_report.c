/* Prints the quantization result for each op. */
#include "cli/quant_report.h"
#include "base/strbuf.h"
#include "cli/command.h"

#include <stdio.h>

void tare_print_quant_report(const struct tare_quant_report *report, const struct tare_explanation_list *layers) {
    struct tare_strbuf text = { 0 };
    tare_strbuf_printf(&text, "%zu of %zu quantizable ops quantized\n", report->quantized, report->count);
    tare_layers_table(&text, layers, tare_command_width(stderr));
    tare_strbuf_print(&text, stderr);
    tare_strbuf_free(&text);
}
