#include "tests/fuzz/engine/generator.h"

#include <algorithm>

#include "tests/fuzz/engine/draws.h"
#include "tests/fuzz/engine/interpreter.h"
#include "tests/fuzz/engine/plain_order.h"

namespace npumesh::fuzz {
namespace {

constexpr int kMostAttempts = 400;

// How often each family is drawn: every graph has another emphasis.
struct Family {
  std::vector<Draw> draws;
  int weight = 1;
};

std::vector<Family> FamiliesFor(Dice& dice) {
  std::vector<Family> families = {
      {PointwiseDraws(), 8}, {LayoutDraws(), 8},  {ShapingDraws(), 2}, {ReduceDraws(), 3},
      {GatherDraws(), 2},    {ProductDraws(), 2}, {InPlaceDraws(), 0}, {ControlFlowDraws(), 0}};
  if (dice.Chance(60)) families[6].weight = static_cast<int>(dice.Between(3, 12));
  if (dice.Chance(20)) families[7].weight = 2;
  if (dice.Chance(40)) families[2].weight = 0;
  if (dice.Chance(30)) families[5].weight = 8;
  return families;
}

const Draw& PickDraw(Dice& dice, const std::vector<Family>& families) {
  std::vector<const Family*> tickets;
  for (const Family& family : families) tickets.insert(tickets.end(), family.weight, &family);
  const std::vector<Draw>& draws = dice.Pick(tickets)->draws;
  std::vector<const Draw*> chosen;
  for (const Draw& draw : draws) chosen.insert(chosen.end(), draw.weight, &draw);
  return *dice.Pick(chosen);
}

void AddInputs(GraphWriter& w) {
  const int64_t count = w.dice().Between(2, 5);
  for (int64_t i = 0; i < count; ++i) {
    const int least_rank = w.dice().Chance(80) ? 1 : 0;
    w.AddInput(w.Random(w.RandomType(), w.RandomDims(least_rank)), w.dice().Chance(35));
  }
  w.AddConst(w.Random(w.RandomType(), {w.dice().Between(1, 3), w.dice().Between(1, 3)}));
}

void AddOperators(GraphWriter& w) {
  const std::vector<Family> families = FamiliesFor(w.dice());
  const int64_t count = w.dice().Chance(70) ? w.dice().Between(5, 15) : w.dice().Between(15, 40);
  for (int i = 0; i < kMostAttempts && w.emitted() < count; ++i) {
    PickDraw(w.dice(), families).draw(w);
  }
}

// Mostly what came last; some may be inputs or values that others overwrite.
std::vector<Value> PickOutputs(GraphWriter& w) {
  std::vector<Value> outputs;
  const auto count = static_cast<int64_t>(w.known().size());
  const int64_t wanted = w.dice().Between(1, 5);
  for (int64_t i = 0; i < wanted; ++i) {
    const int64_t back =
        w.dice().Chance(60) ? w.dice().Below(std::min<int64_t>(count, 8)) : w.dice().Below(count);
    outputs.push_back(w.known()[static_cast<size_t>(count - 1 - back)].value);
  }
  return outputs;
}

bool CanWait(const Node& node) {
  return node.type != "Data" && node.type != "RefData" && node.type != "Const";
}

// Control edges, most of them forward in the file; a graph stays without circles.
void AddControls(Dice& dice, Graph& graph) {
  const auto count = static_cast<int64_t>(graph.nodes().size());
  const int64_t wanted = dice.Chance(50) ? 0 : dice.Between(1, 5);
  for (int64_t i = 0; i < wanted; ++i) {
    auto before = static_cast<NodeId>(dice.Below(count));
    auto after = static_cast<NodeId>(dice.Below(count));
    if (before > after && dice.Chance(75)) std::swap(before, after);
    const bool fits =
        before != after && CanWait(graph.node(after)) && graph.node(before).type != "NetOutput";
    if (!fits || ReachedFrom(after, GraphEdges(graph))[static_cast<size_t>(before)]) continue;
    graph.node(after).controls.push_back(before);
  }
}

// The same graph with its nodes in another order in the file: readers may stand before producers,
// and the order of writers is another one.
Graph Shuffled(Dice& dice, const Graph& graph) {
  std::vector<NodeId> order;
  for (const Node& node : graph.nodes()) order.push_back(node.id);
  const auto count = static_cast<int64_t>(order.size());
  const int64_t swaps = dice.Between(1, count);
  for (int64_t i = 0; i < swaps; ++i) {
    std::swap(order[static_cast<size_t>(dice.Below(count))],
              order[static_cast<size_t>(dice.Below(count))]);
  }
  std::vector<NodeId> moved(order.size());
  for (size_t place = 0; place < order.size(); ++place) {
    moved[static_cast<size_t>(order[place])] = static_cast<NodeId>(place);
  }
  Graph made(graph.name());
  for (const NodeId id : order) {
    Node node = graph.node(id);
    for (std::optional<Value>& input : node.inputs) {
      if (input) input->node = moved[static_cast<size_t>(input->node)];
    }
    for (NodeId& control : node.controls) control = moved[static_cast<size_t>(control)];
    if (!made.Add(std::move(node)).ok()) return graph;
  }
  return made;
}

// Bytes written as numbers of another type may be any NaN, which the interpreter does not keep.
bool WritesThroughBitcast(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    const auto op = PlainOps().find(node.type);
    if (op == PlainOps().end() || !op->second.writes) continue;
    for (Value at = *node.inputs[0];;) {
      const Node& maker = graph.node(at.node);
      const auto made = PlainOps().find(maker.type);
      if (maker.type == "Bitcast") return true;
      const bool aliases = made != PlainOps().end() && (made->second.view || made->second.writes);
      if (!aliases || at.port != 0) break;
      at = *maker.inputs[0];
    }
  }
  return false;
}

// A ViewCopy takes its numbers when the graph is compiled, so nothing may overwrite them.
bool OverwritesNumbers(const Graph& graph) {
  const PlainOrder order(graph);
  for (const Node& node : graph.nodes()) {
    if (node.type != "ViewCopy") continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool number = node.input_descs[i].name != "dst" && node.input_descs[i].name != "src";
      if (number && order.HasWriters(order.RootOf(*node.inputs[i]))) return true;
    }
  }
  return false;
}

// ---- steps ----

int64_t NextOpenExtent(Dice& dice) {
  static const std::vector<int64_t> extents = {1, 2, 3, 5, 6, kOpenExtent};
  return dice.Chance(4) ? 0 : dice.Pick(extents);
}

Tensor LaterFeed(GraphWriter& w, const FedInput& input, int64_t extent) {
  if (input.sizes) {
    PlainTensor sizes = input.first;
    const auto last = sizes.count() - 1;
    // Only repeats and limits grow; an entry of -1 is no size.
    if (last >= 0 && sizes.at(last) > 0 && w.dice().Chance(40)) sizes.at(last) += 1;
    return ToTensor(sizes);
  }
  Extents dims = input.first.dims;
  for (int64_t& each : dims) {
    if (w.open() && IsOpen(each)) each = each / kOpenExtent * extent;
  }
  return ToTensor(w.Random(input.first.dtype, dims));
}

bool MayBeParameter(const GraphWriter& w, const Graph& graph, size_t position) {
  const FedInput& input = w.inputs()[position];
  if (input.ref || input.sizes || (w.open() && HasOpen(input.first.dims))) return false;
  const PlainOrder order(graph);
  return !order.HasWriters({graph.DataNodes()[position], 0});
}

void AddSteps(GraphWriter& w, FuzzCase& made) {
  const size_t inputs = w.inputs().size();
  for (size_t i = 0; i < inputs; ++i) {
    if (w.dice().Chance(35) && MayBeParameter(w, made.model.graph, i)) {
      made.parameters.push_back(static_cast<int>(i));
    }
  }
  std::vector<Tensor> first;
  for (const FedInput& input : w.inputs()) first.push_back(ToTensor(input.first));
  made.steps.push_back(first);
  const int64_t steps = w.dice().Between(1, 3);
  while (static_cast<int64_t>(made.steps.size()) < steps) {
    const int64_t extent = w.dice().Chance(30) ? kOpenExtent : NextOpenExtent(w.dice());
    std::vector<Tensor> fed;
    for (size_t i = 0; i < inputs; ++i) {
      const auto position = static_cast<int>(i);
      const FedInput& input = w.inputs()[i];
      const bool same = std::count(made.parameters.begin(), made.parameters.end(), position) > 0;
      const bool keeps =
          input.ref && w.dice().Chance(70) && !(w.open() && HasOpen(input.first.dims));
      fed.push_back(same ? first[i] : keeps ? Tensor() : LaterFeed(w, input, extent));
    }
    made.steps.push_back(std::move(fed));
  }
}

void KeepLegalSteps(FuzzCase& made) {
  const std::vector<StepResult> results = Interpret(made);
  const auto illegal = std::find_if(results.begin(), results.end(), [](const StepResult& step) {
    return step.meaning == Meaning::kIllegal;
  });
  made.steps.resize(static_cast<size_t>(illegal - results.begin()));
}

}  // namespace

FuzzCase Generate(uint64_t seed) {
  for (uint64_t attempt = 0;; ++attempt) {
    Dice dice(seed * 1000 + attempt);
    GraphWriter w(dice, dice.Chance(35));
    AddInputs(w);
    AddOperators(w);
    FuzzCase made;
    Result<Model> model = w.Finish(PickOutputs(w));
    if (!model.ok()) continue;
    made.model = std::move(*model);
    if (WritesThroughBitcast(made.model.graph)) continue;
    AddControls(dice, made.model.graph);
    if (OverwritesNumbers(made.model.graph)) continue;
    if (dice.Chance(15)) made.model.graph = Shuffled(dice, made.model.graph);
    AddSteps(w, made);
    KeepLegalSteps(made);
    if (!made.steps.empty()) return made;
  }
}

std::set<std::string> GeneratedTypes() {
  std::set<std::string> types = {"Data", "RefData", "Const",   "NetOutput",  "Maximum", "Minimum",
                                 "Tanh", "Swish",   "Sigmoid", "Floor",      "Add",     "Sub",
                                 "Adds", "Muls",    "Square",  "MaskedFill", "SelectV2"};
  for (const auto& family : {PointwiseDraws(), LayoutDraws(), ShapingDraws(), ReduceDraws(),
                             GatherDraws(), ProductDraws(), InPlaceDraws(), ControlFlowDraws()}) {
    for (const Draw& draw : family) types.insert(draw.types.begin(), draw.types.end());
  }
  return types;
}

}  // namespace npumesh::fuzz
