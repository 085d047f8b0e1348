/* The comparison as JSON (docs/json.md). */
#include "base/strbuf.h"
#include "eval/report/comparison_columns.h"
#include "eval/report/json_text.h"
#include "eval/sensitivity.h"
#include "eval/target.h"
#include "eval/verdict.h"

#include <math.h>

static json_t *slowest_json(const struct tare_comparison *c) {
    json_t *ops = json_array();
    for (size_t i = 0; i < c->n_costs && i < TARE_SLOWEST_OPS; i++) {
        const struct tare_comparison_op *op = &c->costs[i];
        json_array_append_new(ops, json_pack("{s:o, s:o, s:o, s:f, s:f, s:f, s:b}", "function",
                                             tare_json_text(op->function), "node", tare_json_text(op->node), "op",
                                             tare_json_text(op->op), "macs", op->macs, "bytes", op->bytes, "seconds",
                                             op->seconds, "integer", (int)op->integer));
    }
    return ops;
}

static json_t *changed_json(const struct tare_changed *changed) {
    json_t *examples = json_array();
    for (size_t i = 0; i < changed->count; i++) {
        const struct tare_changed_example *e = &changed->examples[i];
        json_t *object =
            json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "record", (json_int_t)e->record, "row", (json_int_t)e->row,
                      "float_class", (json_int_t)e->from, "class", (json_int_t)e->to, "float_margin",
                      tare_json_number(e->from_margin), "margin", tare_json_number(e->margin));
        if (e->label >= 0) json_object_set_new(object, "label", json_integer((json_int_t)e->label));
        json_array_append_new(examples, object);
    }
    return json_pack("{s:I, s:o}", "total", (json_int_t)changed->total, "examples", examples);
}

static json_t *row_json(const struct tare_comparison *c, const struct tare_comparison_row *row) {
    const struct tare_comparison_cell measured = { c, row, tare_measured_of(c, row) };
    json_t *object = json_object(), *outputs = json_object();
    json_object_set_new(object, "method", tare_json_text(row->method));
    if (row->path) json_object_set_new(object, "path", tare_json_text(row->path));
    if (row->algorithm) json_object_set_new(object, "algorithm", tare_json_text(row->algorithm));
    if (row->granularity) json_object_set_new(object, "granularity", tare_json_text(row->granularity));
    if (row->plan) json_object_set_new(object, "plan", tare_json_text(row->plan));
    if (row->quantize) json_object_set_new(object, "quantize_command", tare_json_text(row->quantize));
    if (row->convert) json_object_set_new(object, "convert_command", tare_json_text(row->convert));
    if (row->widened) json_object_set_new(object, "widened_ops", json_integer((json_int_t)row->widened));
    if (row->weight_bits) json_object_set_new(object, "weight_bits", json_integer(row->weight_bits));
    tare_comparison_set(object, &measured, TARE_MODEL_COLUMNS);
    json_object_set_new(object, "size_bytes", json_integer((json_int_t)row->size_bytes));
    json_object_set_new(object, "quantized_ops", json_integer((json_int_t)row->quantized));
    json_object_set_new(object, "quantizable_ops", json_integer((json_int_t)row->quantizable));
    json_object_set_new(object, "seconds", json_real(row->seconds));
    if (row->changed) json_object_set_new(object, "changed", changed_json(&row->changed[tare_measured_output(c)]));
    if (*row->answers) json_object_set_new(object, "answers_hash", tare_json_text(row->answers));
    tare_comparison_set(object, &measured, TARE_COST_COLUMNS);
    for (size_t i = 0; i < c->n_outputs; i++) {
        json_t *metrics = json_object();
        tare_comparison_set(metrics, &(struct tare_comparison_cell){ c, row, &row->outputs[i] }, TARE_MODEL_COLUMNS);
        tare_json_set(outputs, c->output_keys[i], metrics);
    }
    json_object_set_new(object, "outputs", outputs);
    return object;
}

static json_t *skipped_json(const struct tare_comparison *c) {
    json_t *rows = json_array();
    for (size_t i = 0; i < c->n_skipped; i++) {
        const struct tare_comparison_skipped *s = &c->skipped[i];
        json_array_append_new(rows, json_pack("{s:o, s:o, s:o, s:o}", "method", tare_json_text(s->method), "algorithm",
                                              tare_json_text(s->algorithm), "granularity",
                                              tare_json_text(s->granularity), "reason", tare_json_text(s->reason)));
    }
    return rows;
}

/* The measure, its value, and its difference from float, with intervals, for every row, and the recommendation. */
static json_t *measure_json(const struct tare_comparison *c) {
    const struct tare_measure *measure = tare_measure_of(c);
    const struct tare_verdict verdict = tare_verdict_of(c);
    json_t *rows = json_array(), *object = json_object();
    for (size_t r = 0; r < c->n_rows; r++) {
        const struct tare_metrics *m = tare_measured_of(c, &c->rows[r]);
        json_t *row = json_object();
        double low, high, difference;
        tare_measure_interval(&low, &high, measure, m);
        json_object_set_new(row, "value", tare_json_number(tare_measure_value(measure, m)));
        json_object_set_new(row, "low", tare_json_number(low));
        json_object_set_new(row, "high", tare_json_number(high));
        if (r) {
            tare_measure_difference(&difference, &low, &high, measure, m, tare_measured_of(c, &c->rows[0]));
            json_object_set_new(row, "difference", tare_json_number(difference));
            json_object_set_new(row, "difference_low", tare_json_number(low));
            json_object_set_new(row, "difference_high", tare_json_number(high));
        }
        json_object_set_new(row, "recommended", json_boolean(&c->rows[r] == verdict.row));
        json_array_append_new(rows, row);
    }
    json_object_set_new(object, "name", tare_json_text(tare_measure_key(measure)));
    json_object_set_new(object, "output", tare_json_text(c->output_keys[tare_measured_output(c)]));
    json_object_set_new(object, "margin", json_real(tare_verdict_margin(c)));
    json_object_set_new(object, "results", rows);
    return object;
}

static json_t *verdict_json(const struct tare_comparison *c) {
    struct tare_strbuf text = { 0 };
    json_t *json;
    tare_verdict_put(&text, c);
    json = tare_json_text(tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return json;
}

static json_t *manifest_json(const struct tare_comparison *c) {
    json_t *object = json_object();
    for (size_t i = 0; i < c->n_manifest; i++)
        json_object_set_new(object, c->manifest[i].name, tare_json_text(c->manifest[i].value));
    return object;
}

static json_t *figures_json(const struct tare_sensitivity_figures *f) {
    json_t *object = json_object();
    json_object_set_new(object, "sqnr_db", tare_json_number(f->sqnr_db));
    if (!isnan(f->top1)) json_object_set_new(object, "top1", json_real(f->top1));
    if (!isnan(f->mae)) json_object_set_new(object, "mae", json_real(f->mae));
    if (!isnan(f->value)) json_object_set_new(object, "measure", tare_json_number(f->value));
    if (!isnan(f->agreement)) json_object_set_new(object, "agreement", json_real(f->agreement));
    return object;
}

static json_t *sensitivity_json(const struct tare_sensitivity *s) {
    json_t *layers = json_array();
    for (size_t i = 0; i < s->count; i++) {
        const struct tare_sensitive_layer *layer = &s->layers[i];
        json_array_append_new(
            layers, json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:o}", "function", tare_json_text(layer->function),
                              "layer", tare_json_text(layer->node), "op", tare_json_text(layer->op), "weight_elements",
                              (json_int_t)layer->weight_elements, "alone", figures_json(&layer->alone), "all_but_it",
                              figures_json(&layer->restored), "kept_so_far", figures_json(&layer->kept)));
    }
    return json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:f}", "method", tare_json_text(s->method), "algorithm",
                     tare_json_text(s->algorithm), "granularity", tare_json_text(s->granularity), "records",
                     (json_int_t)s->records, "float", figures_json(&s->float_model), "all_layers",
                     figures_json(&s->all), "layers", layers, "seconds", s->seconds);
}

/* The layers of a mix in float, and those with more bits. */
static void put_mix(json_t *in_float, json_t *raised, const struct tare_sensitivity *steps,
                    const struct tare_target_point *p) {
    for (size_t i = 0; i < steps->count; i++) {
        const struct tare_sensitive_layer *layer = &steps->layers[i], *last;
        if (layer->level > 0) continue;
        last = tare_target_step(steps, p->kept, p->n_kept, layer->function, layer->node);
        if (last && last->quantized)
            json_array_append_new(raised, json_pack("{s:o, s:i, s:i}", "layer", tare_json_text(layer->node), "bits",
                                                    last->bits, "activation_bits", last->activation_bits ? 16 : 8));
        else if (last)
            json_array_append_new(in_float, tare_json_text(layer->node));
    }
}

static json_t *target_json(const struct tare_target_result *r) {
    json_t *points = json_array(), *root = json_object();
    struct tare_strbuf rules = { 0 };
    size_t unused;
    for (size_t i = 0; i < r->n_points; i++) {
        const struct tare_target_point *p = &r->points[i];
        json_t *point = figures_json(&p->figures), *kept = json_array(), *raised = json_array();
        put_mix(kept, raised, r->sensitivity, p);
        json_object_set_new(point, "size_bytes", json_integer(p->size_bytes));
        json_object_set_new(point, "in_float", kept);
        json_object_set_new(point, "raised", raised);
        json_object_set_new(point, "meets", json_boolean(p->meets));
        json_object_set_new(point, "pareto", json_boolean(p->pareto));
        json_object_set_new(point, "chosen", json_boolean(p == r->chosen));
        json_array_append_new(points, point);
    }
    json_object_set_new(root, "method", tare_json_text(r->sensitivity->method));
    json_object_set_new(root, "layers", json_integer((json_int_t)tare_target_layers(&unused, r->sensitivity, NULL, 0)));
    json_object_set_new(root, "points", points);
    tare_target_recipe(&rules, r);
    if (r->chosen) json_object_set_new(root, "rules", tare_json_text(rules.failed ? "" : tare_strbuf_text(&rules)));
    tare_strbuf_free(&rules);
    return root;
}

tare_status tare_comparison_json(struct tare_strbuf *out, const struct tare_comparison *c) {
    json_t *results = json_array(), *root;
    for (size_t r = 0; r < c->n_rows; r++)
        json_array_append_new(results, row_json(c, &c->rows[r]));
    root = json_pack("{s:o, s:o, s:o, s:I, s:I, s:o, s:o}", "model", tare_json_text(c->model), "data",
                     tare_json_text(c->data), "signature", tare_json_text(c->signature), "records",
                     (json_int_t)c->records, "calibrations", (json_int_t)c->calibrations, "results", results,
                     "warnings", tare_json_warnings(&c->warnings));
    if (root) json_object_set_new(root, "chip", tare_json_text(tare_comparison_chip_name(c)));
    if (root) json_object_set_new(root, "chip_batch", json_integer(tare_comparison_chip_batch(c)));
    if (root && c->compiler) json_object_set_new(root, "compiler", tare_json_text(c->compiler));
    if (root && c->leakage_compared)
        json_object_set_new(root, "leakage",
                            json_pack("{s:I, s:I}", "records", (json_int_t)c->leakage_compared, "shared",
                                      (json_int_t)c->leakage_shared));
    if (root && c->n_skipped) json_object_set_new(root, "skipped", skipped_json(c));
    if (root) json_object_set_new(root, "measure", measure_json(c));
    if (root && c->n_rows > 1) json_object_set_new(root, "verdict", verdict_json(c));
    if (root && c->next) json_object_set_new(root, "next", tare_json_text(c->next));
    if (root && c->n_costs) json_object_set_new(root, "slowest_ops", slowest_json(c));
    if (root && c->n_manifest) json_object_set_new(root, "manifest", manifest_json(c));
    if (root && c->explanations.count)
        json_object_set_new(root, "explanations", tare_explanations_json(&c->explanations));
    if (root && c->sensitivity) json_object_set_new(root, "sensitivity", sensitivity_json(c->sensitivity));
    if (root && c->target) json_object_set_new(root, "target", target_json(c->target));
    return tare_json_write(out, root);
}
