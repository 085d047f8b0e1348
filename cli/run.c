/* tare run: runs a signature on samples or arrays and writes the outputs. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "eval/model_inputs.h"
#include "eval/runner.h"
#include "convert/saved_model.h"
#include "datasets/npy.h"
#include "graph/session.h"

#include <stdio.h>
#include <string.h>

struct run_options {
    const char *model, *signature, *output_dir;
    struct tare_option_list data, inputs;
    int64_t limit;
    int batch;
    bool profile, check_numerics, trace, reference;
};

static const struct tare_option rows[] = {
    { .name = "data", .kind = TARE_OPTION_LIST, .offset = offsetof(struct run_options, data), .placeholder = "FILE",
      .help = "TFRecord of RepresentativeDataSample records (plain, GZIP or ZLIB); a pattern or several" },
    { .name = "input", .kind = TARE_OPTION_LIST, .offset = offsetof(struct run_options, inputs),
      .placeholder = "NAME=FILE", .help = "a .npy file for one input, instead of --data" },
    { .name = "signature", .kind = TARE_OPTION_STRING, .offset = offsetof(struct run_options, signature),
      .placeholder = "S", .help = "signature to run (default serving_default)" },
    { .name = "output-dir", .kind = TARE_OPTION_STRING, .offset = offsetof(struct run_options, output_dir),
      .placeholder = "DIR", .help = "write each output to DIR/<output>.npy, strings to .txt" },
    { .name = "limit", .kind = TARE_OPTION_INT64, .offset = offsetof(struct run_options, limit), .min = 0, .max = 1e15,
      .help = "samples to run (default all)" },
    { .name = "batch", .kind = TARE_OPTION_INT, .offset = offsetof(struct run_options, batch), .fallback = "1", .min = 1,
      .max = 65536, .help = "samples to put together on axis 0" },
    { .name = "profile", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct run_options, profile),
      .help = "print the time of the slowest nodes" },
    { .name = "check-numerics", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct run_options, check_numerics),
      .help = "stop at the first NaN or infinity and name its node" },
    { .name = "trace", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct run_options, trace),
      .help = "print each node with its shapes as it runs" },
    { .name = "reference", .kind = TARE_OPTION_FLAG, .offset = offsetof(struct run_options, reference),
      .help = "use the plain kernels" },
    { 0 },
};
static const struct tare_argument arguments[] = {
    { .name = "MODEL", .offset = offsetof(struct run_options, model), .help = "SavedModel directory",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = {
    "tare run my_model --data samples.tfrecord.gz --output-dir answers",
    "tare run my_model --input image=image.npy",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare run",
    .summary = "Runs a signature of a SavedModel on the CPU. Rows of the records are concatenated on axis 0 where the "
               "signature leaves the first dimension of its outputs open, else stacked on a new axis.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

/* ---- outputs ---- */

/* One output being written: rows of one shape, or text. */
struct sink {
    const struct tare_binding *binding;
    struct tare_npy_writer *npy;
    struct tare_output_file text;
    bool is_text, open, stacked;
    struct tare_shape row;
    int64_t records;
};

struct run_state {
    const struct run_options *options;
    struct tare_model *model;
    const struct tare_signature *signature;
    struct tare_session *session;
    struct sink *sinks;
};

/* "/" in names is written "__". */
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

/* Concatenated when the signature leaves the output's first dimension open, stacked otherwise. */
static bool is_stacked(const struct tare_shape *declared, const struct tare_tensor *value) {
    bool open = declared->rank >= 1 && declared->dims[0] < 0;
    return value->shape.rank == 0 || !open;
}

static tare_status open_sink(struct sink *sink, const struct run_state *state, const struct tare_tensor *value) {
    char *path;
    tare_status status;
    sink->stacked = is_stacked(&sink->binding->shape, value);
    sink->is_text = value->dtype == TARE_DT_STRING;
    sink->row = value->shape;
    if (!sink->stacked) {
        memmove(sink->row.dims, sink->row.dims + 1, (size_t)(value->shape.rank - 1) * sizeof *sink->row.dims);
        sink->row.rank--;
    }
    path = output_path(state->options->output_dir, sink->binding->key, sink->is_text ? ".txt" : ".npy");
    if (!path) return TARE_NO_MEMORY;
    status = sink->is_text ? tare_output_file_begin(&sink->text, path)
                           : tare_npy_create(&sink->npy, path, value->dtype, &sink->row);
    sink->open = status == TARE_OK;
    tare_free(path);
    return status;
}

/* As Python writes bytes: printable ASCII as it is, \\, \t, \n, \r, and \xhh for the rest. */
static void escape(struct tare_strbuf *line, const struct tare_str *text) {
    for (size_t i = 0; i < text->size; i++) {
        unsigned char c = (unsigned char)text->data[i];
        switch (c) {
        case '\\': tare_strbuf_puts(line, "\\\\"); break;
        case '\t': tare_strbuf_puts(line, "\\t"); break;
        case '\n': tare_strbuf_puts(line, "\\n"); break;
        case '\r': tare_strbuf_puts(line, "\\r"); break;
        default:
            if (c < 0x20 || c > 0x7e)
                tare_strbuf_printf(line, "\\x%02x", c);
            else
                tare_strbuf_putc(line, (char)c);
        }
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
    char wanted[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE];
    if (!sink->stacked && row.rank > 0) {
        memmove(row.dims, row.dims + 1, (size_t)(row.rank - 1) * sizeof *row.dims);
        row.rank--;
    }
    if (tare_shape_equal(&row, &sink->row)) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "output %s: rows of shape %s and of %s cannot go into one array", sink->binding->key,
                     tare_shape_text(wanted, &sink->row), tare_shape_text(got, &row));
}

static tare_status write_output(struct sink *sink, const struct run_state *state, const struct tare_tensor *value) {
    if (!sink->open) TARE_TRY(open_sink(sink, state, value));
    sink->records++;
    if (sink->is_text) return write_strings(sink, value);
    TARE_TRY(check_row(sink, value));
    return tare_npy_append(sink->npy, value);
}

static tare_status commit_sinks(struct run_state *state) {
    for (size_t i = 0; i < state->signature->n_outputs; i++) {
        struct sink *sink = &state->sinks[i];
        if (!sink->open) continue;
        sink->open = false;
        TARE_TRY(sink->is_text ? tare_output_file_commit(&sink->text) : tare_npy_commit(sink->npy));
    }
    return TARE_OK;
}

static void abort_sinks(struct run_state *state) {
    for (size_t i = 0; state->sinks && i < state->signature->n_outputs; i++) {
        struct sink *sink = &state->sinks[i];
        if (!sink->open) continue;
        if (sink->is_text)
            tare_output_file_abort(&sink->text);
        else
            tare_npy_abort(sink->npy);
    }
}

/* A few values, for a look without files. */
static void print_value(const struct tare_binding *binding, const struct tare_tensor *value) {
    enum { SHOWN = 12 };
    char shape[TARE_SHAPE_TEXT_SIZE];
    printf("%s %s%s", binding->key, tare_dtype_name(value->dtype), tare_shape_text(shape, &value->shape));
    for (int64_t i = 0; i < value->elements && i < SHOWN; i++) {
        if (value->dtype == TARE_DT_STRING) {
            struct tare_strbuf text = { 0 };
            tare_strbuf_escape(&text, TARE_CONST_DATA(struct tare_str, value)[i].data,
                               TARE_CONST_DATA(struct tare_str, value)[i].size);
            printf(" \"%s\"", tare_strbuf_text(&text));
            tare_strbuf_free(&text);
        } else if (tare_dtype_is_floating(value->dtype)) {
            printf(" %.6g", tare_tensor_get_f64(value, i));
        } else {
            printf(" %lld", (long long)tare_tensor_get_i64(value, i));
        }
    }
    printf("%s\n", value->elements > SHOWN ? " …" : "");
}

/* ---- running ---- */

static tare_status take_outputs(struct run_state *state, const struct tare_tensor *outputs) {
    for (size_t i = 0; i < state->signature->n_outputs; i++) {
        if (state->options->output_dir)
            TARE_TRY(write_output(&state->sinks[i], state, &outputs[i]));
        else
            print_value(&state->signature->outputs[i], &outputs[i]);
    }
    return TARE_OK;
}

static tare_status on_record(void *arg, const struct tare_sample *sample, const struct tare_provenance *where,
                             const struct tare_tensor *outputs) {
    (void)sample;
    (void)where;
    return take_outputs(arg, outputs);
}

static tare_status run_samples(struct run_state *state) {
    struct tare_runner_options options = { .paths = state->options->data.items,
                                           .n_paths = state->options->data.count,
                                           .limit = state->options->limit,
                                           .batch = state->options->batch,
                                           .interrupted = &tare_interrupted };
    return tare_run_records(state->session, state->signature, &options, on_record, state);
}

static const char *input_file(const struct tare_option_list *inputs, const char *name) {
    size_t size = strlen(name);
    for (size_t i = 0; i < inputs->count; i++)
        if (strncmp(inputs->items[i], name, size) == 0 && inputs->items[i][size] == '=') return inputs->items[i] + size + 1;
    return NULL;
}

static tare_status read_arrays(struct tare_tensor *values, struct tare_edge *feeds, const struct run_state *state,
                               size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct tare_feed feed;
        const char *file;
        tare_signature_feed(&feed, state->signature, i);
        file = input_file(&state->options->inputs, feed.name);
        if (!file) return TARE_FAIL(TARE_USAGE, "--input %s=FILE.npy is missing", feed.name);
        TARE_TRY(tare_npy_read(&values[i], file));
        feeds[i] = feed.edge;
    }
    return TARE_OK;
}

static tare_status run_arrays(struct run_state *state) {
    size_t n_feeds = tare_signature_feed_count(state->signature), n_outputs = state->signature->n_outputs;
    struct tare_tensor *tensors = tare_calloc(n_feeds + n_outputs + 1, sizeof *tensors);
    struct tare_edge *edges = tare_calloc(n_feeds + n_outputs + 1, sizeof *edges);
    tare_status status = tensors && edges ? read_arrays(tensors, edges, state, n_feeds) : TARE_NO_MEMORY;
    for (size_t i = 0; i < n_outputs && status == TARE_OK; i++) edges[n_feeds + i] = state->signature->outputs[i].edge;
    if (status == TARE_OK)
        status = tare_session_run(state->session, edges, tensors, n_feeds, edges + n_feeds, tensors + n_feeds, n_outputs,
                                  NULL, 0);
    if (status == TARE_OK) status = take_outputs(state, tensors + n_feeds);
    for (size_t i = 0; tensors && i < n_feeds + n_outputs; i++) tare_tensor_reset(&tensors[i]);
    tare_free(tensors);
    tare_free(edges);
    return status;
}

/* ---- the command ---- */

static tare_status check_ops(const struct run_state *state) {
    struct tare_strbuf missing = { 0 };
    size_t count = tare_session_missing_ops(state->model, state->signature, &missing);
    tare_status status = TARE_OK;
    if (count) {
        char *newline;
        if (missing.size) missing.data[missing.size - 1] = '\0';
        while (missing.data && (newline = strchr(missing.data, '\n')) != NULL) *newline = ';';
        status = TARE_FAIL(TARE_UNSUPPORTED, "%s: the interpreter lacks %zu ops, bring them with --plugin LIB.so:%s",
                           state->model->path, count, tare_strbuf_text(&missing));
    }
    tare_strbuf_free(&missing);
    return status;
}

static tare_status print_profile(const struct tare_session *session) {
    enum { SHOWN = 25 };
    struct tare_arena arena = { 0 };
    struct tare_profile_row *profile;
    size_t count;
    int64_t total = 0;
    tare_status status = tare_session_profile(&profile, &count, &arena, session);
    for (size_t i = 0; i < count && status == TARE_OK; i++) total += profile[i].nanoseconds;
    if (status == TARE_OK) fprintf(stderr, "%10s %6s %8s  %-24s %s\n", "ms", "%", "calls", "op", "node");
    for (size_t i = 0; i < count && i < SHOWN && status == TARE_OK; i++)
        fprintf(stderr, "%10.3f %6.2f %8lld  %-24s %s\n", (double)profile[i].nanoseconds / 1e6,
                total ? 100.0 * (double)profile[i].nanoseconds / (double)total : 0, (long long)profile[i].calls,
                profile[i].node->op, profile[i].node->name);
    tare_arena_free(&arena);
    return status;
}

static tare_status prepare(struct run_state *state) {
    const struct run_options *options = state->options;
    struct tare_session_options session = { .profile = options->profile,
                                            .check_numerics = options->check_numerics,
                                            .trace = options->trace,
                                            .use_reference_kernels = options->reference };
    size_t existed;
    TARE_TRY(tare_saved_model_load(&state->model, options->model, NULL));
    TARE_TRY(tare_pick_signature(&state->signature, state->model, options->signature));
    TARE_TRY(check_ops(state));
    state->sinks = tare_calloc(state->signature->n_outputs + 1, sizeof *state->sinks);
    if (!state->sinks) return TARE_NO_MEMORY;
    for (size_t i = 0; i < state->signature->n_outputs; i++) state->sinks[i].binding = &state->signature->outputs[i];
    TARE_TRY(tare_session_new(&state->session, state->model, &session));
    return options->output_dir ? tare_file_make_folders(options->output_dir, &existed) : TARE_OK;
}

static tare_status run(int argc, char *const *argv) {
    struct run_options options;
    struct run_state state = { .options = &options };
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    if (options.data.count && options.inputs.count) {
        status = TARE_FAIL(TARE_USAGE, "give either --data or --input");
        goto done;
    }
    TARE_CHECK(prepare(&state));
    status = options.data.count ? run_samples(&state) : run_arrays(&state);
    if (status == TARE_OK) status = commit_sinks(&state);
    if (status == TARE_OK && options.profile) status = print_profile(state.session);
done:
    abort_sinks(&state);
    tare_session_free(state.session);
    tare_free(state.sinks);
    tare_model_free(state.model);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_run = {
    .name = "run", .summary = "run a signature on the CPU", .run = run, .options = &set
};
