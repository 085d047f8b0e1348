/* Ops on files, including one on a file that exists. */
#include "support/op_case.h"
#include "support/op_family.h"
#include "support/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void ReadFile__returns_every_byte(void **state) {
    const char *path = temp_file("bytes", "a\0b\n", 4);
    char name[512];
    (void)state;
    snprintf(name, sizeof name, "string[] \"%s\"", path);
    assert_true(op_case_check("ReadFile", NULL, (const char *const[]){ name, NULL },
                              (const char *const[]){ "string[] \"a\\x00b\\n\"", NULL }, (struct tolerance){ 0 }));
}

int main(void) {
    const struct CMUnitTest more[] = { cmocka_unit_test(ReadFile__returns_every_byte) };
    return op_family_main(TARE_SOURCE_DIR, "file", more, 1);
}
