/* agent.h - what the files of devbench-agent know of one another.
 *
 * One job per file, in the order in which they build on one another:
 *
 *   clock.c   reads the clocks and sleeps to absolute times
 *   text.c    builds one line of JSON in a fixed buffer
 *   file.c    reads small files, lines and directories without allocating
 *   out.c     sends protocol lines to the host and never blocks on it
 *   mask.c    CPU masks in hexadecimal
 *   options.c turns the command line into struct options; prints help from the same table
 *   sha256.c  SHA-256 of bytes and of a file
 *   hash.c    prints the SHA-256 of files
 *   probe.c   says what this device is
 *   hold.c    holds a setting for the length of a command
 *   tree.c    finds and ends every process we started
 *   spawn.c   starts a program with pipes
 *   stream.c  cuts a program's output into protocol lines
 *   burn.c    the load's threads
 *   load.c    starts the load and measures what it achieved
 *   sample.c  telemetry
 *   watch.c   looks at the measured child: threads, CPU time, affinity
 *   record.c  writes H, C, L and X
 *   trial.c   the loop of run, load and sample
 *   main.c    picks the command
 *
 * Conventions: times are nanoseconds in int64_t and end in _ns. A function that can fail returns 0 or an errno,
 * unless it says otherwise. Nothing is allocated after start-up; a buffer that is too small ends the agent, it never
 * shortens what it says.
 */
#ifndef DEVBENCH_AGENT_H
#define DEVBENCH_AGENT_H

#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define AGENT_VERSION "0.1.0"
#define AGENT_PROTOCOL 1

#define NS_PER_S 1000000000LL
#define NS_PER_MS 1000000LL
#define NEVER_NS INT64_MAX

enum {
  EXIT_USAGE = 64,  /* the command line is wrong */
  EXIT_SYSTEM = 71, /* the system refused something the agent cannot work without */
  EXIT_OUTPUT = 74, /* the host did not take the closing record */

  CPUS_MAX = 1024,
  LOAD_THREADS_MAX = 64,
  HOLDS_MAX = 32,
  ENVS_MAX = 128,
  LINE_LIMIT = 32 * 1024, /* a longer line of the child is sent in pieces */
  VALUE_SIZE = 4096,      /* any single value read from /proc or /sys */
};

/* main.c */
_Noreturn void die(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* clock.c */
int64_t monotonic_ns(void);
int64_t thread_cpu_ns(void);
int64_t process_cpu_ns(pid_t pid); /* -1 when it is gone */
void sleep_until(int64_t t_ns);
struct timespec timespec_of(int64_t ns);

/* text.c: a NULL key means "the next element of an array" */
struct text {
  size_t length;
  char at[256 * 1024];
};
void text_clear(struct text *t);
void text_add(struct text *t, const char *string);
void text_bytes(struct text *t, const void *bytes, size_t length);
void json_open(struct text *t, const char *key, char bracket);
void json_close(struct text *t, char bracket);
void json_int(struct text *t, const char *key, int64_t value);
void json_share(struct text *t, const char *key, double value);
void json_bool(struct text *t, const char *key, bool value);
void json_null(struct text *t, const char *key);
void json_string(struct text *t, const char *key, const char *value); /* NULL gives null */
void json_bytes(struct text *t, const char *key, const void *value, size_t length);

/* file.c: a "fact" is a path below $DEVBENCH_SYSROOT, so that a test can present another device */
const char *errno_name(int error);
int file_read(const char *path, char *value, size_t size);
int fact_read(char *value, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int fact_number(int64_t *value, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fact_path(char *path, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool text_to_number(const char *text, int64_t *value);

struct lines {
  int fd;
  size_t start, end;
  bool at_end;
  char buffer[16 * 1024];
};
int lines_open(struct lines *lines, const char *path);
char *lines_next(struct lines *lines); /* NULL at the end; a line longer than the buffer is skipped whole */
void lines_close(struct lines *lines);

struct dir {
  int fd;
  size_t next, end;
  _Alignas(8) char buffer[8 * 1024];
};
int dir_open(struct dir *dir, const char *path);
const char *dir_next(struct dir *dir); /* skips . and .. */
void dir_close(struct dir *dir);

/* out.c */
void out_open(void);
size_t out_room(void);
void out_line(char letter, const void *bytes, size_t length);
void out_text_line(char letter, int64_t t_ns, const void *bytes, size_t length);
void out_record(char letter, const struct text *t);
void out_warn(const char *what, const char *reason);
int64_t out_lines(void);
bool out_pending(void);
bool out_gone(void);
bool out_flush(void); /* true when it moved something */
int out_fd(void);
enum { OUT_RESERVE = 600 * 1024 }; /* room kept for records; the child's output and samples may not use it */

/* mask.c */
bool mask_parse(const char *text, cpu_set_t *mask);
void mask_print(const cpu_set_t *mask, char *text, size_t size);
int cpu_list(int *cpus, int max, const char *fact); /* "0-3,7" as numbers; -errno on failure */

/* burn.c: shared between the agent and the load's process */
struct reading {
  unsigned epoch;                                /* the phase this reading belongs to */
  int64_t base_cpu_ns, base_wall_ns, base_bytes; /* where the phase began, on this thread's own clock */
  int64_t cpu_ns, wall_ns, bytes;                /* at the last whole period */
  int64_t live_cpu_ns;                           /* now, within a fraction of a millisecond */
};
struct worker {
  _Alignas(128) atomic_uint generation;
  struct reading slot[2];
};
struct burn_plan {
  int threads;
  int percent[LOAD_THREADS_MAX]; /* of one CPU; 0 means no pacing: stream through memory */
  int64_t period_ns;
  size_t buffer_bytes[LOAD_THREADS_MAX]; /* 0: no memory traffic */
};
struct burn_shared {
  struct worker worker[LOAD_THREADS_MAX];
  atomic_uint epoch;
  atomic_int error; /* an errno that ended the load */
};
_Noreturn void burn(const struct burn_plan *plan, struct burn_shared *shared);
struct reading worker_read(struct worker *worker);
uint64_t churn(uint64_t x, int steps); /* work for one CPU: a chain of steps that each need the one before */

/* load.c */
enum load_kind { LOAD_IDLE, LOAD_CPU, LOAD_MEM, LOAD_APP, LOAD_EXEC };
struct load_spec {
  enum load_kind kind;
  int threads, percent;
  const char *text;
};
const char *load_parse(const char *text, struct load_spec *spec); /* NULL, or what is wrong with it */

/* options.c */
enum command { COMMAND_RUN = 1, COMMAND_LOAD = 2, COMMAND_SAMPLE = 4 };
struct options {
  enum command command;
  struct load_spec load;
  bool load_other_group, load_placement_asked, load_affine;
  cpu_set_t load_affinity;
  int load_argc;
  int64_t settle_ns, sample_ns, seconds_ns, deadline_ns, heartbeat_ns, grace_ns;
  bool affine, detached, seconds_asked;
  cpu_set_t affinity;
  const char *chdir;
  const char *env[ENVS_MAX];
  int env_count;
  const char *hold[HOLDS_MAX];
  int hold_count;
  char **argv;      /* the measured command */
  char **load_argv; /* the command of an exec load */
};
void options_parse(struct options *options, enum command command, char **words);
void options_help(void);

/* sha256.c */
struct sha256 {
  uint32_t state[8];
  uint64_t bytes;
  unsigned char block[64];
};
void sha256_start(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *content, size_t length);
void sha256_finish(struct sha256 *h, char hex[65]);
int sha256_file(const char *path, char hex[65], uint64_t *bytes);

/* canary.c, hash.c, probe.c */
int canary(char **words);
int hash_files(char **paths);
int probe(void);

/* hold.c */
void holds_apply(const struct options *options);
bool holds_restore(void); /* true when nothing is left changed; safe to call twice */
void holds_write(struct text *t, const char *key);

/* tree.c */
struct process_row {
  pid_t pid, parent, group, session;
};
int tree_scan(void);
const struct process_row *tree_row(int index);
void tree_kill_descendants(void);

/* spawn.c */
enum spawn_stage { SPAWN_AFFINITY = 1, SPAWN_CHDIR, SPAWN_EXEC };
struct spawn_fault {
  int stage, error;
};
struct program {
  char **argv;
  const cpu_set_t *affinity; /* NULL: as it is */
  const char *chdir;
  const char *const *env;
  int env_count;
  bool own_session;
};
struct process {
  pid_t pid;
  int status_fd, out_fd, err_fd;
};
void spawn(const struct program *program, struct process *process);
void enter_child(pid_t parent, bool own_session); /* what every forked process does first */
const char *spawn_stage_name(int stage);
void close_fd(int *fd);

/* stream.c */
struct stream {
  int fd;
  char letter; /* 'O' or 'E' */
  size_t start, end;
  int64_t read_ns;
  char buffer[2 * LINE_LIMIT];
};
void stream_open(struct stream *stream, int fd, char letter);
bool stream_wants(const struct stream *stream);
bool stream_read(struct stream *stream);
void stream_send(struct stream *stream);
bool stream_done(const struct stream *stream);

/* load.c, continued */
struct load {
  const struct options *options;
  struct burn_plan plan;
  struct burn_shared *shared;
  pid_t pid;       /* 0: none */
  bool died;       /* it ended before we ended it */
  bool reaped, ended;     /* wait_status is valid; we ended it */
  int wait_status;
  bool ready;
  int64_t mute_ns; /* when an exec load closed its output before it was ready */
  struct process program; /* exec only */
  char last_line[1024];   /* of an exec load's standard error */
  size_t last_line_length;
  bool last_line_ended;
  /* the phase being measured */
  const char *phase;
  int64_t from_ns, to_ns;
  int64_t from_cpu_ns[LOAD_THREADS_MAX], to_cpu_ns[LOAD_THREADS_MAX];
  struct reading reading[LOAD_THREADS_MAX];
  bool alive_at_end;
};
void load_start(struct load *load, const struct options *options);
bool load_is_ready(struct load *load);
void load_read_output(struct load *load);
bool load_is_mute(const struct load *load, int64_t now_ns);
void load_read_errors(struct load *load);
void load_read_status(struct load *load);
void load_phase_begin(struct load *load, const char *phase, int64_t now_ns);
void load_phase_end(struct load *load, int64_t now_ns);
bool load_phase_write(struct load *load); /* whether it held what it offers; true without a load */
void load_cpu_write(struct load *load, struct text *t);

/* watch.c */
enum { TIDS_MAX = 256 };
struct watch {
  pid_t pid;
  int threads_now, threads_max, tids;
  pid_t tid[TIDS_MAX];
  int64_t tid_cpu_ns[TIDS_MAX];
  char affinity[CPUS_MAX / 4 + 1];
};
void watch_scan(struct watch *watch, pid_t pid);
void watch_write_sample(const struct watch *watch, struct text *t);
void watch_write_threads(struct watch *watch, struct text *t);
void process_write_identity(struct text *t, pid_t pid);
void process_affinity(pid_t pid, char *text, size_t size);

/* sample.c */
void sample_open(void);
void sample_write_header(struct text *t);
void sample_write(struct text *t);
int power_supply_write(struct text *t, const char *name);
int thermal_zones(int *zones, int max); /* sorted zone numbers, or -errno */

/* trial.c and record.c */
struct trial {
  const struct options *options;
  enum { LOADING, SETTLING, STARTING, RUNNING, DRAINING, ENDING } state;
  const char *reason;
  bool host_gone;
  int signal_fd, stdin_fd;
  int64_t start_ns, deadline_ns, beat_ns, settled_ns, end_ns;
  int settle_windows;
  int64_t sample_at_ns, scan_at_ns;
  int64_t samples_missed;
  struct load load;
  struct process child;
  struct stream out, err;
  struct watch watch;
  int64_t spawn_ns, exit_ns;
  bool child_exited;
  int wait_status;
  struct rusage usage;
  struct spawn_fault fault;
};
int trial_run(const struct options *options);
void record_header(const struct trial *trial);
void record_child(const struct trial *trial);
void record_sample(struct trial *trial);
void record_closing(struct trial *trial, bool output_complete, bool holds_restored);

#endif
