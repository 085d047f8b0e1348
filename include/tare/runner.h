/* Inference on this machine's CPU: runs a signature of a model, arrays in, arrays out.
 *
 * A runner holds the model's state (variables, tables) and serves one thread at a time. Any number of runners share one
 * model. */
#ifndef TARE_RUNNER_H
#define TARE_RUNNER_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Thread-compatible: it has the state of the model's variables. */
typedef struct tare_runner_handle tare_runner;
/* Thread-compatible: the arrays may be written. */
typedef struct tare_outputs_handle tare_outputs;

/* Creates a runner, initializes variables and runs the model's initializers. TARE_ERROR_UNSUPPORTED lists the ops that
 * have no kernel. Release it with tare_runner_close. */
TARE_API TARE_CHECKED tare_status tare_runner_open(tare_runner **out, const tare_model *model, const char *signature);
/* The same for a function instead of a signature. `name`: the name of a function, an alias, a path ("layer.call"), or
 * the name in the program ("f" for "__inference_f_42"). Of several concrete functions, the dtypes and shapes of
 * `arguments` select one, as in tare_runner_run, whose inputs are then the function's arguments; Python arguments that
 * are not given have their default values. TARE_ERROR_NOT_FOUND lists the functions. */
TARE_API TARE_CHECKED tare_status tare_runner_open_function(tare_runner **out, const tare_model *model,
                                                            const char *name, const tare_array *arguments,
                                                            size_t n_arguments);
/* The element type of an argument of a function of this name (TARE_DTYPE_…). 0 if no function has both, or if the
 * element type selects one of several concrete functions. */
TARE_API int32_t tare_model_function_argument(const tare_model *model, const char *name, const char *argument);
/* Frees the runner and its outputs. No-op if NULL. */
TARE_API void tare_runner_close(tare_runner *runner);
/* Runs the signature once. `inputs`: one array for each input of the signature, matched by name, in any order; they are
 * not used after the call returns. *outputs: *n_outputs arrays in the order of the signature, owned by the runner and
 * valid until its next run or its close. Input errors: TARE_ERROR_INVALID_ARGUMENT for missing, unknown or duplicate
 * inputs, TARE_ERROR_TYPE and TARE_ERROR_SHAPE for inputs that do not match, TARE_ERROR_INTERRUPTED after
 * tare_context_cancel. */
TARE_API TARE_CHECKED tare_status tare_runner_run(tare_runner *runner, const tare_array *inputs, size_t n_inputs,
                                                  const tare_array **outputs, size_t *n_outputs);
/* Takes the outputs of the last run out of the runner: *arrays is as *outputs of tare_runner_run, but remains valid
 * until tare_outputs_close, independent of runner and model, and its elements may be written. Elements are copied only
 * where they are also a variable, a constant or an input. TARE_ERROR_INVALID_ARGUMENT if there are no outputs: before
 * the first run, or if they were taken. */
TARE_API TARE_CHECKED tare_status tare_runner_take(tare_outputs **out, tare_runner *runner, const tare_array **arrays,
                                                   size_t *count);
/* Frees the arrays. No-op if NULL. */
TARE_API void tare_outputs_close(tare_outputs *outputs);

#ifdef __cplusplus
}
#endif

#endif
