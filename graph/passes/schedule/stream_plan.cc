#include "graph/passes/schedule/stream_plan.h"

#include <algorithm>

namespace npumesh {
namespace {

// The latest step beside that touches a storage; -1: none.
struct Touch {
  int read = -1;
  int written = -1;
};

class WaitPlanner {
 public:
  WaitPlanner(const std::vector<PlanValue>& values, const std::vector<StepPlace>& places,
              std::vector<PlanStep>& steps)
      : places_(places), steps_(steps), waits_(steps.size(), -1), touches_(values.size()) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int source = values[i].same_as;
      storage_.push_back(source < 0 ? i : storage_[static_cast<size_t>(source)]);
    }
  }

  std::vector<int> Run() {
    for (int step = 0; step < static_cast<int>(steps_.size()); ++step) {
      if (places_[At(step)] == StepPlace::kBeside) {
        Launch(step);
      } else if (const int latest = NeededBy(step); latest > waited_) {
        waits_[At(step)] = latest;
        FinishUntil(latest, step);
      }
    }
    FinishUntil(launched_, static_cast<int>(steps_.size()));
    return std::move(waits_);
  }

 private:
  static size_t At(int i) { return static_cast<size_t>(i); }
  Touch& TouchOf(int value) { return touches_[storage_[At(value)]]; }

  void Launch(int step) {
    for (const int value : steps_[At(step)].reads) TouchOf(value).read = step;
    for (const int value : steps_[At(step)].writes) TouchOf(value).written = step;
    for (const int value : steps_[At(step)].updates) TouchOf(value).written = step;
    launched_ = step;
  }

  int NeededBy(int step) {
    if (places_[At(step)] == StepPlace::kAlone) return launched_;
    int latest = -1;
    for (const int value : steps_[At(step)].reads) {
      latest = std::max(latest, TouchOf(value).written);
    }
    for (const std::vector<int>* written : {&steps_[At(step)].writes, &steps_[At(step)].updates}) {
      for (const int value : *written) {
        latest = std::max({latest, TouchOf(value).written, TouchOf(value).read});
      }
    }
    return latest;
  }

  // The steps beside up to `latest` are finished before `step`.
  void FinishUntil(int latest, int step) {
    for (int i = waited_ + 1; i <= latest; ++i) {
      if (places_[At(i)] == StepPlace::kBeside) steps_[At(i)].done_by = step;
    }
    waited_ = std::max(waited_, latest);
  }

  const std::vector<StepPlace>& places_;
  std::vector<PlanStep>& steps_;
  std::vector<int> waits_;
  std::vector<size_t> storage_;  // by value: the value that owns its storage
  std::vector<Touch> touches_;   // by owning value
  int launched_ = -1;            // the latest step beside so far
  int waited_ = -1;              // and the latest that was waited for
};

}  // namespace

std::vector<int> PlanWaits(const std::vector<PlanValue>& values,
                           const std::vector<StepPlace>& places, std::vector<PlanStep>& steps) {
  return WaitPlanner(values, places, steps).Run();
}

}  // namespace npumesh
