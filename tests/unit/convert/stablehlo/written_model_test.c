/* Modules of the test data that check their own results. Each passes after tare_shlo_write as before; and what it
 * checks, as a function of its inputs, has the same results after tare export, where nothing is known beforehand. */
#include "support/mini_model.h"
#include "support/models.h"
#include "support/temp.h"
#include "support/tensor_compare.h"

#include "base/alloc.h"
#include "base/file.h"
#include "convert/saved_model.h"
#include "convert/stablehlo/emit/export.h"
#include "convert/stablehlo/write.h"
#include "interpreter/session.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 64 }; /* arguments or results */

static const char *folder;

/* ---- running ---- */

struct values {
    struct tare_tensor items[MOST];
    size_t count;
};

static void reset(struct values *values) {
    for (size_t i = 0; i < values->count; i++)
        tare_tensor_reset(&values->items[i]);
    values->count = 0;
}

/* Runs main of a module. */
static tare_status run(struct values *out, const char *path, const struct values *inputs) {
    struct tare_graph_model *model;
    struct tare_session *session = NULL;
    TARE_TRY(tare_saved_model_load(&model, path, NULL));
    const struct tare_signature *signature = &model->signatures[0];
    tare_status status = TARE_OK;
    if (model->module_error)
        status = TARE_FAIL(TARE_UNSUPPORTED, "%s", model->module_error);
    else if (signature->n_inputs != (inputs ? inputs->count : 0) || signature->n_outputs > MOST)
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "%zu inputs, %zu outputs", signature->n_inputs, signature->n_outputs);
    if (status == TARE_OK) status = tare_session_new(&session, model, NULL);
    if (status == TARE_OK)
        status = tare_session_run_signature(session, signature, inputs ? inputs->items : NULL, out->items);
    out->count = status == TARE_OK ? signature->n_outputs : 0;
    tare_session_free(session);
    tare_model_free(model);
    return status;
}

/* A module, and the file that it is written to. */
static const char *written(const struct tare_shlo_module *module, const char *name) {
    struct tare_strbuf file = { 0 };
    mini_ok(tare_shlo_write(&file, module, module->version));
    const char *path = temp_file(name, file.data, file.size);
    tare_strbuf_free(&file);
    return path;
}

/* ---- the module as functions ---- */

static struct tare_shlo_op *function(struct tare_shlo_module *module, const char *name) {
    return (struct tare_shlo_op *)tare_shlo_function(module, name);
}

static void set_attr(struct tare_shlo_op *op, const char *name, const struct tare_shlo_attr *value) {
    size_t position = 0;
    for (const char *at = op->def->attrs; *at; position++) {
        const size_t size = strcspn(at, " ");
        if (strlen(name) == size && strncmp(at, name, size) == 0) op->attrs[position] = value;
        at += size + (at[size] == ' ');
    }
}

static const struct tare_shlo_attr *new_attr(struct tare_shlo_module *module, struct tare_shlo_attr attr) {
    struct tare_shlo_attr *copy = TARE_NEW(&module->arena, struct tare_shlo_attr);
    assert_non_null(copy);
    *copy = attr;
    return copy;
}

static void remove_op(struct tare_shlo_block *block, size_t i) {
    memmove(&block->ops[i], &block->ops[i + 1], (--block->n_ops - i) * sizeof *block->ops);
}

/* Whether the op has a text that begins so. */
static bool names(const struct tare_shlo_op *op, const char *attr, const char *value) {
    const struct tare_shlo_attr *found = tare_shlo_op_attr(op, attr);
    return found && strncmp(found->text.data, value, strlen(value)) == 0;
}

/* Makes function `inputs` the module's main. False: there is none. */
static bool keep_inputs(struct tare_shlo_module *module) {
    struct tare_shlo_block *functions = &module->root->regions[0];
    struct tare_shlo_op *inputs = function(module, "inputs");
    if (!inputs) return false;
    const struct tare_shlo_op *main = function(module, "main");
    set_attr(inputs, "sym_name", tare_shlo_op_attr(main, "sym_name"));
    set_attr(inputs, "sym_visibility", tare_shlo_op_attr(main, "sym_visibility"));
    remove_op(functions, (size_t)(main - functions->ops));
    return true;
}

/* Makes main a function of what `inputs` returns, whose results are what it checks. False: it checks nothing. */
static bool make_function(struct tare_shlo_module *module) {
    struct tare_shlo_op *main = function(module, "main");
    if (!main) return false;
    struct tare_shlo_block *body = &main->regions[0];
    struct tare_shlo_type *type = TARE_NEW(&module->arena, struct tare_shlo_type);
    struct tare_shlo_value **results = TARE_NEW_ARRAY(&module->arena, struct tare_shlo_value *, MOST);
    const struct tare_shlo_type **types = TARE_NEW_ARRAY(&module->arena, const struct tare_shlo_type *, 2 * MOST);
    size_t n_results = 0;
    assert_true(type && results && types);
    for (size_t i = 0; i < body->n_ops;) {
        struct tare_shlo_op *op = &body->ops[i];
        const bool is_check = tare_shlo_op_is(op, "custom_call") && names(op, "call_target_name", "check.");
        if (tare_shlo_op_is(op, "call") && names(op, "callee", "inputs")) {
            body->args = op->results;
            body->n_args = op->n_results;
        } else if (is_check && n_results < MOST) {
            results[n_results++] = op->operands[0];
        } else if (!is_check && !(tare_shlo_op_is(op, "call") && names(op, "callee", "expected"))) {
            i++;
            continue;
        }
        remove_op(body, i);
    }
    struct tare_shlo_op *end = &body->ops[body->n_ops - 1];
    end->operands = results;
    end->n_operands = n_results;
    for (size_t i = 0; i < body->n_args; i++)
        types[i] = body->args[i].type;
    for (size_t i = 0; i < n_results; i++)
        types[MOST + i] = results[i]->type;
    *type = (struct tare_shlo_type){ .kind = TARE_SHLO_FUNCTION,
                                     .inputs = { types, body->n_args },
                                     .outputs = { types + MOST, n_results } };
    set_attr(main, "function_type",
             new_attr(module, (struct tare_shlo_attr){ .kind = TARE_SHLO_ATTR_TYPE, .type = type }));
    set_attr(main, "arg_attrs", new_attr(module, (struct tare_shlo_attr){ .kind = TARE_SHLO_ATTR_ARRAY }));
    set_attr(main, "res_attrs", new_attr(module, (struct tare_shlo_attr){ .kind = TARE_SHLO_ATTR_ARRAY }));
    return n_results > 0 && body->n_args <= MOST;
}

/* ---- tests ---- */

/* Reads a module again; NULL: `change` refused it. */
static struct tare_shlo_module *changed(const struct tare_mapping *file,
                                        bool (*change)(struct tare_shlo_module *module)) {
    struct tare_shlo_module *module;
    mini_ok(tare_shlo_read(&module, file->data, file->size));
    if (change(module)) return module;
    tare_shlo_free(module);
    return NULL;
}

struct counts {
    size_t modules, passed, functions, exported, equal, wrong;
};

static bool are_equal(const char *name, const struct values *got, const struct values *expected) {
    struct tare_strbuf why = { 0 };
    bool good = got->count == expected->count;
    for (size_t i = 0; i < got->count && good; i++)
        good = tensors_agree(&why, &got->items[i], &expected->items[i],
                             (struct tolerance){ .relative = 1e-5, .absolute = 1e-6 });
    if (!good) print_message("%s: %s\n", name, why.data ? why.data : "another number of results");
    tare_strbuf_free(&why);
    return good;
}

/* The function of a module against its export. */
static void check_export(struct counts *counts, const struct tare_mapping *file, const char *name) {
    const struct tare_shlo_export_options options = { .batch = 1, .vhlo_version = TARE_SHLO_EXPORT_VERSION };
    struct tare_shlo_exported_summary summary;
    struct values inputs = { 0 }, expected = { 0 }, got = { 0 };
    struct tare_shlo_module *module = changed(file, make_function), *source = changed(file, keep_inputs);
    tare_status status = source ? run(&inputs, written(source, "inputs.mlirbc"), NULL) : TARE_OK;
    if (module && status == TARE_OK) {
        const char *path = written(module, "function.mlirbc");
        counts->functions++;
        status = run(&expected, path, &inputs);
        if (status == TARE_OK) status = tare_shlo_export(&summary, path, temp_path("exported.mlirbc"), &options);
        counts->exported += status == TARE_OK;
        if (status == TARE_OK) status = run(&got, temp_path("exported.mlirbc"), &inputs);
        counts->equal += status == TARE_OK && are_equal(name, &got, &expected);
    }
    if (status != TARE_OK) print_message("%s: %s\n", name, tare_error_text());
    reset(&inputs), reset(&expected), reset(&got);
    tare_shlo_free(module);
    tare_shlo_free(source);
}

/* The module as it is, and as the writer writes it. */
static void check_module(struct counts *counts, const char *path, const char *name) {
    struct tare_mapping file;
    struct tare_shlo_module *module;
    struct values before = { 0 }, after = { 0 };
    mini_ok(tare_file_map(&file, path));
    mini_ok(tare_shlo_read(&module, file.data, file.size));
    const tare_status expected = run(&before, path, NULL);
    const tare_status status = run(&after, written(module, "written.mlirbc"), NULL);
    counts->modules++;
    counts->passed += status == TARE_OK;
    if (status != expected) {
        print_message("%s: %s\n", name, tare_error_text());
        counts->wrong++;
    }
    reset(&before), reset(&after);
    tare_shlo_free(module);
    check_export(counts, &file, name);
    tare_file_unmap(&file);
}

static void modules__pass_their_checks_after_they_were_written(void **state) {
    char path[1200];
    struct tare_file_list list = { 0 };
    struct counts counts = { 0 };
    (void)state;
    snprintf(path, sizeof path, "%s/testdata", folder);
    mini_ok(tare_file_list(&list, path));
    for (size_t i = 0; i < list.count; i++) {
        snprintf(path, sizeof path, "%s/testdata/%s", folder, list.names[i]);
        tare_error_clear();
        check_module(&counts, path, list.names[i]);
    }
    tare_file_list_free(&list);
    print_message("%zu modules, %zu pass when written; of %zu functions %zu are exported, %zu with equal results\n",
                  counts.modules, counts.passed, counts.functions, counts.exported, counts.equal);
    assert_int_equal(counts.wrong, 0);
    assert_true(counts.passed > 2200 && counts.functions > 2200);
    assert_int_equal(counts.exported, counts.functions);
    assert_int_equal(counts.equal, counts.functions);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(modules__pass_their_checks_after_they_were_written) };
    folder = test_data("stablehlo");
    return folder ? cmocka_run_group_tests(tests, NULL, NULL) : TEST_SKIPPED;
}
