/* Calibration runs: the same bytes for any number of workers, any batch, any shards and any interruption. */
#include "calib/engine.h"

#include "base/file.h"
#include "calib/format/file.h"
#include "calib/fingerprint.h"
#include "support/draw.h"
#include "support/mini_model.h"
#include "support/temp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 40, HIDDEN = 96, FILES = 2, PER_FILE = 30, RECORDS = FILES * PER_FILE };

/* ---- samples ---- */

/* RECORDS records in two files, made from their numbers; some have two rows. */
struct memory_source {
    int64_t at;
    int shard, shards; /* shards 0: all */
    int64_t fail_at;   /* index of a record that cannot be read; -1: none */
    int64_t nan_at, bad_shape_at;
    bool twins; /* the first two records hold the same values */
    int64_t decoded;
};

static tare_status make_sample(struct tare_tensor *out, const struct memory_source *source, int64_t index) {
    uint64_t seed = source->twins && index == 1 ? 500 : 500 + (uint64_t)index;
    struct tare_shape shape = tare_shape_make(2, index % 7 == 3 ? 2 : 1, index == source->bad_shape_at ? 7 : WIDTH);
    TARE_TRY(tare_tensor_new(out, TARE_DT_FLOAT, &shape));
    draw_fill(out->data, (size_t)out->elements, DRAW_NORMAL, seed);
    if (index == source->nan_at) TARE_DATA(float, out)[5] = NAN;
    return TARE_OK;
}

static tare_status next(void *arg, struct tare_tensor *inputs, struct tare_record *record, bool *end,
                        bool (*wanted)(void *wanted_arg, const struct tare_record *record), void *wanted_arg) {
    struct memory_source *source = arg;
    for (; source->at < RECORDS; source->at++) {
        int64_t index = source->at;
        struct tare_record here = { .file = (int32_t)(index / PER_FILE), .number = index % PER_FILE, .index = index };
        if (source->shards > 0 && index % source->shards != source->shard) continue;
        if (!wanted(wanted_arg, &here)) continue;
        *record = here;
        source->at++;
        source->decoded++;
        if (index == source->fail_at) return TARE_FAIL(TARE_CORRUPT, "second: record %d: no good", (int)here.number);
        return make_sample(&inputs[0], source, index);
    }
    *end = true;
    return TARE_OK;
}

static const char *const file_names[FILES] = { "second", "first" };

static struct memory_source all_records(void) {
    return (struct memory_source){ .fail_at = -1, .nan_at = -1, .bad_shape_at = -1 };
}

static struct tare_sample_source source_of(struct memory_source *memory) {
    return (struct tare_sample_source){
        .arg = memory, .files = file_names, .n_files = FILES, .remaining = -1, .next = next
    };
}

/* ---- models ---- */

static struct tare_edge constant(struct tare_graph *graph, const char *name, int rows, int columns, uint64_t seed) {
    struct tare_shape shape = rows > 0 ? tare_shape_make(2, rows, columns) : tare_shape_make(1, columns);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    draw_fill(value.data, (size_t)value.elements, DRAW_LAPLACE, seed);
    struct tare_node *node = tare_graph_add_const(graph, name, &value);
    tare_tensor_reset(&value);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

static void sign(struct tare_graph_model *model, struct tare_edge x, struct tare_edge y) {
    model->signatures = TARE_NEW(&model->arena, struct tare_signature);
    model->n_signatures = 1;
    struct tare_signature *s = model->signatures;
    s->key = "serving_default";
    s->method_name = "";
    s->inputs = TARE_NEW(&model->arena, struct tare_binding);
    s->outputs = TARE_NEW(&model->arena, struct tare_binding);
    s->n_inputs = s->n_outputs = 1;
    *s->inputs =
        (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = tare_shape_make(2, -1, -1), .edge = x };
    *s->outputs = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = y };
}

enum kind { PLAIN, MIXING, BRANCHING, COUNTING, WIDE };

static struct tare_graph *branch(struct tare_graph_model *model, const char *name, float by) {
    struct tare_graph *function = tare_model_add_function(model, name);
    assert_non_null(function);
    struct tare_edge v = mini_arg(function, "v", TARE_DT_FLOAT);
    mini_return(function, "r", mini_node(function, "Mul", "scaled", 2, v, mini_float(function, "by", by)));
    return function;
}

/* x * w + b, rectified; then, by kind, the mean over all rows (which mixes the records of a batch), a branch that hangs
 * on the greatest value, a factor that grows from run to run, or a product of many columns. */
static struct tare_graph_model *make_model(enum kind kind) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge h = mini_node(g, "MatMul", "dense", 2, x, constant(g, "w", WIDTH, HIDDEN, 1));
    h = mini_node(g, "BiasAdd", "bias", 2, h, constant(g, "b", 0, HIDDEN, 2));
    struct tare_edge y = mini_node(g, "Relu", "relu", 1, h);
    if (kind == MIXING) {
        const int32_t axes[] = { 0 };
        struct tare_node *mean = mini_open(g, "Mean", "mean", 2, y, mini_ints(g, "axes", 1, axes));
        mini_ok(tare_node_set_bool(mean, "keep_dims", true));
        y = mini_node(g, "Sub", "centred", 2, y, mini_done(mean));
    } else if (kind == BRANCHING) {
        const int32_t axes[] = { 0, 1 };
        branch(model, "large", 0.5f);
        branch(model, "small", 2.0f);
        branch(model, "never", 3.0f);
        struct tare_edge top = mini_done(mini_open(g, "Max", "top", 2, y, mini_ints(g, "axes", 2, axes)));
        struct tare_edge p = mini_node(g, "Greater", "is_large", 2, top, mini_float(g, "limit", 23));
        struct tare_edge impossible = mini_node(g, "Greater", "is_huge", 2, top, mini_float(g, "huge", 1e6f));
        int type = TARE_DT_FLOAT;
        for (int i = 0; i < 2; i++) {
            struct tare_node *node = mini_open(g, "If", i ? "if_huge" : "if_large", 2, i ? impossible : p, y);
            mini_ok(tare_node_set_type_list(node, "Tout", &type, 1));
            mini_ok(tare_node_set_func(node, "then_branch", i ? "never" : "large"));
            mini_ok(tare_node_set_func(node, "else_branch", i ? "large" : "small"));
            y = mini_done(node);
        }
    }
    if (kind == COUNTING) {
        struct tare_edge counter = mini_variable(model, "counter", 1);
        struct tare_node *count =
            mini_node(g, "AssignAddVariableOp", "count", 2, counter, mini_float(g, "one", 1)).node;
        struct tare_node *read = mini_open(g, "ReadVariableOp", "read", 1, counter);
        mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
        mini_ok(tare_node_add_control(read, count));
        y = mini_node(g, "Mul", "grown", 2, y, mini_done(read));
    }
    if (kind == WIDE) y = mini_node(g, "MatMul", "columns", 2, y, constant(g, "many", HIDDEN, 140000, 3));
    sign(model, x, y);
    return model;
}

/* ---- runs ---- */

static struct tare_calibration *new_calibration(const struct tare_graph_model *model) {
    uint64_t fingerprint[2];
    mini_ok(tare_model_fingerprint(fingerprint, model));
    struct tare_calibration *c = tare_calibration_new(fingerprint, "observe=all", true);
    assert_non_null(c);
    return c;
}

static struct tare_strbuf encode(const struct tare_calibration *c) {
    struct tare_strbuf bytes = { 0 };
    mini_ok(tare_calibration_encode(&bytes, c));
    return bytes;
}

static struct tare_calibration *run(const struct tare_graph_model *model, struct memory_source memory, int threads,
                                    int batch, struct tare_calibration_outcome *outcome) {
    struct tare_sample_source source = source_of(&memory);
    const struct tare_calibration_options options = { .threads = threads, .batch = batch };
    struct tare_calibration *c = new_calibration(model);
    mini_ok(tare_calibration_run(c, outcome, model, &model->signatures[0], &source, &options));
    return c;
}

static void assert_bytes(struct tare_strbuf *got, const struct tare_strbuf *expected, const char *what) {
    if (got->size != expected->size || memcmp(got->data, expected->data, got->size) != 0)
        fail_msg("%s: other bytes (%zu, expected %zu)", what, got->size, expected->size);
    tare_strbuf_free(got);
}

static void calibrate__workers_and_batches_leave_no_trace(void **state) {
    (void)state;
    for (int kind = PLAIN; kind <= BRANCHING; kind++) {
        struct tare_graph_model *model = make_model((enum kind)kind);
        struct tare_calibration_outcome outcome;
        struct tare_calibration *c = run(model, all_records(), 1, 1, &outcome);
        assert_int_equal(outcome.records, RECORDS);
        assert_int_equal(tare_calibration_records(c), RECORDS);
        struct tare_strbuf expected = encode(c);
        tare_calibration_free(c);
        const int threads[] = { 2, 1, 3 }, batches[] = { 1, 7, 32 };
        for (int i = 0; i < 9; i++) {
            char what[64];
            snprintf(what, sizeof what, "model %d, %d workers, batch %d", kind, threads[i / 3], batches[i % 3]);
            c = run(model, all_records(), threads[i / 3], batches[i % 3], &outcome);
            assert_int_equal(outcome.batch, kind == PLAIN ? batches[i % 3] : 1);
            assert_true((outcome.batch_reason != NULL) == (kind != PLAIN && batches[i % 3] > 1));
            struct tare_strbuf got = encode(c);
            assert_bytes(&got, &expected, what);
            tare_calibration_free(c);
        }
        tare_strbuf_free(&expected);
        tare_model_free(model);
    }
}

/* The mean of two equal rows is either row: such a pair would let a model through that mixes records. */
static void calibrate__equal_records_do_not_prove_that_they_can_run_together(void **state) {
    (void)state;
    static const char reason[] = "the first two records have an equal input or different shapes, which does not show "
                                 "whether a batch changes results";
    for (int kind = PLAIN; kind <= MIXING; kind++) {
        struct tare_graph_model *model = make_model((enum kind)kind);
        struct tare_calibration_outcome outcome;
        struct memory_source memory = all_records();
        memory.twins = true;
        tare_calibration_free(run(model, memory, 2, 7, &outcome));
        assert_int_equal(outcome.batch, 1);
        assert_string_equal(outcome.batch_reason, reason);
        tare_model_free(model);
    }
}

static void calibrate__unasked_as_many_records_run_together_as_pay(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model(PLAIN), *mixing = make_model(MIXING);
    struct tare_calibration_outcome outcome;
    tare_calibration_free(run(model, all_records(), 2, 0, &outcome));
    assert_int_equal(outcome.batch, 32); /* 96 values a record: far below what pays */
    tare_calibration_free(run(mixing, all_records(), 2, 0, &outcome));
    assert_int_equal(outcome.batch, 1);
    tare_model_free(model);
    tare_model_free(mixing);
}

/* What is tried: two records of equal values are the reason why no records run together. */
static void calibrate__records_of_large_tensors_are_not_tried_together(void **state) {
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        struct tare_graph_model *model = make_model(wide ? WIDE : PLAIN);
        struct tare_calibration_outcome outcome;
        struct memory_source memory = all_records();
        memory.twins = true;
        tare_calibration_free(run(model, memory, 2, 0, &outcome));
        assert_int_equal(outcome.batch, 1);
        assert_int_equal(outcome.batch_reason == NULL, wide);
        tare_model_free(model);
    }
}

static void calibrate__counts_what_the_model_computes(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model(PLAIN);
    struct tare_calibration *c = run(model, all_records(), 2, 7, NULL);
    const struct tare_calibration_tensor *x = tare_calibration_find(c, "", "x", 0),
                                         *relu = tare_calibration_find(c, "", "relu", 0);
    assert_non_null(x);
    assert_non_null(relu);
    assert_null(tare_calibration_find(c, "", "w", 0)); /* constants are not observed */
    assert_non_null(tare_calibration_find_edge(c, model->signatures[0].outputs[0].edge));
    float low = INFINITY, high = -INFINITY;
    int64_t elements = 0, high_index = -1;
    struct memory_source memory = all_records();
    for (int64_t i = 0; i < RECORDS; i++) {
        struct tare_tensor value;
        mini_ok(make_sample(&value, &memory, i));
        for (int64_t k = 0; k < value.elements; k++) {
            float v = TARE_DATA(float, &value)[k];
            if (v > high) high_index = i;
            low = fminf(low, v);
            high = fmaxf(high, v);
        }
        elements += value.elements;
        tare_tensor_reset(&value);
    }
    double found_low, found_high;
    assert_true(tare_statistics_extremes(&found_low, &found_high, &x->statistics));
    assert_true(found_low == low && found_high == high);
    assert_int_equal(tare_statistics_elements(&x->statistics), elements);
    assert_int_equal(x->statistics.samples, RECORDS);
    const struct tare_extreme *top = &x->statistics.highest[0];
    assert_string_equal(c->inputs[top->input].file, file_names[high_index / PER_FILE]);
    assert_int_equal(top->record, high_index % PER_FILE);
    assert_true(tare_statistics_extremes(&found_low, &found_high, &relu->statistics));
    assert_true(found_low == 0);
    assert_true(relu->statistics.histogram.zeros > 0);
    tare_calibration_free(c);
    tare_model_free(model);
}

static void calibrate__shards_in_any_order_give_the_bytes_of_one_run(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model(PLAIN);
    struct tare_calibration *c = run(model, all_records(), 2, 7, NULL);
    struct tare_strbuf expected = encode(c);
    tare_calibration_free(c);
    const int orders[2][5] = { { 3, 1, 4, 0, 2 }, { 4, 3, 2, 1, 0 } };
    for (int o = 0; o < 2; o++) {
        struct tare_calibration *sum = NULL;
        for (int i = 0; i < 5; i++) {
            struct memory_source memory = all_records();
            memory.shards = 5;
            memory.shard = orders[o][i];
            struct tare_calibration *shard = run(model, memory, 1 + i % 2, 1 + 3 * i, NULL);
            if (!sum) {
                sum = shard;
                continue;
            }
            mini_ok(tare_calibration_merge(sum, shard));
            mini_fails(tare_calibration_merge(sum, shard), "is a shard given twice?");
            tare_calibration_free(shard);
        }
        struct tare_strbuf got = encode(sum);
        assert_bytes(&got, &expected, "five shards");
        tare_calibration_free(sum);
    }
    tare_strbuf_free(&expected);
    tare_model_free(model);
}

static void calibrate__branches_tell_which_were_reached(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model(BRANCHING);
    struct tare_calibration *c = run(model, all_records(), 2, 1, NULL);
    int64_t large = -1, small = -1, never = -1;
    for (size_t i = 0; i < c->n_functions; i++) {
        if (strcmp(c->functions[i].name, "large") == 0) large = c->functions[i].records;
        if (strcmp(c->functions[i].name, "small") == 0) small = c->functions[i].records;
        if (strcmp(c->functions[i].name, "never") == 0) never = c->functions[i].records;
    }
    assert_int_equal(never, 0);
    assert_int_equal(large, RECORDS); /* every record takes it in the second branch */
    if (small <= 0 || small >= RECORDS) fail_msg("%lld of %d records reached 'small'", (long long)small, RECORDS);
    assert_int_equal(tare_calibration_find(c, "small", "scaled", 0)->statistics.samples, small);
    assert_int_equal(tare_calibration_find(c, "never", "scaled", 0)->statistics.samples, 0);
    static const char *const sides[][3] = { { "if_huge", "then", "never" },
                                            { "if_huge", "else", "large" },
                                            { "if_large", "then", "large" },
                                            { "if_large", "else", "small" } };
    assert_int_equal(c->coverage.count, 4);
    for (int i = 0; i < 4; i++) {
        char text[TARE_COVERAGE_SIDE_TEXT];
        const struct tare_coverage_side *side = &c->coverage.sides[i];
        assert_string_equal(side->function, "");
        assert_string_equal(side->op, "If");
        assert_string_equal(side->node, sides[i][0]);
        assert_string_equal(tare_coverage_side_text(text, side), sides[i][1]);
        assert_string_equal(side->target, sides[i][2]);
        /* The second node takes 'large' for every record, the first one only for those that do not go to 'small'. */
        const int64_t records[] = { 0, RECORDS, RECORDS - small, small };
        assert_int_equal(side->records, records[i]);
    }
    tare_calibration_free(c);
    tare_model_free(model);
}

static void calibrate__state_keeps_records_in_order_on_one_worker(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model(COUNTING);
    struct tare_calibration_outcome outcome;
    struct tare_calibration *c = run(model, all_records(), 3, 7, &outcome);
    assert_true(outcome.stateful);
    assert_int_equal(outcome.threads, 1);
    assert_int_equal(outcome.batch, 1);
    assert_string_equal(outcome.batch_reason, "the model keeps state from record to record");
    const struct tare_statistics *read = &tare_calibration_find(c, "", "read", 0)->statistics;
    assert_true(read->lowest[0].value == 2 && read->highest[0].value == RECORDS + 1);
    assert_int_equal(read->lowest[0].record, 0);
    assert_string_equal(c->inputs[read->lowest[0].input].file, file_names[0]);
    assert_int_equal(read->highest[0].record, PER_FILE - 1);
    /* What went before is lost: such a run cannot be gone on with. */
    struct memory_source memory = all_records();
    struct tare_sample_source source = source_of(&memory);
    const struct tare_calibration_options options = { .threads = 2, .state_path = temp_path("no state") };
    mini_fails(tare_calibration_run(c, &outcome, model, &model->signatures[0], &source, &options),
               "the model keeps state from record to record, which is lost: records of 'second' are counted already");
    assert_int_equal(tare_file_kind_of(options.state_path), TARE_FILE_NONE);
    tare_calibration_free(c);
    tare_model_free(model);
}

static void calibrate__a_nan_is_named_by_its_record(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model(PLAIN);
    struct memory_source memory = all_records();
    memory.nan_at = PER_FILE + 17;
    struct tare_calibration *c = run(model, memory, 2, 7, NULL);
    const struct tare_statistics *s = &tare_calibration_find(c, "", "dense", 0)->statistics;
    assert_true(s->has_nan);
    assert_int_equal(s->first_nan.record, 17);
    assert_string_equal(c->inputs[s->first_nan.input].file, "first");
    assert_int_equal(s->histogram.nans, HIDDEN);
    tare_calibration_free(c);
    tare_model_free(model);
}

static void calibrate__errors_name_the_record(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model(PLAIN);
    for (int batch = 1; batch <= 7; batch += 6) {
        struct memory_source memory = all_records();
        memory.bad_shape_at = 21;
        struct tare_sample_source source = source_of(&memory);
        const struct tare_calibration_options options = { .threads = 2, .batch = batch };
        struct tare_calibration *c = new_calibration(model);
        mini_fails(tare_calibration_run(c, NULL, model, &model->signatures[0], &source, &options),
                   "second: record 21: ");
        tare_calibration_free(c);
        memory = all_records();
        memory.fail_at = 4;
        source = source_of(&memory);
        c = new_calibration(model);
        mini_fails(tare_calibration_run(c, NULL, model, &model->signatures[0], &source, &options),
                   "second: record 4: no good");
        tare_calibration_free(c);
    }
    tare_model_free(model);
}

static void calibrate__the_limit_counts_from_the_front(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model(PLAIN);
    for (int batch = 1; batch <= 8; batch += 7) {
        struct memory_source memory = all_records();
        struct tare_sample_source source = source_of(&memory);
        const struct tare_calibration_options options = { .threads = 2, .batch = batch, .limit = 37 };
        struct tare_calibration *c = new_calibration(model);
        mini_ok(tare_calibration_run(c, NULL, model, &model->signatures[0], &source, &options));
        assert_int_equal(tare_calibration_records(c), 37);
        assert_int_equal(c->inputs[1].records.runs[0].end, PER_FILE); /* "second" sorts behind "first" */
        assert_int_equal(c->inputs[0].records.runs[0].end, 7);
        tare_calibration_free(c);
    }
    tare_model_free(model);
}

/* ---- interruption ---- */

struct interrupt {
    volatile sig_atomic_t flag;
    int64_t at;
};

static void interrupt_at(void *arg, int64_t records) {
    struct interrupt *interrupt = arg;
    if (records >= interrupt->at) interrupt->flag = 1;
}

static void calibrate__interrupted_and_resumed_gives_the_same_bytes(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model(PLAIN);
    struct tare_calibration *c = run(model, all_records(), 1, 1, NULL);
    struct tare_strbuf expected = encode(c);
    uint64_t fingerprint[2] = { c->fingerprint[0], c->fingerprint[1] };
    tare_calibration_free(c);
    const char *path = temp_path("state");
    c = new_calibration(model);
    int rounds = 0;
    tare_status status = TARE_INTERRUPTED;
    for (; status == TARE_INTERRUPTED; rounds++) {
        struct interrupt interrupt = { .at = 11 };
        struct memory_source memory = all_records();
        struct tare_sample_source source = source_of(&memory);
        const struct tare_calibration_options options = { .threads = 1 + rounds % 2,
                                                          .batch = 1 + rounds,
                                                          .task = "all",
                                                          .state_path = path,
                                                          .progress = interrupt_at,
                                                          .progress_arg = &interrupt,
                                                          .interrupted = &interrupt.flag };
        status = tare_calibration_run(c, NULL, model, &model->signatures[0], &source, &options);
        assert_true(memory.decoded < 40); /* what is done is not decoded again */
        if (status != TARE_INTERRUPTED) break;
        assert_non_null(strstr(tare_error_text(), "records are saved in '"));
        tare_calibration_free(c);
        mini_fails(tare_calibration_resume(&c, path, fingerprint, "observe=all", true, "limit 9"),
                   "state of another run ('all; observe=all; channels', expected 'limit 9; observe=all; channels')");
        mini_fails(tare_calibration_resume(&c, path, fingerprint, "observe=all", false, "all"),
                   "this is the state of another run ('all; observe=all; channels', expected 'all; observe=all')");
        mini_ok(tare_calibration_resume(&c, path, fingerprint, "observe=all", true, "all"));
    }
    mini_ok(status);
    assert_true(rounds >= 3);
    struct tare_strbuf got = encode(c);
    assert_bytes(&got, &expected, "interrupted and resumed");
    tare_calibration_free(c);
    tare_strbuf_free(&expected);
    tare_model_free(model);
}

static void die_at(void *arg, int64_t records) {
    (void)arg;
    if (records >= 35) raise(SIGKILL);
    usleep(1000); /* so that the state is saved a few times before */
}

static void calibrate__killed_and_resumed_gives_the_same_bytes(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model(PLAIN);
    struct tare_calibration *c = run(model, all_records(), 1, 1, NULL), *resumed;
    struct tare_strbuf expected = encode(c);
    const char *path = temp_path("killed");
    struct memory_source memory = all_records();
    struct tare_sample_source source = source_of(&memory);
    struct tare_calibration_options options = {
        .threads = 2, .batch = 3, .task = "all", .state_path = path, .autosave_seconds = 0.005, .progress = die_at
    };
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct tare_calibration *own = new_calibration(model);
        _exit(tare_calibration_run(own, NULL, model, &model->signatures[0], &source, &options));
    }
    int how;
    assert_true(waitpid(child, &how, 0) == child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    mini_ok(tare_calibration_resume(&resumed, path, c->fingerprint, "observe=all", true, "all"));
    int64_t saved = tare_calibration_records(resumed);
    if (saved <= 0 || saved > 40) fail_msg("%lld records were saved", (long long)saved);
    options.progress = NULL;
    struct tare_calibration_outcome outcome;
    mini_ok(tare_calibration_run(resumed, &outcome, model, &model->signatures[0], &source, &options));
    assert_int_equal(outcome.records, RECORDS - saved);
    struct tare_strbuf got = encode(resumed);
    assert_bytes(&got, &expected, "killed and resumed");
    tare_calibration_free(resumed);
    tare_calibration_free(c);
    tare_strbuf_free(&expected);
    tare_model_free(model);
}

static void expect_state_from_record_two(void *arg, int64_t records) {
    assert_int_equal(access(arg, F_OK) == 0, records > 1);
}

static void calibrate__no_state_is_saved_before_a_record_is_done(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model(PLAIN);
    const char *path = temp_path("early");
    unlink(path);
    struct tare_calibration_options options = { .threads = 1,
                                                .batch = 1,
                                                .task = "all",
                                                .state_path = path,
                                                .autosave_seconds = 1e-9,
                                                .progress = expect_state_from_record_two,
                                                .progress_arg = (void *)path };
    struct memory_source memory = all_records();
    struct tare_sample_source source = source_of(&memory);
    struct tare_calibration *c = new_calibration(model);
    mini_ok(tare_calibration_run(c, NULL, model, &model->signatures[0], &source, &options));
    tare_calibration_free(c);
    tare_model_free(model);
}

static void the_next_save__waits_longer_where_saving_is_slow(void **state) {
    (void)state;
    const double cases[][3] = { { 0, 0, 5 },    { 0, 0.05, 5 },     { 0, 0.4, 40 },
                                { 0, 20, 300 }, { 0.01, 20, 0.01 }, { 60, 0, 60 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_float_equal(tare_calibration_pause(cases[i][0], cases[i][1]), cases[i][2], 1e-9);
}

struct full_disk {
    int warnings;
    int64_t failing; /* number of the file operation after each record that fails */
};

static void fail_later(void *arg, int64_t records) {
    const struct full_disk *disk = arg;
    if (records >= 10 && records < 40) tare_file_fail_at(disk->failing);
    if (records >= 40) tare_file_fail_at(0);
    usleep(2000);
}

static void count_warning(void *arg, enum tare_log_level level, const char *text) {
    struct full_disk *disk = arg;
    assert_int_equal(level, TARE_LOG_WARNING);
    assert_non_null(strstr(text, "saving the state"));
    assert_non_null(strstr(text, "calibration continues"));
    disk->warnings++;
}

static void calibrate__a_state_that_cannot_be_saved_does_not_end_the_run(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model(PLAIN);
    struct tare_calibration *c = run(model, all_records(), 1, 1, NULL), *saved;
    struct tare_strbuf expected = encode(c);
    const char *path = temp_path("full");
    for (int64_t failing = 1; failing <= 3; failing++) { /* creating, writing, syncing */
        struct full_disk disk = { .failing = failing };
        const struct tare_log log = { TARE_LOG_NOTE, count_warning, &disk };
        const struct tare_calibration_options options = { .threads = 1,
                                                          .batch = 1,
                                                          .task = "all",
                                                          .state_path = path,
                                                          .autosave_seconds = 0.002,
                                                          .log = &log,
                                                          .progress = fail_later,
                                                          .progress_arg = &disk };
        struct memory_source memory = all_records();
        struct tare_sample_source source = source_of(&memory);
        struct tare_calibration *full = new_calibration(model);
        mini_ok(tare_calibration_run(full, NULL, model, &model->signatures[0], &source, &options));
        tare_file_fail_at(0);
        assert_true(disk.warnings > 0);
        struct tare_strbuf got = encode(full);
        assert_bytes(&got, &expected, "with failing saves");
        mini_ok(tare_calibration_resume(&saved, path, c->fingerprint, "observe=all", true, "all"));
        if (tare_calibration_records(saved) <= 40)
            fail_msg("only %lld records were saved", (long long)tare_calibration_records(saved));
        tare_calibration_free(saved);
        tare_calibration_free(full);
    }
    tare_calibration_free(c);
    tare_strbuf_free(&expected);
    tare_model_free(model);
}

static void fingerprint__tells_models_apart_and_knows_one_again(void **state) {
    (void)state;
    uint64_t first[2], again[2], changed[2];
    struct tare_graph_model *a = make_model(PLAIN), *b = make_model(PLAIN), *other = make_model(MIXING);
    mini_ok(tare_model_fingerprint(first, a));
    mini_ok(tare_model_fingerprint(again, b));
    assert_memory_equal(first, again, sizeof first);
    mini_ok(tare_model_fingerprint(changed, other));
    assert_memory_not_equal(first, changed, sizeof first);
    struct tare_node *w = tare_graph_find(b->main, "w");
    assert_non_null(w);
    struct tare_tensor copy;
    mini_ok(tare_tensor_copy(&copy, tare_node_tensor(w, "value")));
    TARE_DATA(float, &copy)[3] += 1;
    mini_ok(tare_node_set_tensor(w, "value", &copy));
    tare_tensor_reset(&copy);
    mini_ok(tare_model_fingerprint(changed, b));
    assert_memory_not_equal(first, changed, sizeof first);
    tare_model_free(a);
    tare_model_free(b);
    tare_model_free(other);
}

static void bound__is_known_before_the_run(void **state) {
    (void)state;
    struct tare_graph_model *model = make_model(BRANCHING);
    const struct tare_calibration_options options = { .threads = 2 };
    size_t bytes, with_channels, tensors;
    mini_ok(tare_calibration_bound(&bytes, &tensors, model, &model->signatures[0], &options, false));
    assert_true(tensors >= 8);
    assert_true(bytes == tensors * tare_statistics_bound(0));
    mini_ok(tare_calibration_bound(&with_channels, &tensors, model, &model->signatures[0], &options, true));
    assert_true(with_channels > bytes);
    struct tare_calibration *c = run(model, all_records(), 2, 1, NULL); /* with channels */
    assert_int_equal(c->n_tensors, tensors);
    assert_true(tare_calibration_bytes(c) <= with_channels);
    tare_calibration_free(c);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calibrate__workers_and_batches_leave_no_trace),
        cmocka_unit_test(calibrate__equal_records_do_not_prove_that_they_can_run_together),
        cmocka_unit_test(calibrate__unasked_as_many_records_run_together_as_pay),
        cmocka_unit_test(calibrate__records_of_large_tensors_are_not_tried_together),
        cmocka_unit_test(calibrate__counts_what_the_model_computes),
        cmocka_unit_test(calibrate__shards_in_any_order_give_the_bytes_of_one_run),
        cmocka_unit_test(calibrate__branches_tell_which_were_reached),
        cmocka_unit_test(calibrate__state_keeps_records_in_order_on_one_worker),
        cmocka_unit_test(calibrate__a_nan_is_named_by_its_record),
        cmocka_unit_test(calibrate__errors_name_the_record),
        cmocka_unit_test(calibrate__the_limit_counts_from_the_front),
        cmocka_unit_test(calibrate__interrupted_and_resumed_gives_the_same_bytes),
        cmocka_unit_test(calibrate__killed_and_resumed_gives_the_same_bytes),
        cmocka_unit_test(calibrate__no_state_is_saved_before_a_record_is_done),
        cmocka_unit_test(the_next_save__waits_longer_where_saving_is_slow),
        cmocka_unit_test(calibrate__a_state_that_cannot_be_saved_does_not_end_the_run),
        cmocka_unit_test(fingerprint__tells_models_apart_and_knows_one_again),
        cmocka_unit_test(bound__is_known_before_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
