// Gathering: the ranks of a world tell each other texts, and agree whether to go on.
//
// A rank never leaves alone: each stage of something that all ranks do together ends with
// `AgreeOn`, so that all of them go on or all of them stop for the same reason.
//
// Thread-safety: none.
#ifndef NPUMESH_RUNTIME_WORLD_GATHERING_H_
#define NPUMESH_RUNTIME_WORLD_GATHERING_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/world/world.h"

namespace npumesh {

class Gathering {
 public:
  // Collective over all ranks. `key` tells gatherings and groups over the same ranks apart. `world`
  // must outlive the gathering.
  static Result<std::unique_ptr<Gathering>> Create(World& world, uint32_t key);

  int rank() const { return world_.rank(); }
  int size() const { return world_.size(); }

  // Collective over all ranks: every rank's text, by rank. Waits as long as a collective would
  // (HCCL_EXEC_TIMEOUT). Errors: kPeerLost, kTimeout.
  Result<std::vector<std::string>> Share(std::string_view mine);

  // Collective over all ranks: OK when every rank is. Otherwise the same error on all of them: that
  // of the lowest rank that failed, which is named if there are several.
  Status AgreeOn(const Status& mine);

 private:
  explicit Gathering(World& world) : world_(world) {}
  Deadline Limit() const;

  World& world_;
  std::unique_ptr<PlainGroup> group_;  // null for a single rank
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_GATHERING_H_
