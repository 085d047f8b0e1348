/* Reading checkpoints from a graph (RestoreV2 and related ops). Writing is not supported: a model that is executed
 * must not write files. */
#include "interpreter/ops/families.h"
#include "interpreter/kernel.h"

#include "proto/bundle.h"

#include <string.h>

static tare_status infer_nothing(struct tare_infer *infer) {
    (void)infer;
    return TARE_OK;
}

static const char *text_at(const struct tare_kernel *kernel, const struct tare_tensor *tensor, int64_t i) {
    const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, tensor)[i];
    return tare_arena_strndup(kernel->scratch, text->data ? text->data : "", text->size);
}

static tare_status check_names(const struct tare_kernel *kernel) {
    if (kernel->inputs[0].elements != 1)
        return TARE_FAIL(TARE_SHAPE, "prefix has %lld elements (expected 1)", (long long)kernel->inputs[0].elements);
    for (int i = 1; i <= 2; i++)
        if (kernel->inputs[i].elements != (int64_t)kernel->n_outputs)
            return TARE_FAIL(TARE_SHAPE, "input %d has %lld elements (expected %zu, one a tensor)", i,
                             (long long)kernel->inputs[i].elements, kernel->n_outputs);
    return TARE_OK;
}

static tare_status restore(struct tare_kernel *kernel, struct tare_bundle *bundle, size_t i) {
    const char *key = text_at(kernel, &kernel->inputs[1], (int64_t)i);
    const char *slice = text_at(kernel, &kernel->inputs[2], (int64_t)i);
    if (!key || !slice) return TARE_NO_MEMORY;
    TARE_TRY(tare_bundle_read_slice(&kernel->outputs[i], bundle, key, slice));
    if (kernel->outputs[i].splat) { /* kernels never receive a compressed tensor */
        struct tare_tensor copy;
        TARE_TRY(tare_tensor_copy(&copy, &kernel->outputs[i]));
        tare_tensor_reset(&kernel->outputs[i]);
        kernel->outputs[i] = copy;
    }
    return TARE_OK;
}

static tare_status run_restore(struct tare_kernel *kernel) {
    struct tare_bundle *bundle;
    tare_status status = TARE_OK;
    const char *prefix;
    TARE_TRY(check_names(kernel));
    prefix = text_at(kernel, &kernel->inputs[0], 0);
    if (!prefix) return TARE_NO_MEMORY;
    TARE_TRY(tare_bundle_open(&bundle, prefix));
    for (size_t i = 0; i < kernel->n_outputs && status == TARE_OK; i++)
        status = restore(kernel, bundle, i);
    tare_bundle_close(bundle);
    return status;
}

static tare_status run_sharded_filename(struct tare_kernel *kernel) {
    struct tare_shape scalar = tare_shape_scalar();
    const char *name, *base;
    for (int i = 0; i < 3; i++)
        if (kernel->inputs[i].elements != 1)
            return TARE_FAIL(TARE_SHAPE, "input %d has %lld elements (expected 1)", i,
                             (long long)kernel->inputs[i].elements);
    base = text_at(kernel, &kernel->inputs[0], 0);
    name = base ? tare_arena_printf(kernel->scratch, "%s-%05d-of-%05d", base,
                                    TARE_CONST_DATA(int32_t, &kernel->inputs[1])[0],
                                    TARE_CONST_DATA(int32_t, &kernel->inputs[2])[0])
                : NULL;
    if (!name) return TARE_NO_MEMORY;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &scalar));
    return tare_tensor_set_string(&kernel->outputs[0], 0, name, strlen(name));
}

const struct tare_op tare_ops_checkpoint[] = {
    { .name = "RestoreV2", .infer = infer_nothing, .run = run_restore, .flags = TARE_OP_STATEFUL },
    { .name = "ShardedFilename", .infer = tare_infer_scalar, .run = run_sharded_filename },
    { 0 },
};
