#include "graph/onnx/loop_writer.h"

#include <algorithm>

namespace npumesh {
namespace {

// Says on a Data node of a subgraph which input of the node around feeds it.
void NumberInput(Model& model, Value data, size_t input) {
  model.graph.node(data.node).attrs["_parent_node_index"] =
      AttrValue::Int(static_cast<int64_t>(input));
}

// The place of a captured value among the inputs of a node, from `first` on; it is added when it is
// not there. Inputs before are variables, which change even if they begin with the same value.
size_t PlaceIn(std::vector<Value>& list, size_t first, Value value) {
  const auto found = std::find(list.begin() + static_cast<int64_t>(first), list.end(), value);
  if (found != list.end()) return static_cast<size_t>(found - list.begin());
  list.push_back(value);
  return list.size() - 1;
}

// The models of bodies whose node has the inputs `fed`, the first `own` of them not captured;
// captures that no body had before are added to them.
Result<std::vector<Model>> FinishBodies(std::vector<SubgraphBody>& bodies, size_t own,
                                        std::vector<Value>& fed) {
  std::vector<Model> models;
  for (SubgraphBody& body : bodies) {
    const std::vector<GraphScope::Capture> captures = body.scope->captures();
    NPUMESH_ASSIGN_OR_RETURN(Model model, body.scope->emitter().Finish(body.outputs));
    for (size_t i = 0; i < body.variables.size(); ++i) {
      NumberInput(model, body.variables[i], i);
    }
    for (const GraphScope::Capture& capture : captures) {
      NumberInput(model, capture.inner, PlaceIn(fed, own, capture.outer));
    }
    models.push_back(std::move(model));
  }
  return models;
}

// A scope for a subgraph of `at`, and its variables.
SubgraphBody BeginBody(Lowering& at, const std::string& what,
                       const std::vector<TensorType>& types) {
  SubgraphBody body;
  body.scope = std::make_unique<GraphScope>(at.scope(), at.scope().GraphName(what));
  for (size_t i = 0; i < types.size(); ++i) {
    body.variables.push_back(body.scope->emitter().Data(fmt::format("variable_{}", i), types[i]));
  }
  return body;
}

class LoopWriter {
 public:
  LoopWriter(Lowering& at, Value turns, Value go_on, const std::vector<Value>& first,
             const WriteTurn& write)
      : at_(at), turns_(turns), write_(write) {
    first_ = {at.IntScalar(0), go_on};
    first_.insert(first_.end(), first.begin(), first.end());
    for (const Value value : first_) types_.push_back(at.emitter().type(value));
  }

  std::vector<Value> Run() {
    // Each repetition opens dimensions that a turn changes; ranks and all of them in the end.
    constexpr int kMostTries = 4;
    SubgraphBody body;
    for (int i = 0; i < kMostTries && at_.ok(); ++i) {
      body = WriteBody();
      if (!body.scope->emitter().ok() || !Widen(body)) break;
    }
    if (!at_.ok()) return {};
    if (!body.scope->emitter().ok()) {
      at_.emitter().Fail(body.scope->emitter().failure());
      return {};
    }
    return WriteWhile(std::move(body));
  }

 private:
  SubgraphBody WriteBody() {
    SubgraphBody body = BeginBody(at_, "body", types_);
    Lowering inner(at_.node(), at_.version(), body.scope->emitter(), {}, body.scope.get());
    const std::vector<Value> now(body.variables.begin() + 2, body.variables.end());
    LoopTurn turn = write_(*body.scope, inner, body.variables[0], now);
    if (turn.next.size() != now.size() && inner.ok()) {
      inner.Fail(Code::kCorrupt, "a turn of its body leaves {} values for {} variables",
                 turn.next.size(), now.size());
    }
    if (!inner.ok()) return body;
    body.outputs = {inner.Add(body.variables[0], inner.IntScalar(1)), turn.go_on};
    body.outputs.insert(body.outputs.end(), turn.next.begin(), turn.next.end());
    // A variable that is handed on is a separate value.
    for (Value& output : body.outputs) output = inner.Unary("Identity", output);
    return body;
  }

  // Whether types had to be widened, so that the body has to be written again.
  bool Widen(const SubgraphBody& body) {
    bool widened = false;
    for (size_t i = 0; i < types_.size(); ++i) {
      const TensorType common = CommonType(types_[i], body.scope->emitter().type(body.outputs[i]));
      widened |= common != types_[i];
      types_[i] = common;
    }
    return widened;
  }

  // number < turns and go_on
  SubgraphBody WriteCondition() {
    SubgraphBody body = BeginBody(at_, "condition", types_);
    Lowering inner(at_.node(), at_.version(), body.scope->emitter(), {}, body.scope.get());
    const Value turns = body.scope->CaptureOf(turns_);
    body.outputs = {inner.Binary("LogicalAnd", inner.Binary("Less", body.variables[0], turns),
                                 body.variables[1])};
    return body;
  }

  // Captures are variables of the While that stay as they are: bodies hand them on.
  std::vector<Value> WriteWhile(SubgraphBody body) {
    std::vector<SubgraphBody> bodies;
    bodies.push_back(WriteCondition());
    bodies.push_back(std::move(body));
    std::vector<Value> fed = first_;
    for (SubgraphBody& each : bodies) {
      for (const GraphScope::Capture& capture : each.scope->captures()) {
        PlaceIn(fed, first_.size(), capture.outer);
      }
    }
    for (size_t i = first_.size(); i < fed.size(); ++i) {
      const Value inner = bodies[1].scope->CaptureInput(fed[i]);
      bodies[1].outputs.push_back(
          bodies[1].scope->emitter().Op("Identity", {inner}, {}, fmt::format("kept_{}", i)));
      types_.push_back(at_.emitter().type(fed[i]));
    }
    Result<std::vector<Model>> models = FinishBodies(bodies, first_.size(), fed);
    if (!models.ok()) {
      at_.emitter().Fail(models.status());
      return {};
    }
    const Value loop = at_.Call("While", {fed.begin(), fed.end()}, *std::move(models), types_);
    std::vector<Value> last;
    for (size_t i = 2; i < first_.size(); ++i) {
      last.push_back(Lowering::Port(loop, static_cast<int>(i)));
    }
    return last;
  }

  Lowering& at_;
  Value turns_;
  const WriteTurn& write_;
  std::vector<Value> first_;
  std::vector<TensorType> types_;
};

}  // namespace

TensorType CommonType(const TensorType& a, const TensorType& b) {
  TensorType common = a;
  if (a.dtype != b.dtype && b.dtype != DataType::kUndefined) common.dtype = DataType::kUndefined;
  if (!a.shape.has_rank() || !b.shape.has_rank() || a.shape.rank() != b.shape.rank()) {
    common.shape = Shape::UnknownRank();
    return common;
  }
  for (int d = 0; d < a.shape.rank(); ++d) {
    if (a.shape[d] != b.shape[d]) common.shape[d] = kUnknownDim;
  }
  return common;
}

std::vector<Value> WriteLoop(Lowering& at, Value turns, Value go_on,
                             const std::vector<Value>& first, const WriteTurn& write) {
  if (!at.ok()) return {};
  return LoopWriter(at, turns, go_on, first, write).Run();
}

std::vector<Value> WriteIf(Lowering& at, Value condition, SubgraphBody yes, SubgraphBody no) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < yes.outputs.size(); ++i) {
    const TensorType& of_yes = yes.scope->emitter().type(yes.outputs[i]);
    const TensorType& of_no = no.scope->emitter().type(no.outputs[i]);
    types.push_back(CommonType(yes.misfit.ok() ? of_yes : of_no, no.misfit.ok() ? of_no : of_yes));
  }
  std::vector<SubgraphBody> bodies;
  bodies.push_back(std::move(yes));
  bodies.push_back(std::move(no));
  std::vector<Value> fed = {condition};
  Result<std::vector<Model>> models = FinishBodies(bodies, fed.size(), fed);
  if (!models.ok()) {
    at.emitter().Fail(models.status());
    return {};
  }
  const Value node = at.Call("If", {fed.begin(), fed.end()}, *std::move(models), types);
  std::vector<Value> outputs;
  for (size_t i = 0; i < types.size(); ++i) {
    outputs.push_back(Lowering::Port(node, static_cast<int>(i)));
  }
  return outputs;
}

}  // namespace npumesh
