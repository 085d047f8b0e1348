/* Finds mixed tilings (mixed.h) and runs them. Lines of the product's result are in a window: the last lines of the
 * previous tile that the depthwise convolution still needs, followed by those of the present tile. All tiles have the
 * same number of lines, so that the product's group is bound once. */
#include "interpreter/execution/mixed.h"
#include "base/clamp.h"
#include "base/clock.h"
#include "base/control.h"
#include "interpreter/kernels/tiling.h"
#include "interpreter/kernels/value_range.h"
#include "interpreter/ops/support/dims_wire.h"

#include <math.h>
#include <string.h>

enum {
    IMAGE_RANK = 4,
    LEAST_BYTES = 1 << 18, /* of the float image: smaller ones stay in the second-level cache with what they become */
    TILE_BYTES = 1 << 18,  /* most of the float lines of a tile */
};

/* ---- finding ---- */

static bool is_pointwise(const struct tare_step *step) {
    struct tare_conv_dims dims;
    if (strcmp(step->node->op, "XlaConvV2") != 0 || step->n_inputs < 4 || step->inputs[0] < 0) return false;
    for (size_t i = 1; i < step->n_inputs; i++)
        if (step->inputs[i] >= 0) return false;
    if (tare_conv_dims_read(&dims, step->node, "dimension_numbers", IMAGE_RANK, TARE_CONV_XLA) != TARE_OK) {
        tare_error_clear();
        return false;
    }
    return dims.input_batch == 0 && dims.input_feature == 3 && dims.output_batch == 0 && dims.output_feature == 3 &&
           dims.input_spatial[0] == 1 && dims.output_spatial[0] == 1 && dims.kernel_spatial[0] == 0 &&
           dims.kernel_spatial[1] == 1 && tare_node_int(step->node, "batch_group_count", 1) == 1;
}

static bool is_product(const struct tare_plan *plan, const struct tare_step_group *group) {
    return group && group->product >= 0 && group->pad < 0 && is_pointwise(&plan->steps[group->product]);
}

static bool is_depthwise(const struct tare_step *step, int input) {
    const struct tare_fusion *fusion = step->fusion;
    if (strcmp(step->node->op, "DepthwiseConv2dNative") != 0 || step->node->output_dtypes[0] != TARE_DT_FLOAT)
        return false;
    if (step->inputs[0] != input || step->inputs[1] >= 0 || step->group || !step->op || !step->op->tiling_stage)
        return false;
    return !fusion ||
           (!fusion->has_addend && (!fusion->has_bias || fusion->bias < 0) && !fusion->has_norm && !fusion->has_scale);
}

static bool is_padding(const struct tare_step *step, int input) {
    return strcmp(step->node->op, "Pad") == 0 && step->inputs[0] == input && step->inputs[1] < 0 && !step->reads;
}

/* A group of steps that computes a function of the elements of `value`. */
static bool is_function_of(const struct tare_step_group *group, int value) {
    if (!group || group->product >= 0 || group->range || group->source_range) return false;
    const int source = group->expression.branches[0].source;
    if (source < 0 || group->values[source] != value || group->expression.branch_of[source]) return false;
    for (int i = 0; i < group->expression.n_operands; i++)
        if (!group->expression.branch_of[i] && group->values[i] >= 0 && group->values[i] != value) return false;
    return true;
}

static bool quantizes(const struct tare_step_group *group, int value) {
    return is_function_of(group, value) &&
           (group->output_dtype == TARE_DT_INT8 || group->output_dtype == TARE_DT_UINT8 ||
            group->output_dtype == TARE_DT_INT16);
}

/* The group whose floats a depthwise convolution may read: the product's, or the next one. NULL: none. */
static struct tare_step_group *floats_of(struct tare_step_group *product) {
    struct tare_step_group *next = product->next, *floats = next && !product->is_stored ? next : product;
    if (floats == next && !is_function_of(next, product->output)) return NULL;
    return floats->output_dtype == TARE_DT_FLOAT && !floats->range ? floats : NULL;
}

/* True if `head` begins a tiling that goes on after the depthwise convolution. */
static bool is_tiled_after(const struct tare_step *head, int depthwise) {
    return head->tiled && head->tiled->heads[head->tiled->n_heads - 1] != depthwise;
}

static tare_status find_mixed(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena,
                              int s) {
    struct tare_step_group *group = plan->steps[s].group;
    if (!is_product(plan, group) || group->sink != s) return TARE_OK;
    struct tare_step_group *floats = floats_of(group);
    if (!floats) return TARE_OK;
    const int next = uses->used_by[floats->output];
    const bool is_padded = next >= 0 && is_padding(&plan->steps[next], floats->output);
    const int value = is_padded ? plan->steps[next].first_output : floats->output;
    const int head = is_padded ? uses->used_by[value] : next;
    if (head < 0 || !is_depthwise(&plan->steps[head], value)) return TARE_OK;
    const int output = tare_plan_output_slot(&plan->steps[head]), user = uses->used_by[output];
    struct tare_step_range *range = tare_plan_last_step(plan, &plan->steps[head])->result_range;
    const bool is_quantized = user >= 0 && quantizes(plan->steps[user].group, output);
    if (!is_quantized && is_tiled_after(&plan->steps[is_padded ? next : head], head)) return TARE_OK;
    struct tare_mixed_steps *mixed = tare_arena_alloc(arena, sizeof *mixed);
    if (!mixed) return TARE_NO_MEMORY;
    *mixed = (struct tare_mixed_steps){
        .product = group, .floats = floats, .pad = is_padded ? next : -1, .depthwise = head
    };
    if (is_quantized) {
        mixed->quantizer = plan->steps[user].group;
    } else {
        mixed->range = range;
        if (range) range->mixed = mixed;
    }
    plan->steps[s].mixed = plan->steps[is_quantized ? mixed->quantizer->sink : head].mixed = mixed;
    return TARE_OK;
}

int tare_mixed_last(const struct tare_plan *plan, const struct tare_mixed_steps *mixed) {
    if (mixed->quantizer) return mixed->quantizer->sink;
    return (int)(tare_plan_last_step(plan, &plan->steps[mixed->depthwise]) - plan->steps);
}

tare_status tare_plan_find_mixed(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena) {
    for (size_t s = 0; s < plan->n_steps; s++)
        TARE_TRY(find_mixed(plan, uses, arena, (int)s));
    return TARE_OK;
}

void tare_plan_select_mixed(const struct tare_session *session, const struct tare_plan *plan) {
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_mixed_steps *mixed = plan->steps[s].mixed;
        if (!mixed || mixed->product->sink != (int)s) continue;
        const struct tare_step *head = &plan->steps[mixed->depthwise];
        mixed->active = session->options.op_threads <= 1 && mixed->product->active &&
                        (mixed->floats == mixed->product || mixed->product->runs_next) &&
                        (!mixed->quantizer || mixed->quantizer->active) && (!mixed->range || mixed->range->active) &&
                        !plan->steps[mixed->floats->sink].observed &&
                        (mixed->pad < 0 || !plan->steps[mixed->pad].observed) &&
                        !tare_plan_last_step(plan, head)->observed && tare_plan_fuses_all(head) &&
                        (head->fusion ? head->fusion->active : !head->observed);
    }
}

/* ---- running ---- */

struct tiles {
    struct tare_session *session;
    const struct tare_plan *plan;
    struct tare_exec_frame *frame;
    const struct tare_mixed_steps *mixed;
    const struct tare_tensor *input;
    struct tare_tiling_stage stage; /* the depthwise convolution of one image */
    struct tare_gemm_epilogue room;
    struct tare_epilogue epilogue;
    struct tare_arena arena;             /* the frame's scratch memory is reset by each run of the product */
    struct tare_tensor *inputs, output;  /* of the depthwise kernel */
    int64_t lines;                       /* of the product's result in a tile */
    int64_t kept;                        /* most lines that the next tile needs again */
    int64_t line, out_line;              /* floats */
    struct tare_tensor window, present;  /* `kept` + `lines` lines; the last `lines` of them, as an image */
    struct tare_tensor sums;             /* lines of the depthwise convolution that the quantization reads */
    struct tare_bound_expression *bound; /* the quantization; NULL: none */
    struct tare_value_range values;      /* of the results, without quantization */
};

/* Output lines that need no input line from `end` on. */
static int64_t lines_until(const struct tare_conv *conv, int64_t end) {
    const int64_t reach = (conv->kernel[1] - 1) * conv->dilation[1] + 1;
    if (end >= conv->in[1]) return conv->out[1];
    const int64_t count = (end + conv->pad[1] - reach) / conv->stride[1] + 1;
    return end + conv->pad[1] < reach ? 0 : tare_clamp(count, 0, conv->out[1]);
}

/* First input line that output lines from `line` on need. */
static int64_t first_needed(const struct tare_conv *conv, int64_t line) {
    return tare_clamp(line * conv->stride[1] - conv->pad[1], 0, conv->in[1]);
}

static bool is_padded(const struct tare_tensor *paddings) {
    for (int64_t i = 0; i < paddings->elements; i++)
        if (tare_tensor_get_i64(paddings, i) != 0) return true;
    return false;
}

/* The convolution has 1×1 kernels and no padding; with images of the same size, its stride is 1. */
static bool keeps_positions(const struct tiles *t) {
    const struct tare_step *product = &t->plan->steps[t->mixed->product->product];
    const struct tare_tensor *weights = tare_plan_value(t->plan, t->frame, product->inputs[1]);
    return weights->shape.rank == IMAGE_RANK && weights->shape.dims[0] == 1 && weights->shape.dims[1] == 1 &&
           !is_padded(tare_plan_value(t->plan, t->frame, product->inputs[3]));
}

/* Whether the sign of a sum that is zero does not matter. */
static bool drops_sign(const struct tare_gemm_epilogue *epilogue, int64_t channels) {
    if (!epilogue || !epilogue->bias) return false;
    for (int64_t i = 0; i < channels; i++)
        if (epilogue->bias[i] == 0 && signbit(epilogue->bias[i])) return false;
    return true;
}

/* Adds the padding to the stage of the depthwise convolution of a padded image, which becomes one of the image. */
static bool include_padding(struct tiles *t, const struct tare_tensor *paddings) {
    struct tare_conv *conv = &t->stage.conv;
    const int64_t weights = conv->kernel[1] * conv->kernel[2] * conv->out_channels;
    float zero = 0;
    for (int64_t i = 0; i < weights; i++)
        zero += t->stage.weights[i] * 0;
    for (int i = 1; i <= 2; i++) {
        const int64_t before = tare_tensor_get_i64(paddings, (int64_t)2 * i);
        conv->in[i] -= before + tare_tensor_get_i64(paddings, (int64_t)2 * i + 1);
        conv->pad[i] += before;
    }
    return zero == 0 && (t->mixed->quantizer || drops_sign(t->stage.epilogue, conv->out_channels)); /* all are finite */
}

/* Adds constant paddings of height and width; false if there are others. */
static bool pad_shape(struct tare_shape *shape, const struct tare_tensor *paddings) {
    enum { MOST = 64 };
    if (paddings->elements != (int64_t)2 * IMAGE_RANK) return false;
    for (int i = 0; i < 2 * IMAGE_RANK; i++) {
        const int64_t count = tare_tensor_get_i64(paddings, i);
        const bool is_spatial = i / 2 == 1 || i / 2 == 2;
        if (count < 0 || count > (is_spatial ? MOST : 0)) return false;
        shape->dims[i / 2] += count;
    }
    return true;
}

/* Sets the stage of the depthwise convolution; its input has the product's positions and its own channels. */
static bool make_stage(struct tiles *t) {
    const struct tare_step *step = &t->plan->steps[t->mixed->depthwise];
    struct tare_shape shape = t->input->shape;
    struct tare_kernel kernel = { .node = step->node,
                                  .op = step->op,
                                  .n_inputs = step->n_inputs,
                                  .inputs = t->inputs,
                                  .n_outputs = 1,
                                  .outputs = &t->output,
                                  .scratch = &t->arena,
                                  .pool = t->session->pool,
                                  .session = t->session,
                                  .state = step->state->kernel };
    for (size_t i = 1; i < step->n_inputs; i++)
        t->inputs[i] = *tare_plan_value(t->plan, t->frame, step->inputs[i]);
    shape.dims[0] = 1;
    shape.dims[3] = t->inputs[1].shape.rank == IMAGE_RANK ? t->inputs[1].shape.dims[2] : 0;
    const struct tare_tensor *paddings =
        t->mixed->pad < 0 ? NULL : tare_plan_value(t->plan, t->frame, t->plan->steps[t->mixed->pad].inputs[1]);
    if (paddings && !pad_shape(&shape, paddings)) return false;
    if (step->fusion) {
        if (!tare_plan_epilogue(&t->epilogue, t->plan, t->frame, step->fusion)) return false;
        kernel.epilogue = &t->epilogue;
    }
    if (tare_step_prepare(&kernel, step->state) != TARE_OK) return false;
    return step->op->tiling_stage(&t->stage, &t->room, &kernel, &shape) && t->stage.conv.groups > 1 &&
           t->stage.conv.in_channels == t->stage.conv.out_channels && tare_tiling_supports(&t->stage) &&
           (!paddings || include_padding(t, paddings));
}

/* Chooses the tiles; false if they do not pay. */
static bool choose_lines(struct tiles *t) {
    const struct tare_conv *conv = &t->stage.conv;
    const int64_t height = conv->in[1], bytes = (int64_t)sizeof(float);
    t->line = conv->in[2] * conv->in_channels;
    t->out_line = conv->out[2] * conv->out_channels;
    t->kept = (conv->kernel[1] - 1) * conv->dilation[1];
    if (t->line * height * bytes < LEAST_BYTES) return false;
    for (t->lines = height; t->lines > 1; t->lines--)
        if (height % t->lines == 0 && t->lines * t->line * bytes <= TILE_BYTES) break;
    return t->lines >= t->kept && t->lines < height && conv->stride[1] <= t->lines;
}

static tare_status make_buffers(struct tiles *t) {
    const struct tare_conv *conv = &t->stage.conv;
    const int64_t most = t->lines / conv->stride[1] + conv->kernel[1] * conv->dilation[1];
    const struct tare_shape window = tare_shape_make(3, t->kept + t->lines, conv->in[2], conv->in_channels);
    const struct tare_shape present = tare_shape_make(4, (int64_t)1, t->lines, conv->in[2], conv->in_channels);
    const struct tare_shape sums = tare_shape_make(2, most, t->out_line);
    struct tare_tensor rows;
    TARE_TRY(tare_tensor_new_pooled(&t->window, TARE_DT_FLOAT, &window, t->session->pool));
    TARE_TRY(tare_tensor_new_pooled(&t->sums, TARE_DT_FLOAT, &sums, t->session->pool));
    TARE_TRY(tare_tensor_share_rows(&rows, &t->window, t->kept, t->lines));
    const tare_status status = tare_tensor_share_as(&t->present, &rows, &present);
    tare_tensor_reset(&rows);
    return status;
}

/* Lines [first, first + t->lines) of an image of the product's input, as an image. */
static tare_status take_lines(struct tare_tensor *out, const struct tiles *t, int64_t image, int64_t first) {
    const struct tare_shape *all = &t->input->shape;
    const struct tare_shape rows = tare_shape_make(3, all->dims[0] * all->dims[1], all->dims[2], all->dims[3]);
    const struct tare_shape lines = tare_shape_make(4, (int64_t)1, t->lines, all->dims[2], all->dims[3]);
    struct tare_tensor flat, part;
    TARE_TRY(tare_tensor_share_as(&flat, t->input, &rows));
    tare_status status = tare_tensor_share_rows(&part, &flat, image * all->dims[1] + first, t->lines);
    tare_tensor_reset(&flat);
    if (status != TARE_OK) return status;
    status = tare_tensor_share_as(out, &part, &lines);
    tare_tensor_reset(&part);
    return status;
}

/* Lines of the product, into the window. *fits: they are where they belong. */
static tare_status run_product(const struct tiles *t, int64_t image, int64_t first, bool *fits) {
    struct tare_exec_frame *frame = t->frame;
    struct tare_placement place = { .slot = t->mixed->floats->output, .batch = 1, .whole = t->present };
    struct tare_placement *placements = frame->placements;
    const size_t n_placements = frame->n_placements;
    struct tare_tensor lines, result = { 0 };
    TARE_TRY(take_lines(&lines, t, image, first));
    frame->placements = &place;
    frame->n_placements = 1;
    const tare_status status = tare_group_run_on(t->session, t->plan, frame, t->mixed->product, &lines, &result);
    frame->placements = placements;
    frame->n_placements = n_placements;
    tare_tensor_reset(&lines);
    *fits = status == TARE_OK && result.data == t->present.data;
    if (result.dtype) tare_tensor_reset(&result);
    return status;
}

/* Output lines [from, to); the window begins with input line `start`. */
static void run_depthwise(const struct tiles *t, float *lines, int64_t from, int64_t to, int64_t start) {
    struct tare_conv conv = t->stage.conv;
    const int64_t reach = (conv.kernel[1] - 1) * conv.dilation[1] + 1, first = first_needed(&conv, from);
    const int64_t end = tare_clamp((to - 1) * conv.stride[1] - conv.pad[1] + reach, first, conv.in[1]);
    const struct tare_gemm_epilogue *epilogue = t->stage.epilogue;
    struct tare_gemm_epilogue shifted;
    conv.in[1] = end - first;
    conv.out[1] = to - from;
    conv.pad[1] = first - (from * conv.stride[1] - t->stage.conv.pad[1]);
    if (epilogue) shifted = tare_epilogue_shifted(epilogue, from * t->out_line, 0);
    tare_conv_depthwise_at(tare_cpu_level(), lines, &conv,
                           TARE_CONST_DATA(float, &t->window) + (first - start) * t->line, t->stage.weights,
                           epilogue ? &shifted : NULL, NULL);
}

static void note_time(const struct tiles *t, int64_t elapsed) {
    struct tare_node_state *state = t->plan->steps[t->mixed->depthwise].state;
    state->calls++;
    state->nanoseconds += elapsed;
    t->session->nested_ns += elapsed;
}

/* Output lines [from, to) of an image, from where `at` elements precede them. */
static void run_lines(struct tiles *t, struct tare_tensor *result, int64_t at, int64_t from, int64_t to,
                      int64_t start) {
    const int64_t before = t->session->options.profile ? tare_clock_ns() : 0, count = (to - from) * t->out_line;
    float *lines = t->bound ? t->sums.data : TARE_DATA(float, result) + at;
    run_depthwise(t, lines, from, to, start);
    if (t->bound)
        tare_expression_run(t->bound, lines, at, count);
    else if (t->mixed->range)
        tare_value_range_add(&t->values, lines, count);
    if (before) note_time(t, tare_clock_ns() - before);
}

static tare_status run_image(struct tiles *t, struct tare_tensor *result, int64_t image, bool *fits) {
    const struct tare_conv *conv = &t->stage.conv;
    float *window = TARE_DATA(float, &t->window);
    for (int64_t first = 0, done = 0; first < conv->in[1] && *fits; first += t->lines) {
        TARE_TRY(tare_control_check());
        TARE_TRY(run_product(t, image, first, fits));
        const int64_t to = lines_until(conv, first + t->lines);
        if (*fits && to > done) {
            run_lines(t, result, (image * conv->out[1] + done) * t->out_line, done, to, first - t->kept);
            done = to;
        }
        memmove(window, window + t->lines * t->line, (size_t)(t->kept * t->line) * sizeof *window);
    }
    return TARE_OK;
}

/* Creates the result, and binds the quantization; *fits: it can be bound. */
static tare_status open_result(struct tiles *t, struct tare_tensor *result, bool *fits) {
    const struct tare_conv *conv = &t->stage.conv;
    struct tare_tensor source = { .dtype = TARE_DT_FLOAT,
                                  .shape = tare_shape_make(4, t->input->shape.dims[0], conv->out[1], conv->out[2],
                                                           conv->out_channels) };
    if (!t->mixed->quantizer) return tare_tensor_new_pooled(result, TARE_DT_FLOAT, &source.shape, t->session->pool);
    TARE_TRY(tare_shape_elements(&source.elements, &source.shape));
    TARE_TRY(tare_group_open(t->session, t->plan, t->frame, t->mixed->quantizer, &source, result, &t->bound));
    *fits = t->bound != NULL;
    return TARE_OK;
}

static tare_status run_tiles(struct tiles *t, struct tare_tensor *result, bool *fits) {
    TARE_TRY(open_result(t, result, fits));
    if (!*fits) return TARE_OK;
    TARE_TRY(make_buffers(t));
    tare_value_range_begin(&t->values);
    for (int64_t i = 0; i < t->input->shape.dims[0] && *fits; i++)
        TARE_TRY(run_image(t, result, i, fits));
    return *fits && t->mixed->range ? tare_range_set(t->plan, t->frame, t->mixed->range, &result->shape, &t->values)
                                    : TARE_OK;
}

void tare_mixed_mark(const struct tare_plan *plan, struct tare_exec_frame *frame, const struct tare_mixed_steps *mixed,
                     bool computed) {
    const struct tare_step *head = &plan->steps[mixed->depthwise];
    if (mixed->pad >= 0) frame->computed[mixed->pad] = computed;
    frame->computed[mixed->depthwise] = computed;
    for (int i = 0; head->fusion && i < head->fusion->n_steps; i++)
        frame->computed[head->fusion->steps[i]] = computed;
    if (mixed->quantizer) frame->computed[mixed->quantizer->sink] = computed;
}

void tare_mixed_pass(struct tare_exec_frame *frame, const struct tare_mixed_steps *mixed) {
    if (mixed->quantizer || mixed->range) return;
    if (mixed->pad >= 0) frame->computed[mixed->pad] = false;
    frame->computed[mixed->depthwise] = false;
}

/* Stores the result in place of those of the steps. */
static tare_status end_run(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                           const struct tare_mixed_steps *mixed, const struct tare_tensor *result) {
    const struct tare_step *last = &plan->steps[tare_mixed_last(plan, mixed)];
    const int output =
        mixed->quantizer ? mixed->quantizer->output : tare_plan_output_slot(&plan->steps[mixed->depthwise]);
    frame->slots[output] = *result;
    tare_mixed_mark(plan, frame, mixed, true);
    if (mixed->floats != mixed->product) frame->computed[mixed->floats->sink] = true; /* until its place */
    return last->observed ? tare_step_show(session, last, &frame->slots[output]) : TARE_OK;
}

/* The input of the product: int8, or the int16 that it takes in place of its halves. NULL: it has another dtype. */
static const struct tare_tensor *input_of(const struct tare_plan *plan, const struct tare_exec_frame *frame,
                                          const struct tare_step_group *group) {
    const struct tare_step *reader = &plan->steps[group->joins_halves ? group->cast : group->product];
    const struct tare_tensor *input = tare_plan_value(plan, frame, reader->inputs[0]);
    return input->dtype == (group->joins_halves ? TARE_DT_INT16 : TARE_DT_INT8) ? input : NULL;
}

tare_status tare_mixed_run(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                           struct tare_mixed_steps *mixed, bool *done) {
    struct tiles t = {
        .session = session, .plan = plan, .frame = frame, .mixed = mixed, .input = input_of(plan, frame, mixed->product)
    };
    struct tare_tensor result = { 0 };
    *done = false;
    for (int i = 0; mixed->range && i < 2; i++)
        frame->computed[mixed->range->steps[i]] = false;
    if (!mixed->active || !t.input || t.input->shape.rank != IMAGE_RANK) return TARE_OK;
    if (mixed->is_refused && tare_shape_equal(&mixed->shape, &t.input->shape)) return TARE_OK;
    const struct tare_step *depthwise = &plan->steps[mixed->depthwise];
    t.inputs = TARE_NEW_ARRAY(&t.arena, struct tare_tensor, depthwise->n_inputs + 1);
    if (!t.inputs) return TARE_NO_MEMORY;
    tare_status status = TARE_OK;
    bool fits = keeps_positions(&t) && make_stage(&t) && choose_lines(&t);
    tare_error_clear(); /* the steps report it again when they run alone */
    if (fits) status = run_tiles(&t, &result, &fits);
    tare_arena_free(&t.arena);
    if (t.window.dtype) tare_tensor_reset(&t.window);
    if (t.present.dtype) tare_tensor_reset(&t.present);
    if (t.sums.dtype) tare_tensor_reset(&t.sums);
    mixed->is_refused = !fits;
    mixed->shape = t.input->shape;
    if (status == TARE_OK && fits) {
        *done = true;
        return end_run(session, plan, frame, mixed, &result);
    }
    if (result.dtype) tare_tensor_reset(&result);
    return status;
}
