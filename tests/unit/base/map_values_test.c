/* Maps that store keys, and maps whose values hold their keys: the same answers. */
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { COUNT = 5000 };
static struct thing {
    int number;
    const char *name;
} things[COUNT];
static char names[COUNT][12];

static void values__are_found_by_the_keys_in_them(void **state) {
    struct tare_map map = { .key_at = offsetof(struct thing, name) };
    struct thing other = { -1, "n17" };
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        things[i] = (struct thing){ i, names[i] };
        assert_null(tare_map_get(&map, names[i]));
        assert_true(tare_map_set(&map, names[i], &things[i]));
    }
    assert_int_equal(map.count, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_ptr_equal(tare_map_get(&map, names[i]), &things[i]);
    assert_null(tare_map_get(&map, "n"));
    assert_ptr_equal(tare_map_get_n(&map, "n12345", 3), &things[12]); /* a part of a longer text */
    assert_true(tare_map_set(&map, other.name, &other));              /* replaces */
    assert_int_equal(map.count, COUNT);
    assert_ptr_equal(tare_map_get(&map, "n17"), &other);
    tare_map_free(&map);
    assert_null(tare_map_get(&map, "n17"));
}

static void room__is_made_at_once(void **state) {
    struct tare_map map = { .key_at = offsetof(struct thing, name) };
    const void *slots;
    (void)state;
    assert_true(tare_map_reserve(&map, COUNT));
    slots = map.slots;
    for (int i = 0; i < COUNT; i++)
        assert_true(tare_map_set(&map, things[i].name, &things[i]));
    assert_ptr_equal(map.slots, slots);
    tare_map_free(&map);
}

/* Keys of all lengths around the eight bytes that are hashed together, and such that differ only in NULs at the end. */
static void keys_of_bytes__are_told_apart(void **state) {
    enum { LENGTHS = 40 };
    static const char zeros[LENGTHS];
    struct tare_map map = { 0 };
    char keys[LENGTHS][LENGTHS];
    (void)state;
    for (size_t i = 0; i < LENGTHS; i++) {
        memset(keys[i], 'k', LENGTHS);
        assert_null(tare_map_get_n(&map, keys[i], i));
        assert_true(tare_map_set_n(&map, keys[i], i, &keys[i]));
        if (i) assert_null(tare_map_get_n(&map, zeros, i));
        if (i) assert_true(tare_map_set_n(&map, zeros, i, &things[i]));
    }
    assert_int_equal(map.count, 2 * LENGTHS - 1);
    for (size_t i = 0; i < LENGTHS; i++) {
        assert_ptr_equal(tare_map_get_n(&map, keys[0], i), &keys[i]);
        if (i) assert_ptr_equal(tare_map_get_n(&map, zeros, i), &things[i]);
    }
    tare_map_free(&map);
}

static void entries__stay_when_the_map_grows_and_are_replaced(void **state) {
    struct tare_map map = { 0 };
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        assert_true(tare_map_set(&map, names[i], &names[i]));
        assert_true(tare_map_set(&map, names[i / 2], &things[i / 2])); /* replaces */
    }
    assert_int_equal(map.count, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_ptr_equal(tare_map_get(&map, names[i]), i < COUNT / 2 ? (void *)&things[i] : (void *)&names[i]);
    assert_null(tare_map_get(&map, "absent"));
    assert_false(tare_map_reserve(&map, SIZE_MAX / 4));
    assert_ptr_equal(tare_map_get(&map, "n17"), &things[17]);
    tare_map_free(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(values__are_found_by_the_keys_in_them),
                                        cmocka_unit_test(room__is_made_at_once),
                                        cmocka_unit_test(keys_of_bytes__are_told_apart),
                                        cmocka_unit_test(entries__stay_when_the_map_grows_and_are_replaced) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
