/* Calling a function of a model by name, as a caller of tf.saved_model.load would: the concrete function is picked by
 * the dtypes and shapes of the arguments, and its captures are found in the model. */
#ifndef TARE_EVAL_FUNCTION_SIGNATURE_H
#define TARE_EVAL_FUNCTION_SIGNATURE_H

#include "graph/model.h"

/* The arguments of a call, by name; borrowed. */
struct tare_call_arguments {
    const char *const *keys;
    const struct tare_tensor *values;
    size_t count;
};

/* The concrete function to call. `name` is an alias, the name of a function of the model, or the name that it had in
 * the program ("f" for "__inference_f_42"). Of several functions of that name the one whose arguments all fit is taken,
 * the one with the most known dimensions where several do. TARE_NOT_FOUND lists names; where none fits or the best are
 * equally good the candidates are listed; where the name has one function, the text says which argument does not fit.
 */
tare_status tare_function_pick(struct tare_graph **out, const struct tare_model *model, const char *name,
                               const struct tare_call_arguments *arguments);

/* Adds a call of `function` to the main graph, with a placeholder for each argument that is not captured, and makes a
 * signature of it (the model's; not among model->signatures). Captures become the edges of the main graph that hold
 * them: variables, constants, assets, and what other calls pass for the same object. TARE_UNSUPPORTED names a capture
 * that cannot be found. */
tare_status tare_function_signature(const struct tare_signature **out, struct tare_model *model,
                                    struct tare_graph *function);

#endif
