/* Running a signature of a model on this machine's CPU, tensors in and tensors out.
 *
 * A runner holds the model's state (variables, tables) and serves one thread at a time; any number of runners share one
 * model. */
#ifndef TARE_RUNNER_H
#define TARE_RUNNER_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tare_runner_handle tare_runner;

/* Sets the variables and runs initialisers. TARE_UNSUPPORTED names the ops that cannot be run. Close it with
 * tare_runner_close. */
TARE_API tare_status tare_runner_open(tare_runner **out, const tare_model *model, const char *signature);
/* Frees the runner and its outputs. NULL is fine. */
TARE_API void tare_runner_close(tare_runner *runner);
/* Runs it once. `inputs`: one for each input of the signature, by name, in any order; they are read before the call
 * returns and stay the caller's. *outputs: *n_outputs arrays in the order of the signature, the runner's, good until
 * its next run or its end. TARE_NOT_FOUND names an input that is missing or unknown, TARE_TYPE and TARE_SHAPE one that
 * does not fit. A run that has begun is not cancelled. */
TARE_API tare_status tare_runner_run(tare_runner *runner, const tare_array *inputs, size_t n_inputs,
                                     const tare_array **outputs, size_t *n_outputs);

#ifdef __cplusplus
}
#endif

#endif
