/* Parser of TensorFlow's op registration grammar: what `.Attr(…)`, `.Input(…)` and `.Output(…)` of a registration take.
 *
 *   attribute  NAME ":" TYPE [">=" INT] ["=" DEFAULT]
 *   TYPE       string int float bool type shape tensor func any, a set (numbertype, numerictype, realnumbertype,
 *              realnumerictype, quantizedtype), {'a', 'b'}, {int32, float, numbertype}, list(TYPE)
 *   DEFAULT    as in protobuf's text format: 'foo', 3, 1.5, true, DT_FLOAT, { dim { size: 1 } }, { name: 'f' },
 *              { dtype: DT_INT32 int_val: 5 }, [1, 2]; a dtype may also be written by its name (float)
 *   argument   NAME ":" (DTYPE | ATTR | N "*" DTYPE-or-ATTR | Ref(…))
 *
 * Implied, as in TensorFlow: an int that counts tensors and a list(type) that types them have at least 1 entry unless a
 * minimum is written; an argument of dtype resource makes the op stateful. */
#ifndef TARE_GRAPH_DEFINITIONS_OPSPEC_H
#define TARE_GRAPH_DEFINITIONS_OPSPEC_H

#include "graph/op.h"

struct tare_opspec_tensor; /* a default of kind tensor */

/* Owner of parsed definitions. Zero it to start. */
struct tare_opspec_memory {
    struct tare_arena arena;
    struct tare_opspec_tensor *tensors;
};
void tare_opspec_memory_free(struct tare_opspec_memory *memory);

/* Parses a row's specification strings and applies the rules of tare_opspec_validate. `row` is kept in the definition.
 * TARE_INVALID_ARGUMENT: the text names the item, the op and the character (counted from 1) in the row's string. */
tare_status tare_opspec_parse(struct tare_op_def **out, struct tare_opspec_memory *memory, const struct tare_op *row);

/* The same with each item in a separate string, as in registrations. */
struct tare_opspec_items {
    const char **texts;
    size_t count, capacity;
};
struct tare_opspec_source {
    const char *name;
    struct tare_opspec_items attrs, inputs, outputs;
    bool is_stateful;
    bool is_fused; /* only the converter inserts the op: its name may begin in lower case */
};
/* The definition's row is NULL. `source->name` is kept, the other strings are not. */
tare_status tare_opspec_parse_items(struct tare_op_def **out, struct tare_opspec_memory *memory,
                                    const struct tare_opspec_source *source);

/* Writing items as tare_opspec_parse_items reads them: "T: {float, int32} = DT_FLOAT", "values: N * T". What is written
 * and read again is the same definition. */
struct tare_strbuf;
void tare_opspec_print_attr(struct tare_strbuf *text, const struct tare_op_attr *attr);
void tare_opspec_print_arg(struct tare_strbuf *text, const struct tare_op_arg *arg);

/* Rules for a whole definition, from whatever source: names, duplicates, references to attributes, defaults that fit.
 */
tare_status tare_opspec_validate(const struct tare_op_def *def);

/* A default value in text form for an attribute of this kind; NULL when the text is none. Memory of `memory`. */
struct tare_attr *tare_opspec_parse_value(struct tare_opspec_memory *memory, enum tare_attr_kind kind, bool is_list,
                                          const char *text, size_t size);

#endif
