/* Composite functions as JSON and as notes. */
#include "eval/report/composites.h"
#include "eval/report/json_text.h"

json_t *tare_composites_json(const struct tare_composites *composites) {
    json_t *list = json_array();
    for (size_t i = 0; i < composites->count; i++) {
        const struct tare_composite *composite = &composites->items[i];
        json_array_append_new(list, json_pack("{s:o, s:o, s:b, s:o}", "function", tare_json_text(composite->function),
                                              "implements", tare_json_text(composite->implements), "fused",
                                              !composite->reason, "reason", tare_json_text(composite->reason)));
    }
    return list;
}

void tare_composites_log(const struct tare_log *log, const struct tare_composites *composites) {
    for (size_t i = 0; i < composites->count; i++) {
        const struct tare_composite *composite = &composites->items[i];
        tare_note(log, "function %s (%s) %s%s", composite->function, composite->implements,
                  composite->reason ? "stays composite: " : "was fused", composite->reason ? composite->reason : "");
    }
}
