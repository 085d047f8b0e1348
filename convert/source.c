/* Opening a SavedModel directory. */
#include "convert/source.h"
#include "convert/model_hint.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "proto/chunked.h"
#include "proto/field.h"
#include "proto/message.h"
#include "proto/text_format.h"

#include <stdio.h>
#include <string.h>

/* ---- the model file ---- */

static tare_status parse_binary(struct tare_saved_model *source) {
    ProtobufCMessage *message;
    TARE_TRY(tare_message_unpack(&message, &tensorflow__saved_model__descriptor, &source->arena, source->file.data,
                                 source->file.size, "saved_model.pb"));
    source->message = (Tensorflow__SavedModel *)message;
    source->format = "pb";
    return TARE_OK;
}

/* ---- the model file with its graphs left where they are ---- */

enum { META_GRAPH_DEF = 2 };

struct leaving {
    struct tare_saved_model *source;
    tare_status status;
};

static struct tare_wire_graph *wire_of(struct tare_saved_model *source, const Tensorflow__MetaGraphDef *meta) {
    struct tare_wire_graph *wire = source->n_wires ? &source->wires[source->n_wires - 1] : NULL;
    if (wire && wire->meta == meta) return wire;
    if (!TARE_GROW(source->wires, source->n_wires, source->wires_capacity)) return NULL;
    wire = &source->wires[source->n_wires++];
    *wire =
        (struct tare_wire_graph){ .meta = meta, .reading = { .start = source->file.data, .what = "saved_model.pb" } };
    return wire;
}

/* The reader continues after a failure, which is returned at its end. */
static bool leave_graph(void *arg, ProtobufCMessage *parent, uint32_t field, struct tare_message_part part) {
    struct leaving *leaving = arg;
    Tensorflow__MetaGraphDef *meta;
    struct tare_wire_graph *wire;
    if (field != META_GRAPH_DEF || parent->descriptor != &tensorflow__meta_graph_def__descriptor) return false;
    if (leaving->status != TARE_OK) return true;
    meta = (Tensorflow__MetaGraphDef *)parent;
    if (!meta->graph_def)
        meta->graph_def =
            (Tensorflow__GraphDef *)tare_message_new(&leaving->source->arena, &tensorflow__graph_def__descriptor);
    wire = meta->graph_def ? wire_of(leaving->source, meta) : NULL;
    leaving->status = wire ? tare_wire_graph_add(wire, part) : TARE_NO_MEMORY;
    return true;
}

static tare_status parse_around_graphs(struct tare_saved_model *source) {
    struct leaving leaving = { .source = source, .status = TARE_OK };
    const struct tare_message_reading reading = {
        .start = source->file.data, .what = "saved_model.pb", .leave = leave_graph, .arg = &leaving
    };
    const struct tare_message_part all = { source->file.data, source->file.size };
    ProtobufCMessage *message;
    TARE_TRY(tare_message_unpack_part(&message, &tensorflow__saved_model__descriptor, &source->arena, all, &reading));
    TARE_TRY(leaving.status);
    source->message = (Tensorflow__SavedModel *)message;
    source->format = "pb";
    return TARE_OK;
}

static tare_status parse_text(struct tare_saved_model *source) {
    ProtobufCMessage *message;
    TARE_TRY(tare_text_format_read(&message, &tensorflow__saved_model__descriptor, &source->arena,
                                   (const char *)source->file.data, source->file.size, TARE_TEXT_STRICT,
                                   "saved_model.pbtxt"));
    source->message = (Tensorflow__SavedModel *)message;
    source->format = "pbtxt";
    return TARE_OK;
}

static tare_status parse_chunked(struct tare_saved_model *source) {
    ProtobufCMessage *message;
    tare_status status = tare_chunked_read(&message, &tensorflow__saved_model__descriptor, &source->arena,
                                           source->file.data, source->file.size, "saved_model.cpb");
    if (status == TARE_UNSUPPORTED)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "%s; save it again with SaveOptions(experimental_image_format=False), which writes "
                         "saved_model.pb",
                         tare_error_text());
    TARE_TRY(status);
    source->message = (Tensorflow__SavedModel *)message;
    source->format = "cpb";
    return TARE_OK;
}

static tare_status try_file(struct tare_saved_model *source, const char *name, bool *found) {
    char *path = tare_path_join(source->path, name);
    tare_status status = TARE_OK;
    if (!path) return TARE_NO_MEMORY;
    status = tare_file_check_inside(source->path, path);
    *found = status != TARE_OK || tare_file_kind_of(path) == TARE_FILE_REGULAR;
    if (status == TARE_OK && *found) status = tare_file_map(&source->file, path);
    source->file_size = source->file.size;
    tare_free(path);
    return status;
}

/* An untrusted model must not cause its reader to open a device, wait for a pipe, or copy files from outside. */
static tare_status check_folder(const struct tare_saved_model *source, const char *name) {
    struct tare_file_list entries = { 0 };
    char *folder = tare_path_join(source->path, name);
    tare_status status = folder ? tare_file_check_inside(source->path, folder) : TARE_NO_MEMORY;
    if (status == TARE_OK && tare_file_kind_of(folder) == TARE_FILE_DIRECTORY)
        status = tare_file_list(&entries, folder);
    for (size_t i = 0; i < entries.count && status == TARE_OK; i++) {
        char *path = tare_path_join(folder, entries.names[i]);
        status = path ? tare_file_check_inside(source->path, path) : TARE_NO_MEMORY;
        tare_free(path);
    }
    tare_file_list_free(&entries);
    tare_free(folder);
    return status;
}

const char *const tare_source_folders[TARE_SOURCE_FOLDERS] = { "assets", "assets.extra" };

static tare_status find_folders(struct tare_saved_model *source) {
    for (size_t i = 0; i < TARE_SOURCE_FOLDERS; i++) {
        char *path = tare_path_join(source->path, tare_source_folders[i]);
        if (!path) return TARE_NO_MEMORY;
        source->has_folder[i] = tare_file_kind_of(path) == TARE_FILE_DIRECTORY;
        tare_free(path);
    }
    return TARE_OK;
}

static tare_status parse_file(struct tare_saved_model *source, bool read_only) {
    bool found;
    if (tare_file_kind_of(source->path) != TARE_FILE_DIRECTORY) return tare_model_hint(source->path);
    TARE_TRY(check_folder(source, "variables"));
    TARE_TRY(check_folder(source, "assets"));
    TARE_TRY(try_file(source, "saved_model.pb", &found));
    if (found) return read_only ? parse_around_graphs(source) : parse_binary(source);
    TARE_TRY(try_file(source, "saved_model.pbtxt", &found));
    if (found) return parse_text(source);
    TARE_TRY(try_file(source, "saved_model.cpb", &found));
    if (found) return parse_chunked(source);
    return tare_model_hint(source->path);
}

/* ---- the MetaGraph ---- */

static bool has_tag(const Tensorflow__MetaGraphDef *meta, const char *tag) {
    for (size_t i = 0; meta->meta_info_def && i < meta->meta_info_def->n_tags; i++)
        if (strcmp(meta->meta_info_def->tags[i], tag) == 0) return true;
    return false;
}

static size_t tag_count(const Tensorflow__MetaGraphDef *meta) {
    return meta->meta_info_def ? meta->meta_info_def->n_tags : 0;
}

static bool has_exactly(const Tensorflow__MetaGraphDef *meta, const char *const *tags, size_t n_tags) {
    for (size_t i = 0; i < n_tags; i++)
        if (!has_tag(meta, tags[i])) return false;
    return tag_count(meta) == n_tags;
}

static const char *tags_text(struct tare_arena *arena, const Tensorflow__MetaGraphDef *meta) {
    struct tare_strbuf text = { 0 };
    const char *copy;
    for (size_t i = 0; i < tag_count(meta); i++)
        tare_strbuf_printf(&text, "%s%s", i ? "," : "", meta->meta_info_def->tags[i]);
    copy = text.failed ? NULL : tare_arena_strndup(arena, tare_strbuf_text(&text), text.size);
    tare_strbuf_free(&text);
    return copy;
}

static tare_status list_tags(struct tare_saved_model *source) {
    struct tare_strbuf list = { 0 };
    for (size_t i = 0; i < source->message->n_meta_graphs; i++) {
        const Tensorflow__MetaGraphDef *meta = source->message->meta_graphs[i];
        tare_strbuf_puts(&list, i ? ", {" : "{");
        for (size_t k = 0; k < tag_count(meta); k++)
            tare_strbuf_printf(&list, "%s%s", k ? "," : "", meta->meta_info_def->tags[k]);
        tare_strbuf_putc(&list, '}');
    }
    source->all_tags = list.failed ? NULL : tare_arena_strndup(&source->arena, tare_strbuf_text(&list), list.size);
    tare_strbuf_free(&list);
    return source->all_tags ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status ambiguous(const struct tare_saved_model *source, const char *what) {
    return TARE_FAIL(TARE_NOT_FOUND, "%s (the model has %s)", what, source->all_tags);
}

static tare_status finish_choice(struct tare_saved_model *source) {
    for (size_t i = 0; i < source->n_wires; i++)
        if (source->wires[i].meta == source->meta) source->wire = &source->wires[i];
    source->tags = tags_text(&source->arena, source->meta);
    if (!source->tags) return TARE_NO_MEMORY;
    return source->meta->graph_def ? TARE_OK : TARE_FAIL(TARE_CORRUPT, "the MetaGraph has no graph");
}

static tare_status choose_meta(struct tare_saved_model *source, const struct tare_saved_model_options *options) {
    static const char *const serve[] = { "serve" };
    bool asked = options && options->tags;
    const char *const *tags = asked ? options->tags : serve;
    size_t n_tags = asked ? options->n_tags : 1;
    const Tensorflow__SavedModel *message = source->message;
    if (!message->n_meta_graphs) return TARE_FAIL(TARE_CORRUPT, "the SavedModel has no MetaGraph");
    TARE_TRY(list_tags(source));
    for (size_t i = 0; i < message->n_meta_graphs && !source->meta; i++)
        if (has_exactly(message->meta_graphs[i], tags, n_tags)) source->meta = message->meta_graphs[i];
    if (!source->meta && asked) return ambiguous(source, "no MetaGraph has the tags asked for");
    if (!source->meta && message->n_meta_graphs > 1) return ambiguous(source, "several MetaGraphs, choose with --tags");
    if (!source->meta) source->meta = message->meta_graphs[0];
    if (message->n_meta_graphs == 1) source->all_tags = NULL;
    return finish_choice(source);
}

static tare_status set_meta(struct tare_saved_model *source, size_t index) {
    if (index >= source->message->n_meta_graphs) return TARE_FAIL(TARE_CORRUPT, "the SavedModel has no MetaGraph");
    source->meta = source->message->meta_graphs[index];
    return finish_choice(source);
}

/* ---- the checkpoint ---- */

static bool is_of_first_format(const char *name) {
    int length = 0;
    if (strcmp(name, "variables") == 0) return true;
    sscanf(name, "variables-%*5[0-9?]-of-%*5[0-9?]%n", &length);
    return length && !name[length];
}

/* A model without a variables folder has no variables; but a folder that contains a checkpoint without its index is
 * invalid.
 */
static tare_status explain_no_index(const struct tare_saved_model *source) {
    char *folder = tare_path_join(source->path, "variables");
    struct tare_file_list names = { 0 };
    tare_status status = folder ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK && tare_file_kind_of(folder) == TARE_FILE_DIRECTORY) status = tare_file_list(&names, folder);
    for (size_t i = 0; i < names.count && status == TARE_OK; i++) {
        const char *name = names.names[i];
        if (is_of_first_format(name))
            status =
                TARE_FAIL(TARE_UNSUPPORTED,
                          "variables/%s is a checkpoint of TensorFlow's first format, which has no index; restore the "
                          "model in TensorFlow and save it again",
                          name);
        else if (strncmp(name, "variables.data-", 15) == 0)
            status = TARE_FAIL(TARE_NOT_FOUND,
                               "variables/variables.index is missing, which says what variables/%s holds", name);
    }
    tare_file_list_free(&names);
    tare_free(folder);
    return status;
}

static tare_status open_checkpoint(struct tare_saved_model *source) {
    char *prefix = tare_path_join(source->path, "variables/variables");
    char *index = tare_path_join(source->path, "variables/variables.index");
    tare_status status = prefix && index ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK)
        status = tare_file_kind_of(index) == TARE_FILE_REGULAR ? tare_bundle_open(&source->bundle, prefix)
                                                               : explain_no_index(source);
    tare_free(prefix);
    tare_free(index);
    return status;
}

static tare_status read_trackable(struct tare_saved_model *source) {
    static const char key[] = "_CHECKPOINTABLE_OBJECT_GRAPH";
    struct tare_tensor text;
    ProtobufCMessage *message = NULL;
    tare_status status;
    if (source->trackable || !source->bundle || !tare_bundle_has(source->bundle, key)) return TARE_OK;
    TARE_TRY(tare_bundle_read(&text, source->bundle, key));
    if (text.dtype != TARE_DT_STRING || text.elements != 1) {
        status = TARE_FAIL(TARE_CORRUPT, "%s is not a string", key);
    } else {
        const struct tare_str *bytes = TARE_CONST_DATA(struct tare_str, &text);
        status = tare_message_unpack(&message, &tensorflow__trackable_object_graph__descriptor, &source->arena,
                                     bytes->data, bytes->size, key);
    }
    tare_tensor_reset(&text);
    if (status == TARE_OK) source->trackable = (Tensorflow__TrackableObjectGraph *)message;
    return status;
}

tare_status tare_source_trackable(Tensorflow__TrackableObjectGraph **out, struct tare_saved_model *source) {
    pthread_mutex_lock(&source->lock);
    const tare_status status = read_trackable(source);
    *out = source->trackable;
    pthread_mutex_unlock(&source->lock);
    return status;
}

/* ---- open and close ---- */

enum { BY_TAGS = -1 };

static tare_status open_all(struct tare_saved_model *source, const struct tare_saved_model_options *options,
                            int64_t index) {
    TARE_TRY(parse_file(source, options && options->read_only));
    TARE_TRY(find_folders(source));
    if (!source->n_wires) tare_file_unmap(&source->file); /* the messages hold copies */
    if (index == BY_TAGS || (options && options->tags))
        TARE_TRY(choose_meta(source, options));
    else
        TARE_TRY(set_meta(source, (size_t)index));
    return open_checkpoint(source);
}

static tare_status open_path(struct tare_saved_model **out, const char *path,
                             const struct tare_saved_model_options *options, int64_t index) {
    struct tare_saved_model *source = tare_calloc(1, sizeof *source);
    tare_status status = TARE_NO_MEMORY;
    *out = NULL;
    if (!source) return status;
    pthread_mutex_init(&source->lock, NULL);
    source->path = tare_strdup(path);
    source->without_values = options && options->without_values;
    if (source->path) status = tare_error_prefix(open_all(source, options, index), "%s", path);
    if (status == TARE_OK)
        *out = source;
    else
        tare_source_close(source);
    return status;
}

tare_status tare_source_open(struct tare_saved_model **out, const char *path,
                             const struct tare_saved_model_options *options) {
    return open_path(out, path, options, BY_TAGS);
}

tare_status tare_source_open_nth(struct tare_saved_model **out, const char *path,
                                 const struct tare_saved_model_options *options, size_t index) {
    return open_path(out, path, options, (int64_t)index);
}

void tare_source_close(struct tare_saved_model *source) {
    if (!source) return;
    tare_bundle_close(source->bundle);
    for (size_t i = 0; i < source->n_wires; i++)
        tare_wire_graph_free(&source->wires[i]);
    tare_free(source->wires);
    tare_file_unmap(&source->file);
    tare_arena_free(&source->arena);
    pthread_mutex_destroy(&source->lock);
    tare_free(source->path);
    tare_free(source);
}
