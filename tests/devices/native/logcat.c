/* Android's log: `log` writes a line, `logcat` shows lines and follows.
 *
 * The log is one file of `-v threadtime` lines. Known: -v threadtime, -d, -c, -T TIME or COUNT, -t COUNT, -s and filters
 * such as tflite:V. Anything else is refused, as the real one does. In PHONE/app/no_log: a phone whose log is switched off.
 */
#include "app_world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILTERS_MAX 32
#define PRIORITIES "VDIWEFS"

static struct {
  const char *tag;
  size_t length;
  char least;
} filters[FILTERS_MAX];
static int filter_count;
static char otherwise = 'V'; /* for tags that no filter names */

void log_line(int pid, int tid, char level, const char *tag, const char *text)
{
  char line[8192], when[32];
  struct timespec now;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  strftime(when, sizeof when, "%m-%d %H:%M:%S", &parts);
  int length = snprintf(line, sizeof line, "%s.%03ld %5d %5d %c %-8s: %s\n", when, now.tv_nsec / 1000000, pid, tid, level,
                        tag, text);
  int fd = open(LOG, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (length > (int)sizeof line - 1) length = (int)sizeof line - 1;
  if (fd >= 0 && write(fd, line, (size_t)length) < 0) perror(LOG);
  if (fd >= 0) close(fd);
}

int log_main(int argc, char **argv)
{
  const char *tag = "log";
  char level = 'I', text[4096] = "";
  int i = 1;
  for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
    if (strcmp(argv[i], "-t") == 0) tag = argv[i + 1];
    if (strcmp(argv[i], "-p") == 0) level = (char)(argv[i + 1][0] & ~0x20);
  }
  for (; i < argc; i++) {
    strncat(text, argv[i], sizeof text - strlen(text) - 1);
    if (i + 1 < argc) strncat(text, " ", sizeof text - strlen(text) - 1);
  }
  log_line(getpid(), getpid(), level, tag, text);
  return 0;
}

static int rank(char priority)
{
  const char *place = strchr(PRIORITIES, priority);
  return place != NULL && priority != '\0' ? (int)(place - PRIORITIES) : 0;
}

/* "MM-DD HH:MM:SS.mmm  PID  TID L TAG     : text": does a filter let it pass? */
static int passes(const char *line)
{
  char level;
  int start = 0;
  if (sscanf(line, "%*18c %*d %*d %c %n", &level, &start) != 1 || start == 0) return 0;
  size_t length = strcspn(line + start, ": ");
  for (int i = 0; i < filter_count; i++)
    if (filters[i].length == length && strncmp(filters[i].tag, line + start, length) == 0)
      return rank(level) >= rank(filters[i].least);
  return rank(level) >= rank(otherwise);
}

static int add_filter(const char *word)
{
  const char *colon = strchr(word, ':');
  if (colon == NULL || filter_count == FILTERS_MAX) return 0;
  if (strncmp(word, "*:", 2) == 0) return otherwise = colon[1], 1;
  filters[filter_count].tag = word;
  filters[filter_count].length = (size_t)(colon - word);
  filters[filter_count++].least = colon[1];
  return 1;
}

static long count_lines(void)
{
  FILE *file = fopen(LOG, "re");
  long count = 0;
  for (int byte; file != NULL && (byte = fgetc(file)) != EOF;) count += byte == '\n';
  if (file != NULL) fclose(file);
  return count;
}

static void show(const char *since, long newest, int follows)
{
  static char line[8192];
  FILE *file = fopen(LOG, "re");
  long skipped = newest >= 0 ? count_lines() - newest : 0, place = 0;
  struct stat status;
  while (file != NULL) {
    while (fgets(line, sizeof line, file) != NULL && strchr(line, '\n') != NULL) {
      place = ftell(file);
      if (skipped-- > 0 || strncmp(line, since, strlen(since)) < 0 || !passes(line)) continue;
      fputs(line, stdout);
      fflush(stdout);
    }
    if (!follows) return;
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    clearerr(file);
    if (fstat(fileno(file), &status) == 0 && status.st_size < place) place = 0; /* cleared meanwhile */
    fseek(file, place, SEEK_SET);
  }
}

int logcat_main(int argc, char **argv)
{
  const char *since = "";
  long newest = -1;
  int follows = 1;
  for (int i = 1; i < argc; i++) {
    const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(word, "-c") == 0) return truncate(LOG, 0) != 0;
    if (strcmp(word, "-d") == 0) follows = 0;
    else if (strcmp(word, "-s") == 0) otherwise = 'S';
    else if (strcmp(word, "-v") == 0 && strcmp(next, "threadtime") == 0) i++;
    else if ((strcmp(word, "-T") == 0 || strcmp(word, "-t") == 0) && *next != '\0') {
      if (strchr(next, ':') != NULL) since = next;
      else newest = strtol(next, NULL, 10);
      if (word[1] == 't') follows = 0;
      i++;
    } else if (!add_filter(word)) {
      fprintf(stderr, "logcat: Invalid filter expression or option '%s'\n", word);
      return 1;
    }
  }
  if (access(APP "/no_log", F_OK) == 0) otherwise = 'S', filter_count = 0;
  show(since, newest, follows);
  return 0;
}
