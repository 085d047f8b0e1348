/* Paths: their parts, and whether two lead to one place. */
#include "base/alloc.h"
#include "base/file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LINKS = 40 }; /* that follow each other, as in Linux */

char *tare_path_join(const char *folder, const char *name) {
    size_t left = strlen(folder), right = strlen(name);
    bool slash = left && folder[left - 1] != '/';
    char *path = tare_malloc(left + slash + right + 1);
    if (!path) return NULL;
    memcpy(path, folder, left);
    if (slash) path[left] = '/';
    memcpy(path + left + slash, name, right + 1);
    return path;
}

const char *tare_path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *tare_path_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder;
    if (!slash) return tare_strdup(".");
    while (slash > path && slash[-1] == '/')
        slash--;
    if (slash == path) return tare_strdup("/");
    folder = tare_strdup(path);
    if (folder) folder[slash - path] = '\0';
    return folder;
}

const char *tare_path_last(size_t *size, const char *path) {
    size_t end = strlen(path), start;
    while (end > 1 && path[end - 1] == '/')
        end--;
    for (start = end; start > 0 && path[start - 1] != '/';)
        start--;
    if (start == end) start = 0; /* "/" */
    *size = end - start;
    return path + start;
}

/* ---- places ---- */

static bool is_one(const char *a, const char *b) {
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* `room`: PATH_MAX bytes. A link to nothing leads to the file that would be created. */
static char *resolve(const char *path, char *room, int links) {
    char *folder = NULL, *next = NULL, *result = NULL;
    ssize_t size;
    if (realpath(path, room)) return tare_strdup(room);
    folder = tare_path_folder(path);
    if (!folder || strcmp(folder, path) == 0) return folder;
    size = links ? readlink(path, room, PATH_MAX - 1) : -1;
    if (size > 0) {
        room[size] = '\0';
        next = *room == '/' ? tare_strdup(room) : tare_path_join(folder, room);
        result = next ? resolve(next, room, links - 1) : NULL;
    } else {
        next = resolve(folder, room, links);
        result = next ? tare_path_join(next, tare_path_base(path)) : NULL;
    }
    tare_free(folder);
    tare_free(next);
    return result;
}

char *tare_path_resolve(const char *path) {
    char room[PATH_MAX];
    return resolve(path, room, MOST_LINKS);
}

bool tare_path_is_same(const char *a, const char *b) {
    char *one, *other;
    bool same;
    if (strcmp(a, b) == 0 || is_one(a, b)) return true;
    if (tare_file_kind_of(a) != TARE_FILE_NONE || tare_file_kind_of(b) != TARE_FILE_NONE) return false;
    one = tare_path_resolve(a);
    other = tare_path_resolve(b);
    same = one && other && strcmp(one, other) == 0;
    tare_free(one);
    tare_free(other);
    return same;
}

tare_status tare_path_is_inside(bool *inside, const char *path, const char *folder) {
    char *at, *slash;
    *inside = false;
    if (tare_file_kind_of(folder) != TARE_FILE_DIRECTORY) return TARE_OK;
    at = slash = tare_path_resolve(path);
    if (!at) return TARE_NO_MEMORY;
    while (slash && !*inside) {
        *inside = is_one(at, folder);
        slash = at[1] ? strrchr(at, '/') : NULL;
        if (slash) slash[slash == at] = '\0';
    }
    tare_free(at);
    return TARE_OK;
}
