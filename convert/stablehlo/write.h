/* Writes a module as a portable artifact: VHLO ops in MLIR bytecode version 6, which JAX, PJRT and XLA read. The
 * inverse of tare_shlo_read. Source: mlir/docs/BytecodeFormat.md, stablehlo/dialect/VhloBytecode.cpp. */
#ifndef TARE_CONVERT_STABLEHLO_WRITE_H
#define TARE_CONVERT_STABLEHLO_WRITE_H

#include "base/strbuf.h"
#include "convert/stablehlo/module.h"

/* Appends the file to `out`. The ops must be those of VHLO `version` (TARE_VHLO_VERSION), which the file names as its
 * producer's: readers of StableHLO of that version and later take it. Locations are unknown. TARE_UNSUPPORTED with the
 * op for one of another dialect, one that this version lacks, and attributes of Shardy. */
tare_status tare_shlo_write(struct tare_strbuf *out, const struct tare_shlo_module *module,
                            int version) TARE_WARN_UNUSED;

#endif
