/* Folders of data; see the header. */
#include "datasets/data_folder.h"
#include "base/alloc.h"
#include "base/ascii.h"
#include "datasets/image_folder.h"

#include <string.h>

enum { MAX_DEPTH = 16 };

struct survey {
    struct tare_file_list records;
    char *image, *typical, *described; /* the first image, file that has the name of records, and description */
    bool is_model;
};

static bool ends_in(const char *name, const char *ending) {
    const size_t size = strlen(name), n = strlen(ending);
    return size > n && tare_same_letters(name + size - n, ending);
}

/* Files that describe a data set: its documentation, and those that TensorFlow Datasets writes. */
static bool is_description(const char *name) {
    static const char *const endings[] = { ".md",  ".txt",   ".json",  ".yaml", ".yml", ".html",   ".xml", ".log",
                                           ".pdf", ".proto", ".pbtxt", ".spec", ".py",  ".sha256", ".md5", NULL };
    for (size_t i = 0; endings[i]; i++)
        if (ends_in(name, endings[i])) return true;
    return tare_same_letters(name, "README") || tare_same_letters(name, "LICENSE");
}

/* A file of records by its name: a table or another file next to images may describe them. */
static bool is_typical(const char *name) {
    return strstr(name, ".tfrec") || strstr(name, "-of-") || ends_in(name, ".npy") || ends_in(name, ".npz");
}

static tare_status note(char **first, const char *path) {
    if (!*first) *first = tare_strdup(path);
    return *first ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_file(struct survey *survey, const char *path, const char *name) {
    if (is_description(name)) return note(&survey->described, path);
    if (is_typical(name)) TARE_TRY(note(&survey->typical, path));
    return tare_file_list_add(&survey->records, path) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status survey_folder(struct survey *survey, const char *folder, int depth) {
    struct tare_file_list names = { 0 };
    tare_status status;
    if (depth > MAX_DEPTH) return TARE_FAIL(TARE_UNSUPPORTED, "%s: folders are nested too deeply", folder);
    status = tare_file_list(&names, folder);
    for (size_t i = 0; i < names.count && status == TARE_OK; i++) {
        const char *name = names.names[i];
        if (*name == '.') continue;
        char *path = tare_path_join(folder, name);
        if (!path)
            status = TARE_NO_MEMORY;
        else if (tare_image_folder_takes(name))
            status = note(&survey->image, path);
        else if (!depth && strcmp(name, "saved_model.pb") == 0)
            survey->is_model = true;
        else if (tare_file_kind_of(path) == TARE_FILE_DIRECTORY)
            status = survey_folder(survey, path, depth + 1);
        else if (*name != '_')
            status = add_file(survey, path, name);
        tare_free(path);
    }
    tare_file_list_free(&names);
    return status;
}

static tare_status add_found(struct tare_file_list *files, const struct survey *survey, const char *folder) {
    if (survey->image && survey->typical)
        return TARE_FAIL(TARE_UNSUPPORTED, "images next to records: %s, %s (expected a folder of one kind)",
                         survey->image, survey->typical);
    if (survey->image || survey->is_model) return tare_file_list_add(files, folder) ? TARE_OK : TARE_NO_MEMORY;
    if (!survey->records.count)
        return TARE_FAIL(TARE_NOT_FOUND,
                         "%s: no records and no images (expected TFRecord, CSV, NPY or NPZ files, or .jpg, .jpeg, .png "
                         "or .bmp%s%s%s)",
                         folder, survey->described ? "; '" : "", survey->described ? survey->described : "",
                         survey->described ? "' has the name of a description" : "");
    for (size_t i = 0; i < survey->records.count; i++)
        if (!tare_file_list_add(files, survey->records.names[i])) return TARE_NO_MEMORY;
    return TARE_OK;
}

tare_status tare_data_folder_add(struct tare_file_list *files, const char *folder) {
    struct survey survey = { 0 };
    tare_status status = survey_folder(&survey, folder, 0);
    if (status == TARE_OK) status = add_found(files, &survey, folder);
    tare_file_list_free(&survey.records);
    tare_free(survey.image);
    tare_free(survey.typical);
    tare_free(survey.described);
    return status;
}
