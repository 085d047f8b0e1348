/* Writes files of jax.export: what `jax.export.deserialize` reads. The format is FlatBuffers, whose tables are declared
 * in jax/_src/export/serialization.fbs. */
#ifndef TARE_CONVERT_STABLEHLO_EXPORTED_WRITE_H
#define TARE_CONVERT_STABLEHLO_EXPORTED_WRITE_H

#include "base/strbuf.h"
#include "convert/stablehlo/module.h"

/* Appends the file of a portable artifact (`artifact`, `size` bytes) whose main has this function type; the function
 * takes its arguments by position, and returns one result or a tuple. It may run on every platform. Readers of JAX
 * 0.4.35 and later take it. TARE_UNSUPPORTED for element types that JAX does not have. */
tare_status tare_shlo_write_exported(struct tare_strbuf *out, const struct tare_shlo_type *main, const char *name,
                                     const void *artifact, size_t size) TARE_WARN_UNUSED;

#endif
