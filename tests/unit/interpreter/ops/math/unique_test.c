#include "support/op_family.h"

int main(void) {
    return op_family_main(TARE_SOURCE_DIR, "unique", NULL, 0);
}
