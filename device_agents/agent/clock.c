/* clock.c - reads the clocks and sleeps to absolute times. */
#include "agent.h"

#include <errno.h>
#include <time.h>

static int64_t read_ns(clockid_t clock)
{
  struct timespec t;
  if (clock_gettime(clock, &t) != 0) return -1;
  return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t monotonic_ns(void) { return read_ns(CLOCK_MONOTONIC); }

int64_t thread_cpu_ns(void) { return read_ns(CLOCK_THREAD_CPUTIME_ID); }

/* The process clock counts every thread, ended ones included, to the nanosecond; /proc/PID/stat counts ticks. */
int64_t process_cpu_ns(pid_t pid)
{
  clockid_t clock;
  if (clock_getcpuclockid(pid, &clock) != 0) return -1;
  return read_ns(clock);
}

struct timespec timespec_of(int64_t ns)
{
  struct timespec t = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
  return t;
}

void sleep_until(int64_t t_ns)
{
  struct timespec t = timespec_of(t_ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
  }
}
