/* CTC loss and its gradient by the forward-backward algorithm (Graves et al., 2006), in log space and double
 * precision. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* A row's aux. */
struct ctc {
    bool blank_first; /* class 0 is the blank; otherwise the last class */
};
static const struct ctc last_is_blank = { false }, first_is_blank = { true };

/* One sequence: its labels with a blank before, between and after them, and the forward and backward sums. */
struct trellis {
    int64_t steps, states;  /* of this sequence; states = 2 * labels + 1 */
    int64_t *classes;       /* class of each state */
    double *before, *after; /* [steps, states]: log probability of all partial paths up to a step (inclusive), and after
                               it (exclusive) */
    double *logs;           /* [steps, classes]: log softmax */
    int64_t n_classes, blank;
};

struct loss {
    const struct tare_tensor *inputs, *indices, *values, *lengths;
    int64_t steps, batch, classes;
    bool collapse, ignore_longer;
};

static tare_status infer_loss(struct tare_infer *infer) {
    TARE_TRY(tare_operand_rank(infer, 0, "inputs", 3));
    TARE_TRY(tare_operand_rank(infer, 1, "labels_indices", 2));
    TARE_TRY(tare_operand_rank(infer, 2, "labels_values", 1));
    TARE_TRY(tare_operand_rank(infer, 3, "sequence_length", 1));
    const int64_t batch = infer->inputs[0].rank == 3 ? infer->inputs[0].dims[1] : -1;
    infer->outputs[0] = tare_operand_vector_shape(batch);
    infer->outputs[1] = infer->inputs[0];
    return TARE_OK;
}

static tare_status open_loss(struct loss *l, const struct tare_kernel *kernel) {
    *l = (struct loss){ .inputs = &kernel->inputs[0],
                        .indices = &kernel->inputs[1],
                        .values = &kernel->inputs[2],
                        .lengths = &kernel->inputs[3],
                        .collapse = tare_node_bool(kernel->node, "preprocess_collapse_repeated", false),
                        .ignore_longer = tare_node_bool(kernel->node, "ignore_longer_outputs_than_inputs", false) };
    if (l->inputs->shape.rank != 3) return TARE_FAIL(TARE_SHAPE, "inputs is not a 3-Tensor");
    l->steps = l->inputs->shape.dims[0];
    l->batch = l->inputs->shape.dims[1];
    l->classes = l->inputs->shape.dims[2];
    if (l->classes < 1) return TARE_FAIL(TARE_SHAPE, "num_classes is 0 (expected at least 1)");
    if (l->lengths->shape.rank != 1 || l->lengths->elements != l->batch)
        return TARE_FAIL(TARE_SHAPE, "len(sequence_length) != batch_size: %lld and %lld",
                         (long long)l->lengths->elements, (long long)l->batch);
    if (l->values->shape.rank != 1 || l->indices->shape.rank != 2 || l->indices->shape.dims[1] != 2 ||
        l->indices->shape.dims[0] != l->values->elements)
        return TARE_FAIL(TARE_SHAPE, "labels_indices must be [labels, 2], labels_values a vector of as many");
    for (int64_t b = 0; b < l->batch; b++) {
        const int32_t length = TARE_CONST_DATA(int32_t, l->lengths)[b];
        if (length < 0 || length > l->steps)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "sequence_length(%lld) is %d (expected 0 to %lld)", (long long)b,
                             (int)length, (long long)l->steps);
    }
    for (int64_t i = 0; i < l->values->elements; i++) {
        const int64_t b = TARE_CONST_DATA(int64_t, l->indices)[2 * i];
        if (b < 0 || b >= l->batch || (i > 0 && b < TARE_CONST_DATA(int64_t, l->indices)[2 * i - 2]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "labels_indices[%lld] is of batch entry %lld", (long long)i,
                             (long long)b);
    }
    return TARE_OK;
}

/* Sets the states for labels first … last - 1 of a batch entry, with a blank label around each; *count: the number of
 * labels kept. */
static tare_status set_states(struct trellis *t, const struct loss *l, int64_t first, int64_t last) {
    int64_t count = 0;
    for (int64_t i = first; i < last; i++) {
        const int32_t label = TARE_CONST_DATA(int32_t, l->values)[i];
        if (label < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "All labels must be nonnegative integers, got %d", (int)label);
        if (label >= t->n_classes)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "No label may be greater than num_classes: %d of %lld", (int)label,
                             (long long)t->n_classes);
        if (label == t->blank)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Saw the blank, %d, among the labels", (int)label);
        if (l->collapse && count > 0 && t->classes[2 * count - 1] == label) continue;
        t->classes[2 * count] = t->blank;
        t->classes[2 * count + 1] = label;
        count++;
    }
    t->classes[2 * count] = t->blank;
    t->states = 2 * count + 1;
    return TARE_OK;
}

static void set_logs(struct trellis *t, const struct loss *l, int64_t b) {
    for (int64_t step = 0; step < t->steps; step++) {
        const int64_t row = (step * l->batch + b) * t->n_classes;
        double *to = t->logs + step * t->n_classes, most = -INFINITY, sum = 0;
        for (int64_t c = 0; c < t->n_classes; c++) {
            to[c] = tare_tensor_get_f64(l->inputs, row + c);
            most = fmax(most, to[c]);
        }
        for (int64_t c = 0; c < t->n_classes; c++)
            sum += exp(to[c] - most);
        for (int64_t c = 0; c < t->n_classes; c++)
            to[c] -= most + log(sum);
    }
}

static double add_logs(double a, double b) {
    if (a == -INFINITY) return b;
    if (b == -INFINITY) return a;
    return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

/* A path may skip the blank between two different labels. */
static bool may_skip(const struct trellis *t, int64_t state) {
    return state >= 2 && t->classes[state] != t->blank && t->classes[state] != t->classes[state - 2];
}

static void sum_paths(struct trellis *t) {
    const int64_t n = t->states;
    for (int64_t s = 0; s < n; s++)
        t->before[s] = s < 2 ? t->logs[t->classes[s]] : -INFINITY;
    for (int64_t step = 1; step < t->steps; step++) {
        const double *from = t->before + (step - 1) * n;
        for (int64_t s = 0; s < n; s++) {
            double sum = from[s];
            if (s >= 1) sum = add_logs(sum, from[s - 1]);
            if (may_skip(t, s)) sum = add_logs(sum, from[s - 2]);
            t->before[step * n + s] = sum + t->logs[step * t->n_classes + t->classes[s]];
        }
    }
    for (int64_t s = 0; s < n; s++)
        t->after[(t->steps - 1) * n + s] = s >= n - 2 ? 0 : -INFINITY;
    for (int64_t step = t->steps - 2; step >= 0; step--) {
        const double *from = t->after + (step + 1) * n, *logs = t->logs + (step + 1) * t->n_classes;
        for (int64_t s = 0; s < n; s++) {
            double sum = from[s] + logs[t->classes[s]];
            if (s + 1 < n) sum = add_logs(sum, from[s + 1] + logs[t->classes[s + 1]]);
            if (s + 2 < n && may_skip(t, s + 2)) sum = add_logs(sum, from[s + 2] + logs[t->classes[s + 2]]);
            t->after[step * n + s] = sum;
        }
    }
}

/* gradient = softmax - the share of the paths through each class. */
static void store_gradient(struct tare_tensor *out, const struct trellis *t, const struct loss *l, int64_t b,
                           double all) {
    for (int64_t step = 0; step < t->steps; step++) {
        double *row = t->logs + step * t->n_classes;
        for (int64_t c = 0; c < t->n_classes; c++)
            row[c] = exp(row[c]);
        for (int64_t s = 0; s < t->states; s++)
            row[t->classes[s]] -= exp(t->before[step * t->states + s] + t->after[step * t->states + s] - all);
        for (int64_t c = 0; c < t->n_classes; c++)
            tare_tensor_set_f64(out, (step * l->batch + b) * t->n_classes + c, row[c]);
    }
}

static tare_status run_entry(struct tare_kernel *kernel, struct trellis *t, const struct loss *l, int64_t b,
                             int64_t first, int64_t last) {
    double all;
    t->steps = TARE_CONST_DATA(int32_t, l->lengths)[b];
    TARE_TRY(set_states(t, l, first, last));
    tare_tensor_set_f64(&kernel->outputs[0], b, 0);
    const int64_t labels = t->states / 2;
    if (labels > t->steps && !l->ignore_longer && t->steps > 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Not enough time for target transition sequence (required: %lld, available: %lld) in batch "
                         "entry %lld",
                         (long long)labels, (long long)t->steps, (long long)b);
    if (t->steps == 0 || labels > t->steps) return TARE_OK;
    set_logs(t, l, b);
    sum_paths(t);
    all = t->before[t->steps * t->states - 1];
    if (t->states > 1) all = add_logs(all, t->before[t->steps * t->states - 2]);
    tare_tensor_set_f64(&kernel->outputs[0], b, -all);
    if (all > -INFINITY) store_gradient(&kernel->outputs[1], t, l, b, all);
    return TARE_OK;
}

/* Maximum number of labels of a batch entry. */
static int64_t most_labels(const struct loss *l) {
    int64_t most = 0, run = 0;
    for (int64_t i = 0; i < l->values->elements; i++) {
        const int64_t *b = TARE_CONST_DATA(int64_t, l->indices) + 2 * i;
        run = i > 0 && b[0] == b[-2] ? run + 1 : 1;
        most = run > most ? run : most;
    }
    return most;
}

static tare_status run_loss(struct tare_kernel *kernel) {
    const struct ctc *ctc = kernel->op->aux;
    struct loss l;
    struct trellis t = { 0 };
    int64_t cells, at = 0;
    TARE_TRY(open_loss(&l, kernel));
    const struct tare_shape losses = tare_operand_vector_shape(l.batch);
    TARE_TRY(tare_kernel_output(kernel, 0, l.inputs->dtype, &losses));
    TARE_TRY(tare_kernel_output(kernel, 1, l.inputs->dtype, &l.inputs->shape));
    for (int64_t i = 0; i < l.inputs->elements; i++)
        tare_tensor_set_f64(&kernel->outputs[1], i, 0);
    t.n_classes = l.classes;
    t.blank = ctc->blank_first ? 0 : l.classes - 1;
    const int64_t states = 2 * most_labels(&l) + 1;
    if (!tare_mul_i64(&cells, states, l.steps + 1)) return TARE_FAIL(TARE_SHAPE, "too many labels");
    t.classes = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)states);
    t.before = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)cells);
    t.after = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)cells);
    t.logs = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)((l.steps + 1) * l.classes));
    if (!t.classes || !t.before || !t.after || !t.logs) return TARE_NO_MEMORY;
    for (int64_t b = 0; b < l.batch; b++) {
        const int64_t first = at;
        while (at < l.values->elements && TARE_CONST_DATA(int64_t, l.indices)[2 * at] == b)
            at++;
        TARE_TRY(run_entry(kernel, &t, &l, b, first, at));
    }
    return TARE_OK;
}

static tare_status accept_merging(const struct tare_node *node) {
    if (tare_node_bool(node, "ctc_merge_repeated", true)) return TARE_OK;
    return TARE_FAIL(TARE_UNSUPPORTED, "ctc_merge_repeated is false (expected true)");
}

#define LABELS ", labels_indices: int64, labels_values: int32, sequence_length: int32"
#define FORM                                                                                                           \
    "preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = true; "                                    \
    "ignore_longer_outputs_than_inputs: bool = false"

const struct tare_op tare_ops_ctc_loss[] = {
    { .name = "CTCLoss",
      .inputs = "inputs: T" LABELS,
      .outputs = "loss: T, gradient: T",
      .attrs = FORM "; T: {float, double} = DT_FLOAT",
      .infer = infer_loss,
      .accepts = accept_merging,
      .run = run_loss,
      .aux = &last_is_blank },
    { .name = "CTCLossV2",
      .inputs = "inputs: float" LABELS,
      .outputs = "loss: float, gradient: float",
      .attrs = FORM,
      .infer = infer_loss,
      .accepts = accept_merging,
      .run = run_loss,
      .aux = &first_is_blank },
    { 0 },
};
