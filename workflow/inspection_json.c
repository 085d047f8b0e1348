/* tare inspect as JSON; docs/json.md lists the keys. */
#include "base/alloc.h"
#include "eval/report/json_text.h"
#include "workflow/inspection.h"
#include "convert/python_functions.h"
#include "convert/origin.h"
#include "convert/saved_model.h"
#include "tpu/suggest.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *text_json(const char *text) {
    return tare_json_text(text ? text : "");
}

static void set(json_t *object, const char *key, json_t *value) {
    tare_json_set(object, key, value);
}

static json_t *shape_json(const struct tare_shape *shape) {
    json_t *array;
    if (shape->rank < 0) return json_null();
    array = json_array();
    for (int i = 0; i < shape->rank; i++)
        json_array_append_new(array, json_integer(shape->dims[i]));
    return array;
}

/* ---- signatures, aliases, variables, ops ---- */

static json_t *bindings_json(const struct tare_binding *bindings, size_t count) {
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++) {
        json_t *binding = json_object();
        set(binding, "dtype", text_json(tare_dtype_name(bindings[i].dtype)));
        set(binding, "shape", shape_json(&bindings[i].shape));
        if (bindings[i].whole) set(binding, "component_of", text_json(bindings[i].whole->kind));
        set(object, bindings[i].key, binding);
    }
    return object;
}

static json_t *signatures_json(const struct tare_graph_model *model, const char *only) {
    json_t *object = json_object();
    for (size_t i = 0; i < model->n_signatures; i++) {
        const struct tare_signature *signature = &model->signatures[i];
        json_t *value;
        if (only && strcmp(signature->key, only) != 0) continue;
        value = json_object();
        set(value, "inputs", bindings_json(signature->inputs, signature->n_inputs));
        set(value, "outputs", bindings_json(signature->outputs, signature->n_outputs));
        set(object, signature->key, value);
    }
    return object;
}

static json_t *aliases_json(const struct tare_graph_model *model) {
    json_t *object = json_object();
    for (size_t i = 0; i < model->n_aliases; i++)
        set(object, model->aliases[i].function, text_json(model->aliases[i].alias));
    return object;
}

static json_t *variables_json(const struct tare_graph_model *model) {
    json_t *array = json_array();
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct tare_variable *variable = &model->variables[i];
        json_t *value = json_object();
        int64_t bytes = inspect_variable_bytes(variable);
        set(value, "name", text_json(variable->shared_name));
        set(value, "dtype", text_json(tare_dtype_name(variable->dtype)));
        set(value, "shape", shape_json(&variable->shape));
        set(value, "bytes", bytes < 0 ? json_null() : json_integer(bytes));
        set(value, "key", variable->key ? text_json(variable->key) : json_null());
        if (variable->slice) set(value, "slice", text_json(variable->slice));
        set(value, "object", variable->object_id < 0 ? json_null() : json_integer(variable->object_id));
        json_array_append_new(array, value);
    }
    return array;
}

static void add_ops(json_t *root, const struct inspect_ops *ops) {
    json_t *counts = json_object(), *not_on_tpu = json_array(), *missing = json_array();
    const char *line = tare_strbuf_text(&ops->missing);
    for (size_t i = 0; i < ops->count; i++) {
        set(counts, ops->items[i]->op, json_integer((json_int_t)ops->items[i]->count));
        if (!ops->items[i]->on_tpu) json_array_append_new(not_on_tpu, text_json(ops->items[i]->op));
    }
    for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t indent = strspn(line, " "), size = strcspn(line + indent, ":\n");
        json_array_append_new(missing, json_stringn(line + indent, size));
        line += indent;
    }
    set(root, "ops", counts);
    set(root, "quantizable", json_integer((json_int_t)ops->quantizable));
    set(root, "missing_ops", missing);
    set(root, "not_on_tpu", not_on_tpu);
    set(root, "tpu_calls", json_integer((json_int_t)ops->tpu_calls));
}

/* ---- functions ---- */

static json_t *texts_json(const char *const *texts, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, text_json(texts[i]));
    return array;
}

static json_t *trace_json(const struct tare_trace *trace) {
    json_t *value = json_object(), *arguments = json_array(), *captures = json_array();
    struct tare_strbuf text = { 0 };
    for (size_t i = 0; i < trace->n_arguments; i++) {
        json_t *argument = json_object();
        set(argument, "name", text_json(trace->arguments[i].name));
        set(argument, "text", text_json(trace->arguments[i].text));
        json_array_append_new(arguments, argument);
    }
    for (size_t i = 0; i < trace->n_captures; i++) {
        json_t *capture = json_object();
        set(capture, "name", text_json(trace->captures[i].name));
        set(capture, "kind", text_json(trace->captures[i].kind));
        set(capture, "dtype", text_json(tare_dtype_name(trace->captures[i].dtype)));
        set(capture, "shape", shape_json(&trace->captures[i].shape));
        json_array_append_new(captures, capture);
    }
    tare_trace_print(&text, trace);
    set(value, "function", text_json(trace->graph->name));
    set(value, "signature", text_json(trace->signature));
    set(value, "arguments", arguments);
    set(value, "captures", captures);
    set(value, "returns", text_json(trace->returns));
    set(value, "text", text_json(tare_strbuf_text(&text)));
    tare_strbuf_free(&text);
    return value;
}

static tare_status describe_json(json_t **out, const struct tare_function_list *list,
                                 const struct tare_function_group *group, size_t i) {
    struct tare_arena arena = { 0 };
    struct tare_trace trace;
    tare_status status = tare_trace_describe(&trace, &arena, list, group, i);
    if (status == TARE_OK) *out = trace_json(&trace);
    tare_arena_free(&arena);
    return status;
}

static json_t *group_heading_json(const struct tare_function_group *group) {
    json_t *value = json_object();
    set(value, "name", text_json(group->name));
    set(value, "aliases", texts_json(group->aliases, group->n_aliases));
    set(value, "objects", texts_json(group->paths, group->n_paths));
    return value;
}

static tare_status add_group(json_t *groups, const struct tare_function_list *list,
                             const struct tare_function_group *group) {
    json_t *value = group_heading_json(group), *traces = json_array(), *trace;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < group->n_traces && status == TARE_OK; i++) {
        status = describe_json(&trace, list, group, i);
        if (status == TARE_OK) json_array_append_new(traces, trace);
    }
    set(value, "concrete", traces);
    json_array_append_new(groups, value);
    return status;
}

static tare_status add_functions(json_t *root, const struct tare_graph_model *model, bool all) {
    struct tare_function_list list;
    json_t *names = json_array(), *groups;
    tare_status status;
    for (size_t i = 0; i < model->n_functions; i++)
        json_array_append_new(names, text_json(model->functions[i]->name));
    set(root, "functions", names);
    if (!all) return TARE_OK;
    TARE_TRY(tare_function_list_make(&list, model));
    groups = json_array();
    status = TARE_OK;
    for (size_t i = 0; i < list.n_groups && status == TARE_OK; i++)
        status = add_group(groups, &list, list.groups[i]);
    set(root, "function_groups", groups);
    tare_function_list_free(&list);
    return status;
}

/* ---- one graph ---- */

static json_t *node_json(const struct tare_node *node) {
    json_t *value = json_object(), *inputs = json_array(), *dtypes = json_array();
    for (size_t k = 0; k < node->n_inputs; k++) {
        struct tare_strbuf text = { 0 };
        inspect_input_name(&text, node->inputs[k]);
        json_array_append_new(inputs, text_json(tare_strbuf_text(&text)));
        tare_strbuf_free(&text);
    }
    for (size_t k = 0; k < node->n_controls; k++) {
        struct tare_strbuf text = { 0 };
        tare_strbuf_printf(&text, "^%s", node->controls[k]->name);
        json_array_append_new(inputs, text_json(tare_strbuf_text(&text)));
        tare_strbuf_free(&text);
    }
    for (size_t k = 0; k < node->n_outputs; k++)
        json_array_append_new(dtypes, text_json(tare_dtype_name(node->output_dtypes[k])));
    set(value, "name", text_json(node->name));
    set(value, "op", text_json(node->op));
    set(value, "inputs", inputs);
    set(value, "dtypes", dtypes);
    return value;
}

static tare_status add_graph(json_t *root, const struct tare_graph_model *model, const char *name) {
    const struct tare_graph *graph;
    json_t *nodes;
    TARE_TRY(inspect_find_graph(&graph, model, name));
    nodes = json_array();
    for (size_t i = 0; i < graph->n_args; i++)
        json_array_append_new(nodes, node_json(graph->args[i]));
    for (size_t i = 0; i < graph->n_nodes; i++)
        json_array_append_new(nodes, node_json(graph->nodes[i]));
    set(root, "function", text_json(graph->name));
    set(root, "nodes", nodes);
    return TARE_OK;
}

/* The member "suggest" of it. */
static tare_status inspect_add_suggestions(json_t *root, const struct tare_graph_model *model) {
    struct tare_tpu_suggestions s;
    struct tare_arena arena = { 0 };
    json_t *functions = json_array(), *remarks = json_array();
    tare_status status = tare_tpu_suggest(&s, &arena, model);
    for (size_t i = 0; status == TARE_OK && i < s.count; i++)
        json_array_append_new(functions,
                              json_pack("{s:o, s:o, s:I}", "function", tare_json_text(s.items[i].function->name),
                                        "alias", tare_json_text(s.items[i].alias), "ops", (json_int_t)s.items[i].ops));
    for (size_t i = 0; status == TARE_OK && i < s.n_remarks; i++)
        json_array_append_new(remarks, json_pack("{s:o, s:o}", "function", tare_json_text(s.remarks[i].function->name),
                                                 "text", tare_json_text(s.remarks[i].text)));
    if (status == TARE_OK)
        json_object_set_new(root, "suggest",
                            json_pack("{s:O, s:O, s:I, s:I}", "functions", functions, "remarks", remarks, "covered",
                                      (json_int_t)s.covered, "ops", (json_int_t)s.ops));
    json_decref(functions);
    json_decref(remarks);
    tare_arena_free(&arena);
    return status;
}

static tare_status add_model(json_t *root, const struct tare_graph_model *model,
                             const struct inspect_options *options) {
    struct tare_saved_model_info info;
    struct inspect_ops ops = { 0 };
    char *origin;
    tare_status status = tare_origin_of(&origin, model->path);
    if (status == TARE_OK) status = inspect_ops_count(&ops, model, options->signature);
    tare_saved_model_info(&info, model);
    set(root, "path", text_json(options->name ? options->name : model->path));
    set(root, "format", text_json(info.format));
    if (origin && !options->name) set(root, "made_from", text_json(origin));
    tare_free(origin);
    set(root, "tensorflow_version", text_json(info.tensorflow_version));
    set(root, "tags", text_json(model->tags ? model->tags : info.tags));
    set(root, "tf1", json_boolean(info.is_tf1));
    set(root, "signatures", signatures_json(model, options->signature));
    set(root, "aliases", aliases_json(model));
    set(root, "variables", variables_json(model));
    set(root, "checkpoint",
        json_pack("{s:I, s:I}", "tensors", (json_int_t)info.checkpoint_tensors, "bytes",
                  (json_int_t)info.checkpoint_bytes));
    if (status == TARE_OK) add_ops(root, &ops);
    inspect_ops_free(&ops);
    if (status == TARE_OK && options->suggest) status = inspect_add_suggestions(root, model);
    return status == TARE_OK ? add_functions(root, model, options->functions) : status;
}

tare_status inspect_json(json_t **out, const struct tare_graph_model *model, const struct inspect_options *options) {
    *out = json_object();
    if (!*out) return TARE_NO_MEMORY;
    return options->graph ? add_graph(*out, model, options->graph) : add_model(*out, model, options);
}

/* ---- incremental output ----
 *
 * The last member of an object may be a list as long as the model. It is written element by element, in the same format
 * as jansson would write the whole object. */

static void put_spaces(FILE *out, int count) {
    fprintf(out, "%*s", count, "");
}

/* Consumes the value; indents all lines but the first. `open`: omits the closing brace of the object. */
static tare_status put_value(FILE *out, json_t *value, int indent, bool open) {
    char *text = tare_json_dump(value, JSON_INDENT(2));
    size_t size = text ? strlen(text) : 0;
    json_decref(value);
    if (!text) return TARE_FAIL(TARE_NO_MEMORY, "out of memory while JSON was written");
    if (open) size -= strlen("\n}");
    for (size_t i = 0; i < size; i++) {
        putc(text[i], out);
        if (text[i] == '\n') put_spaces(out, indent);
    }
    free(text);
    return TARE_OK;
}

/* Consumes and writes a nonempty object up to its last member, a list. */
static tare_status open_list(FILE *out, json_t *object, const char *key, int indent) {
    TARE_TRY(put_value(out, object, indent, true));
    fprintf(out, ",\n%*s\"%s\": [", indent + 2, "", key);
    return TARE_OK;
}

static void begin_element(FILE *out, bool first, int indent) {
    fprintf(out, "%s\n", first ? "" : ",");
    put_spaces(out, indent + 4);
}

static void close_list(FILE *out, bool empty, int indent) {
    if (!empty) fprintf(out, "\n%*s", indent + 2, "");
    fprintf(out, "]\n%*s}", indent, "");
}

enum { GROUP_INDENT = 4, TRACE_INDENT = 8, NODE_INDENT = 4 };

static tare_status write_group(FILE *out, const struct tare_function_list *list,
                               const struct tare_function_group *group) {
    json_t *trace;
    TARE_TRY(open_list(out, group_heading_json(group), "concrete", GROUP_INDENT));
    for (size_t i = 0; i < group->n_traces; i++) {
        TARE_TRY(describe_json(&trace, list, group, i));
        begin_element(out, i == 0, GROUP_INDENT);
        TARE_TRY(put_value(out, trace, TRACE_INDENT, false));
    }
    close_list(out, group->n_traces == 0, GROUP_INDENT);
    return TARE_OK;
}

/* Consumes the root. */
static tare_status write_groups(FILE *out, json_t *root, const struct tare_graph_model *model) {
    struct tare_function_list list;
    tare_status status = tare_function_list_make(&list, model);
    if (status != TARE_OK) {
        json_decref(root);
        return status;
    }
    status = open_list(out, root, "function_groups", 0);
    for (size_t i = 0; i < list.n_groups && status == TARE_OK; i++) {
        begin_element(out, i == 0, 0);
        status = write_group(out, &list, list.groups[i]);
    }
    if (status == TARE_OK) close_list(out, list.n_groups == 0, 0);
    tare_function_list_free(&list);
    return status;
}

static tare_status write_graph(FILE *out, const struct tare_graph_model *model, const char *name) {
    const struct tare_graph *graph;
    json_t *root;
    size_t count;
    TARE_TRY(inspect_find_graph(&graph, model, name));
    root = json_object();
    set(root, "function", text_json(graph->name));
    TARE_TRY(open_list(out, root, "nodes", 0));
    count = graph->n_args + graph->n_nodes;
    for (size_t i = 0; i < count; i++) {
        const struct tare_node *node = i < graph->n_args ? graph->args[i] : graph->nodes[i - graph->n_args];
        begin_element(out, i == 0, 0);
        TARE_TRY(put_value(out, node_json(node), NODE_INDENT, false));
    }
    close_list(out, count == 0, 0);
    return TARE_OK;
}

tare_status inspect_write_json(FILE *out, const struct tare_graph_model *model, const struct inspect_options *options) {
    struct inspect_options without = *options;
    json_t *root;
    tare_status status;
    if (options->graph) {
        status = write_graph(out, model, options->graph);
    } else {
        without.functions = false;
        status = inspect_json(&root, model, &without);
        if (status != TARE_OK)
            json_decref(root);
        else
            status = options->functions ? write_groups(out, root, model) : put_value(out, root, 0, false);
    }
    if (status == TARE_OK) putc('\n', out);
    return status;
}
