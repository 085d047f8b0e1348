/* Corrects the checksums of mutated inputs in place. Whatever is too damaged to locate a checksum is left alone. None
 * of them changes the bytes of a valid file. */
#ifndef TARE_TESTS_FUZZ_REPAIR_H
#define TARE_TESTS_FUZZ_REPAIR_H

#include <stddef.h>
#include <stdint.h>

/* An uncompressed TFRecord file: the checksums of lengths and data. A length beyond the end is set to what is left. */
void repair_tfrecord(uint8_t *data, size_t size);
/* A checkpoint in two parts, fields `index` and `index` + 1 of the input: the checksums of the blocks of the index, and
 * those of whole numeric tensors. */
void repair_checkpoint(uint8_t *data, size_t size, uint32_t index);
void repair_calibration(uint8_t *data, size_t size);
/* A Riegeli file: the hashes of chunk headers and data, and the hash of block headers. */
void repair_riegeli(uint8_t *data, size_t size);
/* A ZIP file: the checksums of stored and deflated members. */
void repair_zip(uint8_t *data, size_t size);
/* A PNG file: the checksums of chunks. Other images have none. */
void repair_image(uint8_t *data, size_t size);

#endif
