/* Environment variables in paths. */
#include "workflow/dataset_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tare_status tare_workflow_dataset_path(struct tare_strbuf *out, const char *path) {
    while (*path) {
        const char *end = path[0] == '$' && path[1] == '{' ? strchr(path, '}') : NULL;
        const char *value;
        char name[128];
        if (!end || (size_t)(end - path) >= sizeof name) {
            tare_strbuf_printf(out, "%c", *path++);
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)(end - path - 2), path + 2);
        value = getenv(name);
        if (!value)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "tfrecord_file_path: environment variable not set: %s", name);
        tare_strbuf_puts(out, value);
        path = end + 1;
    }
    return TARE_OK;
}
