/* Element-wise expressions over arrays: a tree of pipelines (pipeline.h) whose operands are scalars, vectors along the
 * last dimension, such vectors for each record, values of rows, or arrays of the result's shape. A block of elements
 * passes all pipelines while it is in the first-level cache. The source of the main pipeline may be computed block by
 * block by a matrix product or a convolution, whose sums are then never stored as a whole. */
#ifndef TARE_INTERPRETER_KERNELS_EXPRESSION_H
#define TARE_INTERPRETER_KERNELS_EXPRESSION_H

#include "base/arena.h"
#include "base/status.h"
#include "interpreter/kernels/pipeline.h"

enum {
    TARE_EXPRESSION_MAX_BRANCHES = 4,
    TARE_EXPRESSION_MAX_OPERANDS = 24,
    TARE_EXPRESSION_BLOCK = 1024, /* elements that pass the pipelines together */
    TARE_EXPRESSION_LANES = 16,   /* lanes of a bound vector beyond its columns, where the columns are repeated */
};

/* A pipeline before its operands are known. */
struct tare_expression_branch {
    int source; /* operand; -1: the values of the product */
    int n_stages;
    struct {
        uint8_t code;   /* enum tare_stage_code */
        int8_t operand; /* -1: none */
    } stages[TARE_PIPELINE_MAX_STAGES];
};

struct tare_expression {
    enum tare_lane_type from, to; /* of the product's values; of the result */
    int n_branches, n_operands;
    struct tare_expression_branch branches[TARE_EXPRESSION_MAX_BRANCHES]; /* 0 computes the result */
    int8_t
        branch_of[TARE_EXPRESSION_MAX_OPERANDS]; /* by operand: the branch that computes it, above its user; 0: none */
};

enum tare_operand_kind {
    TARE_OPERAND_ONE,    /* one element */
    TARE_OPERAND_VECTOR, /* `columns` elements, repeated */
    TARE_OPERAND_ROW,    /* an element for each `run` elements of the result */
    TARE_OPERAND_RECORD, /* `columns` elements for each `run` elements of the result, repeated among them */
    TARE_OPERAND_ARRAY,  /* an element for each of the result */
};

struct tare_operand {
    enum tare_operand_kind kind;
    enum tare_lane_type type;
    const void *data;
    int64_t run;
};

/* An expression with its operands. */
struct tare_bound_expression {
    const struct tare_expression *expression;
    enum tare_cpu_level level;
    int64_t elements, columns;
    void *to;
    struct tare_value_range *range; /* to which the result's values, floats, are added; NULL: none */
    struct tare_operand operands[TARE_EXPRESSION_MAX_OPERANDS];
    struct tare_pipeline pipelines[TARE_EXPRESSION_MAX_BRANCHES];
    char *lanes[TARE_EXPRESSION_MAX_OPERANDS];   /* of each operand of a stage */
    char *vectors[TARE_EXPRESSION_MAX_OPERANDS]; /* lanes of a vector; NULL: not a vector */
    bool is_uniform;  /* one pipeline whose operands are all single elements: blocks may have any length */
    bool is_repeated; /* vectors are repeated as often as blocks need, which the first run does */
    char *buffers[TARE_EXPRESSION_MAX_OPERANDS]; /* lanes of a block of rows or an array; NULL: another operand */
};

/* Prepares a run: `expression`, `level`, `columns` (of the result's last dimension, at least 1), `to`, `range`
 * and `operands` are set; the rest, from `arena`, is made here. TARE_NO_MEMORY. */
tare_status tare_expression_bind(struct tare_bound_expression *bound, struct tare_arena *arena);
/* Does so again for other values of `operands`, `to` and `range`; kinds and types of the operands are the same. */
void tare_expression_rebind(struct tare_bound_expression *bound);
/* A copy for another thread, with blocks and a range of its own: `range` is that of the copy, or NULL. The vectors are
 * those of `bound`, which must not be bound again meanwhile. Its memory comes from `arena`. NULL: no memory. */
struct tare_bound_expression *tare_expression_copy(struct tare_bound_expression *bound, struct tare_value_range *range,
                                                   struct tare_arena *arena);
/* Computes elements [first, first + count) of the result. `values`: those elements of the product, which may be
 * overwritten, or of the main pipeline's source, instead of those of this operand and of all with the same array; NULL:
 * the source is an operand. */
void tare_expression_run(struct tare_bound_expression *bound, const void *values, int64_t first, int64_t count);
/* The same, with the results at `to` instead of those elements of bound->to. */
void tare_expression_run_to(struct tare_bound_expression *bound, void *to, const void *values, int64_t first,
                            int64_t count);

#endif
