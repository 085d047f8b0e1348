/* Summary of a module: ops by name, layers that could be quantized, functions. */
#ifndef TARE_CONVERT_STABLEHLO_SUMMARY_H
#define TARE_CONVERT_STABLEHLO_SUMMARY_H

#include "convert/stablehlo/module.h"

struct tare_shlo_op_count {
    const char *name; /* "vhlo.add_v1" */
    size_t count;
};

struct tare_shlo_summary {
    struct tare_shlo_op_count *ops; /* most frequent first, then by name; functions and the module are not counted */
    size_t n_kinds, n_ops, n_functions;
    size_t n_products, n_convolutions; /* dot, dot_general; convolution, dynamic_conv; of one platform */
    size_t constant_bytes;             /* as stored */
};

/* Counts ops in all functions and regions. Arena memory. */
tare_status tare_shlo_summarize(struct tare_shlo_summary *out, struct tare_arena *arena,
                                const struct tare_shlo_module *module) TARE_WARN_UNUSED;

#endif
