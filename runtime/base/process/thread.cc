#include "runtime/base/process/thread.h"

#include <algorithm>
#include <exception>
#include <future>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

namespace npumesh {

namespace {

// The first exception of several threads, for the one that waits for them.
class FirstThrown {
 public:
  template <typename Body>
  void Watch(Body body) {
    try {
      body();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (first_ == nullptr) first_ = std::current_exception();
    }
  }
  bool any() const {
    const std::lock_guard lock(mutex_);
    return first_ != nullptr;
  }
  void Rethrow() const {
    if (any()) std::rethrow_exception(first_);
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace

Status StartThread(std::string_view purpose, std::thread* thread, std::function<void()> body) {
  try {
    *thread = std::thread(std::move(body));
    return Status();
  } catch (const std::system_error& error) {
    return Error(Code::kIo,
                 "cannot start a thread for {}: {}; more processes and threads than the system "
                 "allows (ulimit -u, pids.max of the container)",
                 purpose, error.code().message());
  } catch (const std::bad_alloc&) {
    return Error(Code::kOutOfMemory, "cannot start a thread for {}: no host memory is left",
                 purpose);
  }
}

Status OnThreads(int count, std::string_view purpose, const std::function<void(int)>& body) {
  std::vector<std::thread> threads(static_cast<size_t>(std::max(count, 0)));
  std::promise<bool> all_are_there;
  const std::shared_future<bool> go = all_are_there.get_future().share();
  FirstThrown thrown;
  Status started;
  thrown.Watch([&] {
    for (int i = 0; i < count && started.ok(); ++i) {
      started = StartThread(purpose, &threads[static_cast<size_t>(i)], [&body, &thrown, go, i] {
        thrown.Watch([&] {
          if (go.get()) body(i);
        });
      });
    }
  });
  all_are_there.set_value(started.ok() && !thrown.any());
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
  thrown.Rethrow();
  return started;
}

Status TryThreads(int count, std::string_view purpose) {
  return OnThreads(count, purpose, [](int) {});
}

}  // namespace npumesh
