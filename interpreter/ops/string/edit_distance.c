/* EditDistance: Levenshtein distance between corresponding rows of two sparse tensors. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/sparse/sparse_rows.h"
#include "interpreter/ops/string/text.h"

#include <math.h>
#include <string.h>

static tare_status infer_distance(struct tare_infer *infer) {
    int64_t dims[2][TARE_MAX_RANK];
    int counts[2];
    for (size_t k = 0; k < 2; k++) {
        const struct tare_shape *shape = &infer->inputs[3 * k + 2];
        TARE_TRY(tare_operand_rank(infer, 3 * k + 2, "a dense shape", 1));
        TARE_TRY(tare_operand_list(infer, 3 * k + 2, "dense shape", dims[k], &counts[k]));
        if (shape->rank == 1 && shape->dims[0] > 1 && shape->dims[0] <= TARE_MAX_RANK && infer->outputs[0].rank < 0)
            infer->outputs[0] = tare_operand_unknown_dims((int)shape->dims[0] - 1);
    }
    if (counts[0] < 1 || counts[1] < 1) return TARE_OK;
    if (counts[0] != counts[1] || counts[0] < 2)
        return TARE_FAIL(TARE_SHAPE, "hypothesis and truth have ranks %d and %d (expected the same, at least 2)",
                         counts[0], counts[1]);
    infer->outputs[0] = tare_operand_unknown_dims(counts[0] - 1);
    for (int d = 0; d + 1 < counts[0]; d++)
        infer->outputs[0].dims[d] = dims[0][d] > dims[1][d] ? dims[0][d] : dims[1][d];
    return TARE_OK;
}

/* One operand: each row is a run of consecutive entries. */
struct sequences {
    struct tare_sparse sparse;
    int64_t at;
};

/* Returns the output index of the run that starts at `at` (-1: no more runs) and its length. */
static int64_t run_of(const struct sequences *s, const struct tare_shape *out, int64_t *length) {
    int64_t place = 0;
    *length = 0;
    if (s->at >= s->sparse.count) return -1;
    for (int d = 0; d < out->rank; d++)
        place = place * out->dims[d] + tare_sparse_index(&s->sparse, s->at, d);
    for (int64_t i = s->at; i < s->sparse.count; i++, ++*length)
        for (int d = 0; d < out->rank; d++)
            if (tare_sparse_index(&s->sparse, i, d) != tare_sparse_index(&s->sparse, s->at, d)) return place;
    return place;
}

static bool equal(const struct tare_tensor *a, int64_t i, const struct tare_tensor *b, int64_t j) {
    const size_t size = tare_dtype_size(a->dtype);
    if (a->dtype == TARE_DT_STRING) {
        const struct tare_str x = tare_text_at(a, i), y = tare_text_at(b, j);
        return x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
    }
    if (tare_dtype_is_floating(a->dtype)) return tare_tensor_get_f64(a, i) == tare_tensor_get_f64(b, j);
    return memcmp((const char *)a->data + (size_t)i * size, (const char *)b->data + (size_t)j * size, size) == 0;
}

static int64_t distance(int64_t *row, const struct sequences *h, int64_t m, const struct sequences *t, int64_t n) {
    for (int64_t j = 0; j <= n; j++)
        row[j] = j;
    for (int64_t i = 1; i <= m; i++) {
        int64_t corner = row[0];
        row[0] = i;
        for (int64_t j = 1; j <= n; j++) {
            const int64_t above = row[j];
            int64_t best = corner + !equal(h->sparse.values, h->at + i - 1, t->sparse.values, t->at + j - 1);
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            row[j] = best;
            corner = above;
        }
    }
    return row[n];
}

static tare_status run_distance(struct tare_kernel *kernel) {
    const bool normalize = tare_node_bool(kernel->node, "normalize", true);
    struct sequences hypothesis = { .at = 0 }, truth = { .at = 0 };
    struct tare_shape *shape;
    TARE_TRY(tare_operand_shapes(kernel, &shape));
    TARE_TRY(tare_sparse_make(&hypothesis.sparse, &kernel->inputs[0], &kernel->inputs[1], &kernel->inputs[2]));
    TARE_TRY(tare_sparse_make(&truth.sparse, &kernel->inputs[3], &kernel->inputs[4], &kernel->inputs[5]));
    TARE_TRY(tare_sparse_check(&hypothesis.sparse, true));
    TARE_TRY(tare_sparse_check(&truth.sparse, true));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_FLOAT, shape));
    struct tare_tensor *out = &kernel->outputs[0];
    if (out->elements) memset(out->data, 0, tare_tensor_bytes(out));
    int64_t *row = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)truth.sparse.count + 1);
    if (!row) return TARE_NO_MEMORY;
    for (;;) {
        int64_t m, n;
        const int64_t h = run_of(&hypothesis, shape, &m), t = run_of(&truth, shape, &n);
        if (h < 0 && t < 0) return TARE_OK;
        const bool both = h == t, first = both || t < 0 || (h >= 0 && h < t);
        float result;
        if (both)
            result = (float)distance(row, &hypothesis, m, &truth, n) / (normalize ? (float)n : 1.0f);
        else if (first)
            result = normalize ? INFINITY : (float)m;
        else
            result = normalize ? 1.0f : (float)n;
        TARE_DATA(float, out)[first ? h : t] = result;
        if (first) hypothesis.at += m;
        if (both || !first) truth.at += n;
    }
}

const struct tare_op tare_ops_edit_distance[] = {
    { .name = "EditDistance", .infer = infer_distance, .run = run_distance },
    { 0 },
};
