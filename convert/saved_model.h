/* A SavedModel directory, or a file of a StableHLO module in its place: opening, importing into the IR, exporting,
 * copying. */
#ifndef TARE_CONVERT_SAVED_MODEL_H
#define TARE_CONVERT_SAVED_MODEL_H

#include "convert/load_options.h"
#include "graph/model.h"

struct tare_log;
struct tare_saved_model;

/* Opens saved_model.pb or .pbtxt, chooses the MetaGraph, maps the checkpoint and imports everything; a file of a
 * StableHLO module becomes a model with one signature (stablehlo/artifact.h). XlaCallModule nodes are expanded unless
 * the model is only looked at or keeps them. The model owns what was opened. Errors name the file. NULL options:
 * defaults. */
tare_status tare_saved_model_load(struct tare_graph_model **out, const char *path,
                                  const struct tare_saved_model_options *options) TARE_WARN_UNUSED;
/* Copies a SavedModel: the files are opened and checked as by load, then written again byte for byte. */
tare_status tare_saved_model_copy(const char *path, const char *out_path);

struct tare_output_rules;
/* What a written SavedModel may replace: an empty folder, and with `overwrite` a folder that contains only a
 * SavedModel; never the input (NULL: none), a folder that contains it or one inside it. `input` is borrowed. */
void tare_saved_model_output_rules(struct tare_output_rules *out, const char *input, bool overwrite);

struct tare_export_options {
    bool overwrite; /* replace an existing SavedModel; an empty folder is always replaced */
    /* Called with each path below the output directory before it is committed, for extra files; NULL: none. */
    tare_status (*extra)(void *arg, const char *directory);
    void *extra_arg;
};
/* Writes the model as a SavedModel: the functions that signatures and aliases need, the variables that are not frozen
 * with a new saver, and the assets. The model, which may have been loaded or built in memory, does not change, and
 * several threads may write it: what is written is a pruned clone. The written files are validated before they replace
 * anything; on failure no file remains. */
tare_status tare_saved_model_export(const struct tare_graph_model *model, const char *out_path,
                                    const struct tare_export_options *options) TARE_WARN_UNUSED;

/* Facts about the file for reports; NULL or 0 for a model that was not loaded. */
struct tare_saved_model_info {
    const char *tensorflow_version;
    const char *tags;     /* "serve" or "serve,tpu" */
    const char *all_tags; /* "{serve}, {serve,tpu}"; NULL where there is one MetaGraph only */
    const char *format;   /* "pb", "pbtxt", "cpb"; "mlirbc": a file of a StableHLO module */
    size_t file_size, checkpoint_bytes, checkpoint_tensors;
    bool is_tf1; /* no object graph */
};
void tare_saved_model_info(struct tare_saved_model_info *out, const struct tare_graph_model *model);
/* For calls that make a model from this one: TARE_NOT_FOUND if it has variables but no checkpoint, which usually means
 * that the folder variables/ was not copied; with `allow` a warning, since TensorFlow's loader accepts such a model. */
tare_status tare_saved_model_check_values(const struct tare_graph_model *model, bool allow,
                                          const struct tare_log *log) TARE_WARN_UNUSED;
/* True for a TensorFlow 1 model, which cannot be converted. */
bool tare_saved_model_is_tf1(const struct tare_graph_model *model);

#endif
