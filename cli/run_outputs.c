/* Writes the outputs of a run to .npy and .txt files, or prints a few values. */
#include "cli/run_outputs.h"
#include "cli/output/visible_output.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "base/visible.h"
#include "cli/output_check.h"
#include "cli/value_text.h"
#include "datasets/npy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One output file: rows of one shape, or strings. */
struct sink {
    const struct tare_binding *binding;
    struct tare_npy_writer *npy;
    struct tare_output_file text;
    char *path;
    int dtype; /* TARE_DT_INVALID before the first value */
    bool is_text, open, stacked;
    struct tare_shape row;
    struct tare_tensor once; /* the value of a single run, written at the commit */
};

struct tare_run_outputs {
    const char *directory;
    struct tare_output_dir folder; /* files are made in its temporary folder */
    bool silent;
    enum tare_run_outputs_form form;
    int64_t rows;    /* of the outputs that are concatenated although their number is fixed; 0: none are */
    int64_t records; /* so far */
    struct sink *sinks;
    size_t count;
};

/* "/" in names becomes "__". */
static char *output_path(const char *directory, const char *key, const char *ending) {
    struct tare_strbuf name = { 0 };
    char *path;
    for (const char *c = key; *c; c++) {
        if (*c == '/')
            tare_strbuf_puts(&name, "__");
        else
            tare_strbuf_putc(&name, *c);
    }
    tare_strbuf_puts(&name, ending);
    path = tare_path_join(directory, tare_strbuf_text(&name));
    tare_strbuf_free(&name);
    return path;
}

/* Concatenated when the signature leaves the output's first dimension open, or it has `rows`; stacked otherwise. */
static bool is_stacked(const struct tare_shape *declared, int64_t rows, const struct tare_tensor *value) {
    bool open = declared->rank >= 1 && declared->dims[0] < 0;
    return value->shape.rank == 0 || (!open && (!rows || value->shape.dims[0] != rows));
}

static void set_form(struct sink *sink, const struct tare_run_outputs *outputs, const struct tare_tensor *value) {
    sink->dtype = value->dtype;
    sink->stacked = outputs->form == TARE_RUN_OUTPUTS_ONCE || is_stacked(&sink->binding->shape, outputs->rows, value);
    sink->is_text = value->dtype == TARE_DT_STRING;
    sink->row = value->shape;
    if (!sink->stacked) {
        memmove(sink->row.dims, sink->row.dims + 1, (size_t)(value->shape.rank - 1) * sizeof *sink->row.dims);
        sink->row.rank--;
    }
}

/* sink->path: where the file is made. */
static tare_status open_sink(struct sink *sink, const char *directory, const struct tare_tensor *value) {
    tare_status status;
    sink->path = output_path(directory, sink->binding->key, sink->is_text ? ".txt" : ".npy");
    if (!sink->path) return TARE_NO_MEMORY;
    status = sink->is_text ? tare_output_file_begin(&sink->text, sink->path)
                           : tare_npy_create(&sink->npy, sink->path, value->dtype, &sink->row);
    sink->open = status == TARE_OK;
    return status;
}

/* Whether the character of `size` bytes (1: perhaps a byte that is not UTF-8) is text of one line: no control character
 * but a space. */
static bool is_line_text(const unsigned char *character, size_t size) {
    const unsigned char c = character[0];
    if (size == 1) return (c >= 0x20 && c < 0x7f) || c == '\t' || c == '\v' || c == '\f';
    return c != 0xc2 || character[1] >= 0xa0;
}

/* UTF-8 unchanged but for \\, \n and \r; \xhh for other control characters and bytes that are not UTF-8. */
static void escape(struct tare_strbuf *line, const struct tare_str *text) {
    size_t used;
    for (size_t at = 0; at < text->size; at += used) {
        const unsigned char *bytes = (const unsigned char *)text->data + at;
        char visible[TARE_VISIBLE_MAX];
        tare_visible_step(visible, &used, text->data + at, text->size - at, false, true);
        if (*bytes == '\\' || *bytes == '\n' || *bytes == '\r')
            tare_strbuf_printf(line, "\\%c", *bytes == '\n' ? 'n' : *bytes == '\r' ? 'r' : '\\');
        else if (is_line_text(bytes, used))
            tare_strbuf_append(line, bytes, used);
        else
            for (size_t i = 0; i < used; i++)
                tare_strbuf_printf(line, "\\x%02x", bytes[i]);
    }
}

static tare_status write_strings(struct sink *sink, const struct tare_tensor *value) {
    for (int64_t i = 0; i < value->elements; i++) {
        const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, value)[i];
        struct tare_strbuf line = { 0 };
        tare_status status;
        escape(&line, text);
        tare_strbuf_putc(&line, '\n');
        status = tare_output_file_write(&sink->text, tare_strbuf_text(&line), line.size);
        tare_strbuf_free(&line);
        TARE_TRY(status);
    }
    return TARE_OK;
}

static tare_status check_row(const struct sink *sink, const struct tare_tensor *value) {
    struct tare_shape row = value->shape;
    char expected[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE];
    if (!sink->stacked && row.rank > 0) {
        memmove(row.dims, row.dims + 1, (size_t)(row.rank - 1) * sizeof *row.dims);
        row.rank--;
    }
    if (tare_shape_equal(&row, &sink->row)) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE,
                     "output %s: rows of shape %s and of %s cannot be stored in one array (use --per-record)",
                     sink->binding->key, tare_shape_text(expected, &sink->row), tare_shape_text(got, &row));
}

static tare_status write_output(struct sink *sink, const char *directory, const struct tare_tensor *value) {
    if (!sink->open) TARE_TRY(open_sink(sink, directory, value));
    if (sink->is_text) return write_strings(sink, value);
    TARE_TRY(check_row(sink, value));
    return tare_npy_append(sink->npy, value);
}

/* Writes the record's own file. */
static tare_status write_record(struct sink *sink, const char *directory, int64_t record,
                                const struct tare_tensor *value) {
    char ending[48];
    char *path;
    tare_status status;
    snprintf(ending, sizeof ending, ".rec%lld%s", (long long)record, sink->is_text ? ".txt" : ".npy");
    path = output_path(directory, sink->binding->key, ending);
    if (!path) return TARE_NO_MEMORY;
    status = sink->is_text ? tare_output_file_begin(&sink->text, path) : tare_npy_write(path, value);
    sink->open = status == TARE_OK && sink->is_text;
    if (sink->open) status = write_strings(sink, value);
    if (sink->open && status == TARE_OK) {
        sink->open = false;
        status = tare_output_file_commit(&sink->text);
    }
    tare_free(path);
    return status;
}

static tare_status keep_once(struct sink *sink, const char *directory, const struct tare_tensor *value) {
    if (sink->is_text) return write_output(sink, directory, value);
    sink->path = output_path(directory, sink->binding->key, ".npy");
    if (!sink->path) return TARE_NO_MEMORY;
    tare_tensor_share(&sink->once, value);
    return TARE_OK;
}

/* Prints the first values. */
static void print_value(const struct tare_binding *binding, const struct tare_tensor *value) {
    enum { SHOWN = 12 };
    char shape[TARE_SHAPE_TEXT_SIZE];
    struct tare_arena arena = { 0 };
    printf("%s %s%s", tare_visible_name(&arena, binding->key), tare_dtype_name(value->dtype),
           tare_shape_text(shape, &value->shape));
    for (int64_t i = 0; i < value->elements && i < SHOWN; i++) {
        if (value->dtype == TARE_DT_STRING) {
            struct tare_strbuf text = { 0 };
            tare_strbuf_escape(&text, TARE_CONST_DATA(struct tare_str, value)[i].data,
                               TARE_CONST_DATA(struct tare_str, value)[i].size);
            printf(" \"%s\"", tare_strbuf_text(&text));
            tare_strbuf_free(&text);
        } else {
            struct tare_strbuf text = { 0 };
            tare_value_put(&text, value, i, 6);
            printf(" %s", tare_strbuf_text(&text));
            tare_strbuf_free(&text);
        }
    }
    printf("%s\n", value->elements > SHOWN ? " …" : "");
    tare_arena_free(&arena);
}

/* ---- all outputs ---- */

/* "a/b" and "a__b" would be one file. `paths`: one for each sink, by base/alloc.h. */
static tare_status find_clash(struct tare_map *files, char **paths, const struct tare_run_outputs *outputs) {
    for (size_t i = 0; i < outputs->count; i++) {
        struct sink *sink = &outputs->sinks[i];
        paths[i] = output_path(outputs->directory, sink->binding->key, "");
        if (!paths[i]) return TARE_NO_MEMORY;
        const struct sink *other = tare_map_get(files, paths[i]);
        if (other)
            return TARE_FAIL(TARE_USAGE, "outputs '%s' and '%s' would be one file '%s' (choose one with --output)",
                             other->binding->key, sink->binding->key, paths[i]);
        if (!tare_map_set(files, paths[i], sink)) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status check_files(const struct tare_run_outputs *outputs) {
    struct tare_map files = { 0 };
    char **paths = tare_calloc(outputs->count + 1, sizeof *paths);
    const tare_status status = paths ? find_clash(&files, paths, outputs) : TARE_NO_MEMORY;
    for (size_t i = 0; paths && i < outputs->count; i++)
        tare_free(paths[i]);
    tare_free(paths);
    tare_map_free(&files);
    return status;
}

tare_status tare_run_outputs_new(struct tare_run_outputs **out, const struct tare_signature *signature,
                                 const char *directory, enum tare_run_outputs_form form, bool silent) {
    struct tare_run_outputs *outputs = tare_calloc(1, sizeof *outputs);
    *out = outputs;
    if (!outputs) return TARE_NO_MEMORY;
    outputs->sinks = tare_calloc(signature->n_outputs + 1, sizeof *outputs->sinks);
    if (!outputs->sinks) return TARE_NO_MEMORY;
    *outputs = (struct tare_run_outputs){
        .directory = directory, .silent = silent, .form = form, .sinks = outputs->sinks, .count = signature->n_outputs
    };
    for (size_t i = 0; i < outputs->count; i++)
        outputs->sinks[i].binding = &signature->outputs[i];
    if (!directory) return TARE_OK;
    TARE_TRY(check_files(outputs));
    return tare_output_dir_begin_adding(&outputs->folder, directory);
}

tare_status tare_run_outputs_check_apart(const struct tare_run_outputs *outputs,
                                         const struct tare_option_list *inputs) {
    tare_status status = TARE_OK;
    for (size_t i = 0; outputs->directory && i < outputs->count && status == TARE_OK; i++) {
        const struct tare_binding *binding = outputs->sinks[i].binding;
        char *path = output_path(outputs->directory, binding->key, binding->dtype == TARE_DT_STRING ? ".txt" : ".npy");
        if (!path) return TARE_NO_MEMORY;
        if (tare_file_kind_of(path) != TARE_FILE_NONE)
            status = tare_command_check_file_apart(path, inputs->items, inputs->count);
        tare_free(path);
    }
    return status;
}

void tare_run_outputs_join_rows(struct tare_run_outputs *outputs, int64_t rows) {
    outputs->rows = rows;
    if (outputs->form == TARE_RUN_OUTPUTS_ONCE) outputs->form = TARE_RUN_OUTPUTS_JOINED;
}

static tare_status write_value(const struct tare_run_outputs *outputs, struct sink *sink,
                               const struct tare_tensor *value) {
    if (!outputs->directory) {
        if (!outputs->silent) print_value(sink->binding, value);
        return TARE_OK;
    }
    switch (outputs->form) {
    case TARE_RUN_OUTPUTS_PER_RECORD:
        return write_record(sink, outputs->folder.temporary, outputs->records, value);
    case TARE_RUN_OUTPUTS_ONCE:
        return keep_once(sink, outputs->folder.temporary, value);
    default:
        return write_output(sink, outputs->folder.temporary, value);
    }
}

tare_status tare_run_outputs_take(struct tare_run_outputs *outputs, const struct tare_tensor *values) {
    for (size_t i = 0; i < outputs->count; i++) {
        struct sink *sink = &outputs->sinks[i];
        if (!sink->dtype) set_form(sink, outputs, &values[i]);
        TARE_TRY(write_value(outputs, sink, &values[i]));
    }
    outputs->records++;
    return TARE_OK;
}

/* The paths of the files after they were moved. */
static tare_status name_final(struct tare_run_outputs *outputs) {
    for (size_t i = 0; i < outputs->count; i++) {
        struct sink *sink = &outputs->sinks[i];
        char *path = sink->path ? tare_path_join(outputs->directory, tare_path_base(sink->path)) : NULL;
        if (!path && sink->path) return TARE_NO_MEMORY;
        tare_free(sink->path);
        sink->path = path;
    }
    return TARE_OK;
}

tare_status tare_run_outputs_commit(struct tare_run_outputs *outputs) {
    for (size_t i = 0; i < outputs->count; i++) {
        struct sink *sink = &outputs->sinks[i];
        if (sink->once.dtype) TARE_TRY(tare_npy_write(sink->path, &sink->once));
        if (!sink->open) continue;
        sink->open = false;
        TARE_TRY(sink->is_text ? tare_output_file_commit(&sink->text) : tare_npy_commit(sink->npy));
    }
    if (!outputs->directory) return TARE_OK;
    TARE_TRY(tare_output_dir_commit(&outputs->folder));
    return name_final(outputs);
}

void tare_run_outputs_free(struct tare_run_outputs *outputs) {
    if (!outputs) return;
    for (size_t i = 0; i < outputs->count; i++) {
        struct sink *sink = &outputs->sinks[i];
        if (sink->open && sink->is_text) tare_output_file_abort(&sink->text);
        if (sink->open && !sink->is_text) tare_npy_abort(sink->npy);
        tare_tensor_reset(&sink->once);
        tare_free(sink->path);
    }
    tare_output_dir_abort(&outputs->folder);
    tare_free(outputs->sinks);
    tare_free(outputs);
}

void tare_run_outputs_describe(struct tare_run_output *out, const struct tare_run_outputs *outputs, size_t i) {
    const struct sink *sink = &outputs->sinks[i];
    *out = (struct tare_run_output){ sink->binding->key, sink->path, sink->dtype, sink->row, sink->stacked };
}
