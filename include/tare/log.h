/* Levels of log messages, most important first. Failures are not logged: they are a status and a text (status.h). */
#ifndef TARE_LOG_H
#define TARE_LOG_H

enum tare_log_level {
    TARE_LOG_WARNING = 1, /* the result may not be what the user expects */
    TARE_LOG_NOTE = 2,    /* what was done, in one line */
    TARE_LOG_DETAIL = 3   /* further detail, as printed by --verbose */
};

#endif
