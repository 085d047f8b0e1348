/* XlaSharding nodes; the OpSharding message (xla/xla_data.proto) is small enough to be written by hand. */
#include "tpu/sharding.h"
#include "interpreter/inference/model_shapes.h"

#include <string.h>

enum { TYPE = 1, TILE_DIMENSIONS = 3, TILE_DEVICES = 4, OTHER = 3, MOST_CORES = 64, LENGTH_DELIMITED = 2 };

struct wire {
    unsigned char bytes[2 * MOST_CORES + 32];
    size_t size;
};

static void put(struct wire *wire, int value) {
    wire->bytes[wire->size++] = (unsigned char)value;
}

/* A dimension split between devices 0 … cores-1; every number is below 128. */
static void split_dimension(struct wire *wire, int rank, int dimension, int cores) {
    wire->size = 0;
    put(wire, TYPE << 3);
    put(wire, OTHER);
    put(wire, TILE_DIMENSIONS << 3 | LENGTH_DELIMITED);
    put(wire, rank);
    for (int i = 0; i < rank; i++)
        put(wire, i == dimension ? cores : 1);
    put(wire, TILE_DEVICES << 3 | LENGTH_DELIMITED);
    put(wire, cores);
    for (int i = 0; i < cores; i++)
        put(wire, i);
}

static struct tare_node *only_user(const struct tare_graph *graph, struct tare_node *node, const char *op) {
    struct tare_node *user;
    size_t uses = tare_graph_count_uses(graph, (struct tare_edge){ node, 0 }, &user);
    return uses == 1 && user && strcmp(user->op, op) == 0 ? user : NULL;
}

/* The TPUReplicatedInput of an argument; NULL for a variable's handle, which has none. */
static struct tare_node *find_input(const struct tare_graph *body, size_t i) {
    struct tare_node *input = only_user(body, body->args[i], "TPUReplicatedInput");
    return input && only_user(body, input, "Identity") ? input : NULL;
}

/* The runtime splits an input only where XlaSharding directly follows the TPUReplicatedInput of an argument; elsewhere
 * it would send the whole tensor to every core while the program expects a part. */
static tare_status mark(const struct tare_tpu_placed *placed, struct tare_node *input, const char *name, int rank,
                        int dimension, int cores) {
    struct tare_graph *body = placed->replicated;
    struct tare_node *identity = only_user(body, input, "Identity"), *node;
    const char *path = tare_arena_printf(&body->model->arena, "%s/XlaSharding", name);
    struct wire wire;
    if (!path) return TARE_NO_MEMORY;
    node = tare_graph_add(body, "XlaSharding", path);
    if (!node) return TARE_NO_MEMORY;
    split_dimension(&wire, rank, dimension, cores);
    TARE_TRY(tare_node_add_input(node, tare_node_output0(input)));
    tare_node_set_input(identity, 0, tare_node_output0(node));
    for (size_t i = 0; i < identity->n_controls; i++) /* the metadata */
        TARE_TRY(tare_node_add_control(node, identity->controls[i]));
    TARE_TRY(tare_node_set_type(node, "T", tare_edge_dtype((struct tare_edge){ input, 0 })));
    TARE_TRY(tare_node_set_string(node, "sharding", wire.bytes, wire.size));
    TARE_TRY(tare_node_set_string(node, "_XlaSharding", wire.bytes, wire.size));
    TARE_TRY(tare_node_set_string(node, TARE_TPU_CLUSTER_ATTR, placed->cluster, strlen(placed->cluster)));
    return tare_node_resolve(node);
}

static bool divides(int64_t rows, int cores, bool open_divides) {
    return rows < 0 ? open_divides : rows >= cores && rows % cores == 0;
}

static tare_status mark_rows(size_t *count, const struct tare_tpu_placed *placed,
                             const struct tare_model_shapes *shapes, int cores, bool open_divides) {
    struct tare_graph *body = placed->replicated;
    for (size_t i = 0; i < body->n_args; i++) {
        struct tare_node *input = find_input(body, i);
        struct tare_shape shape = tare_model_shape(shapes, (struct tare_edge){ body->args[i], 0 });
        if (!input || shape.rank < 1 || !divides(shape.dims[0], cores, open_divides)) continue;
        TARE_TRY(mark(placed, input, body->args[i]->name, shape.rank, 0, cores));
        (*count)++;
    }
    return TARE_OK;
}

/* ---- arguments that the options name ---- */

/* Without a shape, the function is one that nothing in the model calls, as the second trace of an alias: *marked is not
 * set, and the argument is sent whole. */
static tare_status mark_argument(bool *marked, const struct tare_tpu_placed *placed,
                                 const struct tare_model_shapes *shapes, int cores,
                                 const struct tare_tpu_argument_split *split) {
    struct tare_graph *body = placed->replicated;
    char text[TARE_SHAPE_TEXT_SIZE];
    struct tare_node *input;
    struct tare_shape shape;
    if (split->argument >= body->n_args)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "arg_index is %u (expected at most %zu)", split->argument,
                         body->n_args - 1);
    input = find_input(body, split->argument);
    shape = tare_model_shape(shapes, (struct tare_edge){ body->args[split->argument], 0 });
    if (!input)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "argument %u, '%s', is a variable, is not used or is named twice (expected a "
                         "tensor)",
                         split->argument, body->args[split->argument]->name);
    if (split->parts != (uint32_t)cores)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "num_devices is %u (expected num_cores_per_replica, %d)", split->parts,
                         cores);
    if (shape.rank < 0) return TARE_OK;
    *marked = true;
    if (split->dimension >= (uint32_t)shape.rank || shape.dims[split->dimension] % cores > 0)
        return TARE_FAIL(
            TARE_INVALID_ARGUMENT,
            "dimension %u of argument %u, %s, cannot be split into %d parts (expected a dimension that is a "
            "multiple)",
            split->dimension, split->argument, tare_shape_text(text, &shape), cores);
    return mark(placed, input, body->args[split->argument]->name, shape.rank, (int)split->dimension, cores);
}

/* The functions that a split names, and whether it has been applied to one of them. */
struct named_split {
    struct tare_tpu_function *functions;
    size_t n_functions;
    bool is_marked;
};

static tare_status find_named(struct named_split **out, struct tare_arena *arena, const struct tare_graph_model *model,
                              const struct tare_tpu_sharding *sharding) {
    struct named_split *named = TARE_NEW_ARRAY(arena, struct named_split, sharding->n_splits + 1);
    if (!named) return TARE_NO_MEMORY;
    for (size_t i = 0; i < sharding->n_splits; i++)
        TARE_TRY(tare_error_prefix(tare_tpu_find_functions(&named[i].functions, &named[i].n_functions, arena, model,
                                                           sharding->splits[i].function, 1),
                                   "function_sharding_specs"));
    *out = named;
    return TARE_OK;
}

/* Marks the arguments that the options name for this function; *any: there are some. */
static tare_status mark_named(bool *any, size_t *count, struct named_split *named, const struct tare_tpu_placed *placed,
                              const struct tare_model_shapes *shapes, const struct tare_tpu_sharding *sharding) {
    *any = false;
    for (size_t i = 0; i < sharding->n_splits; i++) {
        for (size_t f = 0; f < named[i].n_functions; f++) {
            bool is_split = false;
            if (named[i].functions[f].graph != placed->stub) continue;
            TARE_TRY(mark_argument(&is_split, placed, shapes, sharding->num_cores_per_replica, &sharding->splits[i]));
            *any = true;
            *count += is_split;
            named[i].is_marked |= is_split;
        }
    }
    return TARE_OK;
}

static tare_status check_marks(const struct tare_tpu_sharding *sharding, const struct named_split *named) {
    for (size_t i = 0; i < sharding->n_splits; i++)
        if (!named[i].is_marked)
            return TARE_FAIL(
                TARE_INVALID_ARGUMENT,
                "function_sharding_specs: argument %u of '%s' is not split (expected a function on the TPU "
                "that a signature calls)",
                sharding->splits[i].argument, sharding->splits[i].function->name);
    return TARE_OK;
}

tare_status tare_tpu_shard_inputs(size_t *count, struct tare_arena *arena, struct tare_graph_model *model,
                                  const struct tare_tpu_placed *placed, size_t n_placed,
                                  const struct tare_tpu_sharding *sharding, bool open_divides) {
    const int cores = sharding->num_cores_per_replica;
    struct tare_model_shapes *shapes = NULL;
    struct named_split *named;
    tare_status status;
    if (cores < 2) return TARE_OK;
    if (cores > MOST_CORES)
        return TARE_FAIL(TARE_UNSUPPORTED, "num_cores_per_replica is %d (at most %d can share a replica)", cores,
                         MOST_CORES);
    TARE_TRY(find_named(&named, arena, model, sharding));
    TARE_CHECK(tare_model_shapes_new(&shapes, model));
    for (size_t i = 0; i < n_placed; i++) {
        bool any;
        TARE_CHECK(tare_error_prefix(mark_named(&any, count, named, &placed[i], shapes, sharding),
                                     "function_sharding_specs: function %s", placed[i].stub->name));
        if (!any) TARE_CHECK(mark_rows(count, &placed[i], shapes, cores, open_divides));
    }
    status = check_marks(sharding, named);
done:
    tare_model_shapes_free(shapes);
    return status;
}
