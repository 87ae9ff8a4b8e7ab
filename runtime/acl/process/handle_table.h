// HandleTable: which opaque pointers of clients are live objects of one kind.
//
// Thread-safety: all members may be called from any thread. An object lives on while a caller holds
// it, also when its handle has been taken out.
#ifndef NPUMESH_RUNTIME_ACL_PROCESS_HANDLE_TABLE_H_
#define NPUMESH_RUNTIME_ACL_PROCESS_HANDLE_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace npumesh {

template <typename T>
class HandleTable {
 public:
  void* Add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    void* handle = object.get();
    objects_.emplace(handle, std::move(object));
    return handle;
  }

  // Null for a pointer that is no live handle.
  std::shared_ptr<T> Find(const void* handle) const {
    const std::shared_lock lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }

  // Find, and the handle is dead from now on.
  std::shared_ptr<T> Take(const void* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    version_.fetch_add(1, std::memory_order_release);
    return object;
  }

  // Those that are live now.
  std::vector<std::shared_ptr<T>> All() const {
    const std::shared_lock lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    all.reserve(objects_.size());
    for (const auto& [handle, object] : objects_) all.push_back(object);
    return all;
  }

  size_t size() const {
    const std::shared_lock lock(mutex_);
    return objects_.size();
  }

  // Changes whenever a handle dies: what was found before is live as long as it is the same.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  void Clear() {
    std::unordered_map<const void*, std::shared_ptr<T>> dying;
    const std::lock_guard lock(mutex_);
    dying.swap(objects_);
    version_.fetch_add(1, std::memory_order_release);
  }

 private:
  mutable std::shared_mutex mutex_;
  std::atomic<uint64_t> version_{0};
  std::unordered_map<const void*, std::shared_ptr<T>> objects_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_PROCESS_HANDLE_TABLE_H_
