/* tare ops --stablehlo. */
#ifndef TARE_CLI_OPS_STABLEHLO_H
#define TARE_CLI_OPS_STABLEHLO_H

/* Prints docs/stablehlo-ops.md. */
void tare_ops_print_stablehlo(void);

#endif
