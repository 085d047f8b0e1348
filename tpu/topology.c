/* Topologies from their wire form (tensorflow.tpu.TopologyProto), and the checks on them. */
#include "tpu/topology.h"

#include <stdio.h>
#include <string.h>

enum { MESH_DIMS = 4, MOST_DEVICES = 1 << 13, LARGEST_MESH_DIM = 1 << 12 };
enum field { MESH_SHAPE = 1, NUM_TASKS = 2, DEVICES_PER_TASK = 3, DEVICE_COORDINATES = 4 };
enum wire { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

struct reader {
    const unsigned char *data;
    size_t size, at;
};

static tare_status corrupt(const struct reader *reader, const char *what) {
    return TARE_FAIL(TARE_CORRUPT, "topology is no TopologyProto: %s at byte %zu of %zu", what, reader->at,
                     reader->size);
}

static tare_status read_varint(uint64_t *out, struct reader *reader) {
    *out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        unsigned char byte;
        if (reader->at == reader->size) return corrupt(reader, "it ends inside a number");
        byte = reader->data[reader->at++];
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return TARE_OK;
    }
    return corrupt(reader, "a number is too long");
}

/* ---- lists of integers ---- */

struct list {
    int64_t *items; /* room for `capacity` */
    size_t count, capacity;
};

static tare_status push(struct list *list, const struct reader *reader, uint64_t value) {
    if (list->count == list->capacity) return corrupt(reader, "more numbers than a topology can have");
    list->items[list->count++] = (int64_t)value;
    return TARE_OK;
}

static tare_status read_packed(struct list *list, struct reader *reader) {
    uint64_t size, value;
    struct reader inner;
    TARE_TRY(read_varint(&size, reader));
    if (size > reader->size - reader->at) return corrupt(reader, "a field is longer than the message");
    inner = (struct reader){ reader->data, reader->at + (size_t)size, reader->at };
    while (inner.at < inner.size) {
        TARE_TRY(read_varint(&value, &inner));
        TARE_TRY(push(list, &inner, value));
    }
    reader->at = inner.size;
    return TARE_OK;
}

/* Repeated numbers may be packed or not. */
static tare_status read_list(struct list *list, struct reader *reader, int wire) {
    uint64_t value;
    if (wire == LENGTH) return read_packed(list, reader);
    if (wire != VARINT) return corrupt(reader, "a field of the wrong kind");
    TARE_TRY(read_varint(&value, reader));
    return push(list, reader, value);
}

static tare_status skip(struct reader *reader, int wire) {
    uint64_t size = wire == FIXED64 ? 8 : 4;
    if (wire == VARINT) return read_varint(&size, reader);
    if (wire == LENGTH)
        TARE_TRY(read_varint(&size, reader));
    else if (wire != FIXED64 && wire != FIXED32)
        return corrupt(reader, "a field of an unknown kind");
    if (size > reader->size - reader->at) return corrupt(reader, "a field is longer than the message");
    reader->at += (size_t)size;
    return TARE_OK;
}

static tare_status read_field(struct tare_tpu_topology *out, struct list *mesh, struct list *coordinates,
                              struct reader *reader) {
    uint64_t tag, value;
    int wire;
    TARE_TRY(read_varint(&tag, reader));
    wire = (int)(tag & 7);
    switch (tag >> 3) {
    case MESH_SHAPE:
        return read_list(mesh, reader, wire);
    case DEVICE_COORDINATES:
        return read_list(coordinates, reader, wire);
    case NUM_TASKS:
    case DEVICES_PER_TASK:
        if (wire != VARINT) return corrupt(reader, "a field of the wrong kind");
        TARE_TRY(read_varint(&value, reader));
        if (value > MOST_DEVICES) return corrupt(reader, "an absurd number of tasks or devices");
        *(tag >> 3 == NUM_TASKS ? &out->n_tasks : &out->devices_per_task) = (int64_t)value;
        return TARE_OK;
    default:
        return skip(reader, wire);
    }
}

/* ---- meaning ---- */

/* "[2,3,0,1]" */
static const char *point_text(char text[96], const int64_t *point) {
    snprintf(text, 96, "[%lld,%lld,%lld,%lld]", (long long)point[0], (long long)point[1], (long long)point[2],
             (long long)point[3]);
    return text;
}

static bool same_point(const int64_t *a, const int64_t *b) {
    return memcmp(a, b, MESH_DIMS * sizeof *a) == 0;
}

static tare_status check_mesh(const struct tare_tpu_topology *topology, size_t count) {
    char text[96];
    if (count != MESH_DIMS)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "topology: mesh_shape has %zu entries (expected 4: x, y, z, core)",
                         count);
    for (int i = 0; i < MESH_DIMS; i++)
        if (topology->mesh[i] < 1 || topology->mesh[i] > LARGEST_MESH_DIM)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "topology: mesh_shape is %s (expected positive entries)",
                             point_text(text, topology->mesh));
    return TARE_OK;
}

/* Every point is inside the mesh, without duplicates. */
static tare_status check_points(const struct tare_tpu_topology *topology, const int64_t *points, size_t count,
                                const char *what) {
    char text[96], mesh[96];
    for (size_t p = 0; p < count; p++) {
        const int64_t *point = points + p * MESH_DIMS;
        for (int i = 0; i < MESH_DIMS; i++)
            if (point[i] < 0 || point[i] >= topology->mesh[i])
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: device %zu is at %s, outside of the mesh of shape %s",
                                 what, p, point_text(text, point), point_text(mesh, topology->mesh));
        for (size_t q = 0; q < p; q++)
            if (same_point(points + q * MESH_DIMS, point))
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: devices %zu and %zu are both at %s", what, q, p,
                                 point_text(text, point));
    }
    return TARE_OK;
}

tare_status tare_tpu_topology_read(struct tare_tpu_topology *out, struct tare_arena *arena, const void *data,
                                   size_t size) {
    struct reader reader = { data, size, 0 };
    struct list mesh = { out->mesh, 0, MESH_DIMS }, coordinates = { NULL, 0, 0 };
    memset(out, 0, sizeof *out);
    coordinates.capacity = size < MOST_DEVICES * MESH_DIMS ? size : MOST_DEVICES * MESH_DIMS; /* a byte each at least */
    coordinates.items = TARE_NEW_ARRAY(arena, int64_t, coordinates.capacity + 1);
    if (!coordinates.items) return TARE_NO_MEMORY;
    while (reader.at < reader.size)
        TARE_TRY(read_field(out, &mesh, &coordinates, &reader));
    TARE_TRY(check_mesh(out, mesh.count));
    if (!coordinates.count || coordinates.count % MESH_DIMS)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "topology: device_coordinates has %zu entries (expected four a device: x, y, z, core)",
                         coordinates.count);
    out->coordinates = coordinates.items;
    out->n_devices = coordinates.count / MESH_DIMS;
    if (out->n_tasks && out->devices_per_task && (size_t)(out->n_tasks * out->devices_per_task) != out->n_devices)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "topology: device_coordinates names %zu devices (expected %lld tasks with %lld each)",
                         out->n_devices, (long long)out->n_tasks, (long long)out->devices_per_task);
    return check_points(out, out->coordinates, out->n_devices, "topology");
}

/* ---- options ---- */

static tare_status check_assignment(const struct tare_tpu_sharding *sharding,
                                    const struct tare_tpu_topology *topology) {
    size_t expected = (size_t)sharding->num_cores_per_replica * MESH_DIMS;
    char text[96];
    if (!sharding->n_device_assignment) return TARE_OK; /* the topology's order */
    if (sharding->n_device_assignment != expected)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "device_assignment has %zu entries (expected %zu: x, y, z, core for each of %d cores)",
                         sharding->n_device_assignment, expected, sharding->num_cores_per_replica);
    TARE_TRY(check_points(topology, sharding->device_assignment, expected / MESH_DIMS, "device_assignment"));
    for (size_t d = 0; d < expected; d += MESH_DIMS) {
        bool known = false;
        for (size_t t = 0; t < topology->n_devices && !known; t++)
            known = same_point(topology->coordinates + t * MESH_DIMS, sharding->device_assignment + d);
        if (!known)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "device_assignment: the topology has no device at %s",
                             point_text(text, sharding->device_assignment + d));
    }
    return TARE_OK;
}

static tare_status check(const struct tare_tpu_sharding *sharding, struct tare_arena *arena) {
    struct tare_tpu_topology topology;
    int cores = sharding->num_cores_per_replica;
    if (cores < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "num_cores_per_replica is %d (expected 1 or more)", cores);
    if (!sharding->topology_size) {
        if (cores > 1)
            return TARE_FAIL(
                TARE_INVALID_ARGUMENT,
                "num_cores_per_replica is %d, which needs a topology: %d cores may be on one chip or on several "
                "(expected a serialized TopologyProto with mesh_shape and device_coordinates)",
                cores, cores);
        if (sharding->n_device_assignment)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "device_assignment is given without num_cores_per_replica and topology");
        return TARE_OK;
    }
    TARE_TRY(tare_tpu_topology_read(&topology, arena, sharding->topology, sharding->topology_size));
    if ((size_t)cores > topology.n_devices)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "num_cores_per_replica is %d, but the topology has %zu devices", cores,
                         topology.n_devices);
    return cores > 1 ? check_assignment(sharding, &topology) : TARE_OK;
}

tare_status tare_tpu_sharding_check(const struct tare_tpu_sharding *sharding) {
    struct tare_arena arena = { 0 };
    tare_status status = tare_error_prefix(check(sharding, &arena), "xla_sharding_options");
    tare_arena_free(&arena);
    return status;
}
