// LoopWatch: who is told how far the loops of a graph have come.
//
// Thread-safety: called by the thread that runs the graph.
#ifndef NPUMESH_GRAPH_ENGINE_RUN_LOOP_WATCH_H_
#define NPUMESH_GRAPH_ENGINE_RUN_LOOP_WATCH_H_

#include <cstdint>
#include <string_view>

namespace npumesh {

class LoopWatch {
 public:
  virtual ~LoopWatch() = default;
  // A While begins. Loops nest; Turn and End are about the one that began last and has not ended.
  virtual void Begin(std::string_view loop) = 0;
  // The condition holds, and turn `turn` begins, from 1.
  virtual void Turn(uint64_t turn) = 0;
  // The loop is over, also by an error.
  virtual void End() = 0;
};

// One run of a loop, whose end it tells when it is destroyed.
class WatchedLoop {
 public:
  // `watch` may be null, and must outlive it.
  WatchedLoop(LoopWatch* watch, std::string_view loop) : watch_(watch) {
    if (watch_ != nullptr) watch_->Begin(loop);
  }
  ~WatchedLoop() {
    if (watch_ != nullptr) watch_->End();
  }
  WatchedLoop(const WatchedLoop&) = delete;
  WatchedLoop& operator=(const WatchedLoop&) = delete;

  void NextTurn() {
    ++turns_;
    if (watch_ != nullptr) watch_->Turn(turns_);
  }

 private:
  LoopWatch* watch_;
  uint64_t turns_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_RUN_LOOP_WATCH_H_
