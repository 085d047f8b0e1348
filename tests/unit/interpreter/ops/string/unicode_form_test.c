#include "interpreter/ops/string/unicode_form.h"
#include "support/op_family.h"

#include <stdio.h>

int main(void) {
    if (tare_unicode_form_open() != TARE_OK) {
        printf("skipped: %s\n", tare_error_text());
        return 0;
    }
    return op_family_main(TARE_SOURCE_DIR, "unicode_form", NULL, 0);
}
