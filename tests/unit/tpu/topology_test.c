/* Topologies and device assignments: the examples of the options' documentation, and what is wrong with others. */
#include "tpu/topology.h"
#include "support/mini_model.h"

#include <string.h>

/* mesh_shape [1,2,1,1], device_coordinates [0,0,0,0], [0,1,0,0]: two chips with one core */
static const unsigned char two_chips[] = { 0x0a, 4, 1, 2, 1, 1, 0x10, 1, 0x18, 2, 0x22, 8, 0, 0, 0, 0, 0, 1, 0, 0 };
/* mesh_shape [1,1,1,2]: one chip with two cores; numbers one by one */
static const unsigned char two_cores[] = { 0x08, 1, 0x08, 1, 0x08, 1, 0x08, 2, 0x22, 8, 0, 0, 0, 0, 0, 0, 0, 1 };

static struct tare_tpu_sharding sharding(int cores, const void *topology, size_t size) {
    return (struct tare_tpu_sharding){ .num_cores_per_replica = cores, .topology = topology, .topology_size = size };
}

static void a_topology__is_read_packed_and_not(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_tpu_topology topology;
    (void)state;
    mini_ok(tare_tpu_topology_read(&topology, &arena, two_chips, sizeof two_chips));
    assert_int_equal(topology.mesh[1], 2);
    assert_int_equal(topology.n_devices, 2);
    assert_int_equal(topology.coordinates[5], 1);
    assert_int_equal(topology.devices_per_task, 2);
    mini_ok(tare_tpu_topology_read(&topology, &arena, two_cores, sizeof two_cores));
    assert_int_equal(topology.mesh[3], 2);
    assert_int_equal(topology.coordinates[7], 1);
    tare_arena_free(&arena);
}

static void damaged_bytes__fail_cleanly(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_tpu_topology topology;
    unsigned char bytes[sizeof two_chips];
    (void)state;
    for (size_t size = 0; size < sizeof two_chips; size++)
        assert_int_not_equal(tare_tpu_topology_read(&topology, &arena, two_chips, size), TARE_OK);
    for (size_t bit = 0; bit < 8 * sizeof two_chips; bit++) {
        memcpy(bytes, two_chips, sizeof bytes);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        (void)!tare_tpu_topology_read(&topology, &arena, bytes, sizeof bytes); /* may be another topology, must end */
    }
    tare_arena_free(&arena);
}

static void several_cores__need_a_topology_of_that_size(void **state) {
    struct tare_tpu_sharding none = sharding(2, NULL, 0), one = sharding(1, NULL, 0),
                             few = sharding(4, two_chips, sizeof two_chips);
    struct tare_tpu_sharding good = sharding(2, two_chips, sizeof two_chips);
    (void)state;
    mini_fails(tare_tpu_sharding_check(&none), "num_cores_per_replica is 2, which needs a topology");
    mini_fails(tare_tpu_sharding_check(&few), "num_cores_per_replica is 4, but the topology has 2 devices");
    mini_ok(tare_tpu_sharding_check(&one));
    mini_ok(tare_tpu_sharding_check(&good));
}

static void a_device_assignment__is_inside_the_topology(void **state) {
    static const int64_t good[] = { 0, 1, 0, 0, 0, 0, 0, 0 }, outside[] = { 0, 0, 0, 0, 0, 0, 0, 1 }, twice[8];
    struct tare_tpu_sharding s = sharding(2, two_chips, sizeof two_chips);
    (void)state;
    s.device_assignment = good;
    s.n_device_assignment = 8;
    mini_ok(tare_tpu_sharding_check(&s));
    s.n_device_assignment = 4;
    mini_fails(tare_tpu_sharding_check(&s), "device_assignment has 4 entries (expected 8");
    s.n_device_assignment = 8;
    s.device_assignment = outside;
    mini_fails(tare_tpu_sharding_check(&s), "device 1 is at [0,0,0,1], outside of the mesh of shape [1,2,1,1]");
    s.device_assignment = twice;
    mini_fails(tare_tpu_sharding_check(&s), "devices 0 and 1 are both at [0,0,0,0]");
}

static void meshes__have_four_positive_entries(void **state) {
    static const unsigned char three[] = { 0x0a, 3, 1, 2, 1, 0x22, 4, 0, 0, 0, 0 },
                               zero[] = { 0x0a, 4, 1, 0, 1, 1, 0x22, 4, 0, 0, 0, 0 };
    struct tare_tpu_sharding s = sharding(1, three, sizeof three);
    (void)state;
    mini_fails(tare_tpu_sharding_check(&s), "mesh_shape has 3 entries (expected 4");
    s = sharding(1, zero, sizeof zero);
    mini_fails(tare_tpu_sharding_check(&s), "mesh_shape is [1,0,1,1] (expected positive entries)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_topology__is_read_packed_and_not),
        cmocka_unit_test(damaged_bytes__fail_cleanly),
        cmocka_unit_test(several_cores__need_a_topology_of_that_size),
        cmocka_unit_test(a_device_assignment__is_inside_the_topology),
        cmocka_unit_test(meshes__have_four_positive_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
