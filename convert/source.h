/* An opened SavedModel: files, messages and checkpoint of a loaded model. Private to convert. */
#ifndef TARE_CONVERT_SOURCE_H
#define TARE_CONVERT_SOURCE_H

#include "base/file.h"
#include "convert/import/node_defs.h"
#include "convert/load_options.h"
#include "proto/bundle.h"
#include "proto/tensorflow/saved_model.pb-c.h"

#include <pthread.h>

struct tare_graph_model;
struct tare_import_faults;

/* Folders that are copied to what is written. */
enum { TARE_SOURCE_FOLDERS = 2 };
extern const char *const tare_source_folders[TARE_SOURCE_FOLDERS];

struct tare_saved_model {
    struct tare_arena arena; /* the messages */
    char *path;
    struct tare_mapping file; /* saved_model.pb, .pbtxt or .cpb, while it is parsed */
    size_t file_size;
    const char *format;              /* "pb", "pbtxt", "cpb" */
    Tensorflow__SavedModel *message; /* without the graphs of `wires` */
    Tensorflow__MetaGraphDef *meta;  /* the chosen one */
    const char *tags;                /* "serve,tpu" */
    const char *all_tags;            /* "{serve}, {serve,tpu}"; NULL: one MetaGraph only */
    struct tare_wire_graph *wires;   /* the MetaGraphs' graphs, left in the mapped file; NULL: the messages have them */
    size_t n_wires, wires_capacity;
    const struct tare_wire_graph *wire;          /* of the chosen one */
    struct tare_bundle *bundle;                  /* NULL: no checkpoint */
    bool has_folder[TARE_SOURCE_FOLDERS];        /* when it was opened */
    bool without_values;                         /* from the options */
    struct tare_import_faults *faults;           /* not NULL: all that is wrong is expected (convert/import/import.h) */
    pthread_mutex_t lock;                        /* of `trackable` */
    Tensorflow__TrackableObjectGraph *trackable; /* of tare_source_trackable; NULL: not read, or there is none */
};

/* Opens and parses, chooses the MetaGraph, opens the checkpoint. */
tare_status tare_source_open(struct tare_saved_model **out, const char *path,
                             const struct tare_saved_model_options *options);
/* As open; without tags the MetaGraph number `index` is chosen, whatever its tags. */
tare_status tare_source_open_nth(struct tare_saved_model **out, const char *path,
                                 const struct tare_saved_model_options *options, size_t index);
void tare_source_close(struct tare_saved_model *source);
/* The IR of what was opened; the model owns `source` from then on. On failure *out is NULL and the caller keeps the
 * source.
 */
tare_status tare_saved_model_import(struct tare_graph_model **out, struct tare_saved_model *source,
                                    const struct tare_saved_model_options *options);
/* The source of a loaded model; NULL for a model built in memory. */
struct tare_saved_model *tare_source_of(const struct tare_graph_model *model);
/* The checkpoint's object graph, read once, in the source's arena; *out NULL when there is none. Thread-safe. */
tare_status tare_source_trackable(Tensorflow__TrackableObjectGraph **out, struct tare_saved_model *source);

#endif
