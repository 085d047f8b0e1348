/* Files of jax.export: `Exported.serialize()` wraps a module in a FlatBuffers table. */
#ifndef TARE_CONVERT_STABLEHLO_EXPORTED_H
#define TARE_CONVERT_STABLEHLO_EXPORTED_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TARE_SHLO_MOST_PLATFORMS = 8 };

/* A text in the file, not terminated. */
struct tare_shlo_span {
    const char *data;
    size_t size;
};

struct tare_shlo_exported {
    const uint8_t *module; /* a portable artifact in the file */
    size_t size;
    struct tare_shlo_span platforms[TARE_SHLO_MOST_PLATFORMS]; /* lower-case names: "cpu", "tpu" */
    size_t n_platforms;
};

/* Finds the module of such a file; false for any other file. Every offset and length is checked. */
bool tare_shlo_exported_find(struct tare_shlo_exported *out, const uint8_t *data, size_t size);

/* An array that the exported function takes. */
struct tare_shlo_leaf {
    const char *path; /* where it is among the function's arguments: "args[0]['dense']['kernel']" */
    bool is_kept;     /* main has an argument for it, in this order; others the function does not use */
};

/* The arrays of such a file's arguments, in their order. None for any other file, and for one whose tree of arguments
 * is damaged. Arena memory. */
tare_status tare_shlo_exported_leaves(struct tare_shlo_leaf **out, size_t *count, struct tare_arena *arena,
                                      const uint8_t *data, size_t size) TARE_WARN_UNUSED;

#endif
