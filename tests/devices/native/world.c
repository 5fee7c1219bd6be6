/* The phone's own root: namespaces, then a tree of mounts that nothing of the host can be written through.
 *
 *   /            tmpfs, read-only at the end       /system   shared directory, read-only
 *   /usr /lib*   the host's, read-only (tools)     /sys      PHONE_DIR/sys
 *   /proc        a fresh one, the files of PHONE_DIR/proc bound over its own
 *   /data        tmpfs of a chosen size            /sdcard   /data/media/0, noexec
 *   /bin         /system/bin, as on phones         /dev/pts  terminals of its own
 *   /dev         a few nodes of the host's, and /dev/.phone = PHONE_DIR/state
 */
#include "phone_init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* <sys/mount.h> and <linux/mount.h> do not go together. */
extern int mount(const char *, const char *, const char *, unsigned long, const void *);
extern int umount2(const char *, int);
#define DETACH 2
#ifndef MS_REC
#define MS_REC 16384
#endif

static int data_noexec;

static void write_file(const char *path, const char *text)
{
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) die(path);
  close(fd);
}

void world_own_namespaces(const struct world *world)
{
  unsigned outer_uid = geteuid(), outer_gid = getegid();
  char map[64];
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC) != 0) die("unshare");
  write_file("/proc/self/setgroups", "deny");
  snprintf(map, sizeof map, "%u %u 1", world->uid, outer_uid);
  write_file("/proc/self/uid_map", map);
  snprintf(map, sizeof map, "%u %u 1", world->uid, outer_gid);
  write_file("/proc/self/gid_map", map);
}

static void make_dir(const char *path, mode_t mode)
{
  if (mkdir(path, mode) != 0 && errno != EEXIST) die(path);
  if (chmod(path, mode) != 0) die(path);
}

static void set_attributes(const char *path, uint64_t set, uint64_t clear)
{
  struct mount_attr attributes = {.attr_set = set, .attr_clr = clear};
  if (syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &attributes, sizeof attributes) != 0) die(path);
}

static void bind(const char *from, const char *to)
{
  if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) != 0) die(to);
}

static void bind_read_only(const char *from, const char *to)
{
  bind(from, to);
  set_attributes(to, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0);
}

/* What is a link on the host (/lib -> usr/lib) is the same link here; what is a directory is bound. */
static void borrow(const char *path)
{
  char own[64], target[256];
  struct stat status;
  snprintf(own, sizeof own, ".%s", path);
  if (lstat(path, &status) != 0) return;
  if (S_ISLNK(status.st_mode)) {
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) die(path);
    target[length] = '\0';
    if (symlink(target, own) != 0) die(own);
  } else {
    make_dir(own, 0755);
    bind_read_only(path, own);
  }
}

/* Where the host's /bin is /usr/bin, the phone's is /system/bin: there is the shell that adbd starts. */
static void make_bin(void)
{
  struct stat status;
  if (lstat("/bin", &status) == 0 && S_ISLNK(status.st_mode)) {
    if (symlink("/system/bin", "bin") != 0) die("bin");
  } else {
    borrow("/bin");
  }
}

static void make_dev(const char *state)
{
  static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
  make_dir("dev", 0755);
  if (mount("tmpfs", "dev", "tmpfs", MS_NOSUID, "mode=755,size=1m") != 0) die("dev");
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
    char from[32], to[32];
    snprintf(from, sizeof from, "/dev/%s", nodes[i]);
    snprintf(to, sizeof to, "dev/%s", nodes[i]);
    int fd = open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0) die(to);
    close(fd);
    bind(from, to);
  }
  if (symlink("/proc/self/fd", "dev/fd") != 0) die("dev/fd");
  make_dir("dev/pts", 0755);
  if (mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666") != 0) die("dev/pts");
  if (symlink("pts/ptmx", "dev/ptmx") != 0) die("dev/ptmx");
  make_dir("dev/.phone", 0755);
  bind(state, "dev/.phone");
}

static void make_proc(const char *phone_dir)
{
  char from[512], to[300];
  make_dir("proc", 0555);
  if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) die("proc");
  snprintf(from, sizeof from, "%s/proc", phone_dir);
  DIR *files = opendir(from);
  if (files == NULL) die(from);
  for (struct dirent *entry; (entry = readdir(files)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    snprintf(from, sizeof from, "%s/proc/%s", phone_dir, entry->d_name);
    snprintf(to, sizeof to, "proc/%s", entry->d_name);
    bind(from, to);
  }
  closedir(files);
}

static void make_data(uint64_t bytes)
{
  char option[64];
  make_dir("data", 0755);
  snprintf(option, sizeof option, "size=%llu,mode=755", (unsigned long long)bytes);
  if (mount("tmpfs", "data", "tmpfs", MS_NOSUID | MS_NODEV, option) != 0) die("data");
  make_dir("data/local", 0755);
  make_dir("data/local/tmp", 0771);
  make_dir("data/media", 0770);
  make_dir("data/media/0", 0770);
  make_dir("data/misc", 0751);
  make_dir("data/misc/perfetto-traces", 0773);
  make_dir("data/data", 0111);
  make_dir("data/system", 0111);
  make_dir("data/local", 0551); /* nothing can be made there */
  make_dir("data", 0111);       /* can be passed, and that is all */
  make_dir("storage", 0755);
  make_dir("storage/emulated", 0755);
  make_dir("storage/emulated/0", 0755);
  bind("data/media/0", "storage/emulated/0");
  set_attributes("storage/emulated/0", MOUNT_ATTR_NOEXEC, 0);
  if (symlink("/storage/emulated/0", "sdcard") != 0) die("sdcard");
}

void world_mount(const struct world *world)
{
  static const char *const borrowed[] = {"/usr", "/lib", "/lib64", "/lib32", "/sbin"};
  char from[512];
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) die("/");
  snprintf(from, sizeof from, "%s/root", world->phone_dir);
  if (mount("phone", from, "tmpfs", MS_NOSUID, "mode=755,size=1m") != 0 || chdir(from) != 0) die(from);
  for (size_t i = 0; i < sizeof borrowed / sizeof *borrowed; i++) borrow(borrowed[i]);
  make_bin();
  make_dir("system", 0755);
  bind_read_only(world->system_dir, "system");
  make_dir("etc", 0755);
  snprintf(from, sizeof from, "%s/etc", world->phone_dir);
  bind_read_only(from, "etc");
  make_dir("sys", 0755);
  snprintf(from, sizeof from, "%s/sys", world->phone_dir);
  bind(from, "sys");
  snprintf(from, sizeof from, "%s/state", world->phone_dir);
  make_dev(from);
  make_proc(world->phone_dir);
  make_data(world->data_bytes);
  make_dir("vendor", 0755);
  if (syscall(SYS_pivot_root, ".", ".") != 0) die("pivot_root");
  if (umount2(".", DETACH) != 0 || chdir("/") != 0) die("umount");
  /* Read-only, but for what is mounted below: so not recursively. */
  struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
  if (syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attributes, sizeof attributes) != 0) die("/");
}

int world_data_size(uint64_t bytes)
{
  char option[64];
  snprintf(option, sizeof option, "size=%llu", (unsigned long long)bytes);
  unsigned long flags = MS_REMOUNT | MS_NOSUID | MS_NODEV | (data_noexec ? MS_NOEXEC : 0);
  return mount(NULL, "/data", NULL, flags, option) == 0 ? 0 : errno;
}

int world_data_noexec(int noexec)
{
  struct mount_attr attributes = {0};
  data_noexec = noexec;
  if (noexec) attributes.attr_set = MOUNT_ATTR_NOEXEC;
  else attributes.attr_clr = MOUNT_ATTR_NOEXEC;
  return syscall(SYS_mount_setattr, AT_FDCWD, "/data", 0, &attributes, sizeof attributes) == 0 ? 0 : errno;
}
