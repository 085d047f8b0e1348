/* Decoders for connectionist temporal classification (Graves et al., 2006): the greedy decoder, and beam search over
 * prefixes. */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"

#include <math.h>
#include <string.h>

static tare_status infer_decoder(struct tare_infer *infer) {
    const bool beam = infer->n_inputs && strcmp(infer->node->op, "CTCBeamSearchDecoder") == 0;
    const size_t paths = beam ? (size_t)tare_node_int(infer->node, "top_paths", 1) : 1;
    const struct tare_shape *inputs = &infer->inputs[0];
    TARE_TRY(tare_operand_rank(infer, 0, "inputs", 3));
    TARE_TRY(tare_operand_rank(infer, 1, "sequence_length", 1));
    int64_t batch = inputs->rank == 3 ? inputs->dims[1] : -1;
    if (infer->inputs[1].rank == 1 && infer->inputs[1].dims[0] >= 0) {
        if (batch >= 0 && batch != infer->inputs[1].dims[0])
            return TARE_FAIL(TARE_SHAPE, "len(sequence_length) is %lld (expected the batch size, %lld)",
                             (long long)infer->inputs[1].dims[0], (long long)batch);
        batch = infer->inputs[1].dims[0];
    }
    if (infer->n_outputs != 3 * paths + 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "top_paths does not match the number of outputs");
    for (size_t p = 0; p < paths; p++) {
        infer->outputs[p] = tare_shape_make(2, -1, 2);
        infer->outputs[paths + p] = tare_shape_make(1, -1);
        infer->outputs[2 * paths + p] = tare_shape_make(1, 2);
    }
    infer->outputs[3 * paths] = tare_shape_make(2, -1, (int)paths);
    infer->outputs[3 * paths].dims[0] = batch;
    return TARE_OK;
}

struct logits {
    const struct tare_tensor *inputs, *lengths;
    int64_t steps, batch, classes;
};

static tare_status open_logits(struct logits *l, const struct tare_kernel *kernel) {
    l->inputs = &kernel->inputs[0];
    l->lengths = &kernel->inputs[1];
    if (l->inputs->shape.rank != 3 || l->lengths->shape.rank != 1)
        return TARE_FAIL(TARE_SHAPE, "inputs is not a 3-Tensor or sequence_length is not a vector");
    if (l->inputs->elements == 0) return TARE_FAIL(TARE_SHAPE, "inputs must not be empty");
    l->steps = l->inputs->shape.dims[0];
    l->batch = l->inputs->shape.dims[1];
    l->classes = l->inputs->shape.dims[2];
    if (l->lengths->elements != l->batch)
        return TARE_FAIL(TARE_SHAPE,
                         "len(sequence_length) != batch_size.  len(sequence_length):  %lld batch_size: %lld",
                         (long long)l->lengths->elements, (long long)l->batch);
    if (l->classes > INT32_MAX)
        return TARE_FAIL(TARE_SHAPE, "num_classes is %lld (expected at most %d)", (long long)l->classes, INT32_MAX);
    for (int64_t b = 0; b < l->batch; b++) {
        const int64_t length = tare_tensor_get_i64(l->lengths, b);
        if (length < 0 || length > l->steps)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "sequence_length(%lld) is %lld (expected 0 to %lld)", (long long)b,
                             (long long)length, (long long)l->steps);
    }
    return TARE_OK;
}

/* The decoded sequences of one path over the batch, stored contiguously. */
struct sequences {
    int64_t *values, *lengths; /* values: one row of `room` entries per batch entry */
    int64_t room;
};

/* Outputs `first`, first + paths and first + 2 paths: the sequences as a sparse tensor. */
static tare_status put_sequences(struct tare_kernel *kernel, size_t first, size_t paths, const struct sequences *s,
                                 int64_t batch) {
    int64_t total = 0, longest = 0, at = 0;
    for (int64_t b = 0; b < batch; b++) {
        total += s->lengths[b];
        if (s->lengths[b] > longest) longest = s->lengths[b];
    }
    struct tare_shape indices = tare_shape_make(2, 0, 2), values = tare_shape_make(1, 0), two = tare_shape_make(1, 2);
    indices.dims[0] = values.dims[0] = total;
    TARE_TRY(tare_kernel_output(kernel, first, TARE_DT_INT64, &indices));
    TARE_TRY(tare_kernel_output(kernel, first + paths, TARE_DT_INT64, &values));
    TARE_TRY(tare_kernel_output(kernel, first + 2 * paths, TARE_DT_INT64, &two));
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < s->lengths[b]; t++, at++) {
            TARE_DATA(int64_t, &kernel->outputs[first])[2 * at] = b;
            TARE_DATA(int64_t, &kernel->outputs[first])[2 * at + 1] = t;
            TARE_DATA(int64_t, &kernel->outputs[first + paths])[at] = s->values[b * s->room + t];
        }
    TARE_DATA(int64_t, &kernel->outputs[first + 2 * paths])[0] = batch;
    TARE_DATA(int64_t, &kernel->outputs[first + 2 * paths])[1] = longest;
    return TARE_OK;
}

static tare_status open_sequences(struct sequences *s, struct tare_kernel *kernel, const struct logits *l) {
    s->room = l->steps;
    s->values = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)(l->steps * l->batch) + 1);
    s->lengths = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)l->batch + 1);
    return s->values && s->lengths ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status run_greedy(struct tare_kernel *kernel) {
    const bool merge = tare_node_bool(kernel->node, "merge_repeated", false);
    int64_t blank = tare_node_int(kernel->node, "blank_index", -1);
    struct logits l;
    struct sequences s;
    TARE_TRY(open_logits(&l, kernel));
    if (blank < 0) blank += l.classes;
    if (blank < 0 || blank >= l.classes)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "blank_index expected to be in [-%lld, %lld)", (long long)l.classes,
                         (long long)l.classes);
    TARE_TRY(open_sequences(&s, kernel, &l));
    struct tare_shape column = tare_shape_make(2, 0, 1);
    column.dims[0] = l.batch;
    TARE_TRY(tare_kernel_output(kernel, 3, l.inputs->dtype, &column));
    for (int64_t b = 0; b < l.batch; b++) {
        int64_t before = -1;
        double sum = 0;
        for (int64_t t = 0; t < tare_tensor_get_i64(l.lengths, b); t++) {
            const int64_t row = (t * l.batch + b) * l.classes;
            int64_t best = 0;
            for (int64_t c = 1; c < l.classes; c++)
                if (tare_tensor_get_f64(l.inputs, row + c) > tare_tensor_get_f64(l.inputs, row + best)) best = c;
            sum -= tare_tensor_get_f64(l.inputs, row + best);
            if (best != blank && !(merge && best == before)) s.values[b * s.room + s.lengths[b]++] = best;
            before = best;
        }
        tare_tensor_set_f64(&kernel->outputs[3], b, sum);
    }
    return put_sequences(kernel, 0, 1, &s, l.batch);
}

/* ---- beam search: prefixes form a tree ---- */

struct odds { /* log probabilities of the prefix ending in its label, ending in a blank, and in total */
    double label, blank, total;
};
static const struct odds nothing = { -INFINITY, -INFINITY, -INFINITY };

struct prefix {
    struct prefix *parent, **children; /* by label; NULL: not created yet */
    int64_t label;
    struct odds before, now;
};

struct beam {
    struct tare_arena *memory;
    struct prefix **leaves; /* best first */
    struct prefix **spare;
    size_t count, width;
    int64_t classes; /* the last class is the blank */
};

static double log_add(double a, double b) {
    const double high = a > b ? a : b, low = a > b ? b : a;
    return isinf(low) ? high : high + tare_log1p(tare_exp(low - high));
}

static bool is_candidate(const struct beam *beam, double total) {
    return total > -INFINITY && (beam->count < beam->width || total > beam->leaves[beam->count - 1]->now.total);
}

/* Inserts the prefix in order; a full beam drops its worst entry. */
static void push(struct beam *beam, struct prefix *prefix) {
    if (beam->count == beam->width) beam->leaves[--beam->count]->now = nothing;
    size_t at = beam->count++;
    for (; at > 0 && beam->leaves[at - 1]->now.total < prefix->now.total; at--)
        beam->leaves[at] = beam->leaves[at - 1];
    beam->leaves[at] = prefix;
}

static struct prefix *child_of(struct beam *beam, struct prefix *prefix, int64_t label) {
    if (!prefix->children) {
        prefix->children = TARE_NEW_ARRAY(beam->memory, struct prefix *, (size_t)beam->classes);
        if (!prefix->children) return NULL;
    }
    if (!prefix->children[label]) {
        struct prefix *made = TARE_NEW(beam->memory, struct prefix);
        if (!made) return NULL;
        *made = (struct prefix){ .parent = prefix, .label = label, .before = nothing, .now = nothing };
        prefix->children[label] = made;
    }
    return prefix->children[label];
}

/* Extends a prefix without a new label: by its last label again or by a blank. */
static void stay(struct prefix *prefix, const double *logs, int64_t blank) {
    if (prefix->parent) {
        const struct prefix *parent = prefix->parent;
        if (parent->now.total != -INFINITY) { /* in the beam */
            const double grown = prefix->label == parent->label ? parent->before.blank : parent->before.total;
            prefix->now.label = log_add(prefix->now.label, grown);
        }
        prefix->now.label += logs[prefix->label];
    }
    prefix->now.blank = prefix->before.total + logs[blank];
    prefix->now.total = log_add(prefix->now.blank, prefix->now.label);
}

static tare_status step(struct beam *beam, const double *logs) {
    struct prefix **branches = beam->leaves;
    const size_t count = beam->count;
    for (size_t i = 0; i < count; i++)
        branches[i]->before = branches[i]->now;
    beam->leaves = beam->spare;
    beam->spare = branches;
    beam->count = 0;
    for (size_t i = 0; i < count; i++) {
        stay(branches[i], logs, beam->classes - 1);
        push(beam, branches[i]);
    }
    for (size_t i = 0; i < count; i++) {
        struct prefix *prefix = branches[i];
        if (!is_candidate(beam, prefix->before.total)) continue;
        for (int64_t label = 0; label < beam->classes - 1; label++) {
            struct prefix *child = child_of(beam, prefix, label);
            if (!child) return TARE_NO_MEMORY;
            if (child->now.total != -INFINITY) continue; /* already in the beam */
            const double from = label == prefix->label ? prefix->before.blank : prefix->before.total;
            child->now = (struct odds){ from + logs[label], -INFINITY, from + logs[label] };
            if (is_candidate(beam, child->now.total)) {
                push(beam, child);
            } else {
                child->before = child->now = nothing;
            }
        }
    }
    return TARE_OK;
}

/* log softmax of one row */
static void take_logs(double *logs, const struct logits *l, int64_t row) {
    double greatest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < l->classes; c++) {
        logs[c] = tare_tensor_get_f64(l->inputs, row + c);
        if (logs[c] > greatest) greatest = logs[c];
    }
    for (int64_t c = 0; c < l->classes; c++)
        sum += tare_exp(logs[c] - greatest);
    for (int64_t c = 0; c < l->classes; c++)
        logs[c] -= greatest + tare_log(sum);
}

static void put_path(struct sequences *s, int64_t b, const struct prefix *prefix, bool merge) {
    int64_t *to = s->values + b * s->room, count = 0, before = -1;
    for (; prefix->parent; before = prefix->label, prefix = prefix->parent)
        if (!merge || prefix->label != before) to[count++] = prefix->label;
    for (int64_t i = 0; i < count / 2; i++) {
        const int64_t moved = to[i];
        to[i] = to[count - 1 - i];
        to[count - 1 - i] = moved;
    }
    s->lengths[b] = count;
}

/* Decodes row b of the batch in memory that is freed afterwards. */
static tare_status search(struct tare_kernel *kernel, struct sequences *paths, const struct logits *l, int64_t b,
                          struct tare_arena *memory) {
    const size_t top = (size_t)tare_node_int(kernel->node, "top_paths", 1);
    struct beam beam = { .memory = memory,
                         .classes = l->classes,
                         .width = (size_t)tare_node_int(kernel->node, "beam_width", 1) };
    struct prefix *root = TARE_NEW(memory, struct prefix);
    double *logs = TARE_NEW_ARRAY(memory, double, (size_t)l->classes);
    beam.leaves = TARE_NEW_ARRAY(memory, struct prefix *, beam.width + 1);
    beam.spare = TARE_NEW_ARRAY(memory, struct prefix *, beam.width + 1);
    if (!root || !logs || !beam.leaves || !beam.spare) return TARE_NO_MEMORY;
    *root = (struct prefix){ .label = -1, .before = nothing, .now = { -INFINITY, 0, 0 } };
    beam.leaves[beam.count++] = root;
    for (int64_t t = 0; t < tare_tensor_get_i64(l->lengths, b); t++) {
        take_logs(logs, l, (t * l->batch + b) * l->classes);
        TARE_TRY(step(&beam, logs));
    }
    if (beam.count < top) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Less leaves in the beam search than requested.");
    for (size_t p = 0; p < top; p++) {
        put_path(&paths[p], b, beam.leaves[p], tare_node_bool(kernel->node, "merge_repeated", true));
        tare_tensor_set_f64(&kernel->outputs[3 * top], b * (int64_t)top + (int64_t)p, beam.leaves[p]->now.total);
    }
    return TARE_OK;
}

static tare_status run_beam(struct tare_kernel *kernel) {
    const int64_t top = tare_node_int(kernel->node, "top_paths", 1),
                  width = tare_node_int(kernel->node, "beam_width", 1);
    struct tare_arena memory = { 0 };
    tare_status status = TARE_OK;
    struct logits l;
    TARE_TRY(open_logits(&l, kernel));
    if (top > width || width > 1 << 24)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "top_paths is %lld, beam_width %lld (expected top_paths <= beam_width)",
                         (long long)top, (long long)width);
    struct sequences *paths = TARE_NEW_ARRAY(kernel->scratch, struct sequences, (size_t)top);
    if (!paths) return TARE_NO_MEMORY;
    for (int64_t p = 0; p < top; p++)
        TARE_TRY(open_sequences(&paths[p], kernel, &l));
    struct tare_shape table = tare_shape_make(2, 0, 0);
    table.dims[0] = l.batch, table.dims[1] = top;
    TARE_TRY(tare_kernel_output(kernel, (size_t)(3 * top), l.inputs->dtype, &table));
    for (int64_t b = 0; b < l.batch && status == TARE_OK; b++) {
        status = search(kernel, paths, &l, b, &memory);
        tare_arena_reset(&memory);
    }
    tare_arena_free(&memory);
    for (int64_t p = 0; p < top && status == TARE_OK; p++)
        status = put_sequences(kernel, (size_t)p, (size_t)top, &paths[p], l.batch);
    return status;
}

const struct tare_op tare_ops_ctc[] = {
    { .name = "CTCGreedyDecoder", .infer = infer_decoder, .run = run_greedy },
    { .name = "CTCBeamSearchDecoder", .infer = infer_decoder, .run = run_beam },
    { 0 },
};
