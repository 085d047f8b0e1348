#include "support/composite.h"
#include "support/draw.h"
#include "support/graph_check.h"

#include <string.h>

void composite_set_up_named(struct composite *f, const char *name) {
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->function = tare_model_add_function(f->model, name);
    f->alias = (struct tare_alias){ name, "kept" };
    f->model->aliases = &f->alias;
    f->model->n_aliases = 1;
}

void composite_set_up(struct composite *f) {
    composite_set_up_named(f, "composite");
}

void composite_tear_down(struct composite *f) {
    f->model->n_aliases = 0;
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static union tare_attr_item *new_item(struct composite *f) {
    return TARE_NEW(&f->arena, union tare_attr_item);
}

struct tare_attr composite_text_attr(struct composite *f, const char *name, const char *text) {
    union tare_attr_item *item = new_item(f);
    item->s.data = (char *)(uintptr_t)text;
    item->s.size = strlen(text);
    return (struct tare_attr){ .name = name, .kind = TARE_ATTR_STRING, .count = 1, .items = item };
}

struct tare_attr composite_bool_attr(struct composite *f, const char *name, bool value) {
    union tare_attr_item *item = new_item(f);
    item->b = value;
    return (struct tare_attr){ .name = name, .kind = TARE_ATTR_BOOL, .count = 1, .items = item };
}

struct tare_attr composite_float_attr(struct composite *f, const char *name, float value) {
    union tare_attr_item *item = new_item(f);
    item->f = value;
    return (struct tare_attr){ .name = name, .kind = TARE_ATTR_FLOAT, .count = 1, .items = item };
}

void composite_annotate(struct composite *f, struct tare_attr attr) {
    struct tare_attr *grown =
        tare_arena_extend(&f->model->arena, f->function->attrs, f->function->n_attrs, 1, sizeof *grown);
    grown[f->function->n_attrs++] = attr;
    f->function->attrs = grown;
}

void composite_annotate_with(struct composite *f, const char *name, size_t n, const struct tare_attr *attrs) {
    union tare_attr_item *item = new_item(f);
    struct tare_attr_list *own = TARE_NEW(&f->model->arena, struct tare_attr_list);
    *own = (struct tare_attr_list){ (struct tare_attr *)(uintptr_t)attrs, n };
    item->func = (struct tare_func){ .name = name, .own = own };
    composite_annotate(f,
                       (struct tare_attr){ .name = "_implements", .kind = TARE_ATTR_FUNC, .count = 1, .items = item });
}

void composite_call_with(struct composite *f, const struct tare_shape *shapes) {
    struct tare_edge in[COMPOSITE_MOST_ARGS] = { { 0 } };
    for (size_t i = 0; i < f->function->n_args; i++) {
        struct tare_node *node = mini_open(f->model->main, "Placeholder", f->function->args[i]->name, 0);
        mini_ok(tare_node_set_type(node, "dtype", f->function->args[i]->output_dtypes[0]));
        mini_ok(tare_node_set_shape(node, "shape", &shapes[i]));
        in[i] = mini_done(node);
    }
    mini_call(f->model->main, "PartitionedCall", "call", f->function, (int)f->function->n_args, in[0], in[1], in[2],
              in[3], in[4], in[5]);
}

void composite_fuse(struct composite *f) {
    mini_ok(tare_composites_fuse(&f->found, f->model));
}

void composite_expect_reason(const struct composite *f, const char *part) {
    assert_int_equal(f->found.count, 1);
    if (!f->found.items[0].reason) fail_msg("it was fused (expected '%s')", part);
    if (!strstr(f->found.items[0].reason, part))
        fail_msg("reason '%s' (expected '%s')", f->found.items[0].reason, part);
}

void composite_expect_fused(const struct composite *f, const char *name) {
    assert_int_equal(f->found.count, 1);
    if (f->found.items[0].reason) fail_msg("it stays composite: %s", f->found.items[0].reason);
    assert_string_equal(f->found.items[0].implements, name);
    assert_null(tare_graph_find_attr(f->function, "_implements"));
    assert_null(tare_graph_find_attr(f->function, "api_implements"));
    graph_check_dtypes(f->model);
}

void composite_compute(struct composite *f, const struct tare_shape *shapes, struct tare_tensor *results) {
    struct tare_session *session = mini_session(f->model);
    struct tare_tensor args[COMPOSITE_MOST_ARGS];
    size_t n = f->function->n_args;
    for (size_t i = 0; i < n; i++) {
        int dtype = f->function->args[i]->output_dtypes[0];
        mini_ok(tare_tensor_new(&args[i], dtype, &shapes[i]));
        if (dtype == TARE_DT_INT32)
            for (int64_t k = 0; k < args[i].elements; k++)
                TARE_DATA(int32_t, &args[i])[k] = (int32_t)(k % 3);
        else
            draw_fill(args[i].data, (size_t)args[i].elements, DRAW_NORMAL, 40 + i);
    }
    mini_ok(tare_session_call(session, f->function, args, n, results, f->function->n_returns));
    for (size_t i = 0; i < n; i++)
        tare_tensor_reset(&args[i]);
    tare_session_free(session);
}

void composite_expect_same_values(struct composite *f, const struct tare_shape *shapes, const char *name) {
    struct tare_tensor before[5], after[5];
    composite_compute(f, shapes, before);
    composite_fuse(f);
    composite_expect_fused(f, name);
    composite_compute(f, shapes, after);
    for (size_t i = 0; i < f->function->n_returns; i++) {
        assert_true(tare_shape_equal(&before[i].shape, &after[i].shape));
        assert_memory_equal(before[i].data, after[i].data, (size_t)before[i].elements * sizeof(float));
        tare_tensor_reset(&before[i]);
        tare_tensor_reset(&after[i]);
    }
}
