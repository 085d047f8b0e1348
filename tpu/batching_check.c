/* The requirements of BatchFunction on shapes, checked at conversion rather than by the server. */
#include "tpu/batching_internal.h"

#include "graph/bindings.h"
#include "interpreter/inference/infer.h"

#define WAY_OUT                                                                                                        \
    "export the function with None in dimension 0 of every input, or batch another function or signature "             \
    "(experimental { "                                                                                                 \
    "function_alias or signature_name })"

tare_status tare_batch_captured(bool **captured, struct tare_arena *arena, const struct tare_graph *function) {
    const struct tare_graph_model *model = function->model;
    *captured = TARE_NEW_ARRAY(arena, bool, function->n_args + 1);
    if (!*captured) return TARE_NO_MEMORY;
    for (size_t i = 0; i < function->n_args; i++) {
        int dtype = tare_dtype_base(function->args[i]->output_dtypes[0]);
        (*captured)[i] = dtype == TARE_DT_RESOURCE;
    }
    for (size_t c = 0; c < model->n_concretes; c++) {
        size_t bound = model->concretes[c].n_bound;
        if (model->concretes[c].graph != function || bound > function->n_args) continue;
        for (size_t i = function->n_args - bound; i < function->n_args; i++)
            (*captured)[i] = true;
    }
    return TARE_OK;
}

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

/* ---- two batch sizes ---- */

static tare_status check_following(const struct tare_graph *function, struct tare_shape *const *nodes,
                                   const struct tare_shape *args, int64_t size) {
    char text[TARE_SHAPE_TEXT_SIZE];
    for (size_t i = 0; i < function->n_returns; i++) {
        const struct tare_return *ret = &function->returns[i];
        const struct tare_node *node = ret->edge.node;
        const struct tare_shape *shape =
            tare_node_is_arg(node) ? &args[node->position] : &nodes[node->position][ret->edge.index];
        if (shape->rank < 1 || shape->dims[0] == TARE_UNKNOWN_DIM || shape->dims[0] == size) continue;
        return TARE_FAIL(
            TARE_SHAPE,
            "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the input "
            "tensors: output '%s' (node '%s') has shape %s for a batch of %lld (return a row a sample, or batch "
            "another "
            "function or signature)",
            ret->name, node->name, tare_shape_text(text, shape), (long long)size);
    }
    return TARE_OK;
}

static tare_status try_size(struct tare_arena *arena, const struct tare_graph *function, const bool *captured,
                            const struct tare_model_shapes *shapes, const struct tare_shape *const *handles,
                            int64_t size) {
    struct tare_shape *args = TARE_NEW_ARRAY(arena, struct tare_shape, function->n_args + 1), **nodes;
    if (!args) return TARE_NO_MEMORY;
    for (size_t i = 0; i < function->n_args; i++) {
        args[i] = tare_model_shape(shapes, (struct tare_edge){ function->args[i], 0 });
        if (!captured[i] && args[i].rank > 0) args[i].dims[0] = size;
    }
    if (tare_graph_infer_shapes_of(&nodes, arena, function, args, handles) != TARE_OK) {
        tare_error_clear(); /* the body requires a particular size: no violation of batching */
        return TARE_OK;
    }
    return check_following(function, nodes, args, size);
}

tare_status tare_batch_try_sizes(struct tare_arena *arena, const struct tare_graph *function, const bool *captured,
                                 const struct tare_model_shapes *shapes) {
    struct tare_bindings *bindings;
    const struct tare_shape **handles;
    tare_status status;
    TARE_TRY(tare_bindings_new(&bindings, function->model));
    handles = tare_bindings_handles(bindings, arena, function);
    status = handles ? try_size(arena, function, captured, shapes, handles, 5) : TARE_NO_MEMORY;
    if (status == TARE_OK) status = try_size(arena, function, captured, shapes, handles, 7);
    tare_bindings_free(bindings);
    return status;
}

/* ---- shapes that only requests determine ---- */

static tare_status add_note(struct tare_batching_result *out, struct tare_arena *arena, const char *text) {
    const char **grown = tare_arena_extend(arena, out->notes, out->n_notes, 1, sizeof *grown);
    if (!grown || !text) return TARE_NO_MEMORY;
    grown[out->n_notes++] = text;
    out->notes = grown;
    return TARE_OK;
}

tare_status tare_batch_note_shapes(struct tare_batching_result *out, struct tare_arena *arena,
                                   const struct tare_graph *function, const bool *captured,
                                   const struct tare_model_shapes *shapes) {
    char text[TARE_SHAPE_TEXT_SIZE];
    for (size_t i = 0; i < function->n_args; i++) {
        struct tare_shape shape = tare_model_shape(shapes, (struct tare_edge){ function->args[i], 0 });
        const char *name = function->args[i]->name;
        if (captured[i]) continue;
        if (shape.rank == TARE_UNKNOWN_RANK)
            TARE_TRY(add_note(
                out, arena,
                tare_arena_printf(arena,
                                  "batching of function %s: the shape of input '%s' is not known (a scalar, or "
                                  "requests of different shapes, will be refused when serving)",
                                  function->name, name)));
        for (int d = 1; d < shape.rank; d++) {
            if (shape.dims[d] != TARE_UNKNOWN_DIM) continue;
            TARE_TRY(
                add_note(out, arena,
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
        if (bindings[i].kind != TARE_BINDING_DENSE)
            return TARE_FAIL(
                TARE_UNSUPPORTED,
                "BatchFunction does not support SparseTensors as inputs or outputs: %s '%s' is one, and its parts "
                "have different 0th-dimension sizes (batch a function after tf.sparse.to_dense instead)",
                what, bindings[i].key);
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
