#include "runtime/base/env/variables.h"

#include <link.h>
#include <pthread.h>

#include <cstdint>

namespace npumesh {
namespace {

struct Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;

  bool Holds(const Range& other) const { return begin <= other.begin && other.end <= end; }
  bool Meets(const Range& other) const { return begin < other.end && other.begin < end; }
};

bool IsOnStack(const Range& wanted) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  void* lowest = nullptr;
  size_t size = 0;
  const int failed = pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  if (failed != 0) return false;
  // What lies below this frame is not in use.
  const Range callers{reinterpret_cast<uintptr_t>(__builtin_frame_address(0)),
                      reinterpret_cast<uintptr_t>(lowest) + size};
  return callers.Holds(wanted);
}

// Segments that may be written, without what the loader has closed after it relocated it.
bool IsStaticIn(const dl_phdr_info& object, const Range& wanted) {
  bool held = false;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object.dlpi_phdr[i];
    const uintptr_t begin = object.dlpi_addr + header.p_vaddr;
    const Range segment{begin, begin + header.p_memsz};
    if (header.p_type == PT_GNU_RELRO && segment.Meets(wanted)) return false;
    held =
        held || (header.p_type == PT_LOAD && (header.p_flags & PF_W) != 0 && segment.Holds(wanted));
  }
  return held;
}

}  // namespace

bool IsVariable(const void* pointer, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  Range wanted{begin, begin + bytes};
  if (pointer == nullptr || wanted.end < begin) return false;
  if (IsOnStack(wanted)) return true;
  const auto look = [](dl_phdr_info* object, size_t, void* range) {
    return IsStaticIn(*object, *static_cast<Range*>(range)) ? 1 : 0;
  };
  return dl_iterate_phdr(look, &wanted) != 0;
}

}  // namespace npumesh
