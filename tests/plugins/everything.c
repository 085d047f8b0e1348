/* Ops that use every part of the public header, for tests/unit/graph/plugin_*_test.c. */
#include <tare/op.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ZeroOut: dtypes, attributes, checks, a state ---- */

struct zero_out {
    int64_t preserve;
};

TARE_OP_EXPORT int64_t everything_states; /* made and not ended yet */

static int zero_out_create(tare_op_context *c, void **state) {
    struct zero_out *made = malloc(sizeof *made);
    TARE_OP_REQUIRE(made, "no memory");
    if (tare_op_attr_int(c, "preserve_index", &made->preserve) != 0) {
        free(made);
        return 1;
    }
    if (made->preserve < 0) {
        int64_t got = made->preserve;
        free(made);
        return tare_op_fail("Need preserve_index >= 0, got %" PRId64, got);
    }
    everything_states++;
    *state = made;
    return 0;
}

static void zero_out_destroy(void *state) {
    everything_states--;
    free(state);
}

#define ZERO_OUT(type, suffix)                                                                                         \
    static int zero_out_##suffix(tare_op_context *c) {                                                                 \
        const struct zero_out *own = (const struct zero_out *)tare_op_state(c);                                        \
        const tare_op_tensor *input = tare_op_input(c, 0);                                                             \
        tare_op_tensor *output;                                                                                        \
        int64_t count = tare_op_elements(input);                                                                       \
        TARE_OP_REQUIRE(own->preserve < count, "preserve_index out of range");                                         \
        TARE_OP_TRY(tare_op_output_like(c, 0, input, &output));                                                        \
        for (int64_t i = 0; i < count; i++)                                                                            \
            TARE_OP_MUTABLE_DATA(type, output)[i] = 0;                                                                 \
        TARE_OP_MUTABLE_DATA(type, output)[own->preserve] = TARE_OP_DATA(type, input)[own->preserve];                  \
        return 0;                                                                                                      \
    }
ZERO_OUT(float, float)
ZERO_OUT(int32_t, int32)

/* ---- Describe: attributes of every kind as a text ---- */

static int describe(tare_op_context *c) {
    char text[1024], *at = text;
    const char *s, *fn;
    size_t size, first, count;
    int64_t i, length;
    float f;
    int b, ty;
    const tare_op_shape *sh;
    const tare_op_tensor *te;
    tare_op_tensor *out;
    TARE_OP_TRY(tare_op_attr_string(c, "s", &s, &size));
    TARE_OP_TRY(tare_op_attr_int(c, "i", &i));
    TARE_OP_TRY(tare_op_attr_float(c, "f", &f));
    TARE_OP_TRY(tare_op_attr_bool(c, "b", &b));
    TARE_OP_TRY(tare_op_attr_type(c, "ty", &ty));
    TARE_OP_TRY(tare_op_attr_shape(c, "sh", &sh));
    TARE_OP_TRY(tare_op_attr_tensor(c, "te", &te));
    TARE_OP_TRY(tare_op_attr_func(c, "fn", &fn));
    at += sprintf(at, "%s %zu %" PRId64 " %g %d %d [%" PRId64 " %" PRId64 "] %d:%d %s", s, size, i, (double)f, b, ty,
                  tare_op_shape_dim(sh, 0), tare_op_shape_dim(sh, -1), tare_op_dtype(te), TARE_OP_DATA(int32_t, te)[0],
                  fn);
    TARE_OP_TRY(tare_op_attr_length(c, "ints", &length));
    for (int64_t k = 0; k < length; k++) {
        TARE_OP_TRY(tare_op_attr_int_at(c, "ints", k, &i));
        at += sprintf(at, " %" PRId64, i);
    }
    TARE_OP_TRY(tare_op_attr_string_at(c, "strings", 1, &s, &size));
    TARE_OP_TRY(tare_op_input_range(c, "in", &first, &count));
    at += sprintf(at, " %s in=%zu+%zu %s", s, first, count, tare_op_node_name(c));
    TARE_OP_TRY(tare_op_output(c, 0, 0, NULL, &out));
    return tare_op_set_string(out, 0, text, (size_t)(at - text));
}

/* Asks for an attribute in the way that `how` says. */
static int ask(tare_op_context *c) {
    const char *how;
    size_t size;
    int64_t i;
    float f;
    TARE_OP_TRY(tare_op_attr_string(c, "how", &how, &size));
    if (strcmp(how, "unknown") == 0) return tare_op_attr_int(c, "nothing", &i);
    if (strcmp(how, "kind") == 0) return tare_op_attr_float(c, "ints", &f);
    if (strcmp(how, "entry") == 0) return tare_op_attr_int_at(c, "ints", 2, &i);
    if (strcmp(how, "length") == 0) return tare_op_attr_length(c, "how", &i);
    if (strcmp(how, "input") == 0) return tare_op_input(c, 1) ? 0 : 1;
    if (strcmp(how, "twice") == 0) {
        TARE_OP_TRY(tare_op_forward(c, 0, 0));
        return tare_op_forward(c, 0, 0);
    }
    if (strcmp(how, "silent") == 0) return 77;
    if (strcmp(how, "nothing") == 0) return 0;
    return tare_op_forward(c, 0, 0);
}

/* ---- lists of tensors ---- */

static int sum_all(tare_op_context *c) { /* N * T */
    tare_op_tensor *out;
    const tare_op_tensor *first = tare_op_input(c, 0);
    TARE_OP_TRY(tare_op_output_like(c, 0, first, &out));
    for (int64_t i = 0; i < tare_op_elements(first); i++) {
        float sum = 0;
        for (size_t k = 0; k < tare_op_input_count(c); k++) {
            const tare_op_tensor *in = tare_op_input(c, k);
            TARE_OP_REQUIRE(tare_op_elements(in) == tare_op_elements(first), "input %zu has %" PRId64 " elements", k,
                            tare_op_elements(in));
            sum += TARE_OP_DATA(float, in)[i];
        }
        TARE_OP_MUTABLE_DATA(float, out)[i] = sum;
    }
    return 0;
}

static int sum_all_shape(tare_op_context *c) {
    const tare_op_shape *out = NULL, *in;
    for (size_t i = 0; i < tare_op_input_count(c); i++) {
        TARE_OP_TRY(tare_op_with_rank(c, tare_op_input_shape(c, i), 2, &in));
        TARE_OP_TRY(tare_op_merge(c, out, in, &out));
    }
    return tare_op_set_output_shape(c, 0, out);
}

static int reverse_parts(tare_op_context *c) { /* list(type) in, list(type) out */
    size_t first, count;
    TARE_OP_TRY(tare_op_output_range(c, "out", &first, &count));
    for (size_t i = 0; i < count; i++)
        TARE_OP_TRY(tare_op_forward(c, first + i, count - 1 - i));
    return 0;
}

/* ---- threads ---- */

struct squares {
    const float *in;
    float *out;
    int64_t fail_at;
};

static int square_range(void *arg, int64_t first, int64_t last) {
    const struct squares *work = (const struct squares *)arg;
    if (work->fail_at >= first && work->fail_at >= 0) return tare_op_fail("range %" PRId64 " to %" PRId64, first, last);
    for (int64_t i = first; i < last; i++)
        work->out[i] = work->in[i] * work->in[i];
    return 0;
}

static int square(tare_op_context *c) {
    const tare_op_tensor *in = tare_op_input(c, 0);
    tare_op_tensor *out;
    struct squares work;
    int64_t chunk;
    TARE_OP_TRY(tare_op_attr_int(c, "chunk", &chunk));
    TARE_OP_TRY(tare_op_attr_int(c, "fail_at", &work.fail_at));
    TARE_OP_TRY(tare_op_output_like(c, 0, in, &out));
    work.in = TARE_OP_DATA(float, in);
    work.out = TARE_OP_MUTABLE_DATA(float, out);
    return tare_op_parallel_for(c, tare_op_elements(in), chunk, square_range, &work);
}

/* Ends only when two ranges run at the same time. */
static int meet_range(void *arg, int64_t first, int64_t last) {
    int *here = (int *)arg;
    (void)first;
    (void)last;
    __atomic_add_fetch(here, 1, __ATOMIC_SEQ_CST);
    for (int64_t spins = 0; __atomic_load_n(here, __ATOMIC_SEQ_CST) < 2; spins++)
        if (spins > 4000000000) return tare_op_fail("nobody else came");
    return 0;
}

static int meet(tare_op_context *c) {
    int here = 0;
    TARE_OP_TRY(tare_op_parallel_for(c, 2, 1, meet_range, &here));
    return tare_op_forward(c, 0, 0);
}

/* ---- Ref ---- */

static int bump(tare_op_context *c) {
    const tare_op_tensor *value = tare_op_input(c, 0);
    tare_op_tensor *next;
    if (!value) return 1; /* the text says why */
    TARE_OP_TRY(tare_op_assign(c, 0, tare_op_rank(value), tare_op_dims(value), &next));
    for (int64_t i = 0; i < tare_op_elements(value); i++)
        TARE_OP_MUTABLE_DATA(float, next)[i] = TARE_OP_DATA(float, value)[i] + 1;
    return tare_op_forward(c, 0, 0);
}

/* ---- functions ---- */

static int apply(tare_op_context *c) {
    const tare_op_tensor *args[2], *results[1];
    int64_t times;
    TARE_OP_TRY(tare_op_attr_int(c, "times", &times));
    args[0] = tare_op_input(c, 0);
    args[1] = args[0];
    for (int64_t i = 0; i < times; i++) {
        TARE_OP_TRY(tare_op_call(c, "f", args, 2, results, 1));
        args[0] = results[0];
    }
    return tare_op_share(c, 0, args[0]);
}

/* ---- half and bfloat16, strings, forwarding under another shape ---- */

static int twice_half(tare_op_context *c) {
    const tare_op_tensor *in = tare_op_input(c, 0);
    tare_op_tensor *out;
    TARE_OP_TRY(tare_op_output_like(c, 0, in, &out));
    for (int64_t i = 0; i < tare_op_elements(in); i++)
        TARE_OP_MUTABLE_DATA(uint16_t, out)
    [i] = tare_op_half_from_float(2 * tare_op_float_from_half(TARE_OP_DATA(uint16_t, in)[i]));
    return 0;
}

static int twice_bfloat16(tare_op_context *c) {
    const tare_op_tensor *in = tare_op_input(c, 0);
    tare_op_tensor *out;
    TARE_OP_TRY(tare_op_output_like(c, 0, in, &out));
    for (int64_t i = 0; i < tare_op_elements(in); i++)
        TARE_OP_MUTABLE_DATA(uint16_t, out)
    [i] = tare_op_bfloat16_from_float(2 * tare_op_float_from_bfloat16(TARE_OP_DATA(uint16_t, in)[i]));
    return 0;
}

static int shout(tare_op_context *c) {
    const tare_op_tensor *in = tare_op_input(c, 0);
    tare_op_tensor *out;
    TARE_OP_TRY(tare_op_output_like(c, 0, in, &out));
    for (int64_t i = 0; i < tare_op_elements(in); i++) {
        size_t size;
        const char *text = tare_op_string(in, i, &size);
        char *louder = (char *)tare_op_scratch(c, size + 1);
        TARE_OP_REQUIRE(louder && text, "no memory");
        memcpy(louder, text, size);
        louder[size] = '!';
        TARE_OP_TRY(tare_op_set_string(out, i, louder, size + 1));
    }
    return 0;
}

static int flatten(tare_op_context *c) {
    int64_t elements = tare_op_elements(tare_op_input(c, 0));
    return tare_op_forward_as(c, 0, 0, 1, &elements);
}

/* ---- shape functions ---- */

static int shapes(tare_op_context *c) {
    const tare_op_shape *a = tare_op_input_shape(c, 0), *b = tare_op_input_shape(c, 1), *out = NULL;
    const char *how;
    size_t size;
    int64_t dim;
    TARE_OP_TRY(tare_op_attr_string(c, "how", &how, &size));
#define IS(text) (strcmp(how, text) == 0)
    if (IS("same")) return tare_op_unchanged_shape(c);
    if (IS("with_rank")) TARE_OP_TRY(tare_op_with_rank(c, a, 2, &out));
    if (IS("at_least")) TARE_OP_TRY(tare_op_with_rank_at_least(c, a, 2, &out));
    if (IS("at_most")) TARE_OP_TRY(tare_op_with_rank_at_most(c, a, 2, &out));
    if (IS("merge")) TARE_OP_TRY(tare_op_merge(c, a, b, &out));
    if (IS("broadcast")) TARE_OP_TRY(tare_op_broadcast(c, a, b, &out));
    if (IS("concatenate")) TARE_OP_TRY(tare_op_concatenate(c, a, b, &out));
    if (IS("subshape")) TARE_OP_TRY(tare_op_subshape(c, a, 1, -1, &out));
    if (IS("tail")) TARE_OP_TRY(tare_op_subshape(c, a, -2, INT32_MAX, &out));
    if (IS("replace")) TARE_OP_TRY(tare_op_replace_dim(c, a, -1, 7, &out));
    if (IS("from_input")) TARE_OP_TRY(tare_op_shape_from_input(c, 1, &out));
    if (IS("scalar")) TARE_OP_TRY(tare_op_make_scalar(c, &out));
    if (IS("rank_only")) TARE_OP_TRY(tare_op_make_shape(c, 3, NULL, &out));
    if (IS("matrix")) TARE_OP_TRY(tare_op_make_matrix(c, tare_op_shape_dim(a, 0), 3, &out));
    if (IS("value")) {
        const tare_op_tensor *value = tare_op_input_value(c, 1);
        TARE_OP_TRY(tare_op_make_vector(c, value ? TARE_OP_DATA(int32_t, value)[0] : TARE_OP_UNKNOWN, &out));
    }
    if (strncmp(how, "dim_", 4) == 0) {
        int64_t x = tare_op_shape_dim(a, 0), y = tare_op_shape_dim(b, 0);
        if (IS("dim_add")) TARE_OP_TRY(tare_op_add_dims(x, y, &dim));
        if (IS("dim_subtract")) TARE_OP_TRY(tare_op_subtract_dims(x, y, &dim));
        if (IS("dim_multiply")) TARE_OP_TRY(tare_op_multiply_dims(x, y, &dim));
        if (IS("dim_divide")) TARE_OP_TRY(tare_op_divide_dims(x, y, &dim));
        if (IS("dim_exactly")) TARE_OP_TRY(tare_op_divide_dims_exactly(x, y, &dim));
        if (IS("dim_merge")) TARE_OP_TRY(tare_op_merge_dim(x, y, &dim));
        if (IS("dim_value")) TARE_OP_TRY(tare_op_with_value(x, 4, &dim));
        TARE_OP_TRY(tare_op_make_vector(c, dim, &out));
    }
#undef IS
    return tare_op_set_output_shape(c, 0, out);
}

/* ---- registration ---- */

static tare_op_entry *add(tare_op_library *library, const char *name, const char *input, const char *output) {
    tare_op_entry *op = tare_op_add(library, name);
    tare_op_add_input(op, input);
    tare_op_add_output(op, output);
    return op;
}

static void add_zero_out(tare_op_library *library) {
    tare_op_entry *op = add(library, "ZeroOut", "to_zero: T", "zeroed: T");
    tare_op_add_attr(op, "T: {float, double, int32} = DT_INT32");
    tare_op_add_attr(op, "preserve_index: int = 0");
    tare_op_set_shape_function(op, tare_op_unchanged_shape);
    tare_op_set_doc(op, "Keeps one element and zeroes the others.");
    tare_op_add_kernel_with_state(op, "T: float", zero_out_create, zero_out_float, zero_out_destroy);
    tare_op_add_kernel_with_state(op, "T: int32", zero_out_create, zero_out_int32, zero_out_destroy);
}

static void add_describe(tare_op_library *library) {
    tare_op_entry *op = tare_op_add(library, "Describe");
    tare_op_add_attr(op, "s: string = 'foo'");
    tare_op_add_attr(op, "i: int >= -3 = 0");
    tare_op_add_attr(op, "f: float = 1.0");
    tare_op_add_attr(op, "b: bool = true");
    tare_op_add_attr(op, "ty: type = DT_INT32");
    tare_op_add_attr(op, "sh: shape = { dim { size: 1 } dim { size: 2 } }");
    tare_op_add_attr(op, "te: tensor = { dtype: DT_INT32 int_val: 5 }");
    tare_op_add_attr(op, "fn: func = { name: 'f' }");
    tare_op_add_attr(op, "ints: list(int) = [2, 3, 5, 7]");
    tare_op_add_attr(op, "strings: list({'a', 'b'}) >= 2 = ['a', 'b']");
    tare_op_add_attr(op, "N: int >= 0");
    tare_op_add_input(op, "in: N * float");
    tare_op_add_output(op, "out: string");
    tare_op_add_kernel(op, NULL, describe);
    op = add(library, "Ask", "in: float", "out: float");
    tare_op_add_attr(op, "how: string");
    tare_op_add_attr(op, "ints: list(int) = [1, 2]");
    tare_op_add_kernel(op, "", ask);
}

static void add_lists(tare_op_library *library) {
    tare_op_entry *op = add(library, "SumAll", "in: N * T", "out: T");
    tare_op_add_attr(op, "N: int >= 2");
    tare_op_add_attr(op, "T: realnumbertype");
    tare_op_set_shape_function(op, sum_all_shape);
    tare_op_add_kernel(op, "T: float", sum_all);
    op = add(library, "ReverseParts", "in: Tin", "out: Tout");
    tare_op_add_attr(op, "Tin: list({float, int32, string})");
    tare_op_add_attr(op, "Tout: list({float, int32, string})");
    tare_op_add_kernel(op, NULL, reverse_parts);
    op = add(library, "OnlyFloats", "in: Tin", "out: Tin");
    tare_op_add_attr(op, "Tin: list({float, int32})");
    tare_op_add_kernel(op, "Tin: float", reverse_parts);
}

TARE_OP_LIBRARY(library) {
    tare_op_entry *op;
    add_zero_out(library);
    add_describe(library);
    add_lists(library);
    op = add(library, "SquareInRanges", "in: float", "out: float");
    tare_op_add_attr(op, "chunk: int = 1000");
    tare_op_add_attr(op, "fail_at: int = -1");
    tare_op_add_kernel(op, NULL, square);
    tare_op_add_kernel(add(library, "Meet", "in: float", "out: float"), NULL, meet);
    op = add(library, "Bump", "ref: Ref(float)", "out: Ref(float)");
    tare_op_set_properties(op, TARE_OP_IS_STATEFUL);
    tare_op_add_kernel(op, NULL, bump);
    op = add(library, "Apply", "in: float", "out: float");
    tare_op_add_attr(op, "f: func");
    tare_op_add_attr(op, "times: int = 2");
    tare_op_add_kernel(op, NULL, apply);
    op = add(library, "Twice", "in: T", "out: T");
    tare_op_add_attr(op, "T: {half, bfloat16}");
    tare_op_set_properties(op, TARE_OP_IS_ELEMENTWISE);
    tare_op_add_kernel(op, "T: half", twice_half);
    tare_op_add_kernel(op, " T : bfloat16 ", twice_bfloat16);
    tare_op_add_kernel(add(library, "Shout", "in: string", "out: string"), NULL, shout);
    tare_op_add_kernel(add(library, "Flatten", "in: float", "out: float"), NULL, flatten);
    op = add(library, "Shapes", "a: float", "out: float");
    tare_op_add_input(op, "b: int32");
    tare_op_add_attr(op, "how: string");
    tare_op_set_shape_function(op, shapes);
    add(library, "OnlyDefined", "in: float", "out: float");
    return 0;
}
