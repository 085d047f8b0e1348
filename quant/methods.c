/* The rows of the methods. */
#include "quant/method.h"

#include <string.h>

const struct tare_quant_method *const tare_quant_methods[] = {
    &tare_method_static,
    &tare_method_dynamic,
    &tare_method_weight_only,
    NULL,
};

bool tare_quant_multiplies_arrays(enum tare_quant_kind kind) {
    return kind == TARE_KIND_MATMUL || kind == TARE_KIND_BATCH_MATMUL || kind == TARE_KIND_EINSUM ||
           kind == TARE_KIND_XLA_DOT;
}

const char *const tare_quant_op_set_names[] = { "xla", "uniform_quantized", "tf", NULL };

/* Weights alone have one form: their codes are converted to the dtype of the activations. */
static const struct tare_quant_method *in_float8(const struct tare_quant_method *method) {
    return method == &tare_method_static    ? &tare_method_float8_static
           : method == &tare_method_dynamic ? &tare_method_float8_dynamic
                                            : method;
}

const struct tare_quant_method *tare_quant_method_in(const struct tare_quant_method *method,
                                                     enum tare_quant_op_set op_set, int format) {
    const bool tf = op_set == TARE_OP_SET_TF;
    if (op_set == TARE_OP_SET_XLA) return format ? in_float8(method) : method;
    if (format) return NULL;
    if (method == &tare_method_static) return tf ? &tare_method_tf_static : &tare_method_uniform_static;
    if (method == &tare_method_dynamic) return tf ? &tare_method_tf_dynamic : &tare_method_uniform_dynamic;
    return NULL;
}

const struct tare_quant_method *tare_quant_method_find(const char *name) {
    for (size_t i = 0; tare_quant_methods[i]; i++)
        if (strcmp(tare_quant_methods[i]->name, name) == 0) return tare_quant_methods[i];
    return NULL;
}
