/* Maps whose values hold their keys: the same answers as of any map. */
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

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(values__are_found_by_the_keys_in_them),
                                        cmocka_unit_test(room__is_made_at_once) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
