/* Registration of a library's ops, and their conversion to rows of a registry. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "graph/attr_text.h"
#include "interpreter/plugins/host.h"

#include <string.h>

/* ---- collecting: nothing is judged before the library has said everything ---- */

static tare_op_entry *add(tare_op_library *library, const char *name) {
    struct tare_op_entry *op = TARE_NEW(library->arena, struct tare_op_entry);
    const char *copy = tare_arena_strdup(library->arena, name ? name : "");
    if (!op || !copy) {
        library->out_of_memory = true;
        return NULL;
    }
    op->library = library;
    op->source.name = op->row.name = copy;
    *library->last = op;
    library->last = &op->next;
    return op;
}

static tare_op_entry *add_fused(tare_op_library *library, const char *name) {
    struct tare_op_entry *op = add(library, name);
    if (op) op->source.is_fused = true;
    return op;
}

static void add_item(tare_op_entry *op, struct tare_opspec_items *items, const char *spec) {
    const char *copy, **grown;
    if (!op) return;
    copy = tare_arena_strdup(op->library->arena, spec ? spec : "");
    grown = tare_arena_extend(op->library->arena, items->texts, items->count, 1, sizeof *grown);
    if (!copy || !grown) {
        op->library->out_of_memory = true;
        return;
    }
    grown[items->count++] = copy;
    items->texts = grown;
}

static void add_attr(tare_op_entry *op, const char *spec) {
    if (op) add_item(op, &op->source.attrs, spec);
}

static void add_input(tare_op_entry *op, const char *spec) {
    if (op) add_item(op, &op->source.inputs, spec);
}

static void add_output(tare_op_entry *op, const char *spec) {
    if (op) add_item(op, &op->source.outputs, spec);
}

static void set_shape_function(tare_op_entry *op, tare_op_function fn) {
    if (op) op->shape_function = fn;
}

static void add_kernel(tare_op_entry *op, const char *types, tare_op_create_function create, tare_op_function run,
                       tare_op_destroy_function destroy) {
    struct tare_plugin_kernel *grown;
    const char *copy;
    if (!op) return;
    copy = tare_arena_strdup(op->library->arena, types ? types : "");
    grown = tare_arena_extend(op->library->arena, op->kernels, op->n_kernels, 1, sizeof *grown);
    if (!copy || !grown) {
        op->library->out_of_memory = true;
        return;
    }
    grown[op->n_kernels++] =
        (struct tare_plugin_kernel){ .text = copy, .create = create, .run = run, .destroy = destroy };
    op->kernels = grown;
}

static void set_properties(tare_op_entry *op, unsigned properties) {
    if (!op) return;
    if (properties & TARE_OP_IS_STATEFUL) op->row.flags |= TARE_OP_STATEFUL | TARE_OP_WRITES;
    if (properties & TARE_OP_IS_ELEMENTWISE) op->row.flags |= TARE_OP_ELEMENTWISE;
    op->source.is_stateful = op->row.flags & TARE_OP_STATEFUL;
}

static void set_doc(tare_op_entry *op, const char *text) {
    if (!op) return;
    op->doc = tare_arena_strdup(op->library->arena, text ? text : "");
    if (!op->doc) op->library->out_of_memory = true;
}

void tare_plugin_host_registration(struct tare_op_host *host) {
    host->add = add;
    host->add_fused = add_fused;
    host->add_attr = add_attr;
    host->add_input = add_input;
    host->add_output = add_output;
    host->set_shape_function = set_shape_function;
    host->add_kernel = add_kernel;
    host->set_properties = set_properties;
    host->set_doc = set_doc;
}

/* ---- kernels ---- */

struct reader {
    const char *text, *at;
    const struct tare_op_def *def;
};

static tare_status complain(const struct reader *reader, const char *at, const char *what, int size) {
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s '%.*s' from Kernel(\"%s\") for Op %s (at character %zu of \"%s\")",
                     what, size, at, reader->text, reader->def->name, (size_t)(at - reader->text) + 1, reader->text);
}

static void skip(struct reader *reader) {
    while (*reader->at == ' ')
        reader->at++;
}

/* The word at the reader; its length, 0 when there is none. */
static size_t take_word(struct reader *reader, const char **word) {
    skip(reader);
    *word = reader->at;
    while ((*reader->at >= 'a' && *reader->at <= 'z') || (*reader->at >= 'A' && *reader->at <= 'Z') ||
           (*reader->at >= '0' && *reader->at <= '9') || *reader->at == '_')
        reader->at++;
    return (size_t)(reader->at - *word);
}

static tare_status not_declared(const struct reader *reader, const char *at, const struct tare_op_attr *attr,
                                int dtype) {
    struct tare_strbuf text = { 0 };
    tare_status status;
    tare_strbuf_printf(&text, "Kernel for %s, but attr '%s' does not allow it (allowed: ", tare_dtype_name(dtype),
                       attr->name);
    for (size_t i = 0; i < attr->allowed->count; i++) {
        if (i) tare_strbuf_puts(&text, ", ");
        tare_attr_print_item(&text, TARE_ATTR_TYPE, &attr->allowed->items[i]);
    }
    tare_strbuf_puts(&text, "), at");
    status = complain(reader, at, tare_strbuf_text(&text), (int)strcspn(at, " ,"));
    tare_strbuf_free(&text);
    return status;
}

static tare_status check_allowed(const struct reader *reader, const char *at, const struct tare_op_attr *attr,
                                 int dtype) {
    if (!attr->allowed) return TARE_OK;
    for (size_t i = 0; i < attr->allowed->count; i++)
        if (attr->allowed->items[i].type == dtype) return TARE_OK;
    return not_declared(reader, at, attr, dtype);
}

static tare_status read_type(struct reader *reader, struct tare_plugin_type *type) {
    const struct tare_op_attr *attr;
    const char *word, *start;
    size_t size = take_word(reader, &start);
    if (!size) return complain(reader, start, "Trouble parsing an attr name at", (int)strlen(start));
    attr = tare_op_def_find_attr(reader->def, start, size);
    if (!attr) return complain(reader, start, "Reference to unknown attr", (int)size);
    if (attr->kind != TARE_ATTR_TYPE)
        return complain(reader, start, "Kernels are chosen by attrs of type type or list(type), not by", (int)size);
    skip(reader);
    if (*reader->at != ':')
        return complain(reader, reader->at, "Expected : after the attr name, not:", (int)strlen(reader->at));
    reader->at++;
    size = take_word(reader, &word);
    type->attr = attr->name;
    type->dtype = size ? tare_dtype_from_name(word, size) : TARE_DT_INVALID;
    if (type->dtype == TARE_DT_INVALID || tare_dtype_is_ref(type->dtype))
        return complain(reader, word, "Unrecognized type string", size ? (int)size : (int)strlen(word));
    return check_allowed(reader, word, attr, type->dtype);
}

/* Parses "T: float, Tidx: int64" for an op with this definition. */
static tare_status parse_kernel(struct tare_plugin_kernel *kernel, struct tare_arena *arena,
                                const struct tare_op_def *def, const char *text) {
    struct reader reader = { .text = text, .at = text, .def = def };
    skip(&reader);
    while (*reader.at) {
        struct tare_plugin_type *grown = tare_arena_extend(arena, kernel->types, kernel->n_types, 1, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        kernel->types = grown;
        TARE_TRY(read_type(&reader, &grown[kernel->n_types]));
        kernel->n_types++;
        skip(&reader);
        if (*reader.at && *reader.at != ',')
            return complain(&reader, reader.at, "Expected , or the end, not:", (int)strlen(reader.at));
        if (*reader.at == ',') reader.at++;
    }
    return TARE_OK;
}

/* False if the two require different values of some attribute. */
static bool overlap(const struct tare_plugin_kernel *a, const struct tare_plugin_kernel *b) {
    for (size_t i = 0; i < a->n_types; i++)
        for (size_t k = 0; k < b->n_types; k++)
            if (strcmp(a->types[i].attr, b->types[k].attr) == 0 && a->types[i].dtype != b->types[k].dtype) return false;
    return true;
}

static tare_status read_kernels(struct tare_op_entry *op, const struct tare_op_def *def) {
    struct tare_strbuf all = { 0 };
    for (size_t i = 0; i < op->n_kernels; i++) {
        struct tare_plugin_kernel *kernel = &op->kernels[i];
        if (!kernel->run)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "kernel \"%s\" of Op %s has no function", kernel->text, def->name);
        TARE_TRY(parse_kernel(kernel, op->library->arena, def, kernel->text));
        for (size_t k = 0; k < i; k++)
            if (overlap(kernel, &op->kernels[k]))
                return TARE_FAIL(TARE_INVALID_ARGUMENT,
                                 "kernels \"%s\" and \"%s\" of Op %s serve the same types (expected one for each)",
                                 op->kernels[k].text, kernel->text, def->name);
    }
    for (size_t i = 0; i < op->n_kernels; i++)
        tare_strbuf_printf(&all, "%s%s", i ? "; " : "", op->kernels[i].text);
    op->kernels_text = tare_arena_strdup(op->library->arena, tare_strbuf_text(&all));
    tare_strbuf_free(&all);
    return op->kernels_text ? TARE_OK : TARE_NO_MEMORY;
}

/* ---- rows ---- */

static bool any_ref(const struct tare_op_def *def) {
    for (size_t i = 0; i < def->n_inputs; i++)
        if (def->inputs[i].is_ref) return true;
    return false;
}

/* The kernel may call the function, so it cannot run before a session exists. */
static bool any_func(const struct tare_op_def *def) {
    for (size_t i = 0; i < def->n_attrs; i++)
        if (def->attrs[i].kind == TARE_ATTR_FUNC) return true;
    return false;
}

static const char *join(struct tare_arena *arena, const struct tare_opspec_items *items, const char *separator) {
    struct tare_strbuf text = { 0 };
    const char *joined;
    for (size_t i = 0; i < items->count; i++)
        tare_strbuf_printf(&text, "%s%s", i ? separator : "", items->texts[i]);
    joined = tare_arena_strdup(arena, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return joined;
}

tare_status tare_plugin_finish(struct tare_op_entry *op, struct tare_opspec_memory *memory, struct tare_op_def **out) {
    struct tare_arena *arena = op->library->arena;
    struct tare_op_def *def;
    TARE_TRY(tare_opspec_parse_items(&def, memory, &op->source));
    TARE_TRY(read_kernels(op, def));
    op->has_refs = any_ref(def);
    if (op->has_refs) op->row.flags |= TARE_OP_WRITES;
    if (any_func(def)) op->row.flags |= TARE_OP_CONTROL;
    op->row.inputs = join(arena, &op->source.inputs, ", ");
    op->row.outputs = join(arena, &op->source.outputs, ", ");
    op->row.attrs = join(arena, &op->source.attrs, "; ");
    if (!op->row.inputs || !op->row.outputs || !op->row.attrs) return TARE_NO_MEMORY;
    op->row.aux = op;
    op->row.release = tare_plugin_release;
    op->row.infer = op->shape_function ? tare_plugin_infer : NULL;
    if (op->n_kernels) {
        op->row.accepts = tare_plugin_accepts;
        op->row.prepare = tare_plugin_prepare;
        op->row.run = tare_plugin_run;
    }
    def->row = &op->row;
    *out = def;
    return TARE_OK;
}
