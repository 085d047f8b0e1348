/* TFRecord files: plain, compressed, piped, cut, damaged. */
#include "datasets/tfrecord.h"
#include "base/alloc.h"
#include "base/file.h"
#include "proto/crc32c.h"
#include "support/temp.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { RECORDS = 5, FRAME = 16 };
static const size_t sizes[RECORDS] = { 3, 0, 700000, 40, 1 };

static uint8_t *content(int i) {
    uint8_t *data = malloc(sizes[i] + 1); /* not counted among the allocations that fail */
    for (size_t k = 0; k < sizes[i]; k++)
        data[k] = (uint8_t)((k * 31 + (size_t)i) >> 2);
    return data;
}

static tare_status write_records(const char *path) {
    struct tare_tfrecord_writer *writer;
    TARE_TRY(tare_tfrecord_create(&writer, path));
    for (int i = 0; i < RECORDS; i++) {
        uint8_t *data = content(i);
        tare_status status = tare_tfrecord_write(writer, data, sizes[i]);
        free(data);
        if (status != TARE_OK) {
            tare_tfrecord_abort(writer);
            return status;
        }
    }
    return tare_tfrecord_commit(writer);
}

/* Reads all; records counts the good ones, the status is the first failure's. */
static tare_status read_records(const char *path, int *records) {
    struct tare_tfrecord_reader *reader;
    struct tare_tfrecord record;
    tare_status status;
    bool end;
    *records = 0;
    TARE_TRY(tare_tfrecord_open(&reader, path));
    while ((status = tare_tfrecord_next(&record, &end, reader)) == TARE_OK && !end)
        ++*records;
    tare_tfrecord_close(reader);
    return status;
}

static void check_all(const char *path, const char *compression) {
    struct tare_tfrecord_reader *reader;
    struct tare_tfrecord record;
    int64_t offset = 0;
    bool end;
    assert_int_equal(tare_tfrecord_open(&reader, path), TARE_OK);
    assert_string_equal(tare_tfrecord_compression(reader), compression);
    for (int i = 0; i < RECORDS; i++) {
        uint8_t *data = content(i);
        if (tare_tfrecord_next(&record, &end, reader) != TARE_OK) fail_msg("%s", tare_error_text());
        assert_false(end);
        assert_int_equal(record.number, i);
        assert_int_equal(record.offset, offset);
        assert_int_equal(record.size, sizes[i]);
        if (sizes[i]) assert_memory_equal(record.data, data, sizes[i]);
        offset += (int64_t)(FRAME + sizes[i]);
        free(data);
    }
    for (int again = 0; again < 2; again++) {
        assert_int_equal(tare_tfrecord_next(&record, &end, reader), TARE_OK);
        assert_true(end);
    }
    tare_tfrecord_close(reader);
}

static void round_trip__plain_and_gzip(void **state) {
    (void)state;
    assert_int_equal(write_records(temp_path("a.tfrecord")), TARE_OK);
    check_all(temp_path("a.tfrecord"), "none");
    assert_int_equal(write_records(temp_path("a.tfrecord.gz")), TARE_OK);
    check_all(temp_path("a.tfrecord.gz"), "gzip");
    assert_true(tare_file_size(temp_path("a.tfrecord.gz")) < tare_file_size(temp_path("a.tfrecord")));
}

static void compression__is_told_by_content(void **state) {
    char *plain;
    size_t size;
    uLongf packed_size;
    uint8_t *packed;
    (void)state;
    assert_int_equal(tare_file_read(&plain, &size, temp_path("a.tfrecord")), TARE_OK);
    packed_size = compressBound(size);
    packed = tare_malloc(packed_size);
    assert_int_equal(compress(packed, &packed_size, (Bytef *)plain, size), Z_OK);
    check_all(temp_file("zlib", packed, packed_size), "zlib");
    tare_free(packed);
    tare_free(plain);
    /* A record of 0x8b1f bytes begins as GZIP does. */
    struct tare_tfrecord_writer *writer;
    int records;
    uint8_t *data = tare_calloc(1, 0x8b1f);
    assert_int_equal(tare_tfrecord_create(&writer, temp_path("like.gzip")), TARE_OK);
    assert_int_equal(tare_tfrecord_write(writer, data, 0x8b1f), TARE_OK);
    assert_int_equal(tare_tfrecord_commit(writer), TARE_OK);
    assert_int_equal(read_records(temp_path("like.gzip"), &records), TARE_OK);
    assert_int_equal(records, 1);
    tare_free(data);
}

static void gzip__may_have_several_members_and_padding(void **state) {
    char *packed, *both;
    size_t size;
    int records;
    static const char zeros[40];
    (void)state;
    assert_int_equal(tare_file_read(&packed, &size, temp_path("a.tfrecord.gz")), TARE_OK);
    both = tare_malloc(2 * size + sizeof zeros);
    memcpy(both, packed, size);
    memcpy(both + size, packed, size);
    memcpy(both + 2 * size, zeros, sizeof zeros);
    assert_int_equal(read_records(temp_file("two.gz", both, 2 * size + sizeof zeros), &records), TARE_OK);
    assert_int_equal(records, 2 * RECORDS);
    memcpy(both + 2 * size, "garbage", 7);
    assert_int_equal(read_records(temp_file("two.gz", both, 2 * size + 7), &records), TARE_CORRUPT);
    assert_non_null(strstr(tare_error_text(), "unexpected data after its end"));
    tare_free(both);
    tare_free(packed);
}

static void pipes__are_read_as_files_are(void **state) {
    static const char *const names[] = { "a.tfrecord", "a.tfrecord.gz" };
    char command[1500];
    (void)state;
    assert_int_equal(mkfifo(temp_path("pipe"), 0600), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "cat '%s' > '%s' &", temp_path(names[i]), temp_path("pipe"));
        assert_int_equal(system(command), 0);
        check_all(temp_path("pipe"), i ? "gzip" : "none");
    }
}

static void empty_file__has_no_records(void **state) {
    int records;
    (void)state;
    assert_int_equal(read_records(temp_file("empty", "", 0), &records), TARE_OK);
    assert_int_equal(records, 0);
}

/* Record boundaries of the file are the only places where it may end. */
static void truncation__is_told_from_the_end(void **state) {
    char *plain, text[700];
    size_t size;
    int records;
    (void)state;
    assert_int_equal(tare_file_read(&plain, &size, temp_path("a.tfrecord")), TARE_OK);
    for (size_t cut = 1; cut < 60; cut++) {
        tare_status status = read_records(temp_file("cut", plain, cut), &records);
        if (cut == FRAME + 3 || cut == FRAME + 3 + FRAME) {
            assert_int_equal(status, TARE_OK);
            continue;
        }
        assert_int_equal(status, TARE_CORRUPT);
        assert_int_equal(records, cut < FRAME + 3 ? 0 : cut < FRAME + 3 + FRAME ? 1 : 2);
        snprintf(text, sizeof text, "%s: record %d: truncated record at %d%s", temp_path("cut"), records,
                 records == 0   ? 0
                 : records == 1 ? 19
                                : 35,
                 records ? "" : " (Is this even a TFRecord file?)");
        assert_string_equal(tare_error_text(), text);
    }
    tare_free(plain);
}

static void truncation__of_gzip_is_noticed_at_every_byte(void **state) {
    char *packed;
    size_t size;
    int records;
    (void)state;
    assert_int_equal(tare_file_read(&packed, &size, temp_path("a.tfrecord.gz")), TARE_OK);
    for (size_t cut = 1; cut<size; cut += size> 2000 && cut > 300 && cut < size - 300 ? 97 : 1)
        assert_int_equal(read_records(temp_file("cut.gz", packed, cut), &records), TARE_CORRUPT);
    tare_free(packed);
}

/* The checksum at the end of the gzip data is missing: all records are there, but nothing confirms them. */
static void truncation__of_the_gzip_trailer_is_not_one_of_a_record(void **state) {
    char *packed, text[700];
    size_t size;
    int records;
    (void)state;
    assert_int_equal(tare_file_read(&packed, &size, temp_path("a.tfrecord.gz")), TARE_OK);
    assert_int_equal(read_records(temp_path("a.tfrecord.gz"), &records), TARE_OK);
    const int all = records;
    assert_int_equal(read_records(temp_file("cut.gz", packed, size - 1), &records), TARE_CORRUPT);
    assert_int_equal(records, all);
    snprintf(text, sizeof text, "%s: record %d: the gzip data ends early at ", temp_path("cut.gz"), all);
    if (strncmp(tare_error_text(), text, strlen(text)) != 0) fail_msg("%s", tare_error_text());
    assert_non_null(strstr(tare_error_text(), ", after a whole record (expected its checksum, or further records)"));
    tare_free(packed);
}

static void corruption__of_data_can_be_passed_over(void **state) {
    struct tare_tfrecord_reader *reader;
    struct tare_tfrecord record;
    char *plain, text[700];
    size_t size;
    bool end;
    (void)state;
    assert_int_equal(tare_file_read(&plain, &size, temp_path("a.tfrecord")), TARE_OK);
    plain[35 + 12 + 5000] ^= 1; /* in record 2 */
    assert_int_equal(tare_tfrecord_open(&reader, temp_file("bad", plain, size)), TARE_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tare_tfrecord_next(&record, &end, reader), TARE_OK);
    assert_int_equal(tare_tfrecord_next(&record, &end, reader), TARE_CORRUPT);
    snprintf(text, sizeof text, "%s: record 2: corrupted record at 35", temp_path("bad"));
    assert_string_equal(tare_error_text(), text);
    assert_true(tare_tfrecord_can_skip(reader));
    assert_int_equal(tare_tfrecord_next(&record, &end, reader), TARE_OK);
    assert_int_equal(record.number, 3);
    assert_int_equal(record.offset, 35 + FRAME + 700000);
    tare_tfrecord_close(reader);
    tare_free(plain);
}

static void corruption__of_a_length_ends_the_file(void **state) {
    struct tare_tfrecord_reader *reader;
    struct tare_tfrecord record;
    char *plain;
    size_t size;
    bool end;
    (void)state;
    assert_int_equal(tare_file_read(&plain, &size, temp_path("a.tfrecord")), TARE_OK);
    plain[19] ^= 1;
    assert_int_equal(tare_tfrecord_open(&reader, temp_file("bad", plain, size)), TARE_OK);
    assert_int_equal(tare_tfrecord_next(&record, &end, reader), TARE_OK);
    assert_int_equal(tare_tfrecord_next(&record, &end, reader), TARE_CORRUPT);
    assert_false(tare_tfrecord_can_skip(reader));
    assert_int_equal(tare_tfrecord_next(&record, &end, reader), TARE_OK);
    assert_true(end);
    tare_tfrecord_close(reader);
    tare_free(plain);
}

static void every_bit_flip_of_a_small_file__is_noticed(void **state) {
    struct tare_tfrecord_writer *writer;
    char *bytes;
    size_t size;
    int records;
    (void)state;
    assert_int_equal(tare_tfrecord_create(&writer, temp_path("small")), TARE_OK);
    assert_int_equal(tare_tfrecord_write(writer, "hello", 5), TARE_OK);
    assert_int_equal(tare_tfrecord_commit(writer), TARE_OK);
    assert_int_equal(tare_file_read(&bytes, &size, temp_path("small")), TARE_OK);
    assert_int_equal(size, 21);
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_equal(read_records(temp_file("flip", bytes, size), &records), TARE_CORRUPT);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    tare_free(bytes);
}

static void foreign_file__is_reported(void **state) {
    int records;
    (void)state;
    assert_int_equal(read_records(temp_file("foreign", "#!/bin/sh\necho hello, world\n", 28), &records), TARE_CORRUPT);
    assert_non_null(
        strstr(tare_error_text(), "foreign: record 0: corrupted record at 0 (Is this even a TFRecord file?)"));
}

/* A compressed file whose only record says `length` and then ends. */
static tare_status read_false_length(uint64_t length) {
    uint8_t header[12], packed[100];
    uLongf size = sizeof packed;
    uint32_t crc;
    int records;
    memcpy(header, &length, 8);
    crc = tare_crc32c_mask(tare_crc32c(header, 8));
    memcpy(header + 8, &crc, 4);
    assert_int_equal(compress(packed, &size, header, sizeof header), Z_OK);
    return read_records(temp_file("false", packed, size), &records);
}

static void false_length__is_told_and_takes_no_memory(void **state) {
    (void)state;
    assert_int_equal(read_false_length(UINT64_C(1) << 40), TARE_CORRUPT);
    assert_non_null(strstr(tare_error_text(), "corrupted record at 0"));
    assert_int_equal(read_false_length(TARE_TFRECORD_LONGEST), TARE_CORRUPT);
    assert_non_null(strstr(tare_error_text(), "truncated record at 0"));
}

static void faults__leave_no_file(void **state) {
    char path[600];
    int records;
    (void)state;
    snprintf(path, sizeof path, "%s", temp_path("faults.gz"));
    for (int files = 0; files < 2; files++) {
        tare_status status = TARE_IO;
        for (int64_t n = 1; status != TARE_OK && n < 500; n++) {
            unlink(path);
            if (files)
                tare_file_fail_at(n);
            else
                tare_alloc_fail_at(n);
            status = write_records(path);
            tare_alloc_fail_at(0);
            tare_file_fail_at(0);
        }
        assert_int_equal(status, TARE_OK);
        status = TARE_IO;
        for (int64_t n = 1; status != TARE_OK && n < 500; n++) {
            if (files)
                tare_file_fail_at(n);
            else
                tare_alloc_fail_at(n);
            status = read_records(path, &records);
            tare_alloc_fail_at(0);
            tare_file_fail_at(0);
        }
        assert_int_equal(records, RECORDS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip__plain_and_gzip),
        cmocka_unit_test(compression__is_told_by_content),
        cmocka_unit_test(gzip__may_have_several_members_and_padding),
        cmocka_unit_test(pipes__are_read_as_files_are),
        cmocka_unit_test(empty_file__has_no_records),
        cmocka_unit_test(truncation__is_told_from_the_end),
        cmocka_unit_test(truncation__of_gzip_is_noticed_at_every_byte),
        cmocka_unit_test(truncation__of_the_gzip_trailer_is_not_one_of_a_record),
        cmocka_unit_test(corruption__of_data_can_be_passed_over),
        cmocka_unit_test(corruption__of_a_length_ends_the_file),
        cmocka_unit_test(every_bit_flip_of_a_small_file__is_noticed),
        cmocka_unit_test(foreign_file__is_reported),
        cmocka_unit_test(false_length__is_told_and_takes_no_memory),
        cmocka_unit_test(faults__leave_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
