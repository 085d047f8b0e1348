/* The file is written front to back: an object is followed by those that it refers to, level by level. What later
 * versions of JAX read (slots 18 to 25) is written beside what earlier ones need (3 and 5 to 8). */
#include "convert/stablehlo/exported_write.h"

#include "base/alloc.h"
#include "base/arena.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Slots of the table Exported. */
enum {
    VERSION,
    FUNCTION_NAME,
    IN_TREE,
    IN_AVALS,
    OUT_TREE,
    OUT_AVALS,
    DEVICES_SHORT,
    IN_SHARDINGS,
    OUT_SHARDINGS,
    PLATFORMS,
    ORDERED_EFFECTS,
    UNORDERED_EFFECTS,
    DISABLED_CHECKS,
    MODULE,
    CALLING_CONVENTION,
    KEPT_ARGUMENTS,
    USES_GLOBAL_CONSTANTS,
    DEVICES = 18,
    UNIQUE_AVALS,
    UNIQUE_MESHES,
    UNIQUE_SHARDINGS,
    IN_AVAL_INDICES,
    OUT_AVAL_INDICES,
    IN_SHARDING_INDICES,
    OUT_SHARDING_INDICES,
    N_SLOTS
};
enum { TREE_KIND, TREE_CHILDREN, TREE_NAMES };    /* of PyTreeDef */
enum { AVAL_SHAPE = 1, AVAL_DTYPE, AVAL_MEMORY }; /* of AbstractValue; its kind is 0 */
enum { TREE_TUPLE = 2, TREE_DICTIONARY = 4, DEVICE_MEMORY = 1 };
/* The version that old readers accept and new ones ignore; the calling convention of both. */
enum { WRITTEN_VERSION = 3, WRITTEN_CONVENTION = 9 };

struct object;

struct field {
    int slot;
    size_t width; /* bytes of a number; 0: an object */
    uint32_t number;
    const struct object *object;
};

struct object {
    enum { TABLE, OBJECTS, NUMBERS, TEXT } kind;
    struct field fields[N_SLOTS]; /* of a table */
    const struct object **items;  /* of a vector of objects */
    const void *data;             /* of numbers, and of a text, which a zero follows */
    size_t count, width;          /* fields, items, or numbers of `width` bytes */
};

struct tree {
    struct tare_arena arena;
    bool failed;
};

static struct object *new_object(struct tree *tree, int kind) {
    struct object *object = TARE_NEW(&tree->arena, struct object);
    if (!object) {
        static struct object none;
        tree->failed = true;
        return &none;
    }
    object->kind = kind;
    return object;
}

static void set_number(struct object *table, int slot, size_t width, uint32_t number) {
    table->fields[table->count++] = (struct field){ .slot = slot, .width = width, .number = number };
}

static void set_object(struct object *table, int slot, const struct object *object) {
    table->fields[table->count++] = (struct field){ .slot = slot, .object = object };
}

static const struct object *text(struct tree *tree, const char *data) {
    struct object *object = new_object(tree, TEXT);
    object->data = data;
    object->count = strlen(data);
    object->width = 1;
    return object;
}

static const struct object *numbers(struct tree *tree, const void *data, size_t count, size_t width) {
    struct object *object = new_object(tree, NUMBERS);
    object->data = data;
    object->count = count;
    object->width = width;
    return object;
}

static struct object *objects(struct tree *tree, size_t count) {
    struct object *object = new_object(tree, OBJECTS);
    object->items = TARE_NEW_ARRAY(&tree->arena, const struct object *, count + 1);
    object->count = object->items ? count : 0;
    if (!object->items) tree->failed = true;
    return object;
}

/* `count` empty tables: leaves of a tree, or shardings that are not specified. */
static const struct object *empty_tables(struct tree *tree, size_t count) {
    struct object *list = objects(tree, count);
    for (size_t i = 0; i < list->count; i++)
        list->items[i] = new_object(tree, TABLE);
    return list;
}

static const struct object *one(struct tree *tree, const struct object *item) {
    struct object *list = objects(tree, 1);
    if (list->count) list->items[0] = item;
    return list;
}

static const struct object *tuple(struct tree *tree, const struct object *children) {
    struct object *table = new_object(tree, TABLE);
    set_number(table, TREE_KIND, 1, TREE_TUPLE);
    set_object(table, TREE_CHILDREN, children);
    return table;
}

/* ((arguments…), {}) */
static const struct object *in_tree(struct tree *tree, size_t count) {
    struct object *keywords = new_object(tree, TABLE), *both = objects(tree, 2);
    set_number(keywords, TREE_KIND, 1, TREE_DICTIONARY);
    set_object(keywords, TREE_NAMES, objects(tree, 0));
    if (both->count) {
        both->items[0] = tuple(tree, empty_tables(tree, count));
        both->items[1] = keywords;
    }
    return tuple(tree, both);
}

/* Negative: JAX does not have the type. */
static int jax_dtype(const struct tare_shlo_type *element) {
    static const int8_t dtypes[TARE_SHLO_N_TYPES] = {
        [TARE_SHLO_BOOL] = 1,    [TARE_SHLO_SI8] = 2,  [TARE_SHLO_SI16] = 3, [TARE_SHLO_SI32] = 4,
        [TARE_SHLO_SI64] = 5,    [TARE_SHLO_UI8] = 6,  [TARE_SHLO_UI16] = 7, [TARE_SHLO_UI32] = 8,
        [TARE_SHLO_UI64] = 9,    [TARE_SHLO_F16] = 10, [TARE_SHLO_F32] = 11, [TARE_SHLO_F64] = 12,
        [TARE_SHLO_BF16] = 15,   [TARE_SHLO_SI4] = 16, [TARE_SHLO_UI4] = 17, [TARE_SHLO_F8E4M3FN] = 19,
        [TARE_SHLO_F8E5M2] = 21,
    }; /* one more than the number in the file, so that 0 means absent */
    if (element->kind == TARE_SHLO_COMPLEX) return element->element->kind == TARE_SHLO_F32 ? 12 : 13;
    return dtypes[element->kind] - 1;
}

static const struct object *aval(struct tree *tree, const struct tare_shlo_type *type) {
    struct object *table = new_object(tree, TABLE), *shape = objects(tree, type->rank);
    for (size_t i = 0; i < shape->count; i++) {
        const char *dim = tare_arena_printf(&tree->arena, "%" PRId64, type->dims[i]);
        if (!dim) tree->failed = true;
        shape->items[i] = text(tree, dim ? dim : "");
    }
    set_object(table, AVAL_SHAPE, shape);
    set_number(table, AVAL_DTYPE, 1, (uint32_t)jax_dtype(type->element));
    set_number(table, AVAL_MEMORY, 1, DEVICE_MEMORY);
    return table;
}

static const struct object *avals(struct tree *tree, const struct tare_shlo_type_list *first,
                                  const struct tare_shlo_type_list *second) {
    struct object *list = objects(tree, first->count + (second ? second->count : 0));
    for (size_t i = 0; i < list->count; i++)
        list->items[i] = aval(tree, i < first->count ? first->items[i] : second->items[i - first->count]);
    return list;
}

/* The numbers first, first + 1 … as u32 or u16. */
static const struct object *counting(struct tree *tree, size_t first, size_t count, size_t width) {
    uint8_t *data = tare_arena_calloc(&tree->arena, count + 1, width);
    if (!data) tree->failed = true;
    for (size_t i = 0; data && i < count; i++)
        for (size_t k = 0; k < width; k++)
            data[i * width + k] = (uint8_t)((first + i) >> (8 * k));
    return numbers(tree, data, data ? count : 0, width);
}

static const struct object *zeros(struct tree *tree, size_t count) {
    const void *data = tare_arena_calloc(&tree->arena, count + 1, 4);
    if (!data) tree->failed = true;
    return numbers(tree, data, data ? count : 0, 4);
}

static const struct object *exported(struct tree *tree, const struct tare_shlo_type *main, const char *name,
                                     const void *artifact, size_t size) {
    const size_t n_in = main->inputs.count, n_out = main->outputs.count;
    const struct object *leaf = new_object(tree, TABLE);
    struct object *table = new_object(tree, TABLE);
    set_number(table, VERSION, 2, WRITTEN_VERSION);
    set_object(table, FUNCTION_NAME, text(tree, name));
    set_object(table, IN_TREE, in_tree(tree, n_in));
    set_object(table, IN_AVALS, avals(tree, &main->inputs, NULL));
    set_object(table, OUT_TREE, n_out == 1 ? leaf : tuple(tree, empty_tables(tree, n_out)));
    set_object(table, OUT_AVALS, avals(tree, &main->outputs, NULL));
    set_number(table, DEVICES_SHORT, 2, 1);
    set_object(table, IN_SHARDINGS, empty_tables(tree, n_in));
    set_object(table, OUT_SHARDINGS, empty_tables(tree, n_out));
    set_object(table, PLATFORMS, one(tree, text(tree, "tpu")));
    set_object(table, ORDERED_EFFECTS, objects(tree, 0));
    set_object(table, UNORDERED_EFFECTS, objects(tree, 0));
    set_object(table, DISABLED_CHECKS,
               one(tree, new_object(tree, TABLE))); /* an empty table: the check of the platform */
    set_object(table, MODULE, numbers(tree, artifact, size, 1));
    set_number(table, CALLING_CONVENTION, 2, WRITTEN_CONVENTION);
    set_object(table, KEPT_ARGUMENTS, counting(tree, 0, n_in, 2));
    set_number(table, USES_GLOBAL_CONSTANTS, 1, 0);
    set_number(table, DEVICES, 4, 1);
    set_object(table, UNIQUE_AVALS, avals(tree, &main->inputs, &main->outputs));
    set_object(table, UNIQUE_MESHES, objects(tree, 0));
    set_object(table, UNIQUE_SHARDINGS, objects(tree, 0));
    set_object(table, IN_AVAL_INDICES, counting(tree, 0, n_in, 4));
    set_object(table, OUT_AVAL_INDICES, counting(tree, n_in, n_out, 4));
    set_object(table, IN_SHARDING_INDICES, zeros(tree, n_in));
    set_object(table, OUT_SHARDING_INDICES, zeros(tree, n_out));
    return table;
}

/* ---- bytes ---- */

struct pending {
    size_t at; /* where the distance to the object goes */
    const struct object *object;
};

struct file {
    struct tare_strbuf *out;
    size_t start;
    struct pending *queue;
    size_t n_queue, capacity;
    bool failed;
};

static void put(struct file *file, uint64_t number, size_t width) {
    for (size_t i = 0; i < width; i++)
        tare_strbuf_putc(file->out, (char)(number >> (8 * i)));
}

static void patch(struct file *file, size_t at, uint32_t number) {
    for (size_t i = 0; i < 4 && file->start + at + i < file->out->size; i++)
        file->out->data[file->start + at + i] = (char)(number >> (8 * i));
}

static size_t position(const struct file *file) {
    return file->out->size - file->start;
}

static void align(struct file *file, size_t ahead) {
    while ((position(file) + ahead) % 4 && !file->out->failed)
        tare_strbuf_putc(file->out, 0);
}

static void later(struct file *file, size_t at, const struct object *object) {
    if (file->n_queue == file->capacity &&
        !tare_grow((void **)&file->queue, &file->capacity, file->n_queue + 1, sizeof *file->queue)) {
        file->failed = true;
        return;
    }
    file->queue[file->n_queue++] = (struct pending){ at, object };
}

/* The vtable, then the table: the distance to it, and the fields in the order of falling width, which keeps them
 * aligned. */
static size_t put_table(struct file *file, const struct object *table) {
    static const size_t widths[] = { 4, 2, 1 };
    size_t places[N_SLOTS] = { 0 }, slots = 0, size = 4;
    for (size_t w = 0; w < 3; w++)
        for (size_t i = 0; i < table->count; i++) {
            const struct field *field = &table->fields[i];
            if ((field->width ? field->width : 4) != widths[w]) continue;
            places[field->slot] = size;
            size += widths[w];
            if ((size_t)field->slot + 1 > slots) slots = (size_t)field->slot + 1;
        }
    align(file, 4 + 2 * slots);
    put(file, 4 + 2 * slots, 2);
    put(file, size, 2);
    for (size_t i = 0; i < slots; i++)
        put(file, places[i], 2);
    const size_t at = position(file);
    put(file, 4 + 2 * slots, 4);
    for (size_t w = 0; w < 3; w++)
        for (size_t i = 0; i < table->count; i++) {
            const struct field *field = &table->fields[i];
            if ((field->width ? field->width : 4) != widths[w]) continue;
            if (field->object) later(file, position(file), field->object);
            put(file, field->number, widths[w]);
        }
    return at;
}

static size_t put_vector(struct file *file, const struct object *vector) {
    align(file, 0);
    const size_t at = position(file);
    put(file, vector->count, 4);
    if (vector->kind != OBJECTS) tare_strbuf_append(file->out, vector->data, vector->count * vector->width);
    if (vector->kind == TEXT) tare_strbuf_putc(file->out, 0);
    for (size_t i = 0; vector->kind == OBJECTS && i < vector->count; i++) {
        later(file, position(file), vector->items[i]);
        put(file, 0, 4);
    }
    return at;
}

static tare_status put_objects(struct tare_strbuf *out, const struct object *root) {
    struct file file = { .out = out, .start = out->size };
    put(&file, 0, 4);
    later(&file, 0, root);
    for (size_t i = 0; i < file.n_queue && !file.failed && !out->failed; i++) {
        const struct pending next = file.queue[i];
        const size_t at = next.object->kind == TABLE ? put_table(&file, next.object) : put_vector(&file, next.object);
        patch(&file, next.at, (uint32_t)(at - next.at));
    }
    tare_free(file.queue);
    return file.failed ? TARE_NO_MEMORY : tare_strbuf_status(out);
}

static tare_status check_types(const struct tare_shlo_type_list *types, const char *what) {
    for (size_t i = 0; i < types->count; i++)
        if (types->items[i]->kind != TARE_SHLO_TENSOR || jax_dtype(types->items[i]->element) < 0)
            return TARE_FAIL(TARE_UNSUPPORTED, "%s %zu has a type that JAX does not have", what, i);
    return TARE_OK;
}

tare_status tare_shlo_write_exported(struct tare_strbuf *out, const struct tare_shlo_type *main, const char *name,
                                     const void *artifact, size_t size) {
    struct tree tree = { 0 };
    TARE_TRY(check_types(&main->inputs, "argument"));
    TARE_TRY(check_types(&main->outputs, "result"));
    if (size > INT32_MAX)
        return TARE_FAIL(TARE_UNSUPPORTED, "a module of %zu bytes (expected less than 2 GiB in a file of jax.export)",
                         size);
    const struct object *root = exported(&tree, main, name, artifact, size);
    const tare_status status = tree.failed ? TARE_NO_MEMORY : put_objects(out, root);
    tare_arena_free(&tree.arena);
    return status;
}
