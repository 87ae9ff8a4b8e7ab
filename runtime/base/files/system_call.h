// Calls of the system that a signal may interrupt.
#ifndef NPUMESH_RUNTIME_BASE_FILES_SYSTEM_CALL_H_
#define NPUMESH_RUNTIME_BASE_FILES_SYSTEM_CALL_H_

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace npumesh {

// `call`, made again as long as a signal interrupts it; its result, with errno when it is negative.
template <typename Call>
auto Uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// Writes all of `bytes`, with one call where the system takes them at once. The errno of a failure;
// 0: none.
inline int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = Uninterrupted([&] { return write(fd, bytes.data(), bytes.size()); });
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FILES_SYSTEM_CALL_H_
