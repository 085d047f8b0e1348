/* ParseExample, ParseExampleV2 and ParseSingleExample: parses serialized tf.Example messages into dense, sparse and
 * ragged tensors. The three ops specify keys, types and shapes in different ways; all are converted to one list of
 * columns. */
#include "base/alloc.h"
#include "base/map.h"
#include "interpreter/ops/io/example_wire.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"

#include <stdio.h>
#include <string.h>

enum kind { COLUMN_SPARSE, COLUMN_DENSE, COLUMN_RAGGED };

struct column {
    struct tare_str key;
    enum kind kind;
    int dtype;
    size_t output; /* index of its first tensor; the others follow at a distance of `step` */
    size_t step;
    struct tare_shape shape; /* dense: shape of one example; dims[0] may be unknown */
    bool variable;           /* dense with unknown dims[0] */
    int64_t per_step;        /* dense: number of elements of shape, or of shape[1:] if variable */
    size_t default_input;    /* dense */
    int splits_dtype;        /* ragged */
};

struct parse {
    struct tare_kernel *kernel; /* NULL during inference */
    const struct tare_node *node;
    struct column *columns;
    size_t n_columns;
    bool single; /* one example; outputs without batch dimension */
    int64_t batch;
    const struct tare_tensor *names; /* may be NULL or empty */
    struct tare_feature *features;   /* [batch][columns] */
    int64_t *counts;                 /* [batch][columns] */
    struct tare_map by_key;          /* -> column */
    int64_t example;                 /* the example being parsed */
};

static size_t list_count(const struct tare_node *node, const char *name) {
    const struct tare_attr *attr = tare_node_list(node, name);
    return attr ? attr->count : 0;
}

/* ---- the columns ---- */

/* The number of columns of each kind, and the inputs that contain their keys. */
struct plan {
    size_t sparse, dense, ragged;
    size_t first_default; /* index of an input */
};

static struct plan plan_of(const struct tare_node *node) {
    struct plan plan = { list_count(node, "sparse_types"), list_count(node, "Tdense"),
                         list_count(node, "ragged_value_types"), 0 };
    if (strcmp(node->op, "ParseExample") == 0)
        plan.first_default = 2 + plan.sparse + plan.dense;
    else
        plan.first_default = strcmp(node->op, "ParseExampleV2") == 0 ? 5 : 1;
    return plan;
}

static tare_status dense_shape(struct column *column, const struct tare_node *node, size_t i) {
    const struct tare_attr *shapes = tare_node_list(node, "dense_shapes");
    int first = 0;
    if (!shapes || i >= shapes->count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "len(dense_keys) != len(dense_shapes): %zu",
                         shapes ? shapes->count : 0);
    column->shape = *shapes->items[i].shape;
    if (column->shape.rank == TARE_UNKNOWN_RANK)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "dense_shapes[%zu] has unknown rank", i);
    column->variable = column->shape.rank > 0 && column->shape.dims[0] < 0;
    if (column->variable) first = 1;
    column->per_step = 1;
    for (int d = first; d < column->shape.rank; d++)
        if (column->shape.dims[d] < 0 || !tare_mul_i64(&column->per_step, column->per_step, column->shape.dims[d]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "dense_shapes[%zu] has an unknown dimension %d", i, d);
    if (column->variable && column->per_step == 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "dense_shapes[%zu] has no elements", i);
    return TARE_OK;
}

static tare_status make_columns(struct parse *parse, struct tare_arena *arena, size_t n_outputs) {
    const struct tare_node *node = parse->node;
    struct plan plan = plan_of(node);
    const struct tare_attr *sparse = tare_node_list(node, "sparse_types"), *dense = tare_node_list(node, "Tdense");
    const struct tare_attr *ragged = tare_node_list(node, "ragged_value_types");
    const struct tare_attr *splits = tare_node_list(node, "ragged_split_types");
    parse->n_columns = plan.sparse + plan.dense + plan.ragged;
    parse->columns = TARE_NEW_ARRAY(arena, struct column, parse->n_columns + 1);
    if (!parse->columns) return TARE_NO_MEMORY;
    if (n_outputs != 3 * plan.sparse + plan.dense + 2 * plan.ragged || (splits ? splits->count : 0) != plan.ragged)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the lists of types and keys do not match");
    for (size_t i = 0; i < parse->n_columns; i++) {
        struct column *column = &parse->columns[i];
        if (i < plan.sparse) {
            *column = (struct column){
                .kind = COLUMN_SPARSE, .dtype = sparse->items[i].type, .output = i, .step = plan.sparse
            };
        } else if (i < plan.sparse + plan.dense) {
            size_t k = i - plan.sparse;
            *column = (struct column){ .kind = COLUMN_DENSE,
                                       .dtype = dense->items[k].type,
                                       .output = 3 * plan.sparse + k,
                                       .default_input = plan.first_default + k };
            TARE_TRY(dense_shape(column, node, k));
        } else {
            size_t k = i - plan.sparse - plan.dense;
            *column = (struct column){ .kind = COLUMN_RAGGED,
                                       .dtype = ragged->items[k].type,
                                       .output = 3 * plan.sparse + plan.dense + k,
                                       .step = plan.ragged,
                                       .splits_dtype = splits->items[k].type };
        }
    }
    return TARE_OK;
}

/* Reads key i of one kind of column. */
static tare_status read_key(struct tare_str *key, const struct parse *parse, const struct column *column, size_t i) {
    static const char *const attrs[] = { "sparse_keys", "dense_keys", "" };
    const struct tare_kernel *kernel = parse->kernel;
    struct plan plan = plan_of(parse->node);
    if (strcmp(parse->node->op, "ParseSingleExample") == 0) {
        const struct tare_attr *keys = tare_node_list(parse->node, attrs[column->kind]);
        if (!keys || i >= keys->count)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s has fewer entries than there are types", attrs[column->kind]);
        *key = keys->items[i].s;
    } else if (strcmp(parse->node->op, "ParseExample") == 0) {
        const struct tare_tensor *keys = &kernel->inputs[2 + (column->kind == COLUMN_DENSE ? plan.sparse : 0) + i];
        if (keys->elements != 1)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected %s[%zu] to be a scalar", attrs[column->kind], i);
        *key = tare_text_at(keys, 0);
    } else {
        const struct tare_tensor *keys = &kernel->inputs[2 + column->kind];
        if ((int64_t)i >= keys->elements)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%lld keys for more types", (long long)keys->elements);
        *key = tare_text_at(keys, (int64_t)i);
    }
    return TARE_OK;
}

static tare_status read_keys(struct parse *parse) {
    size_t next[3] = { 0 };
    for (size_t i = 0; i < parse->n_columns; i++) {
        struct column *column = &parse->columns[i];
        TARE_TRY(read_key(&column->key, parse, column, next[column->kind]++));
        if (tare_map_get_n(&parse->by_key, column->key.data, column->key.size))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "key '%.*s' is listed twice", (int)column->key.size,
                             column->key.data);
        if (!tare_map_set_n(&parse->by_key, column->key.data, column->key.size, column)) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

/* ---- parsing ---- */

static void take_feature(void *arg, struct tare_str name, struct tare_feature feature) {
    struct parse *parse = arg;
    struct column *column = tare_map_get_n(&parse->by_key, name.data, name.size);
    if (column)
        parse->features[(size_t)parse->example * parse->n_columns + (size_t)(column - parse->columns)] = feature;
}

static struct tare_str example_name(const struct parse *parse, int64_t example) {
    struct tare_str unknown = { "<unknown>", 9 };
    return parse->names && example < parse->names->elements ? tare_text_at(parse->names, example) : unknown;
}

/* Prefixes the error text with "Name: N, Key: K, Index: I.  ". */
static tare_status feature_error(const struct parse *parse, const struct column *column, int64_t example,
                                 const char *text) {
    struct tare_str name = example_name(parse, example);
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "Name: %.*s, Key: %.*s, Index: %lld.  %s", (int)name.size, name.data,
                     (int)column->key.size, column->key.data, (long long)example, text);
}

/* Counts the values of a feature and checks them against the column. A feature without a list counts as missing. */
static tare_status check_feature(const struct parse *parse, const struct column *column, int64_t example,
                                 const struct tare_feature *feature, int64_t *count) {
    char text[TARE_SHAPE_TEXT_SIZE + 160], shape[TARE_SHAPE_TEXT_SIZE];
    *count = 0;
    if (feature->dtype == TARE_DT_INVALID) {
        struct tare_str name = example_name(parse, example);
        if (column->kind != COLUMN_DENSE || column->variable || parse->kernel->inputs[column->default_input].elements)
            return TARE_OK;
        if (column->per_step == 0) return TARE_OK;
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Name: %.*s, Feature: %.*s (data type: %s) is required but could not be found.",
                         (int)name.size, name.data, (int)column->key.size, column->key.data,
                         tare_dtype_get(column->dtype)->spec_name);
    }
    if (feature->dtype != column->dtype) {
        snprintf(text, sizeof text, "Data types don't match. Data type: %s but expected type: %s",
                 tare_dtype_get(feature->dtype)->spec_name, tare_dtype_get(column->dtype)->spec_name);
        return feature_error(parse, column, example, text);
    }
    if (!tare_feature_count(count, feature))
        return feature_error(parse, column, example, "Can't parse serialized Example.");
    if (column->kind == COLUMN_DENSE && (column->variable ? *count % column->per_step : *count != column->per_step)) {
        snprintf(text, sizeof text, "Number of %s values %s.  Values size: %lld but output shape: %s",
                 tare_dtype_get(column->dtype)->spec_name,
                 column->variable ? "is not a multiple of stride length" : "!= expected", (long long)*count,
                 tare_shape_text(shape, &column->shape));
        return feature_error(parse, column, example, text);
    }
    return TARE_OK;
}

static tare_status read_examples(struct parse *parse) {
    const struct tare_tensor *serialized = &parse->kernel->inputs[0];
    size_t cells;
    if (!tare_mul_size(&cells, (size_t)parse->batch, parse->n_columns)) return TARE_FAIL(TARE_NO_MEMORY, "too large");
    parse->features = TARE_NEW_ARRAY(parse->kernel->scratch, struct tare_feature, cells + 1);
    parse->counts = TARE_NEW_ARRAY(parse->kernel->scratch, int64_t, cells + 1);
    if (!parse->features || !parse->counts) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < parse->batch; i++) {
        struct tare_str text = tare_text_at(serialized, i);
        parse->example = i;
        if (!tare_example_each(text, take_feature, parse))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Could not parse example input %lld of %zu bytes", (long long)i,
                             text.size);
        for (size_t c = 0; c < parse->n_columns; c++) {
            size_t at = (size_t)i * parse->n_columns + c;
            TARE_TRY(check_feature(parse, &parse->columns[c], i, &parse->features[at], &parse->counts[at]));
        }
    }
    return TARE_OK;
}

/* ---- the outputs ---- */

static tare_status read_values(struct parse *parse, const struct column *column, int64_t example, size_t output,
                               int64_t at) {
    size_t cell = (size_t)example * parse->n_columns + (size_t)(column - parse->columns);
    bool malformed;
    if (!parse->counts[cell]) return TARE_OK;
    TARE_TRY(tare_feature_read(&parse->kernel->outputs[output], at, &parse->features[cell], &malformed));
    return malformed ? feature_error(parse, column, example, "Can't parse serialized Example.") : TARE_OK;
}

static void count_column(const struct parse *parse, const struct column *column, int64_t *all, int64_t *most) {
    *all = *most = 0;
    for (int64_t i = 0; i < parse->batch; i++) {
        int64_t count = parse->counts[(size_t)i * parse->n_columns + (size_t)(column - parse->columns)];
        *all += count;
        if (count > *most) *most = count;
    }
}

static tare_status write_dense(struct parse *parse, const struct column *column) {
    struct tare_kernel *kernel = parse->kernel;
    const struct tare_tensor *fallback = &kernel->inputs[column->default_input];
    struct tare_shape shape = { .rank = 0 }, inner = column->shape;
    int64_t all, most, row;
    count_column(parse, column, &all, &most);
    if (column->variable) inner.dims[0] = most / column->per_step;
    if (!parse->single) shape.dims[shape.rank++] = parse->batch;
    TARE_TRY(tare_operand_append(&shape, &inner, 0, inner.rank));
    TARE_TRY(tare_kernel_output(kernel, column->output, column->dtype, &shape));
    row = column->variable ? most : column->per_step;
    if (fallback->elements && fallback->dtype != column->dtype)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "dense_defaults of key '%.*s' is %s (expected %s)",
                         (int)column->key.size, column->key.data, tare_dtype_name(fallback->dtype),
                         tare_dtype_name(column->dtype));
    if (fallback->elements && fallback->elements != (column->variable ? 1 : column->per_step))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "dense_defaults of key '%.*s' has %lld elements (expected %lld)",
                         (int)column->key.size, column->key.data, (long long)fallback->elements,
                         (long long)(column->variable ? 1 : column->per_step));
    for (int64_t i = 0; i < parse->batch; i++) {
        int64_t count = parse->counts[(size_t)i * parse->n_columns + (size_t)(column - parse->columns)];
        TARE_TRY(read_values(parse, column, i, column->output, i * row));
        if (count == row) continue;
        if (!fallback->elements)
            tare_move_zero(&kernel->outputs[column->output], i * row + count, row - count);
        else if (column->variable)
            TARE_TRY(tare_move_fill(&kernel->outputs[column->output], i * row + count, row - count, fallback, 0));
        else
            TARE_TRY(tare_move_run(&kernel->outputs[column->output], i * row, fallback, 0, row));
    }
    return TARE_OK;
}

static tare_status write_sparse(struct parse *parse, const struct column *column) {
    struct tare_kernel *kernel = parse->kernel;
    int rank = parse->single ? 1 : 2;
    struct tare_shape matrix = tare_shape_make(2, 0, rank), vector, dense = tare_operand_vector_shape(rank);
    int64_t all, most, at = 0, *indices, *dims;
    count_column(parse, column, &all, &most);
    matrix.dims[0] = all;
    vector = tare_operand_vector_shape(all);
    TARE_TRY(tare_kernel_output(kernel, column->output, TARE_DT_INT64, &matrix));
    TARE_TRY(tare_kernel_output(kernel, column->output + column->step, column->dtype, &vector));
    TARE_TRY(tare_kernel_output(kernel, column->output + 2 * column->step, TARE_DT_INT64, &dense));
    indices = TARE_DATA(int64_t, &kernel->outputs[column->output]);
    dims = TARE_DATA(int64_t, &kernel->outputs[column->output + 2 * column->step]);
    if (!parse->single) dims[0] = parse->batch;
    dims[rank - 1] = most;
    for (int64_t i = 0; i < parse->batch; i++) {
        int64_t count = parse->counts[(size_t)i * parse->n_columns + (size_t)(column - parse->columns)];
        TARE_TRY(read_values(parse, column, i, column->output + column->step, at));
        for (int64_t k = 0; k < count; k++) {
            if (!parse->single) *indices++ = i;
            *indices++ = k;
        }
        at += count;
    }
    return TARE_OK;
}

static tare_status write_ragged(struct parse *parse, const struct column *column) {
    struct tare_kernel *kernel = parse->kernel;
    struct tare_shape vector, splits = tare_operand_vector_shape(parse->single ? 0 : parse->batch + 1);
    size_t second = column->output + column->step;
    int64_t all, most, at = 0;
    count_column(parse, column, &all, &most);
    vector = tare_operand_vector_shape(all);
    TARE_TRY(tare_kernel_output(kernel, column->output, column->dtype, &vector));
    TARE_TRY(tare_kernel_output(kernel, second, column->splits_dtype, &splits));
    if (!parse->single) tare_text_set_index(&kernel->outputs[second], 0, 0);
    for (int64_t i = 0; i < parse->batch; i++) {
        TARE_TRY(read_values(parse, column, i, column->output, at));
        at += parse->counts[(size_t)i * parse->n_columns + (size_t)(column - parse->columns)];
        if (!parse->single) tare_text_set_index(&kernel->outputs[second], i + 1, at);
    }
    return TARE_OK;
}

static tare_status parse_all(struct parse *parse) {
    TARE_TRY(make_columns(parse, parse->kernel->scratch, parse->kernel->n_outputs));
    TARE_TRY(read_keys(parse));
    TARE_TRY(read_examples(parse));
    for (size_t i = 0; i < parse->n_columns; i++) {
        const struct column *column = &parse->columns[i];
        TARE_TRY(column->kind == COLUMN_DENSE    ? write_dense(parse, column)
                 : column->kind == COLUMN_SPARSE ? write_sparse(parse, column)
                                                 : write_ragged(parse, column));
    }
    return TARE_OK;
}

static tare_status run_parse(struct tare_kernel *kernel) {
    const struct tare_tensor *serialized = &kernel->inputs[0];
    bool scalar_only = strcmp(kernel->node->op, "ParseSingleExample") == 0;
    bool vector_only = strcmp(kernel->node->op, "ParseExample") == 0;
    struct parse parse = {
        .kernel = kernel, .node = kernel->node, .batch = serialized->elements, .single = serialized->shape.rank == 0
    };
    tare_status status;
    if (serialized->shape.rank > 1 || (scalar_only && !parse.single) || (vector_only && parse.single))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected serialized to be a %s, got rank %d",
                         scalar_only   ? "scalar"
                         : vector_only ? "vector"
                                       : "scalar or a vector",
                         serialized->shape.rank);
    if (!scalar_only) parse.names = &kernel->inputs[1];
    if (parse.names && parse.names->elements && parse.names->elements != parse.batch)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected len(names) == len(serialized), but got %lld vs. %lld",
                         (long long)parse.names->elements, (long long)parse.batch);
    status = parse_all(&parse);
    tare_map_free(&parse.by_key);
    return status;
}

static tare_status infer_parse(struct tare_infer *infer) {
    struct parse parse = { .node = infer->node };
    int rank = strcmp(infer->node->op, "ParseSingleExample") == 0 ? 0
               : strcmp(infer->node->op, "ParseExample") == 0     ? 1
                                                                  : infer->inputs[0].rank;
    if (infer->inputs[0].rank > 1) TARE_TRY(tare_operand_rank(infer, 0, "serialized", 1));
    TARE_TRY(make_columns(&parse, infer->arena, infer->n_outputs));
    if (rank < 0) return TARE_OK;
    for (size_t i = 0; i < parse.n_columns; i++) {
        const struct column *column = &parse.columns[i];
        struct tare_shape *out = &infer->outputs[column->output];
        int64_t batch = rank == 0 ? 0 : infer->inputs[0].rank == 1 ? infer->inputs[0].dims[0] : -1;
        *out = tare_operand_vector_shape(-1);
        if (column->kind == COLUMN_SPARSE) {
            *out = tare_shape_make(2, -1, rank + 1);
            out[column->step] = tare_operand_vector_shape(-1);
            out[2 * column->step] = tare_operand_vector_shape(rank + 1);
        } else if (column->kind == COLUMN_RAGGED) {
            out[column->step] = tare_operand_vector_shape(rank == 0 ? 0 : batch < 0 ? -1 : batch + 1);
        } else {
            out->rank = rank;
            out->dims[0] = batch;
            TARE_TRY(tare_operand_append(out, &column->shape, 0, column->shape.rank));
        }
    }
    return TARE_OK;
}

const struct tare_op tare_ops_parse[] = {
    { .name = "ParseExample", .infer = infer_parse, .run = run_parse },
    { .name = "ParseExampleV2", .infer = infer_parse, .run = run_parse },
    { .name = "ParseSingleExample", .infer = infer_parse, .run = run_parse },
    { 0 },
};
