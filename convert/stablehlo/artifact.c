/* Models of single modules. The module becomes the attribute of an XlaCallModule node, as in a SavedModel, so that
 * everything that works on such models works on files of modules, too. */
#include "convert/stablehlo/artifact.h"
#include "base/ascii.h"
#include "convert/stablehlo/import.h"

#include "base/alloc.h"
#include "graph/op.h"

#include <stdlib.h>
#include <string.h>

/* The calling convention of jax.export since 2024; it matters for arguments that are tokens. */
enum { CALLING_CONVENTION = 9 };

/* ---- files ---- */

static bool find_module(struct tare_shlo_artifact *out) {
    if (!tare_shlo_is_bytecode(out->file.data, out->file.size))
        return tare_shlo_exported_find(&out->exported, out->file.data, out->file.size);
    out->exported = (struct tare_shlo_exported){ .module = out->file.data, .size = out->file.size };
    return true;
}

tare_status tare_shlo_artifact_open(struct tare_shlo_artifact *out, const char *path) {
    *out = (struct tare_shlo_artifact){ 0 };
    TARE_TRY(tare_file_map(&out->file, path));
    if (find_module(out)) return TARE_OK;
    tare_file_unmap(&out->file);
    return TARE_FAIL(TARE_UNSUPPORTED, "%s: not a StableHLO module", path);
}

void tare_shlo_artifact_close(struct tare_shlo_artifact *artifact) {
    tare_file_unmap(&artifact->file);
}

bool tare_shlo_is_artifact(const char *path) {
    struct tare_shlo_artifact artifact;
    if (tare_file_kind_of(path) != TARE_FILE_REGULAR) return false;
    if (tare_shlo_artifact_open(&artifact, path) != TARE_OK) {
        tare_error_clear();
        return false;
    }
    tare_shlo_artifact_close(&artifact);
    return true;
}

/* ---- the model ---- */

/* One argument or result of main. */
struct tensor {
    const char *name; /* key in the signature */
    int dtype;
    struct tare_shape shape;
    size_t index;        /* in the module */
    struct tare_edge of; /* its value in the function */
};

/* TensorFlow flattens the inputs and outputs of a signature, which are dictionaries, by sorted key. The arguments and
 * results of the function therefore have the order `sorted` (arg0, arg1, arg10, arg2 ...), those of the module have
 * their own. */
struct tensors {
    struct tensor **in_module, **sorted;
    size_t count;
};

struct builder {
    struct tare_graph_model *model;
    const struct tare_shlo_exported *exported;
    const char *const *arguments, *const *results; /* names; NULL: arg0, output_0 … */
    struct tare_arena arena;
    struct tensors inputs, outputs;
};

static int by_name(const void *a, const void *b) {
    return strcmp((*(struct tensor *const *)a)->name, (*(struct tensor *const *)b)->name);
}

static tare_status take_type(struct tensor *out, const struct tare_shlo_type *type, const char *what, size_t i) {
    int64_t dims[TARE_MAX_RANK];
    out->dtype = tare_shlo_dtype(type);
    if (type->kind != TARE_SHLO_TENSOR || out->dtype == TARE_DT_INVALID)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s %zu of main has a type without TensorFlow dtype", what, i);
    if (type->rank > TARE_MAX_RANK)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s %zu of main has %zu dimensions (expected at most %d)", what, i,
                         type->rank, TARE_MAX_RANK);
    for (size_t d = 0; d < type->rank; d++)
        dims[d] = type->dims[d] < 0 ? -1 : type->dims[d];
    return tare_shape_from_dims(&out->shape, (int)type->rank, dims);
}

/* All of a list that are tensors; the first `skipped` are left out. */
static tare_status take_types(struct tensors *out, struct builder *b, const struct tare_shlo_type_list *types,
                              size_t skipped, const char *what, const char *stem, const char *const *names) {
    out->in_module = TARE_NEW_ARRAY(&b->arena, struct tensor *, types->count + 1);
    out->sorted = TARE_NEW_ARRAY(&b->arena, struct tensor *, types->count + 1);
    if (!out->in_module || !out->sorted) return TARE_NO_MEMORY;
    for (size_t i = skipped; i < types->count; i++) {
        struct tensor *tensor;
        if (types->items[i]->kind == TARE_SHLO_TOKEN) continue;
        tensor = TARE_NEW(&b->arena, struct tensor);
        if (!tensor) return TARE_NO_MEMORY;
        TARE_TRY(take_type(tensor, types->items[i], what, i));
        tensor->index = out->count;
        tensor->name = names ? tare_arena_strdup(&b->model->arena, names[out->count])
                             : tare_arena_printf(&b->model->arena, "%s%zu", stem, out->count);
        if (!tensor->name) return TARE_NO_MEMORY;
        out->in_module[out->count] = out->sorted[out->count] = tensor;
        out->count++;
    }
    qsort(out->sorted, out->count, sizeof *out->sorted, by_name);
    return TARE_OK;
}

/* A module for several platforms takes the index of the running one as its first argument. */
static tare_status read_main(struct builder *b, const struct tare_shlo_module *module) {
    const struct tare_shlo_op *function = tare_shlo_function(module, "main");
    const struct tare_shlo_attr *attr = function ? tare_shlo_op_attr(function, "function_type") : NULL;
    if (!function) return TARE_FAIL(TARE_UNSUPPORTED, "the module has no function 'main'");
    if (!attr || attr->kind != TARE_SHLO_ATTR_TYPE || attr->type->kind != TARE_SHLO_FUNCTION)
        return TARE_FAIL(TARE_CORRUPT, "main has no function type");
    const size_t skipped = b->exported->n_platforms > 1 && attr->type->inputs.count ? 1 : 0;
    TARE_TRY(take_types(&b->inputs, b, &attr->type->inputs, skipped, "argument", "arg", b->arguments));
    return take_types(&b->outputs, b, &attr->type->outputs, 0, "result", "output_", b->results);
}

static tare_status set_types(struct tare_node *node, struct builder *b, const char *attr, struct tensor *const *tensors,
                             size_t count) {
    int *dtypes = TARE_NEW_ARRAY(&b->arena, int, count + 1);
    if (!dtypes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        dtypes[i] = tensors[i]->dtype;
    return tare_node_set_type_list(node, attr, dtypes, count);
}

static tare_status set_module_types(struct tare_node *node, struct builder *b) {
    struct tare_shape *shapes = TARE_NEW_ARRAY(&b->arena, struct tare_shape, b->outputs.count + 1);
    if (!shapes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < b->outputs.count; i++)
        shapes[i] = b->outputs.in_module[i]->shape;
    TARE_TRY(set_types(node, b, "Tin", b->inputs.in_module, b->inputs.count));
    TARE_TRY(set_types(node, b, "Tout", b->outputs.in_module, b->outputs.count));
    return tare_node_set_shape_list(node, "Sout", shapes, b->outputs.count);
}

/* Replaces a string attribute by a list of one string, or appends to the list. */
static tare_status add_string(struct tare_node *node, const char *name, const char *text, size_t size) {
    struct tare_attr *attr = (struct tare_attr *)(uintptr_t)tare_node_find_attr(node, name);
    struct tare_arena *arena = &node->graph->model->arena;
    const char *copy = tare_arena_strndup(arena, text, size);
    if (!copy) return TARE_NO_MEMORY;
    if (!attr) {
        TARE_TRY(tare_node_set_string(node, name, text, size));
        attr = (struct tare_attr *)(uintptr_t)tare_node_find_attr(node, name);
        attr->is_list = true;
        return TARE_OK;
    }
    union tare_attr_item *items = tare_arena_extend(arena, attr->items, attr->count, 1, sizeof *items);
    if (!items) return TARE_NO_MEMORY;
    items[attr->count++].s = (struct tare_str){ copy, size };
    attr->items = items;
    return TARE_OK;
}

/* The platforms of the export in upper case, as XlaCallModule names them. A bare module names none: it runs on any. */
static tare_status set_platforms(struct tare_node *node, const struct tare_shlo_exported *exported) {
    for (size_t i = 0; i < exported->n_platforms; i++) {
        const struct tare_shlo_span *name = &exported->platforms[i];
        char upper[32] = { 0 };
        for (size_t k = 0; k < name->size && k + 1 < sizeof upper; k++)
            upper[k] = tare_upper(name->data[k]);
        TARE_TRY(add_string(node, "platforms", upper, strlen(upper)));
    }
    if (exported->n_platforms) return TARE_OK;
    TARE_TRY(add_string(node, "platforms", "TPU", 3));
    return add_string(node, "disabled_checks", "platform", 8);
}

/* The attribute refers to the mapped file, which the model keeps. */
static tare_status set_module(struct tare_node *node, const struct tare_shlo_exported *exported) {
    struct tare_attr *attr;
    TARE_TRY(tare_node_set_string(node, "module", "", 0));
    attr = (struct tare_attr *)(uintptr_t)tare_node_find_attr(node, "module");
    attr->items[0].s = (struct tare_str){ (const char *)exported->module, exported->size };
    return TARE_OK;
}

static tare_status add_arguments(struct tare_graph *function, struct tare_node *node, struct builder *b) {
    for (size_t i = 0; i < b->inputs.count; i++) {
        struct tensor *input = b->inputs.sorted[i];
        struct tare_node *arg = tare_graph_add_arg(function, input->name, input->dtype);
        if (!arg) return TARE_NO_MEMORY;
        input->of = tare_node_output0(arg);
    }
    for (size_t i = 0; i < b->inputs.count; i++)
        TARE_TRY(tare_node_add_input(node, b->inputs.in_module[i]->of));
    return TARE_OK;
}

/* A true that waits for the node: the result of a main that returns nothing. */
static tare_status add_done(struct tare_graph *function, struct tare_node *node, struct builder *b) {
    struct tare_tensor value;
    struct tensor *done = TARE_NEW(&b->arena, struct tensor);
    struct tare_node *constant;
    if (!done) return TARE_NO_MEMORY;
    *done = (struct tensor){ .name = "done", .dtype = TARE_DT_BOOL, .shape = tare_shape_scalar() };
    TARE_TRY(tare_tensor_new(&value, done->dtype, &done->shape));
    TARE_DATA(uint8_t, &value)[0] = 1;
    constant = tare_graph_add_const(function, done->name, &value);
    tare_tensor_reset(&value);
    if (!constant) return TARE_NO_MEMORY;
    done->of = tare_node_output0(constant);
    b->outputs.sorted[b->outputs.count++] = done;
    return tare_node_add_control(constant, node);
}

static tare_status add_function(struct tare_graph **out, struct builder *b) {
    struct tare_graph *function = *out = tare_model_add_function(b->model, "main");
    struct tare_node *node = function ? tare_graph_add(function, "XlaCallModule", "XlaCallModule") : NULL;
    if (!node) return TARE_NO_MEMORY;
    TARE_TRY(add_arguments(function, node, b));
    TARE_TRY(set_module_types(node, b));
    TARE_TRY(tare_node_set_int(node, "version", CALLING_CONVENTION));
    TARE_TRY(set_module(node, b->exported));
    TARE_TRY(set_platforms(node, b->exported));
    TARE_TRY(tare_node_resolve(node));
    function->is_stateful = true; /* the op is */
    TARE_TRY(tare_graph_add_control_return(function, node->name, node));
    for (size_t i = 0; i < b->outputs.count; i++)
        b->outputs.in_module[i]->of = (struct tare_edge){ node, (int)i };
    if (!b->outputs.count) TARE_TRY(add_done(function, node, b));
    for (size_t i = 0; i < b->outputs.count; i++) {
        const struct tensor *output = b->outputs.sorted[i];
        TARE_TRY(tare_graph_add_return(function, output->name, output->dtype, output->of));
    }
    return TARE_OK;
}

/* ---- the signature ---- */

static tare_status add_input(struct tare_binding *binding, struct tare_node *call, struct builder *b,
                             const struct tensor *input) {
    const char *name = tare_arena_printf(&b->model->arena, "serving_default_%s", input->name);
    struct tare_node *node = name ? tare_graph_add(b->model->main, "Placeholder", name) : NULL;
    if (!node) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(node, "dtype", input->dtype));
    TARE_TRY(tare_node_set_shape(node, "shape", &input->shape));
    TARE_TRY(tare_node_resolve(node));
    *binding = (struct tare_binding){
        .key = input->name, .dtype = input->dtype, .shape = input->shape, .edge = tare_node_output0(node)
    };
    return tare_node_add_input(call, binding->edge);
}

/* The signature lists its tensors in the order of the module. */
static tare_status add_signature(struct builder *b, struct tare_graph *function) {
    struct tare_arena *arena = &b->model->arena;
    struct tare_signature *signature = TARE_NEW(arena, struct tare_signature);
    struct tare_node *call = tare_graph_add(b->model->main, "StatefulPartitionedCall", "StatefulPartitionedCall");
    if (!signature || !call) return TARE_NO_MEMORY;
    *signature = (struct tare_signature){ .key = "serving_default",
                                          .method_name = "tensorflow/serving/predict",
                                          .n_inputs = b->inputs.count,
                                          .n_outputs = b->outputs.count };
    signature->inputs = TARE_NEW_ARRAY(arena, struct tare_binding, b->inputs.count + 1);
    signature->outputs = TARE_NEW_ARRAY(arena, struct tare_binding, b->outputs.count + 1);
    if (!signature->inputs || !signature->outputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < b->inputs.count; i++) {
        const struct tensor *input = b->inputs.sorted[i];
        TARE_TRY(add_input(&signature->inputs[input->index], call, b, input));
    }
    TARE_TRY(tare_node_set_func(call, "f", function->name));
    TARE_TRY(set_types(call, b, "Tin", b->inputs.sorted, b->inputs.count));
    TARE_TRY(set_types(call, b, "Tout", b->outputs.sorted, b->outputs.count));
    TARE_TRY(tare_node_resolve(call));
    for (size_t i = 0; i < b->outputs.count; i++) {
        const struct tensor *output = b->outputs.sorted[i];
        signature->outputs[output->index] = (struct tare_binding){
            .key = output->name, .dtype = output->dtype, .shape = output->shape, .edge = { call, (int)i }
        };
    }
    b->model->signatures = signature;
    b->model->n_signatures = 1;
    return TARE_OK;
}

/* ---- loading ---- */

static void release(void *arg) {
    tare_shlo_artifact_close(arg);
}

const struct tare_shlo_artifact *tare_shlo_artifact_of(const struct tare_graph_model *model) {
    return model->release == release ? model->release_arg : NULL;
}

static tare_status build(struct builder *b) {
    struct tare_shlo_module *module;
    struct tare_graph *function;
    tare_status status;
    TARE_TRY(tare_shlo_read(&module, b->exported->module, b->exported->size));
    status = read_main(b, module);
    tare_shlo_free(module);
    if (status == TARE_OK) status = add_function(&function, b);
    return status == TARE_OK ? add_signature(b, function) : status;
}

static tare_status load(struct tare_graph_model *model, const char *path) {
    struct tare_shlo_artifact *artifact = TARE_NEW(&model->arena, struct tare_shlo_artifact);
    struct builder b = { .model = model };
    tare_status status;
    if (!artifact) return TARE_NO_MEMORY;
    TARE_TRY(tare_shlo_artifact_open(artifact, path));
    model->release = release;
    model->release_arg = artifact;
    b.exported = &artifact->exported;
    status = tare_error_prefix(build(&b), "%s", path);
    tare_arena_free(&b.arena);
    return status;
}

tare_status tare_shlo_artifact_load(struct tare_graph_model **out, const char *path,
                                    const struct tare_op_registry *ops) {
    struct tare_graph_model *model = tare_model_new(ops);
    tare_status status;
    *out = NULL;
    if (!model) return TARE_NO_MEMORY;
    model->path = tare_arena_strdup(&model->arena, path);
    model->custom_ops = tare_ops_new(ops);
    status = model->path && model->custom_ops ? load(model, path) : TARE_NO_MEMORY;
    if (status == TARE_OK)
        *out = model;
    else
        tare_model_free(model);
    return status;
}

tare_status tare_shlo_artifact_wrap(struct tare_graph_model **out, const void *artifact, size_t size,
                                    const char *const *arguments, const char *const *results,
                                    const struct tare_op_registry *ops) {
    const struct tare_shlo_exported exported = { .module = artifact, .size = size };
    struct builder b = {
        .model = tare_model_new(ops), .exported = &exported, .arguments = arguments, .results = results
    };
    *out = NULL;
    if (!b.model) return TARE_NO_MEMORY;
    b.model->custom_ops = tare_ops_new(ops);
    const tare_status status = b.model->custom_ops ? build(&b) : TARE_NO_MEMORY;
    tare_arena_free(&b.arena);
    if (status == TARE_OK)
        *out = b.model;
    else
        tare_model_free(b.model);
    return status;
}
