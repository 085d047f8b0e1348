/* Structural ops: constants, placeholders, identities, assertions and checks, printing. */
#include "interpreter/ops/families.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/string/summary.h"
#include "base/alloc.h"
#include "base/strbuf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static tare_status run_nothing(struct tare_kernel *kernel) {
    (void)kernel;
    return TARE_OK;
}

static tare_status infer_nothing(struct tare_infer *infer) {
    (void)infer;
    return TARE_OK;
}

static tare_status run_forward(struct tare_kernel *kernel) {
    return tare_kernel_forward(kernel, 0, 0);
}

static tare_status run_forward_all(struct tare_kernel *kernel) {
    for (size_t i = 0; i < kernel->n_outputs; i++)
        TARE_TRY(tare_kernel_forward(kernel, i, i));
    return TARE_OK;
}

static tare_status infer_each(struct tare_infer *infer) {
    for (size_t i = 0; i < infer->n_outputs && i < infer->n_inputs; i++)
        infer->outputs[i] = infer->inputs[i];
    return TARE_OK;
}

static tare_status infer_shape_attr(struct tare_infer *infer) {
    tare_node_shape(infer->node, "shape", &infer->outputs[0]);
    return TARE_OK;
}

/* The argument shape that the importer recorded. */
static tare_status infer_arg(struct tare_infer *infer) {
    const struct tare_attr *shapes = tare_node_find_attr(infer->node, "_output_shapes");
    if (shapes && shapes->kind == TARE_ATTR_SHAPE && shapes->count == 1) infer->outputs[0] = *shapes->items[0].shape;
    return TARE_OK;
}

/* ---- constants and placeholders ---- */

static tare_status infer_const(struct tare_infer *infer) {
    const struct tare_tensor *value = tare_node_tensor(infer->node, "value");
    if (value) infer->outputs[0] = value->shape;
    return TARE_OK;
}

static tare_status run_const(struct tare_kernel *kernel) {
    const struct tare_tensor *value = tare_node_tensor(kernel->node, "value");
    if (!value) return TARE_FAIL(TARE_INVALID_ARGUMENT, "a Const without a value");
    if (value->splat) return tare_tensor_copy(&kernel->outputs[0], value);
    tare_tensor_share(&kernel->outputs[0], value);
    return TARE_OK;
}

static tare_status run_placeholder(struct tare_kernel *kernel) {
    char text[TARE_SHAPE_TEXT_SIZE];
    struct tare_shape shape = tare_shape_unknown();
    tare_node_shape(kernel->node, "shape", &shape);
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "no value was fed (expected %s %s)",
                     tare_dtype_name(tare_node_type(kernel->node, "dtype", TARE_DT_INVALID)),
                     tare_shape_text(text, &shape));
}

static tare_status run_arg(struct tare_kernel *kernel) {
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "argument %lld was not passed",
                     (long long)tare_node_int(kernel->node, "index", 0));
}

/* A placeholder value for an output that a branch does not use. Unknown dimensions are 0. */
static tare_status run_fake_param(struct tare_kernel *kernel) {
    int dtype = tare_node_type(kernel->node, "dtype", TARE_DT_INVALID);
    struct tare_shape shape = tare_shape_unknown();
    tare_node_shape(kernel->node, "shape", &shape);
    if (shape.rank < 0) shape = tare_shape_make(1, 0);
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0) shape.dims[i] = 0;
    TARE_TRY(tare_kernel_output(kernel, 0, dtype, &shape));
    if (kernel->outputs[0].elements) memset(kernel->outputs[0].data, 0, tare_tensor_bytes(&kernel->outputs[0]));
    return TARE_OK;
}

/* ---- checks ---- */

static tare_status run_check_numerics(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    bool nan = false, inf = false;
    for (int64_t i = 0; i < input->elements; i++) {
        double x = tare_tensor_get_f64(input, i);
        nan |= isnan(x);
        inf |= isinf(x);
    }
    if (nan || inf)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s : Tensor had %s values",
                         tare_node_string(kernel->node, "message", ""),
                         nan && inf ? "Inf and NaN"
                         : nan      ? "NaN"
                                    : "Inf");
    return tare_kernel_forward(kernel, 0, 0);
}

/* Appends the first elements of each input but the condition or the forwarded one: "[a b c...]". */
static void append_values(struct tare_strbuf *text, const struct tare_kernel *kernel, const char *between) {
    const int64_t most = tare_node_int(kernel->node, "summarize", 3);
    for (size_t i = 1; i < kernel->n_inputs; i++) {
        if (i > 1) tare_strbuf_puts(text, between);
        tare_strbuf_putc(text, '[');
        tare_summarize_first(text, &kernel->inputs[i], most);
        tare_strbuf_putc(text, ']');
    }
}

static tare_status run_assert(struct tare_kernel *kernel) {
    struct tare_strbuf text = { 0 };
    tare_status status = TARE_OK;
    bool holds = true;
    for (int64_t i = 0; i < kernel->inputs[0].elements; i++)
        holds &= TARE_CONST_DATA(bool, &kernel->inputs[0])[i];
    if (holds) return TARE_OK;
    append_values(&text, kernel, " ");
    status = TARE_FAIL(TARE_INVALID_ARGUMENT, "assertion failed: %s", tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return status;
}

/* ---- printing: always to stderr, because stdout belongs to the program's own output. What is printed is in the order
 * of the records, as state is ---- */

enum { PRINTS = TARE_OP_STATEFUL | TARE_OP_WRITES };

struct print_state {
    int64_t printed;
};

static tare_status prepare_print(struct tare_kernel *kernel) {
    kernel->state = tare_calloc(1, sizeof(struct print_state));
    return kernel->state ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status run_print(struct tare_kernel *kernel) {
    struct print_state *state = kernel->state;
    int64_t first = tare_node_int(kernel->node, "first_n", -1);
    struct tare_strbuf text = { 0 };
    if (first < 0 || state->printed < first) {
        state->printed++;
        tare_strbuf_puts(&text, tare_node_string(kernel->node, "message", ""));
        append_values(&text, kernel, "");
        tare_strbuf_putc(&text, '\n');
        tare_strbuf_print(&text, stderr); /* at once: lines of other threads must not be in the middle */
        tare_strbuf_free(&text);
    }
    return tare_kernel_forward(kernel, 0, 0);
}

static tare_status run_print_v2(struct tare_kernel *kernel) {
    const struct tare_str *text = kernel->inputs[0].data;
    if (kernel->inputs[0].elements != 1)
        return TARE_FAIL(TARE_SHAPE, "the text has %lld elements (expected 1)", (long long)kernel->inputs[0].elements);
    struct tare_strbuf line = { 0 };
    tare_strbuf_append(&line, text->data, text->size);
    tare_strbuf_puts(&line, tare_node_string(kernel->node, "end", "\n"));
    tare_strbuf_print(&line, stderr); /* at once, as above */
    const tare_status status = tare_strbuf_status(&line);
    tare_strbuf_free(&line);
    return status;
}

/* Returns the index of the first device kind named CPU, or the number of kinds if there is none. Keras inserts this
 * op before a Case over implementations. */
static tare_status run_device_index(struct tare_kernel *kernel) {
    const struct tare_attr *names = tare_node_list(kernel->node, "device_names");
    const int32_t count = names ? (int32_t)names->count : 0;
    int32_t index = 0;
    while (index < count && (names->items[index].s.size != 3 || memcmp(names->items[index].s.data, "CPU", 3) != 0))
        index++;
    return tare_tensor_scalar_i32(&kernel->outputs[0], index);
}

#define IDENTITY(op) IDENTITY_WITH(op, 0)
#define IDENTITY_WITH(op, more)                                                                                        \
    {                                                                                                                  \
        .name = op, .infer = tare_infer_same, .run = run_forward,                                                      \
        .flags = TARE_OP_ELEMENTWISE | TARE_OP_MOVE | (more), .quant = TARE_QUANT_PASS_THROUGH                         \
    }
#define NUMERICS(op)                                                                                                   \
    { .name = op, .infer = tare_infer_same, .run = run_check_numerics, .flags = TARE_OP_STATEFUL }

const struct tare_op tare_ops_structure[] = {
    { .name = "Const", .infer = infer_const, .run = run_const },
    { .name = "Placeholder",
      .infer = infer_shape_attr,
      .run = run_placeholder,
      .flags = TARE_OP_NO_FOLD | TARE_OP_FLOAT32 },
    { .name = "PlaceholderV2",
      .infer = infer_shape_attr,
      .run = run_placeholder,
      .flags = TARE_OP_NO_FOLD | TARE_OP_FLOAT32 },
    { .name = "PlaceholderWithDefault",
      .infer = infer_shape_attr,
      .run = run_forward,
      .flags = TARE_OP_NO_FOLD | TARE_OP_FLOAT32 },
    { .name = "_Arg", .infer = infer_arg, .run = run_arg, .flags = TARE_OP_STATEFUL | TARE_OP_NO_FOLD },
    { .name = "_Retval", .infer = infer_nothing, .run = run_nothing, .flags = TARE_OP_STATEFUL },
    IDENTITY("Identity"),
    IDENTITY("StopGradient"),
    IDENTITY("Snapshot"),
    IDENTITY("GuaranteeConst"),
    IDENTITY("PreventGradient"),
    IDENTITY("DebugGradientIdentity"),
    IDENTITY("DebugIdentity"),
    IDENTITY_WITH("DebugIdentityV2", TARE_OP_STATEFUL),
    IDENTITY_WITH("DebugIdentityV3", TARE_OP_STATEFUL),
    IDENTITY("Copy"),
    IDENTITY("CopyHost"),
    { .name = "DeviceIndex", .infer = tare_infer_scalar, .run = run_device_index },
    { .name = "IdentityN", .infer = infer_each, .run = run_forward_all, .flags = TARE_OP_MOVE },
    { .name = "NoOp", .infer = infer_nothing, .run = run_nothing, .flags = TARE_OP_FIXED },
    { .name = "ControlTrigger", .infer = infer_nothing, .run = run_nothing },
    { .name = "FakeParam", .infer = infer_shape_attr, .run = run_fake_param, .flags = TARE_OP_NO_FOLD },
    NUMERICS("CheckNumerics"),
    NUMERICS("CheckNumericsV2"),
    { .name = "Assert", .infer = infer_nothing, .run = run_assert, .flags = TARE_OP_STATEFUL },
    { .name = "Print",
      .infer = tare_infer_same,
      .prepare = prepare_print,
      .run = run_print,
      .release = tare_free,
      .flags = PRINTS },
    { .name = "PrintV2", .infer = infer_nothing, .run = run_print_v2, .flags = PRINTS },
    { 0 },
};
