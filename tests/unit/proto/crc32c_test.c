/* CRC-32C against published vectors (RFC 3720, B.4) and a plain bit-by-bit one. */
#include "proto/crc32c.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

static uint32_t bit_by_bit(uint32_t crc, const uint8_t *data, size_t size) {
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void crc__matches_published_vectors(void **state) {
    uint8_t bytes[32];
    (void)state;
    assert_int_equal(tare_crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(tare_crc32c("", 0), 0);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(tare_crc32c(bytes, 32), 0x8a9136aau);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(tare_crc32c(bytes, 32), 0x62a8ab43u);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(tare_crc32c(bytes, 32), 0x46dd794eu);
}

static void crc__equals_the_plain_one_at_all_lengths_and_alignments(void **state) {
    uint8_t bytes[700];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t size = 0; size < 650; size++)
        assert_int_equal(tare_crc32c(bytes + size % 9, size), bit_by_bit(0, bytes + size % 9, size));
}

static void crc__of_parts_is_the_crc_of_the_whole(void **state) {
    const char *text = "a text in two parts";
    (void)state;
    for (size_t cut = 0; cut <= strlen(text); cut++)
        assert_int_equal(tare_crc32c_extend(tare_crc32c(text, cut), text + cut, strlen(text) - cut),
                         tare_crc32c(text, strlen(text)));
}

static void mask__is_undone_by_unmask(void **state) {
    (void)state;
    assert_int_equal(tare_crc32c_mask(0), 0xa282ead8u);
    for (uint32_t crc = 1; crc; crc <<= 1) {
        assert_int_not_equal(tare_crc32c_mask(crc), crc);
        assert_int_equal(tare_crc32c_unmask(tare_crc32c_mask(crc)), crc);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc__matches_published_vectors),
        cmocka_unit_test(crc__equals_the_plain_one_at_all_lengths_and_alignments),
        cmocka_unit_test(crc__of_parts_is_the_crc_of_the_whole),
        cmocka_unit_test(mask__is_undone_by_unmask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
