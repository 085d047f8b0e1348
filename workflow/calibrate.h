/* Calibration from files of samples, shared by calibrate, quantize, convert and compare: open a job on a prepared
 * model, start or resume a calibration, run it, close the job. tare_workflow_calibrate does all of it in one call. */
#ifndef TARE_WORKFLOW_CALIBRATE_H
#define TARE_WORKFLOW_CALIBRATE_H

#include "calib/calibration.h"
#include "calib/source.h"
#include "datasets/sampling.h"
#include "datasets/spec.h"
#include "interpreter/feedback.h"
#include "workflow/calibration_data.h"
#include "workflow/requests.h"

#include "base/log.h"

#include <signal.h>

struct tare_edge_list; /* quant/quantize.h */
struct tare_quant_counter;

/* Zero-initialize for the defaults. Everything is borrowed. */
struct tare_calibrate_options {
    const char *signature;               /* of files without a signature; NULL: serving_default, or the only one */
    const struct tare_signature *callee; /* signature of a function, instead of one of the model's; NULL: none */
    const uint64_t *fingerprint; /* of the model before the call of `callee` was added; NULL: of the current model */
    /* Tensors that quantization needs, listed before the call was added: the call adds arguments of unknown shape to
     * the function, and layers of unknown shape are not quantizable. NULL: listed from the current model. */
    const struct tare_edge_list *quantizable;
    const char *const *data; /* files, patterns or "-", optionally after "SIGNATURE=" */
    size_t n_data;
    const struct tare_dataset_spec *spec; /* maps records to inputs; NULL: records are samples */
    const struct tare_feedback *feedback; /* state between records, which then run in order; NULL: none */
    int threads, batch;                   /* 0: one per processor; 0: automatic */
    int64_t limit;                        /* use the first records of each signature, invalid ones included; 0: all */
    int64_t sample;                       /* use so many records of each signature, drawn at random; 0: all */
    int64_t seed;                         /* of the sample */
    int64_t shard, shards;                /* use record i of a signature if i mod shards == shard; shards 0: all */
    bool other_shards;                    /* use the records that are not in the shard instead */
    int64_t max_bad;                      /* invalid records of each signature to skip */
    bool observe_all;                     /* every floating-point tensor, not only those that quantization needs */
    bool channels;                        /* also collect statistics per channel */
    bool hessians; /* also compute Hessians of the layers' inputs: tare_workflow_calibrate runs the samples twice */
    const char *state_path;                   /* file for the saved state; NULL: none */
    double autosave_seconds;                  /* as in calib/engine.h */
    const struct tare_log *log;               /* warnings during the run; NULL: none */
    const struct tare_sample_source *samples; /* samples of the signature, instead of data; NULL: read files */
    bool progress;                            /* print progress to standard error */
    void (*on_progress)(void *arg, const char *label, int64_t done,
                        int64_t total); /* progress callback (base/progress.h); NULL: none */
    void *progress_arg;
    void (*tick)(void *arg); /* called periodically by one thread at a time; NULL: none */
    void *tick_arg;
    const volatile sig_atomic_t *interrupted; /* NULL: never */
};

/* A calibration job. */
struct tare_calibrate_job {
    const struct tare_graph_model *model;
    const struct tare_calibrate_options *options;
    struct tare_data_groups groups;
    struct tare_sampling *drawn; /* by group; NULL: every record */
    struct tare_arena arena;
    struct tare_edge *wanted; /* sorted; tensors that quantization needs */
    size_t n_wanted;
    const struct tare_quant_counter *counters; /* of tensors with statistics by entry (quant/quantize.h) */
    size_t n_counters;
    uint64_t fingerprint[2];
    struct tare_hessians *hessians; /* computed instead of statistics; NULL: statistics */
    const char *settings, *task;    /* descriptions of what is observed and run; a saved state must match both */
};

/* Outcome over all signatures. */
struct tare_calibrate_outcome {
    int64_t records; /* processed by this run */
    int threads, batch;
    const char *batch_reason; /* why the batch size is 1 although more was requested; otherwise NULL */
    bool stateful;
    double seconds;
};

/* Before the model is loaded: TARE_USAGE for options that exclude each other. tare_workflow_calibrate_open checks them,
 * too. */
tare_status tare_workflow_calibrate_check(const struct tare_calibrate_options *options) TARE_WARN_UNUSED;
/* For the calibration of a function (NULL: of none): TARE_USAGE where the options do not allow it. */
tare_status tare_workflow_calibrate_check_function(const struct tare_calibrate_options *options,
                                                   const char *function) TARE_WARN_UNUSED;
/* Makes the options those of the concrete function that takes the first record, and adds a call of it to the model. */
tare_status tare_workflow_calibrate_function(struct tare_calibrate_options *options, struct tare_graph_model *model,
                                             const char *function) TARE_WARN_UNUSED;
/* Finds signatures and files. Release with tare_workflow_calibrate_close, also after a failure. */
tare_status tare_workflow_calibrate_open(struct tare_calibrate_job *out, const struct tare_graph_model *model,
                                         const struct tare_calibrate_options *options) TARE_WARN_UNUSED;
void tare_workflow_calibrate_close(struct tare_calibrate_job *job);
/* The number of observed tensors, and an upper bound in bytes for the statistics of each and of all, for any data and
 * any number of records and workers. Statistics per channel, which depend on the shapes of the data, are not included.
 */
struct tare_calibrate_size {
    size_t tensors, bytes_each, bytes;
};
tare_status tare_workflow_calibrate_measure(struct tare_calibrate_size *out,
                                            const struct tare_calibrate_job *job) TARE_WARN_UNUSED;
/* Creates an empty calibration, or loads the saved state (TARE_NOT_FOUND if there is none). The caller owns *out. */
tare_status tare_workflow_calibrate_start(struct tare_calibration **out,
                                          const struct tare_calibrate_job *job) TARE_WARN_UNUSED;
tare_status tare_workflow_calibrate_resume(struct tare_calibration **out,
                                           const struct tare_calibrate_job *job) TARE_WARN_UNUSED;
/* Runs the records that the calibration does not contain yet. TARE_INTERRUPTED if interrupted. */
tare_status tare_workflow_calibrate_run(struct tare_calibration *calibration, struct tare_calibrate_outcome *outcome,
                                        const struct tare_calibrate_job *job) TARE_WARN_UNUSED;
/* Reads and checks the records without running them: the calibration gets the number of records and the invalid ones,
 * but no statistics. */
tare_status tare_workflow_calibrate_read_only(struct tare_calibration *calibration,
                                              const struct tare_calibrate_job *job) TARE_WARN_UNUSED;
/* Saves the calibration as a state to resume from. */
tare_status tare_workflow_calibrate_save_state(struct tare_calibration *calibration,
                                               const struct tare_calibrate_job *job) TARE_WARN_UNUSED;

/* Runs a whole calibration. The caller owns *out. */
tare_status tare_workflow_calibrate(struct tare_calibration **out, const struct tare_graph_model *model,
                                    const struct tare_calibrate_options *options) TARE_WARN_UNUSED;

/* Logs the warnings about a calibration (calib/warnings.h). Every command that calibrates calls this. */
tare_status tare_workflow_calibrate_log(const struct tare_log *log,
                                        const struct tare_calibration *calibration) TARE_WARN_UNUSED;

/* The same with the statistics of a calibration file (NULL: none); the samples then only serve Hessians. */
tare_status tare_workflow_calibrate_from(struct tare_calibration **out, const struct tare_graph_model *model,
                                         const char *file,
                                         const struct tare_calibrate_options *options) TARE_WARN_UNUSED;

/* Adds the Hessians of the layers' inputs to a calibration of the same samples. This is a separate pass over the
 * samples, because it needs the activation ranges. Layers are omitted once the Hessians exceed 2 GiB. Also keeps the
 * first samples of the files, at most 256 and until they exceed 128 MiB. */
tare_status tare_workflow_calibrate_hessians(struct tare_calibration *calibration, const struct tare_graph_model *model,
                                             const struct tare_calibrate_options *options) TARE_WARN_UNUSED;

#endif
