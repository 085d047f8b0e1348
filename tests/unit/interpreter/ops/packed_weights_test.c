/* Packed weights of nodes and the forms that sessions share. */
#include "interpreter/ops/support/weights.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "support/mini_model.h"

#include <string.h>

enum { SIZE = 4, WORKERS = 4 };
static const int node[2]; /* addresses of two owners */

static struct tare_tensor make_tensor(float first) {
    const struct tare_shape shape = tare_shape_make(1, (int64_t)SIZE);
    struct tare_tensor tensor;
    mini_ok(tare_tensor_from(&tensor, TARE_DT_FLOAT, &shape, (const float[SIZE]){ first, 2, 3, 4 }));
    return tensor;
}

/* As a kernel does: the cached form, or a copy of the values. */
static float *pack(struct tare_weights *weights, const struct tare_tensor *tensor, int64_t key,
                   struct tare_arena *scratch) {
    float *packed = tare_weights_find(weights, tensor, key);
    if (packed) return packed;
    packed = tare_weights_make(weights, tensor, key, SIZE * sizeof *packed, scratch);
    assert_non_null(packed);
    memcpy(packed, tensor->data, SIZE * sizeof *packed);
    return tare_weights_publish(weights, packed);
}

static void forms__are_shared_by_the_same_node_tensor_and_key(void **state) {
    struct tare_arena scratch = { 0 };
    struct tare_tensor tensor = make_tensor(1), equal = make_tensor(1);
    struct tare_weights first = { .owner = &node[0] }, same = first, other = { .owner = &node[1] }, own = { 0 };
    (void)state;
    float *packed = pack(&first, &tensor, 0, &scratch);
    assert_ptr_equal(pack(&same, &tensor, 0, &scratch), packed);
    assert_ptr_not_equal(pack(&other, &tensor, 0, &scratch), packed);
    assert_ptr_not_equal(pack(&own, &tensor, 0, &scratch), packed);
    tare_weights_reset(&first); /* `same` still uses the form */
    assert_ptr_equal(pack(&same, &tensor, 0, &scratch), packed);
    assert_memory_equal(packed, tensor.data, SIZE * sizeof *packed);
    assert_ptr_not_equal(pack(&first, &tensor, 1, &scratch), packed);
    assert_ptr_not_equal(pack(&first, &equal, 0, &scratch), packed);
    tare_weights_reset(&same);
    tare_weights_reset(&first);
    assert_null(tare_weights_find(&same, &tensor, 0)); /* removed with its last user */
    tare_weights_reset(&other);
    tare_weights_reset(&own);
    tare_tensor_reset(&tensor);
    tare_tensor_reset(&equal);
    tare_arena_free(&scratch);
}

static void forms__that_two_sessions_pack_at_once_become_one(void **state) {
    struct tare_arena scratch = { 0 };
    struct tare_tensor tensor = make_tensor(1);
    struct tare_weights a = { .owner = &node[0] }, b = a;
    (void)state;
    assert_null(tare_weights_find(&a, &tensor, 0));
    assert_null(tare_weights_find(&b, &tensor, 0));
    float *of_a = tare_weights_make(&a, &tensor, 0, SIZE * sizeof *of_a, &scratch);
    float *of_b = tare_weights_make(&b, &tensor, 0, SIZE * sizeof *of_b, &scratch);
    assert_ptr_not_equal(of_a, of_b);
    assert_ptr_equal(tare_weights_publish(&b, of_b), of_b);
    assert_ptr_equal(tare_weights_publish(&a, of_a), of_b);
    assert_ptr_equal(tare_weights_find(&a, &tensor, 0), of_b);
    tare_weights_reset(&a);
    tare_weights_reset(&b);
    tare_tensor_reset(&tensor);
    tare_arena_free(&scratch);
}

/* More forms than the table of a new process has buckets: it grows, and every form is still found. */
static void forms__of_thousands_of_nodes_are_shared(void **state) {
    enum { NODES = 3000 };
    static struct tare_weights first[NODES], second[NODES];
    static struct tare_tensor tensors[NODES];
    struct tare_arena scratch = { 0 };
    (void)state;
    for (int i = 0; i < NODES; i++) {
        first[i] = second[i] = (struct tare_weights){ .owner = &first[i] };
        tensors[i] = make_tensor((float)i);
        assert_true(pack(&first[i], &tensors[i], 0, &scratch)[0] == (float)i);
    }
    for (int i = 0; i < NODES; i++)
        assert_ptr_equal(tare_weights_find(&second[i], &tensors[i], 0), first[i].packed);
    for (int i = 0; i < NODES; i++) {
        tare_weights_reset(&first[i]);
        assert_true(*(float *)second[i].packed == (float)i);
        tare_weights_reset(&second[i]);
        assert_null(tare_weights_find(&second[i], &tensors[i], 0));
        tare_tensor_reset(&tensors[i]);
    }
    tare_arena_free(&scratch);
}

/* An activation: a new tensor for each call. */
static void forms__of_changing_tensors_are_neither_cached_nor_shared(void **state) {
    struct tare_arena scratch = { 0 };
    struct tare_weights weights = { .owner = &node[0] }, other = weights;
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct tare_tensor tensor = make_tensor((float)i);
        float *packed = pack(&weights, &tensor, 0, &scratch);
        assert_true(packed[0] == (float)i);
        if (i > 4) assert_null(tare_weights_find(&other, &tensor, 0));
        tare_tensor_reset(&tensor);
    }
    tare_weights_reset(&weights);
    tare_weights_reset(&other);
    tare_arena_free(&scratch);
}

struct crew {
    struct tare_tensor *tensors;
    int count;
};

static tare_status work(void *arg, int worker) {
    const struct crew *crew = arg;
    struct tare_arena scratch = { 0 };
    bool good = true;
    for (int round = 0; round < 200; round++) {
        const struct tare_tensor *tensor = &crew->tensors[(round + worker) % crew->count];
        struct tare_weights weights = { .owner = &node[0] };
        const float *packed = pack(&weights, tensor, 0, &scratch);
        good = good && memcmp(packed, tensor->data, SIZE * sizeof *packed) == 0;
        tare_weights_reset(&weights);
    }
    tare_arena_free(&scratch);
    return good ? TARE_OK : TARE_FAIL(TARE_INTERNAL, "a packed form has other values");
}

static void forms__have_the_tensors_values_with_several_threads(void **state) {
    struct tare_tensor tensors[3] = { make_tensor(5), make_tensor(6), make_tensor(7) };
    struct crew crew = { tensors, 3 };
    (void)state;
    mini_ok(tare_threads_run(WORKERS, work, &crew));
    for (int i = 0; i < 3; i++)
        tare_tensor_reset(&tensors[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms__are_shared_by_the_same_node_tensor_and_key),
        cmocka_unit_test(forms__that_two_sessions_pack_at_once_become_one),
        cmocka_unit_test(forms__of_thousands_of_nodes_are_shared),
        cmocka_unit_test(forms__of_changing_tensors_are_neither_cached_nor_shared),
        cmocka_unit_test(forms__have_the_tensors_values_with_several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
