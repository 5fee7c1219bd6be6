/* devbench-litert - times one TFLite model with LiteRT's C interface and prints what happened as JSON lines.
 *
 * For devices without Python. It brings no runtime: it opens the libLiteRt.so of the ai-edge-litert wheel, which needs
 * glibc (2.34 on aarch64) and libstdc++. Flags and lines are those of litert_runner.py, whose docstring is the manual,
 * so that the host reads both alike; what follows is what differs.
 *
 *   devbench-litert --runtime FILE --model FILE --threads N --delegate xnnpack|cpu --copy copy|zero-copy
 *       --warmup-runs N --warmup-min-ms MS --runs N --min-ms MS --max-ms MS --seed S
 *       [--inputs FILE.npz] [--expect-sha256 HEX] [--profile]
 *   devbench-litert --beside ...         as above, without --runs, --min-ms and --profile
 *   devbench-litert --check --runtime FILE
 *
 *   --runtime   libLiteRt.so
 *   --delegate  cpu: the runtime's own kernels, which run on one thread whatever is asked when they are used through
 *               this interface; so more than one is refused
 *   --copy      copy: every iteration copies inputs into the runtime's buffers and outputs out of them
 *   --seed      gives the very bytes that litert_runner.py makes of it
 *   --inputs    an .npz as numpy.savez writes it; compressed ones are refused
 *   --profile   a separate mode: every operator's time from the runtime's own profiler, which slows the model down.
 *               At most 2000 runs. The lines after `init` are described in PROTOCOL.md.
 *
 *   start    python, numpy and runtime_version are null (the library does not say; its hash does); libc
 *   init     The runtime prepares the graph in its first run: first_us includes that, allocate_us is the making of the
 *            tensors' buffers.
 *   delegation   after `memory`: nodes_total, nodes_delegated, partitions and remaining, which litert_runner.py has in
 *            `init`. They are found by loading the model again when it has been measured, with a profiler, and running
 *            it once; null where the graph has more than 2000 nodes. A partition in which the profiler sees no operator
 *            is not counted.
 *   end      gc is null
 *   error    further kinds, exit 69: libc-too-old (libLiteRt.so needs a newer libc or libstdc++ than there is),
 *            library-missing (a library it needs is not there)
 *
 * A process that dies by a signal with `model` as its last line was killed by the runtime loading this model or running
 * it for the first time; what the runtime said is on standard error.
 */
#include "runner.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct flags flags;
static struct model model;
static struct session session;

static void write_microseconds(struct text *t, const char *key, int64_t ns) { json_share(t, key, (double)ns / 1e3); }

static void write_init(struct text *t)
{
  json_known(t, "threads_before", session.threads_before);
  write_microseconds(t, "init_us", session.create_ns + session.allocate_ns);
  write_microseconds(t, "create_us", session.create_ns);
  write_microseconds(t, "allocate_us", session.allocate_ns);
  json_known(t, "threads_allocated", session.threads_allocated);
  write_microseconds(t, "first_us", session.first_ns);
  json_known(t, "threads_after", session.threads_after);
}

/* The steady loop and what the process spent in it */

struct spending {
  bool has_threads;
  int64_t wall_ns, cpu_ns;
  struct rusage usage;
  struct thread_times threads;
};

static void counts_read(struct spending *at)
{
  at->has_threads = thread_times_read(&at->threads);
  getrusage(RUSAGE_SELF, &at->usage);
}

static void clocks_read(struct spending *at)
{
  at->wall_ns = monotonic_ns(), at->cpu_ns = process_cpu_ns(getpid());
}

static int falling(const void *one, const void *other)
{
  int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
  return (a < b) - (a > b);
}

static void write_thread_times(struct text *t, const struct spending *from, struct spending *to)
{
  if (!from->has_threads || !to->has_threads) {
    json_null(t, "thread_cpu_ns");
    return;
  }
  for (int i = 0; i < to->threads.count; i++)
    for (int k = 0; k < from->threads.count; k++)
      if (from->threads.tid[k] == to->threads.tid[i]) to->threads.cpu_ns[i] -= from->threads.cpu_ns[k];
  qsort(to->threads.cpu_ns, (size_t)to->threads.count, sizeof *to->threads.cpu_ns, falling);
  json_open(t, "thread_cpu_ns", '[');
  for (int i = 0; i < to->threads.count; i++) json_int(t, NULL, to->threads.cpu_ns[i]);
  json_close(t, ']');
}

static void say_memory(int64_t rss_end_kb, int64_t peak_kb)
{
  struct text *line = event("memory");
  json_known(line, "rss_before_model_kb", session.rss_before_kb);
  json_known(line, "rss_init_kb", session.rss_init_kb);
  json_known(line, "rss_first_kb", session.rss_first_kb);
  json_known(line, "rss_end_kb", rss_end_kb);
  json_known(line, "peak_kb", peak_kb);
  say(line);
}

struct outcome {
  char output_sha256[65];
  bool inputs_intact;
  int64_t threads;
};

static void say_end(const struct loop *warmup, const struct loop *steady, const struct outcome *outcome,
                    const struct spending *from, struct spending *to)
{
  struct text *line = event("end");
  json_int(line, "count", steady->count);
  json_int(line, "warmup_count", warmup->count);
  json_string(line, "stopped_by", steady->stopped_by);
  json_string(line, "warmup_stopped_by", warmup->stopped_by);
  json_string(line, "output_sha256", outcome->output_sha256);
  if (flags.is_copy) json_null(line, "inputs_intact");
  else json_bool(line, "inputs_intact", outcome->inputs_intact);
  json_null(line, "gc");
  json_known(line, "threads_end", outcome->threads);
  json_int(line, "wall_ns", to->wall_ns - from->wall_ns);
  json_int(line, "cpu_ns", to->cpu_ns - from->cpu_ns);
  json_int(line, "voluntary_switches", to->usage.ru_nvcsw - from->usage.ru_nvcsw);
  json_int(line, "involuntary_switches", to->usage.ru_nivcsw - from->usage.ru_nivcsw);
  write_thread_times(line, from, to);
  say(line);
}

static void measure(void)
{
  static struct spending from, to;
  static struct delegation delegation;
  struct limits limits = {flags.runs, flags.min_ms * NS_PER_MS, flags.max_ms * NS_PER_MS};
  struct loop warmup, steady;
  loop_warm_up(&warmup, &session);
  counts_read(&from);
  clocks_read(&from);
  loop_run(&steady, &session, "steady", limits);
  clocks_read(&to);
  counts_read(&to);
  int64_t rss_end_kb = status_kb("VmRSS"), peak_kb = status_kb("VmHWM");
  loop_report(&warmup);
  loop_report(&steady);
  say_memory(rss_end_kb, peak_kb);
  struct outcome outcome = {.inputs_intact = session_inputs_intact(&session), .threads = thread_count()};
  session_output_sha256(&session, outcome.output_sha256);
  delegation_find(&delegation, &session);
  delegation_say(&delegation, &model);
  say_end(&warmup, &steady, &outcome, &from, &to);
}

static _Noreturn void be_a_load(void)
{
  struct loop loop;
  loop_warm_up(&loop, &session);
  struct text *line = event("ready");
  json_open(line, "start", '{');
  litert_write(&flags, line);
  json_close(line, '}');
  json_open(line, "model", '{');
  model_write(&model, line);
  json_close(line, '}');
  json_open(line, "init", '{');
  write_init(line);
  json_close(line, '}');
  json_int(line, "warmup_count", loop.count);
  say(line);
  for (;;) {
    loop_forget(&loop);
    loop_run(&loop, &session, "beside", (struct limits){1000, 0, 1000 * NS_PER_S}); /* nobody reads the samples */
  }
}

/* The peak starts anew: what came before is not the model's. Where the kernel refuses, the peak is that of all. */
static void reset_peak(void)
{
  int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  ssize_t ignored = fd < 0 ? 0 : write(fd, "5", 1);
  (void)ignored;
  if (fd >= 0) close(fd);
}

static void say_facts(const char *name, void (*write_facts)(struct text *))
{
  struct text *line = event(name);
  write_facts(line);
  if (!flags.beside) say(line);
}

static void write_start(struct text *t) { litert_write(&flags, t); }
static void write_model(struct text *t) { model_write(&model, t); }

int main(int argc, char **argv)
{
  (void)argc;
  signal(SIGINT, SIG_DFL); /* end at once and quietly */
  signal(SIGPIPE, SIG_DFL);
  flags_parse(&flags, argv + 1);
  litert_open(&flags);
  say_facts("start", write_start);
  if (flags.check) return 0;
  model_open(&model, &flags);
  say_facts("model", write_model);
  reset_peak();
  session_open(&session, &model, &flags, flags.profile);
  session_first_run(&session);
  if (flags.beside) be_a_load();
  say_facts("init", write_init);
  if (flags.profile) profile(&session);
  else measure();
  _exit(0); /* the runtime's own tidying up would only cost time */
}
