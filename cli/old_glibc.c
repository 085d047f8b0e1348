/* Only in a program that is linked with archives (TARE_STATIC), for the tarball: the archive of libstdc++, which snappy
 * needs, calls arc4random of glibc 2.36. With a definition in the program it runs with glibc 2.35, too. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void) {
    uint32_t value;
    ssize_t size;
    do
        size = getrandom(&value, sizeof value, 0);
    while (size < 0 && errno == EINTR);
    if (size != (ssize_t)sizeof value) abort();
    return value;
}
