/* Chooses how many records the pieces of a section run at a time, from the sizes of their values.
 *
 * As many records as keep all values that exist at the same time within the second-level cache, for each piece. Fewer
 * records read the weights more often, and each division into parts stores the value between them and reads it again,
 * so neighbouring pieces join where that costs less. A part then runs for a few records at a time if this saves more
 * traffic than it adds and needs no more memory than the whole batch does. */
#include "interpreter/execution/sections.h"

enum {
    WEIGHT_COST = 4, /* of a byte of weights, which comes from memory, in bytes of values outside the cache */
    PASSES = 3,      /* over a value between two parts: it is stored, copied and read */
};

struct exits {
    const struct tare_section *section;
    int64_t bytes;
};

static void add_exit(void *arg, const struct tare_section_exit *exit) {
    struct exits *exits = arg;
    exits->bytes += exits->section->bytes[exit->step - exits->section->first];
}

/* Bytes of the values that a part leaves to later steps. */
static int64_t bytes_left(const struct tare_section *section, const struct tare_section_part *part) {
    struct exits exits = { .section = section };
    tare_section_for_exits(section, part->first_piece, part->last_piece, add_exit, &exits);
    return exits.bytes;
}

/* Records whose values fit in the cache, or are not larger than what reading the weights for them costs, in parts of
 * equal size if possible; 0: all. */
static int64_t records_of(const struct tare_section_piece *piece, int64_t batch, int64_t cache) {
    const int64_t weights = WEIGHT_COST * piece->weights;
    const int64_t fitting = (cache > weights ? cache : weights) / (piece->most_live / batch + 1);
    const int64_t most = fitting > 1 ? fitting : 1;
    if (most >= batch) return 0;
    for (int64_t records = most; 2 * records > most; records--)
        if (batch % records == 0) return records;
    const int64_t runs = (batch + most - 1) / most;
    return (batch + runs - 1) / runs;
}

static int64_t runs_of(int64_t records, int64_t batch) {
    return records ? (batch + records - 1) / records : 1;
}

/* Bytes of weights that the pieces of a part read if it runs `records` at a time. */
static int64_t weights_read(const struct tare_section *section, const struct tare_section_part *part, int64_t records,
                            int64_t batch) {
    int64_t bytes = 0;
    for (size_t p = part->first_piece; p <= part->last_piece; p++)
        bytes += section->pieces[p].weights;
    return bytes * runs_of(records, batch);
}

static bool are_equal(const struct tare_section *section, const struct tare_section_part *last,
                      const struct tare_section_part *next, int64_t batch) {
    (void)section, (void)batch;
    return last->records == next->records;
}

/* Reading weights more often costs less than passing the value between the two. */
static bool is_cheaper_joined(const struct tare_section *section, const struct tare_section_part *last,
                              const struct tare_section_part *next, int64_t batch) {
    const bool next_is_larger = runs_of(last->records, batch) > runs_of(next->records, batch);
    const struct tare_section_part *larger = next_is_larger ? next : last, *smaller = next_is_larger ? last : next;
    const int64_t more =
        weights_read(section, larger, smaller->records, batch) - weights_read(section, larger, larger->records, batch);
    return more <= PASSES * section->pieces[next->first_piece].into;
}

/* Bytes that the section needs for the whole batch. */
static int64_t most_live_of(const struct tare_section *section, size_t first, size_t last) {
    int64_t most = 0;
    for (size_t p = first; p <= last; p++)
        if (most < section->pieces[p].most_live) most = section->pieces[p].most_live;
    return most;
}

static bool is_worth_it(const struct tare_section *section, const struct tare_section_part *part, int64_t batch) {
    const struct tare_section_piece *pieces = section->pieces;
    const int64_t out = bytes_left(section, part), ends = pieces[part->first_piece].into + out;
    const int64_t live = most_live_of(section, part->first_piece, part->last_piece) / batch * part->records;
    const int64_t more = weights_read(section, part, part->records, batch) - weights_read(section, part, 0, batch);
    int64_t inside = -out;
    for (size_t p = part->first_piece; p <= part->last_piece; p++)
        inside += pieces[p].made;
    return 2 * inside > more + out && ends + live <= most_live_of(section, 0, section->n_pieces - 1);
}

/* Appends a part to those before it. It runs as many records at a time as the one that runs fewer if they join. */
static void append(struct tare_section *section, const struct tare_section_part *part, int64_t batch,
                   bool (*joins)(const struct tare_section *section, const struct tare_section_part *last,
                                 const struct tare_section_part *next, int64_t batch)) {
    struct tare_section_part *end = &section->parts[section->n_parts], *last = end - 1;
    if (section->n_parts > 0 && joins(section, last, part, batch)) {
        last->last_piece = part->last_piece;
        if (runs_of(part->records, batch) > runs_of(last->records, batch)) last->records = part->records;
    } else {
        *end = *part;
        section->n_parts++;
    }
}

void tare_section_choose(struct tare_section *section, int64_t batch, int64_t cache) {
    bool any = false;
    section->n_parts = 0;
    for (size_t p = 0; p < section->n_pieces; p++) {
        const struct tare_section_part part = { p, p, records_of(&section->pieces[p], batch, cache) };
        append(section, &part, batch, are_equal);
    }
    const size_t count = section->n_parts;
    section->n_parts = 0;
    for (size_t i = 0; i < count; i++) {
        const struct tare_section_part part = section->parts[i];
        append(section, &part, batch, is_cheaper_joined);
    }
    for (size_t i = 0; i < section->n_parts; i++) {
        struct tare_section_part *part = &section->parts[i];
        if (part->records && !is_worth_it(section, part, batch)) part->records = 0;
        any |= part->records > 0;
    }
    if (!any) section->n_parts = 0;
}
