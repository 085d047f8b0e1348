/* The name of a row of a comparison. */
#include "eval/comparison.h"

#include "base/strbuf.h"

#include <string.h>

void tare_comparison_put_name(struct tare_strbuf *out, const struct tare_comparison_row *row) {
    tare_strbuf_puts(out, row->method);
    if (row->algorithm) tare_strbuf_printf(out, " %s", row->algorithm);
    if (row->granularity && !row->named_granularity && strcmp(row->granularity, "per_channel") != 0)
        tare_strbuf_printf(out, " %s", row->granularity);
    if (row->widened)
        tare_strbuf_printf(out, ", %lld layer%s int16", (long long)row->widened, row->widened == 1 ? "" : "s");
}
