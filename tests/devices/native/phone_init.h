/* What the parts of phone_init share. */
#ifndef PHONE_INIT_H
#define PHONE_INIT_H

#include <stdint.h>
#include <stdnoreturn.h>

struct seccomp_notif;

/* phone_init.c */
noreturn void die(const char *what);

/* world.c: the phone's own root */
struct world {
  const char *phone_dir; /* sys, state, etc, proc of this phone, on the host */
  const char *system_dir; /* /system, shared by all phones */
  unsigned uid;           /* of everybody on the phone */
  uint64_t data_bytes;    /* size of /data */
};
void world_own_namespaces(const struct world *world);
void world_mount(const struct world *world);
int world_data_size(uint64_t bytes);
int world_data_noexec(int noexec);

/* affinity.c: CPUs that the host does not have */
int affinity_filter(void);
void affinity_answer(int listener, int cpus);

#endif
