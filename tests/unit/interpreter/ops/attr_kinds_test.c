/* Attributes of the wrong kind: every attribute of every op row with a value of every other kind. The check that a
 * model passes when it is opened must find it, and shape inference, which validation also runs on models that failed
 * the check, must survive it. */
#include "graph/definitions/attr_check.h"
#include "graph/definitions/opdef.h"
#include "graph/definitions/registry.h"
#include "graph/model.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/builtin.h"
#include "support/plugin_fixture.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 64, KINDS = TARE_ATTR_FUNC + 1 };

struct sweep {
    const struct tare_op_registry *custom; /* ops of libraries; NULL: the built-in ones */
    size_t cases, inferred, ops;
};

static union tare_attr_item sample_item(struct tare_graph_model *model, enum tare_attr_kind kind,
                                        const struct tare_op_attr *attr) {
    union tare_attr_item item = { .i = attr && attr->has_minimum && attr->minimum > 1 ? attr->minimum : 1 };
    struct tare_shape *shape;
    if (attr && attr->allowed && attr->allowed->count && attr->allowed->kind == kind) return attr->allowed->items[0];
    switch (kind) {
    case TARE_ATTR_STRING:
        item.s = (struct tare_str){ .data = (char *)"text", .size = 4 };
        break;
    case TARE_ATTR_FLOAT:
        item.f = 0.5f;
        break;
    case TARE_ATTR_BOOL:
        item.b = true;
        break;
    case TARE_ATTR_TYPE:
        item.type = TARE_DT_FLOAT;
        break;
    case TARE_ATTR_SHAPE:
        shape = TARE_NEW(&model->arena, struct tare_shape);
        assert_non_null(shape);
        *shape = tare_shape_make(2, 2, 3);
        item.shape = shape;
        break;
    case TARE_ATTR_TENSOR:
        item.tensor = TARE_NEW(&model->arena, struct tare_tensor);
        assert_non_null(item.tensor);
        break;
    case TARE_ATTR_FUNC:
        item.func = (struct tare_func){ .name = "no_such_function" };
        break;
    default:
        break;
    }
    return item;
}

static struct tare_attr sample(struct tare_graph_model *model, const char *name, enum tare_attr_kind kind, bool is_list,
                               const struct tare_op_attr *attr) {
    size_t count = is_list && attr && attr->has_minimum && attr->minimum > 1 ? (size_t)attr->minimum : 1;
    struct tare_attr value = { .name = name, .kind = kind, .is_list = is_list, .count = count };
    value.items = TARE_NEW_ARRAY(&model->arena, union tare_attr_item, count);
    assert_non_null(value.items);
    for (size_t i = 0; i < count; i++)
        value.items[i] = sample_item(model, kind, attr);
    return value;
}

/* A node with values of the right kinds. */
static struct tare_node *make_node(struct tare_graph *function, const struct tare_op_def *def) {
    struct tare_graph_model *model = function->model;
    struct tare_node *node = tare_graph_add(function, def->name, "node");
    assert_non_null(node);
    assert_non_null(node->def);
    node->attrs = TARE_NEW_ARRAY(&model->arena, struct tare_attr, def->n_attrs + 1);
    assert_non_null(node->attrs);
    for (size_t i = 0; i < def->n_attrs; i++) {
        const struct tare_op_attr *attr = &def->attrs[i];
        const enum tare_attr_kind kind = attr->kind == TARE_ATTR_NONE ? TARE_ATTR_INT : attr->kind;
        node->attrs[i] =
            attr->default_value ? *attr->default_value : sample(model, attr->name, kind, attr->is_list, attr);
        node->attrs[i].name = attr->name;
    }
    node->n_attrs = node->attrs_capacity = def->n_attrs;
    return node;
}

static void infer(struct tare_graph_model *model, struct tare_node *node, size_t n_inputs, const int *dtypes,
                  size_t n_outputs) {
    struct tare_shape inputs[MOST], outputs[MOST];
    const struct tare_tensor *values[MOST] = { NULL };
    for (int known = 0; known < 2; known++) {
        for (size_t i = 0; i < n_inputs; i++)
            inputs[i] = known ? tare_shape_make(4, 2, 4, 4, 3) : tare_shape_unknown();
        for (size_t i = 0; i < n_outputs; i++)
            outputs[i] = tare_shape_unknown();
        struct tare_infer call = { .node = node,
                                   .n_inputs = n_inputs,
                                   .input_dtypes = dtypes,
                                   .inputs = inputs,
                                   .input_values = values,
                                   .n_outputs = n_outputs,
                                   .outputs = outputs,
                                   .arena = &model->arena };
        if (node->def->row->infer(&call) != TARE_OK) tare_error_clear();
    }
}

static void try_kind(struct sweep *sweep, const struct tare_op_def *def, size_t changed, enum tare_attr_kind kind,
                     bool is_list) {
    struct tare_graph_model *model = tare_model_new(tare_ops_builtin());
    struct tare_graph *function;
    struct tare_node *node;
    int *dtypes = NULL;
    size_t n_inputs = 0;
    bool fits;
    assert_non_null(model);
    if (sweep->custom) model->custom_ops = tare_ops_new(sweep->custom);
    function = tare_model_add_function(model, "function");
    assert_non_null(function);
    node = make_node(function, def);
    fits = tare_node_resolve(node) == TARE_OK &&
           tare_opdef_input_dtypes(&model->arena, node, &dtypes, &n_inputs) == TARE_OK && n_inputs <= MOST &&
           node->n_outputs <= MOST;
    for (size_t i = 0; fits && i < n_inputs; i++) {
        char name[32];
        snprintf(name, sizeof name, "input_%zu", i);
        struct tare_node *arg = tare_graph_add_arg(function, name, tare_dtype_base(dtypes[i]));
        assert_non_null(arg);
        assert_int_equal(tare_node_add_input(node, (struct tare_edge){ arg, 0 }), TARE_OK);
    }
    node->attrs[changed] = sample(model, def->attrs[changed].name, kind, is_list, NULL);
    if (tare_opdef_check_attr_kinds(node) != TARE_INVALID_ARGUMENT || !strstr(tare_error_text(), "AttrValue had value"))
        fail_msg("%s: attribute %s with kind %d%s was accepted", def->name, def->attrs[changed].name, kind,
                 is_list ? " (list)" : "");
    tare_error_clear();
    if (fits && def->row && def->row->infer) {
        infer(model, node, n_inputs, dtypes, node->n_outputs);
        sweep->inferred++;
    }
    sweep->cases++;
    tare_model_free(model);
}

static void try_op(struct sweep *sweep, const struct tare_op_def *def) {
    for (size_t a = 0; a < def->n_attrs; a++) {
        const struct tare_op_attr *attr = &def->attrs[a];
        for (int kind = TARE_ATTR_STRING; kind < KINDS; kind++)
            for (int is_list = 0; is_list < 2; is_list++) {
                const bool right = is_list == attr->is_list && kind == (int)attr->kind;
                if (!right && attr->kind != TARE_ATTR_NONE) try_kind(sweep, def, a, (enum tare_attr_kind)kind, is_list);
            }
    }
    sweep->ops++;
}

static void attributes__of_a_wrong_kind_are_found_and_survived(void **state) {
    const struct tare_op_def *const *ops;
    struct tare_arena arena = { 0 };
    struct sweep sweep = { 0 };
    size_t count;
    (void)state;
    mini_ok(tare_ops_list_all(&ops, &count, &arena, tare_ops_builtin()));
    for (size_t i = 0; i < count; i++)
        if (ops[i]->row) try_op(&sweep, ops[i]);
    tare_arena_free(&arena);
    print_message("%zu ops, %zu cases, %zu with shape inference\n", sweep.ops, sweep.cases, sweep.inferred);
    assert_true(sweep.cases > 20000);
    assert_true(sweep.inferred > 15000);
}

/* The ops of a library, whose shape functions are those of the library and ask for attributes themselves. */
static void attributes_of_custom_ops__of_a_wrong_kind_are_found_and_survived(void **state) {
    struct sweep sweep = { 0 };
    (void)state;
    mini_ok(tare_plugins_load(plugins, plugin_path("everything")));
    sweep.custom = tare_plugins_ops(plugins);
    for (size_t i = 0; i < sweep.custom->n_defs; i++)
        try_op(&sweep, sweep.custom->defs[i]);
    print_message("%zu custom ops, %zu cases, %zu with shape inference\n", sweep.ops, sweep.cases, sweep.inferred);
    assert_true(sweep.ops >= 8);
    assert_true(sweep.cases > 350);
    assert_true(sweep.inferred > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes__of_a_wrong_kind_are_found_and_survived),
        PLUGIN_CASE(attributes_of_custom_ops__of_a_wrong_kind_are_found_and_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
