/* load.c - starts the load and measures what it achieved.
 *
 * The load is one process: our own threads (burn.c), or a program (exec). With placement other-group it leads a
 * session of its own, because the kernel gives every session its own autogroup. A phase is measured between
 * load_phase_begin and load_phase_end; our threads count from their first whole period in the phase to their last.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PERIOD_NS (10 * NS_PER_MS)
#define FRAME_NS 16666667LL
#define MIB (1024LL * 1024LL)

static bool number_in(const char **at, int least, int most, int *value)
{
  char *end;
  if (**at < '0' || **at > '9') return false;
  long number = strtol(*at, &end, 10);
  *at = end;
  *value = (int)number;
  return number >= least && number <= most;
}

const char *load_parse(const char *text, struct load_spec *spec)
{
  const char *at = text;
  *spec = (struct load_spec){.text = text};
  if (strcmp(text, "idle") == 0) return spec->kind = LOAD_IDLE, NULL;
  if (strcmp(text, "app") == 0) return spec->kind = LOAD_APP, NULL;
  if (strcmp(text, "exec") == 0) return spec->kind = LOAD_EXEC, NULL;
  if (strncmp(text, "cpu:", 4) == 0) {
    at += 4;
    spec->kind = LOAD_CPU;
    if (!number_in(&at, 1, LOAD_THREADS_MAX, &spec->threads)) return "expected 1 to 64 threads";
    if (*at++ != '@') return "expected cpu:THREADS@PERCENT, such as cpu:2@50";
    if (!number_in(&at, 1, 100, &spec->percent)) return "expected 1 to 100 percent";
    return *at ? "unexpected text after the percentage" : NULL;
  }
  if (strncmp(text, "mem:", 4) == 0) {
    at += 4;
    spec->kind = LOAD_MEM;
    if (!number_in(&at, 1, LOAD_THREADS_MAX, &spec->threads)) return "expected 1 to 64 threads";
    return *at ? "unexpected text after the number of threads" : NULL;
  }
  return "expected idle, cpu:N@P, mem:N, app or exec";
}

static int64_t last_level_cache_bytes(void)
{
  int64_t largest = 0;
  for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
    for (int index = 0; index < 8; index++) {
      char size[32], unit = 0;
      long long value;
      if (fact_read(size, sizeof size, "/sys/devices/system/cpu/cpu%d/cache/index%d/size", cpu, index) != 0) {
        if (index == 0) return largest;
        break;
      }
      if (sscanf(size, "%lld%c", &value, &unit) < 1) continue;
      value *= unit == 'K' ? 1024 : unit == 'M' ? MIB : 1;
      if (value > largest) largest = value;
    }
  }
  return largest;
}

static int64_t memory_available_bytes(void)
{
  static struct lines lines;
  int64_t kb = -1;
  if (lines_open(&lines, "/proc/meminfo") != 0) return -1;
  for (char *line; kb < 0 && (line = lines_next(&lines));)
    if (strncmp(line, "MemAvailable:", 13) == 0) kb = atoll(line + 13);
  lines_close(&lines);
  return kb < 0 ? -1 : kb * 1024;
}

/* Larger than the last-level cache, yet never so large that the device starts to swap or to kill. */
static size_t memory_buffer_bytes(void)
{
  int64_t cache = last_level_cache_bytes(), available = memory_available_bytes();
  int64_t bytes = 4 * cache > 64 * MIB ? 4 * cache : 64 * MIB;
  if (bytes > 512 * MIB) bytes = 512 * MIB;
  if (available > 0 && bytes > available / 4) bytes = available / 4;
  if (cache > 0 && bytes <= cache) out_warn("load mem", "the buffer is not larger than the last-level cache");
  return (size_t)bytes;
}

static void plan_threads(struct load *load)
{
  const struct load_spec *spec = &load->options->load;
  struct burn_plan *plan = &load->plan;
  plan->threads = spec->kind == LOAD_APP ? 2 : spec->kind == LOAD_EXEC ? 1 : spec->threads;
  plan->period_ns = spec->kind == LOAD_APP ? FRAME_NS : PERIOD_NS;
  for (int i = 0; spec->kind == LOAD_CPU && i < plan->threads; i++) plan->percent[i] = spec->percent;
  if (spec->kind == LOAD_APP) {
    plan->percent[0] = 40;
    plan->percent[1] = 20;
    plan->buffer_bytes[0] = 8 * MIB;
  }
  if (spec->kind == LOAD_MEM) {
    size_t page = 4096, share = memory_buffer_bytes() / (size_t)plan->threads / page * page;
    for (int i = 0; i < plan->threads; i++) plan->buffer_bytes[i] = share ? share : page;
  }
}

static void start_threads(struct load *load)
{
  const struct options *o = load->options;
  pid_t parent = getpid();
  load->shared = mmap(NULL, sizeof *load->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (load->shared == MAP_FAILED) die(EXIT_SYSTEM, "no shared memory: %s", errno_name(errno));
  load->pid = fork();
  if (load->pid < 0) die(EXIT_SYSTEM, "no process for the load: %s", errno_name(errno));
  if (load->pid > 0) {
    if (!o->load_other_group) setpgid(load->pid, load->pid);
    if (o->load_affine && sched_setaffinity(load->pid, sizeof o->load_affinity, &o->load_affinity) != 0)
      out_warn("load-affinity", errno_name(errno));
    return;
  }
  enter_child(parent, o->load_other_group);
  if (o->load_affine) sched_setaffinity(0, sizeof o->load_affinity, &o->load_affinity);
  int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; fd++) dup2(null, fd);
  for (int fd = 3; fd < 64; fd++) close(fd); /* the host's pipes must not stay open through us */
  burn(&load->plan, load->shared);
}

static bool autogroup_enabled(void)
{
  char value[32];
  return file_read("/proc/sys/kernel/sched_autogroup_enabled", value, sizeof value) == 0 && strcmp(value, "1") == 0;
}

void load_start(struct load *load, const struct options *options)
{
  load->options = options;
  load->program = (struct process){.status_fd = -1, .out_fd = -1, .err_fd = -1};
  if (options->load.kind == LOAD_IDLE) return;
  if (options->load_placement_asked && options->load_other_group && !autogroup_enabled())
    out_warn("load-placement", "autogroup is off here: a session of its own is no group of its own");
  plan_threads(load);
  if (options->load.kind != LOAD_EXEC) {
    start_threads(load);
    return;
  }
  struct program program = {.argv = options->load_argv, .own_session = options->load_other_group,
                            .affinity = options->load_affine ? &options->load_affinity : NULL};
  spawn(&program, &load->program);
  load->pid = load->program.pid;
}

bool load_is_ready(struct load *load)
{
  if (load->options->load.kind == LOAD_EXEC || load->options->load.kind == LOAD_IDLE) return load->ready || !load->pid;
  for (int i = 0; i < load->plan.threads; i++)
    if (atomic_load(&load->shared->worker[i].generation) == 0) return false;
  return true;
}

void load_read_status(struct load *load)
{
  struct spawn_fault fault;
  ssize_t got = read(load->program.status_fd, &fault, sizeof fault);
  if (got == sizeof fault && fault.stage == SPAWN_AFFINITY) {
    out_warn("load-affinity", errno_name(fault.error));
  } else {
    if (got == sizeof fault)
      load->last_line_length = (size_t)snprintf(load->last_line, sizeof load->last_line, "%s: %s",
                                                load->options->load_argv[0], errno_name(fault.error));
    close_fd(&load->program.status_fd);
  }
}

void load_read_output(struct load *load)
{
  char buffer[4096];
  ssize_t got = read(load->program.out_fd, buffer, sizeof buffer);
  if (got > 0 && memchr(buffer, '\n', (size_t)got)) load->ready = true;
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) close_fd(&load->program.out_fd);
  if (load->program.out_fd < 0 && !load->ready) load->mute_ns = monotonic_ns();
}

/* A program that closed its output without a line will never be ready. One that is just ending closes it too; it gets a
 * moment, so that its exit status can be told. */
bool load_is_mute(const struct load *load, int64_t now_ns)
{
  return load->mute_ns && now_ns - load->mute_ns > 200 * NS_PER_MS;
}

/* Keeps the last line for the reason why a load died; of a longer one its beginning. */
void load_read_errors(struct load *load)
{
  char buffer[4096];
  ssize_t got = read(load->program.err_fd, buffer, sizeof buffer);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) close_fd(&load->program.err_fd);
  for (ssize_t i = 0; i < got; i++) {
    if (buffer[i] == '\n') {
      load->last_line_ended = true;
      continue;
    }
    if (load->last_line_ended) load->last_line_length = 0;
    load->last_line_ended = false;
    if (load->last_line_length < sizeof load->last_line) load->last_line[load->last_line_length++] = buffer[i];
  }
}

/* Time of children that were already waited for; the kernel keeps it in ticks. */
static int64_t waited_children_ns(pid_t pid)
{
  char path[64], line[1024];
  unsigned long long user, system;
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  if (file_read(path, line, sizeof line) != 0) return 0;
  const char *after_name = strrchr(line, ')');
  if (!after_name ||
      sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %llu %llu", &user, &system) != 2)
    return 0;
  return (int64_t)(user + system) * (NS_PER_S / sysconf(_SC_CLK_TCK));
}

/* An exec load's CPU time: of every process in its group or session, looked up at most once a second. */
static int64_t exec_cpu_ns(pid_t leader, bool look_now)
{
  static pid_t members[256];
  static int count;
  static int64_t looked_ns;
  int64_t total = 0, now = monotonic_ns();
  if (look_now || now - looked_ns > NS_PER_S) {
    int found = tree_scan();
    looked_ns = now;
    count = 0;
    for (int i = 0; i < found && count < 256; i++)
      if (tree_row(i)->group == leader || tree_row(i)->session == leader) members[count++] = tree_row(i)->pid;
  }
  for (int i = 0; i < count; i++) {
    int64_t ns = process_cpu_ns(members[i]);
    if (ns >= 0) total += ns + waited_children_ns(members[i]);
  }
  return total;
}

static void read_cpu(struct load *load, int64_t *cpu_ns, bool look_now)
{
  if (load->options->load.kind == LOAD_EXEC) {
    cpu_ns[0] = exec_cpu_ns(load->pid, look_now);
    return;
  }
  for (int i = 0; i < load->plan.threads; i++) cpu_ns[i] = worker_read(&load->shared->worker[i]).live_cpu_ns;
}

void load_phase_begin(struct load *load, const char *phase, int64_t now_ns)
{
  if (!load->pid) return;
  load->phase = phase;
  load->from_ns = now_ns;
  load->to_ns = 0;
  read_cpu(load, load->from_cpu_ns, true);
  if (load->shared) atomic_fetch_add(&load->shared->epoch, 1);
}

void load_phase_end(struct load *load, int64_t now_ns)
{
  if (!load->pid || !load->phase || load->to_ns) return;
  load->to_ns = now_ns;
  load->alive_at_end = !load->died;
  if (load->died && !load->shared) return; /* its clocks went with it */
  read_cpu(load, load->to_cpu_ns, true);
  for (int i = 0; load->shared && i < load->plan.threads; i++)
    load->reading[i] = worker_read(&load->shared->worker[i]);
}

/* The share of one CPU that a thread got. Whole periods where there are any; else what the two ends saw. */
static double achieved(const struct load *load, int i)
{
  const struct reading *r = &load->reading[i];
  double wall = (double)(load->to_ns - load->from_ns);
  bool counted = load->shared && r->epoch == atomic_load(&load->shared->epoch) && r->wall_ns > r->base_wall_ns;
  bool fresh = load->to_ns - r->wall_ns < 5 * load->plan.period_ns;
  if (counted && fresh) return (double)(r->cpu_ns - r->base_cpu_ns) / (double)(r->wall_ns - r->base_wall_ns);
  if (counted) return (double)(r->live_cpu_ns - r->base_cpu_ns) / (double)(load->to_ns - r->base_wall_ns);
  return wall > 0 ? (double)(load->to_cpu_ns[i] - load->from_cpu_ns[i]) / wall : 0;
}

static bool write_threads(const struct load *load, struct text *t)
{
  bool steady = load->alive_at_end, known = load->shared || load->alive_at_end;
  json_open(t, "threads", '[');
  for (int i = 0; i < load->plan.threads; i++) {
    double offered = load->plan.percent[i] / 100.0, got = known ? achieved(load, i) : 0;
    json_open(t, NULL, '{');
    if (load->plan.percent[i]) {
      json_share(t, "offered", offered);
      if (got < offered - 0.05 || got > offered + 0.05) steady = false;
    }
    if (known) json_share(t, "achieved", got);
    else json_null(t, "achieved");
    json_close(t, '}');
  }
  json_close(t, ']');
  return steady;
}

static void write_bandwidth(const struct load *load, struct text *t)
{
  double gb_per_s = 0;
  bool moves_memory = false;
  for (int i = 0; i < load->plan.threads; i++) {
    const struct reading *r = &load->reading[i];
    if (!load->plan.buffer_bytes[i]) continue;
    if (r->wall_ns <= r->base_wall_ns) continue;
    moves_memory = true;
    gb_per_s += (double)(r->bytes - r->base_bytes) / (double)(r->wall_ns - r->base_wall_ns);
  }
  if (moves_memory) json_share(t, "gb_per_s", gb_per_s);
  else json_null(t, "gb_per_s");
}

bool load_phase_write(struct load *load)
{
  static struct text line;
  if (!load->pid || !load->phase || !load->to_ns) return true;
  text_clear(&line);
  json_open(&line, NULL, '{');
  json_string(&line, "phase", load->phase);
  json_string(&line, "spec", load->options->load.text);
  json_int(&line, "from_ns", load->from_ns);
  json_int(&line, "to_ns", load->to_ns);
  bool steady = write_threads(load, &line);
  json_bool(&line, "steady", steady);
  write_bandwidth(load, &line);
  json_bool(&line, "alive", load->alive_at_end);
  json_close(&line, '}');
  out_record('L', &line);
  load->phase = NULL;
  return steady;
}

void load_cpu_write(struct load *load, struct text *t)
{
  int64_t cpu_ns[LOAD_THREADS_MAX];
  if (!load->pid || load->died || load->ended) return;
  read_cpu(load, cpu_ns, false);
  json_open(t, "load_cpu_ns", '[');
  for (int i = 0; i < load->plan.threads; i++) json_int(t, NULL, cpu_ns[i]);
  json_close(t, ']');
}
