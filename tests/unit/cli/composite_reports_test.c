/* quantize and convert say the same of a function that says what it computes: as notes and in JSON. */
#include "support/seed_model.h"
#include "support/temp.h"

#include <stdio.h>
#include <string.h>

/* tpu_func(x) = x W, which says that it implements `name`. */
static const char *model_implementing(const char *name) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_tpu_func_10");
    struct tare_shape shape = tare_shape_make(2, 8, 64);
    union tare_attr_item *text = TARE_NEW(&model->arena, union tare_attr_item);
    struct tare_attr *implements = TARE_NEW(&model->arena, struct tare_attr);
    text->s.data = name;
    text->s.size = strlen(name);
    *implements = (struct tare_attr){ .name = "_implements", .kind = TARE_ATTR_STRING, .count = 1, .items = text };
    f->attrs = implements;
    f->n_attrs = 1;
    mini_return(f, "y",
                mini_node(f, "MatMul", "matmul", 2, mini_arg(f, "x", TARE_DT_FLOAT), seed_weight(f, "w", 64, 64)));
    seed_serve(model, f, &shape);
    seed_alias(model, f->name, "tpu_func");
    return seed_write(model, "implements");
}

static void a_function_that_stays_composite__is_reported_by_both(void **state) {
    static const char note[] = "function __inference_tpu_func_10 (my_layer) stays composite: 'my_layer' is not a known "
                               "composite";
    static const char *const json[] = { "\"composites\": [", "\"function\": \"__inference_tpu_func_10\"",
                                        "\"implements\": \"my_layer\"", "\"fused\": false",
                                        "\"reason\": \"'my_layer' is not a known composite" };
    const char *model = model_implementing("my_layer");
    (void)state;
    for (int i = 0; i < 4; i++) {
        const char *const command[] = { process_tare(),
                                        i < 2 ? "quantize" : "convert",
                                        model,
                                        temp_path("out"),
                                        "--method",
                                        "weight_only",
                                        i % 2 ? "--json" : "--overwrite",
                                        i % 2 ? "--overwrite" : NULL,
                                        NULL };
        struct process process;
        process_run(&process, command);
        if (process.status) fail_msg("%s: exit status %d: %s", command[1], process.status, process.err);
        if (i % 2 == 0 && !strstr(process.err, note)) fail_msg("%s: no '%s' in: %s", command[1], note, process.err);
        for (size_t k = 0; i % 2 && k < sizeof json / sizeof *json; k++)
            if (!strstr(process.out, json[k])) fail_msg("%s: no '%s' in: %s", command[1], json[k], process.out);
        process_free(&process);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_function_that_stays_composite__is_reported_by_both) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
