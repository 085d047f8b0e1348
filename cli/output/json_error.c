/* Standard output is one JSON document, also if the command fails before it has a result. */
#include "cli/output/json_error.h"
#include "cli/output/visible_output.h"
#include "eval/report/json_text.h"

#include <stdio.h>
#include <string.h>

bool tare_json_is_requested(int argc, char *const *argv) {
    bool requested = false;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0) requested = true;
        if (strcmp(argv[i], "--no-json") == 0) requested = false;
    }
    return requested;
}

void tare_print_json_error(tare_status status, const char *text, int exit_status) {
    struct tare_strbuf line = { 0 };
    if (tare_stdout_is_used()) return;
    if (tare_json_write(&line, json_pack("{s:{s:s, s:o, s:i}}", "error", "kind", tare_status_name(status), "text",
                                         tare_json_text(text), "exit_status", exit_status)) == TARE_OK)
        tare_strbuf_print(&line, stdout);
    tare_strbuf_free(&line);
    fflush(stdout);
}
