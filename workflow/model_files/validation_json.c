/* What a validation found as JSON. */
#include "workflow/model_files/validation_json.h"
#include "eval/report/json_text.h"

#include <string.h>

static json_t *faults_json(const struct tare_faults *faults) {
    json_t *list = json_array();
    for (size_t i = 0; i < faults->count; i++) {
        const char *colon = strstr(faults->items[i], ": ");
        const size_t size = colon ? (size_t)(colon - faults->items[i]) : 0;
        json_t *fault = json_object();
        json_object_set_new(fault, "where", tare_json_text_of(faults->items[i], size));
        json_object_set_new(fault, "what", tare_json_text(colon ? colon + 2 : faults->items[i]));
        json_array_append_new(list, fault);
    }
    return list;
}

static json_t *notes_json(const struct tare_faults *faults) {
    json_t *list = json_array();
    for (size_t i = 0; i < faults->n_notes; i++)
        json_array_append_new(list, tare_json_text(faults->notes[i]));
    return list;
}

tare_status tare_workflow_validation_json(struct tare_strbuf *out, const char *path, const struct tare_faults *faults) {
    json_t *root = json_object();
    json_object_set_new(root, "path", tare_json_text(path));
    json_object_set_new(root, "valid", json_boolean(faults->count == 0));
    json_object_set_new(root, "faults", faults_json(faults));
    json_object_set_new(root, "notes", notes_json(faults));
    return tare_json_write(out, root);
}
