/* Registers what the environment says, so that a test can ask for any fault: ASKED_OP (default Foo), ASKED_ATTR,
 * ASKED_INPUT, ASKED_OUTPUT, ASKED_KERNEL and ASKED_KERNEL2, each one item; ASKED_FAIL: the registration fails with it;
 * ASKED_TWICE: the op is registered twice; ASKED_NOTHING: no op; ASKED_WAIT: the registration does not end. */
#include <tare/op.h>

#include <stdlib.h>
#include <unistd.h>

static int run(tare_op_context *c) {
    return tare_op_forward(c, 0, 0);
}

static void add(tare_op_library *library) {
    const char *name = getenv("ASKED_OP"), *attr = getenv("ASKED_ATTR"), *input = getenv("ASKED_INPUT"),
               *output = getenv("ASKED_OUTPUT"), *kernel = getenv("ASKED_KERNEL"), *kernel2 = getenv("ASKED_KERNEL2");
    tare_op_entry *op = tare_op_add(library, name ? name : "Foo");
    if (attr) tare_op_add_attr(op, attr);
    if (input) tare_op_add_input(op, input);
    if (output) tare_op_add_output(op, output);
    if (kernel) tare_op_add_kernel(op, kernel, run);
    if (kernel2) tare_op_add_kernel(op, kernel2, run);
    if (getenv("ASKED_NULL_KERNEL")) tare_op_add_kernel(op, NULL, NULL);
}

TARE_OP_LIBRARY(library) {
    const char *text = getenv("ASKED_FAIL");
    if (text) return tare_op_fail("%s", text);
    while (getenv("ASKED_WAIT"))
        pause();
    if (getenv("ASKED_NOTHING")) return 0;
    add(library);
    if (getenv("ASKED_TWICE")) add(library);
    return 0;
}
