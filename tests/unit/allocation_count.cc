#include "tests/unit/allocation_count.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NPUMESH_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define NPUMESH_SANITIZED 1
#endif
#endif

namespace {

std::atomic<uint64_t> allocations{0};
std::atomic<uint64_t> buffers{0};

void Count(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (bytes > npumesh::kSmallAllocation) buffers.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

#if defined(NPUMESH_SANITIZED)

void* operator new(size_t bytes) {
  Count(bytes);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  Count(bytes);
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

#else

// The names under which glibc offers its own functions to those who replace them.
extern "C" {
void* __libc_malloc(size_t bytes);                      // NOLINT
void* __libc_calloc(size_t count, size_t bytes);        // NOLINT
void* __libc_realloc(void* memory, size_t bytes);       // NOLINT
void* __libc_memalign(size_t alignment, size_t bytes);  // NOLINT
void __libc_free(void* memory);                         // NOLINT

void* malloc(size_t bytes) noexcept {
  Count(bytes);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) noexcept {
  Count(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) noexcept {
  Count(bytes);
  return __libc_realloc(memory, bytes);
}
void* memalign(size_t alignment, size_t bytes) noexcept {
  Count(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  *memory = memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) noexcept {
  __libc_free(memory);
}
}  // extern "C"

#endif

namespace npumesh {

uint64_t AllocationCount() {
  return allocations;
}

uint64_t BufferCount() {
  return buffers;
}

}  // namespace npumesh
