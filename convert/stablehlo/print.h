/* A module as readable StableHLO text: function signatures, ops with operands, attributes and types, regions. */
#ifndef TARE_CONVERT_STABLEHLO_PRINT_H
#define TARE_CONVERT_STABLEHLO_PRINT_H

#include "base/strbuf.h"
#include "convert/stablehlo/module.h"

struct tare_shlo_print_options {
    size_t max_elements; /* constants with more elements are elided; 0: 16 */
    /* Receives the text piece by piece, so that the text of a large module is never in memory as a whole. */
    tare_status (*write)(void *arg, const char *text, size_t size);
    void *arg;
};

/* Prints the whole module. Fails with what `write` returns, or TARE_NO_MEMORY. */
tare_status tare_shlo_print(const struct tare_shlo_module *module,
                            const struct tare_shlo_print_options *options) TARE_WARN_UNUSED;

/* Appends a type ("tensor<2x?xf32>") or an attribute as the printer writes it. */
void tare_shlo_print_type(struct tare_strbuf *out, const struct tare_shlo_type *type);
/* A TENSOR attribute as dense<…> : type; other attributes print lists of dimensions as [1, 2]. */
void tare_shlo_print_constant(struct tare_strbuf *out, const struct tare_shlo_attr *tensor, size_t max_elements);
void tare_shlo_print_attr(struct tare_strbuf *out, const struct tare_shlo_attr *attr, size_t max_elements);

#endif
