/* Estimates time, memory and integer share of a compared model on a TPU chip (tpu/cost/fused.h). */
#include "eval/comparison.h"
#include "graph/inline.h"
#include "graph/model.h"
#include "tpu/cost/fused.h"
#include "tpu/functions.h"
#include "tpu/cost/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t tare_comparison_chip_batch(const struct tare_comparison *c) {
    return c->chip_batch > 0 ? c->chip_batch : 1;
}

const char *tare_comparison_chip_name(const struct tare_comparison *c) {
    return tare_tpu_chips[c->chip].name;
}

/* The batch size replaces the unknown first dimensions of the inputs. */
static tare_status close_inputs(const struct tare_signature *signature, int64_t batch) {
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_binding *input = &signature->inputs[i];
        struct tare_shape shape = input->shape;
        if (!input->edge.node || strcmp(input->edge.node->op, "Placeholder") != 0 || shape.rank < 0) continue;
        for (int d = 0; d < shape.rank; d++)
            if (shape.dims[d] < 0) shape.dims[d] = d ? 1 : batch;
        TARE_TRY(tare_node_set_shape(input->edge.node, "shape", &shape));
        tare_node_remove_attr(input->edge.node, "_output_shapes");
    }
    return TARE_OK;
}

struct costs {
    struct tare_comparison *c;
    struct tare_arena scratch;
    struct tare_comparison_op *ops;
    size_t count;
    bool failed;
};

static void add_op(void *arg, const struct tare_node *node, const struct tare_fused_cost *cost) {
    struct costs *s = arg;
    struct tare_comparison_op *grown = NULL;
    if ((s->count & (s->count - 1)) == 0) { /* full at every power of two */
        grown = tare_arena_extend(&s->scratch, s->ops, s->count, s->count + 1, sizeof *grown);
        s->failed |= !grown;
        if (grown) s->ops = grown;
    }
    if (s->failed) return;
    s->ops[s->count++] =
        (struct tare_comparison_op){ .function = node->graph->name,
                                     .node = tare_inlined_name(node->name),
                                     .op = node->op,
                                     .macs = cost->macs,
                                     .bytes = cost->bytes,
                                     .seconds = cost->seconds[s->c->chip],
                                     .integer = cost->integer_macs > 0,
                                     .compute_bound = cost->macs > 0 &&
                                                      cost->least[s->c->chip] >
                                                          cost->bytes / tare_tpu_chips[s->c->chip].hbm_bytes_second };
}

static int by_time(const void *a, const void *b) {
    const struct tare_comparison_op *x = a, *y = b;
    int order;
    if (x->seconds != y->seconds) return x->seconds < y->seconds ? 1 : -1;
    order = strcmp(x->function, y->function);
    return order ? order : strcmp(x->node, y->node);
}

static tare_status keep_costs(struct costs *s) {
    struct tare_comparison *c = s->c;
    if (s->count) qsort(s->ops, s->count, sizeof *s->ops, by_time);
    c->costs = TARE_NEW_ARRAY(&c->arena, struct tare_comparison_op, s->count + 1);
    if (!c->costs) return TARE_NO_MEMORY;
    for (c->n_costs = 0; c->n_costs < s->count; c->n_costs++) {
        struct tare_comparison_op *op = &c->costs[c->n_costs];
        *op = s->ops[c->n_costs];
        op->function = tare_arena_strdup(&c->arena, op->function);
        op->node = tare_arena_strdup(&c->arena, op->node);
        op->op = tare_arena_strdup(&c->arena, op->op);
        if (!op->function || !op->node || !op->op) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status estimate(struct tare_comparison_row *row, struct costs *s, struct tare_graph_model *model,
                            const struct tare_signature *signature, bool each) {
    const int64_t batch = tare_comparison_chip_batch(s->c);
    struct tare_graph *function = tare_signature_function(signature);
    struct tare_fused_cost cost;
    struct tare_tpu_memory memory;
    TARE_TRY(close_inputs(signature, batch));
    row->hbm_bytes = (double)row->size_bytes;
    if (function) {
        TARE_TRY(tare_tpu_memory(&memory, &s->scratch, model, &function, 1, batch));
        row->hbm_bytes = memory.weights;
        row->activation_bytes = memory.activations;
    }
    TARE_TRY(tare_model_inline_calls(model));
    TARE_TRY(tare_model_inline_placed(model, true));
    TARE_TRY(tare_tpu_fused_cost(&cost, &s->scratch, model, signature, batch, each ? add_op : NULL, s));
    if (s->failed) return TARE_NO_MEMORY;
    row->macs = cost.macs / (double)batch;
    row->integer_macs = cost.integer_macs / (double)batch;
    row->float8_macs = cost.float8_macs / (double)batch;
    row->tpu_seconds = cost.seconds[s->c->chip] / (double)batch;
    if (each) s->c->slowest_total = cost.seconds[s->c->chip];
    return each ? keep_costs(s) : TARE_OK;
}

/* Where the shape contradicts the graph the figures stay unknown. */
tare_status tare_comparison_estimate(struct tare_comparison_row *row, struct tare_comparison *c,
                                     struct tare_graph_model *model, const struct tare_signature *signature,
                                     bool each) {
    struct costs s = { .c = c };
    row->macs = row->integer_macs = row->float8_macs = row->tpu_seconds = row->hbm_bytes = row->activation_bytes = NAN;
    const tare_status status = estimate(row, &s, model, signature, each);
    if (status != TARE_OK) {
        row->macs = row->integer_macs = row->float8_macs = row->tpu_seconds = row->hbm_bytes = row->activation_bytes =
            NAN;
        if (each) c->n_costs = 0;
    }
    tare_arena_free(&s.scratch);
    return tare_error_dismiss(status);
}
