/* Einsum with one or two operands: ellipses, repeated labels (diagonals) and sums. Two operands reduce to a batch of
 * matrix products: labels of both operands are batch labels (kept) or contracted labels (summed); the others are
 * free. */
#include "interpreter/kernels/permute.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/product.h"

#include "interpreter/session.h"

#include <string.h>

enum { LETTERS = 52, MOST_LABELS = LETTERS + TARE_MAX_RANK, UNUSED = -2 };

/* Labels in order; the dimensions of an ellipsis are labels LETTERS … counted from the right. */
struct labels {
    int count;
    int8_t at[MOST_LABELS];
};

struct equation {
    int n_operands;
    bool has_ellipsis;                 /* batch and free labels may then depend on the shapes */
    struct labels operands[2], output; /* at most TARE_MAX_RANK labels each */
    int64_t sizes[MOST_LABELS];        /* of the labels; -1: unknown */
};

static bool contains(const struct labels *labels, int label) {
    for (int i = 0; i < labels->count; i++)
        if (labels->at[i] == label) return true;
    return false;
}

static void add(struct labels *labels, int label) {
    labels->at[labels->count++] = (int8_t)label;
}

static int letter(char c) {
    if (c >= 'a' && c <= 'z') return c - 'a';
    return c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -2;
}

static int count_letters(const char *text, const char *end) {
    int count = 0;
    for (; text < end; text++)
        count += letter(*text) >= 0;
    return count;
}

/* Parses "ab...c" up to `end`; an ellipsis stands for `dims` dimensions. */
static tare_status parse_subscript(struct labels *subscript, const char *text, const char *end, int dims,
                                   bool *has_ellipsis) {
    *has_ellipsis = false;
    for (subscript->count = 0; text < end; text++) {
        if (*text == ' ') continue;
        if (end - text >= 3 && memcmp(text, "...", 3) == 0) {
            if (*has_ellipsis) return TARE_FAIL(TARE_INVALID_ARGUMENT, "equation has two ellipses");
            if (dims < 0) return TARE_FAIL(TARE_SHAPE, "an operand has too few dimensions");
            for (int i = dims - 1; i >= 0; i--)
                add(subscript, LETTERS + i);
            *has_ellipsis = true;
            text += 2;
        } else if (letter(*text) < 0) {
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "equation has a '%c'", *text);
        } else {
            add(subscript, letter(*text));
        }
        if (subscript->count > TARE_MAX_RANK) return TARE_FAIL(TARE_INVALID_ARGUMENT, "equation is too long");
    }
    return TARE_OK;
}

/* Parses the equation for operands of the given shapes. */
static tare_status parse_equation(struct equation *equation, const char *text, const struct tare_shape *shapes,
                                  size_t n_operands) {
    const char *arrow = strstr(text, "->"), *at = text;
    int widest = 0;
    bool has_ellipsis;
    if (!arrow) return TARE_FAIL(TARE_UNSUPPORTED, "equation '%s' has no ->", text);
    if (n_operands < 1 || n_operands > 2)
        return TARE_FAIL(TARE_UNSUPPORTED, "%zu operands (expected 1 or 2)", n_operands);
    equation->n_operands = (int)n_operands;
    for (size_t i = 0; i < n_operands; i++) {
        const char *comma = memchr(at, ',', (size_t)(arrow - at)), *end = comma ? comma : arrow;
        const int dims = shapes[i].rank < 0 ? 0 : shapes[i].rank - count_letters(at, end);
        if ((comma != NULL) != (i + 1 < n_operands))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "equation '%s' does not have %zu operands", text, n_operands);
        TARE_TRY(parse_subscript(&equation->operands[i], at, end, dims, &has_ellipsis));
        equation->has_ellipsis |= has_ellipsis;
        if (has_ellipsis && dims > widest) widest = dims;
        at = comma ? comma + 1 : arrow;
    }
    return parse_subscript(&equation->output, arrow + 2, text + strlen(text), widest, &has_ellipsis);
}

/* Sets the sizes of an operand's labels. Dimensions of an ellipsis that are 1 are broadcast. */
static tare_status set_sizes(struct equation *equation, int operand, const struct tare_shape *shape) {
    const struct labels *subscript = &equation->operands[operand];
    if (subscript->count != shape->rank)
        return TARE_FAIL(TARE_SHAPE, "operand %d has rank %d (expected %d)", operand, shape->rank, subscript->count);
    for (int i = 0; i < subscript->count; i++) {
        const bool broadcasts = subscript->at[i] >= LETTERS;
        const int64_t dim = shape->dims[i];
        int64_t *size = &equation->sizes[subscript->at[i]];
        if (*size < 0 || (broadcasts && *size == 1))
            *size = dim;
        else if (dim >= 0 && dim != *size && !(broadcasts && dim == 1))
            return TARE_FAIL(TARE_SHAPE, "operand %d, dimension %d is %lld (expected %lld)", operand, i, (long long)dim,
                             (long long)*size);
    }
    return TARE_OK;
}

/* The output's shape. Each of its labels must be in an operand, and only once in the output. */
static tare_status set_output(const struct equation *equation, struct tare_shape *shape) {
    struct labels seen = { 0 };
    for (shape->rank = 0; shape->rank < equation->output.count; shape->rank++) {
        const int label = equation->output.at[shape->rank];
        if (equation->sizes[label] == UNUSED)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "an output label is in no operand");
        if (contains(&seen, label)) return TARE_FAIL(TARE_UNSUPPORTED, "duplicate output label");
        add(&seen, label);
        shape->dims[shape->rank] = equation->sizes[label];
    }
    return TARE_OK;
}

/* Parses the node's equation and determines the sizes and the output's shape, which stays unknown if the rank of an
 * operand is. */
static tare_status resolve(struct equation *equation, const struct tare_node *node, const struct tare_shape *shapes,
                           size_t n_operands, struct tare_shape *output) {
    TARE_TRY(parse_equation(equation, tare_node_string(node, "equation", ""), shapes, n_operands));
    for (int i = 0; i < MOST_LABELS; i++)
        equation->sizes[i] = UNUSED;
    for (int i = 0; i < equation->n_operands; i++)
        if (shapes[i].rank < 0) return TARE_OK;
    for (int i = 0; i < equation->n_operands; i++)
        TARE_TRY(set_sizes(equation, i, &shapes[i]));
    return set_output(equation, output);
}

static tare_status infer_einsum(struct tare_infer *infer) {
    struct equation equation = { 0 };
    return resolve(&equation, infer->node, infer->inputs, infer->n_inputs, &infer->outputs[0]);
}

/* ---- operands ---- */

/* An array in which each label has its step in elements (a repeated label iterates over the diagonal). */
struct view {
    const void *data;
    int64_t steps[MOST_LABELS]; /* 0 also if the label is absent */
    bool has[MOST_LABELS];
};

struct einsum {
    struct equation equation;
    int dtype; /* of the computation */
    struct view views[2];
};

/* The number of elements that the labels index. */
static int64_t size_of(const struct einsum *e, const struct labels *labels) {
    int64_t size = 1;
    for (int i = 0; i < labels->count; i++)
        size *= e->equation.sizes[labels->at[i]];
    return size;
}

/* A contiguous array with the labels as axes. An ellipsis dimension of 1 that is broadcast counts as absent; `dims`
 * NULL: there is none. */
static struct view view_of(const struct einsum *e, const void *data, const struct labels *labels, const int64_t *dims) {
    struct view view = { .data = data };
    int64_t step = 1;
    for (int i = labels->count - 1; i >= 0; i--) {
        const int label = labels->at[i];
        const int64_t size = e->equation.sizes[label], dim = dims ? dims[i] : size;
        if (dim == size) view.has[label] = true, view.steps[label] += step;
        step *= dim;
    }
    return view;
}

/* Copies the elements of the view into a contiguous array with the labels as axes. */
static void arrange(void *to, const struct einsum *e, const struct view *view, const struct labels *labels) {
    int64_t dims[MOST_LABELS], steps[MOST_LABELS];
    for (int i = 0; i < labels->count; i++) {
        dims[i] = e->equation.sizes[labels->at[i]];
        steps[i] = view->steps[labels->at[i]];
    }
    tare_permute_steps(to, view->data, tare_dtype_size(e->dtype), labels->count, dims, steps);
}

/* That array: a copy, or the view's own memory if it is contiguous. NULL: no memory. */
static const void *dense(struct tare_kernel *kernel, const struct einsum *e, const struct view *view,
                         const struct labels *labels) {
    bool is_dense = true;
    int64_t step = 1;
    for (int i = labels->count - 1; i >= 0; i--) {
        const int64_t size = e->equation.sizes[labels->at[i]];
        is_dense = is_dense && (view->steps[labels->at[i]] == step || size == 1);
        step *= size;
    }
    if (is_dense) return view->data;
    void *copy = tare_arena_alloc(kernel->scratch, (size_t)step * tare_dtype_size(e->dtype));
    if (copy) arrange(copy, e, view, labels);
    return copy;
}

/* The labels of all three lists; the last one may be NULL. */
static struct labels joined(const struct labels *first, const struct labels *second, const struct labels *third) {
    struct labels all = *first;
    for (int i = 0; i < second->count; i++)
        add(&all, second->at[i]);
    for (int i = 0; third && i < third->count; i++)
        add(&all, third->at[i]);
    return all;
}

/* to[i] = the sum of from[i * count] … from[i * count + count - 1], in order. */
static void sum_rows(void *to, const void *from, int dtype, int64_t rows, int64_t count) {
#define SUM(id, type)                                                                                                  \
    case id:                                                                                                           \
        for (int64_t i = 0; i < rows; i++) {                                                                           \
            type sum = 0;                                                                                              \
            for (int64_t j = 0; j < count; j++)                                                                        \
                sum += ((const type *)from)[i * count + j];                                                            \
            ((type *)to)[i] = sum;                                                                                     \
        }                                                                                                              \
        break
    switch (dtype) {
        SUM(TARE_DT_FLOAT, float);
        SUM(TARE_DT_DOUBLE, double);
        SUM(TARE_DT_INT64, uint64_t);
        SUM(TARE_DT_COMPLEX64, _Complex float);
        SUM(TARE_DT_COMPLEX128, _Complex double);
    }
#undef SUM
}

/* Sums operand i over the labels that neither the output nor the other operand has. */
static tare_status reduce(struct tare_kernel *kernel, struct einsum *e, int i) {
    struct labels kept = { 0 }, summed = { 0 };
    struct view *view = &e->views[i];
    for (int label = 0; label < MOST_LABELS; label++) {
        if (!view->has[label]) continue;
        const bool keeps = contains(&e->equation.output, label) || e->views[!i].has[label];
        add(keeps ? &kept : &summed, label);
    }
    if (summed.count == 0) return TARE_OK;
    const int64_t rows = size_of(e, &kept), count = size_of(e, &summed);
    const struct labels order = joined(&kept, &summed, NULL);
    const void *values = dense(kernel, e, view, &order);
    void *sums = tare_arena_alloc(kernel->scratch, (size_t)rows * tare_dtype_size(e->dtype));
    if (!values || !sums) return TARE_NO_MEMORY;
    sum_rows(sums, values, e->dtype, rows, count);
    *view = view_of(e, sums, &kept, NULL);
    return TARE_OK;
}

/* ---- execution ---- */

enum { BATCH, LEFT, RIGHT, CONTRACTED, GROUPS };

/* The labels of the output in its order, so that common equations need no final transposition, and contracted labels in
 * the order of the left operand. A label of the output that neither operand has, a broadcast one, has any position. */
static void group_labels(struct labels groups[GROUPS], const struct einsum *e) {
    const struct equation *equation = &e->equation;
    const bool *in_a = e->views[0].has, *in_b = e->views[1].has;
    for (int i = 0; i < equation->output.count; i++) {
        const int label = equation->output.at[i];
        add(&groups[!in_b[label] ? LEFT : in_a[label] ? BATCH : RIGHT], label);
    }
    for (int i = 0; i < equation->operands[0].count; i++) {
        const int label = equation->operands[0].at[i];
        const bool is_contracted = in_a[label] && in_b[label] && !contains(&equation->output, label);
        if (is_contracted && !contains(&groups[CONTRACTED], label)) add(&groups[CONTRACTED], label);
    }
}

/* Replaces the left operand by the product. */
static tare_status multiply(struct tare_kernel *kernel, struct einsum *e, bool plain) {
    struct labels groups[GROUPS] = { 0 };
    const void *weights = e->views[1].data;
    for (int i = 0; i < 2; i++)
        TARE_TRY(reduce(kernel, e, i));
    group_labels(groups, e);
    struct tare_weights *kept =
        !plain && weights == e->views[1].data && !e->equation.has_ellipsis ? kernel->state : NULL;
    const struct labels *batch = &groups[BATCH], *left = &groups[LEFT], *right = &groups[RIGHT];
    const struct labels *inner = &groups[CONTRACTED];
    const struct labels a = joined(batch, left, inner), b = joined(batch, inner, right), c = joined(batch, left, right);
    struct tare_product product = { .pool = tare_session_op_pool(kernel->session),
                                    .dtype = e->dtype,
                                    .batch = size_of(e, batch),
                                    .m = size_of(e, left),
                                    .n = size_of(e, right),
                                    .k = size_of(e, inner),
                                    .a = dense(kernel, e, &e->views[0], &a),
                                    .c = tare_arena_alloc(kernel->scratch,
                                                          (size_t)size_of(e, &c) * tare_dtype_size(e->dtype)) };
    if (kept) product.b = tare_product_packed(&product, kept, &kernel->inputs[1]);
    if (!product.b) product.b = dense(kernel, e, &e->views[1], &b);
    if (!product.a || !product.b || !product.c) return TARE_NO_MEMORY;
    TARE_TRY(tare_product_set_dense(&product, kernel->scratch));
    if (plain) /* the reference */
        tare_product_plain(&product);
    else
        TARE_TRY(tare_product_run(&product, kept, &kernel->inputs[1], kernel->scratch));
    e->views[0] = view_of(e, product.c, &c, NULL);
    return TARE_OK;
}

static tare_status run_any(struct tare_kernel *kernel, bool plain) {
    struct einsum e = { 0 };
    struct tare_shape shapes[2], shape;
    const int dtype = kernel->inputs[0].dtype;
    for (size_t i = 0; i < kernel->n_inputs && i < 2; i++)
        shapes[i] = kernel->inputs[i].shape;
    TARE_TRY(resolve(&e.equation, kernel->node, shapes, kernel->n_inputs, &shape));
    TARE_TRY(tare_kernel_output(kernel, 0, dtype, &shape));
    struct tare_tensor *output = &kernel->outputs[0];
    if (output->elements == 0) return TARE_OK;
    e.dtype = tare_product_dtype(dtype);
    for (int i = 0; i < e.equation.n_operands; i++) {
        if (kernel->inputs[i].elements == 0) {
            memset(output->data, 0, tare_tensor_bytes(output));
            return TARE_OK;
        }
        const void *data = tare_product_operand(kernel, &kernel->inputs[i], e.dtype);
        if (!data) return TARE_NO_MEMORY;
        e.views[i] = view_of(&e, data, &e.equation.operands[i], shapes[i].dims);
    }
    void *room = tare_product_room(kernel, 0);
    if (!room) return TARE_NO_MEMORY;
    TARE_TRY(e.equation.n_operands == 2 ? multiply(kernel, &e, plain) : reduce(kernel, &e, 0));
    arrange(room, &e, &e.views[0], &e.equation.output);
    tare_product_store(kernel, 0, room);
    return TARE_OK;
}

static tare_status run_einsum(struct tare_kernel *kernel) {
    return run_any(kernel, false);
}
static tare_status reference_einsum(struct tare_kernel *kernel) {
    return run_any(kernel, true);
}

const struct tare_op tare_ops_einsum[] = {
    { .name = "Einsum",
      .infer = infer_einsum,
      .run = run_einsum,
      .prepare = tare_product_prepare,
      .release = tare_product_release,
      .reference = reference_einsum,
      .flags = TARE_OP_PRODUCT,
      .quant = TARE_QUANT_WEIGHTED },
    { .name = "XlaEinsum",
      .infer = infer_einsum,
      .run = run_einsum,
      .prepare = tare_product_prepare,
      .release = tare_product_release,
      .reference = reference_einsum },
    { 0 },
};
