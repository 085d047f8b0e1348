/* Building modules op by op: values, attributes and regions, in the arena of the module. Every function that fails
 * records the first failure in the builder and returns NULL; callers test once, at the end. NULL operands are passed
 * through. */
#ifndef TARE_CONVERT_STABLEHLO_EMIT_BUILD_H
#define TARE_CONVERT_STABLEHLO_EMIT_BUILD_H

#include "base/tensor/tensor.h"
#include "convert/stablehlo/codes.h"

/* A block that is being filled. */
struct tare_build_block {
    struct tare_shlo_op *ops;
    size_t n_ops, capacity;
    struct tare_build_block *parent;
};

struct tare_build {
    struct tare_shlo_module *module;
    int version; /* of VHLO: ops are those of this version */
    struct tare_build_block *block;
    const char *location; /* of the ops that are appended; NULL: unknown */
    tare_status status;   /* of the first failure, whose text is set */
};

typedef const struct tare_shlo_attr *tare_build_attr;
typedef struct tare_shlo_value *tare_build_value;

/* An empty module for ops of this version. Its arena is freed with tare_shlo_free, also after a failure. */
tare_status tare_build_open(struct tare_build *build, int version) TARE_WARN_UNUSED;
/* Records a failure; returns NULL. The error text must be set. */
tare_build_value tare_build_fail(struct tare_build *build, tare_status status);

/* ---- types ---- */

/* The tensor type of a shape, which is known. */
const struct tare_shlo_type *tare_build_type(struct tare_build *build, int dtype, const struct tare_shape *shape);
/* Of a value: its dtype and shape. */
int tare_build_dtype(tare_build_value value);
struct tare_shape tare_build_shape(tare_build_value value);

/* ---- attributes ---- */

tare_build_attr tare_build_int(struct tare_build *build, int64_t value); /* si64 */
tare_build_attr tare_build_int32(struct tare_build *build, int32_t value);
tare_build_attr tare_build_bool(struct tare_build *build, bool value);
tare_build_attr tare_build_text(struct tare_build *build, const char *text);
tare_build_attr tare_build_enum(struct tare_build *build, enum tare_vhlo_attr_code code, const char *name);
/* tensor<count x si64>; with `columns`, tensor<count / columns x columns x si64>. */
tare_build_attr tare_build_ints(struct tare_build *build, const int64_t *values, size_t count, size_t columns);
tare_build_attr tare_build_bools(struct tare_build *build, bool value, size_t count);
tare_build_attr tare_build_array(struct tare_build *build, const tare_build_attr *items, size_t count);
/* A dictionary of one text entry; NULL text: an empty one. */
tare_build_attr tare_build_dictionary(struct tare_build *build, const char *key, const char *text);

/* ---- ops ---- */

struct tare_build_named {
    const char *name;
    tare_build_attr value;
};

/* What an op is made of. Attributes that are left out have the default of StableHLO: the default precision and
 * accuracy. */
struct tare_build_request {
    const char *name; /* without dialect and version */
    const tare_build_value *operands;
    size_t n_operands;
    const struct tare_build_named *attrs;
    size_t n_attrs;
    const struct tare_shlo_type *const *results;
    size_t n_results;
    struct tare_shlo_block *regions; /* copied */
    size_t n_regions;
    tare_build_attr extra; /* discardable attributes; NULL: none */
};
/* Appends an op to the current block. NULL: recorded. */
struct tare_shlo_op *tare_build_op(struct tare_build *build, const struct tare_build_request *request);
/* The same for one result. */
tare_build_value tare_build_value_of(struct tare_build *build, const struct tare_build_request *request);

/* Result type: that of the first operand. */
tare_build_value tare_build_unary(struct tare_build *build, const char *name, tare_build_value operand);
/* Operands of equal shapes; result type: that of the first. */
tare_build_value tare_build_binary(struct tare_build *build, const char *name, tare_build_value a, tare_build_value b);
/* A comparison of equal shapes; direction "LT", "EQ" … */
tare_build_value tare_build_compare(struct tare_build *build, const char *direction, tare_build_value a,
                                    tare_build_value b);
tare_build_value tare_build_select(struct tare_build *build, tare_build_value predicate, tare_build_value a,
                                   tare_build_value b);
tare_build_value tare_build_convert(struct tare_build *build, tare_build_value operand, int dtype);
/* Operands of a product must be both integers or both floats: integers next to floats (weights) are converted. Of two
 * operands that are converted from eight-bit floats, as TensorFlow's ops need, the codes are the operands. */
void tare_build_match_kinds(struct tare_build *build, tare_build_value *lhs, tare_build_value *rhs);
tare_build_value tare_build_reshape(struct tare_build *build, tare_build_value operand, const struct tare_shape *shape);
tare_build_value tare_build_transpose(struct tare_build *build, tare_build_value operand, const int *permutation);
/* Result axis dims[i] is operand axis i, which has its size or 1. */
tare_build_value tare_build_spread(struct tare_build *build, tare_build_value operand, const struct tare_shape *shape,
                                   const int *dims);
/* Broadcast by NumPy's rules: the operand's axes are the last ones. The operand itself if the shapes are equal. */
tare_build_value tare_build_broadcast(struct tare_build *build, tare_build_value operand,
                                      const struct tare_shape *shape);
/* Elements first … limit - 1 of each axis, `stride` apart. */
tare_build_value tare_build_slice(struct tare_build *build, tare_build_value operand, const int64_t *first,
                                  const int64_t *limit, const int64_t *stride);
/* `value`: a scalar. Negative padding cuts off. NULL interior: none. */
tare_build_value tare_build_pad(struct tare_build *build, tare_build_value operand, tare_build_value value,
                                const int64_t *low, const int64_t *high, const int64_t *interior);
tare_build_value tare_build_concatenate(struct tare_build *build, const tare_build_value *operands, size_t count,
                                        int axis);
/* The reduction of the axes by the op `name` (add, maximum …) from a scalar; the axes are removed. */
tare_build_value tare_build_reduce(struct tare_build *build, const char *name, tare_build_value operand,
                                   tare_build_value initial, const int64_t *axes, size_t n_axes);
/* The numbers 0, 1 … along an axis. */
tare_build_value tare_build_iota(struct tare_build *build, int dtype, const struct tare_shape *shape, int axis);

/* ---- constants ---- */

/* Borrows the elements, which must live until the module is written. int8 numbers that all have 4 bits are converted
 * from s4. */
tare_build_value tare_build_constant(struct tare_build *build, const struct tare_tensor *tensor);
/* Whether it would be. */
bool tare_build_fits_four_bits(const struct tare_tensor *tensor);
/* The int8 numbers of the shape whose 4 bits are the halves of a uint8 argument's elements, the lower ones first, along
 * the last axis. */
tare_build_value tare_build_unpack(struct tare_build *build, tare_build_value packed, const struct tare_shape *shape);
/* The number, rounded to the dtype, in every element. */
tare_build_value tare_build_splat(struct tare_build *build, int dtype, const struct tare_shape *shape, double number);
tare_build_value tare_build_scalar(struct tare_build *build, int dtype, double number);
/* The number in every element of the type of `like`. */
tare_build_value tare_build_number(struct tare_build *build, tare_build_value like, double number);

/* ---- regions ---- */

/* Ops go to `block` until tare_build_end, which stores what was built, ended by a return of the values. */
void tare_build_begin(struct tare_build *build, struct tare_build_block *block);
void tare_build_end(struct tare_build *build, struct tare_shlo_block *out, const tare_build_value *values,
                    size_t count);
/* Arguments of a block, for its ops to use. */
tare_build_value tare_build_arguments(struct tare_build *build, struct tare_shlo_block *block,
                                      const struct tare_shlo_type *const *types, size_t count);

/* Removes the ops of the finished module whose results nothing uses. */
tare_status tare_build_remove_dead(struct tare_build *build) TARE_WARN_UNUSED;

#endif
