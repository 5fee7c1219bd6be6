/* mask.c - CPU masks in hexadecimal, lowest CPU in the lowest bit, and the kernel's CPU lists. */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

static int hex_value(char digit)
{
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

bool mask_parse(const char *text, cpu_set_t *mask)
{
  if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) text += 2;
  size_t digits = strlen(text);
  CPU_ZERO(mask);
  if (digits == 0 || digits > CPUS_MAX / 4) return false;
  for (size_t i = 0; i < digits; i++) {
    int value = hex_value(text[digits - 1 - i]);
    if (value < 0) return false;
    for (size_t bit = 0; bit < 4; bit++)
      if (value >> bit & 1) CPU_SET(i * 4 + bit, mask);
  }
  return CPU_COUNT(mask) > 0;
}

void mask_print(const cpu_set_t *mask, char *text, size_t size)
{
  size_t used = 0;
  for (size_t i = CPUS_MAX / 4; i-- > 0;) {
    int value = 0;
    for (size_t bit = 0; bit < 4; bit++)
      if (CPU_ISSET(i * 4 + bit, mask)) value |= 1 << bit;
    if (value == 0 && used == 0 && i > 0) continue;
    if (used + 1 < size) text[used++] = "0123456789abcdef"[value];
  }
  text[used] = 0;
}

int cpu_list(int *cpus, int max, const char *fact)
{
  char list[VALUE_SIZE], *at = list;
  int count = 0, error = fact_read(list, sizeof list, "%s", fact);
  if (error) return -error;
  while (*at) {
    long first = strtol(at, &at, 10), last = first;
    if (*at == '-') last = strtol(at + 1, &at, 10);
    for (long cpu = first; cpu <= last && count < max; cpu++) cpus[count++] = (int)cpu;
    if (*at != ',') break;
    at++;
  }
  return count;
}
