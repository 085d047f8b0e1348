/* The pipeline stages that compute what an element-wise step computes (grouping.c). */
#ifndef TARE_INTERPRETER_EXECUTION_STAGES_H
#define TARE_INTERPRETER_EXECUTION_STAGES_H

#include "interpreter/execution/plan.h"

enum { TARE_STEP_MAX_STAGES = 3 };
struct tare_step_stages {
    enum tare_stage_code codes[TARE_STEP_MAX_STAGES];
    int n_codes;
    int operand; /* the step's input that is the first stage's operand; -1: none */
};

/* The stages of a step whose input `main` is the pipeline's value; false if the step does not fit a pipeline. */
bool tare_plan_stages_of(struct tare_step_stages *piece, const struct tare_step *step, int main);

#endif
