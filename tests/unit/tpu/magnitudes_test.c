/* Random networks with values that matter by their absolute size: positions, differences of large numbers, offsets,
 * running sums, sampling positions, masks. Converted to bfloat16 with the default options, outputs keep 30 dB of what
 * varies between records, and the products of the networks stay bfloat16.
 *
 * TARE_MAGNITUDES="FIRST COUNT" tries other networks and prints a line for each. */
#include "graph/clone.h"
#include "interpreter/session.h"
#include "support/draw.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 24, WIDTH = 48, MOST_INPUTS = 16, MOST_OUTPUTS = 16, TABLE = 600 };

struct net {
    struct tare_graph_model *model;
    struct tare_graph *f, *g; /* the TPU function; where nodes are added */
    uint64_t draw;
    int names;
    struct tare_edge args[MOST_INPUTS], feeds[MOST_INPUTS], fetches[MOST_OUTPUTS];
    struct tare_tensor values[MOST_INPUTS];
    int n_inputs, n_outputs;
    char text[512];
};

/* ---- numbers ---- */

static double uniform(struct net *net, double low, double high) {
    return low + (high - low) * draw_unit(&net->draw);
}

static double normal(struct net *net) {
    return sqrt(-2 * log(uniform(net, 1e-12, 1))) * cos(2 * M_PI * uniform(net, 0, 1));
}

static int pick(struct net *net, int n) {
    return (int)(uniform(net, 0, 1) * n) % n;
}

/* ---- nodes ---- */

static const char *name(struct net *net, const char *stem) {
    return tare_arena_printf(&net->model->arena, "%s_%d", stem, net->names++);
}

static struct tare_edge un(struct net *net, const char *op, struct tare_edge x) {
    return mini_node(net->g, op, name(net, op), 1, x);
}

static struct tare_edge bi(struct net *net, const char *op, struct tare_edge x, struct tare_edge y) {
    return mini_node(net->g, op, name(net, op), 2, x, y);
}

static struct tare_edge number(struct net *net, double value) {
    return mini_float(net->g, name(net, "c"), (float)value);
}

/* A constant of rows × columns (rows 0: a vector) of normal numbers. */
static struct tare_edge matrix(struct net *net, int rows, int columns, double mean, double dev) {
    struct tare_shape shape =
        rows ? tare_shape_make(2, (int64_t)rows, (int64_t)columns) : tare_shape_make(1, (int64_t)columns);
    struct tare_tensor value;
    struct tare_node *node;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] = (float)(mean + dev * normal(net));
    node = tare_graph_add_const(net->g, name(net, "w"), &value);
    tare_tensor_reset(&value);
    return (struct tare_edge){ node, 0 };
}

/* first, first + step … */
static struct tare_edge steps(struct net *net, int n, double first, double step, bool powers) {
    struct tare_shape shape = tare_shape_make(1, (int64_t)n);
    struct tare_tensor value;
    struct tare_node *node;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < n; i++)
        TARE_DATA(float, &value)[i] = (float)(powers ? pow(10000, -(double)i / n) : first + step * i);
    node = tare_graph_add_const(net->g, name(net, "steps"), &value);
    tare_tensor_reset(&value);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge reduce(struct net *net, const char *op, struct tare_edge x, bool keep) {
    struct tare_node *node = mini_open(net->g, op, name(net, op), 2, x, mini_int(net->g, name(net, "axis"), -1));
    mini_ok(tare_node_set_bool(node, "keep_dims", keep));
    return mini_done(node);
}

static struct tare_edge column(struct net *net, struct tare_edge x) {
    return mini_node(net->g, "ExpandDims", name(net, "column"), 2, x, mini_int(net->g, name(net, "axis"), 1));
}

static struct tare_edge cast(struct net *net, struct tare_edge x, int dtype) {
    struct tare_node *node = mini_open(net->g, "Cast", name(net, "cast"), 1, x);
    mini_ok(tare_node_set_type(node, "DstT", dtype));
    mini_ok(tare_node_set_type(node, "SrcT", tare_edge_dtype(x)));
    return mini_done(node);
}

static struct tare_edge concat(struct net *net, struct tare_edge x, struct tare_edge y) {
    struct tare_node *node =
        mini_open(net->g, "ConcatV2", name(net, "concat"), 3, x, y, mini_int(net->g, name(net, "axis"), 1));
    mini_ok(tare_node_set_int(node, "N", 2));
    return mini_done(node);
}

static struct tare_edge product(struct net *net, struct tare_edge x, int from, int to, double gain) {
    return bi(net, "MatMul", x, matrix(net, from, to, 0, gain / sqrt(from)));
}

static struct tare_edge dense(struct net *net, struct tare_edge x, int from, int to) {
    return bi(net, "BiasAdd", product(net, x, from, to, 1), matrix(net, 0, to, 0, 0.1));
}

/* A model input of ROWS × columns (columns 0: a vector), drawn as low + (high − low) u, or rounded to integers. */
static struct tare_edge input(struct net *net, const char *stem, int columns, double low, double high, int dtype) {
    struct tare_shape shape =
        columns ? tare_shape_make(2, (int64_t)ROWS, (int64_t)columns) : tare_shape_make(1, (int64_t)ROWS);
    const int i = net->n_inputs++;
    assert_true(i < MOST_INPUTS);
    mini_ok(tare_tensor_new(&net->values[i], dtype, &shape));
    for (int64_t k = 0; k < net->values[i].elements; k++) {
        if (dtype == TARE_DT_INT32)
            TARE_DATA(int32_t, &net->values[i])[k] = (int32_t)uniform(net, low, high);
        else
            TARE_DATA(float, &net->values[i])[k] = (float)uniform(net, low, high);
    }
    net->args[i] = mini_arg(net->f, name(net, stem), dtype);
    return net->args[i];
}

static void output(struct net *net, const char *stem, struct tare_edge edge) {
    assert_true(net->n_outputs++ < MOST_OUTPUTS);
    mini_return(net->f, name(net, stem), edge);
}

/* ---- layers of ordinary networks: values of about 1 ---- */

static struct tare_edge gelu(struct net *net, struct tare_edge x) {
    struct tare_edge erf = un(net, "Erf", bi(net, "Mul", x, number(net, sqrt(0.5))));
    return bi(net, "Mul", bi(net, "Mul", x, number(net, 0.5)), bi(net, "AddV2", erf, number(net, 1)));
}

static struct tare_edge activate(struct net *net, struct tare_edge x) {
    switch (pick(net, 4)) {
    case 0:
        return un(net, "Relu", x);
    case 1:
        return un(net, "Tanh", x);
    case 2:
        return gelu(net, x);
    default:
        return bi(net, "Mul", x, un(net, "Sigmoid", x));
    }
}

enum { CENTERED_FORMS = 3, ROOT_MEAN_SQUARE = CENTERED_FORMS, NORM_FORMS };

/* Layer norm from its parts, in one of the usual forms. */
static struct tare_edge norm_by(struct net *net, struct tare_edge x, int form) {
    struct tare_edge mean = reduce(net, "Mean", x, true), variance, r;
    if (form == ROOT_MEAN_SQUARE) {
        r = un(net, "Rsqrt", bi(net, "AddV2", reduce(net, "Mean", un(net, "Square", x), true), number(net, 1e-6)));
        return bi(net, "Mul", bi(net, "Mul", x, r), matrix(net, 0, WIDTH, 1, 0.1));
    }
    if (form == 0)
        variance = bi(net, "Sub", reduce(net, "Mean", un(net, "Square", x), true), un(net, "Square", mean));
    else
        variance = reduce(net, "Mean", bi(net, "SquaredDifference", x, mean), true);
    r = un(net, "Rsqrt", bi(net, "AddV2", bi(net, "Maximum", variance, number(net, 0)), number(net, 1e-5)));
    if (form == 1) return bi(net, "Sub", bi(net, "Mul", x, r), bi(net, "Mul", mean, r));
    x = bi(net, "Mul", bi(net, "Sub", x, mean), r);
    return bi(net, "AddV2", bi(net, "Mul", x, matrix(net, 0, WIDTH, 1, 0.1)), matrix(net, 0, WIDTH, 0, 0.1));
}

static struct tare_edge norm(struct net *net, struct tare_edge x) {
    return norm_by(net, x, pick(net, NORM_FORMS));
}

static struct tare_edge softmax(struct net *net, struct tare_edge x, bool written) {
    if (!written) return un(net, "Softmax", x);
    x = un(net, "Exp", bi(net, "Sub", x, reduce(net, "Max", x, true)));
    return bi(net, "RealDiv", x, reduce(net, "Sum", x, true));
}

static struct tare_edge ordinary(struct net *net, struct tare_edge x) {
    const int form = pick(net, 8);
    struct tare_edge y;
    if (form == 0) return activate(net, dense(net, x, WIDTH, WIDTH));
    if (form == 1) return activate(net, dense(net, norm(net, x), WIDTH, WIDTH));
    if (form < 6) { /* residual */
        y = activate(net, dense(net, norm(net, x), WIDTH, WIDTH));
        return bi(net, "AddV2", x, dense(net, y, WIDTH, WIDTH));
    }
    /* attention over a memory of 16 */
    y = softmax(net, bi(net, "Mul", product(net, norm(net, x), WIDTH, 16, 1), number(net, 2)), pick(net, 2));
    return bi(net, "AddV2", x, product(net, y, 16, WIDTH, 1));
}

/* ---- kinds ---- */

static struct tare_edge rotate(struct net *net, struct tare_edge x, struct tare_edge position) {
    struct tare_edge angle = bi(net, "Mul", column(net, position), steps(net, WIDTH / 2, 0, 0, true));
    struct tare_edge c = un(net, "Cos", angle), s = un(net, "Sin", angle), a, b;
    struct tare_node *split =
        mini_open(net->g, "Split", name(net, "split"), 2, mini_int(net->g, name(net, "axis"), 1), x);
    mini_ok(tare_node_set_int(split, "num_split", 2));
    a = mini_done(split);
    b = mini_output(a, 1);
    return concat(net, bi(net, "Sub", bi(net, "Mul", a, c), bi(net, "Mul", b, s)),
                  bi(net, "AddV2", bi(net, "Mul", a, s), bi(net, "Mul", b, c)));
}

static struct tare_edge waves(struct net *net, struct tare_edge angle, int width) {
    return product(net, concat(net, un(net, "Sin", angle), un(net, "Cos", angle)), 2 * width, WIDTH, 1);
}

static struct tare_edge kind_rotary(struct net *net, struct tare_edge x) {
    struct tare_edge position = pick(net, 2) ? cast(net, input(net, "pos", 0, 0, 4000, TARE_DT_INT32), TARE_DT_FLOAT)
                                             : input(net, "pos", 0, 0, 4000, TARE_DT_FLOAT);
    return dense(net, rotate(net, dense(net, x, WIDTH, WIDTH), position), WIDTH, WIDTH);
}

static struct tare_edge kind_timestep(struct net *net, struct tare_edge x) {
    struct tare_edge t = input(net, "t", 0, 0, 1000, TARE_DT_FLOAT);
    return bi(net, "AddV2", x, waves(net, bi(net, "Mul", column(net, t), steps(net, 16, 0, 0, true)), 16));
}

static struct tare_edge kind_fourier(struct net *net, struct tare_edge x) {
    struct tare_edge p = bi(net, "MatMul", input(net, "xy", 2, 0, 1, TARE_DT_FLOAT), matrix(net, 2, 16, 0, 10));
    return bi(net, "AddV2", x, waves(net, bi(net, "Mul", p, number(net, 2 * M_PI)), 16));
}

static struct tare_edge kind_siren(struct net *net, struct tare_edge x) {
    struct tare_edge h = bi(net, "MatMul", norm(net, x), matrix(net, WIDTH, WIDTH, 0, sqrt(2.0 / WIDTH) / 30));
    return dense(net, un(net, "Sin", bi(net, "Mul", h, number(net, 30))), WIDTH, WIDTH);
}

static struct tare_edge kind_window(struct net *net, struct tare_edge x) { /* prices near 30000 */
    struct tare_edge p = input(net, "prices", WIDTH, 29950, 30050, TARE_DT_FLOAT);
    return bi(net, "AddV2", x, dense(net, norm(net, p), WIDTH, WIDTH));
}

static struct tare_edge kind_standardized(struct net *net, struct tare_edge x) {
    struct tare_edge p = input(net, "features", WIDTH, 290, 300, TARE_DT_FLOAT);
    p = bi(net, "RealDiv", bi(net, "Sub", p, number(net, 295)), number(net, 3));
    return bi(net, "AddV2", x, dense(net, p, WIDTH, WIDTH));
}

static struct tare_edge kind_age(struct net *net, struct tare_edge x) {
    struct tare_edge now = input(net, "now", 1, 1.70e9, 1.71e9, TARE_DT_FLOAT);
    struct tare_edge then = input(net, "then", 1, 1.60e9, 1.61e9, TARE_DT_FLOAT);
    struct tare_edge age =
        bi(net, "Sub", bi(net, "RealDiv", bi(net, "Sub", now, then), number(net, 1e7)), number(net, 10));
    return bi(net, "AddV2", x, product(net, age, 1, WIDTH, 1));
}

static struct tare_edge kind_offset_norm(struct net *net, struct tare_edge x) { /* a norm of values with a large mean */
    struct tare_edge h =
        bi(net, "BiasAdd", product(net, x, WIDTH, WIDTH, 1), matrix(net, 0, WIDTH, uniform(net, 5, 100), 0.2));
    if (pick(net, 2)) h = bi(net, "AddV2", h, un(net, "Relu", dense(net, x, WIDTH, WIDTH)));
    return dense(net, norm_by(net, h, pick(net, CENTERED_FORMS)), WIDTH, WIDTH);
}

static struct tare_edge kind_batch_norm(struct net *net, struct tare_edge x) {
    const double mean = uniform(net, 20, 60);
    struct tare_edge h = bi(net, "BiasAdd", product(net, x, WIDTH, WIDTH, 1), matrix(net, 0, WIDTH, mean, 0.3));
    struct tare_edge r = un(net, "Rsqrt", bi(net, "AddV2", matrix(net, 0, WIDTH, 1, 0.1), number(net, 1e-3)));
    struct tare_edge m = matrix(net, 0, WIDTH, mean, 0.3);
    if (pick(net, 2)) return un(net, "Relu", bi(net, "Mul", bi(net, "Sub", h, m), r));
    return un(net, "Relu", bi(net, "AddV2", bi(net, "Mul", h, r), un(net, "Neg", bi(net, "Mul", m, r))));
}

static struct tare_edge kind_log_sum(struct net *net, struct tare_edge x) { /* log probabilities, then their sum */
    struct tare_edge h = dense(net, norm(net, x), WIDTH, WIDTH), top = reduce(net, "Max", h, true), l;
    l = bi(net, "AddV2", top, un(net, "Log", reduce(net, "Sum", un(net, "Exp", bi(net, "Sub", h, top)), true)));
    output(net, "logprob",
           reduce(net, "Sum", bi(net, "Mul", bi(net, "Sub", h, l), steps(net, WIDTH, 0, 0.02, false)), false));
    return bi(net, "AddV2", x, dense(net, un(net, "Exp", bi(net, "Sub", h, l)), WIDTH, WIDTH));
}

static struct tare_edge cumulate(struct net *net, struct tare_edge x) {
    struct tare_node *node =
        mini_open(net->g, "Cumsum", name(net, "cumsum"), 2, x, mini_int(net->g, name(net, "axis"), 1));
    return mini_done(node);
}

static struct tare_edge kind_durations(struct net *net, struct tare_edge x) {
    struct tare_edge ends = cumulate(net, input(net, "durations", 16, 0.5, 4, TARE_DT_FLOAT)), y;
    struct tare_edge frames =
        mini_node(net->g, "Range", name(net, "range"), 3, number(net, 0), number(net, 48), number(net, 1));
    struct tare_node *expand =
        mini_open(net->g, "ExpandDims", name(net, "expand"), 2, ends, mini_int(net->g, name(net, "axis"), 2));
    y = cast(net, bi(net, "LessEqual", mini_done(expand), frames), TARE_DT_FLOAT);
    expand = mini_open(net->g, "Sum", name(net, "Sum"), 2, y, mini_int(net->g, name(net, "axis"), 2));
    y = mini_done(expand);
    output(net, "frames", reduce(net, "Sum", y, false));
    return bi(net, "AddV2", x, product(net, bi(net, "Mul", y, number(net, 1.0 / 24)), 16, WIDTH, 1));
}

static struct tare_edge look_up(struct net *net, struct tare_edge table, struct tare_edge index) {
    struct tare_node *gather =
        mini_open(net->g, "GatherV2", name(net, "gather"), 3, table, index, mini_int(net->g, name(net, "axis"), 0));
    mini_ok(tare_node_set_type(gather, "Tparams", TARE_DT_FLOAT));
    mini_ok(tare_node_set_type(gather, "Tindices", TARE_DT_INT32));
    mini_ok(tare_node_set_type(gather, "Taxis", TARE_DT_INT32));
    return mini_done(gather);
}

/* A row of pixels without detail finer than 6 pixels. */
static struct tare_edge smooth(struct net *net) {
    struct tare_edge image = steps(net, TABLE, 0, 1, false);
    struct tare_tensor *value = (struct tare_tensor *)(uintptr_t)tare_edge_constant(image);
    for (int i = 0; i < TABLE; i++)
        TARE_DATA(float, value)[i] = (float)(sin(i * 0.31) + cos(i * 0.9));
    return image;
}

static struct tare_edge kind_sampling(struct net *net, struct tare_edge x) {
    struct tare_edge image = smooth(net), f, w, left, right;
    struct tare_edge p = bi(net, "AddV2", bi(net, "Mul", un(net, "Tanh", dense(net, x, WIDTH, 16)), number(net, 1.5)),
                            input(net, "at", 16, 2, TABLE - 4, TARE_DT_FLOAT));
    f = un(net, "Floor", p);
    w = bi(net, "Sub", p, f);
    left = look_up(net, image, cast(net, f, TARE_DT_INT32));
    right = look_up(net, image, bi(net, "AddV2", cast(net, f, TARE_DT_INT32), mini_int(net->g, name(net, "one"), 1)));
    left = bi(net, "AddV2", bi(net, "Mul", left, bi(net, "Sub", number(net, 1), w)), bi(net, "Mul", right, w));
    return bi(net, "AddV2", x, product(net, left, 16, WIDTH, 1));
}

static struct tare_edge kind_grid(struct net *net,
                                  struct tare_edge x) { /* interpolation as a product with hat functions */
    struct tare_edge p = input(net, "p", 1, 2, WIDTH * 6 - 2, TARE_DT_FLOAT);
    if (pick(net, 2))
        p = bi(net, "AddV2", p, bi(net, "Mul", un(net, "Tanh", dense(net, x, WIDTH, 1)), number(net, 0.2)));
    struct tare_edge hat;
    hat = un(net, "Abs", bi(net, "Sub", p, steps(net, WIDTH * 6, 0, 1, false)));
    hat = bi(net, "Maximum", bi(net, "Sub", number(net, 1), hat), number(net, 0));
    return bi(net, "AddV2", x, product(net, hat, WIDTH * 6, WIDTH, sqrt(WIDTH * 6.0)));
}

static struct tare_edge kind_distance(struct net *net, struct tare_edge x) {
    struct tare_edge c = matrix(net, WIDTH, 16, 3, 1),
                     z = bi(net, "AddV2", product(net, x, WIDTH, WIDTH, 0.3), number(net, 3)), d;
    struct tare_edge squares = reduce(net, "Sum", un(net, "Square", z), true);
    d = bi(net, "Sub", bi(net, "AddV2", squares, matrix(net, 0, 16, 480, 1)),
           bi(net, "Mul", number(net, 2), bi(net, "MatMul", z, c)));
    d = un(net, "Exp", bi(net, "Mul", d, number(net, -0.02)));
    return bi(net, "AddV2", x, product(net, d, 16, WIDTH, 1));
}

static struct tare_edge kind_mask(struct net *net, struct tare_edge x) {
    struct tare_edge mask = input(net, "mask", 16, 0, 1, TARE_DT_FLOAT), y;
    struct tare_tensor *value = &net->values[net->n_inputs - 1];
    for (int64_t i = 0; i < value->elements; i++)
        TARE_DATA(float, value)[i] = TARE_DATA(float, value)[i] < 0.3F || i / 16 == 3 ? -3.4028235e38F : 0;
    y = softmax(net, bi(net, "AddV2", product(net, x, WIDTH, 16, 1), mask), pick(net, 2));
    return bi(net, "AddV2", x, product(net, y, 16, WIDTH, 1));
}

static struct tare_edge kind_variance(struct net *net, struct tare_edge x) { /* statistics pooling */
    struct tare_edge h = bi(net, "AddV2", dense(net, x, WIDTH, WIDTH), number(net, uniform(net, 3, 30))),
                     mean = reduce(net, "Mean", h, true);
    struct tare_edge variance =
        bi(net, "Sub", reduce(net, "Mean", un(net, "Square", h), true), un(net, "Square", mean));
    output(net, "deviation", un(net, "Sqrt", bi(net, "Maximum", variance, number(net, 1e-6))));
    return bi(net, "Mul", bi(net, "Sub", h, mean), un(net, "Rsqrt", bi(net, "AddV2", variance, number(net, 1e-3))));
}

static struct tare_edge kind_count(struct net *net, struct tare_edge x) {
    struct tare_edge pixels = input(net, "pixels", 1600, 0, 1, TARE_DT_FLOAT);
    output(net, "count",
           reduce(net, "Sum", cast(net, bi(net, "Greater", pixels, number(net, 0.35)), TARE_DT_FLOAT), false));
    return x;
}

static struct tare_edge kind_state(struct net *net, struct tare_edge x) {
    struct tare_edge state = input(net, "state", 1, 1000, 2000, TARE_DT_FLOAT),
                     ema = input(net, "ema", 1, 10, 11, TARE_DT_FLOAT);
    output(net, "next", bi(net, "AddV2", state, bi(net, "Mul", dense(net, x, WIDTH, 1), number(net, 0.5))));
    output(net, "ema", bi(net, "AddV2", bi(net, "Mul", ema, number(net, 0.999)), number(net, 0.001)));
    return x;
}

static struct tare_edge kind_long_sum(struct net *net, struct tare_edge x) {
    struct tare_edge h = un(net, "Relu", dense(net, x, WIDTH, WIDTH)), sums = cumulate(net, h);
    output(net, "total", reduce(net, "Sum", bi(net, "Mul", h, number(net, 10)), false));
    return bi(net, "AddV2", x, product(net, bi(net, "Mul", sums, number(net, 0.05)), WIDTH, WIDTH, 1));
}

typedef struct tare_edge (*kind_fn)(struct net *net, struct tare_edge x);
static const struct {
    const char *name;
    kind_fn add;
} kinds[] = {
    { "rotary", kind_rotary },
    { "timestep", kind_timestep },
    { "fourier", kind_fourier },
    { "siren", kind_siren },
    { "window", kind_window },
    { "standardized", kind_standardized },
    { "age", kind_age },
    { "offset_norm", kind_offset_norm },
    { "batch_norm", kind_batch_norm },
    { "log_sum", kind_log_sum },
    { "durations", kind_durations },
    { "sampling", kind_sampling },
    { "grid", kind_grid },
    { "distance", kind_distance },
    { "mask", kind_mask },
    { "variance", kind_variance },
    { "count", kind_count },
    { "state", kind_state },
    { "long_sum", kind_long_sum },
};

/* ---- outputs ---- */

static void finish(struct net *net, struct tare_edge x) {
    struct tare_edge y;
    x = norm(net, x);
    switch (pick(net, 6)) {
    case 0:
        output(net, "logits", dense(net, x, WIDTH, 10));
        break;
    case 1:
        output(net, "probabilities", un(net, "Softmax", dense(net, x, WIDTH, 10)));
        break;
    case 2: /* boxes in pixels */
        y = bi(net, "AddV2", bi(net, "Mul", dense(net, x, WIDTH, 4), number(net, 8)), steps(net, 4, 300, 200, false));
        output(net, "boxes",
               bi(net, "Sub", y, bi(net, "Mul", un(net, "Exp", dense(net, x, WIDTH, 4)), number(net, 4))));
        break;
    case 3:
        output(net, "price",
               bi(net, "AddV2", bi(net, "Mul", dense(net, x, WIDTH, 1), number(net, 1000)), number(net, 300000)));
        break;
    case 4:
        output(net, "kelvin", bi(net, "AddV2", dense(net, x, WIDTH, 2), number(net, 293.15)));
        break;
    default:
        output(net, "embedding", x);
        break;
    }
}

/* A function of its own for some layers. */
static struct tare_edge in_function(struct net *net, kind_fn add, struct tare_edge x) {
    struct tare_graph *outer = net->g;
    struct tare_edge y;
    net->g = tare_model_add_function(net->model, name(net, "inner"));
    y = add(net, mini_arg(net->g, "x", TARE_DT_FLOAT));
    mini_return(net->g, "y", y);
    x = mini_call(outer, "PartitionedCall", name(net, "call"), net->g, 1, x);
    net->g = outer;
    return x;
}

static void build(struct net *net, uint64_t seed) {
    struct tare_edge x;
    const int layers = 7 + (int)(seed % 4), n_kinds = 1 + (int)(seed % 3);
    struct tare_edge call;
    struct tare_node *node;
    memset(net, 0, sizeof *net);
    net->draw = seed * 7919 + 1;
    net->model = mini_model_new();
    net->f = net->g = tare_model_add_function(net->model, "f");
    x = dense(net, input(net, "x", WIDTH, -1.7, 1.7, TARE_DT_FLOAT), WIDTH, WIDTH);
    for (int i = 0, left = n_kinds; i < layers; i++) {
        x = pick(net, 4) ? ordinary(net, x) : in_function(net, ordinary, x);
        if (left && pick(net, layers - i) < left) {
            const int k = pick(net, (int)(sizeof kinds / sizeof *kinds));
            snprintf(net->text + strlen(net->text), sizeof net->text - strlen(net->text), " %s", kinds[k].name);
            x = kinds[k].add(net, x);
            left--;
        }
    }
    finish(net, x);
    node = tare_graph_add(net->model->main, "PartitionedCall", "serve");
    for (int i = 0; i < net->n_inputs; i++) {
        net->feeds[i] = mini_placeholder(net->model->main, name(net, "feed"), net->values[i].dtype);
        mini_ok(tare_node_add_input(node, net->feeds[i]));
    }
    mini_ok(tare_node_set_func(node, "f", "f"));
    mini_infer_attrs(node);
    {
        int in[MOST_INPUTS], out[MOST_OUTPUTS];
        for (int i = 0; i < net->n_inputs; i++)
            in[i] = net->values[i].dtype;
        for (int i = 0; i < net->n_outputs; i++)
            out[i] = TARE_DT_FLOAT;
        mini_ok(tare_node_set_type_list(node, "Tin", in, (size_t)net->n_inputs));
        mini_ok(tare_node_set_type_list(node, "Tout", out, (size_t)net->n_outputs));
    }
    call = mini_done(node);
    for (int i = 0; i < net->n_outputs; i++)
        net->fetches[i] = mini_output(call, i);
}

/* ---- judging ---- */

static void run(const struct net *net, struct tare_tensor *results) {
    struct tare_session *session = mini_session(net->model);
    mini_ok(tare_session_run(session, net->feeds, net->values, (size_t)net->n_inputs, net->fetches, results,
                             (size_t)net->n_outputs, NULL, 0));
    tare_session_free(session);
}

/* SQNR of what varies between rows, in dB. */
static double varying(const struct tare_tensor *want, const struct tare_tensor *got) {
    const int64_t columns = want->elements / ROWS;
    double signal = 0, noise = 0;
    for (int64_t c = 0; c < columns; c++) {
        double mean = 0;
        for (int64_t r = 0; r < ROWS; r++)
            mean += tare_tensor_get_f64(want, r * columns + c) / ROWS;
        for (int64_t r = 0; r < ROWS; r++) {
            const double x = tare_tensor_get_f64(want, r * columns + c),
                         e = x - tare_tensor_get_f64(got, r * columns + c);
            signal += (x - mean) * (x - mean);
            noise += isfinite(e) ? e * e : INFINITY;
        }
    }
    return noise > 0 ? 10 * log10(signal / noise) : 999;
}

static void count_products(const struct tare_graph_model *model, int *all, int *rounded) {
    for (size_t f = 0; f < model->n_functions; f++)
        for (size_t i = 0; i < model->functions[f]->n_nodes; i++) {
            const struct tare_node *node = model->functions[f]->nodes[i];
            if (node->dead || !tare_node_is(node, "MatMul")) continue;
            ++*all;
            *rounded += tare_node_type(node, "T", 0) == TARE_DT_BFLOAT16;
        }
}

static bool judge(uint64_t seed, int *products, int *rounded, double *worst, bool prints) {
    struct net net;
    struct tare_tensor want[MOST_OUTPUTS] = { 0 }, got[MOST_OUTPUTS] = { 0 };
    struct tare_graph *f;
    size_t changes = 0;
    struct tare_bf16_kept_list kept = { 0 };
    const struct tare_bfloat16_options options = { .kept = &kept };
    double least = 999;
    build(&net, seed);
    f = net.f;
    kept.arena = &net.model->arena;
    run(&net, want);
    mini_ok(tare_tpu_bfloat16(net.model, &f, 1, &options, &changes));
    graph_check_dtypes(net.model);
    run(&net, got);
    count_products(net.model, products, rounded);
    for (int i = 0; i < net.n_outputs; i++) {
        const double q = varying(&want[i], &got[i]);
        if (q < least) least = q;
        if (prints && q < 30) printf("seed %d: output %d (%s): %.1f dB\n", (int)seed, i, net.f->returns[i].name, q);
        tare_tensor_reset(&want[i]);
        tare_tensor_reset(&got[i]);
    }
    for (size_t i = 0; prints && i < kept.count; i++)
        if (strcmp(kept.items[i].op, "MatMul") == 0)
            printf("seed %d: %s is float32: it %s\n", (int)seed, kept.items[i].node, kept.items[i].reason);
    if (prints) printf("seed %d:%s: %.1f dB\n", (int)seed, net.text, least);
    if (least < *worst) *worst = least;
    for (int i = 0; i < net.n_inputs; i++)
        tare_tensor_reset(&net.values[i]);
    tare_model_free(net.model);
    return least >= 30;
}

/* The aim is 30 dB for every output. The analysis reaches it in 2,491 of 2,500 networks (26.2 dB at worst; 498 of the
 * first 500), with 96.4 % of the products in bfloat16: a product of twenty layers adds 0.3 % of its operand three
 * times, and where one number sums up many of them, chance decides. The check of records (workflow/bfloat16/) brings
 * all of them above 30 dB. The bounds are what other networks of these kinds kept, so that a kind that is no longer
 * recognized, which costs tens of dB in many networks, fails. The networks differ between compilers, which evaluate
 * draws in other orders. */
static void outputs__keep_30_dB_of_what_varies_in_24_of_25_networks(void **state) {
    const char *text = getenv("TARE_MAGNITUDES");
    unsigned long first = 1, count = 100, failed = 0;
    int products = 0, rounded = 0;
    double worst = 999;
    (void)state;
    if (text) assert_int_equal(sscanf(text, "%lu %lu", &first, &count), 2);
    for (unsigned long seed = first; seed < first + count; seed++)
        failed += !judge(seed, &products, &rounded, &worst, text != NULL);
    printf("%lu networks: worst %.1f dB, %lu below 30 dB; %d of %d products in bfloat16 (%.1f %%)\n", count, worst,
           failed, rounded, products, 100.0 * rounded / products);
    assert_true(failed * 25 <= count && worst >= 26);
    assert_true(rounded >= 0.95 * products);
}

/* ---- sizes ---- */

static bool is_rounded(const struct tare_graph *f, const char *product) {
    return tare_edge_dtype((struct tare_edge){ graph_node(f, product), 0 }) == TARE_DT_BFLOAT16;
}

/* max(1 − |p − [0, 1 … 99]|, 0) of a computed p is zero nearly everywhere, however far p is from the steps. */
static void a_hat_function__has_no_large_mean(void **state) {
    struct net net = { .draw = 1 };
    struct tare_bf16_kept_list kept = { 0 };
    const struct tare_bfloat16_options options = { .kept = &kept };
    struct tare_edge p, hat;
    size_t changes = 0;
    (void)state;
    net.model = mini_model_new();
    net.f = net.g = tare_model_add_function(net.model, "f");
    kept.arena = &net.model->arena;
    p = un(&net, "Tanh", dense(&net, mini_arg(net.f, "x", TARE_DT_FLOAT), WIDTH, 1));
    hat = un(&net, "Abs", bi(&net, "Sub", p, steps(&net, 100, 0, 1, false)));
    hat = bi(&net, "Maximum", bi(&net, "Sub", number(&net, 1), hat), number(&net, 0));
    hat = mini_node(net.f, "MatMul", "product", 2, hat, matrix(&net, 100, WIDTH, 0.2, 1));
    mini_return(net.f, "y", dense(&net, un(&net, "Relu", hat), WIDTH, 4));
    mini_ok(tare_tpu_bfloat16(net.model, &net.f, 1, &options, &changes));
    assert_true(is_rounded(net.f, "product"));
    tare_model_free(net.model);
}

/* (parsed − 50) / 4, parsed on the CPU: a standardized input, not a computed value with a mean of −12. */
static void a_feature_of_a_record__is_an_input(void **state) {
    struct net net = { .draw = 1 };
    struct tare_bf16_kept_list kept = { 0 };
    const struct tare_bfloat16_options options = { .kept = &kept };
    struct tare_edge feature, x;
    struct tare_node *parse;
    size_t changes = 0;
    (void)state;
    net.model = mini_model_new();
    net.f = net.g = tare_model_add_function(net.model, "f");
    kept.arena = &net.model->arena;
    x = bi(&net, "RealDiv", bi(&net, "Sub", mini_arg(net.f, "x", TARE_DT_FLOAT), number(&net, 50)), number(&net, 4));
    x = mini_node(net.f, "MatMul", "product", 2, x, matrix(&net, 4, WIDTH, 0.5, 1));
    mini_return(net.f, "y", dense(&net, un(&net, "Relu", x), WIDTH, 4));
    net.g = tare_model_add_function(net.model, "serve");
    parse = mini_open(net.g, "DecodeCSV", "parse", 2, mini_arg(net.g, "records", TARE_DT_STRING), number(&net, 0));
    mini_ok(tare_node_set_type_list(parse, "OUT_TYPE", (int[]){ TARE_DT_FLOAT }, 1));
    feature = mini_done(parse);
    mini_return(net.g, "y", mini_call(net.g, "PartitionedCall", "call", net.f, 1, feature));
    mini_ok(tare_tpu_bfloat16(net.model, &net.f, 1, &options, &changes));
    assert_true(is_rounded(net.f, "product"));
    for (size_t i = 0; i < kept.count; i++)
        assert_null(strstr(kept.items[i].reason, "has a large mean"));
    tare_model_free(net.model);
}

/* Principal components, (x − mean) · w as x · w − mean · w: the product of what arrives is float32, the layers after it
 * are not. */
static void a_large_offset_of_an_input_product__cancels_its_mean(void **state) {
    struct net net = { .draw = 1 };
    struct tare_bf16_kept_list kept = { 0 };
    const struct tare_bfloat16_options options = { .kept = &kept };
    struct tare_edge x;
    size_t changes = 0;
    (void)state;
    net.model = mini_model_new();
    net.f = net.g = tare_model_add_function(net.model, "f");
    kept.arena = &net.model->arena;
    x = mini_node(net.f, "MatMul", "components", 2, mini_arg(net.f, "x", TARE_DT_FLOAT), matrix(&net, 40, 12, 0, 0.16));
    x = bi(&net, "BiasAdd", x, matrix(&net, 0, 12, 0, 1500));
    x = mini_node(net.f, "MatMul", "layer", 2, x, matrix(&net, 12, WIDTH, 0, 0.3));
    mini_return(net.f, "y", dense(&net, un(&net, "Tanh", x), WIDTH, 4));
    mini_ok(tare_tpu_bfloat16(net.model, &net.f, 1, &options, &changes));
    assert_false(is_rounded(net.f, "components"));
    assert_int_equal(tare_edge_dtype((struct tare_edge){ net.f->args[0], 0 }), TARE_DT_FLOAT);
    assert_false(tare_node_is(graph_node(net.f, "components")->inputs[0].node, "Cast")); /* not of a rounded value */
    assert_true(is_rounded(net.f, "layer"));
    tare_model_free(net.model);
}

/* A filter: r = z − s · h, next = s · a + r · k; a rotation of coordinates. Products of the inputs are float32, with
 * unrounded operands, and those behind an activation are bfloat16. */
static void linear_functions_of_inputs__stay_float32(void **state) {
    struct net net = { .draw = 1 };
    struct tare_bf16_kept_list kept = { 0 };
    const struct tare_bfloat16_options options = { .kept = &kept };
    struct tare_edge s, r, h;
    size_t changes = 0;
    (void)state;
    net.model = mini_model_new();
    net.f = net.g = tare_model_add_function(net.model, "f");
    kept.arena = &net.model->arena;
    s = mini_arg(net.f, "s", TARE_DT_FLOAT);
    r = mini_node(net.f, "MatMul", "predicted", 2, s, matrix(&net, 4, 2, 0, 0.5));
    r = bi(&net, "Sub", mini_arg(net.f, "z", TARE_DT_FLOAT), r);
    h = mini_node(net.f, "MatMul", "hidden", 2, un(&net, "Tanh", r), matrix(&net, 2, WIDTH, 0, 0.7));
    h = mini_node(net.f, "MatMul", "gain", 2, un(&net, "Tanh", h), matrix(&net, WIDTH, 4, 0, 0.1));
    s = mini_node(net.f, "MatMul", "next", 2, s, matrix(&net, 4, 4, 0, 0.5));
    mini_return(net.f, "next", bi(&net, "AddV2", s, h));
    s = mini_node(net.f, "MatMul", "rotated", 2, mini_arg(net.f, "p", TARE_DT_FLOAT), matrix(&net, 2, 2, 0, 0.7));
    mini_return(net.f, "rotated", s);
    mini_ok(tare_tpu_bfloat16(net.model, &net.f, 1, &options, &changes));
    for (int i = 0; i < 3; i++) {
        static const char *const products[] = { "predicted", "rotated", "next" };
        const struct tare_node *product = graph_node(net.f, products[i]);
        assert_int_equal(product->output_dtypes[0], TARE_DT_FLOAT);
        assert_true(tare_node_is_arg(product->inputs[0].node));
        assert_int_equal(tare_edge_dtype(product->inputs[0]), TARE_DT_FLOAT);
    }
    assert_true(is_rounded(net.f, "hidden"));
    assert_true(is_rounded(net.f, "gain"));
    tare_model_free(net.model);
}

/* r = z − s · h of a state that a network has corrected, also where it is predicted again before; an input minus what a
 * network of large matrices computes (noise) is as before. */
static void what_is_predicted_for_an_input__stays_float32(void **state) {
    struct net net = { .draw = 1 };
    const struct tare_bfloat16_options options = { .kept = NULL };
    struct tare_edge s, z, h;
    size_t changes = 0;
    (void)state;
    net.model = mini_model_new();
    net.f = net.g = tare_model_add_function(net.model, "f");
    s = mini_arg(net.f, "s", TARE_DT_FLOAT);
    z = mini_arg(net.f, "z", TARE_DT_FLOAT);
    h = mini_node(net.f, "MatMul", "hidden", 2, un(&net, "Tanh", z), matrix(&net, 2, WIDTH, 0, 0.7));
    h = mini_node(net.f, "MatMul", "correction", 2, un(&net, "Tanh", h), matrix(&net, WIDTH, 4, 0, 0.1));
    s = mini_node(net.f, "MatMul", "next", 2, bi(&net, "AddV2", s, h), matrix(&net, 4, 4, 0, 0.5));
    s = mini_node(net.f, "MatMul", "predicted", 2, s, matrix(&net, 4, 2, 0, 0.5));
    mini_return(net.f, "r", dense(&net, un(&net, "Relu", bi(&net, "Sub", z, s)), 2, 40));
    h = mini_node(net.f, "MatMul", "noise", 2, un(&net, "Tanh", h), matrix(&net, 4, 40, 0, 0.3));
    h = un(&net, "Relu", bi(&net, "Sub", mini_arg(net.f, "image", TARE_DT_FLOAT), h));
    mini_return(net.f, "clean", dense(&net, h, 40, 40));
    mini_ok(tare_tpu_bfloat16(net.model, &net.f, 1, &options, &changes));
    assert_false(is_rounded(net.f, "predicted"));
    assert_false(is_rounded(net.f, "next"));
    assert_true(is_rounded(net.f, "hidden"));
    assert_true(is_rounded(net.f, "correction"));
    assert_true(is_rounded(net.f, "noise"));
    tare_model_free(net.model);
}

/* A polynomial of measured values, whose terms are not linear functions of them, in a function that another calls. */
static void a_small_product__is_found_in_a_called_function(void **state) {
    struct net net = { .draw = 1 };
    const struct tare_bfloat16_options options = { .kept = NULL };
    struct tare_graph *graphs[2];
    struct tare_edge x;
    size_t changes = 0;
    (void)state;
    net.model = mini_model_new();
    net.f = net.g = graphs[0] = tare_model_add_function(net.model, "polynomial");
    x = mini_arg(net.f, "x", TARE_DT_FLOAT);
    x = mini_node(net.f, "MatMul", "small", 2, bi(&net, "Mul", x, x), matrix(&net, 8, 2, 0, 0.5));
    mini_return(net.f, "y", un(&net, "Identity", x));
    graphs[1] = tare_model_add_function(net.model, "serve");
    x = mini_call(graphs[1], "PartitionedCall", "call", net.f, 1, mini_arg(graphs[1], "x", TARE_DT_FLOAT));
    mini_return(graphs[1], "y", x);
    mini_ok(tare_tpu_bfloat16(net.model, graphs, 2, &options, &changes));
    assert_false(is_rounded(net.f, "small"));
    assert_int_equal(tare_edge_dtype(graph_node(net.f, "small")->inputs[0]), TARE_DT_FLOAT);
    assert_false(tare_node_is(graph_node(net.f, "small")->inputs[0].node, "Cast"));
    tare_model_free(net.model);
}

/* state = 0.999 state + x · w in a loop: what rounding the weights adds in each step adds up, the noise of x does not.
 */
static void a_loop_that_averages_a_product__keeps_it_float32(void **state) {
    struct net net = { .draw = 1 };
    const struct tare_bfloat16_options options = { .kept = NULL };
    struct tare_graph *graphs[2], *condition;
    struct tare_edge i, x, sum;
    struct tare_node *loop;
    size_t changes = 0;
    (void)state;
    net.model = mini_model_new();
    condition = tare_model_add_function(net.model, "cond");
    i = mini_arg(condition, "i", TARE_DT_INT32);
    mini_arg(condition, "x", TARE_DT_FLOAT);
    mini_arg(condition, "sum", TARE_DT_FLOAT);
    mini_return(condition, "go", mini_node(condition, "Less", "less", 2, i, mini_int(condition, "end", 200)));
    net.f = net.g = graphs[0] = tare_model_add_function(net.model, "body");
    i = mini_arg(net.f, "i", TARE_DT_INT32);
    x = mini_arg(net.f, "x", TARE_DT_FLOAT);
    sum = mini_arg(net.f, "sum", TARE_DT_FLOAT);
    mini_return(net.f, "i", mini_node(net.f, "AddV2", "next", 2, i, mini_int(net.f, "one", 1)));
    mini_return(net.f, "x", x);
    x = mini_node(net.f, "MatMul", "product", 2, x, matrix(&net, 8, 8, 0, 0.5));
    mini_return(net.f, "sum", bi(&net, "AddV2", bi(&net, "Mul", sum, number(&net, 0.999)), x));
    graphs[1] = tare_model_add_function(net.model, "f");
    x = mini_arg(graphs[1], "x", TARE_DT_FLOAT);
    loop = mini_open(graphs[1], "StatelessWhile", "loop", 3, mini_int(graphs[1], "start", 0), x,
                     mini_node(graphs[1], "ZerosLike", "zeros", 1, x));
    mini_ok(tare_node_set_func(loop, "cond", "cond"));
    mini_ok(tare_node_set_func(loop, "body", "body"));
    mini_return(graphs[1], "y", mini_output(mini_done(loop), 2));
    mini_ok(tare_tpu_bfloat16(net.model, graphs, 2, &options, &changes));
    assert_false(is_rounded(net.f, "product"));
    tare_model_free(net.model);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(linear_functions_of_inputs__stay_float32),
                                        cmocka_unit_test(what_is_predicted_for_an_input__stays_float32),
                                        cmocka_unit_test(a_loop_that_averages_a_product__keeps_it_float32),
                                        cmocka_unit_test(a_small_product__is_found_in_a_called_function),
                                        cmocka_unit_test(a_large_offset_of_an_input_product__cancels_its_mean),
                                        cmocka_unit_test(a_hat_function__has_no_large_mean),
                                        cmocka_unit_test(a_feature_of_a_record__is_an_input),
                                        cmocka_unit_test(outputs__keep_30_dB_of_what_varies_in_24_of_25_networks) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
