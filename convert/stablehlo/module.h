/* A StableHLO module as it is stored: a portable artifact (VHLO ops in MLIR bytecode), as used by jax.export and the
 * XlaCallModule op. The reader builds this representation, the printer writes it as text, the importer turns
 * it into a graph.
 *
 * Types and attributes are decoded on first use and shared; constants are views of the file. Everything is in the
 * module's arena; the bytes must outlive the module. Source: stablehlo/dialect/Vhlo*.td, VhloBytecode.cpp. */
#ifndef TARE_CONVERT_STABLEHLO_MODULE_H
#define TARE_CONVERT_STABLEHLO_MODULE_H

#include "base/arena.h"
#include "base/status.h"

/* The command that writes a module in another form, also with ops of CHLO, as one that is read here. */
#define TARE_SHLO_WRITE_ARTIFACT                                                                                       \
    "python3 -c \"from jaxlib import _jax as j; open('OUT.mlirbc', 'wb').write("                                       \
    "j.mlir.serialize_portable_artifact(open('FILE', 'rb').read(), '1.5.0'))\""

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tare_shlo_attr;
struct tare_shlo_op;

/* ---- types ---- */

/* Numbered as in VHLO bytecode. */
enum tare_shlo_type_kind {
    TARE_SHLO_BOOL = 0,
    TARE_SHLO_COMPLEX = 1,
    TARE_SHLO_BF16 = 2,
    TARE_SHLO_F16 = 3,
    TARE_SHLO_F32 = 4,
    TARE_SHLO_F64 = 5,
    TARE_SHLO_F8E4M3FN = 6,
    TARE_SHLO_F8E5M2 = 7,
    TARE_SHLO_FUNCTION = 8,
    TARE_SHLO_INDEX = 9,
    TARE_SHLO_SI4 = 10,
    TARE_SHLO_SI8 = 11,
    TARE_SHLO_SI16 = 12,
    TARE_SHLO_SI32 = 13,
    TARE_SHLO_SI64 = 14,
    TARE_SHLO_UI4 = 15,
    TARE_SHLO_UI8 = 16,
    TARE_SHLO_UI16 = 17,
    TARE_SHLO_UI32 = 18,
    TARE_SHLO_UI64 = 19,
    TARE_SHLO_TENSOR = 20,
    TARE_SHLO_TENSOR_ENCODED = 21, /* read as TARE_SHLO_TENSOR with an encoding */
    TARE_SHLO_TOKEN = 22,
    TARE_SHLO_TUPLE = 23,
    TARE_SHLO_QUANTIZED = 24,
    TARE_SHLO_UNRANKED = 25,
    TARE_SHLO_WITNESS = 26,
    TARE_SHLO_F8E4M3FNUZ = 27,
    TARE_SHLO_F8E5M2FNUZ = 28,
    TARE_SHLO_F8E4M3B11FNUZ = 29,
    TARE_SHLO_QUANTIZED_PER_AXIS = 30,
    TARE_SHLO_SI2 = 31,
    TARE_SHLO_UI2 = 32,
    TARE_SHLO_NONE = 33,
    TARE_SHLO_TF32 = 34,
    TARE_SHLO_F8E4M3 = 35,
    TARE_SHLO_F8E3M4 = 36,
    TARE_SHLO_F4E2M1FN = 37,
    TARE_SHLO_F6E2M3FN = 38,
    TARE_SHLO_F6E3M2FN = 39,
    TARE_SHLO_F8E8M0FNU = 40,
    TARE_SHLO_BUFFER = 41,
    TARE_SHLO_FUTURE = 42,
    TARE_SHLO_N_TYPES,
};

#define TARE_SHLO_DYNAMIC INT64_MIN /* a dimension whose size is not known */

struct tare_shlo_type_list {
    const struct tare_shlo_type **items;
    size_t count;
};

/* The parameters of a quantized type: real = (stored - zero point) * scale. */
struct tare_shlo_quantized {
    const struct tare_shlo_type *storage, *expressed;
    bool is_signed;
    int64_t axis; /* -1: per tensor */
    int64_t minimum, maximum;
    const double *scales;
    const int64_t *zero_points;
    size_t count; /* of scales and of zero points */
};

struct tare_shlo_type {
    enum tare_shlo_type_kind kind;
    const struct tare_shlo_type *element; /* of COMPLEX, TENSOR, UNRANKED, BUFFER */
    const int64_t *dims;                  /* of TENSOR and BUFFER */
    size_t rank;
    const struct tare_shlo_attr *encoding; /* of TENSOR; NULL: none */
    struct tare_shlo_type_list inputs;     /* of FUNCTION; the items of TUPLE and FUTURE */
    struct tare_shlo_type_list outputs;    /* of FUNCTION */
    const struct tare_shlo_quantized *quantized;
};

/* Bits of a scalar element type (index: 64, tf32: 19, bool: 1); 0 for a type that is not scalar. */
int tare_shlo_type_bits(const struct tare_shlo_type *type);
bool tare_shlo_type_is_float(enum tare_shlo_type_kind kind);
/* The parameters of a tensor's quantized element type; NULL for other types. */
const struct tare_shlo_quantized *tare_shlo_quantized_of(const struct tare_shlo_type *type);
/* True if all zero points are 0. */
bool tare_shlo_is_centred(const struct tare_shlo_quantized *quantized);

/* ---- attributes ---- */

enum tare_shlo_attr_kind {
    TARE_SHLO_ATTR_ARRAY,      /* items */
    TARE_SHLO_ATTR_DICTIONARY, /* items: key, value, key, value … */
    TARE_SHLO_ATTR_BOOL,       /* bits */
    TARE_SHLO_ATTR_ENUM,       /* code: the enumeration's (codes.h); text: the value's name; bits: the value */
    TARE_SHLO_ATTR_INTEGER,    /* type, bits (sign-extended to 64 unless the type is unsigned) */
    TARE_SHLO_ATTR_FLOAT,      /* type, bits */
    TARE_SHLO_ATTR_STRING,     /* text */
    TARE_SHLO_ATTR_SYMBOL,     /* text */
    TARE_SHLO_ATTR_TENSOR,     /* type, data: see tare_shlo_tensor_* */
    TARE_SHLO_ATTR_TYPE,       /* type */
    TARE_SHLO_ATTR_UNIT,
    TARE_SHLO_ATTR_ALIAS,      /* numbers: output tuple indices, then operand tuple indices; bits: operand index */
    TARE_SHLO_ATTR_EXTENSIONS, /* numbers: bounds of dynamic dimensions */
    TARE_SHLO_ATTR_ACCURACY,   /* numbers: bits of atol, bits of rtol, ulps; items: the mode */
    TARE_SHLO_ATTR_SUB_AXIS,   /* numbers: pre-size, size */
    TARE_SHLO_ATTR_AXIS_REF,   /* items: name, sub axis (may be absent) */
    TARE_SHLO_ATTR_MESH_AXES,  /* items: mesh, axes */
    TARE_SHLO_ATTR_MESH_AXIS,  /* items: name; numbers: size */
    TARE_SHLO_ATTR_MESH,       /* items: axes, device ids (may be absent); or numbers: device ids */
    TARE_SHLO_ATTR_SHARDING,   /* items: mesh, then an array of axis refs for each dimension */
    TARE_SHLO_ATTR_OPAQUE,     /* data: bytes of another dialect; text: the dialect */
};

struct tare_shlo_text {
    const char *data; /* may contain any byte; followed by a NUL */
    size_t size;
};

struct tare_shlo_attr {
    enum tare_shlo_attr_kind kind;
    int code;
    const struct tare_shlo_type *type;
    uint64_t bits;
    struct tare_shlo_text text;
    const struct tare_shlo_attr **items;
    size_t n_items;
    const int64_t *numbers;
    size_t n_numbers, n_first; /* ALIAS: n_first of the numbers are output tuple indices */
    const uint8_t *data;
    size_t size;
};

/* The value of a dictionary entry; NULL when absent or when `dictionary` is NULL. */
const struct tare_shlo_attr *tare_shlo_find(const struct tare_shlo_attr *dictionary, const char *key);
/* Elements of a TENSOR attribute; false when the type is dynamic or the product overflows. */
bool tare_shlo_tensor_count(size_t *count, const struct tare_shlo_attr *tensor);
/* True if the stored bytes match the type. The reader rejects other constants. */
bool tare_shlo_tensor_check(const struct tare_shlo_attr *tensor);
/* True if one stored element is repeated for all. */
bool tare_shlo_tensor_is_splat(const struct tare_shlo_attr *tensor);
/* Element i of a tensor of integers, index or bool, sign- or zero-extended; the caller checked i. */
int64_t tare_shlo_tensor_integer(const struct tare_shlo_attr *tensor, size_t i);
/* Element i of a real floating tensor (or part i of a complex one) as double. */
double tare_shlo_tensor_real(const struct tare_shlo_attr *tensor, size_t i);
/* A scalar of this floating type from its bits. */
double tare_shlo_float_of_bits(enum tare_shlo_type_kind kind, uint64_t bits);

/* The layout of a floating type of at most eight bits: value = 1.mantissa * 2^(exponent - bias), and below the least
 * exponent 0.mantissa * 2^(1 - bias). */
struct tare_shlo_small_float {
    uint8_t exponent_bits, mantissa_bits;
    int8_t bias;
    enum {
        TARE_SMALL_IEEE,             /* infinity and NaN in the greatest exponent */
        TARE_SMALL_NAN,              /* no infinity; NaN is the code of all ones */
        TARE_SMALL_NO_NEGATIVE_ZERO, /* no infinity; NaN is the code of -0 */
        TARE_SMALL_FINITE,           /* neither infinity nor NaN */
        TARE_SMALL_POWERS            /* powers of two without sign, zero and infinity; NaN is the code of all ones */
    } special;
};
/* NULL for other types. */
const struct tare_shlo_small_float *tare_shlo_small_float(enum tare_shlo_type_kind kind);

/* ---- ops ---- */

/* A VHLO version as major * 1000000 + minor * 1000 + patch. */
#define TARE_VHLO_VERSION(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
enum {
    TARE_VHLO_OLDEST = TARE_VHLO_VERSION(0, 9, 0),
    TARE_VHLO_NEWEST = TARE_VHLO_VERSION(1, 20, 0),
};

/* The definition of a VHLO op. */
struct tare_vhlo_op {
    const char *name;  /* "add_v1" */
    const char *attrs; /* names sorted by ASCII and separated by spaces, which is their order in the file */
    uint8_t n_attrs;
    uint8_t min_operands; /* operands that are not variadic, and the least number of those that are */
    bool variadic_operands;
    int8_t results;   /* -1: variadic */
    int8_t regions;   /* -1: variadic */
    int since, until; /* VHLO versions; until 0: current */
};
/* NULL when there is no such op. `name` is without the dialect. */
const struct tare_vhlo_op *tare_vhlo_find_op(const char *name);
/* The definition of an op of another dialect ("sdy.mesh"); NULL: none. */
const struct tare_vhlo_op *tare_shlo_find_foreign_op(const char *name);
/* All of them, sorted by name. */
extern const struct tare_vhlo_op tare_vhlo_ops[];
extern const size_t tare_vhlo_n_ops;

struct tare_shlo_value {
    const struct tare_shlo_type *type;
    const struct tare_shlo_op *op; /* that defines it; NULL: a block argument */
    size_t number;                 /* unique within the module */
};

struct tare_shlo_block {
    struct tare_shlo_value *args;
    size_t n_args;
    struct tare_shlo_op *ops;
    size_t n_ops;
};

struct tare_shlo_op {
    const struct tare_vhlo_op *def;     /* NULL: an op of another dialect */
    const struct tare_vhlo_op *foreign; /* of an op of another dialect that the importer knows; else NULL */
    const char *name;                   /* with the dialect: "vhlo.add_v1", "builtin.module", "sdy.mesh" */
    struct tare_shlo_value **operands;
    size_t n_operands;
    struct tare_shlo_value *results;
    size_t n_results;
    const struct tare_shlo_attr **attrs; /* by position in def->attrs */
    const struct tare_shlo_attr *extra;  /* discardable attributes, a dictionary; NULL: none */
    struct tare_shlo_block *regions;     /* one block each */
    size_t n_regions;
    size_t offset;        /* in the file, for messages */
    const char *location; /* where it comes from, for compilers' reports; NULL: unknown, or not read */
};

/* The definition of a VHLO op, or of one of another dialect that the importer knows; NULL for others. */
static inline const struct tare_vhlo_op *tare_shlo_def(const struct tare_shlo_op *op) {
    return op->def ? op->def : op->foreign;
}
/* The attribute of an op by name; NULL if its definition does not have it. */
const struct tare_shlo_attr *tare_shlo_op_attr(const struct tare_shlo_op *op, const char *name);
/* True if it is this op, in any version. `name` is without dialect and version: "add". */
bool tare_shlo_op_is(const struct tare_shlo_op *op, const char *name);

/* ---- modules ---- */

struct tare_shlo_module {
    struct tare_arena arena;
    const uint8_t *data; /* the file, borrowed */
    size_t size;
    int bytecode_version;
    const char *producer;      /* "StableHLO_v1.8.0" */
    int version;               /* VHLO version from the producer; TARE_VHLO_OLDEST when it names none */
    struct tare_shlo_op *root; /* builtin.module */
    size_t n_values, n_ops;
};

/* True if the file begins like MLIR bytecode. */
bool tare_shlo_is_bytecode(const uint8_t *data, size_t size);
/* Reads a module. `data` is borrowed and must outlive it. TARE_CORRUPT for a damaged file, TARE_UNSUPPORTED for a newer
 * bytecode or VHLO version, an unknown op or an unknown attribute; the text has the offset. Memory beyond the file is
 * proportional to the number of ops and values; constants are not copied. */
tare_status tare_shlo_read(struct tare_shlo_module **out, const uint8_t *data, size_t size) TARE_WARN_UNUSED;
void tare_shlo_free(struct tare_shlo_module *module);
/* The function of that name; NULL when there is none. */
const struct tare_shlo_op *tare_shlo_function(const struct tare_shlo_module *module, const char *name);

/* The TensorFlow dtype of an element type (of a tensor: of its elements); TARE_DT_INVALID where there is none. */
int tare_shlo_dtype(const struct tare_shlo_type *type);
/* The floating type of at most eight bits, without TensorFlow dtype, that an element type (of a tensor: of its
 * elements) is; NULL otherwise. Its numbers are stored as float, which has all of them. */
const struct tare_shlo_small_float *tare_shlo_stored_as_float(const struct tare_shlo_type *type);
/* The dtype in which ops compute numbers of a dtype: float for eight-bit floats, int8 (uint8) for integers of 2 and 4
 * bits, otherwise the dtype itself. */
int tare_shlo_wide_dtype(int dtype);

#endif
