/* Kind, allowed values and minimum of an attribute's value. */
#include "graph/definitions/attr_check.h"
#include "base/strbuf.h"
#include "graph/attr_text.h"

#include <string.h>

static tare_status wrong_kind(const struct tare_attr *value, const struct tare_op_attr *attr) {
    return TARE_FAIL(
        TARE_INVALID_ARGUMENT, "AttrValue had value with type '%s' when '%s' expected for attr '%s'",
        value->kind == TARE_ATTR_NONE && !value->is_list ? "none" : tare_attr_kind_name(value->kind, value->is_list),
        tare_attr_kind_name(attr->kind, attr->is_list), attr->name);
}

static bool is_allowed(const struct tare_attr *allowed, const union tare_attr_item *item) {
    for (size_t i = 0; i < allowed->count; i++) {
        const union tare_attr_item *entry = &allowed->items[i];
        if (allowed->kind == TARE_ATTR_TYPE && entry->type == item->type) return true;
        if (allowed->kind == TARE_ATTR_STRING && entry->s.size == item->s.size &&
            memcmp(entry->s.data, item->s.data, item->s.size) == 0)
            return true;
    }
    return false;
}

static tare_status not_allowed(const union tare_attr_item *item, const struct tare_op_attr *attr) {
    struct tare_strbuf text = { 0 };
    tare_status status;
    tare_strbuf_printf(&text, "Value for attr '%s' of ", attr->name);
    tare_attr_print_item(&text, attr->kind, item);
    tare_strbuf_puts(&text, " is not in the list of allowed values: ");
    for (size_t i = 0; i < attr->allowed->count; i++) {
        if (i) tare_strbuf_puts(&text, ", ");
        tare_attr_print_item(&text, attr->kind, &attr->allowed->items[i]);
    }
    status = TARE_FAIL(TARE_INVALID_ARGUMENT, "%s", tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return status;
}

static tare_status check_minimum(const struct tare_attr *value, const struct tare_op_attr *attr) {
    if (attr->is_list && (int64_t)value->count < attr->minimum)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Length for attr '%s' of %zu must be at least minimum %lld", attr->name,
                         value->count, (long long)attr->minimum);
    if (!attr->is_list && attr->kind == TARE_ATTR_INT && value->items[0].i < attr->minimum)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Value for attr '%s' of %lld must be at least minimum %lld", attr->name,
                         (long long)value->items[0].i, (long long)attr->minimum);
    return TARE_OK;
}

bool tare_attr_has_kind(const struct tare_attr *value, const struct tare_op_attr *attr) {
    if (value->kind == TARE_ATTR_PLACEHOLDER) return true; /* filled in when its function is instantiated */
    if (attr->kind == TARE_ATTR_NONE && !attr->is_list) return true;
    if (value->is_list != attr->is_list || (!value->is_list && value->count != 1)) return false;
    return value->kind == attr->kind || attr->kind == TARE_ATTR_NONE || (value->is_list && value->count == 0);
}

tare_status tare_attr_check_kind(const struct tare_attr *value, const struct tare_op_attr *attr) {
    return tare_attr_has_kind(value, attr) ? TARE_OK : wrong_kind(value, attr);
}

tare_status tare_attr_check(const struct tare_attr *value, const struct tare_op_attr *attr) {
    if (value->kind == TARE_ATTR_PLACEHOLDER) return TARE_OK;
    if (attr->kind == TARE_ATTR_NONE && !attr->is_list) return TARE_OK;
    TARE_TRY(tare_attr_check_kind(value, attr));
    if (attr->has_minimum) TARE_TRY(check_minimum(value, attr));
    for (size_t i = 0; i < value->count; i++) {
        if (attr->kind == TARE_ATTR_TYPE && !tare_dtype_get(value->items[i].type))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid DataType %d for attr '%s'", value->items[i].type,
                             attr->name);
        if (attr->allowed && !is_allowed(attr->allowed, &value->items[i])) return not_allowed(&value->items[i], attr);
    }
    return TARE_OK;
}
