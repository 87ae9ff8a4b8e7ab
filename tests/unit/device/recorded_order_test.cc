// Which captured tasks have run whenever others begin, beside a search of the graph of calls.
#include "runtime/device/recorded_order.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "runtime/device/stream.h"

namespace npumesh {
namespace {

// A drawn program of streams, event records and waits; every call is a node whose edges lead to
// what has run before it.
class Program {
 public:
  explicit Program(uint32_t seed) : draw_(seed) {
    for (auto& stream : streams_) stream = std::make_unique<Stream>();
    streams_[0]->BeginRecording(recording_);
    for (int i = 0; i < 40; ++i) Call();
    for (size_t at = 1; at < kStreams; ++at) {
      if (!streams_[at]->records()) continue;
      Record(at);
      Wait(0, events_.back());
    }
    EXPECT_EQ(recording_->unjoined(), 0);
    recording_->End();
  }

  const Recording& recording() const { return *recording_; }
  size_t tasks() const { return node_of_task_.size(); }
  bool Precedes(size_t a, size_t b) const {
    std::vector<bool> seen(before_.size());
    return Reaches(node_of_task_[b], node_of_task_[a], &seen);
  }

 private:
  static constexpr size_t kStreams = 4;
  struct Recorded {
    Event event;
    size_t node;
  };

  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(draw_); }

  void Call() {
    const size_t at = Below(kStreams);
    if (!streams_[at]->records() || Below(3) == 0) {
      if (!events_.empty()) Wait(at, events_[Below(events_.size())]);
      return;
    }
    Below(2) == 0 ? Work(at) : Record(at);
  }
  size_t NewNode(size_t stream) {
    before_.emplace_back();
    if (last_[stream]) before_.back().push_back(*last_[stream]);
    last_[stream] = before_.size() - 1;
    return before_.size() - 1;
  }
  void Work(size_t at) {
    streams_[at]->Enqueue([] { return Status(); });
    node_of_task_.push_back(NewNode(at));
  }
  void Record(size_t at) {
    events_.push_back({Event(), NewNode(at)});
    streams_[at]->Record(events_.back().event);
  }
  void Wait(size_t at, const Recorded& recorded) {
    streams_[at]->Wait(recorded.event);
    before_[NewNode(at)].push_back(recorded.node);
  }
  bool Reaches(size_t from, size_t to, std::vector<bool>* seen) const {
    if (from == to) return true;
    if ((*seen)[from]) return false;
    (*seen)[from] = true;
    for (const size_t node : before_[from]) {
      if (Reaches(node, to, seen)) return true;
    }
    return false;
  }

  std::mt19937 draw_;
  std::shared_ptr<Recording> recording_ = std::make_shared<Recording>();
  std::unique_ptr<Stream> streams_[kStreams];
  std::optional<size_t> last_[kStreams];  // node of its last call
  std::vector<Recorded> events_;
  std::vector<std::vector<size_t>> before_;  // by node
  std::vector<size_t> node_of_task_;
};

TEST(RecordedOrder, IsThatOfTheGraphOfCalls) {
  int beside = 0, after = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Program program(seed);
    std::vector<size_t> places;  // in tasks(), of those with work
    for (size_t place = 0; place < program.recording().tasks().size(); ++place) {
      if (program.recording().tasks()[place].work != nullptr) places.push_back(place);
    }
    ASSERT_EQ(places.size(), program.tasks());
    const RecordedOrder order(program.recording());
    for (size_t b = 0; b < places.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        const bool precedes = program.Precedes(a, b);
        ASSERT_EQ(order.Precedes(places[a], places[b]), precedes)
            << "seed " << seed << ", tasks " << a << " and " << b;
        ++(precedes ? after : beside);
      }
    }
  }
  EXPECT_GT(beside, 1000);
  EXPECT_GT(after, 1000);
}

}  // namespace
}  // namespace npumesh
