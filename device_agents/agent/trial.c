/* trial.c - the loop of run, load and sample: one command is one trial.
 *
 *   LOADING -> SETTLING -> STARTING -> RUNNING -> DRAINING -> ENDING
 *
 * One poll watches everything: signals, standard input (the host's hand), standard output (is anyone there?), the
 * child's pipes, the load's pipes, and the time of the next event. Whatever ends the trial, the way out is the same:
 * measure the load, kill everything, put settings back, send what is left, close with X.
 */
#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DRAIN_NS NS_PER_S                  /* a grandchild may hold the child's pipe open; wait this long */
#define KILL_NS (800 * NS_PER_MS)          /* give up on processes that even SIGKILL does not end */
#define STALLED_NS (5 * NS_PER_S)          /* a host that is there but reads nothing */
#define GONE_NS (150 * NS_PER_MS)          /* a host that let go may still read the closing record */
#define SETTLE_WINDOWS_MAX 5               /* a load that is not steady yet is given this many settling times */
#define LOAD_POLL_NS (2 * NS_PER_MS)       /* how often to look whether the load's threads have begun */
#define SCAN_FAST_NS (20 * NS_PER_MS)      /* looks at the child's threads while it starts */
#define SCAN_FAST_UNTIL_NS (200 * NS_PER_MS)
#define SCAN_SLOW_NS (100 * NS_PER_MS)

static struct trial trial_memory;

static void end_trial(struct trial *trial, const char *reason)
{
  if (trial->state == ENDING) return;
  trial->reason = reason;
  trial->state = ENDING;
}

/* Reaps what has ended; false when no child of ours is left. */
static bool reap(struct trial *trial)
{
  for (;;) {
    int status;
    struct rusage usage;
    pid_t pid = wait4(-1, &status, WNOHANG, &usage);
    if (pid == 0) return true;
    if (pid < 0) return errno != ECHILD;
    if (pid == trial->child.pid) {
      trial->child_exited = true;
      trial->exit_ns = monotonic_ns();
      trial->wait_status = status;
      trial->usage = usage;
    } else if (pid == trial->load.pid) {
      if (trial->state != ENDING) trial->load.died = true;
      trial->load.reaped = true;
      trial->load.wait_status = status;
    }
  }
}

/* What the child said before exec: nothing (it runs), a mask that could not be set, or why it does not run. */
static void read_child_status(struct trial *trial)
{
  struct spawn_fault fault;
  ssize_t got = read(trial->child.status_fd, &fault, sizeof fault);
  if (got < 0 && errno == EINTR) return;
  if (got == sizeof fault && fault.stage == SPAWN_AFFINITY) {
    out_warn("affinity", errno_name(fault.error));
    return;
  }
  close_fd(&trial->child.status_fd);
  if (got == sizeof fault) {
    trial->fault = fault;
    end_trial(trial, "spawn");
    return;
  }
  trial->state = RUNNING;
  watch_scan(&trial->watch, trial->child.pid);
  record_child(trial);
  char asked[CPUS_MAX / 4 + 1];
  mask_print(&trial->options->affinity, asked, sizeof asked);
  if (trial->options->affine && strcmp(asked, trial->watch.affinity) != 0) out_warn("affinity", trial->watch.affinity);
}

static void start_child(struct trial *trial, int64_t now)
{
  const struct options *o = trial->options;
  struct program program = {.argv = o->argv, .affinity = o->affine ? &o->affinity : NULL, .chdir = o->chdir,
                            .env = o->env, .env_count = o->env_count};
  load_phase_begin(&trial->load, "run", now);
  if (o->command != COMMAND_RUN) {
    trial->state = RUNNING;
    trial->end_ns = now + o->seconds_ns;
    return;
  }
  trial->state = STARTING;
  trial->spawn_ns = monotonic_ns();
  spawn(&program, &trial->child);
  trial->scan_at_ns = trial->spawn_ns + SCAN_FAST_NS;
  stream_open(&trial->out, trial->child.out_fd, 'O');
  stream_open(&trial->err, trial->child.err_fd, 'E');
}

static void read_signals(struct trial *trial)
{
  struct signalfd_siginfo info;
  while (read(trial->signal_fd, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    trial->host_gone = trial->host_gone || trial->state == ENDING; /* asked twice: do not wait for the host */
    end_trial(trial, "terminated");
  }
}

static void read_stdin(struct trial *trial)
{
  char bytes[4096];
  ssize_t got = read(trial->stdin_fd, bytes, sizeof bytes);
  if (got > 0) {
    trial->beat_ns = monotonic_ns();
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    trial->stdin_fd = -1;
    trial->host_gone = true;
    end_trial(trial, "host-gone");
  }
}

/* It may have exited before we read that it had started. */
static void learn_start(struct trial *trial)
{
  while (trial->state == STARTING) read_child_status(trial);
}

/* Looks before it reaps: a zombie still answers questions about itself, a reaped child does not. The child may end
 * between the look and the reaping, so the state follows from what was reaped and from nothing else. */
static void look_at_children(struct trial *trial)
{
  siginfo_t info = {0};
  bool child = trial->child.pid > 0 && !trial->child_exited;
  if (child && waitid(P_PID, (id_t)trial->child.pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid)
    learn_start(trial);
  reap(trial);
  if (trial->child_exited) learn_start(trial);
  if (trial->child_exited && trial->state == RUNNING) {
    load_phase_end(&trial->load, trial->exit_ns);
    trial->state = DRAINING;
  }
  if (load_is_mute(&trial->load, monotonic_ns())) trial->load.died = true;
  if (trial->load.died && trial->state < DRAINING) end_trial(trial, "load-died");
}

enum { FD_SIGNAL, FD_STDIN, FD_STDOUT, FD_OUT, FD_ERR, FD_STATUS, FD_LOAD_OUT, FD_LOAD_ERR, FD_LOAD_STATUS, FD_COUNT };

static void wait_for_events(struct trial *trial, struct pollfd *fds, int64_t until_ns)
{
  bool room = out_room() > OUT_RESERVE;
  bool started = trial->child.pid > 0;
  int64_t wait_ns = until_ns - monotonic_ns();
  struct timespec timeout = timespec_of(wait_ns < 0 ? 0 : wait_ns);
  fds[FD_SIGNAL] = (struct pollfd){.fd = trial->signal_fd, .events = POLLIN};
  fds[FD_STDIN] = (struct pollfd){.fd = trial->stdin_fd, .events = POLLIN};
  fds[FD_STDOUT] = (struct pollfd){.fd = out_gone() ? -1 : out_fd(), .events = out_pending() ? POLLOUT : 0};
  fds[FD_OUT] = (struct pollfd){.fd = started && room ? trial->out.fd : -1, .events = POLLIN};
  fds[FD_ERR] = (struct pollfd){.fd = started && room ? trial->err.fd : -1, .events = POLLIN};
  fds[FD_STATUS] = (struct pollfd){.fd = trial->state == STARTING ? trial->child.status_fd : -1, .events = POLLIN};
  fds[FD_LOAD_OUT] = (struct pollfd){.fd = trial->load.program.out_fd, .events = POLLIN};
  fds[FD_LOAD_ERR] = (struct pollfd){.fd = trial->load.program.err_fd, .events = POLLIN};
  fds[FD_LOAD_STATUS] = (struct pollfd){.fd = trial->load.program.status_fd, .events = POLLIN};
  if (ppoll(fds, FD_COUNT, until_ns == NEVER_NS ? NULL : &timeout, NULL) < 0)
    for (int i = 0; i < FD_COUNT; i++) fds[i].revents = 0;
}

static void send_child_output(struct trial *trial)
{
  if (trial->child.pid <= 0) return;
  stream_send(&trial->out);
  stream_send(&trial->err);
}

static void handle_events(struct trial *trial, const struct pollfd *fds)
{
  if (fds[FD_STATUS].revents && trial->state == STARTING) read_child_status(trial);
  if (fds[FD_OUT].revents) stream_read(&trial->out);
  if (fds[FD_ERR].revents) stream_read(&trial->err);
  if (fds[FD_LOAD_STATUS].revents) load_read_status(&trial->load);
  if (fds[FD_LOAD_OUT].revents) load_read_output(&trial->load);
  if (fds[FD_LOAD_ERR].revents) load_read_errors(&trial->load);
  look_at_children(trial);
  if (fds[FD_SIGNAL].revents) read_signals(trial);
  if (fds[FD_STDIN].revents) read_stdin(trial);
  do send_child_output(trial);
  while (out_flush());
  if (out_gone() || (fds[FD_STDOUT].revents & (POLLERR | POLLHUP | POLLNVAL))) {
    trial->host_gone = true;
    end_trial(trial, "host-gone");
  }
}

static void take_samples(struct trial *trial, int64_t now)
{
  bool lives = trial->state == RUNNING && trial->child.pid > 0;
  bool due = trial->options->sample_ns && now >= trial->sample_at_ns;
  if (lives && (due || now >= trial->scan_at_ns)) {
    int64_t fast_until = trial->spawn_ns + SCAN_FAST_UNTIL_NS;
    int64_t slow = trial->options->sample_ns ? trial->options->sample_ns : SCAN_SLOW_NS;
    watch_scan(&trial->watch, trial->child.pid);
    while (trial->scan_at_ns <= now) trial->scan_at_ns += now < fast_until ? SCAN_FAST_NS : slow;
  }
  if (!due) return;
  record_sample(trial);
  while (trial->sample_at_ns <= now) trial->sample_at_ns += trial->options->sample_ns;
}

static void advance(struct trial *trial, int64_t now)
{
  if (trial->state == LOADING && load_is_ready(&trial->load)) {
    trial->state = SETTLING;
    trial->settled_ns = trial->load.pid ? now + trial->options->settle_ns : now;
    if (trial->options->settle_ns) load_phase_begin(&trial->load, "settle", now);
  }
  if (trial->state == SETTLING && now >= trial->settled_ns) {
    load_phase_end(&trial->load, now);
    bool steady = load_phase_write(&trial->load);
    if (!steady && ++trial->settle_windows < SETTLE_WINDOWS_MAX) {
      trial->settled_ns = now + trial->options->settle_ns;
      load_phase_begin(&trial->load, "settle", now);
    } else {
      start_child(trial, monotonic_ns());
    }
  }
  bool timed = trial->options->command != COMMAND_RUN;
  if (trial->state == RUNNING && timed && now >= trial->end_ns) end_trial(trial, "done");
  bool drained = stream_done(&trial->out) && stream_done(&trial->err);
  if (trial->state == DRAINING && (drained || now >= trial->exit_ns + DRAIN_NS))
    end_trial(trial, WIFEXITED(trial->wait_status) ? "exit" : "signal");
  int64_t heartbeat = trial->options->heartbeat_ns;
  if (heartbeat && now - trial->beat_ns > heartbeat) end_trial(trial, "heartbeat");
  if (now >= trial->deadline_ns) end_trial(trial, "deadline");
}

static int64_t sooner(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t next_event_ns(const struct trial *trial)
{
  const struct options *o = trial->options;
  int64_t next = trial->deadline_ns;
  if (o->heartbeat_ns) next = sooner(next, trial->beat_ns + o->heartbeat_ns + 1);
  if (o->sample_ns) next = sooner(next, trial->sample_at_ns);
  if (trial->state == LOADING && trial->load.pid) next = sooner(next, monotonic_ns() + LOAD_POLL_NS);
  if (trial->state == SETTLING) next = sooner(next, trial->settled_ns);
  if (trial->state == RUNNING && o->command == COMMAND_RUN) next = sooner(next, trial->scan_at_ns);
  if (trial->state == RUNNING && o->command != COMMAND_RUN) next = sooner(next, trial->end_ns);
  if (trial->state == DRAINING) next = sooner(next, trial->exit_ns + DRAIN_NS);
  return next;
}

/* A child that has something to undo outside of our reach is asked to end, and given the time it was promised. */
static void ask_child(struct trial *trial)
{
  int64_t give_up_ns = monotonic_ns() + trial->options->grace_ns;
  if (trial->options->grace_ns == 0 || trial->child.pid <= 0 || trial->child_exited) return;
  kill(-trial->child.pid, SIGTERM);
  while (reap(trial) && !trial->child_exited && monotonic_ns() < give_up_ns) sleep_until(monotonic_ns() + 5 * NS_PER_MS);
}

/* Every process that came from us, daemonised or not. Returns false when one survives SIGKILL. */
static bool kill_everything(struct trial *trial)
{
  trial->load.ended = true;
  if (trial->load.pid) kill(-trial->load.pid, SIGKILL), kill(trial->load.pid, SIGKILL);
  ask_child(trial);
  int64_t give_up_ns = monotonic_ns() + KILL_NS;
  if (trial->child.pid > 0 && !trial->child_exited) kill(-trial->child.pid, SIGKILL);
  while (reap(trial)) {
    if (monotonic_ns() > give_up_ns) return false;
    tree_kill_descendants();
    sleep_until(monotonic_ns() + NS_PER_MS);
  }
  return true;
}

/* Moves output until `done` says so. A host that is gone gets little time, a host that stalls gets some. */
static bool move_output(struct trial *trial, bool (*done)(const struct trial *))
{
  static struct pollfd fds[FD_COUNT];
  int64_t moved_ns = monotonic_ns(), gone_ns = trial->host_gone ? moved_ns : 0;
  while (!done(trial)) {
    int64_t now = monotonic_ns();
    if (trial->host_gone && !gone_ns) gone_ns = now;
    if (out_gone()) return false;
    int64_t limit = trial->host_gone ? gone_ns + GONE_NS : moved_ns + STALLED_NS;
    if (now >= limit) return false;
    wait_for_events(trial, fds, limit);
    if (fds[FD_SIGNAL].revents) read_signals(trial);
    if (fds[FD_STDIN].revents) read_stdin(trial);
    if (fds[FD_STDOUT].revents & (POLLERR | POLLHUP | POLLNVAL)) return false;
    bool moved = out_flush();
    if (trial->child.pid > 0) {
      if (fds[FD_OUT].revents) moved = stream_read(&trial->out) || moved;
      if (fds[FD_ERR].revents) moved = stream_read(&trial->err) || moved;
    }
    send_child_output(trial);
    if (moved) moved_ns = monotonic_ns();
  }
  return true;
}

static bool child_output_sent(const struct trial *trial)
{
  return trial->child.pid <= 0 || (stream_done(&trial->out) && stream_done(&trial->err));
}

static bool all_sent(const struct trial *trial)
{
  (void)trial;
  return !out_pending();
}

static int close_trial(struct trial *trial)
{
  load_phase_end(&trial->load, monotonic_ns());
  bool all_dead = kill_everything(trial);
  bool restored = holds_restore();
  close_fd(&trial->load.program.out_fd);
  close_fd(&trial->load.program.status_fd);
  if (trial->load.program.err_fd >= 0 && trial->load.died) load_read_errors(&trial->load);
  close_fd(&trial->load.program.err_fd);
  bool complete = move_output(trial, child_output_sent);
  if (!all_dead) out_warn("kill", "a process survives SIGKILL");
  if (trial->options->sample_ns && trial->child.pid > 0) record_sample(trial);
  load_phase_write(&trial->load);
  record_closing(trial, complete, restored);
  return move_output(trial, all_sent) && !out_gone() ? 0 : EXIT_OUTPUT;
}

static void watch_signals(struct trial *trial)
{
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGQUIT);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, NULL);
  signal(SIGPIPE, SIG_IGN);
  trial->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (trial->signal_fd < 0) die(EXIT_SYSTEM, "no signalfd: %s", errno_name(errno));
}

/* The loop hangs: what is held is put back here, and everything we started dies with us. */
static void give_up(int number)
{
  (void)number;
  holds_restore();
  _exit(EXIT_SYSTEM);
}

static void open_trial(struct trial *trial, const struct options *options)
{
  trial->options = options;
  trial->start_ns = trial->beat_ns = trial->sample_at_ns = monotonic_ns();
  trial->deadline_ns = trial->start_ns + options->deadline_ns;
  trial->stdin_fd = options->detached ? -1 : STDIN_FILENO;
  trial->out.fd = trial->err.fd = trial->child.status_fd = -1;
  watch_signals(trial);
  /* Should this loop ever hang, the alarm ends the agent, and PR_SET_PDEATHSIG what it started. */
  signal(SIGALRM, give_up);
  alarm((unsigned)(options->deadline_ns / NS_PER_S) + 30);
  out_open();
  sample_open();
  record_header(trial);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) out_warn("subreaper", errno_name(errno));
  holds_apply(options);
  load_start(&trial->load, options);
}

int trial_run(const struct options *options)
{
  static struct pollfd fds[FD_COUNT];
  struct trial *trial = &trial_memory;
  open_trial(trial, options);
  while (trial->state != ENDING) {
    int64_t now = monotonic_ns();
    advance(trial, now);
    take_samples(trial, now);
    out_flush();
    if (trial->state == ENDING) break;
    wait_for_events(trial, fds, next_event_ns(trial));
    handle_events(trial, fds);
  }
  return close_trial(trial);
}
