/* Batches of models that compute with the range of a whole tensor: each record has its own range, with the bits of its
 * own run, and what does not fit is refused. */
#include "eval/record_ranges.h"

#include "base/alloc.h"
#include "datasets/tfrecord.h"
#include "eval/joined_run.h"
#include "eval/runner.h"
#include "quant/xla.h"
#include "support/draw.h"
#include "support/mini_model.h"
#include "support/sample_file.h"
#include "support/temp.h"

#include <math.h>
#include <string.h>

enum { RECORDS = 43, WIDTH = 6, BATCH = 16 };

static void add_signature(struct tare_graph_model *model, struct tare_edge x, struct tare_edge y) {
    struct tare_binding *bindings = TARE_NEW_ARRAY(&model->arena, struct tare_binding, 2);
    struct tare_signature *signature = TARE_NEW(&model->arena, struct tare_signature);
    const struct tare_shape shape = tare_shape_make(2, (int64_t)-1, (int64_t)WIDTH);
    mini_ok(tare_node_set_shape(x.node, "shape", &shape));
    bindings[0] = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .edge = x, .shape = shape };
    bindings[1] = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = y };
    *signature = (struct tare_signature){ "serving_default", "", &bindings[0], 1, &bindings[1], 1, NULL };
    model->signatures = signature;
    model->n_signatures = 1;
}

/* What is quantized and how its scale is used. */
enum form {
    ROWS,    /* x */
    COLUMNS, /* x with one element per row: its first axis is not that of the records */
    SCALAR,  /* x, and the scale is reshaped to a scalar */
    PLAIN,   /* nothing is quantized */
};

/* y = the codes of TestAdd(x, x), a matrix product of them, times scale. */
static struct tare_graph_model *make(enum form form) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_emit emit = { .graph = model->main, .prefix = "layer" };
    const struct tare_shape scalar = tare_shape_scalar(), column = tare_shape_make(2, (int64_t)-1, (int64_t)1),
                            row = tare_shape_make(2, (int64_t)-1, (int64_t)WIDTH);
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), scale, zero_point, y;
    struct tare_edge twice = mini_node(model->main, "TestAdd", "twice", 2, x, x);
    y = tare_emit_reshape(&emit, "known", twice, form == COLUMNS ? &column : &row);
    if (form != PLAIN) {
        tare_emit_dynamic_parameters(&emit, y, &scale, &zero_point);
        y = tare_emit_cast(&emit, "codes", tare_emit_dynamic_centred(&emit, y, scale, zero_point), TARE_DT_FLOAT);
        if (form == SCALAR) scale = tare_emit_reshape(&emit, "scalar", scale, &scalar);
        y = tare_emit_binary(&emit, "Mul", "scaled", y, scale);
    }
    y = tare_emit_reshape(&emit, "result", y, &row);
    mini_ok(emit.status);
    add_signature(model, x, y);
    return model;
}

/* Records of very different ranges; some have zeros of both signs, infinities or NaN. */
static void fill(float *x, int record) {
    draw_fill(x, WIDTH, DRAW_NORMAL, (uint64_t)record + 1);
    for (int i = 0; i < WIDTH; i++)
        x[i] = ldexpf(x[i], record % 20 - 9);
    if (record % 7 == 3) x[record % WIDTH] = -0.0F;
    if (record % 11 == 5) memset(x, 0, WIDTH * sizeof *x);
    if (record % 13 == 6) x[1] = NAN;
    if (record % 17 == 8) x[2] = -INFINITY;
}

/* ---- runs of bound records ---- */

struct bound {
    struct tare_bound_record records[BATCH];
    struct tare_tensor tensors[2 * BATCH];
};

static void bind(struct bound *b, int64_t rows) {
    memset(b, 0, sizeof *b);
    for (int r = 0; r < BATCH; r++) {
        const struct tare_shape shape = tare_shape_make(2, rows, (int64_t)WIDTH);
        struct tare_tensor *value = &b->tensors[2 * r];
        mini_ok(tare_tensor_new(value, TARE_DT_FLOAT, &shape));
        for (int64_t i = 0; i < rows; i++)
            fill(TARE_DATA(float, value) + i * WIDTH, r + (int)i);
        b->records[r] = (struct tare_bound_record){ .values = value, .outputs = value + 1 };
    }
}

static void unbind(struct bound *b) {
    for (int i = 0; i < 2 * BATCH; i++)
        tare_tensor_reset(&b->tensors[i]);
}

static void check_alone(struct bound *b, const struct tare_graph_model *model, size_t count) {
    struct tare_session *session = mini_session(model);
    struct tare_record_edges edges;
    mini_ok(tare_record_edges_of(&edges, model->signatures));
    for (size_t r = 0; r < count; r++) {
        struct tare_tensor joined = b->records[r].outputs[0];
        memset(b->records[r].outputs, 0, sizeof joined);
        mini_ok(tare_record_run(session, &edges, &b->records[r]));
        if (!tare_tensor_same_bits(&joined, b->records[r].outputs)) fail_msg("record %zu of %zu differs", r, count);
        tare_tensor_reset(&joined);
    }
    tare_record_edges_free(&edges);
    tare_session_free(session);
}

static void records_of_a_batch__have_the_bits_of_their_own_runs(void **state) {
    struct tare_graph_model *model = make(ROWS);
    struct tare_record_ranges *ranges;
    (void)state;
    mini_ok(tare_record_ranges_new(&ranges, model, model->signatures, BATCH));
    assert_non_null(ranges);
    for (size_t count = 1; count <= BATCH; count += 5) {
        struct bound b;
        bool done;
        bind(&b, 1);
        mini_ok(tare_record_ranges_run(&done, ranges, b.records, count));
        assert_true(done);
        for (size_t r = count; r < BATCH; r++)
            assert_int_equal(b.records[r].outputs[0].dtype, TARE_DT_INVALID);
        check_alone(&b, model, count);
        unbind(&b);
    }
    tare_record_ranges_free(ranges);
    tare_model_free(model);
}

static void records_that_do_not_fit__are_not_run(void **state) {
    struct tare_graph_model *model = make(ROWS), *columns = make(COLUMNS);
    struct tare_record_ranges *ranges;
    struct bound b;
    bool done = true;
    (void)state;
    mini_ok(tare_record_ranges_new(&ranges, model, model->signatures, BATCH));
    assert_non_null(ranges);
    bind(&b, 2); /* the range of a record is that of both rows */
    mini_ok(tare_record_ranges_run(&done, ranges, b.records, 3));
    assert_false(done);
    unbind(&b);
    bind(&b, 1);
    mini_ok(tare_record_ranges_run(&done, ranges, b.records, 0));
    assert_false(done);
    tare_record_ranges_free(ranges);
    done = true;
    mini_ok(tare_record_ranges_new(&ranges, columns, columns->signatures, BATCH));
    assert_non_null(ranges);
    mini_ok(tare_record_ranges_run(&done, ranges, b.records, 3));
    assert_false(done);
    unbind(&b);
    tare_record_ranges_free(ranges);
    tare_model_free(columns);
    tare_model_free(model);
}

static void models_without_such_ranges__are_refused(void **state) {
    const enum form forms[] = { PLAIN, SCALAR };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tare_graph_model *model = make(forms[i]);
        struct tare_record_ranges *ranges = (void *)model;
        mini_ok(tare_record_ranges_new(&ranges, model, model->signatures, BATCH));
        assert_null(ranges);
        tare_model_free(model);
    }
}

/* ---- the runner ---- */

static const char *write_records(void) {
    struct tare_tfrecord_writer *writer;
    const char *path = temp_path("ranges.tfrecord");
    mini_ok(tare_tfrecord_create(&writer, path));
    for (int k = 0; k < RECORDS; k++) {
        const struct tare_shape shape = tare_shape_make(2, (int64_t)1, (int64_t)WIDTH);
        float x[WIDTH];
        fill(x, k);
        write_float_sample(writer, "x", &shape, x);
    }
    mini_ok(tare_tfrecord_commit(writer));
    return path;
}

struct outputs {
    float values[RECORDS * WIDTH];
    size_t count;
};

static tare_status collect(void *arg, const struct tare_sample *sample, const struct tare_provenance *where,
                           const struct tare_tensor *outputs) {
    struct outputs *to = arg;
    (void)sample;
    (void)where;
    assert_int_equal(outputs[0].elements, WIDTH);
    memcpy(&to->values[to->count], TARE_CONST_DATA(float, &outputs[0]), WIDTH * sizeof(float));
    to->count += WIDTH;
    return TARE_OK;
}

/* Returns the number of runs of the graph. */
static int run(struct outputs *outputs, enum form form, bool record_ranges) {
    const char *path = temp_path("ranges.tfrecord");
    const struct tare_runner_options options = {
        .paths = &path, .n_paths = 1, .batch = BATCH, .record_ranges = record_ranges
    };
    struct tare_graph_model *model = make(form);
    struct tare_session *session = mini_session(model);
    outputs->count = 0;
    mini_ok(tare_run_records(session, model->signatures, &options, collect, outputs));
    assert_int_equal(outputs->count, RECORDS * WIDTH);
    tare_session_free(session);
    tare_model_free(model);
    return mini_log.runs;
}

static void runner__joins_records_with_ranges_of_their_own(void **state) {
    static struct outputs alone, joined;
    (void)state;
    write_records();
    assert_true(run(&alone, ROWS, false) >= RECORDS);
    assert_true(run(&joined, ROWS, true) < RECORDS / 2); /* the checks of two records, and three batches */
    assert_memory_equal(joined.values, alone.values, sizeof alone.values);
}

static void runner__runs_other_records_one_by_one(void **state) {
    static struct outputs alone, joined;
    (void)state;
    for (enum form form = COLUMNS; form <= SCALAR; form++) {
        run(&alone, form, false);
        assert_true(run(&joined, form, true) >= RECORDS);
        assert_memory_equal(joined.values, alone.values, sizeof alone.values);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_a_batch__have_the_bits_of_their_own_runs),
        cmocka_unit_test(records_that_do_not_fit__are_not_run),
        cmocka_unit_test(models_without_such_ranges__are_refused),
        cmocka_unit_test(runner__joins_records_with_ranges_of_their_own),
        cmocka_unit_test(runner__runs_other_records_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
