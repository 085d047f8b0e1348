/* Throughput of a SavedModel's signature on random inputs: model_bench MODEL [batch [workers [seconds [profile
 * [threads]]]]]. Every worker has a session of its own and runs the same batch over and over, as calibration and
 * comparison do. The model is prepared (variables frozen, batch normalisation folded), which is what runtimes do when
 * they load or convert a model. Prints milliseconds a sample, those of processor time, samples a second and peak
 * resident memory. What comes instead of `profile` is a file: one run, and its outputs written there as floats, for the
 * peers to be compared with;
 * `-` is neither. `threads`: that each worker uses inside the graph. The last number is the least time of a run. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "convert/prepared_model.h"
#include "eval/model_inputs.h"
#include "interpreter/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MAX_TENSORS = 64, MAX_WORKERS = 64 };

struct bench {
    const struct tare_graph_model *model;
    const struct tare_signature *signature;
    struct tare_edge feeds[MAX_TENSORS], fetches[MAX_TENSORS];
    struct tare_tensor values[MAX_TENSORS];
    size_t n_feeds, n_fetches;
    int64_t batch;
    double seconds;
    bool profile;
    const char *answers; /* file to write; NULL: measure */
    int threads;
    /* by worker: seconds a run, of processor time a run, and of the fastest run */
    double took[MAX_WORKERS], busy[MAX_WORKERS], least[MAX_WORKERS];
};

static tare_status fill(struct tare_tensor *out, int dtype, struct tare_shape shape, int64_t batch) {
    unsigned seed = 1;
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0) shape.dims[i] = i ? 1 : batch;
    TARE_TRY(tare_tensor_new(out, dtype, &shape));
    if (dtype != TARE_DT_FLOAT) {
        memset(out->data, 0, tare_tensor_bytes(out));
        return TARE_OK;
    }
    for (int64_t i = 0; i < out->elements; i++) {
        seed = seed * 1664525u + 1013904223u;
        TARE_DATA(float, out)[i] = (float)(seed >> 8) / (1 << 24) - 0.5f;
    }
    return TARE_OK;
}

static tare_status open_signature(struct bench *b) {
    TARE_TRY(tare_pick_signature(&b->signature, b->model, NULL));
    b->n_feeds = b->signature->n_inputs;
    b->n_fetches = b->signature->n_outputs;
    if (b->n_feeds > MAX_TENSORS || b->n_fetches > MAX_TENSORS) return TARE_FAIL(TARE_UNSUPPORTED, "too many tensors");
    for (size_t i = 0; i < b->n_feeds; i++) {
        const struct tare_binding *feed = &b->signature->inputs[i];
        b->feeds[i] = feed->edge;
        TARE_TRY(fill(&b->values[i], tare_dtype_base(feed->dtype), feed->shape, b->batch));
    }
    for (size_t i = 0; i < b->n_fetches; i++)
        b->fetches[i] = b->signature->outputs[i].edge;
    return TARE_OK;
}

static tare_status run_once(const struct bench *b, struct tare_session *session) {
    struct tare_tensor results[MAX_TENSORS] = { { 0 } };
    TARE_TRY(tare_session_run(session, b->feeds, b->values, b->n_feeds, b->fetches, results, b->n_fetches, NULL, 0));
    for (size_t i = 0; i < b->n_fetches; i++)
        tare_tensor_reset(&results[i]);
    return TARE_OK;
}

static tare_status write_answers(const struct bench *b, struct tare_session *session) {
    struct tare_tensor results[MAX_TENSORS] = { { 0 } };
    FILE *file = fopen(b->answers, "wb");
    bool good = file;
    if (!file) return TARE_FAIL(TARE_IO, "%s: cannot be written", b->answers);
    tare_status status =
        tare_session_run(session, b->feeds, b->values, b->n_feeds, b->fetches, results, b->n_fetches, NULL, 0);
    for (size_t i = 0; i < b->n_fetches && status == TARE_OK; i++) {
        good = good && fwrite(results[i].data, tare_tensor_bytes(&results[i]), 1, file) == 1;
        tare_tensor_reset(&results[i]);
    }
    good = fclose(file) == 0 && good;
    return status != TARE_OK || good ? status : TARE_FAIL(TARE_IO, "%s: cannot be written", b->answers);
}

/* The share of each op, in the order of its slowest node. */
static void print_ops(const struct tare_profile_row *rows, size_t count, double total) {
    for (size_t i = 0; i < count; i++) {
        size_t nodes = 0;
        double sum = 0;
        bool is_first = true;
        for (size_t j = 0; j < count; j++) {
            if (strcmp(rows[i].node->op, rows[j].node->op) != 0) continue;
            is_first = is_first && j >= i;
            sum += (double)rows[j].nanoseconds;
            nodes++;
        }
        if (is_first) printf("  %5.1f %%  %-24s %zu nodes\n", 100 * sum / total, rows[i].node->op, nodes);
    }
}

static void print_profile(const struct tare_session *session) {
    struct tare_arena arena = { 0 };
    struct tare_profile_row *rows;
    size_t count;
    double total = 0;
    if (tare_session_profile(&rows, &count, &arena, session) != TARE_OK) return;
    for (size_t i = 0; i < count; i++)
        total += (double)rows[i].nanoseconds;
    for (size_t i = 0; i < count && i < 25; i++)
        printf("  %5.1f %% %9.3f us  %-24s %s\n", 100 * (double)rows[i].nanoseconds / total,
               1e-3 * (double)rows[i].nanoseconds / (double)rows[i].calls, rows[i].node->op, rows[i].node->name);
    print_ops(rows, count, total);
    tare_arena_free(&arena);
}

static tare_status work(void *arg, int worker) {
    struct bench *b = arg;
    const struct tare_session_options options = { .profile = b->profile, .op_threads = b->threads };
    struct tare_session *session;
    int64_t runs = 0;
    double start, start_busy;
    TARE_TRY(tare_session_new(&session, b->model, &options));
    if (b->answers) {
        const tare_status status = write_answers(b, session);
        tare_session_free(session);
        return status;
    }
    TARE_TRY(run_once(b, session)); /* makes the plan */
    start = tare_clock_seconds(), start_busy = tare_clock_cpu_seconds();
    b->least[worker] = INFINITY;
    do {
        const double before = tare_clock_seconds();
        TARE_TRY(run_once(b, session));
        b->least[worker] = fmin(b->least[worker], tare_clock_seconds() - before);
        runs++;
    } while (tare_clock_seconds() - start < b->seconds);
    b->took[worker] = (tare_clock_seconds() - start) / (double)runs;
    b->busy[worker] = (tare_clock_cpu_seconds() - start_busy) / (double)runs;
    if (b->profile && worker == 0) print_profile(session);
    tare_session_free(session);
    return TARE_OK;
}

int main(int argc, char **argv) {
    struct bench b = { .batch = argc > 2 ? atoi(argv[2]) : 1,
                       .seconds = argc > 4 ? atof(argv[4]) : 2,
                       .profile = argc > 5 && strcmp(argv[5], "profile") == 0,
                       .threads = argc > 6 ? atoi(argv[6]) : 1 };
    int workers = argc > 3 ? atoi(argv[3]) : 1;
    struct tare_graph_model *model = NULL;
    struct rusage usage;
    double rate = 0, busy = 0;
    tare_status status;
    if (argc > 5 && !b.profile && strcmp(argv[5], "-") != 0) b.answers = argv[5];
    if (argc < 2 || workers < 1 || workers > MAX_WORKERS || b.batch < 1) {
        fprintf(stderr, "usage: model_bench MODEL [batch [workers [seconds [profile|ANSWERS|- [threads]]]]]\n");
        return 2;
    }
    status = tare_load_prepared(&model, argv[1]);
    b.model = model;
    if (status == TARE_OK) status = open_signature(&b);
    if (status == TARE_OK) status = tare_threads_run(workers, work, &b);
    if (status != TARE_OK) {
        fprintf(stderr, "model_bench: %s\n", tare_error_text());
        return 1;
    }
    for (int i = 0; i < workers && !b.answers; i++) {
        rate += (double)b.batch / b.took[i];
        busy += 1e3 * b.busy[i] / (double)b.batch / workers;
    }
    getrusage(RUSAGE_SELF, &usage);
    if (!b.answers)
        printf("batch %lld, %d workers with %d threads, least %.4f ms a run: %.4f ms a sample, %.4f of the processor, "
               "%.1f samples/s, %.1f MB\n",
               (long long)b.batch, workers, b.threads, 1e3 * b.least[0], 1e3 * workers / rate, busy, rate,
               (double)usage.ru_maxrss / 1024);
    for (size_t i = 0; i < b.n_feeds; i++)
        tare_tensor_reset(&b.values[i]);
    tare_model_free(model);
    return 0;
}
