/* Running one node: calls the kernel, checks its outputs, and traces, checks and observes them as the session requests.
 */
#include "interpreter/execution/step.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "interpreter/execution/variable.h"

#include <math.h>
#include <string.h>

static void reset_all(struct tare_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (tensors[i].dtype) tare_tensor_reset(&tensors[i]);
}

/* ---- what a kernel must have made ---- */

static tare_status check_outputs(const struct tare_step *step, const struct tare_tensor *outputs) {
    for (size_t k = 0; k < step->n_outputs; k++) {
        int expected = step->node->output_dtypes[k];
        int got = outputs[k].dtype;
        if (got == expected) continue;
        if (got == TARE_DT_INVALID && step->kind == TARE_STEP_SWITCH) continue;
        if (tare_dtype_is_ref(expected) && (got == TARE_DT_RESOURCE || got == tare_dtype_base(expected))) continue;
        if (got == TARE_DT_INVALID) return TARE_FAIL(TARE_INTERNAL, "output %zu was not made", k);
        return TARE_FAIL(TARE_TYPE, "output %zu is %s (expected %s)", k, tare_dtype_name(got),
                         tare_dtype_name(expected));
    }
    return TARE_OK;
}

static tare_status check_numerics(const struct tare_step *step, const struct tare_tensor *outputs) {
    for (size_t k = 0; k < step->n_outputs; k++) {
        if (!tare_dtype_is_floating(outputs[k].dtype) || tare_dtype_size(outputs[k].dtype) < 2) continue;
        for (int64_t i = 0; i < outputs[k].elements; i++) {
            double x = tare_tensor_get_f64(&outputs[k], i);
            if (!isfinite(x))
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "output %zu has %s at element %lld", k,
                                 isnan(x) ? "NaN" : "an infinity", (long long)i);
        }
    }
    return TARE_OK;
}

static void put_tensors(struct tare_strbuf *line, const struct tare_tensor *tensors, size_t count) {
    char text[TARE_SHAPE_TEXT_SIZE];
    for (size_t i = 0; i < count; i++)
        tare_strbuf_printf(line, " %s%s", tensors[i].dtype ? tare_dtype_name(tensors[i].dtype) : "dead",
                           tensors[i].dtype ? tare_shape_text(text, &tensors[i].shape) : "");
}

static tare_status trace(const struct tare_kernel *kernel, void (*to)(const char *line)) {
    const struct tare_node *node = kernel->node;
    const char *function = node->graph->name;
    struct tare_strbuf line = { 0 };
    tare_strbuf_printf(&line, "%s%s%s (%s):", function, *function ? "/" : "", node->name, node->op);
    put_tensors(&line, kernel->inputs, kernel->n_inputs);
    tare_strbuf_puts(&line, " ->");
    put_tensors(&line, kernel->outputs, kernel->n_outputs);
    const tare_status status = line.failed ? TARE_NO_MEMORY : TARE_OK;
    if (status == TARE_OK) to(tare_strbuf_text(&line));
    tare_strbuf_free(&line);
    return status;
}

/* ---- inputs ---- */

static tare_status gather_kept(const struct tare_plan *plan, struct tare_exec_frame *frame,
                               const struct tare_step *step) {
    struct tare_tensor **kept = &frame->kept_inputs[step - plan->steps];
    const bool is_first = !*kept;
    if (is_first) *kept = tare_calloc(step->n_inputs, sizeof **kept);
    if (!*kept) return TARE_NO_MEMORY;
    frame->inputs = *kept;
    for (size_t i = 0; i < step->n_inputs; i++) {
        const int value = step->inputs[i];
        if (is_first || value >= 0) frame->inputs[i] = *tare_plan_value(plan, frame, value);
        frame->last_use[i] = step->last_use[i] ? &frame->slots[value] : NULL;
    }
    return TARE_OK;
}

tare_status tare_step_gather(const struct tare_plan *plan, struct tare_exec_frame *frame,
                             const struct tare_step *step) {
    if (step->keeps_inputs) return gather_kept(plan, frame, step);
    frame->inputs = frame->any_inputs;
    for (size_t i = 0; i < step->n_inputs; i++) {
        const struct tare_tensor *value = tare_plan_value(plan, frame, step->inputs[i]);
        frame->last_use[i] = step->last_use[i] ? &frame->slots[step->inputs[i]] : NULL;
        if (!step->reads || !step->reads[i] || !value->dtype) {
            frame->inputs[i] = *value;
            continue;
        }
        frame->last_use[i] = NULL;
        tare_status status = tare_reference_read(&frame->inputs[i], value, step->reads[i] == TARE_READ_WRITTEN);
        if (status == TARE_OK) continue;
        while (i-- > 0)
            if (step->reads[i] && frame->inputs[i].dtype) tare_tensor_reset(&frame->inputs[i]);
        return status;
    }
    return TARE_OK;
}

void tare_step_ungather(struct tare_exec_frame *frame, const struct tare_step *step) {
    for (size_t i = 0; i < step->n_inputs && step->reads; i++)
        if (step->reads[i] && frame->inputs[i].dtype) tare_tensor_reset(&frame->inputs[i]);
}

/* ---- running ---- */

static tare_status call_by_name(struct tare_kernel *kernel, const struct tare_graph *callee) {
    struct tare_tensor *args = TARE_NEW_ARRAY(kernel->scratch, struct tare_tensor, kernel->n_inputs + 1);
    if (!args) return TARE_NO_MEMORY;
    if (kernel->n_outputs != callee->n_returns)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%zu outputs (expected %zu)", kernel->n_outputs, callee->n_returns);
    for (size_t i = 0; i < kernel->n_inputs; i++)
        tare_exec_take_input(kernel, i, &args[i]);
    return tare_exec_call(kernel->session, callee, args, kernel->n_inputs, kernel->outputs, kernel->n_outputs);
}

tare_status tare_step_prepare(struct tare_kernel *kernel, struct tare_node_state *state) {
    if (!kernel->op->prepare || state->prepared) return TARE_OK;
    tare_status status = kernel->op->prepare(kernel);
    state->kernel = kernel->state; /* also on failure: the session releases it */
    state->prepared = status == TARE_OK;
    return status;
}

static tare_status run_row(struct tare_kernel *kernel, struct tare_node_state *state) {
    const struct tare_op *op = kernel->op;
    TARE_TRY(tare_step_prepare(kernel, state));
    if (kernel->session->options.use_reference_kernels && op->reference) return op->reference(kernel);
    return op->run(kernel);
}

static tare_status run_kernel(struct tare_kernel *kernel, const struct tare_step *step) {
    if (step->callee) return call_by_name(kernel, step->callee);
    if (!step->op || !step->op->run)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s",
                         step->node->def ? "this op has a definition, but no kernel" : "this op is not known");
    return run_row(kernel, step->state);
}

/* The time of nodes in called functions is attributed to those nodes. */
static tare_status run_timed(struct tare_kernel *kernel, const struct tare_step *step) {
    struct tare_session *session = kernel->session;
    int64_t outer = session->nested_ns, start = tare_clock_ns(), elapsed;
    tare_status status;
    session->nested_ns = 0;
    status = run_kernel(kernel, step);
    elapsed = tare_clock_ns() - start;
    step->state->calls++;
    step->state->nanoseconds += elapsed - session->nested_ns;
    session->nested_ns = outer + elapsed;
    return status;
}

static tare_status inspect(const struct tare_kernel *kernel, const struct tare_step *step) {
    struct tare_session *session = kernel->session;
    if (session->options.trace) TARE_TRY(trace(kernel, session->options.trace));
    if (session->options.check_numerics) TARE_TRY(check_numerics(step, kernel->outputs));
    return tare_step_show(session, step, kernel->outputs);
}

tare_status tare_step_run(struct tare_session *session, const struct tare_step *step, struct tare_exec_frame *frame,
                          struct tare_tensor *outputs, struct tare_epilogue *epilogue, struct tare_consumer *consumer) {
    const struct tare_op *op = step->op;
    struct tare_kernel kernel = { .node = step->node,
                                  .op = op,
                                  .n_inputs = step->n_inputs,
                                  .inputs = frame->inputs,
                                  .n_outputs = step->n_outputs,
                                  .outputs = outputs,
                                  .scratch = &frame->scratch,
                                  .pool = session->pool,
                                  .session = session,
                                  .state = step->state->kernel,
                                  .tilings = &step->state->tilings,
                                  .epilogue = epilogue,
                                  .consumer = consumer };
    tare_status status;
    if (op && (op->flags & TARE_OP_IN_PLACE) && step->n_inputs)
        kernel.may_reuse_input0 = frame->last_use[0] && tare_tensor_is_exclusive(&frame->inputs[0]);
    session->last_use = frame->last_use;
    status = session->options.profile ? run_timed(&kernel, step) : run_kernel(&kernel, step);
    if (status == TARE_OK && consumer && (consumer->accepted || consumer->paddings || consumer->joins_halves)) {
        tare_arena_reset(&frame->scratch);
        return TARE_OK;
    }
    if (status == TARE_OK) status = check_outputs(step, outputs);
    if (status == TARE_OK && (step->observed || session->options.trace || session->options.check_numerics))
        status = inspect(&kernel, step);
    tare_arena_reset(&frame->scratch);
    if (status == TARE_OK) return TARE_OK;
    reset_all(outputs, step->n_outputs);
    return tare_exec_locate(session, step->node, status);
}
