/* tare inspect: what is in a SavedModel. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/plugins.h"
#include "convert/saved_model.h"
#include "graph/calls.h"
#include "graph/op.h"
#include "graph/session.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inspect_options {
    const char *model, *signature, *graph;
    bool functions, ops, variables, json;
    struct tare_option_list plugins;
};

static const struct tare_option rows[] = {
    { .name = "functions", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct inspect_options, functions),
      .help = "list every function with its arguments and results" },
    { .name = "graph", .kind = TARE_OPTION_STRING, .offset = offsetof(struct inspect_options, graph),
      .placeholder = "FUNCTION", .help = "list the nodes of one function as [inputs] -> name" },
    { .name = "ops", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct inspect_options, ops),
      .help = "count the ops that the signatures reach" },
    { .name = "variables", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct inspect_options, variables),
      .help = "list the variables with their checkpoint keys" },
    { .name = "signature", .kind = TARE_OPTION_STRING, .offset = offsetof(struct inspect_options, signature),
      .placeholder = "S", .help = "show this signature only" },
    { .name = "json", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct inspect_options, json),
      .help = "write JSON" },
    TARE_PLUGIN_OPTION(struct inspect_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { .name = "MODEL", .offset = offsetof(struct inspect_options, model), .help = "SavedModel directory",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = { "tare inspect my_model", "tare inspect my_model --functions --variables", NULL };
static const struct tare_option_set set = {
    .program = "tare inspect",
    .summary = "Shows signatures, aliases, functions, ops and variables of a SavedModel, the ops that cannot be run "
               "here, and what could be quantized.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* ---- counting ops ---- */

struct op_count {
    const char *op;
    size_t count;
};

struct op_counts {
    struct tare_arena arena;
    struct tare_map by_name;
    struct op_count **items;
    size_t count, capacity;
};

static tare_status count_op(struct op_counts *counts, const struct tare_node *node) {
    struct op_count *entry = tare_map_get(&counts->by_name, node->op);
    if (!entry) {
        entry = TARE_NEW(&counts->arena, struct op_count);
        if (!entry || !TARE_GROW(counts->items, counts->count, counts->capacity)) return TARE_NO_MEMORY;
        entry->op = node->op;
        counts->items[counts->count++] = entry;
        if (!tare_map_set(&counts->by_name, entry->op, entry)) return TARE_NO_MEMORY;
    }
    entry->count++;
    return TARE_OK;
}

/* Main-graph nodes below the signatures' outputs. */
static tare_status count_main(struct op_counts *counts, const struct tare_model *model, const char *only) {
    bool *seen = TARE_NEW_ARRAY(&counts->arena, bool, model->main->n_nodes + 1);
    struct tare_node **stack = TARE_NEW_ARRAY(&counts->arena, struct tare_node *, model->main->n_nodes + 1);
    size_t depth = 0;
    if (!seen || !stack) return TARE_NO_MEMORY;
    for (size_t s = 0; s < model->n_signatures; s++) {
        const struct tare_signature *signature = &model->signatures[s];
        if (only && strcmp(signature->key, only) != 0) continue;
        for (size_t i = 0; i < signature->n_outputs; i++) {
            struct tare_node *node = signature->outputs[i].edge.node;
            if (!node || seen[node->position]) continue;
            seen[node->position] = true;
            stack[depth++] = node;
        }
    }
    while (depth) {
        const struct tare_node *node = stack[--depth];
        TARE_TRY(count_op(counts, node));
        for (size_t i = 0; i < node->n_inputs + node->n_controls; i++) {
            struct tare_node *before = i < node->n_inputs ? node->inputs[i].node : node->controls[i - node->n_inputs];
            if (seen[before->position]) continue;
            seen[before->position] = true;
            stack[depth++] = before;
        }
    }
    return TARE_OK;
}

static int by_count(const void *a, const void *b) {
    const struct op_count *x = *(struct op_count *const *)a, *y = *(struct op_count *const *)b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->op, y->op);
}

static tare_status count_ops(struct op_counts *counts, const struct tare_model *model, const char *only) {
    bool *live;
    TARE_TRY(count_main(counts, model, only));
    TARE_TRY(tare_model_reachable_functions(&live, &counts->arena, model, false));
    for (size_t f = 0; f < model->n_functions; f++)
        for (size_t i = 0; live[f] && i < model->functions[f]->n_nodes; i++)
            TARE_TRY(count_op(counts, model->functions[f]->nodes[i]));
    qsort(counts->items, counts->count, sizeof *counts->items, by_count);
    return TARE_OK;
}

static void free_counts(struct op_counts *counts) {
    tare_map_free(&counts->by_name);
    tare_free(counts->items);
    tare_arena_free(&counts->arena);
}

static size_t count_named(const struct op_counts *counts, const char *op) {
    const struct op_count *entry = tare_map_get(&counts->by_name, op);
    return entry ? entry->count : 0;
}

static size_t quantizable(const struct op_counts *counts) {
    static const char *const ops[] = { "Conv2D", "DepthwiseConv2dNative", "Conv3D", "MatMul", "BatchMatMulV2",
                                       "Einsum", "GatherV2" };
    size_t total = 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) total += count_named(counts, ops[i]);
    return total;
}

/* ---- text ---- */

static void print_bindings(const char *title, const struct tare_binding *bindings, size_t count) {
    char shape[TARE_SHAPE_TEXT_SIZE];
    size_t width = 0;
    for (size_t i = 0; i < count; i++) width = strlen(bindings[i].key) > width ? strlen(bindings[i].key) : width;
    for (size_t i = 0; i < count; i++)
        printf("  %-7s %-*s  %-8s %s%s\n", i ? "" : title, (int)width, bindings[i].key,
               tare_dtype_name(bindings[i].dtype), tare_shape_text(shape, &bindings[i].shape),
               bindings[i].kind == TARE_BINDING_SPARSE ? "  (sparse)" : "");
}

static void print_signatures(const struct tare_model *model, const char *only) {
    for (size_t i = 0; i < model->n_signatures; i++) {
        const struct tare_signature *signature = &model->signatures[i];
        if (only && strcmp(signature->key, only) != 0) continue;
        printf("\nsignature %s\n", signature->key);
        print_bindings("inputs", signature->inputs, signature->n_inputs);
        print_bindings("outputs", signature->outputs, signature->n_outputs);
    }
}

static void print_aliases(const struct tare_model *model) {
    if (!model->n_aliases) return;
    printf("\nfunction aliases\n");
    for (size_t i = 0; i < model->n_aliases; i++)
        printf("  %-20s %s\n", model->aliases[i].alias, model->aliases[i].function);
}

static double megabytes(size_t bytes) { return (double)bytes / 1e6; }

static void print_heading(const struct tare_model *model) {
    struct tare_saved_model_info info;
    tare_saved_model_info(&info, model);
    printf("%s\n", model->path);
    printf("  format      saved_model.%s, %.2f MB%s\n", info.format, megabytes(info.file_size),
           info.is_tf1 ? ", TensorFlow 1 style (no object graph)" : "");
    printf("  TensorFlow  %s\n", info.tensorflow_version && *info.tensorflow_version ? info.tensorflow_version : "unknown");
    printf("  tags        %s\n", info.tags && *info.tags ? info.tags : "(none)");
    printf("  variables   %zu, checkpoint of %zu tensors, %.2f MB\n", model->n_variables, info.checkpoint_tensors,
           megabytes(info.checkpoint_bytes));
    printf("  functions   %zu\n", model->n_functions);
}

static void print_function(const struct tare_model *model, const struct tare_graph *graph) {
    const char *alias = tare_model_alias_of(model, graph->name);
    printf("\n%s%s%s%s\n", graph->name, alias ? "  (alias " : "", alias ? alias : "", alias ? ")" : "");
    for (size_t i = 0; i < graph->n_args; i++)
        printf("    %-40s %s\n", graph->args[i]->name, tare_dtype_name(graph->args[i]->output_dtypes[0]));
    for (size_t i = 0; i < graph->n_returns; i++)
        printf("  -> %-40s %s\n", graph->returns[i].name, tare_dtype_name(graph->returns[i].dtype));
}

static tare_status print_graph(const struct tare_model *model, const char *name) {
    const struct tare_graph *graph = *name ? tare_model_find_function(model, name) : model->main;
    for (size_t i = 0; i < model->n_aliases && !graph; i++)
        if (strcmp(model->aliases[i].alias, name) == 0) graph = tare_model_find_function(model, model->aliases[i].function);
    if (!graph) return TARE_FAIL(TARE_NOT_FOUND, "--graph: no function is named '%s'", name);
    for (size_t i = 0; i < graph->n_args; i++) printf("[] -> %s\n", graph->args[i]->name);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        printf("[");
        for (size_t k = 0; k < node->n_inputs; k++)
            printf("%s'%s:%d'", k ? ", " : "", node->inputs[k].node->name, node->inputs[k].index);
        printf("] -> %s\n", node->name);
    }
    return TARE_OK;
}

static void print_variables(const struct tare_model *model) {
    char shape[TARE_SHAPE_TEXT_SIZE];
    printf("\nvariables\n");
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct tare_variable *variable = &model->variables[i];
        printf("  %-40s %-8s %-16s %s\n", variable->shared_name, tare_dtype_name(variable->dtype),
               tare_shape_text(shape, &variable->shape), variable->key ? variable->key : "(no value in the checkpoint)");
    }
}

static tare_status print_ops(const struct tare_model *model, const struct inspect_options *options) {
    struct op_counts counts = { 0 };
    struct tare_strbuf missing = { 0 };
    tare_status status = count_ops(&counts, model, options->signature);
    size_t n_missing = status == TARE_OK ? tare_session_missing_ops(model, NULL, &missing) : 0;
    if (status == TARE_OK) {
        printf("\nops reached from the signatures: %zu kinds, %zu quantizable nodes\n", counts.count, quantizable(&counts));
        for (size_t i = 0; options->ops && i < counts.count; i++)
            printf("  %6zu %s\n", counts.items[i]->count, counts.items[i]->op);
    }
    if (n_missing) printf("ops that the interpreter lacks: %zu\n%s", n_missing, tare_strbuf_text(&missing));
    tare_strbuf_free(&missing);
    free_counts(&counts);
    return status;
}

static tare_status print_text(const struct tare_model *model, const struct inspect_options *options) {
    if (options->graph) return print_graph(model, options->graph);
    print_heading(model);
    print_aliases(model);
    print_signatures(model, options->signature);
    TARE_TRY(print_ops(model, options));
    if (options->variables) print_variables(model);
    for (size_t i = 0; options->functions && i < model->n_functions; i++) print_function(model, model->functions[i]);
    return TARE_OK;
}

/* ---- JSON ---- */

static json_t *shape_json(const struct tare_shape *shape) {
    json_t *array;
    if (shape->rank < 0) return json_null();
    array = json_array();
    for (int i = 0; i < shape->rank; i++) json_array_append_new(array, json_integer(shape->dims[i]));
    return array;
}

static json_t *bindings_json(const struct tare_binding *bindings, size_t count) {
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++)
        json_object_set_new(object, bindings[i].key,
                            json_pack("{s:s, s:o}", "dtype", tare_dtype_name(bindings[i].dtype), "shape",
                                      shape_json(&bindings[i].shape)));
    return object;
}

static json_t *signatures_json(const struct tare_model *model, const char *only) {
    json_t *object = json_object();
    for (size_t i = 0; i < model->n_signatures; i++) {
        const struct tare_signature *signature = &model->signatures[i];
        if (only && strcmp(signature->key, only) != 0) continue;
        json_object_set_new(object, signature->key,
                            json_pack("{s:o, s:o}", "inputs", bindings_json(signature->inputs, signature->n_inputs),
                                      "outputs", bindings_json(signature->outputs, signature->n_outputs)));
    }
    return object;
}

static json_t *aliases_json(const struct tare_model *model) {
    json_t *object = json_object();
    for (size_t i = 0; i < model->n_aliases; i++)
        json_object_set_new(object, model->aliases[i].function, json_string(model->aliases[i].alias));
    return object;
}

static json_t *variables_json(const struct tare_model *model) {
    json_t *array = json_array();
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct tare_variable *variable = &model->variables[i];
        json_array_append_new(array, json_pack("{s:s, s:s, s:o, s:s?}", "name", variable->shared_name, "dtype",
                                               tare_dtype_name(variable->dtype), "shape", shape_json(&variable->shape),
                                               "key", variable->key));
    }
    return array;
}

static json_t *functions_json(const struct tare_model *model) {
    json_t *array = json_array();
    for (size_t i = 0; i < model->n_functions; i++) json_array_append_new(array, json_string(model->functions[i]->name));
    return array;
}

static tare_status print_json(const struct tare_model *model, const struct inspect_options *options) {
    struct tare_saved_model_info info;
    struct op_counts counts = { 0 };
    json_t *root, *ops = json_object();
    tare_status status = count_ops(&counts, model, options->signature);
    tare_saved_model_info(&info, model);
    for (size_t i = 0; i < counts.count; i++)
        json_object_set_new(ops, counts.items[i]->op, json_integer((json_int_t)counts.items[i]->count));
    root = json_pack("{s:s, s:s?, s:s?, s:s?, s:b, s:o, s:o, s:o, s:o, s:i, s:o}", "path", model->path, "format",
                     info.format, "tensorflow_version", info.tensorflow_version, "tags", info.tags, "tf1", info.is_tf1,
                     "signatures", signatures_json(model, options->signature), "aliases", aliases_json(model), "variables",
                     variables_json(model), "ops", ops, "quantizable", (int)quantizable(&counts), "functions",
                     functions_json(model));
    if (root) json_dumpf(root, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(root);
    free_counts(&counts);
    return status;
}

static tare_status check_signature(const struct tare_model *model, const char *key) {
    if (!key || tare_model_find_signature(model, key)) return TARE_OK;
    return TARE_FAIL(TARE_NOT_FOUND, "%s: there is no signature '%s'", model->path, key);
}

static tare_status run(int argc, char *const *argv) {
    struct inspect_options options;
    struct tare_model *model = NULL;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_saved_model_load(&model, options.model, &(struct tare_saved_model_options){ .without_values = true, .ops = tare_command_ops() }));
    TARE_CHECK(check_signature(model, options.signature));
    status = options.json ? print_json(model, &options) : print_text(model, &options);
done:
    tare_model_free(model);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_inspect = {
    .name = "inspect", .summary = "show what is in a SavedModel", .run = run, .options = &set
};
