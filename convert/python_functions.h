/* The functions of a model as their author wrote them: traces grouped by the Python function that they came from, each
 * with arguments, captured inputs and results in the form of TensorFlow's pretty-printed concrete signatures. */
#ifndef TARE_CONVERT_PYTHON_FUNCTIONS_H
#define TARE_CONVERT_PYTHON_FUNCTIONS_H

#include "graph/model.h"

struct tare_strbuf;

struct tare_function_argument {
    const char *name;
    const char *text; /* "float32 Tensor, shape=(None, 3)"; a nest has lines of its own, indented */
};

/* The values that a trace captured: the last arguments of its graph. */
struct tare_function_capture {
    const char *name; /* of the variable, constant, asset; else the object's path */
    const char *kind; /* "variable", "constant", "asset", "resource", "tensor" */
    int dtype;        /* of the value */
    struct tare_shape shape;
};

struct tare_trace {
    const struct tare_graph *graph;
    const char *signature; /* "pow(a, b=2)" */
    const struct tare_function_argument *arguments;
    size_t n_arguments;
    const struct tare_function_capture *captures;
    size_t n_captures;
    const char *returns;
};

/* A trace in the list: the input of its description. */
struct tare_trace_source {
    const struct tare_graph *graph;
    const struct Tensorflow__SavedConcreteFunction *described; /* by the object graph; NULL: not */
    const struct Tensorflow__FunctionSpec *spec;               /* NULL: none */
    const struct tare_concrete *bound;                         /* its captures; NULL: none are known */
};

struct tare_function_group {
    const char *name;   /* of the Python function */
    const char **paths; /* where the object graph has it: ".model.call" */
    size_t n_paths, paths_capacity;
    const char **aliases;
    size_t n_aliases;
    struct tare_trace_source *traces;
    size_t n_traces, traces_capacity;
};

/* Everything is in the arena and borrows from the model. */
struct tare_function_list {
    struct tare_arena arena;
    const struct tare_graph_model *model;
    const struct Tensorflow__MetaGraphDef *meta;        /* NULL: a model built from nothing */
    const struct Tensorflow__SavedObjectGraph *objects; /* NULL: none */
    const char **paths;                                 /* by object id; NULL: not reached from the root */
    struct tare_function_group **groups; /* those of the object graph by object, then all others by name */
    size_t n_groups, groups_capacity;
};
tare_status tare_function_list_make(struct tare_function_list *out,
                                    const struct tare_graph_model *model) TARE_WARN_UNUSED;
void tare_function_list_free(struct tare_function_list *list);

/* Describes trace `i` of a group. One at a time, because the descriptions of all traces may be as large as the model:
 * everything is in `arena` and borrows from the list. */
tare_status tare_trace_describe(struct tare_trace *out, struct tare_arena *arena, const struct tare_function_list *list,
                                const struct tare_function_group *group, size_t i) TARE_WARN_UNUSED;

/* Name i of a function's positional arguments, without self; NULL where the specification has none. */
const char *tare_function_argument_name(const struct Tensorflow__FunctionSpec *spec, size_t i);
/* The default value of the argument with this name; NULL: it has none. */
const struct Tensorflow__StructuredValue *tare_function_argument_default(const struct Tensorflow__FunctionSpec *spec,
                                                                         const char *name);
/* The declared shape of argument i: that of its arg_attr, else of _input_shapes; unknown without either. */
struct tare_shape tare_function_argument_shape(const struct tare_graph *graph, size_t i);

/* Appends "signature\n  Args:\n …  Returns:\n …\n". */
void tare_trace_print(struct tare_strbuf *out, const struct tare_trace *trace);

#endif
