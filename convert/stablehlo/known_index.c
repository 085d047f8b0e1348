/* Data-flow analysis of the platform index; see the header. */
#include "convert/stablehlo/known_index.h"
#include "base/map.h"

/* By value: unseen, several values, or FIRST + the number. States only grow. */
enum { UNSEEN, SEVERAL, FIRST, MOST = 1000 };

struct analysis {
    uint16_t *states;
    struct tare_map functions; /* name -> struct tare_shlo_op of the function */
    bool changed;
};

static void meet(struct analysis *a, const struct tare_shlo_value *value, uint16_t state) {
    uint16_t *old = &a->states[value->number];
    const uint16_t grown = *old == UNSEEN || *old == state ? state : SEVERAL;
    if (state == UNSEEN || grown == *old) return;
    *old = grown;
    a->changed = true;
}

static uint16_t state_of_constant(const struct tare_shlo_op *op) {
    const struct tare_shlo_attr *attr = tare_shlo_op_attr(op, "value");
    size_t count;
    if (!attr || attr->kind != TARE_SHLO_ATTR_TENSOR || tare_shlo_type_is_float(attr->type->element->kind))
        return SEVERAL;
    if (!tare_shlo_tensor_count(&count, attr) || count != 1) return SEVERAL;
    const int64_t number = tare_shlo_tensor_integer(attr, 0);
    return number >= 0 && number <= MOST ? (uint16_t)(FIRST + number) : SEVERAL;
}

/* An index out of range selects the last branch. */
static void visit_case(struct analysis *a, const struct tare_shlo_op *op) {
    const uint16_t state = op->n_operands ? a->states[op->operands[0]->number] : SEVERAL;
    if (state == UNSEEN) return;
    const size_t index = state - FIRST;
    const struct tare_shlo_block *taken =
        state < FIRST ? NULL : &op->regions[index < op->n_regions ? index : op->n_regions - 1];
    const struct tare_shlo_op *end = taken && taken->n_ops ? &taken->ops[taken->n_ops - 1] : NULL;
    for (size_t i = 0; i < op->n_results; i++)
        meet(a, &op->results[i], end && i < end->n_operands ? a->states[end->operands[i]->number] : SEVERAL);
}

static void visit_call(struct analysis *a, const struct tare_shlo_op *op) {
    const struct tare_shlo_attr *name = tare_shlo_op_attr(op, "callee");
    const struct tare_shlo_op *callee =
        name && name->kind == TARE_SHLO_ATTR_STRING ? tare_map_get(&a->functions, name->text.data) : NULL;
    const struct tare_shlo_block *body = callee && callee->n_regions ? &callee->regions[0] : NULL;
    for (size_t i = 0; body && i < op->n_operands && i < body->n_args; i++)
        meet(a, &body->args[i], a->states[op->operands[i]->number]);
    for (size_t i = 0; i < op->n_results; i++)
        meet(a, &op->results[i], SEVERAL);
}

static void visit(struct analysis *a, const struct tare_shlo_block *block) {
    for (size_t i = 0; i < block->n_ops; i++) {
        const struct tare_shlo_op *op = &block->ops[i];
        const bool is_call = tare_shlo_op_is(op, "call"), is_case = tare_shlo_op_is(op, "case") && op->n_regions;
        for (size_t k = 0; k < op->n_regions; k++) {
            const struct tare_shlo_block *region = &op->regions[k];
            for (size_t n = 0; n < region->n_args && !tare_shlo_op_is(op, "func"); n++)
                meet(a, &region->args[n], SEVERAL);
            visit(a, region);
        }
        if (is_call) visit_call(a, op);
        if (is_case) visit_case(a, op);
        for (size_t k = 0; k < op->n_results && !is_call && !is_case; k++)
            meet(a, &op->results[k], tare_shlo_op_is(op, "constant") ? state_of_constant(op) : SEVERAL);
    }
}

static bool index_functions(struct analysis *a, const struct tare_shlo_block *body) {
    for (size_t i = 0; i < body->n_ops; i++) {
        struct tare_shlo_op *op = &body->ops[i];
        const struct tare_shlo_attr *name = tare_shlo_op_is(op, "func") ? tare_shlo_op_attr(op, "sym_name") : NULL;
        if (name && name->kind == TARE_SHLO_ATTR_STRING && !tare_map_set(&a->functions, name->text.data, op))
            return false;
    }
    return true;
}

tare_status tare_known_indices_make(struct tare_known_indices *out, struct tare_arena *arena,
                                    const struct tare_shlo_module *module, size_t platform) {
    struct analysis a = { .states = tare_arena_calloc(arena, module->n_values + 1, sizeof *a.states) };
    const struct tare_shlo_block *body = &module->root->regions[0];
    const struct tare_shlo_op *main_op;
    tare_status status = TARE_NO_MEMORY;
    if (!a.states || !index_functions(&a, body)) goto done;
    status = TARE_OK;
    main_op = tare_map_get(&a.functions, "main");
    for (size_t i = 0; main_op && main_op->n_regions && i < main_op->regions[0].n_args; i++)
        meet(&a, &main_op->regions[0].args[i], i || platform > MOST ? SEVERAL : (uint16_t)(FIRST + platform));
    do {
        a.changed = false;
        visit(&a, body);
    } while (a.changed);
    out->by_value = a.states;
done:
    tare_map_free(&a.functions);
    return status;
}

int64_t tare_known_index(const struct tare_known_indices *known, const struct tare_shlo_value *value) {
    if (known->by_value && known->by_value[value->number] >= FIRST) return known->by_value[value->number] - FIRST;
    if (!value->op || !tare_shlo_op_is(value->op, "constant")) return -1;
    const uint16_t state = state_of_constant(value->op);
    return state >= FIRST ? state - FIRST : -1;
}
