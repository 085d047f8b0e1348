/* tare ops: lists ops and whether the interpreter and the TPU support them. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/log.h"
#include "cli/ops/node.h"
#include "cli/ops/published.h"
#include "cli/ops/stablehlo.h"
#include "cli/plugins.h"
#include "eval/report/json_text.h"
#include "include/tare/version.h"
#include "graph/attr_text.h"
#include "graph/definitions/opspec.h"
#include "interpreter/plugins/plugin.h"
#include "tpu/compatibility.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct ops_options {
    struct tare_option_list names, plugins, shapes, attrs;
    const char *check_compat, *save_model;
    bool markdown, stablehlo, json, all;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct ops_options, "markdown", FLAG, markdown), .help = "print the table of docs/op-coverage.md" },
    { TARE_OPTION(struct ops_options, "stablehlo", FLAG, stablehlo),
      .help = "print the table of StableHLO ops, docs/stablehlo-ops.md, instead" },
    { TARE_OPTION(struct ops_options, "json", FLAG, json),
      .help = "print JSON, which --check-compat of a later version accepts" },
    { TARE_OPTION(struct ops_options, "all", FLAG, all), .help = "also list ops without a kernel" },
    { TARE_OPTION(struct ops_options, "check-compat", STRING, check_compat), .placeholder = "OLD",
      .help = "compare with an earlier output of 'tare ops --json' and list the incompatible changes" },
    { TARE_OPTION(struct ops_options, "shape", LIST, shapes), .placeholder = "SHAPE",
      .help = "shape of one input, as [2,?], [] or ?, or with its dtype as float[2,?], from which attributes follow; "
              "prints the output shapes that OP's shape function infers" },
    { TARE_OPTION(struct ops_options, "attr", LIST, attrs), .placeholder = "NAME=VALUE",
      .help = "attribute value for --shape, in the syntax of an op registration" },
    { TARE_OPTION(struct ops_options, "save-model", STRING, save_model), .placeholder = "DIR",
      .help = "write a SavedModel that contains the one OP with inputs of these shapes, to run it with 'tare run'" },
    TARE_PLUGIN_OPTION(struct ops_options),
    TARE_LOG_OPTIONS(struct ops_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct ops_options, "OP", names), .help = "list only these ops", .flags = TARE_OPTION_REPEATABLE },
    { 0 },
};
static const char *const examples[] = {
    "tare ops MatMul Conv2D",
    "tare ops --plugin ./zero_out.so --json ZeroOut > published.json",
    "tare ops --plugin ./zero_out.so --check-compat published.json",
    "tare ops MatMul --shape '[?,3]' --shape '[3,5]' --attr T=float",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare ops",
    .summary =
        "Lists ops with their signatures and dtypes, and whether the interpreter and the TPU compiler support them.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* ---- columns ---- */

static bool runs_here(const struct tare_op_def *def) {
    return def->row && def->row->run;
}

static void put_args(struct tare_strbuf *text, const struct tare_op_arg *args, size_t count) {
    tare_strbuf_putc(text, '(');
    for (size_t i = 0; i < count; i++) {
        if (i) tare_strbuf_puts(text, ", ");
        tare_opspec_print_arg(text, &args[i]);
    }
    tare_strbuf_putc(text, ')');
}

static void put_signature(struct tare_strbuf *text, const struct tare_op_def *def) {
    put_args(text, def->inputs, def->n_inputs);
    tare_strbuf_puts(text, " -> ");
    put_args(text, def->outputs, def->n_outputs);
}

/* The named dtype set with exactly the members of the list, in any order; NULL: none. */
static const char *set_name(const struct tare_attr *allowed) {
    static const char *const names[] = { "numbertype", "realnumbertype", "quantizedtype" };
    const char *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
        struct tare_opspec_memory memory = { 0 };
        char spec[64];
        const char *attrs[] = { spec };
        struct tare_opspec_source source = { .name = "Set", .attrs = { attrs, 1, 0 } };
        struct tare_op_def *def;
        size_t same = 0;
        snprintf(spec, sizeof spec, "a: %s", names[i]);
        if (tare_opspec_parse_items(&def, &memory, &source) == TARE_OK &&
            def->attrs[0].allowed->count == allowed->count) {
            for (size_t k = 0; k < allowed->count; k++)
                for (size_t m = 0; m < allowed->count; m++)
                    same += def->attrs[0].allowed->items[k].type == allowed->items[m].type;
            if (same == allowed->count) found = names[i];
        }
        tare_opspec_memory_free(&memory);
    }
    return found;
}

/* "T: float, half; Tidx: any" */
static void put_dtypes(struct tare_strbuf *text, const struct tare_op_def *def) {
    bool first = true;
    for (size_t i = 0; i < def->n_attrs; i++) {
        const struct tare_op_attr *attr = &def->attrs[i];
        const char *name = attr->kind == TARE_ATTR_TYPE && attr->allowed ? set_name(attr->allowed) : NULL;
        if (attr->kind != TARE_ATTR_TYPE) continue;
        tare_strbuf_printf(text, "%s%s: ", first ? "" : "; ", attr->name);
        first = false;
        if (!attr->allowed || name) tare_strbuf_puts(text, name ? name : "any");
        for (size_t k = 0; attr->allowed && !name && k < attr->allowed->count; k++) {
            if (k) tare_strbuf_puts(text, ", ");
            tare_attr_print_item(text, TARE_ATTR_TYPE, &attr->allowed->items[k]);
        }
    }
}

/* Kind of kernel: "fast" kernels are tested against a reference kernel. */
static const char *kernel_text(const struct tare_op_def *def) {
    if (!runs_here(def)) return "no";
    if (tare_plugin_path_of(def)) return "plugin";
    return def->row->reference ? "fast" : "yes";
}

static void put_tpu(struct tare_strbuf *text, const struct tare_op_def *def) {
    const struct tare_xla_op *op = tare_tpu_find_op(def->name);
    tare_strbuf_puts(text, op ? "yes" : tare_tpu_compiles(def->name) ? "yes, lowered" : "no");
    if (op && op->constants) tare_strbuf_printf(text, ", constant %s", op->constants);
}

/* ---- text ---- */

static void print_plain(const struct tare_op_def *def) {
    struct tare_strbuf text = { 0 };
    const char *kernels = tare_plugin_kernels_of(def), *doc = tare_plugin_doc_of(def);
    tare_strbuf_printf(&text, "%s", def->name);
    put_signature(&text, def);
    tare_strbuf_puts(&text, "\n");
    if (doc) tare_strbuf_printf(&text, "    %s\n", doc);
    for (size_t i = 0; i < def->n_attrs; i++) {
        tare_strbuf_puts(&text, "    ");
        tare_opspec_print_attr(&text, &def->attrs[i]);
        tare_strbuf_putc(&text, '\n');
    }
    tare_strbuf_printf(&text, "    runs here: %s", kernel_text(def));
    if (kernels && *kernels) tare_strbuf_printf(&text, " (%s)", kernels);
    if (tare_plugin_path_of(def)) tare_strbuf_printf(&text, " %s", tare_plugin_path_of(def));
    tare_strbuf_puts(&text, "; on a TPU: ");
    put_tpu(&text, def);
    printf("%s%s\n", tare_strbuf_text(&text), def->is_stateful ? "; stateful" : "");
    tare_strbuf_free(&text);
}

static void print_row(const struct tare_op_def *def, int width) {
    struct tare_strbuf text = { 0 };
    put_signature(&text, def);
    printf("%-*s  %-6s  %-3s  %s\n", width, def->name, kernel_text(def), tare_tpu_compiles(def->name) ? "yes" : "no",
           tare_strbuf_text(&text));
    tare_strbuf_free(&text);
}

static void print_table(const struct tare_op_def *const *ops, size_t count) {
    int width = 2;
    for (size_t i = 0; i < count; i++)
        if ((int)strlen(ops[i]->name) > width) width = (int)strlen(ops[i]->name);
    printf("%-*s  %-6s  %-3s  %s\n", width, "op", "runs", "TPU", "signature");
    for (size_t i = 0; i < count; i++)
        print_row(ops[i], width);
}

/* ---- markdown ---- */

/* Text in a table cell: as code, with '|' escaped (it occurs only in strings). */
static void put_cell(struct tare_strbuf *text, const char *cell) {
    tare_strbuf_puts(text, *cell ? " `" : " ");
    for (; *cell; cell++) {
        if (*cell == '|') tare_strbuf_putc(text, '\\');
        tare_strbuf_putc(text, *cell);
    }
    tare_strbuf_puts(text, text->data[text->size - 1] == ' ' ? "|" : "` |");
}

static void print_markdown_row(const struct tare_op_def *def) {
    struct tare_strbuf line = { 0 }, cell = { 0 };
    tare_strbuf_printf(&line, "| %s |", def->name);
    put_signature(&cell, def);
    put_cell(&line, tare_strbuf_text(&cell));
    tare_strbuf_free(&cell);
    cell = (struct tare_strbuf){ 0 };
    put_dtypes(&cell, def);
    tare_strbuf_printf(&line, " %s | %s | ", tare_strbuf_text(&cell), kernel_text(def));
    put_tpu(&line, def);
    printf("%s |\n", tare_strbuf_text(&line));
    tare_strbuf_free(&line);
    tare_strbuf_free(&cell);
}

static void print_markdown(const struct tare_op_def *const *ops, size_t count) {
    size_t here = 0, fast = 0, tpu = 0;
    for (size_t i = 0; i < count; i++) {
        here += runs_here(ops[i]);
        fast += runs_here(ops[i]) && ops[i]->row->reference;
        tpu += tare_tpu_compiles(ops[i]->name);
    }
    printf(
        "# Ops\n\n"
        "Generated by `tare ops --markdown > docs/op-coverage.md`; a test checks that it is up to date.\n\n"
        "The interpreter runs %zu ops, %zu of them with a fast kernel that is tested against a reference kernel. A TPU "
        "compiles\n"
        "%zu of them. `tare ops --all` also lists ops without a kernel, whose models can be inspected, converted and "
        "saved,\n"
        "but not run. Custom ops: [custom-ops.md](custom-ops.md).\n\n"
        "*dtypes* are listed by attribute of the op definition; `numbertype`, `realnumbertype` and `quantizedtype` "
        "are\n"
        "TensorFlow's sets. *TPU*: inputs after \"constant\" must be known at compilation;\n"
        "\"lowered\": turned into functional control flow first.\n\n"
        "| op | signature | dtypes | runs here | TPU |\n|---|---|---|---|---|\n",
        here, fast, tpu);
    for (size_t i = 0; i < count; i++)
        print_markdown_row(ops[i]);
}

/* ---- JSON ---- */

static json_t *args_json(const struct tare_op_arg *args, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        struct tare_strbuf text = { 0 };
        tare_opspec_print_arg(&text, &args[i]);
        json_array_append_new(array, tare_json_text(tare_strbuf_text(&text)));
        tare_strbuf_free(&text);
    }
    return array;
}

static json_t *attrs_json(const struct tare_op_def *def) {
    json_t *array = json_array();
    for (size_t i = 0; i < def->n_attrs; i++) {
        struct tare_strbuf text = { 0 };
        tare_opspec_print_attr(&text, &def->attrs[i]);
        json_array_append_new(array, tare_json_text(tare_strbuf_text(&text)));
        tare_strbuf_free(&text);
    }
    return array;
}

static json_t *op_json(const struct tare_op_def *def) {
    const struct tare_xla_op *tpu = tare_tpu_find_op(def->name);
    json_t *op = json_pack("{s:o, s:o, s:o, s:o, s:b, s:b, s:b}", "name", tare_json_text(def->name), "inputs",
                           args_json(def->inputs, def->n_inputs), "outputs", args_json(def->outputs, def->n_outputs),
                           "attrs", attrs_json(def), "stateful", def->is_stateful, "runs", runs_here(def), "tpu",
                           tare_tpu_compiles(def->name));
    const char *path = tare_plugin_path_of(def), *kernels = tare_plugin_kernels_of(def), *doc = tare_plugin_doc_of(def);
    if (op && runs_here(def) && !path) json_object_set_new(op, "fast", json_boolean(def->row->reference));
    if (op && tpu && tpu->types) json_object_set_new(op, "tpu_types", tare_json_text(tpu->types));
    if (op && tpu && tpu->constants) json_object_set_new(op, "tpu_constants", tare_json_text(tpu->constants));
    if (op && path) json_object_set_new(op, "plugin", tare_json_text(path));
    if (op && kernels && runs_here(def)) json_object_set_new(op, "kernels", tare_json_text(kernels));
    if (op && doc) json_object_set_new(op, "doc", tare_json_text(doc));
    return op;
}

static tare_status print_json(const struct tare_op_def *const *ops, size_t count) {
    json_t *array = json_array(), *root;
    int failed;
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, op_json(ops[i]));
    root = json_pack("{s:o, s:o}", "tare", tare_json_text(TARE_VERSION), "ops", array);
    failed = !root || json_dumpf(root, stdout, JSON_INDENT(1)) != 0;
    printf("\n");
    json_decref(root);
    return failed ? TARE_FAIL(TARE_IO, "cannot write the list of ops") : TARE_OK;
}

/* ---- the command ---- */

static tare_status unknown_op(const char *name, struct tare_arena *arena) {
    const struct tare_op_def *const *all;
    size_t count;
    TARE_TRY(tare_ops_list_all(&all, &count, arena, tare_command_registry()));
    const char **names = TARE_NEW_ARRAY(arena, const char *, count + 1);
    if (!names) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        names[i] = all[i]->name;
    const char *nearest = tare_nearest_name(name, names);
    return TARE_FAIL(TARE_NOT_FOUND, "there is no op '%s'%s%s%s", name, nearest ? " (did you mean '" : "",
                     nearest ? nearest : "", nearest ? "'?)" : "; load a custom op with --plugin LIB.so");
}

static tare_status choose_named(const struct tare_op_def ***out, size_t *count, struct tare_arena *arena,
                                const struct ops_options *options) {
    *out = TARE_NEW_ARRAY(arena, const struct tare_op_def *, options->names.count);
    if (!*out) return TARE_NO_MEMORY;
    for (*count = 0; *count < options->names.count; ++*count) {
        const char *name = options->names.items[*count];
        (*out)[*count] = tare_ops_find(tare_command_registry(), name);
        if (!(*out)[*count]) return unknown_op(name, arena);
    }
    return TARE_OK;
}

/* The ops to list: the named ones; otherwise those with a kernel, or all with --all. */
static tare_status choose(const struct tare_op_def ***out, size_t *count, struct tare_arena *arena,
                          const struct ops_options *options) {
    const struct tare_op_def *const *all;
    size_t n_all;
    if (options->names.count) return choose_named(out, count, arena, options);
    TARE_TRY(tare_ops_list_all(&all, &n_all, arena, tare_command_registry()));
    *out = TARE_NEW_ARRAY(arena, const struct tare_op_def *, n_all + 1);
    if (!*out) return TARE_NO_MEMORY;
    *count = 0;
    for (size_t i = 0; i < n_all; i++)
        if (options->all || runs_here(all[i]) || tare_plugin_path_of(all[i])) (*out)[(*count)++] = all[i];
    return TARE_OK;
}

static tare_status list(const struct ops_options *options) {
    struct tare_arena arena = { 0 };
    const struct tare_op_def **ops;
    size_t count;
    tare_status status = choose(&ops, &count, &arena, options);
    if (status == TARE_OK && options->json) {
        status = print_json(ops, count);
    } else if (status == TARE_OK && options->markdown) {
        print_markdown(ops, count);
    } else if (status == TARE_OK && options->names.count) {
        for (size_t i = 0; i < count; i++)
            print_plain(ops[i]);
    } else if (status == TARE_OK) {
        print_table(ops, count);
    }
    tare_arena_free(&arena);
    return status;
}

/* --attr or --save-model without --shape: an op without inputs. */
static bool describes_node(const struct ops_options *options) {
    return options->shapes.count || options->attrs.count || options->save_model;
}

static tare_status check_usage(const struct ops_options *options) {
    if (options->markdown + (options->json && !options->check_compat) + (options->check_compat != NULL) +
            describes_node(options) >
        1)
        return TARE_FAIL(TARE_USAGE, "--markdown, --json, --check-compat and --shape are mutually exclusive");
    if (describes_node(options) && options->names.count != 1)
        return TARE_FAIL(TARE_USAGE, "--shape, --attr and --save-model expect exactly one OP (got %zu)",
                         options->names.count);
    return TARE_OK;
}

static tare_status show_node(const struct ops_options *options) {
    const struct tare_ops_node given = { options->names.items[0], &options->shapes, &options->attrs };
    struct tare_arena arena = { 0 };
    const struct tare_op_def **ops;
    size_t count;
    tare_status status = choose(&ops, &count, &arena, options); /* the error names the nearest op */
    if (status == TARE_OK)
        status = options->save_model ? tare_ops_save_model(options->save_model, tare_command_registry(), &given)
                                     : tare_ops_infer(tare_command_registry(), &given);
    tare_arena_free(&arena);
    return status;
}

static tare_status run(int argc, char *const *argv) {
    struct ops_options options;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(check_usage(&options));
    if (options.stablehlo)
        tare_ops_print_stablehlo();
    else if (options.check_compat)
        status = tare_ops_check_published(options.check_compat, tare_command_registry(), options.json);
    else
        status = describes_node(&options) ? show_node(&options) : list(&options);
done:
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_ops = {
    .name = "ops", .summary = "list ops and their support on CPU and TPU", .run = run, .options = &set
};
