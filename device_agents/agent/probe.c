/* probe.c - says what this device is, in one JSON object.
 *
 * What it does not show is null, with the reason under the same name in `absent`. The host's name is left out: it tells
 * nothing about speed, and results travel.
 */
#include "agent.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static struct text body, absent;

#define CPU_DIR "/sys/devices/system/cpu"

static void note_absent(const char *key, int error)
{
  if (key) json_string(&absent, key, error == ENODATA ? "none" : errno_name(error));
}

/* A text or null; `absent_key` is NULL where the absence has been said already. */
static void put_text(const char *key, const char *absent_key, int error, const char *value)
{
  json_string(&body, key, error ? NULL : value);
  if (error) note_absent(absent_key, error);
}

static void put_fact(const char *key, const char *path)
{
  char value[VALUE_SIZE];
  int error = fact_read(value, sizeof value, "%s", path);
  put_text(key, key, error, value);
}

static void put_words(const char *key, char *words)
{
  json_open(&body, key, '[');
  for (char *word = strtok(words, " \n"); word; word = strtok(NULL, " \n")) json_string(&body, NULL, word);
  json_close(&body, ']');
}

/* The value of "key : value" in a line of /proc/cpuinfo, or NULL. */
static char *cpuinfo_value(char *line, const char *key)
{
  size_t length = strlen(key);
  if (strncmp(line, key, length) != 0) return NULL;
  char *at = line + length;
  while (*at == ' ' || *at == '\t') at++;
  if (*at != ':') return NULL;
  at++;
  while (*at == ' ') at++;
  return at;
}

static bool cpuinfo_open(struct lines *lines)
{
  char path[PATH_MAX];
  fact_path(path, sizeof path, "/proc/cpuinfo");
  return lines_open(lines, path) == 0;
}

/* The first value of a key anywhere in /proc/cpuinfo. */
static bool cpuinfo_first(const char *key, char *value, size_t size)
{
  static struct lines lines;
  char *found = NULL;
  if (!cpuinfo_open(&lines)) return false;
  for (char *line; !found && (line = lines_next(&lines));) found = cpuinfo_value(line, key);
  bool fits = found && strlen(found) < size;
  if (fits) memcpy(value, found, strlen(found) + 1);
  lines_close(&lines);
  return fits && value[0];
}

/* What /proc/cpuinfo says in one processor's block. */
static void put_cpu_names(int cpu)
{
  static const struct {
    const char *key, *name;
  } wanted[] = {{"model name", "model"},     {"CPU implementer", "implementer"}, {"CPU part", "part"},
                {"CPU variant", "variant"},  {"CPU revision", "revision"}};
  static struct lines lines;
  int64_t number = -1;
  if (!cpuinfo_open(&lines)) return;
  for (char *line; (line = lines_next(&lines));) {
    char *value = cpuinfo_value(line, "processor");
    if (value) text_to_number(value, &number);
    for (size_t i = 0; number == cpu && i < sizeof wanted / sizeof *wanted; i++)
      if ((value = cpuinfo_value(line, wanted[i].key))) json_string(&body, wanted[i].name, value);
  }
  lines_close(&lines);
}

static void put_cpu(int cpu)
{
  static const struct {
    const char *key, *file;
  } numbers[] = {
      {"min_khz", "cpufreq/cpuinfo_min_freq"},      {"max_khz", "cpufreq/cpuinfo_max_freq"},
      {"limit_min_khz", "cpufreq/scaling_min_freq"}, {"limit_max_khz", "cpufreq/scaling_max_freq"},
      {"capacity", "cpu_capacity"},                 {"core_id", "topology/core_id"},
      {"package_id", "topology/physical_package_id"}, {"cluster_id", "topology/cluster_id"},
  };
  static bool noted[16];
  char value[VALUE_SIZE];
  json_open(&body, NULL, '{');
  json_int(&body, "id", cpu);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    int64_t number = 0;
    int error = fact_number(&number, CPU_DIR "/cpu%d/%s", cpu, numbers[i].file);
    /* the kernel writes -1 (for a cluster also 65535) where the firmware gave no number */
    if (!error && (number < 0 || (number == 65535 && strcmp(numbers[i].key, "cluster_id") == 0))) error = ENODATA;
    if (error) json_null(&body, numbers[i].key);
    else json_int(&body, numbers[i].key, number);
    if (error && !noted[i]) note_absent(numbers[i].key, error), noted[i] = true;
  }
  int error = fact_read(value, sizeof value, CPU_DIR "/cpu%d/cpufreq/scaling_governor", cpu);
  put_text("governor", noted[15] ? NULL : "governor", error, value);
  noted[15] = noted[15] || error;
  put_cpu_names(cpu);
  json_close(&body, '}');
}

static void put_cpus(void)
{
  static int cpus[CPUS_MAX];
  int count = cpu_list(cpus, CPUS_MAX, CPU_DIR "/online");
  if (count < 0) {
    note_absent("cpus_online", -count);
    count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < count && i < CPUS_MAX; i++) cpus[i] = i;
  }
  json_open(&body, "cpus", '[');
  for (int i = 0; i < count && i < CPUS_MAX; i++) put_cpu(cpus[i]);
  json_close(&body, ']');
  char value[VALUE_SIZE];
  if (fact_read(value, sizeof value, CPU_DIR "/online") == 0) json_string(&body, "cpus_online", value);
  else json_null(&body, "cpus_online");
  put_fact("cpus_present", CPU_DIR "/present");
  put_fact("cpus_isolated", CPU_DIR "/isolated");
}

/* Governors and boost of the whole device. */
static void put_frequency_control(void)
{
  char value[VALUE_SIZE];
  int64_t number;
  int error = fact_read(value, sizeof value, CPU_DIR "/cpu0/cpufreq/scaling_available_governors");
  if (error) put_text("governors", "governors", error, NULL);
  else put_words("governors", value);
  error = fact_number(&number, CPU_DIR "/cpufreq/boost");
  if (!error) {
    json_bool(&body, "boost", number != 0);
  } else if (fact_number(&number, CPU_DIR "/intel_pstate/no_turbo") == 0) {
    json_bool(&body, "boost", number == 0);
  } else {
    put_text("boost", "boost", error, NULL);
  }
}

static void put_device_tree(char *model, size_t size)
{
  static const char *const root = "/sys/firmware/devicetree/base";
  char value[VALUE_SIZE];
  int error = fact_read(model, size, "%s/model", root);
  put_text("device_tree_model", "device_tree_model", error, model);
  memset(value, 0, sizeof value);
  error = fact_read(value, sizeof value, "%s/compatible", root);
  if (error) {
    put_text("device_tree_compatible", "device_tree_compatible", error, NULL);
    return;
  }
  json_open(&body, "device_tree_compatible", '[');
  for (const char *at = value; at < value + sizeof value && *at; at += strlen(at) + 1) json_string(&body, NULL, at);
  json_close(&body, ']');
}

static void put_model(void)
{
  char tree[VALUE_SIZE], value[VALUE_SIZE];
  put_device_tree(tree, sizeof tree);
  if (cpuinfo_first("model name", value, sizeof value) || cpuinfo_first("Hardware", value, sizeof value))
    json_string(&body, "cpu_model", value);
  else put_text("cpu_model", "cpu_model", tree[0] ? 0 : ENODATA, tree);
}

static void put_memory(void)
{
  static struct lines lines;
  char path[PATH_MAX];
  int64_t total_kb = -1, swap_kb = -1;
  fact_path(path, sizeof path, "/proc/meminfo");
  int error = lines_open(&lines, path);
  if (!error) {
    for (char *line; (line = lines_next(&lines));) {
      if (strncmp(line, "MemTotal:", 9) == 0) total_kb = atoll(line + 9);
      if (strncmp(line, "SwapTotal:", 10) == 0) swap_kb = atoll(line + 10);
    }
    lines_close(&lines);
  }
  if (total_kb >= 0) json_int(&body, "mem_total_kb", total_kb);
  else put_text("mem_total_kb", "mem_total_kb", error ? error : ENODATA, NULL);
  if (swap_kb >= 0) json_int(&body, "swap_total_kb", swap_kb);
  else put_text("swap_total_kb", "swap_total_kb", error ? error : ENODATA, NULL);
}

static void put_os_release(void)
{
  static struct lines lines;
  char path[PATH_MAX];
  bool found = false;
  fact_path(path, sizeof path, "/etc/os-release");
  int error = lines_open(&lines, path);
  if (!error) {
    for (char *line; !found && (line = lines_next(&lines));) {
      if (strncmp(line, "PRETTY_NAME=", 12) != 0) continue;
      char *value = line + 12, quote = *value;
      size_t length = strlen(value);
      bool quoted = (quote == '"' || quote == '\'') && length > 1 && value[length - 1] == quote;
      json_bytes(&body, "os_release", quoted ? value + 1 : value, quoted ? length - 2 : length);
      found = true;
    }
    lines_close(&lines);
  }
  if (!found) put_text("os_release", "os_release", error ? error : ENODATA, NULL);
}

static void put_thermal(void)
{
  static int zones[256];
  char name[VALUE_SIZE];
  int count = thermal_zones(zones, 256);
  if (count <= 0) note_absent("thermal", count < 0 ? -count : ENODATA);
  json_open(&body, "thermal", '[');
  for (int i = 0; i < count; i++) {
    int64_t temperature_mc;
    json_open(&body, NULL, '{');
    json_int(&body, "zone", zones[i]);
    int error = fact_read(name, sizeof name, "/sys/class/thermal/thermal_zone%d/type", zones[i]);
    json_string(&body, "name", error ? NULL : name);
    error = fact_number(&temperature_mc, "/sys/class/thermal/thermal_zone%d/temp", zones[i]);
    if (error) json_null(&body, "temp_mc"), json_string(&body, "error", errno_name(error));
    else json_int(&body, "temp_mc", temperature_mc);
    json_close(&body, '}');
  }
  json_close(&body, ']');
}

static void put_power(void)
{
  static struct dir dir;
  char path[PATH_MAX], type[64];
  fact_path(path, sizeof path, "/sys/class/power_supply");
  int error = dir_open(&dir, path), count = 0;
  if (error) note_absent("power", error);
  json_open(&body, "power", '[');
  for (const char *name; !error && (name = dir_next(&dir)); count++) {
    json_open(&body, NULL, '{');
    json_string(&body, "name", name);
    int unread = fact_read(type, sizeof type, "/sys/class/power_supply/%s/type", name);
    json_string(&body, "type", unread ? NULL : type);
    unread = power_supply_write(&body, name);
    if (unread) json_string(&body, "error", errno_name(unread));
    json_close(&body, '}');
  }
  json_close(&body, ']');
  if (!error) dir_close(&dir);
  if (!error && !count) note_absent("power", ENODATA);
}

static bool has_flag(const char *flags, const char *flag)
{
  size_t length = strlen(flag);
  for (const char *at = flags; (at = strstr(at, flag)); at += length)
    if ((at == flags || at[-1] == ' ') && (at[length] == ' ' || at[length] == 0)) return true;
  return false;
}

static void put_hypervisor(void)
{
  static char flags[16 * 1024];
  json_open(&body, "hypervisor", '{');
  if (cpuinfo_first("flags", flags, sizeof flags)) json_bool(&body, "flag", has_flag(flags, "hypervisor"));
  else json_null(&body, "flag");
  char value[VALUE_SIZE];
  json_string(&body, "type", fact_read(value, sizeof value, "/sys/hypervisor/type") == 0 ? value : NULL);
  int error = fact_read(value, sizeof value, "/sys/class/dmi/id/sys_vendor");
  put_text("vendor", "hypervisor.vendor", error, value);
  error = fact_read(value, sizeof value, "/sys/class/dmi/id/product_name");
  put_text("product", "hypervisor.product", error, value);
  json_close(&body, '}');
}

/* The CPU quota of our own cgroup (version 2): "max 100000" is no quota. */
static void put_cgroup(void)
{
  char cgroups[VALUE_SIZE], quota[128];
  long long quota_us, period_us;
  int error = file_read("/proc/self/cgroup", cgroups, sizeof cgroups);
  put_text("cgroup", "cgroup", error, cgroups);
  char *own = error ? NULL : strstr(cgroups, "0::");
  if (own) own[strcspn(own, "\n")] = 0;
  if (!own) error = error ? error : ENODATA;
  else error = fact_read(quota, sizeof quota, "/sys/fs/cgroup%s/cpu.max", strcmp(own + 3, "/") == 0 ? "" : own + 3);
  if (error) {
    put_text("cpu_quota", "cpu_quota", error, NULL);
  } else if (sscanf(quota, "%lld %lld", &quota_us, &period_us) == 2) {
    json_open(&body, "cpu_quota", '{');
    json_int(&body, "quota_us", quota_us);
    json_int(&body, "period_us", period_us);
    json_close(&body, '}');
  } else {
    json_string(&body, "cpu_quota", "max");
  }
}

static void put_autogroup(void)
{
  int64_t number;
  int error = fact_number(&number, "/proc/sys/kernel/sched_autogroup_enabled");
  if (error) put_text("autogroup", "autogroup", error, NULL);
  else json_bool(&body, "autogroup", number != 0);
}

int probe(void)
{
  struct utsname system;
  uname(&system);
  text_clear(&body);
  text_clear(&absent);
  json_open(&body, NULL, '{');
  text_add(&absent, "{");
  json_int(&body, "protocol", AGENT_PROTOCOL);
  json_string(&body, "agent", AGENT_VERSION);
  json_string(&body, "machine", system.machine);
  json_string(&body, "kernel_release", system.release);
  json_string(&body, "kernel_version", system.version);
  json_int(&body, "uid", getuid());
  json_int(&body, "page_size", sysconf(_SC_PAGESIZE));
  json_int(&body, "tick_hz", sysconf(_SC_CLK_TCK));
  put_os_release();
  put_model();
  put_cpus();
  put_frequency_control();
  put_memory();
  put_thermal();
  put_power();
  put_hypervisor();
  put_autogroup();
  put_cgroup();
  json_close(&absent, '}');
  text_add(&body, ",\"absent\":");
  text_bytes(&body, absent.at, absent.length);
  text_add(&body, "}\n");
  bool wrote = fwrite(body.at, 1, body.length, stdout) == body.length && fflush(stdout) == 0;
  return wrote ? 0 : EXIT_OUTPUT;
}
