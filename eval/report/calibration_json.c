/* A calibration as JSON. The keys are documented in docs/json.md. */
#include "base/strbuf.h"
#include "eval/report/calibration_report.h"
#include "eval/report/json_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* JSON has no NaN or infinity. */
static json_t *number(double value) {
    return isfinite(value) ? json_real(value == 0 ? 0 : value) : json_null();
}

static json_t *integer(int64_t value) {
    return json_integer((json_int_t)value);
}

static void set(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

static json_t *digests_json(const struct tare_calibration *c) {
    json_t *list = json_array();
    for (size_t i = 0; i < c->n_digests; i++) {
        json_t *object = json_object();
        set(object, "signature", tare_json_text(c->digests[i].signature));
        set(object, "count", integer((int64_t)c->digests[i].set.count));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *input_json(const struct tare_calibration_input *input) {
    json_t *object = json_object(), *runs = json_array();
    for (size_t i = 0; i < input->records.count; i++) {
        json_t *run = json_array();
        json_array_append_new(run, integer(input->records.runs[i].first));
        json_array_append_new(run, integer(input->records.runs[i].end - 1));
        json_array_append_new(runs, run);
    }
    set(object, "signature", tare_json_text(input->signature));
    set(object, "file", tare_json_text(input->file));
    set(object, "records", integer(tare_record_set_size(&input->records)));
    set(object, "runs", runs);
    json_t *passed_over = json_array();
    for (size_t i = 0; i < input->n_bad; i++) {
        json_t *bad = json_object();
        set(bad, "record", integer(input->bad[i].record));
        set(bad, "offset", integer(input->bad[i].offset));
        set(bad, "reason", tare_json_text(input->bad[i].reason));
        set(bad, "text", tare_json_text(input->bad[i].text));
        json_array_append_new(passed_over, bad);
    }
    set(object, "passed_over", passed_over);
    return object;
}

static json_t *place_json(int32_t input, int64_t record) {
    json_t *object = json_object();
    set(object, "input", integer(input));
    set(object, "record", integer(record));
    return object;
}

static json_t *extreme_json(const struct tare_extreme *extreme) {
    json_t *object = place_json(extreme->input, extreme->record);
    set(object, "value", number(extreme->value));
    return object;
}

static json_t *range_json(const char *algorithm, const struct tare_calibration_report_range *r) {
    json_t *object = json_object();
    set(object, "algorithm", tare_json_text(algorithm));
    set(object, "low", number(r->range.low));
    set(object, "high", number(r->range.high));
    set(object, "scale", number(r->grid.scale));
    set(object, "zero_point", integer((int64_t)r->grid.zero_point));
    set(object, "candidates", integer(r->range.candidates));
    set(object, "clipped", number(r->quality.clipped));
    set(object, "rounding_mse", number(r->quality.rounding_mse));
    set(object, "clipping_mse", number(r->quality.clipping_mse));
    set(object, "sqnr_db", number(r->quality.sqnr_db));
    return object;
}

static json_t *point_json(const struct tare_convergence_point *point) {
    json_t *object = json_object();
    set(object, "records", integer(point->records));
    set(object, "low", number(point->low));
    set(object, "high", number(point->high));
    set(object, "share", number(point->share));
    return object;
}

static json_t *channels_json(const struct tare_statistics *s) {
    json_t *object = json_object(), *low = json_array(), *high = json_array();
    for (int64_t i = 0; i < s->channels; i++) {
        json_array_append_new(low, number(s->channel_low[i]));
        json_array_append_new(high, number(s->channel_high[i]));
    }
    set(object, "count", integer(s->channels));
    set(object, "low", low);
    set(object, "high", high);
    return object;
}

static json_t *tensor_key(const struct tare_calibration_tensor *tensor) {
    json_t *object = json_object();
    set(object, "function", tare_json_text(tensor->function));
    set(object, "node", tare_json_text(tensor->node));
    set(object, "output", integer(tensor->output));
    return object;
}

static void put_values(json_t *object, const struct tare_calibration_report *report,
                       const struct tare_calibration_report_tensor *t) {
    const struct tare_statistics *s = &t->tensor->statistics;
    struct tare_range_without without;
    json_t *ranges = json_array(), *points = json_array();
    for (size_t i = 0; i < report->n_algorithms; i++)
        json_array_append_new(ranges, range_json(report->algorithms[i], &t->ranges[i]));
    for (size_t i = 0; i < t->n_points; i++)
        json_array_append_new(points, point_json(&t->points[i]));
    set(object, "min", extreme_json(&s->lowest[0]));
    set(object, "max", extreme_json(&s->highest[0]));
    set(object, "mean", number(t->mean));
    set(object, "rms", number(t->rms));
    if (tare_statistics_range_without(&without, s)) {
        json_t *rest = place_json(without.input, without.record);
        set(rest, "low", number(without.low));
        set(rest, "high", number(without.high));
        set(rest, "share", number(without.share));
        set(object, "without", rest);
    }
    set(object, "ranges", ranges);
    set(object, "convergence", points);
}

static json_t *tensor_json(const struct tare_calibration_report *report,
                           const struct tare_calibration_report_tensor *t) {
    const struct tare_statistics *s = &t->tensor->statistics;
    json_t *object = tensor_key(t->tensor);
    set(object, "samples", integer(s->samples));
    set(object, "elements", integer(t->elements));
    set(object, "zeros", integer(s->histogram.zeros));
    set(object, "nan", integer(s->histogram.nans));
    set(object, "positive_infinities", integer(s->histogram.positive_infinities));
    set(object, "negative_infinities", integer(s->histogram.negative_infinities));
    if (s->has_nan) set(object, "first_nan", place_json(s->first_nan.input, s->first_nan.record));
    if (s->has_infinity) set(object, "first_infinity", place_json(s->first_infinity.input, s->first_infinity.record));
    if (t->has_range) put_values(object, report, t);
    if (s->channels > 0) set(object, "channels", channels_json(s));
    return object;
}

static json_t *side_json(const struct tare_coverage_side *side) {
    json_t *object = json_object();
    char name[TARE_COVERAGE_SIDE_TEXT];
    set(object, "function", tare_json_text(side->function));
    set(object, "node", tare_json_text(side->node));
    set(object, "op", tare_json_text(side->op));
    set(object, "side", tare_json_text(tare_coverage_side_text(name, side)));
    set(object, "target", tare_json_text(side->target));
    set(object, "records", integer(side->records));
    return object;
}

static json_t *warning_json(const struct tare_calibration_warning *warning) {
    json_t *object = json_object();
    set(object, "kind", tare_json_text(warning->kind));
    set(object, "text", tare_json_text(warning->text));
    if (warning->input >= 0) {
        set(object, "input", integer(warning->input));
        set(object, "record", integer(warning->record));
    }
    if (warning->n_tensors > 0) {
        json_t *tensors = json_array();
        for (size_t i = 0; i < warning->n_tensors; i++)
            json_array_append_new(tensors, tensor_key(warning->tensors[i]));
        set(object, "tensors", tensors);
    }
    return object;
}

static void put_lists(json_t *root, const struct tare_calibration_report *report) {
    const struct tare_calibration *c = report->calibration;
    json_t *inputs = json_array(), *tensors = json_array(), *functions = json_array(), *sides = json_array();
    json_t *warnings = json_array(), *algorithms = json_array();
    for (size_t i = 0; i < c->n_inputs; i++)
        json_array_append_new(inputs, input_json(&c->inputs[i]));
    for (size_t i = 0; i < report->n_algorithms; i++)
        json_array_append_new(algorithms, tare_json_text(report->algorithms[i]));
    for (size_t i = 0; i < report->n_tensors; i++)
        json_array_append_new(tensors, tensor_json(report, &report->tensors[i]));
    for (size_t i = 0; i < c->n_functions; i++) {
        json_t *function = json_object();
        set(function, "name", tare_json_text(c->functions[i].name));
        set(function, "records", integer(c->functions[i].records));
        json_array_append_new(functions, function);
    }
    for (size_t i = 0; i < c->coverage.count; i++)
        json_array_append_new(sides, side_json(&c->coverage.sides[i]));
    for (size_t i = 0; i < report->warnings.count; i++)
        json_array_append_new(warnings, warning_json(&report->warnings.items[i]));
    set(root, "inputs", inputs);
    set(root, "digests", digests_json(c));
    set(root, "algorithms", algorithms);
    set(root, "tensors", tensors);
    set(root, "functions", functions);
    set(root, "branches", sides);
    set(root, "warnings", warnings);
}

tare_status tare_calibration_report_json(struct tare_strbuf *out, const struct tare_calibration_report *report) {
    const struct tare_calibration *c = report->calibration;
    char fingerprint[40];
    json_t *root = json_object(), *scheme = json_object();
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64 "%016" PRIx64, c->fingerprint[0], c->fingerprint[1]);
    set(scheme, "bits", integer(report->scheme.bits));
    set(scheme, "symmetric", json_boolean(report->scheme.symmetric));
    set(root, "fingerprint", tare_json_text(fingerprint));
    set(root, "settings", tare_json_text(c->settings));
    set(root, "unfinished", json_boolean(c->unfinished));
    set(root, "records", integer(tare_calibration_records(c)));
    set(root, "scheme", scheme);
    put_lists(root, report);
    char *text = tare_json_dump(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    json_decref(root);
    if (!text) return TARE_FAIL(TARE_NO_MEMORY, "out of memory for JSON");
    tare_strbuf_puts(out, text);
    tare_strbuf_putc(out, '\n');
    free(text);
    return TARE_OK;
}
