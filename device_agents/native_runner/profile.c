/* profile.c - the runtime's own operator profile: every operator's time in every run, and the runtime's summary of it.
 *
 * The runtime keeps 2048 events at most, so the profiler is started anew for each run and emptied after it. Times are
 * whole microseconds, as the runtime has them. The lines are described in PROTOCOL.md.
 */
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPS_MAX = EVENTS_MAX, NAME_BYTES = 128, SUMMARY_LINES = 100 };
enum { PHASE = 1, GENERAL_INSTRUMENTATION = 16 };

struct op {
  char name[NAME_BYTES];
  int type;
  int64_t node, partition, subgraph;
  int64_t calls, total_us, min_us, max_us, last_start_us;
  uint32_t *elapsed_us; /* of the first calls */
};
static struct {
  struct op op[OPS_MAX];
  int count;
  bool is_truncated;
} seen;

bool is_delegate_event(const struct profiled *e)
{
  return e->type == DELEGATE_OPERATOR_INVOKED || e->type == DELEGATE_OPERATOR_PROFILED;
}

/* The operators inside each partition are numbered from zero. */
bool begins_partition(const struct profiled *e) { return is_delegate_event(e) && e->node == 0; }

/* Another release may have larger or smaller events: what was written must end where ours end. */
static void check_layout(const unsigned char *buffer, int count)
{
  const unsigned char *end = buffer + (size_t)count * sizeof(struct profiled);
  const struct profiled *last = (const struct profiled *)(const void *)(end - sizeof(struct profiled));
  bool is_same = last->type > 0 && last->type <= 1 << 8 && last->tag && (unsigned)last->source < 8;
  for (size_t i = 0; i < 64; i++) is_same = is_same && end[i] == 0xa5;
  if (!is_same)
    fail(EXIT_RUNTIME, "runtime-missing", "give the libLiteRt.so of ai-edge-litert " RUNTIME_VERSION,
         "the runtime's profiler speaks otherwise than that of release %s", RUNTIME_VERSION);
}

int profiled_run(struct session *s, const struct profiled **events, int *count, int64_t *elapsed_ns)
{
  static _Alignas(16) unsigned char buffer[(EVENTS_MAX + 1) * sizeof(struct profiled)];
  int status = litert.StartProfiler(s->profiler);
  int64_t began = monotonic_ns();
  if (!status) status = session_run(s);
  *elapsed_ns = monotonic_ns() - began;
  if (!status) status = litert.StopProfiler(s->profiler);
  if (!status) status = litert.GetNumProfilerEvents(s->profiler, count);
  if (status) return status;
  if (*count > EVENTS_MAX) *count = EVENTS_MAX;
  memset(buffer, 0xa5, sizeof buffer);
  *events = (const struct profiled *)(const void *)buffer;
  if (*count == 0) return 0;
  status = litert.GetProfilerEvents(s->profiler, *count, (struct profiled *)(void *)buffer);
  if (!status) check_layout(buffer, *count);
  return status;
}

/* Adding up */

static bool is_same(const struct op *op, const struct op *other)
{
  return op->type == other->type && op->node == other->node && op->partition == other->partition &&
         op->subgraph == other->subgraph && strcmp(op->name, other->name) == 0;
}

/* Its entry; runs follow one another in the same order, so it is mostly the one after the last. */
static struct op *entry_of(const struct op *wanted, int *hint)
{
  for (int tried = 0; tried < seen.count; tried++) {
    int i = (*hint + tried) % seen.count;
    if (!is_same(&seen.op[i], wanted)) continue;
    *hint = i + 1;
    return &seen.op[i];
  }
  if (seen.count == OPS_MAX) {
    seen.is_truncated = true;
    return NULL;
  }
  struct op *fresh = &seen.op[seen.count++];
  *fresh = *wanted;
  fresh->min_us = INT64_MAX;
  fresh->elapsed_us = calloc(PROFILED_RUNS_MAX, sizeof *fresh->elapsed_us);
  if (!fresh->elapsed_us) die(EXIT_SYSTEM, "no memory for the profile");
  *hint = seen.count;
  return fresh;
}

static void add_event(const struct profiled *e, int64_t partition, int *hint)
{
  bool is_op = e->type == OPERATOR_INVOKED || is_delegate_event(e);
  if (!is_op && e->type != PHASE && e->type != GENERAL_INSTRUMENTATION) return;
  struct op wanted = {
      .type = e->type,
      .node = is_op ? (int64_t)e->node : -1,
      .partition = is_delegate_event(e) ? partition : -1,
      .subgraph = is_op ? (int64_t)e->subgraph : -1,
  };
  snprintf(wanted.name, sizeof wanted.name, "%s", e->tag);
  struct op *op = entry_of(&wanted, hint);
  if (!op) return;
  int64_t elapsed = (int64_t)e->elapsed_us;
  if (op->calls < PROFILED_RUNS_MAX) op->elapsed_us[op->calls] = (uint32_t)elapsed;
  op->calls++, op->total_us += elapsed;
  if (elapsed < op->min_us) op->min_us = elapsed;
  if (elapsed > op->max_us) op->max_us = elapsed;
  op->last_start_us = e->start_us ? (int64_t)e->start_us : -1;
}

static void add_run(const struct profiled *events, int count)
{
  int64_t partition = -1;
  int hint = 0;
  if (count >= EVENTS_MAX) seen.is_truncated = true;
  for (int i = 0; i < count; i++) {
    if (begins_partition(&events[i])) partition++;
    add_event(&events[i], partition, &hint);
  }
}

/* Saying it */

static void write_op(const struct op *op, int position)
{
  bool is_node = op->type == OPERATOR_INVOKED, is_op = op->node >= 0;
  struct text *line = event(is_op ? "op" : "phase");
  json_string(line, "name", op->name);
  if (is_op) {
    json_int(line, "position", position);
    json_string(line, "kind", is_node ? "node" : "delegate");
    json_known(line, "node", is_node ? op->node : -1);
    json_known(line, "partition", op->partition);
    json_known(line, "index", is_node ? -1 : op->node);
    json_int(line, "subgraph", op->subgraph);
  }
  json_int(line, "count", op->calls);
  json_int(line, "total_us", op->total_us);
  json_int(line, "min_us", op->min_us);
  json_int(line, "max_us", op->max_us);
  json_known(line, "last_start_us", op->last_start_us);
  json_open(line, "elapsed_us", '[');
  for (int64_t i = 0; i < op->calls && i < PROFILED_RUNS_MAX; i++) json_int(line, NULL, op->elapsed_us[i]);
  json_close(line, ']');
  say(line);
}

static void write_summary(const char *summary)
{
  struct text *line = NULL;
  for (int number = 0; *summary; number++) {
    size_t length = strcspn(summary, "\n");
    if (number % SUMMARY_LINES == 0) {
      if (line) json_close(line, ']'), say(line);
      line = event("summary");
      json_int(line, "first", number);
      json_open(line, "lines", '[');
    }
    json_bytes(line, NULL, summary, length);
    summary += length + (summary[length] == '\n');
  }
  if (line) json_close(line, ']'), say(line);
}

/* As many runs as the runtime's memory for events holds, together, in the runtime's own words. */
static int64_t summarise(struct session *s, int64_t runs, int events_a_run)
{
  const char *summary = NULL;
  int64_t fitting = events_a_run ? (EVENTS_MAX - 1) / events_a_run : runs;
  if (fitting < 1) fitting = 1;
  if (fitting > runs) fitting = runs;
  int status = litert.StartProfiler(s->profiler);
  for (int64_t i = 0; i < fitting && !status; i++) status = session_run(s);
  if (!status) status = litert.StopProfiler(s->profiler);
  if (!status) status = litert.GetProfileSummary(s->profiler, s->compiled, &summary);
  if (status) complain(s, "", status, true);
  write_summary(summary ? summary : "");
  return fitting;
}

/* Why to stop; NULL to go on. */
static const char *verdict(const struct flags *flags, int64_t runs, int64_t elapsed_ns)
{
  if (runs >= flags->runs && elapsed_ns >= flags->min_ms * NS_PER_MS) return runs == flags->runs ? "runs" : "time";
  return elapsed_ns >= flags->max_ms * NS_PER_MS || runs == PROFILED_RUNS_MAX ? "cap" : NULL;
}

/* Gives how many events the last run had. */
static int profiled_loop(struct session *s, struct loop *steady, struct delegation *delegation)
{
  int count = 0;
  for (int64_t began = monotonic_ns(); !steady->stopped_by;) {
    const struct profiled *events;
    if (s->flags->is_copy) session_copy_in(s);
    steady->start[steady->count] = monotonic_ns();
    int status = profiled_run(s, &events, &count, &steady->invoke[steady->count]);
    if (s->flags->is_copy) session_copy_out(s);
    if (status) complain(s, "", status, true);
    add_run(events, count);
    delegation_read(delegation, s->model, events, count);
    steady->count++;
    steady->stopped_by = verdict(s->flags, steady->count, monotonic_ns() - began);
  }
  return count;
}

void profile(struct session *s)
{
  static struct delegation delegation;
  static int64_t start[PROFILED_RUNS_MAX], invoke[PROFILED_RUNS_MAX];
  struct loop warmup, steady = {.phase = "steady", .start = start, .invoke = invoke};
  int ops = 0;
  loop_warm_up(&warmup, s);
  int events_a_run = profiled_loop(s, &steady, &delegation);
  loop_report(&warmup);
  loop_report(&steady);
  delegation_say(&delegation, s->model);
  for (int i = 0; i < seen.count; i++) write_op(&seen.op[i], seen.op[i].node >= 0 ? ops++ : 0);
  int64_t summarised = summarise(s, steady.count, events_a_run);
  struct text *line = event("profile");
  json_int(line, "count", steady.count);
  json_int(line, "warmup_count", warmup.count);
  json_string(line, "stopped_by", steady.stopped_by);
  json_int(line, "ops", ops);
  json_int(line, "summary_runs", summarised);
  json_bool(line, "truncated", seen.is_truncated);
  say(line);
}
