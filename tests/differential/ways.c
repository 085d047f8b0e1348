#include "differential/ways.h"
#include "base/thread.h"
#include "interpreter/session.h"
#include "support/tensor_compare.h"

#include <stdio.h>
#include <string.h>

enum { MOST_OUTPUTS = 2 };

struct way {
    const char *name;
    bool uses_reference;
    enum { NONE, SOME, ALL } observed; /* values; ALL prevents fusion */
    int threads;
};

static const struct way plain = { "step by step", false, ALL, 1 }, reference = { "reference kernels", true, ALL, 1 };
static const struct way ways[] = {
    { "step by step, 2 threads", false, ALL, 2 }, { "fused", false, NONE, 1 },
    { "fused, 2 threads", false, NONE, 2 },       { "fused, 3 threads", false, NONE, 3 },
    { "partly observed", false, SOME, 1 },        { "partly observed, 2 threads", false, SOME, 2 },
};

/* An input and what it gives step by step. */
struct run {
    const struct tare_tensor *x;
    struct tare_tensor y[MOST_OUTPUTS];
    uint64_t observed; /* checksum of the values that SOME observes */
};

/* ---- checksums ---- */

/* Of the values, all NaNs being equal: which operand's NaN an instruction returns is not part of the result. */
static uint64_t checksum(const struct tare_tensor *value) {
    uint64_t sum = 14695981039346656037u;
    for (int64_t i = 0; i < value->elements; i++) {
        const double x = tare_tensor_get_f64(value, i);
        uint64_t bits = UINT64_MAX;
        if (x == x) memcpy(&bits, &x, sizeof bits);
        sum = (sum ^ bits) * 1099511628211u;
        sum ^= sum >> 29;
    }
    return sum;
}

static uint64_t name_sum(const struct tare_node *node) {
    uint64_t sum = 14695981039346656037u;
    for (const char *c = node->name; *c; c++)
        sum = (sum ^ (unsigned char)*c) * 1099511628211u;
    return sum ^ sum >> 31;
}

static bool is_one_of_some(void *arg, const struct tare_node *node, size_t output) {
    (void)arg;
    return output == 0 && node->n_inputs > 0 && tare_dtype_base(node->output_dtypes[0]) == TARE_DT_FLOAT &&
           name_sum(node) % 5 == 0;
}

/* Adds values that depend on the input; those of constants are computed once for all sessions. */
static tare_status observe(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    uint64_t *sum = arg;
    if (is_one_of_some(NULL, node, output)) *sum += checksum(value) * name_sum(node);
    return TARE_OK;
}

/* ---- running ---- */

static tare_status open_session(struct tare_session **session, const struct tare_graph_model *model,
                                const struct way *way, uint64_t *observed) {
    const struct tare_session_options options = { .use_reference_kernels = way->uses_reference,
                                                  .op_threads = way->threads };
    TARE_TRY(tare_session_new(session, model, &options));
    if (way->threads > 1) tare_pool_assume_cost(tare_session_op_pool(*session), 1); /* small layers are divided, too */
    if (way->observed) tare_session_observe(*session, observe, way->observed == ALL ? NULL : is_one_of_some, observed);
    return TARE_OK;
}

static tare_status run_once(struct run *run, const struct tare_graph_model *model, const struct way *way) {
    struct tare_session *session = NULL;
    run->observed = 0;
    tare_status status = open_session(&session, model, way, &run->observed);
    if (status == TARE_OK) status = tare_session_run_signature(session, model->signatures, run->x, run->y);
    tare_session_free(session);
    return status;
}

static void reset_outputs(struct tare_tensor *y) {
    for (int i = 0; i < MOST_OUTPUTS; i++)
        tare_tensor_reset(&y[i]);
}

static void complain(struct tare_strbuf *errors, const struct way *way, const char *how, const char *text) {
    tare_strbuf_printf(errors, "%s, %s: %s\n", way->name, how, text);
}

/* ---- comparison ---- */

struct check {
    struct tare_strbuf *errors;
    struct tare_session *session;
    const struct way *way;
    uint64_t observed; /* since the last run began */
};

static void compare_output(struct check *check, const char *how, const struct tare_tensor *got,
                           const struct tare_tensor *expected) {
    struct tare_strbuf why = { 0 };
    if (!tensors_agree(&why, got, expected, (struct tolerance){ 0 }))
        complain(check->errors, check->way, how, tare_strbuf_text(&why));
    tare_strbuf_free(&why);
}

static void check_whole(struct check *check, const struct run *run, const char *how) {
    const struct tare_signature *signature = tare_session_model(check->session)->signatures;
    struct tare_tensor got[MOST_OUTPUTS] = { 0 };
    check->observed = 0;
    if (tare_session_run_signature(check->session, signature, run->x, got) != TARE_OK)
        complain(check->errors, check->way, how, tare_error_text());
    else
        for (size_t i = 0; i < signature->n_outputs; i++)
            compare_output(check, how, &got[i], &run->y[i]);
    if (check->way->observed == SOME && check->observed != run->observed)
        complain(check->errors, check->way, how, "the observed values differ");
    reset_outputs(got);
}

/* Examples [first, first + count) give these rows of the outputs. */
static void check_rows(struct check *check, const struct run *whole, int64_t first, int64_t count) {
    const struct tare_signature *signature = tare_session_model(check->session)->signatures;
    const int64_t batch = whole->x->shape.dims[0];
    struct tare_tensor x, got[MOST_OUTPUTS] = { 0 };
    char how[60];
    snprintf(how, sizeof how, "examples %d to %d of %d", (int)first, (int)(first + count - 1), (int)batch);
    tare_status status = tare_tensor_share_rows(&x, whole->x, first, count);
    if (status == TARE_OK) status = tare_session_run_signature(check->session, signature, &x, got);
    for (size_t i = 0; i < signature->n_outputs && status == TARE_OK; i++) {
        const int64_t rows = whole->y[i].shape.dims[0] / batch;
        struct tare_tensor expected = { 0 };
        status = tare_tensor_share_rows(&expected, &whole->y[i], first * rows, count * rows);
        if (status == TARE_OK) compare_output(check, how, &got[i], &expected);
        tare_tensor_reset(&expected);
    }
    if (status != TARE_OK) complain(check->errors, check->way, how, tare_error_text());
    tare_tensor_reset(&x);
    reset_outputs(got);
}

/* One session runs everything: what it keeps of one run must fit the next. A section is divided in the second run with
 * the same batch. */
static void check_way(struct tare_strbuf *errors, const struct tare_graph_model *model, const struct way *way,
                      const struct run *runs, int n_runs, bool mixes) {
    const int64_t batch = runs[0].x->shape.dims[0];
    struct check check = { .errors = errors, .way = way };
    if (open_session(&check.session, model, way, &check.observed) != TARE_OK) {
        complain(errors, way, "opening", tare_error_text());
        return;
    }
    check_whole(&check, &runs[0], "first run");
    if (way->observed != ALL) check_whole(&check, &runs[0], "second run");
    if (!mixes && batch > 1) {
        check_rows(&check, &runs[0], batch - 1, 1);
        check_rows(&check, &runs[0], 0, batch - 1);
    }
    for (int i = 1; i < n_runs; i++)
        check_whole(&check, &runs[i], runs[i].x->shape.dims[0] ? "images of another size" : "no examples");
    if (way->observed != ALL) check_whole(&check, &runs[0], "last run");
    tare_session_free(check.session);
}

/* The kernels of some functions differ from their reference in the last bits. */
static bool are_close(const struct tare_tensor *got, const struct tare_tensor *expected, double tolerance) {
    double noise = 0, signal = 0;
    if (!tare_shape_equal(&got->shape, &expected->shape)) return false;
    for (int64_t i = 0; i < got->elements; i++) {
        const double x = tare_tensor_get_f64(got, i), y = tare_tensor_get_f64(expected, i);
        if (x == y || (x != x && y != y)) continue;
        noise += (x - y) * (x - y);
        signal += y * y;
    }
    return noise <= tolerance * signal;
}

static void check_reference(struct tare_strbuf *errors, const struct tare_graph_model *model, const struct run *whole,
                            double tolerance) {
    struct run run = { .x = whole->x };
    struct tare_strbuf why = { 0 };
    if (run_once(&run, model, &reference) != TARE_OK) {
        complain(errors, &reference, "all examples", tare_error_text());
    } else if (!are_close(&whole->y[0], &run.y[0], tolerance)) {
        (void)tensors_agree(&why, &run.y[0], &whole->y[0], (struct tolerance){ 0 });
        complain(errors, &reference, "all examples", tare_strbuf_text(&why));
    }
    tare_strbuf_free(&why);
    reset_outputs(run.y);
}

void ways_compare_models(struct tare_strbuf *errors, const struct tare_graph_model *model,
                         const struct tare_graph_model *original, const struct tare_tensor *x, double tolerance) {
    struct run run = { .x = x }, expected = { .x = x };
    if (run_once(&run, model, &plain) != TARE_OK || run_once(&expected, original, &plain) != TARE_OK)
        complain(errors, &plain, "converted or as built", tare_error_text());
    for (size_t i = 0; i < model->signatures->n_outputs && errors->size == 0; i++)
        if (!are_close(&run.y[i], &expected.y[i], tolerance))
            complain(errors, &plain, "converted", "the outputs are not those of the network as built");
    reset_outputs(run.y);
    reset_outputs(expected.y);
}

uint64_t ways_compare(struct tare_strbuf *errors, const struct tare_graph_model *model,
                      const struct tare_tensor *inputs, int n_inputs, bool mixes, double tolerance) {
    struct run runs[WAYS_INPUTS] = { 0 };
    uint64_t sum = 0;
    int n_runs = 0;
    for (int i = 0; i < n_inputs; i++) {
        struct run *run = &runs[n_runs];
        run->x = &inputs[i];
        if (run_once(run, model, &plain) == TARE_OK)
            n_runs++;
        else if (i == 0)
            complain(errors, &plain, "all examples", tare_error_text());
        if (n_runs == 0) return 0;
    }
    for (int i = 0; i < n_runs; i++)
        for (size_t k = 0; k < model->signatures->n_outputs; k++)
            sum = sum * 31 + checksum(&runs[i].y[k]);
    check_reference(errors, model, &runs[0], tolerance);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        check_way(errors, model, &ways[i], runs, n_runs, mixes);
    for (int i = 0; i < n_runs; i++)
        reset_outputs(runs[i].y);
    return sum;
}
