#include "support/case_file.h"

#include "base/alloc.h"
#include "support/sections.h"
#include "support/tensor_text.h"

#include <stdio.h>
#include <string.h>

struct case_file {
    struct section_file text;
    const char **ops; /* of each section: the first word of its title */
};

static tare_status read_ops(struct case_file *file) {
    struct section_file *text = &file->text;
    file->ops = TARE_NEW_ARRAY(&text->arena, const char *, text->n_sections + 1);
    if (!file->ops) return TARE_NO_MEMORY;
    for (size_t i = 0; i < text->n_sections; i++) {
        const char *title = text->sections[i].title;
        file->ops[i] = tare_arena_strndup(&text->arena, title, strcspn(title, " \t"));
        if (!file->ops[i]) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

tare_status case_file_open(struct case_file **out, const char *path) {
    *out = NULL;
    struct case_file *file = tare_calloc(1, sizeof *file);
    if (!file) return TARE_NO_MEMORY;
    tare_status status = section_file_read(&file->text, path, "case");
    if (status == TARE_OK) status = read_ops(file);
    if (status != TARE_OK)
        case_file_close(file);
    else
        *out = file;
    return status;
}

void case_file_close(struct case_file *file) {
    if (!file) return;
    section_file_reset(&file->text);
    tare_free(file);
}

size_t case_file_count(const struct case_file *file) {
    return file->text.n_sections;
}

const char *case_file_op(const struct case_file *file, size_t i) {
    return file->ops[i];
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
    if ((text = section_after(line, "case"))) {
        text += strcspn(text, " \t");
        out->attrs = text;
    } else if ((text = section_after(line, "in"))) {
        return add_input(out, text);
    } else if ((text = section_after(line, "out"))) {
        return add_output(out, text);
    } else if ((text = section_after(line, "tol"))) {
        return tolerance_from_text(&out->tolerance, text);
    } else if ((text = section_after(line, "error"))) {
        out->error = text;
    } else if ((text = section_after(line, "infer"))) {
        out->infer = text;
    } else if (section_after(line, "dynamic")) {
        out->dynamic = true;
    } else if (!section_after(line, "types")) {
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' begins with no known word", line);
    }
    return TARE_OK;
}

tare_status case_file_read(struct op_case *out, const struct case_file *file, size_t i) {
    const struct section_file *text = &file->text;
    const struct section *section = &text->sections[i];
    struct tare_arena *arena = &((struct case_file *)file)->text.arena;
    out->op = file->ops[i];
    out->where = tare_arena_printf(arena, "%s:%d", text->path, text->lines[section->first].number);
    for (size_t k = section->first; k < section->end; k++) {
        const char *line = section_substitute(arena, text->lines[k].text, section->type);
        if (!line || !out->where) return TARE_NO_MEMORY;
        tare_status status = read_line(out, line);
        if (status != TARE_OK) return tare_error_prefix(status, "%s:%d", text->path, text->lines[k].number);
    }
    return TARE_OK;
}
