#include "support/case_file.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "support/tensor_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct case_line {
    const char *text; /* after leading spaces, continuation lines joined */
    int number;
};

struct case_entry {
    const char *op;    /* name only */
    const char *type;  /* replaces @; NULL: no `types` line */
    size_t first, end; /* line range; the first line is the `case` */
};

struct case_file {
    struct tare_arena arena;
    const char *path;
    struct case_line *lines;
    size_t n_lines, lines_capacity;
    struct case_entry *entries;
    size_t n_entries, entries_capacity;
};

/* Returns the text after the keyword, or NULL if the line has another keyword. */
static const char *after_keyword(const char *line, const char *keyword) {
    const size_t size = strlen(keyword);
    if (strncmp(line, keyword, size) != 0 || (line[size] != '\0' && !isspace((unsigned char)line[size]))) return NULL;
    line += size;
    while (isspace((unsigned char)*line))
        line++;
    return line;
}

static tare_status add_line(struct case_file *file, const char *text, int number) {
    while (isspace((unsigned char)*text))
        text++;
    if (*text == '\0' || *text == '#') return TARE_OK;
    if (!TARE_GROW(file->lines, file->n_lines, file->lines_capacity)) return TARE_NO_MEMORY;
    text = tare_arena_strdup(&file->arena, text);
    if (!text) return TARE_NO_MEMORY;
    file->lines[file->n_lines++] = (struct case_line){ text, number };
    return TARE_OK;
}

static tare_status read_lines(struct case_file *file, FILE *stream) {
    struct tare_strbuf joined = { 0 };
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    int number = 0;
    tare_status status = TARE_OK;
    while (status == TARE_OK && (size = getline(&line, &capacity, stream)) >= 0) {
        number++;
        while (size > 0 && isspace((unsigned char)line[size - 1]))
            line[--size] = '\0';
        const bool more = size > 0 && line[size - 1] == '\\';
        tare_strbuf_append(&joined, line, (size_t)(more ? size - 1 : size));
        if (more) continue;
        status = add_line(file, tare_strbuf_text(&joined), number);
        tare_strbuf_free(&joined);
        joined = (struct tare_strbuf){ 0 };
    }
    tare_strbuf_free(&joined);
    free(line);
    return status;
}

static tare_status add_entry(struct case_file *file, size_t first, size_t end, const char *type) {
    const char *op = after_keyword(file->lines[first].text, "case");
    if (!TARE_GROW(file->entries, file->n_entries, file->entries_capacity)) return TARE_NO_MEMORY;
    op = tare_arena_strndup(&file->arena, op, strcspn(op, " \t"));
    if (!op) return TARE_NO_MEMORY;
    file->entries[file->n_entries++] = (struct case_entry){ op, type, first, end };
    return TARE_OK;
}

static tare_status add_case(struct case_file *file, size_t first, size_t end) {
    for (size_t i = first + 1; i < end; i++) {
        const char *types = after_keyword(file->lines[i].text, "types");
        if (!types) continue;
        while (*types != '\0') {
            const size_t size = strcspn(types, " \t");
            const char *type = tare_arena_strndup(&file->arena, types, size);
            if (!type) return TARE_NO_MEMORY;
            TARE_TRY(add_entry(file, first, end, type));
            types += size;
            types += strspn(types, " \t");
        }
        return TARE_OK;
    }
    return add_entry(file, first, end, NULL);
}

static tare_status split_cases(struct case_file *file) {
    for (size_t i = 0; i < file->n_lines;) {
        if (!after_keyword(file->lines[i].text, "case"))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s:%d: '%s' outside a case", file->path, file->lines[i].number,
                             file->lines[i].text);
        size_t end = i + 1;
        while (end < file->n_lines && !after_keyword(file->lines[end].text, "case"))
            end++;
        TARE_TRY(add_case(file, i, end));
        i = end;
    }
    return TARE_OK;
}

tare_status case_file_open(struct case_file **out, const char *path) {
    *out = NULL;
    FILE *stream = fopen(path, "r");
    if (!stream) return TARE_FAIL(TARE_NOT_FOUND, "%s: %s", path, strerror(errno));
    struct case_file *file = tare_calloc(1, sizeof *file);
    tare_status status = file ? TARE_OK : TARE_NO_MEMORY;
    if (file) {
        file->path = tare_arena_strdup(&file->arena, path);
        status = read_lines(file, stream);
        if (status == TARE_OK) status = split_cases(file);
    }
    fclose(stream);
    if (status != TARE_OK)
        case_file_close(file);
    else
        *out = file;
    return status;
}

void case_file_close(struct case_file *file) {
    if (!file) return;
    tare_free(file->lines);
    tare_free(file->entries);
    tare_arena_free(&file->arena);
    tare_free(file);
}

size_t case_file_count(const struct case_file *file) {
    return file->n_entries;
}
const char *case_file_op(const struct case_file *file, size_t i) {
    return file->entries[i].op;
}

/* Returns the line with each @ replaced by the entry's dtype. */
static const char *substitute(struct tare_arena *arena, const char *text, const char *type) {
    struct tare_strbuf out = { 0 };
    for (; *text != '\0'; text++) {
        if (*text == '@' && type)
            tare_strbuf_puts(&out, type);
        else
            tare_strbuf_putc(&out, *text);
    }
    const char *copy = tare_arena_strdup(arena, tare_strbuf_text(&out));
    tare_strbuf_free(&out);
    return copy;
}

static tare_status read_tolerance(struct tolerance *out, const char *text) {
    while (*text != '\0') {
        char word[8] = "";
        double value = 0;
        int used = 0;
        if (sscanf(text, "%7s %lf %n", word, &value, &used) < 2)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' is no tolerance", text);
        if (strcmp(word, "abs") == 0)
            out->absolute = value;
        else if (strcmp(word, "rel") == 0)
            out->relative = value;
        else if (strcmp(word, "ulp") == 0)
            out->ulps = (int64_t)value;
        else
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' is no tolerance", text);
        text += used;
    }
    return TARE_OK;
}

static tare_status add_output(struct op_case *out, const char *text) {
    if (out->n_outputs == OP_CASE_MAX_TENSORS) return TARE_FAIL(TARE_INVALID_ARGUMENT, "too many outputs");
    if (strcmp(text, "-") != 0) TARE_TRY(tensor_from_text(&out->outputs[out->n_outputs], text));
    out->n_outputs++;
    return TARE_OK;
}

static tare_status add_input(struct op_case *out, const char *text) {
    if (out->n_inputs == OP_CASE_MAX_TENSORS) return TARE_FAIL(TARE_INVALID_ARGUMENT, "too many inputs");
    return tensor_from_text(&out->inputs[out->n_inputs++], text);
}

static tare_status read_line(struct op_case *out, const char *line) {
    const char *text;
    if ((text = after_keyword(line, "case"))) {
        text += strcspn(text, " \t");
        out->attrs = text;
    } else if ((text = after_keyword(line, "in"))) {
        return add_input(out, text);
    } else if ((text = after_keyword(line, "out"))) {
        return add_output(out, text);
    } else if ((text = after_keyword(line, "tol"))) {
        return read_tolerance(&out->tolerance, text);
    } else if ((text = after_keyword(line, "error"))) {
        out->error = text;
    } else if ((text = after_keyword(line, "infer"))) {
        out->infer = text;
    } else if (after_keyword(line, "dynamic")) {
        out->dynamic = true;
    } else if (!after_keyword(line, "types")) {
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' begins with no known word", line);
    }
    return TARE_OK;
}

tare_status case_file_read(struct op_case *out, const struct case_file *file, size_t i) {
    const struct case_entry *entry = &file->entries[i];
    struct tare_arena *arena = &((struct case_file *)file)->arena;
    out->op = entry->op;
    out->where = tare_arena_printf(arena, "%s:%d", file->path, file->lines[entry->first].number);
    for (size_t k = entry->first; k < entry->end; k++) {
        const char *line = substitute(arena, file->lines[k].text, entry->type);
        if (!line || !out->where) return TARE_NO_MEMORY;
        tare_status status = read_line(out, line);
        if (status != TARE_OK) return tare_error_prefix(status, "%s:%d", file->path, file->lines[k].number);
    }
    return TARE_OK;
}
