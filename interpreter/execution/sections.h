/* Sections: consecutive steps of a plan that treat each record of a batch separately, such as the convolutions,
 * poolings and element-wise ops of an image network. Where the activations of the whole batch do not fit in the
 * second-level cache, a section runs for a few records at a time, so that the values between its steps stay in the
 * cache. The kernels compute the same bits for a record in any batch, so results do not change.
 *
 * A section is divided into pieces at the steps before which only one value is used later. The first run with a shape
 * of the input runs the whole batch and measures the values of each piece. From these follows how many records each
 * piece, or several pieces together, run at a time (sections_choose.c). */
#ifndef TARE_INTERPRETER_EXECUTION_SECTIONS_H
#define TARE_INTERPRETER_EXECUTION_SECTIONS_H

#include "interpreter/execution/step.h"

struct tare_section_exit {
    int step, slot;
    int until; /* step that drops it */
};

/* Bytes are those of a whole batch. */
struct tare_section_piece {
    int first, last; /* steps */
    int *entries;    /* slots that earlier steps make */
    size_t n_entries;
    struct tare_section_exit *exits; /* values of this piece that exist after it */
    size_t n_exits;
    int64_t most_live; /* bytes of the values that exist at the same time */
    int64_t made;      /* bytes of all values that the piece makes */
    int64_t into;      /* bytes of the entries */
    int64_t weights;   /* bytes of the constants that its steps read */
};

/* Consecutive pieces and how many records they run at a time: 0: all. */
struct tare_section_part {
    size_t first_piece, last_piece;
    int64_t records;
};

struct tare_section {
    struct tare_section *next; /* of the plan, in order */
    int first, last;           /* steps */
    struct tare_section_piece *pieces;
    size_t n_pieces;
    int64_t *bytes;       /* by step: of the value that it makes, in the run that measures */
    int64_t *entry_bytes; /* by entry of the first piece */
    bool active;          /* the present observer requests no value of the section */
    /* What was measured: the shape of the first entry; `parts` apply to it. */
    bool is_measured;
    struct tare_shape shape;
    struct tare_section_part *parts; /* as many as pieces at most */
    size_t n_parts;                  /* 0: the section runs as if it were none */
};

/* Sets section->parts from what was measured in a batch of `batch` records; `cache`: bytes of values that stay in the
 * second-level caches of the threads that each kernel may use. */
void tare_section_choose(struct tare_section *section, int64_t batch, int64_t cache);

/* Calls `see` for each exit of the pieces first to last that exists after the last one. */
void tare_section_for_exits(const struct tare_section *section, size_t first, size_t last,
                            void (*see)(void *arg, const struct tare_section_exit *exit), void *arg);
/* True for a convolution, pooling, padding, mean, slice or concatenation of images, whose constants are not operands by
 * element. Otherwise a step of a section is element-wise. */
bool tare_section_takes_images(const struct tare_step *step);
/* Runs the steps from `first` to `last` of a frame, with the drops after each. */
typedef tare_status tare_run_range(struct tare_session *session, const struct tare_plan *plan,
                                   struct tare_exec_frame *frame, size_t first, size_t last);
/* Runs a section, at most a few records at a time where that is faster. */
tare_status tare_section_run(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                             struct tare_section *section, tare_run_range *run);

#endif
