/* Recorded answers: every signature of every real model that has them runs on the recorded inputs and gives the
 * recorded outputs, floats within a tolerance of the largest magnitude, integers exactly. */
#include "base/alloc.h"
#include "base/file.h"
#include "convert/saved_model.h"
#include "datasets/npy.h"
#include "eval/model_inputs.h"
#include "eval/runner.h"
#include "support/models.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* The recorder accumulates products in double; a float chain of a few thousand terms is this near. */
static const double TOLERANCE = 1e-4;
/* basic-pitch takes the logarithm of a spectrogram, which amplifies float noise (ONNX Runtime is 1.5e-3 away). */
static const double TOLERANCE_LOG_SPECTROGRAM = 2e-3;

/* Not comparable, with the reason. */
static const struct {
    const char *model, *signature; /* NULL: every signature */
    const char *reason;
} excluded[] = {
    { "tf-hashtable", NULL, "its vocabulary has CRLF lines; TensorFlow drops the CR, the recorder kept it" },
    { "tf2onnx-assign", NULL,
      "recorded with value semantics; TensorFlow's readers see the assignment (tests/ops/variable.graphs)" },
    { "serving-counter", "incr_counter_by", "adds tensors of other shapes, which TensorFlow refuses" },
    { "tf-text-segmenter", NULL, "rows of different shapes are recorded one file a record" },
};

static const char *data_folder;

static bool is_excluded(const char *model, const char *signature) {
    for (size_t i = 0; i < sizeof excluded / sizeof *excluded; i++)
        if (strcmp(excluded[i].model, model) == 0 &&
            (!excluded[i].signature || strcmp(excluded[i].signature, signature) == 0))
            return true;
    return false;
}

/* One output's recorded array, compared as rows come. */
struct expectation {
    const char *model;
    size_t output;
    struct tare_tensor recorded;
    int64_t at; /* elements compared so far */
    double largest, worst;
    int64_t wrong;
};

static void compare(struct expectation *e, const struct tare_tensor *value) {
    for (int64_t i = 0; i < value->elements; i++, e->at++) {
        if (e->at >= e->recorded.elements) {
            e->wrong++;
            continue;
        }
        if (tare_dtype_is_floating(value->dtype)) {
            double difference = fabs(tare_tensor_get_f64(value, i) - tare_tensor_get_f64(&e->recorded, e->at));
            if (!(difference <= e->worst)) e->worst = difference; /* NaN too */
        } else {
            e->wrong += tare_tensor_get_i64(value, i) != tare_tensor_get_i64(&e->recorded, e->at);
        }
    }
}

static tare_status on_record(void *arg, const struct tare_sample *sample, const struct tare_record *where,
                             const struct tare_tensor *outputs) {
    struct expectation *e = arg;
    (void)sample;
    (void)where;
    compare(e, &outputs[e->output]);
    return TARE_OK;
}

static double largest_magnitude(const struct tare_tensor *tensor) {
    double largest = 0;
    for (int64_t i = 0; i < tensor->elements; i++)
        largest = fmax(largest, fabs(tare_tensor_get_f64(tensor, i)));
    return largest;
}

static tare_status run_signature(struct expectation *e, const char *model_path, const char *signature_key,
                                 const char *output_key, const char *inputs) {
    struct tare_runner_options options = { .paths = &inputs, .n_paths = 1 };
    const struct tare_signature *signature;
    struct tare_session *session = NULL;
    struct tare_graph_model *model = NULL;
    tare_status status;
    TARE_CHECK(tare_saved_model_load(&model, model_path, NULL));
    TARE_CHECK(tare_pick_signature(&signature, model, signature_key));
    status = TARE_FAIL(TARE_NOT_FOUND, "no output %s", output_key);
    for (size_t i = 0; i < signature->n_outputs; i++) {
        if (strcmp(signature->outputs[i].key, output_key) != 0) continue;
        e->output = i;
        status = TARE_OK;
    }
    if (status != TARE_OK) goto done;
    TARE_CHECK(tare_session_new(&session, model, NULL));
    status = tare_run_records(session, signature, &options, on_record, e);
done:
    tare_session_free(session);
    tare_model_free(model);
    return status;
}

/* One line of REFERENCES.tsv; true when it holds (or is not for this test). */
static bool check_line(char *line, int *checked) {
    char *save = NULL, *field[8] = { NULL }, model_path[2048], inputs[2048], recorded[2048];
    struct expectation e = { 0 };
    double tolerance;
    tare_status status;
    bool holds;
    for (int i = 0; i < 8; i++)
        field[i] = strtok_r(i ? NULL : line, "\t\n", &save);
    if (!field[6] || line[0] == '#' || strcmp(field[6], "record") == 0 || is_excluded(field[0], field[1])) return true;
    snprintf(model_path, sizeof model_path, "%s/models/%s", data_folder, field[0]);
    snprintf(inputs, sizeof inputs, "%s/references/%s/%s/inputs.tfrecord.gz", data_folder, field[0], field[1]);
    snprintf(recorded, sizeof recorded, "%s/references/%s/%s/%s", data_folder, field[0], field[1], field[3]);
    if (!strstr(field[3], ".npy") || tare_file_kind_of(inputs) != TARE_FILE_REGULAR ||
        tare_file_kind_of(recorded) != TARE_FILE_REGULAR)
        return true; /* not runnable, or strings */
    status = tare_npy_read(&e.recorded, recorded);
    if (status == TARE_OK) status = run_signature(&e, model_path, field[1], field[2], inputs);
    tolerance =
        (strcmp(field[0], "basic-pitch") == 0 ? TOLERANCE_LOG_SPECTROGRAM : TOLERANCE) * largest_magnitude(&e.recorded);
    holds = status == TARE_OK && !e.wrong && e.at == e.recorded.elements && e.worst <= tolerance;
    if (!holds)
        print_error("%s %s %s: %s; worst %g (expected %g), %lld wrong, %lld of %lld elements\n", field[0], field[1],
                    field[2], status == TARE_OK ? "differs" : tare_error_text(), e.worst, tolerance, (long long)e.wrong,
                    (long long)e.at, (long long)e.recorded.elements);
    tare_tensor_reset(&e.recorded);
    ++*checked;
    return holds;
}

static void references__recorded_answers_are_matched(void **state) {
    char path[2048], line[4096];
    FILE *file;
    int checked = 0, failed = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/references/REFERENCES.tsv", data_folder);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        failed += !check_line(line, &checked);
    fclose(file);
    assert_int_equal(failed, 0);
    assert_true(checked > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(references__recorded_answers_are_matched) };
    data_folder = test_data(".");
    if (!data_folder) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
