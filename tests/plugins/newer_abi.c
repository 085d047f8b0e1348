/* A library for a later minor number, whose functions this tare may lack. */
#include <tare/op.h>

uint32_t tare_op_library_abi(void) {
    return TARE_OP_ABI + 1;
}
int tare_op_library_register(const struct tare_op_host *host, tare_op_library *library) {
    (void)host;
    (void)library;
    return 0;
}
