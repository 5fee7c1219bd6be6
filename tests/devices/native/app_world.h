/* What the parts of the phone's app world share: the log, an app, and who reads the log. */
#ifndef APP_WORLD_H
#define APP_WORLD_H

#include <stddef.h>

#define PHONE "/dev/.phone"
#define LOG PHONE "/log"
#define APP PHONE "/app"

/* logcat.c: one line of `logcat -v threadtime`, appended whole */
void log_line(int pid, int tid, char level, const char *tag, const char *text);
int logcat_main(int argc, char **argv);
int log_main(int argc, char **argv);

/* app.c */
int zygote_main(void);
int app_main(void);

/* app_world.c */
size_t phone_text(const char *path, char *text, size_t size); /* a file's content without its last newline */

#endif
