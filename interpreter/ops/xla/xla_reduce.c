/* XlaReduce, XlaVariadicReduce, XlaReduceWindow and XlaSelectAndScatter: reductions by functions over dimensions or
 * windows, and the scatter from each window back to its selected element. Models exported from JAX use them. */
#include "interpreter/ops/support/axes.h"
#include "interpreter/ops/xla/combiner.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

#include "base/alloc.h"

#include <string.h>

/* ---- reduction over dimensions ---- */

static tare_status reduced_dims(bool reduced[TARE_MAX_RANK], const struct tare_node *node, int rank) {
    const struct tare_attr *dims = tare_node_list(node, "dimensions_to_reduce");
    memset(reduced, 0, TARE_MAX_RANK * sizeof *reduced);
    for (size_t i = 0; dims && i < dims->count; i++) {
        const int64_t d = dims->items[i].i;
        if (d < 0 || d >= rank)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "dimensions_to_reduce contains %lld (expected 0 to %d)",
                             (long long)d, rank - 1);
        if (reduced[d])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "dimensions_to_reduce contains %lld twice", (long long)d);
        reduced[d] = true;
    }
    return TARE_OK;
}

static tare_status infer_reduce(struct tare_infer *infer) {
    bool reduced[TARE_MAX_RANK];
    struct tare_shape input = infer->inputs[0];
    for (size_t i = 1; i < infer->n_outputs; i++)
        TARE_TRY(tare_shape_merge(&input, &input, &infer->inputs[i]));
    for (size_t i = infer->n_outputs; i < infer->n_inputs; i++)
        TARE_TRY(tare_operand_rank(infer, i, "init_value", 0));
    if (input.rank < 0) return TARE_OK;
    TARE_TRY(reduced_dims(reduced, infer->node, input.rank));
    for (size_t i = 0; i < infer->n_outputs; i++)
        tare_axes_shape(&infer->outputs[i], &input, reduced, false);
    return TARE_OK;
}

/* Enumerates the row-major positions of a box whose dimensions have the given strides. */
struct box {
    int rank;
    int64_t dims[TARE_MAX_RANK], steps[TARE_MAX_RANK];
    int64_t count;
};

static void add_dim(struct box *box, int64_t dim, int64_t step) {
    box->dims[box->rank] = dim;
    box->steps[box->rank++] = step;
    box->count *= dim;
}

static int64_t place_of(const struct box *box, int64_t i) {
    int64_t place = 0;
    for (int d = box->rank - 1; d >= 0; d--) {
        place += i % box->dims[d] * box->steps[d];
        i /= box->dims[d];
    }
    return place;
}

static tare_status fill_inits(struct tare_kernel *kernel, const struct tare_tensor *inits,
                              const struct tare_shape *shape) {
    for (size_t k = 0; k < kernel->n_outputs; k++) {
        if (inits[k].elements != 1) return TARE_FAIL(TARE_SHAPE, "init_value %zu is not a scalar", k);
        TARE_TRY(tare_kernel_output(kernel, k, inits[k].dtype, shape));
        TARE_TRY(tare_move_fill(&kernel->outputs[k], 0, kernel->outputs[k].elements, &inits[k], 0));
    }
    return TARE_OK;
}

static tare_status run_reduce(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    bool reduced[TARE_MAX_RANK];
    int64_t strides[TARE_MAX_RANK];
    struct box kept = { .count = 1 }, gone = { .count = 1 };
    struct tare_combiner combiner;
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(reduced_dims(reduced, kernel->node, input->shape.rank));
    TARE_TRY(tare_combiner_open(&combiner, kernel, "reducer", kernel->n_outputs, kernel->n_outputs));
    TARE_TRY(fill_inits(kernel, kernel->inputs + kernel->n_outputs, &shapes[0]));
    if (input->elements == 0) return TARE_OK;
    tare_move_strides(strides, &input->shape);
    for (int d = 0; d < input->shape.rank; d++)
        add_dim(reduced[d] ? &gone : &kept, input->shape.dims[d], strides[d]);
    int64_t *offsets = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)gone.count);
    int64_t *places = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)gone.count);
    if (!offsets || !places) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < gone.count; i++)
        offsets[i] = place_of(&gone, i);
    for (int64_t o = 0; o < kept.count; o++) {
        const int64_t first = place_of(&kept, o);
        for (int64_t i = 0; i < gone.count; i++)
            places[i] = first + offsets[i];
        TARE_TRY(tare_combiner_fold(&combiner, kernel->outputs, o, kernel->inputs, places, gone.count));
    }
    return TARE_OK;
}

/* ---- windows ---- */

enum { SIZE, STRIDE, BASE_DILATION, WINDOW_DILATION, LOW, HIGH, N_FIELDS };

struct windows {
    int rank;
    int64_t fields[N_FIELDS][TARE_MAX_RANK];
    int64_t in[TARE_MAX_RANK], out[TARE_MAX_RANK];
    bool known;
};

/* Reads one of the operands: one value per dimension. */
static tare_status read_field(struct windows *w, int field, const struct tare_tensor *tensor, const char *what) {
    if (!tensor) {
        w->known = false;
        return TARE_OK;
    }
    if (tensor->shape.rank != 1 || tensor->elements != w->rank)
        return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected %d)", what, (long long)tensor->elements, w->rank);
    for (int d = 0; d < w->rank; d++) {
        const int64_t value = w->fields[field][d] = tare_tensor_get_i64(tensor, d);
        if (value < 1 || value > INT32_MAX)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s contains %lld (expected at least 1)", what, (long long)value);
    }
    return TARE_OK;
}

static tare_status read_padding(struct windows *w, const struct tare_tensor *padding) {
    if (!padding) {
        w->known = false;
        return TARE_OK;
    }
    if (padding->shape.rank != 2 || padding->shape.dims[0] != w->rank || padding->shape.dims[1] != 2)
        return TARE_FAIL(TARE_SHAPE, "padding has %lld elements (expected shape [%d,2])", (long long)padding->elements,
                         w->rank);
    for (int d = 0; d < w->rank; d++) {
        w->fields[LOW][d] = tare_tensor_get_i64(padding, 2 * d);
        w->fields[HIGH][d] = tare_tensor_get_i64(padding, 2 * d + 1);
        for (int f = LOW; f <= HIGH; f++)
            if (w->fields[f][d] < -INT32_MAX || w->fields[f][d] > INT32_MAX)
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "padding contains %lld", (long long)w->fields[f][d]);
    }
    return TARE_OK;
}

static tare_status set_windows(struct windows *w, const struct tare_shape *input) {
    for (int d = 0; d < w->rank; d++) {
        const int64_t n = w->in[d] = input->dims[d];
        w->out[d] = -1;
        if (!w->known || n < 0) continue;
        if (n > INT32_MAX) return TARE_FAIL(TARE_SHAPE, "dimension %d is %lld", d, (long long)n);
        const int64_t base = n == 0 ? 0 : (n - 1) * w->fields[BASE_DILATION][d] + 1;
        const int64_t padded = base + w->fields[LOW][d] + w->fields[HIGH][d];
        const int64_t window = (w->fields[SIZE][d] - 1) * w->fields[WINDOW_DILATION][d] + 1;
        if (padded < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "padding leaves %lld elements", (long long)padded);
        w->out[d] = padded < window ? 0 : (padded - window) / w->fields[STRIDE][d] + 1;
    }
    return TARE_OK;
}

static void set_ones(struct windows *w, int field) {
    for (int d = 0; d < w->rank; d++)
        w->fields[field][d] = 1;
}

/* Reads operands 2 … 6 of XlaReduceWindow. */
static tare_status reduce_windows(struct windows *w, const struct tare_shape *input,
                                  const struct tare_tensor *const *operands) {
    *w = (struct windows){ .rank = input->rank, .known = true };
    TARE_TRY(read_field(w, SIZE, operands[2], "window_dimensions"));
    TARE_TRY(read_field(w, STRIDE, operands[3], "window_strides"));
    TARE_TRY(read_field(w, BASE_DILATION, operands[4], "base_dilations"));
    TARE_TRY(read_field(w, WINDOW_DILATION, operands[5], "window_dilations"));
    TARE_TRY(read_padding(w, operands[6]));
    return set_windows(w, input);
}

/* The input elements inside the window of one output element: in dimension d the indices first[d], first[d] +
 * step[d] …, count[d] of them. */
struct inside {
    int64_t first[TARE_MAX_RANK], count[TARE_MAX_RANK], step[TARE_MAX_RANK];
};

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Element i is at position i * base of the dilated input; it is inside the window if that equals start + k *
 * dilation for a k below size. */
static void inside_dim(struct inside *inside, const struct windows *w, int d, int64_t at) {
    const int64_t base = w->fields[BASE_DILATION][d], dilation = w->fields[WINDOW_DILATION][d];
    const int64_t start = at * w->fields[STRIDE][d] - w->fields[LOW][d];
    const int64_t last = start + (w->fields[SIZE][d] - 1) * dilation, step = dilation / gcd(base, dilation);
    int64_t i = start <= 0 ? 0 : (start + base - 1) / base, end = last < 0 ? 0 : last / base + 1;
    if (end > w->in[d]) end = w->in[d];
    while (i < end && (i * base - start) % dilation != 0)
        i++;
    inside->first[d] = i;
    inside->step[d] = step;
    inside->count[d] = i < end ? (end - 1 - i) / step + 1 : 0;
}

/* Lists the positions in row-major order and returns their number. `places` must have space for all elements of a
 * window inside the input. */
static int64_t places_inside(int64_t *places, const struct windows *w, const int64_t *strides, int64_t output) {
    struct inside inside;
    struct box box = { .count = 1 };
    int64_t first = 0;
    for (int d = w->rank - 1; d >= 0; d--) {
        inside_dim(&inside, w, d, output % w->out[d]);
        output /= w->out[d];
        first += inside.first[d] * strides[d];
    }
    for (int d = 0; d < w->rank; d++)
        add_dim(&box, inside.count[d], inside.step[d] * strides[d]);
    for (int64_t i = 0; i < box.count; i++)
        places[i] = first + place_of(&box, i);
    return box.count;
}

/* Allocates space for the positions of one window. */
static int64_t *room_for(struct tare_kernel *kernel, const struct windows *w) {
    int64_t most = 1;
    for (int d = 0; d < w->rank; d++)
        most *= w->fields[SIZE][d] < w->in[d] ? w->fields[SIZE][d] : w->in[d];
    return TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)most + 1);
}

static tare_status infer_window(struct tare_infer *infer) {
    struct windows w;
    TARE_TRY(tare_operand_rank(infer, 1, "init_value", 0));
    if (infer->inputs[0].rank < 0) return TARE_OK;
    TARE_TRY(reduce_windows(&w, &infer->inputs[0], infer->input_values));
    return tare_shape_from_dims(&infer->outputs[0], w.rank, w.out);
}

static tare_status run_window(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const struct tare_tensor *operands[7];
    struct tare_combiner combiner;
    struct tare_shape shape;
    struct windows w;
    int64_t strides[TARE_MAX_RANK];
    for (size_t i = 0; i < 7; i++)
        operands[i] = &kernel->inputs[i];
    TARE_TRY(reduce_windows(&w, &input->shape, operands));
    TARE_TRY(tare_shape_from_dims(&shape, w.rank, w.out));
    TARE_TRY(tare_combiner_open(&combiner, kernel, "computation", 1, 1));
    TARE_TRY(fill_inits(kernel, &kernel->inputs[1], &shape));
    if (input->elements == 0) return TARE_OK;
    int64_t *places = room_for(kernel, &w);
    if (!places) return TARE_NO_MEMORY;
    tare_move_strides(strides, &input->shape);
    for (int64_t o = 0; o < kernel->outputs[0].elements; o++) {
        const int64_t count = places_inside(places, &w, strides, o);
        TARE_TRY(tare_combiner_fold(&combiner, kernel->outputs, o, kernel->inputs, places, count));
    }
    return TARE_OK;
}

/* ---- from windows back to their selected elements ---- */

static tare_status infer_select(struct tare_infer *infer) {
    infer->outputs[0] = infer->inputs[0];
    return tare_operand_rank(infer, 5, "init_value", 0);
}

/* Finds the selected element: an earlier one is kept while select(earlier, later) is true. */
static tare_status chosen(int64_t *out, const struct tare_combiner *select, const struct tare_tensor *operand,
                          const int64_t *places, int64_t count) {
    *out = places[0];
    for (int64_t i = 1; i < count; i++) {
        bool stays;
        TARE_TRY(tare_combiner_compare(&stays, select, operand, *out, places[i]));
        if (!stays) *out = places[i];
    }
    return TARE_OK;
}

static tare_status run_select(struct tare_kernel *kernel) {
    const struct tare_tensor *operand = &kernel->inputs[0], *source = &kernel->inputs[4];
    struct tare_combiner select, scatter;
    struct windows w = { .rank = operand->shape.rank, .known = true };
    int64_t strides[TARE_MAX_RANK], at;
    TARE_TRY(read_field(&w, SIZE, &kernel->inputs[1], "window_dimensions"));
    TARE_TRY(read_field(&w, STRIDE, &kernel->inputs[2], "window_strides"));
    TARE_TRY(read_padding(&w, &kernel->inputs[3]));
    set_ones(&w, BASE_DILATION);
    set_ones(&w, WINDOW_DILATION);
    TARE_TRY(set_windows(&w, &operand->shape));
    for (int d = 0; d < w.rank; d++)
        if (source->shape.rank != w.rank || source->shape.dims[d] != w.out[d])
            return TARE_FAIL(TARE_SHAPE, "dimension %d of source is not that of the %lld windows", d,
                             (long long)w.out[d]);
    if (w.rank == 0 && source->elements != 1) return TARE_FAIL(TARE_SHAPE, "source is not a scalar");
    TARE_TRY(tare_combiner_open(&select, kernel, "select", 1, 1));
    TARE_TRY(tare_combiner_open(&scatter, kernel, "scatter", 1, 1));
    TARE_TRY(fill_inits(kernel, &kernel->inputs[5], &operand->shape));
    if (operand->elements == 0) return TARE_OK;
    int64_t *places = room_for(kernel, &w);
    if (!places) return TARE_NO_MEMORY;
    tare_move_strides(strides, &operand->shape);
    for (int64_t o = 0; o < source->elements; o++) {
        const int64_t count = places_inside(places, &w, strides, o);
        if (count == 0) continue;
        TARE_TRY(chosen(&at, &select, operand, places, count));
        TARE_TRY(tare_combiner_fold(&scatter, kernel->outputs, at, source, &o, 1));
    }
    return TARE_OK;
}

#define CALLS TARE_OP_CONTROL

const struct tare_op tare_ops_xla_reduce[] = {
    { .name = "XlaReduce", .infer = infer_reduce, .run = run_reduce, .flags = CALLS },
    { .name = "XlaVariadicReduce", .infer = infer_reduce, .run = run_reduce, .flags = CALLS },
    { .name = "XlaVariadicReduceV2", .infer = infer_reduce, .run = run_reduce, .flags = CALLS },
    { .name = "XlaReduceWindow", .infer = infer_window, .run = run_window, .flags = CALLS },
    { .name = "XlaSelectAndScatter", .infer = infer_select, .run = run_select, .flags = CALLS },
    { 0 },
};
