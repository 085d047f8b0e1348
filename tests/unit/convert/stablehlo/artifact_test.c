/* Models of single modules. tests/golden/stablehlo.py writes the module `many`. */
#include "support/mini_model.h"
#include "support/temp.h"

#include "convert/export/export.h"
#include "convert/saved_model.h"
#include "convert/source.h"

#include <stdio.h>
#include <string.h>

/* TensorFlow matches the sorted keys of a dictionary with the arguments or results of the function, one by one. */
static void assert_sorted(const Tensorflow__StructuredValue *value, size_t count) {
    assert_int_equal(value->kind_case, TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE);
    assert_int_equal(value->dict_value->n_fields, count);
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(value->dict_value->fields[i - 1]->key, value->dict_value->fields[i]->key) < 0);
}

static void artifact__signature_of_many_tensors_is_sorted_like_its_function(void **state) {
    static const char *const order[] = { "0", "1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9" };
    struct tare_graph_model *model;
    const char *directory = temp_path("many");
    char name[32];
    (void)state;
    mini_ok(tare_saved_model_load(&model, TARE_SOURCE_DIR "/tests/golden/stablehlo/many.mlirbc", NULL));
    mini_ok(tare_saved_model_export(model, directory, NULL));
    tare_model_free(model);
    mini_ok(tare_saved_model_load(&model, directory, NULL));
    const Tensorflow__SavedObjectGraph *objects = tare_source_of(model)->meta->object_graph_def;
    assert_int_equal(objects->n_concrete_functions, 1);
    const struct tare_graph *function = tare_model_find_function(model, objects->concrete_functions[0]->key);
    const Tensorflow__SavedConcreteFunction *concrete = objects->concrete_functions[0]->value;
    assert_sorted(concrete->canonicalized_input_signature->tuple_value->values[1], 12);
    assert_sorted(concrete->output_signature, 12);
    for (size_t i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "arg%s", order[i]);
        assert_string_equal(function->args[i]->name, name);
        snprintf(name, sizeof name, "output_%s", order[i]);
        assert_string_equal(function->returns[i].name, name);
    }
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(artifact__signature_of_many_tensors_is_sorted_like_its_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
