/* Every model that other people's TensorFlow wrote runs each of its signatures on inputs of the declared shapes, an
 * unknown dimension being 3 and an unknown rank 1, or 0 where that does not fit; what cannot is listed here and, for
 * users, in docs/unsupported.md. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "convert/saved_model.h"
#include "eval/model_inputs.h"
#include "interpreter/session.h"
#include "support/models.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { UNKNOWN = 3, MOST_OUTPUTS = 128 };

/* What does not run, with words of what is said of it. */
static const struct {
    const char *model, *signature; /* NULL: every signature, or the loading itself */
    const char *words;
} known[] = {
    /* made to be invalid */
    { "tf-fuzz-attr", NULL, "missing attr 'value'" },
    { "tf-fuzz-const", NULL, "missing attr 'value'" },
    { "tf-fuzz-shape", NULL, "is not known" },
    { "tf-batchfunction", NULL, "missing attrs 'num_batch_threads'" },
    { "serving-half-three", "tensorflow/serving/regress", "is float32 (expected string)" },
    /* exported without the values of their variables */
    { "tf-bert1", NULL, "is not initialised" },
    { "tf-bert2", NULL, "is not initialised" },
    { "scisharp-example1", NULL, "is not initialised" },
    /* ops that only a library of its own defines */
    { "ydf-adult", NULL, "SimpleMLCreateModelResource" },
    /* add a constant of shape [1,10,10,1]: they take 1 or 10 rows, not 3 */
    { "serving-half-mkl", "regress_x_to_y2", "Incompatible shapes: [1,10,10,1] vs. [3,1]" },
    { "serving-half-mkl", "regress_x2_to_y3", "Incompatible shapes: [1,10,10,1] vs. [3,1]" },
};

static const char *known_words(const char *model, const char *signature) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].model, model) == 0 &&
            (!known[i].signature || (signature && strcmp(known[i].signature, signature) == 0)))
            return known[i].words;
    return NULL;
}

/* Whether a failure is a known one; says so when it is not. */
static bool is_expected(const char *model, const char *signature, tare_status status) {
    const char *words = known_words(model, signature);
    if (status == TARE_OK && !words) return true;
    if (status != TARE_OK && words && strstr(tare_error_text(), words)) return true;
    print_error("%s, %s: %s\n", model, signature ? signature : "loading",
                status == TARE_OK ? "went well (its entry in the list is not needed)" : tare_error_text());
    return false;
}

/* ---- a tf.Example that has whatever the model asks for ---- */

static void put_field(struct tare_strbuf *out, int field, const struct tare_strbuf *content) {
    size_t size = content->size;
    tare_strbuf_putc(out, (char)(field << 3 | 2));
    for (; size > 127; size >>= 7)
        tare_strbuf_putc(out, (char)(size | 128));
    tare_strbuf_putc(out, (char)size);
    tare_strbuf_append(out, content->data, content->size);
}

/* `count` values of a feature: bytes_list "a", float_list 0.5, int64_list 1. */
static void put_values(struct tare_strbuf *feature, int dtype, int64_t count) {
    struct tare_strbuf list = { 0 }, one = { 0 };
    for (int64_t i = 0; i < count; i++) {
        const float half = 0.5f;
        if (dtype == TARE_DT_STRING) {
            tare_strbuf_puts(&one, "a");
            put_field(&list, 1, &one);
            one.size = 0;
        } else if (dtype == TARE_DT_FLOAT) {
            tare_strbuf_putc(&list, 1 << 3 | 5);
            tare_strbuf_append(&list, &half, sizeof half);
        } else {
            tare_strbuf_putc(&list, 1 << 3);
            tare_strbuf_putc(&list, 1);
        }
    }
    put_field(feature, dtype == TARE_DT_STRING ? 1 : dtype == TARE_DT_FLOAT ? 2 : 3, &list);
    tare_strbuf_free(&list);
    tare_strbuf_free(&one);
}

static void put_feature(struct tare_strbuf *features, const struct tare_str *key, int dtype, int64_t count) {
    struct tare_strbuf entry = { 0 }, name = { 0 }, feature = { 0 };
    tare_strbuf_append(&name, key->data, key->size);
    put_values(&feature, dtype, count);
    put_field(&entry, 1, &name);
    put_field(&entry, 2, &feature);
    put_field(features, 1, &entry);
    tare_strbuf_free(&entry);
    tare_strbuf_free(&name);
    tare_strbuf_free(&feature);
}

/* The dense features that a node asks for; its keys are constants. */
static void put_dense(struct tare_strbuf *features, const struct tare_node *node) {
    const struct tare_attr *types = tare_node_list(node, "Tdense"), *shapes = tare_node_list(node, "dense_shapes");
    const bool second = strcmp(node->op, "ParseExampleV2") == 0;
    const size_t first = second ? 3 : 2 + (size_t)tare_node_int(node, "Nsparse", 0);
    for (size_t i = 0; types && shapes && i < types->count && i < shapes->count; i++) {
        const struct tare_tensor *keys = tare_edge_constant(node->inputs[second ? first : first + i]);
        int64_t count;
        if (!keys) continue;
        if (tare_shape_elements(&count, shapes->items[i].shape) != TARE_OK) count = 1;
        put_feature(features, &TARE_CONST_DATA(struct tare_str, keys)[second ? i : 0], types->items[i].type, count);
    }
}

static void make_example(struct tare_strbuf *out, const struct tare_graph_model *model) {
    struct tare_strbuf features = { 0 };
    for (size_t g = 0; g <= model->n_functions; g++) {
        const struct tare_graph *graph = g ? model->functions[g - 1] : model->main;
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (strcmp(graph->nodes[i]->op, "ParseExample") == 0 || strcmp(graph->nodes[i]->op, "ParseExampleV2") == 0)
                put_dense(&features, graph->nodes[i]);
    }
    if (features.size) put_field(out, 1, &features);
    tare_strbuf_free(&features);
}

/* ---- inputs ---- */

static struct tare_shape concrete(const struct tare_shape *declared, int unknown_rank) {
    struct tare_shape shape = *declared;
    if (shape.rank < 0) shape = unknown_rank ? tare_shape_make(1, (int64_t)-1) : tare_shape_scalar();
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0) shape.dims[i] = UNKNOWN;
    return shape;
}

/* Reals of [0, 1), the numbers 0 and 1, and tf.Examples (an empty string where the model parses none). */
static void put(struct tare_tensor *value, int64_t i, const struct tare_strbuf *example) {
    switch (value->dtype) {
    case TARE_DT_FLOAT:
        TARE_DATA(float, value)[i] = (float)(i % 7) / 8;
        break;
    case TARE_DT_DOUBLE:
        TARE_DATA(double, value)[i] = (double)(i % 7) / 8;
        break;
    case TARE_DT_INT32:
        TARE_DATA(int32_t, value)[i] = (int32_t)(i % 2);
        break;
    case TARE_DT_INT64:
        TARE_DATA(int64_t, value)[i] = i % 2;
        break;
    case TARE_DT_UINT8:
        TARE_DATA(uint8_t, value)[i] = (uint8_t)(i % 2);
        break;
    case TARE_DT_BOOL:
        TARE_DATA(bool, value)[i] = i % 2;
        break;
    case TARE_DT_STRING:
        assert_int_equal(tare_tensor_set_string(value, i, example->data ? example->data : "", example->size), TARE_OK);
        break;
    default:
        fail_msg("no values for %s", tare_dtype_name(value->dtype));
    }
}

/* The parts of a sparse column of three: int64 [?,2] is where its values are, int64 [2] its shape. */
static bool put_sparse_part(struct tare_tensor *value, const struct tare_shape *declared) {
    int64_t *numbers = value->data;
    if (value->dtype != TARE_DT_INT64 || declared->rank < 1 || declared->dims[declared->rank - 1] != 2) return false;
    if (declared->rank == 2)
        for (int64_t i = 0; i < value->elements; i++)
            numbers[i] = i % 2 ? 0 : i / 2;
    else
        numbers[0] = UNKNOWN, numbers[1] = 1;
    return declared->rank <= 2;
}

static void make_input(struct tare_tensor *out, const struct tare_binding *feed, const struct tare_strbuf *example,
                       int unknown_rank) {
    struct tare_shape declared = feed->shape;
    const char *end = strrchr(feed->key, '.');
    if (end && strcmp(end, ".indices") == 0) declared = tare_shape_make(2, (int64_t)-1, (int64_t)2);
    if (end && strcmp(end, ".dense_shape") == 0) declared = tare_shape_make(1, (int64_t)2);
    struct tare_shape shape = concrete(&declared, unknown_rank);
    assert_int_equal(tare_tensor_new(out, tare_dtype_base(feed->dtype), &shape), TARE_OK);
    if (put_sparse_part(out, &declared)) return;
    for (int64_t i = 0; i < out->elements; i++)
        put(out, i, example);
}

static tare_status run_signature(struct tare_session *session, const struct tare_signature *signature,
                                 int unknown_rank) {
    const size_t n_inputs = signature->n_inputs;
    struct tare_tensor *inputs = tare_calloc(n_inputs + 1, sizeof *inputs), outputs[MOST_OUTPUTS];
    struct tare_strbuf example = { 0 };
    const size_t n_outputs = signature->n_outputs;
    make_example(&example, tare_session_model(session));
    for (size_t i = 0; i < n_inputs; i++)
        make_input(&inputs[i], &signature->inputs[i], &example, unknown_rank);
    assert_true(n_outputs <= MOST_OUTPUTS);
    const tare_status status = tare_session_run_signature(session, signature, inputs, outputs);
    for (size_t i = 0; i < n_outputs && status == TARE_OK; i++)
        tare_tensor_reset(&outputs[i]);
    for (size_t i = 0; i < n_inputs; i++)
        tare_tensor_reset(&inputs[i]);
    tare_free(inputs);
    tare_strbuf_free(&example);
    return status;
}

static bool has_unknown_rank(const struct tare_signature *signature) {
    for (size_t i = 0; i < signature->n_inputs; i++)
        if (signature->inputs[i].shape.rank < 0) return true;
    return false;
}

/* The second attempt uses a new session, without the effects of the first; the error of the first is reported. */
static tare_status run_again(const struct tare_graph_model *model, const struct tare_signature *signature,
                             tare_status first) {
    char text[4096];
    struct tare_session *session;
    snprintf(text, sizeof text, "%s", tare_error_text());
    tare_status status = tare_session_new(&session, model, NULL);
    if (status == TARE_OK) {
        status = run_signature(session, signature, 0);
        tare_session_free(session);
    }
    if (status == TARE_OK) return TARE_OK;
    tare_error_set(text);
    return first;
}

static bool check_signature(const char *name, struct tare_session *session, const struct tare_signature *signature) {
    tare_status status = run_signature(session, signature, 1);
    if (status != TARE_OK && has_unknown_rank(signature))
        status = run_again(tare_session_model(session), signature, status);
    return is_expected(name, signature->key, status);
}

/* ---- all models ---- */

struct tally {
    size_t models, signatures, wrong;
};

static void run_model(struct tally *tally, const char *root, const char *name) {
    char path[1024];
    struct tare_graph_model *model;
    struct tare_session *session;
    snprintf(path, sizeof path, "%s/%s", root, name);
    tare_status status = tare_saved_model_load(&model, path, NULL);
    tally->models++;
    if (status == TARE_OK) status = tare_session_new(&session, model, NULL);
    if (status != TARE_OK) {
        tally->wrong += !is_expected(name, NULL, status);
        tare_model_free(model);
        return;
    }
    for (size_t i = 0; i < model->n_signatures; i++) {
        tally->wrong += !check_signature(name, session, &model->signatures[i]);
        tally->signatures++;
    }
    tare_session_free(session);
    tare_model_free(model);
}

static void models__run_every_signature_on_inputs_of_the_declared_shapes(void **state) {
    const char *root = *state;
    struct tally tally = { 0 };
    struct dirent *entry;
    DIR *folder = opendir(root);
    assert_non_null(folder);
    while ((entry = readdir(folder)))
        if (*entry->d_name != '.') run_model(&tally, root, entry->d_name);
    closedir(folder);
    print_message("%zu models, %zu signatures\n", tally.models, tally.signatures);
    assert_true(tally.models >= 50);
    assert_int_equal(tally.wrong, 0);
}

int main(void) {
    const char *root = test_data("models");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(models__run_every_signature_on_inputs_of_the_declared_shapes, (void *)root),
    };
    return root ? cmocka_run_group_tests(tests, NULL, NULL) : TEST_SKIPPED;
}
