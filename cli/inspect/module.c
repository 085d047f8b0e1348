/* Inspecting StableHLO modules. */
#include "cli/inspect/module.h"
#include "convert/stablehlo/artifact.h"
#include "convert/stablehlo/print.h"
#include "convert/stablehlo/summary.h"
#include "eval/report/json_text.h"
#include "graph/calls.h"

#include <string.h>

enum { MOST_LISTED = 8 }; /* inputs of main that are listed */

bool tare_inspect_is_module(const struct inspect_options *options) {
    const bool as_model =
        options->graph || options->signature || options->variables || options->suggest || options->tags;
    return !as_model && tare_shlo_is_artifact(options->model);
}

static tare_status write_stdout(void *arg, const char *text, size_t size) {
    (void)arg;
    return fwrite(text, 1, size, stdout) == size ? TARE_OK : TARE_FAIL(TARE_IO, "cannot write to standard output");
}

static tare_status print_text(const struct tare_shlo_module *module) {
    const struct tare_shlo_print_options options = { .write = write_stdout };
    return tare_shlo_print(module, &options);
}

static void print_version(const struct tare_shlo_module *module) {
    printf("  %-11s %d.%d.%d (%s, bytecode version %d)\n", "VHLO", module->version / 1000000,
           module->version / 1000 % 1000, module->version % 1000, module->producer, module->bytecode_version);
}

static void print_counts(const struct tare_shlo_summary *s, bool all) {
    printf("  %-11s %zu, with %zu ops of %zu kinds, %zu bytes of constants\n", "functions", s->n_functions, s->n_ops,
           s->n_kinds, s->constant_bytes);
    printf("  %-11s %zu matrix products, %zu convolutions\n", "layers", s->n_products, s->n_convolutions);
    for (size_t i = 0; all && i < s->n_kinds; i++)
        printf("  %6zu %s\n", s->ops[i].count, s->ops[i].name);
}

static tare_status print_main(const struct tare_shlo_module *module) {
    const struct tare_shlo_op *function = tare_shlo_function(module, "main");
    struct tare_strbuf line = { 0 };
    tare_status status = TARE_OK;
    if (!function) return TARE_OK;
    const struct tare_shlo_attr *type = tare_shlo_op_attr(function, "function_type");
    if (type->kind == TARE_SHLO_ATTR_TYPE && type->type->inputs.count > MOST_LISTED)
        tare_strbuf_printf(&line, "%zu inputs, %zu outputs (--functions prints their types)", type->type->inputs.count,
                           type->type->outputs.count);
    else if (type->kind == TARE_SHLO_ATTR_TYPE)
        tare_shlo_print_type(&line, type->type);
    if (line.failed)
        status = TARE_FAIL(TARE_NO_MEMORY, "out of memory while the module was listed");
    else
        printf("  %-11s %s\n", "main", tare_strbuf_text(&line));
    tare_strbuf_free(&line);
    return status;
}

static tare_status print_summary(const struct tare_shlo_module *module, bool all) {
    struct tare_arena arena = { 0 };
    struct tare_shlo_summary summary;
    tare_status status = tare_shlo_summarize(&summary, &arena, module);
    if (status == TARE_OK) {
        print_version(module);
        status = print_main(module);
        print_counts(&summary, all);
    }
    tare_arena_free(&arena);
    return status;
}

/* Where the file names platforms, it is one of jax.export. */
static void print_exported(const struct tare_shlo_exported *exported) {
    if (!exported->n_platforms) return;
    printf("  %-11s", "platforms");
    for (size_t i = 0; i < exported->n_platforms; i++)
        printf("%s%.*s", i ? ", " : " ", (int)exported->platforms[i].size, exported->platforms[i].data);
    printf(" (jax.export)\n");
}

/* Where main's arguments are among those of the function, unless that is their own order, and which of the function's
 * main does not take. */
static tare_status print_arguments(const struct tare_shlo_artifact *artifact) {
    struct tare_arena arena = { 0 };
    struct tare_shlo_leaf *leaves;
    size_t count, kept = 0, nested = 0;
    const tare_status status =
        tare_shlo_exported_leaves(&leaves, &count, &arena, artifact->file.data, artifact->file.size);
    for (size_t i = 0; i < count; i++) {
        kept += leaves[i].is_kept;
        nested += strchr(leaves[i].path, ']')[1] != '\0' || *leaves[i].path == 'k';
    }
    for (size_t i = 0, number = 0; i < count && (kept < count || nested); i++) {
        if (leaves[i].is_kept)
            printf("  arg%-8zu %s\n", number++, leaves[i].path);
        else
            printf("  %-11s %s: the function does not use it\n", "dropped", leaves[i].path);
    }
    tare_arena_free(&arena);
    return status;
}

/* {"arguments": [where arg0 is, …], "dropped": […]} */
static tare_status add_arguments(json_t *root, const struct tare_shlo_artifact *artifact) {
    struct tare_arena arena = { 0 };
    struct tare_shlo_leaf *leaves;
    size_t count;
    json_t *arguments = json_array(), *dropped = json_array();
    const tare_status status =
        tare_shlo_exported_leaves(&leaves, &count, &arena, artifact->file.data, artifact->file.size);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(leaves[i].is_kept ? arguments : dropped, tare_json_text(leaves[i].path));
    json_object_set_new(root, "arguments", arguments);
    json_object_set_new(root, "dropped_arguments", dropped);
    tare_arena_free(&arena);
    return status;
}

static tare_status print_json(const struct tare_shlo_module *module, const struct tare_shlo_artifact *artifact,
                              const char *path) {
    struct tare_arena arena = { 0 };
    struct tare_shlo_summary s;
    json_t *root, *ops;
    char version[40];
    tare_status status = tare_shlo_summarize(&s, &arena, module);
    if (status == TARE_OK) {
        snprintf(version, sizeof version, "%d.%d.%d", module->version / 1000000, module->version / 1000 % 1000,
                 module->version % 1000);
        ops = json_object();
        for (size_t i = 0; i < s.n_kinds; i++)
            json_object_set_new(ops, s.ops[i].name, json_integer((json_int_t)s.ops[i].count));
        root = json_pack("{s:o, s:o, s:o, s:i, s:I, s:I, s:I, s:I, s:o}", "path", tare_json_text(path), "vhlo_version",
                         tare_json_text(version), "producer", tare_json_text(module->producer), "bytecode_version",
                         module->bytecode_version, "functions", (json_int_t)s.n_functions, "matrix_products",
                         (json_int_t)s.n_products, "convolutions", (json_int_t)s.n_convolutions, "constant_bytes",
                         (json_int_t)s.constant_bytes, "ops", ops);
        status = add_arguments(root, artifact);
        if (status == TARE_OK)
            status = root && json_dumpf(root, stdout, JSON_INDENT(2)) == 0
                         ? TARE_OK
                         : TARE_FAIL(TARE_NO_MEMORY, "out of memory while the module was listed");
        json_decref(root);
        if (status == TARE_OK) putchar('\n');
    }
    tare_arena_free(&arena);
    return status;
}

tare_status tare_inspect_module(const struct inspect_options *options) {
    struct tare_shlo_artifact artifact;
    struct tare_shlo_module *module;
    tare_status status;
    TARE_TRY(tare_shlo_artifact_open(&artifact, options->model));
    status = tare_shlo_read(&module, artifact.exported.module, artifact.exported.size);
    if (status != TARE_OK) {
        tare_error_prefix(status, "%s", options->model);
    } else {
        if (options->json) {
            status = print_json(module, &artifact, options->model);
        } else {
            printf("%s\n", options->model);
            print_exported(&artifact.exported);
            status = print_summary(module, options->ops);
            if (status == TARE_OK) status = print_arguments(&artifact);
            if (status == TARE_OK && options->functions) status = print_text(module);
        }
        tare_shlo_free(module);
    }
    tare_shlo_artifact_close(&artifact);
    return status;
}

/* ---- XlaCallModule ---- */

static void print_platforms(const struct tare_node *node) {
    const struct tare_attr *platforms = tare_node_list(node, "platforms");
    printf("  %-11s", "platforms");
    for (size_t i = 0; platforms && platforms->kind == TARE_ATTR_STRING && i < platforms->count; i++)
        printf("%s%s", i ? ", " : " ", platforms->items[i].s.data);
    printf("%s\n", platforms && platforms->count ? "" : " any");
}

static tare_status print_call_module(const struct tare_node *node, bool text) {
    const struct tare_attr *attr = tare_node_find_attr(node, "module");
    struct tare_shlo_module *module;
    tare_status status;
    printf("\nStableHLO module at %s%s%s\n", node->graph->name, *node->graph->name ? "/" : "", node->name);
    print_platforms(node);
    if (!attr || attr->is_list || attr->kind != TARE_ATTR_STRING) {
        printf("  cannot be read: the node has no attribute 'module'\n");
        return TARE_OK;
    }
    status = tare_shlo_read(&module, (const uint8_t *)attr->items[0].s.data, attr->items[0].s.size);
    if (status == TARE_NO_MEMORY) return status;
    if (status != TARE_OK) {
        printf("  cannot be read: %s\n", tare_error_text());
        tare_error_clear();
        return TARE_OK;
    }
    status = print_summary(module, false);
    if (status == TARE_OK && text) status = print_text(module);
    tare_shlo_free(module);
    return status;
}

/* Adds the modules of a graph to *count, and prints them if they are `live`. */
static tare_status print_graph_modules(size_t *count, const struct tare_graph *graph, bool live, bool text) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (strcmp(graph->nodes[i]->op, "XlaCallModule") != 0) continue;
        ++*count;
        if (live) TARE_TRY(print_call_module(graph->nodes[i], text));
    }
    return TARE_OK;
}

tare_status tare_inspect_call_modules(const struct tare_graph_model *model, bool text) {
    struct tare_arena arena = { 0 };
    size_t shown = 0, others = 0;
    bool *live;
    tare_status status = tare_model_reachable_functions(&live, &arena, model, true);
    if (status == TARE_OK) status = print_graph_modules(&shown, model->main, true, text);
    for (size_t i = 0; i < model->n_functions && status == TARE_OK; i++)
        status = print_graph_modules(live[i] ? &shown : &others, model->functions[i], live[i], text);
    if (status == TARE_OK && others)
        printf("\nmodules of functions that nothing calls, such as gradients: %zu\n", others);
    tare_arena_free(&arena);
    return status;
}
