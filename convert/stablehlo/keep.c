/* The op has an XLA kernel, so a module may be a part of a TPU function
 * (tensorflow/compiler/tf2xla/kernels/xla_call_module_op.cc): the loader refuses versions below 4, and platforms
 * without "TPU" unless that check is disabled; the compiler has no LAPACK. */
#include "convert/stablehlo/keep.h"
#include "convert/stablehlo/module.h"

#include <string.h>

enum { OLDEST_CONVENTION = 4, NEWEST_CONVENTION = 10 };

static bool has_string(const struct tare_node *node, const char *name, const char *text) {
    const struct tare_attr *list = tare_node_list(node, name);
    for (size_t i = 0; list && list->kind == TARE_ATTR_STRING && i < list->count; i++)
        if (strcmp(list->items[i].s.data, text) == 0) return true;
    return false;
}

/* The first custom call that only a CPU has; NULL if there is none. */
static const char *cpu_call(const struct tare_shlo_block *block) {
    for (size_t i = 0; i < block->n_ops; i++) {
        const struct tare_shlo_op *op = &block->ops[i];
        const struct tare_shlo_attr *target =
            tare_shlo_op_is(op, "custom_call") ? tare_shlo_op_attr(op, "call_target_name") : NULL;
        if (target && target->kind == TARE_SHLO_ATTR_STRING &&
            (strncmp(target->text.data, "lapack_", 7) == 0 || strncmp(target->text.data, "blas_", 5) == 0))
            return target->text.data;
        for (size_t k = 0; k < op->n_regions; k++) {
            const char *found = cpu_call(&op->regions[k]);
            if (found) return found;
        }
    }
    return NULL;
}

static tare_status check_module(const struct tare_node *node) {
    const struct tare_attr *attr = tare_node_find_attr(node, "module");
    struct tare_shlo_module *module;
    tare_status status = TARE_OK;
    if (!attr || attr->is_list || attr->kind != TARE_ATTR_STRING)
        return TARE_FAIL(TARE_CORRUPT, "attribute 'module' is missing");
    TARE_TRY(tare_shlo_read(&module, (const uint8_t *)attr->items[0].s.data, attr->items[0].s.size));
    const char *call = cpu_call(&module->root->regions[0]);
    if (call) status = TARE_FAIL(TARE_UNSUPPORTED, "a TPU has no custom call '%s'", call);
    tare_shlo_free(module);
    return status;
}

static tare_status check_node(const struct tare_node *node) {
    const int64_t version = tare_node_int(node, "version", 0);
    const struct tare_attr *platforms = tare_node_list(node, "platforms");
    if (version < OLDEST_CONVENTION || version > NEWEST_CONVENTION)
        return TARE_FAIL(TARE_UNSUPPORTED, "calling convention %lld (expected %d to %d)", (long long)version,
                         OLDEST_CONVENTION, NEWEST_CONVENTION);
    if (platforms && platforms->count && !has_string(node, "platforms", "TPU") &&
        !has_string(node, "disabled_checks", "platform"))
        return TARE_FAIL(TARE_UNSUPPORTED, "the module was not exported for TPU (export it with platforms=(\"tpu\",))");
    return check_module(node);
}

static tare_status check_graph(const struct tare_graph *graph, size_t *count) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (!tare_node_is(graph->nodes[i], "XlaCallModule")) continue;
        ++*count;
        TARE_TRY(tare_error_prefix(check_node(graph->nodes[i]), "%s", graph->nodes[i]->name));
    }
    return TARE_OK;
}

tare_status tare_shlo_check_keeping(const struct tare_converter_options *options) {
    const char *refused = options->has_quantization    ? "quantization"
                          : options->requests_bfloat16 ? "bfloat16_optimization"
                          : options->has_sharding      ? "xla_sharding_options"
                                                       : NULL;
    if (!refused) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s changes the module (omit --keep-module, which keeps it)", refused);
}

tare_status tare_shlo_check_kept(const struct tare_graph_model *model) {
    size_t count = 0;
    TARE_TRY(check_graph(model->main, &count));
    for (size_t i = 0; i < model->n_functions; i++)
        TARE_TRY(check_graph(model->functions[i], &count));
    return count ? TARE_OK
                 : TARE_FAIL(TARE_NOT_FOUND, "%s: the model has no XlaCallModule op (omit --keep-module)", model->path);
}
