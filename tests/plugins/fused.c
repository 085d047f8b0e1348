/* The seed's fused op, "my_custom_fused_op", and rewrites of composite functions: by name, by prefix, several for one
 * name, one that declines, and faulty ones that the environment asks for. */
#include <tare/op.h>

#include <stdlib.h>

/* y0 = a + example_option, y1 = b */
static int run_fused(tare_op_context *c) {
    int64_t option;
    const tare_op_tensor *a = tare_op_input(c, 0);
    tare_op_tensor *out;
    TARE_OP_TRY(tare_op_attr_int(c, "example_option", &option));
    TARE_OP_TRY(tare_op_output_like(c, 0, a, &out));
    for (int64_t i = 0; i < tare_op_elements(a); i++)
        TARE_OP_MUTABLE_DATA(float, out)[i] = TARE_OP_DATA(float, a)[i] + (float)option;
    return tare_op_forward(c, 1, 1);
}

/* One op for every implementation "vendor_scale_…": y = x * factor. */
static int scale(tare_op_composite *c) {
    float factor;
    tare_op_value inputs[2], y;
    tare_op_node *node;
    if (tare_op_composite_argument_count(c) != 1) return tare_op_decline(c, "scale expects one argument");
    TARE_OP_TRY(tare_op_composite_attr_float(c, "factor", &factor));
    TARE_OP_TRY(tare_op_composite_argument(c, 0, &inputs[0]));
    TARE_OP_TRY(tare_op_add_constant(c, "factor", TARE_DTYPE_FLOAT, 0, NULL, &factor, &inputs[1]));
    TARE_OP_TRY(tare_op_add_node(c, "Mul", "scaled", inputs, 2, &node));
    TARE_OP_TRY(tare_op_node_output(node, 0, &y));
    return tare_op_set_result(c, 0, y);
}

/* Only for matrices, so that another rewrite gets the rest. */
static int scale_matrix(tare_op_composite *c) {
    tare_op_value x, y;
    tare_op_node *node;
    TARE_OP_TRY(tare_op_composite_argument(c, 0, &x));
    TARE_OP_TRY(tare_op_add_node(c, "Neg", "negated", &x, 1, &node));
    if (tare_op_shape_rank(tare_op_composite_argument_shape(c, 0)) != 2)
        return tare_op_decline(c, "the fast implementation is for matrices");
    TARE_OP_TRY(tare_op_node_output(node, 0, &y));
    return tare_op_set_result(c, 0, y);
}

static int nothing(tare_op_composite *c) {
    (void)c;
    return 0;
}

static int unknown_op(tare_op_composite *c) {
    tare_op_value x;
    tare_op_node *node;
    TARE_OP_TRY(tare_op_composite_argument(c, 0, &x));
    return tare_op_add_node(c, "NoSuchOp", "n", &x, 1, &node);
}

static int verify(tare_op_composite *c) {
    return tare_op_fail("%s has two arguments, not %zu", tare_op_composite_name(c),
                        tare_op_composite_argument_count(c));
}

TARE_OP_LIBRARY(library) {
    tare_op_entry *op = tare_op_add_fused(library, getenv("ASKED_OP") ? getenv("ASKED_OP") : "my_custom_fused_op");
    tare_op_add_attr(op, "example_option: int");
    tare_op_add_input(op, "input_1: float");
    tare_op_add_input(op, "input_2: float");
    tare_op_add_output(op, "output_1: float");
    tare_op_add_output(op, "output_2: float");
    tare_op_add_kernel(op, NULL, run_fused);

    tare_op_add_composite(library, "vendor_scale_*", scale_matrix);
    tare_op_add_composite(library, "vendor_scale_*", scale);
    tare_op_add_composite(library, "other_scale", scale);
    tare_op_add_composite(library, "sets_nothing", nothing);
    tare_op_add_composite(library, "adds_an_unknown_op", unknown_op);
    tare_op_add_composite(library, "verifies_its_interface", verify);
    return 0;
}
