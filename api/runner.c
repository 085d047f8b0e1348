/* Runners: an interpreter session with named inputs and the outputs of its last run. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "convert/saved_model.h"
#include "eval/function_signature.h"
#include "eval/model_inputs.h"
#include "interpreter/session.h"
#include "api/handles.h"

struct tare_runner_handle {
    struct tare_context_handle *context;
    uint64_t family;                 /* of the model */
    struct tare_graph_model *called; /* copy of the model, as it is run; NULL: the caller's model is run */
    const struct tare_signature *signature;
    struct tare_session *session;
    struct tare_arena arena;
    struct tare_tensor *inputs, *outputs; /* in the signature's order */
    size_t n_inputs, n_outputs;
    const tare_array *described; /* of the outputs */
    tare_array *arrays;
    bool borrows; /* inputs are not copied: no op keeps them after a run */
    bool has_outputs;
};

struct tare_outputs_handle {
    struct tare_arena arena;
    struct tare_tensor *tensors;
    tare_array *arrays;
    size_t count;
};

static void reset(struct tare_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; i++)
        tare_tensor_reset(&tensors[i]);
}

/* With signature, and numbers of inputs and outputs. */
static tare_status start(tare_runner *runner, const struct tare_graph_model *model) {
    bool stateful;
    runner->inputs = TARE_NEW_ARRAY(&runner->arena, struct tare_tensor, runner->n_inputs + 1);
    runner->outputs = TARE_NEW_ARRAY(&runner->arena, struct tare_tensor, runner->n_outputs + 1);
    runner->arrays = TARE_NEW_ARRAY(&runner->arena, tare_array, runner->n_outputs + 1);
    if (!runner->inputs || !runner->outputs || !runner->arrays) return TARE_NO_MEMORY;
    TARE_TRY(tare_session_check_ops(model, runner->signature));
    TARE_TRY(tare_session_state_ops(&stateful, model, runner->signature, NULL));
    runner->borrows = !stateful;
    return tare_session_new(&runner->session, model, NULL);
}

/* As the model runs on a CPU. */
static tare_status load_copy(tare_runner *runner, const tare_model *model) {
    const struct tare_saved_model_options options = { .ops = tare_public_ops(model->context),
                                                      .platform = TARE_MODULES_FOR_CPU };
    const char *path;
    TARE_TRY(tare_public_path(&path, model));
    return tare_saved_model_load(&runner->called, path, &options);
}

static tare_status open_runner(tare_runner *runner, const tare_model *model, const char *signature) {
    const struct tare_graph_model *run = model->model;
    size_t at;
    if (run->has_other_platforms) {
        TARE_TRY(load_copy(runner, model));
        run = runner->called;
    }
    TARE_TRY(tare_pick_signature(&runner->signature, run, signature));
    at = (size_t)(runner->signature - run->signatures);
    runner->n_inputs = model->inputs[at].count;
    runner->n_outputs = model->outputs[at].count;
    runner->described = model->outputs[at].items;
    return start(runner, run);
}

/* A call of the function is added to the model, so it is a copy. */
static tare_status open_function(tare_runner *runner, const tare_model *model, const char *name,
                                 const struct tare_sample *arguments) {
    const struct tare_call_arguments given = { .keys = arguments->keys,
                                               .values = arguments->values,
                                               .count = arguments->count };
    struct tare_public_side inputs = { 0 }, outputs = { 0 };
    struct tare_graph *function;
    TARE_TRY(load_copy(runner, model));
    TARE_TRY(tare_function_pick(&function, runner->called, name, &given));
    TARE_TRY(tare_function_signature(&runner->signature, runner->called, function));
    TARE_TRY(tare_public_describe(&inputs, &runner->arena, runner->signature->inputs, runner->signature->n_inputs));
    TARE_TRY(tare_public_describe(&outputs, &runner->arena, runner->signature->outputs, runner->signature->n_outputs));
    runner->n_inputs = inputs.count;
    runner->n_outputs = outputs.count;
    runner->described = outputs.items;
    return start(runner, runner->called);
}

int32_t tare_model_function_argument(const tare_model *model, const char *name, const char *argument) {
    int dtype = 0;
    tare_public_begin(model->context, model->family);
    return tare_public_end(tare_function_argument_dtype(&dtype, model->model, name, argument)) == TARE_OK ? dtype : 0;
}

static tare_status hand_out(tare_runner **out, tare_runner *runner, tare_status status) {
    *out = status == TARE_OK ? runner : NULL;
    if (status != TARE_OK) tare_runner_close(runner);
    return tare_public_end(status);
}

tare_status tare_runner_open(tare_runner **out, const tare_model *model, const char *signature) {
    tare_runner *runner = tare_calloc(1, sizeof *runner);
    tare_public_begin(model->context, model->family);
    *out = NULL;
    if (!runner) return tare_public_end(TARE_NO_MEMORY);
    runner->context = model->context;
    runner->family = model->family;
    return hand_out(out, runner, open_runner(runner, model, signature));
}

tare_status tare_runner_open_function(tare_runner **out, const tare_model *model, const char *name,
                                      const tare_array *arguments, size_t n_arguments) {
    tare_runner *runner = tare_calloc(1, sizeof *runner);
    struct tare_sample given;
    tare_status status;
    tare_public_begin(model->context, model->family);
    *out = NULL;
    if (!runner) return tare_public_end(TARE_NO_MEMORY);
    runner->context = model->context;
    runner->family = model->family;
    status = tare_public_borrow(&given, arguments, n_arguments);
    if (status == TARE_OK) status = open_function(runner, model, name, &given);
    tare_sample_reset(&given);
    return hand_out(out, runner, status);
}

void tare_runner_close(tare_runner *runner) {
    if (!runner) return;
    if (runner->outputs) reset(runner->outputs, runner->n_outputs);
    tare_session_free(runner->session);
    tare_model_free(runner->called);
    tare_arena_free(&runner->arena);
    tare_free(runner);
}

static tare_status copy(struct tare_tensor *tensor) {
    struct tare_tensor whole;
    TARE_TRY(tare_tensor_copy(&whole, tensor));
    tare_tensor_reset(tensor);
    *tensor = whole;
    return TARE_OK;
}

/* Callers see all elements of a splat (a constant stored as one element), and outputs outlive the caller's inputs. */
static tare_status detach(struct tare_tensor *output) {
    return output->splat || tare_public_is_borrowed(output) ? copy(output) : TARE_OK;
}

static tare_status run(tare_runner *runner, const tare_array *inputs, size_t n_inputs) {
    struct tare_sample sample;
    tare_status status = (runner->borrows ? tare_public_borrow : tare_public_sample)(&sample, inputs, n_inputs);
    if (status == TARE_OK) status = tare_bind_inputs(runner->inputs, runner->signature, &sample, NULL);
    tare_sample_reset(&sample); /* the inputs share its tensors */
    if (status != TARE_OK) return status;
    status = tare_session_run_signature(runner->session, runner->signature, runner->inputs, runner->outputs);
    reset(runner->inputs, runner->n_inputs);
    for (size_t i = 0; i < runner->n_outputs && status == TARE_OK; i++)
        status = detach(&runner->outputs[i]);
    return status;
}

tare_status tare_runner_run(tare_runner *runner, const tare_array *inputs, size_t n_inputs, const tare_array **outputs,
                            size_t *n_outputs) {
    tare_status status;
    tare_public_begin(runner->context, runner->family);
    reset(runner->outputs, runner->n_outputs);
    *outputs = NULL;
    *n_outputs = 0;
    status = run(runner, inputs, n_inputs);
    if (status == TARE_OK) status = tare_control_verify();
    runner->has_outputs = status == TARE_OK;
    if (status != TARE_OK) return tare_public_end(status);
    for (size_t i = 0; i < runner->n_outputs; i++)
        tare_public_array(&runner->arrays[i], runner->described[i].name, &runner->outputs[i]);
    *outputs = runner->arrays;
    *n_outputs = runner->n_outputs;
    return tare_public_end(TARE_OK);
}

/* ---- outputs that outlive the runner ---- */

static tare_status take(tare_outputs *outputs, tare_runner *runner) {
    outputs->count = runner->n_outputs;
    outputs->tensors = TARE_NEW_ARRAY(&outputs->arena, struct tare_tensor, runner->n_outputs + 1);
    outputs->arrays = TARE_NEW_ARRAY(&outputs->arena, tare_array, runner->n_outputs + 1);
    if (!outputs->tensors || !outputs->arrays) return TARE_NO_MEMORY;
    for (size_t i = 0; i < runner->n_outputs; i++) {
        const char *name = tare_arena_strdup(&outputs->arena, runner->described[i].name);
        if (!name) return TARE_NO_MEMORY;
        outputs->tensors[i] = runner->outputs[i];
        runner->outputs[i] = (struct tare_tensor){ 0 };
        if (!tare_tensor_is_exclusive(&outputs->tensors[i])) TARE_TRY(copy(&outputs->tensors[i]));
        tare_public_array(&outputs->arrays[i], name, &outputs->tensors[i]);
    }
    return TARE_OK;
}

tare_status tare_runner_take(tare_outputs **out, tare_runner *runner, const tare_array **arrays, size_t *count) {
    tare_outputs *outputs = tare_calloc(1, sizeof *outputs);
    tare_status status = TARE_NO_MEMORY;
    tare_public_begin(runner->context, runner->family);
    *out = NULL;
    *arrays = NULL;
    *count = 0;
    if (outputs)
        status = runner->has_outputs ? take(outputs, runner)
                                     : TARE_FAIL(TARE_INVALID_ARGUMENT, "the runner has no outputs to take");
    runner->has_outputs = false;
    if (status != TARE_OK) {
        tare_outputs_close(outputs);
        return tare_public_end(status);
    }
    *out = outputs;
    *arrays = outputs->arrays;
    *count = outputs->count;
    return tare_public_end(TARE_OK);
}

void tare_outputs_close(tare_outputs *outputs) {
    if (!outputs) return;
    if (outputs->tensors) reset(outputs->tensors, outputs->count);
    tare_arena_free(&outputs->arena);
    tare_free(outputs);
}
