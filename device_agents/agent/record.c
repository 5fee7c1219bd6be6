/* record.c - writes the records of a trial: H, C, S and X (L is load.c's). PROTOCOL.md says what they mean. */
#include "agent.h"

#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct text line;

static void begin(int64_t t_ns)
{
  text_clear(&line);
  json_open(&line, NULL, '{');
  json_int(&line, "t_ns", t_ns);
}

static void end(char letter)
{
  json_close(&line, '}');
  out_record(letter, &line);
}

void record_header(const struct trial *trial)
{
  enum command command = trial->options->command;
  begin(trial->start_ns);
  json_int(&line, "protocol", AGENT_PROTOCOL);
  json_string(&line, "agent", AGENT_VERSION);
  json_string(&line, "command", command == COMMAND_RUN ? "run" : command == COMMAND_LOAD ? "load" : "sample");
  json_int(&line, "pid", getpid());
  json_string(&line, "clock", "CLOCK_MONOTONIC");
  json_int(&line, "wall_s", (int64_t)time(NULL));
  sample_write_header(&line);
  end('H');
}

void record_child(const struct trial *trial)
{
  begin(trial->spawn_ns);
  process_write_identity(&line, trial->child.pid);
  if (trial->load.pid) {
    json_open(&line, "load", '{');
    process_write_identity(&line, trial->load.pid);
    json_close(&line, '}');
  } else {
    json_null(&line, "load");
  }
  holds_write(&line, "holds");
  end('C');
}

void record_sample(struct trial *trial)
{
  bool child_lives = trial->child.pid > 0 && !trial->child_exited;
  begin(monotonic_ns());
  sample_write(&line);
  if (child_lives && trial->state >= RUNNING) watch_write_sample(&trial->watch, &line);
  load_cpu_write(&trial->load, &line);
  if (out_room() > OUT_RESERVE + line.length + 8) end('S');
  else trial->samples_missed++;
}

static void write_status(int status, bool known)
{
  if (known && WIFEXITED(status)) json_int(&line, "exit", WEXITSTATUS(status));
  else json_null(&line, "exit");
  if (known && WIFSIGNALED(status)) json_int(&line, "signal", WTERMSIG(status));
  else json_null(&line, "signal");
}

static void write_time(const char *key, const struct timeval *t)
{
  json_int(&line, key, (int64_t)t->tv_sec * NS_PER_S + (int64_t)t->tv_usec * 1000);
}

static void write_child(struct trial *trial)
{
  const struct rusage *usage = &trial->usage;
  write_status(trial->wait_status, trial->child_exited && !trial->fault.stage);
  if (!trial->child_exited || trial->fault.stage) return;
  json_int(&line, "wall_ns", trial->exit_ns - trial->spawn_ns);
  write_time("user_ns", &usage->ru_utime);
  write_time("system_ns", &usage->ru_stime);
  json_int(&line, "maxrss_kb", usage->ru_maxrss);
  json_int(&line, "minor_faults", usage->ru_minflt);
  json_int(&line, "major_faults", usage->ru_majflt);
  json_int(&line, "voluntary_switches", usage->ru_nvcsw);
  json_int(&line, "involuntary_switches", usage->ru_nivcsw);
  watch_write_threads(&trial->watch, &line);
  json_string(&line, "affinity", trial->watch.affinity[0] ? trial->watch.affinity : NULL);
}

static void write_dead_load(const struct load *load)
{
  json_open(&line, "load_exit", '{');
  write_status(load->wait_status, load->reaped);
  int error = load->shared ? atomic_load(&load->shared->error) : 0;
  if (load->mute_ns && !load->last_line_length) json_string(&line, "last_line", "closed its output before its first line");
  else if (error) json_string(&line, "last_line", errno_name(error));
  else if (load->last_line_length) json_bytes(&line, "last_line", load->last_line, load->last_line_length);
  else json_null(&line, "last_line");
  json_close(&line, '}');
}

void record_closing(struct trial *trial, bool output_complete, bool holds_restored)
{
  begin(monotonic_ns());
  json_int(&line, "lines", out_lines());
  json_string(&line, "reason", trial->reason);
  if (trial->fault.stage) {
    json_string(&line, "errno", errno_name(trial->fault.error));
    json_string(&line, "stage", spawn_stage_name(trial->fault.stage));
  }
  if (trial->options->command == COMMAND_RUN) write_child(trial);
  if (trial->load.died && strcmp(trial->reason, "load-died") == 0) write_dead_load(&trial->load);
  json_int(&line, "samples_missed", trial->samples_missed);
  json_bool(&line, "output_complete", output_complete);
  json_bool(&line, "holds_restored", holds_restored);
  end('X');
}
