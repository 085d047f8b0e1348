/* Every built-in op row is well-formed and consistent with the catalogue entry of the same name. */
#include "base/strbuf.h"
#include "interpreter/ops/builtin.h"
#include "graph/attr_text.h"
#include "interpreter/ops/catalogue.h"
#include "graph/op.h"
#include "interpreter/ops/families.h"
#include "graph/definitions/opspec.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void builtin__every_row_and_entry_parses(void **state) {
    const struct tare_op_def *const *all;
    struct tare_arena arena = { 0 };
    size_t count;
    (void)state;
    const tare_status status = tare_ops_list_all(&all, &count, &arena, tare_ops_builtin());
    tare_arena_free(&arena);
    if (status != TARE_OK) fail_msg("%s", tare_error_text());
}

static const struct tare_op *const families[] = {
#define X(family) tare_ops_##family,
    TARE_OP_FAMILIES(X)
#undef X
};

/* Shapes of calls come from the callee, those of references and arguments from the importer. */
static bool needs_inference(const struct tare_op_def *def) {
    for (size_t i = 0; i < def->n_attrs; i++)
        if (def->attrs[i].kind == TARE_ATTR_FUNC) return false;
    return def->n_outputs && !def->outputs[0].is_ref && strcmp(def->name, "_Arg") != 0;
}

static void builtin__rows_have_inference_and_kernel(void **state) {
    size_t bad = 0;
    (void)state;
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const struct tare_op *row = families[f]; row->name; row++) {
            const struct tare_op_def *def = tare_ops_find(tare_ops_builtin(), row->name);
            bool fine = def && (row->infer || !needs_inference(def)) && row->run;
            if (!fine) print_error("row %s lacks %s\n", row->name, row->run ? "infer" : "run");
            bad += !fine;
        }
    assert_int_equal(bad, 0);
}

/* Describes how two attributes differ; NULL: no relevant difference. A row may allow fewer types than TensorFlow. */
static const char *attr_difference(const struct tare_op_attr *ours, const struct tare_op_attr *theirs) {
    if (ours->kind != theirs->kind || ours->is_list != theirs->is_list) return "kind";
    if (ours->has_minimum != theirs->has_minimum || ours->minimum != theirs->minimum) return "minimum";
    if (!ours->default_value != !theirs->default_value) return "having a default";
    if (ours->default_value && !tare_attr_equal(ours->default_value, theirs->default_value)) return "default";
    if (!theirs->allowed) return NULL;
    if (!ours->allowed) return "allowed values (ours: any)";
    for (size_t i = 0; i < ours->allowed->count; i++) {
        struct tare_attr one = *ours->allowed, other = *theirs->allowed;
        bool found = false;
        one.items += i;
        one.count = other.count = 1;
        for (size_t k = 0; k < theirs->allowed->count && !found; k++) {
            other.items = theirs->allowed->items + k;
            found = tare_attr_equal(&one, &other);
        }
        if (!found) return "allowed values (ours has more)";
    }
    return NULL;
}

static const char *or_empty(const char *text) {
    return text ? text : "";
}

static bool same_arg(const struct tare_op_arg *a, const struct tare_op_arg *b) {
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->is_ref == b->is_ref &&
           strcmp(or_empty(a->type_attr), or_empty(b->type_attr)) == 0 &&
           strcmp(or_empty(a->type_list_attr), or_empty(b->type_list_attr)) == 0 &&
           strcmp(or_empty(a->number_attr), or_empty(b->number_attr)) == 0;
}

static size_t compare_args(const char *op, const char *side, const struct tare_op_arg *ours, size_t n_ours,
                           const struct tare_op_arg *theirs, size_t n_theirs) {
    size_t bad = 0;
    if (n_ours != n_theirs) {
        print_error("row %s has %zu %ss, TensorFlow's op has %zu\n", op, n_ours, side, n_theirs);
        return 1;
    }
    for (size_t i = 0; i < n_ours; i++) {
        if (same_arg(&ours[i], &theirs[i])) continue;
        print_error("row %s: %s %zu '%s' is not TensorFlow's '%s' (name, type, number or Ref)\n", op, side, i,
                    ours[i].name, theirs[i].name);
        bad++;
    }
    return bad;
}

static size_t compare_attrs(const struct tare_op_def *ours, const struct tare_op_def *theirs) {
    size_t bad = 0;
    for (size_t i = 0; i < theirs->n_attrs; i++)
        if (!tare_op_def_find_attr(ours, theirs->attrs[i].name, strlen(theirs->attrs[i].name))) {
            print_error("row %s lacks attr '%s'\n", ours->name, theirs->attrs[i].name);
            bad++;
        }
    for (size_t i = 0; i < ours->n_attrs; i++) {
        const struct tare_op_attr *mine = &ours->attrs[i];
        const struct tare_op_attr *their = tare_op_def_find_attr(theirs, mine->name, strlen(mine->name));
        const char *difference = their ? attr_difference(mine, their) : "TensorFlow's op has no such attr";
        if (!difference) continue;
        print_error("row %s, attr '%s': %s\n", ours->name, mine->name, difference);
        bad++;
    }
    return bad;
}

/* Whether the row allows as many values of each attribute as TensorFlow: then it need not be defined again. */
static bool allows_all(const struct tare_op_def *ours, const struct tare_op_def *theirs) {
    for (size_t i = 0; i < ours->n_attrs; i++) {
        const struct tare_attr *mine = ours->attrs[i].allowed;
        const struct tare_op_attr *their =
            tare_op_def_find_attr(theirs, ours->attrs[i].name, strlen(ours->attrs[i].name));
        if (mine && their && (!their->allowed || their->allowed->count != mine->count)) return false;
    }
    return true;
}

static void builtin__rows_agree_with_the_catalogue(void **state) {
    struct tare_opspec_memory memory = { 0 };
    size_t bad = 0, compared = 0;
    (void)state;
    for (const struct tare_catalogue_entry *entry = tare_catalogue; entry->name; entry++) {
        const struct tare_op_def *ours = tare_ops_find(tare_ops_builtin(), entry->name);
        const struct tare_op row = { .name = entry->name,
                                     .inputs = entry->inputs,
                                     .outputs = entry->outputs,
                                     .attrs = entry->attrs,
                                     .flags = entry->is_stateful ? TARE_OP_STATEFUL : 0 };
        struct tare_op_def *theirs;
        if (!ours || !ours->row) continue;
        assert_int_equal(tare_opspec_parse(&theirs, &memory, &row), TARE_OK);
        bad += compare_args(row.name, "input", ours->inputs, ours->n_inputs, theirs->inputs, theirs->n_inputs);
        bad += compare_args(row.name, "output", ours->outputs, ours->n_outputs, theirs->outputs, theirs->n_outputs);
        bad += compare_attrs(ours, theirs);
        if (((ours->row->flags ^ row.flags) & TARE_OP_STATEFUL) != 0) {
            print_error("row %s is %sstateful, TensorFlow's op is%s\n", row.name, row.flags ? "not " : "",
                        row.flags ? "" : " not");
            bad++;
        }
        if (ours->row->attrs && allows_all(ours, theirs)) {
            print_error("row %s repeats its entry in the catalogue\n", row.name);
            bad++;
        }
        compared++;
    }
    tare_opspec_memory_free(&memory);
    if (compared == 0) fail_msg("no row was compared");
    assert_int_equal(bad, 0);
}

static void builtin__catalogue_entries_have_no_row(void **state) {
    const struct tare_op_def *def = tare_ops_find(tare_ops_builtin(), "IteratorGetNext");
    (void)state;
    assert_non_null(def);
    assert_null(def->row);
    assert_true(def->is_stateful);
    assert_int_equal(def->n_outputs, 1);
    assert_string_equal(def->outputs[0].type_list_attr, "output_types");
    assert_null(tare_ops_find(tare_ops_builtin(), "NoSuchOp"));
}

static bool repeats_an_item(const struct tare_attr *allowed) {
    for (size_t i = 0; i < allowed->count; i++)
        for (size_t k = 0; k < i; k++) {
            const union tare_attr_item *a = &allowed->items[i], *b = &allowed->items[k];
            if (allowed->kind == TARE_ATTR_STRING ? a->s.size == b->s.size && !memcmp(a->s.data, b->s.data, a->s.size)
                                                  : a->type == b->type)
                return true;
        }
    return false;
}

static void builtin__attributes_allow_each_value_once(void **state) {
    const struct tare_op_def *const *all;
    struct tare_arena arena = { 0 };
    size_t count, bad = 0, seen = 0;
    (void)state;
    assert_int_equal(tare_ops_list_all(&all, &count, &arena, tare_ops_builtin()), TARE_OK);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < all[i]->n_attrs; k++) {
            const struct tare_op_attr *attr = &all[i]->attrs[k];
            if (!attr->allowed) continue;
            seen++;
            if (!repeats_an_item(attr->allowed)) continue;
            print_error("attr '%s' of %s allows a value twice\n", attr->name, all[i]->name);
            bad++;
        }
    tare_arena_free(&arena);
    assert_true(seen > 500);
    assert_int_equal(bad, 0);
}

static void builtin__infinite_defaults_are_infinite(void **state) {
    const struct tare_op_def *def = tare_ops_find(tare_ops_builtin(), "DebugNumericSummary");
    const struct tare_op_attr *attr;
    (void)state;
    assert_non_null(def);
    attr = tare_op_def_find_attr(def, "lower_bound", strlen("lower_bound"));
    assert_non_null(attr);
    assert_true(attr->default_value->items[0].f < -3e38f);
}

/* The list is sorted and contains each name once, with the innermost definition. */
static void list_all__includes_hidden_and_own_ops(const struct tare_op_registry *registry) {
    const struct tare_op_def *const *all;
    struct tare_arena arena = { 0 };
    size_t count, seen = 0;
    assert_int_equal(tare_ops_list_all(&all, &count, &arena, registry), TARE_OK);
    for (size_t i = 0; i < count; i++) {
        if (i) assert_true(strcmp(all[i - 1]->name, all[i]->name) < 0);
        assert_ptr_equal(tare_ops_find(registry, all[i]->name), all[i]);
        seen += strcmp(all[i]->name, "ZeroOut") == 0 || strcmp(all[i]->name, "MatMul") == 0 ||
                strcmp(all[i]->name, "IteratorGetNext") == 0;
    }
    assert_int_equal(seen, 3);
    tare_arena_free(&arena);
}

static void own_registry__hides_and_extends_its_parent(void **state) {
    static const struct tare_op mine = { .name = "ZeroOut", .inputs = "to_zero: int32", .outputs = "zeroed: int32" };
    static const struct tare_op other = { .name = "MatMul", .inputs = "x: float" };
    struct tare_op_registry *registry = tare_ops_new(tare_ops_builtin());
    const struct tare_op_def *const *list;
    struct tare_arena arena = { 0 };
    size_t builtins, all;
    (void)state;
    assert_non_null(registry);
    assert_int_equal(tare_ops_add(registry, &mine), TARE_OK);
    assert_int_equal(tare_ops_add(registry, &other), TARE_OK);
    assert_ptr_equal(tare_ops_find(registry, "ZeroOut")->row, &mine);
    assert_ptr_equal(tare_ops_find(registry, "MatMul")->row, &other);
    assert_int_equal(tare_ops_find(tare_ops_builtin(), "MatMul")->n_inputs, 2);
    assert_non_null(tare_ops_find(registry, "BatchFunction"));
    assert_int_equal(tare_ops_list_all(&list, &builtins, &arena, tare_ops_builtin()), TARE_OK);
    assert_int_equal(tare_ops_list_all(&list, &all, &arena, registry), TARE_OK);
    tare_arena_free(&arena);
    assert_int_equal(all, builtins + 1);
    list_all__includes_hidden_and_own_ops(registry);
    assert_int_equal(tare_ops_add(registry, &mine), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "Op with name ZeroOut is already registered");
    tare_ops_free(registry);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builtin__every_row_and_entry_parses),
        cmocka_unit_test(builtin__rows_have_inference_and_kernel),
        cmocka_unit_test(builtin__rows_agree_with_the_catalogue),
        cmocka_unit_test(builtin__catalogue_entries_have_no_row),
        cmocka_unit_test(builtin__attributes_allow_each_value_once),
        cmocka_unit_test(builtin__infinite_defaults_are_infinite),
        cmocka_unit_test(own_registry__hides_and_extends_its_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
