/* Splits "serve,tpu" at its commas. */
#include "cli/tags.h"
#include "base/alloc.h"

#include <string.h>

tare_status tare_command_tags_set(struct tare_command_tags *tags, struct tare_saved_model_options *options,
                                  const char *text) {
    size_t most = 1, count = 0;
    memset(tags, 0, sizeof *tags);
    if (!text) return TARE_OK;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    tags->text = tare_strdup(text);
    tags->items = tare_calloc(most, sizeof *tags->items);
    if (!tags->text || !tags->items) {
        tare_command_tags_free(tags);
        return TARE_NO_MEMORY;
    }
    for (char *at = tags->text; at && *tags->text;) {
        char *comma = strchr(at, ',');
        if (comma) *comma = '\0';
        tags->items[count++] = at;
        at = comma ? comma + 1 : NULL;
    }
    options->tags = tags->items;
    options->n_tags = count;
    return TARE_OK;
}

void tare_command_tags_free(struct tare_command_tags *tags) {
    tare_free(tags->text);
    tare_free(tags->items);
    memset(tags, 0, sizeof *tags);
}
