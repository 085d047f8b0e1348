/* How a SavedModel is opened. */
#ifndef TARE_CONVERT_LOAD_OPTIONS_H
#define TARE_CONVERT_LOAD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct tare_op_registry;

/* A StableHLO module that was exported for several platforms has branches for each. */
enum tare_module_platform {
    TARE_MODULES_FOR_TPU, /* what a TPU runs: for everything that is built for one, and calibrations and comparisons of
                             it */
    TARE_MODULES_FOR_CPU, /* what TensorFlow runs on a CPU */
};

struct tare_saved_model_options {
    /* Select the MetaGraph with exactly these tags; NULL: the only MetaGraph, or the one with the single tag "serve".
     * Not NULL with n_tags 0: the one without tags. */
    const char *const *tags;
    size_t n_tags;
    /* Leaves the values of variables in the file: their dtype is INVALID, although their keys, dtypes and sizes
     * are checked against the checkpoint. For commands that only inspect. */
    bool without_values;
    /* Keeps only what analysis and reports read of nodes, not the messages of saved_model.pb: such a model takes a
     * fraction of the memory and cannot be exported. Large constants are a splat of their first element, and nodes of
     * functions are not found by name. For commands that only inspect. */
    bool read_only;
    bool keep_modules;                  /* XlaCallModule nodes are not expanded: such a model cannot be run */
    enum tare_module_platform platform; /* of the branches that expanded modules have */
    const struct tare_op_registry *ops; /* known ops; must outlive the model. NULL: the built-in ones */
};

#endif
