/* watch.c - looks at the measured child: its threads, their CPU time, its affinity.
 *
 * A thread's time is the one last seen: what it did between the last look and its end is not in it.
 */
#include "agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* schedstat counts nanoseconds; a kernel built without it shows zeros or no file, then ticks must do. */
static int64_t thread_cpu(pid_t pid, const char *tid)
{
  char path[96], line[1024];
  unsigned long long user, system;
  snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", pid, tid);
  if (file_read(path, line, sizeof line) == 0 && strcmp(line, "0 0 0") != 0) return atoll(line);
  snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", pid, tid);
  if (file_read(path, line, sizeof line) != 0) return -1;
  const char *after_name = strrchr(line, ')');
  if (!after_name ||
      sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) != 2)
    return -1;
  return (int64_t)(user + system) * (NS_PER_S / sysconf(_SC_CLK_TCK));
}

static void note_thread(struct watch *watch, pid_t tid, int64_t cpu_ns)
{
  int i = 0;
  while (i < watch->tids && watch->tid[i] != tid) i++;
  if (i == TIDS_MAX || cpu_ns < 0) return;
  if (i == watch->tids) watch->tids++;
  watch->tid[i] = tid;
  watch->tid_cpu_ns[i] = cpu_ns;
}

void process_affinity(pid_t pid, char *text, size_t size)
{
  cpu_set_t mask;
  CPU_ZERO(&mask);
  text[0] = 0;
  if (sched_getaffinity(pid, sizeof mask, &mask) == 0) mask_print(&mask, text, size);
}

void watch_scan(struct watch *watch, pid_t pid)
{
  static struct dir dir;
  char path[64], affinity[sizeof watch->affinity];
  int count = 0;
  watch->pid = pid;
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  if (dir_open(&dir, path) != 0) return;
  for (const char *tid; (tid = dir_next(&dir)); count++) note_thread(watch, (pid_t)atoi(tid), thread_cpu(pid, tid));
  dir_close(&dir);
  watch->threads_now = count;
  if (count > watch->threads_max) watch->threads_max = count;
  process_affinity(pid, affinity, sizeof affinity);
  if (affinity[0]) memcpy(watch->affinity, affinity, sizeof affinity);
}

void watch_write_sample(const struct watch *watch, struct text *t)
{
  char path[64], line[256];
  long long resident;
  int64_t cpu_ns = process_cpu_ns(watch->pid);
  snprintf(path, sizeof path, "/proc/%d/statm", watch->pid);
  json_open(t, "child", '{');
  if (cpu_ns >= 0) json_int(t, "cpu_ns", cpu_ns);
  if (file_read(path, line, sizeof line) == 0 && sscanf(line, "%*d %lld", &resident) == 1)
    json_int(t, "rss_kb", resident * (sysconf(_SC_PAGESIZE) / 1024));
  if (watch->threads_now) json_int(t, "threads", watch->threads_now);
  json_close(t, '}');
}

static int descending(const void *a, const void *b)
{
  int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
  return left < right ? 1 : left > right ? -1 : 0;
}

void watch_write_threads(struct watch *watch, struct text *t)
{
  qsort(watch->tid_cpu_ns, (size_t)watch->tids, sizeof *watch->tid_cpu_ns, descending);
  json_open(t, "threads", '{');
  if (watch->threads_max) json_int(t, "max", watch->threads_max);
  else json_null(t, "max");
  json_open(t, "by_cpu_ns", '[');
  for (int i = 0; i < watch->tids; i++) json_int(t, NULL, watch->tid_cpu_ns[i]);
  json_close(t, ']');
  json_close(t, '}');
}

static const char *policy_name(long policy)
{
  static const char *const names[] = {"other", "fifo", "rr", "batch", NULL, "idle", "deadline", "ext"};
  policy &= 0xff; /* without SCHED_RESET_ON_FORK */
  return policy >= 0 && policy < 8 ? names[policy] : NULL;
}

static void write_file(struct text *t, pid_t pid, const char *name)
{
  char path[64], value[VALUE_SIZE];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  json_string(t, name, file_read(path, value, sizeof value) == 0 ? value : NULL);
}

/* pid, affinity, nice, policy, autogroup, cgroup: where a process competes */
void process_write_identity(struct text *t, pid_t pid)
{
  char affinity[CPUS_MAX / 4 + 1];
  process_affinity(pid, affinity, sizeof affinity);
  json_int(t, "pid", pid);
  json_string(t, "affinity", affinity[0] ? affinity : NULL);
  errno = 0;
  int nice = getpriority(PRIO_PROCESS, (id_t)pid);
  if (nice == -1 && errno) json_null(t, "nice");
  else json_int(t, "nice", nice);
  /* the system call itself: musl's wrapper always says ENOSYS */
  long policy = syscall(SYS_sched_getscheduler, pid);
  json_string(t, "policy", policy < 0 ? NULL : policy_name(policy));
  write_file(t, pid, "autogroup");
  write_file(t, pid, "cgroup");
}
