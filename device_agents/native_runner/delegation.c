/* delegation.c - which nodes a delegate took.
 *
 * The C interface does not show the graph after delegation, but its profiler names every node that ran by itself, and
 * numbers the operators inside a partition from zero. A model with a profiler is slower, so it is never the measured
 * one: that is let go when it has been measured, loaded anew with a profiler, and run once. Delegation does not depend
 * on the profiler. All of it happens in this process, so that the host counts its CPU time as ours.
 */
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool count_remaining(struct delegation *found, const char *name)
{
  int i = 0;
  while (i < found->kinds && strncmp(found->remaining[i].name, name, sizeof found->remaining[i].name - 1) != 0) i++;
  if (i == (int)(sizeof found->remaining / sizeof *found->remaining)) return false;
  if (i == found->kinds) snprintf(found->remaining[found->kinds++].name, sizeof found->remaining[i].name, "%s", name);
  found->remaining[i].count++;
  return true;
}

static int by_name(const void *one, const void *other) { return strcmp(one, other); }

void delegation_read(struct delegation *found, const struct model *model, const struct profiled *events, int count)
{
  int64_t alone = 0;
  memset(found, 0, sizeof *found);
  found->is_known = count < EVENTS_MAX;
  for (int i = 0; i < count; i++) {
    if (begins_partition(&events[i])) found->partitions++;
    if (events[i].type != OPERATOR_INVOKED || events[i].subgraph != 0 || events[i].node >= model->ops) continue;
    found->is_known = count_remaining(found, events[i].tag) && found->is_known;
    alone++;
  }
  qsort(found->remaining, (size_t)found->kinds, sizeof *found->remaining, by_name);
  found->delegated = (int64_t)model->ops - alone;
}

void delegation_find(struct delegation *found, struct session *measured)
{
  static struct session again;
  const struct profiled *events;
  int count;
  int64_t elapsed_ns;
  litert.DestroyCompiledModel(measured->compiled);
  session_open(&again, measured->model, measured->flags, true);
  session_copy_in(&again);
  int status = profiled_run(&again, &events, &count, &elapsed_ns);
  const char *said = complaint_end();
  if (status) complain(&again, said, status, true);
  delegation_read(found, measured->model, events, count);
}

void delegation_say(const struct delegation *found, const struct model *model)
{
  struct text *line = event("delegation");
  json_int(line, "nodes_total", (int64_t)model->ops);
  json_known(line, "nodes_delegated", found->is_known ? found->delegated : -1);
  json_known(line, "partitions", found->is_known ? found->partitions : -1);
  if (found->is_known) {
    json_open(line, "remaining", '{');
    for (int i = 0; i < found->kinds; i++) json_int(line, found->remaining[i].name, found->remaining[i].count);
    json_close(line, '}');
  } else {
    json_null(line, "remaining");
  }
  say(line);
}
