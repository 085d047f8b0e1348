/* Calls of functions by nodes. The plan of a function is built when it is first called; running it is left to
 * session->run_plan, because the executor is a layer above the steps that call functions. */
#include "interpreter/execution/plan.h"
#include "base/alloc.h"
#include "base/stack.h"

#include <stdio.h>

static tare_status observe_arguments(struct tare_session *session, struct tare_plan *plan,
                                     const struct tare_graph *function, const struct tare_tensor *args) {
    struct tare_arena scratch = { 0 };
    struct tare_edge *edges;
    tare_status status;
    if (!session->observe) return TARE_OK;
    edges = TARE_NEW_ARRAY(&scratch, struct tare_edge, function->n_args + 1);
    for (size_t i = 0; edges && i < function->n_args; i++)
        edges[i] = (struct tare_edge){ function->args[i], 0 };
    status = edges ? tare_plan_observe_fed(session, plan, edges, args, function->n_args) : TARE_NO_MEMORY;
    tare_arena_free(&scratch);
    return status;
}

static tare_status report_depth(const struct tare_session *session, const struct tare_graph *function) {
    char text[512];
    size_t used = 0;
    const struct tare_exec_call *first = session->call;
    while (first && first->function != function)
        first = first->caller;
    if (!first)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "functions nest deeper than %d calls", session->options.max_call_depth);
    /* calls are linked from the innermost to the outermost: walk from the innermost to each depth */
    size_t length = 0;
    for (const struct tare_exec_call *call = session->call; call != first; call = call->caller)
        length++;
    text[0] = '\0';
    for (size_t k = length; k-- > 0 && used < sizeof text - 1;) {
        const struct tare_exec_call *call = session->call;
        for (size_t i = 0; i < k; i++)
            call = call->caller;
        int n = snprintf(text + used, sizeof text - used, " calls %s", call->function->name);
        used += n > 0 ? (size_t)n : 0;
    }
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "recursive function %s (%s%s calls %s)", function->name, function->name,
                     text, function->name);
}

static tare_status check_args(const struct tare_graph *function, const struct tare_tensor *args, size_t n_args,
                              size_t n_results) {
    if (n_args != function->n_args)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "cannot compute %s as it was called with %zu arguments (expected %zu)",
                         function->name, n_args, function->n_args);
    if (n_results != function->n_returns)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s was asked for %zu results (it returns %zu)", function->name,
                         n_results, function->n_returns);
    for (size_t i = 0; i < n_args; i++) {
        int expected = tare_dtype_base(function->args[i]->output_dtypes[0]);
        if (args[i].dtype == expected) continue;
        return TARE_FAIL(
            TARE_TYPE, "cannot compute %s as input #%zu(zero-based) was expected to be a %s tensor but is a %s tensor",
            function->name, i, tare_dtype_get(expected) ? tare_dtype_get(expected)->spec_name : "?",
            tare_dtype_get(args[i].dtype) ? tare_dtype_get(args[i].dtype)->spec_name : "missing");
    }
    return TARE_OK;
}

static tare_status run_function(struct tare_session *session, const struct tare_graph *function,
                                struct tare_tensor *args, struct tare_tensor *results) {
    struct tare_exec_graph *record = tare_exec_graph_of(session, function);
    struct tare_exec_call call = { function, session->call };
    struct tare_plan_request request = { .graph = function };
    tare_status status = TARE_OK;
    if (!record) return TARE_NO_MEMORY;
    if (!record->plan) status = tare_plan_new(&record->plan, session, &request);
    if (status == TARE_OK) status = observe_arguments(session, record->plan, function, args);
    if (status != TARE_OK) return status;
    record->runs++;
    session->call = &call;
    session->depth++;
    status = session->run_plan(session, record->plan, args, results);
    session->depth--;
    session->call = call.caller;
    return status;
}

tare_status tare_exec_call(struct tare_session *session, const struct tare_graph *function, struct tare_tensor *args,
                           size_t n_args, struct tare_tensor *results, size_t n_results) {
    tare_status status;
    for (size_t i = 0; i < n_results; i++)
        results[i] = (struct tare_tensor){ 0 };
    status = session->depth >= session->options.max_call_depth ? report_depth(session, function)
                                                               : check_args(function, args, n_args, n_results);
    if (status == TARE_OK) status = tare_stack_check();
    if (status == TARE_OK) status = run_function(session, function, args, results);
    for (size_t i = 0; i < n_args; i++)
        if (args[i].dtype) tare_tensor_reset(&args[i]);
    return status;
}
