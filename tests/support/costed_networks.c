/* Reads the table, and builds its networks. */
#include "support/costed_networks.h"
#include "support/quantized_layers.h"
#include "support/quantized_model.h"

#include "graph/bindings.h"
#include "interpreter/inference/infer.h"
#include "quant/method.h"
#include "quant/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LAYERS = 24, MOST_ELEMENTS = 40000, IMAGES = 2 };

static bool is_used(const struct costed_row *row) {
    int64_t height, width, channels;
    const int read = sscanf(row->layers, "%ldx%ldx%ld", &height, &width, &channels);
    if (strstr(row->layers, "+0") || row->batch == 1) return false;
    return read < 3 || height * width * channels <= MOST_ELEMENTS;
}

size_t costed_read(struct costed_row *rows) {
    FILE *file = fopen(TARE_SOURCE_DIR "/tests/tpu/compiler/networks.tsv", "r");
    char line[512];
    size_t count = 0;
    assert_non_null(file);
    for (bool heading = true; fgets(line, sizeof line, file); heading = false) {
        struct costed_row *row = &rows[count];
        if (heading) continue;
        assert_true(count < COSTED_MOST_ROWS);
        *row = (struct costed_row){ 0 };
        assert_int_equal(sscanf(line, "%39[^\t]\t%7[^\t]\t%7[^\t]\t%ld\t%lf\t%*[^\t]\t%127[^\n]", row->network,
                                row->form, row->chip, &row->batch, &row->cycles, row->layers),
                         6);
        count += is_used(row);
    }
    fclose(file);
    return count;
}

/* ---- the network as a graph ---- */

struct builder {
    struct quantized_model m;
    struct tare_edge outputs[MOST_LAYERS];
    int64_t channels[MOST_LAYERS];
    int count;
    bool is_image;
    uint64_t seed;
};

static struct tare_edge constant(struct builder *b, const char *what, struct tare_shape shape) {
    struct tare_tensor value;
    char name[32];
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] = quantized_model_normal(&b->seed) * 0.1f;
    snprintf(name, sizeof name, "%s%d", what, b->count);
    struct tare_edge edge = { tare_graph_add_const(b->m.graph, name, &value), 0 };
    tare_tensor_reset(&value);
    return edge;
}

static struct tare_edge named(struct builder *b, const char *op, int inputs, struct tare_edge x, struct tare_edge y) {
    char name[64];
    snprintf(name, sizeof name, "%s_%d", op, b->count);
    return inputs == 1 ? mini_node(b->m.graph, op, name, 1, x) : mini_node(b->m.graph, op, name, 2, x, y);
}

static void add_layer(struct builder *b, const char *layer) {
    const struct tare_edge x = b->outputs[b->count - 1];
    const int64_t in = b->channels[b->count - 1];
    int64_t size, out = in, stride, other;
    struct tare_edge y;
    char name[16];
    snprintf(name, sizeof name, "layer%d", b->count);
    if (sscanf(layer, "c%ld.%ld.%ld", &size, &out, &stride) == 3) {
        y = layers_float(b->m.graph, name, x, size, in, out, stride);
    } else if (sscanf(layer, "d%ld.%ld", &size, &stride) == 2) {
        y = layers_float(b->m.graph, name, x, size, in, 0, stride);
    } else if (sscanf(layer, "f%ld", &out) == 1) {
        y = named(b, "MatMul", 2, x, constant(b, "w", tare_shape_make(2, in, out)));
        y = named(b, "BiasAdd", 2, y, constant(b, "bias", tare_shape_make(1, out)));
        y = named(b, "Relu", 1, y, y);
    } else if (sscanf(layer, "+%ld", &other) == 1) {
        y = named(b, "AddV2", 2, b->outputs[other], x);
        y = named(b, "Relu", 1, y, y);
    } else {
        assert_string_equal(layer, "m");
        y = named(b, "Mean", 2, x, mini_ints(b->m.graph, "axes", 2, (const int32_t[]){ 1, 2 }));
    }
    b->outputs[b->count] = y;
    b->channels[b->count++] = out;
}

static void build(struct builder *b, const char *text) {
    struct tare_shape shape = tare_shape_make(2, (int64_t)IMAGES, (int64_t)0);
    int64_t sizes[3];
    char copy[128], *rest = copy;
    memset(b, 0, sizeof *b);
    b->seed = 1;
    quantized_model_begin(&b->m, 1, 1, 1, 1);
    snprintf(copy, sizeof copy, "%s", text);
    const char *word = strtok_r(rest, " ", &rest);
    if (sscanf(word, "%ldx%ldx%ld", &sizes[0], &sizes[1], &sizes[2]) == 3)
        shape = tare_shape_make(4, (int64_t)IMAGES, sizes[0], sizes[1], sizes[2]);
    else
        shape.dims[1] = atol(word);
    tare_tensor_reset(&b->m.samples);
    mini_ok(tare_tensor_new(&b->m.samples, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < b->m.samples.elements; i++)
        TARE_DATA(float, &b->m.samples)[i] = quantized_model_normal(&b->seed);
    b->outputs[0] = b->m.in;
    b->channels[0] = shape.dims[shape.rank - 1];
    b->count = 1;
    while ((word = strtok_r(rest, " ", &rest)))
        add_layer(b, word);
    quantized_model_return(&b->m, b->outputs[b->count - 1]);
    mini_ok(tare_node_set_shape(b->m.x.node, "shape", &shape));
}

void costed_estimate(struct tare_fused_cost *cost, const char *layers, bool integer, int64_t batch) {
    const struct tare_quant_plan plan = { .setting = { .method = &tare_method_static, .activation_bits = 8 },
                                          .min_elements = 1 };
    struct tare_arena arena = { 0 };
    struct builder b;
    build(&b, layers);
    if (integer) quantized_model_quantize(&b.m, &plan, "");
    struct tare_shape shape = b.m.samples.shape;
    struct tare_bindings *bindings;
    struct tare_inference *inference = tare_inference_new();
    shape.dims[0] = batch;
    mini_ok(tare_bindings_new(&bindings, b.m.model));
    mini_ok(tare_tpu_fused_graph_cost(cost, &arena, bindings, inference, b.m.graph, &shape));
    tare_bindings_free(bindings);
    tare_inference_free(inference);
    tare_arena_free(&arena);
    quantized_model_end(&b.m);
}
