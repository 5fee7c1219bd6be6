/* process.c - what the kernel says of this process: memory, threads, CPU time. */
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t status_kb(const char *field)
{
  static struct lines lines;
  size_t length = strlen(field);
  int64_t found = -1;
  if (lines_open(&lines, "/proc/self/status") != 0) return -1;
  for (char *line = lines_next(&lines); line && found < 0; line = lines_next(&lines))
    if (strncmp(line, field, length) == 0 && line[length] == ':') found = strtoll(line + length + 1, NULL, 10);
  lines_close(&lines);
  return found;
}

int64_t thread_count(void)
{
  struct dir dir;
  int64_t count = 0;
  if (dir_open(&dir, "/proc/self/task") != 0) return -1;
  while (dir_next(&dir)) count++;
  dir_close(&dir);
  return count;
}

bool thread_times_read(struct thread_times *times)
{
  struct dir dir;
  bool is_complete = true;
  times->count = 0;
  if (dir_open(&dir, "/proc/self/task") != 0) return false;
  for (const char *name = dir_next(&dir); name; name = dir_next(&dir)) {
    char path[64], value[128];
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", name);
    if (times->count == (int)(sizeof times->tid / sizeof *times->tid) || file_read(path, value, sizeof value) != 0) {
      is_complete = false;
      break;
    }
    times->tid[times->count] = (pid_t)strtol(name, NULL, 10);
    times->cpu_ns[times->count++] = strtoll(value, NULL, 10);
  }
  dir_close(&dir);
  return is_complete;
}

void json_known(struct text *t, const char *key, int64_t value)
{
  if (value < 0) json_null(t, key);
  else json_int(t, key, value);
}
