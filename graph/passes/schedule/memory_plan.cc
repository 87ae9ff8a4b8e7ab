#include "graph/passes/schedule/memory_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace npumesh {
namespace {

class Planner {
 public:
  Planner(const std::vector<PlanValue>& values, const std::vector<PlanStep>& steps,
          uint64_t alignment, uint64_t margin)
      : values_(values), steps_(steps), alignment_(alignment), margin_(margin) {}

  MemoryPlan Run(PlanEffort effort) {
    ResolveViews();
    FindLifetimes();
    TakeOver();
    std::vector<Block> blocks = Blocks();
    Place(blocks, [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
    if (effort == PlanEffort::kThorough) TryOtherSequences(blocks);
    return Finish(std::move(blocks));
  }

 private:
  using Block = PlannedBlock;
  using ChoosesBefore = std::function<bool(const Block&, const Block&)>;

  static size_t At(int i) { return static_cast<size_t>(i); }

  void ResolveViews() {
    storage_.resize(values_.size());
    for (size_t i = 0; i < values_.size(); ++i) {
      const int source = values_[i].same_as;
      storage_[i] = source < 0 ? static_cast<int>(i) : storage_[At(source)];
    }
  }

  void FindLifetimes() {
    first_.assign(values_.size(), -1);
    last_.assign(values_.size(), -1);
    free_from_.assign(values_.size(), -1);
    const auto use = [&](int value, int step) {
      const size_t owner = At(storage_[At(value)]);
      if (first_[owner] < 0) first_[owner] = step;
      const int done_by = At(step) < steps_.size() ? steps_[At(step)].done_by : -1;
      last_[owner] = std::max({last_[owner], step, done_by - 1});
      free_from_[owner] = std::max(free_from_[owner], done_by);
    };
    for (size_t step = 0; step < steps_.size(); ++step) {
      for (const int value : steps_[step].reads) use(value, static_cast<int>(step));
      for (const int value : steps_[step].writes) use(value, static_cast<int>(step));
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].output) use(static_cast<int>(i), static_cast<int>(steps_.size()));
    }
  }

  // Lets the first output of a step live on in the storage of an input that dies there.
  void TakeOver() {
    std::vector<int> heir(values_.size());  // storage -> storage that it became part of
    std::iota(heir.begin(), heir.end(), 0);
    const auto owner_of = [&](int value) {
      int owner = storage_[At(value)];
      while (heir[At(owner)] != owner) owner = heir[At(owner)];
      return owner;
    };
    for (size_t step = 0; step < steps_.size(); ++step) {
      const PlanStep& s = steps_[step];
      if (s.writes.empty()) continue;
      const int output = s.writes[0];
      const bool fresh = values_[At(output)].same_as < 0 && !values_[At(output)].external &&
                         first_[At(output)] == static_cast<int>(step);
      if (!fresh) continue;
      for (const int input : s.may_take_over) {
        const int owner = owner_of(input);
        if (owner == output || values_[At(owner)].external) continue;
        if (last_[At(owner)] != static_cast<int>(step)) continue;
        if (free_from_[At(owner)] > static_cast<int>(step)) continue;  // in use beside this step
        if (values_[At(owner)].bytes != values_[At(output)].bytes) continue;
        heir[At(output)] = owner;
        last_[At(owner)] = std::max(last_[At(owner)], last_[At(output)]);
        free_from_[At(owner)] = std::max(free_from_[At(owner)], free_from_[At(output)]);
        break;
      }
    }
    for (size_t i = 0; i < values_.size(); ++i) storage_[i] = owner_of(static_cast<int>(i));
  }

  std::vector<Block> Blocks() const {
    std::vector<Block> blocks;
    for (size_t i = 0; i < values_.size(); ++i) {
      const bool owner = storage_[i] == static_cast<int>(i);
      if (!owner || values_[i].external || first_[i] < 0) continue;
      const uint64_t bytes = (values_[i].bytes + alignment_ - 1) / alignment_ * alignment_;
      blocks.push_back({static_cast<int>(i), bytes + margin_, first_[i], last_[i]});
    }
    return blocks;
  }

  // Each block goes into the smallest gap that holds it for its whole life.
  static void Place(std::vector<Block>& blocks, const ChoosesBefore& before) {
    std::vector<Block*> sequence;
    for (Block& block : blocks) sequence.push_back(&block);
    std::stable_sort(sequence.begin(), sequence.end(),
                     [&](const Block* a, const Block* b) { return before(*a, *b); });
    std::vector<const Block*> placed;  // by offset
    for (Block* block : sequence) {
      block->offset = BestGap(*block, placed);
      const auto at =
          std::upper_bound(placed.begin(), placed.end(), block,
                           [](const Block* a, const Block* b) { return a->offset < b->offset; });
      placed.insert(at, block);
    }
  }

  // Keeps what makes the arena smallest.
  static void TryOtherSequences(std::vector<Block>& best) {
    const auto life = [](const Block& block) {
      return static_cast<uint64_t>(block.last - block.first) + 1;
    };
    const ChoosesBefore sequences[] = {
        [&](const Block& a, const Block& b) { return life(a) > life(b); },
        [&](const Block& a, const Block& b) { return a.bytes * life(a) > b.bytes * life(b); },
        [](const Block& a, const Block& b) { return a.first < b.first; },
    };
    for (const ChoosesBefore& before : sequences) {
      std::vector<Block> blocks = best;
      Place(blocks, before);
      if (ArenaBytes(blocks) < ArenaBytes(best)) best = std::move(blocks);
    }
  }

  static uint64_t ArenaBytes(const std::vector<Block>& blocks) {
    uint64_t bytes = 0;
    for (const Block& block : blocks) bytes = std::max(bytes, block.offset + block.bytes);
    return bytes;
  }

  static uint64_t BestGap(const Block& block, const std::vector<const Block*>& placed) {
    constexpr uint64_t kNone = ~uint64_t{0};
    uint64_t best = kNone;
    uint64_t best_bytes = kNone;
    uint64_t end = 0;  // of the blocks seen that live at the same time
    for (const Block* other : placed) {
      if (other->last < block.first || block.last < other->first) continue;
      if (other->offset > end) {
        const uint64_t gap = other->offset - end;
        if (gap >= block.bytes && gap < best_bytes) {
          best = end;
          best_bytes = gap;
        }
      }
      end = std::max(end, other->offset + other->bytes);
    }
    return best == kNone ? end : best;
  }

  MemoryPlan Finish(std::vector<Block> blocks) const {
    MemoryPlan plan;
    std::vector<uint64_t> offset(values_.size(), 0);
    for (const Block& block : blocks) offset[At(block.value)] = block.offset;
    plan.arena_bytes = ArenaBytes(blocks);
    for (const int owner : storage_) plan.offsets.push_back(offset[At(owner)]);
    plan.storage = storage_;
    plan.live_bytes = MostAlive(blocks);
    plan.blocks = std::move(blocks);
    return plan;
  }

  uint64_t MostAlive(const std::vector<Block>& blocks) const {
    std::vector<int64_t> change(steps_.size() + 2, 0);
    for (const Block& block : blocks) {
      change[At(block.first)] += static_cast<int64_t>(block.bytes);
      change[At(block.last) + 1] -= static_cast<int64_t>(block.bytes);
    }
    int64_t alive = 0;
    int64_t most = 0;
    for (const int64_t bytes : change) {
      alive += bytes;
      most = std::max(most, alive);
    }
    return static_cast<uint64_t>(most);
  }

  const std::vector<PlanValue>& values_;
  const std::vector<PlanStep>& steps_;
  const uint64_t alignment_;
  const uint64_t margin_;
  std::vector<int> storage_;  // by value: the value that owns its storage
  std::vector<int> first_;    // by owner
  std::vector<int> last_;
  std::vector<int> free_from_;  // the step before which the last user beside others is finished
};

}  // namespace

MemoryPlan PlanMemory(const std::vector<PlanValue>& values, const std::vector<PlanStep>& steps,
                      uint64_t alignment, PlanEffort effort, uint64_t margin) {
  return Planner(values, steps, alignment, margin).Run(effort);
}

}  // namespace npumesh
