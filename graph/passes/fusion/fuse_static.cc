// StaticKernelPass: operators that say how they are computed as loops (Operator::loop) become
// static kernels, together with what feeds them. What others read as well becomes an output of the
// kernel, where they read it after the kernel's place.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "graph/passes/fusion/fusion_view.h"

namespace npumesh {
namespace {

// Longer functions compile slowly and no longer keep their values in registers.
constexpr size_t kMostOperators = 32;
// A kernel takes sixteen elements at a time: shorter rows waste what a region saves.
constexpr int64_t kShortRow = 16;

// By operator, the shape of whole rows where it stands: views between operators rename dimensions.
using Frames = std::map<NodeId, Shape>;

// Operators that are one program.
struct Region {
  Frames frames;              // its operators
  std::vector<NodeId> nodes;  // these and the views between them, in execution order
  Shape space;                // of whole rows
  LoopProgram program;
  std::vector<std::optional<Value>> inputs;  // by slot of the kernel
  std::vector<TensorType> input_types;       // of these
  std::vector<Value> outputs;                // as FusedStep::outputs

  NodeId last() const { return nodes.back(); }
};

// A region, or why it cannot be: a literal.
struct Attempt {
  std::optional<Region> region;
  std::string_view why;
};

// The shape of whole rows, or of one number for each.
bool OfRows(const Shape& shape, const Shape& frame) {
  if (shape == frame) return true;
  if (shape.rank() == 0 || shape.rank() != frame.rank()) return false;
  Shape numbers = frame;
  numbers[frame.rank() - 1] = 1;
  return shape == numbers;
}

int64_t RowOf(const Shape& frame) {
  return frame.rank() == 0 ? 1 : frame.dims().back();
}

// Whether rows of `from` that an operator reads in `shape` are its rows, which are those of `to`.
bool SameRows(const Shape& shape, const Shape& from, const Shape& to) {
  if (shape.elements() == to.elements()) return true;
  return OfRows(shape, to) && RowOf(from) == RowOf(to);
}

// A value without the views that it is seen through.
struct Source {
  Value value;
  std::vector<NodeId> views;
};

// Writes the operators of `frames` as one program: the last of them in execution order, and others
// that feed it.
class RegionWriter {
 public:
  RegionWriter(const FusionView& view, const Frames& frames) : view_(view), frames_(frames) {
    for (const auto& [id, frame] : frames_) operators_.push_back(id);
    std::sort(operators_.begin(), operators_.end(),
              [this](NodeId a, NodeId b) { return view_.Place(a) < view_.Place(b); });
  }

  // The shape of whole rows where the last operator stands.
  const Shape& last_frame() const { return frames_.at(operators_.back()); }

  // REQUIRES: called once.
  Attempt Write(const Shape& space) {
    region_.space = space;
    LoopBuilder loop(space);
    for (const NodeId id : operators_) {
      const std::string_view why = Add(id, loop);
      if (!why.empty()) return {std::nullopt, why};
    }
    const std::string_view why = Finish(loop);
    if (!why.empty()) return {std::nullopt, why};
    region_.frames = frames_;
    return {std::move(region_), {}};
  }

 private:
  // Says what is in the way, as does Finish.
  std::string_view Add(NodeId id, LoopBuilder& loop) {
    const OpContext& op = view_.context(id);
    std::vector<LoopValue> fed(static_cast<size_t>(op.slots()), -1);
    std::vector<int> places(static_cast<size_t>(op.slots()), -1);
    for (int slot = 0; slot < op.slots(); ++slot) {
      const std::optional<Value> value = view_.SlotValue(id, slot);
      if (!value) continue;
      const Source source = SourceOf(*value);
      const auto frame = frames_.find(source.value.node);
      if (frame == frames_.end()) {
        places[static_cast<size_t>(slot)] = PlaceOf(*value, op.in(slot));
        continue;
      }
      const auto known = computed_.find(source.value);
      if (known == computed_.end()) return "an output that is read has no loop form";
      if (!SameRows(op.in(slot).shape, frame->second, frames_.at(id))) {
        return "a view between them has other rows";
      }
      fed[static_cast<size_t>(slot)] = known->second;
      views_.insert(source.views.begin(), source.views.end());
    }
    loop.Begin(op, frames_.at(id), std::move(fed), std::move(places));
    view_.op(id).loop(op, loop);
    if (loop.result() < 0) {
      return loop.why().empty() ? "its types or shapes have no loop form" : loop.why();
    }
    for (int port = 0; port < op.outputs(); ++port) {
      if (loop.result(port) >= 0) computed_[{id, port}] = loop.result(port);
    }
    return "";
  }

  // What the value is a view of, through views that no other step has.
  Source SourceOf(Value value) const {
    Source source = {value, {}};
    while (source.value.port == 0 && view_.IsFreeView(source.value.node)) {
      const std::optional<Value> before = view_.SlotValue(source.value.node, 0);
      if (!before) break;
      source.views.push_back(source.value.node);
      source.value = *before;
    }
    return source;
  }

  // Where the kernel finds a tensor.
  int PlaceOf(Value value, const TensorType& type) {
    const auto [place, added] =
        tensors_.try_emplace(value, static_cast<int>(region_.inputs.size()));
    if (added) {
      region_.inputs.emplace_back(value);
      region_.input_types.push_back(type);
    }
    return place->second;
  }

  std::string_view Finish(LoopBuilder& loop) {
    const NodeId last = operators_.back();
    region_.nodes = operators_;
    region_.nodes.insert(region_.nodes.end(), views_.begin(), views_.end());
    for (int port = 0; port < view_.context(last).outputs(); ++port) {
      const Value value = {last, port};
      const bool read = port == 0 || view_.IsReadOutside(value, region_.nodes);
      if (read || computed_.contains(value)) region_.outputs.push_back(value);
    }
    for (const NodeId id : operators_) {
      for (int port = 0; id != last && port < view_.context(id).outputs(); ++port) {
        if (view_.IsReadOutside({id, port}, region_.nodes)) region_.outputs.push_back({id, port});
      }
    }
    const std::string_view why = view_.WhyNotFuse(region_.nodes, region_.inputs, region_.outputs);
    return why.empty() ? WriteOutputs(loop) : why;
  }

  std::string_view WriteOutputs(LoopBuilder& loop) {
    for (const Value output : region_.outputs) {
      const auto known = computed_.find(output);
      if (known == computed_.end()) return "an output that is read has no loop form";
      loop.Write(known->second, TypeOf(output).dtype);
    }
    region_.program = loop.Finish();
    for (size_t i = 0; i < region_.outputs.size(); ++i) {
      if (!IsWritten(region_.outputs[i], region_.program.outputs[i].value)) {
        return "an output is not of its rows";
      }
    }
    const int64_t columns = region_.program.columns;
    region_.program.Collapse();
    const bool cut = columns < RowOf(last_frame());
    return cut && region_.program.columns < kShortRow ? "views leave it short rows" : "";
  }

  // Whether a value of the program has the elements of this output: those of its rows, or one for
  // each of them.
  bool IsWritten(Value output, LoopValue value) const {
    const LoopProgram& program = region_.program;
    const Shape& shape = TypeOf(output).shape;
    const bool row = program.instructions[static_cast<size_t>(value)].row;
    return shape.elements() == program.rows() * (row ? 1 : program.columns);
  }

  const TensorType& TypeOf(Value value) const { return view_.context(value.node).out(value.port); }

  const FusionView& view_;
  const Frames& frames_;
  std::vector<NodeId> operators_;  // in execution order
  std::set<NodeId> views_;
  std::map<Value, LoopValue> computed_;
  std::map<Value, int> tensors_;
  Region region_;
};

// The operators as one program, on the rows of the last one if all of them can be walked so, else
// on shorter ones.
Attempt Write(const FusionView& view, const Frames& frames) {
  std::vector<Shape> shapes;
  for (const auto& [id, frame] : frames) shapes.push_back(frame);
  if (shapes[0].elements() == 0) return {std::nullopt, "it has no elements"};
  const std::optional<Shape> common = CommonSpace(shapes);
  if (!common) return {std::nullopt, "a view between them cuts across their dimensions"};
  RegionWriter writer(view, frames);
  const Shape space = writer.last_frame();
  Attempt attempt = writer.Write(space);
  if (attempt.region || *common == space) return attempt;
  return RegionWriter(view, frames).Write(*common);
}

class RegionFinder {
 public:
  explicit RegionFinder(FusionView& view) : view_(view) {}

  // From the end of the graph to its start, so that a region is found at its last operator.
  std::vector<Region> Run() {
    std::vector<Region> regions;
    for (auto id = view_.order().rbegin(); id != view_.order().rend(); ++id) {
      if (inside_.contains(*id) || !view_.Free(*id) || view_.op(*id).view) continue;
      Attempt alone = Alone(*id);
      if (!alone.region) {
        whys_[*id] = alone.why;
        continue;
      }
      Region region = Grown(std::move(*alone.region));
      for (const auto& [inside, frame] : region.frames) {
        inside_.insert(inside);
        // It may have been too early for another reader.
        if (inside != region.last()) whys_.erase(inside);
      }
      regions.push_back(std::move(region));
    }
    return regions;
  }

  // Of operators that are in no region, or end one: why they are not in that of a reader.
  std::map<NodeId, std::string_view> TakeWhys() { return std::move(whys_); }

 private:
  std::string_view WhyNotAvailable(NodeId id) const {
    const Operator& op = view_.op(id);
    if (op.loop == nullptr) return "it has no loop form";
    if (!op.in_place.empty()) return "it overwrites an input";
    if (view_.context(id).out(0).shape.elements() == 0) return "it has no elements";
    return "";
  }

  bool Available(NodeId id) const {
    return view_.Free(id) && !inside_.contains(id) && WhyNotAvailable(id).empty();
  }

  // One operator, on the rows of its output, or of what it sums up.
  Attempt Alone(NodeId id) const {
    if (const std::string_view why = WhyNotAvailable(id); !why.empty()) return {std::nullopt, why};
    const OpContext& op = view_.context(id);
    Attempt attempt = Write(view_, {{id, op.out(0).shape}});
    if (attempt.region || op.slots() == 0 || op.in(0).shape == op.out(0).shape) return attempt;
    Attempt summed = Write(view_, {{id, op.in(0).shape}});
    return summed.region ? std::move(summed) : std::move(attempt);
  }

  // With all that feeds it. What is refused once stays so: its reasons do not go away.
  Region Grown(Region region) {
    std::set<NodeId> refused;
    for (bool grew = true; grew;) {
      grew = false;
      for (auto& [id, frame] : FeedersOf(region)) {
        if (refused.contains(id)) continue;
        Frames frames = region.frames;
        frames.emplace(id, std::move(frame));
        Attempt larger = Write(view_, frames);
        if (!larger.region) {
          whys_[id] = larger.why;
          refused.insert(id);
          continue;
        }
        region = std::move(*larger.region);
        grew = true;
        break;
      }
    }
    return region;
  }

  // Operators that give the region its rows, with the shape of whole rows there. Says of
  // others why they are none.
  std::vector<std::pair<NodeId, Shape>> FeedersOf(const Region& region) {
    std::vector<std::pair<NodeId, Shape>> feeders;
    for (const auto& [id, frame] : region.frames) {
      for (int slot = 0; slot < view_.context(id).slots(); ++slot) {
        std::optional<Value> value = view_.SlotValue(id, slot);
        while (value && value->port == 0 && view_.IsFreeView(value->node)) {
          value = view_.SlotValue(value->node, 0);
        }
        if (!value || region.frames.contains(value->node) || !Available(value->node)) continue;
        std::optional<Shape> before = FrameOf(*value, view_.context(id).in(slot).shape, frame);
        if (!before) {
          whys_.try_emplace(value->node, "what reads it has other rows");
        } else if (IsReadEarly(value->node, region)) {
          whys_.try_emplace(value->node, "others read it before the kernel of its reader ends");
        } else if (region.frames.size() >= kMostOperators) {
          whys_.try_emplace(value->node,
                            "the kernel of its reader has as many operators as it may");
        } else {
          feeders.emplace_back(value->node, std::move(*before));
        }
      }
    }
    return feeders;
  }

  // Others read an output of the operator before the region could give it.
  bool IsReadEarly(NodeId id, const Region& region) const {
    for (int port = 0; port < view_.context(id).outputs(); ++port) {
      if (view_.IsReadUntil({id, port}, region.nodes, view_.Place(region.last()))) return true;
    }
    return false;
  }

  // The shape of whole rows where the value is computed that an operator on whole rows of `frame`
  // reads in `shape`, perhaps through views; nullopt: it is neither these rows nor a number for
  // each.
  std::optional<Shape> FrameOf(Value value, const Shape& shape, const Shape& frame) const {
    const OpContext& op = view_.context(value.node);
    Shape own = op.out(value.port).shape;
    if (shape.elements() == frame.elements()) return own;
    if (!OfRows(shape, frame)) return std::nullopt;
    if (own.rank() > 0 && own.dims().back() == 1) {
      own[own.rank() - 1] = RowOf(frame);
      return own;
    }
    const Shape& first = op.out(0).shape;
    if (first.elements() != frame.elements() || RowOf(first) != RowOf(frame)) return std::nullopt;
    return first;
  }

  FusionView& view_;
  std::set<NodeId> inside_;
  std::map<NodeId, std::string_view> whys_;
};

FusedStep StepOf(Region region, StaticKernel kernel) {
  FusedStep step;
  step.inputs = std::move(region.inputs);
  step.outputs = std::move(region.outputs);
  const LoopProgram& program = region.program;
  // One number for each row is written where another row may still be read.
  const LoopValue first = program.outputs[0].value;
  step.elementwise =
      !program.has_row_sums() &&
      (program.columns == 1 || !program.instructions[static_cast<size_t>(first)].row);
  step.make_kernel = [kernel = std::move(kernel)] {
    return Result<std::unique_ptr<Kernel>>(std::make_unique<LoopKernel>(kernel));
  };
  step.nodes = std::move(region.nodes);
  return step;
}

}  // namespace

void FuseStatic(FusionView& view, StaticKernelSource& source) {
  RegionFinder finder(view);
  std::vector<Region> found = finder.Run();
  std::map<NodeId, std::string_view> whys = finder.TakeWhys();
  std::vector<StaticRegion> regions;
  for (Region& region : found) {
    StaticRegion& asked = regions.emplace_back();
    asked.program = region.program;
    asked.inputs = region.input_types;
    for (const Value output : region.outputs) {
      asked.outputs.push_back(view.context(output.node).out(output.port));
    }
    for (const NodeId id : region.nodes) {
      if (region.frames.contains(id)) asked.operators.push_back({&view.op(id), &view.context(id)});
    }
  }
  std::vector<StaticOperator> all;
  for (const NodeId id : view.order()) {
    if (view.Runs(id)) all.push_back({&view.op(id), &view.context(id)});
  }
  std::vector<StaticKernel> kernels = source.Make(regions, all);
  for (size_t i = 0; i < found.size(); ++i) {
    if (kernels[i].entry == nullptr) {
      whys[found[i].last()] = "its static kernel could not be built";
      continue;
    }
    view.Take(StepOf(std::move(found[i]), std::move(kernels[i])));
  }
  for (const NodeId id : view.order()) {
    if (const auto why = whys.find(id); why != whys.end()) {
      view.Refuse(kStaticKernelPass, id, why->second);
    }
  }
}

}  // namespace npumesh
