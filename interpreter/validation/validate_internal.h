/* Shared by the parts of the validator. Nothing else includes this. */
#ifndef TARE_INTERPRETER_VALIDATION_VALIDATE_INTERNAL_H
#define TARE_INTERPRETER_VALIDATION_VALIDATE_INTERNAL_H

#include "interpreter/validation/validate.h"

struct tare_validator {
    struct tare_faults *faults;
    struct tare_arena scratch;
    const struct tare_graph_model *model;
    const struct tare_validate_options *options;
    struct tare_map tpu_functions; /* computations that were checked: several calls may share one */
    struct tare_arena lasting;     /* until the end of the validation */
    bool *served;                  /* main-graph nodes that signatures and initialisers need; NULL: not yet computed */
    bool *initialized;             /* nodes of variables that initializers set; NULL: not yet computed */
    bool out_of_memory;            /* a violation could not be recorded */
};

/* Adds "graph/node (Op): what". */
void tare_fault_at(struct tare_validator *validator, const struct tare_node *node, const char *format, ...)
    TARE_PRINTF(3, 4);
/* Adds "where: what". */
void tare_fault(struct tare_validator *validator, const char *where, const char *format, ...) TARE_PRINTF(3, 4);
const char *tare_graph_label(const struct tare_graph *graph);

/* How a node calls functions: that they exist and that what is passed and expected fits. */
void tare_validate_calls(struct tare_validator *validator, const struct tare_node *node);
/* Batching attributes of a node. */
void tare_validate_batching(struct tare_validator *validator, const struct tare_node *node);
/* The computation that a TPUPartitionedCall runs. */
void tare_validate_tpu(struct tare_validator *validator, const struct tare_node *node);

/* _input_shapes of a function, _output_shapes of a node: as many shapes as there are arguments and outputs. */
void tare_validate_implements(struct tare_validator *validator, const struct tare_graph *function);
void tare_validate_arg_shapes(struct tare_validator *validator, const struct tare_graph *function);
void tare_validate_output_shapes(struct tare_validator *validator, const struct tare_node *node);
/* Reads and assignments have the dtype of their variable, also where functions pass its handle. */
void tare_validate_accesses(struct tare_validator *validator);
/* Notes variables and batchers that have one name. */
void tare_validate_shared_names(struct tare_validator *validator);
/* Notes the first node of a graph that is assigned to a device that a server may lack. */
void tare_validate_devices(struct tare_validator *validator, const struct tare_graph *graph);
/* Whether a signature, an initialiser or a captured function can reach the variable. */
bool tare_validate_is_reachable(struct tare_validator *validator, const struct tare_variable *variable);
/* Whether an initializer gives the variable its value. */
bool tare_validate_is_initialized(struct tare_validator *validator, const struct tare_variable *variable);

#endif
