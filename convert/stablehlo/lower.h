/* Lowering ops of StableHLO to nodes: shared by the files with lowering rules. Not for other modules.
 *
 * A rule reads the op of the lowering, adds nodes to its graph and sets its outputs. Failures are sticky: after the
 * first one, helpers return edges without a node, so that rules read as formulas. */
#ifndef TARE_CONVERT_STABLEHLO_LOWER_H
#define TARE_CONVERT_STABLEHLO_LOWER_H

#include "convert/stablehlo/module.h"
#include "graph/model.h"

struct tare_shlo_importer;
struct tare_lowering;
struct tare_shlo_captures;

struct tare_lowering {
    struct tare_shlo_importer *importer;
    struct tare_graph *graph;
    const struct tare_shlo_op *op;
    struct tare_edge *outputs; /* one for each result */
    bool dequantized;          /* operands of quantized types are read as real numbers, and results are quantized */
    bool widened;              /* narrow element types are read and computed as wider ones (lower_narrow.c) */
    bool is_replaced;          /* `replaced` are the first two operands */
    struct tare_edge replaced[2];
    tare_status status;
};

/* A rule; `arg` is of its row. */
typedef void tare_lower_fn(struct tare_lowering *l, const void *arg);

struct tare_lowering_row {
    const char *name; /* of the op, without dialect and version */
    tare_lower_fn *lower;
    const void *arg;
};
/* Tables of rules, each terminated by a row without a name. */
extern const struct tare_lowering_row tare_lower_elementwise[], tare_lower_shapes[], tare_lower_reductions[],
    tare_lower_products[], tare_lower_control[], tare_lower_normalization[], tare_lower_quantization[],
    tare_lower_random[], tare_lower_structure[];
/* Rules that several tables use; `arg` is not used. */
tare_lower_fn tare_lower_custom_call, tare_lower_dynamic_reduce_window, tare_lower_threefry;
/* ---- operands and dtypes (lower_operands.c) ---- */

/* Operand i as an edge of the graph: of a quantized type the stored integers, or with `dequantized` real numbers. */
struct tare_edge tare_lower_in(struct tare_lowering *l, size_t i);
/* Both operands of an element-wise op. One that was broadcast to the shape of the other is taken from before that: the
 * op broadcasts itself, and a constant stays one; both, if they have the shape together. */
void tare_lower_pair(struct tare_lowering *l, struct tare_edge *x, struct tare_edge *y);
/* Operand i of an op that broadcasts it to the shape of `other`: before its broadcast, if it is one number. */
struct tare_edge tare_lower_number_in(struct tare_lowering *l, size_t i, struct tare_edge other);
/* Operand 0 of a select: what it is a broadcast of, if another operand has the shape of the result. */
struct tare_edge tare_lower_condition_in(struct tare_lowering *l);
/* The dtype of operand (result) i; with `dequantized` that of the real numbers. */
int tare_lower_in_dtype(const struct tare_lowering *l, size_t i);
int tare_lower_out_dtype(const struct tare_lowering *l, size_t i);

/* ---- the op ---- */

const struct tare_shlo_type *tare_lower_in_type(const struct tare_lowering *l, size_t i);
const struct tare_shlo_type *tare_lower_out_type(const struct tare_lowering *l, size_t i);
/* Integers of a list attribute; at most TARE_MAX_RANK (a rank-2 list: 2 * TARE_MAX_RANK). Fails when there are more. */
size_t tare_lower_ints(struct tare_lowering *l, int64_t *out, size_t capacity, const char *name);
int64_t tare_lower_int(struct tare_lowering *l, const char *name);
bool tare_lower_flag(struct tare_lowering *l, const char *name);
const char *tare_lower_text(struct tare_lowering *l, const char *name);
/* True if the name of the op, without dialect and version, is in the list, which ends with NULL. */
bool tare_lower_is_one_of(const struct tare_shlo_op *op, const char *const *names);
/* Is it an op without regions whose results consist of elements of its operands? */
bool tare_lower_moves(const struct tare_shlo_op *op);
/* True if operand i (the value) is a constant all of whose elements equal this real number. */
bool tare_lower_is_constant(const struct tare_lowering *l, size_t i, double value);
bool tare_lower_is_number(const struct tare_shlo_value *value, double number);
/* The real number that all elements of a constant equal; false if the value is no such constant. */
bool tare_lower_number_of(double *number, const struct tare_shlo_value *value);
/* Lowers the op if it ends a composition that TensorFlow has one op for (lower_patterns.c). */
bool tare_lower_pattern(struct tare_lowering *l);
/* The same for a rational approximation of erf, and for composites that are elementary functions
 * (lower_elementary.c). */
bool tare_lower_erf(struct tare_lowering *l);
/* The same for a gather that looks up entries of a table (lower_table.c). */
bool tare_lower_table(struct tare_lowering *l);
bool tare_lower_elementary(struct tare_lowering *l);
/* A custom call that is the elementary function `op` of TensorFlow. */
void tare_lower_elementary_call(struct tare_lowering *l, const void *op);
void tare_lower_fail(struct tare_lowering *l, tare_status status, const char *format, ...) TARE_PRINTF(3, 4);
void tare_lower_set(struct tare_lowering *l, struct tare_edge value); /* output 0 */

/* ---- nodes ---- */

/* Starts a node; its type attributes are set from the dtypes of the inputs. NULL after a failure. */
struct tare_node *tare_lower_begin(struct tare_lowering *l, const char *op, const struct tare_edge *inputs,
                                   size_t count);
/* Further attributes of a node that was started. */
void tare_lower_attr_type(struct tare_lowering *l, struct tare_node *node, const char *name, int dtype);
void tare_lower_attr_int(struct tare_lowering *l, struct tare_node *node, const char *name, int64_t value);
void tare_lower_attr_bool(struct tare_lowering *l, struct tare_node *node, const char *name, bool value);
void tare_lower_attr_bytes(struct tare_lowering *l, struct tare_node *node, const char *name, const void *data,
                           size_t size);
void tare_lower_attr_ints(struct tare_lowering *l, struct tare_node *node, const char *name, const int64_t *values,
                          size_t count);
void tare_lower_attr_func(struct tare_lowering *l, struct tare_node *node, const char *name, struct tare_graph *graph);
/* Completes a node and returns its output 0. */
struct tare_edge tare_lower_end(struct tare_lowering *l, struct tare_node *node);
/* Completes a node whose outputs are the results of the op. The edge of a tuple is that of its first element; the
 * others are the following outputs of the same node. */
void tare_lower_set_all(struct tare_lowering *l, struct tare_node *node);
void tare_lower_spread(struct tare_lowering *l, struct tare_node *node); /* the same for a completed node */
/* The number of tensors of a type: the elements of a tuple, or 1. Tuples in tuples are not supported. */
size_t tare_lower_leaves(const struct tare_shlo_type *type);

struct tare_edge tare_lower_unary(struct tare_lowering *l, const char *op, struct tare_edge x);
struct tare_edge tare_lower_binary(struct tare_lowering *l, const char *op, struct tare_edge x, struct tare_edge y);
struct tare_edge tare_lower_select(struct tare_lowering *l, struct tare_edge condition, struct tare_edge yes,
                                   struct tare_edge no);
/* Casts x; returns x itself if it has the dtype. The result of numbers out of range is undefined. */
struct tare_edge tare_lower_cast(struct tare_lowering *l, struct tare_edge x, int dtype);
struct tare_edge tare_lower_bitcast(struct tare_lowering *l, struct tare_edge x, int dtype);
/* Integers of the same order as the numbers of a floating dtype, from -NaN to NaN; integers are unchanged. */
struct tare_edge tare_lower_total_order(struct tare_lowering *l, struct tare_edge x, int dtype);
/* A scalar string. */
struct tare_edge tare_lower_string(struct tare_lowering *l, const char *text, size_t size);
/* A scalar of any numeric dtype or bool. */
struct tare_edge tare_lower_scalar(struct tare_lowering *l, int dtype, double value);
struct tare_edge tare_lower_tensor(struct tare_lowering *l, const struct tare_tensor *value);
/* The constant of a tensor attribute; fails for other kinds of attributes. */
struct tare_edge tare_lower_constant(struct tare_lowering *l, const struct tare_shlo_attr *value);
/* An int64 vector. */
struct tare_edge tare_lower_longs(struct tare_lowering *l, const int64_t *values, size_t count);
struct tare_edge tare_lower_longs_of(struct tare_lowering *l, const int64_t *values, const int64_t *dims, size_t rank);
/* The static dims of a type as an int64 vector; fails for a dynamic one. */
struct tare_edge tare_lower_dims(struct tare_lowering *l, const struct tare_shlo_type *type);
struct tare_edge tare_lower_reshape(struct tare_lowering *l, struct tare_edge x, struct tare_edge shape);

/* Sets the two results of rng_bit_generator, the new state and bits of the shape (an int64 vector): operand 0 is the
 * state. */
void tare_lower_random_bits(struct tare_lowering *l, const char *algorithm, struct tare_edge shape);

/* ---- quantized types (lower_quantized.c) ---- */

/* Lowers an op with operands or results of quantized types by its rule: real = (stored - zero point) * scale, and
 * stored = real / scale + zero point, clamped to the type's range and rounded to the nearest, ties to even. Ops that
 * only move elements keep the integers. */
void tare_lower_quantized(struct tare_lowering *l, const struct tare_lowering_row *row);
bool tare_lower_has_quantized(const struct tare_shlo_op *op);

/* ---- values of quantized types (lower_quantized_values.c) ---- */

/* The scales (or the zero points) of a quantized type as numbers of the dtype, in a shape that broadcasts. */
struct tare_edge tare_lower_per_channel(struct tare_lowering *l, const struct tare_shlo_type *type, bool scales,
                                        int dtype);
/* (x - zero point) * scale in the expressed type. */
struct tare_edge tare_lower_dequantize(struct tare_lowering *l, struct tare_edge x, const struct tare_shlo_type *type);
/* clamp(minimum, x / scale + zero point, maximum), rounded to the nearest integer, ties to even, in the storage type.
 */
struct tare_edge tare_lower_quantize(struct tare_lowering *l, struct tare_edge x, const struct tare_shlo_type *type);

/* ---- eight-bit floats, integers of few bits (lower_narrow.c) ---- */

bool tare_lower_has_narrow(const struct tare_shlo_op *op);
void tare_lower_narrow(struct tare_lowering *l, const struct tare_lowering_row *row);

/* ---- floats that are stored as float (lower_small_floats.c) ---- */

/* The nearest number of the format to x (float or double), as float: ties to even; numbers that are too large become
 * infinity, the greatest number or NaN, as the format allows. */
struct tare_edge tare_lower_round(struct tare_lowering *l, struct tare_edge x,
                                  const struct tare_shlo_small_float *format);
/* The codes of numbers of the format as uint8, and the numbers of codes. NaN gets the code without sign. */
struct tare_edge tare_lower_encode(struct tare_lowering *l, struct tare_edge x,
                                   const struct tare_shlo_small_float *format);
struct tare_edge tare_lower_decode(struct tare_lowering *l, struct tare_edge codes, enum tare_shlo_type_kind kind);
/* bitcast_convert where the operand or the result is stored as float, or has elements of few bits
 * (lower_bitcast.c). */
void tare_lower_bitcast_op(struct tare_lowering *l);

/* ---- side effects ---- */

/* Marks the node as a side effect: its function is stateful and runs it in every call. */
void tare_lower_effect(struct tare_lowering *l, struct tare_node *node);
/* True for the custom calls that compare a tensor with the expected one (lower_checks.c). */
bool tare_lower_is_check(const char *target);
void tare_lower_check(struct tare_lowering *l, const char *target);

/* Lowers a LAPACK or BLAS call of JAX up to 0.4.35 (lower_lapack.c); false for other targets. */
bool tare_lower_lapack(struct tare_lowering *l, const char *target);

/* ---- functions (import.c) ---- */

/* The values that a region uses but does not define, constants excepted; arena memory. */
struct tare_shlo_captures {
    struct tare_shlo_value **values;
    size_t count;
};
void tare_lower_captures(struct tare_shlo_captures *out, struct tare_lowering *l, const struct tare_shlo_block *region);
/* A function of the region: its block's arguments, then the captures as further arguments; returns what its terminator
 * returns, then (with `pass_captures`) the captures. */
struct tare_graph *tare_lower_region(struct tare_lowering *l, const struct tare_shlo_block *region,
                                     const struct tare_shlo_captures *captures, bool pass_captures);
/* The edge of a captured value in the graph of the lowering. */
struct tare_edge tare_lower_value(struct tare_lowering *l, const struct tare_shlo_value *value);
/* The integer that a value always is where the module runs; -1: not known. */
int64_t tare_lower_known_index(const struct tare_lowering *l, const struct tare_shlo_value *value);
/* Emits the ops of a region that captures values but has no arguments, and sets the outputs to what it returns. */
void tare_lower_region_here(struct tare_lowering *l, const struct tare_shlo_block *region);
/* The same for a body whose arguments are the operands of the op. */
void tare_lower_body_here(struct tare_lowering *l, const struct tare_shlo_block *body);
/* The function of a StableHLO function by name; fails when there is none. */
struct tare_graph *tare_lower_function(struct tare_lowering *l, const char *name);
/* Emits the body of a small function in place of a call, so that the ops before and after it are neighbors of the ops
 * in it, and sets the outputs; false if the function is not small. */
bool tare_lower_inlined(struct tare_lowering *l, const char *name);
/* The function of a custom call's only called computation; fails when there is another number of them. */
struct tare_graph *tare_lower_called(struct tare_lowering *l);
/* Function `index` of the function_list of the XlaCallModule node that contains the module; fails when there is none.
 */
struct tare_graph *tare_lower_caller_function(struct tare_lowering *l, int64_t index);
const struct tare_shlo_module *tare_lower_module(const struct tare_lowering *l);
/* The partitions of the module: the devices that it was exported for, less replicas. */
int64_t tare_lower_partitions(const struct tare_lowering *l);
/* True for ops that mean the same for a tensor as for each of its elements, and for constants and returns. */
bool tare_lower_is_elementwise(const struct tare_shlo_op *op);
/* Fail unless the function or region takes tensors of the inputs' dtypes, and returns tensors of these dtypes. */
void tare_lower_check_inputs(struct tare_lowering *l, const struct tare_graph *function, const struct tare_edge *inputs,
                             size_t count);
void tare_lower_check_returns(struct tare_lowering *l, const struct tare_graph *function, const int *dtypes,
                              size_t count);
/* A call of a function; *node has its outputs. */
struct tare_node *tare_lower_call(struct tare_lowering *l, struct tare_graph *function, const struct tare_edge *inputs,
                                  size_t count);

#endif
