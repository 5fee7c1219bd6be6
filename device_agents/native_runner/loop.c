/* loop.c - the timed loops. Nothing is printed while one runs, and memory for the samples is there beforehand. */
#include "runner.h"

#include <stdlib.h>
#include <string.h>

/* Why to stop after so many runs and so long; NULL to go on. */
static const char *verdict(const struct limits *limits, int64_t runs, int64_t elapsed_ns)
{
  if (runs >= limits->runs && elapsed_ns >= limits->min_ns) return runs == limits->runs ? "runs" : "time";
  return elapsed_ns >= limits->max_ns || runs >= RUNS_MAX ? "cap" : NULL;
}

/* Touched at once, so that the loop meets no page fault of ours. */
static void set_room(struct loop *loop, int64_t room, bool is_copy)
{
  int64_t **columns[] = {&loop->start, &loop->invoke, &loop->copy_in, &loop->copy_out};
  for (size_t i = 0; i < (is_copy ? 4 : 2); i++) {
    int64_t *larger = realloc(*columns[i], (size_t)room * sizeof *larger);
    if (!larger) die(EXIT_SYSTEM, "no memory for %lld samples", (long long)room);
    memset(larger + loop->room, 0, (size_t)(room - loop->room) * sizeof *larger);
    *columns[i] = larger;
  }
  loop->room = room;
}

/* Room for those asked for, or for twice the least time's worth. */
static void reserve(struct loop *loop, const struct limits *limits, int64_t first_ns, bool is_copy)
{
  int64_t expected = 2 * limits->min_ns / (first_ns > 1000 ? first_ns : 1000);
  int64_t room = (expected > limits->runs ? expected : limits->runs) + 64;
  set_room(loop, room < RUNS_MAX ? room : RUNS_MAX, is_copy);
}

static void failed(const struct session *s, int status) { complain(s, "", status, true); }

static void copy_loop(struct loop *loop, struct session *s, const struct limits *limits)
{
  for (int64_t began = monotonic_ns(); !loop->stopped_by;) {
    if (loop->count == loop->room) set_room(loop, 2 * loop->room, true);
    int64_t run = loop->count++, before = monotonic_ns();
    session_copy_in(s);
    int64_t ready = monotonic_ns();
    int status = session_run(s);
    int64_t done = monotonic_ns();
    session_copy_out(s);
    int64_t after = monotonic_ns();
    if (status) failed(s, status);
    loop->start[run] = before;
    loop->copy_in[run] = ready - before;
    loop->invoke[run] = done - ready;
    loop->copy_out[run] = after - done;
    loop->stopped_by = verdict(limits, loop->count, after - began);
  }
}

static void zero_copy_loop(struct loop *loop, struct session *s, const struct limits *limits)
{
  for (int64_t began = monotonic_ns(); !loop->stopped_by;) {
    if (loop->count == loop->room) set_room(loop, 2 * loop->room, false);
    int64_t run = loop->count++, before = monotonic_ns();
    int status = session_run(s);
    int64_t after = monotonic_ns();
    if (status) failed(s, status);
    loop->start[run] = before;
    loop->invoke[run] = after - before;
    loop->stopped_by = verdict(limits, loop->count, after - began);
  }
}

void loop_run(struct loop *loop, struct session *s, const char *phase, struct limits limits)
{
  *loop = (struct loop){.phase = phase};
  reserve(loop, &limits, s->first_ns, s->flags->is_copy);
  if (s->flags->is_copy) copy_loop(loop, s, &limits);
  else zero_copy_loop(loop, s, &limits);
}

void loop_warm_up(struct loop *loop, struct session *s)
{
  const struct flags *flags = s->flags;
  struct limits limits = {flags->warmup_runs, flags->warmup_min_ms * NS_PER_MS, flags->max_ms * NS_PER_MS};
  *loop = (struct loop){.phase = "warmup"};
  if (limits.runs || limits.min_ns) loop_run(loop, s, "warmup", limits);
}

static void write_column(struct text *t, const char *key, const int64_t *samples, int64_t from, int64_t to)
{
  if (!samples) {
    json_null(t, key);
    return;
  }
  json_open(t, key, '[');
  for (int64_t i = from; i < to; i++) json_int(t, NULL, samples[i]);
  json_close(t, ']');
}

void loop_report(const struct loop *loop)
{
  for (int64_t first = 0; first < loop->count; first += CHUNK) {
    int64_t end = first + CHUNK < loop->count ? first + CHUNK : loop->count;
    struct text *line = event("samples");
    json_string(line, "phase", loop->phase);
    json_int(line, "first", first);
    write_column(line, "start_ns", loop->start, first, end);
    write_column(line, "invoke_ns", loop->invoke, first, end);
    write_column(line, "copy_in_ns", loop->copy_in, first, end);
    write_column(line, "copy_out_ns", loop->copy_out, first, end);
    say(line);
  }
}

void loop_forget(struct loop *loop)
{
  free(loop->start), free(loop->invoke), free(loop->copy_in), free(loop->copy_out);
}
