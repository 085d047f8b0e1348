/* Selects a concrete function of a model by name and argument types, as tf.saved_model.load does, and builds a
 * signature that calls it. */
#include "eval/function_signature.h"
#include "base/ascii.h"
#include "base/strbuf.h"
#include "convert/call_signature.h"
#include "convert/python_functions.h"
#include "datasets/source.h"
#include "eval/model_inputs.h"
#include "graph/calls.h"

#include <string.h>

/* ---- names ---- */

/* The function's name in the Python program, taken from "__inference_NAME_42" or "__forward_NAME_42". */
static bool has_program_name(const char *function, const char *name) {
    static const char *const stems[] = { "__inference_", "__forward_" };
    const size_t size = strlen(name);
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
        const size_t stem = strlen(stems[i]);
        if (strncmp(function, stems[i], stem) != 0 || strncmp(function + stem, name, size) != 0) continue;
        const char *rest = function + stem + size;
        if (*rest != '_' || !rest[1]) continue;
        while (tare_is_digit(*++rest)) {
        }
        if (!*rest) return true;
    }
    return false;
}

static bool has_alias(const struct tare_graph_model *model, const struct tare_graph *function, const char *name) {
    for (size_t i = 0; i < model->n_aliases; i++)
        if (strcmp(model->aliases[i].function, function->name) == 0 && strcmp(model->aliases[i].alias, name) == 0)
            return true;
    return false;
}

/* Whether the object graph has the functions as an attribute, "layer.call" for the path ".layer.call". */
static bool has_path(const struct tare_function_group *group, const char *name) {
    for (size_t i = 0; i < group->n_paths; i++)
        if (*group->paths[i] == '.' && strcmp(group->paths[i] + 1, name) == 0) return true;
    return false;
}

static const struct tare_concrete *concrete_of(const struct tare_graph_model *model,
                                               const struct tare_graph *function) {
    for (size_t i = 0; i < model->n_concretes; i++)
        if (model->concretes[i].graph == function) return &model->concretes[i];
    return NULL;
}

/* Number of arguments passed by a caller; the rest are captures. */
static size_t open_arguments(const struct tare_graph_model *model, const struct tare_graph *function) {
    const struct tare_concrete *concrete = concrete_of(model, function);
    const size_t bound = concrete ? concrete->n_bound : 0;
    return bound < function->n_args ? function->n_args - bound : 0;
}

/* A function that a call could mean, with what the object graph records of its arguments. */
struct candidate {
    struct tare_graph *function;
    size_t n_open; /* arguments that a caller passes */
    struct tare_call_signature call;
    size_t group; /* the same for the traces of one function of the object graph, in its order; 0: of none */
};

static tare_status candidate_of(struct candidate *out, struct tare_arena *arena, const struct tare_graph_model *model,
                                struct tare_graph *function) {
    *out = (struct candidate){ .function = function, .n_open = open_arguments(model, function) };
    return tare_call_signature_make(&out->call, arena, function);
}

/* The shape declared in the function; where it declares none, that of its input_signature in the object graph. */
static struct tare_shape argument_shape(const struct candidate *candidate, size_t i) {
    const struct tare_shape declared = tare_function_argument_shape(candidate->function, i);
    if (declared.rank < 0 && i < candidate->call.n_shapes) return candidate->call.shapes[i];
    return declared;
}

static void describe(struct tare_strbuf *text, const struct candidate *candidate) {
    const struct tare_graph *function = candidate->function;
    char shape_text[TARE_SHAPE_TEXT_SIZE];
    tare_strbuf_printf(text, "%s(", function->name);
    for (size_t i = 0; i < candidate->n_open; i++) {
        const struct tare_shape shape = argument_shape(candidate, i);
        tare_strbuf_printf(text, "%s%s: %s%s", i ? ", " : "", function->args[i]->name,
                           tare_dtype_name(tare_dtype_base(function->args[i]->output_dtypes[0])),
                           tare_shape_text(shape_text, &shape));
    }
    for (size_t i = 0; i < candidate->call.n_bound; i++)
        tare_strbuf_printf(text, "%s%s=%s", i || candidate->n_open ? ", " : "", candidate->call.bound[i].name,
                           candidate->call.bound[i].text);
    tare_strbuf_putc(text, ')');
}

static void describe_given(struct tare_strbuf *text, const struct tare_call_arguments *given) {
    char shape_text[TARE_SHAPE_TEXT_SIZE];
    tare_strbuf_putc(text, '(');
    for (size_t i = 0; i < given->count; i++)
        tare_strbuf_printf(text, "%s%s: %s%s", i ? ", " : "", given->keys[i], tare_dtype_name(given->values[i].dtype),
                           tare_shape_text(shape_text, &given->values[i].shape));
    tare_strbuf_putc(text, ')');
}

/* ---- picking ---- */

static const struct tare_tensor *find_given(const struct tare_call_arguments *given, const char *key) {
    for (size_t i = 0; i < given->count; i++)
        if (strcmp(given->keys[i], key) == 0) return &given->values[i];
    return NULL;
}

/* The value of argument i of a candidate; NULL: it is missing. */
static const struct tare_tensor *value_of(const struct candidate *candidate, size_t i,
                                          const struct tare_call_arguments *given) {
    const char *argument = candidate->function->args[i]->name;
    const struct tare_tensor *value = find_given(given, argument);
    if (value || !given->is_record || candidate->n_open != 1 || tare_feedback_feeds(given->feedback, argument))
        return value;
    const struct tare_sample record = { .keys = (const char **)(uintptr_t)given->keys,
                                        .values = (struct tare_tensor *)(uintptr_t)given->values,
                                        .count = given->count };
    return tare_record_only_value(&record);
}

static const char *spec_name(int dtype) {
    const struct tare_dtype_info *info = tare_dtype_get(dtype);
    return info ? info->spec_name : "?";
}

/* With both lists: a misspelled name is among what is given. */
static tare_status refuse_missing(const struct candidate *candidate, size_t i,
                                  const struct tare_call_arguments *given) {
    struct tare_strbuf expected = { 0 }, got = { 0 };
    tare_status status;
    describe(&expected, candidate);
    describe_given(&got, given);
    status = TARE_FAIL(TARE_INVALID_ARGUMENT,
                       "cannot compute %s as input #%zu(zero-based), '%s', is missing (expected %s, got %s)",
                       candidate->function->name, i, candidate->function->args[i]->name, tare_strbuf_text(&expected),
                       tare_strbuf_text(&got));
    tare_strbuf_free(&expected);
    tare_strbuf_free(&got);
    return status;
}

static tare_status check_argument(const struct candidate *candidate, size_t i, const struct tare_tensor *value) {
    const struct tare_graph *function = candidate->function;
    const struct tare_node *arg = function->args[i];
    const int expected = tare_dtype_base(arg->output_dtypes[0]);
    const struct tare_shape shape = argument_shape(candidate, i);
    char wanted_text[TARE_SHAPE_TEXT_SIZE], got_text[TARE_SHAPE_TEXT_SIZE];
    if (value->dtype != expected)
        return TARE_FAIL(TARE_TYPE,
                         "cannot compute %s as input #%zu(zero-based) was expected to be a %s tensor but is a %s "
                         "tensor (Python inputs incompatible with input_signature)",
                         function->name, i, spec_name(expected), spec_name(value->dtype));
    if (!tare_shape_compatible(&value->shape, &shape))
        return TARE_FAIL(
            TARE_SHAPE,
            "cannot compute %s as input #%zu(zero-based) was expected to have shape %s but has shape %s (Python inputs "
            "incompatible with input_signature)",
            function->name, i, tare_shape_text(wanted_text, &shape), tare_shape_text(got_text, &value->shape));
    return TARE_OK;
}

static tare_status check_arguments(const struct candidate *candidate, const struct tare_call_arguments *given) {
    for (size_t i = 0; i < candidate->n_open; i++) {
        const char *argument = candidate->function->args[i]->name;
        const struct tare_tensor *value = value_of(candidate, i, given);
        if (value) TARE_TRY(check_argument(candidate, i, value));
        if (!value && !tare_feedback_feeds(given->feedback, argument)) return refuse_missing(candidate, i, given);
    }
    for (size_t i = 0; i < given->count; i++) {
        const struct tare_bound_argument *bound = tare_call_signature_find_bound(&candidate->call, given->keys[i]);
        if (bound) TARE_TRY(tare_call_signature_check_bound(&candidate->call, bound, &given->values[i]));
    }
    return TARE_OK;
}

/* Specificity of a function's argument types: one for each known rank, one for each known dimension. */
static size_t strictness(const struct candidate *candidate) {
    size_t known = 0;
    for (size_t i = 0; i < candidate->n_open; i++) {
        const struct tare_shape shape = argument_shape(candidate, i);
        known += shape.rank >= 0;
        for (int k = 0; k < shape.rank; k++)
            known += shape.dims[k] >= 0;
    }
    return known;
}

struct candidates {
    struct candidate *items;
    size_t count;
};

static tare_status no_such_function(const struct tare_graph_model *model, const char *name) {
    enum { NAMED = 20 };
    struct tare_strbuf names = { 0 };
    size_t named = 0;
    tare_status status;
    for (size_t i = 0; i < model->n_aliases && named < NAMED; i++, named++)
        tare_strbuf_printf(&names, "%s%s", named ? ", " : "", model->aliases[i].alias);
    for (size_t i = 0; i < model->n_concretes && named < NAMED; i++, named++)
        tare_strbuf_printf(&names, "%s%s", named ? ", " : "", model->concretes[i].graph->name);
    status = TARE_FAIL(TARE_NOT_FOUND, "there is no function '%s' (the model has %s%s)", name,
                       named ? tare_strbuf_text(&names) : "none", named == NAMED ? ", …" : "");
    tare_strbuf_free(&names);
    return status;
}

static tare_status list_candidates(const char *what, const char *name, const struct candidates *candidates,
                                   const struct tare_call_arguments *given) {
    struct tare_strbuf text = { 0 }, got = { 0 };
    tare_status status;
    describe_given(&got, given);
    for (size_t i = 0; i < candidates->count; i++) {
        tare_strbuf_puts(&text, i ? "; " : "");
        describe(&text, &candidates->items[i]);
    }
    status = TARE_FAIL(TARE_INVALID_ARGUMENT, "%s '%s' (got %s, the candidates are %s)", what, name,
                       tare_strbuf_text(&got), tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    tare_strbuf_free(&got);
    return status;
}

/* Whether a call without the other bound arguments means this function: they have their default values. */
static bool is_default(const struct candidate *candidate, const struct tare_call_arguments *given) {
    for (size_t i = 0; i < candidate->call.n_bound; i++)
        if (!candidate->call.bound[i].is_default && !find_given(given, candidate->call.bound[i].name)) return false;
    return true;
}

static size_t keep_defaults(struct candidate *items, size_t count, const struct tare_call_arguments *given) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (is_default(&items[i], given)) items[kept++] = items[i];
    return kept;
}

/* Of the traces of one function, the first, as in TensorFlow. */
static size_t keep_first(const struct candidate *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!items[i].group || items[i].group != items[0].group) return count;
    return 1;
}

static size_t keep_strictest(struct candidate *items, size_t count) {
    size_t kept = 0, best = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t strict = strictness(&items[i]);
        if (strict > best) kept = 0;
        if (!kept || strict == best) items[kept++] = items[i];
        if (strict > best) best = strict;
    }
    return kept;
}

static tare_status pick(struct tare_graph **out, const char *name, const struct candidates *all,
                        struct candidates *fitting, const struct tare_call_arguments *given) {
    size_t defaults;
    for (size_t i = 0; i < all->count; i++) {
        const tare_status status = check_arguments(&all->items[i], given);
        if (status != TARE_OK && all->count == 1) return status;
        if (status == TARE_OK) fitting->items[fitting->count++] = all->items[i];
    }
    if (!fitting->count) return list_candidates("no matching concrete function of", name, all, given);
    tare_error_clear();
    defaults = keep_defaults(fitting->items, fitting->count, given);
    if (defaults) fitting->count = keep_first(fitting->items, defaults);
    fitting->count = keep_strictest(fitting->items, fitting->count);
    if (fitting->count > 1) return list_candidates("ambiguous call of", name, fitting, given);
    *out = fitting->items[0].function;
    return TARE_OK;
}

/* What a name can be, in the order in which they are tried. */
enum naming { BY_ALIAS, BY_PATH, BY_PROGRAM, NAMINGS };

static bool is_called(const struct tare_graph_model *model, const struct tare_function_group *group,
                      const struct tare_graph *function, const char *name, enum naming naming) {
    if (naming == BY_ALIAS) return has_alias(model, function, name);
    return naming == BY_PATH ? has_path(group, name) : has_program_name(function->name, name);
}

static tare_status add_called(struct candidates *out, struct tare_arena *arena, const struct tare_function_list *list,
                              const char *name, enum naming naming) {
    for (size_t g = 0; g < list->n_groups; g++)
        for (size_t i = 0; i < list->groups[g]->n_traces; i++) {
            const struct tare_trace_source *trace = &list->groups[g]->traces[i];
            struct candidate *candidate = &out->items[out->count];
            if (!is_called(list->model, list->groups[g], trace->graph, name, naming)) continue;
            *candidate = (struct candidate){ .function = (struct tare_graph *)trace->graph,
                                             .n_open = open_arguments(list->model, trace->graph),
                                             .group = trace->spec ? g + 1 : 0 };
            TARE_TRY(tare_call_signature_of_trace(&candidate->call, arena, list->groups[g], i));
            out->count++;
        }
    return TARE_OK;
}

/* The functions that `name` can mean. */
static tare_status find_candidates(struct candidates *out, struct tare_arena *arena,
                                   const struct tare_graph_model *model, const char *name) {
    struct tare_graph *exact = tare_model_find_function(model, name);
    struct tare_function_list list;
    tare_status status = TARE_OK;
    *out = (struct candidates){ TARE_NEW_ARRAY(arena, struct candidate, model->n_functions + 1), 0 };
    if (!out->items) return TARE_NO_MEMORY;
    if (exact) return candidate_of(&out->items[out->count++], arena, model, exact);
    TARE_TRY(tare_function_list_make(&list, model));
    for (enum naming naming = BY_ALIAS; naming < NAMINGS && !out->count && status == TARE_OK; naming++)
        status = add_called(out, arena, &list, name, naming);
    tare_function_list_free(&list);
    return status;
}

static int argument_dtype(const struct candidate *candidate, const char *argument) {
    const struct tare_graph *function = candidate->function;
    for (size_t i = 0; i < candidate->n_open; i++)
        if (strcmp(function->args[i]->name, argument) == 0) return tare_dtype_base(function->args[i]->output_dtypes[0]);
    return 0;
}

tare_status tare_function_argument_dtype(int *out, const struct tare_graph_model *model, const char *name,
                                         const char *argument) {
    struct tare_arena scratch = { 0 };
    struct candidates all;
    const tare_status status = find_candidates(&all, &scratch, model, name);
    *out = 0;
    for (size_t i = 0; i < all.count && status == TARE_OK; i++) {
        const int dtype = argument_dtype(&all.items[i], argument);
        if (*out && dtype && dtype != *out) {
            *out = 0;
            break;
        }
        if (dtype) *out = dtype;
    }
    tare_arena_free(&scratch);
    return status;
}

tare_status tare_function_pick(struct tare_graph **out, const struct tare_graph_model *model, const char *name,
                               const struct tare_call_arguments *arguments) {
    struct tare_arena scratch = { 0 };
    struct candidates fitting = { TARE_NEW_ARRAY(&scratch, struct candidate, model->n_functions + 1), 0 }, all;
    tare_status status = find_candidates(&all, &scratch, model, name);
    if (status == TARE_OK && !fitting.items) status = TARE_NO_MEMORY;
    if (status == TARE_OK)
        status = all.count ? pick(out, name, &all, &fitting, arguments) : no_such_function(model, name);
    tare_arena_free(&scratch);
    return status;
}

tare_status tare_function_pick_for(struct tare_graph **out, const struct tare_graph_model *model, const char *name,
                                   const char *const *data, size_t n_data, const struct tare_dataset_spec *spec,
                                   const struct tare_feedback *feedback) {
    const struct tare_source_options first = { .limit = 1, .spec = spec };
    struct tare_sample sample = { 0 };
    struct tare_source *source;
    struct tare_record where;
    bool end = false;
    TARE_TRY(tare_source_new(&source, data, n_data, &first));
    tare_status status = tare_source_next(&sample, &where, &end, source, NULL, NULL);
    const struct tare_call_arguments given = { sample.keys, sample.values, sample.count, feedback, true };
    if (status == TARE_OK) status = tare_function_pick(out, model, name, &given);
    tare_sample_reset(&sample);
    tare_source_free(source);
    return status;
}

tare_status tare_function_find(struct tare_graph **out, const struct tare_graph_model *model, const char *name) {
    static const struct tare_call_arguments none = { 0 };
    struct tare_arena scratch = { 0 };
    struct candidates all;
    const tare_status status = find_candidates(&all, &scratch, model, name);
    *out = NULL;
    if (status == TARE_OK && all.count) {
        keep_defaults(all.items, all.count, &none);
        *out = all.items[0].function;
    }
    tare_arena_free(&scratch);
    return status;
}

tare_status tare_function_binds(bool *out, const struct tare_graph *function, const char *name) {
    struct tare_arena scratch = { 0 };
    struct tare_call_signature call;
    const tare_status status = tare_call_signature_make(&call, &scratch, function);
    *out = status == TARE_OK && tare_call_signature_find_bound(&call, name);
    tare_arena_free(&scratch);
    return status;
}

/* ---- captures ---- */

/* The edge that a call in the main graph passes for an object of the object graph. */
static bool find_passed(struct tare_edge *out, const struct tare_graph_model *model, int object) {
    for (size_t i = 0; i < model->main->n_nodes; i++) {
        const struct tare_node *node = model->main->nodes[i];
        struct tare_graph *callee = node->dead ? NULL : tare_node_function(node, "f");
        const struct tare_concrete *concrete = callee ? concrete_of(model, callee) : NULL;
        if (!concrete || concrete->n_bound > node->n_inputs || node->n_inputs != callee->n_args) continue;
        for (size_t k = 0; k < concrete->n_bound; k++) {
            if (concrete->bound[k] != object) continue;
            *out = node->inputs[node->n_inputs - concrete->n_bound + k];
            return true;
        }
    }
    return false;
}

static bool find_capture(struct tare_edge *out, const struct tare_graph_model *model, int object) {
    for (size_t i = 0; i < model->n_variables; i++)
        if (model->variables[i].object_id == object && model->variables[i].node && !model->variables[i].removed) {
            *out = (struct tare_edge){ model->variables[i].node, 0 };
            return true;
        }
    for (size_t i = 0; i < model->n_object_constants; i++)
        if (model->object_constants[i].object_id == object) {
            *out = (struct tare_edge){ model->object_constants[i].node, 0 };
            return true;
        }
    return find_passed(out, model, object);
}

/* ---- the signature ---- */

static tare_status add_placeholder(struct tare_binding *binding, struct tare_node *call,
                                   const struct candidate *candidate, size_t i) {
    const struct tare_node *arg = candidate->function->args[i];
    struct tare_node *node = tare_graph_add(call->graph, "Placeholder", arg->name);
    const int dtype = tare_dtype_base(arg->output_dtypes[0]);
    const struct tare_shape shape = argument_shape(candidate, i);
    if (!node) return TARE_NO_MEMORY;
    if (dtype == TARE_DT_RESOURCE || dtype == TARE_DT_VARIANT)
        return TARE_FAIL(TARE_UNSUPPORTED, "argument '%s' is a %s: it cannot be given from outside", arg->name,
                         tare_dtype_name(dtype));
    TARE_TRY(tare_node_set_type(node, "dtype", dtype));
    if (shape.rank >= 0) TARE_TRY(tare_node_set_shape(node, "shape", &shape));
    TARE_TRY(tare_node_resolve(node));
    *binding = (struct tare_binding){ .key = arg->name, .dtype = dtype, .shape = shape, .edge = { node, 0 } };
    return tare_node_add_input(call, binding->edge);
}

static tare_status pass_captures(struct tare_node *call, const struct tare_graph_model *model,
                                 const struct tare_graph *function, size_t n_open) {
    const struct tare_concrete *concrete = concrete_of(model, function);
    for (size_t i = n_open; i < function->n_args; i++) {
        const int object = concrete->bound[i - n_open];
        struct tare_edge edge;
        if (!find_capture(&edge, model, object))
            return TARE_FAIL(TARE_UNSUPPORTED, "the captured argument '%s' (object %d) is nowhere in the main graph",
                             function->args[i]->name, object);
        TARE_TRY(tare_node_add_input(call, edge));
    }
    return TARE_OK;
}

static tare_status fill(struct tare_signature *signature, struct tare_graph_model *model,
                        const struct candidate *candidate) {
    struct tare_graph *function = candidate->function;
    struct tare_node *call = tare_graph_add(model->main, function->name, function->name);
    signature->n_inputs = candidate->n_open;
    signature->n_outputs = function->n_returns;
    signature->inputs = TARE_NEW_ARRAY(&model->arena, struct tare_binding, signature->n_inputs + 1);
    signature->outputs = TARE_NEW_ARRAY(&model->arena, struct tare_binding, signature->n_outputs + 1);
    if (!call || !signature->inputs || !signature->outputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < signature->n_inputs; i++)
        TARE_TRY(add_placeholder(&signature->inputs[i], call, candidate, i));
    TARE_TRY(pass_captures(call, model, function, signature->n_inputs));
    TARE_TRY(tare_node_resolve(call));
    for (size_t i = 0; i < signature->n_outputs; i++)
        signature->outputs[i] = (struct tare_binding){ .key = function->returns[i].name,
                                                       .dtype = tare_dtype_base(function->returns[i].dtype),
                                                       .shape = tare_shape_unknown(),
                                                       .edge = { call, (int)i } };
    return TARE_OK;
}

tare_status tare_function_signature(const struct tare_signature **out, struct tare_graph_model *model,
                                    struct tare_graph *function) {
    struct tare_signature *signature = TARE_NEW(&model->arena, struct tare_signature);
    struct candidate candidate;
    if (!signature) return TARE_NO_MEMORY;
    TARE_TRY(candidate_of(&candidate, &model->arena, model, function));
    signature->key = function->name;
    signature->method_name = "";
    TARE_TRY(tare_error_prefix(fill(signature, model, &candidate), "function %s", function->name));
    *out = signature;
    return TARE_OK;
}
