#include "support/sections.h"

#include "base/alloc.h"
#include "base/strbuf.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *section_skip_spaces(const char *text) {
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

const char *section_after(const char *line, const char *keyword) {
    const size_t size = strlen(keyword);
    if (strncmp(line, keyword, size) != 0 || (line[size] != '\0' && !isspace((unsigned char)line[size]))) return NULL;
    line = section_skip_spaces(line + size);
    return *line == '=' ? NULL : line;
}

const char *section_substitute(struct tare_arena *arena, const char *text, const char *type) {
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

/* ---- lines ---- */

static tare_status add_line(struct section_file *file, const char *text, int number) {
    text = section_skip_spaces(text);
    if (*text == '\0' || *text == '#') return TARE_OK;
    if (!TARE_GROW(file->lines, file->n_lines, file->lines_capacity)) return TARE_NO_MEMORY;
    text = tare_arena_strdup(&file->arena, text);
    if (!text) return TARE_NO_MEMORY;
    file->lines[file->n_lines++] = (struct section_line){ text, number };
    return TARE_OK;
}

static tare_status read_lines(struct section_file *file, FILE *stream) {
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

/* ---- sections ---- */

static tare_status add_section(struct section_file *file, size_t first, size_t end, const char *type) {
    if (!TARE_GROW(file->sections, file->n_sections, file->sections_capacity)) return TARE_NO_MEMORY;
    const char *title = section_after(file->lines[first].text, file->keyword);
    file->sections[file->n_sections++] = (struct section){ title, type, first, end };
    return TARE_OK;
}

/* Adds the section once for each dtype of its `types` line, or once. */
static tare_status add_section_of_types(struct section_file *file, size_t first, size_t end) {
    for (size_t i = first + 1; i < end; i++) {
        const char *types = section_after(file->lines[i].text, "types");
        if (!types) continue;
        while (*types != '\0') {
            const size_t size = strcspn(types, " \t");
            const char *type = tare_arena_strndup(&file->arena, types, size);
            if (!type) return TARE_NO_MEMORY;
            TARE_TRY(add_section(file, first, end, type));
            types = section_skip_spaces(types + size);
        }
        return TARE_OK;
    }
    return add_section(file, first, end, NULL);
}

static tare_status split(struct section_file *file) {
    for (size_t i = 0, end; i < file->n_lines; i = end) {
        if (!section_after(file->lines[i].text, file->keyword))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s:%d: '%s' outside a %s", file->path, file->lines[i].number,
                             file->lines[i].text, file->keyword);
        for (end = i + 1; end < file->n_lines && !section_after(file->lines[end].text, file->keyword);)
            end++;
        TARE_TRY(add_section_of_types(file, i, end));
    }
    return TARE_OK;
}

tare_status section_file_read(struct section_file *out, const char *path, const char *keyword) {
    *out = (struct section_file){ .keyword = keyword };
    FILE *stream = fopen(path, "r");
    if (!stream) return TARE_FAIL(TARE_NOT_FOUND, "%s: %s", path, strerror(errno));
    out->path = tare_arena_strdup(&out->arena, path);
    tare_status status = out->path ? read_lines(out, stream) : TARE_NO_MEMORY;
    if (status == TARE_OK) status = split(out);
    fclose(stream);
    return status;
}

void section_file_reset(struct section_file *file) {
    tare_free(file->lines);
    tare_free(file->sections);
    tare_arena_free(&file->arena);
    *file = (struct section_file){ 0 };
}
