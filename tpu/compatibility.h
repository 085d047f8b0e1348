/* Finds what the TPU compiler does not support, before it is asked. */
#ifndef TARE_TPU_COMPATIBILITY_H
#define TARE_TPU_COMPATIBILITY_H

#include "graph/model.h"

/* The forms of an op that the TPU compiler supports. */
struct tare_xla_op {
    const char *name;
    const char *types;     /* "T={DT_FLOAT,DT_HALF};Tseed=DT_INT32", set names like kFloatTypes; NULL: any */
    const char *constants; /* names of inputs that must be compile-time constants, with commas; NULL: none */
};
/* NULL when a TPU has no kernel for the op. */
const struct tare_xla_op *tare_tpu_find_op(const char *op);

struct tare_tpu_finding {
    enum tare_tpu_finding_kind {
        TARE_TPU_NOT_COMPILABLE, /* no TPU kernel for the op */
        TARE_TPU_BAD_TYPE,       /* a dtype that the op or the TPU does not support */
        TARE_TPU_BAD_BOUNDARY,   /* a string or the like as argument or return */
        TARE_TPU_NOT_CONSTANT,   /* an input that must be known when the program is compiled */
        TARE_TPU_BAD_SHAPE,      /* a loop that changes shapes, branches of different ranks, a list that grows */
        TARE_TPU_NO_CPU_KERNEL,  /* an op of XLA alone that stays on the CPU */
        TARE_TPU_ASSIGNS,        /* a variable is written: works, but on the TPU's copy */
        TARE_TPU_STALE_VARIABLE, /* a variable that the CPU writes is read: works, but on the TPU's copy */
        TARE_TPU_SLOW_TYPE,      /* float64: works, in software */
    } kind;                      /* all but the last four are errors */
    const struct tare_graph *function;
    const struct tare_node *node; /* an argument's node, or the node that a return is an output of */
    const char *text;             /* one line: what, where, and the remedy */
};

/* False for warnings: the op compiles, but is slow or has no effect outside. */
bool tare_tpu_finding_is_error(enum tare_tpu_finding_kind kind);

/* "not_compilable": for reports. */
const char *tare_tpu_finding_name(enum tare_tpu_finding_kind kind);

/* Checks functions that are to be placed, and the functions that they call. *count is 0 without findings; arena memory.
 * Findings are not failures: the caller decides. */
tare_status tare_tpu_check(struct tare_tpu_finding **out, size_t *count, struct tare_arena *arena,
                           const struct tare_graph_model *model, struct tare_graph *const *functions,
                           size_t n_functions);

/* A call by name whose results have open shapes: TensorFlow does not load a model with it. */
bool tare_tpu_calls_open_shape(const struct tare_node *node);

/* Finds ops that XLA alone has in what the signatures run on the CPU, once TPU functions are placed: what XLA compiles
 * (TPU functions, functions with _XlaMustCompile) is left out. */
tare_status tare_tpu_check_left(struct tare_tpu_finding **out, size_t *count, struct tare_arena *arena,
                                const struct tare_graph_model *model);

/* Checks the nodes of `graph` that `part` marks (by position) as if they were a function of their own, whose arguments
 * are the values of the other nodes and which has copies of constants: sets refused[position] for each that the TPU
 * does not support there, or that writes variables or reads some that the CPU writes, directly or in a function that it
 * calls. The caller checks the dtypes at the boundary. */
tare_status tare_tpu_check_part(bool *refused, struct tare_arena *arena, const struct tare_graph *graph,
                                const bool *part);

/* Called for each finding of a node of the cluster, or of a function that it calls. */
typedef void (*tare_tpu_finding_fn)(void *arg, const struct tare_node *member, const struct tare_tpu_finding *finding);
/* Checks the nodes that a function has placed on the TPU (_tpu_replicate). */
tare_status tare_tpu_check_cluster(tare_tpu_finding_fn found, void *arg, struct tare_arena *arena,
                                   const struct tare_graph *graph);

/* Whether the number of rows of the node's outputs depends on values: XLA computes with the greatest number, and not
 * all of its kernels tell rows from padding (Unique of a part of its input does not). */
bool tare_tpu_decides_rows(const struct tare_node *node);

/* Whether there is a TPU kernel for the op, or the bridge lowers it itself. For whole models, before functions
 * are chosen: types and constants are not checked. */
bool tare_tpu_compiles(const char *op);
/* Whether a TPU has tensors of the dtype, of TARE_DT_*. */
bool tare_tpu_has_dtype(int dtype);

#endif
