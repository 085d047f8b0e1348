/* What groups of element-wise steps consist of (grouping.c): pipeline stages, and products of 16 bits. */
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
/* The same for arrays: a Maximum or Minimum of floats fits if its second input is a constant without NaN. */
bool tare_plan_array_stages_of(struct tare_step_stages *piece, const struct tare_step *step, int main);

/* The steps that multiply the halves of a 16-bit activation and add the sums (grouping_halves.c). */
enum { TARE_HALVES_STEPS = 11 };
struct tare_step_halves {
    int product; /* of the high halves, which computes the sum if it gets the activation in their place */
    int cast;    /* of the activation to int32 */
    int sum;     /* the AddV2 of the sums */
    int steps[TARE_HALVES_STEPS], n_steps; /* all of them */
};
/* Finds those of which `product` is one, of either half; false if the machine multiplies bytes faster. */
bool tare_plan_find_halves(struct tare_step_halves *halves, const struct tare_plan *plan,
                           const struct tare_plan_uses *uses, int product);

#endif
