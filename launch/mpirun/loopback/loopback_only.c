// Loaded into mpirun by `npumesh launch` when all ranks are on this host: a socket that would
// listen at every address of the host listens at its loopback address instead.
//
// Open MPI's mpirun opens a port for daemons of other hosts even when there are none, and none of
// its parameters says where (oob/tcp binds INADDR_ANY). The programs that mpirun starts do not get
// this library: it takes itself out of LD_PRELOAD, whose first entry it is. The mpirun of Open MPI 5
// executes prterun in its own place; then the list has the library twice, once for each.
#define _GNU_SOURCE  // RTLD_NEXT
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

typedef int (*Bind)(int, const struct sockaddr*, socklen_t);

__attribute__((constructor)) static void LeaveThePreloadList(void) {
  const char* list = getenv("LD_PRELOAD");
  const char* rest = list == NULL ? NULL : strchr(list, ':');
  if (rest == NULL) {
    unsetenv("LD_PRELOAD");
  } else {
    // setenv copies the text before it frees the old one.
    setenv("LD_PRELOAD", rest + 1, 1);
  }
}

static int BindToLoopback4(Bind real, int fd, const struct sockaddr* address) {
  struct sockaddr_in local;
  memcpy(&local, address, sizeof(local));
  if (local.sin_addr.s_addr != htonl(INADDR_ANY)) return -1;
  local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return real(fd, (const struct sockaddr*)&local, sizeof(local));
}

static int BindToLoopback6(Bind real, int fd, const struct sockaddr* address) {
  struct sockaddr_in6 local;
  memcpy(&local, address, sizeof(local));
  if (memcmp(&local.sin6_addr, &in6addr_any, sizeof(in6addr_any)) != 0) return -1;
  local.sin6_addr = in6addr_loopback;
  return real(fd, (const struct sockaddr*)&local, sizeof(local));
}

__attribute__((visibility("default"))) int bind(int fd, const struct sockaddr* address,
                                                socklen_t size) {
  const Bind real = (Bind)dlsym(RTLD_NEXT, "bind");
  if (address->sa_family == AF_INET && size >= sizeof(struct sockaddr_in) &&
      BindToLoopback4(real, fd, address) == 0) {
    return 0;
  }
  if (address->sa_family == AF_INET6 && size >= sizeof(struct sockaddr_in6) &&
      BindToLoopback6(real, fd, address) == 0) {
    return 0;
  }
  return real(fd, address, size);
}
