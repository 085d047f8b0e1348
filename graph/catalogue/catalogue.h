/* Definitions of the public ops that no family implements, so that models with them open, validate and convert.
 * The tables are written by scripts/make-catalogue.py; a family row hides the entry of its name. */
#ifndef TARE_GRAPH_CATALOGUE_CATALOGUE_H
#define TARE_GRAPH_CATALOGUE_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

struct tare_catalogue_entry {
    const char *name;
    const char *inputs, *outputs, *attrs; /* specification strings; NULL: none */
    bool is_stateful;
};

/* A table, ended by an entry without name. */
extern const struct tare_catalogue_entry *const tare_catalogue_tables[]; /* ended by NULL */

#endif
