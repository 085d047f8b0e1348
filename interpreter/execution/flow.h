/* The static structure of TF1 loops: the frame of each step and the targets of each output. */
#ifndef TARE_INTERPRETER_EXECUTION_FLOW_H
#define TARE_INTERPRETER_EXECUTION_FLOW_H

#include "interpreter/execution/plan.h"

enum { TARE_FLOW_CONTROL = -1 };

/* Input `input` of step `step`, or TARE_FLOW_CONTROL. */
struct tare_flow_target {
    int step, input;
};

struct tare_flow_step {
    int frame;                        /* in which it runs: an Enter in the outer, an Exit in the inner one */
    int child;                        /* Enter: the frame that it leads to; -1 */
    int local;                        /* number among the steps of its frame */
    int first_input;                  /* place of its inputs among the inputs of its frame's steps */
    int pending;                      /* data inputs that come from steps, and controls; Merge: controls only */
    int data;                         /* data inputs that come from steps */
    struct tare_flow_target *targets; /* of output 0, then 1 …, then control targets */
    size_t *first_target;             /* by output, and one more for the controls, and the end */
};

struct tare_flow_frame {
    const char *name;
    int parent;
    int *steps; /* that run in it */
    size_t n_steps, n_inputs;
    int n_enters;
};

struct tare_flow {
    struct tare_flow_step *steps;
    struct tare_flow_frame *frames; /* 0 is the root */
    size_t n_frames;
    bool *fetched; /* by slot */
    size_t max_outputs;
};

/* Builds it in the session's arena. */
tare_status tare_flow_new(struct tare_flow **out, struct tare_session *session, const struct tare_plan *plan);

#endif
