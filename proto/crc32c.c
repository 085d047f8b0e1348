/* CRC-32C by ISA-L, which selects the implementation for the processor at run time. */
#include "proto/crc32c.h"

#include <isa-l/crc.h>

/* crc32_iscsi neither inverts its start value nor its result, and takes an int length: both are done here. */
uint32_t tare_crc32c_extend(uint32_t crc, const void *data, size_t size) {
    unsigned char *bytes = (unsigned char *)data;
    uint32_t state = ~crc;
    while (size) {
        int part = size < 1 << 30 ? (int)size : 1 << 30;
        state = crc32_iscsi(bytes, part, state);
        bytes += part;
        size -= (size_t)part;
    }
    return ~state;
}
