/* Reader of the text files of tests/ops. A file is a list of sections; a section is the line with the file's keyword
 * and those up to the next one:
 *
 *   # comment
 *   KEYWORD TITLE               begins a section
 *   types float half int32      repeats the section for each dtype, substituted for each @
 *   …                           what the reader of the file understands
 *
 * Empty lines are skipped. A line that ends with \ continues on the next line. */
#ifndef TARE_TESTS_SECTIONS_H
#define TARE_TESTS_SECTIONS_H

#include "base/arena.h"
#include "base/status.h"

struct section_line {
    const char *text; /* without leading spaces, continuation lines joined */
    int number;
};

struct section {
    const char *title; /* of the first line, after the keyword */
    const char *type;  /* replaces @; NULL: no `types` line */
    size_t first, end; /* line range; the first is the line with the keyword */
};

struct section_file {
    struct tare_arena arena;
    const char *path, *keyword;
    struct section_line *lines;
    size_t n_lines, lines_capacity;
    struct section *sections;
    size_t n_sections, sections_capacity;
};

/* Reads the file into `out`; release it with section_file_reset, also after a failure. TARE_NOT_FOUND if the file does
 * not exist; TARE_INVALID_ARGUMENT with the line number if a line precedes the first section. */
tare_status section_file_read(struct section_file *out, const char *path, const char *keyword);
void section_file_reset(struct section_file *file);

const char *section_skip_spaces(const char *text);
/* Returns the text after the keyword; NULL if the line begins with another word, or with `keyword =`. */
const char *section_after(const char *line, const char *keyword);
/* Returns a copy of the text with `type` for each @; NULL if memory runs out. NULL as type: a plain copy. */
const char *section_substitute(struct tare_arena *arena, const char *text, const char *type);

#endif
