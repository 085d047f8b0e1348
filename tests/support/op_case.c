#include "support/op_case.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/builtin.h"

#include "base/alloc.h"
#include "base/poison.h"
#include "graph/model.h"
#include "graph/definitions/opdef.h"
#include "graph/definitions/opspec.h"
#include "support/attrs_text.h"
#include "support/tensor_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* One case in execution. */
struct run {
    const struct op_case *test;
    struct tare_graph_model *model;
    struct tare_opspec_memory memory; /* memory of the attributes */
    struct tare_node *node;
    const struct tare_op *row;
    void *state;
};

static bool complain(const struct run *run, const char *what, const char *text) {
    const struct op_case *test = run->test;
    fprintf(stderr, "%s: %s {%s}", test->where, test->op, test->attrs ? test->attrs : "");
    for (size_t i = 0; i < test->n_inputs; i++) {
        struct tare_strbuf input = { 0 };
        tensor_to_text(&input, &test->inputs[i], 12);
        fprintf(stderr, "\n    input %zu: %s", i, tare_strbuf_text(&input));
        tare_strbuf_free(&input);
    }
    fprintf(stderr, "\n    %s: %s\n", what, text);
    return false;
}

/* ---- the node ---- */

static tare_status check_inputs(struct run *run) {
    int *dtypes;
    size_t count;
    TARE_TRY(tare_opdef_input_dtypes(&run->model->arena, run->node, &dtypes, &count));
    if (count != run->test->n_inputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the case has %zu inputs (expected %zu)", run->test->n_inputs, count);
    for (size_t i = 0; i < count; i++) {
        if (tare_dtype_base(dtypes[i]) != run->test->inputs[i].dtype)
            return TARE_FAIL(TARE_TYPE, "input %zu of the case is %s (expected %s)", i,
                             tare_dtype_name(run->test->inputs[i].dtype), tare_dtype_name(dtypes[i]));
    }
    return TARE_OK;
}

static tare_status open_node(struct run *run) {
    const struct op_case *test = run->test;
    run->model = tare_model_new(tare_ops_builtin());
    if (!run->model) return TARE_NO_MEMORY;
    struct tare_graph *graph = tare_model_add_function(run->model, "case");
    if (!graph) return TARE_NO_MEMORY;
    run->node = tare_graph_add(graph, test->op, test->op);
    if (!run->node) return TARE_NO_MEMORY;
    if (!run->node->def || !run->node->def->row)
        return TARE_FAIL(TARE_NOT_FOUND, "the registry has no row %s", test->op);
    run->row = run->node->def->row;
    for (size_t i = 0; i < test->n_inputs; i++) {
        char name[32];
        snprintf(name, sizeof name, "input_%zu", i);
        struct tare_node *arg = tare_graph_add_arg(graph, name, test->inputs[i].dtype);
        if (!arg) return TARE_NO_MEMORY;
        TARE_TRY(tare_node_add_input(run->node, (struct tare_edge){ arg, 0 }));
    }
    TARE_TRY(attrs_from_text(run->node, &run->memory, test->attrs));
    TARE_TRY(tare_opdef_check_attrs(run->node));
    TARE_TRY(tare_node_resolve(run->node));
    return check_inputs(run);
}

/* ---- inference ---- */

static tare_status infer(struct run *run, struct tare_shape *outputs, const struct tare_shape *inputs,
                         const struct tare_tensor *const *values) {
    int dtypes[OP_CASE_MAX_TENSORS];
    for (size_t i = 0; i < run->test->n_inputs; i++)
        dtypes[i] = run->test->inputs[i].dtype;
    for (size_t i = 0; i < run->node->n_outputs; i++)
        outputs[i] = tare_shape_unknown();
    struct tare_infer call = { .node = run->node,
                               .n_inputs = run->test->n_inputs,
                               .input_dtypes = dtypes,
                               .inputs = inputs,
                               .input_values = values,
                               .n_outputs = run->node->n_outputs,
                               .outputs = outputs,
                               .arena = &run->model->arena };
    return run->row->infer ? run->row->infer(&call) : TARE_OK;
}

enum knowledge { KNOWS_VALUES, KNOWS_SHAPES, KNOWS_RANKS, KNOWS_NOTHING, KNOWLEDGE_COUNT };
static const char *const knowledge_names[] = { "inference with known values", "inference with known shapes",
                                               "inference with known ranks", "inference with nothing known" };

static bool check_inference(struct run *run, enum knowledge knowledge) {
    const struct op_case *test = run->test;
    struct tare_shape inputs[OP_CASE_MAX_TENSORS], outputs[OP_CASE_MAX_TENSORS];
    const struct tare_tensor *values[OP_CASE_MAX_TENSORS];
    char got[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
    const char *name = knowledge_names[knowledge];
    for (size_t i = 0; i < test->n_inputs; i++) {
        inputs[i] = knowledge == KNOWS_NOTHING ? tare_shape_unknown() : test->inputs[i].shape;
        values[i] = knowledge == KNOWS_VALUES ? &test->inputs[i] : NULL;
        for (int d = 0; knowledge == KNOWS_RANKS && d < inputs[i].rank; d++)
            inputs[i].dims[d] = TARE_UNKNOWN_DIM;
    }
    if (infer(run, outputs, inputs, values) != TARE_OK) return complain(run, name, tare_error_text());
    for (size_t i = 0; i < test->n_outputs; i++) {
        const struct tare_shape *shape = &test->outputs[i].shape;
        char text[2 * TARE_SHAPE_TEXT_SIZE + 64];
        if (test->outputs[i].dtype == TARE_DT_INVALID) continue;
        const bool full = knowledge != KNOWS_VALUES || test->dynamic || tare_shape_is_known(&outputs[i]);
        if (full && tare_shape_compatible(&outputs[i], shape)) continue;
        snprintf(text, sizeof text, "output %zu: got %s, expected %s", i, tare_shape_text(got, &outputs[i]),
                 tare_shape_text(expected, shape));
        return complain(run, name, text);
    }
    return true;
}

/* Checks one "shapes -> shapes". */
static bool check_stated_inference(struct run *run, const char *text, const char **end) {
    struct tare_shape inputs[OP_CASE_MAX_TENSORS], outputs[OP_CASE_MAX_TENSORS], expected;
    const struct tare_tensor *values[OP_CASE_MAX_TENSORS] = { NULL };
    char a[TARE_SHAPE_TEXT_SIZE], b[TARE_SHAPE_TEXT_SIZE];
    const char *at = text;
    for (size_t i = 0; i < run->test->n_inputs; i++) {
        if (shape_from_text(&inputs[i], at, &at) != TARE_OK) return complain(run, "infer line", tare_error_text());
        if (*at == '*') {
            values[i] = &run->test->inputs[i];
            at++;
        }
    }
    while (isspace((unsigned char)*at))
        at++;
    if (strncmp(at, "->", 2) != 0) return complain(run, "infer line without ->", text);
    at += 2;
    if (infer(run, outputs, inputs, values) != TARE_OK) return complain(run, text, tare_error_text());
    for (size_t i = 0; i < run->node->n_outputs; i++) {
        if (shape_from_text(&expected, at, &at) != TARE_OK) return complain(run, "infer line", tare_error_text());
        if (tare_shape_equal(&expected, &outputs[i])) continue;
        fprintf(stderr, "inferred %s, expected %s\n", tare_shape_text(a, &outputs[i]), tare_shape_text(b, &expected));
        return complain(run, "inferred otherwise than", text);
    }
    *end = at;
    return true;
}

static bool check_all_inference(struct run *run) {
    for (int knowledge = 0; knowledge < KNOWLEDGE_COUNT; knowledge++) {
        if (!check_inference(run, knowledge)) return false;
    }
    for (const char *at = run->test->infer; at && *at != '\0';) {
        if (!check_stated_inference(run, at, &at)) return false;
        at += strspn(at, " ;");
    }
    return true;
}

/* ---- execution ---- */

typedef tare_status (*kernel_fn)(struct tare_kernel *kernel);

struct execution {
    struct tare_tensor inputs[OP_CASE_MAX_TENSORS], outputs[OP_CASE_MAX_TENSORS];
    struct tare_arena scratch;
};

static void end_execution(struct run *run, struct execution *execution) {
    for (size_t i = 0; i < run->test->n_inputs; i++)
        tare_tensor_reset(&execution->inputs[i]);
    for (size_t i = 0; i < run->node->n_outputs; i++)
        tare_tensor_reset(&execution->outputs[i]);
    tare_arena_free(&execution->scratch);
}

/* Runs the kernel on private copies of the inputs. */
static tare_status execute(struct run *run, struct execution *execution, kernel_fn fn, struct tare_buffer_pool *pool,
                           bool in_place, int64_t fail_at) {
    memset(execution, 0, sizeof *execution);
    for (size_t i = 0; i < run->test->n_inputs; i++)
        TARE_TRY(tare_tensor_copy(&execution->inputs[i], &run->test->inputs[i]));
    struct tare_kernel kernel = { .node = run->node,
                                  .op = run->row,
                                  .n_inputs = run->test->n_inputs,
                                  .inputs = execution->inputs,
                                  .n_outputs = run->node->n_outputs,
                                  .outputs = execution->outputs,
                                  .scratch = &execution->scratch,
                                  .pool = pool,
                                  .state = run->state,
                                  .may_reuse_input0 = in_place };
    tare_error_clear();
    if (fail_at > 0) tare_alloc_fail_at(fail_at);
    const tare_status status = fn(&kernel);
    if (fail_at > 0) tare_alloc_fail_at(0);
    return status;
}

static tare_status prepare(struct run *run) {
    struct tare_arena scratch = { 0 };
    struct tare_tensor outputs[OP_CASE_MAX_TENSORS] = { { 0 } };
    struct tare_kernel kernel = {
        .node = run->node, .op = run->row, .n_outputs = run->node->n_outputs, .outputs = outputs, .scratch = &scratch
    };
    tare_error_clear();
    const tare_status status = run->row->prepare ? run->row->prepare(&kernel) : TARE_OK;
    run->state = kernel.state;
    tare_arena_free(&scratch);
    return status;
}

static bool check_outputs(struct run *run, const struct execution *execution, const char *name, bool in_place) {
    const struct op_case *test = run->test;
    bool good = true;
    for (size_t i = 0; i < run->node->n_outputs && good; i++) {
        struct tare_strbuf why = { 0 };
        const struct tare_tensor *got = &execution->outputs[i];
        tare_strbuf_printf(&why, "output %zu: ", i);
        if (got->dtype != tare_dtype_base(run->node->output_dtypes[i])) {
            tare_strbuf_printf(&why, "dtype %s, the definition says %s", tare_dtype_name(got->dtype),
                               tare_dtype_name(run->node->output_dtypes[i]));
            good = complain(run, name, tare_strbuf_text(&why));
        } else if (test->outputs[i].dtype != TARE_DT_INVALID &&
                   !tensors_agree(&why, got, &test->outputs[i], test->tolerance)) {
            good = complain(run, name, tare_strbuf_text(&why));
        }
        tare_strbuf_free(&why);
    }
    for (size_t i = 0; i < test->n_inputs && good && !in_place; i++) {
        struct tare_strbuf why = { 0 };
        const int class = tare_dtype_get(test->inputs[i].dtype)->class;
        if (class != TARE_CLASS_OBJECT &&
            !tensors_agree(&why, &execution->inputs[i], &test->inputs[i], (struct tolerance){ 0 }))
            good = complain(run, "the kernel changed an input", tare_strbuf_text(&why));
        tare_strbuf_free(&why);
    }
    return good;
}

static bool check_run(struct run *run, kernel_fn fn, const char *name, bool in_place) {
    struct execution execution;
    const tare_status status = execute(run, &execution, fn, NULL, in_place, 0);
    const bool good =
        status == TARE_OK ? check_outputs(run, &execution, name, in_place) : complain(run, name, tare_error_text());
    end_execution(run, &execution);
    return good;
}

/* ---- recycled memory ---- */

enum { GUARD_BYTES = 32, DIRT = 0xa5 };

/* Adds a buffer for `bytes` bytes to the pool, filled with garbage, and writes guard bytes after it if the pool's
 * buffer is longer; returns their address, or NULL if it is not longer. */
static const unsigned char *dirty_buffer(struct tare_buffer_pool *pool, size_t bytes) {
    const struct tare_shape exact = { .rank = 1, .dims = { (int64_t)bytes } };
    const struct tare_shape longer = { .rank = 1, .dims = { (int64_t)bytes + GUARD_BYTES } };
    struct tare_tensor first = { 0 }, second = { 0 };
    const unsigned char *guard = NULL;
    if (tare_tensor_new_pooled(&first, TARE_DT_UINT8, &exact, pool) != TARE_OK) return NULL;
    memset(first.data, DIRT, bytes);
    const void *address = first.data;
    tare_tensor_reset(&first);
    if (tare_tensor_new_pooled(&second, TARE_DT_UINT8, &longer, pool) != TARE_OK) return NULL;
    if (second.data == address) {
        memset(second.data, DIRT, bytes + GUARD_BYTES);
        guard = (const unsigned char *)address + bytes;
    }
    tare_tensor_reset(&second);
    return guard;
}

static bool check_dirty_memory(struct run *run) {
    struct tare_buffer_pool *pool = tare_buffer_pool_new();
    const unsigned char *guard[OP_CASE_MAX_TENSORS] = { NULL };
    struct execution execution;
    bool good = true;
    if (!pool) return complain(run, "harness", "no memory");
    /* Only the buffer of the first output is certain: buffers of one size class are reused in reverse order. */
    for (size_t i = run->node->n_outputs; i-- > 0;) {
        const struct tare_tensor *expected = &run->test->outputs[i];
        const size_t bytes = expected->dtype == TARE_DT_INVALID ? 0 : tare_tensor_bytes(expected);
        if (bytes > 0 && tare_dtype_get(expected->dtype)->class != TARE_CLASS_STRING &&
            tare_dtype_get(expected->dtype)->class != TARE_CLASS_OBJECT)
            guard[i] = dirty_buffer(pool, bytes);
    }
    if (execute(run, &execution, run->row->run, pool, false, 0) != TARE_OK)
        good = complain(run, "second run", tare_error_text());
    else
        good = check_outputs(run, &execution, "second run, on recycled memory", false);
    for (size_t i = 0; i < run->node->n_outputs && good; i++) {
        const unsigned char *end =
            (const unsigned char *)execution.outputs[i].data + tare_tensor_bytes(&execution.outputs[i]);
        if (guard[i] == end) tare_unpoison(guard[i], GUARD_BYTES); /* the pool has it poisoned, with the sanitizer */
        for (int k = 0; guard[i] == end && guard[i] && k < GUARD_BYTES && good; k++) {
            if (guard[i][k] != DIRT) good = complain(run, "recycled memory", "bytes behind an output were written");
        }
    }
    end_execution(run, &execution);
    tare_buffer_pool_free(pool);
    return good;
}

/* ---- failing allocations ---- */

static bool check_failing_allocations(struct run *run) {
    enum { MOST_ALLOCATIONS = 12 };
    for (int64_t n = 1; n <= MOST_ALLOCATIONS; n++) {
        struct execution execution;
        bool good = true;
        const tare_status status = execute(run, &execution, run->row->run, NULL, false, n);
        if (status != TARE_OK && status != TARE_NO_MEMORY)
            good = complain(run, "run whose n-th allocation fails", tare_error_text());
        else if (status == TARE_OK)
            good = check_outputs(run, &execution, "run whose n-th allocation fails", false);
        end_execution(run, &execution);
        if (!good) return false;
        if (status == TARE_OK) break;
    }
    return true;
}

/* ---- cases ---- */

static bool check_failure(struct run *run) {
    struct execution execution = { 0 };
    bool good = true;
    tare_status status = prepare(run);
    if (status == TARE_OK) {
        status = execute(run, &execution, run->row->run, NULL, false, 0);
        if (status == TARE_OK)
            good = complain(run, "succeeded, expected the error", run->test->error);
        else if (!strstr(tare_error_text(), run->test->error))
            good = complain(run, run->test->error, tare_error_text());
        end_execution(run, &execution);
    } else if (!strstr(tare_error_text(), run->test->error)) {
        good = complain(run, run->test->error, tare_error_text());
    }
    return good;
}

static bool check_success(struct run *run) {
    if (run->node->n_outputs > OP_CASE_MAX_TENSORS || run->node->n_outputs != run->test->n_outputs) {
        fprintf(stderr, "the case has %zu outputs, the node %zu\n", run->test->n_outputs, run->node->n_outputs);
        return complain(run, "case", "wrong number of outputs");
    }
    if (!check_all_inference(run)) return false;
    if (prepare(run) != TARE_OK) return complain(run, "prepare", tare_error_text());
    if (!check_run(run, run->row->run, "run", false) || !check_dirty_memory(run)) return false;
    if (run->row->reference && !check_run(run, run->row->reference, "reference", false)) return false;
    if ((run->row->flags & TARE_OP_IN_PLACE) && !check_run(run, run->row->run, "run in place", true)) return false;
    return check_failing_allocations(run);
}

bool op_case_run(const struct op_case *test) {
    struct run run = { .test = test };
    bool good;
    tare_error_clear();
    if (open_node(&run) != TARE_OK) {
        /* the definition rejects the attributes */
        good = test->error && strstr(tare_error_text(), test->error);
        if (!good) complain(&run, "node", tare_error_text());
    } else if (!run.row->run) {
        good = complain(&run, "node", "the row has no kernel");
    } else {
        good = test->error ? check_failure(&run) : check_success(&run);
    }
    if (run.state && run.row->release) run.row->release(run.state);
    tare_model_free(run.model);
    tare_opspec_memory_free(&run.memory);
    return good;
}

/* Runs inference with every kind of knowledge and discards the results. */
static bool survive_inference(struct run *run) {
    const struct op_case *test = run->test;
    struct tare_shape inputs[OP_CASE_MAX_TENSORS], outputs[OP_CASE_MAX_TENSORS];
    const struct tare_tensor *values[OP_CASE_MAX_TENSORS];
    for (int knowledge = 0; knowledge < KNOWLEDGE_COUNT; knowledge++) {
        for (size_t i = 0; i < test->n_inputs; i++) {
            inputs[i] = knowledge == KNOWS_NOTHING ? tare_shape_unknown() : test->inputs[i].shape;
            values[i] = knowledge == KNOWS_VALUES ? &test->inputs[i] : NULL;
            for (int d = 0; knowledge == KNOWS_RANKS && d < inputs[i].rank; d++)
                inputs[i].dims[d] = TARE_UNKNOWN_DIM;
        }
        tare_error_clear();
        if (infer(run, outputs, inputs, values) != TARE_OK && !tare_error_text()[0])
            return complain(run, knowledge_names[knowledge], "fails without a text");
    }
    return true;
}

static bool survive_run(bool *ran, struct run *run) {
    struct tare_buffer_pool *pool = tare_buffer_pool_new();
    struct execution execution;
    bool good = pool;
    if (!pool) return false;
    tare_buffer_pool_limit(pool, (size_t)1 << 28);
    const tare_status status = execute(run, &execution, run->row->run, pool, false, 0);
    if (status != TARE_OK && !tare_error_text()[0]) good = complain(run, "run", "fails without a text");
    for (size_t i = 0; status == TARE_OK && good && i < run->node->n_outputs; i++)
        if (execution.outputs[i].dtype != tare_dtype_base(run->node->output_dtypes[i]))
            good = complain(run, "run", "an output is missing or has another dtype");
    *ran = status == TARE_OK;
    end_execution(run, &execution);
    tare_buffer_pool_free(pool);
    return good;
}

bool op_case_survive(bool *ran, const struct op_case *test) {
    struct run run = { .test = test };
    bool good = true;
    *ran = false;
    tare_error_clear();
    if (open_node(&run) != TARE_OK || !run.row->run || run.node->n_outputs > OP_CASE_MAX_TENSORS) {
        if (!tare_error_text()[0] && !run.row) good = complain(&run, "node", "fails without a text");
    } else {
        good = survive_inference(&run);
        const bool accepted = !run.row->accepts || run.row->accepts(run.node) == TARE_OK;
        if (good && accepted && prepare(&run) == TARE_OK) good = survive_run(ran, &run);
    }
    if (run.state && run.row->release) run.row->release(run.state);
    tare_model_free(run.model);
    tare_opspec_memory_free(&run.memory);
    return good;
}

void op_case_reset(struct op_case *test) {
    for (size_t i = 0; i < OP_CASE_MAX_TENSORS; i++) {
        tare_tensor_reset(&test->inputs[i]);
        tare_tensor_reset(&test->outputs[i]);
    }
    test->n_inputs = test->n_outputs = 0;
}

bool op_case_check(const char *op, const char *attrs, const char *const *inputs, const char *const *outputs,
                   struct tolerance tolerance) {
    struct op_case *test = tare_calloc(1, sizeof *test);
    tare_status status = test ? TARE_OK : TARE_NO_MEMORY;
    if (!test) return false;
    *test = (struct op_case){ .op = op, .attrs = attrs, .where = "literal", .tolerance = tolerance };
    for (; inputs && inputs[test->n_inputs] && status == TARE_OK && test->n_inputs < OP_CASE_MAX_TENSORS;
         test->n_inputs++)
        status = tensor_from_text(&test->inputs[test->n_inputs], inputs[test->n_inputs]);
    for (; outputs && outputs[test->n_outputs] && status == TARE_OK && test->n_outputs < OP_CASE_MAX_TENSORS;
         test->n_outputs++)
        status = tensor_from_text(&test->outputs[test->n_outputs], outputs[test->n_outputs]);
    if (status != TARE_OK) fprintf(stderr, "%s: %s\n", op, tare_error_text());
    const bool good = status == TARE_OK && op_case_run(test);
    op_case_reset(test);
    tare_free(test);
    return good;
}
