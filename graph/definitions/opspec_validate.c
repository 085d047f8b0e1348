/* Rules that a whole op definition must keep, from whatever source it comes. */
#include "graph/definitions/opspec.h"
#include "base/strbuf.h"
#include "graph/definitions/attr_check.h"
#include "graph/attr_text.h"

#include <string.h>

static bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}
static bool is_word(char c) {
    return is_upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* CamelCase parts joined by '>' (Addons>Foo); names that start with _ are internal and free. */
static bool is_op_name(const char *name) {
    if (*name == '_') return true;
    for (;;) {
        if (!is_upper(*name)) return false;
        while (is_word(*name))
            name++;
        if (!*name) return true;
        if (*name++ != '>') return false;
    }
}

static tare_status in_op(const struct tare_op_def *def, tare_status status) {
    if (status == TARE_OK || status == TARE_NO_MEMORY) return status;
    return TARE_FAIL(status, "%s; in OpDef: %s", tare_error_text(), def->name);
}

static tare_status check_attr(const struct tare_op_def *def, const struct tare_op_attr *attr) {
    if (tare_dtype_from_name(attr->name, strlen(attr->name)) != TARE_DT_INVALID)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Attr can't have name %s that matches a data type", attr->name);
    if (attr->has_minimum && attr->kind != TARE_ATTR_INT && !attr->is_list)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Attr '%s' has minimum for unsupported type %s", attr->name,
                         tare_attr_kind_name(attr->kind, attr->is_list));
    if (attr->has_minimum && attr->is_list && attr->minimum < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Attr '%s' with list type must have a non-negative minimum, not %lld",
                         attr->name, (long long)attr->minimum);
    if (!attr->has_minimum && attr->minimum != 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Attr '%s' with has_minimum = false but minimum %lld not equal to default of 0", attr->name,
                         (long long)attr->minimum);
    if (attr->allowed && attr->allowed->kind != attr->kind)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "allowed values of %s (expected %s) for attr '%s' in Op '%s'",
                         tare_attr_kind_name(attr->allowed->kind, false), tare_attr_kind_name(attr->kind, false),
                         attr->name, def->name);
    if (attr->default_value && tare_attr_check(attr->default_value, attr) != TARE_OK)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s for attr '%s' in Op '%s'", tare_error_text(), attr->name,
                         def->name);
    return TARE_OK;
}

static tare_status refuse(const char *side, const struct tare_op_arg *arg, const char *what, const char *attr) {
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s%s%s%s for %s '%s'", attr ? "Attr '" : "", attr ? attr : "",
                     attr ? "' " : "", what, side, arg->name);
}

static tare_status check_type_attr(const struct tare_op_def *def, const struct tare_op_arg *arg, const char *side,
                                   const char *name, bool is_list) {
    const struct tare_op_attr *attr = name ? tare_op_def_find_attr(def, name, strlen(name)) : NULL;
    if (!name) return TARE_OK;
    if (!attr) return TARE_FAIL(TARE_INVALID_ARGUMENT, "No attr with name '%s' for %s '%s'", name, side, arg->name);
    if (attr->kind != TARE_ATTR_TYPE || attr->is_list != is_list)
        return refuse(side, arg,
                      is_list ? "used as type_list_attr is not of type list(type)"
                              : "used as type_attr is not of type type",
                      name);
    return TARE_OK;
}

static tare_status check_arg(const struct tare_op_def *def, const struct tare_op_arg *arg, const char *side) {
    int types = (arg->dtype != TARE_DT_INVALID) + (arg->type_attr != NULL) + (arg->type_list_attr != NULL);
    if (arg->number_attr) {
        const struct tare_op_attr *attr = tare_op_def_find_attr(def, arg->number_attr, strlen(arg->number_attr));
        if (!attr)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "No attr with name '%s' for %s '%s'", arg->number_attr, side,
                             arg->name);
        if (attr->kind != TARE_ATTR_INT || attr->is_list)
            return refuse(side, arg, "used as length is not of type int", attr->name);
        if (!attr->has_minimum) return refuse(side, arg, "used as length must have minimum", attr->name);
        if (attr->minimum < 0) return refuse(side, arg, "used as length must have minimum >= 0", attr->name);
        if (arg->type_list_attr) return refuse(side, arg, "Can't have both number_attr and type_list_attr", NULL);
    }
    if (types != 1) return refuse(side, arg, "Exactly one of type, type_attr, type_list_attr must be set", NULL);
    TARE_TRY(check_type_attr(def, arg, side, arg->type_attr, false));
    return check_type_attr(def, arg, side, arg->type_list_attr, true);
}

/* Attributes, inputs and outputs share one space of names. Definitions are small: comparing all pairs is fast. */
static const char *name_at(const struct tare_op_def *def, size_t i) {
    if (i < def->n_attrs) return def->attrs[i].name;
    i -= def->n_attrs;
    return i < def->n_inputs ? def->inputs[i].name : def->outputs[i - def->n_inputs].name;
}

static tare_status check_duplicates(const struct tare_op_def *def) {
    size_t count = def->n_attrs + def->n_inputs + def->n_outputs;
    for (size_t i = 1; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(name_at(def, i), name_at(def, k)) == 0)
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "Duplicate name: %s", name_at(def, i));
    return TARE_OK;
}

static bool is_identifier(const char *name) {
    if (!is_word(*name) || (*name >= '0' && *name <= '9')) return false;
    while (is_word(*name))
        name++;
    return !*name;
}

static tare_status check(const struct tare_op_def *def) {
    if (def->is_fused ? !is_identifier(def->name) : !is_op_name(def->name))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid name: %s (%s)", def->name,
                         def->is_fused ? "expected letters, digits and _" : "Did you use CamelCase?");
    TARE_TRY(check_duplicates(def));
    for (size_t i = 0; i < def->n_attrs; i++)
        TARE_TRY(check_attr(def, &def->attrs[i]));
    for (size_t i = 0; i < def->n_inputs; i++)
        TARE_TRY(check_arg(def, &def->inputs[i], "input"));
    for (size_t i = 0; i < def->n_outputs; i++)
        TARE_TRY(check_arg(def, &def->outputs[i], "output"));
    return TARE_OK;
}

tare_status tare_opspec_validate(const struct tare_op_def *def) {
    return in_op(def, check(def));
}
