// Streak: how many equal calls in a row all members have made and compared, up to the last one.
//
// Only calls with a sole sender count. A streak of kTrusted calls is reason enough to let the next
// equal one run ahead (run_ahead.h).
#ifndef NPUMESH_COLLECTIVES_CONTRACT_STREAK_H_
#define NPUMESH_COLLECTIVES_CONTRACT_STREAK_H_

#include <cstddef>
#include <cstdint>

#include "collectives/contract/request.h"

namespace npumesh {

class Streak {
 public:
  static constexpr uint64_t kTrusted = 4;

  // The call would be one more; `sole_sender` as in EagerData.
  bool Continues(const Announcement& announcement, int sole_sender) const {
    return count_ != 0 && sole_sender == sender_ &&
           announcement.content_fingerprint == announcement_.content_fingerprint;
  }
  // Counts a call that was made.
  void Count(const Announcement& announcement, int sole_sender);

  bool trusted() const { return count_ >= kTrusted; }
  // REQUIRES: trusted.
  size_t sender() const { return static_cast<size_t>(sender_); }
  const Announcement& announcement() const { return announcement_; }

 private:
  Announcement announcement_;  // of a call with a sole sender
  int sender_ = -1;
  uint64_t count_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_STREAK_H_
