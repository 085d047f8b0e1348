/* Prints warnings, the summary and JSON of tare calibrate. */
#include "cli/calibrate_report.h"
#include "calib/warnings.h"
#include "cli/log.h"
#include "eval/report/json_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double mebibytes(size_t bytes) {
    return (double)bytes / (1 << 20);
}

void tare_calibrate_print_size(const struct tare_log *log, const struct tare_calibrate_size *size,
                               const struct tare_team *team) {
    tare_detail(log, "statistics of %zu tensors take at most %.1f MiB: %.2f MiB a tensor%s, for any number of records",
                size->tensors, mebibytes(size->bytes), mebibytes(size->bytes_each),
                tare_team_alone(team) ? "" : " on every rank");
}

static const char *time_text(char out[32], double seconds) {
    if (seconds < 0.1)
        snprintf(out, 32, "0.1 s");
    else if (seconds < 120)
        snprintf(out, 32, "%.*f s", seconds < 10 ? 1 : 0, seconds);
    else if (seconds < 2 * 3600)
        snprintf(out, 32, "%.0f min", seconds / 60);
    else
        snprintf(out, 32, "%.1f h", seconds / 3600);
    return out;
}

void tare_calibrate_print_estimate(const struct tare_log *log, const struct tare_calibrate_estimate *estimate) {
    char text[32];
    if (estimate->measured == 0) {
        tare_note(log, "the time of a run is not known: no record could be run and still be there for the run");
        return;
    }
    tare_note(log,
              "a run takes about %s on %d worker%s and at most %.0f MB (measured on the first %" PRId64 " records)",
              time_text(text, estimate->seconds), estimate->threads, estimate->threads == 1 ? "" : "s",
              (double)estimate->peak_bytes / 1e6, estimate->measured);
}

void tare_calibrate_print_bad(const struct tare_log *log, const struct tare_calibration *c, bool counted) {
    for (size_t i = 0; i < c->n_inputs; i++) {
        const struct tare_calibration_input *input = &c->inputs[i];
        if (input->n_bad && !counted)
            tare_warn(log, "%zu record%s of '%s' passed over; the first: %s", input->n_bad,
                      input->n_bad == 1 ? "" : "s", input->file, input->bad[0].text);
        for (size_t k = 1; k < input->n_bad; k++)
            tare_detail(log, "passed over: %s: %s", input->file, input->bad[k].text);
    }
}

static json_t *bad_json(const struct tare_calibration_input *input) {
    json_t *list = json_array();
    for (size_t i = 0; i < input->n_bad; i++) {
        const struct tare_calibration_bad *bad = &input->bad[i];
        json_array_append_new(list, json_pack("{s:I, s:I, s:o, s:o}", "record", (json_int_t)bad->record, "offset",
                                              (json_int_t)bad->offset, "reason", tare_json_text(bad->reason), "text",
                                              tare_json_text(bad->text)));
    }
    return list;
}

static json_t *inputs_json(const struct tare_calibration *c) {
    json_t *list = json_array();
    for (size_t i = 0; i < c->n_inputs; i++) {
        const struct tare_calibration_input *input = &c->inputs[i];
        json_array_append_new(list,
                              json_pack("{s:o, s:o, s:I, s:o}", "signature", tare_json_text(input->signature), "file",
                                        tare_json_text(input->file), "records",
                                        (json_int_t)tare_record_set_size(&input->records), "bad", bad_json(input)));
    }
    return list;
}

static const char *kind_of(const char *text, const struct tare_calibration_warning_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].text, text) == 0) return list->items[i].kind;
    return "other";
}

/* Those that the command has printed. */
static tare_status warnings_json(json_t **out, const struct tare_calibration *c) {
    const struct tare_warnings *warnings = tare_command_warnings();
    struct tare_calibration_warning_list list;
    tare_status status = tare_calibration_warnings(&list, c);
    if (warnings->failed) status = TARE_NO_MEMORY;
    *out = json_array();
    for (size_t i = 0; i < warnings->count && status == TARE_OK; i++)
        json_array_append_new(*out, json_pack("{s:o, s:o}", "kind", tare_json_text(kind_of(warnings->texts[i], &list)),
                                              "text", tare_json_text(warnings->texts[i])));
    tare_calibration_warning_list_free(&list);
    return status;
}

static void put_estimate(json_t *root, const struct tare_calibrate_estimate *estimate) {
    if (estimate->measured == 0) return;
    json_object_set_new(root, "estimated_seconds", json_real(estimate->seconds));
    json_object_set_new(root, "estimated_peak_bytes", json_integer((json_int_t)estimate->peak_bytes));
    json_object_set_new(root, "measured_records", json_integer((json_int_t)estimate->measured));
}

static void put_run(json_t *root, const struct tare_calibrate_summary *summary) {
    const struct tare_calibrate_outcome *outcome = summary->outcome;
    json_object_set_new(root, "output", tare_json_text(summary->output));
    json_object_set_new(root, "resumed_records", json_integer((json_int_t)summary->resumed));
    json_object_set_new(root, "ranks", json_integer(summary->ranks));
    json_object_set_new(root, "threads", json_integer(outcome->threads));
    json_object_set_new(root, "batch", json_integer(outcome->batch));
    if (outcome->batch_reason) json_object_set_new(root, "batch_reason", tare_json_text(outcome->batch_reason));
    json_object_set_new(root, "stateful", json_boolean(outcome->stateful));
    json_object_set_new(root, "seconds", json_real(outcome->seconds));
    json_object_set_new(root, "records_per_second",
                        json_real(outcome->seconds > 0 ? (double)outcome->records / outcome->seconds : 0));
}

tare_status tare_calibrate_print_json(const struct tare_calibrate_summary *summary) {
    const struct tare_calibration *c = summary->calibration;
    json_t *root = json_object(), *warnings = NULL;
    json_object_set_new(root, "model", tare_json_text(summary->model));
    json_object_set_new(root, "records", json_integer((json_int_t)tare_calibration_records(c)));
    json_object_set_new(root, "bad_records", json_integer((json_int_t)tare_calibration_bad_records(c)));
    json_object_set_new(root, "inputs", inputs_json(c));
    json_object_set_new(root, "tensors", json_integer((json_int_t)summary->size->tensors));
    json_object_set_new(root, "tensor_bytes_at_most", json_integer((json_int_t)summary->size->bytes_each));
    json_object_set_new(root, "statistics_bytes_at_most", json_integer((json_int_t)summary->size->bytes));
    if (summary->output)
        put_run(root, summary);
    else
        put_estimate(root, summary->estimate);
    tare_status status = warnings_json(&warnings, c);
    if (warnings) json_object_set_new(root, "warnings", warnings);
    char *text = tare_json_dump(root, JSON_INDENT(2));
    json_decref(root);
    if (status == TARE_OK && !text) status = TARE_FAIL(TARE_NO_MEMORY, "out of memory for JSON");
    if (status == TARE_OK) puts(text);
    free(text);
    return status;
}
