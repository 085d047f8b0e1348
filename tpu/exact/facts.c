/* Forward data flow over the whole model, repeated until no flag changes; flags are only ever set, so it ends. One fact
 * per node and per argument, and per output of calls and splits. Results pass from callees to callers and arguments the
 * other way, so that rounds alternate their direction: few rounds for functions nested in either order. */
#include "tpu/exact/facts.h"
#include "tpu/exact/weights.h"
#include "base/tensor/tensor.h"
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/graph_table.h"
#include "graph/flags.h"
#include "graph/graphs.h"
#include "graph/op.h"

#include <complex.h>
#include <math.h>
#include <string.h>

enum { MOST_ROUNDS = 64, TYPICAL_LENGTH = 16, MOST_MEASURED = 4096 };

struct view {
    struct tare_graph *graph;
    struct tare_value_fact *nodes, *args; /* by position */
    struct tare_value_fact **outputs; /* of calls and splits, by position; NULL: all outputs share that of the node */
    bool *served;                     /* of the main graph; NULL: all nodes count */
};

struct tare_value_facts {
    struct tare_arena *arena;
    const struct tare_graph_model *model;
    struct tare_bindings *bindings;
    struct view *views;
    size_t n_views;
    struct tare_graph_table by_graph;
};

static bool is_complex(int dtype) {
    return dtype == TARE_DT_COMPLEX64 || dtype == TARE_DT_COMPLEX128;
}

static bool carries_floats(int dtype) {
    return tare_dtype_is_floating(dtype) || dtype == TARE_DT_VARIANT || is_complex(dtype);
}

static bool has_float_output(const struct tare_node *node) {
    for (size_t i = 0; i < node->n_outputs; i++)
        if (carries_floats(tare_dtype_base(node->output_dtypes[i]))) return true;
    return false;
}

bool tare_passes_values(const struct tare_node *node) {
    enum { PASSING = TARE_OP_ELEMENTWISE | TARE_OP_MOVE | TARE_OP_CREATE | TARE_OP_ARITHMETIC | TARE_OP_REDUCE };
    if (tare_node_has_flag(node, PASSING)) return true;
    if (node->def && node->def->row && node->def->row->quant == TARE_QUANT_BIAS) return true;
    return tare_node_has_flag(node, TARE_OP_CONTROL) || strstr(node->op, "TensorList");
}

/* ---- views ---- */

static struct view *view_of(const struct tare_value_facts *f, const struct tare_graph *graph) {
    return tare_graph_table_get(&f->by_graph, graph);
}

static tare_status add_view(struct tare_value_facts *f, struct tare_graph *graph) {
    struct view *view = &f->views[f->n_views++];
    view->graph = graph;
    view->nodes = TARE_NEW_ARRAY(f->arena, struct tare_value_fact, graph->n_nodes + 1);
    view->args = TARE_NEW_ARRAY(f->arena, struct tare_value_fact, graph->n_args + 1);
    view->outputs = TARE_NEW_ARRAY(f->arena, struct tare_value_fact *, graph->n_nodes + 1);
    if (!view->nodes || !view->args || !view->outputs) return TARE_NO_MEMORY;
    if (graph == f->model->main) TARE_TRY(tare_model_served_nodes(&view->served, f->arena, f->model));
    return tare_graph_table_set(&f->by_graph, graph, view) ? TARE_OK : TARE_NO_MEMORY;
}

const struct tare_value_fact *tare_value_fact(const struct tare_value_facts *facts, struct tare_edge edge) {
    const struct view *view = view_of(facts, edge.node->graph);
    const size_t position = edge.node->position;
    if (tare_node_is_arg(edge.node)) return &view->args[position];
    return view->outputs[position] ? &view->outputs[position][edge.index] : &view->nodes[position];
}

float tare_fact_weight(const struct tare_value_fact *fact) {
    return hypotf(fact->mean, fact->spread) / fmaxf(fact->dev, 1e-30F);
}

/* Adds what `from` is to *to, which also has the larger ratio of the two; a constant has none. */
static void join(struct tare_value_fact *to, const struct tare_value_fact *from, bool first) {
    first |= from->varies && !to->varies;
    if (!from->varies && to->varies) {
        to->large |= from->large;
        return;
    }
    to->varies |= from->varies;
    to->computed |= from->computed;
    to->wild |= from->wild;
    to->heavy |= from->heavy;
    to->large |= from->large;
    to->nonlinear |= from->nonlinear;
    if (first || tare_fact_weight(from) > tare_fact_weight(to)) {
        to->mean = from->mean;
        to->spread = from->spread;
        to->dev = from->dev;
    }
    if (first) {
        to->elements = from->elements;
        to->last = from->last;
    }
}

static bool same_flags(const struct tare_value_fact *a, const struct tare_value_fact *b) {
    return a->varies == b->varies && a->computed == b->computed && a->wild == b->wild && a->heavy == b->heavy &&
           a->large == b->large && a->nonlinear == b->nonlinear;
}

/* ---- constants ---- */

/* Masks of zeros and one negative number choose values, and shift none of those that remain. */
static bool is_mask(const struct tare_tensor *value) {
    const int64_t step = value->elements / MOST_MEASURED + 1;
    bool zero = false;
    double other = 0;
    for (int64_t i = 0; i < value->elements; i += step) {
        const double x = tare_tensor_get_f64(value, i);
        zero |= x == 0;
        if (x > 0 || (x != 0 && other != 0 && x != other)) return false;
        if (x != 0) other = x;
    }
    return zero && other <= -16;
}

/* An element; of complex numbers its magnitude. */
static double element(const struct tare_tensor *value, int64_t i) {
    return is_complex(value->dtype) ? cabs(tare_tensor_get_c128(value, i)) : tare_tensor_get_f64(value, i);
}

/* Mean and deviation of `length` elements. */
static void measure_part(struct tare_value_fact *fact, const struct tare_tensor *value, int64_t from, int64_t length) {
    const int64_t step = length / MOST_MEASURED + 1;
    double sum = 0, squares = 0;
    int64_t count = 0;
    for (int64_t i = from; i < from + length; i += step, count++) {
        const double x = element(value, i);
        if (!isfinite(x)) return;
        sum += x;
        squares += x * x;
    }
    fact->mean = (float)(sum / (double)count);
    fact->spread = (float)sqrt(fmax(0, squares / (double)count - sum / (double)count * (sum / (double)count)));
}

static void measure(struct tare_value_fact *fact, const struct tare_tensor *value) {
    fact->elements = (float)value->elements;
    fact->last = value->shape.rank > 0 ? (float)value->shape.dims[value->shape.rank - 1] : 1;
    fact->large = value->elements > TARE_LARGE || value->dtype == TARE_DT_INT8 || value->dtype == TARE_DT_INT4 ||
                  value->dtype == TARE_DT_UINT8 || value->dtype == TARE_DT_UINT4;
    if (!value->data || value->elements < 1 || tare_dtype_size(value->dtype) == 0 || value->dtype == TARE_DT_STRING)
        return;
    if (value->splat) {
        fact->mean = (float)element(value, 0);
        fact->spread = 0;
        return;
    }
    if (!is_complex(value->dtype) && is_mask(value))
        fact->spread = 0;
    else
        measure_part(fact, value, 0, value->elements);
}

static bool reads_variable(const struct tare_node *node) {
    return tare_node_is(node, "ReadVariableOp") || tare_node_is(node, "ResourceGather");
}

static const struct tare_tensor *value_of(const struct tare_value_facts *f, const struct tare_node *node) {
    const struct tare_variable *variable;
    if (tare_node_is(node, "Const")) return tare_node_tensor(node, "value");
    if (!reads_variable(node)) return NULL;
    variable = tare_bindings_variable(f->bindings, node->inputs[0], NULL);
    return variable && variable->value.dtype != TARE_DT_INVALID ? &variable->value : NULL;
}

const struct tare_tensor *tare_value_constant(const struct tare_value_facts *facts, struct tare_edge edge) {
    while (!tare_node_is_arg(edge.node) && tare_node_is(edge.node, "Identity"))
        edge = edge.node->inputs[0];
    return tare_node_is_arg(edge.node) ? NULL : value_of(facts, edge.node);
}

/* The deviation of a table from row to row, within its columns; negative: not known. */
static double deviation_of_rows(const struct tare_tensor *table) {
    const int64_t last = table->shape.rank > 1 ? table->shape.dims[table->shape.rank - 1] : 1;
    const int64_t columns = last > 0 ? last : 1, rows = table->elements / columns;
    const int64_t step = table->elements / MOST_MEASURED / columns + 1;
    double variance = 0;
    if (!table->data || table->splat || rows <= step) return -1;
    for (int64_t c = 0; c < columns; c++) {
        double sum = 0, squares = 0, count = 0;
        for (int64_t r = 0; r < rows; r += step, count++) {
            const double x = tare_tensor_get_f64(table, r * columns + c);
            sum += x;
            squares += x * x;
        }
        variance += fmax(0, squares - sum * sum / count) / (count - 1) / (double)columns;
    }
    return isfinite(variance) ? sqrt(variance) : -1;
}

/* What is looked up varies by what the rows of the table (NULL: not known) differ in. */
static void look_up(struct tare_value_fact *size, const struct tare_tensor *table) {
    const double all = size->spread, rows = table ? deviation_of_rows(table) : -1;
    size->dev = rows >= 0 ? (float)fmin(rows, all) : size->spread;
    size->spread = (float)sqrt(fmax(0, all * all - (double)size->dev * (double)size->dev));
}

/* Facts of nodes without float operands; they do not change. True: set. */
static bool find_source(struct tare_value_fact *fact, const struct tare_value_facts *f, const struct tare_node *node) {
    const bool looks_up = tare_node_is(node, "ResourceGather");
    const struct tare_tensor *value = value_of(f, node);
    if (!value && !tare_node_is(node, "Const") && !reads_variable(node)) return false;
    fact->varies = fact->computed = fact->nonlinear = looks_up;
    fact->spread = 1;
    fact->dev = 0;
    fact->large = reads_variable(node);
    if (value) measure(fact, value);
    if (looks_up) look_up(fact, value);
    return true;
}

/* ---- sizes ---- */

static float rms(const struct tare_value_fact *fact) {
    return hypotf(fact->mean, fact->spread);
}

static float bounded(float x) {
    return fminf(fmaxf(x, -1e15F), 1e15F);
}

static struct tare_value_fact sized(float mean, float spread, float dev) {
    return (struct tare_value_fact){ .mean = bounded(mean), .spread = bounded(spread), .dev = bounded(dev) };
}

static struct tare_value_fact add(const struct tare_value_fact *a, const struct tare_value_fact *b, float sign) {
    return sized(a->mean + sign * b->mean, hypotf(a->spread, b->spread), hypotf(a->dev, b->dev));
}

static struct tare_value_fact multiply(const struct tare_value_fact *a, const struct tare_value_fact *b) {
    return sized(a->mean * b->mean, hypotf(hypotf(a->mean * b->spread, b->mean * a->spread), a->spread * b->spread),
                 hypotf(hypotf(rms(a) * b->dev, rms(b) * a->dev), a->dev * b->dev));
}

/* A computed divisor is taken for a norm: the quotient has deviation 1. */
static struct tare_value_fact divide(const struct tare_value_fact *a, const struct tare_value_fact *b) {
    const float divisor = b->varies ? fmaxf(a->dev, 1e-15F) : fmaxf(rms(b), 1e-15F);
    if (b->varies && !a->varies) return sized(1, 0, 1);
    return sized(a->mean / divisor, a->spread / divisor, a->dev / divisor);
}

/* Networks keep their values near 1: a larger estimate is not trusted, so that offsets are noticed. */
static struct tare_value_fact limited(struct tare_value_fact fact) {
    const float most = 2, factor = fact.dev > most ? most / fact.dev : 1;
    return sized(fact.mean * factor, fact.spread * factor, fact.dev * factor);
}

/* Sums over the contraction of a product with weights. */
static struct tare_value_fact weigh(const struct tare_node *node, const struct tare_value_fact *x,
                                    const struct tare_value_fact *w) {
    const bool transposed = tare_node_bool(node, "transpose_b", false) || tare_node_bool(node, "adj_y", false);
    float length = w->last > 0 ? (transposed ? w->last : w->elements / w->last) : 0;
    if (strncmp(node->op, "Depthwise", strlen("Depthwise")) == 0) length = fminf(length, TYPICAL_LENGTH);
    if (w->varies || length <= 0) return sized(0, 0, 1);
    if (!x->computed) return limited(sized(length * w->mean, 0, sqrtf(length) * rms(w))); /* of any input */
    return limited(sized(length * w->mean * x->mean, sqrtf(length) * rms(w) * rms(x), sqrtf(length) * rms(w) * x->dev));
}

enum rule {
    NO_RULE,
    ADDS,
    MULTIPLIES,
    DIVIDES,
    IS_UNIT,
    RECTIFIES,
    SQUARES,
    ROOTS,
    ROOTS_INVERSE,
    EXPONENTIAL,
    AVERAGES,
    SUMS,
    NEGATES,
    FOLDS,
    LIMITS,
    SUBTRACTS,
    SATURATES
};

static enum rule rule_of(const struct tare_node *node) {
    static const struct {
        const char *op;
        enum rule rule;
    } rules[] = {
        { "AddV2", ADDS },
        { "Add", ADDS },
        { "Sub", SUBTRACTS },
        { "BiasAdd", ADDS },
        { "BiasAddV1", ADDS },
        { "Complex", ADDS },
        { "SquaredDifference", SQUARES },
        { "Mul", MULTIPLIES },
        { "RealDiv", DIVIDES },
        { "Div", DIVIDES },
        { "DivNoNan", DIVIDES },
        { "Sigmoid", SATURATES },
        { "Relu", RECTIFIES },
        { "Relu6", RECTIFIES },
        { "Softplus", RECTIFIES },
        { "Tanh", SATURATES },
        { "Sin", IS_UNIT },
        { "Cos", IS_UNIT },
        { "Softmax", IS_UNIT },
        { "LogSoftmax", IS_UNIT },
        { "Erf", SATURATES },
        { "Square", SQUARES },
        { "Sqrt", ROOTS },
        { "Rsqrt", ROOTS_INVERSE },
        { "Exp", EXPONENTIAL },
        { "Log", SATURATES },
        { "Mean", AVERAGES },
        { "Sum", SUMS },
        { "Cumsum", SUMS },
        { "Neg", NEGATES },
        { "Abs", FOLDS },
        { "Maximum", LIMITS },
        { "Minimum", LIMITS },
    };
    if (tare_node_is(node, "Exp") && is_complex(tare_edge_dtype(node->inputs[0]))) return IS_UNIT;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(node->op, rules[i].op) == 0) return rules[i].rule;
    return NO_RULE;
}

static struct tare_value_fact of_one(enum rule rule, const struct tare_value_fact *x) {
    const float size = rms(x), dev = x->dev, both = hypotf(size, dev), n = TYPICAL_LENGTH, weight = tare_fact_weight(x);
    switch (rule) {
    case RECTIFIES:
        if (x->mean > 2 * dev) return *x;
        return x->mean < -2 * dev ? sized(0, 0, dev) : sized(0.4F * dev + x->mean / 2, x->spread / 2, 0.6F * dev);
    case FOLDS:
        return sized(fabsf(x->mean), x->spread, dev);
    case SQUARES:
        return sized(both * both, 2 * fabsf(x->mean) * x->spread, hypotf(2 * size * dev, 1.4F * dev * dev));
    case ROOTS:
        return sized(sqrtf(both), 0, dev / (2 * sqrtf(fmaxf(both, 1e-15F))));
    case ROOTS_INVERSE:
        return sized(1, 0, dev / (2 * fmaxf(size, dev + 1e-15F)));
    case EXPONENTIAL:
        return sized(1, 0, fminf(dev, 1));
    case AVERAGES:
        return sized(x->mean, x->spread, dev / sqrtf(n));
    case SUMS:
        return sized(x->mean * n, x->spread * sqrtf(n), dev * sqrtf(n));
    case SATURATES:
        return weight > 2 ? sized(1, 0, 1 / weight) : sized(0, 0, 1);
    case NEGATES:
        return sized(-x->mean, x->spread, dev);
    default:
        return sized(0, 0, 1);
    }
}

/* Maximum and Minimum with a constant c: what is left of x − c, or of c − x, is rectified. */
static struct tare_value_fact limit(const struct tare_node *node, const struct tare_value_fact *x,
                                    const struct tare_value_fact *c) {
    const float sign = tare_node_is(node, "Maximum") ? 1 : -1;
    struct tare_value_fact above = add(x, c, -1);
    above.mean *= sign;
    above = of_one(RECTIFIES, &above);
    above.mean *= sign;
    return add(&above, c, 1);
}

/* Scale and offset determine what leaves a normalization. */
static struct tare_value_fact normalized(const struct tare_value_facts *f, const struct tare_node *node) {
    const struct tare_value_fact *scale = tare_value_fact(f, node->inputs[1]);
    const struct tare_value_fact *offset = tare_value_fact(f, node->inputs[2]);
    return scale->varies || offset->varies ? sized(0, 0, 1) : sized(offset->mean, offset->spread, rms(scale));
}

/* Moves elements of a constant or variable from where a varying operand says: a look-up in a learned table. */
static bool looks_up(const struct tare_value_facts *f, const struct tare_node *node) {
    bool varies = false;
    if (!tare_node_has_flag(node, TARE_OP_MOVE) || !node->n_inputs || !carries_floats(tare_edge_dtype(node->inputs[0])))
        return false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        if (!tare_value_fact(f, node->inputs[i])->varies) continue;
        if (carries_floats(tare_edge_dtype(node->inputs[i]))) return false;
        varies = true;
    }
    return varies;
}

static bool reads_rows(const struct tare_node *node) {
    return tare_node_is(node, "GatherV2") || tare_node_is(node, "Gather");
}

static struct tare_value_fact size_of(const struct tare_value_facts *f, const struct tare_node *node) {
    const struct tare_value_fact *a = NULL, *b = NULL;
    const enum rule rule = rule_of(node);
    struct tare_value_fact size = sized(0, 0, 1);
    for (size_t i = 0; i < node->n_inputs; i++) {
        if (!carries_floats(tare_edge_dtype(node->inputs[i]))) continue;
        if (!a)
            a = tare_value_fact(f, node->inputs[i]);
        else if (!b)
            b = tare_value_fact(f, node->inputs[i]);
    }
    if (!a || tare_find_mean_of_rows(&size, f, node)) return size;
    size = sized(0, 0, 1);
    if (strncmp(node->op, "FusedBatchNorm", strlen("FusedBatchNorm")) == 0) return normalized(f, node);
    if (tare_node_has_flag(node, TARE_OP_PRODUCT)) return b ? a->varies ? weigh(node, a, b) : weigh(node, b, a) : size;
    if (rule == ADDS && b) return add(a, b, 1);
    if (rule == SUBTRACTS && b) return add(a, b, -1);
    if (rule == MULTIPLIES && b) return multiply(a, b);
    if (rule == DIVIDES && b) return divide(a, b);
    if (rule == LIMITS && b && a->varies != b->varies) return a->varies ? limit(node, a, b) : limit(node, b, a);
    if (rule == SQUARES && b) {
        size = add(a, b, -1);
        a = &size;
    }
    if (rule != NO_RULE && rule != LIMITS) return of_one(rule, a);
    if (!tare_passes_values(node)) return size;
    size = *a;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (carries_floats(tare_edge_dtype(node->inputs[i])) && tare_value_fact(f, node->inputs[i])->varies)
            join(&size, tare_value_fact(f, node->inputs[i]), false);
    if (looks_up(f, node)) look_up(&size, reads_rows(node) ? tare_value_constant(f, node->inputs[0]) : NULL);
    return sized(size.mean, size.spread, size.dev);
}

/* ---- one node ---- */

static bool adds(const struct tare_node *node) {
    return rule_of(node) == ADDS || rule_of(node) == SUBTRACTS || tare_node_is(node, "AddN");
}

/* The mean of an input is not known, nor that of a value to which one was added. */
static bool is_wild(const struct tare_value_facts *f, const struct tare_node *node) {
    bool input = false, computed = false, wild = false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_value_fact *fact;
        if (!carries_floats(tare_edge_dtype(node->inputs[i]))) continue;
        fact = tare_value_fact(f, node->inputs[i]);
        input |= tare_fact_is_input(fact);
        computed |= fact->computed;
        wild |= fact->wild;
    }
    if (tare_node_has_flag(node, TARE_OP_PRODUCT | TARE_OP_PROBABILITY) || rule_of(node) == IS_UNIT) return false;
    return wild || (adds(node) && input && computed);
}

/* Sums, moves, and products and quotients of one varying operand. */
static bool is_linear(const struct tare_value_facts *f, const struct tare_node *node) {
    const enum rule rule = rule_of(node);
    size_t varying = 0;
    if (tare_node_has_flag(node, TARE_OP_MOVE) || adds(node) || rule == NEGATES || tare_node_is(node, "Cast") ||
        tare_node_is(node, "AvgPool"))
        return true;
    for (size_t i = 0; i < node->n_inputs; i++)
        varying += tare_value_fact(f, node->inputs[i])->varies;
    if (rule == DIVIDES) return varying == 1 && !tare_value_fact(f, node->inputs[1])->varies;
    return varying == 1 &&
           (tare_node_has_flag(node, TARE_OP_PRODUCT) || rule == MULTIPLIES || rule == SUMS || rule == AVERAGES);
}

static const struct tare_node *before_moves(struct tare_edge edge) {
    while (!tare_node_is_arg(edge.node) && tare_node_has_flag(edge.node, TARE_OP_MOVE) && edge.node->n_inputs)
        edge = edge.node->inputs[0];
    return edge.node;
}

bool tare_offsets_input_product(const struct tare_value_facts *f, const struct tare_node *node) {
    for (int i = 0; adds(node) && node->n_inputs == 2 && i < 2; i++) {
        const struct tare_value_fact *offset = tare_value_fact(f, node->inputs[1 - i]);
        const struct tare_node *product = before_moves(node->inputs[i]);
        bool of_input = false;
        if (offset->varies || tare_node_is_arg(product) || !tare_node_has_flag(product, TARE_OP_PRODUCT)) continue;
        for (size_t k = 0; k < product->n_inputs; k++)
            of_input |= tare_fact_is_input(tare_value_fact(f, product->inputs[k]));
        if (of_input && rms(offset) >= TARE_HEAVY * tare_value_fact(f, node->inputs[i])->dev) return true;
    }
    return false;
}

static void find_arithmetic(struct tare_value_fact *fact, const struct tare_value_facts *f,
                            const struct tare_node *node) {
    struct tare_value_fact size = size_of(f, node);
    bool takes_floats = false, takes_strings = false, any = false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_value_fact *from = tare_value_fact(f, node->inputs[i]);
        const bool floats = carries_floats(tare_edge_dtype(node->inputs[i]));
        if (!tare_node_has_flag(node, TARE_OP_SHAPE_ONLY)) fact->varies |= from->varies;
        takes_floats |= floats;
        takes_strings |= tare_edge_dtype(node->inputs[i]) == TARE_DT_STRING;
        fact->computed |= floats && from->computed && has_float_output(node);
        fact->large |= from->large;
        fact->nonlinear |= floats && from->nonlinear;
        if (!any && floats) {
            size.elements = from->elements;
            size.last = from->last;
            any = true;
        }
    }
    /* As good as computed: the values of a table have the size of activations. */
    if (looks_up(f, node)) fact->computed = fact->nonlinear = true;
    fact->varies |= (!node->n_inputs || tare_node_has_flag(node, TARE_OP_STATEFUL)) && !tare_node_is(node, "NoOp") &&
                    !tare_node_is(node, "VarHandleOp");
    /* What is read from a record or a text is an input; its floats are defaults. */
    fact->computed |= takes_floats && !takes_strings && !tare_passes_values(node) && has_float_output(node);
    fact->wild |= is_wild(f, node);
    fact->nonlinear |= fact->varies && takes_floats && !takes_strings && !is_linear(f, node);
    /* Nothing is known about the mean of an input, nor about what a constant leaves of it. */
    if (adds(node) && fact->varies && (!fact->computed || tare_offsets_input_product(f, node)))
        size.mean = size.spread = 0;
    fact->mean = size.mean;
    fact->spread = size.spread;
    fact->dev = size.dev;
    fact->elements = size.elements;
    fact->last = size.last;
}

static bool is_heavy(const struct tare_value_fact *fact) {
    return fact->varies && fact->computed && tare_fact_weight(fact) >= TARE_HEAVY;
}

/* Arguments are what callers pass, and for loops the returns. */
static void find_arguments(const struct tare_value_facts *f, const struct tare_node *node,
                           const struct tare_call_site *site, bool *changed) {
    for (size_t c = 0; c < site->n_callees; c++) {
        const struct tare_graph *callee = site->callees[c];
        struct view *view = view_of(f, callee);
        for (size_t i = 0; i < callee->n_args; i++) {
            struct tare_value_fact before = view->args[i], *arg = &view->args[i];
            if (i < site->n_args)
                join(arg, tare_value_fact(f, node->inputs[site->first + i]),
                     arg->dev == 0 && arg->mean == 0 && arg->spread == 0);
            if (site->kind == TARE_CALL_LOOP && i < callee->n_args && c == 1 && i < callee->n_returns &&
                callee->returns[i].edge.node)
                join(arg, tare_value_fact(f, callee->returns[i].edge), false);
            *changed |= !same_flags(&before, arg);
        }
    }
}

/* Output i is what the functions return there. */
static void find_result(struct tare_value_fact *fact, const struct tare_value_facts *f,
                        const struct tare_call_site *site, size_t i) {
    bool first = true;
    for (size_t c = site->kind == TARE_CALL_LOOP; c < site->n_callees; c++) {
        const struct tare_graph *callee = site->callees[c];
        if (i >= callee->n_returns || !callee->returns[i].edge.node) continue;
        join(fact, tare_value_fact(f, callee->returns[i].edge), first);
        first = false;
    }
}

/* Part i of a sum with a constant has part i of the constant: the biases of the gates of a recurrent cell. */
static void find_part(struct tare_value_fact *fact, const struct tare_value_facts *f, const struct tare_node *node,
                      size_t i) {
    const struct tare_node *sum = node->inputs[1].node;
    find_arithmetic(fact, f, node);
    for (size_t k = 0; !tare_node_is_arg(sum) && rule_of(sum) == ADDS && k < 2; k++) {
        const struct tare_tensor *constant = tare_value_constant(f, sum->inputs[1 - k]);
        const int64_t length = constant ? constant->elements / (int64_t)node->n_outputs : 0;
        struct tare_value_fact part = { 0 };
        if (!constant || !constant->data || constant->shape.rank != 1 || constant->splat || length < 1) continue;
        measure_part(&part, constant, (int64_t)i * length, length);
        part = add(tare_value_fact(f, sum->inputs[k]), &part, 1);
        fact->mean = part.mean;
        fact->spread = part.spread;
        fact->dev = part.dev;
    }
}

static tare_status find_node(const struct tare_value_facts *f, struct view *view, size_t n, bool *changed) {
    const struct tare_node *node = view->graph->nodes[n];
    struct tare_value_fact *facts = &view->nodes[n];
    struct tare_call_site site;
    bool calls;
    if (find_source(facts, f, node)) return TARE_OK;
    TARE_TRY(tare_call_site(&site, f->arena, node));
    calls = site.kind != TARE_CALL_NONE && site.kind != TARE_CALL_OTHER;
    if ((calls || tare_node_is(node, "Split")) && !view->outputs[n]) {
        view->outputs[n] = TARE_NEW_ARRAY(f->arena, struct tare_value_fact, node->n_outputs + 1);
        if (!view->outputs[n]) return TARE_NO_MEMORY;
    }
    if (calls) find_arguments(f, node, &site, changed);
    if (view->outputs[n]) facts = view->outputs[n];
    for (size_t i = 0; i < (view->outputs[n] ? node->n_outputs : 1); i++) {
        const struct tare_value_fact before = facts[i];
        if (calls)
            find_result(&facts[i], f, &site, i);
        else if (view->outputs[n])
            find_part(&facts[i], f, node, i);
        else
            find_arithmetic(&facts[i], f, node);
        facts[i].heavy |= is_heavy(&facts[i]);
        *changed |= !same_flags(&before, &facts[i]);
    }
    return TARE_OK;
}

/* ---- all of it ---- */

static tare_status mark_called(const struct tare_value_facts *f, bool *called) {
    for (size_t g = 0; g < f->n_views; g++) {
        const struct view *view = &f->views[g];
        for (size_t i = 0; i < view->graph->n_nodes; i++) {
            struct tare_call_site site;
            if (view->graph->nodes[i]->dead || (view->served && !view->served[i])) continue;
            TARE_TRY(tare_call_site(&site, f->arena, view->graph->nodes[i]));
            for (size_t c = 0; c < site.n_callees && site.kind != TARE_CALL_OTHER; c++)
                called[view_of(f, site.callees[c]) - f->views] = true;
        }
    }
    return TARE_OK;
}

/* What nothing in the model calls, a user may call with any input. */
static tare_status open_arguments(const struct tare_value_facts *f) {
    bool *called = TARE_NEW_ARRAY(f->arena, bool, f->n_views + 1);
    if (!called) return TARE_NO_MEMORY;
    TARE_TRY(mark_called(f, called));
    for (size_t g = 0; g < f->n_views; g++)
        for (size_t i = 0; i < f->views[g].graph->n_args && !called[g]; i++)
            f->views[g].args[i] =
                (struct tare_value_fact){ .varies = f->views[g].graph->args[i]->output_dtypes[0] != TARE_DT_RESOURCE,
                                          .dev = 1 };
    return TARE_OK;
}

static tare_status find_all(struct tare_value_facts *f) {
    bool changed = true;
    for (size_t round = 0; changed && round < MOST_ROUNDS; round++) {
        changed = false;
        for (size_t k = 0; k < f->n_views; k++) {
            struct view *view = &f->views[round % 2 ? k : f->n_views - 1 - k];
            struct tare_node **order;
            TARE_TRY(tare_graph_order(&order, f->arena, view->graph));
            for (size_t n = 0; n < view->graph->n_nodes; n++)
                if (order[n] && !order[n]->dead && (!view->served || view->served[order[n]->position]))
                    TARE_TRY(find_node(f, view, order[n]->position, &changed));
        }
    }
    return TARE_OK;
}

tare_status tare_value_facts_find(struct tare_value_facts **out, struct tare_arena *arena,
                                  const struct tare_graph_model *model) {
    struct tare_value_facts *f = TARE_NEW(arena, struct tare_value_facts);
    tare_status status;
    if (!f) return TARE_NO_MEMORY;
    f->arena = arena;
    f->model = model;
    f->views = TARE_NEW_ARRAY(arena, struct view, model->n_functions + 1);
    if (!f->views) return TARE_NO_MEMORY;
    TARE_CHECK(tare_bindings_new(&f->bindings, model));
    for (size_t i = 0; i <= model->n_functions; i++)
        TARE_CHECK(add_view(f, tare_model_graph(model, i)));
    TARE_CHECK(open_arguments(f));
    status = find_all(f);
done:
    if (status != TARE_OK) tare_value_facts_free(f);
    if (status == TARE_OK) *out = f;
    return status;
}

void tare_value_facts_free(struct tare_value_facts *facts) {
    if (!facts) return;
    tare_graph_table_free(&facts->by_graph);
    tare_bindings_free(facts->bindings);
}
