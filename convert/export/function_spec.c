/* Python's inspect.FullArgSpec as TensorFlow encodes it (python/saved_model/nested_structure_coder.py). */
#include "convert/export/function_spec.h"
#include "proto/field.h"

static void *new_message(struct tare_arena *arena, const ProtobufCMessageDescriptor *descriptor) {
    return tare_message_new(arena, descriptor);
}

static Tensorflow__StructuredValue *value_new(struct tare_arena *arena, Tensorflow__StructuredValue__KindCase kind) {
    Tensorflow__StructuredValue *value = new_message(arena, &tensorflow__structured_value__descriptor);
    if (value) value->kind_case = kind;
    return value;
}

static Tensorflow__StructuredValue *none_new(struct tare_arena *arena) {
    Tensorflow__StructuredValue *value = value_new(arena, TENSORFLOW__STRUCTURED_VALUE__KIND_NONE_VALUE);
    if (value) value->none_value = new_message(arena, &tensorflow__none_value__descriptor);
    return value && value->none_value ? value : NULL;
}

static Tensorflow__StructuredValue *dict_new(struct tare_arena *arena) {
    Tensorflow__StructuredValue *value = value_new(arena, TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE);
    if (value) value->dict_value = new_message(arena, &tensorflow__dict_value__descriptor);
    return value && value->dict_value ? value : NULL;
}

static Tensorflow__StructuredValue *list_new(struct tare_arena *arena, char *const *texts, size_t count) {
    Tensorflow__StructuredValue *value = value_new(arena, TENSORFLOW__STRUCTURED_VALUE__KIND_LIST_VALUE);
    Tensorflow__ListValue *list = new_message(arena, &tensorflow__list_value__descriptor);
    if (!value || !list) return NULL;
    list->values = TARE_NEW_ARRAY(arena, Tensorflow__StructuredValue *, count + 1);
    if (!list->values) return NULL;
    for (; list->n_values < count; list->n_values++) {
        Tensorflow__StructuredValue *text = value_new(arena, TENSORFLOW__STRUCTURED_VALUE__KIND_STRING_VALUE);
        if (!text) return NULL;
        text->string_value = texts[list->n_values];
        list->values[list->n_values] = text;
    }
    value->list_value = list;
    return value;
}

tare_status tare_function_spec_new(Tensorflow__FunctionSpec **out, struct tare_arena *arena, char *const *names,
                                   size_t count) {
    const struct {
        const char *key;
        Tensorflow__StructuredValue *value;
    } fields[] = {
        { "args", list_new(arena, names, count) },
        { "varargs", none_new(arena) },
        { "varkw", none_new(arena) },
        { "defaults", none_new(arena) },
        { "kwonlyargs", list_new(arena, NULL, 0) },
        { "kwonlydefaults", none_new(arena) },
        { "annotations", dict_new(arena) },
    };
    enum { FIELDS = sizeof fields / sizeof *fields };
    Tensorflow__FunctionSpec *spec = new_message(arena, &tensorflow__function_spec__descriptor);
    Tensorflow__NamedTupleValue *tuple = new_message(arena, &tensorflow__named_tuple_value__descriptor);
    if (!spec || !tuple) return TARE_NO_MEMORY;
    spec->fullargspec = value_new(arena, TENSORFLOW__STRUCTURED_VALUE__KIND_NAMED_TUPLE_VALUE);
    spec->input_signature = none_new(arena);
    tuple->name = (char *)(uintptr_t) "FullArgSpec";
    tuple->values = TARE_NEW_ARRAY(arena, Tensorflow__PairValue *, FIELDS);
    if (!spec->fullargspec || !spec->input_signature || !tuple->values) return TARE_NO_MEMORY;
    for (; tuple->n_values < FIELDS; tuple->n_values++) {
        Tensorflow__PairValue *pair = new_message(arena, &tensorflow__pair_value__descriptor);
        if (!pair || !fields[tuple->n_values].value) return TARE_NO_MEMORY;
        pair->key = (char *)(uintptr_t)fields[tuple->n_values].key;
        pair->value = fields[tuple->n_values].value;
        tuple->values[tuple->n_values] = pair;
    }
    spec->fullargspec->named_tuple_value = tuple;
    *out = spec;
    return TARE_OK;
}
