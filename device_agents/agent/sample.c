/* sample.c - telemetry: what the device shows of itself while the child runs.
 *
 * At the start it looks at what there is and says what is absent and why; a sample then has one place per CPU, zone and
 * battery. A value that cannot be read is null or left out, never zero.
 */
#include "agent.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ZONES_MAX = 256, BATTERIES_MAX = 8 };

static struct {
  int cpu[CPUS_MAX], cpus;
  int zone[ZONES_MAX], zones;
  char battery[BATTERIES_MAX][256];
  int batteries;
  int freq_error, zone_error, battery_error, stat_error, memory_error, psi_error; /* ENODATA: there, but empty */
} seen;

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int thermal_zones(int *zones, int max)
{
  static struct dir dir;
  char path[PATH_MAX];
  int count = 0;
  fact_path(path, sizeof path, "/sys/class/thermal");
  int error = dir_open(&dir, path);
  if (error) return -error;
  for (const char *name; count < max && (name = dir_next(&dir));)
    if (strncmp(name, "thermal_zone", 12) == 0) zones[count++] = atoi(name + 12);
  dir_close(&dir);
  qsort(zones, (size_t)count, sizeof *zones, ascending);
  return count;
}

static void find_batteries(void)
{
  static struct dir dir;
  char path[PATH_MAX], type[64];
  fact_path(path, sizeof path, "/sys/class/power_supply");
  seen.battery_error = dir_open(&dir, path);
  if (seen.battery_error) return;
  for (const char *name; seen.batteries < BATTERIES_MAX && (name = dir_next(&dir));) {
    int error = fact_read(type, sizeof type, "/sys/class/power_supply/%s/type", name);
    if (error == EACCES) seen.battery_error = EACCES;
    if (error || strcmp(type, "Battery") != 0) continue;
    snprintf(seen.battery[seen.batteries++], sizeof seen.battery[0], "%s", name);
  }
  dir_close(&dir);
  if (!seen.batteries && !seen.battery_error) seen.battery_error = ENODATA;
}

static int read_meminfo(int64_t *available_kb)
{
  static struct lines lines;
  char path[PATH_MAX];
  fact_path(path, sizeof path, "/proc/meminfo");
  int error = lines_open(&lines, path);
  if (error) return error;
  error = ENODATA;
  for (char *line; error && (line = lines_next(&lines));) {
    if (strncmp(line, "MemAvailable:", 13) != 0) continue;
    *available_kb = atoll(line + 13);
    error = 0;
  }
  lines_close(&lines);
  return error;
}

static int read_psi(int64_t *total_us)
{
  char value[512];
  int error = fact_read(value, sizeof value, "/proc/pressure/cpu");
  if (error) return error;
  const char *total = strstr(value, "total=");
  if (!total) return ENODATA;
  *total_us = atoll(total + 6);
  return 0;
}

void sample_open(void)
{
  int64_t number;
  char path[PATH_MAX];
  seen.cpus = cpu_list(seen.cpu, CPUS_MAX, "/sys/devices/system/cpu/present");
  if (seen.cpus <= 0) {
    seen.cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
    for (int i = 0; i < seen.cpus && i < CPUS_MAX; i++) seen.cpu[i] = i;
  }
  if (seen.cpus > CPUS_MAX) die(EXIT_SYSTEM, "more than %d CPUs", CPUS_MAX);
  seen.freq_error = ENOENT;
  for (int i = 0; i < seen.cpus && seen.freq_error; i++)
    seen.freq_error = fact_number(&number, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", seen.cpu[i]);
  seen.zones = thermal_zones(seen.zone, ZONES_MAX);
  seen.zone_error = seen.zones < 0 ? -seen.zones : seen.zones == 0 ? ENODATA : 0;
  if (seen.zones < 0) seen.zones = 0;
  find_batteries();
  seen.memory_error = read_meminfo(&number);
  seen.psi_error = read_psi(&number);
  fact_path(path, sizeof path, "/proc/stat");
  seen.stat_error = access(path, R_OK) == 0 ? 0 : errno;
}

static void write_absent(struct text *t, const char *key, int error)
{
  if (error) json_string(t, key, error == ENODATA ? "none" : errno_name(error));
}

void sample_write_header(struct text *t)
{
  char value[VALUE_SIZE];
  json_open(t, "cpus", '[');
  for (int i = 0; i < seen.cpus; i++) json_int(t, NULL, seen.cpu[i]);
  json_close(t, ']');
  json_open(t, "zones", '[');
  for (int i = 0; i < seen.zones; i++) {
    int error = fact_read(value, sizeof value, "/sys/class/thermal/thermal_zone%d/type", seen.zone[i]);
    if (error) snprintf(value, sizeof value, "thermal_zone%d", seen.zone[i]);
    json_string(t, NULL, value);
  }
  json_close(t, ']');
  json_open(t, "batteries", '[');
  for (int i = 0; i < seen.batteries; i++) json_string(t, NULL, seen.battery[i]);
  json_close(t, ']');
  json_int(t, "tick_hz", sysconf(_SC_CLK_TCK));
  json_open(t, "absent", '{');
  write_absent(t, "freq_khz", seen.freq_error);
  write_absent(t, "busy", seen.stat_error);
  write_absent(t, "temp_mc", seen.zone_error);
  if (!seen.batteries) write_absent(t, "battery", seen.battery_error);
  write_absent(t, "mem_available_kb", seen.memory_error);
  write_absent(t, "psi_cpu_us", seen.psi_error);
  json_close(t, '}');
}

static void write_frequencies(struct text *t)
{
  int64_t khz;
  json_open(t, "freq_khz", '[');
  for (int i = 0; i < seen.cpus; i++) {
    if (fact_number(&khz, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", seen.cpu[i]) == 0)
      json_int(t, NULL, khz);
    else json_null(t, NULL);
  }
  json_close(t, ']');
}

static void write_row(struct text *t, const char *key, const int64_t *values)
{
  json_open(t, key, '[');
  for (int i = 0; i < seen.cpus; i++) {
    if (values[i] >= 0) json_int(t, NULL, values[i]);
    else json_null(t, NULL);
  }
  json_close(t, ']');
}

/* /proc/stat leaves out CPUs that are offline, so rows are found by number. */
static void write_utilisation(struct text *t)
{
  static struct lines lines;
  static int64_t busy[CPUS_MAX], idle[CPUS_MAX], steal[CPUS_MAX];
  char path[PATH_MAX];
  fact_path(path, sizeof path, "/proc/stat");
  if (lines_open(&lines, path) != 0) return;
  for (int i = 0; i < seen.cpus; i++) busy[i] = idle[i] = steal[i] = -1;
  for (char *line; (line = lines_next(&lines)) && strncmp(line, "cpu", 3) == 0;) {
    long long user, nice, system, rest, wait, irq, soft, stolen;
    int cpu, at = 0;
    if (sscanf(line, "cpu%d %lld %lld %lld %lld %lld %lld %lld %lld", &cpu, &user, &nice, &system, &rest, &wait, &irq,
               &soft, &stolen) != 9)
      continue;
    while (at < seen.cpus && seen.cpu[at] != cpu) at++;
    if (at == seen.cpus) continue;
    busy[at] = user + nice + system + irq + soft;
    idle[at] = rest + wait;
    steal[at] = stolen;
  }
  lines_close(&lines);
  write_row(t, "busy", busy);
  write_row(t, "idle", idle);
  write_row(t, "steal", steal);
}

static void write_temperatures(struct text *t)
{
  int64_t temperature_mc;
  json_open(t, "temp_mc", '[');
  for (int i = 0; i < seen.zones; i++) {
    if (fact_number(&temperature_mc, "/sys/class/thermal/thermal_zone%d/temp", seen.zone[i]) == 0)
      json_int(t, NULL, temperature_mc);
    else json_null(t, NULL);
  }
  json_close(t, ']');
}

/* percent, current, voltage, temperature and status of one supply, as far as it shows them; an errno when it shows
 * none of them. */
int power_supply_write(struct text *t, const char *name)
{
  static const struct {
    const char *file, *key;
  } numbers[] = {{"capacity", "percent"}, {"current_now", "current_ua"}, {"voltage_now", "voltage_uv"}, {"temp", "temp_dc"}};
  char status[64];
  int shown = 0, last_error = ENODATA;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    int64_t value;
    int error = fact_number(&value, "/sys/class/power_supply/%s/%s", name, numbers[i].file);
    if (error) last_error = error;
    else json_int(t, numbers[i].key, value), shown++;
  }
  int error = fact_read(status, sizeof status, "/sys/class/power_supply/%s/status", name);
  if (error) last_error = error;
  else json_string(t, "status", status), shown++;
  return shown ? 0 : last_error;
}

void sample_write(struct text *t)
{
  int64_t number;
  if (!seen.freq_error) write_frequencies(t);
  if (!seen.stat_error) write_utilisation(t);
  if (seen.zones) write_temperatures(t);
  if (seen.batteries) {
    json_open(t, "battery", '[');
    for (int i = 0; i < seen.batteries; i++) {
      json_open(t, NULL, '{');
      power_supply_write(t, seen.battery[i]);
      json_close(t, '}');
    }
    json_close(t, ']');
  }
  if (!seen.memory_error && read_meminfo(&number) == 0) json_int(t, "mem_available_kb", number);
  if (!seen.psi_error && read_psi(&number) == 0) json_int(t, "psi_cpu_us", number);
}
