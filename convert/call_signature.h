/* What a caller of a concrete function may pass, as the object graph records it: the shapes of the tensor arguments
 * (input_signature), and the Python values that were bound when the function was traced. */
#ifndef TARE_CONVERT_CALL_SIGNATURE_H
#define TARE_CONVERT_CALL_SIGNATURE_H

#include "base/tensor/tensor.h"
#include "graph/model.h"

struct tare_function_group;

/* An argument that is not a tensor: square = pow.get_concrete_function(a=spec, b=2) binds b. */
struct tare_bound_argument {
    const char *name;
    const char *type, *text; /* of its value in Python: "int", "2" */
    bool is_number;          /* and a bool is one, as in Python */
    double number;
    bool is_default; /* a call without the argument means this value */
};

struct tare_call_signature {
    const char *summary;             /* "ConcreteFunction pow(a, b)" */
    const struct tare_shape *shapes; /* of the tensor arguments, in the order of the graph's */
    size_t n_shapes;                 /* 0: not recorded, or arguments are not dense tensors */
    struct tare_bound_argument *bound;
    size_t n_bound;
};

/* Empty for a function without an entry in the object graph. Everything is in `arena`. */
tare_status tare_call_signature_make(struct tare_call_signature *out, struct tare_arena *arena,
                                     const struct tare_graph *function) TARE_WARN_UNUSED;
/* The same for trace `i` of a group (convert/python_functions.h). */
tare_status tare_call_signature_of_trace(struct tare_call_signature *out, struct tare_arena *arena,
                                         const struct tare_function_group *group, size_t i) TARE_WARN_UNUSED;
/* The bound argument with this name; NULL: none. */
const struct tare_bound_argument *tare_call_signature_find_bound(const struct tare_call_signature *signature,
                                                                 const char *name);
/* TARE_OK if the value equals the bound one, as `==` in Python decides; otherwise TensorFlow's error, which names both.
 */
tare_status tare_call_signature_check_bound(const struct tare_call_signature *signature,
                                            const struct tare_bound_argument *bound,
                                            const struct tare_tensor *value) TARE_WARN_UNUSED;

#endif
