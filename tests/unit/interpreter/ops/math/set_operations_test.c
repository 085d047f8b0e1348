#include "support/op_family.h"

int main(void) {
    return op_family_main(TARE_SOURCE_DIR, "set_operations", NULL, 0);
}
