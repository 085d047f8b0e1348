/* Integer outputs are compared record by record before and after a conversion. */
#include "workflow/integer_outputs.h"

#include "base/alloc.h"
#include "datasets/sample.h"
#include "datasets/tfrecord.h"
#include "support/mini_model.h"
#include "support/sample_file.h"
#include "support/temp.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 4, RECORDS = 12 };

/* bin = int32(x * factor), probability = x */
static struct tare_graph_model *make_model(float factor) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_node *cast =
        mini_open(g, "Cast", "bin", 1, mini_node(g, "Mul", "scaled", 2, x, mini_float(g, "factor", factor)));
    struct tare_signature *s = TARE_NEW(&model->arena, struct tare_signature);
    mini_ok(tare_node_set_type(cast, "SrcT", TARE_DT_FLOAT));
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_INT32));
    model->signatures = s;
    model->n_signatures = 1;
    s->key = "serving_default";
    s->method_name = "";
    s->inputs = TARE_NEW(&model->arena, struct tare_binding);
    s->outputs = TARE_NEW_ARRAY(&model->arena, struct tare_binding, 2);
    s->n_inputs = 1;
    s->n_outputs = 2;
    *s->inputs =
        (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = tare_shape_make(1, WIDTH), .edge = x };
    s->outputs[0] =
        (struct tare_binding){ .key = "probability", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = x };
    s->outputs[1] = (struct tare_binding){
        .key = "bin", .dtype = TARE_DT_INT32, .shape = tare_shape_unknown(), .edge = mini_done(cast)
    };
    return model;
}

/* Record r has the values r, r + 0.25, r + 0.5, r + 0.75. */
static const char *write_samples(void) {
    struct tare_tfrecord_writer *writer;
    const char *path = temp_path("samples");
    mini_ok(tare_tfrecord_create(&writer, path));
    for (int r = 0; r < RECORDS; r++) {
        const struct tare_shape shape = tare_shape_make(1, WIDTH);
        float x[WIDTH];
        for (int i = 0; i < WIDTH; i++)
            x[i] = (float)r + 0.25f * (float)i;
        write_float_sample(writer, "x", &shape, x);
    }
    mini_ok(tare_tfrecord_commit(writer));
    return path;
}

static tare_status check(float before, float after, const char *path) {
    struct tare_tpu_choice cut = { TARE_TPU_BY_CONCRETE, "serve_tpu", false };
    const struct tare_tpu_split split = { .choices = &cut, .count = 1 };
    const struct tare_dataset_file dataset = { "serving_default", path };
    const struct tare_quantization quantization = { .datasets = &dataset, .n_datasets = 1 };
    struct tare_graph_model *original = make_model(before), *converted = make_model(after);
    struct tare_integer_outputs outputs = { 0 };
    tare_status status;
    mini_ok(tare_integer_outputs_record(&outputs, original, &quantization));
    status = tare_integer_outputs_check(&outputs, converted, &quantization, &split);
    tare_integer_outputs_free(&outputs);
    tare_model_free(original);
    tare_model_free(converted);
    return status;
}

static void the_same_integers__pass(void **state) {
    (void)state;
    mini_ok(check(1, 1.03f, write_samples())); /* no value crosses a whole number within the records compared */
}

static void a_changed_integer__names_record_output_and_cut(void **state) {
    (void)state;
    mini_fails(check(1, 1.1f, write_samples()), "signature 'serving_default'");
    mini_fails(check(1, 1.1f, write_samples()),
               "record 2: element 3 of integer output 'bin' is changed by the functions that were moved to the TPU, "
               "serve_tpu (expected 2, got 3;");
}

static void paths__contain_environment_variables(void **state) {
    (void)state;
    write_samples();
    assert_int_equal(setenv("TARE_TEST_FOLDER", temp_folder(), 1), 0);
    mini_ok(check(1, 1, "${TARE_TEST_FOLDER}/samples"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_integers__pass),
        cmocka_unit_test(a_changed_integer__names_record_output_and_cut),
        cmocka_unit_test(paths__contain_environment_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
