// Shared libraries of a user's own that npumesh loads: operators, algorithms.
//
// Their code runs with the rights of the user, so what every user may write is refused. What they
// throw becomes an error.
//
// Thread-safety: all functions may be called from any thread.
#ifndef NPUMESH_RUNTIME_BASE_FILES_SHARED_LIBRARY_H_
#define NPUMESH_RUNTIME_BASE_FILES_SHARED_LIBRARY_H_

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "runtime/base/status.h"

namespace npumesh {

// Who may be able to change a library that is loaded.
enum class LibraryTrust {
  kOwner,   // its owner and his group: refuse what every user may write or replace
  kAnyone,  // it is loaded whatever its permissions are
};

struct UnloadLibrary {
  void operator()(void* handle) const;
};
// As dlopen gives it.
using LibraryHandle = std::unique_ptr<void, UnloadLibrary>;

// Loads the library `path` with all its symbols resolved. `override_option` is what a message names
// that lets a writable library be loaded; empty: there is no such option. Errors do not name the
// file: kNotFound and kIo as of MappedFile; kInvalidArgument (no regular file; no library; every
// user may write it).
Result<LibraryHandle> OpenLibrary(const std::string& path, LibraryTrust trust,
                                  std::string_view override_option);

// The address of a symbol; null: no such symbol.
void* SymbolOf(const LibraryHandle& library, const char* name);

// libstdc++'s _GLIBCXX_USE_CXX11_ABI, which library and program must have in common.
#ifdef _GLIBCXX_USE_CXX11_ABI
inline constexpr uint32_t kCxx11Strings = _GLIBCXX_USE_CXX11_ABI;
#else
inline constexpr uint32_t kCxx11Strings = 0;
#endif

// Runs `body`, which returns a Status or a Result, and turns what it throws into an error that
// begins with `who`.
template <typename Body>
auto WithoutExceptions(std::string_view who, Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Error(Code::kOutOfMemory, "{}: no memory for what it asks", who);
  } catch (const std::exception& thrown) {
    return Error(Code::kInternal, "{}: its library threw an exception: {}", who, thrown.what());
  } catch (...) {
    return Error(Code::kInternal, "{}: its library threw something that is no std::exception", who);
  }
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FILES_SHARED_LIBRARY_H_
