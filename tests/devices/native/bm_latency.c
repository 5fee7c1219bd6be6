/* How long an inference takes on a virtual phone: the stated model.
 *
 *   work_us   = 250 + 1.4 per KiB of model file         (a face detector of 229714 bytes: 564 us)
 *   v_i       = capacity_i / 1024 · scaling_max_freq_i / cpuinfo_max_freq_i / (1 + s)
 *               for each CPU i in the process's own affinity mask; s = cores that others keep busy / CPUs, at most 1
 *   CPU       = work_us · kernel · (0.12 / max v + 0.88 / sum of the k largest v), k = min(threads, CPUs in the mask),
 *               times 1 + 0.15 per thread beyond the CPUs in the mask (at most 4 count)
 *               kernel: 1 with XNNPACK, 9.5 without
 *   GPU       = 0.45 · work_us / h, NNAPI = 0.60 · work_us / h, h = scaling_max_freq / cpuinfo_max_freq of the last CPU
 *   a run     = that · slowdown · exp(noise · n), n standard normal from `seed`; the very first run takes 1.08 times as
 *               long on a CPU and 12 times as long on an accelerator (it compiles)
 *
 * Heat acts through scaling_max_freq, load through /dev/.phone/load_cores (measured) and /dev/.phone/load (percent of
 * all CPUs, set by a test). Both are read again every 50 ms of simulated time. Time is spent sleeping, not burning;
 * the phone's body is told through /dev/.phone/busy/PID.
 *
 * Settings: lines "name value" in /dev/.phone/benchmark, and the environment, which wins:
 *   slowdown BM_SLOWDOWN (1), noise BM_NOISE (0.015), seed BM_SEED (from the clock), time_scale BM_TIME_SCALE (1; real
 *   seconds per simulated one), providers BM_PROVIDERS (0; 1: a build with GPU and NNAPI), crash_after BM_CRASH_AFTER (0),
 *   slow_node BM_SLOW_NODE (0; see bm_profile.c)
 *
 * A build may be slower by itself: `build_mark` below, which tests write over in the finished file.
 */
#include "bm.h"

#include <ctype.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CPUS_MAX 64
#define PHONE "/dev/.phone"

/* slowdown, then a name that makes the file another one; exactly as long as `build_variant` in build.py says */
static const volatile char build_mark[] = "BM_BUILD 1.00000 ----------------";

static struct settings settings;
static enum delegate delegate_used;
static int threads_used, first_run = 1;
static double work_us, mean_us, pending_s;
static uint64_t random_state;
static char busy_path[64];

static double setting(const char *name, double fallback)
{
  char variable[64] = "BM_", line[128], key[64];
  double value = fallback, read_value;
  FILE *file = fopen(PHONE "/benchmark", "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "%63s %lf", key, &read_value) == 2 && strcmp(key, name) == 0) value = read_value;
  if (file != NULL) fclose(file);
  for (size_t i = 0; i <= strlen(name); i++) variable[3 + i] = (char)toupper((unsigned char)name[i]);
  const char *text = getenv(variable);
  return text != NULL ? strtod(text, NULL) : value;
}

static double built_slowdown(void)
{
  char text[sizeof build_mark];
  double value;
  for (size_t i = 0; i < sizeof text; i++) text[i] = build_mark[i];
  return sscanf(text, "BM_BUILD %lf", &value) == 1 ? value : 1.0;
}

struct settings settings_read(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  double clock_seed = (double)(now.tv_nsec ^ (getpid() << 8));
  return (struct settings){.slowdown = setting("slowdown", 1.0) * built_slowdown(),
                           .noise = setting("noise", 0.015),
                           .time_scale = setting("time_scale", 1.0),
                           .seed = (uint64_t)setting("seed", clock_seed),
                           .providers = (int)setting("providers", 0),
                           .crash_after = (int)setting("crash_after", 0),
                           .slow_node = (int)setting("slow_node", 0)};
}

static double file_number(const char *path, double fallback)
{
  double value;
  FILE *file = fopen(path, "re");
  int got = file != NULL && fscanf(file, "%lf", &value) == 1;
  if (file != NULL) fclose(file);
  return got ? value : fallback;
}

static double cpu_number(int cpu, const char *name, double fallback)
{
  char path[128];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, name);
  return file_number(path, fallback);
}

static double clock_share(int cpu)
{
  double full = cpu_number(cpu, "cpufreq/cpuinfo_max_freq", 1.0);
  return cpu_number(cpu, "cpufreq/scaling_max_freq", full) / full;
}

static int faster_first(const void *left, const void *right)
{
  double difference = *(const double *)right - *(const double *)left;
  return (difference > 0) - (difference < 0);
}

/* The mean of a run as the phone is now. */
static void look(void)
{
  cpu_set_t mask;
  double speeds[CPUS_MAX], sum = 0;
  int allowed = 0, cpus = 0;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) CPU_ZERO(&mask);
  for (int cpu = 0; cpu < CPUS_MAX; cpu++)
    if (cpu_number(cpu, "topology/core_id", -1) >= 0 || CPU_ISSET(cpu, &mask)) cpus = cpu + 1;
  double others = file_number(PHONE "/load_cores", 0) + file_number(PHONE "/load", 0) / 100 * cpus;
  double share = fmin(1.0, others / fmax(1, cpus));
  for (int cpu = 0; cpu < cpus; cpu++)
    if (CPU_ISSET(cpu, &mask))
      speeds[allowed++] = cpu_number(cpu, "cpu_capacity", 1024) / 1024 * clock_share(cpu) / (1 + share);
  qsort(speeds, (size_t)allowed, sizeof *speeds, faster_first);
  for (int i = 0; i < allowed && i < threads_used; i++) sum += speeds[i];
  double heat = clock_share(cpus - 1);
  double over = fmin(4, fmax(0, threads_used - allowed));
  double kernel = delegate_used == DELEGATE_NONE ? 9.5 : 1.0;
  mean_us = work_us * kernel * (0.12 / speeds[0] + 0.88 / sum) * (1 + 0.15 * over);
  if (delegate_used == DELEGATE_GPU) mean_us = 0.45 * work_us / heat;
  if (delegate_used == DELEGATE_NNAPI) mean_us = 0.60 * work_us / heat;
  mean_us *= settings.slowdown;
}

void latency_start(const struct settings *given, double model_bytes, enum delegate delegate, int threads)
{
  cpu_set_t mask;
  unsigned long long bits = 0;
  settings = *given;
  random_state = settings.seed * 2862933555777941757ULL + 3037000493ULL;
  delegate_used = delegate;
  threads_used = threads < 1 ? 1 : threads;
  work_us = 250 + 1.4 * model_bytes / 1024;
  look();
  if (sched_getaffinity(0, sizeof mask, &mask) == 0)
    for (int cpu = 0; cpu < CPUS_MAX; cpu++) bits |= (unsigned long long)(CPU_ISSET(cpu, &mask) ? 1 : 0) << cpu;
  snprintf(busy_path, sizeof busy_path, PHONE "/busy/%d", getpid());
  FILE *file = fopen(busy_path, "we");
  if (file != NULL) {
    fprintf(file, "%llx %d\n", bits, delegate == DELEGATE_NONE || delegate == DELEGATE_XNNPACK ? threads_used : 1);
    fclose(file);
  }
}

void latency_stop(void)
{
  unlink(busy_path);
}

static double uniform(void)
{
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return ((double)((random_state * 2685821657736338717ULL) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
  return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

void latency_spend(double seconds)
{
  pending_s += seconds;
  if (pending_s < 0.05) return;
  double real = pending_s * settings.time_scale;
  struct timespec span = {.tv_sec = (time_t)real, .tv_nsec = (long)((real - floor(real)) * 1e9)};
  nanosleep(&span, NULL);
  pending_s = 0;
  look();
}

double latency_next_us(void)
{
  int accelerator = delegate_used == DELEGATE_GPU || delegate_used == DELEGATE_NNAPI;
  double first = first_run ? (accelerator ? 12.0 : 1.08) : 1.0;
  first_run = 0;
  return fmax(1, floor(mean_us * first * exp(settings.noise * normal())));
}
