/* Ops: a row defines an op: specification strings, shape inference and kernel. Each op has one row, next to its kernel
 * in interpreter/ops/<domain>/; interpreter/ops/families.h lists the tables of rows. Plugins register rows through the
 * same interface.
 *
 * Specification strings follow TensorFlow's registration grammar (facts: graph/definitions/opspec.h):
 *   inputs   "input: T, filter: T"        outputs  "output: T"
 *   attrs    "T: {half, float}; strides: list(int); padding: {'SAME', 'VALID'}; dilations: list(int) = [1, 1, 1, 1]"
 * Inputs and outputs are separated by commas, attributes by semicolons (outside quotes and brackets). */
#ifndef TARE_GRAPH_OP_H
#define TARE_GRAPH_OP_H

#include "graph/graph.h"

#include <string.h>

struct tare_infer;
struct tare_kernel;
struct tare_tiling_stage;
struct tare_gemm_epilogue;

enum tare_op_flag {
    TARE_OP_STATEFUL = 1 << 0,    /* is_stateful in TensorFlow: never folded, never pruned inside functions */
    TARE_OP_NO_FOLD = 1 << 1,     /* not folded to a constant though all inputs are */
    TARE_OP_ELEMENTWISE = 1 << 2, /* each output element depends only on the input elements at its position */
    TARE_OP_MOVE = 1 << 3,        /* moves elements, computes nothing */
    TARE_OP_CONTROL = 1 << 4,     /* calls functions or is control flow: the executor runs it (interpreter/execution) */
    TARE_OP_IN_PLACE = 1 << 5,    /* the kernel may write its output into input 0 */
    TARE_OP_WRITES = 1 << 6,      /* changes state that later runs of the session read: variables, tables */
    TARE_OP_PASSES_ROWS = 1 << 17, /* the kernel may pass output 0 to tare_kernel.consumer instead of storing it */
    TARE_OP_TAKES_CODES =
        1 << 21, /* the kernel also takes int8 or uint8 values in place of their Cast to a float input 0 */
    TARE_OP_EPILOGUE = 1 << 7, /* the kernel may apply a bias, an addend and a ReLU clamp to output 0: tare_epilogue */
    TARE_OP_ROUNDS = 1 << 18,  /* with TARE_OP_EPILOGUE: also if output 0 is bfloat16 */

    /* Which values may be rounded to bfloat16 (tpu/exact/values.h). */
    TARE_OP_CREATE = 1 << 8,       /* creates elements without arithmetic on values: OneHot, ZerosLike */
    TARE_OP_ARITHMETIC = 1 << 9,   /* +, -, *, /, rounding, extremes: what quantizing and dequantizing consist of */
    TARE_OP_REDUCE = 1 << 10,      /* combines elements by sums, products or extremes: counts are made so */
    TARE_OP_PRODUCT = 1 << 11,     /* sums of products: convolutions, matrix products */
    TARE_OP_DISCRETE = 1 << 12,    /* a small change of an input can change the output by a step: comparisons, bins */
    TARE_OP_RANK = 1 << 13,        /* orders the elements of an input: ArgMax, TopK; equal ones by their index */
    TARE_OP_PROBABILITY = 1 << 14, /* maps logits to probabilities (or their logarithms) */
    TARE_OP_SHAPE_ONLY = 1 << 15,  /* uses the shapes of its inputs, not their values */
    TARE_OP_FLOAT32 = 1 << 16, /* keeps its dtype for other reasons than computing in it: bits, formats, positions */
    TARE_OP_FIXED = 1 << 20,   /* without inputs: no effect, and the same outputs in each run, though never folded */
};

/* What a quantizer may do with an op. */
enum tare_quant_role {
    TARE_QUANT_NONE = 0,
    TARE_QUANT_WEIGHTED,     /* input 1 (GatherV2: input 0) may be a weight: Conv2D, MatMul … */
    TARE_QUANT_PASS_THROUGH, /* same scale in and out: MaxPool, Reshape, ConcatV2 … */
    TARE_QUANT_BIAS,         /* BiasAdd */
    TARE_QUANT_ACTIVATION,   /* Relu, Relu6: fused after a weighted op */
};

/* Multiply-accumulates and bytes moved by one execution on the given (fully known) shapes. */
struct tare_cost {
    double macs, bytes;
};

struct tare_op {
    const char *name;
    const char *inputs, *outputs, *attrs; /* specification strings; all NULL in a built-in row: the catalogue's */
    /* Shape inference; NULL: outputs of unknown shape. Arity and dtypes were checked before. */
    tare_status (*infer)(struct tare_infer *infer);
    /* The kernel; NULL: only a definition (the op opens, validates and converts, but does not run). */
    tare_status (*run)(struct tare_kernel *kernel);
    /* Whether the kernel supports the node's attributes; called before anything runs. The error text lists what is
     * supported. NULL: every node that the definition allows. */
    tare_status (*accepts)(const struct tare_node *node);
    /* Called once per node and session, before its first run: parses attributes, packs weights. May set kernel->state,
     * which `release` frees. */
    tare_status (*prepare)(struct tare_kernel *kernel);
    void (*release)(void *state);
    /* The plain kernel that a fast `run` is tested against. */
    tare_status (*reference)(struct tare_kernel *kernel);
    /* Runs the first few of `count` executions together, tile by tile. Each is the only reader of the previous one's
     * output, which is its input 0 and is not materialised; only the last executed one's output is made. Returns the
     * number of executions run: 0 when tiling is not faster or not possible, and nothing was done. Rows whose
     * executions can be tiled together share this function. */
    size_t (*run_tiled)(struct tare_kernel *kernels, size_t count);
    /* With run_tiled: creates the stage of one execution whose input 0 has *shape, which is set to the output's shape;
     * batch 1. The epilogue is written to `room` and refers to the kernel's tensors. False: the execution cannot be
     * tiled (tare_tiling_supports); an error may be set. */
    bool (*tiling_stage)(struct tare_tiling_stage *stage, struct tare_gemm_epilogue *room, struct tare_kernel *kernel,
                         struct tare_shape *shape);
    void (*cost)(const struct tare_infer *infer, struct tare_cost *cost); /* NULL: bytes in + out, no macs */
    const void *aux; /* row data for kernels shared by several rows (a loop table) */
    unsigned flags;
    enum tare_quant_role quant;
};

/* ---- parsed definitions ---- */

struct tare_op_arg {
    const char *name;
    int dtype;                  /* fixed dtype, or TARE_DT_INVALID when an attribute specifies it */
    const char *type_attr;      /* attribute of kind type */
    const char *type_list_attr; /* attribute of kind list(type): one tensor an entry */
    const char *number_attr;    /* attribute of kind int: that many tensors */
    bool is_ref;
};

struct tare_op_attr {
    const char *name;
    enum tare_attr_kind kind; /* of the value or of the list's items */
    bool is_list;
    bool has_minimum;
    int64_t minimum;
    const struct tare_attr *allowed;       /* list of types or strings; NULL: anything */
    const struct tare_attr *default_value; /* NULL: required */
};

struct tare_op_def {
    const char *name;
    const struct tare_op *row; /* NULL: a definition from a catalogue or a file, without row */
    struct tare_op_arg *inputs;
    size_t n_inputs;
    struct tare_op_arg *outputs;
    size_t n_outputs;
    struct tare_op_attr *attrs;
    size_t n_attrs;
    bool is_stateful;
    bool is_fused; /* only the converter inserts the op: its name is an identifier, not CamelCase */
};

/* The attribute whose name is the `size` bytes at `name`; NULL: the definition has none. */
static inline const struct tare_op_attr *tare_op_def_find_attr(const struct tare_op_def *def, const char *name,
                                                               size_t size) {
    for (size_t i = 0; i < def->n_attrs; i++)
        if (strlen(def->attrs[i].name) == size && memcmp(def->attrs[i].name, name, size) == 0) return &def->attrs[i];
    return NULL;
}

/* ---- registry ---- */

struct tare_op_registry;

/* A registry that looks up missing ops in `parent` (may be NULL). */
struct tare_op_registry *tare_ops_new(const struct tare_op_registry *parent);
void tare_ops_free(struct tare_op_registry *registry);
/* Parses and adds a row; the row must outlive the registry. The error text contains the position of a syntax error. */
tare_status tare_ops_add(struct tare_op_registry *registry, const struct tare_op *row);
/* Adds a finished definition (from an OpDef message); memory stays the caller's. */
tare_status tare_ops_add_def(struct tare_op_registry *registry, const struct tare_op_def *def);
/* Data that the owner of a registry attaches to it (the host of plugins); borrowed. `attached` searches the parents,
 * too; NULL: none. */
void tare_ops_attach(struct tare_op_registry *registry, const void *data);
const void *tare_ops_attached(const struct tare_op_registry *registry);
const struct tare_op_def *tare_ops_find(const struct tare_op_registry *registry, const char *name);
/* Why an op may not have been found although it is defined: TARE_INTERNAL with the first error when a built-in row or
 * definition does not parse, TARE_NO_MEMORY when memory ran out while one was parsed. */
tare_status tare_ops_check(const struct tare_op_registry *registry) TARE_WARN_UNUSED;
/* Every definition, also those without a row and the parents', sorted by name; arena memory. Fails as tare_ops_check.
 */
tare_status tare_ops_list_all(const struct tare_op_def *const **out, size_t *count, struct tare_arena *arena,
                              const struct tare_op_registry *registry);

/* Flat range of the tensors of output (input) argument `arg` of a node: *first and *count. */
tare_status tare_node_output_range(const struct tare_node *node, size_t arg, size_t *first, size_t *count);
tare_status tare_node_input_range(const struct tare_node *node, size_t arg, size_t *first, size_t *count);

#endif
