/* Calls: that functions exist, and that arguments and results fit. Batching attributes. */
#include "base/strbuf.h"
#include "graph/calls.h"
#include "interpreter/validation/validate_internal.h"

#include <string.h>

static void check_names(struct tare_validator *validator, const struct tare_node *node) {
    for (size_t i = 0; i < node->n_attrs; i++) {
        const struct tare_attr *attr = &node->attrs[i];
        if (attr->kind != TARE_ATTR_FUNC || *attr->name == '_') continue;
        for (size_t k = 0; k < attr->count; k++) {
            const char *name = attr->items[k].func.name;
            if (name && *name && !tare_model_find_function(validator->model, name))
                tare_fault_at(validator, node, "attr %s calls %s, which the library lacks", attr->name, name);
        }
    }
}

static int input_dtype(const struct tare_node *node, size_t i) {
    return tare_edge_dtype(node->inputs[i]);
}

/* Arguments `first` … of the node against the callee's. */
static void check_args(struct tare_validator *validator, const struct tare_node *node,
                       const struct tare_call_site *site, const struct tare_graph *callee) {
    if (callee->n_args != site->n_args) {
        tare_fault_at(validator, node, "calls %s with %zu inputs, it takes %zu", callee->name, site->n_args,
                      callee->n_args);
        return;
    }
    for (size_t i = 0; i < site->n_args; i++) {
        int passed = input_dtype(node, site->first + i),
            taken = tare_edge_dtype((struct tare_edge){ callee->args[i], 0 });
        if (passed != TARE_DT_INVALID && taken != TARE_DT_INVALID && passed != taken)
            tare_fault_at(validator, node, "calls %s with input %zu of %s, it takes %s", callee->name, i,
                          tare_dtype_name(passed), tare_dtype_name(taken));
    }
}

static void check_results(struct tare_validator *validator, const struct tare_node *node,
                          const struct tare_graph *callee) {
    if (callee->n_returns != node->n_outputs) {
        tare_fault_at(validator, node, "expects %zu outputs of %s, which has %zu", node->n_outputs, callee->name,
                      callee->n_returns);
        return;
    }
    for (size_t i = 0; i < callee->n_returns; i++) {
        int expected = tare_dtype_base(node->output_dtypes[i]), made = tare_dtype_base(callee->returns[i].dtype);
        if (made != TARE_DT_INVALID && made != expected)
            tare_fault_at(validator, node, "expects output %zu of %s to be %s, it is %s", i, callee->name,
                          tare_dtype_name(expected), tare_dtype_name(made));
    }
}

void tare_validate_calls(struct tare_validator *validator, const struct tare_node *node) {
    struct tare_call_site site;
    check_names(validator, node);
    if (tare_call_site(&site, &validator->scratch, node) != TARE_OK) {
        validator->out_of_memory = true;
        return;
    }
    if (site.kind == TARE_CALL_NONE || site.kind == TARE_CALL_OTHER) return;
    if (site.first + site.n_args > node->n_inputs) return; /* its number of inputs was found wrong */
    for (size_t i = 0; i < site.n_callees; i++) {
        check_args(validator, node, &site, site.callees[i]);
        if (site.kind != TARE_CALL_LOOP || i == 1) check_results(validator, node, site.callees[i]);
    }
    if (site.kind == TARE_CALL_LOOP && site.n_callees && site.callees[0]->n_returns != 1)
        tare_fault_at(validator, node, "condition %s has %zu outputs (expected 1)", site.callees[0]->name,
                      site.callees[0]->n_returns);
}

static bool rises(const struct tare_attr *sizes) {
    for (size_t i = 1; i < sizes->count; i++)
        if (sizes->items[i].i <= sizes->items[i - 1].i) return false;
    return true;
}

void tare_validate_batching(struct tare_validator *validator, const struct tare_node *node) {
    const struct tare_attr *types, *sizes;
    int64_t most = tare_node_int(node, "max_batch_size", 0), last;
    if (strcmp(node->op, "BatchFunction") != 0) return;
    types = tare_node_list(node, "Tin");
    for (size_t i = 0; types && types->kind == TARE_ATTR_TYPE && i < types->count; i++)
        if (types->items[i].type == TARE_DT_RESOURCE)
            tare_fault_at(validator, node, "BatchFunction cannot take resource inputs but input %zu is a resource.", i);
    sizes = tare_node_list(node, "allowed_batch_sizes");
    if (!sizes || sizes->kind != TARE_ATTR_INT || !sizes->count) return;
    if (!rises(sizes)) tare_fault_at(validator, node, "allowed_batch_sizes entries must be monotonically increasing");
    last = sizes->items[sizes->count - 1].i;
    if (!tare_node_bool(node, "enable_large_batch_splitting", false) && last != most)
        tare_fault_at(
            validator, node,
            "final entry in allowed_batch_sizes must equal max_batch_size when enable_large_batch_splitting is False "
            "(expected %lld, got %lld)",
            (long long)most, (long long)last);
}
