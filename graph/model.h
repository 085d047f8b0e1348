/* A model in the IR: main graph, functions, signatures, aliases, variables, assets. The SavedModel importer fills it,
 * passes change it, the interpreter runs it, the exporter writes it. */
#ifndef TARE_GRAPH_MODEL_H
#define TARE_GRAPH_MODEL_H

#include "graph/graph.h"

/* A SparseTensor, a RaggedTensor or another composite tensor of a signature: its components are bindings. */
struct tare_composite_tensor {
    const char *key;  /* in the file */
    const char *kind; /* "SparseTensor" */
};

/* One named tensor of a signature. */
struct tare_binding {
    const char *key; /* name visible to users; of a component: KEY.indices, KEY.values, KEY.row_splits ... */
    int dtype;
    struct tare_shape shape;
    struct tare_edge edge;                     /* in the main graph; node NULL: not bound */
    const struct tare_composite_tensor *whole; /* that it is a component of; NULL: a tensor of its own */
    size_t part;                               /* which of its components; they follow each other in the signature */
};

struct tare_signature {
    const char *key; /* "serving_default" */
    const char *method_name;
    struct tare_binding *inputs;
    size_t n_inputs;
    struct tare_binding *outputs;
    size_t n_outputs;
    const void *origin;
};

struct tare_alias {
    const char *function; /* concrete function name */
    const char *alias;
};

/* A signature that is not written, and the function that it called. */
struct tare_dropped_signature {
    const char *key;
    const char *function; /* NULL: none */
};

/* The shared_name that TensorFlow's eager mode assigns to anonymous handles, which are not shared. */
#define TARE_ANONYMOUS_VARIABLE "cd2c89b7-88b7-44c8-ad83-06c2a9158347"

/* A variable of the main graph (VarHandleOp, VariableV2 …) and its value in the checkpoint. */
struct tare_variable {
    struct tare_node *node;  /* the handle or reference node in the main graph; NULL once frozen away */
    const char *shared_name; /* the resource name: shared_name, or the node's name when that is empty */
    const char *key;         /* checkpoint key, NULL: none (initialised by the graph, or not at all) */
    const char *slice; /* the slice of that tensor in the syntax of RestoreV2 ("100 20 0,50:-"), NULL: all of it */
    int dtype;
    struct tare_shape shape;
    struct tare_tensor value; /* a view of the mapped checkpoint; dtype INVALID when there is no value */
    int object_id;            /* in the object graph, -1 when there is none */
    bool exposed;             /* an object that a user of the loaded model sees, whether or not a function uses it */
    bool constant;            /* never assigned, but freezing kept it as a variable: its value is known */
    bool removed;             /* frozen into constants, or unused: not written to the graph or the checkpoint */
};

/* A mutable lookup table restored from the checkpoint, such as the vocabulary of a text layer. */
struct tare_table_content {
    struct tare_node *node;            /* makes the table, in the main graph */
    const char *keys_key, *values_key; /* checkpoint keys */
    struct tare_tensor keys, values;   /* dtype INVALID: not loaded */
};

/* A file of the model and the main-graph tensor that gets its path when the model is loaded. */
struct tare_asset {
    const char *filename;  /* below assets/ */
    struct tare_edge edge; /* node NULL when the graph does not use it */
};

/* The longest chain of calls: tare_model_check_recursion refuses deeper models, so that analyses and the interpreter
 * may follow calls by recursion. Call chains of real models are below 20. */
enum { TARE_MOST_NESTED_CALLS = 1000 };

/* A concrete function of the object graph: the objects that its last arguments are bound to. */
struct tare_concrete {
    struct tare_graph *graph;
    int *bound; /* object ids of the captures: the last n_bound arguments */
    size_t n_bound;
    bool keep; /* called by the loader though no signature calls it: it creates or restores a table, or is a method */
};

/* An object that is a Const node of the main graph, captured by functions. */
struct tare_object_constant {
    int object_id;
    struct tare_node *node;
};

/* The gradient of the nodes with a `_gradient_op_type` (graph/gradients.h). */
struct tare_custom_gradient {
    const char *op_type;
    struct tare_graph *function;
};

/* An object that is a value inside a function, captured by a gradient. */
struct tare_captured_tensor {
    int object_id;
    const char *function, *tensor; /* as the file names them: "node:1" */
    struct tare_node *node;        /* an Identity of the value; NULL until tare_model_keep_captured, or it is gone */
};

/* A node whose output 0 no longer has the value it had in the file: a pass replaced it by the value of another node,
 * which was removed. */
struct tare_stand_in {
    const struct tare_node *node;
    const char *original; /* name of the removed node; "" when the value does not occur in the file's model */
};

/* A function that says what it computes, and whether its body was replaced (convert/composites/composites.h). */
struct tare_composite {
    const char *function;
    const char *implements; /* the annotation's name */
    const char *reason;     /* why it stays composite; NULL: fused */
};

struct tare_composites {
    struct tare_composite *items;
    size_t count, fused;
};

struct tare_attr_pool;

struct tare_name_list {
    const char **names;
    size_t count, capacity;
};

/* A SavedModel in memory: the root of the graph IR. The public handle tare_model (include/tare/model.h) owns one. */
struct tare_graph_model {
    struct tare_arena arena; /* everything below, but for tensors' buffers and what has an arena of its own */
    /* Nodes with their inputs and controls, their names, and types and uses of outputs: passes visit one of these of
     * all nodes, in the order in which they were created, and read little memory in sequence if nothing is in between.
     */
    struct tare_arena nodes, names, outputs;
    const char *path; /* directory it was read from; for asset files and messages */
    const char *tags; /* to write, separated by commas; NULL: those of the file it was read from, or "serve" */
    struct tare_graph *main;
    struct tare_graph **functions;
    size_t n_functions, functions_capacity;
    size_t n_numbered; /* functions added so far, including those removed */
    struct tare_map functions_by_name;
    struct tare_signature *signatures;
    size_t n_signatures;
    struct tare_dropped_signature *dropped_signatures; /* signature_keys of quantization_options does not name them */
    size_t n_dropped_signatures;
    struct tare_signature_uses *signature_uses; /* lists of edges (graph/signature_uses.c); NULL: not built */
    struct tare_alias *aliases;
    size_t n_aliases;
    struct tare_variable *variables;
    size_t n_variables;
    bool retyped;                /* a variable's dtype differs from the file: handle data of the file is invalid */
    int64_t keep_variables_from; /* bytes: larger variables are not frozen; 0: only those that do not fit in a file */
    struct tare_table_content *tables;
    size_t n_tables;
    struct tare_custom_gradient *gradients;
    size_t n_gradients;
    struct tare_captured_tensor *captured;
    size_t n_captured;
    bool keep_gradients;             /* the model is written to be trained; otherwise custom gradients are removed */
    bool captured_kept;              /* tare_model_keep_captured was called */
    struct tare_stand_in *stand_ins; /* in the order of creation; at most one per node */
    size_t n_stand_ins;
    struct tare_asset *assets;
    size_t n_assets;
    struct tare_concrete *concretes;
    size_t n_concretes;
    struct tare_object_constant *object_constants;
    size_t n_object_constants;
    struct tare_composites composites; /* of all calls of tare_composites_fuse */
    struct tare_node *init_node;       /* main op to run after the variables are restored; NULL: none */
    struct tare_node **table_inits;    /* collection table_initializer (TF1) */
    size_t n_table_inits;
    const char *module_error; /* why an XlaCallModule node was not expanded ("NODE: reason"); NULL: none */
    const char *module_note;  /* why one was not expanded as for the platform that was asked for; NULL: none */
    size_t n_modules;         /* XlaCallModule nodes that were expanded */
    bool has_other_platforms; /* other branches of them are for other platforms */
    const struct tare_op_registry *ops;  /* definitions of the ops that nodes may use; borrowed */
    struct tare_op_registry *custom_ops; /* definitions that the model file adds; its parent is `ops`; NULL: none */
    struct tare_attr_pool
        *pool; /* the importer's (convert/import/attr_pool.h), while it reads a model that is not changed */
    struct tare_map unknown_outputs; /* undefined op -> struct tare_name_list: output names that functions refer to */
    struct tare_tensor *tensors;     /* tensors of attributes, released with the model */
    size_t n_tensors, tensors_capacity;
    void (*release)(void *arg); /* releases what the importer keeps alive: messages, mapped files */
    void *release_arg;
};

/* An empty model whose nodes resolve to definitions of `ops` (borrowed; must outlive the model). NULL: out of memory.
 */
struct tare_graph_model *tare_model_new(const struct tare_op_registry *ops);
void tare_model_free(struct tare_graph_model *model);
/* An empty function; NULL when the name is taken or memory is out. */
struct tare_graph *tare_model_add_function(struct tare_graph_model *model, const char *name);
struct tare_graph *tare_model_find_function(const struct tare_graph_model *model, const char *name);
/* The function that an attribute refers to; NULL when the model does not have it. Without a lookup by name where the
 * attribute was set or read after the function was added to the model. */
struct tare_graph *tare_model_function_of(const struct tare_graph_model *model, const struct tare_func *func);
/* An unused function name: `stem`, or stem_1, stem_2 …, in the model's arena. */
const char *tare_model_unused_name(struct tare_graph_model *model, const char *stem);
/* After the edges of a signature were changed by other means than the functions of the graph. */
void tare_model_forget_signature_uses(struct tare_graph_model *model);
struct tare_signature *tare_model_find_signature(const struct tare_graph_model *model, const char *key);
/* Keeps a reference to `tensor` as long as the model; the result belongs to the model. */
struct tare_tensor *tare_model_keep_tensor(struct tare_graph_model *model, const struct tare_tensor *tensor);

/* Records that a node now has the value of another (see struct tare_stand_in). */
tare_status tare_model_add_stand_in(struct tare_graph_model *model, struct tare_node *node, const char *original);

/* Calls fn for every function that the attributes of `node` refer to (f, then_branch, body, branches …), and for a call
 * by op name. Stops at the first failure. */
tare_status tare_node_each_function(const struct tare_node *node,
                                    tare_status (*fn)(void *arg, const struct tare_node *node,
                                                      struct tare_graph *callee),
                                    void *arg);
/* TARE_INVALID_ARGUMENT "recursive function F (F calls G calls F)" when the call graph has a cycle. */
tare_status tare_model_check_recursion(const struct tare_graph_model *model);

#endif
