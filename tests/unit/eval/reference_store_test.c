/* Float answers come back as they were kept. */
#include "eval/reference_store.h"
#include "support/mini_model.h"

#include <string.h>

static struct tare_tensor numbers(int64_t count, float first) {
    const struct tare_shape shape = { .rank = 1, .dims = { count } };
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < count; i++)
        TARE_DATA(float, &tensor)[i] = first + (float)i;
    return tensor;
}

static void answers__come_back_in_order_and_whole(void **state) {
    struct tare_reference_store store = { .n_outputs = 2 };
    (void)state;
    for (int record = 0; record < 40; record++) { /* 24 MB: several chunks, and a chunk made for one large tensor */
        struct tare_tensor outputs[2] = { numbers(record == 20 ? 5000000 : 1000 + record, (float)record), { 0 } };
        mini_ok(tare_tensor_scalar_i64(&outputs[1], record));
        mini_ok(tare_reference_store_add(&store, outputs));
        tare_tensor_reset(&outputs[0]);
        tare_tensor_reset(&outputs[1]);
    }
    for (int record = 0; record < 40; record++) {
        const struct tare_tensor *kept = tare_reference_store_get(&store, record);
        assert_non_null(kept);
        assert_int_equal(kept[0].elements, record == 20 ? 5000000 : 1000 + record);
        assert_true(TARE_CONST_DATA(float, &kept[0])[0] == (float)record);
        assert_true(TARE_CONST_DATA(float, &kept[0])[999] == (float)(record + 999));
        assert_int_equal(tare_tensor_get_i64(&kept[1], 0), record);
    }
    assert_null(tare_reference_store_get(&store, 40));
    assert_null(tare_reference_store_get(&store, -1));
    tare_reference_store_free(&store);
}

static void strings__are_kept_too(void **state) {
    const struct tare_shape shape = { .rank = 1, .dims = { 1 } };
    struct tare_reference_store store = { .n_outputs = 1 };
    struct tare_tensor text;
    (void)state;
    mini_ok(tare_tensor_new(&text, TARE_DT_STRING, &shape));
    mini_ok(tare_tensor_set_string(&text, 0, "tabby", 5));
    mini_ok(tare_reference_store_add(&store, &text));
    tare_tensor_reset(&text);
    assert_memory_equal(TARE_CONST_DATA(struct tare_str, tare_reference_store_get(&store, 0))[0].data, "tabby", 5);
    tare_reference_store_free(&store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers__come_back_in_order_and_whole),
        cmocka_unit_test(strings__are_kept_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
