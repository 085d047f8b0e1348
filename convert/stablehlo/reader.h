/* The state of reading one module, shared by the files that decode its parts. Not for other modules. */
#ifndef TARE_CONVERT_STABLEHLO_READER_H
#define TARE_CONVERT_STABLEHLO_READER_H

#include "convert/stablehlo/input.h"
#include "convert/stablehlo/module.h"

/* Where an attribute or type is stored. */
struct tare_mlir_entry {
    size_t at, end;
    uint32_t dialect; /* index into dialects */
    bool custom;      /* coded by the dialect; else assembly text */
    bool busy;        /* being decoded: a second visit is a cycle */
};

struct tare_shlo_reader {
    struct tare_shlo_module *module;
    struct tare_arena *arena; /* the module's */
    struct tare_shlo_text *strings;
    size_t n_strings;
    const char **dialects;
    size_t n_dialects;
    struct {
        const char *name;
        const struct tare_vhlo_op *def, *foreign; /* as in struct tare_shlo_op */
    } * ops;                                      /* name with the dialect */
    size_t n_ops;
    struct tare_mlir_entry *attr_entries, *type_entries;
    size_t n_attrs, n_types;
    const struct tare_shlo_attr **attrs; /* decoded so far */
    const struct tare_shlo_type **types;
    struct tare_mlir_input *properties; /* section 8 */
    size_t n_properties;
    int depth; /* of nested types, attributes and regions */
};

enum { TARE_SHLO_MAX_DEPTH = 200 };

/* read_values.c: the type with this index. */
tare_status tare_shlo_read_type(const struct tare_shlo_type **out, struct tare_shlo_reader *reader, size_t index);
/* The types of the next indices of `in`, as many as it says. */
tare_status tare_shlo_next_types(struct tare_shlo_type_list *out, struct tare_shlo_reader *reader,
                                 struct tare_mlir_input *in);
/* The attribute with the next index of `in`. */
tare_status tare_shlo_next_attr(const struct tare_shlo_attr **out, struct tare_shlo_reader *reader,
                                struct tare_mlir_input *in);
/* The name in the location with this index, in the arena: what JAX calls the op, "jit(f)/Dense_0/dot_general"; NULL: it
 * has none, or is not understood. */
const char *tare_shlo_location_name(struct tare_shlo_reader *reader, uint64_t index);
/* read_ops.c: section 4 into module->root. */
tare_status tare_shlo_read_ops(struct tare_shlo_reader *reader, struct tare_mlir_input in);

#endif
