/* A shared library that is none of ops. */
__attribute__((visibility("default"))) int no_entry(void);
int no_entry(void) {
    return 0;
}
