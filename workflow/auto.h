/* From a float model and samples to a quantized or converted model that is verified: for `tare auto` and the public
 * API. The steps are those of the single commands: compare, decide, quantize or convert, compare again. */
#ifndef TARE_WORKFLOW_AUTO_H
#define TARE_WORKFLOW_AUTO_H

#include "base/arena.h"
#include "workflow/compare.h"
#include "workflow/convert.h"

/* What the user requests. */
struct tare_auto_request {
    struct tare_option_list eval; /* labelled records for the comparisons; empty: the samples */
    struct tare_data_options records;
    const char *label, *target_key, *signature;
    int metric; /* as in struct tare_compare_request */
    double margin;
    bool tpu;      /* convert, not only quantize */
    int chip;      /* 0: any; otherwise 1 + index into tare_tpu_chips: the fastest model within the margin */
    int64_t batch; /* on that chip */
    bool overwrite;
};
extern const struct tare_option tare_auto_rows[];

/* The model as it was written. */
struct tare_auto_built {
    const struct tare_graph_model *model;
    const struct tare_conversion *conversion; /* NULL: it was quantized only */
    bool was_quantized;
    const struct tare_log *log; /* for what is found about it */
};

/* Input of a run; everything is borrowed. */
struct tare_auto_task {
    const char *model;                  /* SavedModel directory, or a file of a StableHLO module */
    const char *model_name;             /* as in struct tare_compare_task */
    const char *output;                 /* directory to write; OUTPUT.recipe gets the plan, OUTPUT.html the report,
                                         * OUTPUT.spec a DatasetSpec where records need one and none is given */
    const struct tare_op_registry *ops; /* NULL: the built-in ones */
    const char *const *data;            /* representative samples */
    size_t n_data;
    int threads;                                                                    /* 0: those that the machine has */
    bool quiet;                                                                     /* print no progress */
    void (*on_progress)(void *arg, const char *label, int64_t done, int64_t total); /* of comparisons; NULL: none */
    void *progress_arg;
    const struct tare_log *log;       /* for the command of each step, as a note, and for messages of comparisons */
    const struct tare_log *build_log; /* for messages of the quantization or conversion */
    const volatile sig_atomic_t *interrupted; /* NULL: never */
    /* Called after the comparison, and after the model is written; another status than TARE_OK ends the run. NULL:
     * none. */
    tare_status (*on_compared)(void *arg, struct tare_compare_job *comparison);
    tare_status (*on_built)(void *arg, const struct tare_auto_built *built);
    void *arg;
};

/* A run. */
struct tare_auto_job {
    struct tare_auto_request *request; /* gets a drafted spec */
    const struct tare_auto_task *task;
    struct tare_arena arena;
    struct tare_compare_request comparing;
    struct tare_compare_task compare_task;
    struct tare_compare_job comparison; /* by which is decided; its result has the warnings of all steps */
    struct tare_log log, build_log;     /* of the steps after it */
    const char *recipe, *report, *spec; /* paths of the plan, of the report and of a drafted DatasetSpec */
    const char *plan;                   /* of the recommended model; NULL: nothing is quantized */
    const char *answers;                /* hash of the outputs that were measured */
    bool uses_samples;                  /* the plan needs them */
};

/* Opens the request's spec and names the files beside the output. TARE_USAGE without samples. Writes nothing. Release
 * with tare_workflow_auto_close, also after a failure. */
tare_status tare_workflow_auto_open(struct tare_auto_job *out, struct tare_auto_request *request,
                                    const struct tare_auto_task *task) TARE_WARN_UNUSED;
/* Compares the float model with quantized ones on the records, writes the report, builds the recommended model with
 * its plan beside it, and checks that the outputs of what was written are those that were measured. TARE_NOT_FOUND if
 * no model is recommended; then no model is written. TARE_INTERNAL if the outputs differ. */
tare_status tare_workflow_auto_run(struct tare_auto_job *job) TARE_WARN_UNUSED;
void tare_workflow_auto_close(struct tare_auto_job *job);

#endif
