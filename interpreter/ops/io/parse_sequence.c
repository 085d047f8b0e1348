/* ParseSequenceExample, ParseSequenceExampleV2 and ParseSingleSequenceExample: parses serialized tf.SequenceExample
 * messages into tensors. A message has a context, whose features are parsed like those of a tf.Example, and feature
 * lists, which add one dimension: the step. */
#include "base/alloc.h"
#include "base/map.h"
#include "interpreter/ops/io/example_wire.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"

#include <string.h>

enum kind { SPARSE, DENSE, RAGGED };

struct column {
    struct tare_str key;
    bool in_list; /* a feature list, not a context feature */
    enum kind kind;
    int dtype, splits_dtype;
    size_t output, step;     /* its first tensor; the others follow at a distance of `step` */
    struct tare_shape shape; /* dense: shape of one value (of one step) */
    int64_t elements;        /* number of elements of shape */
    size_t default_input;    /* dense context feature */
    bool may_be_missing;     /* dense feature list */
};

/* One column of one example: the features of its steps; a context column has at most one. */
struct cell {
    struct tare_feature *steps;
    int64_t *counts; /* number of values per step */
    int64_t n_steps;
    bool present;
    struct tare_str bytes; /* bytes of a feature list */
};

struct parse {
    struct tare_kernel *kernel;
    struct column *columns;
    size_t n_columns;
    bool single; /* one example; outputs without batch dimension */
    bool lengths;
    int64_t batch, example;
    struct cell *cells; /* [batch][columns] */
    struct tare_map contexts, lists;
};

/* ---- the columns ---- */

/* One group of columns: the attributes with its types and shapes and the inputs with its keys. */
struct group {
    bool in_list;
    enum kind kind;
    const char *types, *shapes, *splits, *keys;
    size_t key_input; /* ParseSequenceExampleV2 */
};

static const struct group groups[] = {
    { false, SPARSE, "context_sparse_types", NULL, NULL, "context_sparse_keys", 2 },
    { false, DENSE, "Tcontext_dense", "context_dense_shapes", NULL, "context_dense_keys", 3 },
    { false, RAGGED, "context_ragged_value_types", NULL, "context_ragged_split_types", NULL, 4 },
    { true, SPARSE, "feature_list_sparse_types", NULL, NULL, "feature_list_sparse_keys", 5 },
    { true, DENSE, "feature_list_dense_types", "feature_list_dense_shapes", NULL, "feature_list_dense_keys", 6 },
    { true, RAGGED, "feature_list_ragged_value_types", NULL, "feature_list_ragged_split_types", NULL, 7 },
};
enum { GROUPS = sizeof groups / sizeof *groups };

static size_t count_of(const struct tare_node *node, const char *name) {
    const struct tare_attr *attr = name ? tare_node_list(node, name) : NULL;
    return attr ? attr->count : 0;
}

/* Number of output tensors of a column. */
static size_t tensors_of(const struct group *group, bool lengths) {
    if (group->kind == SPARSE) return 3;
    if (group->kind == RAGGED) return group->in_list ? 3 : 2;
    return group->in_list && lengths ? 2 : 1;
}

static tare_status dense_shape(struct column *column, const struct tare_node *node, const struct group *group,
                               size_t i) {
    const struct tare_attr *shapes = tare_node_list(node, group->shapes);
    if (!shapes || i >= shapes->count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s has %zu entries for more keys", group->shapes,
                         shapes ? shapes->count : 0);
    column->shape = *shapes->items[i].shape;
    return tare_error_prefix(tare_shape_elements(&column->elements, &column->shape), "%s[%zu]", group->shapes, i);
}

/* Builds the columns in output order; `defaults` is the index of the first default input. */
static tare_status make_columns(struct parse *parse, struct tare_arena *arena, const struct tare_node *node,
                                size_t n_outputs) {
    size_t output = 0, at = 0, total = 0, defaults = tare_node_is(node, "ParseSequenceExampleV2") ? 9 : 2;
    parse->lengths = !tare_node_is(node, "ParseSingleSequenceExample");
    for (size_t g = 0; g < GROUPS; g++) {
        total += count_of(node, groups[g].types);
        if (!parse->lengths && groups[g].keys)
            defaults += count_of(node, groups[g].types); /* the keys are inputs of that op */
    }
    parse->n_columns = total;
    parse->columns = TARE_NEW_ARRAY(arena, struct column, total + 1);
    if (!parse->columns) return TARE_NO_MEMORY;
    for (size_t g = 0; g < GROUPS; g++) {
        const struct tare_attr *types = tare_node_list(node, groups[g].types);
        const struct tare_attr *splits = groups[g].splits ? tare_node_list(node, groups[g].splits) : NULL;
        const size_t n = count_of(node, groups[g].types);
        if (groups[g].splits && count_of(node, groups[g].splits) != n)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s and %s have different lengths", groups[g].types,
                             groups[g].splits);
        for (size_t i = 0; i < n; i++) {
            struct column *column = &parse->columns[at++];
            *column = (struct column){ .in_list = groups[g].in_list,
                                       .kind = groups[g].kind,
                                       .dtype = types->items[i].type,
                                       .splits_dtype = splits ? splits->items[i].type : 0,
                                       .output = output + i,
                                       .step = n,
                                       .default_input = defaults + i };
            if (column->kind == DENSE) TARE_TRY(dense_shape(column, node, &groups[g], i));
        }
        output += n * tensors_of(&groups[g], parse->lengths);
    }
    if (output != n_outputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the lists of types require %zu outputs (the node has %zu)", output,
                         n_outputs);
    return TARE_OK;
}

/* ---- keys ---- */

/* Reads key i of a group; `input` counts the scalar key inputs of ParseSingleSequenceExample. */
static tare_status read_key(struct tare_str *key, const struct tare_kernel *kernel, const struct group *group, size_t i,
                            size_t *input) {
    const struct tare_attr *attr;
    if (tare_node_is(kernel->node, "ParseSequenceExampleV2")) {
        const struct tare_tensor *keys = &kernel->inputs[group->key_input];
        if ((int64_t)i >= keys->elements)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%lld keys for more entries of %s", (long long)keys->elements,
                             group->types);
        *key = tare_text_at(keys, (int64_t)i);
        return TARE_OK;
    }
    if (tare_node_is(kernel->node, "ParseSingleSequenceExample")) {
        const struct tare_tensor *one = &kernel->inputs[(*input)++];
        if (one->elements != 1)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected %s[%zu] to be a scalar", group->keys, i);
        *key = tare_text_at(one, 0);
        return TARE_OK;
    }
    attr = tare_node_list(kernel->node, group->keys);
    if (!attr || i >= attr->count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s has fewer entries than %s", group->keys, group->types);
    *key = attr->items[i].s;
    return TARE_OK;
}

static tare_status add_key(struct parse *parse, struct column *column) {
    struct tare_map *map = column->in_list ? &parse->lists : &parse->contexts;
    if (tare_map_get_n(map, column->key.data, column->key.size))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "key '%.*s' is listed twice", (int)column->key.size, column->key.data);
    return tare_map_set_n(map, column->key.data, column->key.size, column) ? TARE_OK : TARE_NO_MEMORY;
}

static bool same_text(struct tare_str a, struct tare_str b) {
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* Whether dense list i may be absent: V2 has one bool per list, the other ops a list of names. */
static tare_status read_missing(struct column *column, const struct tare_kernel *kernel, size_t i) {
    const struct tare_attr *names = tare_node_list(kernel->node, "feature_list_dense_missing_assumed_empty");
    if (tare_node_is(kernel->node, "ParseSequenceExampleV2")) {
        if ((int64_t)i >= kernel->inputs[8].elements)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "feature_list_dense_missing_assumed_empty has %lld entries",
                             (long long)kernel->inputs[8].elements);
        column->may_be_missing = TARE_CONST_DATA(bool, &kernel->inputs[8])[i];
    } else if (tare_node_is(kernel->node, "ParseSingleSequenceExample")) {
        for (int64_t k = 0; k < kernel->inputs[1].elements; k++)
            column->may_be_missing |= same_text(tare_text_at(&kernel->inputs[1], k), column->key);
    } else {
        for (size_t k = 0; names && k < names->count; k++)
            column->may_be_missing |= same_text(names->items[k].s, column->key);
    }
    return TARE_OK;
}

static tare_status read_keys(struct parse *parse) {
    const struct tare_kernel *kernel = parse->kernel;
    size_t at = 0, input = 2;
    for (size_t g = 0; g < GROUPS; g++)
        for (size_t i = 0; i < count_of(kernel->node, groups[g].types); i++) {
            struct column *column = &parse->columns[at++];
            TARE_TRY(read_key(&column->key, kernel, &groups[g], i, &input));
            if (column->in_list && column->kind == DENSE) TARE_TRY(read_missing(column, kernel, i));
            TARE_TRY(add_key(parse, column));
        }
    return TARE_OK;
}

/* ---- parsing ---- */

static struct cell *cell_of(const struct parse *parse, const struct column *column, int64_t example) {
    return &parse->cells[(size_t)example * parse->n_columns + (size_t)(column - parse->columns)];
}

/* The values of a context feature are stored as its only step; a list's bytes are kept until its steps are counted. */
static void take_context(void *arg, struct tare_str name, struct tare_feature feature) {
    struct parse *parse = arg;
    struct column *column = tare_map_get_n(&parse->contexts, name.data, name.size);
    struct cell *cell = column ? cell_of(parse, column, parse->example) : NULL;
    if (!cell || !cell->steps) return;
    cell->present = feature.dtype != TARE_DT_INVALID;
    cell->n_steps = cell->present;
    cell->steps[0] = feature;
}

static void take_list(void *arg, struct tare_str name, struct tare_str bytes) {
    struct parse *parse = arg;
    struct column *column = tare_map_get_n(&parse->lists, name.data, name.size);
    if (!column) return;
    cell_of(parse, column, parse->example)->present = true;
    cell_of(parse, column, parse->example)->bytes = bytes;
}

static void take_step(void *arg, struct tare_feature feature) {
    struct cell *cell = arg;
    cell->steps[cell->n_steps++] = feature;
}

static tare_status feature_error(const struct parse *parse, const struct column *column, int64_t example,
                                 const char *what) {
    const struct tare_tensor *names =
        &parse->kernel
             ->inputs[tare_node_is(parse->kernel->node, "ParseSingleSequenceExample") ? parse->kernel->n_inputs - 1
                                                                                      : 1];
    struct tare_str name = { "<unknown>", 9 };
    if (example < names->elements) name = tare_text_at(names, example);
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "Name: %.*s, Key: %.*s, Index: %lld.  %s", (int)name.size, name.data,
                     (int)column->key.size, column->key.data, (long long)example, what);
}

static tare_status open_list(struct parse *parse, const struct column *column, struct cell *cell) {
    int64_t count;
    if (!tare_feature_list_each(&count, cell->bytes, NULL, NULL))
        return feature_error(parse, column, parse->example, "Can't parse serialized Example.");
    cell->steps = TARE_NEW_ARRAY(parse->kernel->scratch, struct tare_feature, (size_t)count + 1);
    if (!cell->steps) return TARE_NO_MEMORY;
    if (!tare_feature_list_each(&count, cell->bytes, take_step, cell))
        return feature_error(parse, column, parse->example, "Can't parse serialized Example.");
    return TARE_OK;
}

static tare_status check_missing(const struct parse *parse, const struct column *column, const struct cell *cell) {
    if (cell->present || column->kind != DENSE || !column->elements) return TARE_OK;
    if (column->in_list && !column->may_be_missing)
        return feature_error(parse, column, parse->example,
                             "Feature list is required but could not be found.  Did you mean to include it in "
                             "feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?");
    if (!column->in_list && !parse->kernel->inputs[column->default_input].elements)
        return feature_error(parse, column, parse->example, "Feature is required but could not be found.");
    return TARE_OK;
}

/* Counts the values of each step and checks them against the column. An empty step matches any type. */
static tare_status count_values(struct parse *parse, const struct column *column, struct cell *cell) {
    cell->counts = TARE_NEW_ARRAY(parse->kernel->scratch, int64_t, (size_t)cell->n_steps + 1);
    if (!cell->counts) return TARE_NO_MEMORY;
    for (int64_t s = 0; s < cell->n_steps; s++) {
        const struct tare_feature *step = &cell->steps[s];
        if (step->dtype != TARE_DT_INVALID) {
            if (step->dtype != column->dtype)
                return feature_error(parse, column, parse->example, "Data types don't match.");
            if (!tare_feature_count(&cell->counts[s], step))
                return feature_error(parse, column, parse->example, "Can't parse serialized Example.");
        }
        if (column->kind == DENSE && cell->counts[s] != column->elements)
            return feature_error(parse, column, parse->example, "Number of values != expected.");
    }
    return TARE_OK;
}

static tare_status read_example(struct parse *parse) {
    struct tare_str text = tare_text_at(&parse->kernel->inputs[0], parse->example);
    for (size_t c = 0; c < parse->n_columns; c++) {
        struct cell *cell = cell_of(parse, &parse->columns[c], parse->example);
        if (parse->columns[c].in_list) continue;
        cell->steps = TARE_NEW_ARRAY(parse->kernel->scratch, struct tare_feature, 1);
        if (!cell->steps) return TARE_NO_MEMORY;
    }
    if (!tare_sequence_each(text, take_context, take_list, parse))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Could not parse example input %lld of %zu bytes",
                         (long long)parse->example, text.size);
    for (size_t c = 0; c < parse->n_columns; c++) {
        const struct column *column = &parse->columns[c];
        struct cell *cell = cell_of(parse, column, parse->example);
        if (column->in_list) TARE_TRY(open_list(parse, column, cell));
        TARE_TRY(check_missing(parse, column, cell));
        TARE_TRY(count_values(parse, column, cell));
    }
    return TARE_OK;
}

/* ---- the outputs ---- */

struct totals {
    int64_t values, steps, most_values, most_steps; /* over all examples; maximum per step; maximum per example */
};

static struct totals total_of(const struct parse *parse, const struct column *column) {
    struct totals t = { 0 };
    for (int64_t e = 0; e < parse->batch; e++) {
        const struct cell *cell = cell_of(parse, column, e);
        t.steps += cell->n_steps;
        if (cell->n_steps > t.most_steps) t.most_steps = cell->n_steps;
        for (int64_t s = 0; s < cell->n_steps; s++) {
            t.values += cell->counts[s];
            if (cell->counts[s] > t.most_values) t.most_values = cell->counts[s];
        }
    }
    return t;
}

static tare_status read_values(const struct parse *parse, const struct column *column, int64_t example, int64_t step,
                               size_t output, int64_t at) {
    const struct cell *cell = cell_of(parse, column, example);
    bool malformed;
    if (!cell->counts[step]) return TARE_OK;
    TARE_TRY(tare_feature_read(&parse->kernel->outputs[output], at, &cell->steps[step], &malformed));
    return malformed ? feature_error(parse, column, example, "Can't parse serialized Example.") : TARE_OK;
}

/* Writes all values contiguously. */
static tare_status write_values(const struct parse *parse, const struct column *column, size_t output, int64_t total) {
    struct tare_shape vector = tare_operand_vector_shape(total);
    int64_t at = 0;
    TARE_TRY(tare_kernel_output(parse->kernel, output, column->dtype, &vector));
    for (int64_t e = 0; e < parse->batch; e++)
        for (int64_t s = 0; s < cell_of(parse, column, e)->n_steps; s++) {
            TARE_TRY(read_values(parse, column, e, s, output, at));
            at += cell_of(parse, column, e)->counts[s];
        }
    return TARE_OK;
}

static tare_status write_sparse(const struct parse *parse, const struct column *column) {
    const struct totals t = total_of(parse, column);
    const int rank = 1 + !parse->single + column->in_list;
    struct tare_kernel *kernel = parse->kernel;
    struct tare_shape matrix = tare_shape_make(2, t.values, (int64_t)rank), dense = tare_operand_vector_shape(rank);
    int64_t *index, *dims;
    TARE_TRY(tare_kernel_output(kernel, column->output, TARE_DT_INT64, &matrix));
    TARE_TRY(write_values(parse, column, column->output + column->step, t.values));
    TARE_TRY(tare_kernel_output(kernel, column->output + 2 * column->step, TARE_DT_INT64, &dense));
    index = kernel->outputs[column->output].data;
    for (int64_t e = 0; e < parse->batch; e++)
        for (int64_t s = 0; s < cell_of(parse, column, e)->n_steps; s++)
            for (int64_t k = 0; k < cell_of(parse, column, e)->counts[s]; k++) {
                if (!parse->single) *index++ = e;
                if (column->in_list) *index++ = s;
                *index++ = k;
            }
    dims = kernel->outputs[column->output + 2 * column->step].data;
    if (!parse->single) *dims++ = parse->batch;
    if (column->in_list) *dims++ = t.most_steps;
    *dims = t.most_values;
    return TARE_OK;
}

/* For a single example the outer splits carry no information and are empty. */
static tare_status write_outer_splits(const struct parse *parse, const struct column *column, size_t output) {
    struct tare_shape splits = tare_operand_vector_shape(parse->single ? 0 : parse->batch + 1);
    struct tare_tensor *out = &parse->kernel->outputs[output];
    int64_t at = 0;
    TARE_TRY(tare_kernel_output(parse->kernel, output, column->splits_dtype, &splits));
    for (int64_t e = 0; e <= parse->batch && !parse->single; e++) {
        tare_text_set_index(out, e, at);
        if (e == parse->batch) break;
        const struct cell *cell = cell_of(parse, column, e);
        at += column->in_list ? cell->n_steps : cell->n_steps ? cell->counts[0] : 0;
    }
    return TARE_OK;
}

static tare_status write_inner_splits(const struct parse *parse, const struct column *column, size_t output,
                                      int64_t steps) {
    struct tare_shape splits = tare_operand_vector_shape(steps + 1);
    struct tare_tensor *out = &parse->kernel->outputs[output];
    int64_t at = 0, i = 0;
    TARE_TRY(tare_kernel_output(parse->kernel, output, column->splits_dtype, &splits));
    tare_text_set_index(out, i++, 0);
    for (int64_t e = 0; e < parse->batch; e++)
        for (int64_t s = 0; s < cell_of(parse, column, e)->n_steps; s++)
            tare_text_set_index(out, i++, at += cell_of(parse, column, e)->counts[s]);
    return TARE_OK;
}

static tare_status write_ragged(const struct parse *parse, const struct column *column) {
    const struct totals t = total_of(parse, column);
    TARE_TRY(write_values(parse, column, column->output, t.values));
    TARE_TRY(write_outer_splits(parse, column, column->output + column->step));
    return column->in_list ? write_inner_splits(parse, column, column->output + 2 * column->step, t.steps) : TARE_OK;
}

static tare_status write_lengths(const struct parse *parse, const struct column *column) {
    const size_t output = column->output + column->step;
    struct tare_shape shape = parse->single ? tare_shape_scalar() : tare_operand_vector_shape(parse->batch);
    TARE_TRY(tare_kernel_output(parse->kernel, output, TARE_DT_INT64, &shape));
    for (int64_t e = 0; e < parse->batch; e++)
        TARE_DATA(int64_t, &parse->kernel->outputs[output])[e] = cell_of(parse, column, e)->n_steps;
    return TARE_OK;
}

/* Steps that an example lacks are zero. */
static tare_status write_dense(const struct parse *parse, const struct column *column) {
    const int64_t rows = column->in_list ? total_of(parse, column).most_steps : 1;
    struct tare_shape shape = { .rank = 0 };
    struct tare_kernel *kernel = parse->kernel;
    struct tare_tensor *out = &kernel->outputs[column->output];
    if (!parse->single) shape.dims[shape.rank++] = parse->batch;
    if (column->in_list) shape.dims[shape.rank++] = rows;
    TARE_TRY(tare_operand_append(&shape, &column->shape, 0, column->shape.rank));
    TARE_TRY(tare_kernel_output(kernel, column->output, column->dtype, &shape));
    for (int64_t e = 0; e < parse->batch; e++) {
        const struct cell *cell = cell_of(parse, column, e);
        const int64_t first = e * rows * column->elements;
        for (int64_t s = 0; s < cell->n_steps; s++)
            TARE_TRY(read_values(parse, column, e, s, column->output, first + s * column->elements));
        if (!column->in_list && !cell->present) {
            const struct tare_tensor *fallback = &kernel->inputs[column->default_input];
            if (fallback->dtype != column->dtype)
                return feature_error(parse, column, e, "the default has another dtype");
            if (fallback->elements != column->elements)
                return feature_error(parse, column, e, "the default has another number of elements");
            TARE_TRY(tare_move_run(out, first, fallback, 0, column->elements));
        } else {
            tare_move_zero(out, first + cell->n_steps * column->elements, (rows - cell->n_steps) * column->elements);
        }
    }
    return column->in_list && parse->lengths ? write_lengths(parse, column) : TARE_OK;
}

static tare_status parse_all(struct parse *parse) {
    size_t cells;
    TARE_TRY(make_columns(parse, parse->kernel->scratch, parse->kernel->node, parse->kernel->n_outputs));
    TARE_TRY(read_keys(parse));
    if (!tare_mul_size(&cells, (size_t)parse->batch, parse->n_columns)) return TARE_FAIL(TARE_NO_MEMORY, "too large");
    parse->cells = TARE_NEW_ARRAY(parse->kernel->scratch, struct cell, cells + 1);
    if (!parse->cells) return TARE_NO_MEMORY;
    for (parse->example = 0; parse->example < parse->batch; parse->example++)
        TARE_TRY(read_example(parse));
    for (size_t c = 0; c < parse->n_columns; c++) {
        const struct column *column = &parse->columns[c];
        TARE_TRY(column->kind == SPARSE  ? write_sparse(parse, column)
                 : column->kind == DENSE ? write_dense(parse, column)
                                         : write_ragged(parse, column));
    }
    return TARE_OK;
}

/* The required rank of `serialized`; -1: a scalar or a vector. */
static int rank_of_form(const struct tare_node *node) {
    return tare_node_is(node, "ParseSingleSequenceExample") ? 0 : tare_node_is(node, "ParseSequenceExample") ? 1 : -1;
}

static tare_status run_parse(struct tare_kernel *kernel) {
    const struct tare_tensor *serialized = &kernel->inputs[0];
    const int expected = rank_of_form(kernel->node);
    struct parse parse = { .kernel = kernel, .batch = serialized->elements, .single = serialized->shape.rank == 0 };
    tare_status status;
    if (serialized->shape.rank > 1 || (expected >= 0 && serialized->shape.rank != expected))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected serialized to be a %s, got rank %d",
                         expected == 0   ? "scalar"
                         : expected == 1 ? "vector"
                                         : "scalar or a vector",
                         serialized->shape.rank);
    status = parse_all(&parse);
    tare_map_free(&parse.contexts);
    tare_map_free(&parse.lists);
    return status;
}

static tare_status infer_column(struct tare_infer *infer, const struct column *column, bool lengths, int rank,
                                int64_t batch) {
    struct tare_shape *out = &infer->outputs[column->output];
    const struct tare_shape per_example = rank ? tare_operand_vector_shape(batch) : tare_shape_scalar();
    const struct tare_shape splits = tare_operand_vector_shape(rank == 0 ? 0 : batch < 0 ? -1 : batch + 1);
    const int own = rank + 1 + column->in_list;
    if (column->kind == SPARSE) {
        out[0] = tare_shape_make(2, (int64_t)-1, (int64_t)own);
        out[column->step] = tare_operand_vector_shape(-1);
        out[2 * column->step] = tare_operand_vector_shape(own);
    } else if (column->kind == RAGGED) {
        out[0] = tare_operand_vector_shape(-1);
        out[column->step] = splits;
        if (column->in_list) out[2 * column->step] = tare_operand_vector_shape(-1);
    } else {
        struct tare_shape shape = per_example;
        if (column->in_list) shape.dims[shape.rank++] = -1;
        TARE_TRY(tare_operand_append(&shape, &column->shape, 0, column->shape.rank));
        out[0] = shape;
        if (column->in_list && lengths) out[column->step] = per_example;
    }
    return TARE_OK;
}

static tare_status infer_parse(struct tare_infer *infer) {
    struct parse parse = { 0 };
    const struct tare_shape *serialized = &infer->inputs[0];
    int rank = rank_of_form(infer->node);
    if (rank >= 0) TARE_TRY(tare_operand_rank(infer, 0, "serialized", rank));
    if (rank < 0) rank = serialized->rank;
    TARE_TRY(make_columns(&parse, infer->arena, infer->node, infer->n_outputs));
    if (rank < 0 || rank > 1) return TARE_OK;
    for (size_t c = 0; c < parse.n_columns; c++)
        TARE_TRY(infer_column(infer, &parse.columns[c], parse.lengths, rank,
                              serialized->rank == 1 ? serialized->dims[0] : -1));
    return TARE_OK;
}

const struct tare_op tare_ops_parse_sequence[] = {
    { .name = "ParseSequenceExample", .infer = infer_parse, .run = run_parse },
    { .name = "ParseSequenceExampleV2", .infer = infer_parse, .run = run_parse },
    { .name = "ParseSingleSequenceExample", .infer = infer_parse, .run = run_parse },
    { 0 },
};
