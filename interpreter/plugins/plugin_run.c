/* Running a library's kernels: choosing one by dtype, its state, inputs and outputs, ranges on threads. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/thread.h"
#include "interpreter/execution/variable.h"
#include "interpreter/plugins/host.h"
#include "interpreter/session.h"

#include <pthread.h>
#include <string.h>

/* ---- choosing a kernel ---- */

static bool has_type(const struct tare_node *node, const struct tare_plugin_type *type) {
    const struct tare_attr *list = tare_node_list(node, type->attr);
    if (!list) return tare_dtype_base(tare_node_type(node, type->attr, TARE_DT_INVALID)) == type->dtype;
    for (size_t i = 0; i < list->count; i++)
        if (tare_dtype_base(list->items[i].type) != type->dtype) return false;
    return true;
}

static const struct tare_plugin_kernel *choose(const struct tare_op_entry *op, const struct tare_node *node) {
    for (size_t k = 0; k < op->n_kernels; k++) {
        const struct tare_plugin_kernel *kernel = &op->kernels[k];
        bool fits = true;
        for (size_t i = 0; i < kernel->n_types && fits; i++)
            fits = has_type(node, &kernel->types[i]);
        if (fits) return kernel;
    }
    return NULL;
}

static bool asks_about(const struct tare_op_entry *op, const char *attr) {
    for (size_t k = 0; k < op->n_kernels; k++)
        for (size_t i = 0; i < op->kernels[k].n_types; i++)
            if (strcmp(op->kernels[k].types[i].attr, attr) == 0) return true;
    return false;
}

/* "T: float64, Tidx: int32": the node's values of the attributes that select a kernel. */
static void print_types(struct tare_strbuf *text, const struct tare_op_entry *op, const struct tare_node *node) {
    for (size_t a = 0; a < node->def->n_attrs; a++) {
        const char *attr = node->def->attrs[a].name;
        const struct tare_attr *list = tare_node_list(node, attr);
        if (!asks_about(op, attr)) continue;
        tare_strbuf_printf(text, "%s%s:", text->size ? ", " : "", attr);
        if (!list) tare_strbuf_printf(text, " %s", tare_dtype_name(tare_node_type(node, attr, TARE_DT_INVALID)));
        for (size_t i = 0; list && i < list->count; i++)
            tare_strbuf_printf(text, " %s", tare_dtype_name(list->items[i].type));
    }
}

tare_status tare_plugin_accepts(const struct tare_node *node) {
    const struct tare_op_entry *op = node->def->row->aux;
    struct tare_strbuf types = { 0 };
    tare_status status;
    if (choose(op, node)) return TARE_OK;
    print_types(&types, op, node);
    status = TARE_FAIL(TARE_UNSUPPORTED, "no kernel for %s (%s has: %s)", tare_strbuf_text(&types), op->library->path,
                       op->kernels_text);
    tare_strbuf_free(&types);
    return status;
}

/* ---- the row's functions ---- */

struct kernel_state {
    const struct tare_plugin_kernel *kernel;
    void *state; /* the library's */
};

tare_status tare_plugin_status(int code, const char *what) {
    if (code == 0) return TARE_OK;
    if (!*tare_error_text()) return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s failed with code %d and no text", what, code);
    return code > 0 && code <= TARE_INTERNAL ? (tare_status)code : TARE_INVALID_ARGUMENT;
}

static void end_context(struct tare_op_context *context) {
    for (struct tare_plugin_read *read = context->reads; read; read = read->next)
        tare_tensor_reset(&read->value);
    for (struct tare_plugin_assignment *next = context->assignments; next; next = next->next)
        tare_tensor_reset(&next->value);
}

tare_status tare_plugin_prepare(struct tare_kernel *kernel) {
    const struct tare_op_entry *op = kernel->op->aux;
    struct tare_op_context context = { .op = op, .node = kernel->node, .kernel = kernel };
    struct kernel_state *state;
    tare_status status = TARE_OK;
    TARE_TRY(tare_plugin_accepts(kernel->node));
    state = tare_calloc(1, sizeof *state);
    if (!state) return TARE_NO_MEMORY;
    state->kernel = choose(op, kernel->node);
    if (state->kernel->create) {
        tare_error_clear();
        status = tare_plugin_status(state->kernel->create(&context, &state->state), "the making of the kernel");
        end_context(&context);
    }
    if (status == TARE_OK)
        kernel->state = state;
    else
        tare_free(state);
    return status;
}

void tare_plugin_release(void *arg) {
    struct kernel_state *state = arg;
    if (state->kernel->destroy) state->kernel->destroy(state->state);
    tare_free(state);
}

static tare_status assign_all(struct tare_op_context *context) {
    for (struct tare_plugin_assignment *next = context->assignments; next; next = next->next) {
        struct tare_variable_object *variable;
        TARE_TRY(tare_variable_from_handle(&variable, &context->kernel->inputs[next->input]));
        tare_variable_assign(variable, &next->value);
    }
    return TARE_OK;
}

tare_status tare_plugin_run(struct tare_kernel *kernel) {
    const struct kernel_state *state = kernel->state;
    struct tare_op_context context = {
        .op = kernel->op->aux, .node = kernel->node, .kernel = kernel, .running = true, .state = state->state
    };
    tare_status status;
    tare_error_clear();
    status = tare_plugin_status(state->kernel->run(&context), "the kernel");
    for (size_t i = 0; i < kernel->n_outputs && status == TARE_OK; i++)
        if (!kernel->outputs[i].dtype)
            status = TARE_FAIL(TARE_INVALID_ARGUMENT, "the kernel of %s did not make output %zu",
                               context.op->library->path, i);
    if (status == TARE_OK) status = assign_all(&context);
    end_context(&context);
    return status;
}

/* ---- what a kernel calls ---- */

static tare_status check_running(const struct tare_op_context *c) {
    if (c->running) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "inputs and outputs belong to the run of a kernel");
}

/* The tensor to read: for a reference, the variable's value. */
static const struct tare_tensor *value_of_input(tare_op_context *c, size_t i) {
    struct tare_variable_object *variable;
    struct tare_plugin_read *read;
    if (!c->op->has_refs || c->kernel->inputs[i].dtype != TARE_DT_RESOURCE) return &c->kernel->inputs[i];
    for (read = c->reads; read; read = read->next)
        if (read->input == i) return &read->value;
    if (tare_variable_from_handle(&variable, &c->kernel->inputs[i]) != TARE_OK) return NULL;
    read = TARE_NEW(c->kernel->scratch, struct tare_plugin_read);
    if (!read || tare_variable_read(&read->value, variable) != TARE_OK) return NULL;
    read->input = i;
    read->next = c->reads;
    c->reads = read;
    return &read->value;
}

static const tare_op_tensor *input(tare_op_context *c, size_t i) {
    if (check_running(c) != TARE_OK) return NULL;
    if (i < c->kernel->n_inputs) return tare_plugin_tensor(value_of_input(c, i));
    TARE_FAIL(TARE_INVALID_ARGUMENT, "the node has no input %zu (it has %zu)", i, c->kernel->n_inputs);
    return NULL;
}

static int output(tare_op_context *c, size_t i, int rank, const int64_t *dims, tare_op_tensor **out) {
    struct tare_shape shape;
    TARE_TRY(check_running(c));
    *out = NULL;
    if (i >= c->kernel->n_outputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the node has no output %zu (it has %zu)", i, c->kernel->n_outputs);
    if (c->kernel->outputs[i].dtype) return TARE_FAIL(TARE_INVALID_ARGUMENT, "output %zu is made twice", i);
    TARE_TRY(tare_shape_from_dims(&shape, rank, dims));
    TARE_TRY(tare_kernel_output(c->kernel, i, tare_dtype_base(c->node->output_dtypes[i]), &shape));
    *out = (tare_op_tensor *)&c->kernel->outputs[i];
    return TARE_OK;
}

static int forward(tare_op_context *c, size_t i, size_t j, int rank, const int64_t *dims) {
    struct tare_shape shape;
    const struct tare_tensor *value;
    int expected;
    TARE_TRY(check_running(c));
    if (i >= c->kernel->n_outputs || j >= c->kernel->n_inputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "output %zu from input %zu (the node has %zu inputs, %zu outputs)", i,
                         j, c->kernel->n_inputs, c->kernel->n_outputs);
    if (c->kernel->outputs[i].dtype) return TARE_FAIL(TARE_INVALID_ARGUMENT, "output %zu is made twice", i);
    expected = c->node->output_dtypes[i];
    if (rank < 0 && tare_dtype_is_ref(expected)) return tare_kernel_forward(c->kernel, i, j);
    value = value_of_input(c, j);
    if (!value) return TARE_INVALID_ARGUMENT;
    if (value->dtype != tare_dtype_base(expected))
        return TARE_FAIL(TARE_TYPE, "output %zu is %s (input %zu is %s)", i, tare_dtype_name(expected), j,
                         tare_dtype_name(value->dtype));
    if (rank < 0) return tare_tensor_share(&c->kernel->outputs[i], value), TARE_OK;
    TARE_TRY(tare_shape_from_dims(&shape, rank, dims));
    return tare_tensor_share_as(&c->kernel->outputs[i], value, &shape);
}

static int share(tare_op_context *c, size_t i, const tare_op_tensor *tensor) {
    const struct tare_tensor *value = tare_tensor_of(tensor);
    TARE_TRY(check_running(c));
    if (i >= c->kernel->n_outputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the node has no output %zu (it has %zu)", i, c->kernel->n_outputs);
    if (c->kernel->outputs[i].dtype) return TARE_FAIL(TARE_INVALID_ARGUMENT, "output %zu is made twice", i);
    if (!value || value->dtype != tare_dtype_base(c->node->output_dtypes[i]))
        return TARE_FAIL(TARE_TYPE, "output %zu is %s (the tensor is %s)", i,
                         tare_dtype_name(c->node->output_dtypes[i]), value ? tare_dtype_name(value->dtype) : "none");
    return tare_tensor_share(&c->kernel->outputs[i], value), TARE_OK;
}

/* ---- calling functions ---- */

static tare_status check_call(const struct tare_graph *function, const char *name, const char *attr, size_t n_args,
                              size_t n_results) {
    if (!function) return TARE_FAIL(TARE_NOT_FOUND, "attr '%s' names the function %s, which is not there", attr, name);
    if (function->n_args == n_args && function->n_returns == n_results) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "a call of %s with %zu arguments and %zu results (expected %zu and %zu)",
                     name, n_args, n_results, function->n_args, function->n_returns);
}

/* The results are owned by the context, which frees them at the end of the run. */
static tare_status keep_results(tare_op_context *c, struct tare_tensor *values, const tare_op_tensor **results,
                                size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct tare_plugin_read *kept = TARE_NEW(c->kernel->scratch, struct tare_plugin_read);
        if (!kept) {
            for (; i < count; i++)
                tare_tensor_reset(&values[i]);
            return TARE_NO_MEMORY;
        }
        *kept = (struct tare_plugin_read){ .input = SIZE_MAX, .value = values[i], .next = c->reads };
        c->reads = kept;
        results[i] = tare_plugin_tensor(&kept->value);
    }
    return TARE_OK;
}

static int call(tare_op_context *c, const char *attr, int64_t index, const tare_op_tensor *const *args, size_t n_args,
                const tare_op_tensor **results, size_t n_results) {
    const char *name;
    const struct tare_graph *function;
    struct tare_tensor *passed, *values;
    TARE_TRY(check_running(c));
    TARE_TRY(tare_plugin_attr_func(c, attr, index, &name));
    function = tare_model_find_function(c->node->graph->model, name);
    TARE_TRY(check_call(function, name, attr, n_args, n_results));
    passed = TARE_NEW_ARRAY(c->kernel->scratch, struct tare_tensor, n_args + 1);
    values = TARE_NEW_ARRAY(c->kernel->scratch, struct tare_tensor, n_results + 1);
    if (!passed || !values) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_args; i++) {
        if (!args[i]) return TARE_FAIL(TARE_INVALID_ARGUMENT, "argument %zu of a call of %s is not a tensor", i, name);
        passed[i] = *tare_tensor_of(args[i]); /* borrowed: the call takes shares */
    }
    TARE_TRY(tare_kernel_call(c->kernel, function, passed, n_args, values, n_results));
    return keep_results(c, values, results, n_results);
}

static int assign(tare_op_context *c, size_t i, int rank, const int64_t *dims, tare_op_tensor **out) {
    struct tare_variable_object *variable;
    struct tare_plugin_assignment *made, **last = &c->assignments;
    struct tare_shape shape;
    TARE_TRY(check_running(c));
    *out = NULL;
    if (i >= c->kernel->n_inputs || !c->op->has_refs || c->kernel->inputs[i].dtype != TARE_DT_RESOURCE)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "input %zu is not a reference that can be assigned", i);
    TARE_TRY(tare_variable_from_handle(&variable, &c->kernel->inputs[i]));
    TARE_TRY(tare_shape_from_dims(&shape, rank, dims));
    made = TARE_NEW(c->kernel->scratch, struct tare_plugin_assignment);
    if (!made) return TARE_NO_MEMORY;
    TARE_TRY(tare_tensor_new(&made->value, variable->dtype, &shape));
    made->input = i;
    while (*last)
        last = &(*last)->next;
    *last = made;
    *out = (tare_op_tensor *)&made->value;
    return TARE_OK;
}

static void *state(const tare_op_context *c) {
    return c->state;
}

static void *scratch(tare_op_context *c, size_t size) {
    return tare_arena_alloc(c->kernel ? c->kernel->scratch : c->infer->arena, size);
}

/* ---- ranges on threads ---- */

struct ranges {
    tare_op_range_function fn;
    void *arg;
    int64_t count, chunk, n_chunks;
    _Atomic int64_t next, failed; /* the first range that failed; n_chunks: none */
    pthread_mutex_t lock;         /* of what follows */
    int code;
    char *text;
};

static void note_failure(struct ranges *ranges, int64_t chunk, int code) {
    pthread_mutex_lock(&ranges->lock);
    if (chunk < ranges->failed) {
        ranges->failed = chunk;
        ranges->code = code;
        tare_free(ranges->text);
        ranges->text = tare_strdup(tare_error_text());
    }
    pthread_mutex_unlock(&ranges->lock);
}

/* Ranges after a failed one are skipped; those before it run, so that the reported error is always the same. */
static tare_status run_ranges(void *arg, int worker) {
    struct ranges *ranges = arg;
    (void)worker;
    for (;;) {
        int64_t chunk = ranges->next++, first = chunk * ranges->chunk, last;
        int code;
        if (chunk >= ranges->failed) return TARE_OK;
        last = ranges->count - first > ranges->chunk ? first + ranges->chunk : ranges->count;
        tare_error_clear();
        code = ranges->fn(ranges->arg, first, last);
        if (code != 0) note_failure(ranges, chunk, code);
    }
}

static int parallel_for(tare_op_context *c, int64_t count, int64_t chunk, tare_op_range_function fn, void *arg) {
    struct ranges ranges = { .fn = fn, .arg = arg, .count = count, .chunk = chunk, .lock = PTHREAD_MUTEX_INITIALIZER };
    tare_status status;
    TARE_TRY(check_running(c));
    if (count < 0 || chunk < 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%lld items in ranges of %lld", (long long)count, (long long)chunk);
    ranges.n_chunks = count / chunk + (count % chunk != 0);
    ranges.failed = ranges.n_chunks;
    if (ranges.n_chunks > 1)
        status = tare_pool_run(tare_session_op_pool(c->kernel->session), run_ranges, &ranges);
    else
        status = run_ranges(&ranges, 0);
    tare_error_clear();
    if (status == TARE_OK && ranges.failed < ranges.n_chunks) {
        if (ranges.text && *ranges.text) tare_error_set(ranges.text);
        status = tare_plugin_status(ranges.code, "a range of the kernel");
    }
    tare_free(ranges.text);
    return status;
}

void tare_plugin_host_run(struct tare_op_host *host) {
    host->input = input;
    host->output = output;
    host->forward = forward;
    host->share = share;
    host->call = call;
    host->assign = assign;
    host->state = state;
    host->scratch = scratch;
    host->parallel_for = parallel_for;
}
