/* canary.c - how fast this device is right now, by a fixed piece of work.
 *
 * The unit is a chain of dependent integer steps that fits into registers: its time is a number of clock cycles, so it
 * grows exactly as the clock falls, and no cache, memory or vector unit is in it. The shortest of many units is what
 * counts: one that was interrupted, or that ran while the governor was still speeding up, is not it.
 */
#include "agent.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT_STEPS = 100 * 1000, UNITS_MIN = 16, UNITS_MAX = 4096 };
#define CANARY_NS (100 * NS_PER_MS)

static int by_length(const void *left, const void *right)
{
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

static void pin(char **words)
{
  cpu_set_t mask;
  if (!words[0]) return;
  if (strcmp(words[0], "--affinity") != 0) die(EXIT_USAGE, "canary: unexpected word %s", words[0]);
  if (!words[1] || !mask_parse(words[1], &mask)) die(EXIT_USAGE, "--affinity needs a mask in hexadecimal");
  if (words[2]) die(EXIT_USAGE, "canary: unexpected word %s", words[2]);
  if (sched_setaffinity(0, sizeof mask, &mask) != 0)
    die(EXIT_SYSTEM, "cannot pin to %s: %s", words[1], errno_name(errno));
}

int canary(char **words)
{
  static int64_t length_ns[UNITS_MAX];
  static struct text line;
  volatile uint64_t kept = 88172645463325252ULL;
  int units = 0;
  pin(words);
  int64_t start_ns = monotonic_ns(), now_ns = start_ns;
  while (units < UNITS_MAX && (units < UNITS_MIN || now_ns - start_ns < CANARY_NS)) {
    kept = churn(kept, UNIT_STEPS);
    int64_t end_ns = monotonic_ns();
    length_ns[units++] = end_ns - now_ns;
    now_ns = end_ns;
  }
  qsort(length_ns, (size_t)units, sizeof *length_ns, by_length);
  json_open(&line, NULL, '{');
  json_int(&line, "unit_ns", length_ns[0]);
  json_int(&line, "median_ns", length_ns[units / 2]);
  json_int(&line, "units", units);
  text_add(&line, "}\n");
  return fwrite(line.at, 1, line.length, stdout) != line.length || fflush(stdout) != 0 ? EXIT_OUTPUT : 0;
}
