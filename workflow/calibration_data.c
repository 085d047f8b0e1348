/* Splits SIGNATURE=FILE and groups the files by signature. */
#include "workflow/calibration_data.h"
#include "base/alloc.h"
#include "datasets/data_file.h"
#include "eval/model_inputs.h"

#include <stdlib.h>
#include <string.h>

bool tare_data_is_standard_input(const char *const *data, size_t n_data) {
    for (size_t i = 0; i < n_data; i++) {
        const char *file = strrchr(data[i], '=');
        if (strcmp(file ? file + 1 : data[i], "-") == 0) return true;
    }
    return false;
}

/* The "=" after a signature; NULL if the whole text is a file name. */
static const char *signature_end(const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || tare_data_is_arrays(text) || tare_file_kind_of(text) != TARE_FILE_NONE)
        return NULL;
    /* Folder names may contain "=", while signature keys rarely contain a slash. */
    return memchr(text, '/', (size_t)(equals - text)) ? NULL : equals;
}

static tare_status split(const struct tare_signature **signature, const char **file,
                         const struct tare_graph_model *model, const char *text, const struct tare_signature *plain) {
    const char *equals = signature_end(text);
    *file = equals ? equals + 1 : text;
    *signature = plain;
    if (!equals) return plain ? TARE_OK : tare_pick_signature(signature, model, NULL);
    char *key = tare_strdup(text);
    if (!key) return TARE_NO_MEMORY;
    key[equals - text] = '\0';
    tare_status status = tare_pick_signature(signature, model, key);
    tare_free(key);
    return tare_error_prefix(status, "--data %s", text);
}

static struct tare_data_group *group_of(struct tare_data_groups *groups, const struct tare_signature *signature) {
    for (size_t i = 0; i < groups->count; i++)
        if (groups->items[i].signature == signature) return &groups->items[i];
    if (!TARE_GROW(groups->items, groups->count, groups->capacity)) return NULL;
    groups->items[groups->count] = (struct tare_data_group){ .signature = signature };
    return &groups->items[groups->count++];
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static tare_status refuse_twins(const struct tare_data_group *group) {
    const size_t count = group->files.count;
    const char **sorted = tare_calloc(count + 1, sizeof *sorted);
    tare_status status = TARE_OK;
    if (!sorted) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        sorted[i] = group->files.names[i];
    qsort(sorted, count, sizeof *sorted, by_text);
    for (size_t i = 1; i < count && status == TARE_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status =
                TARE_FAIL(TARE_USAGE, "--data %s is given twice for signature %s", sorted[i], group->signature->key);
    tare_free(sorted);
    return status;
}

static tare_status check(const struct tare_data_groups *groups) {
    size_t inputs = 0;
    for (size_t i = 0; i < groups->count; i++) {
        const struct tare_data_group *group = &groups->items[i];
        TARE_TRY(refuse_twins(group));
        for (size_t k = 0; k < group->files.count; k++)
            inputs += strcmp(group->files.names[k], "-") == 0;
    }
    if (inputs > 1) return TARE_FAIL(TARE_USAGE, "--data -: standard input can be read only once");
    return TARE_OK;
}

tare_status tare_data_groups_make(struct tare_data_groups *out, const struct tare_graph_model *model,
                                  const char *const *data, size_t n_data, const struct tare_signature *plain) {
    *out = (struct tare_data_groups){ 0 };
    for (size_t i = 0; i < n_data; i++) {
        const struct tare_signature *signature;
        const char *file;
        TARE_TRY(split(&signature, &file, model, data[i], plain));
        struct tare_data_group *group = group_of(out, signature);
        if (!group) return TARE_NO_MEMORY;
        if (strcmp(file, "-") != 0 && !tare_data_is_arrays(file))
            TARE_TRY(tare_file_glob(&group->files, file));
        else if (!tare_file_list_add(&group->files, file))
            return TARE_NO_MEMORY;
    }
    return check(out);
}

tare_status tare_data_groups_make_one(struct tare_data_groups *out, const struct tare_graph_model *model,
                                      const struct tare_signature *plain) {
    *out = (struct tare_data_groups){ 0 };
    if (!plain) TARE_TRY(tare_pick_signature(&plain, model, NULL));
    return group_of(out, plain) ? TARE_OK : TARE_NO_MEMORY;
}

void tare_data_groups_free(struct tare_data_groups *groups) {
    for (size_t i = 0; i < groups->count; i++)
        tare_file_list_free(&groups->items[i].files);
    tare_free(groups->items);
    *groups = (struct tare_data_groups){ 0 };
}
