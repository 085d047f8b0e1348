/* String hashes compared with values of independent programs. */
#include "interpreter/ops/string/hash64.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

/* Bytes 'a' + (7 i) mod 26; values of the npm package farmhash (the original C++). The lengths cover every branch. */
static void fingerprint64__equals_farmhash(void **state) {
    static const struct {
        size_t size;
        uint64_t hash;
    } known[] = {
        { 0, 0x9ae16a3b2f90404fu },   { 1, 0xb3454265b6df75e3u },   { 3, 0x2d5b0cbcc48fdc6bu },
        { 4, 0x7b803bc75cee3292u },   { 7, 0xed26868869003b0au },   { 8, 0x93b52af6d9b92820u },
        { 16, 0xf496a3696582095eu },  { 17, 0x1f0c64814df23a1au },  { 32, 0x9636decce0f119bcu },
        { 33, 0x6fa5de3a3dd81cacu },  { 64, 0xe01e9a6d5635769eu },  { 65, 0x266a26491da9530du },
        { 127, 0x44d86f1dc468d399u }, { 128, 0x917472f7f980118du }, { 129, 0xeb7d4a2cddb5078u },
        { 192, 0x29dccca451f6d409u }, { 256, 0x2ab95468a424bfc2u }, { 300, 0x6d8c60e9557bdd86u },
    };
    char text[300];
    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i * 7 % 26);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(tare_fingerprint64(text, known[i].size), known[i].hash);
}

/* The example in the SipHash paper. */
static void siphash24__equals_the_published_vector(void **state) {
    unsigned char message[15];
    (void)state;
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (unsigned char)i;
    assert_int_equal(tare_siphash24(message, sizeof message, 0x0706050403020100u, 0x0f0e0d0c0b0a0908u),
                     0xa129ca6149be45e5u);
}

/* tf.strings.to_hash_bucket(["Hello", "TensorFlow", "2.x"], 3) in TensorFlow's documentation. */
static void murmur64__matches_the_documented_buckets(void **state) {
    (void)state;
    assert_int_equal(tare_murmur64("Hello", 5) % 3, 2);
    assert_int_equal(tare_murmur64("TensorFlow", 10) % 3, 0);
    assert_int_equal(tare_murmur64("2.x", 3) % 3, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fingerprint64__equals_farmhash),
        cmocka_unit_test(siphash24__equals_the_published_vector),
        cmocka_unit_test(murmur64__matches_the_documented_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
