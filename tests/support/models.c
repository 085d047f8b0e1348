/* The folder of test data. */
#include "support/models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* The path in static memory; NULL when there is nothing. */
static const char *find(const char *relative) {
    static char paths[16][900];
    static unsigned next;
    char *path = paths[next];
    const char *data = getenv("TARE_TEST_DATA");
    if (!data || !*data) data = getenv("TARE_TEST_DATA_DEFAULT");
    if (!data || !*data) return NULL;
    snprintf(path, sizeof paths[0], "%s/%s", data, relative);
    if (tare_file_kind_of(path) == TARE_FILE_NONE) return NULL;
    next = (next + 1) % 16;
    return path;
}

const char *test_data(const char *relative) {
    const char *data = getenv("TARE_TEST_DATA"), *path = find(relative);
    if (!path)
        printf("skipped: no %s in %s; set TARE_TEST_DATA to a folder of test data (see CONTRIBUTING.md)\n", relative,
               data && *data ? data : "the default folder of test data");
    return path;
}

const char *models_folder(void) {
    static const char *folder;
    if (!folder) folder = find("models");
    return folder;
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
