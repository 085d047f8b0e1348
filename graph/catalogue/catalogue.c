/* The list of the catalogue's tables. */
#include "graph/catalogue/tables.h"

const struct tare_catalogue_entry *const tare_catalogue_tables[] = {
#define X(table) tare_catalogue_##table,
    TARE_CATALOGUE_TABLES(X)
#undef X
        NULL,
};
