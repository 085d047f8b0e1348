/* Choosing the functions that run on the TPU. */
#include "tpu/functions.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "graph/calls.h"

#include <stdio.h>
#include <string.h>

struct tare_graph *tare_signature_function(const struct tare_signature *signature) {
    const struct tare_node *call = signature->n_outputs ? signature->outputs[0].edge.node : NULL;
    struct tare_graph *function;
    if (!call) return NULL;
    for (size_t i = 1; i < signature->n_outputs; i++)
        if (signature->outputs[i].edge.node != call) return NULL;
    function = tare_node_function(call, "f");
    return function ? function : tare_model_find_function(call->graph->model, call->op);
}

static const char *choice_text(char *text, size_t size, const struct tare_tpu_choice *choice) {
    static const char *const fields[] = { "function_alias", "concrete_function_name", "signature_name",
                                          "jit_compile_functions" };
    if (choice->kind == TARE_TPU_BY_JIT)
        snprintf(text, size, "%s: true", fields[choice->kind]);
    else
        snprintf(text, size, "%s: \"%s\"", fields[choice->kind], choice->name);
    return text;
}

/* ---- errors that list the known names ---- */

static tare_status unknown(const char *what, const char *name, const char *plural, const struct tare_strbuf *known,
                           const char *way_out) {
    tare_status status;
    if (known->size)
        status = TARE_FAIL(TARE_NOT_FOUND, "%s \"%s\" does not exist (known %s: %s)", what, name, plural,
                           tare_strbuf_text(known));
    else
        status =
            TARE_FAIL(TARE_NOT_FOUND, "%s \"%s\" does not exist: the model has no %s; %s", what, name, plural, way_out);
    return status;
}

static void list_name(struct tare_strbuf *list, const char *name) {
    struct tare_strbuf quoted = { 0 };
    tare_strbuf_printf(&quoted, "\"%s\"", name);
    if (!strstr(tare_strbuf_text(list), tare_strbuf_text(&quoted))) /* one alias covers several functions */
        tare_strbuf_printf(list, "%s%s", list->size ? ", " : "", tare_strbuf_text(&quoted));
    tare_strbuf_free(&quoted);
}

/* A name that was in the model until its other signatures were quantized. *found: it is one, and the failure says so.
 */
static tare_status refuse_dropped(bool *found, const struct tare_graph_model *model, const char *what, const char *name,
                                  bool is_function) {
    const struct tare_dropped_signature *dropped = NULL;
    struct tare_strbuf keys = { 0 };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < model->n_dropped_signatures && !dropped; i++) {
        const struct tare_dropped_signature *signature = &model->dropped_signatures[i];
        const char *own = is_function ? signature->function : signature->key;
        if (own && strcmp(own, name) == 0) dropped = signature;
    }
    *found = dropped != NULL;
    if (!dropped) return TARE_OK;
    for (size_t i = 0; i < model->n_signatures; i++)
        list_name(&keys, model->signatures[i].key);
    list_name(&keys, dropped->key);
    status = TARE_FAIL(TARE_NOT_FOUND,
                       "%s \"%s\" is not in the quantized model: signature_keys of quantization_options leaves out "
                       "signature \"%s\" (set signature_keys: [%s], each with a data set if there are "
                       "representative_datasets)",
                       what, name, dropped->key, tare_strbuf_text(&keys));
    tare_strbuf_free(&keys);
    return status;
}

static tare_status unknown_alias(const struct tare_graph_model *model, const char *name) {
    struct tare_strbuf known = { 0 };
    tare_status status;
    for (size_t i = 0; i < model->n_aliases; i++)
        list_name(&known, model->aliases[i].alias);
    status = unknown("function_alias", name, "aliases", &known,
                     "export it again with SaveOptions(function_aliases=…), or use concrete_function_name or "
                     "signature_name");
    tare_strbuf_free(&known);
    return status;
}

static tare_status unknown_signature(const struct tare_graph_model *model, const char *name) {
    struct tare_strbuf known = { 0 };
    bool is_dropped;
    tare_status status = refuse_dropped(&is_dropped, model, "signature_name", name, false);
    if (is_dropped) return status;
    for (size_t i = 0; i < model->n_signatures; i++)
        list_name(&known, model->signatures[i].key);
    status = unknown("signature_name", name, "signatures", &known, "use function_alias or concrete_function_name");
    tare_strbuf_free(&known);
    return status;
}

static tare_status unknown_function(const struct tare_graph_model *model, const char *name) {
    enum { SHOWN = 12 };
    struct tare_strbuf known = { 0 };
    bool is_dropped;
    tare_status status = refuse_dropped(&is_dropped, model, "concrete_function_name", name, true);
    if (is_dropped) return status;
    for (size_t i = 0; i < model->n_functions && i < SHOWN; i++)
        list_name(&known, model->functions[i]->name);
    if (model->n_functions > SHOWN) tare_strbuf_puts(&known, ", …");
    status =
        unknown("concrete_function_name", name, "functions", &known, "a TensorFlow 1 model must be migrated first");
    tare_strbuf_free(&known);
    return status;
}

/* ---- finding ---- */

struct finder {
    struct tare_arena *arena;
    const struct tare_graph_model *model;
    struct tare_tpu_function *found;
    size_t count;
};

static tare_status add(struct finder *finder, struct tare_graph *graph, const struct tare_tpu_choice *choice,
                       const char *label) {
    struct tare_tpu_function *grown;
    for (size_t i = 0; i < finder->count; i++) {
        char first[512], second[512];
        if (finder->found[i].graph != graph) continue;
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "function %s is given twice: by %s and by %s", graph->name,
                         choice_text(first, sizeof first, finder->found[i].choice),
                         choice_text(second, sizeof second, choice));
    }
    grown = tare_arena_append(finder->arena, finder->found, finder->count, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    grown[finder->count++] = (struct tare_tpu_function){ graph, choice, label };
    finder->found = grown;
    return TARE_OK;
}

static bool is_copy_of(const struct tare_graph *graph, const char *name) {
    return graph->copied_from && strcmp(graph->copied_from, name) == 0;
}

/* *replaced: all callers of the function have copies of it, and no loader lists it. */
static tare_status is_replaced(bool *replaced, const struct finder *finder, const struct tare_graph *graph) {
    bool *live, copied = false;
    *replaced = false;
    for (size_t i = 0; i < finder->model->n_functions; i++)
        copied |= is_copy_of(finder->model->functions[i], graph->name);
    if (!copied) return TARE_OK;
    TARE_TRY(tare_model_reachable_functions(&live, finder->arena, finder->model, true));
    for (size_t i = 0; i < finder->model->n_functions; i++)
        if (finder->model->functions[i] == graph) *replaced = !live[i];
    return TARE_OK;
}

/* Adds the function of that name, which its alias may label, and its copies. *found: there is one. */
static tare_status add_named(bool *found, struct finder *finder, const char *name, const struct tare_tpu_choice *choice,
                             const char *alias) {
    for (size_t i = 0; i < finder->model->n_functions; i++) {
        struct tare_graph *graph = finder->model->functions[i];
        bool replaced = false;
        if (strcmp(graph->name, name) == 0)
            TARE_TRY(is_replaced(&replaced, finder, graph));
        else if (!is_copy_of(graph, name))
            continue;
        *found = true;
        if (!replaced) TARE_TRY(add(finder, graph, choice, alias ? alias : graph->name));
    }
    return TARE_OK;
}

static tare_status by_alias(struct finder *finder, const struct tare_tpu_choice *choice) {
    bool any = false;
    for (size_t i = 0; i < finder->model->n_aliases; i++) {
        const struct tare_alias *alias = &finder->model->aliases[i];
        if (strcmp(alias->alias, choice->name) != 0) continue;
        TARE_TRY(add_named(&any, finder, alias->function, choice, alias->alias));
    }
    return any ? TARE_OK : unknown_alias(finder->model, choice->name);
}

static tare_status by_signature(struct finder *finder, const struct tare_tpu_choice *choice) {
    const struct tare_signature *signature = tare_model_find_signature(finder->model, choice->name);
    struct tare_graph *graph;
    if (!signature) return unknown_signature(finder->model, choice->name);
    graph = tare_signature_function(signature);
    if (!graph)
        return TARE_FAIL(
            TARE_UNSUPPORTED,
            "The converter does not support TensorFlow 1 models. TensorFlow 1 models should be migrated to "
            "TensorFlow 2 (signature_name \"%s\": its outputs do not come from one function call; wrap what "
            "it computes in a tf.function of a tf.Module and export that)",
            choice->name);
    return add(finder, graph, choice, signature->key);
}

static tare_status by_jit(struct finder *finder, const struct tare_tpu_choice *choice) {
    bool any = false, replaced;
    for (size_t i = 0; i < finder->model->n_functions; i++) {
        struct tare_graph *graph = finder->model->functions[i];
        if (!tare_function_must_compile(graph)) continue;
        any = true;
        TARE_TRY(is_replaced(&replaced, finder, graph));
        if (!replaced) TARE_TRY(add(finder, graph, choice, graph->name));
    }
    return any ? TARE_OK
               : TARE_FAIL(TARE_NOT_FOUND, "jit_compile_functions: no function was traced with jit_compile=True");
}

static tare_status by_name(struct finder *finder, const struct tare_tpu_choice *choice) {
    bool any = false;
    TARE_TRY(add_named(&any, finder, choice->name, choice, NULL));
    return any ? TARE_OK : unknown_function(finder->model, choice->name);
}

static tare_status find(struct finder *finder, const struct tare_tpu_choice *choice) {
    switch (choice->kind) {
    case TARE_TPU_BY_ALIAS:
        return by_alias(finder, choice);
    case TARE_TPU_BY_SIGNATURE:
        return by_signature(finder, choice);
    case TARE_TPU_BY_JIT:
        return by_jit(finder, choice);
    case TARE_TPU_BY_CONCRETE:
        break;
    }
    return by_name(finder, choice);
}

/* ---- indirect calls ---- */

struct call_walk {
    const struct finder *finder;
    const struct tare_graph *wanted; /* the chosen function that is searched for; NULL: any */
    struct tare_map seen;
    bool direct; /* the callees visited now are called by the TPU function where the walk began */
    const struct tare_graph **stack;
    size_t depth;
    const struct tare_tpu_function *inner; /* the first chosen one that it calls indirectly; NULL: none */
};

static const struct tare_tpu_function *chosen(const struct finder *finder, const struct tare_graph *graph) {
    for (size_t i = 0; i < finder->count; i++)
        if (finder->found[i].graph == graph) return &finder->found[i];
    return NULL;
}

static tare_status visit_callee(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct call_walk *walk = arg;
    const struct tare_tpu_function *inner = chosen(walk->finder, callee);
    (void)node;
    if (inner && !walk->direct && !walk->inner && (!walk->wanted || walk->wanted == callee)) walk->inner = inner;
    if (inner || tare_map_get(&walk->seen, callee->name)) return TARE_OK;
    walk->stack[walk->depth++] = callee;
    return tare_map_set(&walk->seen, callee->name, callee) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status visit_graph(struct call_walk *walk, const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        TARE_TRY(tare_node_each_function(graph->nodes[i], visit_callee, walk));
    return TARE_OK;
}

static tare_status find_inner(const struct tare_tpu_function **out, const struct finder *finder,
                              const struct tare_graph *from, const struct tare_graph *wanted) {
    struct call_walk walk = { .finder = finder, .wanted = wanted, .direct = true };
    tare_status status;
    walk.stack = TARE_NEW_ARRAY(finder->arena, const struct tare_graph *, finder->model->n_functions + 1);
    if (!walk.stack) return TARE_NO_MEMORY;
    status = visit_graph(&walk, from);
    walk.direct = false;
    while (walk.depth && status == TARE_OK && !walk.inner)
        status = visit_graph(&walk, walk.stack[--walk.depth]);
    tare_map_free(&walk.seen);
    *out = walk.inner;
    return status;
}

/* The functions of the entry which chose `inner` that no TPU function calls indirectly, as entries of their own. */
static tare_status list_outer(struct tare_strbuf *out, const struct finder *finder,
                              const struct tare_tpu_function *inner) {
    for (size_t i = 0; i < finder->count; i++) {
        const struct tare_tpu_function *function = &finder->found[i], *called = NULL;
        if (function->choice != inner->choice) continue;
        for (size_t f = 0; f < finder->count && !called; f++)
            TARE_TRY(find_inner(&called, finder, finder->found[f].graph, function->graph));
        if (!called)
            tare_strbuf_printf(out, " tpu_functions { concrete_function_name: \"%s\" }", function->graph->name);
    }
    return TARE_OK;
}

/* What `inner` computes for its caller is on the TPU without an entry of its own. One entry may have chosen other
 * functions as well: an alias of several traces, jit_compile_functions. */
static tare_status refuse_indirect(const struct finder *finder, const struct tare_graph *from,
                                   const struct tare_tpu_function *inner) {
    struct tare_strbuf outer = { 0 };
    char entry[512];
    tare_status status = list_outer(&outer, finder, inner);
    choice_text(entry, sizeof entry, inner->choice);
    if (status == TARE_OK)
        status = TARE_FAIL(
            TARE_INVALID_ARGUMENT,
            "Unable to place both \"%s\" and \"%s\" on the TPU because \"%s\" indirectly calls \"%s\". This "
            "behavior is unsupported because it can cause invalid graphs to be generated. (%s the entry of %s%s%s: the "
            "TPU computes what \"%s\" calls)",
            from->name, inner->graph->name, from->name, inner->graph->name, outer.size ? "replace" : "leave out", entry,
            outer.size ? " by" : "", tare_strbuf_text(&outer), from->name);
    tare_strbuf_free(&outer);
    return status;
}

static tare_status check_indirect_calls(const struct finder *finder) {
    for (size_t i = 0; i < finder->count; i++) {
        const struct tare_tpu_function *inner;
        TARE_TRY(find_inner(&inner, finder, finder->found[i].graph, NULL));
        if (inner) return refuse_indirect(finder, finder->found[i].graph, inner);
    }
    return TARE_OK;
}

tare_status tare_tpu_find_functions(struct tare_tpu_function **out, size_t *count, struct tare_arena *arena,
                                    const struct tare_graph_model *model, const struct tare_tpu_choice *choices,
                                    size_t n_choices) {
    struct finder finder = { .arena = arena, .model = model };
    for (size_t i = 0; i < n_choices; i++)
        TARE_TRY(find(&finder, &choices[i]));
    TARE_TRY(check_indirect_calls(&finder));
    *out = finder.found;
    *count = finder.count;
    return TARE_OK;
}
