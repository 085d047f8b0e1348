/* HighwayHash with 64 bits: the checksum of Riegeli files. */
#ifndef TARE_PROTO_HIGHWAY_HASH_H
#define TARE_PROTO_HIGHWAY_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t tare_highway_hash64(const uint64_t key[4], const void *data, size_t size);

#endif
