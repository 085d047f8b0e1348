/* Finding the bin of a number: how many boundaries are not above it. */
#include "graph/ops/families.h"

static tare_status run_bucketize(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const struct tare_attr *boundaries = tare_node_list(kernel->node, "boundaries");
    const size_t n = boundaries ? boundaries->count : 0;
    for (size_t i = 1; i < n; i++) {
        if (boundaries->items[i].f < boundaries->items[i - 1].f)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected sorted boundaries");
    }
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT32, &input->shape));
    for (int64_t i = 0; i < input->elements; i++) {
        const double x = tare_tensor_get_f64(input, i);
        size_t low = 0, high = n; /* boundaries below low are not above x, those from high on are */
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (x < (double)boundaries->items[middle].f)
                high = middle;
            else
                low = middle + 1;
        }
        TARE_DATA(int32_t, &kernel->outputs[0])[i] = (int32_t)low;
    }
    return TARE_OK;
}

const struct tare_op tare_ops_bins[] = {
    { .name = "Bucketize",
      .inputs = "input: T",
      .outputs = "output: int32",
      .attrs = "T: {int32, int64, float, double}; boundaries: list(float)",
      .infer = tare_infer_same,
      .run = run_bucketize,
      .flags = TARE_OP_ELEMENTWISE },
    { 0 },
};
