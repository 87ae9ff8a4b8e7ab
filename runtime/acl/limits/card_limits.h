// CardLimits: what a process holds of streams, events and notifies, and what it captures, against
// what the card of NPUMESH_CARD has and takes. A card's are shared by all processes that use it;
// only this one is counted.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_LIMITS_CARD_LIMITS_H_
#define NPUMESH_RUNTIME_ACL_LIMITS_CARD_LIMITS_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "acl/acl_rt.h"
#include "runtime/card/findings.h"

namespace npumesh {

class CardLimits {
 public:
  // Before one more `fact` ("streams") is made; `live` says how many there are, and is asked only
  // where there is a card. `code` where they exceed those of the card, and that is to fail.
  aclError Permit(std::string_view function, std::string_view fact, aclError code,
                  const std::function<size_t()>& live);

  // Null: no card.
  const Chip* chip();
  // Keeps what the card refuses. The finding's code where that is to fail. REQUIRES: chip().
  aclError Find(std::string_view function, CardFinding finding);
  // A call of the client in this thread has ended with `code` because of a capture, on any card:
  // the report has it, too, with its place in the program.
  void NoteCapture(std::string_view function, aclError code, std::string_view text);

 private:
  // Null: no card.
  CardFindings* Findings();

  std::once_flag read_;
  Status wrong_;                            // a mistake of the variables
  std::atomic<bool> said_{false};           // Permit has said that
  std::unique_ptr<CardFindings> findings_;  // null: no card
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_LIMITS_CARD_LIMITS_H_
