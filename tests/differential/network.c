#include "differential/network.h"
#include "support/draw.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LAYERS = 7, MOST_OUTPUTS = 2 }; /* at most */

int network_draw(struct network *n, int count) {
    return (int)(draw_bits(&n->seed) % (uint64_t)count);
}

int64_t network_between(struct network *n, int64_t least, int64_t most) {
    return least + network_draw(n, (int)(most - least + 1));
}

bool network_rarely(struct network *n, int count) {
    return network_draw(n, count) == 0;
}

void network_note(struct network *n, const char *format, ...) {
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tare_strbuf_puts(&n->text, text);
}

const char *network_name(struct network *n, const char *stem) {
    return tare_arena_printf(&n->model->arena, "%s_%d", stem, n->n_names++);
}

bool network_spend(struct network *n, int64_t work) {
    if (work > n->work) return false;
    n->work -= work;
    return true;
}

/* ---- nodes ---- */

static struct tare_edge constant(struct network *n, struct tare_tensor *value) {
    struct tare_node *node = tare_graph_add_const(n->graph, network_name(n, "constant"), value);
    tare_tensor_reset(value);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

/* Some output channels without weights, of equal ones, or of very small or large ones. */
static void vary_channels(struct network *n, const struct tare_tensor *weights) {
    static const float factors[] = { 0, 0, 1e-42f, 1e-20f, 1e3f };
    const int64_t channels = weights->shape.dims[weights->shape.rank - 1];
    float *w = TARE_DATA(float, (struct tare_tensor *)weights);
    for (int64_t c = 0; c < channels; c++) {
        const int kind = network_draw(n, 12);
        for (int64_t i = c; i < weights->elements && kind < 6; i += channels)
            w[i] = kind < 5 ? w[i] * factors[kind] : w[c];
    }
}

struct tare_edge network_random(struct network *n, struct tare_shape shape, double size) {
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] = (float)size * draw_one(DRAW_NORMAL, &n->seed);
    if (shape.rank > 1 && network_rarely(n, 12)) vary_channels(n, &value);
    return constant(n, &value);
}

struct tare_edge network_ints(struct network *n, int count, const int32_t *values) {
    const struct tare_shape shape = tare_shape_make(1, (int64_t)count);
    struct tare_tensor value;
    mini_ok(tare_tensor_from(&value, TARE_DT_INT32, &shape, values));
    return constant(n, &value);
}

struct tare_edge network_pairs(struct network *n, int rows, const int32_t *values) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)rows, (int64_t)2);
    struct tare_tensor value;
    mini_ok(tare_tensor_from(&value, TARE_DT_INT32, &shape, values));
    return constant(n, &value);
}

struct tare_edge network_unary(struct network *n, const char *op, struct tare_edge x) {
    return mini_node(n->graph, op, network_name(n, op), 1, x);
}

struct tare_edge network_binary(struct network *n, const char *op, struct tare_edge x, struct tare_edge y) {
    return mini_node(n->graph, op, network_name(n, op), 2, x, y);
}

struct tare_edge network_reshape(struct network *n, struct tare_edge x, int rank, const int64_t *dims) {
    int32_t values[MOST_RANK + 2] = { -1 };
    for (int i = 1; i < rank; i++)
        values[i] = (int32_t)dims[i];
    return network_binary(n, "Reshape", x, network_ints(n, rank, values));
}

const struct network_value *network_same(struct network *n, int compared) {
    const int first = n->n_earlier ? network_draw(n, n->n_earlier) : 0;
    for (int i = 0; i < n->n_earlier; i++) {
        const struct network_value *v = &n->earlier[(first + i) % n->n_earlier];
        if (v->rank == n->x.rank && v->edge.node != n->x.edge.node &&
            memcmp(&v->dims[1], &n->x.dims[1], (size_t)(compared - 1) * sizeof *v->dims) == 0)
            return v;
    }
    return NULL;
}

/* ---- the network ---- */

static const struct network_layer *const tables[] = { network_conv_layers,   network_image_layers,
                                                      network_vector_layers, network_elementwise_layers,
                                                      network_type_layers,   network_move_layers,
                                                      network_call_layers,   network_math_layers };

static bool takes(const struct network_layer *layer, const struct network *n) {
    if (n->is_open && layer->needs_size) return false;
    return layer->rank == 0 || layer->rank == n->x.rank;
}

static const struct network_layer *choose(struct network *n) {
    const struct network_layer *row;
    int sum = 0;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (row = tables[t]; row->name; row++)
            sum += takes(row, n) ? row->weight : 0;
    int64_t at = network_draw(n, sum);
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (row = tables[t]; row->name; row++)
            if (takes(row, n) && (at -= row->weight) < 0) return row;
    return NULL;
}

static void add_layer(struct network *n) {
    for (int tries = 0; tries < 20; tries++) {
        const struct network_layer *layer = choose(n);
        const struct network_value before = n->x;
        if (!layer->add(n)) continue;
        network_note(n, "%s", "; ");
        if (n->n_earlier < MOST_EARLIER) n->earlier[n->n_earlier++] = before;
        return;
    }
}

void network_add_layers(struct network *n, int count) {
    for (int i = 0; i < count; i++)
        add_layer(n);
}

/* Small ones are many; some have images that are divided into tiles, or whose batches are divided into sections. */
static const struct size {
    int weight;
    int64_t most_side, most_channels, most_batch, most_blocks, work;
} sizes[] = { { 20, 16, 70, 9, 4, 2000000 }, { 3, 40, 70, 9, 8, 16000000 }, { 1, 90, 24, 6, 4, 50000000 } };
enum { WEIGHTS = 24 }; /* their sum */

static const struct size *draw_size(struct network *n) {
    const struct size *size = sizes;
    for (int at = network_draw(n, WEIGHTS); (at -= size->weight) >= 0;)
        size++;
    return size;
}

/* One line or column, which may be long. */
static void draw_line(struct network *n) {
    const int axis = (int)network_between(n, 1, 2);
    n->x.dims[axis] = 1;
    n->x.dims[3 - axis] *= network_between(n, 1, 30);
}

static void draw_input(struct network *n) {
    const struct size *size = draw_size(n);
    struct network_value *x = &n->x;
    x->rank = network_rarely(n, 5) ? (int)network_between(n, 2, 3) : 4;
    for (int i = 1; i < x->rank - 1; i++)
        x->dims[i] = network_between(n, 1, size->most_side);
    if (x->rank == 4 && network_rarely(n, 10)) draw_line(n);
    x->dims[x->rank - 1] = network_between(n, 1, network_rarely(n, 3) ? size->most_channels : 20);
    n->work = size->work;
    n->most_blocks = size->most_blocks;
    n->batch = network_rarely(n, 16) ? network_between(n, 10, 70) : network_between(n, 1, size->most_batch);
    if (n->batch > size->most_batch) n->work = n->work * size->most_batch / n->batch;
    network_note(n, "batch %d, input", (int)n->batch);
    for (int i = 1; i < x->rank; i++)
        network_note(n, " %d", (int)x->dims[i]);
    network_note(n, "; ");
}

int64_t network_channels(struct network *n) {
    if (network_rarely(n, 5)) return 16 * network_between(n, 1, n->most_blocks);
    return network_between(n, 1, network_rarely(n, 3) ? 70 : 24);
}

static void set_shape(struct network *n) {
    n->shape = (struct tare_shape){ .rank = n->x.rank };
    n->shape.dims[0] = n->batch;
    for (int i = 1; i < n->x.rank; i++)
        n->shape.dims[i] = n->x.dims[i];
}

static struct tare_shape open_shape(const struct network *n) {
    struct tare_shape shape = n->shape;
    for (int i = 0; i < (n->is_open ? shape.rank - 1 : 1); i++)
        shape.dims[i] = -1;
    return shape;
}

static void add_output(struct network *n, struct tare_signature *s, const char *key, struct tare_edge edge) {
    s->outputs[s->n_outputs++] = (struct tare_binding){
        .key = key, .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = network_unary(n, "Identity", edge)
    };
}

/* A value inside the network is sometimes an output as well, which fusions must not skip. */
static void serve(struct network *n, struct tare_edge x) {
    struct tare_signature *s = TARE_NEW(&n->model->arena, struct tare_signature);
    *s = (struct tare_signature){ .key = "serving_default",
                                  .method_name = "tensorflow/serving/predict",
                                  .inputs = TARE_NEW(&n->model->arena, struct tare_binding),
                                  .outputs = TARE_NEW_ARRAY(&n->model->arena, struct tare_binding, MOST_OUTPUTS),
                                  .n_inputs = 1 };
    s->inputs[0] = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = open_shape(n), .edge = x };
    add_output(n, s, "y", n->x.edge);
    if (n->n_earlier > 1 && network_rarely(n, 4))
        add_output(n, s, "z", n->earlier[network_between(n, 1, n->n_earlier - 1)].edge);
    n->model->signatures = s;
    n->model->n_signatures = 1;
}

void network_build(struct network *n, uint64_t seed, int most) {
    *n = (struct network){ .model = mini_model_new(), .seed = seed * 0x9e3779b97f4a7c15u + 1 };
    n->graph = n->model->main;
    draw_input(n);
    set_shape(n);
    n->is_open = n->x.rank > 2 && network_rarely(n, 4);
    const struct tare_shape shape = open_shape(n);
    struct tare_node *placeholder = mini_open(n->graph, "Placeholder", "x", 0);
    mini_ok(tare_node_set_type(placeholder, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(placeholder, "shape", &shape));
    const struct tare_edge x = n->x.edge = mini_done(placeholder);
    if (n->is_open) network_note(n, "any size; ");
    const int layers = 1 + network_draw(n, LAYERS);
    network_add_layers(n, layers < most ? layers : most);
    serve(n, x);
}

void network_free(struct network *n) {
    tare_strbuf_free(&n->text);
    tare_model_free(n->model);
    *n = (struct network){ 0 };
}
