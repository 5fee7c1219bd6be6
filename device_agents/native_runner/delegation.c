/* delegation.c - which nodes a delegate took, found out by a process of its own.
 *
 * The C interface does not show the graph after delegation, but its profiler names every node that ran by itself, and
 * numbers the operators inside a partition from zero. A model with a profiler is slower, so it is never the measured
 * one: before that is loaded, a child loads the model so, runs it once, and writes what it saw to a pipe. Delegation
 * does not depend on the profiler.
 */
#include "runner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void count_remaining(struct delegation *found, const char *name)
{
  int i = 0;
  while (i < found->kinds && strncmp(found->remaining[i].name, name, sizeof found->remaining[i].name - 1) != 0) i++;
  if (i == (int)(sizeof found->remaining / sizeof *found->remaining)) _exit(1);
  if (i == found->kinds) snprintf(found->remaining[found->kinds++].name, sizeof found->remaining[i].name, "%s", name);
  found->remaining[i].count++;
}

static int by_name(const void *one, const void *other) { return strcmp(one, other); }

static _Noreturn void look(const struct model *model, const struct flags *flags, int fd)
{
  static struct session session;
  static struct delegation found;
  const struct profiled *events;
  int64_t alone = 0;
  session_open(&session, model, flags, true);
  session_copy_in(&session);
  int64_t elapsed_ns;
  int count;
  if (profiled_run(&session, &events, &count, &elapsed_ns) != 0 || count >= EVENTS_MAX) _exit(1);
  for (int i = 0; i < count; i++) {
    if (begins_partition(&events[i])) found.partitions++;
    if (events[i].type != OPERATOR_INVOKED || events[i].subgraph != 0 || events[i].node >= model->ops) continue;
    count_remaining(&found, events[i].tag);
    alone++;
  }
  qsort(found.remaining, (size_t)found.kinds, sizeof *found.remaining, by_name);
  found.is_known = true;
  found.delegated = (int64_t)model->ops - alone;
  _exit(write(fd, &found, sizeof found) == (ssize_t)sizeof found ? 0 : 1);
}

void delegation_find(struct delegation *found, const struct model *model, const struct flags *flags)
{
  int ends[2];
  size_t got = 0;
  memset(found, 0, sizeof *found);
  if (pipe(ends) != 0) return;
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    is_probe = true;
    close(ends[0]);
    if (!freopen("/dev/null", "w", stderr)) _exit(1);
    look(model, flags, ends[1]);
  }
  close(ends[1]);
  while (child > 0 && got < sizeof *found) {
    ssize_t part = read(ends[0], (char *)found + got, sizeof *found - got);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) break;
    got += (size_t)part;
  }
  close(ends[0]);
  while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
  }
  if (got < sizeof *found) memset(found, 0, sizeof *found);
}

void delegation_write(const struct delegation *found, const struct model *model, struct text *t)
{
  json_int(t, "nodes_total", (int64_t)model->ops);
  json_known(t, "nodes_delegated", found->is_known ? found->delegated : -1);
  json_known(t, "partitions", found->is_known ? found->partitions : -1);
  if (!found->is_known) {
    json_null(t, "remaining");
    return;
  }
  json_open(t, "remaining", '{');
  for (int i = 0; i < found->kinds; i++) json_int(t, found->remaining[i].name, found->remaining[i].count);
  json_close(t, '}');
}
