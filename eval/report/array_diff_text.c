/* The differences of two folders of arrays as a table, as an HTML page and as JSON. */
#include "base/strbuf.h"
#include "eval/array_diff.h"
#include "eval/report/json_text.h"
#include "eval/report/page.h"
#include "eval/report/report_table.h"

#include <string.h>

static const char *result_of(const struct tare_array_difference *f) {
    if (!f->first) return "only in the second";
    if (!f->second) return "only in the first";
    if (f->same) return "same";
    return strcmp(f->first, f->second) == 0 ? "differs" : "other type";
}

static void put_table(struct tare_strbuf *out, enum tare_report_form form, const struct tare_array_diff *diff) {
    static const struct tare_report_column columns[] = {
        { .heading = "file", .left = true, .wraps = true },
        { .heading = "first", .left = true },
        { .heading = "second", .left = true },
        { .heading = "result", .left = true },
        { .heading = "SQNR dB", .help = "energy of the first array over the energy of the difference" },
        { .heading = "cosine" },
        { .heading = "mean error", .help = "mean absolute difference" },
        { .heading = "max error", .help = "largest difference, and its row (index of the first axis)" },
        { 0 },
    };
    struct tare_report_table *table = tare_report_table_new(form, columns);
    tare_report_table_fit(table, diff->text_width);
    for (size_t i = 0; i < diff->count; i++) {
        const struct tare_array_difference *f = &diff->files[i];
        tare_report_table_row(table);
        tare_report_table_text(table, f->name);
        tare_report_table_text(table, f->first);
        tare_report_table_text(table, f->second);
        tare_report_table_text(table, result_of(f));
        tare_report_table_db(table, f->sqnr_db);
        tare_report_table_number(table, "%.6f", f->cosine);
        tare_report_table_number(table, "%.3g", f->mean_abs_error);
        if (f->max_abs_error > 0)
            tare_report_table_cell(table, "%.3g at %lld", f->max_abs_error, (long long)f->max_abs_index);
        else
            tare_report_table_number(table, "%.3g", f->max_abs_error);
    }
    tare_report_table_end(out, table);
}

void tare_array_diff_text(struct tare_strbuf *out, const struct tare_array_diff *diff) {
    tare_strbuf_printf(out, "first:  %s\nsecond: %s\n\n", diff->first, diff->second);
    put_table(out, TARE_IN_TEXT, diff);
    tare_strbuf_printf(out, "\n%zu of %zu files differ\n", diff->n_differing, diff->count);
}

void tare_array_diff_html(struct tare_strbuf *out, const struct tare_array_diff *diff) {
    tare_page_begin(out, "Two folders of arrays side by side", NULL);
    tare_page_sides(out, diff->first, diff->second);
    tare_page_note(out, diff->n_differing ? "warning" : "good", "%zu of %zu files differ.", diff->n_differing,
                   diff->count);
    put_table(out, TARE_IN_PAGE, diff);
    tare_page_end(out);
}

tare_status tare_array_diff_json(struct tare_strbuf *out, const struct tare_array_diff *diff) {
    json_t *files = json_array(), *root;
    for (size_t i = 0; i < diff->count; i++) {
        const struct tare_array_difference *f = &diff->files[i];
        json_array_append_new(
            files, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "name", tare_json_text(f->name), "first",
                             tare_json_text(f->first), "second", tare_json_text(f->second), "result",
                             tare_json_text(result_of(f)), "sqnr_db", tare_json_number(f->sqnr_db), "cosine",
                             tare_json_number(f->cosine), "mean_abs_error", tare_json_number(f->mean_abs_error),
                             "max_abs_error", tare_json_number(f->max_abs_error), "max_abs_error_row",
                             (json_int_t)f->max_abs_index));
    }
    root = json_pack("{s:o, s:o, s:b, s:o}", "first", tare_json_text(diff->first), "second",
                     tare_json_text(diff->second), "same", diff->n_differing == 0, "files", files);
    return tare_json_write(out, root);
}
