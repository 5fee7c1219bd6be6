/* devbench-agent - the parent of everything devbench runs on a device.
 *
 *   devbench-agent run [options] -- argv...       one trial: load, telemetry, the measured child, a closing record
 *   devbench-agent load SPEC --seconds S          the load alone, with what it achieved
 *   devbench-agent sample [--seconds S]           telemetry alone
 *   devbench-agent probe                          what this device is, one JSON object
 *   devbench-agent hash FILE...                   SHA-256 of files, one JSON object each
 *   devbench-agent canary [--affinity MASK]       how fast a fixed piece of work is now, one JSON object
 *   devbench-agent version | help
 *
 * Standard output is protocol (PROTOCOL.md), standard error is for people, standard input is the host's hand: when it
 * closes, everything the agent started is dead within one second. Exit: 0 done, 1 a file could not be hashed, 64 usage,
 * 71 the system refused, 74 the host did not take the closing record.
 */
#include "agent.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Children die with us (PR_SET_PDEATHSIG); settings would not restore themselves. */
_Noreturn void die(int status, const char *format, ...)
{
  static bool dying;
  va_list arguments;
  fputs("devbench-agent: ", stderr);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputs(status == EXIT_USAGE ? " (devbench-agent help lists the options)\n" : "\n", stderr);
  if (!dying) dying = true, holds_restore();
  _exit(status);
}

/* A pipe must never get number 0, 1 or 2. */
static void open_missing_streams(void)
{
  int fd;
  do fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) close(fd);
}

static int measure(enum command command, char **words)
{
  static struct options options;
  options_parse(&options, command, words);
  return trial_run(&options);
}

static int say(const char *text)
{
  return puts(text) < 0 || fflush(stdout) != 0 ? EXIT_OUTPUT : 0;
}

int main(int argc, char **argv)
{
  open_missing_streams();
  if (argc < 2) die(EXIT_USAGE, "expected a command: run, load, sample, probe, hash, canary or version");
  const char *command = argv[1];
  if (strcmp(command, "run") == 0) return measure(COMMAND_RUN, argv + 2);
  if (strcmp(command, "load") == 0) return measure(COMMAND_LOAD, argv + 2);
  if (strcmp(command, "sample") == 0) return measure(COMMAND_SAMPLE, argv + 2);
  if (strcmp(command, "hash") == 0) return hash_files(argv + 2);
  if (strcmp(command, "canary") == 0) return canary(argv + 2);
  if (argc > 2) die(EXIT_USAGE, "%s: unexpected word %s", command, argv[2]);
  if (strcmp(command, "probe") == 0) return probe();
  if (strcmp(command, "version") == 0) return say("devbench-agent " AGENT_VERSION);
  if (strcmp(command, "help") == 0 || strcmp(command, "--help") == 0) return options_help(), 0;
  die(EXIT_USAGE, "unknown command %s: expected run, load, sample, probe, hash, canary or version", command);
}
