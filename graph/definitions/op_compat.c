/* Which changes of an op's definition break graphs that were made before it. */
#include "graph/definitions/op_compat.h"
#include "base/strbuf.h"
#include "graph/attr_text.h"
#include "graph/definitions/opspec.h"

#include <string.h>

enum { MOST_COPIES = 4096 }; /* of a tensor that a default counts */

void tare_op_changes_free(struct tare_op_changes *changes) {
    tare_arena_free(&changes->arena);
    *changes = (struct tare_op_changes){ 0 };
}

static tare_status add(struct tare_op_changes *changes, const struct tare_strbuf *text) {
    const char **grown = tare_arena_append(&changes->arena, changes->items, changes->count, sizeof *grown);
    const char *copy = tare_arena_strdup(&changes->arena, tare_strbuf_text(text));
    if (!grown || !copy || text->failed) return TARE_NO_MEMORY;
    grown[changes->count++] = copy;
    changes->items = grown;
    return TARE_OK;
}

/* Takes the text over. */
static tare_status add_and_free(struct tare_op_changes *changes, struct tare_strbuf *text) {
    tare_status status = add(changes, text);
    tare_strbuf_free(text);
    return status;
}

static const struct tare_op_attr *find(const struct tare_op_def *def, const char *name) {
    return tare_op_def_find_attr(def, name, strlen(name));
}

/* ---- attributes ---- */

static bool allows(const struct tare_attr *allowed, enum tare_attr_kind kind, const union tare_attr_item *item) {
    struct tare_attr expected = { .kind = kind, .count = 1, .items = (union tare_attr_item *)(uintptr_t)item };
    for (size_t i = 0; i < allowed->count; i++) {
        struct tare_attr entry = { .kind = allowed->kind, .count = 1, .items = &allowed->items[i] };
        if (tare_attr_equal(&entry, &expected)) return true;
    }
    return false;
}

static bool is_stricter(const struct tare_op_attr *before, const struct tare_op_attr *now) {
    if (!now->allowed) return false;
    if (!before->allowed) return true;
    for (size_t i = 0; i < before->allowed->count; i++)
        if (!allows(now->allowed, before->allowed->kind, &before->allowed->items[i])) return true;
    return false;
}

static bool is_higher(const struct tare_op_attr *before, const struct tare_op_attr *now) {
    return now->has_minimum && (!before->has_minimum || now->minimum > before->minimum);
}

static void print_allowed(struct tare_strbuf *text, const struct tare_op_attr *attr) {
    if (attr->allowed)
        tare_attr_print(text, attr->allowed);
    else
        tare_strbuf_puts(text, "no restriction");
}

static void print_minimum(struct tare_strbuf *text, const struct tare_op_attr *attr) {
    if (attr->has_minimum)
        tare_strbuf_printf(text, "%lld", (long long)attr->minimum);
    else
        tare_strbuf_puts(text, "no minimum");
}

static void print_default(struct tare_strbuf *text, const struct tare_op_attr *attr) {
    if (attr->default_value)
        tare_attr_print(text, attr->default_value);
    else
        tare_strbuf_puts(text, "no default");
}

static tare_status from_to(struct tare_op_changes *changes, const char *what, const struct tare_op_attr *before,
                           const struct tare_op_attr *now,
                           void (*print)(struct tare_strbuf *text, const struct tare_op_attr *attr)) {
    struct tare_strbuf text = { 0 };
    tare_strbuf_printf(&text, "Attr '%s' %s; from ", before->name, what);
    print(&text, before);
    tare_strbuf_puts(&text, " to ");
    print(&text, now);
    return add_and_free(changes, &text);
}

static tare_status compare_attr(struct tare_op_changes *changes, const struct tare_op_attr *before,
                                const struct tare_op_attr *now) {
    struct tare_strbuf text = { 0 };
    if (!now) {
        tare_strbuf_printf(&text, "Attr '%s' removed", before->name);
        return add_and_free(changes, &text);
    }
    if (before->kind != now->kind || before->is_list != now->is_list) {
        tare_strbuf_printf(&text, "Attr '%s' changed type '%s' -> '%s'", before->name,
                           tare_attr_kind_name(before->kind, before->is_list),
                           tare_attr_kind_name(now->kind, now->is_list));
        return add_and_free(changes, &text);
    }
    if (is_stricter(before, now))
        TARE_TRY(from_to(changes, "has a stricter set of allowed values", before, now, print_allowed));
    if (is_higher(before, now)) TARE_TRY(from_to(changes, "has a higher minimum", before, now, print_minimum));
    if (before->default_value && !now->default_value)
        return from_to(changes, "has lost its default", before, now, print_default);
    if (before->default_value && !tare_attr_equal(before->default_value, now->default_value))
        return from_to(changes, "has changed its default", before, now, print_default);
    return TARE_OK;
}

static tare_status compare_attrs(struct tare_op_changes *changes, const struct tare_op_def *before,
                                 const struct tare_op_def *now) {
    for (size_t i = 0; i < before->n_attrs; i++)
        TARE_TRY(compare_attr(changes, &before->attrs[i], find(now, before->attrs[i].name)));
    for (size_t i = 0; i < now->n_attrs; i++) {
        struct tare_strbuf text = { 0 };
        if (now->attrs[i].default_value || find(before, now->attrs[i].name)) continue;
        tare_strbuf_printf(&text, "Attr '%s' added without default", now->attrs[i].name);
        TARE_TRY(add_and_free(changes, &text));
    }
    return TARE_OK;
}

/* ---- inputs and outputs ---- */

/* The resolved arguments of one side for an old node: its own attributes stay symbolic, new attributes are replaced by
 * their defaults. */
struct signature {
    struct tare_strbuf text;
    bool *refs;
    size_t count;
    bool names; /* functions refer to outputs by name */
    struct tare_arena arena;
    bool failed;
};

static void add_part(struct signature *signature, const struct tare_op_arg *arg, const char *type) {
    bool *grown = tare_arena_append(&signature->arena, signature->refs, signature->count, sizeof *grown);
    if (!grown) {
        signature->failed = true;
        return;
    }
    grown[signature->count++] = arg->is_ref;
    signature->refs = grown;
    tare_strbuf_printf(&signature->text, "%s%s%s%s", signature->count > 1 ? ", " : "",
                       signature->names ? arg->name : "", signature->names ? ": " : "", type);
}

static const char *dtype_name(int dtype) {
    const struct tare_dtype_info *info = tare_dtype_get(dtype);
    return info ? info->spec_name : "?";
}

/* The default of an attribute that old nodes do not have; NULL for one that they have, or without a default (which is a
 * break of its own). */
static const struct tare_attr *new_default(const struct tare_op_def *before, const struct tare_op_def *def,
                                           const char *name) {
    const struct tare_op_attr *attr = name && !find(before, name) ? find(def, name) : NULL;
    return attr ? attr->default_value : NULL;
}

static void add_arg(struct signature *signature, const struct tare_op_def *before, const struct tare_op_def *def,
                    const struct tare_op_arg *arg) {
    const struct tare_attr *number = new_default(before, def, arg->number_attr);
    const struct tare_attr *list = new_default(before, def, arg->type_list_attr);
    const struct tare_attr *type = new_default(before, def, arg->type_attr);
    const char *name = type             ? dtype_name(type->items[0].type)
                       : arg->type_attr ? arg->type_attr
                                        : dtype_name(arg->dtype);
    if (list) {
        for (size_t i = 0; i < list->count; i++)
            add_part(signature, arg, dtype_name(list->items[i].type));
    } else if (arg->type_list_attr) {
        add_part(signature, arg, arg->type_list_attr);
    } else if (number) {
        for (int64_t i = 0; i < number->items[0].i && i < MOST_COPIES; i++)
            add_part(signature, arg, name);
    } else if (arg->number_attr) {
        struct tare_strbuf repeated = { 0 };
        tare_strbuf_printf(&repeated, "%s * %s", arg->number_attr, name);
        add_part(signature, arg, tare_strbuf_text(&repeated));
        tare_strbuf_free(&repeated);
    } else {
        add_part(signature, arg, name);
    }
}

static void make_signature(struct signature *signature, const struct tare_op_def *before, const struct tare_op_def *def,
                           bool outputs) {
    const struct tare_op_arg *args = outputs ? def->outputs : def->inputs;
    size_t count = outputs ? def->n_outputs : def->n_inputs;
    *signature = (struct signature){ .names = outputs };
    for (size_t i = 0; i < count; i++)
        add_arg(signature, before, def, &args[i]);
}

static tare_status compare_signatures(struct tare_op_changes *changes, const struct signature *before,
                                      const struct signature *now, bool outputs) {
    const char *old_text = tare_strbuf_text(&before->text), *new_text = tare_strbuf_text(&now->text);
    struct tare_strbuf text = { 0 };
    if (before->failed || now->failed || before->text.failed || now->text.failed) return TARE_NO_MEMORY;
    if (strcmp(old_text, new_text) != 0 || before->count != now->count) {
        tare_strbuf_printf(&text, "%s signature mismatch '%s' vs. '%s'", outputs ? "Output" : "Input", old_text,
                           new_text);
        return add_and_free(changes, &text);
    }
    for (size_t i = 0; i < before->count; i++) {
        /* a reference serves where a value is expected, a value not where a reference is */
        bool breaks = outputs ? before->refs[i] && !now->refs[i] : !before->refs[i] && now->refs[i];
        if (!breaks) continue;
        text = (struct tare_strbuf){ 0 };
        tare_strbuf_printf(
            &text, outputs ? "Output %zu changed from ref to non-ref" : "Input %zu changed from non-ref to ref", i);
        TARE_TRY(add_and_free(changes, &text));
    }
    return TARE_OK;
}

static tare_status compare_side(struct tare_op_changes *changes, const struct tare_op_def *before,
                                const struct tare_op_def *now, bool outputs) {
    struct signature a, b;
    tare_status status;
    make_signature(&a, before, before, outputs);
    make_signature(&b, before, now, outputs);
    status = compare_signatures(changes, &a, &b, outputs);
    tare_strbuf_free(&a.text);
    tare_strbuf_free(&b.text);
    tare_arena_free(&a.arena);
    tare_arena_free(&b.arena);
    return status;
}

tare_status tare_op_compare(struct tare_op_changes *changes, const struct tare_op_def *before,
                            const struct tare_op_def *now) {
    TARE_TRY(compare_attrs(changes, before, now));
    TARE_TRY(compare_side(changes, before, now, false));
    return compare_side(changes, before, now, true);
}
