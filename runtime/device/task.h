// Task: work that a stream does, once or (recording.h) again, from any thread. Like
// std::function<Status()>, but may hold what cannot be copied, and holds what
// an operator of a collective captures without allocating: an allocation costs
// more than queueing the operator does.
//
// Thread-safety: one thread at a time may use a Task.
#ifndef NPUMESH_RUNTIME_DEVICE_TASK_H_
#define NPUMESH_RUNTIME_DEVICE_TASK_H_

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "runtime/base/status.h"

namespace npumesh {

class Task {
 public:
  // Captures up to this size lie in the task itself.
  static constexpr size_t kInlineBytes = 80;

  Task() {}  // NOLINT: by default `Task()` would clear the room, too
  template <typename Work, typename = std::enable_if_t<!std::is_same_v<std::decay_t<Work>, Task>>>
  Task(Work&& work) {  // NOLINT: implicit, as std::function
    using Held = std::decay_t<Work>;
    if constexpr (kFits<Held>) {
      new (room_) Held(std::forward<Work>(work));
      ways_ = &kInline<Held>;
    } else {
      new (room_) Held*(new Held(std::forward<Work>(work)));
      ways_ = &kAllocated<Held>;
    }
  }
  Task(Task&& other) noexcept { Take(other); }
  Task& operator=(Task&& other) noexcept {
    if (this == &other) return *this;
    Drop();
    Take(other);
    return *this;
  }
  ~Task() { Drop(); }

  // REQUIRES: it holds work.
  Status operator()() { return ways_->call(room_); }
  // The same for the last time, in one go: holds no work afterwards.
  Status Finish() { return std::exchange(ways_, nullptr)->finish(room_); }
  explicit operator bool() const { return ways_ != nullptr; }

 private:
  // How to treat what lies in the room.
  struct Ways {
    Status (*call)(void*);
    Status (*finish)(void*);             // and drops it
    void (*move)(void* from, void* to);  // leaves nothing behind
    void (*drop)(void*);
  };

  struct Destroy {
    template <typename Held>
    void operator()(Held* held) const {
      std::destroy_at(held);
    }
  };

  template <typename Held>
  static constexpr bool kFits =
      sizeof(Held) <= kInlineBytes &&
      alignof(Held) <= alignof(void*) && std::is_nothrow_move_constructible_v<Held>;
  template <typename Held>
  static Held& In(void* room) {
    return *std::launder(static_cast<Held*>(room));
  }
  template <typename Held>
  static constexpr Ways kInline = {[](void* room) -> Status { return In<Held>(room)(); },
                                   [](void* room) -> Status {
                                     const std::unique_ptr<Held, Destroy> held(&In<Held>(room));
                                     return (*held)();
                                   },
                                   [](void* from, void* to) {
                                     new (to) Held(std::move(In<Held>(from)));
                                     In<Held>(from).~Held();
                                   },
                                   [](void* room) { In<Held>(room).~Held(); }};
  template <typename Held>
  static constexpr Ways kAllocated = {[](void* room) -> Status { return (*In<Held*>(room))(); },
                                      [](void* room) -> Status {
                                        const std::unique_ptr<Held> held(In<Held*>(room));
                                        return (*held)();
                                      },
                                      [](void* from, void* to) { new (to) Held*(In<Held*>(from)); },
                                      [](void* room) { delete In<Held*>(room); }};

  void Take(Task& other) {
    ways_ = std::exchange(other.ways_, nullptr);
    if (ways_ != nullptr) ways_->move(other.room_, room_);
  }
  void Drop() {
    if (ways_ != nullptr) std::exchange(ways_, nullptr)->drop(room_);
  }

  const Ways* ways_ = nullptr;
  alignas(void*) std::byte room_[kInlineBytes];
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_TASK_H_
