/* The version, once. */
#ifndef TARE_CLI_VERSION_H
#define TARE_CLI_VERSION_H

#define TARE_VERSION "0.1.0"

#endif
