/* What the opaque handles of include/tare/ are, and what their files share. Nothing outside lib/public includes this.
 */
#ifndef TARE_API_HANDLES_H
#define TARE_API_HANDLES_H

#include "base/arena.h"
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
    tare_progress_function progress;
    void *progress_arg;
    tare_message_function message;
    void *message_arg;
    volatile sig_atomic_t cancelled;
};

/* Inputs or outputs of a signature as users see them. */
struct tare_public_side {
    tare_array *items;
    size_t count;
};

struct tare_model_handle {
    struct tare_context_handle *context; /* NULL: the defaults */
    struct tare_model *model;
    char *path; /* it can be opened anew from there; NULL: it was made from another */
    struct tare_arena arena;
    struct tare_public_side *inputs, *outputs; /* one a signature */
    pthread_mutex_t writing;                   /* an export works on the model's arena */
};

struct tare_calibration_handle {
    struct tare_calibration *calibration;
};

/* Every public function that can fail begins and ends with these: no text of an earlier failure, none without a text.
 */
void tare_public_begin(void);
tare_status tare_public_end(tare_status status);

/* Of a context that may be NULL. */
const struct tare_op_registry *tare_public_ops(const struct tare_context_handle *context);
const volatile sig_atomic_t *tare_public_interrupted(const struct tare_context_handle *context);
struct tare_log tare_public_log(const struct tare_context_handle *context);

/* Takes over the model, also after a failure. `path`: where it was opened; NULL: made from another. */
tare_status tare_public_model(tare_model **out, struct tare_context_handle *context, struct tare_model *model,
                              const char *path) TARE_WARN_UNUSED;
/* TARE_INVALID_ARGUMENT for a model that is in no directory: the work opens it anew. */
tare_status tare_public_check_path(const tare_model *model) TARE_WARN_UNUSED;
/* TARE_INVALID_ARGUMENT when the calibration is of another model than `prepared`. */
tare_status tare_public_check_calibration(const tare_calibration *calibration,
                                          const struct tare_model *prepared) TARE_WARN_UNUSED;
/* A handle for it; takes the calibration over, also after a failure. */
tare_status tare_public_calibration(tare_calibration **out, struct tare_calibration *calibration) TARE_WARN_UNUSED;

/* Copies arrays into a sample, checked; *out is the caller's to reset, also after a failure. */
tare_status tare_public_sample(struct tare_sample *out, const tare_array *arrays, size_t count) TARE_WARN_UNUSED;
/* Describes a tensor; the data is the tensor's. */
void tare_public_array(tare_array *out, const char *name, const struct tare_tensor *tensor);

/* A copy for the caller to tare_text_free. */
struct tare_strbuf;
tare_status tare_public_text(char **out, const struct tare_strbuf *text) TARE_WARN_UNUSED;

#endif
