#include "graph/devices.h"

#include <string.h>

/* Whether the device has the field ("/job:", "/task:"), with another value. */
static bool differs(const char *device, const char *field, const char *value) {
    const char *found = strstr(device, field);
    if (!found) return false;
    found += strlen(field);
    return strncmp(found, value, strlen(value)) != 0 || (found[strlen(value)] != '\0' && found[strlen(value)] != '/');
}

bool tare_device_is_foreign(const char *device) {
    const char *kind;
    if (!device || !device[0]) return false;
    if (differs(device, "/job:", "localhost") || differs(device, "/task:", "0")) return true;
    kind = strstr(device, "/device:");
    return kind ? strncmp(kind, "/device:CPU", strlen("/device:CPU")) != 0
                : strstr(device, "gpu:") || strstr(device, "GPU:");
}
