/* Lookup tables: creation, initialization, lookup, insertion and export. The model's initializer fills a static
 * table; a mutable one changes during runs. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/state/hash_table.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/state/table_file.h"

#include "base/alloc.h"
#include "interpreter/execution/variable.h"
#include "interpreter/session.h"

#include <string.h>

#define TABLE_KIND "table"

static tare_status infer_nothing(struct tare_infer *infer) {
    (void)infer;
    return TARE_OK;
}

/* ---- creation ---- */

/* A row's aux: the table that the op creates. */
struct table_form {
    bool is_mutable, anonymous;
};
static const struct table_form constant_table = { false, false }, mutable_table = { true, false };
static const struct table_form anonymous_table = { false, true }, anonymous_mutable_table = { true, true };

static tare_status make_table(struct tare_table **out, const struct tare_kernel *kernel) {
    const struct table_form *form = kernel->op->aux;
    const struct tare_node *node = kernel->node;
    int key = tare_node_type(node, "key_dtype", TARE_DT_INVALID);
    int value = tare_node_type(node, "value_dtype", TARE_DT_INVALID);
    struct tare_shape shape = tare_shape_scalar();
    if (tare_node_find_attr(node, "value_shape")) tare_node_shape(node, "value_shape", &shape);
    if (!tare_shape_is_known(&shape)) return TARE_FAIL(TARE_UNSUPPORTED, "the shape of the table's values is unknown");
    if (!tare_dtype_size(key) || !tare_dtype_size(value) || tare_dtype_get(key)->class == TARE_CLASS_OBJECT ||
        tare_dtype_get(value)->class == TARE_CLASS_OBJECT)
        return TARE_FAIL(TARE_UNSUPPORTED, "a table from %s to %s", tare_dtype_name(key), tare_dtype_name(value));
    *out = tare_table_new(key, value, &shape, form->is_mutable);
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

static void release_table(void *state) {
    tare_object_unref(state);
}

/* A named table belongs to the session; an unnamed one belongs to its node. */
static tare_status run_table(struct tare_kernel *kernel) {
    const struct table_form *form = kernel->op->aux;
    const char *name = tare_node_string(kernel->node, "shared_name", "");
    struct tare_object *object = kernel->state;
    if (!*name && tare_node_bool(kernel->node, "use_node_name_sharing", false)) name = kernel->node->name;
    if (!object && *name && !form->anonymous)
        object = tare_object_ref(tare_session_find_resource(kernel->session, TABLE_KIND, name));
    if (!object) {
        struct tare_table *table = NULL;
        TARE_TRY(make_table(&table, kernel));
        object = tare_table_object(table);
        if (form->anonymous) return tare_handle_new(&kernel->outputs[0], object);
        if (*name && tare_session_add_resource(kernel->session, TABLE_KIND, name, tare_object_ref(object)) != TARE_OK) {
            tare_object_unref(object);
            return TARE_NO_MEMORY;
        }
    }
    kernel->state = object;
    return tare_handle_new(&kernel->outputs[0], tare_object_ref(object));
}

/* The state is created in the first run because it requires the session. */
static tare_status prepare_table(struct tare_kernel *kernel) {
    const struct table_form *form = kernel->op->aux;
    if (!kernel->session) return TARE_FAIL(TARE_INTERNAL, "a table outside a session");
    if (form->anonymous) return TARE_OK;
    TARE_TRY(run_table(kernel));
    tare_tensor_reset(&kernel->outputs[0]);
    return TARE_OK;
}

/* ---- initialization ---- */

static tare_status run_initialize(struct tare_kernel *kernel) {
    struct tare_table *table = NULL;
    TARE_TRY(tare_table_from_handle(&table, &kernel->inputs[0]));
    if (tare_table_is_filled(table) && kernel->inputs[1].elements != tare_table_size(table))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Table was already initialized with different data.");
    TARE_TRY(tare_table_insert(table, &kernel->inputs[1], &kernel->inputs[2]));
    tare_table_set_filled(table);
    return TARE_OK;
}

static tare_status run_initialize_from_file(struct tare_kernel *kernel) {
    const struct tare_node *node = kernel->node;
    const char *delimiter = tare_node_string(node, "delimiter", "\t");
    struct tare_table_file form = { .key_index = tare_node_int(node, "key_index", 0),
                                    .value_index = tare_node_int(node, "value_index", 0),
                                    .vocab_size = tare_node_int(node, "vocab_size", -1),
                                    .delimiter = delimiter[0],
                                    .offset = tare_node_int(node, "offset", 0) };
    const struct tare_str *name = kernel->inputs[1].data;
    struct tare_table *table = NULL;
    const char *path;
    TARE_TRY(tare_table_from_handle(&table, &kernel->inputs[0]));
    if (kernel->inputs[1].elements != 1)
        return TARE_FAIL(TARE_SHAPE, "the file name has %lld elements (expected 1)",
                         (long long)kernel->inputs[1].elements);
    path = tare_arena_strndup(kernel->scratch, name->data ? name->data : "", name->size);
    if (!path) return TARE_NO_MEMORY;
    TARE_TRY(tare_table_read_file(table, path, &form));
    tare_table_set_filled(table);
    return TARE_OK;
}

static tare_status run_insert(struct tare_kernel *kernel) {
    struct tare_table *table = NULL;
    TARE_TRY(tare_table_from_handle(&table, &kernel->inputs[0]));
    if (!tare_table_is_mutable(table)) return TARE_FAIL(TARE_UNSUPPORTED, "the table is not mutable");
    return tare_table_insert(table, &kernel->inputs[1], &kernel->inputs[2]);
}

/* Replaces all entries. As in TensorFlow this also works for a static table: restoring uses it. */
static tare_status run_import(struct tare_kernel *kernel) {
    struct tare_table *table = NULL;
    TARE_TRY(tare_table_from_handle(&table, &kernel->inputs[0]));
    tare_table_clear(table);
    TARE_TRY(tare_table_insert(table, &kernel->inputs[1], &kernel->inputs[2]));
    tare_table_set_filled(table);
    return TARE_OK;
}

static tare_status run_remove(struct tare_kernel *kernel) {
    struct tare_table *table = NULL;
    TARE_TRY(tare_table_from_handle(&table, &kernel->inputs[0]));
    if (!tare_table_is_mutable(table)) return TARE_FAIL(TARE_UNSUPPORTED, "the table is not mutable");
    return tare_table_remove(table, &kernel->inputs[1]);
}

/* ---- lookup ---- */

/* The output shape is the keys' shape followed by the shape of a value, which the default has. */
static tare_status infer_find(struct tare_infer *infer) {
    infer->outputs[0] = infer->inputs[1];
    return tare_operand_append(&infer->outputs[0], &infer->inputs[2], 0, infer->inputs[2].rank);
}

static tare_status run_find(struct tare_kernel *kernel) {
    struct tare_table *table = NULL;
    const struct tare_shape *value;
    struct tare_shape shape = kernel->inputs[1].shape;
    TARE_TRY(tare_table_from_handle(&table, &kernel->inputs[0]));
    value = tare_table_value_shape(table);
    TARE_TRY(tare_operand_append(&shape, value, 0, value->rank));
    TARE_TRY(tare_kernel_output(kernel, 0, tare_table_value_dtype(table), &shape));
    return tare_table_find(table, &kernel->inputs[1], &kernel->inputs[2], &kernel->outputs[0]);
}

static tare_status run_size(struct tare_kernel *kernel) {
    struct tare_table *table = NULL;
    struct tare_shape scalar = tare_shape_scalar();
    TARE_TRY(tare_table_from_handle(&table, &kernel->inputs[0]));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &scalar));
    TARE_DATA(int64_t, &kernel->outputs[0])[0] = tare_table_size(table);
    return TARE_OK;
}

static tare_status infer_export(struct tare_infer *infer) {
    infer->outputs[0] = tare_shape_make(1, TARE_UNKNOWN_DIM);
    return TARE_OK;
}

static tare_status run_export(struct tare_kernel *kernel) {
    struct tare_table *table = NULL;
    struct tare_shape keys = tare_shape_make(1, 0), values;
    TARE_TRY(tare_table_from_handle(&table, &kernel->inputs[0]));
    keys.dims[0] = tare_table_size(table);
    values = keys;
    TARE_TRY(tare_operand_append(&values, tare_table_value_shape(table), 0, tare_table_value_shape(table)->rank));
    TARE_TRY(tare_kernel_output(kernel, 0, tare_table_key_dtype(table), &keys));
    TARE_TRY(tare_kernel_output(kernel, 1, tare_table_value_dtype(table), &values));
    return tare_table_export(table, &kernel->outputs[0], &kernel->outputs[1]);
}

#define TABLE(op, form)                                                                                                \
    {                                                                                                                  \
        .name = op, .infer = tare_infer_scalar, .prepare = prepare_table, .run = run_table, .release = release_table,  \
        .aux = &form, .flags = TARE_OP_STATEFUL                                                                        \
    }
/* The op in TensorFlow 1's form, whose handle is a reference, and in the resource form. */
#define BOTH(op, shapes, kernel, more)                                                                                 \
    { .name = op "V2", .infer = shapes, .run = kernel, .flags = TARE_OP_STATEFUL | (more) }, {                         \
        .name = op, .infer = shapes, .run = kernel, .flags = TARE_OP_NO_FOLD | (more)                                  \
    }

const struct tare_op tare_ops_table[] = {
    TABLE("HashTableV2", constant_table),
    TABLE("HashTable", constant_table),
    TABLE("MutableHashTableV2", mutable_table),
    TABLE("MutableHashTable", mutable_table),
    TABLE("MutableHashTableOfTensorsV2", mutable_table),
    TABLE("AnonymousHashTable", anonymous_table),
    TABLE("AnonymousMutableHashTable", anonymous_mutable_table),
    TABLE("MutableHashTableOfTensors", mutable_table),
    TABLE("AnonymousMutableHashTableOfTensors", anonymous_mutable_table),
    /* empty_key and deleted_key mark free slots in TensorFlow's implementation; here they are only rejected as keys */
    TABLE("MutableDenseHashTableV2", mutable_table),
    TABLE("MutableDenseHashTable", mutable_table),
    TABLE("AnonymousMutableDenseHashTable", anonymous_mutable_table),
    BOTH("InitializeTable", infer_nothing, run_initialize, 0),
    BOTH("InitializeTableFromTextFile", infer_nothing, run_initialize_from_file, 0),
    BOTH("LookupTableInsert", infer_nothing, run_insert, TARE_OP_WRITES),
    BOTH("LookupTableImport", infer_nothing, run_import, TARE_OP_WRITES),
    BOTH("LookupTableFind", infer_find, run_find, 0),
    BOTH("LookupTableSize", tare_infer_scalar, run_size, 0),
    BOTH("LookupTableExport", infer_export, run_export, 0),
    { .name = "LookupTableRemoveV2",
      .infer = infer_nothing,
      .run = run_remove,
      .flags = TARE_OP_STATEFUL | TARE_OP_WRITES },
    { 0 },
};
