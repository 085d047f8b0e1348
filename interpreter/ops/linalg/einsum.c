/* Einsum with one or two operands: ellipses, repeated labels (diagonals) and sums. Two operands reduce to a batch of
 * matrix products: labels of both operands are batch labels (kept) or contracted labels (summed); the others are
 * free. */
#include "interpreter/kernels/permute.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/product.h"

#include "interpreter/session.h"

#include <string.h>

enum { LETTERS = 52, MOST_LABELS = LETTERS + TARE_MAX_RANK, ELLIPSIS = -1 };

/* Labels in order; the dimensions of an ellipsis are labels LETTERS … counted from the right. */
struct subscript {
    int count;
    int labels[TARE_MAX_RANK];
};

struct equation {
    int n_operands;
    struct subscript operands[2], output;
    bool has_ellipsis; /* batch and free labels may then depend on the shapes */
};

static int letter(char c) {
    if (c >= 'a' && c <= 'z') return c - 'a';
    return c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -2;
}

/* Parses "ab...c" up to `end`. */
static tare_status parse_subscript(struct subscript *subscript, const char *text, const char *end) {
    subscript->count = 0;
    for (; text < end; text++) {
        int label = letter(*text);
        if (*text == ' ') continue;
        if (end - text >= 3 && memcmp(text, "...", 3) == 0) {
            label = ELLIPSIS;
            text += 2;
        } else if (label < 0) {
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "equation has a '%c'", *text);
        }
        if (subscript->count == TARE_MAX_RANK) return TARE_FAIL(TARE_INVALID_ARGUMENT, "equation is too long");
        for (int i = 0; label == ELLIPSIS && i < subscript->count; i++) {
            if (subscript->labels[i] == ELLIPSIS) return TARE_FAIL(TARE_INVALID_ARGUMENT, "equation has two ellipses");
        }
        subscript->labels[subscript->count++] = label;
    }
    return TARE_OK;
}

static tare_status parse_equation(struct equation *equation, const char *text, size_t n_operands) {
    const char *arrow = strstr(text, "->"), *at = text;
    if (!arrow) return TARE_FAIL(TARE_UNSUPPORTED, "equation '%s' has no ->", text);
    if (n_operands < 1 || n_operands > 2)
        return TARE_FAIL(TARE_UNSUPPORTED, "%zu operands (expected 1 or 2)", n_operands);
    equation->n_operands = (int)n_operands;
    for (size_t i = 0; i < n_operands; i++) {
        const char *comma = memchr(at, ',', (size_t)(arrow - at));
        if ((comma != NULL) != (i + 1 < n_operands))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "equation '%s' does not have %zu operands", text, n_operands);
        TARE_TRY(parse_subscript(&equation->operands[i], at, comma ? comma : arrow));
        at = comma ? comma + 1 : arrow;
    }
    return parse_subscript(&equation->output, arrow + 2, text + strlen(text));
}

/* Replaces an ellipsis by `dims` labels. */
static tare_status expand(struct subscript *subscript, int dims) {
    for (int i = 0; i < subscript->count; i++) {
        if (subscript->labels[i] != ELLIPSIS) continue;
        if (dims < 0 || subscript->count - 1 + dims > TARE_MAX_RANK)
            return TARE_FAIL(TARE_SHAPE, "an operand has too few or too many dimensions");
        memmove(&subscript->labels[i + dims], &subscript->labels[i + 1],
                (size_t)(subscript->count - i - 1) * sizeof(int));
        for (int j = 0; j < dims; j++)
            subscript->labels[i + j] = LETTERS + dims - 1 - j;
        subscript->count += dims - 1;
        return TARE_OK;
    }
    return TARE_OK;
}

static bool has_ellipsis(const struct subscript *subscript) {
    for (int i = 0; i < subscript->count; i++)
        if (subscript->labels[i] == ELLIPSIS) return true;
    return false;
}

/* Expands the ellipses and determines the size of each label (-1: unknown, -2: unused). */
static tare_status resolve(struct equation *equation, const struct tare_shape *shapes, int64_t sizes[MOST_LABELS]) {
    int widest = 0;
    for (int i = 0; i < MOST_LABELS; i++)
        sizes[i] = -2;
    for (int i = 0; i < equation->n_operands; i++) {
        struct subscript *subscript = &equation->operands[i];
        const int dims = shapes[i].rank - subscript->count + 1;
        if (has_ellipsis(subscript)) {
            equation->has_ellipsis = true;
            TARE_TRY(expand(subscript, dims));
            if (dims > widest) widest = dims;
        }
        if (subscript->count != shapes[i].rank)
            return TARE_FAIL(TARE_SHAPE, "operand %d has rank %d (expected %d)", i, shapes[i].rank, subscript->count);
        for (int j = 0; j < subscript->count; j++) {
            const int label = subscript->labels[j];
            const int64_t dim = shapes[i].dims[j];
            if (sizes[label] == -2 || sizes[label] == -1 || (label >= LETTERS && sizes[label] == 1))
                sizes[label] = dim;
            else if (dim >= 0 && dim != sizes[label] && !(label >= LETTERS && dim == 1))
                return TARE_FAIL(TARE_SHAPE, "operand %d, dimension %d is %lld (expected %lld)", i, j, (long long)dim,
                                 (long long)sizes[label]);
        }
    }
    TARE_TRY(expand(&equation->output, widest));
    for (int i = 0; i < equation->output.count; i++) {
        if (sizes[equation->output.labels[i]] == -2)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "an output label is in no operand");
        for (int j = 0; j < i; j++) {
            if (equation->output.labels[i] == equation->output.labels[j])
                return TARE_FAIL(TARE_UNSUPPORTED, "duplicate output label");
        }
    }
    return TARE_OK;
}

static struct tare_shape output_shape(const struct equation *equation, const int64_t sizes[MOST_LABELS]) {
    struct tare_shape shape = { .rank = equation->output.count };
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = sizes[equation->output.labels[i]];
    return shape;
}

static tare_status infer_einsum(struct tare_infer *infer) {
    struct equation equation = { 0 };
    int64_t sizes[MOST_LABELS];
    TARE_TRY(parse_equation(&equation, tare_node_string(infer->node, "equation", ""), infer->n_inputs));
    for (size_t i = 0; i < infer->n_inputs; i++)
        if (infer->inputs[i].rank < 0) return TARE_OK;
    TARE_TRY(resolve(&equation, infer->inputs, sizes));
    infer->outputs[0] = output_shape(&equation, sizes);
    return TARE_OK;
}

/* ---- operands ---- */

/* A view: each label once, with its stride (a repeated label iterates over the diagonal). */
struct view {
    const void *data;
    int64_t steps[MOST_LABELS]; /* 0 also if the label is absent */
    bool has[MOST_LABELS];
};

static void open_view(struct view *view, const void *data, const struct subscript *subscript,
                      const struct tare_shape *shape, const int64_t sizes[MOST_LABELS]) {
    int64_t step = 1;
    *view = (struct view){ .data = data };
    for (int i = subscript->count - 1; i >= 0; i--) {
        const int label = subscript->labels[i];
        if (shape->dims[i] ==
            sizes[label]) { /* otherwise an ellipsis dimension of 1 that is broadcast: treated as absent */
            view->has[label] = true;
            view->steps[label] += step;
        }
        step *= shape->dims[i];
    }
}

/* Labels of one kind, in label order. */
struct group {
    int count;
    int labels[MOST_LABELS];
    int64_t size; /* product of the sizes */
};

static void add_label(struct group *group, int label, const int64_t sizes[MOST_LABELS]) {
    if (group->count == 0) group->size = 1;
    group->labels[group->count++] = label;
    group->size *= sizes[label];
}

static bool in_output(const struct equation *equation, int label) {
    for (int i = 0; i < equation->output.count; i++)
        if (equation->output.labels[i] == label) return true;
    return false;
}

/* Returns a dense copy of the view with the labels of the groups as axes, group by group; the view's own memory if
 * it already has that layout. NULL: no memory. */
static const void *dense(struct tare_kernel *kernel, const struct view *view, size_t size,
                         const int64_t sizes[MOST_LABELS], const struct group *const groups[3]) {
    int64_t dims[MOST_LABELS], steps[MOST_LABELS], step = 1;
    int rank = 0;
    for (int g = 0; g < 3; g++) {
        for (int i = 0; groups[g] && i < groups[g]->count; i++) {
            dims[rank] = sizes[groups[g]->labels[i]];
            steps[rank++] = view->steps[groups[g]->labels[i]];
        }
    }
    bool is_dense = true;
    for (int i = rank - 1; i >= 0; i--) {
        is_dense = is_dense && (steps[i] == step || dims[i] == 1);
        step *= dims[i];
    }
    if (is_dense) return view->data;
    void *copy = tare_arena_alloc(kernel->scratch, (size_t)step * size);
    if (copy) tare_permute_steps(copy, view->data, size, rank, dims, steps);
    return copy;
}

/* to[i] = the sum of from[i * count] … from[i * count + count - 1], in order. */
static void sum_rows(void *to, const void *from, int dtype, int64_t rows, int64_t count) {
#define SUM(type)                                                                                                      \
    for (int64_t i = 0; i < rows; i++) {                                                                               \
        type sum = 0;                                                                                                  \
        for (int64_t j = 0; j < count; j++)                                                                            \
            sum += ((const type *)from)[i * count + j];                                                                \
        ((type *)to)[i] = sum;                                                                                         \
    }                                                                                                                  \
    break
    switch (dtype) {
    case TARE_DT_FLOAT:
        SUM(float);
    case TARE_DT_DOUBLE:
        SUM(double);
    case TARE_DT_COMPLEX64:
        SUM(_Complex float);
    case TARE_DT_COMPLEX128:
        SUM(_Complex double);
    default:
        SUM(uint64_t);
    }
#undef SUM
}

/* Sums the view over the labels that neither the output nor `other` has. */
static tare_status reduce(struct tare_kernel *kernel, struct view *view, int dtype, const struct equation *equation,
                          const struct view *other, const int64_t sizes[MOST_LABELS]) {
    struct group kept = { .size = 1 }, summed = { .size = 1 };
    const size_t size = tare_dtype_size(dtype);
    for (int label = 0; label < MOST_LABELS; label++) {
        if (!view->has[label]) continue;
        const bool expected = in_output(equation, label) || (other && other->has[label]);
        add_label(expected ? &kept : &summed, label, sizes);
    }
    if (summed.count == 0) return TARE_OK;
    const struct group *const groups[3] = { &kept, &summed, NULL };
    const void *rows = dense(kernel, view, size, sizes, groups);
    void *sums = tare_arena_alloc(kernel->scratch, (size_t)kept.size * size);
    if (!rows || !sums) return TARE_NO_MEMORY;
    sum_rows(sums, rows, dtype, kept.size, summed.size);
    int64_t step = 1;
    *view = (struct view){ .data = sums };
    for (int i = kept.count - 1; i >= 0; i--) {
        view->has[kept.labels[i]] = true;
        view->steps[kept.labels[i]] = step;
        step *= sizes[kept.labels[i]];
    }
    return TARE_OK;
}

/* ---- execution ---- */

struct einsum {
    struct equation equation;
    int64_t sizes[MOST_LABELS];
    int dtype; /* dtype of the computation */
    struct view views[2];
};

/* Stores a dense array over the labels of the groups in the output's order. */
static void store_ordered(void *to, const void *from, const struct einsum *einsum,
                          const struct group *const groups[3]) {
    int64_t steps[MOST_LABELS] = { 0 }, output_steps[TARE_MAX_RANK], dims[TARE_MAX_RANK], step = 1;
    for (int g = 2; g >= 0; g--) {
        for (int i = groups[g]->count - 1; i >= 0; i--) {
            steps[groups[g]->labels[i]] = step;
            step *= einsum->sizes[groups[g]->labels[i]];
        }
    }
    const struct subscript *output = &einsum->equation.output;
    for (int i = 0; i < output->count; i++) {
        output_steps[i] = steps[output->labels[i]];
        dims[i] = einsum->sizes[output->labels[i]];
    }
    tare_permute_steps(to, from, tare_dtype_size(einsum->dtype), output->count, dims, output_steps);
}

/* Sorts free labels in the output's order, so that common equations need no final transposition. */
static void sort_labels(const struct einsum *einsum, struct group *batch, struct group *left, struct group *right,
                        struct group *contracted) {
    const struct equation *equation = &einsum->equation;
    const struct view *a = &einsum->views[0], *b = &einsum->views[1];
    batch->size = left->size = right->size = contracted->size = 1;
    for (int i = 0; i < equation->output.count; i++) {
        const int label = equation->output.labels[i];
        struct group *group = a->has[label] && b->has[label] ? batch : b->has[label] ? right : left;
        add_label(group, label, einsum->sizes); /* a label without a size has size 1 and any position */
    }
    for (int i = 0; i < equation->operands[0].count; i++) { /* in the order of the left operand */
        const int label = equation->operands[0].labels[i];
        bool again = false;
        for (int j = 0; j < contracted->count; j++)
            again = again || contracted->labels[j] == label;
        if (!again && a->has[label] && b->has[label] && !in_output(equation, label))
            add_label(contracted, label, einsum->sizes);
    }
}

static tare_status two_operands(struct tare_kernel *kernel, struct einsum *einsum, void *room, bool plain) {
    struct group batch = { 0 }, left = { 0 }, right = { 0 }, contracted = { 0 };
    const size_t size = tare_dtype_size(einsum->dtype);
    const void *weights = einsum->views[1].data;
    TARE_TRY(reduce(kernel, &einsum->views[0], einsum->dtype, &einsum->equation, &einsum->views[1], einsum->sizes));
    TARE_TRY(reduce(kernel, &einsum->views[1], einsum->dtype, &einsum->equation, &einsum->views[0], einsum->sizes));
    sort_labels(einsum, &batch, &left, &right, &contracted);
    struct tare_weights *kept =
        !plain && weights == einsum->views[1].data && !einsum->equation.has_ellipsis ? kernel->state : NULL;
    const bool known = kept && tare_weights_find(kept, &kernel->inputs[1], 0);
    int64_t *first_a = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)batch.size);
    int64_t *first_b = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)batch.size);
    struct tare_product product = {
        .pool = tare_session_op_pool(kernel->session),
        .dtype = einsum->dtype,
        .batch = batch.size,
        .m = left.size,
        .n = right.size,
        .k = contracted.size,
        .a = dense(kernel, &einsum->views[0], size, einsum->sizes,
                   (const struct group *const[3]){ &batch, &left, &contracted }),
        .a_first = first_a,
        .b_first = first_b,
        .a_row = contracted.size,
        .a_column = 1,
        .b_row = right.size,
        .b_column = 1,
    };
    if (!known || einsum->dtype != TARE_DT_FLOAT)
        product.b = dense(kernel, &einsum->views[1], size, einsum->sizes,
                          (const struct group *const[3]){ &batch, &contracted, &right });
    void *result = tare_arena_alloc(kernel->scratch, (size_t)(batch.size * left.size * right.size) * size);
    product.c = result;
    if (!first_a || !first_b || !product.a || (!product.b && !known) || !result) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < batch.size; i++) {
        first_a[i] = i * left.size * contracted.size;
        first_b[i] = i * contracted.size * right.size;
    }
    if (plain) /* the reference */
        tare_product_plain(&product);
    else
        TARE_TRY(tare_product_run(&product, kept, &kernel->inputs[1], kernel->scratch));
    store_ordered(room, result, einsum, (const struct group *const[3]){ &batch, &left, &right });
    return TARE_OK;
}

static tare_status one_operand(struct tare_kernel *kernel, struct einsum *einsum, void *room) {
    const struct subscript *output = &einsum->equation.output;
    int64_t dims[TARE_MAX_RANK], steps[TARE_MAX_RANK];
    TARE_TRY(reduce(kernel, &einsum->views[0], einsum->dtype, &einsum->equation, NULL, einsum->sizes));
    for (int i = 0; i < output->count; i++) {
        dims[i] = einsum->sizes[output->labels[i]];
        steps[i] = einsum->views[0].steps[output->labels[i]];
    }
    tare_permute_steps(room, einsum->views[0].data, tare_dtype_size(einsum->dtype), output->count, dims, steps);
    return TARE_OK;
}

static tare_status run_any(struct tare_kernel *kernel, bool plain) {
    struct einsum einsum = { 0 };
    struct tare_shape shapes[2];
    TARE_TRY(parse_equation(&einsum.equation, tare_node_string(kernel->node, "equation", ""), kernel->n_inputs));
    for (int i = 0; i < einsum.equation.n_operands; i++)
        shapes[i] = kernel->inputs[i].shape;
    TARE_TRY(resolve(&einsum.equation, shapes, einsum.sizes));
    const struct tare_shape shape = output_shape(&einsum.equation, einsum.sizes);
    const int dtype = kernel->inputs[0].dtype;
    TARE_TRY(tare_kernel_output(kernel, 0, dtype, &shape));
    struct tare_tensor *output = &kernel->outputs[0];
    if (output->elements == 0) return TARE_OK;
    einsum.dtype = tare_product_dtype(dtype);
    for (int i = 0; i < einsum.equation.n_operands; i++) {
        if (kernel->inputs[i].elements == 0) {
            memset(output->data, 0, tare_tensor_bytes(output));
            return TARE_OK;
        }
        const void *data = tare_product_operand(kernel, &kernel->inputs[i], einsum.dtype);
        if (!data) return TARE_NO_MEMORY;
        open_view(&einsum.views[i], data, &einsum.equation.operands[i], &shapes[i], einsum.sizes);
    }
    void *room = tare_product_room(kernel, 0);
    if (!room) return TARE_NO_MEMORY;
    if (einsum.equation.n_operands == 2)
        TARE_TRY(two_operands(kernel, &einsum, room, plain));
    else
        TARE_TRY(one_operand(kernel, &einsum, room));
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
      .inputs = "inputs: N * T",
      .outputs = "output: T",
      .attrs = "equation: string; N: int >= 1; T: type",
      .infer = infer_einsum,
      .run = run_einsum,
      .prepare = tare_product_prepare,
      .release = tare_product_release,
      .reference = reference_einsum,
      .flags = TARE_OP_PRODUCT,
      .quant = TARE_QUANT_WEIGHTED },
    { .name = "XlaEinsum",
      .inputs = "a: T, b: T",
      .outputs = "product: T",
      .attrs = "equation: string; T: {complex64, bfloat16, float}",
      .infer = infer_einsum,
      .run = run_einsum,
      .prepare = tare_product_prepare,
      .release = tare_product_release,
      .reference = reference_einsum },
    { 0 },
};
