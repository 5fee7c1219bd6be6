/* burn.c - the load's threads.
 *
 * A paced thread works in a closed loop on its own CPU clock: by the end of every period its CPU time shall have
 * reached its share of the wall time since the phase began, however it was scheduled. What it lost while it was not
 * scheduled is made up later, but never more than DEBT_MAX_NS of it, and never across phases. Periods begin at
 * absolute times; threads are staggered over the period. At 100 percent it never sleeps.
 *
 * Every thread publishes its clocks in shared memory, twice: at whole periods, where a share can be computed without
 * the error of a cut-off period, and within the period for a live view. A publication is written to the slot that is
 * not current and then made current, so a reader never waits for a writer that lost its CPU.
 */
#include "agent.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CHUNK_STEPS = 4000, TOUCH_BYTES = 64 * 1024, STREAM_BYTES = 1024 * 1024 };
#define DEBT_MAX_NS (500 * NS_PER_MS)

struct thread {
  struct worker *worker;
  struct burn_shared *shared;
  int percent;
  int64_t start_ns, period_ns;
  unsigned char *buffer;
  size_t buffer_bytes, offset;
  struct reading now;
  uint64_t seed;
};

static void publish(struct thread *self)
{
  unsigned generation = atomic_load_explicit(&self->worker->generation, memory_order_relaxed) + 1;
  /* What is written below must not be seen before the generation that made the other slot current. */
  atomic_thread_fence(memory_order_release);
  self->worker->slot[generation & 1] = self->now;
  atomic_store_explicit(&self->worker->generation, generation, memory_order_release);
}

struct reading worker_read(struct worker *worker)
{
  struct reading reading;
  unsigned before, after;
  do {
    before = atomic_load_explicit(&worker->generation, memory_order_acquire);
    reading = worker->slot[before & 1];
    atomic_thread_fence(memory_order_acquire);
    after = atomic_load_explicit(&worker->generation, memory_order_relaxed);
  } while (before != after);
  return reading;
}

uint64_t churn(uint64_t x, int steps)
{
  for (int i = 0; i < steps; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}

static void spin(struct thread *self)
{
  *(volatile uint64_t *)&self->seed = churn(self->seed, CHUNK_STEPS);
}

/* Reads and writes `bytes` of the buffer, going round. Both directions count as traffic. */
static void stream_memory(struct thread *self, size_t bytes)
{
  if (self->offset + bytes > self->buffer_bytes) self->offset = 0;
  uint64_t *at = (uint64_t *)(void *)(self->buffer + self->offset);
  for (size_t i = 0; i < bytes / sizeof *at; i++) at[i] += self->seed;
  __asm__ volatile("" : : "r"(at) : "memory");
  self->offset += bytes;
  self->now.bytes += 2 * (int64_t)bytes;
}

/* True when a new phase has begun; then this is where the thread's account starts again. */
static bool begin_phase(struct thread *self)
{
  unsigned epoch = atomic_load_explicit(&self->shared->epoch, memory_order_acquire);
  if (epoch == self->now.epoch) return false;
  self->now.epoch = epoch;
  self->now.base_cpu_ns = self->now.cpu_ns;
  self->now.base_wall_ns = self->now.wall_ns;
  self->now.base_bytes = self->now.bytes;
  return true;
}

static void read_clocks(struct thread *self)
{
  self->now.wall_ns = monotonic_ns();
  self->now.cpu_ns = self->now.live_cpu_ns = thread_cpu_ns();
}

static void burn_until(struct thread *self, int64_t cpu_target_ns, int64_t end_ns)
{
  while (self->now.live_cpu_ns < cpu_target_ns && monotonic_ns() < end_ns) {
    if (self->buffer) stream_memory(self, TOUCH_BYTES);
    else spin(self);
    self->now.live_cpu_ns = thread_cpu_ns();
    publish(self);
  }
}

static _Noreturn void run_paced(struct thread *self)
{
  const int64_t period = self->period_ns, share_ns = period * self->percent / 100;
  int64_t base_ns = self->start_ns, base_cpu_ns = 0, index = 0;
  bool first = true;
  for (;;) {
    if (self->percent < 100) sleep_until(base_ns + index * period);
    read_clocks(self);
    if (begin_phase(self) || first) {
      base_ns = self->now.wall_ns; /* where the account starts, the schedule starts: being late is no debt */
      base_cpu_ns = self->now.cpu_ns;
      index = 0;
      first = false;
    }
    publish(self);
    int64_t target_ns = base_cpu_ns + (index + 1) * share_ns;
    int64_t debt_ns = target_ns - self->now.cpu_ns - share_ns;
    if (debt_ns > DEBT_MAX_NS) {
      base_cpu_ns -= debt_ns - DEBT_MAX_NS;
      target_ns -= debt_ns - DEBT_MAX_NS;
    }
    burn_until(self, target_ns, base_ns + (index + 1) * period);
    int64_t due = (monotonic_ns() - base_ns) / period;
    index = due > index + 1 ? due : index + 1;
  }
}

static _Noreturn void run_streaming(struct thread *self)
{
  for (;;) {
    read_clocks(self);
    begin_phase(self);
    publish(self);
    stream_memory(self, STREAM_BYTES < self->buffer_bytes ? STREAM_BYTES : self->buffer_bytes);
  }
}

static void *thread_main(void *argument)
{
  struct thread *self = argument;
  if (self->buffer) memset(self->buffer, 1, self->buffer_bytes); /* take the page faults before we are ready */
  self->start_ns += monotonic_ns();
  if (self->percent) run_paced(self);
  run_streaming(self);
}

static _Noreturn void fail(struct burn_shared *shared, int error)
{
  atomic_store(&shared->error, error);
  _exit(EXIT_SYSTEM);
}

_Noreturn void burn(const struct burn_plan *plan, struct burn_shared *shared)
{
  static struct thread threads[LOAD_THREADS_MAX];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  for (int i = 0; i < plan->threads; i++) {
    struct thread *t = &threads[i];
    *t = (struct thread){.worker = &shared->worker[i], .shared = shared, .percent = plan->percent[i],
                         .period_ns = plan->period_ns, .buffer_bytes = plan->buffer_bytes[i],
                         .seed = 88172645463325252ULL + (uint64_t)i};
    t->start_ns = plan->period_ns * i / plan->threads;
    if (t->buffer_bytes) {
      void *buffer = mmap(NULL, t->buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (buffer == MAP_FAILED) fail(shared, errno);
      t->buffer = buffer;
    }
  }
  for (int i = 0; i < plan->threads; i++) {
    pthread_t id;
    int error = pthread_create(&id, &attributes, thread_main, &threads[i]);
    if (error) fail(shared, error);
  }
  for (;;) pause();
}
