/* Printing modules: functions, blocks, ops. Values are numbered within each function; each op is a line:
 *
 *   %2 = stablehlo.dot_general %0, %1 {lhs_contracting_dimensions = [1], …} : (tensor<…>, tensor<…>) -> tensor<…>
 *
 * Attributes that are absent or have their default are left out. Text is handed on line by line. */
#include "convert/stablehlo/print.h"

#include "base/alloc.h"

#include <string.h>

enum { DEFAULT_ELEMENTS = 16, INDENT = 2 };

/* How a value is printed: %id, %argid, or %id#part. */
struct name {
    uint32_t id;
    int32_t part; /* SINGLE, ARGUMENT or the number of the result */
};
enum { SINGLE = -1, ARGUMENT = -2 };

struct printer {
    const struct tare_shlo_print_options *options;
    size_t max_elements;
    struct name *names; /* by value number */
    uint32_t next, next_argument;
    struct tare_strbuf line;
};

static tare_status print_block_ops(struct printer *p, const struct tare_shlo_block *block, int indent);

static tare_status flush(struct printer *p) {
    if (p->line.failed) return TARE_NO_MEMORY;
    TARE_TRY(p->options->write(p->options->arg, tare_strbuf_text(&p->line), p->line.size));
    p->line.size = 0;
    return TARE_OK;
}

static tare_status end_line(struct printer *p) {
    tare_strbuf_putc(&p->line, '\n');
    return flush(p);
}

static void begin_line(struct printer *p, int indent) {
    tare_strbuf_printf(&p->line, "%*s", indent, "");
}

static void print_value(struct printer *p, const struct tare_shlo_value *value) {
    const struct name *name = &p->names[value->number];
    tare_strbuf_printf(&p->line, name->part == ARGUMENT ? "%%arg%u" : "%%%u", name->id);
    if (name->part >= 0) tare_strbuf_printf(&p->line, "#%d", name->part);
}

static void print_values(struct printer *p, struct tare_shlo_value *const *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        tare_strbuf_puts(&p->line, i ? ", " : " ");
        print_value(p, values[i]);
    }
}

static void name_results(struct printer *p, const struct tare_shlo_op *op) {
    if (!op->n_results) return;
    for (size_t i = 0; i < op->n_results; i++)
        p->names[op->results[i].number] = (struct name){ p->next, op->n_results == 1 ? SINGLE : (int32_t)i };
    tare_strbuf_printf(&p->line, "%%%u", p->next++);
    if (op->n_results > 1) tare_strbuf_printf(&p->line, ":%zu", op->n_results);
    tare_strbuf_puts(&p->line, " = ");
}

static void print_signature(struct printer *p, const struct tare_shlo_op *op) {
    tare_strbuf_puts(&p->line, " : (");
    for (size_t i = 0; i < op->n_operands; i++) {
        if (i) tare_strbuf_puts(&p->line, ", ");
        tare_shlo_print_type(&p->line, op->operands[i]->type);
    }
    tare_strbuf_puts(&p->line, op->n_results == 1 ? ") -> " : ") -> (");
    for (size_t i = 0; i < op->n_results; i++) {
        if (i) tare_strbuf_puts(&p->line, ", ");
        tare_shlo_print_type(&p->line, op->results[i].type);
    }
    if (op->n_results != 1) tare_strbuf_putc(&p->line, ')');
}

/* Defaults: nothing asked for. */
static bool is_default(const struct tare_shlo_attr *attr) {
    switch (attr->kind) {
    case TARE_SHLO_ATTR_TYPE:
        return attr->type->kind == TARE_SHLO_NONE;
    case TARE_SHLO_ATTR_STRING:
        return attr->text.size == 0;
    case TARE_SHLO_ATTR_ACCURACY:
        return strcmp(attr->items[0]->text.data ? attr->items[0]->text.data : "", "DEFAULT") == 0;
    case TARE_SHLO_ATTR_TENSOR:
        return attr->type->rank == 1 && attr->type->dims[0] == 0;
    case TARE_SHLO_ATTR_ARRAY:
        for (size_t i = 0; i < attr->n_items; i++)
            if (attr->items[i]->kind != TARE_SHLO_ATTR_ENUM || attr->items[i]->bits) return false;
        return true;
    default:
        return false;
    }
}

static void print_attr(struct printer *p, const char *name, int length, const struct tare_shlo_attr *attr, bool first) {
    tare_strbuf_printf(&p->line, "%s%.*s = ", first ? " {" : ", ", length, name);
    tare_shlo_print_attr(&p->line, attr, p->max_elements);
}

/* `skip`: an attribute that is printed elsewhere; NULL: none. */
static void print_attrs(struct printer *p, const struct tare_shlo_op *op, const char *skip) {
    bool first = true;
    const struct tare_vhlo_op *def = tare_shlo_def(op);
    const char *at = def ? def->attrs : "";
    for (size_t i = 0; def && i < def->n_attrs; i++) {
        const int length = (int)strcspn(at, " ");
        const bool skipped = skip && strlen(skip) == (size_t)length && strncmp(skip, at, (size_t)length) == 0;
        if (!skipped && !is_default(op->attrs[i])) {
            print_attr(p, at, length, op->attrs[i], first);
            first = false;
        }
        at += length + 1;
    }
    for (size_t i = 0; op->extra && i + 1 < op->extra->n_items; i += 2) {
        print_attr(p, op->extra->items[i]->text.data, (int)op->extra->items[i]->text.size, op->extra->items[i + 1],
                   first);
        first = false;
    }
    if (!first) tare_strbuf_putc(&p->line, '}');
}

/* ---- regions ---- */

static void print_arguments(struct printer *p, const struct tare_shlo_block *block,
                            const struct tare_shlo_attr *attrs) {
    for (size_t i = 0; i < block->n_args; i++) {
        p->names[block->args[i].number] = (struct name){ p->next_argument++, ARGUMENT };
        if (i) tare_strbuf_puts(&p->line, ", ");
        print_value(p, &block->args[i]);
        tare_strbuf_puts(&p->line, ": ");
        tare_shlo_print_type(&p->line, block->args[i].type);
        if (attrs && i < attrs->n_items && attrs->items[i]->n_items) {
            tare_strbuf_putc(&p->line, ' ');
            tare_shlo_print_attr(&p->line, attrs->items[i], p->max_elements);
        }
    }
}

static tare_status print_regions(struct printer *p, const struct tare_shlo_op *op, int indent) {
    for (size_t i = 0; i < op->n_regions; i++) {
        tare_strbuf_puts(&p->line, i ? "}, {" : " ({");
        TARE_TRY(end_line(p));
        if (op->regions[i].n_args) {
            begin_line(p, indent);
            tare_strbuf_puts(&p->line, "^bb0(");
            print_arguments(p, &op->regions[i], NULL);
            tare_strbuf_puts(&p->line, "):");
            TARE_TRY(end_line(p));
        }
        TARE_TRY(print_block_ops(p, &op->regions[i], indent + INDENT));
        begin_line(p, indent);
    }
    tare_strbuf_puts(&p->line, "})");
    return TARE_OK;
}

/* ---- ops ---- */

/* "vhlo.add_v1" -> "stablehlo.add"; calls and returns of functions have their MLIR names. */
static void print_op_name(struct printer *p, const struct tare_shlo_op *op, bool in_function) {
    const char *name = op->name, *version;
    if (!op->def) {
        tare_strbuf_puts(&p->line, name);
        return;
    }
    name = op->def->name;
    version = strstr(name, "_v");
    for (const char *later; version && (later = strstr(version + 1, "_v"));)
        version = later;
    if (!(in_function && tare_shlo_op_is(op, "return")) && !tare_shlo_op_is(op, "call"))
        tare_strbuf_puts(&p->line, "stablehlo.");
    tare_strbuf_append(&p->line, name, version ? (size_t)(version - name) : strlen(name));
}

static void print_constant(struct printer *p, const struct tare_shlo_op *op) {
    const struct tare_shlo_attr *value = tare_shlo_op_attr(op, "value");
    tare_strbuf_putc(&p->line, ' ');
    tare_shlo_print_constant(&p->line, value, p->max_elements);
}

static void print_call(struct printer *p, const struct tare_shlo_op *op) {
    tare_strbuf_printf(&p->line, " @%s(", tare_shlo_op_attr(op, "callee")->text.data);
    for (size_t i = 0; i < op->n_operands; i++) {
        if (i) tare_strbuf_puts(&p->line, ", ");
        print_value(p, op->operands[i]);
    }
    tare_strbuf_putc(&p->line, ')');
    print_attrs(p, op, "callee");
    print_signature(p, op);
}

static void print_return(struct printer *p, const struct tare_shlo_op *op) {
    print_values(p, op->operands, op->n_operands);
    if (op->n_operands) tare_strbuf_puts(&p->line, " :");
    for (size_t i = 0; i < op->n_operands; i++) {
        tare_strbuf_puts(&p->line, i ? ", " : " ");
        tare_shlo_print_type(&p->line, op->operands[i]->type);
    }
}

static tare_status print_op(struct printer *p, const struct tare_shlo_op *op, int indent) {
    begin_line(p, indent);
    name_results(p, op);
    print_op_name(p, op, indent == 2 * INDENT);
    if (tare_shlo_op_is(op, "constant") && tare_shlo_op_attr(op, "value")->kind == TARE_SHLO_ATTR_TENSOR) {
        print_constant(p, op);
    } else if (tare_shlo_op_is(op, "call") && tare_shlo_op_attr(op, "callee")->kind == TARE_SHLO_ATTR_STRING) {
        print_call(p, op);
    } else if (tare_shlo_op_is(op, "return")) {
        print_return(p, op);
    } else {
        print_values(p, op->operands, op->n_operands);
        print_attrs(p, op, NULL);
        print_signature(p, op);
        if (op->n_regions) TARE_TRY(print_regions(p, op, indent));
    }
    return end_line(p);
}

static tare_status print_block_ops(struct printer *p, const struct tare_shlo_block *block, int indent) {
    for (size_t i = 0; i < block->n_ops; i++)
        TARE_TRY(print_op(p, &block->ops[i], indent));
    return TARE_OK;
}

/* ---- functions ---- */

static void print_results(struct printer *p, const struct tare_shlo_op *function) {
    const struct tare_shlo_attr *type = tare_shlo_op_attr(function, "function_type");
    const struct tare_shlo_attr *attrs = tare_shlo_op_attr(function, "res_attrs");
    if (type->kind != TARE_SHLO_ATTR_TYPE || !type->type->outputs.count) return;
    tare_strbuf_puts(&p->line, " -> (");
    for (size_t i = 0; i < type->type->outputs.count; i++) {
        if (i) tare_strbuf_puts(&p->line, ", ");
        tare_shlo_print_type(&p->line, type->type->outputs.items[i]);
        if (i < attrs->n_items && attrs->items[i]->n_items) {
            tare_strbuf_putc(&p->line, ' ');
            tare_shlo_print_attr(&p->line, attrs->items[i], p->max_elements);
        }
    }
    tare_strbuf_putc(&p->line, ')');
}

static tare_status print_function(struct printer *p, const struct tare_shlo_op *function) {
    const struct tare_shlo_block *body = &function->regions[0];
    const struct tare_shlo_attr *visibility = tare_shlo_op_attr(function, "sym_visibility");
    const struct tare_shlo_attr *name = tare_shlo_op_attr(function, "sym_name");
    p->next = p->next_argument = 0;
    begin_line(p, INDENT);
    tare_strbuf_puts(&p->line, "func.func ");
    if (visibility->text.size) tare_strbuf_printf(&p->line, "%s ", visibility->text.data);
    tare_strbuf_printf(&p->line, "@%s(", name->text.data ? name->text.data : "");
    print_arguments(p, body, tare_shlo_op_attr(function, "arg_attrs"));
    tare_strbuf_putc(&p->line, ')');
    print_results(p, function);
    tare_strbuf_puts(&p->line, " {");
    TARE_TRY(end_line(p));
    TARE_TRY(print_block_ops(p, body, 2 * INDENT));
    begin_line(p, INDENT);
    tare_strbuf_putc(&p->line, '}');
    return end_line(p);
}

static tare_status print_module(struct printer *p, const struct tare_shlo_module *module) {
    const struct tare_shlo_block *body = &module->root->regions[0];
    tare_strbuf_puts(&p->line, "module");
    if (module->root->extra && module->root->extra->n_items) {
        tare_strbuf_puts(&p->line, " attributes ");
        tare_shlo_print_attr(&p->line, module->root->extra, p->max_elements);
    }
    tare_strbuf_puts(&p->line, " {");
    TARE_TRY(end_line(p));
    for (size_t i = 0; i < body->n_ops; i++)
        if (tare_shlo_op_is(&body->ops[i], "func"))
            TARE_TRY(print_function(p, &body->ops[i]));
        else
            TARE_TRY(print_op(p, &body->ops[i], INDENT));
    tare_strbuf_putc(&p->line, '}');
    return end_line(p);
}

tare_status tare_shlo_print(const struct tare_shlo_module *module, const struct tare_shlo_print_options *options) {
    struct printer p = { .options = options,
                         .max_elements = options->max_elements ? options->max_elements : DEFAULT_ELEMENTS,
                         .names = tare_calloc(module->n_values + 1, sizeof *p.names) };
    tare_status status = p.names ? print_module(&p, module) : TARE_NO_MEMORY;
    tare_free(p.names);
    tare_strbuf_free(&p.line);
    return status;
}
