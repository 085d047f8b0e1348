/* Writing a model as a SavedModel directory of its own. */
#include "base/alloc.h"
#include "base/output.h"
#include "convert/export/export.h"
#include "convert/export/meta.h"
#include "convert/origin.h"
#include "convert/pass.h"
#include "convert/validation/validate.h"
#include "convert/source.h"
#include "graph/clone.h"
#include "proto/message.h"

#include <string.h>

/* A node of the file that TensorFlow refuses would be refused in what is written, too. */
static tare_status check_names_in(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        if (node->dead || tare_node_is_loadable(node)) continue;
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "%s%s%snode '%s': TensorFlow refuses the name: a letter, digit or '.' and then also '_', '-' "
                         "and '/' are allowed (rename the node, and export the model again)",
                         *graph->name ? "function " : "", graph->name, *graph->name ? ": " : "", node->name);
    }
    return TARE_OK;
}

static tare_status check_names(const struct tare_graph_model *model) {
    TARE_TRY(check_names_in(model->main));
    for (size_t i = 0; i < model->n_functions; i++)
        if (!model->functions[i]->removed) TARE_TRY(check_names_in(model->functions[i]));
    return TARE_OK;
}

/* State of one export. */
struct exporter {
    struct tare_arena arena;
    struct tare_graph_model *model;  /* a clone, which the exporter prunes and adds a saver to */
    struct tare_saved_model *source; /* of the original; NULL: a model built in memory */
    struct tare_objects objects;
    uint8_t *object_bytes; /* the packed trackable graph */
    size_t object_size;
    struct tare_saver saver;
};

/* ---- messages ---- */

static tare_status make_objects(struct exporter *e) {
    Tensorflow__TrackableObjectGraph *trackable = NULL;
    if (!e->source) {
        TARE_TRY(tare_objects_build(&e->objects, &e->arena, e->model));
    } else {
        TARE_TRY(tare_source_trackable(&trackable, e->source));
        TARE_TRY(tare_objects_prune(&e->objects, &e->arena, e->model, e->source->meta->object_graph_def, trackable));
    }
    if (!e->objects.trackable) return TARE_OK;
    return tare_message_pack(&e->object_bytes, &e->object_size, &e->objects.trackable->base);
}

static tare_status make_message(Tensorflow__SavedModel **out, struct exporter *e) {
    const Tensorflow__MetaGraphDef *origin = e->source ? e->source->meta : NULL;
    Tensorflow__SavedModel *message = TARE_NEW(&e->arena, Tensorflow__SavedModel);
    Tensorflow__MetaGraphDef *meta;
    if (!message) return TARE_NO_MEMORY;
    tensorflow__saved_model__init(message);
    if (e->source) message->base = e->source->message->base; /* unknown fields */
    message->saved_model_schema_version = 1;
    TARE_TRY(tare_export_meta(&meta, &e->arena, e->model, origin, &e->saver));
    TARE_TRY(tare_export_graph_def(&meta->graph_def, &e->arena, e->model, origin ? origin->graph_def : NULL));
    meta->object_graph_def = e->objects.saved;
    message->meta_graphs = TARE_NEW(&e->arena, Tensorflow__MetaGraphDef *);
    if (!message->meta_graphs) return TARE_NO_MEMORY;
    message->meta_graphs[0] = meta;
    message->n_meta_graphs = 1;
    *out = message;
    return TARE_OK;
}

static tare_status write_message(const Tensorflow__SavedModel *message, const char *directory) {
    char *path = tare_path_join(directory, "saved_model.pb");
    uint8_t *bytes = NULL;
    size_t size;
    tare_status status = path ? tare_message_pack(&bytes, &size, &message->base) : TARE_NO_MEMORY;
    if (status == TARE_OK) status = tare_file_write(path, bytes, size);
    tare_free(bytes);
    tare_free(path);
    return status;
}

/* ---- checkpoint ---- */

static tare_status add_object_graph(const struct exporter *e, struct tare_bundle_writer *writer) {
    struct tare_shape scalar = tare_shape_scalar();
    struct tare_tensor tensor;
    tare_status status;
    TARE_TRY(tare_tensor_new(&tensor, TARE_DT_STRING, &scalar));
    status = tare_tensor_set_string(&tensor, 0, e->object_bytes, e->object_size);
    if (status == TARE_OK) status = tare_bundle_writer_add(writer, "_CHECKPOINTABLE_OBJECT_GRAPH", &tensor);
    tare_tensor_reset(&tensor);
    return status;
}

static tare_status add_variables(const struct exporter *e, struct tare_bundle_writer *writer) {
    for (size_t i = 0; i < e->model->n_variables; i++) {
        const struct tare_variable *variable = &e->model->variables[i];
        if (variable->removed || !variable->key || variable->value.dtype == TARE_DT_INVALID) continue;
        TARE_TRY(tare_error_prefix(tare_bundle_writer_add(writer, variable->key, &variable->value), "variable %s",
                                   variable->shared_name));
    }
    return TARE_OK;
}

static tare_status add_tables(const struct exporter *e, struct tare_bundle_writer *writer) {
    for (size_t i = 0; i < e->model->n_tables; i++) {
        const struct tare_table_content *table = &e->model->tables[i];
        if (table->node->dead || table->values.dtype == TARE_DT_INVALID) continue;
        TARE_TRY(tare_error_prefix(tare_bundle_writer_add(writer, table->keys_key, &table->keys), "table %s",
                                   table->node->name));
        TARE_TRY(tare_error_prefix(tare_bundle_writer_add(writer, table->values_key, &table->values), "table %s",
                                   table->node->name));
    }
    return TARE_OK;
}

static bool has_checkpoint(const struct exporter *e) {
    return e->saver.restore_op;
}

static tare_status write_checkpoint(const struct exporter *e, const char *directory) {
    struct tare_bundle_writer *writer = NULL;
    char *folder = tare_path_join(directory, "variables"), *prefix = tare_path_join(directory, "variables/variables");
    tare_status status = folder && prefix ? TARE_OK : TARE_NO_MEMORY;
    size_t existed;
    if (status == TARE_OK) status = tare_file_make_folders(folder, &existed);
    if (status == TARE_OK) status = tare_bundle_writer_open(&writer, prefix);
    if (status == TARE_OK) status = add_variables(e, writer);
    if (status == TARE_OK) status = add_tables(e, writer);
    if (status == TARE_OK && e->object_size) status = add_object_graph(e, writer);
    if (status == TARE_OK) {
        status = tare_bundle_writer_close(writer);
        writer = NULL;
    }
    tare_bundle_writer_abort(writer);
    tare_free(folder);
    tare_free(prefix);
    return status;
}

/* ---- other files ---- */

static tare_status copy_folder(const struct exporter *e, const char *directory, const char *name) {
    char *from = tare_path_join(e->source->path, name), *to = tare_path_join(directory, name);
    tare_status status = from && to ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK && tare_file_kind_of(from) != TARE_FILE_DIRECTORY)
        status = TARE_FAIL(TARE_IO, "'%s', which the model had when it was opened, is missing (restore it)", from);
    if (status == TARE_OK) status = tare_file_copy_tree(e->source->path, from, to);
    tare_free(from);
    tare_free(to);
    return status;
}

static tare_status copy_folders(const struct exporter *e, const char *directory) {
    for (size_t i = 0; e->source && i < TARE_SOURCE_FOLDERS; i++)
        if (e->source->has_folder[i]) TARE_TRY(copy_folder(e, directory, tare_source_folders[i]));
    return TARE_OK;
}

static tare_status write_directory(struct exporter *e, const struct tare_export_options *options,
                                   const struct tare_output_dir *output) {
    const char *directory = output->temporary;
    Tensorflow__SavedModel *message;
    TARE_TRY(make_message(&message, e));
    TARE_TRY(write_message(message, directory));
    if (has_checkpoint(e)) TARE_TRY(write_checkpoint(e, directory));
    TARE_TRY(copy_folders(e, directory));
    if (e->source) TARE_TRY(tare_origin_write(directory, output->path, e->source->path));
    return options && options->extra ? options->extra(options->extra_arg, directory) : TARE_OK;
}

static bool keeps_key(const struct tare_map *owners, const struct tare_variable *variable) {
    return !variable->key || variable->removed ||
           (!variable->slice && tare_map_get(owners, variable->key) == (const void *)variable);
}

/* A variable that was a slice of a stored tensor is stored as a tensor of its own, under an unused key: other slices
 * may have been removed or changed. So is every further variable that was restored from the tensor of another one. */
static tare_status give_own_keys(struct tare_graph_model *model) {
    struct tare_map owners = { 0 }; /* by key */
    tare_status status = TARE_OK;
    for (size_t i = 0; i < model->n_variables && status == TARE_OK; i++) {
        struct tare_variable *variable = &model->variables[i];
        if (!variable->key || variable->slice || variable->removed || tare_map_get(&owners, variable->key)) continue;
        if (!tare_map_set(&owners, variable->key, variable)) status = TARE_NO_MEMORY;
    }
    for (size_t i = 0; i < model->n_variables && status == TARE_OK; i++) {
        struct tare_variable *variable = &model->variables[i];
        const char *key = variable->shared_name;
        if (keeps_key(&owners, variable)) continue;
        for (size_t n = 1; key && tare_map_get(&owners, key); n++)
            key = tare_arena_printf(&model->arena, "%s_%zu", variable->shared_name, n);
        if (!key || !tare_map_set(&owners, key, variable)) status = TARE_NO_MEMORY;
        variable->key = key;
        variable->slice = NULL;
    }
    tare_map_free(&owners);
    return status;
}

static tare_status prepare(struct exporter *e, const struct tare_graph_model *model) {
    size_t changes = 0;
    TARE_TRY(tare_model_clone(&e->model, model));
    TARE_TRY(tare_pass_prune.run(e->model, &changes));
    TARE_TRY(tare_export_drop_references(e->model));
    TARE_TRY(give_own_keys(e->model));
    TARE_TRY(make_objects(e));
    return tare_saver_build(&e->saver, e->model, e->object_bytes, e->object_size);
}

/* Entries of a SavedModel's folder as TensorFlow and this project write them. */
static bool is_part(const char *name) {
    static const char *const parts[] = { "saved_model.pb", "saved_model.pbtxt", "saved_model.cpb", "variables",
                                         "assets",         "assets.extra",      "fingerprint.pb",  "keras_metadata.pb",
                                         "debug" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(name, parts[i]) == 0) return true;
    return false;
}

void tare_saved_model_output_rules(struct tare_output_rules *out, const char *input, bool overwrite) {
    *out = (struct tare_output_rules){
        .overwrite = overwrite, .input = input, .is_part = is_part, .what = "a SavedModel"
    };
}

static tare_status check_written(const struct exporter *e, const char *directory) {
    const struct tare_saved_model_options open = { .ops = e->model->ops };
    return tare_saved_model_check_written(directory, e->source ? e->source->path : NULL, &open);
}

tare_status tare_saved_model_export(const struct tare_graph_model *model, const char *out_path,
                                    const struct tare_export_options *options) {
    struct exporter e = { .source = tare_source_of(model) };
    struct tare_output_dir output = { 0 };
    struct tare_output_rules rules;
    tare_status status;
    tare_saved_model_output_rules(&rules, e.source ? e.source->path : NULL, options && options->overwrite);
    TARE_CHECK(tare_output_dir_begin(&output, out_path, &rules));
    TARE_CHECK(prepare(&e, model));
    TARE_CHECK(check_names(e.model));
    TARE_CHECK(write_directory(&e, options, &output));
    TARE_CHECK(check_written(&e, output.temporary));
    status = tare_output_dir_commit(&output);
done:
    tare_output_dir_abort(&output);
    tare_free(e.object_bytes);
    tare_model_free(e.model);
    tare_arena_free(&e.arena);
    return tare_error_prefix(status, "%s", out_path);
}

/* ---- a copy ---- */

/* Only models that open are copied: every MetaGraph is imported once. */
static tare_status open_each(const char *path) {
    const struct tare_saved_model_options open = { .read_only = true, .without_values = true };
    size_t count = 1;
    for (size_t i = 0; i < count; i++) {
        struct tare_saved_model *source;
        struct tare_graph_model *model;
        tare_status status;
        TARE_TRY(tare_source_open_nth(&source, path, &open, i));
        count = source->message->n_meta_graphs;
        status = tare_saved_model_import(&model, source, &open);
        if (status == TARE_OK) {
            status = check_names(model);
            tare_model_free(model); /* and the source */
        } else {
            tare_source_close(source);
        }
        TARE_TRY(tare_error_prefix(status, "%s", path));
    }
    return TARE_OK;
}

tare_status tare_saved_model_copy(const char *path, const char *out_path) {
    struct tare_output_dir output = { 0 };
    struct tare_file_list names = { 0 };
    struct tare_output_rules rules;
    tare_status status;
    tare_saved_model_output_rules(&rules, path, false);
    TARE_TRY(tare_output_check_apart(out_path, path));
    TARE_TRY(open_each(path));
    TARE_CHECK(tare_output_dir_begin(&output, out_path, &rules));
    TARE_CHECK(tare_file_list(&names, path));
    for (size_t i = 0; i < names.count; i++) {
        char *from = tare_path_join(path, names.names[i]), *to = tare_path_join(output.temporary, names.names[i]);
        status = from && to ? tare_file_copy_tree(path, from, to) : TARE_NO_MEMORY;
        tare_free(from);
        tare_free(to);
        if (status != TARE_OK) goto done;
    }
    status = tare_output_dir_commit(&output);
done:
    tare_output_dir_abort(&output);
    tare_file_list_free(&names);
    return status;
}
