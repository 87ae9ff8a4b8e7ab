// Preloaded into a job: appends to the file NAME_LOOKUPS a line for every host name that a program
// asks the resolver for, and one for every program of the job that it watches.
#define _GNU_SOURCE  // RTLD_NEXT, program_invocation_short_name
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*GetAddrInfo)(const char*, const char*, const struct addrinfo*, struct addrinfo**);

static void Note(const char* what, const char* name) {
  const char* path = getenv("NAME_LOOKUPS");
  FILE* file = path == NULL ? NULL : fopen(path, "a");
  if (file == NULL) return;
  fprintf(file, "%s %s\n", what, name);
  fclose(file);
}

__attribute__((constructor)) static void Watch(void) {
  Note("watches", program_invocation_short_name);
}

int getaddrinfo(const char* restrict name, const char* restrict service,
                const struct addrinfo* restrict hints, struct addrinfo** restrict found) {
  const int numeric = hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (name != NULL && !numeric) Note("asks for", name);
  const GetAddrInfo real = (GetAddrInfo)dlsym(RTLD_NEXT, "getaddrinfo");
  return real(name, service, hints, found);
}
