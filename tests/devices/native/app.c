/* An app of a virtual phone: TFLite's benchmark app, with the stand-in benchmark_model inside.
 *
 * zygote is started by process 1 (see phone_init.c), so that an app belongs to nobody's shell. It forks the app, logs what
 * Android's ActivityManager would, and stays to tell how the app died. The app takes its flags from PHONE/app/args,
 * logs what the tool prints (but for what only the tool's main prints), and idles when the activity has finished.
 *
 * PHONE/app/fault, lines of "name value": hang 1 (never reports), drop TEXT (lines with this text are evicted from the log),
 * interleave 1 (another app with TFLite in it logs the same shapes at once), noise 1 (other apps log), prefix 1
 * (levels stand in the text too), die_early 1 (before its first line).
 */
#include "app_world.h"
#include "bm.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PACKAGE "org.tensorflow.lite.benchmark"
#define SYSTEM_SERVER 1500
#define WORDS_MAX 256

static int own_pid;
static char fault_text[4096];

static const char *fault(const char *name)
{
  static char value[256];
  size_t length = strlen(name);
  for (const char *line = fault_text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, name, length) == 0 && line[length] == ' ') {
      snprintf(value, sizeof value, "%.*s", (int)strcspn(line + length + 1, "\n"), line + length + 1);
      return value;
    }
  }
  return NULL;
}

/* A line of the tool as Android's log has it: the level in the header, text cut at a kilobyte. */
static void log_tool_line(char *line)
{
  static const struct {
    const char *prefix;
    char level;
  } levels[] = {{"INFO: ", 'I'}, {"WARN: ", 'W'}, {"WARNING: ", 'W'}, {"ERROR: ", 'E'}, {"FATAL: ", 'F'}};
  char level = 'I', *text = line;
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
    if (strncmp(line, levels[i].prefix, strlen(levels[i].prefix)) == 0) {
      level = levels[i].level;
      if (fault("prefix") == NULL) text = line + strlen(levels[i].prefix);
    }
  if (strstr(line, "STARTING!") != NULL || strstr(line, "Benchmarking failed.") != NULL) return;
  if (strlen(text) > 1023) text[1023] = '\0';
  if (fault("interleave") != NULL) log_line(own_pid - 1, own_pid - 1, level, "tflite", text);
  if (fault("noise") != NULL) {
    log_line(4001, 4002, 'D', "WifiService", "count=3 first=1 curr=1 min=1 max=1 avg=1 std=0");
    log_line(SYSTEM_SERVER, 1533, 'I', "ActivityManager", "Start proc 999:com.example.mail/u0a77 for service");
  }
  if (fault("drop") == NULL || strstr(text, fault("drop")) == NULL) log_line(own_pid, own_pid, level, "tflite", text);
}

static void *logger(void *pipe_read)
{
  FILE *lines = fdopen(*(int *)pipe_read, "r");
  static char line[16384];
  while (lines != NULL && fgets(line, sizeof line, lines) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (*line != '\0') log_tool_line(line);
  }
  return NULL;
}

static void *sleeper(void *unused)
{
  (void)unused;
  for (;;) pause();
}

static void start_threads(int count)
{
  pthread_t thread;
  for (int i = 0; i < count; i++) pthread_create(&thread, NULL, sleeper, NULL);
}

static int threads_asked(char **words, int count)
{
  for (int i = 0; i < count; i++)
    if (strncmp(words[i], "--num_threads=", 14) == 0) return atoi(words[i] + 14);
  return 1;
}

/* The activity's onCreate, which is all of it. */
static void run_benchmark(void)
{
  static char args[16384], said[16448];
  static char *words[WORDS_MAX] = {"(BenchmarkModelAndroid)"};
  static int pipes[2];
  int count = 1;
  pthread_t log_thread;
  phone_text(APP "/args", args, sizeof args);
  snprintf(said, sizeof said, "Running TensorFlow Lite benchmark with args: %s", args);
  if (fault("drop") == NULL || strstr(said, fault("drop")) == NULL)
    log_line(own_pid, own_pid, 'I', "tflite_BenchmarkModelActivity", said);
  for (char *word = strtok(args, " "); word != NULL && count < WORDS_MAX; word = strtok(NULL, " ")) words[count++] = word;
  if (pipe2(pipes, O_CLOEXEC) != 0) _exit(1);
  dup2(pipes[1], 1);
  dup2(pipes[1], 2);
  close(pipes[1]);
  pthread_create(&log_thread, NULL, logger, &pipes[0]);
  start_threads(threads_asked(words, count) - 1);
  if (fault("hang") != NULL) sleeper(NULL);
  benchmark_main(count, words);
  fflush(stdout);
  close(1);
  close(2);
  pthread_join(log_thread, NULL);
}

int app_main(void)
{
  char text[256];
  own_pid = getpid();
  phone_text(APP "/fault", fault_text, sizeof fault_text);
  prctl(PR_SET_NAME, &PACKAGE[sizeof PACKAGE - 16]);
  snprintf(text, sizeof text, "Start proc %d:" PACKAGE "/u0a123 for top-activity {" PACKAGE "/.BenchmarkModelActivity}",
           own_pid);
  log_line(SYSTEM_SERVER, 1533, 'I', "ActivityManager", text);
  if (fault("die_early") != NULL) raise(SIGABRT);
  start_threads(3); /* a runtime has threads of its own */
  run_benchmark();
  unlink(APP "/activity");
  sleeper(NULL);
  return 0;
}

static void write_pid(int pid)
{
  FILE *file = fopen(APP "/pid", "we");
  if (file == NULL) return;
  fprintf(file, "%d\n", pid);
  fclose(file);
}

static void tell_death(int pid, int status)
{
  char text[256];
  if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
    snprintf(text, sizeof text, "Fatal signal %d (%s), code 1 (SEGV_MAPERR), fault addr 0x0 in tid %d (lite.benchmark)",
             WTERMSIG(status), WTERMSIG(status) == SIGSEGV ? "SIGSEGV" : "SIGABRT", pid);
    log_line(pid, pid, 'F', "libc", text);
  }
  snprintf(text, sizeof text, "Process " PACKAGE " (pid %d) has died: fg  TOP", pid);
  log_line(SYSTEM_SERVER, 1533, 'I', "ActivityManager", text);
  unlink(APP "/activity");
  unlink(APP "/pid");
}

int zygote_main(void)
{
  int status;
  pid_t pid = fork();
  if (pid == 0) {
    execl("/system/bin/app_world", PACKAGE, (char *)NULL);
    _exit(127);
  }
  write_pid(pid);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  tell_death(pid, status);
  return 0;
}
