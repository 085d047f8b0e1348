/* From files of samples to a calibration: what calibrate, quantize, convert and compare share. */
#ifndef TARE_WORKFLOW_CALIBRATE_H
#define TARE_WORKFLOW_CALIBRATE_H

#include "calib/calibration.h"
#include "calib/source.h"
#include "datasets/spec.h"
#include "workflow/calibration_data.h"
#include "workflow/requests.h"

#include <signal.h>

struct tare_edge_list; /* quant/rewrite.h */

/* Zero it for the defaults. Everything in it is borrowed. */
struct tare_calibrate_options {
    const char *signature;               /* of files that name none; NULL: serving_default, or the only one */
    const struct tare_signature *callee; /* instead of one of the model's own: that of a function; NULL: none */
    const uint64_t *fingerprint;         /* of the model before the callee's call was added; NULL: as it is now */
    /* What quantization asks for, from before that, too: a call adds arguments of unknown shape to what its function is
     * known to get, and a layer of unknown shape is none. NULL: as the model is now. */
    const struct tare_edge_list *quantizable;
    const char *const *data; /* files, patterns, "-"; "SIGNATURE=" may stand in front */
    size_t n_data;
    const struct tare_dataset_spec *spec; /* what records become; NULL: they are samples */
    int threads, batch;                   /* 0: one a processor; 0: as many as pay */
    int64_t limit;                        /* the first records of each signature, bad ones among them; 0: all */
    int64_t shard, shards;                /* record i of a signature when i mod shards == shard; shards 0: all */
    int64_t max_bad;                      /* bad records of each signature to pass over */
    bool observe_all;                     /* every floating tensor, not only what quantization asks for */
    bool channels;                        /* statistics per channel, too */
    bool hessians;           /* of the layers' inputs, too: tare_workflow_calibrate looks at the samples twice */
    const char *state_path;  /* where the state is saved every few seconds; NULL: nowhere */
    double autosave_seconds; /* 0: 5 */
    const struct tare_sample_source *samples; /* of the signature, instead of data; NULL: files */
    bool progress;                            /* on standard error */
    void (*on_progress)(void *arg, const char *label, int64_t done,
                        int64_t total); /* of progress (base/progress.h); NULL: not */
    void *progress_arg;
    void (*tick)(void *arg); /* called now and then by one thread at a time; NULL: not */
    void *tick_arg;
    const volatile sig_atomic_t *interrupted; /* NULL: never */
};

/* A calibration that is to be made. */
struct tare_calibrate_job {
    const struct tare_model *model;
    const struct tare_calibrate_options *options;
    struct tare_data_groups groups;
    struct tare_arena arena;
    struct tare_edge *expected; /* sorted; what quantization asks for */
    size_t n_wanted;
    uint64_t fingerprint[2];
    struct tare_hessians *hessians; /* counted instead of statistics; NULL: statistics */
    const char *settings, *task;    /* what is observed; what is run: a saved state must have the same */
};

/* How it went, over all signatures. */
struct tare_calibrate_outcome {
    int64_t records; /* counted by this run */
    int threads, batch;
    const char *batch_reason; /* why it is 1 though more was asked for; NULL otherwise */
    bool stateful;
    double seconds;
};

/* Finds signatures and files. End with tare_workflow_calibrate_close, also after a failure. */
tare_status tare_workflow_calibrate_open(struct tare_calibrate_job *out, const struct tare_model *model,
                                         const struct tare_calibrate_options *options) TARE_WARN_UNUSED;
void tare_workflow_calibrate_close(struct tare_calibrate_job *job);
/* Tensors that will be observed, and the most bytes that the statistics of each and of all can take, whatever the data,
 * the number of records and of workers; with statistics per channel, which hang on the shapes of the data, at most so
 * much more. */
struct tare_calibrate_size {
    size_t tensors, bytes_each, bytes;
};
tare_status tare_workflow_calibrate_measure(struct tare_calibrate_size *out,
                                            const struct tare_calibrate_job *job) TARE_WARN_UNUSED;
/* An empty calibration to run into; or the saved one, TARE_NOT_FOUND when there is none. *out is the caller's. */
tare_status tare_workflow_calibrate_start(struct tare_calibration **out,
                                          const struct tare_calibrate_job *job) TARE_WARN_UNUSED;
tare_status tare_workflow_calibrate_resume(struct tare_calibration **out,
                                           const struct tare_calibrate_job *job) TARE_WARN_UNUSED;
/* Runs what the calibration does not have yet. TARE_INTERRUPTED: asked to stop. */
tare_status tare_workflow_calibrate_run(struct tare_calibration *calibration, struct tare_calibrate_outcome *outcome,
                                        const struct tare_calibrate_job *job) TARE_WARN_UNUSED;
/* Reads and checks the records without running them: the calibration gets their numbers and the bad ones, no
 * statistics. */
tare_status tare_workflow_calibrate_read_only(struct tare_calibration *calibration,
                                              const struct tare_calibrate_job *job) TARE_WARN_UNUSED;
/* Saves the calibration as a state to go on from: nothing in it will be run again. */
tare_status tare_workflow_calibrate_save_state(struct tare_calibration *calibration,
                                               const struct tare_calibrate_job *job) TARE_WARN_UNUSED;

/* All of it in one go. *out is the caller's. */
tare_status tare_workflow_calibrate(struct tare_calibration **out, const struct tare_model *model,
                                    const struct tare_calibrate_options *options) TARE_WARN_UNUSED;

/* The same, with the statistics of a calibration file (NULL: none); the samples are then for Hessians alone. */
tare_status tare_workflow_calibrate_from(struct tare_calibration **out, const struct tare_model *model,
                                         const char *file,
                                         const struct tare_calibrate_options *options) TARE_WARN_UNUSED;

/* Adds the Hessians of the layers' inputs to a calibration of the same samples: a look at them of its own, as it needs
 * to know how far activations reach. Layers are left out when all take more than 2 GiB. */
tare_status tare_workflow_calibrate_hessians(struct tare_calibration *calibration, const struct tare_model *model,
                                             const struct tare_calibrate_options *options) TARE_WARN_UNUSED;

#endif
