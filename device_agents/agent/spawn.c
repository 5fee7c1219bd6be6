/* spawn.c - starts a program with pipes.
 *
 * The program is the leader of its own process group (or session), dies with the agent (PR_SET_PDEATHSIG), reads
 * /dev/null, and writes to two pipes. A third pipe closes at exec, or carries what went wrong before it.
 */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

const char *spawn_stage_name(int stage)
{
  return stage == SPAWN_AFFINITY ? "affinity" : stage == SPAWN_CHDIR ? "chdir" : "exec";
}

void close_fd(int *fd)
{
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

void enter_child(pid_t parent, bool own_session)
{
  sigset_t none;
  sigemptyset(&none);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_SYSTEM); /* the agent ended before the line above */
  if (own_session) setsid();
  else setpgid(0, 0);
}

static void fault(int fd, enum spawn_stage stage)
{
  struct spawn_fault what = {.stage = (int)stage, .error = errno};
  if (write(fd, &what, sizeof what) != sizeof what) _exit(EXIT_SYSTEM);
}

static _Noreturn void become(const struct program *program, pid_t parent, int status, int out, int err)
{
  int null = open("/dev/null", O_RDONLY);
  enter_child(parent, program->own_session);
  dup2(null, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  if (null > STDERR_FILENO) close(null);
  if (program->affinity && sched_setaffinity(0, sizeof *program->affinity, program->affinity) != 0)
    fault(status, SPAWN_AFFINITY);
  for (int i = 0; i < program->env_count; i++) putenv((char *)(uintptr_t)program->env[i]);
  if (program->chdir && chdir(program->chdir) != 0) fault(status, SPAWN_CHDIR), _exit(127);
  execvp(program->argv[0], program->argv);
  fault(status, SPAWN_EXEC);
  _exit(127);
}

void spawn(const struct program *program, struct process *process)
{
  int status[2], out[2], err[2];
  pid_t parent = getpid();
  if (pipe2(status, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
    die(EXIT_SYSTEM, "no pipe: %s", errno_name(errno));
  process->pid = fork();
  if (process->pid < 0) die(EXIT_SYSTEM, "no process: %s", errno_name(errno));
  if (process->pid == 0) become(program, parent, status[1], out[1], err[1]);
  if (!program->own_session) setpgid(process->pid, process->pid); /* whichever of the two comes first */
  close(status[1]), close(out[1]), close(err[1]);
  process->status_fd = status[0];
  process->out_fd = out[0];
  process->err_fd = err[0];
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  fcntl(err[0], F_SETFL, O_NONBLOCK);
}
