#include "support/script.h"

#include "base/alloc.h"
#include "base/strbuf.h"
#include "support/attrs_text.h"
#include "support/mini_model.h"
#include "support/sections.h"
#include "support/temp.h"
#include "support/tensor_compare.h"
#include "support/tensor_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EDGES = 32 };

struct script_file {
    struct section_file text;
    const char **names; /* of each script: its title, with the dtype if there are several */
};

/* ---- parsing ---- */

static bool name_scripts(struct script_file *file) {
    struct section_file *text = &file->text;
    file->names = TARE_NEW_ARRAY(&text->arena, const char *, text->n_sections + 1);
    for (size_t i = 0; file->names && i < text->n_sections; i++) {
        const struct section *section = &text->sections[i];
        file->names[i] =
            section->type ? tare_arena_printf(&text->arena, "%s (%s)", section->title, section->type) : section->title;
        if (!file->names[i]) return false;
    }
    return file->names;
}

struct script_file *script_file_open(const char *path) {
    struct script_file *file = tare_calloc(1, sizeof *file);
    if (file && section_file_read(&file->text, path, "graph") == TARE_OK && name_scripts(file)) return file;
    fprintf(stderr, "%s\n", file ? tare_error_text() : "no memory");
    script_file_close(file);
    return NULL;
}

void script_file_close(struct script_file *file) {
    if (!file) return;
    section_file_reset(&file->text);
    tare_free(file);
}

size_t script_file_count(const struct script_file *file) {
    return file->text.n_sections;
}

const char *script_file_name(const struct script_file *file, size_t i) {
    return file->names[i];
}

/* The op of a line `NAME = Op(…` and its length; 0 for other lines. */
static size_t op_of_line(const char **op, const char *line) {
    const char *at = line + strcspn(line, " \t");
    at = section_skip_spaces(at);
    if (*at != '=') return 0;
    at = section_skip_spaces(at + 1);
    *op = at;
    while (isalnum((unsigned char)*at) || *at == '_')
        at++;
    return *at == '(' ? (size_t)(at - *op) : 0;
}

static bool is_function(const struct script_file *file, const struct section *section, const char *op, size_t size) {
    for (size_t k = section->first; k < section->end; k++) {
        const char *name = section_after(file->text.lines[k].text, "def");
        if (name && strncmp(name, op, size) == 0 && (name[size] == '\0' || name[size] == ' ')) return true;
    }
    return false;
}

/* The op for which line k counts as a case, and its length; 0 for none. */
static size_t op_shown(const char **op, const struct script_file *file, const struct section *section, size_t k) {
    const char *line = file->text.lines[k].text;
    if (section_after(line, "var") || (section_after(line, "def") && strchr(line, ':'))) {
        *op = section_after(line, "var") ? "VarHandleOp" : "_Arg";
        return strlen(*op);
    }
    const size_t size = op_of_line(op, line);
    return size && !is_function(file, section, *op, size) ? size : 0;
}

void script_file_each_op(const struct script_file *file, size_t i, void (*fn)(void *arg, const char *op), void *arg) {
    const struct section *section = &file->text.sections[i];
    for (size_t k = section->first; k < section->end; k++) {
        const char *op, *other;
        char name[128];
        const size_t size = op_shown(&op, file, section, k);
        bool seen = size == 0;
        for (size_t j = section->first; j < k && !seen; j++)
            seen = op_shown(&other, file, section, j) == size && strncmp(op, other, size) == 0;
        if (seen) continue;
        snprintf(name, sizeof name, "%.*s", (int)size, op);
        fn(arg, name);
    }
}

/* ---- execution ---- */

struct play {
    const struct script_file *file;
    const struct section_line *line; /* the current line, for messages */
    struct tare_arena arena;
    struct tare_opspec_memory memory;
    struct tare_graph_model *model;
    struct tare_graph *graph; /* main, or the function being defined */
    struct tare_session *session;
    int files;
};

#define FAULT(play, ...)                                                                                               \
    do {                                                                                                               \
        print_error("%s:%d: %s\n", (play)->file->text.path, (play)->line->number, (play)->line->text);                 \
        fail_msg(__VA_ARGS__);                                                                                         \
    } while (0)

static void check(const struct play *play, tare_status status) {
    if (status != TARE_OK) FAULT(play, "%s", tare_error_text());
}

static void *must(const struct play *play, const void *pointer, const char *what, const char *name) {
    if (!pointer) FAULT(play, "%s %s", what, name);
    return (void *)(uintptr_t)pointer;
}

/* Reads the next word into the arena; stops at spaces, commas and closing brackets. */
static char *word(struct play *play, const char **text) {
    const size_t size = strcspn(*text, " \t,)");
    char *copy = must(play, tare_arena_strndup(&play->arena, *text, size), "no memory for", "a word");
    *text = section_skip_spaces(*text + size);
    return copy;
}

static struct tare_node *find_node(struct play *play, const char *name) {
    return must(play, tare_graph_find(play->graph, name), "there is no node", name);
}

static struct tare_edge find_edge(struct play *play, char *name) {
    char *colon = strchr(name, ':');
    if (colon) *colon = '\0';
    return (struct tare_edge){ find_node(play, name), colon ? atoi(colon + 1) : 0 };
}

static void add_inputs(struct play *play, struct tare_node *node, const char **text) {
    while (**text != ')') {
        if (**text == '\0') FAULT(play, "no ')'");
        if (**text == ',') *text = section_skip_spaces(*text + 1);
        char *name = word(play, text);
        if (*name == '^')
            check(play, tare_node_add_control(node, find_node(play, name + 1)));
        else
            check(play, tare_node_add_input(node, find_edge(play, name)));
    }
    *text = section_skip_spaces(*text + 1);
}

static void add_node(struct play *play, const char *name, const char *text) {
    const char *op, *start = text;
    while (*text != '(')
        text++;
    op = tare_arena_strndup(&play->arena, start, (size_t)(text - start));
    struct tare_node *node = must(play, tare_graph_add(play->graph, op, name), "no memory for", name);
    text = section_skip_spaces(text + 1);
    add_inputs(play, node, &text);
    mini_infer_attrs(node);
    check(play, attrs_from_text(node, &play->memory, *text ? text : NULL));
    check(play, tare_node_resolve(node));
}

static struct tare_tensor read_tensor(const struct play *play, const char *text) {
    struct tare_tensor tensor;
    check(play, tensor_from_text(&tensor, text));
    return tensor;
}

static void add_constant(struct play *play, const char *name, struct tare_tensor value) {
    const struct tare_node *node = tare_graph_add_const(play->graph, name, &value);
    tare_tensor_reset(&value);
    must(play, node, "cannot make", name);
}

/* Parsed as a string tensor, for its escapes. */
static void add_file(struct play *play, const char *name, const char *text) {
    char file[32];
    struct tare_strbuf literal = { 0 };
    struct tare_shape scalar = tare_shape_scalar();
    struct tare_tensor path;
    tare_strbuf_printf(&literal, "string[] %s", text);
    struct tare_tensor content = read_tensor(play, tare_strbuf_text(&literal));
    const struct tare_str *bytes = TARE_DATA(struct tare_str, &content);
    snprintf(file, sizeof file, "script-%d", play->files++);
    const char *made = temp_file(file, bytes->data, bytes->size);
    check(play, tare_tensor_new(&path, TARE_DT_STRING, &scalar));
    check(play, tare_tensor_set_string(&path, 0, made, strlen(made)));
    add_constant(play, name, path);
    tare_tensor_reset(&content);
    tare_strbuf_free(&literal);
}

static void add_path(struct play *play, const char *name, const char *text) {
    struct tare_strbuf path = { 0 };
    struct tare_shape scalar = tare_shape_scalar();
    struct tare_tensor value;
    tare_strbuf_printf(&path, "%s/%s", TARE_SOURCE_DIR, text);
    check(play, tare_tensor_new(&value, TARE_DT_STRING, &scalar));
    check(play, tare_tensor_set_string(&value, 0, tare_strbuf_text(&path), path.size));
    add_constant(play, name, value);
    tare_strbuf_free(&path);
}

static void define(struct play *play, const char *text) {
    char *name = word(play, &text);
    const char *op;
    if (*text++ != '=') FAULT(play, "no known word, and no '='");
    text = section_skip_spaces(text);
    if (op_of_line(&op, play->line->text))
        add_node(play, name, text);
    else if (section_after(text, "file"))
        add_file(play, name, section_after(text, "file"));
    else if (section_after(text, "path"))
        add_path(play, name, section_after(text, "path"));
    else
        add_constant(play, name, read_tensor(play, text));
}

static void add_variable(struct play *play, const char *text) {
    const char *name = word(play, &text);
    struct tare_tensor value = read_tensor(play, text);
    struct tare_node *node = must(play, tare_graph_add(play->graph, "VarHandleOp", name), "no memory for", name);
    check(play, tare_node_set_type(node, "dtype", value.dtype));
    check(play, tare_node_set_shape(node, "shape", &value.shape));
    check(play, tare_node_resolve(node));
    mini_add_variable(play->model, node, value);
}

static void begin_function(struct play *play, const char *text) {
    const char *name = word(play, &text);
    play->graph = must(play, tare_model_add_function(play->model, name), "cannot make", name);
    while (*text != '\0') {
        char *arg = word(play, &text), *colon = strchr(arg, ':');
        const int dtype = colon ? tare_dtype_from_name(colon + 1, strlen(colon + 1)) : TARE_DT_INVALID;
        if (!dtype) FAULT(play, "argument %s has no dtype", arg);
        *colon = '\0';
        must(play, tare_graph_add_arg(play->graph, arg, dtype), "cannot make", arg);
    }
}

static void add_return(struct play *play, const char *text) {
    const char *name = word(play, &text);
    mini_return(play->graph, name, find_edge(play, word(play, &text)));
}

static void rewire(struct play *play, const char *text) {
    struct tare_node *node = find_node(play, word(play, &text));
    const size_t input = (size_t)atoi(word(play, &text));
    if (input >= node->n_inputs) FAULT(play, "%s has %zu inputs", node->name, node->n_inputs);
    tare_node_set_input(node, input, find_edge(play, word(play, &text)));
}

/* ---- runs ---- */

struct one_run {
    struct tare_edge feeds[MOST_EDGES], fetches[MOST_EDGES];
    struct tare_tensor values[MOST_EDGES], results[MOST_EDGES];
    struct tare_node *targets[MOST_EDGES];
    size_t n_feeds, n_fetches, n_targets;
    struct tolerance tolerance;
    const char *error;
};

static void list_wanted(struct play *play, struct one_run *run, const char *text, bool effect) {
    while (*text != '\0') {
        if (run->n_fetches == MOST_EDGES || run->n_targets == MOST_EDGES) FAULT(play, "too many edges");
        if (effect)
            run->targets[run->n_targets++] = find_node(play, word(play, &text));
        else
            run->fetches[run->n_fetches++] = find_edge(play, word(play, &text));
    }
}

/* Reads the lines after the run that belong to it, except outputs; returns their number. */
static size_t read_run(struct play *play, struct one_run *run, const char *const *lines, size_t count) {
    const struct section_line *first = play->line;
    size_t i = 1;
    for (; i < count; i++) {
        const char *text;
        play->line = first + i;
        if ((text = section_after(lines[i], "feed"))) {
            run->feeds[run->n_feeds] = find_edge(play, word(play, &text));
            run->values[run->n_feeds++] = read_tensor(play, text);
        } else if ((text = section_after(lines[i], "tol"))) {
            check(play, tolerance_from_text(&run->tolerance, text));
        } else if ((text = section_after(lines[i], "error"))) {
            run->error = text;
        } else if (!section_after(lines[i], "out") && !section_after(lines[i], "shape")) {
            break;
        }
    }
    play->line = first;
    return i;
}

static void compare(struct play *play, const struct tare_tensor *got, const char *text, struct tolerance tolerance) {
    struct tare_strbuf why = { 0 };
    struct tare_tensor expected = read_tensor(play, text);
    if (!tensors_agree(&why, got, &expected, tolerance)) FAULT(play, "%s", tare_strbuf_text(&why));
    tare_tensor_reset(&expected);
    tare_strbuf_free(&why);
}

static void compare_form(struct play *play, const struct tare_tensor *got, const char *text) {
    struct tare_strbuf form = { 0 };
    char shape[TARE_SHAPE_TEXT_SIZE];
    const size_t name = strcspn(text, " ");
    tare_strbuf_printf(&form, "%s %s", tare_dtype_name(got->dtype), tare_shape_text(shape, &got->shape));
    if (tare_dtype_from_name(text, name) != got->dtype || strcmp(section_skip_spaces(text + name), shape) != 0)
        FAULT(play, "got %s", tare_strbuf_text(&form));
    tare_strbuf_free(&form);
}

static void check_results(struct play *play, const struct one_run *run, const char *const *lines, size_t count) {
    const struct section_line *first = play->line;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        play->line = first + i;
        const char *out = section_after(lines[i], "out"), *form = section_after(lines[i], "shape");
        if (!out && !form) continue;
        if (at == run->n_fetches) FAULT(play, "more outputs than fetches");
        if (out)
            compare(play, &run->results[at], out, run->tolerance);
        else
            compare_form(play, &run->results[at], form);
        at++;
    }
    play->line = first;
    if (!run->error && at != run->n_fetches) FAULT(play, "%zu fetches have no `out`", run->n_fetches - at);
}

static void check_error(const struct play *play, tare_status status, const char *words) {
    if (status == TARE_OK) FAULT(play, "it went well (expected '%s')", words);
    if (!strstr(tare_error_text(), words)) FAULT(play, "the error is '%s' (expected '%s')", tare_error_text(), words);
}

static size_t play_run(struct play *play, const char *const *lines, size_t count, bool effect) {
    struct one_run *run = tare_calloc(1, sizeof *run);
    must(play, run, "no memory for", "a run");
    list_wanted(play, run, section_after(lines[0], effect ? "do" : "run"), effect);
    count = read_run(play, run, lines, count);
    tare_status status = TARE_OK;
    if (!play->session) status = tare_session_new(&play->session, play->model, NULL);
    if (status == TARE_OK)
        status = tare_session_run(play->session, run->feeds, run->values, run->n_feeds, run->fetches, run->results,
                                  run->n_fetches, run->targets, run->n_targets);
    if (run->error)
        check_error(play, status, run->error);
    else
        check(play, status);
    check_results(play, run, lines, count);
    for (size_t i = 0; i < run->n_feeds; i++)
        tare_tensor_reset(&run->values[i]);
    for (size_t i = 0; i < run->n_fetches; i++)
        if (run->results[i].dtype) tare_tensor_reset(&run->results[i]);
    tare_free(run);
    return count;
}

/* ---- scripts ---- */

static size_t play_line(struct play *play, const char *const *lines, size_t count) {
    const char *line = lines[0], *text;
    if ((text = section_after(line, "run"))) return play_run(play, lines, count, false);
    if ((text = section_after(line, "do"))) return play_run(play, lines, count, true);
    if ((text = section_after(line, "var"))) {
        add_variable(play, text);
    } else if ((text = section_after(line, "def"))) {
        begin_function(play, text);
    } else if ((text = section_after(line, "return"))) {
        add_return(play, text);
    } else if ((text = section_after(line, "rewire"))) {
        rewire(play, text);
    } else if ((text = section_after(line, "init"))) {
        play->model->init_node = find_node(play, word(play, &text));
    } else if (section_after(line, "end")) {
        play->graph = play->model->main;
    } else if (section_after(line, "session")) {
        tare_session_free(play->session);
        play->session = NULL;
    } else if (!section_after(line, "types")) {
        define(play, line);
    }
    return 1;
}

void script_file_run(const struct script_file *file, size_t i) {
    const struct section *section = &file->text.sections[i];
    const size_t first = section->first + 1, count = section->end - first;
    struct play play = { .file = file, .line = &file->text.lines[first], .model = mini_model_new() };
    const char **lines = TARE_NEW_ARRAY(&play.arena, const char *, count + 1);
    play.graph = play.model->main;
    must(&play, lines, "no memory for", file->names[i]);
    for (size_t k = 0; k < count; k++)
        lines[k] = must(&play, section_substitute(&play.arena, file->text.lines[first + k].text, section->type),
                        "no memory", "");
    for (size_t k = 0; k < count;) {
        play.line = &file->text.lines[first + k];
        k += play_line(&play, lines + k, count - k);
    }
    tare_session_free(play.session);
    tare_model_free(play.model);
    tare_opspec_memory_free(&play.memory);
    tare_arena_free(&play.arena);
}
