/* hash.c - SHA-256 of files, as this device reads them.
 *
 * One JSON object per file, in the order asked. The exit status is 1 when a file could not be read.
 */
#include "agent.h"

#include <stdio.h>

int hash_files(char **paths)
{
  static struct text line;
  int status = 0;
  if (!*paths) die(EXIT_USAGE, "hash needs at least one FILE");
  for (; *paths; paths++) {
    char hex[65];
    uint64_t bytes = 0;
    int error = sha256_file(*paths, hex, &bytes);
    text_clear(&line);
    json_open(&line, NULL, '{');
    json_string(&line, "path", *paths);
    if (error) {
      json_string(&line, "error", errno_name(error));
      status = 1;
    } else {
      json_string(&line, "sha256", hex);
      json_int(&line, "bytes", (int64_t)bytes);
    }
    text_add(&line, "}\n");
    if (fwrite(line.at, 1, line.length, stdout) != line.length) status = EXIT_OUTPUT;
  }
  return fflush(stdout) == 0 ? status : EXIT_OUTPUT;
}
