// StaticKernelPass: operators that say how they are computed as loops (Operator::loop) become
// static kernels, together with what feeds them and them alone.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "graph/passes/fusion/fusion_view.h"

namespace npumesh {
namespace {

// Longer functions compile slowly and no longer keep their values in registers.
constexpr size_t kMostOperators = 32;

// A compiled loop program as a kernel.
class LoopKernel final : public Kernel {
 public:
  explicit LoopKernel(StaticKernel kernel) : kernel_(std::move(kernel)) {
    set_choice({.name = "static kernel " + kernel_.name, .refused = {}});
  }
  uint64_t scratch_bytes() const override { return kernel_.scratch_bytes; }
  Status Run(const KernelArgs& args) override {
    kernel_.entry(args.in, args.out, args.scratch);
    return Status();
  }

 private:
  StaticKernel kernel_;
};

// Operators, in execution order, that are one program.
struct Region {
  std::vector<NodeId> nodes;
  Shape space;  // of whole rows
  LoopProgram program;
  std::vector<std::optional<Value>> inputs;  // by slot of the kernel
};

class RegionFinder {
 public:
  explicit RegionFinder(FusionView& view) : view_(view) {}

  // From the end of the graph to its start, so that a region is found at its last operator.
  std::vector<Region> Run() {
    std::vector<Region> regions;
    for (auto id = view_.order().rbegin(); id != view_.order().rend(); ++id) {
      if (!Available(*id)) continue;
      const std::optional<Region> alone = Alone(*id);
      if (!alone) continue;
      Region region = Grown(*alone);
      if (!view_.WhyNotFuse(region.nodes, region.inputs).empty()) region = *alone;
      inside_.insert(region.nodes.begin(), region.nodes.end());
      regions.push_back(std::move(region));
    }
    return regions;
  }

 private:
  bool Available(NodeId id) const {
    return view_.Free(id) && !inside_.contains(id) && view_.op(id).loop != nullptr &&
           view_.op(id).in_place.empty() && view_.context(id).out(0).shape.elements() > 0 &&
           OnlyFirstOutputIsRead(id);
  }

  bool OnlyFirstOutputIsRead(NodeId id) const {
    for (int port = 1; port < view_.context(id).outputs(); ++port) {
      if (view_.IsRead({id, port})) return false;
    }
    return true;
  }

  // One operator, on the rows of its output, or of what it sums up.
  std::optional<Region> Alone(NodeId id) const {
    const OpContext& op = view_.context(id);
    std::optional<Region> region = Written({id}, op.out(0).shape);
    if (!region && op.slots() > 0) region = Written({id}, op.in(0).shape);
    return region;
  }

  // With all that feeds it.
  Region Grown(Region region) const {
    for (bool grew = true; grew;) {
      grew = false;
      for (const NodeId candidate : FeedersOf(region)) {
        std::vector<NodeId> nodes = region.nodes;
        nodes.push_back(candidate);
        std::optional<Region> larger = Written(std::move(nodes), region.space);
        if (!larger) continue;
        region = std::move(*larger);
        grew = true;
        break;
      }
    }
    return region;
  }

  // Operators whose outputs the region alone reads, of its rows.
  std::vector<NodeId> FeedersOf(const Region& region) const {
    std::vector<NodeId> feeders;
    if (region.nodes.size() >= kMostOperators) return feeders;
    for (const NodeId id : region.nodes) {
      for (int slot = 0; slot < view_.context(id).slots(); ++slot) {
        const NodeId producer = view_.Producer(id, slot);
        if (producer == kNoNode || !Available(producer)) continue;
        if (std::find(region.nodes.begin(), region.nodes.end(), producer) != region.nodes.end() ||
            !OfRows(view_.context(producer).out(0).shape, region.space) ||
            !view_.OnlyReadInside(producer, region.nodes)) {
          continue;
        }
        feeders.push_back(producer);
      }
    }
    return feeders;
  }

  // The shape of whole rows, or of one number for each.
  static bool OfRows(const Shape& shape, const Shape& space) {
    if (shape == space) return true;
    if (shape.rank() == 0 || shape.rank() != space.rank()) return false;
    Shape numbers = space;
    numbers[space.rank() - 1] = 1;
    return shape == numbers;
  }

  // The nodes as one program over `space`; nullopt when one of them cannot be a part of it.
  std::optional<Region> Written(std::vector<NodeId> nodes, const Shape& space) const {
    if (space.elements() == 0) return std::nullopt;
    std::sort(nodes.begin(), nodes.end(),
              [this](NodeId a, NodeId b) { return view_.Place(a) < view_.Place(b); });
    Region region;
    LoopBuilder loop(space);
    std::map<Value, LoopValue> computed;
    std::map<Value, int> tensors;
    for (const NodeId id : nodes) {
      const OpContext& op = view_.context(id);
      std::vector<LoopValue> fed(static_cast<size_t>(op.slots()), -1);
      std::vector<int> places(static_cast<size_t>(op.slots()), -1);
      for (int slot = 0; slot < op.slots(); ++slot) {
        const std::optional<Value> value = view_.SlotValue(id, slot);
        if (!value) continue;
        if (const auto found = computed.find(*value); found != computed.end()) {
          fed[static_cast<size_t>(slot)] = found->second;
          continue;
        }
        const auto [place, added] = tensors.try_emplace(*value, static_cast<int>(tensors.size()));
        if (added) region.inputs.emplace_back(*value);
        places[static_cast<size_t>(slot)] = place->second;
      }
      loop.Begin(op, std::move(fed), std::move(places));
      view_.op(id).loop(op, loop);
      if (loop.result() < 0) return std::nullopt;
      computed[{id, 0}] = loop.result();
    }
    const OpContext& last = view_.context(nodes.back());
    if (!OfRows(last.out(0).shape, space)) return std::nullopt;
    region.program = loop.Finish(loop.result(), last.out(0).dtype);
    region.program.Collapse();
    region.nodes = std::move(nodes);
    region.space = space;
    return region;
  }

  FusionView& view_;
  std::set<NodeId> inside_;
};

FusedStep StepOf(Region region, StaticKernel kernel) {
  FusedStep step;
  step.inputs = std::move(region.inputs);
  step.elementwise = !region.program.has_row_sums();
  step.make_kernel = [kernel = std::move(kernel)] {
    return Result<std::unique_ptr<Kernel>>(std::make_unique<LoopKernel>(kernel));
  };
  step.nodes = std::move(region.nodes);
  return step;
}

}  // namespace

void FuseStatic(FusionView& view, StaticKernelSource& source) {
  std::vector<Region> found = RegionFinder(view).Run();
  std::vector<StaticRegion> regions;
  for (Region& region : found) {
    StaticRegion& asked = regions.emplace_back();
    asked.program = region.program;
    for (const NodeId id : region.nodes)
      asked.operators.push_back({&view.op(id), &view.context(id)});
  }
  std::vector<StaticOperator> all;
  for (const NodeId id : view.order()) {
    if (view.Runs(id)) all.push_back({&view.op(id), &view.context(id)});
  }
  std::vector<StaticKernel> kernels = source.Make(regions, all);
  for (size_t i = 0; i < found.size(); ++i) {
    if (kernels[i].entry == nullptr) {
      view.Refuse(kStaticKernelPass, found[i].nodes.back(), "its static kernel could not be built");
      continue;
    }
    view.Take(StepOf(std::move(found[i]), std::move(kernels[i])));
  }
}

}  // namespace npumesh
