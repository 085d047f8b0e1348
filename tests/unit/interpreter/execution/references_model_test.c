/* Every recorded answer of a real model: each signature in a session of its own, its records in order, each output
 * within the tolerance. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "convert/saved_model.h"
#include "datasets/npy.h"
#include "datasets/source.h"
#include "eval/model_inputs.h"
#include "interpreter/session.h"
#include "support/models.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_OUTPUTS = 64 };

/* Of the output's largest magnitude: what float32 accumulation in another order moves real networks by. */
static const double tolerance = 1e-4;

/* Answers that TensorFlow does not give. */
static const struct {
    const char *model, *signature; /* NULL: all */
} other_answers[] = {
    { "tf-hashtable", NULL }, /* of a reader that keeps the carriage returns of the vocabulary file */
    { "tf2onnx-assign",
      NULL }, /* 3, 5, 7 …: TensorFlow reads 4, 6, 8 after the assignment (tests/ops/variable.graphs) */
    { "serving-counter", "incr_counter_by" }, /* adds tensors of other shapes, which TensorFlow refuses */
};

static const char *data;

/* One output of one signature: a line of REFERENCES.tsv. */
struct reference {
    char model[128], signature[256], output[256], file[256], mode[32];
    struct tare_tensor values; /* of a .npy file; of one record's in mode record */
    char *text;                /* of a .txt file: its lines, ended by NULs */
    const char *next_line;
    int64_t at; /* elements compared so far */
    double largest;
};

static void folder_of(char *out, size_t size, const struct reference *reference) {
    size_t used = (size_t)snprintf(out, size, "%s/references/%s/", data, reference->model);
    for (const char *c = reference->signature; *c && used + 3 < size; c++)
        used += (size_t)snprintf(out + used, size - used, *c == '/' ? "__" : "%c", *c); /* a file name */
}

static void fail_text(const struct reference *reference, const char *what) {
    fail_msg("%s, %s, output %s: %s: %s", reference->model, reference->signature, reference->output, what,
             tare_error_text());
}

static void find_largest(struct reference *reference) {
    reference->largest = 0;
    for (int64_t i = 0; i < reference->values.elements; i++) {
        double x = fabs(tare_tensor_get_f64(&reference->values, i));
        if (isfinite(x) && x > reference->largest) reference->largest = x;
    }
}

/* `record`: for mode record, else -1. */
static void read_values(struct reference *reference, int record) {
    char folder[512], path[1024], name[300];
    char *marker = strstr(reference->file, "recN");
    folder_of(folder, sizeof folder, reference);
    snprintf(name, sizeof name, "%s", reference->file);
    if (record >= 0 && marker)
        snprintf(name, sizeof name, "%.*srec%d.npy", (int)(marker - reference->file), reference->file, record);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (strstr(name, ".txt")) {
        size_t size;
        if (tare_file_read(&reference->text, &size, path) != TARE_OK) fail_text(reference, "reading");
        for (size_t i = 0; i < size; i++)
            if (reference->text[i] == '\n') reference->text[i] = '\0';
        reference->next_line = reference->text;
        return;
    }
    if (reference->values.dtype) tare_tensor_reset(&reference->values);
    if (tare_npy_read(&reference->values, path) != TARE_OK) fail_text(reference, "reading");
    reference->at = 0;
    find_largest(reference);
}

/* As the recorded files have it: one escaped element a line. */
static void escape(struct tare_strbuf *out, const struct tare_str *text) {
    for (size_t i = 0; i < text->size; i++) {
        unsigned char c = (unsigned char)text->data[i];
        const char *known = c ? strchr("\\\\\tt\nn\rr", c) : NULL;
        if (known && (c == '\\' || c < 0x20))
            tare_strbuf_printf(out, "\\%c", known[1]);
        else if (c < 0x20 || c > 0x7e)
            tare_strbuf_printf(out, "\\x%02x", c);
        else
            tare_strbuf_putc(out, (char)c);
    }
}

static void compare_strings(struct reference *reference, const struct tare_tensor *value) {
    for (int64_t i = 0; i < value->elements; i++) {
        const struct tare_str *got = &TARE_CONST_DATA(struct tare_str, value)[i];
        struct tare_strbuf escaped = { 0 };
        escape(&escaped, got);
        if (strcmp(tare_strbuf_text(&escaped), reference->next_line) != 0)
            fail_msg("%s, %s, output %s: '%s' (expected '%s')", reference->model, reference->signature,
                     reference->output, tare_strbuf_text(&escaped), reference->next_line);
        reference->next_line += strlen(reference->next_line) + 1;
        tare_strbuf_free(&escaped);
    }
}

static void compare_numbers(struct reference *reference, const struct tare_tensor *value) {
    bool real = tare_dtype_is_floating(reference->values.dtype);
    double most = real ? tolerance * reference->largest : 0;
    if (value->elements > reference->values.elements - reference->at)
        fail_msg("%s, %s, output %s: more elements than the %lld recorded", reference->model, reference->signature,
                 reference->output, (long long)reference->values.elements);
    for (int64_t i = 0; i < value->elements; i++) {
        double got = tare_tensor_get_f64(value, i),
               expected = tare_tensor_get_f64(&reference->values, reference->at + i);
        bool same = got == expected || (isnan(got) && isnan(expected)) || fabs(got - expected) <= most;
        if (!same)
            fail_msg("%s, %s, output %s, element %lld: %.9g (expected %.9g, within %.3g)", reference->model,
                     reference->signature, reference->output, (long long)(reference->at + i), got, expected, most);
    }
    reference->at += value->elements;
}

static void compare(struct reference *reference, const struct tare_tensor *value, int record) {
    if (strcmp(reference->mode, "record") == 0) read_values(reference, record);
    if (value->dtype == TARE_DT_STRING)
        compare_strings(reference, value);
    else
        compare_numbers(reference, value);
}

static void run_record(struct tare_session *session, const struct tare_signature *signature,
                       struct reference *references, size_t count, const struct tare_sample *sample, int record) {
    size_t n_feeds = signature->n_inputs;
    struct tare_edge *feeds = tare_calloc(n_feeds + 1, sizeof *feeds), fetches[MOST_OUTPUTS];
    struct tare_tensor *values = tare_calloc(n_feeds + 1, sizeof *values), results[MOST_OUTPUTS];
    for (size_t i = 0; i < n_feeds; i++)
        feeds[i] = signature->inputs[i].edge;
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < signature->n_outputs; i++)
            if (strcmp(signature->outputs[i].key, references[k].output) == 0) fetches[k] = signature->outputs[i].edge;
    if (sample && tare_bind_sample(values, signature, sample, NULL) != TARE_OK) fail_text(references, "inputs");
    if (tare_session_run(session, feeds, values, n_feeds, fetches, results, count, NULL, 0) != TARE_OK)
        fail_text(references, "run");
    for (size_t k = 0; k < count; k++)
        compare(&references[k], &results[k], record);
    for (size_t k = 0; k < count; k++)
        tare_tensor_reset(&results[k]);
    for (size_t i = 0; i < n_feeds; i++)
        if (values[i].dtype) tare_tensor_reset(&values[i]);
    tare_free(values);
    tare_free(feeds);
}

static void run_records(struct tare_session *session, const struct tare_signature *signature,
                        struct reference *references, size_t count) {
    char folder[512], path[1024];
    const char *paths[1] = { path };
    struct tare_source *source;
    struct tare_record where;
    bool end = false;
    folder_of(folder, sizeof folder, references);
    snprintf(path, sizeof path, "%s/inputs.tfrecord.gz", folder);
    if (tare_file_kind_of(path) == TARE_FILE_NONE) {
        run_record(session, signature, references, count, NULL, 0);
        return;
    }
    if (tare_source_new(&source, paths, 1, NULL) != TARE_OK) fail_text(references, "inputs");
    for (int record = 0;; record++) {
        struct tare_sample sample = { 0 };
        if (tare_source_next(&sample, &where, &end, source, NULL, NULL) != TARE_OK) fail_text(references, "inputs");
        if (end) break;
        run_record(session, signature, references, count, &sample, record);
        tare_sample_reset(&sample);
    }
    tare_source_free(source);
}

static void check_signature(struct reference *references, size_t count) {
    char path[512];
    struct tare_graph_model *model;
    struct tare_session *session;
    const struct tare_signature *signature;
    snprintf(path, sizeof path, "%s/models/%s", data, references->model);
    if (tare_saved_model_load(&model, path, NULL) != TARE_OK) fail_text(references, "loading");
    signature = tare_model_find_signature(model, references->signature);
    if (!signature) fail_text(references, "no such signature");
    if (tare_session_new(&session, model, NULL) != TARE_OK) fail_text(references, "session");
    for (size_t k = 0; k < count; k++)
        if (strcmp(references[k].mode, "record") != 0) read_values(&references[k], -1);
    run_records(session, signature, references, count);
    for (size_t k = 0; k < count; k++) {
        if (references[k].values.dtype) {
            assert_int_equal(references[k].at, references[k].values.elements);
            tare_tensor_reset(&references[k].values);
        }
        tare_free(references[k].text);
    }
    tare_session_free(session);
    tare_model_free(model);
}

static bool parse_line(struct reference *out, const char *line) {
    memset(out, 0, sizeof *out);
    return *line != '#' && sscanf(line, "%127[^\t]\t%255[^\t]\t%255[^\t]\t%255[^\t]\t%*[^\t]\t%*[^\t]\t%31[^\t]",
                                  out->model, out->signature, out->output, out->file, out->mode) == 5;
}

static bool has_other_answer(const struct reference *reference) {
    for (size_t i = 0; i < sizeof other_answers / sizeof *other_answers; i++) {
        const char *signature = other_answers[i].signature;
        if (strcmp(reference->model, other_answers[i].model) == 0 &&
            (!signature || strcmp(reference->signature, signature) == 0))
            return true;
    }
    return false;
}

static void references__are_met_by_every_model(void **state) {
    char path[512], line[2048];
    struct reference *group = tare_calloc(MOST_OUTPUTS, sizeof *group), one;
    size_t count = 0, signatures = 0;
    FILE *file;
    bool more = true;
    (void)state;
    snprintf(path, sizeof path, "%s/references/REFERENCES.tsv", data);
    file = fopen(path, "r");
    assert_non_null(file);
    while (more) {
        more = fgets(line, sizeof line, file);
        if (more && (!parse_line(&one, line) || strcmp(one.file, "-") == 0 || has_other_answer(&one))) continue;
        if (count && (!more || strcmp(group->model, one.model) != 0 || strcmp(group->signature, one.signature) != 0)) {
            check_signature(group, count);
            signatures++;
            count = 0;
        }
        assert_true(count < MOST_OUTPUTS);
        if (more) group[count++] = one;
    }
    fclose(file);
    tare_free(group);
    print_message("%zu signatures\n", signatures);
    assert_true(signatures > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(references__are_met_by_every_model) };
    data = test_data(".");
    if (!data || !test_data("references/REFERENCES.tsv")) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
