/* Attributes in messages, and their equality. */
#ifndef TARE_GRAPH_ATTR_TEXT_H
#define TARE_GRAPH_ATTR_TEXT_H

#include "base/strbuf.h"
#include "graph/attr.h"

/* "int", "type", "list(shape)"; "any" for TARE_ATTR_NONE. Never NULL. */
const char *tare_attr_kind_name(enum tare_attr_kind kind, bool is_list);
/* One item as registrations write it: "foo", 3, float, [2,?], myfunc. */
void tare_attr_print_item(struct tare_strbuf *text, enum tare_attr_kind kind, const union tare_attr_item *item);
/* The value; a list in brackets (at most 16 items, then "..."). */
void tare_attr_print(struct tare_strbuf *text, const struct tare_attr *attr);
/* The same value (names and origins do not matter). Tensors are compared by dtype, shape and bytes. An empty list
 * equals every empty list. */
bool tare_attr_equal(const struct tare_attr *a, const struct tare_attr *b);

#endif
