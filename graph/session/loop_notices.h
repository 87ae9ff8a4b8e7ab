// LoopNotices: says how far the loops of a session have come: on the board, for ranks that wait for
// this one, and in the log when a loop lasts. A loop whose condition never becomes false is no
// error that can be proved, so it is never ended.
//
// Thread-safety: for the thread that runs the session.
#ifndef NPUMESH_GRAPH_SESSION_LOOP_NOTICES_H_
#define NPUMESH_GRAPH_SESSION_LOOP_NOTICES_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/engine/run/loop_watch.h"
#include "runtime/base/process/wait.h"
#include "runtime/world/loop_line.h"
#include "runtime/world/notice_times.h"
#include "runtime/world/world.h"

namespace npumesh {

class LoopNotices final : public LoopWatch {
 public:
  // `world` must outlive it. Notices come at the times of waits: after NPUMESH_SOFT_TIMEOUT, then
  // as NoticeTimes says.
  explicit LoopNotices(World& world) : world_(world) {}

  void Begin(std::string_view loop) override;
  void Turn(uint64_t turn) override;
  void End() override;

 private:
  struct Loop {
    std::string name;
    SteadyClock::time_point since;
    NoticeTimes notices;
  };
  // Of the loop that runs inside all others.
  LoopLine& Line();

  World& world_;
  std::vector<Loop> loops_;                       // that run, the outermost first
  std::vector<std::unique_ptr<LoopLine>> lines_;  // by depth; made when a loop first runs there
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_LOOP_NOTICES_H_
