#include "support/temp.h"
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[256];

static void remove_folder(void) {
    tare_file_fail_at(0);
    if (tare_file_remove_tree(folder) != TARE_OK) fprintf(stderr, "temp: %s\n", tare_error_text());
}

const char *temp_folder(void) {
    const char *root = getenv("TMPDIR");
    if (folder[0]) return folder;
    snprintf(folder, sizeof folder, "%s/tare-test-XXXXXX", root && strlen(root) < 200 ? root : "/tmp");
    if (!mkdtemp(folder)) {
        perror("mkdtemp");
        abort();
    }
    atexit(remove_folder);
    return folder;
}

const char *temp_path(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", temp_folder(), name);
    return path;
}

const char *temp_file(const char *name, const void *data, size_t size) {
    const char *path = temp_path(name);
    FILE *file = fopen(path, "wb");
    if (!file || (size && fwrite(data, 1, size, file) != size) || fclose(file) != 0) {
        perror(path);
        abort();
    }
    return path;
}
