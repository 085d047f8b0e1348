/* The folder of real models. */
#include "support/models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

const char *models_folder(void) {
    static char folder[900];
    const char *data = getenv("TARE_TEST_DATA");
    if (!data || !*data) data = getenv("TARE_TEST_DATA_DEFAULT");
    if (!data) return NULL;
    snprintf(folder, sizeof folder, "%s/models", data);
    return tare_file_kind_of(folder) == TARE_FILE_DIRECTORY ? folder : NULL;
}

struct tare_file_list models_list(void) {
    struct tare_file_list list = { 0 };
    const char *folder = models_folder();
    assert_non_null(folder);
    if (tare_file_list(&list, folder) != TARE_OK) fail_msg("%s", tare_error_text());
    if (list.count < 50) fail_msg("%zu models in %s (expected at least 50)", list.count, folder);
    return list;
}

const char *models_path(const char *name) {
    static char paths[9][1200];
    static unsigned next;
    char *path = paths[next++ % 9];
    snprintf(path, sizeof paths[0], "%s/%s", models_folder(), name);
    return path;
}
