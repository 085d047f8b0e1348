#include "differential/ways.h"
#include "base/thread.h"
#include "interpreter/session.h"
#include "support/tensor_compare.h"

#include <stdio.h>
#include <string.h>

struct way {
    const char *name;
    bool uses_reference, observes; /* an observer of all values prevents fusion */
    int threads;
};

static const struct way plain = { "step by step", false, true, 1 }, reference = { "reference kernels", true, true, 1 };
static const struct way ways[] = {
    { "step by step, 2 threads", false, true, 2 },
    { "fused", false, false, 1 },
    { "fused, 2 threads", false, false, 2 },
    { "fused, 3 threads", false, false, 3 },
};

static tare_status ignore(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    (void)arg, (void)node, (void)output, (void)value;
    return TARE_OK;
}

static tare_status open_session(struct tare_session **session, const struct tare_graph_model *model,
                                const struct way *way) {
    const struct tare_session_options options = { .use_reference_kernels = way->uses_reference,
                                                  .op_threads = way->threads };
    TARE_TRY(tare_session_new(session, model, &options));
    if (way->threads > 1) tare_pool_assume_cost(tare_session_op_pool(*session), 1); /* small layers are divided, too */
    if (way->observes) tare_session_observe(*session, ignore, NULL, NULL);
    return TARE_OK;
}

static void complain(struct tare_strbuf *errors, const struct way *way, const char *how, const char *text) {
    tare_strbuf_printf(errors, "%s, %s: %s\n", way->name, how, text);
}

/* Rows [first, first + count) of x give these rows of the expected outputs. */
static void check_rows(struct tare_strbuf *errors, struct tare_session *session, const struct way *way,
                       const struct tare_tensor *x, const struct tare_tensor *expected, int64_t first, int64_t count) {
    const struct tare_signature *signature = tare_session_model(session)->signatures;
    const int64_t batch = x->shape.dims[0], rows = expected->shape.dims[0] / batch;
    struct tare_tensor part = { 0 }, right = { 0 }, got = { 0 };
    struct tare_strbuf why = { 0 };
    char how[60];
    tare_status status = tare_tensor_share_rows(&part, x, first, count);
    snprintf(how, sizeof how, "examples %d to %d of %d", (int)first, (int)(first + count - 1), (int)batch);
    if (status == TARE_OK) status = tare_tensor_share_rows(&right, expected, first * rows, count * rows);
    if (status == TARE_OK) status = tare_session_run_signature(session, signature, &part, &got);
    if (status != TARE_OK)
        complain(errors, way, how, tare_error_text());
    else if (!tensors_agree(&why, &got, &right, (struct tolerance){ 0 }))
        complain(errors, way, how, tare_strbuf_text(&why));
    tare_strbuf_free(&why);
    tare_tensor_reset(&part), tare_tensor_reset(&right), tare_tensor_reset(&got);
}

/* The whole batch, one example, the others, and the whole batch again: what a session keeps of one run must fit the
 * next. A section is divided in the second run with the same batch. */
static void check_way(struct tare_strbuf *errors, const struct tare_graph_model *model, const struct way *way,
                      const struct tare_tensor *x, const struct tare_tensor *expected, bool mixes) {
    const int64_t batch = x->shape.dims[0];
    struct tare_session *session = NULL;
    if (open_session(&session, model, way) != TARE_OK) {
        complain(errors, way, "opening", tare_error_text());
        return;
    }
    check_rows(errors, session, way, x, expected, 0, batch);
    if (!way->observes) check_rows(errors, session, way, x, expected, 0, batch);
    if (!mixes && batch > 1) {
        check_rows(errors, session, way, x, expected, batch - 1, 1);
        check_rows(errors, session, way, x, expected, 0, batch - 1);
        if (!way->observes) check_rows(errors, session, way, x, expected, 0, batch);
    }
    tare_session_free(session);
}

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

static tare_status run_once(struct tare_tensor *y, const struct tare_graph_model *model, const struct way *way,
                            const struct tare_tensor *x) {
    struct tare_session *session = NULL;
    tare_status status = open_session(&session, model, way);
    if (status == TARE_OK) status = tare_session_run_signature(session, model->signatures, x, y);
    tare_session_free(session);
    return status;
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

static void check_reference(struct tare_strbuf *errors, const struct tare_graph_model *model,
                            const struct tare_tensor *x, const struct tare_tensor *expected, double tolerance) {
    struct tare_tensor got = { 0 };
    struct tare_strbuf why = { 0 };
    if (run_once(&got, model, &reference, x) != TARE_OK) {
        complain(errors, &reference, "all examples", tare_error_text());
    } else if (!are_close(expected, &got, tolerance)) {
        (void)tensors_agree(&why, &got, expected, (struct tolerance){ 0 });
        complain(errors, &reference, "all examples", tare_strbuf_text(&why));
    }
    tare_strbuf_free(&why);
    tare_tensor_reset(&got);
}

uint64_t ways_compare(struct tare_strbuf *errors, const struct tare_graph_model *model, const struct tare_tensor *x,
                      bool mixes, double tolerance) {
    struct tare_tensor expected = { 0 };
    if (run_once(&expected, model, &plain, x) != TARE_OK) {
        complain(errors, &plain, "all examples", tare_error_text());
        return 0;
    }
    const uint64_t sum = checksum(&expected);
    check_reference(errors, model, x, &expected, tolerance);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        check_way(errors, model, &ways[i], x, &expected, mixes);
    tare_tensor_reset(&expected);
    return sum;
}
