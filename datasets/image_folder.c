/* Folders of images. */
#include "datasets/image_folder.h"
#include "base/ascii.h"
#include "base/format.h"
#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16 };

struct image {
    const char *name;  /* path in the folder */
    const char *class; /* NULL: none, or a number */
    int64_t label;     /* -1: none */
};

struct tare_image_folder {
    struct tare_arena arena;
    char *root; /* NULL: the names are paths already */
    struct image *images;
    size_t count, capacity;
    const char **classes;
    size_t n_classes;
    const char *foreign; /* the first file that is another kind of image; NULL: none */
    const char *empty;   /* the first folder directly below `root` without images; NULL: none */
};

static bool ends_in(const char *name, const char *const *endings) {
    const size_t size = strlen(name);
    for (; *endings; endings++) {
        const size_t n = strlen(*endings);
        if (size > n && tare_same_letters(name + size - n, *endings)) return true;
    }
    return false;
}

static bool is_image_name(const char *name) {
    static const char *const endings[] = { ".jpg", ".jpeg", ".png", ".bmp", NULL };
    return ends_in(name, endings);
}

static bool is_foreign_name(const char *name) {
    static const char *const endings[] = { ".gif", ".webp", ".tif", ".tiff", ".heic", ".avif", ".jp2", NULL };
    return ends_in(name, endings);
}

static tare_status add(struct tare_image_folder *folder, const char *name, const char *class, int64_t label) {
    struct image *image;
    if (!TARE_GROW(folder->images, folder->count, folder->capacity)) return TARE_NO_MEMORY;
    image = &folder->images[folder->count];
    *image = (struct image){ tare_arena_strdup(&folder->arena, name), NULL, label };
    if (class) image->class = tare_arena_strdup(&folder->arena, class);
    if (!image->name || (class && !image->class)) return TARE_NO_MEMORY;
    folder->count++;
    return TARE_OK;
}

/* Remembers the first name. */
static tare_status note(const char **place, struct tare_image_folder *folder, const char *name) {
    if (!*place) *place = tare_arena_strdup(&folder->arena, name);
    return *place ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_tree(struct tare_image_folder *folder, const char *below, int depth);

static tare_status add_folder(struct tare_image_folder *folder, const char *below, int depth) {
    const size_t before = folder->count;
    TARE_TRY(add_tree(folder, below, depth));
    return depth > 1 || folder->count > before ? TARE_OK : note(&folder->empty, folder, below);
}

/* `below`: path relative to the folder; its first component is the class. */
static tare_status add_tree(struct tare_image_folder *folder, const char *below, int depth) {
    struct tare_file_list list = { 0 };
    char *path = tare_path_join(folder->root, below), *name = NULL, *whole = NULL;
    tare_status status = path ? TARE_OK : TARE_NO_MEMORY;
    if (depth > MAX_DEPTH) status = TARE_FAIL(TARE_UNSUPPORTED, "%s: folders are nested too deeply", path);
    if (status == TARE_OK) status = tare_file_list(&list, path);
    for (size_t i = 0; i < list.count && status == TARE_OK; i++) {
        bool is_folder;
        if (*list.names[i] == '.') continue;
        name = *below ? tare_path_join(below, list.names[i]) : tare_strdup(list.names[i]);
        whole = name ? tare_path_join(folder->root, name) : NULL;
        if (!whole) status = TARE_NO_MEMORY;
        is_folder = whole && tare_file_kind_of(whole) == TARE_FILE_DIRECTORY;
        if (is_folder)
            status = add_folder(folder, name, depth + 1);
        else if (status == TARE_OK && is_foreign_name(name))
            status = note(&folder->foreign, folder, name);
        else if (status == TARE_OK && is_image_name(name)) {
            char *class = *below ? tare_strdup(below) : NULL;
            if (class) class[strcspn(class, "/")] = '\0';
            status = *below && !class ? TARE_NO_MEMORY : add(folder, name, class, -1);
            tare_free(class);
        }
        tare_free(name);
        tare_free(whole);
        name = whole = NULL;
    }
    tare_free(path);
    tare_file_list_free(&list);
    return status;
}

/* ---- lists of labels ---- */

static char *trim(char *text) {
    size_t size;
    text += strspn(text, " \t\r");
    size = strlen(text);
    while (size && strchr(" \t\r", text[size - 1]))
        text[--size] = '\0';
    return text;
}

/* "path label": the label follows the last comma, or else the last white space. */
static tare_status add_line(struct tare_image_folder *folder, char *line) {
    char *split = strrchr(line, ','), *end;
    char *label;
    long long number;
    if (!split) {
        split = strrchr(line, '\t');
        if (!split) split = strrchr(line, ' ');
    }
    if (!split || split == line) return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' (expected: path label)", line);
    *split = '\0';
    label = trim(split + 1);
    line = trim(line);
    if (!*label || !*line) return TARE_FAIL(TARE_INVALID_ARGUMENT, "a path or label is empty (expected: path label)");
    errno = 0;
    number = strtoll(label, &end, 10);
    if (!*end && number >= 0 && !errno) return add(folder, line, NULL, number);
    (void)tare_read_double(label, &end);
    if (!*end) return TARE_FAIL(TARE_INVALID_ARGUMENT, "label '%s' (expected an integer, 0 or more, or a word)", label);
    return add(folder, line, label, -1);
}

static tare_status read_labels(struct tare_image_folder *folder, const char *path) {
    char *text;
    size_t size;
    tare_status status = TARE_OK;
    int number = 0;
    TARE_TRY(tare_file_read(&text, &size, path));
    for (char *at = text + tare_file_mark_size(text, size), *next; at && status == TARE_OK; at = next) {
        next = strchr(at, '\n');
        if (next) *next++ = '\0';
        number++;
        at = trim(at);
        if (*at && *at != '#') status = tare_error_prefix(add_line(folder, at), "%s: line %d", path, number);
    }
    tare_free(text);
    if (status != TARE_OK) return status;
    for (size_t i = 1; i < folder->count; i++)
        if (!folder->images[i].class != !folder->images[0].class)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: some labels are numbers and some are words ('%s')", path,
                             folder->images[i].class ? folder->images[i].class : folder->images[0].class);
    return TARE_OK;
}

/* ---- classes ---- */

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static tare_status number_classes(struct tare_image_folder *folder) {
    size_t unique = 0;
    folder->classes = TARE_NEW_ARRAY(&folder->arena, const char *, folder->count + 1);
    if (!folder->classes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < folder->count; i++)
        if (folder->images[i].class) folder->classes[folder->n_classes++] = folder->images[i].class;
    qsort(folder->classes, folder->n_classes, sizeof *folder->classes, compare_names);
    for (size_t i = 0; i < folder->n_classes; i++)
        if (!unique || strcmp(folder->classes[unique - 1], folder->classes[i]) != 0)
            folder->classes[unique++] = folder->classes[i];
    folder->n_classes = unique;
    for (size_t i = 0; i < folder->count; i++) {
        const char **found;
        if (!folder->images[i].class) continue;
        found = bsearch(&folder->images[i].class, folder->classes, unique, sizeof *folder->classes, compare_names);
        folder->images[i].label = found - folder->classes;
    }
    return TARE_OK;
}

/* Of a list, what it says of one file. */
static tare_status keep_file(struct tare_image_folder *folder, const char *path, const char *labels) {
    size_t kept = 0;
    for (size_t i = 0; i < folder->count; i++)
        if (strcmp(folder->images[i].name, path) == 0) folder->images[kept++] = folder->images[i];
    folder->count = kept;
    if (kept) return TARE_OK;
    return TARE_FAIL(TARE_NOT_FOUND, "%s: no line of '%s' has this path", path, labels);
}

/* Images that are left out, and classes whose number the next one would have, would be a part of the data. */
static tare_status check_complete(const struct tare_image_folder *folder) {
    if (folder->foreign)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "%s: '%s' is not read (expected .jpg, .jpeg, .png or .bmp; convert it or move it away)",
                         folder->root, folder->foreign);
    if (folder->empty && folder->count)
        return TARE_FAIL(
            TARE_INVALID_ARGUMENT,
            "%s: folder '%s' has no images (remove it if it is not a class; otherwise list the images with "
            "numbers in --labels)",
            folder->root, folder->empty);
    return TARE_OK;
}

static tare_status open_folder(struct tare_image_folder *folder, const char *path, const char *labels) {
    bool is_folder = tare_file_kind_of(path) == TARE_FILE_DIRECTORY;
    if (is_folder) {
        folder->root = tare_strdup(path);
        if (!folder->root) return TARE_NO_MEMORY;
    }
    if (labels)
        TARE_TRY(read_labels(folder, labels));
    else
        TARE_TRY(is_folder ? add_tree(folder, "", 0) : add(folder, path, NULL, -1));
    TARE_TRY(check_complete(folder));
    if (!folder->count && tare_file_kind_in(path, "saved_model.pb") == TARE_FILE_REGULAR)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s: this is a SavedModel (expected records)", path);
    if (!folder->count) return TARE_FAIL(TARE_NOT_FOUND, "%s: no images (.jpg, .jpeg, .png, .bmp)", path);
    TARE_TRY(number_classes(folder));
    return labels && !is_folder ? keep_file(folder, path, labels) : TARE_OK;
}

bool tare_image_folder_takes(const char *name) {
    return is_image_name(name) || is_foreign_name(name);
}

tare_status tare_image_folder_open(struct tare_image_folder **out, const char *path, const char *labels) {
    struct tare_image_folder *folder = tare_calloc(1, sizeof *folder);
    tare_status status;
    *out = NULL;
    if (!folder) return TARE_NO_MEMORY;
    status = open_folder(folder, path, labels);
    if (status == TARE_OK)
        *out = folder;
    else
        tare_image_folder_close(folder);
    return status;
}

void tare_image_folder_close(struct tare_image_folder *folder) {
    if (!folder) return;
    tare_arena_free(&folder->arena);
    tare_free(folder->images);
    tare_free(folder->root);
    tare_free(folder);
}

int64_t tare_image_folder_count(const struct tare_image_folder *folder) {
    return (int64_t)folder->count;
}

const char *tare_image_folder_name(const struct tare_image_folder *folder, int64_t i) {
    return folder->images[i].name;
}

const char *const *tare_image_folder_classes(const struct tare_image_folder *folder, size_t *count) {
    *count = folder->n_classes;
    return folder->classes;
}

static tare_status read_image(struct tare_features *out, const struct image *image, const char *path) {
    struct tare_mapping file;
    tare_status status;
    TARE_TRY(tare_file_map(&file, path));
    status = tare_features_add_bytes(out, "image/encoded", file.data, file.size);
    tare_file_unmap(&file);
    if (status == TARE_OK) status = tare_features_add_bytes(out, "image/filename", image->name, strlen(image->name));
    if (status == TARE_OK && image->label >= 0) status = tare_features_add_int(out, "image/class/label", image->label);
    if (status == TARE_OK && image->class)
        status = tare_features_add_bytes(out, "image/class/text", image->class, strlen(image->class));
    return status;
}

tare_status tare_image_folder_read(struct tare_features *out, const struct tare_image_folder *folder, int64_t i) {
    const struct image *image = &folder->images[i];
    char *path;
    tare_status status;
    memset(out, 0, sizeof *out);
    path = folder->root ? tare_path_join(folder->root, image->name) : tare_strdup(image->name);
    status = path ? read_image(out, image, path) : TARE_NO_MEMORY;
    tare_free(path);
    return status;
}
