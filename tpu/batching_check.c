/* The requirements of BatchFunction on shapes, checked at conversion rather than by the server. */
#include "tpu/batching_internal.h"

#include "graph/bindings.h"
#include "graph/calls.h"
#include "interpreter/inference/infer.h"

#define WAY_OUT                                                                                                        \
    "export the function with None in dimension 0 of every input, or batch another function or signature "             \
    "(experimental { function_alias or signature_name }), as for an input that the CPU computes for a part of a "      \
    "signature"

static tare_status check_inputs(const struct tare_graph *function, const bool *captured,
                                const struct tare_model_shapes *shapes) {
    char text[TARE_SHAPE_TEXT_SIZE];
    const struct tare_node *first = NULL;
    int64_t rows = TARE_UNKNOWN_DIM;
    for (size_t i = 0; i < function->n_args; i++) {
        const struct tare_node *arg = function->args[i];
        struct tare_shape shape = tare_model_shape(shapes, (struct tare_edge){ function->args[i], 0 });
        if (captured[i] || shape.rank == TARE_UNKNOWN_RANK) continue;
        if (shape.rank == 0)
            return TARE_FAIL(
                TARE_SHAPE,
                "Batching input tensors must have at least one dimension: input '%s' is a scalar (make it a "
                "vector with one element a row, or batch another function or signature)",
                arg->name);
        if (shape.dims[0] == TARE_UNKNOWN_DIM) continue;
        if (first && rows != shape.dims[0])
            return TARE_FAIL(
                TARE_SHAPE,
                "Batching input tensors supplied in a given op invocation must have equal 0th-dimension size: "
                "input '%s' has %lld rows, input '%s' has %lld (" WAY_OUT ")",
                first->name, (long long)rows, arg->name, (long long)shape.dims[0]);
        first = arg;
        rows = shape.dims[0];
    }
    if (!first) return TARE_OK;
    struct tare_shape shape = tare_model_shape(shapes, (struct tare_edge){ (struct tare_node *)first, 0 });
    return TARE_FAIL(
        TARE_SHAPE,
        "Dimensions of inputs should match: input '%s' has shape %s, whose dimension 0 is fixed; it is the batch "
        "dimension, in which requests are joined (expected None; " WAY_OUT ")",
        first->name, tare_shape_text(text, &shape));
}

static tare_status check_outputs(const struct tare_graph *function, const struct tare_model_shapes *shapes) {
    char text[TARE_SHAPE_TEXT_SIZE];
    for (size_t i = 0; i < function->n_returns; i++) {
        const struct tare_return *ret = &function->returns[i];
        struct tare_shape shape = tare_model_shape(shapes, ret->edge);
        if (shape.rank == TARE_UNKNOWN_RANK) continue;
        if (shape.rank == 0)
            return TARE_FAIL(
                TARE_SHAPE,
                "Batched output tensor has 0 dimensions: output '%s' (node '%s') is a scalar, which cannot be "
                "split between requests (return a row a sample, or batch another function or signature)",
                ret->name, ret->edge.node->name);
        if (shape.dims[0] != TARE_UNKNOWN_DIM)
            return TARE_FAIL(
                TARE_SHAPE,
                "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the "
                "input tensors: output '%s' (node '%s') has shape %s, whatever the batch size (return a row a "
                "sample, or batch another function or signature)",
                ret->name, ret->edge.node->name, tare_shape_text(text, &shape));
    }
    return TARE_OK;
}

tare_status tare_batch_check_shapes(const struct tare_graph *function, const bool *captured,
                                    const struct tare_model_shapes *shapes) {
    size_t batched = 0;
    for (size_t i = 0; i < function->n_args; i++)
        batched += !captured[i];
    if (!batched)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "it has no input to batch (only variables and captured constants)");
    if (!function->n_returns) return TARE_FAIL(TARE_INVALID_ARGUMENT, "it returns nothing that could be batched");
    TARE_TRY(check_inputs(function, captured, shapes));
    return check_outputs(function, shapes);
}

/* Adds a note; text NULL: out of memory. */
static tare_status batch_add_note(struct tare_batching_result *out, struct tare_arena *arena, const char *text) {
    const char **grown = tare_arena_append(arena, out->notes, out->n_notes, sizeof *grown);
    if (!grown || !text) return TARE_NO_MEMORY;
    grown[out->n_notes++] = text;
    out->notes = grown;
    return TARE_OK;
}

tare_status tare_batch_add_warning(struct tare_batching_result *out, struct tare_arena *arena, const char *text) {
    const char **grown = tare_arena_append(arena, out->warnings, out->n_warnings, sizeof *grown);
    if (!grown || !text) return TARE_NO_MEMORY;
    grown[out->n_warnings++] = text;
    out->warnings = grown;
    return TARE_OK;
}

/* ---- outputs without a batched input ---- */

tare_status tare_batch_check_dependence(struct tare_arena *arena, const struct tare_graph *function,
                                        const bool *captured) {
    bool *args = TARE_NEW_ARRAY(arena, bool, function->n_args + 1), **dependent;
    if (!args) return TARE_NO_MEMORY;
    for (size_t i = 0; i < function->n_args; i++)
        args[i] = !captured[i];
    TARE_TRY(tare_batch_find_dependent(&dependent, arena, function, args));
    for (size_t i = 0; i < function->n_returns; i++) {
        const struct tare_return *ret = &function->returns[i];
        if (tare_node_is_arg(ret->edge.node) ? args[ret->edge.node->position]
                                             : dependent[ret->edge.node->position][ret->edge.index])
            continue;
        return TARE_FAIL(
            TARE_SHAPE,
            "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the input "
            "tensors: output '%s' (node '%s') depends on no batched input, so it has the same number of rows for "
            "every batch (return a row a sample, or batch another function or signature)",
            ret->name, ret->edge.node->name);
    }
    return TARE_OK;
}

/* ---- two batch sizes ---- */

/* What trials with particular batch sizes and ranks showed of one output. */
struct trials {
    size_t fixed;            /* trials in which the number of rows is known, and is not that of the batch */
    size_t others;           /* trials in which it follows, or is not known */
    size_t unknown;          /* of these: not known */
    struct tare_shape shape; /* of the first trial with another number of rows */
    int64_t size;            /* its batch size */
    struct tare_shape batch; /* of the first trial in which the number of rows follows */
    bool grows;              /* another dimension is another one for another batch size */
};

struct trial {
    struct tare_arena *arena;
    const struct tare_graph *function;
    const bool *captured;
    const struct tare_model_shapes *shapes;
    const struct tare_shape *const *handles;
    struct trials *outputs; /* by return */
};

/* A shape whose number of rows follows. */
static void add_shape(struct trials *seen, const struct tare_shape *shape) {
    if (!seen->batch.rank) seen->batch = *shape;
    for (int d = 1; d < shape->rank && shape->rank == seen->batch.rank; d++)
        seen->grows |= shape->dims[d] != TARE_UNKNOWN_DIM && seen->batch.dims[d] != TARE_UNKNOWN_DIM &&
                       shape->dims[d] != seen->batch.dims[d];
}

static void add_outputs(const struct trial *t, struct tare_shape *const *nodes, const struct tare_shape *args,
                        int64_t size) {
    for (size_t i = 0; i < t->function->n_returns; i++) {
        const struct tare_edge edge = t->function->returns[i].edge;
        const struct tare_shape *shape =
            tare_node_is_arg(edge.node) ? &args[edge.node->position] : &nodes[edge.node->position][edge.index];
        struct trials *seen = &t->outputs[i];
        const bool unknown = shape->rank < 0 || (shape->rank > 0 && shape->dims[0] == TARE_UNKNOWN_DIM);
        if (unknown || (shape->rank > 0 && shape->dims[0] == size)) {
            seen->others++;
            seen->unknown += unknown;
            if (!unknown) add_shape(seen, shape);
        } else {
            if (seen->fixed++) continue;
            seen->shape = *shape;
            seen->size = size;
        }
    }
}

/* Infers the outputs for a batch of `size`; batched arguments of unknown rank get `rank`. A body that requires another
 * size or rank is no evidence. */
static tare_status try_size(const struct trial *t, int64_t size, int rank) {
    const struct tare_graph *function = t->function;
    struct tare_shape *args = TARE_NEW_ARRAY(t->arena, struct tare_shape, function->n_args + 1), **nodes;
    if (!args) return TARE_NO_MEMORY;
    for (size_t i = 0; i < function->n_args; i++) {
        args[i] = tare_model_shape(t->shapes, (struct tare_edge){ function->args[i], 0 });
        if (t->captured[i]) continue;
        if (args[i].rank == TARE_UNKNOWN_RANK) {
            args[i].rank = rank;
            for (int d = 0; d < rank; d++)
                args[i].dims[d] = TARE_UNKNOWN_DIM;
        }
        if (args[i].rank > 0) args[i].dims[0] = size;
    }
    const tare_status status = tare_graph_infer_shapes_of(&nodes, t->arena, function, args, t->handles);
    if (status != TARE_OK) return tare_error_dismiss(status);
    add_outputs(t, nodes, args, size);
    return TARE_OK;
}

static bool has_unknown_rank(const struct trial *t) {
    for (size_t i = 0; i < t->function->n_args; i++) {
        const struct tare_shape shape = tare_model_shape(t->shapes, (struct tare_edge){ t->function->args[i], 0 });
        if (!t->captured[i] && shape.rank == TARE_UNKNOWN_RANK) return true;
    }
    return false;
}

static tare_status add_growth(struct tare_batching_result *out, const struct trial *t, const struct tare_return *ret,
                              const struct trials *seen) {
    char text[TARE_SHAPE_TEXT_SIZE];
    if (!seen->grows) return TARE_OK;
    return batch_add_note(
        out, t->arena,
        tare_arena_printf(t->arena,
                          "batching of function %s: output '%s' (node '%s') has shape %s for a batch of "
                          "%lld, and other columns for other batches: the examples of a request depend on "
                          "the requests that are batched with it",
                          t->function->name, ret->name, ret->edge.node->name, tare_shape_text(text, &seen->batch),
                          (long long)seen->batch.dims[0]));
}

/* The number of rows that a signature declares for what the function returns; TARE_UNKNOWN_DIM: none does. */
static tare_status declared_rows(int64_t *out, const struct trial *t, size_t index) {
    const struct tare_graph_model *model = t->function->model;
    *out = TARE_UNKNOWN_DIM;
    for (size_t s = 0; s < model->n_signatures; s++)
        for (size_t i = 0; i < model->signatures[s].n_outputs; i++) {
            const struct tare_binding *output = &model->signatures[s].outputs[i];
            struct tare_call_site site;
            if (!output->edge.node || output->shape.rank < 1 || (size_t)output->edge.index != index) continue;
            TARE_TRY(tare_call_site(&site, t->arena, output->edge.node));
            if (site.kind == TARE_CALL_PLAIN && site.callees[0] == t->function) *out = output->shape.dims[0];
        }
    return TARE_OK;
}

/* An output whose number of rows never is that of the batch cannot be split; one of which that is not known is noted.
 */
static tare_status judge(struct tare_batching_result *out, const struct trial *t) {
    char text[TARE_SHAPE_TEXT_SIZE];
    for (size_t i = 0; i < t->function->n_returns; i++) {
        const struct tare_return *ret = &t->function->returns[i];
        const struct trials *seen = &t->outputs[i];
        int64_t rows;
        if (seen->fixed && !seen->others)
            return TARE_FAIL(
                TARE_SHAPE,
                "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the input "
                "tensors: output '%s' (node '%s') has shape %s for a batch of %lld (return a row a sample, or batch "
                "another function or signature)",
                ret->name, ret->edge.node->name, tare_shape_text(text, &seen->shape), (long long)seen->size);
        TARE_TRY(add_growth(out, t, ret, seen));
        if (seen->unknown < seen->others) continue;
        TARE_TRY(declared_rows(&rows, t, i));
        if (rows != TARE_UNKNOWN_DIM)
            return TARE_FAIL(
                TARE_SHAPE,
                "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the input "
                "tensors: output '%s' (node '%s') has %lld rows according to the signature, whatever the batch size "
                "(return a row a sample, or batch another function or signature)",
                ret->name, ret->edge.node->name, (long long)rows);
        TARE_TRY(batch_add_note(
            out, t->arena,
            tare_arena_printf(t->arena,
                              "batching of function %s: the number of rows of output '%s' (node '%s') is not known "
                              "before it runs (if it is not that of the batch, every request is refused when serving; "
                              "try it with tare run --batching)",
                              t->function->name, ret->name, ret->edge.node->name)));
    }
    return TARE_OK;
}

/* A Squeeze without axes removes the batch as well if it is 1. */
static tare_status try_one_row(struct tare_batching_result *out, const struct trial *t) {
    struct trial one = *t;
    char text[TARE_SHAPE_TEXT_SIZE];
    one.outputs = TARE_NEW_ARRAY(t->arena, struct trials, t->function->n_returns + 1);
    if (!one.outputs) return TARE_NO_MEMORY;
    TARE_TRY(try_size(&one, 1, 1));
    for (size_t i = 0; i < t->function->n_returns; i++) {
        const struct tare_return *ret = &t->function->returns[i];
        if (!one.outputs[i].fixed) continue;
        TARE_TRY(tare_batch_add_warning(
            out, t->arena,
            tare_arena_printf(t->arena,
                              "batching of function %s: output '%s' (node '%s') has shape %s for a batch of 1, which "
                              "cannot be split: requests of one row fail when serving (give Squeeze its axes, or leave "
                              "1 out of allowed_batch_sizes)",
                              t->function->name, ret->name, ret->edge.node->name,
                              tare_shape_text(text, &one.outputs[i].shape))));
    }
    return TARE_OK;
}

static tare_status try_all(struct tare_batching_result *out, const struct trial *t) {
    enum { MAX_RANK = 8 }; /* of TensorFlow's kernels that have a limit */
    /* Above the ranks, so that rows that are as many as the rank (those of Shape) are not taken for the batch. */
    static const int64_t sizes[] = { 5, 7 }, sizes_of_ranks[] = { MAX_RANK + 3, MAX_RANK + 5 };
    const bool any_rank = has_unknown_rank(t);
    for (int rank = 1; rank <= (any_rank ? MAX_RANK : 1); rank++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            TARE_TRY(try_size(t, any_rank ? sizes_of_ranks[i] : sizes[i], rank));
    TARE_TRY(judge(out, t));
    return any_rank ? TARE_OK : try_one_row(out, t);
}

tare_status tare_batch_try_sizes(struct tare_batching_result *out, struct tare_arena *arena,
                                 const struct tare_graph *function, const bool *captured,
                                 const struct tare_model_shapes *shapes) {
    struct trial trial = { .arena = arena, .function = function, .captured = captured, .shapes = shapes };
    struct tare_bindings *bindings;
    tare_status status;
    trial.outputs = TARE_NEW_ARRAY(arena, struct trials, function->n_returns + 1);
    if (!trial.outputs) return TARE_NO_MEMORY;
    TARE_TRY(tare_bindings_new(&bindings, function->model));
    trial.handles = tare_bindings_handles(bindings, arena, function);
    status = trial.handles ? try_all(out, &trial) : TARE_NO_MEMORY;
    tare_bindings_free(bindings);
    return status;
}

/* ---- shapes that only requests determine ---- */

tare_status tare_batch_note_shapes(struct tare_batching_result *out, struct tare_arena *arena,
                                   const struct tare_graph *function, const bool *captured,
                                   const struct tare_model_shapes *shapes) {
    char text[TARE_SHAPE_TEXT_SIZE];
    for (size_t i = 0; i < function->n_args; i++) {
        struct tare_shape shape = tare_model_shape(shapes, (struct tare_edge){ function->args[i], 0 });
        const char *name = function->args[i]->name;
        if (captured[i]) continue;
        if (shape.rank == TARE_UNKNOWN_RANK)
            TARE_TRY(batch_add_note(
                out, arena,
                tare_arena_printf(arena,
                                  "batching of function %s: the shape of input '%s' is not known (a scalar, or "
                                  "requests of different shapes, will be refused when serving)",
                                  function->name, name)));
        for (int d = 1; d < shape.rank; d++) {
            if (shape.dims[d] != TARE_UNKNOWN_DIM) continue;
            TARE_TRY(batch_add_note(
                out, arena,
                tare_arena_printf(arena,
                                  "batching of function %s: input '%s' has shape %s, and requests whose "
                                  "dimension %d differs will be refused: Dimensions of inputs should match "
                                  "(pad them to one size)",
                                  function->name, name, tare_shape_text(text, &shape), d)));
            break;
        }
    }
    return TARE_OK;
}

/* ---- signatures ---- */

static tare_status check_bindings(const struct tare_binding *bindings, size_t count, const char *what) {
    for (size_t i = 0; i < count; i++)
        if (bindings[i].whole)
            return TARE_FAIL(TARE_UNSUPPORTED,
                             "BatchFunction does not support SparseTensors as inputs or outputs: %s '%s' is a %s, and "
                             "its parts have "
                             "different 0th-dimension sizes (batch a function after tf.sparse.to_dense instead)",
                             what, bindings[i].whole->key, bindings[i].whole->kind);
    return TARE_OK;
}

tare_status tare_batch_check_signature(const struct tare_signature *signature) {
    char text[TARE_SHAPE_TEXT_SIZE];
    TARE_TRY(check_bindings(signature->inputs, signature->n_inputs, "input"));
    TARE_TRY(check_bindings(signature->outputs, signature->n_outputs, "output"));
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_binding *input = &signature->inputs[i];
        if (input->shape.rank == 0)
            return TARE_FAIL(
                TARE_SHAPE,
                "Batching input tensors must have at least one dimension: input '%s' is a scalar (make it a "
                "vector, or batch a function)",
                input->key);
        if (input->shape.rank > 0 && input->shape.dims[0] != TARE_UNKNOWN_DIM)
            return TARE_FAIL(
                TARE_SHAPE,
                "Dimensions of inputs should match: input '%s' has shape %s, whose dimension 0 is fixed (expected "
                "-1, the batch dimension; or batch a function)",
                input->key, tare_shape_text(text, &input->shape));
    }
    return TARE_OK;
}
