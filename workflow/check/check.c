/* Exports each computation on the TPU as a module, compiles them together, and reads what the compiler says. */
#include "workflow/check/check.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "convert/pass.h"
#include "convert/pipeline.h"
#include "convert/prepared_model.h"
#include "convert/stablehlo/emit/emit.h"
#include "convert/stablehlo/emit/export.h"
#include "graph/clone.h"
#include "graph/inline.h"
#include "tpu/cost/fused.h"
#include "tpu/detect_converted.h"
#include "workflow/convert.h"
#include "workflow/check/tpu_compiler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 64 };

#define TARE_ROW_STRUCT struct tare_check_request
const struct tare_option tare_check_rows[] = {
    { TARE_ROW("chip", CHOICE, chip), .choices = tare_tpu_chip_names, .fallback = TARE_DEFAULT_CHIP,
      .help = "Cloud TPU chip" },
    { TARE_ROW("batch", INT64, batch), .placeholder = "N", .min = 1, .max = 1 << 20, .fallback = "8",
      .help = "size of open first dimensions: a program has one size" },
    { TARE_ROW("shape", LIST, shapes), .placeholder = "INPUT=SIZES",
      .help = "shape of an input whose sizes are open, as text=1,128" },
    { TARE_ROW("signature", STRING, signature), .placeholder = "KEY",
      .help = "signature to check (default: serving_default, or the only one)" },
    { TARE_ROW("estimate", FLAG, estimate), .help = "use the estimate, also where the compiler is installed" },
    { 0 },
};
#undef TARE_ROW_STRUCT

tare_status tare_workflow_check_open(const struct tare_check_request *request) {
    return tare_emit_check_shapes(request->shapes.items, request->shapes.count);
}

struct check {
    struct tare_check *out;
    const struct tare_graph_model *model; /* converted */
    const struct tare_check_request *request;
    json_t *known;
};

/* ---- the model ---- */

/* A module has no variables: their values are constants of it. */
static tare_status freeze(struct tare_graph_model *model) {
    size_t changes = 0;
    TARE_TRY(tare_pass_prune.run(model, &changes)); /* the restore function assigns them */
    return tare_pass_freeze.run(model, &changes);
}

static tare_status convert(struct tare_check *out, struct tare_graph_model *model) {
    struct tare_converter_options converter;
    struct tare_conversion conversion = { 0 };
    struct tare_tpu_converted existing;
    TARE_TRY(tare_tpu_detect_converted(&existing, &out->arena, model));
    if (existing.tpu_calls) return freeze(model);
    if (tare_count_batch_norms(model)) TARE_TRY(tare_pipeline_prepare(model, NULL));
    TARE_TRY(tare_converter_options_parse(&converter, &out->arena, "", 0, NULL));
    converter.automatic = true;
    converter.extent = TARE_BF16_ANALYSIS;
    TARE_TRY(tare_pipeline_place(&conversion, &out->arena, model, &converter, NULL));
    return freeze(model);
}

/* ---- the estimate ---- */

struct op_list {
    struct tare_check_part *part;
    struct tare_arena *arena;
    int chip;
    bool failed;
};

static void add_op(void *arg, const struct tare_node *first, const struct tare_fused_cost *group) {
    struct op_list *list = arg;
    struct tare_check_part *part = list->part;
    struct tare_check_op *ops = tare_arena_append(list->arena, part->estimated_ops, part->n_estimated_ops, sizeof *ops);
    const char *node = tare_arena_strdup(list->arena, tare_inlined_name(first->name));
    const char *op = tare_arena_strdup(list->arena, first->op);
    list->failed |= !ops || !node || !op;
    if (list->failed) return;
    part->estimated_ops = ops;
    ops[part->n_estimated_ops++] = (struct tare_check_op){
        .node = node, .op = op, .products = "", .cycles = NAN, .seconds = group->seconds[list->chip]
    };
}

static int by_cost(const void *a, const void *b) {
    const struct tare_check_op *x = a, *y = b;
    const double cost[] = { isnan(x->cycles) ? x->seconds : x->cycles, isnan(y->cycles) ? y->seconds : y->cycles };
    if (cost[0] != cost[1]) return cost[0] < cost[1] ? 1 : -1;
    return strcmp(x->node ? x->node : "", y->node ? y->node : "");
}

static void sort_ops(struct tare_check_op *ops, size_t count) {
    if (count) qsort(ops, count, sizeof *ops, by_cost);
}

/* The computation number `number` by the estimate. *found is false if there are fewer. */
static tare_status estimate_part(bool *found, struct check *c, size_t number) {
    const struct tare_check_request *request = c->request;
    const struct tare_emit_options options = { .signature = request->signature,
                                               .batch = request->batch,
                                               .shapes = request->shapes.items,
                                               .n_shapes = request->shapes.count,
                                               .tpu_call = number };
    struct tare_check_part *part = &c->out->parts[number - 1];
    struct op_list list = { part, &c->out->arena, request->chip, false };
    const struct tare_signature *signature;
    struct tare_graph_model *model;
    struct tare_fused_cost cost;
    struct tare_arena scratch = { 0 };
    tare_status status;
    TARE_TRY(tare_model_clone(&model, c->model));
    status = tare_emit_prepare(&signature, &scratch, model, &options);
    *found = status != TARE_NOT_FOUND || number == 1;
    if (!*found) {
        tare_error_clear();
        status = TARE_OK;
    } else {
        *part =
            (struct tare_check_part){ .cycles = NAN, .code = NAN, .arguments = NAN, .results = NAN, .temporary = NAN };
        if (status == TARE_OK && !(part->function = tare_arena_strdup(&c->out->arena, signature->key)))
            status = TARE_NO_MEMORY;
        if (status == TARE_OK)
            status = tare_tpu_fused_cost(&cost, &scratch, model, signature, request->batch, add_op, &list);
        if (status == TARE_OK && list.failed) status = TARE_NO_MEMORY;
        if (status == TARE_OK) part->seconds = cost.seconds[request->chip];
        if (status == TARE_OK) memcpy(part->work, cost.work, sizeof part->work);
        if (status == TARE_OK) part->integer_macs = cost.integer_macs;
        if (status == TARE_OK) part->float8_macs = cost.float8_macs;
        sort_ops(part->estimated_ops, part->n_estimated_ops);
    }
    tare_arena_free(&scratch);
    tare_model_free(model);
    return status;
}

/* ---- the compiler ---- */

static tare_status export_part(const struct check *c, const struct tare_tpu_compiler *compiler, size_t number) {
    const struct tare_shlo_export_options options = { .signature = c->request->signature,
                                                      .batch = c->request->batch,
                                                      .shapes = c->request->shapes.items,
                                                      .n_shapes = c->request->shapes.count,
                                                      .vhlo_version = TARE_SHLO_EXPORT_VERSION,
                                                      .tpu_call = number };
    struct tare_shlo_exported_summary summary;
    struct tare_graph_model *model;
    char *path = tare_tpu_compiler_module(compiler, number);
    tare_status status = path ? tare_model_clone(&model, c->model) : TARE_NO_MEMORY;
    if (status == TARE_OK) {
        status = tare_shlo_export_model(&summary, model, path, &options);
        tare_model_free(model);
    }
    tare_free(path);
    return status;
}

static const char *copy_text(struct tare_arena *arena, json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? tare_arena_strdup(arena, text) : NULL;
}

static double number_at(json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* "a, b" */
static const char *join(struct tare_arena *arena, json_t *texts) {
    struct tare_strbuf joined = { 0 };
    const char *text;
    for (size_t i = 0; i < json_array_size(texts); i++)
        tare_strbuf_printf(&joined, "%s%s", i ? ", " : "", json_string_value(json_array_get(texts, i)));
    text = tare_arena_strdup(arena, tare_strbuf_text(&joined));
    tare_strbuf_free(&joined);
    return text;
}

static tare_status read_ops(struct tare_check_part *part, struct tare_arena *arena, json_t *ops) {
    const size_t count = json_array_size(ops);
    part->ops = TARE_NEW_ARRAY(arena, struct tare_check_op, count + 1);
    if (!part->ops) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        json_t *object = json_array_get(ops, i);
        struct tare_check_op *op = &part->ops[part->n_ops++];
        const char *node = copy_text(arena, object, "node");
        *op = (struct tare_check_op){ .node = node ? tare_inlined_name(node) : NULL,
                                      .op = copy_text(arena, object, "op"),
                                      .products = join(arena, json_object_get(object, "products")),
                                      .cycles = number_at(object, "cycles"),
                                      .seconds = NAN };
        if (!op->op || !op->products) return TARE_NO_MEMORY;
    }
    sort_ops(part->ops, part->n_ops);
    return TARE_OK;
}

static tare_status read_products(struct tare_check_part *part, struct tare_arena *arena, json_t *products) {
    const char *kind;
    json_t *count;
    part->products = TARE_NEW_ARRAY(arena, const char *, json_object_size(products) + 1);
    if (!part->products) return TARE_NO_MEMORY;
    json_object_foreach(products, kind, count) {
        const char *text = tare_arena_printf(arena, "%lld %s", (long long)json_integer_value(count), kind);
        if (!text) return TARE_NO_MEMORY;
        part->products[part->n_products++] = text;
    }
    return TARE_OK;
}

static tare_status read_part(struct tare_check *out, struct tare_check_part *part, json_t *object) {
    json_t *memory = json_object_get(object, "memory");
    if (!out->compiler) out->compiler = copy_text(&out->arena, object, "compiler");
    if (!out->compiler) out->compiler = "the TPU compiler";
    if (!json_is_true(json_object_get(object, "ok"))) {
        part->error = copy_text(&out->arena, object, "error");
        if (!part->error) part->error = "no reason given";
        return TARE_OK;
    }
    part->cycles = number_at(object, "cycles");
    part->code = number_at(memory, "code");
    part->arguments = number_at(memory, "arguments");
    part->results = number_at(memory, "results");
    part->temporary = number_at(memory, "temporary");
    TARE_TRY(read_products(part, &out->arena, json_object_get(object, "products")));
    return read_ops(part, &out->arena, json_object_get(object, "ops"));
}

static tare_status compile(struct check *c) {
    struct tare_check *out = c->out;
    struct tare_tpu_compiler compiler;
    json_t *results = NULL;
    tare_status status = tare_tpu_compiler_open(&compiler);
    for (size_t i = 1; i <= out->n_parts && status == TARE_OK; i++)
        status = export_part(c, &compiler, i);
    if (status == TARE_UNSUPPORTED) { /* StableHLO has no form of it: the estimate stays */
        out->why = tare_arena_strdup(&out->arena, tare_error_text());
        tare_error_clear();
        tare_tpu_compiler_close(&compiler);
        return out->why ? TARE_OK : TARE_NO_MEMORY;
    }
    if (status == TARE_OK)
        status = tare_tpu_compiler_run(&results, &out->why, &compiler, tare_tpu_chips[c->request->chip].name,
                                       out->n_parts, c->known);
    for (size_t i = 0; results && i < out->n_parts && status == TARE_OK; i++)
        status = read_part(out, &out->parts[i], json_array_get(results, i));
    json_decref(results);
    tare_tpu_compiler_close(&compiler);
    return status;
}

/* ---- the check ---- */

tare_status tare_workflow_check(struct tare_check *out, struct tare_graph_model *model,
                                const struct tare_check_request *request, json_t *known) {
    struct check c = { out, model, request, known };
    bool found = true;
    *out = (struct tare_check){ 0 };
    TARE_TRY(tare_error_prefix(convert(out, model), "%s", model->path));
    out->parts = TARE_NEW_ARRAY(&out->arena, struct tare_check_part, MOST_PARTS + 1);
    if (!out->parts) return TARE_NO_MEMORY;
    for (size_t i = 1; i <= MOST_PARTS && found; i++) {
        TARE_TRY(tare_error_prefix(estimate_part(&found, &c, i), "%s", model->path));
        out->n_parts += found;
    }
    if (request->estimate) out->why = "--estimate";
    return request->estimate ? TARE_OK : compile(&c);
}

tare_status tare_check_refuse(const struct tare_check *check, const char *model) {
    for (size_t i = 0; i < check->n_parts; i++)
        if (check->parts[i].error)
            return TARE_FAIL(TARE_UNSUPPORTED, "%s: the TPU compiler rejects %s: %s", model, check->parts[i].function,
                             check->parts[i].error);
    return TARE_OK;
}

void tare_check_free(struct tare_check *check) {
    tare_arena_free(&check->arena);
}
