/* Custom ops for tare: the only header that a shared library for `--plugin LIB.so` needs. docs/custom-ops.md is a
 * tutorial.
 *
 *     #include <tare/op.h>
 *
 *     static int zero_out(tare_op_context *c) { … }
 *
 *     TARE_OP_LIBRARY(library) {
 *         tare_op_entry *op = tare_op_add(library, "ZeroOut");
 *         tare_op_add_input(op, "to_zero: int32");
 *         tare_op_add_output(op, "zeroed: int32");
 *         tare_op_add_kernel(op, NULL, zero_out);
 *         return 0;
 *     }
 *
 *     cc -shared -fPIC zero_out.c -o zero_out.so $(pkg-config --cflags tare)
 *
 * The library does not link against tare: tare passes it a table of functions, and the functions below call through it.
 * Within one TARE_OP_ABI_MAJOR the table is only extended at its end, and all types are opaque, so a library remains
 * binary compatible with later releases of tare until the major number changes.
 *
 * Functions that return int return 0 on success. On failure they set the error message and return a non-zero code,
 * which the caller returns (TARE_OP_TRY). Memory and handles returned by tare are owned by tare and are valid until the
 * function that obtained them returns, except strings of attributes, which are valid as long as the node. C11 and
 * C++11. */
#ifndef TARE_OP_H
#define TARE_OP_H

#include "dtype.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define TARE_OP_ABI_MAJOR 1
#define TARE_OP_ABI_MINOR 1
#define TARE_OP_ABI ((uint32_t)TARE_OP_ABI_MAJOR << 16 | TARE_OP_ABI_MINOR)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tare_op_library tare_op_library; /* the library being registered */
typedef struct tare_op_entry tare_op_entry;     /* one op being registered */
typedef struct tare_op_context tare_op_context; /* a node in its shape function, in create, or in a run */
typedef struct tare_op_tensor tare_op_tensor;
typedef struct tare_op_shape tare_op_shape;         /* may be partial; NULL: completely unknown */
typedef struct tare_op_composite tare_op_composite; /* an annotated function whose body is being rewritten */
typedef struct tare_op_node tare_op_node;           /* a node of the new body */

/* A tensor in the new body of a composite function: an argument, a constant, or an output of a node. */
typedef struct tare_op_value {
    const void *node;
    int output;
} tare_op_value;

/* X(name, type) for each real dtype with C arithmetic: its name in specifications and its C type. half and bfloat16 are
 * TARE_OP_EACH_HALF_TYPE: C has no arithmetic for them. */
#define TARE_OP_EACH_REAL_TYPE(X)                                                                                      \
    X(float, float)                                                                                                    \
    X(double, double)                                                                                                  \
    X(int8, int8_t)                                                                                                    \
    X(int16, int16_t)                                                                                                  \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint8, uint8_t)                                                                                                  \
    X(uint16, uint16_t)                                                                                                \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)

/* X(name, load, store) for half and bfloat16: uint16_t in memory, computed in float. */
#define TARE_OP_EACH_HALF_TYPE(X)                                                                                      \
    X(half, tare_op_float_from_half, tare_op_half_from_float)                                                          \
    X(bfloat16, tare_op_float_from_bfloat16, tare_op_bfloat16_from_float)

enum { TARE_OP_UNKNOWN = -1 }; /* an unknown dim or rank */

/* Properties of an op, for tare_op_set_properties. */
enum tare_op_property {
    TARE_OP_IS_STATEFUL = 1,   /* never folded or removed: it reads or writes external state */
    TARE_OP_IS_ELEMENTWISE = 2 /* each output element depends only on the input elements at its index */
};

typedef int (*tare_op_function)(tare_op_context *c); /* a shape function or a kernel */
typedef int (*tare_op_create_function)(tare_op_context *c, void **state);
typedef void (*tare_op_destroy_function)(void *state);
typedef int (*tare_op_composite_function)(tare_op_composite *c);
typedef int (*tare_op_range_function)(void *arg, int64_t first, int64_t last); /* items first … last-1 */

/* The function table that tare passes to a library. Use the functions below instead. */
struct tare_op_host {
    uint32_t abi, size;
    int (*fail)(const char *format, va_list args);
    /* registration */
    tare_op_entry *(*add)(tare_op_library *library, const char *name);
    void (*add_attr)(tare_op_entry *op, const char *spec);
    void (*add_input)(tare_op_entry *op, const char *spec);
    void (*add_output)(tare_op_entry *op, const char *spec);
    void (*set_shape_function)(tare_op_entry *op, tare_op_function fn);
    void (*add_kernel)(tare_op_entry *op, const char *types, tare_op_create_function create, tare_op_function run,
                       tare_op_destroy_function destroy);
    void (*set_properties)(tare_op_entry *op, unsigned properties);
    void (*set_doc)(tare_op_entry *op, const char *text);
    /* the node */
    const char *(*node_name)(const tare_op_context *c);
    size_t (*input_count)(const tare_op_context *c);
    size_t (*output_count)(const tare_op_context *c);
    int (*input_range)(const tare_op_context *c, const char *name, size_t *first, size_t *count);
    int (*output_range)(const tare_op_context *c, const char *name, size_t *first, size_t *count);
    int (*output_dtype)(const tare_op_context *c, size_t i);
    int (*attr_length)(const tare_op_context *c, const char *name, int64_t *out);
    int (*attr_int)(const tare_op_context *c, const char *name, int64_t index, int64_t *out);
    int (*attr_float)(const tare_op_context *c, const char *name, int64_t index, float *out);
    int (*attr_bool)(const tare_op_context *c, const char *name, int64_t index, int *out);
    int (*attr_type)(const tare_op_context *c, const char *name, int64_t index, int *out);
    int (*attr_string)(const tare_op_context *c, const char *name, int64_t index, const char **data, size_t *size);
    int (*attr_shape)(const tare_op_context *c, const char *name, int64_t index, const tare_op_shape **out);
    int (*attr_tensor)(tare_op_context *c, const char *name, int64_t index, const tare_op_tensor **out);
    int (*attr_func)(const tare_op_context *c, const char *name, int64_t index, const char **out);
    /* tensors */
    int (*tensor_dtype)(const tare_op_tensor *tensor);
    int (*tensor_rank)(const tare_op_tensor *tensor);
    int64_t (*tensor_dim)(const tare_op_tensor *tensor, int axis);
    const int64_t *(*tensor_dims)(const tare_op_tensor *tensor);
    int64_t (*tensor_elements)(const tare_op_tensor *tensor);
    const void *(*tensor_data)(const tare_op_tensor *tensor);
    void *(*tensor_mutable_data)(tare_op_tensor *tensor);
    const char *(*tensor_string)(const tare_op_tensor *tensor, int64_t i, size_t *size);
    int (*tensor_set_string)(tare_op_tensor *tensor, int64_t i, const void *data, size_t size);
    /* a run */
    const tare_op_tensor *(*input)(tare_op_context *c, size_t i);
    int (*output)(tare_op_context *c, size_t i, int rank, const int64_t *dims, tare_op_tensor **out);
    int (*forward)(tare_op_context *c, size_t output, size_t input, int rank, const int64_t *dims);
    int (*share)(tare_op_context *c, size_t output, const tare_op_tensor *tensor);
    int (*call)(tare_op_context *c, const char *attr, int64_t index, const tare_op_tensor *const *args, size_t n_args,
                const tare_op_tensor **results, size_t n_results);
    int (*assign)(tare_op_context *c, size_t input, int rank, const int64_t *dims, tare_op_tensor **out);
    void *(*state)(const tare_op_context *c);
    void *(*scratch)(tare_op_context *c, size_t size);
    int (*parallel_for)(tare_op_context *c, int64_t count, int64_t chunk, tare_op_range_function fn, void *arg);
    float (*float_from_half)(uint16_t bits);
    uint16_t (*half_from_float)(float value);
    float (*float_from_bfloat16)(uint16_t bits);
    uint16_t (*bfloat16_from_float)(float value);
    /* a shape function */
    const tare_op_shape *(*input_shape)(tare_op_context *c, size_t i);
    const tare_op_tensor *(*input_value)(tare_op_context *c, size_t i);
    int (*shape_from_input)(tare_op_context *c, size_t i, const tare_op_shape **out);
    int (*set_output_shape)(tare_op_context *c, size_t i, const tare_op_shape *shape);
    int (*shape_rank)(const tare_op_shape *shape);
    int64_t (*shape_dim)(const tare_op_shape *shape, int axis);
    int (*make_shape)(tare_op_context *c, int rank, const int64_t *dims, const tare_op_shape **out);
    int (*with_rank)(tare_op_context *c, const tare_op_shape *shape, int least, int most, const tare_op_shape **out);
    int (*merge)(tare_op_context *c, const tare_op_shape *a, const tare_op_shape *b, const tare_op_shape **out);
    int (*broadcast)(tare_op_context *c, const tare_op_shape *a, const tare_op_shape *b, const tare_op_shape **out);
    int (*subshape)(tare_op_context *c, const tare_op_shape *shape, int first, int last, const tare_op_shape **out);
    int (*concatenate)(tare_op_context *c, const tare_op_shape *a, const tare_op_shape *b, const tare_op_shape **out);
    int (*replace_dim)(tare_op_context *c, const tare_op_shape *shape, int axis, int64_t dim,
                       const tare_op_shape **out);
    int (*dim_merge)(int64_t a, int64_t b, int64_t *out);
    int (*dim_arithmetic)(int operation, int64_t a, int64_t b, int64_t *out);
    /* 1.1: fused ops and composite functions */
    tare_op_entry *(*add_fused)(tare_op_library *library, const char *name);
    void (*add_composite)(tare_op_library *library, const char *pattern, tare_op_composite_function rewrite);
    const char *(*composite_name)(const tare_op_composite *c);
    size_t (*composite_arguments)(const tare_op_composite *c);
    size_t (*composite_results)(const tare_op_composite *c);
    int (*composite_argument)(const tare_op_composite *c, size_t i, tare_op_value *out);
    const tare_op_shape *(*composite_argument_shape)(const tare_op_composite *c, size_t i);
    int (*composite_result_dtype)(const tare_op_composite *c, size_t i);
    int (*composite_has_attr)(const tare_op_composite *c, const char *name);
    int (*composite_attr_int)(const tare_op_composite *c, const char *name, int64_t *out);
    int (*composite_attr_float)(const tare_op_composite *c, const char *name, float *out);
    int (*composite_attr_bool)(const tare_op_composite *c, const char *name, int *out);
    int (*composite_attr_string)(const tare_op_composite *c, const char *name, const char **data, size_t *size);
    int (*composite_decline)(tare_op_composite *c, const char *format, va_list args);
    int (*composite_add_node)(tare_op_composite *c, const char *op, const char *name, const tare_op_value *inputs,
                              size_t n_inputs, tare_op_node **out);
    int (*composite_add_constant)(tare_op_composite *c, const char *name, int dtype, int rank, const int64_t *dims,
                                  const void *data, tare_op_value *out);
    int (*composite_set_result)(tare_op_composite *c, size_t i, tare_op_value value);
    int (*value_dtype)(tare_op_value value);
    int (*node_set_int)(tare_op_node *node, const char *name, int64_t value);
    int (*node_set_float)(tare_op_node *node, const char *name, float value);
    int (*node_set_bool)(tare_op_node *node, const char *name, int value);
    int (*node_set_type)(tare_op_node *node, const char *name, int dtype);
    int (*node_set_string)(tare_op_node *node, const char *name, const char *data, size_t size);
    int (*node_set_ints)(tare_op_node *node, const char *name, const int64_t *values, size_t count);
    int (*node_output)(tare_op_node *node, int i, tare_op_value *out);
};

#define TARE_OP_EXPORT __attribute__((visibility("default")))

/* The two functions that tare looks up; TARE_OP_LIBRARY defines them. */
TARE_OP_EXPORT uint32_t tare_op_library_abi(void);
TARE_OP_EXPORT int tare_op_library_register(const struct tare_op_host *host, tare_op_library *library);

#ifndef TARE_OP_HOST_ONLY /* set by tare itself */

/* One pointer per library, shared by all of its source files. */
__attribute__((weak, visibility("hidden"))) const struct tare_op_host *tare_op_lent;

/* The body registers the library's ops and returns 0. Exactly once per library. */
#define TARE_OP_LIBRARY(library)                                                                                       \
    static int tare_op_library_body(tare_op_library *library);                                                         \
    uint32_t tare_op_library_abi(void) {                                                                               \
        return TARE_OP_ABI;                                                                                            \
    }                                                                                                                  \
    int tare_op_library_register(const struct tare_op_host *host, tare_op_library *lib) {                              \
        tare_op_lent = host;                                                                                           \
        return tare_op_library_body(lib);                                                                              \
    }                                                                                                                  \
    static int tare_op_library_body(tare_op_library *library)

/* ---- errors ---- */

/* Sets the error message: what is wrong, with the expected and actual values in brackets. tare prefixes the node and
 * the op. Returns the code to return. */
__attribute__((format(printf, 1, 2))) static inline int tare_op_fail(const char *format, ...) {
    va_list args;
    int code;
    va_start(args, format);
    code = tare_op_lent->fail(format, args);
    va_end(args);
    return code;
}

/* Returns from the function with an error if the condition is false. */
#define TARE_OP_REQUIRE(condition, ...)                                                                                \
    do {                                                                                                               \
        if (!(condition)) return tare_op_fail(__VA_ARGS__);                                                            \
    } while (0)
/* Returns from the function with the same error if the expression fails. */
#define TARE_OP_TRY(expression)                                                                                        \
    do {                                                                                                               \
        int tare_op_code_ = (expression);                                                                              \
        if (tare_op_code_ != 0) return tare_op_code_;                                                                  \
    } while (0)

/* ---- registration: errors in the strings are reported, with their position, when the library is loaded ---- */

static inline tare_op_entry *tare_op_add(tare_op_library *library, const char *name) {
    return tare_op_lent->add(library, name);
}
/* "preserve_index: int >= 0 = 0", "T: {float, int32} = DT_INT32", "mode: {'sum', 'mean'}", "N: int >= 2" */
static inline void tare_op_add_attr(tare_op_entry *op, const char *spec) {
    tare_op_lent->add_attr(op, spec);
}
/* "to_zero: T", "values: N * T", "parts: Tparts" (list(type)), "ref: Ref(T)" */
static inline void tare_op_add_input(tare_op_entry *op, const char *spec) {
    tare_op_lent->add_input(op, spec);
}
static inline void tare_op_add_output(tare_op_entry *op, const char *spec) {
    tare_op_lent->add_output(op, spec);
}
/* Without a shape function, output shapes are unknown before a run. */
static inline void tare_op_set_shape_function(tare_op_entry *op, tare_op_function fn) {
    tare_op_lent->set_shape_function(op, fn);
}
/* `types` restricts the kernel to dtypes: "T: float", "T: float, Tidx: int64"; NULL: all. A model with an op without a
 * kernel can be opened and converted, but not run. */
static inline void tare_op_add_kernel(tare_op_entry *op, const char *types, tare_op_function run) {
    tare_op_lent->add_kernel(op, types, NULL, run, NULL);
}
/* A kernel with a separate state for each node and worker. `create` validates and initialises it once (it may read
 * attributes, but not inputs), `run` gets it from tare_op_state, `destroy` (NULL: nothing to do) frees it. */
static inline void tare_op_add_kernel_with_state(tare_op_entry *op, const char *types, tare_op_create_function create,
                                                 tare_op_function run, tare_op_destroy_function destroy) {
    tare_op_lent->add_kernel(op, types, create, run, destroy);
}
/* Bits of enum tare_op_property. */
static inline void tare_op_set_properties(tare_op_entry *op, unsigned properties) {
    tare_op_lent->set_properties(op, properties);
}
/* A description of the op, of one or more lines, for `tare ops`. */
static inline void tare_op_set_doc(tare_op_entry *op, const char *text) {
    tare_op_lent->set_doc(op, text);
}

/* As tare_op_add, for an op that only the converter inserts: the name of an annotated function with the attribute
 * tfl_fusable_op, which TensorFlow's rule for op names (CamelCase) would refuse: "my_custom_fused_op". Letters, digits
 * and _. */
static inline tare_op_entry *tare_op_add_fused(tare_op_library *library, const char *name) {
    return tare_op_lent->add_fused(library, name);
}

/* ---- composite functions: functions annotated with experimental_implements, or by Keras ---- */

/* Registers a rewrite of the composite functions whose annotation is named `pattern`, or begins with it if it ends with
 * '*' ("lstm_*"). `rewrite` builds a new body: it reads the interface (arguments, results, attributes of the
 * annotation), adds nodes, and sets every result; or it calls tare_op_decline, and the function is offered to the next
 * rewrite: those of libraries in the order of registration, then the built-in ones. Several rewrites may have one
 * pattern, and one rewrite several. A library may register rewrites only, without ops. */
static inline void tare_op_add_composite(tare_op_library *library, const char *pattern,
                                         tare_op_composite_function rewrite) {
    tare_op_lent->add_composite(library, pattern, rewrite);
}
/* The name in the annotation. */
static inline const char *tare_op_composite_name(const tare_op_composite *c) {
    return tare_op_lent->composite_name(c);
}
static inline size_t tare_op_composite_argument_count(const tare_op_composite *c) {
    return tare_op_lent->composite_arguments(c);
}
static inline size_t tare_op_composite_result_count(const tare_op_composite *c) {
    return tare_op_lent->composite_results(c);
}
/* An error when there is no argument i. */
static inline int tare_op_composite_argument(const tare_op_composite *c, size_t i, tare_op_value *out) {
    return tare_op_lent->composite_argument(c, i, out);
}
/* What is known of it from the calls of the function; read it with tare_op_shape_rank and tare_op_shape_dim. */
static inline const tare_op_shape *tare_op_composite_argument_shape(const tare_op_composite *c, size_t i) {
    return tare_op_lent->composite_argument_shape(c, i);
}
/* 0 when there is no result i. */
static inline int tare_op_composite_result_dtype(const tare_op_composite *c, size_t i) {
    return tare_op_lent->composite_result_dtype(c, i);
}
/* Attributes of the annotation. Reading an absent one, or one of another type, is an error. */
static inline int tare_op_composite_has_attr(const tare_op_composite *c, const char *name) {
    return tare_op_lent->composite_has_attr(c, name);
}
static inline int tare_op_composite_attr_int(const tare_op_composite *c, const char *name, int64_t *out) {
    return tare_op_lent->composite_attr_int(c, name, out);
}
static inline int tare_op_composite_attr_float(const tare_op_composite *c, const char *name, float *out) {
    return tare_op_lent->composite_attr_float(c, name, out);
}
static inline int tare_op_composite_attr_bool(const tare_op_composite *c, const char *name, int *out) {
    return tare_op_lent->composite_attr_bool(c, name, out);
}
static inline int tare_op_composite_attr_string(const tare_op_composite *c, const char *name, const char **data,
                                                size_t *size) {
    return tare_op_lent->composite_attr_string(c, name, data, size);
}
/* The rewrite does not fit, with the reason that the report prints. Nodes added so far are removed. Returns the code to
 * return. */
__attribute__((format(printf, 2, 3))) static inline int tare_op_decline(tare_op_composite *c, const char *format, ...) {
    va_list args;
    int code;
    va_start(args, format);
    code = tare_op_lent->composite_decline(c, format, args);
    va_end(args);
    return code;
}
/* Adds a node of any op that the model may use. Type and length attributes follow from the inputs; set the others
 * before the first tare_op_node_output. */
static inline int tare_op_add_node(tare_op_composite *c, const char *op, const char *name, const tare_op_value *inputs,
                                   size_t n_inputs, tare_op_node **out) {
    return tare_op_lent->composite_add_node(c, op, name, inputs, n_inputs, out);
}
static inline int tare_op_node_set_int(tare_op_node *node, const char *name, int64_t value) {
    return tare_op_lent->node_set_int(node, name, value);
}
static inline int tare_op_node_set_float(tare_op_node *node, const char *name, float value) {
    return tare_op_lent->node_set_float(node, name, value);
}
static inline int tare_op_node_set_bool(tare_op_node *node, const char *name, int value) {
    return tare_op_lent->node_set_bool(node, name, value);
}
static inline int tare_op_node_set_type(tare_op_node *node, const char *name, int dtype) {
    return tare_op_lent->node_set_type(node, name, dtype);
}
static inline int tare_op_node_set_string(tare_op_node *node, const char *name, const char *data, size_t size) {
    return tare_op_lent->node_set_string(node, name, data, size);
}
static inline int tare_op_node_set_ints(tare_op_node *node, const char *name, const int64_t *values, size_t count) {
    return tare_op_lent->node_set_ints(node, name, values, count);
}
/* Checks the node's attributes and inputs, and returns its output i. */
static inline int tare_op_node_output(tare_op_node *node, int i, tare_op_value *out) {
    return tare_op_lent->node_output(node, i, out);
}
/* A constant of a numeric dtype; the data, row-major, is copied. */
static inline int tare_op_add_constant(tare_op_composite *c, const char *name, int dtype, int rank, const int64_t *dims,
                                       const void *data, tare_op_value *out) {
    return tare_op_lent->composite_add_constant(c, name, dtype, rank, dims, data, out);
}
static inline int tare_op_value_dtype(tare_op_value value) {
    return tare_op_lent->value_dtype(value);
}
/* An error when the dtype differs from that of the function's result i. */
static inline int tare_op_set_result(tare_op_composite *c, size_t i, tare_op_value value) {
    return tare_op_lent->composite_set_result(c, i, value);
}

/* ---- the node: in shape functions, create and run ---- */

static inline const char *tare_op_node_name(const tare_op_context *c) {
    return tare_op_lent->node_name(c);
}
/* Number of tensors; an `N * T` or list(type) argument counts each of its tensors. */
static inline size_t tare_op_input_count(const tare_op_context *c) {
    return tare_op_lent->input_count(c);
}
static inline size_t tare_op_output_count(const tare_op_context *c) {
    return tare_op_lent->output_count(c);
}
/* The range of tensors that belong to the argument `name`. */
static inline int tare_op_input_range(const tare_op_context *c, const char *name, size_t *first, size_t *count) {
    return tare_op_lent->input_range(c, name, first, count);
}
static inline int tare_op_output_range(const tare_op_context *c, const char *name, size_t *first, size_t *count) {
    return tare_op_lent->output_range(c, name, first, count);
}
/* 0 when there is no output i. */
static inline int tare_op_output_dtype(const tare_op_context *c, size_t i) {
    return tare_op_lent->output_dtype(c, i);
}

/* The node's attribute, or its default. A wrong name or kind is an error. */
static inline int tare_op_attr_int(const tare_op_context *c, const char *name, int64_t *out) {
    return tare_op_lent->attr_int(c, name, -1, out);
}
static inline int tare_op_attr_float(const tare_op_context *c, const char *name, float *out) {
    return tare_op_lent->attr_float(c, name, -1, out);
}
static inline int tare_op_attr_bool(const tare_op_context *c, const char *name, int *out) {
    return tare_op_lent->attr_bool(c, name, -1, out);
}
static inline int tare_op_attr_type(const tare_op_context *c, const char *name, int *out) {
    return tare_op_lent->attr_type(c, name, -1, out);
}
/* The data is followed by a NUL, which *size does not include. */
static inline int tare_op_attr_string(const tare_op_context *c, const char *name, const char **data, size_t *size) {
    return tare_op_lent->attr_string(c, name, -1, data, size);
}
static inline int tare_op_attr_shape(const tare_op_context *c, const char *name, const tare_op_shape **out) {
    return tare_op_lent->attr_shape(c, name, -1, out);
}
static inline int tare_op_attr_tensor(tare_op_context *c, const char *name, const tare_op_tensor **out) {
    return tare_op_lent->attr_tensor(c, name, -1, out);
}
/* The name of the function. */
static inline int tare_op_attr_func(const tare_op_context *c, const char *name, const char **out) {
    return tare_op_lent->attr_func(c, name, -1, out);
}
/* Entry `index` of a list(…) attribute of tare_op_attr_length entries. */
static inline int tare_op_attr_length(const tare_op_context *c, const char *name, int64_t *out) {
    return tare_op_lent->attr_length(c, name, out);
}
static inline int tare_op_attr_int_at(const tare_op_context *c, const char *name, int64_t index, int64_t *out) {
    return tare_op_lent->attr_int(c, name, index, out);
}
static inline int tare_op_attr_float_at(const tare_op_context *c, const char *name, int64_t index, float *out) {
    return tare_op_lent->attr_float(c, name, index, out);
}
static inline int tare_op_attr_bool_at(const tare_op_context *c, const char *name, int64_t index, int *out) {
    return tare_op_lent->attr_bool(c, name, index, out);
}
static inline int tare_op_attr_type_at(const tare_op_context *c, const char *name, int64_t index, int *out) {
    return tare_op_lent->attr_type(c, name, index, out);
}
static inline int tare_op_attr_string_at(const tare_op_context *c, const char *name, int64_t index, const char **data,
                                         size_t *size) {
    return tare_op_lent->attr_string(c, name, index, data, size);
}
static inline int tare_op_attr_shape_at(const tare_op_context *c, const char *name, int64_t index,
                                        const tare_op_shape **out) {
    return tare_op_lent->attr_shape(c, name, index, out);
}
static inline int tare_op_attr_tensor_at(tare_op_context *c, const char *name, int64_t index,
                                         const tare_op_tensor **out) {
    return tare_op_lent->attr_tensor(c, name, index, out);
}
static inline int tare_op_attr_func_at(const tare_op_context *c, const char *name, int64_t index, const char **out) {
    return tare_op_lent->attr_func(c, name, index, out);
}

/* ---- tensors: dense, row-major ---- */

static inline int tare_op_dtype(const tare_op_tensor *tensor) {
    return tare_op_lent->tensor_dtype(tensor);
}
static inline int tare_op_rank(const tare_op_tensor *tensor) {
    return tare_op_lent->tensor_rank(tensor);
}
/* Negative axes count from the end; 0 for an axis out of range. */
static inline int64_t tare_op_dim(const tare_op_tensor *tensor, int axis) {
    return tare_op_lent->tensor_dim(tensor, axis);
}
static inline const int64_t *tare_op_dims(const tare_op_tensor *tensor) {
    return tare_op_lent->tensor_dims(tensor);
}
static inline int64_t tare_op_elements(const tare_op_tensor *tensor) {
    return tare_op_lent->tensor_elements(tensor);
}
/* The elements; half and bfloat16 as uint16_t bits, bool as uint8_t. NULL for strings and handles. */
static inline const void *tare_op_data(const tare_op_tensor *tensor) {
    return tare_op_lent->tensor_data(tensor);
}
/* Only for a tensor from tare_op_output or tare_op_assign. */
static inline void *tare_op_mutable_data(tare_op_tensor *tensor) {
    return tare_op_lent->tensor_mutable_data(tensor);
}
/* TARE_OP_DATA(float, tensor)[i] */
#define TARE_OP_DATA(type, tensor) ((const type *)tare_op_data(tensor))
#define TARE_OP_MUTABLE_DATA(type, tensor) ((type *)tare_op_mutable_data(tensor))
/* Element i of a string tensor: not NUL-terminated. NULL if the dtype is not string or i is out of range. */
static inline const char *tare_op_string(const tare_op_tensor *tensor, int64_t i, size_t *size) {
    return tare_op_lent->tensor_string(tensor, i, size);
}
/* The bytes are copied. */
static inline int tare_op_set_string(tare_op_tensor *tensor, int64_t i, const void *data, size_t size) {
    return tare_op_lent->tensor_set_string(tensor, i, data, size);
}
static inline float tare_op_float_from_half(uint16_t bits) {
    return tare_op_lent->float_from_half(bits);
}
static inline uint16_t tare_op_half_from_float(float value) {
    return tare_op_lent->half_from_float(value);
}
static inline float tare_op_float_from_bfloat16(uint16_t bits) {
    return tare_op_lent->float_from_bfloat16(bits);
}
static inline uint16_t tare_op_bfloat16_from_float(float value) {
    return tare_op_lent->bfloat16_from_float(value);
}

/* ---- in a kernel's run ---- */

/* Input i, of its registered dtype. For a Ref(…) input: the variable's value, or NULL (with the error message set) if
 * it is not initialised. NULL if i is out of range. */
static inline const tare_op_tensor *tare_op_input(tare_op_context *c, size_t i) {
    return tare_op_lent->input(c, i);
}
/* Allocates output i, of its registered dtype. Numeric elements are not initialised; strings are empty. */
static inline int tare_op_output(tare_op_context *c, size_t i, int rank, const int64_t *dims, tare_op_tensor **out) {
    return tare_op_lent->output(c, i, rank, dims, out);
}
/* Allocates output i with the shape of `like`. */
static inline int tare_op_output_like(tare_op_context *c, size_t i, const tare_op_tensor *like, tare_op_tensor **out) {
    return tare_op_lent->output(c, i, tare_op_rank(like), tare_op_dims(like), out);
}
/* Forwards input `input` to output `output` without a copy. A Ref(…) input forwards its reference to a Ref(…) output.
 */
static inline int tare_op_forward(tare_op_context *c, size_t output, size_t input) {
    return tare_op_lent->forward(c, output, input, TARE_OP_UNKNOWN, NULL);
}
/* The same with another shape and the same number of elements. */
static inline int tare_op_forward_as(tare_op_context *c, size_t output, size_t input, int rank, const int64_t *dims) {
    return tare_op_lent->forward(c, output, input, rank, dims);
}
/* Sets output `output` to `tensor` without a copy: an input, an attribute's value or the result of a call. */
static inline int tare_op_share(tare_op_context *c, size_t output, const tare_op_tensor *tensor) {
    return tare_op_lent->share(c, output, tensor);
}
/* Calls the function named by attribute `attr` of type func, with all its arguments. The results are valid until the
 * run ends. */
static inline int tare_op_call(tare_op_context *c, const char *attr, const tare_op_tensor *const *args, size_t n_args,
                               const tare_op_tensor **results, size_t n_results) {
    return tare_op_lent->call(c, attr, -1, args, n_args, results, n_results);
}
/* Entry `index` of an attribute of type list(func). */
static inline int tare_op_call_at(tare_op_context *c, const char *attr, int64_t index,
                                  const tare_op_tensor *const *args, size_t n_args, const tare_op_tensor **results,
                                  size_t n_results) {
    return tare_op_lent->call(c, attr, index, args, n_args, results, n_results);
}
/* Allocates the next value of the variable that a Ref(…) input refers to. The assignment takes effect when the kernel
 * returns 0. */
static inline int tare_op_assign(tare_op_context *c, size_t input, int rank, const int64_t *dims,
                                 tare_op_tensor **out) {
    return tare_op_lent->assign(c, input, rank, dims, out);
}
/* The state set by create; NULL without create. */
static inline void *tare_op_state(const tare_op_context *c) {
    return tare_op_lent->state(c);
}
/* Allocates memory that is freed when the run ends; NULL (with the error message set) if out of memory. */
static inline void *tare_op_scratch(tare_op_context *c, size_t size) {
    return tare_op_lent->scratch(c, size);
}
/* Calls fn for 0 … count-1 in ranges of `chunk` items (the last may be shorter), on the session's intra-op threads. The
 * ranges do not depend on the number of threads, so neither does the result. fn may call tare_op_fail and the functions
 * on tensors, but no function that takes the context. If several ranges fail, the error of the first one is returned.
 */
static inline int tare_op_parallel_for(tare_op_context *c, int64_t count, int64_t chunk, tare_op_range_function fn,
                                       void *arg) {
    return tare_op_lent->parallel_for(c, count, chunk, fn, arg);
}

/* ---- in a shape function ---- */

/* Shapes may be partial: unknown dims and ranks are TARE_OP_UNKNOWN, and results are inferred from what is known.
 * Incompatible shapes are an error. */
static inline const tare_op_shape *tare_op_input_shape(tare_op_context *c, size_t i) {
    return tare_op_lent->input_shape(c, i);
}
/* The value of a constant input, otherwise NULL. */
static inline const tare_op_tensor *tare_op_input_value(tare_op_context *c, size_t i) {
    return tare_op_lent->input_value(c, i);
}
/* The shape whose dims are the elements of input i, an int32 or int64 vector, as far as its value is known. */
static inline int tare_op_shape_from_input(tare_op_context *c, size_t i, const tare_op_shape **out) {
    return tare_op_lent->shape_from_input(c, i, out);
}
static inline int tare_op_set_output_shape(tare_op_context *c, size_t i, const tare_op_shape *shape) {
    return tare_op_lent->set_output_shape(c, i, shape);
}
static inline int tare_op_shape_rank(const tare_op_shape *shape) {
    return tare_op_lent->shape_rank(shape);
}
/* Negative axes count from the end. */
static inline int64_t tare_op_shape_dim(const tare_op_shape *shape, int axis) {
    return tare_op_lent->shape_dim(shape, axis);
}
/* dims NULL: all dims are unknown. */
static inline int tare_op_make_shape(tare_op_context *c, int rank, const int64_t *dims, const tare_op_shape **out) {
    return tare_op_lent->make_shape(c, rank, dims, out);
}
static inline int tare_op_make_scalar(tare_op_context *c, const tare_op_shape **out) {
    return tare_op_lent->make_shape(c, 0, NULL, out);
}
static inline int tare_op_make_vector(tare_op_context *c, int64_t size, const tare_op_shape **out) {
    return tare_op_lent->make_shape(c, 1, &size, out);
}
static inline int tare_op_make_matrix(tare_op_context *c, int64_t rows, int64_t columns, const tare_op_shape **out) {
    int64_t dims[2];
    dims[0] = rows;
    dims[1] = columns;
    return tare_op_lent->make_shape(c, 2, dims, out);
}
/* The shape with its rank set to `rank`; an error if it has another rank. */
static inline int tare_op_with_rank(tare_op_context *c, const tare_op_shape *shape, int rank,
                                    const tare_op_shape **out) {
    return tare_op_lent->with_rank(c, shape, rank, rank, out);
}
static inline int tare_op_with_rank_at_least(tare_op_context *c, const tare_op_shape *shape, int rank,
                                             const tare_op_shape **out) {
    return tare_op_lent->with_rank(c, shape, rank, TARE_OP_UNKNOWN, out);
}
static inline int tare_op_with_rank_at_most(tare_op_context *c, const tare_op_shape *shape, int rank,
                                            const tare_op_shape **out) {
    return tare_op_lent->with_rank(c, shape, TARE_OP_UNKNOWN, rank, out);
}
/* The shape with the known dims of both; an error if they are incompatible. */
static inline int tare_op_merge(tare_op_context *c, const tare_op_shape *a, const tare_op_shape *b,
                                const tare_op_shape **out) {
    return tare_op_lent->merge(c, a, b, out);
}
/* The shape of an elementwise result, by NumPy's broadcasting rules. */
static inline int tare_op_broadcast(tare_op_context *c, const tare_op_shape *a, const tare_op_shape *b,
                                    const tare_op_shape **out) {
    return tare_op_lent->broadcast(c, a, b, out);
}
/* Dims first … last-1; negative bounds count from the end; `last` INT32_MAX: to the end. */
static inline int tare_op_subshape(tare_op_context *c, const tare_op_shape *shape, int first, int last,
                                   const tare_op_shape **out) {
    return tare_op_lent->subshape(c, shape, first, last, out);
}
static inline int tare_op_concatenate(tare_op_context *c, const tare_op_shape *a, const tare_op_shape *b,
                                      const tare_op_shape **out) {
    return tare_op_lent->concatenate(c, a, b, out);
}
static inline int tare_op_replace_dim(tare_op_context *c, const tare_op_shape *shape, int axis, int64_t dim,
                                      const tare_op_shape **out) {
    return tare_op_lent->replace_dim(c, shape, axis, dim, out);
}
/* Dims: merge (an error if they differ); require a value; sum, difference, product, quotient. An exact quotient
 * requires a remainder of 0. The result of an unknown dim is unknown, except for products with 0 and similar cases. */
static inline int tare_op_merge_dim(int64_t a, int64_t b, int64_t *out) {
    return tare_op_lent->dim_merge(a, b, out);
}
static inline int tare_op_with_value(int64_t dim, int64_t value, int64_t *out) {
    return tare_op_lent->dim_merge(dim, value, out);
}
static inline int tare_op_add_dims(int64_t a, int64_t b, int64_t *out) {
    return tare_op_lent->dim_arithmetic('+', a, b, out);
}
static inline int tare_op_subtract_dims(int64_t a, int64_t b, int64_t *out) {
    return tare_op_lent->dim_arithmetic('-', a, b, out);
}
static inline int tare_op_multiply_dims(int64_t a, int64_t b, int64_t *out) {
    return tare_op_lent->dim_arithmetic('*', a, b, out);
}
static inline int tare_op_divide_dims(int64_t a, int64_t b, int64_t *out) {
    return tare_op_lent->dim_arithmetic('/', a, b, out);
}
static inline int tare_op_divide_dims_exactly(int64_t a, int64_t b, int64_t *out) {
    return tare_op_lent->dim_arithmetic('%', a, b, out);
}
/* Ready-made shape function: every output has the shape of input 0. */
static inline int tare_op_unchanged_shape(tare_op_context *c) {
    for (size_t i = 0; i < tare_op_output_count(c); i++)
        TARE_OP_TRY(tare_op_set_output_shape(c, i, tare_op_input_shape(c, 0)));
    return 0;
}

#endif /* TARE_OP_HOST_ONLY */

#ifdef __cplusplus
}
#endif

#endif
