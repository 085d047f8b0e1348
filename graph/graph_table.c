#include "graph/graph_table.h"
#include "base/alloc.h"

#include <string.h>

enum { PAGE_VALUES = 64 };

static bool add_pages(struct tare_graph_table *table, size_t expected) {
    const size_t count = expected < 2 * table->n_pages ? 2 * table->n_pages : expected;
    void ***grown = tare_realloc(table->pages, count, sizeof *grown);
    if (!grown) return false;
    memset(grown + table->n_pages, 0, (count - table->n_pages) * sizeof *grown);
    table->pages = grown;
    table->n_pages = count;
    return true;
}

bool tare_graph_table_set(struct tare_graph_table *table, const struct tare_graph *graph, void *value) {
    const size_t page = graph->number / PAGE_VALUES;
    if (page >= table->n_pages && !add_pages(table, page + 1)) return false;
    if (!table->pages[page]) table->pages[page] = tare_calloc(PAGE_VALUES, sizeof(void *));
    if (!table->pages[page]) return false;
    table->pages[page][graph->number % PAGE_VALUES] = value;
    return true;
}

void *tare_graph_table_get(const struct tare_graph_table *table, const struct tare_graph *graph) {
    const size_t page = graph->number / PAGE_VALUES;
    return page < table->n_pages && table->pages[page] ? table->pages[page][graph->number % PAGE_VALUES] : NULL;
}

void tare_graph_table_free(struct tare_graph_table *table) {
    for (size_t i = 0; i < table->n_pages; i++)
        tare_free(table->pages[i]);
    tare_free(table->pages);
    *table = (struct tare_graph_table){ 0 };
}
