/* Shared by the parts of the file validator. Nothing else includes this. */
#ifndef TARE_CONVERT_VALIDATE_INTERNAL_H
#define TARE_CONVERT_VALIDATE_INTERNAL_H

#include "convert/source.h"
#include "convert/validation/validate.h"

struct tare_file_validator {
    struct tare_faults *faults;
    struct tare_saved_model *source;
    const struct tare_graph_model *model;              /* NULL: it could not be imported */
    const Tensorflow__TrackableObjectGraph *trackable; /* read by tare_validate_trackable; NULL: the file has none */
    bool written; /* by this process a moment ago: tensors are not read, and what a TPU compiles was checked before */
    bool out_of_memory; /* the list is incomplete */
};

/* Adds "where: what". */
void tare_file_fault(struct tare_file_validator *v, const char *where, const char *format, ...) TARE_PRINTF(3, 4);
/* Adds it as a note. */
void tare_file_note(struct tare_file_validator *v, const char *where, const char *format, ...) TARE_PRINTF(3, 4);
/* Adds "where: prefix" and the error text if `status` is a failure, and clears the text. Without memory, the list is
 * marked as incomplete instead. */
void tare_file_check(struct tare_file_validator *v, const char *where, const char *prefix, tare_status status);
/* Object graphs, the saved one and the checkpoint's. */
void tare_validate_objects(struct tare_file_validator *v);
void tare_validate_trackable(struct tare_file_validator *v);
void tare_validate_captures(struct tare_file_validator *v);
void tare_validate_shapes(struct tare_file_validator *v);
void tare_validate_structured(struct tare_file_validator *v);
/* What the model's users meet when it is served: notes. */
void tare_validate_serving(struct tare_file_validator *v);

#endif
