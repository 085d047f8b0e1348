/* Scalar programs: element-wise steps on single elements, such as those that compute the scale and the zero point of a
 * dynamically quantized activation from its range. A step costs a hundred times its arithmetic, so the steps of a
 * program are computed together, and only values that other steps use become tensors.
 *
 * A program consists of steps whose inputs are constants, results of the program, or values that exist when the first
 * step runs: outputs of earlier steps, and those of ranges (ranges.c) that were set before, which are read without
 * tensors. It runs in the place of its first step; where an input has more than one element, or is not computed yet,
 * the steps run one by one. The tensors of results are kept in the frame and used again by the next run, unless they
 * have other references. A result that all its users only read, as groups do, is lent: its slot keeps a tensor without
 * a buffer of its own, so that a run stores only the value. */
#include "base/alloc.h"
#include "interpreter/execution/stages.h"
#include "interpreter/execution/step.h"

#include <string.h>

enum { MOST_OPS = 32, MOST_INPUTS = 32, SCALARS_OF_PROGRAM = MOST_OPS + MOST_INPUTS };

/* One step: stages on register x, whose first has register y as its operand. Small: a run reads all of them. */
struct scalar_op {
    unsigned char codes[TARE_STEP_MAX_STAGES]; /* enum tare_stage_code */
    unsigned char n_codes;
    signed char x, y; /* y -1: none */
    bool is_used;     /* by steps outside of the program */
    bool is_kept;     /* not all of them only read it: the tensor of the result has memory of its own */
    int step, dtype, slot;
};

struct scalar {
    union tare_lane value;
    int rank;
};

struct scalar_input {
    int value; /* number */
    enum tare_lane_type type;
    int extreme;            /* the step of a range that computes it; TARE_NO_STEP: another step, or none */
    struct scalar constant; /* if it is one and has_constants */
};

struct tare_scalar_program {
    bool active;        /* the present observer requests no result */
    bool has_constants; /* the first run reads them */
    int n_inputs, n_ops;
    struct scalar_input inputs[MOST_INPUTS]; /* registers 0 … */
    struct scalar_op ops[MOST_OPS];          /* in order; the result of op i is register MOST_INPUTS + i */
};

/* ---- which steps are scalar ---- */

static bool is_scalar_constant(struct tare_edge edge) {
    const struct tare_tensor *constant = tare_edge_constant(edge);
    return constant && constant->elements == 1 && !constant->splat && constant->shape.rank <= 1;
}

/* True for values derived from ranges. */
static bool is_scalar_value(const struct tare_plan *plan, const struct tare_plan_uses *uses, int value) {
    const int step = value < 0 ? TARE_NO_STEP : uses->made_by[value];
    return step >= 0 && (plan->steps[step].is_scalar || plan->steps[step].range);
}

static bool is_scalar(const struct tare_plan *plan, const struct tare_plan_uses *uses, const struct tare_step *step) {
    struct tare_step_stages stages;
    bool has_value = false;
    if (step->fusion || step->range) return false;
    if (step->n_inputs == 0 || !tare_plan_stages_of(&stages, step, 0)) return false;
    for (size_t i = 0; i < step->n_inputs; i++) {
        const bool is_value = is_scalar_value(plan, uses, step->inputs[i]);
        if (!is_value && (step->inputs[i] >= 0 || !is_scalar_constant(step->node->inputs[i]))) return false;
        has_value |= is_value;
    }
    return has_value && strcmp(step->node->op, "BiasAdd") != 0;
}

void tare_plan_mark_scalars(struct tare_plan *plan, const struct tare_plan_uses *uses) {
    for (size_t s = 0; s < plan->n_steps; s++)
        plan->steps[s].is_scalar = is_scalar(plan, uses, &plan->steps[s]);
}

/* ---- programs ---- */

struct builder {
    const struct tare_plan *plan;
    const struct tare_plan_uses *uses;
    struct tare_scalar_program *program;
    int *registers; /* by slot: that of the program under construction that contains it; -1: none */
    int first;      /* step of the program */
};

/* The step before which a value is set. */
static int set_before(const struct builder *b, int value) {
    const int step = value < 0 ? TARE_NO_STEP : b->uses->made_by[value];
    const struct tare_step_range *range = step < 0 ? NULL : b->plan->steps[step].range;
    if (range) return range->steps[0] < range->steps[1] ? range->steps[0] : range->steps[1];
    return step < 0 ? -1 : tare_plan_runs_at(b->plan, step);
}

/* The register of an input of a step; -1 if the value does not exist when the program runs, or there is no room. */
static int register_of(struct builder *b, const struct tare_step *step, int input) {
    const int value = step->inputs[input];
    const struct tare_edge edge = step->node->inputs[input];
    struct tare_scalar_program *program = b->program;
    if (value >= 0 && b->registers[value] >= 0) return b->registers[value];
    if (set_before(b, value) >= b->first || program->n_inputs == MOST_INPUTS) return -1;
    const enum tare_lane_type type = tare_plan_lane_of(edge.node->output_dtypes[edge.index]);
    if (!type) return -1;
    const int made_by = value < 0 ? TARE_NO_STEP : b->uses->made_by[value];
    const bool is_extreme = made_by >= 0 && b->plan->steps[made_by].range;
    program->inputs[program->n_inputs] =
        (struct scalar_input){ .value = value, .type = type, .extreme = is_extreme ? made_by : TARE_NO_STEP };
    if (value >= 0) b->registers[value] = program->n_inputs;
    return program->n_inputs++;
}

/* Appends a step to the program; false if it does not fit. */
static bool append(struct builder *b, int s) {
    const struct tare_step *step = &b->plan->steps[s];
    struct tare_scalar_program *program = b->program;
    struct tare_step_stages stages = { .operand = -1 };
    struct scalar_op op = { .step = s, .y = -1, .dtype = step->node->output_dtypes[0], .slot = step->first_output };
    if (program->n_ops == MOST_OPS || !tare_plan_stages_of(&stages, step, 0)) return false;
    op.x = (signed char)register_of(b, step, 0);
    if (stages.operand >= 0) op.y = (signed char)register_of(b, step, stages.operand);
    if (op.x < 0 || (stages.operand >= 0 && op.y < 0)) return false;
    op.n_codes = (unsigned char)stages.n_codes;
    for (int i = 0; i < stages.n_codes; i++)
        op.codes[i] = (unsigned char)stages.codes[i];
    b->registers[step->first_output] = MOST_INPUTS + program->n_ops;
    program->ops[program->n_ops++] = op;
    return true;
}

/* Those of the program that is complete. */
static void forget_registers(struct builder *b) {
    for (int i = 0; b->program && i < b->program->n_inputs; i++)
        if (b->program->inputs[i].value >= 0) b->registers[b->program->inputs[i].value] = -1;
    for (int i = 0; b->program && i < b->program->n_ops; i++)
        b->registers[b->plan->steps[b->program->ops[i].step].first_output] = -1;
}

/* Begins a program with step s, the first of the scalar steps that are in none. */
static tare_status begin_program(struct builder *b, struct tare_plan *plan, struct tare_arena *arena, int s) {
    forget_registers(b);
    b->program = TARE_NEW(arena, struct tare_scalar_program);
    if (!b->program) return TARE_NO_MEMORY;
    b->first = s;
    if (append(b, s)) plan->steps[s].scalars = b->program;
    return TARE_OK;
}

/* True if the step only reads its operands of one element: it neither passes them on nor keeps them. */
static bool only_reads(const struct tare_step *step) {
    struct tare_step_stages stages;
    if (!step->group) return false;
    return step->n_inputs == 2 && tare_plan_stages_of(&stages, step, 0);
}

/* Marks the results and the values of ranges that steps outside of their program, or of any program, use. */
static void mark_used(struct builder *b, const int *program_of, int value, int by) {
    const int step = value < 0 ? TARE_NO_STEP : b->uses->made_by[value];
    struct tare_step_range *range = step < 0 ? NULL : b->plan->steps[step].range;
    const bool is_in_program = by >= 0 && program_of[by] >= 0 && b->plan->steps[program_of[by]].scalars;
    if (range && !is_in_program) range->is_used[range->steps[1] == step] = true;
    if (step < 0 || program_of[step] < 0 || (by >= 0 && program_of[by] == program_of[step])) return;
    struct tare_scalar_program *program = b->plan->steps[program_of[step]].scalars;
    for (int i = 0; program && i < program->n_ops; i++) {
        if (program->ops[i].step != step) continue;
        program->ops[i].is_used = true;
        program->ops[i].is_kept |= !is_in_program && (by < 0 || !only_reads(&b->plan->steps[by]));
    }
}

/* Marks the results and the values of ranges that only programs use. */
static void mark_internal(struct tare_plan *plan) {
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_step *step = &plan->steps[s];
        const struct tare_scalar_program *program = step->scalars;
        if (step->range) step->is_internal = !step->range->is_used[step->range->steps[1] == (int)s];
        for (int i = 0; program && i < program->n_ops; i++) {
            const struct scalar_op *op = &program->ops[i];
            plan->steps[op->step].is_internal = !op->is_used;
            plan->steps[op->step].is_lent = op->is_used && !op->is_kept;
            plan->steps[op->step].computed_with = (int)s;
        }
    }
}

tare_status tare_plan_find_scalars(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena,
                                   struct tare_arena *scratch) {
    struct builder b = { plan, uses, NULL, TARE_NEW_ARRAY(scratch, int, plan->n_slots + 1), 0 };
    int *program_of = TARE_NEW_ARRAY(scratch, int, plan->n_steps + 1); /* by step: the first step of its program */
    if (!b.registers || !program_of) return TARE_NO_MEMORY;
    for (size_t v = 0; v < plan->n_slots; v++)
        b.registers[v] = -1;
    for (size_t s = 0; s < plan->n_steps; s++) {
        program_of[s] = -1;
        if (!plan->steps[s].is_scalar) continue;
        if (!b.program || !append(&b, (int)s)) TARE_TRY(begin_program(&b, plan, arena, (int)s));
        program_of[s] = b.first;
    }
    for (size_t s = 0; s < plan->n_steps; s++)
        for (size_t i = 0; i < plan->steps[s].n_inputs; i++)
            mark_used(&b, program_of, plan->steps[s].inputs[i], (int)s);
    for (size_t i = 0; i < plan->n_fetches; i++)
        mark_used(&b, program_of, plan->fetches[i], -1);
    mark_internal(plan);
    return TARE_OK;
}

void tare_plan_select_scalars(const struct tare_session *session, const struct tare_plan *plan) {
    const struct tare_session_options *options = &session->options;
    const bool any = !options->trace && !options->check_numerics && !options->use_reference_kernels;
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_scalar_program *program = plan->steps[s].scalars;
        if (!program) continue;
        program->active = any;
        for (int i = 0; i < program->n_ops; i++)
            program->active &= !plan->steps[program->ops[i].step].observed;
        for (int i = 0; i < program->n_inputs && !program->active; i++)
            if (program->inputs[i].extreme >= 0) plan->steps[program->inputs[i].extreme].range->has_tensors = true;
    }
}

/* ---- running ---- */

/* True if the input is a value of a range that is computed. */
static bool is_extreme(const struct scalar_input *input, const struct tare_plan *plan,
                       const struct tare_exec_frame *frame) {
    return input->extreme >= 0 && frame->computed[input->extreme] && plan->steps[input->extreme].range->active;
}

static bool load_tensor(struct scalar *out, const struct tare_tensor *tensor, enum tare_lane_type type) {
    if (tensor->elements != 1 || tensor->splat || tare_plan_lane_of(tensor->dtype) != type) return false;
    *out = (struct scalar){ tare_lane_load(tensor->data, type, 0), tensor->shape.rank };
    return true;
}

static bool load_inputs(struct scalar registers[SCALARS_OF_PROGRAM], struct tare_scalar_program *program,
                        const struct tare_plan *plan, const struct tare_exec_frame *frame) {
    for (int i = 0; i < program->n_inputs; i++) {
        struct scalar_input *input = &program->inputs[i];
        if (input->value < 0 && program->has_constants) {
            registers[i] = input->constant;
        } else if (is_extreme(input, plan, frame)) {
            const struct tare_extreme *extreme = &frame->extremes[input->extreme];
            registers[i] = (struct scalar){ { .f = extreme->value }, extreme->rank };
        } else {
            if (!load_tensor(&registers[i], tare_plan_value(plan, frame, input->value), input->type)) return false;
            if (input->value < 0) input->constant = registers[i];
        }
    }
    program->has_constants = true;
    return true;
}

/* `stage`: without operand; its code is set here. A register is read by its members, as it was written: reading it at
 * once would wait until both are in the cache. */
static void run_op(struct scalar registers[SCALARS_OF_PROGRAM], const struct scalar_op *op, struct tare_stage *stage,
                   struct scalar *result) {
    union tare_lane value = registers[op->x].value;
    int rank = registers[op->x].rank;
    for (int i = 0; i < op->n_codes; i++) {
        stage->code = (enum tare_stage_code)op->codes[i];
        const union tare_lane y = i == 0 && op->y >= 0 ? registers[op->y].value : (union tare_lane){ .i = 0 };
        value = tare_stage_run(stage, value, y);
    }
    if (op->y >= 0 && registers[op->y].rank > rank) rank = registers[op->y].rank;
    result->value = value;
    result->rank = rank;
}

/* The tensor of a result: that of the last run if it has the same rank and no other references. */
static tare_status kept_tensor(struct tare_tensor **out, struct tare_exec_frame *frame, int step, int dtype, int rank) {
    if (!frame->singles[step]) frame->singles[step] = tare_calloc(1, sizeof **out);
    struct tare_tensor *tensor = *out = frame->singles[step];
    if (!tensor) return TARE_NO_MEMORY;
    if (tensor->dtype && tensor->shape.rank == rank && tare_tensor_is_exclusive(tensor)) return TARE_OK;
    const struct tare_shape shape = tare_shape_of_ones(rank);
    tare_tensor_reset(tensor);
    return tare_tensor_new(tensor, dtype, &shape);
}

/* A lent result: its slot keeps the tensor, without a buffer, over the memory of the frame. */
static void lend_result(struct tare_exec_frame *frame, const struct scalar_op *op, const struct scalar *result) {
    struct tare_tensor *slot = &frame->slots[op->slot];
    tare_lane_store(&frame->lent[op->step], tare_plan_lane_of(op->dtype), 0, result->value);
    if (slot->dtype && slot->shape.rank == result->rank) return;
    *slot = (struct tare_tensor){
        .dtype = op->dtype, .shape = tare_shape_of_ones(result->rank), .elements = 1, .data = &frame->lent[op->step]
    };
}

static tare_status store_result(struct tare_exec_frame *frame, const struct scalar_op *op,
                                const struct scalar *result) {
    struct tare_tensor *tensor;
    if (!op->is_kept) {
        lend_result(frame, op, result);
        return TARE_OK;
    }
    TARE_TRY(kept_tensor(&tensor, frame, op->step, op->dtype, result->rank));
    tare_lane_store(tensor->data, tare_plan_lane_of(op->dtype), 0, result->value);
    tare_tensor_share(&frame->slots[op->slot], tensor);
    return TARE_OK;
}

tare_status tare_scalars_run(const struct tare_plan *plan, struct tare_exec_frame *frame,
                             struct tare_scalar_program *program) {
    struct scalar registers[SCALARS_OF_PROGRAM];
    struct tare_stage stage = { .operand = NULL };
    const bool runs = program->active && load_inputs(registers, program, plan, frame);
    frame->keeps_values |= !runs;
    for (int i = 0; i < program->n_inputs && !runs; i++)
        if (is_extreme(&program->inputs[i], plan, frame))
            TARE_TRY(tare_range_store(plan, frame, program->inputs[i].extreme));
    for (int i = 0; i < program->n_ops; i++) {
        const struct scalar_op *op = &program->ops[i];
        frame->computed[op->step] = runs;
        if (!runs && op->is_used && !op->is_kept) frame->slots[op->slot] = (struct tare_tensor){ 0 };
        if (!runs) continue;
        run_op(registers, op, &stage, &registers[MOST_INPUTS + i]);
        if (op->is_used) TARE_TRY(store_result(frame, op, &registers[MOST_INPUTS + i]));
    }
    return TARE_OK;
}
