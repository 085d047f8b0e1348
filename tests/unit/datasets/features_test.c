/* Kinds of records, and the features of tf.Example and tf.SequenceExample: what counts when a record is odd. */
#include "datasets/features.h"
#include "base/alloc.h"
#include "datasets/record_kind.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* ---- writing messages by hand: every part is shorter than 128 bytes ---- */

struct part {
    char bytes[128];
    size_t size;
};

static struct part join(struct part a, struct part b) {
    assert_true(a.size + b.size <= sizeof a.bytes);
    memcpy(a.bytes + a.size, b.bytes, b.size);
    a.size += b.size;
    return a;
}

static struct part field(int number, struct part body) {
    struct part out = { { (char)(number << 3 | 2), (char)body.size }, 2 };
    return join(out, body);
}

static struct part text(const char *bytes) {
    struct part out = { "", strlen(bytes) };
    memcpy(out.bytes, bytes, out.size);
    return out;
}

static struct part none(void) {
    return (struct part){ "", 0 };
}

static struct part ints(const char *values) { /* each a byte */
    return field(3, field(1, text(values)));
}

static struct part strings(const char *value) {
    return field(1, field(1, text(value)));
}

static struct part entry(const char *key, struct part value) {
    return field(1, join(field(1, text(key)), field(2, value)));
}

static struct part example(struct part entries) {
    return field(1, entries);
}

/* ---- kinds ---- */

static void kind__is_told_by_structure(void **state) {
    /* a TensorProto: dtype 1, an empty shape */
    const struct part tensor = { "\x08\x01\x12\x00", 4 };
    const struct {
        struct part record;
        enum tare_record_kind expected;
    } cases[] = {
        { none(), TARE_RECORD_OTHER },
        { text("word"), TARE_RECORD_OTHER },
        { example(none()), TARE_RECORD_EXAMPLE },
        { example(entry("a", ints("\1"))), TARE_RECORD_EXAMPLE },
        { example(join(entry("a", ints("\1")), entry("b", strings("x")))), TARE_RECORD_EXAMPLE },
        { example(field(1, field(1, text("key alone")))), TARE_RECORD_EXAMPLE },
        { join(example(none()), field(2, entry("l", field(1, ints("\1"))))), TARE_RECORD_SEQUENCE_EXAMPLE },
        { field(2, entry("l", field(1, ints("\1")))), TARE_RECORD_SEQUENCE_EXAMPLE },
        { field(2, join(field(1, text("x")), field(2, tensor))), TARE_RECORD_SAMPLE },
        { field(2, field(1, text("key alone"))), TARE_RECORD_OTHER },
        { field(2, join(field(1, text("x")), field(2, none()))), TARE_RECORD_OTHER }, /* a tensor has a dtype */
        { field(3, text("x")), TARE_RECORD_OTHER },
        { join(example(none()), text("\x08\x01")), TARE_RECORD_OTHER },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum tare_record_kind kind = tare_record_kind_of(cases[i].record.bytes, cases[i].record.size);
        if (kind != cases[i].expected)
            fail_msg("case %zu: got %s, expected %s", i, tare_record_kind_name(kind),
                     tare_record_kind_name(cases[i].expected));
    }
}

/* Records of random bytes with lengths that lead astray. */
static void kind__survives_any_bytes(void **state) {
    unsigned random = 1, other = 0;
    (void)state;
    for (int n = 0; n < 20000; n++) {
        unsigned char bytes[40], *exact;
        size_t size = (size_t)(n % 40);
        for (size_t i = 0; i < size; i++) {
            random = random * 1664525u + 1013904223u;
            bytes[i] = (unsigned char)(i % 3 ? random >> 24 : (random >> 24) % 2 ? 0x0a : 0x12);
        }
        exact = tare_malloc(size);
        memcpy(exact, bytes, size);
        other += tare_record_kind_of(exact, size) == TARE_RECORD_OTHER;
        tare_free(exact);
    }
    assert_true(other > 15000);
}

/* ---- features ---- */

static void decode(struct tare_features *features, struct part record) {
    if (tare_features_decode(features, record.bytes, record.size) != TARE_OK) fail_msg("%s", tare_error_text());
}

static void features__a_later_value_of_a_key_counts(void **state) {
    struct tare_features features;
    const struct tare_feature *a;
    (void)state;
    decode(&features, example(join(entry("a", ints("\1\2")), join(entry("b", ints("\3")), entry("a", strings("x"))))));
    assert_int_equal(features.count, 2);
    a = tare_features_find(&features, "a");
    assert_int_equal(a->values.dtype, TARE_DT_STRING);
    assert_int_equal(a->values.elements, 1);
    tare_features_reset(&features);
}

static void features__without_a_list_are_absent(void **state) {
    struct tare_features features;
    struct tare_sample sample;
    (void)state;
    decode(&features, example(join(entry("a", none()), entry("b", ints("")))));
    assert_null(tare_features_find(&features, "a"));
    assert_int_equal(tare_features_find(&features, "b")->values.elements, 0);
    assert_int_equal(tare_features_to_sample(&sample, &features), TARE_OK);
    assert_int_equal(sample.count, 1);
    assert_string_equal(sample.keys[0], "b");
    tare_sample_reset(&sample);
    tare_features_reset(&features);
}

static void features__a_list_hides_the_context(void **state) {
    struct part steps = join(field(1, ints("\1\2")), join(field(1, none()), field(1, ints("\3"))));
    struct tare_features features;
    const struct tare_feature *a;
    (void)state;
    decode(&features, join(example(entry("a", strings("x"))), field(2, entry("a", steps))));
    assert_int_equal(features.count, 1);
    a = tare_features_find(&features, "a");
    assert_true(a->is_list);
    assert_int_equal(a->steps, 3);
    assert_int_equal(a->lengths[0] * 100 + a->lengths[1] * 10 + a->lengths[2], 201); /* a step may be empty */
    assert_int_equal(a->values.elements, 3);
    assert_int_equal(tare_tensor_get_i64(&a->values, 2), 3);
    tare_features_reset(&features);
}

static void features__of_a_list_have_one_type(void **state) {
    struct part steps = join(field(1, ints("\1")), field(1, strings("x")));
    struct part record = field(2, entry("a", steps));
    struct tare_features features;
    (void)state;
    assert_int_equal(tare_features_decode(&features, record.bytes, record.size), TARE_TYPE);
    assert_string_equal(tare_error_text(), "feature list 'a': step 1 has string (expected int64 as in earlier steps)");
    tare_features_reset(&features);
}

static void features__may_be_added(void **state) {
    struct tare_features features = { 0 };
    (void)state;
    for (int i = 0; i < 20; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(tare_features_add_int(&features, key, i), TARE_OK);
    }
    assert_int_equal(tare_features_add_bytes(&features, "b", "x\0y", 3), TARE_OK);
    assert_int_equal(features.count, 21);
    assert_int_equal(tare_tensor_get_i64(&tare_features_find(&features, "k13")->values, 0), 13);
    assert_int_equal(TARE_CONST_DATA(struct tare_str, &tare_features_find(&features, "b")->values)[0].size, 3);
    tare_features_reset(&features);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kind__is_told_by_structure),
        cmocka_unit_test(kind__survives_any_bytes),
        cmocka_unit_test(features__a_later_value_of_a_key_counts),
        cmocka_unit_test(features__without_a_list_are_absent),
        cmocka_unit_test(features__a_list_hides_the_context),
        cmocka_unit_test(features__of_a_list_have_one_type),
        cmocka_unit_test(features__may_be_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
