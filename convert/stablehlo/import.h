/* StableHLO modules as functions of a model: each function of the module becomes a function of TensorFlow ops, where
 * the semantics are equal, and of XLA ops otherwise; regions also become functions. */
#ifndef TARE_CONVERT_STABLEHLO_IMPORT_H
#define TARE_CONVERT_STABLEHLO_IMPORT_H

#include "convert/stablehlo/module.h"
#include "graph/model.h"

struct tare_shlo_import_options {
    const struct tare_node *caller; /* the XlaCallModule node, whose function_list tf.call_tf_function uses; or NULL */
    const char *stem;               /* of the names of functions and nodes */
    bool has_platform;              /* main's first argument is the index of the platform: */
    size_t platform;
};

/* Adds the functions that `main` of the module reaches to the model; *out is main's. TARE_UNSUPPORTED with all ops and
 * types that have no counterpart, in one text; TARE_CORRUPT for a module with inconsistent ops. After a failure
 * the model may contain unused functions. */
tare_status tare_shlo_import(struct tare_graph **out, struct tare_graph_model *model,
                             const struct tare_shlo_module *module,
                             const struct tare_shlo_import_options *options) TARE_WARN_UNUSED;

/* Names of arguments and results of imported functions that are tokens begin with this; they are scalar bools. */
#define TARE_SHLO_TOKEN_NAME "token"

/* TARE_UNSUPPORTED, with their names, if the module has ops without a rule. Types and custom calls are not checked. */
tare_status tare_shlo_check_ops(const struct tare_shlo_module *module) TARE_WARN_UNUSED;

/* True if the importer has a rule for the op, or needs none. */
bool tare_shlo_imports(const struct tare_vhlo_op *op);

#endif
