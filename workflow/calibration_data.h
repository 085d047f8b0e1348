/* Assigns files to signatures from the values of --data. */
#ifndef TARE_WORKFLOW_CALIBRATION_DATA_H
#define TARE_WORKFLOW_CALIBRATION_DATA_H

#include "base/file.h"
#include "graph/model.h"

/* One signature and its files, in the order given; patterns are expanded. */
struct tare_data_group {
    const struct tare_signature *signature;
    struct tare_file_list files;
};

struct tare_data_groups {
    struct tare_data_group *items;
    size_t count, capacity;
};

/* Whether "-" is among files that may have a signature in front. */
bool tare_data_is_standard_input(const char *const *data, size_t n_data);
/* Groups `data` ("FILE" or "SIGNATURE=FILE"; a pattern, or "-" for standard input) by signature. Files without a
 * signature belong to `plain` (NULL: serving_default, or the only signature). The text before "=" is a signature unless
 * a file with the whole name exists; TARE_NOT_FOUND lists the signatures if the name is unknown. TARE_USAGE if a file
 * is given twice for one signature, or standard input twice. Release with tare_data_groups_free, also after a failure.
 */
tare_status tare_data_groups_make(struct tare_data_groups *out, const struct tare_graph_model *model,
                                  const char *const *data, size_t n_data, const struct tare_signature *plain);
/* One signature (NULL: serving_default, or the only one) without files, for samples from the caller. Release likewise.
 */
tare_status tare_data_groups_make_one(struct tare_data_groups *out, const struct tare_graph_model *model,
                                      const struct tare_signature *plain) TARE_WARN_UNUSED;
void tare_data_groups_free(struct tare_data_groups *groups);

#endif
