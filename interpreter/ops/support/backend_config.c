/* Options of custom calls, in the text form of an MLIR dictionary attribute. */
#include "interpreter/ops/support/backend_config.h"

#include <stdlib.h>
#include <string.h>

int64_t tare_backend_config_int(const struct tare_kernel *kernel, const char *key, int64_t fallback) {
    const char *at = tare_node_string(kernel->node, "backend_config", NULL);
    const size_t size = strlen(key);
    for (; at && (at = strstr(at, key)); at += size) {
        const char *value = at + size;
        if (at[-1] != '{' && at[-1] != ' ') continue;
        while (*value == ' ')
            value++;
        if (*value == '=') return strtoll(value + 1, NULL, 10);
    }
    return fallback;
}
