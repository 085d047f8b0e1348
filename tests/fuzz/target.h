/* The fuzz targets: each passes bytes to one reader, and uses what the reader accepts.
 *
 * Three programs share the table: the libFuzzer program (libfuzzer.c), the replay of tests/corpus (replay.c), which any
 * compiler builds, and fuzz_modules (modules.c). A target must not crash, leak, or loop, whatever the bytes are; where
 * a format promises more (a written file can be read again), the target calls abort() when that does not hold. */
#ifndef TARE_TESTS_FUZZ_TARGET_H
#define TARE_TESTS_FUZZ_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far a target came with its input. */
enum fuzz_depth {
    FUZZ_REFUSED, /* an error */
    FUZZ_READ,
    FUZZ_USED, /* read, and used for what it is read for */
};

struct fuzz_target {
    const char *name; /* also of its folder in tests/corpus */
    enum fuzz_depth (*run)(const uint8_t *data, size_t size);
    /* Inputs are protobuf messages, so that the mutator changes fields instead of bytes. An input that consists of
     * several files is a message as well: field n contains file n. */
    bool is_message;
    /* Corrects lengths and checksums in place, so that a mutated input is not refused at its first checksum; NULL: the
     * format has none. Does not change a valid input. */
    void (*repair)(uint8_t *data, size_t size);
    size_t largest; /* bytes of an input */
};

/* All targets; a row without a name ends the table. */
extern const struct fuzz_target fuzz_targets[];
/* NULL if there is no such target. */
const struct fuzz_target *fuzz_target_find(const char *name);
/* Limits the memory of the process and creates the folder of scratch files, in $TARE_FUZZ_SCRATCH if that is set. Call
 * it once, before the first run. */
void fuzz_begin(void);
/* Removes the folder. */
void fuzz_end(void);

/* Targets that have further users or a file of their own. */
enum fuzz_depth fuzz_module(const uint8_t *data, size_t size);  /* a StableHLO module */
enum fuzz_depth fuzz_export(const uint8_t *data, size_t size);  /* the same, imported, exported and imported again */
enum fuzz_depth fuzz_pattern(const uint8_t *data, size_t size); /* a pattern of RE2, and a text */
enum fuzz_depth fuzz_execute(const uint8_t *data, size_t size);

/* The path of a scratch file or folder, in a folder in memory where there is one; valid for eight more calls. */
const char *fuzz_path(const char *name);
/* Writes a scratch file and returns its path. */
const char *fuzz_file(const char *name, const uint8_t *data, size_t size);

/* File `number` of an input that consists of several; without one, an empty one. */
struct fuzz_part {
    const uint8_t *data;
    size_t size;
};
struct fuzz_part fuzz_part(const uint8_t *data, size_t size, uint32_t number);

#endif
