// A library for LD_PRELOAD that refuses what a program asks the system for.
//
//   REFUSE=thread|memory  what: threads (EAGAIN), or memory for objects of C++ (std::bad_alloc),
//   from
//                         main on and of the program itself and our libraries: what others do
//                         without memory is their business
//   REFUSE_AT=N           the N-th request, from 1; 0: none
//   REFUSE_REST=1         all after it, too
//   REFUSE_COUNT=FILE     at the end the number of requests is written there
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int RunMain(int argc, char** argv, char** environment) {
  in_main = true;
  const int code = program_main(argc, argv, environment);
  in_main = false;
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

void* Give(size_t bytes, void* caller) {
  const bool refused = in_main && Refuses("memory") && IsOurs(caller) && Refused("memory");
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
  static const Create create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return Refused("thread") ? EAGAIN : create(thread, attributes, start, argument);
}

// As glibc calls it.
extern "C" int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*loader_fini)(), void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const Start start = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
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
