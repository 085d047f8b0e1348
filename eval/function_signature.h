/* Calls a function of a model by name, as a user of tf.saved_model.load would: the concrete function is selected by the
 * dtypes and shapes of the arguments, and its captures are found in the model. */
#ifndef TARE_EVAL_FUNCTION_SIGNATURE_H
#define TARE_EVAL_FUNCTION_SIGNATURE_H

#include "datasets/spec.h"
#include "graph/model.h"
#include "interpreter/feedback.h"

/* The arguments of a call, by name; borrowed. */
struct tare_call_arguments {
    const char *const *keys;
    const struct tare_tensor *values;
    size_t count;
    const struct tare_feedback *feedback; /* its inputs need no value; NULL: none */
    bool is_record; /* the argument of a function with one is the only value besides the label, whatever its key */
};

/* Finds the concrete function to call. `name` is the name of a function of the model, an alias, a path in the object
 * graph ("layer.call"), or the function's name in the program ("f" for "__inference_f_42"); the first that fits. Of
 * several functions with that name, it is one whose arguments all match, and whose Python arguments that the call does
 * not mention have their default values; of several traces of one function, the first, as in TensorFlow; of other
 * functions, the one with the most known dimensions. Errors: TARE_NOT_FOUND lists names; without a match, or with a
 * tie, the candidates are listed; for a single function, the text names the argument that does not match, or the bound
 * value from which the given one differs. */
tare_status tare_function_pick(struct tare_graph **out, const struct tare_graph_model *model, const char *name,
                               const struct tare_call_arguments *arguments);

/* The same by the first record of files, read by a spec (NULL: none), and by the inputs that are fed back (NULL: none),
 * which it may lack. */
tare_status tare_function_pick_for(struct tare_graph **out, const struct tare_graph_model *model, const char *name,
                                   const char *const *data, size_t n_data, const struct tare_dataset_spec *spec,
                                   const struct tare_feedback *feedback) TARE_WARN_UNUSED;

/* The function that a call of that name with tensors only means, whatever their dtypes and shapes; NULL: there is none.
 */
tare_status tare_function_find(struct tare_graph **out, const struct tare_graph_model *model,
                               const char *name) TARE_WARN_UNUSED;

/* The dtype of an argument of the functions that tare_function_pick selects from; 0 if it is not the same in all of
 * them, or none has the argument. */
tare_status tare_function_argument_dtype(int *out, const struct tare_graph_model *model, const char *name,
                                         const char *argument) TARE_WARN_UNUSED;

/* *out: `name` is a Python argument that was bound when the function was traced (tare_call_signature), not a tensor. A
 * call may repeat its value, which tare_function_pick compares. */
tare_status tare_function_binds(bool *out, const struct tare_graph *function, const char *name) TARE_WARN_UNUSED;

/* Adds a call of `function` to the main graph, with a placeholder for each argument that is not captured, and makes a
 * signature for it (owned by the model; not in model->signatures). Captures are connected to the edges of the main
 * graph that provide them: variables, constants, assets, and values that other calls pass for the same object.
 * TARE_UNSUPPORTED names a capture that cannot be found. */
tare_status tare_function_signature(const struct tare_signature **out, struct tare_graph_model *model,
                                    struct tare_graph *function);

#endif
