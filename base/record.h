/* Which record of the data a sample is. */
#ifndef TARE_BASE_RECORD_H
#define TARE_BASE_RECORD_H

#include <stdint.h>

struct tare_record {
    int32_t file;   /* index into the files of the source */
    int64_t number; /* of the record in its file, from 0 */
    int64_t index;  /* of the record in the whole data set (all files one after the other, before any sharding), from 0,
                       including bad records; basis of the convergence statistics */
    int64_t offset; /* of the record in the uncompressed stream of its file */
    int64_t sequence; /* of records that follow each other (datasets/sequence.h); 0: not numbered */
};

#endif
