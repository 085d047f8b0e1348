/* A library for another ABI: the major number that comes next. */
#include <tare/op.h>

uint32_t tare_op_library_abi(void) {
    return (uint32_t)(TARE_OP_ABI_MAJOR + 1) << 16;
}
int tare_op_library_register(const struct tare_op_host *host, tare_op_library *library) {
    (void)host;
    (void)library;
    return 0;
}
