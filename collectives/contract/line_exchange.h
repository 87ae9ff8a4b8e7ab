// LineExchange: eager data of a call that say themselves which call they belong to.
//
// Every cache line carries 56 bytes and a stamp, the fingerprint of the request at this call, in
// the manner of NCCL's LL128. A reader polls the line it wants: no line is read before another, no
// store waits for another, and equal stamps are the comparison of the requests. For data up to
// Round::kLines lines that is all of the meeting.
//
// The arrival line is written as in other calls, after the lines, but read only by a member that
// waits long. So a member that wants something else is found out.
//
// Thread-safety: one thread of a rank uses an object at a time.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_LINE_EXCHANGE_H_
#define NPUMESH_COLLECTIVES_CONTRACT_LINE_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "collectives/contract/meeting.h"
#include "collectives/contract/window_slots.h"

namespace npumesh {

class LineExchange {
 public:
  // `slots` must outlive the object.
  explicit LineExchange(const WindowSlots& slots) : slots_(slots) {}

  // Call `call` begins. Its data travel in lines when there are some and they fit.
  void Begin(uint64_t call, uint64_t content_fingerprint, const EagerData& eager);
  // The data of the call travel in other ways.
  void End() { active_ = false; }
  // The call's data travel in lines.
  bool active() const { return active_; }

  // ---- REQUIRES: active ----

  // Writes this member's data into `round`, its own.
  void Write(Round& round, std::span<const std::byte> bytes);
  // The lines of member i are here, or it has arrived without them.
  bool HasCome(size_t i);
  // Member i has begun to write lines for this request, or has arrived.
  bool HasBegun(size_t i) const;
  // What member i has sent, for this member its own buffer; valid until the next call.
  const std::byte* Data(size_t i) const {
    return i == slots_.rank() ? eager_.bytes.data() : data_.data() + i * kRoom;
  }

  // ---- always ----

  // All have come, and all lines had the stamp: the requests agree.
  bool AllCame() const { return active_ && !doubt_; }

 private:
  static constexpr uint64_t kRoom =
      (Round::kLines + 1) * StampedLine::kBytes / kCacheLine * kCacheLine;  // of one member's data
  static_assert(kRoom >= Round::kLines * StampedLine::kBytes);

  void Stamp(StampedLine& line) const { line.stamp.store(stamp_, std::memory_order_release); }
  // The first and the last line that this rank reads of a member that has `bytes`.
  std::pair<uint64_t, uint64_t> LinesOf(uint64_t bytes) const;
  // Takes the lines of member i that are here; true when they are all.
  bool TakeLines(size_t i);

  const WindowSlots& slots_;
  bool active_ = false;
  bool doubt_ = false;  // a member has arrived without its lines
  uint64_t call_ = 0;
  uint64_t stamp_ = 0;
  EagerData eager_;
  uint64_t looks_ = 0;           // in vain
  std::vector<std::byte> data_;  // kRoom bytes for each member
  std::vector<uint32_t> taken_;  // lines, by member
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_LINE_EXCHANGE_H_
