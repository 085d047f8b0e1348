#include "calib/tally.h"
#include "support/quantized_model.h"

#include "convert/prepared_model.h"
#include "graph/model.h"
#include "quant/hessian.h"
#include "support/draw.h"

#include <math.h>
#include <string.h>

float quantized_model_normal(uint64_t *seed) {
    return (float)(sqrt(-2 * log(draw_unit(seed))) * cos(2 * 3.141592653589793 * draw_unit(seed)));
}

void quantized_model_begin(struct quantized_model *m, int rows, int columns, double spread, uint64_t seed) {
    const struct tare_shape shape = { .rank = 2, .dims = { rows, columns } };
    memset(m, 0, sizeof *m);
    m->model = mini_model_new();
    m->graph = tare_model_add_function(m->model, "f");
    m->in = mini_arg(m->graph, "in", TARE_DT_FLOAT);
    mini_ok(tare_tensor_new(&m->samples, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < rows * columns; i++)
        TARE_DATA(float, &m->samples)[i] = quantized_model_normal(&seed) * (float)pow(spread, i % columns);
}

void quantized_model_return(struct quantized_model *m, struct tare_edge y) {
    mini_return(m->graph, "out", y);
    m->x = mini_placeholder(m->model->main, "x", TARE_DT_FLOAT);
    m->y = mini_call(m->model->main, "PartitionedCall", "call", m->graph, 1, m->x);
}

void quantized_model_end(struct quantized_model *m) {
    tare_calibration_free(m->calibration);
    tare_tally_free(m->tally);
    tare_tensor_reset(&m->samples);
    tare_model_free(m->model);
    tare_arena_free(&m->arena);
}

struct tare_edge quantized_model_weight(struct quantized_model *m, const char *name, int rows, int columns, double size,
                                        double spread, uint64_t seed) {
    const struct tare_shape shape = { .rank = rows ? 2 : 1, .dims = { rows ? rows : columns, columns } };
    struct tare_tensor tensor;
    struct tare_edge edge;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < tensor.elements; i++)
        TARE_DATA(float, &tensor)
    [i] = quantized_model_normal(&seed) * (float)(size * pow(spread, -(double)(rows ? i / columns : 0)));
    edge = (struct tare_edge){ tare_graph_add_const(m->graph, name, &tensor), 0 };
    tare_tensor_reset(&tensor);
    return edge;
}

static tare_status observe(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    struct quantized_model *m = arg;
    const struct tare_place place = { 0 };
    const struct tare_edge edge = { (struct tare_node *)(uintptr_t)node, (int)output };
    const struct tare_calibration_tensor *tensor = tare_calibration_find_edge(m->calibration, edge);
    if (!tensor) return TARE_OK;
    return tare_statistics_add(&((struct tare_calibration_tensor *)(uintptr_t)tensor)->statistics, m->tally, value,
                               &place, 1, TARE_BATCH_SHARED);
}

static tare_status observe_products(void *arg, const struct tare_node *node, size_t output,
                                    const struct tare_tensor *value) {
    return tare_hessians_observe(((struct quantized_model *)arg)->calibration->hessians, node, output, -1, value);
}

static void look(struct quantized_model *m, tare_status (*fn)(void *arg, const struct tare_node *node, size_t output,
                                                              const struct tare_tensor *value)) {
    struct tare_session *session = mini_session(m->model);
    struct tare_tensor result;
    tare_session_observe(session, fn, NULL, m);
    mini_ok(tare_session_run(session, &m->x, &m->samples, 1, &m->y, &result, 1, NULL, 0));
    tare_tensor_reset(&result);
    tare_session_free(session);
}

/* Passes may want Hessians. */
static void calibrate(struct quantized_model *m, bool for_passes) {
    const uint64_t fingerprint[2] = { 0 };
    struct tare_edge_list edges;
    size_t left_out;
    mini_ok(tare_quant_observed_edges(&edges, &m->arena, m->model));
    m->tally = tare_tally_new();
    m->calibration = tare_calibration_new(fingerprint, "", true);
    for (size_t i = 0; i < edges.count; i++) {
        struct tare_calibration_tensor *tensor;
        mini_ok(tare_calibration_add_tensor(m->calibration, edges.edges[i].node->graph->name, edges.edges[i].node->name,
                                            edges.edges[i].index, &tensor));
        tensor->statistics.per_channel = true;
    }
    look(m, observe);
    if (!for_passes) return;
    m->calibration->hessians = tare_hessians_new();
    mini_ok(tare_quant_want_hessians(m->calibration->hessians, &left_out, m->model, m->calibration, 1 << 20));
    assert_int_equal(left_out, 0);
    look(m, observe_products);
}

void quantized_model_quantize(struct quantized_model *m, const struct tare_quant_plan *options, const char *passes) {
    struct tare_quant_plan own = *options;
    struct tare_quant_ranges ranges;
    mini_ok(tare_quant_passes_parse(&own.passes, &m->arena, passes));
    calibrate(m, *passes);
    ranges = tare_ranges_of(m->calibration);
    mini_ok(tare_quantize(&m->report, &m->arena, m->model, &ranges, &own));
}

struct tare_tensor quantized_model_run(struct quantized_model *m) {
    struct tare_session *session = mini_session(m->model);
    struct tare_tensor result;
    mini_ok(tare_session_run(session, &m->x, &m->samples, 1, &m->y, &result, 1, NULL, 0));
    tare_session_free(session);
    return result;
}

double quantized_model_loss(const struct tare_tensor *got, const struct tare_tensor *expected) {
    double signal = 0, noise = 0;
    assert_int_equal(got->elements, expected->elements);
    for (int64_t i = 0; i < got->elements; i++) {
        const double w = (double)TARE_CONST_DATA(float, expected)[i], d = (double)TARE_CONST_DATA(float, got)[i] - w;
        signal += w * w;
        noise += d * d;
    }
    return noise / signal;
}

int quantized_model_count(const struct quantized_model *m, const char *op) {
    int count = 0;
    for (size_t i = 0; i < m->graph->n_nodes; i++)
        count += !m->graph->nodes[i]->dead && strcmp(m->graph->nodes[i]->op, op) == 0;
    return count;
}
