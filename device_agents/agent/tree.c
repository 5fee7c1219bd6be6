/* tree.c - finds and ends every process we started.
 *
 * The agent is a child subreaper: whatever daemonises itself below us becomes our child when its parent ends, so
 * "no children left" (ECHILD) means that nothing is left. Until then: look at /proc, kill every descendant, reap.
 */
#include "agent.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MAX = 32768 };
static struct process_row rows[ROWS_MAX];
static bool ours[ROWS_MAX];
static int row_count;

static bool read_row(const char *pid, struct process_row *row)
{
  char path[64], line[1024];
  snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
  if (file_read(path, line, sizeof line) != 0) return false;
  const char *after_name = strrchr(line, ')'); /* the name may hold spaces and brackets */
  int parent, group, session;
  if (!after_name || sscanf(after_name + 1, " %*c %d %d %d", &parent, &group, &session) != 3) return false;
  *row = (struct process_row){.pid = (pid_t)atoi(pid), .parent = parent, .group = group, .session = session};
  return true;
}

int tree_scan(void)
{
  static struct dir dir;
  row_count = 0;
  if (dir_open(&dir, "/proc") != 0) return 0;
  for (const char *name; row_count < ROWS_MAX && (name = dir_next(&dir));)
    if (*name >= '1' && *name <= '9' && read_row(name, &rows[row_count])) row_count++;
  dir_close(&dir);
  return row_count;
}

const struct process_row *tree_row(int index) { return &rows[index]; }

static bool is_ours(pid_t pid)
{
  if (pid == getpid()) return true;
  for (int i = 0; i < row_count; i++)
    if (rows[i].pid == pid) return ours[i];
  return false;
}

/* One look; a process that forks while we look is found by the next one. */
void tree_kill_descendants(void)
{
  bool found = true;
  memset(ours, 0, sizeof ours);
  tree_scan();
  while (found) {
    found = false;
    for (int i = 0; i < row_count; i++) {
      if (ours[i] || rows[i].pid == getpid() || !is_ours(rows[i].parent)) continue;
      ours[i] = found = true;
      kill(rows[i].pid, SIGKILL);
    }
  }
}
