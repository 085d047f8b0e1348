/* Edges with one key compute one value; what may differ from run to run shares its key with nobody. */
#include "eval/prefix_cache/edge_keys.h"
#include "support/mini_model.h"

#include <stdio.h>
#include <string.h>

struct keyed {
    struct tare_arena arena;
    struct tare_edge_keys keys;
};

static struct tare_edge_key key_of(struct keyed *k, const struct tare_graph_model *model, struct tare_edge x,
                                   struct tare_edge of, uint64_t serial) {
    memset(k, 0, sizeof *k);
    mini_ok(tare_edge_keys_of(&k->keys, &k->arena, model, &x, 1, serial));
    return tare_edge_key_of(&k->keys, of);
}

/* y = x + constant, by names of the caller's */
static struct tare_edge_key key_of_sum(const char *prefix, float constant, bool *fed, bool *shared) {
    struct tare_graph_model *model = mini_model_new();
    char names[3][32];
    struct keyed k;
    for (int i = 0; i < 3; i++)
        snprintf(names[i], sizeof names[i], "%s%d", prefix, i);
    struct tare_edge x = mini_placeholder(model->main, names[0], TARE_DT_FLOAT),
                     c = mini_float(model->main, names[1], constant);
    struct tare_edge y = mini_node(model->main, "AddV2", names[2], 2, x, c);
    struct tare_edge_key key = key_of(&k, model, x, y, 1);
    assert_false(k.keys.fed[c.node->position]);
    *fed = k.keys.fed[y.node->position];
    *shared = k.keys.shared[y.node->position];
    tare_arena_free(&k.arena);
    tare_model_free(model);
    return key;
}

static bool same(struct tare_edge_key a, struct tare_edge_key b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static void keys__follow_what_is_computed_and_not_names(void **state) {
    bool fed, shared;
    struct tare_edge_key one = key_of_sum("a", 1, &fed, &shared);
    (void)state;
    assert_true(fed && shared);
    assert_true(same(one, key_of_sum("b", 1, &fed, &shared)));
    assert_false(same(one, key_of_sum("a", 2, &fed, &shared)));
}

static void outputs_of_one_node__have_keys_of_their_own(void **state) {
    struct tare_edge a = { NULL, 0 };
    struct tare_graph_model *model = mini_model_new();
    struct keyed k;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_node *node = mini_open(model->main, "Unique", "u", 1, x);
    (void)state;
    mini_ok(tare_node_set_type(node, "out_idx", TARE_DT_INT32));
    a = mini_done(node);
    struct tare_edge_key first = key_of(&k, model, x, a, 1);
    assert_false(same(first, tare_edge_key_of(&k.keys, mini_output(a, 1))));
    tare_arena_free(&k.arena);
    tare_model_free(model);
}

/* A graph behind a drawn number. */
static void drawn_numbers__are_shared_with_no_other_model(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct keyed k;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_node *node =
        mini_open(model->main, "RandomUniform", "r", 1, mini_ints(model->main, "shape", 1, (const int32_t[]){ 1 }));
    (void)state;
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    struct tare_edge y = mini_node(model->main, "AddV2", "y", 2, x, mini_done(node));
    struct tare_edge_key one = key_of(&k, model, x, y, 1);
    assert_false(k.keys.shared[y.node->position]);
    tare_arena_free(&k.arena);
    assert_false(same(one, key_of(&k, model, x, y, 2)));
    assert_true(k.keys.shared[x.node->position]);
    tare_arena_free(&k.arena);
    tare_model_free(model);
}

/* y = If(p, then: a + constant, else: a) */
static struct tare_edge_key key_of_branch(float constant) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *then = tare_model_add_function(model, "then"),
                      *otherwise = tare_model_add_function(model, "else");
    struct tare_edge a = mini_arg(then, "a", TARE_DT_FLOAT), x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct keyed k;
    mini_return(then, "r", mini_node(then, "AddV2", "s", 2, a, mini_float(then, "c", constant)));
    mini_return(otherwise, "r", mini_arg(otherwise, "a", TARE_DT_FLOAT));
    struct tare_node *node = mini_open(model->main, "StatelessIf", "if", 2, mini_bool(model->main, "p", true), x);
    mini_ok(tare_node_set_type_list(node, "Tin", (const int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_type_list(node, "Tout", (const int[]){ TARE_DT_FLOAT }, 1));
    mini_ok(tare_node_set_func(node, "then_branch", "then"));
    mini_ok(tare_node_set_func(node, "else_branch", "else"));
    struct tare_edge_key key = key_of(&k, model, x, mini_done(node), 1);
    assert_true(k.keys.shared[node->position]);
    tare_arena_free(&k.arena);
    tare_model_free(model);
    return key;
}

static void bodies_of_branches__count(void **state) {
    (void)state;
    assert_true(same(key_of_branch(1), key_of_branch(1)));
    assert_false(same(key_of_branch(1), key_of_branch(2)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys__follow_what_is_computed_and_not_names),
        cmocka_unit_test(outputs_of_one_node__have_keys_of_their_own),
        cmocka_unit_test(drawn_numbers__are_shared_with_no_other_model),
        cmocka_unit_test(bodies_of_branches__count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
