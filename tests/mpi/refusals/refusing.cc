// A library for LD_PRELOAD that refuses what a program asks the system for.
//
//   REFUSE=thread|memory|file|alarm
//                         what: threads (EAGAIN); memory for objects of C++ (std::bad_alloc); what
//                         files and shared memory need (ENOSPC, ENOMEM, EIO). The last two from
//                         main on and of the program itself and our libraries: what others do
//                         without is their business. alarm refuses nothing, but a signal that does
//                         not restart system calls comes every 50 us.
//   REFUSE_AT=N           the N-th request, from 1; 0: none
//   REFUSE_REST=1         all after it, too
//   REFUSE_COUNT=FILE     at the end the number of requests is written there
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace {

struct Plan {
  const char* what = getenv("REFUSE");
  unsigned long at = Number("REFUSE_AT");
  bool rest = getenv("REFUSE_REST") != nullptr;

  static unsigned long Number(const char* name) {
    const char* text = getenv(name);
    return text == nullptr ? 0 : strtoul(text, nullptr, 10);
  }
};

const Plan& ThePlan() {
  static const Plan plan;
  return plan;
}

std::atomic<unsigned long> requests{0};
std::atomic<bool> in_main{false};

using Main = int (*)(int, char**, char**);
Main program_main = nullptr;

void SetTimer(int microseconds) {
  const itimerval every{{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &every, nullptr);
}

void StartAlarm() {
  const char* const what = ThePlan().what;
  if (what == nullptr || strcmp(what, "alarm") != 0) return;
  struct sigaction action {};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, nullptr);
  SetTimer(50);
}

int RunMain(int argc, char** argv, char** environment) {
  StartAlarm();
  in_main = true;
  const int code = program_main(argc, argv, environment);
  in_main = false;
  SetTimer(0);
  return code;
}

// The program itself has an empty name. dladdr would look for a symbol, too, which takes 20 us.
bool IsOurs(void* caller) {
  dl_find_object place{};
  if (_dl_find_object(caller, &place) != 0) return false;
  const char* const name = place.dlfo_link_map->l_name;
  return *name == '\0' || strstr(name, "/libacl_rt.so") || strstr(name, "/libhccl.so");
}

bool Refuses(const char* what) {
  const Plan& plan = ThePlan();
  return plan.what != nullptr && strcmp(plan.what, what) == 0;
}

bool Refused(const char* what) {
  const Plan& plan = ThePlan();
  if (!Refuses(what)) return false;
  const unsigned long number = ++requests;
  return plan.at != 0 && (number == plan.at || (plan.rest && number > plan.at));
}

// A request of the program or of our libraries, from main on.
bool RefusedOurs(const char* what, void* caller) {
  return in_main && Refuses(what) && IsOurs(caller) && Refused(what);
}

// What comes after this library under the name.
template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void* Give(size_t bytes, void* caller) {
  const bool refused = RefusedOurs("memory", caller);
  void* const memory = refused ? nullptr : malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

__attribute__((destructor)) void WriteCount() {
  const char* const path = getenv("REFUSE_COUNT");
  if (path == nullptr) return;
  FILE* const file = fopen(path, "w");
  if (file == nullptr) return;
  fprintf(file, "%lu\n", requests.load());
  fclose(file);
}

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const Create create = Next<Create>("pthread_create");
  return Refused("thread") ? EAGAIN : create(thread, attributes, start, argument);
}

// ---- files and shared memory ----

namespace {

bool RefusedFile(void* caller, int error) {
  const int before = errno;
  const bool refused = RefusedOurs("file", caller);
  errno = refused ? error : before;
  return refused;
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

#define CALLER __builtin_return_address(0)

#define OPEN(name)                                                            \
  extern "C" int name(const char* path, int flags, ...) {                     \
    va_list arguments;                                                        \
    va_start(arguments, flags);                                               \
    const mode_t mode = ModeOf(flags, arguments);                             \
    va_end(arguments);                                                        \
    if (RefusedFile(CALLER, EMFILE)) return -1;                               \
    return Next<int (*)(const char*, int, mode_t)>(#name)(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                       \
  extern "C" int name(int folder, const char* path, int flags, ...) {                      \
    va_list arguments;                                                                     \
    va_start(arguments, flags);                                                            \
    const mode_t mode = ModeOf(flags, arguments);                                          \
    va_end(arguments);                                                                     \
    if (RefusedFile(CALLER, EMFILE)) return -1;                                            \
    return Next<int (*)(int, const char*, int, mode_t)>(#name)(folder, path, flags, mode); \
  }
OPENAT(openat)
OPENAT(openat64)

#define MAP(name)                                                                                \
  extern "C" void* name(void* at, size_t bytes, int access, int flags, int fd, off_t offset) {   \
    if (RefusedFile(CALLER, ENOMEM)) return MAP_FAILED;                                          \
    return Next<void* (*)(void*, size_t, int, int, int, off_t)>(#name)(at, bytes, access, flags, \
                                                                       fd, offset);              \
  }
MAP(mmap)
MAP(mmap64)

#define TRUNCATE(name)                                  \
  extern "C" int name(int fd, off_t bytes) {            \
    if (RefusedFile(CALLER, ENOSPC)) return -1;         \
    return Next<int (*)(int, off_t)>(#name)(fd, bytes); \
  }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

extern "C" ssize_t write(int fd, const void* data, size_t bytes) {
  if (RefusedFile(CALLER, ENOSPC)) return -1;
  return Next<ssize_t (*)(int, const void*, size_t)>("write")(fd, data, bytes);
}
extern "C" ssize_t read(int fd, void* data, size_t bytes) {
  if (RefusedFile(CALLER, EIO)) return -1;
  return Next<ssize_t (*)(int, void*, size_t)>("read")(fd, data, bytes);
}
extern "C" int fsync(int fd) {
  return RefusedFile(CALLER, EIO) ? -1 : Next<int (*)(int)>("fsync")(fd);
}
extern "C" int rename(const char* from, const char* to) {
  if (RefusedFile(CALLER, ENOSPC)) return -1;
  return Next<int (*)(const char*, const char*)>("rename")(from, to);
}
extern "C" int mkdir(const char* path, mode_t mode) {
  if (RefusedFile(CALLER, ENOSPC)) return -1;
  return Next<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}
extern "C" int memfd_create(const char* name, unsigned int flags) {
  if (RefusedFile(CALLER, EMFILE)) return -1;
  return Next<int (*)(const char*, unsigned int)>("memfd_create")(name, flags);
}

// As glibc calls it.
extern "C" int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*loader_fini)(), void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const Start start = Next<Start>("__libc_start_main");
  program_main = main;
  return start(RunMain, argc, argv, init, fini, loader_fini, stack_end);
}

void* operator new(size_t bytes) {
  return Give(bytes, __builtin_return_address(0));
}
void* operator new[](size_t bytes) {
  return Give(bytes, __builtin_return_address(0));
}
void operator delete(void* memory) noexcept {
  free(memory);
}
void operator delete[](void* memory) noexcept {
  free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  free(memory);
}
