/* tare inspect as text. */
#include "base/alloc.h"
#include "cli/hint.h"
#include "cli/log.h"
#include "cli/output/visible_output.h"
#include "convert/python_functions.h"
#include "convert/origin.h"
#include "convert/saved_model.h"
#include "workflow/inspection.h"

#include <stdio.h>
#include <string.h>

static void print_bindings(const char *title, const struct tare_binding *bindings, size_t count) {
    char shape[TARE_SHAPE_TEXT_SIZE];
    size_t width = 0;
    struct tare_arena arena = { 0 };
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(tare_visible_name(&arena, bindings[i].key));
        width = length > width ? length : width;
    }
    for (size_t i = 0; i < count; i++)
        printf("  %-7s %-*s  %-8s %s%s%s%s\n", i ? "" : title, (int)width, tare_visible_name(&arena, bindings[i].key),
               tare_dtype_name(bindings[i].dtype), tare_shape_text(shape, &bindings[i].shape),
               bindings[i].whole ? "  (of a " : "", bindings[i].whole ? bindings[i].whole->kind : "",
               bindings[i].whole ? ")" : "");
    tare_arena_free(&arena);
}

static void print_signatures(const struct tare_graph_model *model, const char *only) {
    for (size_t i = 0; i < model->n_signatures; i++) {
        const struct tare_signature *signature = &model->signatures[i];
        if (only && strcmp(signature->key, only) != 0) continue;
        tare_print_line("\nsignature ", signature->key);
        print_bindings("inputs", signature->inputs, signature->n_inputs);
        print_bindings("outputs", signature->outputs, signature->n_outputs);
    }
}

static void print_aliases(const struct tare_graph_model *model) {
    struct tare_arena arena = { 0 };
    if (!model->n_aliases) return;
    printf("\nfunction aliases\n");
    for (size_t i = 0; i < model->n_aliases; i++)
        printf("  %-20s %s\n", tare_visible_name(&arena, model->aliases[i].alias),
               tare_visible_name(&arena, model->aliases[i].function));
    tare_arena_free(&arena);
}

static double megabytes(size_t bytes) {
    return (double)bytes / 1e6;
}

static void print_origin(const char *path) {
    char *origin;
    if (tare_origin_of(&origin, path) == TARE_OK && origin) tare_print_line("  made from   ", origin);
    tare_free(origin);
}

static void print_heading(const struct tare_graph_model *model) {
    struct tare_saved_model_info info;
    tare_saved_model_info(&info, model);
    tare_print_line("", model->path);
    printf("  format      %s%s, %.2f MB%s\n", strcmp(info.format, "mlirbc") == 0 ? "" : "saved_model.", info.format,
           megabytes(info.file_size), info.is_tf1 ? ", TensorFlow 1 style (no object graph)" : "");
    print_origin(model->path);
    printf("  TensorFlow  %s\n",
           info.tensorflow_version && *info.tensorflow_version ? info.tensorflow_version : "unknown");
    printf("  tags        %s%s%s%s\n", info.tags && *info.tags ? info.tags : "(none)",
           info.all_tags ? "  (the model has " : "", info.all_tags ? info.all_tags : "", info.all_tags ? ")" : "");
    printf("  variables   %zu, checkpoint of %zu tensors, %.2f MB\n", model->n_variables, info.checkpoint_tensors,
           megabytes(info.checkpoint_bytes));
    printf("  functions   %zu\n", model->n_functions);
}

/* ---- functions ---- */

static void put_heading(struct tare_strbuf *out, const struct tare_function_group *group) {
    tare_strbuf_puts(out, "\nfunction ");
    tare_strbuf_put_visible(out, group->name);
    tare_strbuf_printf(out, ": %zu concrete", group->n_traces);
    for (size_t i = 0; i < group->n_aliases; i++) {
        tare_strbuf_puts(out, i ? ", " : ", alias ");
        tare_strbuf_put_visible(out, group->aliases[i]);
    }
    for (size_t i = 0; i < group->n_paths; i++) {
        tare_strbuf_puts(out, i ? ", " : ", object ");
        tare_strbuf_put_visible(out, *group->paths[i] ? group->paths[i] : "(root)");
    }
    tare_strbuf_putc(out, '\n');
}

/* Prints incrementally: the whole text may be as large as the model. */
static tare_status flush(struct tare_strbuf *text) {
    const bool failed = text->failed;
    tare_strbuf_print(text, stdout);
    tare_strbuf_free(text);
    return failed ? TARE_FAIL(TARE_NO_MEMORY, "out of memory while functions were listed") : TARE_OK;
}

static tare_status print_trace(const struct tare_function_list *list, const struct tare_function_group *group,
                               size_t i) {
    struct tare_arena arena = { 0 };
    struct tare_strbuf text = { 0 };
    struct tare_trace trace;
    tare_status status = tare_trace_describe(&trace, &arena, list, group, i);
    if (status == TARE_OK) {
        tare_strbuf_putc(&text, '\n');
        tare_strbuf_put_visible(&text, trace.graph->name);
        tare_strbuf_putc(&text, '\n');
        tare_trace_print(&text, &trace);
        status = flush(&text);
    }
    tare_arena_free(&arena);
    return status;
}

static tare_status print_group(const struct tare_function_list *list, const struct tare_function_group *group) {
    struct tare_strbuf text = { 0 };
    put_heading(&text, group);
    TARE_TRY(flush(&text));
    for (size_t i = 0; i < group->n_traces; i++)
        TARE_TRY(print_trace(list, group, i));
    return TARE_OK;
}

static tare_status print_functions(const struct tare_graph_model *model) {
    struct tare_function_list list;
    tare_status status;
    TARE_TRY(tare_function_list_make(&list, model));
    status = TARE_OK;
    for (size_t i = 0; i < list.n_groups && status == TARE_OK; i++)
        status = print_group(&list, list.groups[i]);
    tare_function_list_free(&list);
    return status;
}

/* 'name', 'name:1' or '^name', as Python prints strings. */
static void print_operand(const char *comma, const char *mark, const struct tare_node *node, int output) {
    struct tare_arena arena = { 0 };
    printf("%s'%s%s", comma, mark, tare_visible_name(&arena, node->name));
    if (output) printf(":%d", output);
    printf("'");
    tare_arena_free(&arena);
}

/* Lists names as Python prints a list of strings, arguments first, since they are nodes as well. */
static tare_status print_graph(const struct tare_graph_model *model, const char *name) {
    const struct tare_graph *graph;
    TARE_TRY(inspect_find_graph(&graph, model, name));
    for (size_t i = 0; i < graph->n_args; i++)
        tare_print_line("[] -> ", graph->args[i]->name);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        const char *comma = "";
        printf("[");
        for (size_t k = 0; k < node->n_inputs; k++, comma = ", ")
            print_operand(comma, "", node->inputs[k].node, node->inputs[k].index);
        for (size_t k = 0; k < node->n_controls; k++, comma = ", ")
            print_operand(comma, "^", node->controls[k], 0);
        tare_print_line("] -> ", node->name);
    }
    return TARE_OK;
}

/* ---- variables, ops ---- */

static void print_variables(const struct tare_graph_model *model) {
    char shape[TARE_SHAPE_TEXT_SIZE], bytes[32];
    struct tare_arena arena = { 0 };
    printf("\nvariables\n");
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct tare_variable *variable = &model->variables[i];
        int64_t size = inspect_variable_bytes(variable);
        snprintf(bytes, sizeof bytes, size < 0 ? "?" : "%lld", (long long)size);
        printf("  %-40s %-8s %-16s %10s  %s%s%s%s\n", tare_visible_name(&arena, variable->shared_name),
               tare_dtype_name(variable->dtype), tare_shape_text(shape, &variable->shape), bytes,
               variable->key ? tare_visible_name(&arena, variable->key) : "(no value in the checkpoint)",
               variable->slice ? " [" : "", variable->slice ? tare_visible_name(&arena, variable->slice) : "",
               variable->slice ? "]" : "");
    }
    tare_arena_free(&arena);
}

static void print_ops(const struct inspect_ops *ops, bool all) {
    printf("\nops reached from the signatures: %zu kinds, %zu quantizable nodes\n", ops->count, ops->quantizable);
    for (size_t i = 0; all && i < ops->count; i++)
        printf("  %6zu %s\n", ops->items[i]->count, ops->items[i]->op);
    if (ops->n_missing)
        printf("ops that the interpreter lacks: %zu\n%s", ops->n_missing, tare_strbuf_text(&ops->missing));
    if (ops->tpu_calls) printf("already converted for TPU: %zu TPUPartitionedCall\n", ops->tpu_calls);
    if (!ops->not_on_tpu) return;
    printf("ops that a TPU cannot compile: %zu\n ", ops->not_on_tpu);
    for (size_t i = 0; i < ops->count; i++)
        if (!ops->items[i]->on_tpu) printf(" %s", ops->items[i]->op);
    printf("\n");
}

/* Quantization begins with data for the inputs; a model without quantizable ops can be converted at once. */
static void print_next(const struct tare_graph_model *model, const struct inspect_ops *ops) {
    const struct tare_log log = tare_command_log(false);
    char *output;
    if (!model->n_signatures || ops->n_missing) return;
    if (ops->tpu_calls) {
        if (tare_origin_of(&output, model->path) == TARE_OK)
            tare_hint(&log, "compare", output ? output : "FLOAT_MODEL", "--with", model->path, "--eval",
                      "EVAL.tfrecord", NULL);
        tare_free(output);
        return;
    }
    tare_hint_name(&output, model->path, ops->quantizable ? ".spec" : "_tpu");
    if (output && ops->quantizable)
        tare_hint(&log, "dataset", "info", "DATA", "--draft-spec", output, "--model", model->path, NULL);
    else if (output && !tare_saved_model_is_tf1(model))
        tare_hint(&log, "convert", model->path, output, NULL);
    tare_free(output);
}

tare_status inspect_print_text(const struct tare_graph_model *model, const struct inspect_options *options) {
    struct inspect_ops ops = { 0 };
    tare_status status;
    if (options->graph) return print_graph(model, options->graph);
    status = inspect_ops_count(&ops, model, options->signature);
    if (status == TARE_OK) {
        print_heading(model);
        print_aliases(model);
        print_signatures(model, options->signature);
        print_ops(&ops, options->ops);
        if (options->variables) print_variables(model);
        if (options->suggest) status = inspect_print_suggestions(model);
    }
    if (status == TARE_OK && options->functions) status = print_functions(model);
    if (status == TARE_OK && !options->suggest) print_next(model, &ops);
    inspect_ops_free(&ops);
    return status;
}
