#include "runtime/base/thread.h"

#include <algorithm>
#include <future>
#include <system_error>
#include <utility>
#include <vector>

namespace npumesh {

Status StartThread(std::string_view purpose, std::thread* thread, std::function<void()> body) {
  try {
    *thread = std::thread(std::move(body));
    return Status();
  } catch (const std::system_error& error) {
    return Error(Code::kIo,
                 "cannot start a thread for {}: {}; more processes and threads than the system "
                 "allows (ulimit -u, pids.max of the container)",
                 purpose, error.code().message());
  }
}

Status OnThreads(int count, std::string_view purpose, const std::function<void(int)>& body) {
  std::vector<std::thread> threads(static_cast<size_t>(std::max(count, 0)));
  std::promise<bool> all_are_there;
  const std::shared_future<bool> go = all_are_there.get_future().share();
  Status started;
  for (int i = 0; i < count && started.ok(); ++i) {
    started = StartThread(purpose, &threads[static_cast<size_t>(i)], [&body, go, i] {
      if (go.get()) body(i);
    });
  }
  all_are_there.set_value(started.ok());
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
  return started;
}

Status TryThreads(int count, std::string_view purpose) {
  return OnThreads(count, purpose, [](int) {});
}

}  // namespace npumesh
