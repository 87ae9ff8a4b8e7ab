// ArgumentCheck: the checks of an operator's arguments, in the order in which the vendor's library
// makes them. The first one that fails is the answer; the later ones do nothing.
//
// A call has one from its beginning to its end, so it is also the call's span in the profile.
//
// Thread-safety: one thread; lives as long as the call.
#ifndef NPUMESH_COLLECTIVES_HCCL_COMM_ARGUMENT_CHECK_H_
#define NPUMESH_COLLECTIVES_HCCL_COMM_ARGUMENT_CHECK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "collectives/hccl/comm/comm.h"
#include "collectives/hccl/comm/element_type.h"
#include "collectives/hccl/comm/verdict.h"
#include "runtime/acl/process/api_span.h"

namespace npumesh {

// SYS_MAX_COUNT: elements of one operator.
inline constexpr uint64_t kMaxCount = 0x7FFFFFFFF;

class ArgumentCheck {
 public:
  // `call` is the name of the interface function.
  explicit ArgumentCheck(std::string_view call);

  ArgumentCheck& NotNull(std::string_view name, const void* pointer) {
    return pointer != nullptr ? *this : IsNull(name);
  }
  ArgumentCheck& Count(std::string_view name, uint64_t count) {
    if (entry_) Note(name, count);
    return count <= kMaxCount ? *this : IsTooMany(name, count);
  }
  // The type may be moved; may be reduced by `op`.
  ArgumentCheck& Moves(HcclDataType dtype);
  ArgumentCheck& Reduces(HcclDataType dtype, HcclReduceOp op);
  // The handle is a live communicator, which `comm()` is from now on.
  ArgumentCheck& Live(HcclComm handle);
  // A rank of the communicator. REQUIRES: Live was called.
  ArgumentCheck& RankInComm(std::string_view name, uint32_t rank);
  ArgumentCheck& Differ(std::string_view left, const void* a, std::string_view right,
                        const void* b);
  // `bytes` from `pointer` lie in the HBM of the communicator's device. REQUIRES: Live was called.
  ArgumentCheck& InHbm(std::string_view name, const void* pointer, uint64_t bytes) {
    if (entry_) Note(name, pointer);
    const bool inside = !ok() || bytes == 0 || comm_->in_hbm(pointer, bytes);
    return inside ? *this : IsOutside(name, pointer, bytes);
  }
  // Any other rule; `why` is said when it does not hold.
  ArgumentCheck& Holds(bool rule, HcclResult result, std::string_view why);

  bool ok() const { return verdict_.ok(); }
  // True when the only thing wrong is a buffer outside of HBM: the peers cannot know.
  bool outside_hbm() const { return outside_hbm_; }
  const Verdict& verdict() const { return verdict_; }
  std::string_view call() const { return call_; }
  // The arguments as HCCL_ENTRY_LOG_ENABLE shows them, "count[16], sendBuf[0x7f...]"; null when it
  // is off.
  const std::string* entry() const { return entry_.get(); }
  // Null unless Live has found it.
  const std::shared_ptr<Comm>& comm() const { return comm_; }
  // The same, for the operator that is issued; the check has it no longer.
  std::shared_ptr<Comm> TakeComm() { return std::move(comm_); }
  // Ranks of the communicator; 0 without one.
  uint32_t size() const { return comm_ ? comm_->size() : 0; }
  uint32_t rank() const { return comm_ ? comm_->rank() : 0; }

 private:
  // Seldom called, so what calls them keeps no registers for them.
  [[gnu::cold]] ArgumentCheck& IsNull(std::string_view name);
  [[gnu::cold]] ArgumentCheck& IsTooMany(std::string_view name, uint64_t count);
  [[gnu::cold]] ArgumentCheck& IsOutside(std::string_view name, const void* pointer,
                                         uint64_t bytes);

  [[gnu::cold]] void Note(std::string_view name, uint64_t value);
  [[gnu::cold]] void Note(std::string_view name, const void* pointer);
  [[gnu::cold]] void Note(std::string_view name, std::string_view text);

  const ApiSpan span_;
  const std::string_view call_;
  Verdict verdict_;
  std::shared_ptr<Comm> comm_;
  bool outside_hbm_ = false;
  std::unique_ptr<std::string> entry_;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_COMM_ARGUMENT_CHECK_H_
