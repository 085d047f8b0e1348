/* Compares the arrays of two folders, file by file; see the header. */
#include "eval/array_diff.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "datasets/npy.h"
#include "eval/metrics.h"

#include <math.h>
#include <string.h>

void tare_array_diff_free(struct tare_array_diff *diff) {
    tare_arena_free(&diff->arena);
    memset(diff, 0, sizeof *diff);
}

static bool is_array(const char *name) {
    const size_t size = strlen(name);
    return size > 4 && strcmp(name + size - 4, ".npy") == 0;
}

/* A .npy file, which is a comparison of its own. */
static bool is_file(const char *path) {
    return is_array(path) && tare_file_kind_of(path) == TARE_FILE_REGULAR;
}

bool tare_array_diff_is_arrays(const char *path) {
    struct tare_file_list list = { 0 };
    bool found = is_file(path);
    if (tare_file_kind_of(path) == TARE_FILE_DIRECTORY && tare_file_list(&list, path) == TARE_OK)
        for (size_t i = 0; i < list.count; i++)
            found |= is_array(list.names[i]);
    tare_error_clear();
    tare_file_list_free(&list);
    return found;
}

static tare_status add_name(struct tare_array_diff *diff, const char *name) {
    struct tare_array_difference *grown = tare_arena_append(&diff->arena, diff->files, diff->count, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    diff->files = grown;
    grown[diff->count] = (struct tare_array_difference){ .name = tare_arena_strdup(&diff->arena, name),
                                                         .sqnr_db = NAN,
                                                         .max_abs_error = NAN,
                                                         .mean_abs_error = NAN,
                                                         .cosine = NAN };
    return grown[diff->count++].name ? TARE_OK : TARE_NO_MEMORY;
}

/* Merges the sorted names of both folders. */
static tare_status add_names(struct tare_array_diff *diff, const struct tare_file_list *first,
                             const struct tare_file_list *second) {
    for (size_t i = 0, k = 0; i < first->count || k < second->count;) {
        const int order = i == first->count ? 1 : k == second->count ? -1 : strcmp(first->names[i], second->names[k]);
        const char *name = order <= 0 ? first->names[i] : second->names[k];
        i += order <= 0;
        k += order >= 0;
        if (is_array(name)) TARE_TRY(add_name(diff, name));
    }
    return TARE_OK;
}

static tare_status list_names(struct tare_array_diff *diff) {
    struct tare_file_list first = { 0 }, second = { 0 };
    size_t size;
    if (is_file(diff->first) && is_file(diff->second)) return add_name(diff, tare_path_last(&size, diff->first));
    if (is_file(diff->first) || is_file(diff->second))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s and %s: an array and a folder (expected two of one kind)",
                         diff->first, diff->second);
    tare_status status = tare_file_list(&first, diff->first);
    if (status == TARE_OK) status = tare_file_list(&second, diff->second);
    if (status == TARE_OK) status = add_names(diff, &first, &second);
    tare_file_list_free(&first);
    tare_file_list_free(&second);
    return status;
}

/* Of the folder, or the file itself. *type is NULL when the folder does not have the file. */
static tare_status read_array(struct tare_tensor *out, const char **type, struct tare_arena *arena, const char *folder,
                              const char *name) {
    const char *path = is_file(folder) ? folder : tare_arena_printf(arena, "%s/%s", folder, name);
    struct tare_strbuf text = { 0 };
    if (!path) return TARE_NO_MEMORY;
    *type = NULL;
    if (tare_file_kind_of(path) == TARE_FILE_NONE) return TARE_OK;
    TARE_TRY(tare_npy_read(out, path));
    tare_strbuf_printf(&text, "%s[", tare_dtype_name(out->dtype));
    for (int d = 0; d < out->shape.rank; d++)
        tare_strbuf_printf(&text, "%s%lld", d ? "," : "", (long long)out->shape.dims[d]);
    tare_strbuf_putc(&text, ']');
    *type = text.failed ? NULL : tare_arena_strdup(arena, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return *type ? TARE_OK : TARE_NO_MEMORY;
}

/* Arrays of one shape and dtype; strings and complex numbers are only the same or not. */
static tare_status compare(struct tare_array_difference *out, const struct tare_tensor *first,
                           const struct tare_tensor *second) {
    struct tare_metrics m = { 0 };
    tare_status status = TARE_OK;
    out->same = first->dtype == second->dtype && tare_shape_equal(&first->shape, &second->shape) &&
                tare_tensor_same_bits(first, second);
    if (first->dtype != second->dtype || !tare_shape_equal(&first->shape, &second->shape) ||
        !(tare_dtype_is_floating(first->dtype) || tare_dtype_is_integer(first->dtype) ||
          tare_dtype_is_complex(first->dtype)))
        return TARE_OK;
    const int64_t rows = first->shape.rank > 0 ? first->shape.dims[0] : 1;
    for (int64_t r = 0; r < rows && status == TARE_OK; r++) {
        struct tare_tensor a = { 0 }, b = { 0 };
        if (first->shape.rank > 0) {
            status = tare_tensor_share_rows(&a, first, r, 1);
            if (status == TARE_OK) status = tare_tensor_share_rows(&b, second, r, 1);
        } else {
            tare_tensor_share(&a, first);
            tare_tensor_share(&b, second);
        }
        const struct tare_measured measured = { .value = &b, .reference = &a, .rows = 1, .record = r };
        if (status == TARE_OK) status = tare_metrics_add(&m, &measured);
        tare_tensor_reset(&a);
        tare_tensor_reset(&b);
    }
    out->sqnr_db = tare_metrics_sqnr_db(&m);
    out->max_abs_error = m.max_abs_error;
    out->max_abs_index = m.max_abs_record;
    out->mean_abs_error = tare_metrics_mean_error(&m);
    out->cosine = tare_metrics_cosine(&m);
    tare_metrics_reset(&m);
    return status;
}

static tare_status compare_file(struct tare_array_diff *diff, struct tare_array_difference *file) {
    struct tare_tensor first = { 0 }, second = { 0 };
    tare_status status = read_array(&first, &file->first, &diff->arena, diff->first, file->name);
    if (status == TARE_OK) status = read_array(&second, &file->second, &diff->arena, diff->second, file->name);
    if (status == TARE_OK && file->first && file->second) status = compare(file, &first, &second);
    diff->n_differing += !file->same;
    tare_tensor_reset(&first);
    tare_tensor_reset(&second);
    return status;
}

tare_status tare_array_diff_make(struct tare_array_diff *out, const char *first, const char *second) {
    *out = (struct tare_array_diff){ .first = first, .second = second };
    TARE_TRY(list_names(out));
    if (!out->count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s and %s: no .npy files (expected outputs of tare run --output-dir)",
                         first, second);
    for (size_t i = 0; i < out->count; i++)
        TARE_TRY(compare_file(out, &out->files[i]));
    return TARE_OK;
}
