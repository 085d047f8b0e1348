/* The calibration file: round trip, equal bytes for equal contents, merging, and refusal of what is damaged or foreign.
 */
#include "calib/format/file.h"

#include "base/alloc.h"
#include "base/file.h"
#include "calib/hash.h"
#include "calib/tally.h"
#include "support/draw.h"
#include "support/temp.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static const uint64_t model[2] = { 0x1234, 0x5678 }, other_model[2] = { 0x1234, 0x5679 };

/* Record r of file f as it would be observed: two tensors, one function; the third tensor is never reached. */
static void add_record(struct tare_calibration *c, struct tare_tally *tally, int file, int64_t record) {
    static const char *const files[] = { "b.tfrecord", "a.tfrecord" };
    float values[600];
    int32_t input;
    assert_int_equal(tare_calibration_add_input(c, "serving_default", files[file], &input), TARE_OK);
    assert_int_equal(tare_record_set_add(&c->inputs[input].records, record, record + 1), TARE_OK);
    struct tare_digest_set *digests;
    assert_int_equal(tare_calibration_add_digests(c, "serving_default", &digests), TARE_OK);
    assert_int_equal(tare_digest_set_add(digests, (uint64_t)(1000 - record - 100 * file) << 32), TARE_OK);
    if (record % 5 == 3) { /* the one behind it could not be read */
        const struct tare_calibration_bad bad = { 100 + record, 5000 + 100 * record, (char[]){ "corrupt" },
                                                  (char[]){ "record 103: corrupted record" } };
        assert_int_equal(tare_calibration_add_bad(c, input, &bad), TARE_OK);
        assert_int_equal(tare_calibration_add_bad(c, input, &bad), TARE_OK); /* noted already */
    }
    struct tare_place place = { input, record, file * 20 + record };
    for (int t = 0; t < 2; t++) {
        struct tare_calibration_tensor *tensor;
        assert_int_equal(tare_calibration_add_tensor(c, t ? "fn" : "", t ? "conv" : "relu", t, &tensor), TARE_OK);
        draw_fill(values, 600, t ? DRAW_HEAVY : DRAW_RELU, (uint64_t)(1000 * file + record));
        if (record % 5 == 2) values[7] = t ? NAN : INFINITY;
        struct tare_shape shape = tare_shape_make(2, 100, 6);
        struct tare_tensor value;
        assert_int_equal(tare_tensor_wrap(&value, TARE_DT_FLOAT, &shape, values, NULL, NULL), TARE_OK);
        assert_int_equal(tare_statistics_add(&tensor->statistics, tally, &value, &place, 1, TARE_BATCH_SPLIT), TARE_OK);
        tare_tensor_reset(&value);
    }
    struct tare_calibration_function *function;
    assert_int_equal(tare_calibration_add_function(c, "fn", &function), TARE_OK);
    function->records++;
    assert_int_equal(tare_calibration_add_function(c, "else_branch", NULL), TARE_OK);
    assert_int_equal(tare_coverage_add(&c->coverage, "", "cond", "StatelessIf", 1, "else_branch"), TARE_OK);
    assert_int_equal(tare_coverage_add(&c->coverage, "", "cond", "StatelessIf", 0, "fn"), TARE_OK);
    tare_coverage_count(&c->coverage, "", "cond", 0, 1);
    assert_int_equal(tare_calibration_add_tensor(c, "fn", "conv", 0, NULL), TARE_OK);
}

enum { RECORDS = 17 };

/* Shard `shard` of `shards`, its records from the back when `backward`. */
static struct tare_calibration *make(int shard, int shards, bool backward) {
    struct tare_calibration *c = tare_calibration_new(model, "observe=quantizable", true);
    struct tare_tally *tally = tare_tally_new();
    assert_non_null(c);
    assert_non_null(tally);
    for (int i = 0; i < 2 * RECORDS; i++) {
        int at = backward ? 2 * RECORDS - 1 - i : i;
        if (at % shards == shard) add_record(c, tally, at / RECORDS, at % RECORDS);
    }
    if (c->n_digests) tare_digest_set_finish(&c->digests[0].set);
    tare_tally_free(tally);
    return c;
}

static struct tare_strbuf bytes_of(const struct tare_calibration *c) {
    struct tare_strbuf bytes = { 0 };
    assert_int_equal(tare_calibration_encode(&bytes, c), TARE_OK);
    return bytes;
}

static void assert_bytes(const struct tare_strbuf *a, const struct tare_strbuf *b) {
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->data, b->data, a->size);
}

static void file__comes_back_as_it_was(void **state) {
    (void)state;
    struct tare_calibration *c = make(0, 1, false), *back;
    struct tare_strbuf first = bytes_of(c);
    assert_int_equal(tare_calibration_decode(&back, first.data, first.size), TARE_OK);
    struct tare_strbuf second = bytes_of(back);
    assert_bytes(&first, &second);
    assert_int_equal(tare_calibration_records(back), 2 * RECORDS);
    assert_string_equal(back->inputs[0].file, "a.tfrecord");
    assert_int_equal(tare_calibration_bad_records(back), 6);
    assert_int_equal(back->inputs[0].n_bad, 3);
    const struct tare_digest_set *digests = tare_calibration_find_digests(back, "serving_default");
    assert_non_null(digests);
    assert_null(tare_calibration_find_digests(back, "serving"));
    assert_int_equal(digests->count, 2 * RECORDS);
    assert_true(tare_digest_set_has(digests, (uint64_t)1000 << 32));
    assert_false(tare_digest_set_has(digests, (uint64_t)999 << 31));
    assert_int_equal(back->inputs[0].bad[1].record, 108);
    assert_int_equal(back->inputs[0].bad[1].offset, 5800);
    assert_string_equal(back->inputs[0].bad[1].reason, "corrupt");
    assert_string_equal(back->inputs[0].bad[1].text, "record 103: corrupted record");
    const struct tare_calibration_tensor *tensor = tare_calibration_find(back, "fn", "conv", 1);
    assert_non_null(tensor);
    assert_true(tare_statistics_equal(&tensor->statistics, &tare_calibration_find(c, "fn", "conv", 1)->statistics));
    assert_int_equal(tensor->statistics.channels, 6);
    assert_int_equal(tare_calibration_find(back, "fn", "conv", 0)->statistics.samples, 0);
    assert_int_equal(back->functions[0].records, 0);
    assert_int_equal(back->functions[1].records, 2 * RECORDS);
    assert_int_equal(back->coverage.count, 2);
    assert_string_equal(back->coverage.sides[0].target, "fn");
    assert_int_equal(back->coverage.sides[0].records, 2 * RECORDS);
    assert_string_equal(back->coverage.sides[1].node, "cond");
    assert_string_equal(back->coverage.sides[1].op, "StatelessIf");
    assert_int_equal(back->coverage.sides[1].side, 1);
    assert_int_equal(back->coverage.sides[1].records, 0);
    tare_strbuf_free(&first);
    tare_strbuf_free(&second);
    tare_calibration_free(c);
    tare_calibration_free(back);
}

static void file__order_and_shards_leave_no_trace(void **state) {
    (void)state;
    struct tare_calibration *whole = make(0, 1, false), *backward = make(0, 1, true);
    struct tare_strbuf expected = bytes_of(whole), got = bytes_of(backward);
    assert_bytes(&expected, &got);
    tare_strbuf_free(&got);
    const int orders[3][5] = { { 0, 1, 2, 3, 4 }, { 4, 3, 2, 1, 0 }, { 2, 0, 4, 1, 3 } };
    for (int o = 0; o < 3; o++) {
        struct tare_calibration *sum = make(orders[o][0], 5, o == 1);
        for (int i = 1; i < 5; i++) {
            struct tare_calibration *shard = make(orders[o][i], 5, i % 2);
            assert_int_equal(tare_calibration_merge(sum, shard), TARE_OK);
            tare_calibration_free(shard);
        }
        got = bytes_of(sum);
        assert_bytes(&expected, &got);
        tare_strbuf_free(&got);
        tare_calibration_free(sum);
    }
    tare_strbuf_free(&expected);
    tare_calibration_free(whole);
    tare_calibration_free(backward);
}

static void merge__refuses_what_does_not_belong_together(void **state) {
    (void)state;
    struct tare_calibration *c = make(1, 5, false), *again = make(1, 5, true);
    struct tare_strbuf before = bytes_of(c);
    assert_int_equal(tare_calibration_merge(c, again), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "record 4 of 'a.tfrecord' is in both (is a shard given twice?)");
    struct tare_calibration *foreign = tare_calibration_new(other_model, "observe=quantizable", true);
    assert_int_equal(tare_calibration_merge(c, foreign), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(),
                        "calibrations of different models (fingerprints 00000000000012340000000000005678 "
                        "and 00000000000012340000000000005679)");
    struct tare_calibration *all = tare_calibration_new(model, "observe=all", true);
    assert_int_equal(tare_calibration_merge(c, all), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(),
                        "calibrations with different settings ('observe=quantizable' with channels and "
                        "'observe=all' with channels)");
    again->unfinished = tare_strdup("limit 5");
    assert_int_equal(tare_calibration_merge(c, again), TARE_INVALID_ARGUMENT);
    struct tare_strbuf after = bytes_of(c);
    assert_bytes(&before, &after);
    tare_strbuf_free(&before);
    tare_strbuf_free(&after);
    tare_calibration_free(c);
    tare_calibration_free(again);
    tare_calibration_free(foreign);
    tare_calibration_free(all);
}

static void file__every_truncation_and_bit_flip_is_refused(void **state) {
    (void)state;
    struct tare_calibration *c = make(0, 9, false), *back;
    struct tare_strbuf bytes = bytes_of(c);
    for (size_t size = 0; size < bytes.size; size += 1 + size / 64) {
        tare_error_clear();
        assert_int_not_equal(tare_calibration_decode(&back, bytes.data, size), TARE_OK);
        assert_null(back);
        assert_true(strlen(tare_error_text()) > 0);
    }
    for (size_t bit = 0; bit < 8 * bytes.size; bit += 13) {
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_not_equal(tare_calibration_decode(&back, bytes.data, bytes.size), TARE_OK);
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    tare_strbuf_free(&bytes);
    tare_calibration_free(c);
}

/* Puts a right checksum under changed contents, so that the checks behind it are reached. */
static void seal(struct tare_strbuf *bytes) {
    struct tare_hash hash;
    uint64_t sum[2];
    tare_hash_begin(&hash);
    tare_hash_add(&hash, bytes->data, bytes->size - 8);
    tare_hash_end(&hash, sum);
    for (int i = 0; i < 8; i++)
        bytes->data[bytes->size - 8 + (size_t)i] = (char)(sum[0] >> (8 * i));
}

/* One to three bytes changed, or some cut out or put in twice; the first part, where counts and names are, more often.
 */
static void damage(struct tare_strbuf *bytes, const struct tare_strbuf *good, int turn, uint64_t *seed) {
    const size_t body = good->size - 8, reach = turn % 2 ? body : 400;
    const size_t at = 9 + draw_bits(seed) % (reach - 9), length = 1 + draw_bits(seed) % 12;
    const size_t end = at + length < body ? at + length : body;
    switch (turn % 5) {
    case 3: /* cut out */
        tare_strbuf_append(bytes, good->data, at);
        tare_strbuf_append(bytes, good->data + end, good->size - end);
        return;
    case 4: /* twice */
        tare_strbuf_append(bytes, good->data, end);
        tare_strbuf_append(bytes, good->data + at, good->size - at);
        return;
    default:
        tare_strbuf_append(bytes, good->data, good->size);
        break;
    }
    for (int i = 0; i <= turn % 5; i++)
        bytes->data[9 + draw_bits(seed) % (reach - 9)] = (char)(turn % 3 ? draw_bits(seed) : 0xff);
}

/* What was accepted is a calibration: it can be written again and added to. */
static void use(struct tare_calibration *c, const struct tare_strbuf *shard) {
    struct tare_calibration *other;
    struct tare_strbuf again = bytes_of(c);
    assert_int_equal(tare_calibration_decode(&other, shard->data, shard->size), TARE_OK);
    tare_error_clear();
    tare_status status = tare_calibration_merge(other, c);
    assert_true((status == TARE_OK) == (tare_error_text()[0] == '\0'));
    assert_true(tare_calibration_records(other) > 0);
    for (size_t i = 0; i < other->n_tensors; i++)
        assert_true(tare_statistics_elements(&other->tensors[i]->statistics) >= 0);
    tare_strbuf_free(&again);
    tare_calibration_free(other);
}

static void file__wrong_contents_under_a_right_checksum_do_no_harm(void **state) {
    (void)state;
    struct tare_calibration *c = make(3, 17, false), *next = make(1, 17, false), *back;
    struct tare_strbuf good = bytes_of(c), shard = bytes_of(next);
    int refused = 0;
    uint64_t seed = 4;
    for (int turn = 0; turn < 4000; turn++) {
        struct tare_strbuf bytes = { 0 };
        damage(&bytes, &good, turn, &seed);
        seal(&bytes);
        tare_error_clear();
        if (tare_calibration_decode(&back, bytes.data, bytes.size) == TARE_OK) {
            use(back, &shard);
            tare_calibration_free(back);
        } else {
            refused++;
            assert_null(back);
            assert_true(strlen(tare_error_text()) > 0);
        }
        tare_strbuf_free(&bytes);
    }
    if (refused < 2000) fail_msg("only %d of 4000 changes were refused", refused);
    tare_strbuf_free(&good);
    tare_strbuf_free(&shard);
    tare_calibration_free(c);
    tare_calibration_free(next);
}

/* A count that no file can hold is refused where it is read: nothing behind it is looked at. */
static void file__counts_beyond_the_file_are_refused_at_once(void **state) {
    (void)state;
    struct tare_strbuf bytes = { 0 };
    struct tare_calibration *c = tare_calibration_new(model, "", false), *back;
    assert_int_equal(tare_calibration_encode(&bytes, c), TARE_OK);
    /* magic, version, fingerprint, flags, settings; then the counts of inputs, digests, functions, sides and tensors,
     * all 0 */
    const size_t first = 8 + 1 + 16 + 1 + 1;
    assert_int_equal(bytes.size, first + 5 + 8);
    for (size_t i = 0; i < 5; i++) {
        struct tare_strbuf changed = { 0 };
        tare_strbuf_append(&changed, bytes.data, first + i);
        for (int k = 0; k < 9; k++)
            tare_strbuf_append(&changed, "\xff", 1);
        tare_strbuf_append(&changed, "\x01", 1);
        tare_strbuf_append(&changed, bytes.data + first + i + 1, bytes.size - first - i - 1);
        seal(&changed);
        char expected[64];
        snprintf(expected, sizeof expected, "bad count at byte %zu", first + i + 10);
        assert_int_equal(tare_calibration_decode(&back, changed.data, changed.size), TARE_CORRUPT);
        assert_string_equal(tare_error_text(), expected);
        tare_strbuf_free(&changed);
    }
    tare_strbuf_free(&bytes);
    tare_calibration_free(c);
}

/* Version 1 has no digests; digests out of order, or more than records, are refused. */
static void file__version_1_is_read(void **state) {
    (void)state;
    struct tare_calibration *c = tare_calibration_new(model, "", false), *back;
    struct tare_digest_set *set;
    struct tare_strbuf bytes, old = { 0 };
    int32_t input;
    assert_int_equal(tare_calibration_add_input(c, "s", "f", &input), TARE_OK);
    assert_int_equal(tare_record_set_add(&c->inputs[0].records, 0, 2), TARE_OK);
    bytes = bytes_of(c);
    const size_t lists = bytes.size - 8 - 4; /* counts of digests, functions, sides and tensors; the checksum */
    tare_strbuf_append(&old, bytes.data, lists);
    tare_strbuf_append(&old, bytes.data + lists + 1, bytes.size - lists - 1);
    old.data[8] = 1;
    seal(&old);
    assert_int_equal(tare_calibration_decode(&back, old.data, old.size), TARE_OK);
    assert_int_equal(tare_calibration_records(back), 2);
    assert_int_equal(back->n_digests, 0);
    tare_calibration_free(back);
    tare_strbuf_free(&old);
    tare_strbuf_free(&bytes);

    assert_int_equal(tare_calibration_add_digests(c, "s", &set), TARE_OK);
    assert_int_equal(tare_digest_set_add(set, 7), TARE_OK);
    assert_int_equal(tare_digest_set_add(set, 9), TARE_OK);
    tare_digest_set_finish(set);
    bytes = bytes_of(c);
    bytes.data[lists + 1 + 2 + 1] = 9; /* the first of the two, after the count, the signature and their number */
    seal(&bytes);
    assert_int_equal(tare_calibration_decode(&back, bytes.data, bytes.size), TARE_CORRUPT);
    assert_non_null(strstr(tare_error_text(), "digests out of order"));
    tare_strbuf_free(&bytes);
    assert_int_equal(tare_digest_set_add(set, 8), TARE_OK);
    tare_digest_set_finish(set);
    bytes = bytes_of(c);
    assert_int_equal(tare_calibration_decode(&back, bytes.data, bytes.size), TARE_CORRUPT);
    assert_non_null(strstr(tare_error_text(), "bad number of digests"));
    tare_strbuf_free(&bytes);
    tare_calibration_free(c);
}

static void merge__counts_that_overflow_are_refused(void **state) {
    (void)state;
    struct tare_calibration *a = make(0, 5, false), *b = make(1, 5, false);
    a->functions[1].records = INT64_MAX;
    assert_int_equal(tare_calibration_merge(a, b), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "function 'fn': more records than can be counted");
    tare_calibration_free(a);
    a = make(0, 5, false);
    a->tensors[0]->statistics.histogram.zeros = INT64_MAX - 100000;
    for (int i = 0; i < 2; i++) {
        b->tensors[0]->statistics.histogram.zeros = i ? 100001 : 1;
        tare_status status = tare_statistics_merge(&a->tensors[0]->statistics, &b->tensors[0]->statistics, NULL);
        assert_int_equal(status, i ? TARE_INVALID_ARGUMENT : TARE_OK);
    }
    assert_string_equal(tare_error_text(), "more values than can be counted");
    tare_calibration_free(a);
    tare_calibration_free(b);
}

static void file__says_what_it_is_not(void **state) {
    (void)state;
    struct tare_calibration *back;
    const char *path = temp_file("text", "hello, this is text", 19);
    assert_int_equal(tare_calibration_load(&back, path), TARE_CORRUPT);
    assert_non_null(strstr(tare_error_text(), "text: not a calibration file (it does not begin with TARECAL)"));
    path = temp_file("new", "TARECAL\n\x03xxxxxxxxxxxx", 21);
    assert_int_equal(tare_calibration_load(&back, path), TARE_UNSUPPORTED);
    assert_non_null(strstr(tare_error_text(), "calibration file of version 3 (expected 1 to 2)"));
    assert_int_equal(tare_calibration_load(&back, temp_path("none")), TARE_NOT_FOUND);
}

static void file__another_model_is_reported(void **state) {
    (void)state;
    struct tare_calibration *c = make(0, 17, false), *back;
    const char *path = temp_path("a.calib");
    assert_int_equal(tare_calibration_save(c, path), TARE_OK);
    assert_int_equal(tare_calibration_load(&back, path), TARE_OK);
    assert_int_equal(tare_calibration_check_model(back, model, "a.calib"), TARE_OK);
    assert_int_equal(tare_calibration_check_model(back, other_model, "a.calib"), TARE_INVALID_ARGUMENT);
    assert_string_equal(
        tare_error_text(),
        "a.calib: this is the calibration of another model, or the model has changed since (fingerprint "
        "00000000000012340000000000005678, the model has 00000000000012340000000000005679)");
    tare_calibration_free(c);
    tare_calibration_free(back);
}

static void file__failed_writes_leave_the_old_one(void **state) {
    (void)state;
    struct tare_calibration *first = make(0, 5, false), *second = make(1, 5, false), *back;
    const char *path = temp_path("kept.calib");
    assert_int_equal(tare_calibration_save(first, path), TARE_OK);
    tare_status status = TARE_IO;
    for (int n = 1; status != TARE_OK; n++) {
        tare_file_fail_at(n);
        status = tare_calibration_save(second, path);
        tare_file_fail_at(0);
        assert_int_equal(tare_calibration_load(&back, path), TARE_OK);
        assert_true(tare_calibration_records(back) == tare_calibration_records(status == TARE_OK ? second : first));
        tare_calibration_free(back);
    }
    tare_calibration_free(first);
    tare_calibration_free(second);
}

static void file__memory_that_runs_out_is_a_failure(void **state) {
    (void)state;
    struct tare_calibration *c = make(3, 17, false), *back = NULL;
    struct tare_strbuf bytes = bytes_of(c);
    tare_status status = TARE_NO_MEMORY;
    for (int n = 1; status != TARE_OK; n++) {
        tare_alloc_fail_at(n);
        status = tare_calibration_decode(&back, bytes.data, bytes.size);
        tare_alloc_fail_at(0);
        if (status != TARE_OK) assert_int_equal(status, TARE_NO_MEMORY);
    }
    tare_calibration_free(back);
    tare_strbuf_free(&bytes);
    tare_calibration_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file__comes_back_as_it_was),
        cmocka_unit_test(file__order_and_shards_leave_no_trace),
        cmocka_unit_test(merge__refuses_what_does_not_belong_together),
        cmocka_unit_test(file__every_truncation_and_bit_flip_is_refused),
        cmocka_unit_test(file__wrong_contents_under_a_right_checksum_do_no_harm),
        cmocka_unit_test(file__counts_beyond_the_file_are_refused_at_once),
        cmocka_unit_test(merge__counts_that_overflow_are_refused),
        cmocka_unit_test(file__says_what_it_is_not),
        cmocka_unit_test(file__version_1_is_read),
        cmocka_unit_test(file__another_model_is_reported),
        cmocka_unit_test(file__failed_writes_leave_the_old_one),
        cmocka_unit_test(file__memory_that_runs_out_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
