/* Runners: an interpreter session with named inputs and the outputs of its last run. */
#include "base/alloc.h"
#include "base/arena.h"
#include "eval/model_inputs.h"
#include "interpreter/session.h"
#include "api/handles.h"

struct tare_runner_handle {
    const struct tare_signature *signature;
    struct tare_session *session;
    struct tare_arena arena;
    struct tare_tensor *inputs, *outputs; /* in the signature's order */
    size_t n_inputs, n_outputs;
    const tare_array *described; /* of the outputs */
    tare_array *arrays;
};

static void reset(struct tare_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; i++)
        tare_tensor_reset(&tensors[i]);
}

static tare_status open_runner(tare_runner *runner, const tare_model *model, const char *signature) {
    size_t at;
    TARE_TRY(tare_pick_signature(&runner->signature, model->model, signature));
    at = (size_t)(runner->signature - model->model->signatures);
    runner->n_inputs = model->inputs[at].count;
    runner->n_outputs = model->outputs[at].count;
    runner->described = model->outputs[at].items;
    runner->inputs = TARE_NEW_ARRAY(&runner->arena, struct tare_tensor, runner->n_inputs + 1);
    runner->outputs = TARE_NEW_ARRAY(&runner->arena, struct tare_tensor, runner->n_outputs + 1);
    runner->arrays = TARE_NEW_ARRAY(&runner->arena, tare_array, runner->n_outputs + 1);
    if (!runner->inputs || !runner->outputs || !runner->arrays) return TARE_NO_MEMORY;
    TARE_TRY(tare_session_check_ops(model->model, runner->signature));
    return tare_session_new(&runner->session, model->model, NULL);
}

tare_status tare_runner_open(tare_runner **out, const tare_model *model, const char *signature) {
    tare_runner *runner = tare_calloc(1, sizeof *runner);
    tare_status status;
    tare_public_begin();
    *out = NULL;
    if (!runner) return tare_public_end(TARE_NO_MEMORY);
    status = open_runner(runner, model, signature);
    if (status == TARE_OK)
        *out = runner;
    else
        tare_runner_close(runner);
    return tare_public_end(status);
}

void tare_runner_close(tare_runner *runner) {
    if (!runner) return;
    if (runner->outputs) reset(runner->outputs, runner->n_outputs);
    tare_session_free(runner->session);
    tare_arena_free(&runner->arena);
    tare_free(runner);
}

/* An output may be a splat, a constant stored as one element; callers see all elements. */
static tare_status expand(struct tare_tensor *tensor) {
    struct tare_tensor whole;
    if (!tensor->splat) return TARE_OK;
    TARE_TRY(tare_tensor_copy(&whole, tensor));
    tare_tensor_reset(tensor);
    *tensor = whole;
    return TARE_OK;
}

static tare_status run(tare_runner *runner, const tare_array *inputs, size_t n_inputs) {
    struct tare_sample sample;
    tare_status status = tare_public_sample(&sample, inputs, n_inputs);
    if (status == TARE_OK) status = tare_bind_sample(runner->inputs, runner->signature, &sample, NULL);
    tare_sample_reset(&sample); /* the inputs share its tensors */
    if (status != TARE_OK) return status;
    status = tare_session_run_signature(runner->session, runner->signature, runner->inputs, runner->outputs);
    reset(runner->inputs, runner->n_inputs);
    for (size_t i = 0; i < runner->n_outputs && status == TARE_OK; i++)
        status = expand(&runner->outputs[i]);
    return status;
}

tare_status tare_runner_run(tare_runner *runner, const tare_array *inputs, size_t n_inputs, const tare_array **outputs,
                            size_t *n_outputs) {
    tare_status status;
    tare_public_begin();
    reset(runner->outputs, runner->n_outputs);
    *outputs = NULL;
    *n_outputs = 0;
    status = run(runner, inputs, n_inputs);
    if (status != TARE_OK) return tare_public_end(status);
    for (size_t i = 0; i < runner->n_outputs; i++)
        tare_public_array(&runner->arrays[i], runner->described[i].name, &runner->outputs[i]);
    *outputs = runner->arrays;
    *n_outputs = runner->n_outputs;
    return TARE_OK;
}
