/* Traces of a model, described by the object graph and, where that has no entry, by their graphs. */
#include "convert/python_functions.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "convert/source.h"
#include "convert/structured.h"
#include "proto/tensor_message.h"

#include <stdlib.h>
#include <string.h>

typedef Tensorflow__StructuredValue value_message;

struct lister {
    struct tare_function_list *list;
    struct tare_map group_of;         /* function name -> group */
    struct tare_map described, bound; /* function name -> its description in the object graph and the model */
    struct tare_map group_by_name;    /* Python name -> group, of functions without object */
};

/* "__inference_double_162" was traced from double. */
static const char *python_name(struct lister *l, const char *function) {
    static const char *const prefixes[] = { "__inference_", "__forward_", "__backward_" };
    size_t size, digits = 0;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(function, prefixes[i], strlen(prefixes[i])) == 0) {
            function += strlen(prefixes[i]);
            break;
        }
    size = strlen(function);
    while (digits < size && function[size - 1 - digits] >= '0' && function[size - 1 - digits] <= '9')
        digits++;
    if (digits && size > digits + 1 && function[size - 1 - digits] == '_') size -= digits + 1;
    return tare_arena_strndup(&l->list->arena, function, size);
}

/* ---- paths of objects ---- */

enum { MAX_PATH_TEXT = 1000 };
static const char CUT_PATH[] = "...";

static const char *path_below(struct lister *l, const char *parent, const char *name) {
    size_t size = strlen(parent);
    if (parent == CUT_PATH || size + strlen(name) > MAX_PATH_TEXT) return CUT_PATH;
    return tare_arena_printf(&l->list->arena, "%s.%s", parent, name);
}

/* The shortest path from the root to every object, ".a.b"; "" for the root. A very long path is truncated with "...",
 * so that the total size is bounded by the size of the file. */
static tare_status find_paths(struct lister *l) {
    size_t count = l->list->objects ? l->list->objects->n_nodes : 0, head = 0, tail = 0;
    struct tare_arena scratch = { 0 };
    size_t *queue = TARE_NEW_ARRAY(&scratch, size_t, count + 1);
    tare_status status = TARE_NO_MEMORY;
    l->list->paths = TARE_NEW_ARRAY(&l->list->arena, const char *, count + 1);
    if (!queue || !l->list->paths) goto done;
    if (count) {
        l->list->paths[0] = "";
        queue[tail++] = 0;
    }
    while (head < tail) {
        size_t id = queue[head++];
        const Tensorflow__SavedObject *object = l->list->objects->nodes[id];
        for (size_t i = 0; i < object->n_children; i++) {
            int child = object->children[i]->node_id;
            if (child < 0 || (size_t)child >= count || l->list->paths[child]) continue;
            l->list->paths[child] = path_below(l, l->list->paths[id], object->children[i]->local_name);
            if (!l->list->paths[child]) goto done;
            queue[tail++] = (size_t)child;
        }
    }
    status = TARE_OK;
done:
    tare_arena_free(&scratch);
    return status;
}

/* ---- describing a trace ---- */

struct describer {
    struct tare_arena *arena;
    const struct tare_function_list *list;
    struct tare_map texts; /* of arguments: text -> itself */
};

static const char *keep(struct describer *d, struct tare_strbuf *text) {
    const char *copy = text->failed ? NULL : tare_arena_strndup(d->arena, tare_strbuf_text(text), text->size);
    tare_strbuf_free(text);
    return copy;
}

/* The same for strings with many duplicates. */
static const char *keep_once(struct describer *d, struct tare_strbuf *text) {
    const char *copy = text->failed ? NULL : tare_map_get(&d->texts, tare_strbuf_text(text));
    if (copy) {
        tare_strbuf_free(text);
        return copy;
    }
    copy = keep(d, text);
    return copy && tare_map_set(&d->texts, copy, (char *)(uintptr_t)copy) ? copy : NULL;
}

/* ---- captures ---- */

static struct tare_shape shape_of(const Tensorflow__TensorShapeProto *message) {
    struct tare_shape shape;
    if (tare_shape_from_message(&shape, message) == TARE_OK) return shape;
    tare_error_clear();
    return tare_shape_unknown();
}

static void describe_constant(struct tare_function_capture *capture, struct describer *d, const char *operation) {
    const struct tare_node *node = tare_graph_find(d->list->model->main, operation);
    const struct tare_tensor *value = node ? tare_node_tensor(node, "value") : NULL;
    capture->kind = "constant";
    capture->name = operation;
    if (value) capture->shape = value->shape;
}

static void describe_asset(struct tare_function_capture *capture, struct describer *d, int index) {
    capture->kind = "asset";
    if (d->list->meta && index >= 0 && (size_t)index < d->list->meta->n_asset_file_def)
        capture->name = d->list->meta->asset_file_def[index]->filename;
    capture->shape = tare_shape_scalar();
}

static struct tare_function_capture describe_capture(struct describer *d, const struct tare_node *arg, int id) {
    const Tensorflow__SavedObject *object =
        d->list->objects && id >= 0 && (size_t)id < d->list->objects->n_nodes ? d->list->objects->nodes[id] : NULL;
    struct tare_function_capture capture = { .name = object && d->list->paths[id] ? d->list->paths[id] : arg->name,
                                             .kind = "tensor",
                                             .dtype = tare_edge_dtype((struct tare_edge){ (struct tare_node *)arg, 0 }),
                                             .shape = tare_shape_unknown() };
    switch (object ? object->kind_case : TENSORFLOW__SAVED_OBJECT__KIND__NOT_SET) {
    case TENSORFLOW__SAVED_OBJECT__KIND_VARIABLE:
        capture.kind = "variable";
        if (*object->variable->name) capture.name = object->variable->name;
        capture.dtype = (int)object->variable->dtype;
        capture.shape = shape_of(object->variable->shape);
        break;
    case TENSORFLOW__SAVED_OBJECT__KIND_CONSTANT:
        describe_constant(&capture, d, object->constant->operation);
        break;
    case TENSORFLOW__SAVED_OBJECT__KIND_ASSET:
        describe_asset(&capture, d, object->asset->asset_file_def_index);
        break;
    case TENSORFLOW__SAVED_OBJECT__KIND_RESOURCE:
        capture.kind = "resource";
        break;
    default:
        break;
    }
    return capture;
}

static tare_status add_captures(struct describer *d, struct tare_trace *trace, const struct tare_concrete *concrete) {
    struct tare_function_capture *captures;
    size_t first;
    if (!concrete || !concrete->n_bound) return TARE_OK;
    captures = TARE_NEW_ARRAY(d->arena, struct tare_function_capture, concrete->n_bound);
    if (!captures) return TARE_NO_MEMORY;
    first = trace->graph->n_args - concrete->n_bound;
    for (size_t i = 0; i < concrete->n_bound; i++)
        captures[i] = describe_capture(d, trace->graph->args[first + i], concrete->bound[i]);
    trace->captures = captures;
    trace->n_captures = concrete->n_bound;
    return TARE_OK;
}

/* ---- signatures that the object graph knows ---- */

/* A field of inspect.getfullargspec's result. */
static const value_message *spec_field(const Tensorflow__FunctionSpec *spec, const char *field) {
    const value_message *full = spec ? spec->fullargspec : NULL;
    if (!full || full->kind_case != TENSORFLOW__STRUCTURED_VALUE__KIND_NAMED_TUPLE_VALUE) return NULL;
    for (size_t i = 0; i < full->named_tuple_value->n_values; i++)
        if (strcmp(full->named_tuple_value->values[i]->key, field) == 0)
            return full->named_tuple_value->values[i]->value;
    return NULL;
}

static const Tensorflow__ListValue *argument_names(const Tensorflow__FunctionSpec *spec) {
    const value_message *names = spec_field(spec, "args");
    return names && names->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_LIST_VALUE ? names->list_value : NULL;
}

static const char *name_in(const Tensorflow__ListValue *names, size_t i) {
    const value_message *name = i < names->n_values ? names->values[i] : NULL;
    return name && name->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_STRING_VALUE ? name->string_value : NULL;
}

const char *tare_function_argument_name(const Tensorflow__FunctionSpec *spec, size_t i) {
    const Tensorflow__ListValue *names = argument_names(spec);
    return names ? name_in(names, spec->is_method ? i + 1 : i) : NULL;
}

/* The defaults are those of the last positional arguments. */
const value_message *tare_function_argument_default(const Tensorflow__FunctionSpec *spec, const char *name) {
    const Tensorflow__ListValue *names = argument_names(spec);
    const value_message *defaults = spec_field(spec, "defaults"), *keywords = spec_field(spec, "kwonlydefaults");
    const size_t count = names ? names->n_values : 0, n_defaults = tare_structured_tuple_size(defaults);
    for (size_t i = count > n_defaults ? count - n_defaults : 0; i < count; i++) {
        const char *own = name_in(names, i);
        if (own && strcmp(own, name) == 0) return tare_structured_tuple_item(defaults, i + n_defaults - count);
    }
    if (!keywords || keywords->kind_case != TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE) return NULL;
    for (size_t i = 0; i < keywords->dict_value->n_fields; i++)
        if (strcmp(keywords->dict_value->fields[i]->key, name) == 0) return keywords->dict_value->fields[i]->value;
    return NULL;
}

struct title {
    struct tare_strbuf text;
    size_t count;                             /* arguments so far */
    struct tare_function_argument *arguments; /* those that are tensors */
    size_t n_arguments;
};

/* A tensor is printed on a separate line; any other value is bound and printed next to its name. */
static bool add_argument(struct describer *d, struct title *title, const char *name, const value_message *value) {
    struct tare_strbuf text = { 0 };
    if (title->count++) tare_strbuf_puts(&title->text, ", ");
    tare_strbuf_puts(&title->text, name);
    if (!tare_structured_has_spec(value)) {
        tare_strbuf_putc(&title->text, '=');
        tare_structured_str(&title->text, value);
        return true;
    }
    tare_structured_spec(&text, value);
    title->arguments[title->n_arguments] = (struct tare_function_argument){ name, keep_once(d, &text) };
    return title->arguments[title->n_arguments++].text;
}

static bool add_positional(struct describer *d, struct title *title, const value_message *args,
                           const Tensorflow__FunctionSpec *spec) {
    for (size_t i = 0; i < tare_structured_tuple_size(args); i++) {
        const char *name = tare_function_argument_name(spec, i);
        if (!name) name = tare_arena_printf(d->arena, "args_%zu", i);
        if (!name || !add_argument(d, title, name, tare_structured_tuple_item(args, i))) return false;
    }
    return true;
}

static int by_key(const void *a, const void *b) {
    return strcmp((*(Tensorflow__DictValue__FieldsEntry *const *)a)->key,
                  (*(Tensorflow__DictValue__FieldsEntry *const *)b)->key);
}

/* By name: maps have no order. */
static bool add_keywords(struct describer *d, struct title *title, const Tensorflow__DictValue *dict) {
    size_t count = dict->n_fields;
    Tensorflow__DictValue__FieldsEntry **sorted =
        TARE_NEW_ARRAY(d->arena, Tensorflow__DictValue__FieldsEntry *, count + 1);
    if (!sorted) return false;
    for (size_t i = 0; i < count; i++)
        sorted[i] = dict->fields[i];
    qsort(sorted, count, sizeof *sorted, by_key);
    if (count) tare_strbuf_puts(&title->text, title->count++ ? ", *" : "*");
    for (size_t i = 0; i < count; i++)
        if (!add_argument(d, title, sorted[i]->key, sorted[i]->value)) return false;
    return true;
}

static tare_status finish(struct describer *d, struct tare_trace *trace, struct title *title) {
    tare_strbuf_putc(&title->text, ')');
    trace->arguments = title->arguments;
    trace->n_arguments = title->n_arguments;
    trace->signature = keep(d, &title->text);
    return trace->signature ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status describe_structured(struct describer *d, struct tare_trace *trace, const char *name,
                                       const Tensorflow__SavedConcreteFunction *concrete,
                                       const Tensorflow__FunctionSpec *spec) {
    const value_message *args = tare_structured_tuple_item(concrete->canonicalized_input_signature, 0),
                        *keywords = tare_structured_tuple_item(concrete->canonicalized_input_signature, 1);
    const Tensorflow__DictValue *dict =
        keywords && keywords->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE ? keywords->dict_value : NULL;
    struct title title = { 0 };
    struct tare_strbuf returns = { 0 };
    title.arguments = TARE_NEW_ARRAY(d->arena, struct tare_function_argument,
                                     tare_structured_tuple_size(args) + (dict ? dict->n_fields : 0) + 1);
    tare_strbuf_printf(&title.text, "%s(", name);
    if (!title.arguments || !add_positional(d, &title, args, spec) || (dict && !add_keywords(d, &title, dict))) {
        tare_strbuf_free(&title.text);
        return TARE_NO_MEMORY;
    }
    TARE_TRY(finish(d, trace, &title));
    tare_structured_spec(&returns, concrete->output_signature);
    trace->returns = keep(d, &returns);
    return trace->returns ? TARE_OK : TARE_NO_MEMORY;
}

/* ---- signatures that only the graph knows ---- */

static const Tensorflow__AttrValue__ListValue *output_shapes(Tensorflow__AttrEntry *const *attrs, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(attrs[i]->key, "_output_shapes") == 0 && attrs[i]->value &&
            attrs[i]->value->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST)
            return attrs[i]->value->list;
    return NULL;
}

struct tare_shape tare_function_argument_shape(const struct tare_graph *graph, size_t i) {
    const Tensorflow__FunctionDef *def = graph->origin;
    const struct tare_attr *all = tare_graph_find_attr(graph, "_input_shapes"),
                           *of_node = tare_node_find_attr(graph->args[i], "_output_shapes");
    const Tensorflow__AttrValue__ListValue *own = NULL;
    for (size_t k = 0; def && k < def->n_arg_attr && !own; k++)
        if (def->arg_attr[k]->key == i && def->arg_attr[k]->value)
            own = output_shapes(def->arg_attr[k]->value->attr, def->arg_attr[k]->value->n_attr);
    if (own && own->n_shape) return shape_of(own->shape[0]);
    if (of_node && of_node->is_list && of_node->kind == TARE_ATTR_SHAPE) return *of_node->items[0].shape;
    if (all && all->is_list && all->kind == TARE_ATTR_SHAPE && i < all->count) return *all->items[i].shape;
    return tare_shape_unknown();
}

static struct tare_shape result_shape(const struct tare_return *result) {
    const struct tare_attr *shapes =
        result->edge.node ? tare_node_find_attr(result->edge.node, "_output_shapes") : NULL;
    if (shapes && shapes->is_list && shapes->kind == TARE_ATTR_SHAPE && (size_t)result->edge.index < shapes->count)
        return *shapes->items[result->edge.index].shape;
    return tare_shape_unknown();
}

static void put_tensor(struct tare_strbuf *out, int dtype, const struct tare_shape *shape) {
    tare_strbuf_printf(out, "%s Tensor, shape=", tare_dtype_name(dtype));
    tare_shape_python(out, shape);
}

static const char *flat_returns(struct describer *d, const struct tare_graph *graph) {
    struct tare_strbuf text = { 0 };
    if (graph->n_returns != 1) {
        tare_strbuf_putc(&text, '(');
        for (size_t i = 0; i < graph->n_returns; i++)
            tare_strbuf_printf(&text, "%s<%zu>", i ? ", " : "", i + 1);
        tare_strbuf_putc(&text, ')');
    }
    for (size_t i = 0; i < graph->n_returns; i++) {
        struct tare_shape shape = result_shape(&graph->returns[i]);
        if (graph->n_returns != 1) tare_strbuf_printf(&text, "\n      <%zu>: ", i + 1);
        put_tensor(&text, graph->returns[i].dtype, &shape);
    }
    return keep(d, &text);
}

static tare_status describe_flat(struct describer *d, struct tare_trace *trace, const char *name, size_t n_bound) {
    const struct tare_graph *graph = trace->graph;
    size_t count = graph->n_args - n_bound;
    struct title title = { .arguments = TARE_NEW_ARRAY(d->arena, struct tare_function_argument, count + 1) };
    if (!title.arguments) return TARE_NO_MEMORY;
    tare_strbuf_printf(&title.text, "%s(", name);
    for (size_t i = 0; i < count; i++) {
        struct tare_shape shape = tare_function_argument_shape(graph, i);
        struct tare_strbuf text = { 0 };
        put_tensor(&text, graph->args[i]->output_dtypes[0], &shape);
        tare_strbuf_printf(&title.text, "%s%s", i ? ", " : "", graph->args[i]->name);
        title.arguments[title.n_arguments++] =
            (struct tare_function_argument){ graph->args[i]->name, keep_once(d, &text) };
    }
    TARE_TRY(finish(d, trace, &title));
    for (size_t i = 0; i < count; i++)
        if (!trace->arguments[i].text) return TARE_NO_MEMORY;
    trace->returns = flat_returns(d, graph);
    return trace->returns ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_trace_describe(struct tare_trace *out, struct tare_arena *arena, const struct tare_function_list *list,
                                const struct tare_function_group *group, size_t i) {
    const struct tare_trace_source *source = &group->traces[i];
    struct describer d = { .arena = arena, .list = list };
    tare_status status;
    *out = (struct tare_trace){ .graph = source->graph };
    status = source->described && source->described->canonicalized_input_signature
                 ? describe_structured(&d, out, group->name, source->described, source->spec)
                 : describe_flat(&d, out, group->name, source->bound ? source->bound->n_bound : 0);
    if (status == TARE_OK) status = add_captures(&d, out, source->bound);
    tare_map_free(&d.texts);
    return status;
}

/* ---- groups ---- */

static struct tare_function_group *new_group(struct lister *l, const char *name) {
    struct tare_function_list *list = l->list;
    struct tare_function_group *group = TARE_NEW(&list->arena, struct tare_function_group);
    if (!group || !TARE_GROW(list->groups, list->n_groups, list->groups_capacity)) return NULL;
    group->name = name;
    return list->groups[list->n_groups++] = group;
}

static tare_status add_path(struct tare_function_group *group, const char *path) {
    if (!path || !TARE_GROW(group->paths, group->n_paths, group->paths_capacity))
        return path ? TARE_NO_MEMORY : TARE_OK;
    group->paths[group->n_paths++] = path;
    return TARE_OK;
}

/* The first entry of a name is used. */
static tare_status index_functions(struct lister *l) {
    for (size_t i = 0; l->list->objects && i < l->list->objects->n_concrete_functions; i++) {
        const Tensorflow__SavedObjectGraph__ConcreteFunctionsEntry *entry = l->list->objects->concrete_functions[i];
        if (entry->value && !tare_map_get(&l->described, entry->key) &&
            !tare_map_set(&l->described, entry->key, entry->value))
            return TARE_NO_MEMORY;
    }
    for (size_t i = 0; i < l->list->model->n_concretes; i++) {
        struct tare_concrete *concrete = &l->list->model->concretes[i];
        if (!tare_map_get(&l->bound, concrete->graph->name) &&
            !tare_map_set(&l->bound, concrete->graph->name, concrete))
            return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status add_trace(struct lister *l, struct tare_function_group *group, const struct tare_graph *graph,
                             const Tensorflow__FunctionSpec *spec) {
    const struct tare_trace_source source = { .graph = graph,
                                              .described = tare_map_get(&l->described, graph->name),
                                              .spec = spec,
                                              .bound = tare_map_get(&l->bound, graph->name) };
    if (!TARE_GROW(group->traces, group->n_traces, group->traces_capacity) ||
        !tare_map_set(&l->group_of, graph->name, group))
        return TARE_NO_MEMORY;
    group->traces[group->n_traces++] = source;
    return TARE_OK;
}

/* An object's traces: in the group that has the first of them already (Keras wraps one function in several objects), or
 * in one of their own. */
static tare_status add_object(struct lister *l, size_t id, char *const *functions, size_t count,
                              const Tensorflow__FunctionSpec *spec) {
    struct tare_function_group *group = NULL;
    for (size_t i = 0; i < count && !group; i++)
        group = tare_map_get(&l->group_of, functions[i]);
    for (size_t i = 0; i < count; i++) {
        const struct tare_graph *graph = tare_model_find_function(l->list->model, functions[i]);
        const char *name;
        if (!graph || tare_map_get(&l->group_of, functions[i])) continue;
        name = group ? group->name : python_name(l, functions[i]);
        if (!name || !(group ? group : (group = new_group(l, name)))) return TARE_NO_MEMORY;
        TARE_TRY(add_trace(l, group, graph, spec));
    }
    return group ? add_path(group, l->list->paths[id]) : TARE_OK;
}

static tare_status add_objects(struct lister *l) {
    for (size_t i = 0; l->list->objects && i < l->list->objects->n_nodes; i++) {
        const Tensorflow__SavedObject *object = l->list->objects->nodes[i];
        if (object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_FUNCTION)
            TARE_TRY(add_object(l, i, object->function->concrete_functions, object->function->n_concrete_functions,
                                object->function->function_spec));
        if (object->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_BARE_CONCRETE_FUNCTION)
            TARE_TRY(add_object(l, i, &object->bare_concrete_function->concrete_function_name, 1,
                                object->bare_concrete_function->function_spec));
    }
    return TARE_OK;
}

static tare_status add_others(struct lister *l) {
    for (size_t i = 0; i < l->list->model->n_functions; i++) {
        const struct tare_graph *graph = l->list->model->functions[i];
        const char *name = tare_map_get(&l->group_of, graph->name) ? NULL : python_name(l, graph->name);
        struct tare_function_group *group;
        if (tare_map_get(&l->group_of, graph->name)) continue;
        if (!name) return TARE_NO_MEMORY;
        group = tare_map_get(&l->group_by_name, name);
        if (!group) {
            group = new_group(l, name);
            if (!group || !tare_map_set(&l->group_by_name, name, group)) return TARE_NO_MEMORY;
        }
        TARE_TRY(add_trace(l, group, graph, NULL));
    }
    return TARE_OK;
}

static tare_status add_group_aliases(struct lister *l, struct tare_function_group *group,
                                     const struct tare_map *alias_of) {
    struct tare_map seen = { 0 };
    tare_status status = TARE_OK;
    group->aliases = TARE_NEW_ARRAY(&l->list->arena, const char *, group->n_traces + 1);
    if (!group->aliases) return TARE_NO_MEMORY;
    for (size_t t = 0; t < group->n_traces && status == TARE_OK; t++) {
        const char *alias = tare_map_get(alias_of, group->traces[t].graph->name);
        if (!alias || tare_map_get(&seen, alias)) continue;
        group->aliases[group->n_aliases++] = alias;
        if (!tare_map_set(&seen, alias, (char *)(uintptr_t)alias)) status = TARE_NO_MEMORY;
    }
    tare_map_free(&seen);
    return status;
}

/* The distinct aliases of a group's traces. */
static tare_status add_aliases(struct lister *l) {
    struct tare_map alias_of = { 0 };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < l->list->model->n_aliases && status == TARE_OK; i++)
        if (!tare_map_set(&alias_of, l->list->model->aliases[i].function,
                          (char *)(uintptr_t)l->list->model->aliases[i].alias))
            status = TARE_NO_MEMORY;
    for (size_t g = 0; g < l->list->n_groups && status == TARE_OK; g++)
        status = add_group_aliases(l, l->list->groups[g], &alias_of);
    tare_map_free(&alias_of);
    return status;
}

tare_status tare_function_list_make(struct tare_function_list *out, const struct tare_graph_model *model) {
    const struct tare_saved_model *source = tare_source_of(model);
    struct lister l = { .list = out };
    tare_status status;
    *out = (struct tare_function_list){ .model = model, .meta = source ? source->meta : NULL };
    out->objects = out->meta ? out->meta->object_graph_def : NULL;
    TARE_CHECK(find_paths(&l));
    TARE_CHECK(index_functions(&l));
    TARE_CHECK(add_objects(&l));
    TARE_CHECK(add_others(&l));
    status = add_aliases(&l);
done:
    tare_map_free(&l.group_of);
    tare_map_free(&l.group_by_name);
    tare_map_free(&l.described);
    tare_map_free(&l.bound);
    if (status != TARE_OK) tare_function_list_free(out);
    return status;
}

void tare_function_list_free(struct tare_function_list *list) {
    for (size_t i = 0; i < list->n_groups; i++) {
        tare_free(list->groups[i]->paths);
        tare_free(list->groups[i]->traces);
    }
    tare_free(list->groups);
    tare_arena_free(&list->arena);
    memset(list, 0, sizeof *list);
}

/* ---- printing ---- */

static void print_captures(struct tare_strbuf *out, const struct tare_trace *trace) {
    if (!trace->n_captures) return;
    tare_strbuf_puts(out, "  Captures:\n");
    for (size_t i = 0; i < trace->n_captures; i++) {
        const struct tare_function_capture *capture = &trace->captures[i];
        bool twice = strcmp(tare_dtype_name(capture->dtype), capture->kind) == 0; /* a resource that is a resource */
        tare_strbuf_puts(out, "    ");
        tare_strbuf_put_visible(out, capture->name);
        tare_strbuf_printf(out, ": %s%s%s, shape=", tare_dtype_name(capture->dtype), twice ? "" : " ",
                           twice ? "" : capture->kind);
        tare_shape_python(out, &capture->shape);
        tare_strbuf_putc(out, '\n');
    }
}

void tare_trace_print(struct tare_strbuf *out, const struct tare_trace *trace) {
    tare_strbuf_put_visible(out, trace->signature);
    tare_strbuf_putc(out, '\n');
    if (trace->n_arguments) tare_strbuf_puts(out, "  Args:\n");
    for (size_t i = 0; i < trace->n_arguments; i++) {
        tare_strbuf_puts(out, "    ");
        tare_strbuf_put_visible(out, trace->arguments[i].name);
        tare_strbuf_printf(out, ": %s\n", trace->arguments[i].text);
    }
    print_captures(out, trace);
    tare_strbuf_printf(out, "  Returns:\n    %s\n", trace->returns);
}
