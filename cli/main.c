/* The program tare. */
#include "cli/command.h"

int main(int argc, char **argv) {
    return tare_main(argc, argv);
}
