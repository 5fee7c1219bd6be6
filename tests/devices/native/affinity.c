/* CPUs that the host does not have.
 *
 * A phone with eight cores runs on a host with two, where the mask f0 is an error. A seccomp filter hands
 * sched_setaffinity and sched_getaffinity of all programs on the phone to the phone's init, which keeps a mask per
 * thread and answers as a kernel with the phone's CPUs would. Where a program really runs is not affected.
 * A thread without a mask of its own has that of its process, and a process that of its parent.
 */
#include "phone_init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MASKS_MAX 512

static struct mask {
  int tid;
  unsigned long long started; /* a thread number that came back is another thread */
  uint64_t cpus;
} masks[MASKS_MAX];
static unsigned next_mask;

struct thread {
  int group, parent;
  unsigned long long started;
};

int affinity_filter(void)
{
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getaffinity, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
  };
  struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) die("no_new_privs");
  long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  if (listener < 0) die("seccomp");
  fcntl((int)listener, F_SETFD, FD_CLOEXEC);
  return (int)listener;
}

static int look_up(int tid, struct thread *thread)
{
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/status", tid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return -1;
  while (fgets(text, sizeof text, file) != NULL) {
    sscanf(text, "Tgid: %d", &thread->group);
    sscanf(text, "PPid: %d", &thread->parent);
  }
  fclose(file);
  snprintf(path, sizeof path, "/proc/%d/stat", tid);
  file = fopen(path, "re");
  if (file == NULL) return -1;
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = '\0';
  char *after_name = strrchr(text, ')');
  if (after_name == NULL) return -1;
  return sscanf(after_name + 2, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                &thread->started) == 1 ? 0 : -1;
}

static struct mask *own_mask(int tid, unsigned long long started)
{
  for (size_t i = 0; i < MASKS_MAX; i++)
    if (masks[i].tid == tid && masks[i].started == started) return &masks[i];
  return NULL;
}

static int effective_mask(int tid, uint64_t all, uint64_t *cpus)
{
  struct thread thread = {0};
  *cpus = all;
  if (look_up(tid, &thread) != 0) return -ESRCH;
  for (int depth = 0; depth < 64; depth++) {
    const struct mask *mask = own_mask(tid, thread.started);
    if (mask != NULL) {
      *cpus = mask->cpus;
      return 0;
    }
    int next = tid != thread.group ? thread.group : thread.parent;
    if (next <= 1 || look_up(next, &thread) != 0) return 0;
    tid = next;
  }
  return 0;
}

static int set_mask(int tid, uint64_t cpus)
{
  struct thread thread = {0};
  if (look_up(tid, &thread) != 0) return -ESRCH;
  struct mask *mask = own_mask(tid, thread.started);
  if (mask == NULL) mask = &masks[next_mask++ % MASKS_MAX];
  *mask = (struct mask){.tid = tid, .started = thread.started, .cpus = cpus};
  return 0;
}

static int64_t answer(const struct seccomp_notif *asked, uint64_t all)
{
  int caller = (int)asked->pid;
  int tid = (int)asked->data.args[0] == 0 ? caller : (int)asked->data.args[0];
  size_t length = (size_t)asked->data.args[1];
  uint64_t cpus = 0;
  struct iovec here = {.iov_base = &cpus, .iov_len = sizeof cpus};
  struct iovec there = {.iov_base = (void *)(uintptr_t)asked->data.args[2], .iov_len = sizeof cpus};
  if (asked->data.nr == SYS_sched_getaffinity) {
    if (length < sizeof cpus || length % sizeof cpus != 0) return -EINVAL;
    int error = effective_mask(tid, all, &cpus);
    if (error != 0) return error;
    return process_vm_writev(caller, &here, 1, &there, 1, 0) == sizeof cpus ? (int64_t)sizeof cpus : -EFAULT;
  }
  if (length < sizeof cpus) here.iov_len = there.iov_len = length;
  if (process_vm_readv(caller, &here, 1, &there, 1, 0) != (ssize_t)here.iov_len) return -EFAULT;
  return (cpus & all) == 0 ? -EINVAL : set_mask(tid, cpus & all);
}

void affinity_answer(int listener, int cpus)
{
  struct seccomp_notif asked;
  memset(&asked, 0, sizeof asked);
  if (ioctl(listener, (int)SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return;
  uint64_t all = cpus >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << cpus) - 1;
  int64_t result = answer(&asked, all);
  struct seccomp_notif_resp response = {.id = asked.id};
  if (result < 0) response.error = (int)result;
  else response.val = result;
  ioctl(listener, (int)SECCOMP_IOCTL_NOTIF_SEND, &response);
}
