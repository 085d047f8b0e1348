/* Reads the three specification strings of a row into a definition. */
#include "graph/definitions/opspec.h"
#include "base/ascii.h"
#include "base/strbuf.h"
#include "graph/attr_text.h"
#include "graph/definitions/textvalue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One item of a specification string, being read. */
struct cursor {
    struct tare_opspec_memory *memory;
    struct tare_op_def *def;
    const char *what; /* "Attr", "Input", "Output" */
    const char *text; /* the whole string, for positions */
    const char *item, *end;
    const char *at;
};

static bool is_word(char c) {
    return tare_is_letter_or_digit(c) || c == '_';
}

/* The registration error for the item, with the rest of the text. */
static tare_status complain(const struct cursor *cursor, const char *format, ...) TARE_PRINTF(2, 3);
static tare_status complain(const struct cursor *cursor, const char *format, ...) {
    va_list args;
    tare_status status;
    va_start(args, format);
    tare_fail_va(TARE_INVALID_ARGUMENT, format, args);
    va_end(args);
    char *said = tare_arena_strdup(&cursor->memory->arena, tare_error_text());
    status = TARE_FAIL(TARE_INVALID_ARGUMENT, "%s from %s(\"%.*s\") for Op %s (at character %zu of \"%s\")",
                       said ? said : "", cursor->what, (int)(cursor->end - cursor->item), cursor->item,
                       cursor->def->name, (size_t)(cursor->at - cursor->text) + 1, cursor->text);
    return status;
}

static int rest(const struct cursor *cursor) {
    return (int)(cursor->end - cursor->at);
}

static void skip(struct cursor *cursor) {
    while (cursor->at < cursor->end && tare_is_space(*cursor->at))
        cursor->at++;
}

static bool take(struct cursor *cursor, const char *literal) {
    size_t size = strlen(literal);
    if ((size_t)rest(cursor) < size || memcmp(cursor->at, literal, size) != 0) return false;
    cursor->at += size;
    skip(cursor);
    return true;
}

/* A letter and word characters, then spaces. */
static bool take_word(struct cursor *cursor, const char **word, size_t *size) {
    const char *at = cursor->at;
    if (at == cursor->end || !tare_is_letter(*at)) return false;
    while (at < cursor->end && is_word(*at))
        at++;
    *word = cursor->at;
    *size = (size_t)(at - cursor->at);
    cursor->at = at;
    skip(cursor);
    return true;
}

static bool take_name(struct cursor *cursor, const char **name) {
    const char *word, *start = cursor->at;
    size_t size;
    if (take_word(cursor, &word, &size) && take(cursor, ":")) {
        *name = tare_arena_strndup(&cursor->memory->arena, word, size);
        return *name;
    }
    cursor->at = start;
    return false;
}

/* ---- attributes ---- */

/* Named sets of dtypes, as bits; the listed order of a set is that of the numbers. */
#define BIT(id) (1u << TARE_DT_##id)
enum {
    REAL_TYPES = BIT(FLOAT) | BIT(DOUBLE) | BIT(INT32) | BIT(INT64) | BIT(UINT8) | BIT(INT16) | BIT(INT8) |
                 BIT(UINT16) | BIT(HALF) | BIT(UINT32) | BIT(UINT64) | BIT(BFLOAT16),
    QUANTIZED_TYPES = BIT(QINT8) | BIT(QUINT8) | BIT(QINT16) | BIT(QUINT16) | BIT(QINT32),
    NUMBER_TYPES = REAL_TYPES | QUANTIZED_TYPES | BIT(COMPLEX64) | BIT(COMPLEX128),
};
#undef BIT

static unsigned take_type_set(struct cursor *cursor) {
    static const struct {
        const char *name;
        unsigned types;
    } sets[] = {
        { "numbertype", NUMBER_TYPES },   { "numerictype", NUMBER_TYPES },   { "quantizedtype", QUANTIZED_TYPES },
        { "realnumbertype", REAL_TYPES }, { "realnumerictype", REAL_TYPES }, { "realnumberictype", REAL_TYPES },
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (take(cursor, sets[i].name)) return sets[i].types;
    return 0;
}

static void add_type_set(struct tare_attr *allowed, unsigned types) {
    for (int dtype = 1; dtype < 32; dtype++)
        if (types >> dtype & 1) allowed->items[allowed->count++].type = dtype;
}

/* An empty list with room for every entry that the text could name: up to its end, for a brace within a string does not
 * close the list. */
static struct tare_attr *new_allowed(struct cursor *cursor, enum tare_attr_kind kind, bool set_first) {
    struct tare_attr *allowed = TARE_NEW(&cursor->memory->arena, struct tare_attr);
    size_t room = set_first ? TARE_DT_COUNT : 1;
    for (const char *at = cursor->at; at < cursor->end; at++) {
        bool set = *at == 't' && cursor->end - at >= 4 && memcmp(at, "type", 4) == 0;
        room += set ? TARE_DT_COUNT : *at == ',';
    }
    if (!allowed) return NULL;
    allowed->kind = kind;
    allowed->is_list = true;
    allowed->items = TARE_NEW_ARRAY(&cursor->memory->arena, union tare_attr_item, room);
    return allowed->items ? allowed : NULL;
}

static tare_status read_allowed_strings(struct cursor *cursor, struct tare_attr *allowed) {
    for (;;) {
        const char *start = cursor->at, *at = start;
        struct tare_attr *string;
        if (at == cursor->end || (*at != '"' && *at != '\''))
            return complain(cursor, "Trouble parsing allowed string at '%.*s'", rest(cursor), cursor->at);
        for (at++; at < cursor->end && *at != *start; at++)
            if (*at == '\\' && at + 1 < cursor->end) at++;
        if (at == cursor->end)
            return complain(cursor, "Trouble parsing allowed string at '%.*s'", rest(cursor), cursor->at);
        string = tare_opspec_parse_value(cursor->memory, TARE_ATTR_STRING, false, start, (size_t)(at + 1 - start));
        if (!string)
            return complain(cursor, "Trouble unescaping \"%.*s\", got error: Invalid escape sequence",
                            (int)(at - start - 1), start + 1);
        allowed->items[allowed->count++] = string->items[0];
        cursor->at = at + 1;
        skip(cursor);
        if (take(cursor, ",")) {
            if (take(cursor, "}")) return TARE_OK; /* a comma may end the list */
        } else if (take(cursor, "}")) {
            return TARE_OK;
        } else {
            return complain(cursor, "Expected , or } after strings in list, not: '%.*s'", rest(cursor), cursor->at);
        }
    }
}

static tare_status read_allowed_types(struct cursor *cursor, struct tare_attr *allowed) {
    for (;;) {
        const char *word, *start = cursor->at;
        size_t size;
        unsigned set = take_type_set(cursor);
        if (set) {
            add_type_set(allowed, set);
        } else {
            if (!take_word(cursor, &word, &size))
                return complain(cursor, "Trouble parsing type string at '%.*s'", rest(cursor), cursor->at);
            int dtype = tare_dtype_from_name(word, size);
            if (dtype == TARE_DT_INVALID) {
                cursor->at = start;
                return complain(cursor, "Unrecognized type string '%.*s'", (int)size, word);
            }
            allowed->items[allowed->count++].type = dtype;
        }
        if (take(cursor, ",")) {
            if (take(cursor, "}")) return TARE_OK;
        } else if (take(cursor, "}")) {
            return TARE_OK;
        } else {
            return complain(cursor, "Expected , or } after types in list, not: '%.*s'", rest(cursor), cursor->at);
        }
    }
}

static bool take_plain_type(struct cursor *cursor, enum tare_attr_kind *kind) {
    static const struct {
        const char *name;
        enum tare_attr_kind kind;
    } types[] = {
        { "string", TARE_ATTR_STRING }, { "int", TARE_ATTR_INT },   { "float", TARE_ATTR_FLOAT },
        { "bool", TARE_ATTR_BOOL },     { "type", TARE_ATTR_TYPE }, { "shape", TARE_ATTR_SHAPE },
        { "tensor", TARE_ATTR_TENSOR }, { "func", TARE_ATTR_FUNC }, { "any", TARE_ATTR_NONE },
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        *kind = types[i].kind;
        if (take(cursor, types[i].name)) return true;
    }
    return false;
}

static tare_status read_type(struct cursor *cursor, struct tare_op_attr *attr) {
    struct tare_attr *allowed;
    unsigned set;
    if (take_plain_type(cursor, &attr->kind)) return TARE_OK;
    set = take_type_set(cursor);
    if (!set && !take(cursor, "{"))
        return complain(cursor, "Trouble parsing type string at '%.*s'", rest(cursor), cursor->at);
    attr->kind = !set && cursor->at < cursor->end && (*cursor->at == '"' || *cursor->at == '\'') ? TARE_ATTR_STRING
                                                                                                 : TARE_ATTR_TYPE;
    allowed = new_allowed(cursor, attr->kind, set != 0);
    if (!allowed) return TARE_NO_MEMORY;
    attr->allowed = allowed;
    if (set) return add_type_set(allowed, set), TARE_OK;
    return attr->kind == TARE_ATTR_STRING ? read_allowed_strings(cursor, allowed) : read_allowed_types(cursor, allowed);
}

static tare_status read_minimum(struct cursor *cursor, struct tare_op_attr *attr) {
    char digits[32] = "";
    size_t size = 0;
    char *end;
    while (size < sizeof digits - 1 && cursor->at + size < cursor->end &&
           ((size == 0 && cursor->at[0] == '-') || (cursor->at[size] >= '0' && cursor->at[size] <= '9'))) {
        digits[size] = cursor->at[size];
        size++;
    }
    errno = 0;
    attr->minimum = strtoll(digits, &end, 10);
    if (end == digits || *end || errno)
        return complain(cursor, "Could not parse integer lower limit after '>=', found '%.*s' instead", rest(cursor),
                        cursor->at);
    attr->has_minimum = true;
    cursor->at += size;
    skip(cursor);
    return TARE_OK;
}

static tare_status read_attr(struct cursor *cursor, struct tare_op_attr *attr) {
    skip(cursor);
    if (!take_name(cursor, &attr->name)) return complain(cursor, "Trouble parsing '<name>:'");
    if (take(cursor, "list")) {
        if (!take(cursor, "("))
            return complain(cursor, "Expected ( after 'list', not: '%.*s'", rest(cursor), cursor->at);
        attr->is_list = true;
    }
    TARE_TRY(read_type(cursor, attr));
    if (attr->is_list && !take(cursor, ")"))
        return complain(cursor, "Expected ) to close 'list(', not: '%.*s'", rest(cursor), cursor->at);
    if ((attr->is_list || attr->kind == TARE_ATTR_INT) && take(cursor, ">=")) TARE_TRY(read_minimum(cursor, attr));
    if (take(cursor, "=")) {
        attr->default_value =
            tare_opspec_parse_value(cursor->memory, attr->kind, attr->is_list, cursor->at, (size_t)rest(cursor));
        if (!attr->default_value)
            return complain(cursor, "Could not parse default value '%.*s'", rest(cursor), cursor->at);
        ((struct tare_attr *)attr->default_value)->name = attr->name;
        return TARE_OK;
    }
    return cursor->at == cursor->end ? TARE_OK
                                     : complain(cursor, "Extra '%.*s' unparsed at the end", rest(cursor), cursor->at);
}

/* ---- inputs and outputs ---- */

static struct tare_op_attr *find_attr(const struct cursor *cursor, const char *name, size_t size) {
    return (struct tare_op_attr *)tare_op_def_find_attr(cursor->def, name, size);
}

static tare_status set_type(struct cursor *cursor, struct tare_op_arg *arg, const char *word, size_t size) {
    const struct tare_op_attr *attr;
    int dtype = tare_dtype_from_name(word, size);
    if (dtype != TARE_DT_INVALID) {
        arg->dtype = tare_dtype_base(dtype);
        arg->is_ref |= tare_dtype_is_ref(dtype);
        return TARE_OK;
    }
    attr = find_attr(cursor, word, size);
    if (!attr || attr->kind != TARE_ATTR_TYPE) {
        cursor->at = word;
        return attr ? complain(cursor, "Reference to attr '%s' with type %s that isn't type or list(type)", attr->name,
                               tare_attr_kind_name(attr->kind, attr->is_list))
                    : complain(cursor, "Reference to unknown attr '%.*s'", (int)size, word);
    }
    if (attr->is_list)
        arg->type_list_attr = attr->name;
    else
        arg->type_attr = attr->name;
    return TARE_OK;
}

static tare_status set_number(struct cursor *cursor, struct tare_op_arg *arg, const char *word, size_t size) {
    const struct tare_op_attr *attr = find_attr(cursor, word, size);
    if (!attr) {
        cursor->at = word;
        return complain(cursor, "Reference to unknown attr '%.*s'", (int)size, word);
    }
    arg->number_attr = attr->name;
    return TARE_OK;
}

/* A count of tensors, or a list of their types, has at least one entry unless its registration specifies a minimum. */
static void imply_minimum(struct cursor *cursor, const char *name) {
    struct tare_op_attr *attr = name ? find_attr(cursor, name, strlen(name)) : NULL;
    if (!attr || attr->has_minimum) return;
    attr->has_minimum = true;
    attr->minimum = 1;
}

static tare_status read_arg(struct cursor *cursor, struct tare_op_arg *arg) {
    const char *word;
    size_t size;
    bool ref;
    skip(cursor);
    if (cursor->at == cursor->end || tare_is_letter(*cursor->at) != (*cursor->at >= 'a') ||
        !take_name(cursor, &arg->name))
        return complain(cursor, "Trouble parsing 'name:'");
    ref = cursor->end - cursor->at > 3 && memcmp(cursor->at, "Ref", 3) == 0 &&
          (tare_is_space(cursor->at[3]) || cursor->at[3] == '(') && take(cursor, "Ref") && take(cursor, "(");
    arg->is_ref = ref;
    if (!take_word(cursor, &word, &size))
        return complain(cursor, "Trouble parsing either a type or an attr name at '%.*s'", rest(cursor), cursor->at);
    if (take(cursor, "*")) {
        TARE_TRY(set_number(cursor, arg, word, size));
        if (!take_word(cursor, &word, &size))
            return complain(cursor, "Trouble parsing either a type or an attr name at '%.*s'", rest(cursor),
                            cursor->at);
    }
    TARE_TRY(set_type(cursor, arg, word, size));
    if (ref && !take(cursor, ")"))
        return complain(cursor, "Did not find closing ')' for 'Ref(', instead found: '%.*s'", rest(cursor), cursor->at);
    if (cursor->at != cursor->end)
        return complain(cursor, "Extra '%.*s' unparsed at the end", rest(cursor), cursor->at);
    imply_minimum(cursor, arg->number_attr);
    imply_minimum(cursor, arg->type_list_attr);
    if (arg->dtype == TARE_DT_RESOURCE) cursor->def->is_stateful = true;
    return TARE_OK;
}

/* ---- whole strings ---- */

/* The end of the item at `at`: the next separator outside quotes and brackets. */
static const char *item_end(const char *at, char separator) {
    int depth = 0;
    for (; *at && (*at != separator || depth > 0); at++) {
        if (*at == '"' || *at == '\'') {
            char quote = *at;
            for (at++; *at && *at != quote; at++)
                if (*at == '\\' && at[1]) at++;
            if (!*at) return at;
        } else if (*at == '(' || *at == '[' || *at == '{') {
            depth++;
        } else if (*at == ')' || *at == ']' || *at == '}') {
            depth--;
        }
    }
    return at;
}

static bool is_blank(const char *at) {
    while (tare_is_space(*at))
        at++;
    return !*at;
}

static size_t count_items(const char *text, char separator) {
    size_t count = 0;
    while (text && !is_blank(text)) {
        text = item_end(text, separator);
        text += *text == separator;
        count++;
    }
    return count;
}

/* Moves the cursor to the next item; false at the end. */
static bool next_item(struct cursor *cursor, char separator) {
    const char *start = cursor->item ? cursor->end + (*cursor->end == separator) : cursor->text;
    if (is_blank(start)) return false;
    while (tare_is_space(*start))
        start++;
    cursor->item = cursor->at = start;
    cursor->end = item_end(start, separator);
    while (cursor->end > start && tare_is_space(cursor->end[-1]))
        cursor->end--;
    return true;
}

/* Moves past the spaces between an item and its separator. */
static void to_separator(struct cursor *cursor) {
    while (tare_is_space(*cursor->end))
        cursor->end++;
}

/* Puts the cursor on a string that is one item. */
static void take_whole(struct cursor *cursor, const char *text) {
    cursor->text = cursor->item = cursor->at = text;
    cursor->end = text + strlen(text);
    while (cursor->end > text && tare_is_space(cursor->end[-1]))
        cursor->end--;
}

static tare_status new_attrs(struct tare_opspec_memory *memory, struct tare_op_def *def, size_t count) {
    def->attrs = TARE_NEW_ARRAY(&memory->arena, struct tare_op_attr, count + 1);
    return def->attrs ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status new_args(struct tare_opspec_memory *memory, struct tare_op_arg **args, size_t count) {
    *args = TARE_NEW_ARRAY(&memory->arena, struct tare_op_arg, count + 1);
    return *args ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status read_attrs(struct tare_opspec_memory *memory, struct tare_op_def *def, const char *text) {
    struct cursor cursor = { .memory = memory, .def = def, .what = "Attr", .text = text ? text : "" };
    TARE_TRY(new_attrs(memory, def, count_items(text, ';')));
    while (next_item(&cursor, ';')) {
        TARE_TRY(read_attr(&cursor, &def->attrs[def->n_attrs]));
        def->n_attrs++;
        to_separator(&cursor);
    }
    return TARE_OK;
}

static tare_status read_args(struct tare_opspec_memory *memory, struct tare_op_def *def, const char *what,
                             const char *text, struct tare_op_arg **args, size_t *count) {
    struct cursor cursor = { .memory = memory, .def = def, .what = what, .text = text ? text : "" };
    TARE_TRY(new_args(memory, args, count_items(text, ',')));
    while (next_item(&cursor, ',')) {
        TARE_TRY(read_arg(&cursor, &(*args)[*count]));
        ++*count;
        to_separator(&cursor);
    }
    return TARE_OK;
}

static tare_status new_def(struct tare_op_def **out, struct tare_opspec_memory *memory, const char *name,
                           const struct tare_op *row, bool is_stateful) {
    *out = TARE_NEW(&memory->arena, struct tare_op_def);
    if (!*out) return TARE_NO_MEMORY;
    **out = (struct tare_op_def){ .name = name, .row = row, .is_stateful = is_stateful };
    return TARE_OK;
}

tare_status tare_opspec_parse(struct tare_op_def **out, struct tare_opspec_memory *memory, const struct tare_op *row) {
    struct tare_op_def *def;
    TARE_TRY(new_def(&def, memory, row->name, row, row->flags & TARE_OP_STATEFUL));
    TARE_TRY(read_attrs(memory, def, row->attrs));
    TARE_TRY(read_args(memory, def, "Input", row->inputs, &def->inputs, &def->n_inputs));
    TARE_TRY(read_args(memory, def, "Output", row->outputs, &def->outputs, &def->n_outputs));
    TARE_TRY(tare_opspec_validate(def));
    *out = def;
    return TARE_OK;
}

/* ---- items given one by one ---- */

static tare_status read_attr_items(struct tare_opspec_memory *memory, struct tare_op_def *def,
                                   const struct tare_opspec_items *items) {
    struct cursor cursor = { .memory = memory, .def = def, .what = "Attr" };
    TARE_TRY(new_attrs(memory, def, items->count));
    for (size_t i = 0; i < items->count; i++) {
        take_whole(&cursor, items->texts[i]);
        TARE_TRY(read_attr(&cursor, &def->attrs[i]));
        def->n_attrs++;
    }
    return TARE_OK;
}

static tare_status read_arg_items(struct tare_opspec_memory *memory, struct tare_op_def *def, const char *what,
                                  const struct tare_opspec_items *items, struct tare_op_arg **args, size_t *count) {
    struct cursor cursor = { .memory = memory, .def = def, .what = what };
    TARE_TRY(new_args(memory, args, items->count));
    for (size_t i = 0; i < items->count; i++) {
        take_whole(&cursor, items->texts[i]);
        TARE_TRY(read_arg(&cursor, &(*args)[i]));
        ++*count;
    }
    return TARE_OK;
}

tare_status tare_opspec_parse_items(struct tare_op_def **out, struct tare_opspec_memory *memory,
                                    const struct tare_opspec_source *source) {
    struct tare_op_def *def;
    TARE_TRY(new_def(&def, memory, source->name, NULL, source->is_stateful));
    def->is_fused = source->is_fused;
    TARE_TRY(read_attr_items(memory, def, &source->attrs));
    TARE_TRY(read_arg_items(memory, def, "Input", &source->inputs, &def->inputs, &def->n_inputs));
    TARE_TRY(read_arg_items(memory, def, "Output", &source->outputs, &def->outputs, &def->n_outputs));
    TARE_TRY(tare_opspec_validate(def));
    *out = def;
    return TARE_OK;
}
