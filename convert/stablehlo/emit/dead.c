/* Removes ops whose results nothing uses: conversions of operands that products take unconverted, outputs of rules that
 * have several. */
#include "base/alloc.h"
#include "convert/stablehlo/emit/build.h"

#include <string.h>

static void count_uses(size_t *uses, const struct tare_shlo_block *block, bool removed) {
    for (size_t i = 0; i < block->n_ops; i++) {
        const struct tare_shlo_op *op = &block->ops[i];
        for (size_t k = 0; k < op->n_operands; k++)
            removed ? uses[op->operands[k]->number]-- : uses[op->operands[k]->number]++;
        for (size_t k = 0; k < op->n_regions; k++)
            count_uses(uses, &op->regions[k], removed);
    }
}

static bool is_used(const struct tare_shlo_op *op, const size_t *uses) {
    if (!op->n_results) return true; /* return, func */
    for (size_t i = 0; i < op->n_results; i++)
        if (uses[op->results[i].number]) return true;
    return false;
}

/* From the last op on, so that what a removed op used is then unused, too. Values of results are pointed to: ops move,
 * their results do not. */
static size_t sweep(struct tare_shlo_block *block, size_t *uses) {
    size_t removed = 0, kept = block->n_ops;
    for (size_t i = block->n_ops; i-- > 0;) {
        struct tare_shlo_op op = block->ops[i];
        if (is_used(&op, uses)) {
            for (size_t k = 0; k < op.n_regions; k++)
                removed += sweep(&op.regions[k], uses);
            block->ops[--kept] = op;
            continue;
        }
        const struct tare_shlo_block alone = { .ops = &op, .n_ops = 1 };
        count_uses(uses, &alone, true);
        removed++;
    }
    block->n_ops -= kept;
    memmove(block->ops, block->ops + kept, block->n_ops * sizeof *block->ops);
    return removed;
}

tare_status tare_build_remove_dead(struct tare_build *build) {
    size_t *uses = tare_calloc(build->module->n_values + 1, sizeof *uses);
    if (!uses) return TARE_NO_MEMORY;
    const struct tare_shlo_block module = { .ops = build->module->root, .n_ops = 1 };
    count_uses(uses, &module, false);
    build->module->n_ops -= sweep(&build->module->root->regions[0], uses);
    tare_free(uses);
    return TARE_OK;
}
