// Gathering: the ranks of a world tell each other texts, and agree whether to go on.
//
// A rank never leaves alone: each stage of something that all ranks do together ends with
// `AgreeOn`, so that all of them go on or all of them stop for the same reason.
//
// Who waits is seen on the board, as in a collective, and says past the soft limit for whom.
//
// Thread-safety: none.
#ifndef NPUMESH_RUNTIME_WORLD_GATHERING_H_
#define NPUMESH_RUNTIME_WORLD_GATHERING_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/world/notice_times.h"
#include "runtime/world/standstill.h"
#include "runtime/world/world.h"

namespace npumesh {

class Gathering {
 public:
  // Collective over all ranks. `key` tells gatherings and groups over the same ranks apart. `world`
  // must outlive the gathering.
  static Result<std::unique_ptr<Gathering>> Create(World& world, uint32_t key);

  ~Gathering();
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  int rank() const { return world_.rank(); }
  int size() const { return world_.size(); }

  // Collective over all ranks: every rank's text, by rank. Waits as long as a collective would
  // (HCCL_EXEC_TIMEOUT). Errors: kPeerLost, kTimeout, also when it certainly never ends.
  Result<std::vector<std::string>> Share(std::string_view mine);

  // Collective over all ranks: OK when every rank is. Otherwise the same error on all of them: that
  // of the lowest rank that failed, which is named if there are several.
  Status AgreeOn(const Status& mine);

 private:
  class Wait;

  Gathering(World& world, uint64_t number);
  Status Gather(const std::function<Status(Deadline)>& gather);
  // Ranks of this node that certainly have not come to the gathering under way.
  std::vector<int> Absent() const;

  World& world_;
  const uint64_t number_;             // equal on all ranks
  PositionLine* position_ = nullptr;  // null for a single rank, or when the board has no line left
  uint64_t gatherings_ = 0;
  std::unique_ptr<PlainGroup> group_;  // null for a single rank
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_GATHERING_H_
