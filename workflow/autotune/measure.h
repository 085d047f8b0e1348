/* The state of an automatic choice, and the measurements of its candidates. A candidate is the model with the choices
 * in `out`: algorithm, passes and the overrides of layers. */
#ifndef TARE_WORKFLOW_AUTOTUNE_MEASURE_H
#define TARE_WORKFLOW_AUTOTUNE_MEASURE_H

#include "eval/record_store.h"
#include "workflow/autotune/autotune.h"

/* dB that an override must gain if it costs speed or size: half a bit. */
static const double TARE_WORTH_EXCEPTION_DB = 3;

struct tare_autotune_search {
    struct tare_autotune *out;
    const struct tare_autotune_task *task;
    struct tare_autotune_layer *common;     /* the layers before the search for exceptions */
    struct tare_evaluation evaluation;      /* the task's, on the samples */
    struct tare_evaluation plain_outputs;   /* the same without labels and expected values */
    struct tare_record_store records;       /* the samples */
    struct tare_comparison comparison;      /* the first row is the float model */
    struct tare_calibration *fit;           /* of the samples that are not held out; NULL: none are */
    size_t plain, best, last;               /* rows: without any choice, of the best candidate, of the last one */
    struct tare_comparison task_comparison; /* the same by labels or expected values, of the outputs as they are */
    size_t task_plain, task_best, task_last;
    const struct tare_autotune_layer *only; /* the only layer to quantize; NULL: all */
};

/* The variant with the current choices: algorithm and passes of the model, and a rule for each override. */
tare_status tare_autotune_variant(struct tare_variant *out, struct tare_autotune_search *c,
                                  struct tare_arena *arena) TARE_WARN_UNUSED;
/* A new model with the current choices. `only`: the only layer to quantize; NULL: all. The first model determines the
 * list of layers. */
tare_status tare_autotune_model(struct tare_graph_model **out, struct tare_autotune_search *c,
                                const struct tare_autotune_layer *only) TARE_WARN_UNUSED;
/* Makes and runs the candidate with the current choices: the last one, of *db at the worst output. */
tare_status tare_autotune_measure(double *db, struct tare_autotune_search *c,
                                  const struct tare_autotune_layer *only) TARE_WARN_UNUSED;
/* Runs the float model, which is the first row. */
tare_status tare_autotune_measure_float(struct tare_autotune_search *c) TARE_WARN_UNUSED;
/* Whether the last candidate, of `db`, is better than another row. By the measure of the task if there is one and its
 * values differ; otherwise if it has less noise by `margin` decibels, and by the 90 % interval of the
 * difference at the worst output of the other row, for which few samples are not enough. */
bool tare_autotune_improves(const struct tare_autotune_search *c, double db, size_t other, double margin);
/* Whether layers may get activations of 16 bits that the user did not ask for. */
bool tare_autotune_can_widen(const struct tare_autotune_search *c);
/* Gives all layers activations of 16 bits if the best candidate is too noisy and they improve it enough. */
tare_status tare_autotune_choose_width(struct tare_autotune_search *c) TARE_WARN_UNUSED;
/* Makes the last candidate the best one. */
void tare_autotune_keep(struct tare_autotune_search *c, double db);
/* Sets the loss of the best candidate against float. */
void tare_autotune_take_loss(struct tare_autotune_search *c);

#endif
