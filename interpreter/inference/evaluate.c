/* Running one stateless node on given values. */
#include "interpreter/inference/evaluate.h"
#include "base/control.h"
#include "interpreter/kernel.h"
#include "base/arena.h"

bool tare_node_is_pure(const struct tare_node *node) {
    const struct tare_op *row = node->def ? node->def->row : NULL;
    if (!row || !row->run || node->def->is_stateful) return false;
    if (row->flags & (TARE_OP_STATEFUL | TARE_OP_NO_FOLD | TARE_OP_CONTROL)) return false;
    for (size_t i = 0; i < node->n_outputs; i++) {
        int dtype = node->output_dtypes[i];
        if (tare_dtype_is_ref(dtype) || dtype == TARE_DT_RESOURCE || dtype == TARE_DT_VARIANT) return false;
    }
    return node->n_outputs > 0;
}

tare_status tare_node_evaluate(const struct tare_node *node, const struct tare_tensor *inputs,
                               struct tare_tensor *outputs) {
    struct tare_arena scratch = { 0 };
    const struct tare_op *row = node->def->row;
    struct tare_kernel kernel = { .node = node,
                                  .op = row,
                                  .n_inputs = node->n_inputs,
                                  .inputs = inputs,
                                  .n_outputs = node->n_outputs,
                                  .outputs = outputs,
                                  .scratch = &scratch };
    tare_status status = row->prepare ? row->prepare(&kernel) : TARE_OK;
    if (status == TARE_OK) status = row->run(&kernel);
    if (status == TARE_OK) status = tare_control_check(); /* the kernel may have stopped early */
    if (row->release && kernel.state) row->release(kernel.state);
    if (status != TARE_OK)
        for (size_t i = 0; i < node->n_outputs; i++)
            tare_tensor_reset(&outputs[i]);
    tare_arena_free(&scratch);
    return status;
}
