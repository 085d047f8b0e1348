/* The jobs of a batch as test cases, in the XML that CI systems show (the schema of JUnit's Ant task): a rejected job
 * is a failure, one that failed is an error. */
#include "eval/jobs/job_result.h"
#include "eval/report/page.h"

#include <math.h>

/* Of text for people: XML has no control characters but tab and line breaks. */
static void put_text(struct tare_strbuf *out, const char *text) {
    struct tare_strbuf clean = { 0 };
    for (const char *at = text ? text : ""; *at; at++)
        tare_strbuf_putc(&clean, (unsigned char)*at < ' ' && *at != '\t' && *at != '\n' ? '?' : *at);
    tare_page_text(out, tare_strbuf_text(&clean));
    out->failed |= clean.failed;
    tare_strbuf_free(&clean);
}

static void put_attr(struct tare_strbuf *out, const char *name, const char *text) {
    tare_strbuf_printf(out, " %s=\"", name);
    put_text(out, text);
    tare_strbuf_putc(out, '"');
}

static void put_figures(struct tare_strbuf *out, const struct tare_job_result *r) {
    if (isnan(r->measure_value) || !r->measure) return;
    tare_strbuf_puts(out, "    <system-out>");
    put_text(out, r->measure);
    tare_strbuf_printf(out, " %.6g, float %.6g, %lld records</system-out>\n", r->measure_value, r->float_measure_value,
                       (long long)r->records);
}

static void put_job(struct tare_strbuf *out, const struct tare_job_result *r) {
    static const char *const elements[] = { [TARE_JOB_REJECTED] = "failure", [TARE_JOB_FAILED] = "error" };
    tare_strbuf_puts(out, "  <testcase classname=\"tare.batch\"");
    put_attr(out, "name", r->name);
    tare_strbuf_printf(out, " time=\"%.3f\">\n", r->seconds);
    if (r->outcome != TARE_JOB_DONE) {
        tare_strbuf_printf(out, "    <%s", elements[r->outcome]);
        put_attr(out, "message", r->reason);
        tare_strbuf_puts(out, "/>\n");
    }
    put_figures(out, r);
    tare_strbuf_puts(out, "  </testcase>\n");
}

void tare_batch_junit(struct tare_strbuf *out, const struct tare_batch_report *report) {
    size_t counts[3] = { 0 };
    for (size_t i = 0; i < report->count; i++)
        counts[report->results[i].outcome]++;
    tare_strbuf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite");
    put_attr(out, "name", report->title);
    tare_strbuf_printf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" time=\"%.3f\">\n", report->count,
                       counts[TARE_JOB_REJECTED], counts[TARE_JOB_FAILED], report->seconds);
    for (size_t i = 0; i < report->count; i++)
        put_job(out, &report->results[i]);
    tare_strbuf_puts(out, "</testsuite>\n");
}
