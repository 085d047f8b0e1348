/* The structs of the opaque handles of include/tare/, and functions shared by the files of api/. Not included outside
 * of api/. */
#ifndef TARE_API_HANDLES_H
#define TARE_API_HANDLES_H

#include "base/arena.h"
#include "base/control.h"
#include "base/log.h"
#include "calib/calibration.h"
#include "datasets/sample.h"
#include "graph/model.h"
#include "graph/op.h"
#include "include/tare/tare.h"

#include <pthread.h>
#include <signal.h>

struct tare_plugins;

struct tare_context_handle {
    struct tare_plugins *plugins; /* NULL: none */
    int threads;
    bool allows_missing; /* variables without values */
    tare_progress_function progress;
    void *progress_arg;
    pthread_mutex_t progress_lock; /* held by the call whose progress is reported */
    tare_log_function log;
    void *log_arg;
    enum tare_log_level log_level; /* more detailed messages are discarded */
    volatile sig_atomic_t cancelled;
    struct tare_control control; /* of all calls with this context */
};

/* Descriptions of the inputs or outputs of a signature. */
struct tare_public_side {
    tare_array *items;
    size_t count;
};

/* A directory in $TMPDIR: of the handle whose model was written to it, and of those that were made from that model,
 * whose assets are there. */
struct tare_public_folder {
    char *path;
    _Atomic int shares; /* further owners */
};

struct tare_model_handle {
    struct tare_context_handle *context; /* NULL: the defaults */
    uint64_t family;                     /* of the files that it maps */
    struct tare_graph_model *model;
    bool opened;                          /* from a directory of the caller; otherwise made from another model */
    char *path;                           /* directory that it can be loaded from again; set by tare_public_path */
    struct tare_public_folder *temporary; /* above `path`; NULL: `path` is the caller's, or not set */
    struct tare_public_folder *source;    /* that `model` was loaded from; NULL: the caller's */
    struct tare_arena arena;
    struct tare_public_side *inputs, *outputs; /* one a signature */
    pthread_mutex_t lock; /* of `path` and `temporary`, and of building the lists of uses of `model` */
};

/* The contents are never changed: tare_calibration_add replaces them by a changed copy. A function that works with a
 * handle takes a share of its contents (tare_public_contents) and keeps what it began with. */
struct tare_calibration_handle {
    struct tare_calibration *contents;
    pthread_mutex_t lock;   /* of `contents`, held only while it is taken or replaced */
    pthread_mutex_t adding; /* one addition at a time; taken before the lock of any handle */
};

/* Called at the beginning and end of every public function that returns a status: clears the text of earlier failures,
 * makes the thread's or context's cancellation that of the call, and sets a text for failures that have none.
 * `context` NULL: a call that is never cancelled. `family`: of the handle that the call works on, so that the call
 * fails if a file that the handle maps became shorter (base/file_lost.h); 0 for functions that open a handle without
 * another.
 */
void tare_public_begin(struct tare_context_handle *context, uint64_t family);
/* The family of this call, for the handles that it makes. */
uint64_t tare_public_family(void);
tare_status tare_public_end(tare_status status);

/* Settings of a context; NULL: the defaults. */
const struct tare_op_registry *tare_public_ops(const struct tare_context_handle *context);
/* The flag that cancels calls of this thread (tare_thread_cancel_by), else calls with the context; NULL: none does. */
const volatile sig_atomic_t *tare_public_interrupted(const struct tare_context_handle *context);
/* The progress callback of calls, whose argument is the context: the caller's, for one call at a time. NULL: none. */
tare_progress_function tare_public_progress(const struct tare_context_handle *context);
struct tare_log tare_public_log(const struct tare_context_handle *context);

/* Makes a handle that owns a changed copy of the model `of` (tare_public_load); frees the copy on failure. */
tare_status tare_public_made(tare_model **out, const tare_model *of, struct tare_graph_model *copy) TARE_WARN_UNUSED;
/* A directory that the model can be loaded from again, valid as long as the handle. Passes change a model in place, so
 * every call that needs a changed copy loads one. A model made from another is written to a temporary directory the
 * first time. Thread-safe. */
tare_status tare_public_path(const char **out, const tare_model *model) TARE_WARN_UNUSED;
/* The path as the caller knows it; `otherwise` for a model that was made. */
const char *tare_public_name(const tare_model *model, const char *otherwise);
/* The name in reports, where tare_public_path is not the caller's; NULL: the path. */
const char *tare_public_report_name(const tare_model *model);
/* A copy of the model for passes to change, loaded from there. */
tare_status tare_public_load(struct tare_graph_model **out, const tare_model *model) TARE_WARN_UNUSED;
/* tare_saved_model_check_values with the settings of the context; TARE_OK for a model made from one that was checked.
 */
tare_status tare_public_check_values(const tare_model *model) TARE_WARN_UNUSED;
/* Builds the lists of uses of the model, once: for analyses that count uses. Thread-safe. */
tare_status tare_public_index(const tare_model *model) TARE_WARN_UNUSED;
struct tare_saved_model_options;
/* Splits "serve,tpu" at its commas. Memory is from the arena. */
tare_status tare_public_tags(struct tare_saved_model_options *out, struct tare_arena *arena,
                             const char *text) TARE_WARN_UNUSED;
/* Whether bits of enum tare_write_flags allow to replace a directory. TARE_INVALID_ARGUMENT for other bits. */
tare_status tare_public_write_flags(bool *overwrite, unsigned flags) TARE_WARN_UNUSED;
/* TARE_INVALID_ARGUMENT if the calibration belongs to another model than `prepared`. NULL: no calibration. */
tare_status tare_public_check_calibration(const struct tare_calibration *calibration,
                                          const struct tare_graph_model *prepared) TARE_WARN_UNUSED;
/* A share of the contents; NULL for no calibration. Release with tare_calibration_free. Thread-safe. */
struct tare_calibration *tare_public_contents(const tare_calibration *calibration);
/* Makes a handle that owns the calibration; frees it on failure. */
tare_status tare_public_calibration(tare_calibration **out, struct tare_calibration *calibration) TARE_WARN_UNUSED;

/* Makes a new directory in $TMPDIR, else /tmp; the caller removes it and releases *out with tare_free. */
tare_status tare_public_temporary(char **out) TARE_WARN_UNUSED;
/* Describes the inputs or outputs of a signature. Memory is from the arena. */
tare_status tare_public_describe(struct tare_public_side *out, struct tare_arena *arena,
                                 const struct tare_binding *bindings, size_t count) TARE_WARN_UNUSED;

/* TARE_INVALID_ARGUMENT unless a struct of the caller has the size that this version knows, and its reserved members
 * are zero. `what`: its name. */
tare_status tare_public_check_struct(const char *what, size_t size, size_t expected, const uint64_t *reserved,
                                     size_t n_reserved) TARE_WARN_UNUSED;
#define TARE_PUBLIC_CHECK_STRUCT(type, object)                                                                         \
    tare_public_check_struct(#type, (object)->struct_size, sizeof *(object), (object)->reserved,                       \
                             sizeof(object)->reserved / sizeof *(object)->reserved)
/* The same for records of the caller, whose callback must be set. */
tare_status tare_public_check_records(const tare_records *records) TARE_WARN_UNUSED;
/* The next record of the caller, with the status of its callback; *arrays NULL after the last one. */
tare_status tare_public_next_record(const tare_records *records, const tare_array **arrays, size_t *count,
                                    int64_t number) TARE_WARN_UNUSED;
/* Records of the caller in a temporary file, for work that reads them several times. */
struct tare_public_spool {
    char *directory, *path; /* path: NULL if nothing was written */
    char *name;             /* of the records, for errors and reports */
};
/* Writes all records; TARE_INTERRUPTED when `context` is cancelled. Remove with tare_public_spool_remove, also after a
 * failure. */
tare_status tare_public_spool_write(struct tare_public_spool *out, const tare_records *records, const char *name,
                                    const struct tare_context_handle *context) TARE_WARN_UNUSED;
/* In the text of a failure, the records have their name in place of the path. */
void tare_public_spool_remove(struct tare_public_spool *spool);

/* Describes the tensors of a record: one array for each key, in `arrays`, which has room for sample->count. */
void tare_public_arrays(tare_array *arrays, const struct tare_sample *sample);
/* Checks arrays and copies them into a sample; reset *out also after a failure. */
tare_status tare_public_sample(struct tare_sample *out, const tare_array *arrays, size_t count) TARE_WARN_UNUSED;
/* The same without copying numeric elements: they must outlive every use of the sample's tensors. */
tare_status tare_public_borrow(struct tare_sample *out, const tare_array *arrays, size_t count) TARE_WARN_UNUSED;
/* Whether the elements of a tensor are the caller's, borrowed by tare_public_borrow. */
bool tare_public_is_borrowed(const struct tare_tensor *tensor);
/* Describes a tensor; the data remains the tensor's. */
void tare_public_array(tare_array *out, const char *name, const struct tare_tensor *tensor);

/* A copy for the caller, who releases it with tare_text_free. TARE_NO_MEMORY also if the buffer has failed. */
struct tare_strbuf;
tare_status tare_public_text(char **out, const struct tare_strbuf *text) TARE_WARN_UNUSED;

#endif
