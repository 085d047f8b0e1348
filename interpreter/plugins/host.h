/* Shared by the files of the plugin host. Only interpreter/plugins/plugin*.c include this. */
#ifndef TARE_INTERPRETER_PLUGINS_HOST_H
#define TARE_INTERPRETER_PLUGINS_HOST_H

#define TARE_OP_HOST_ONLY
#include "include/tare/op.h"

#include "graph/definitions/opspec.h"
#include "interpreter/plugins/plugin.h"

/* One condition of a kernel: attribute of kind type (or list(type): every entry) and the dtype that it must have. */
struct tare_plugin_type {
    const char *attr;
    int dtype;
};

struct tare_plugin_kernel {
    const char *text; /* as registered; "" for everywhere */
    struct tare_plugin_type *types;
    size_t n_types;
    tare_op_create_function create;
    tare_op_function run;
    tare_op_destroy_function destroy;
};

/* An op during its registration, and afterwards the aux of its row. */
struct tare_op_entry {
    struct tare_op row;
    struct tare_op_library *library;
    struct tare_opspec_source source;
    tare_op_function shape_function;
    struct tare_plugin_kernel *kernels;
    size_t n_kernels;
    bool has_refs; /* an input is Ref(…) */
    const char *doc;
    const char *kernels_text;
    struct tare_op_entry *next;
};

/* A rewrite of composite functions. */
struct tare_plugin_composite {
    const char *pattern; /* without '*' */
    bool is_prefix;
    tare_op_composite_function rewrite;
    struct tare_op_library *library;
    struct tare_plugin_composite *next;
};

struct tare_op_library {
    const char *path;
    struct tare_arena *arena;
    struct tare_op_entry *first, **last;
    struct tare_plugin_composite *composites, **last_composite;
    bool out_of_memory;
    void *handle;
    struct tare_op_library *next;
};

/* A new value for the variable of an input. */
struct tare_plugin_assignment {
    size_t input;
    struct tare_tensor value;
    struct tare_plugin_assignment *next;
};

/* A tensor read through a reference. */
struct tare_plugin_read {
    size_t input;
    struct tare_tensor value;
    struct tare_plugin_read *next;
};

struct tare_op_context {
    const struct tare_op_entry *op;
    const struct tare_node *node;
    struct tare_kernel *kernel; /* create and run; NULL in a shape function */
    struct tare_infer *infer;   /* shape function only */
    bool running;               /* run: inputs and outputs may be touched */
    void *state;
    struct tare_plugin_assignment *assignments;
    struct tare_plugin_read *reads;
};
/* Validates the registration and sets `*out` to its row, which the entry owns. */
tare_status tare_plugin_finish(struct tare_op_entry *op, struct tare_opspec_memory *memory, struct tare_op_def **out);
/* The row's functions. */
tare_status tare_plugin_infer(struct tare_infer *infer);
tare_status tare_plugin_prepare(struct tare_kernel *kernel);
tare_status tare_plugin_run(struct tare_kernel *kernel);
void tare_plugin_release(void *state);
tare_status tare_plugin_accepts(const struct tare_node *node);

/* The function name in an attribute of type func, or in entry `index` of a list(func). */
int tare_plugin_attr_func(const tare_op_context *c, const char *name, int64_t index, const char **out);

/* Converts the return value of a library's function to a status; sets an error text if there is none. */
tare_status tare_plugin_status(int code, const char *what);

/* The parts of the table. */
void tare_plugin_host_registration(struct tare_op_host *host);
void tare_plugin_host_node(struct tare_op_host *host);
void tare_plugin_host_tensors(struct tare_op_host *host);
void tare_plugin_host_run(struct tare_op_host *host);
void tare_plugin_host_shapes(struct tare_op_host *host);
void tare_plugin_host_composites(struct tare_op_host *host);

/* Handles are the library's opaque view of internal structs. */
static inline const tare_op_tensor *tare_plugin_tensor(const struct tare_tensor *tensor) {
    return (const tare_op_tensor *)tensor;
}
static inline const struct tare_tensor *tare_tensor_of(const tare_op_tensor *tensor) {
    return (const struct tare_tensor *)tensor;
}
static inline const tare_op_shape *tare_plugin_shape(const struct tare_shape *shape) {
    return (const tare_op_shape *)shape;
}
static inline const struct tare_shape *tare_shape_of(const tare_op_shape *shape) {
    return (const struct tare_shape *)shape;
}

#endif
