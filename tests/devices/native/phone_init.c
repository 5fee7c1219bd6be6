/* Process 1 of a virtual phone: makes its world, then starts commands that the daemon on the host asks for.
 *
 *   phone_init PHONE_DIR SYSTEM_DIR UID CPUS DATA_BYTES CONTROL      CONTROL: a SOCK_SEQPACKET descriptor
 *
 * Needs no rights: the namespaces are a user's own, and that user is UID on the phone. What the daemon asks, one
 * packet each, little-endian:
 *   S id flags argc argv… env…    start a command in a session of its own, with the three descriptors that come along
 *                                 (flags 1: the first is its terminal)
 *   K id signal                   signal the command's process group
 *   P pid signal                  signal one process of the phone
 *   Q bytes                       the size of /data
 *   N noexec                      whether programs in /data can be run
 * SIGUSR1 from the phone itself starts /system/bin/zygote, whose app is then no descendant of any command.
 * What it says: H (with a descriptor of the root), X id status (as wait gives it), A error (to Q and N).
 * When the socket closes, it ends, and the kernel ends everything on the phone with it.
 */
#include "phone_init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { PACKET_MAX = 400 * 1024, WORDS_MAX = 1024, COMMANDS_MAX = 256, FLAG_TTY = 1 };

static struct command {
  uint32_t id;
  pid_t pid;
  int alive; /* a command that has ended keeps its place for a while: its group may live on */
} commands[COMMANDS_MAX];

static char packet[PACKET_MAX + 1];
static int control_socket;

noreturn void die(const char *what)
{
  fprintf(stderr, "phone_init: %s: %s\n", what, strerror(errno));
  _exit(1);
}

static void say(char what, uint32_t id, int32_t status)
{
  char text[9] = {what};
  memcpy(text + 1, &id, sizeof id);
  memcpy(text + 5, &status, sizeof status);
  if (send(control_socket, text, sizeof text, MSG_NOSIGNAL) < 0) _exit(0);
}

static void say_hello(void)
{
  char byte = 'H', control[CMSG_SPACE(sizeof(int))] = {0};
  int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct iovec body = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof root);
  memcpy(CMSG_DATA(rights), &root, sizeof root);
  if (sendmsg(control_socket, &message, MSG_NOSIGNAL) < 0) die("hello");
  close(root);
}

static noreturn void become(char **words, char **environment, const int *streams, uint32_t flags)
{
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid();
  if (flags & FLAG_TTY) ioctl(streams[0], TIOCSCTTY, 0);
  for (int i = 0; i < 3; i++)
    if (dup2(streams[i], i) < 0) _exit(126);
  umask(0);
  execve(words[0], words, environment);
  dprintf(2, "%s: %s\n", words[0], strerror(errno));
  _exit(errno == ENOENT ? 127 : 126);
}

static void start(uint32_t id, const char *rest, const char *end, const int *streams)
{
  static char *words[WORDS_MAX];
  uint32_t flags, argc;
  if (end - rest < 8) return;
  memcpy(&flags, rest, 4);
  memcpy(&argc, rest + 4, 4);
  size_t count = 0, argv_end = argc;
  for (const char *word = rest + 8; word < end && count < WORDS_MAX - 2; word += strlen(word) + 1) {
    if (count == argv_end) words[count++] = NULL, argv_end = SIZE_MAX;
    words[count++] = (char *)(uintptr_t)word;
  }
  words[count] = NULL;
  static size_t next;
  struct command *place = NULL;
  for (size_t i = 0; i < COMMANDS_MAX && place == NULL; i++, next++)
    if (!commands[next % COMMANDS_MAX].alive) place = &commands[next % COMMANDS_MAX];
  pid_t pid = place == NULL ? -1 : fork();
  if (pid == 0) become(words, words + argc + 1, streams, flags);
  if (pid < 0) say('X', id, 126 << 8);
  else *place = (struct command){.id = id, .pid = pid, .alive = 1};
}

static int take_descriptors(struct msghdr *message, int *streams)
{
  int count = 0;
  struct cmsghdr *rights = CMSG_FIRSTHDR(message);
  if (rights != NULL && rights->cmsg_type == SCM_RIGHTS) {
    count = (int)((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(streams, CMSG_DATA(rights), (size_t)count * sizeof(int));
  }
  return count;
}

static void obey(void)
{
  char control[CMSG_SPACE(3 * sizeof(int))];
  int streams[3];
  struct iovec body = {.iov_base = packet, .iov_len = PACKET_MAX};
  struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  ssize_t length = recvmsg(control_socket, &message, MSG_CMSG_CLOEXEC);
  if (length < 5) _exit(0); /* the daemon is gone */
  int count = take_descriptors(&message, streams);
  uint32_t id;
  int32_t value = 0;
  uint64_t bytes = 0;
  memcpy(&id, packet + 1, sizeof id);
  if (length >= 9) memcpy(&value, packet + 5, sizeof value);
  if (length >= 13) memcpy(&bytes, packet + 5, sizeof bytes);
  packet[length] = '\0';
  if (packet[0] == 'S' && count == 3) start(id, packet + 5, packet + length, streams);
  else if (packet[0] == 'P') kill((pid_t)id, value);
  else if (packet[0] == 'Q') say('A', id, world_data_size(bytes));
  else if (packet[0] == 'N') say('A', id, world_data_noexec(value));
  else if (packet[0] == 'K')
    for (size_t i = 0; i < COMMANDS_MAX; i++)
      if (commands[i].pid != 0 && commands[i].id == id) kill(-commands[i].pid, value);
  for (int i = 0; i < count; i++) close(streams[i]);
}

static void start_zygote(void)
{
  static char name[] = "/system/bin/zygote", path[] = "PATH=/system/bin";
  static char *words[] = {name, NULL}, *environment[] = {path, NULL};
  int streams[3];
  if (fork() != 0) return;
  for (int i = 0; i < 3; i++) streams[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
  become(words, environment, streams, 0);
}

static void reap(void)
{
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    for (size_t i = 0; i < COMMANDS_MAX; i++)
      if (commands[i].alive && commands[i].pid == pid) {
        say('X', commands[i].id, status);
        commands[i].alive = 0;
      }
}

static noreturn void serve(int cpus)
{
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigaddset(&child, SIGUSR1);
  sigprocmask(SIG_BLOCK, &child, NULL);
  int reaper = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  int listener = affinity_filter();
  struct pollfd watched[] = {{.fd = control_socket, .events = POLLIN},
                             {.fd = reaper, .events = POLLIN},
                             {.fd = listener, .events = POLLIN}};
  say_hello();
  for (;;) {
    if (poll(watched, 3, -1) < 0) continue;
    struct signalfd_siginfo signal;
    if (watched[2].revents & POLLIN) affinity_answer(listener, cpus);
    while (watched[1].revents && read(reaper, &signal, sizeof signal) > 0) {
      if (signal.ssi_signo == SIGUSR1) start_zygote();
      else reap();
    }
    if (watched[0].revents) obey();
  }
}

int main(int argc, char **argv)
{
  if (argc != 7) {
    fputs("usage: phone_init PHONE_DIR SYSTEM_DIR UID CPUS DATA_BYTES CONTROL\n", stderr);
    return 64;
  }
  struct world world = {.phone_dir = argv[1],
                        .system_dir = argv[2],
                        .uid = (unsigned)strtoul(argv[3], NULL, 10),
                        .data_bytes = strtoull(argv[5], NULL, 10)};
  control_socket = atoi(argv[6]);
  umask(0);
  world_own_namespaces(&world);
  pid_t init = fork();
  if (init < 0) die("fork");
  if (init == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fcntl(control_socket, F_SETFD, FD_CLOEXEC);
    world_mount(&world);
    serve(atoi(argv[4]));
  }
  close(control_socket);
  int status;
  while (waitpid(init, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
