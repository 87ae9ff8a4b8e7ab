// If, Loop and Scan.
#include <algorithm>
#include <span>

#include "graph/onnx/graph_scope.h"
#include "graph/onnx/loop_writer.h"
#include "graph/onnx/mistakes.h"
#include "graph/onnx/op_table.h"

namespace npumesh {
namespace {

// The graph that an attribute holds. Error: it holds none.
const OnnxGraph* BodyOf(Lowering& at, std::string_view name) {
  const OnnxAttribute* const attribute = at.node().Find(name);
  if (attribute != nullptr && attribute->graph != nullptr) return attribute->graph.get();
  at.Fail(Code::kCorrupt, "has no graph \"{}\"", name);
  return nullptr;
}

// ---- If ----

// A branch whose nodes refuse their inputs (those of another rate of samples, of another rank) may
// be one that is never taken: it fails when it is.
SubgraphBody WriteBranch(Lowering& at, const OnnxGraph& graph, const std::string& name,
                         std::vector<OnnxValue>& results) {
  SubgraphBody body;
  body.scope = std::make_unique<GraphScope>(at.scope(), at.scope().GraphName(name));
  GraphEmitter& emitter = body.scope->emitter();
  emitter.KeepMisfits();
  body.scope->Walk(graph);
  if (IsUnsaid(emitter.failure()) && emitter.misfit()) {
    (void)emitter.TakeFailure();
    body.misfit = OneOf(emitter.misfits());
    results.assign(graph.outputs.size(), OnnxValue::Of(*emitter.misfit()));
  } else {
    results = body.scope->OutputsOf(graph);
  }
  for (const OnnxValue& result : results) {
    for (const Value item : result.items) {
      // What comes from outside is a separate value.
      body.outputs.push_back(body.scope->emitter().Op("Identity", {item}, {}, "result"));
    }
  }
  if (!body.scope->emitter().ok()) at.emitter().Fail(body.scope->emitter().failure());
  return body;
}

// A condition that is known chooses now; a sequence has as many elements in both branches.
void LowerIf(Lowering& at) {
  const OnnxGraph *yes = BodyOf(at, "then_branch"), *no = BodyOf(at, "else_branch");
  const Value condition = at.in(0);
  if (!at.ok()) return;
  if (const auto known = at.KnownInts(condition); known && known->size() == 1) {
    const OnnxGraph& taken = known->at(0) != 0 ? *yes : *no;
    GraphScope branch(at.scope(), true);
    branch.Walk(taken);
    const std::vector<OnnxValue> results = branch.OutputsOf(taken);
    for (size_t i = 0; i < results.size(); ++i) at.Out(static_cast<int>(i), results[i]);
    return;
  }
  std::vector<OnnxValue> results, others;
  SubgraphBody then_body = WriteBranch(at, *yes, "then", results);
  SubgraphBody else_body = WriteBranch(at, *no, "else", others);
  if (!then_body.misfit.ok() && !else_body.misfit.ok()) {
    at.emitter().Fail(OneOf({then_body.misfit, else_body.misfit}));
  }
  if (!at.ok()) return;
  for (size_t i = 0; i < results.size() && i < others.size(); ++i) {
    if (results[i].items.size() == others[i].items.size()) continue;
    return at.Refuse("output {} is a sequence of {} elements in one branch and of {} in the other",
                     i, results[i].items.size(), others[i].items.size());
  }
  if (results.size() != others.size()) {
    return at.Fail(Code::kCorrupt, "has branches with {} and {} outputs", results.size(),
                   others.size());
  }
  // A condition of one element is a scalar: ours counts the elements of anything else.
  const Value scalar = at.Reshape(condition, {});
  const std::vector<Value> outputs =
      WriteIf(at, scalar, std::move(then_body), std::move(else_body));
  size_t next = 0;
  for (size_t i = 0; i < results.size() && at.ok(); ++i) {
    OnnxValue result = results[i];
    for (Value& item : result.items) item = outputs[next++];
    at.Out(static_cast<int>(i), result);
  }
}

// ---- Loop and Scan ----

// An output to which each turn adds a row, as variables of a While. Where the size of a row is
// known the variable is the output. Otherwise rows of the first turn and of none would not fit
// together, so the variables are the elements, the shape of the last row, and the number of rows.
class GrowingRows {
 public:
  // `axis`: of the output, along which the rows stand; `in_front`: the last turn comes first.
  GrowingRows(Lowering& at, const TensorType& row, int64_t axis, bool in_front)
      : row_(row), axis_(axis), in_front_(in_front) {
    if (!row.shape.has_rank() || row.dtype == DataType::kUndefined) {
      at.Refuse("the type of what each turn adds to an output is not known before the model runs");
      return;
    }
    // Open dimensions of an output without rows are 0.
    for (int64_t& dim : row_.shape.mutable_dims()) dim = std::max<int64_t>(dim, 0);
    const auto nothing = [&](const std::vector<int64_t>& dims) {
      return at.emitter().Const(Tensor::Allocate({row.dtype, Shape(dims)}));
    };
    if (row.shape.is_static()) {
      std::vector<int64_t> dims = row.shape.dims();
      dims.insert(dims.begin() + axis, 0);
      first_ = {nothing(dims)};
    } else {
      first_ = {nothing({0}), at.Ints(row_.shape.dims()), at.Ints({0})};
    }
  }

  // The variables before the first turn.
  const std::vector<Value>& first() const { return first_; }

  // The variables after a turn that began with `now` and left `row`.
  std::vector<Value> After(Lowering& body, std::span<const Value> now, Value row) const {
    const bool whole = now.size() == 1;
    const Value more = whole ? body.Unsqueeze(row, {axis_}) : body.Reshape(row, {-1});
    const std::vector<Value> parts =
        in_front_ ? std::vector{more, now[0]} : std::vector{now[0], more};
    const Value all = body.Concat(parts, whole ? axis_ : 0);
    if (whole) return {all};
    return {all, body.ShapeOf(row), body.Add(now[2], body.Ints({1}))};
  }

  // The output, of the variables after the last turn.
  Value Output(Lowering& at, std::span<const Value> last) const {
    if (last.size() == 1) return last[0];
    const int rank = row_.shape.rank() + 1;
    const Value rows = at.ReshapeTo(last[0], at.Concat({last[2], last[1]}, 0), rank);
    if (axis_ == 0) return rows;
    std::vector<int64_t> perm(static_cast<size_t>(rank));
    for (int64_t d = 0; d < rank; ++d) {
      perm[static_cast<size_t>(d)] = d < axis_ ? d + 1 : d == axis_ ? 0 : d;
    }
    return at.Transpose(rows, perm);
  }

 private:
  TensorType row_;
  int64_t axis_;
  bool in_front_;
  std::vector<Value> first_;
};

// The variables of all growing outputs after a turn that left `rows`; `now` holds theirs.
void AddRows(Lowering& body, const std::vector<GrowingRows>& outputs, std::span<const Value> now,
             std::span<const Value> rows, std::vector<Value>& next) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t count = outputs[i].first().size();
    for (const Value value : outputs[i].After(body, now.first(count), rows[i])) {
      next.push_back(value);
    }
    now = now.subspan(count);
  }
}

// Their outputs, of the variables after the last turn.
std::vector<Value> WholeRows(Lowering& at, const std::vector<GrowingRows>& outputs,
                             std::span<const Value> last) {
  std::vector<Value> whole;
  for (const GrowingRows& output : outputs) {
    const size_t count = output.first().size();
    whole.push_back(output.Output(at, last.first(count)));
    last = last.subspan(count);
  }
  return whole;
}

// Types of what a body leaves, found by writing it once for nothing.
std::vector<TensorType> ProbeOutputs(Lowering& at, const OnnxGraph& graph,
                                     const std::vector<TensorType>& inputs) {
  if (graph.inputs.size() != inputs.size()) {
    at.Fail(Code::kCorrupt, "has a body of {} inputs; its operands ask for {}", graph.inputs.size(),
            inputs.size());
    return {};
  }
  GraphScope scope(at.scope(), at.scope().GraphName("probe"));
  for (size_t i = 0; i < graph.inputs.size() && i < inputs.size(); ++i) {
    scope.Define(graph.inputs[i].name,
                 OnnxValue::Of(scope.emitter().Data(graph.inputs[i].name, inputs[i])));
  }
  scope.Walk(graph);
  std::vector<TensorType> types;
  for (const OnnxValue& output : scope.OutputsOf(graph)) {
    types.push_back(output.items.size() == 1 ? scope.emitter().type(output.items[0])
                                             : TensorType());
  }
  if (!scope.emitter().ok()) at.emitter().Fail(scope.emitter().failure());
  return types;
}

// Runs the nodes of a body in `scope` with these inputs; one tensor for each output.
std::vector<Value> WalkBody(GraphScope& scope, const OnnxGraph& graph,
                            const std::vector<Value>& inputs) {
  for (size_t i = 0; i < graph.inputs.size() && i < inputs.size(); ++i) {
    scope.Define(graph.inputs[i].name, OnnxValue::Of(inputs[i]));
  }
  scope.Walk(graph);
  std::vector<Value> outputs;
  for (const OnnxValue& output : scope.OutputsOf(graph)) {
    if (output.items.size() == 1 && output.kind == OnnxKind::kTensor) {
      outputs.push_back(output.items[0]);
      continue;
    }
    scope.emitter().Fail(Error(Code::kUnsupported,
                               "graph \"{}\": a loop carries a sequence or an optional, whose "
                               "length would have to be known",
                               graph.name));
  }
  return outputs;
}

// Whether an operand that the turns carry is a sequence or an optional.
bool CarriesSequence(Lowering& at) {
  for (int i = 2; i < at.inputs(); ++i) {
    if (at.has(i) && at.operand(i).kind != OnnxKind::kTensor) return true;
  }
  return false;
}

// One turn after the other, written down. Error: how many there are is not known now.
void UnrollLoop(Lowering& at, const OnnxGraph& graph) {
  const auto turns = at.has(0) ? at.KnownInts(at.in(0)) : std::nullopt;
  std::optional<double> go_on = at.has(1) ? at.KnownNumber(at.in(1)) : 1;
  constexpr const char* kUnknown =
      "a loop that carries a sequence, and whose number of turns is not known when it is imported";
  if (!turns || turns->size() != 1 || !go_on) return at.Refuse("{}", kUnknown);
  std::vector<OnnxValue> now;
  for (int i = 2; i < at.inputs(); ++i) now.push_back(at.operand(i));
  std::vector<std::vector<Value>> rows;
  if (!at.Affords((*turns)[0])) return;
  for (int64_t turn = 0; turn < (*turns)[0] && *go_on != 0 && at.ok(); ++turn) {
    GraphScope scope(at.scope(), true);
    std::vector<OnnxValue> inputs = {OnnxValue::Of(at.IntScalar(turn)),
                                     OnnxValue::Of(at.Scalar(1, DataType::kBool))};
    inputs.insert(inputs.end(), now.begin(), now.end());
    for (size_t i = 0; i < graph.inputs.size() && i < inputs.size(); ++i) {
      scope.Define(graph.inputs[i].name, inputs[i]);
    }
    scope.Walk(graph);
    const std::vector<OnnxValue> outputs = scope.OutputsOf(graph);
    if (!at.ok() || outputs.size() < now.size() + 1 || outputs[0].items.size() != 1) return;
    go_on = at.KnownNumber(outputs[0].items[0]);
    if (!go_on) return at.Refuse("{}", kUnknown);
    rows.resize(outputs.size() - 1 - now.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const Value row : outputs[i + 1 + now.size()].items) {
        rows[i].push_back(at.Unsqueeze(row, {0}));
      }
    }
    for (size_t i = 0; i < now.size(); ++i) now[i] = outputs[i + 1];
  }
  for (size_t i = 0; i < now.size(); ++i) at.Out(static_cast<int>(i), now[i]);
  for (size_t i = 0; i < rows.size() && at.ok(); ++i) {
    at.Out(static_cast<int>(now.size() + i), at.Concat(rows[i], 0));
  }
}

// Body: (turn, go on, variables...) -> (go on, variables..., rows...).
void LowerLoop(Lowering& at) {
  const OnnxGraph* const graph = BodyOf(at, "body");
  if (graph == nullptr) return;
  if (CarriesSequence(at)) return UnrollLoop(at, *graph);
  std::vector<Value> first;
  for (int i = 2; i < at.inputs(); ++i) first.push_back(at.in(i));
  const size_t variables = first.size();
  const Value turns =
      at.has(0) ? at.Reshape(at.Cast(at.in(0), DataType::kInt64), {}) : at.IntScalar(INT64_MAX);
  const Value go_on = at.has(1) ? at.Reshape(at.in(1), {}) : at.Scalar(1, DataType::kBool);
  if (!at.ok()) return;
  std::vector<TensorType> types = {{DataType::kInt64, Shape()}, {DataType::kBool, Shape()}};
  for (const Value value : first) types.push_back(at.emitter().type(value));
  const std::vector<TensorType> left = ProbeOutputs(at, *graph, types);
  std::vector<GrowingRows> growing;
  for (size_t i = variables + 1; i < left.size() && at.ok(); ++i) {
    growing.emplace_back(at, left[i], 0, false);
    first.insert(first.end(), growing.back().first().begin(), growing.back().first().end());
  }
  const std::vector<Value> last = WriteLoop(
      at, turns, go_on, first,
      [&](GraphScope& scope, Lowering& body, Value turn, const std::vector<Value>& now) {
        std::vector<Value> inputs = {turn, body.Scalar(1, DataType::kBool)};
        inputs.insert(inputs.end(), now.begin(), now.begin() + static_cast<int64_t>(variables));
        const std::vector<Value> outputs = WalkBody(scope, *graph, inputs);
        LoopTurn next;
        if (outputs.size() != variables + growing.size() + 1) return next;
        next.go_on = body.Reshape(outputs[0], {});
        const std::span<const Value> left_now = std::span(outputs).subspan(1);
        next.next.assign(left_now.begin(), left_now.begin() + static_cast<int64_t>(variables));
        AddRows(body, growing, std::span(now).subspan(variables), left_now.subspan(variables),
                next.next);
        return next;
      });
  if (!at.ok()) return;
  for (size_t i = 0; i < variables; ++i) at.Out(static_cast<int>(i), last[i]);
  const std::vector<Value> whole = WholeRows(at, growing, std::span(last).subspan(variables));
  for (size_t i = 0; i < whole.size() && at.ok(); ++i) {
    at.Out(static_cast<int>(variables + i), whole[i]);
  }
}

// Body: (variables..., one row of each scanned operand...) -> (variables..., rows...).
void LowerScan(Lowering& at) {
  const OnnxGraph* const graph = BodyOf(at, "body");
  const bool batches = at.version() < 9;  // operand 0: lengths; the first dimension is the batch
  const int skip = batches ? 1 : 0;
  const int64_t asked = at.Int("num_scan_inputs", 1);
  if (graph == nullptr) return;
  if (asked < 1 || asked > at.inputs() - skip) {
    return at.Fail(Code::kCorrupt, "scans {} of its {} operands", asked, at.inputs() - skip);
  }
  const auto scanned = static_cast<int>(asked);
  const int variables = at.inputs() - scanned - skip;
  if (batches && at.has(0)) return at.Refuse("sequence_lens of version 8 are not translated");
  std::vector<Value> first, operands;
  for (int i = 0; i < variables; ++i) first.push_back(at.in(i + skip));
  std::vector<int64_t> axes = at.IntList("scan_input_axes"),
                       ways = at.IntList("scan_input_directions");
  std::vector<int64_t> out_axes = at.IntList("scan_output_axes"),
                       out_ways = at.IntList("scan_output_directions");
  if (batches) ways = at.IntList("directions");
  axes.resize(static_cast<size_t>(scanned), 0);
  ways.resize(static_cast<size_t>(scanned), 0);
  for (int i = 0; i < scanned; ++i) operands.push_back(at.in(i + skip + variables));
  if (!at.ok()) return;
  if (batches) {
    // A batch of one is what is left when the dimension goes; others would be loops in loops.
    for (std::vector<Value>* list : {&first, &operands}) {
      for (Value& value : *list) {
        if (at.Dim(value, 0) != 1) return at.Refuse("version 8 with a batch of more than one");
        value = at.Squeeze(value, {0});
      }
    }
  }
  std::vector<TensorType> types;
  for (const Value value : first) types.push_back(at.emitter().type(value));
  for (size_t i = 0; i < operands.size(); ++i) {
    const int rank = at.Rank(operands[i]);
    axes[i] = at.Axis(axes[i], rank);
    if (!at.ok()) return;
    TensorType row = at.emitter().type(operands[i]);
    row.shape.mutable_dims().erase(row.shape.mutable_dims().begin() + axes[i]);
    types.push_back(row);
  }
  const std::vector<TensorType> left = ProbeOutputs(at, *graph, types);
  const size_t states = first.size();
  if (at.ok() && left.size() < states) {
    at.Fail(Code::kCorrupt, "has a body of {} outputs for {} variables", left.size(), states);
  }
  if (!at.ok()) return;
  out_axes.resize(left.size() - states, 0);
  out_ways.resize(left.size() - states, 0);
  std::vector<GrowingRows> growing;
  for (size_t i = states; i < left.size() && at.ok(); ++i) {
    const int64_t axis = at.Axis(out_axes[i - states], left[i].shape.rank() + 1);
    growing.emplace_back(at, left[i], axis, out_ways[i - states] != 0);
    first.insert(first.end(), growing.back().first().begin(), growing.back().first().end());
  }
  if (!at.ok()) return;
  const Value turns = at.Reshape(at.DimOf(operands[0], axes[0]), {});
  std::vector<Value> last = WriteLoop(
      at, turns, at.Scalar(1, DataType::kBool), first,
      [&](GraphScope& scope, Lowering& body, Value turn, const std::vector<Value>& now) {
        std::vector<Value> inputs(now.begin(), now.begin() + static_cast<int64_t>(states));
        for (size_t i = 0; i < operands.size(); ++i) {
          const Value whole = scope.CaptureOf(operands[i]);
          Value place = turn;
          if (ways[i] != 0) {
            const Value count = body.Reshape(body.DimOf(whole, axes[i]), {});
            place = body.Sub(body.Sub(count, body.IntScalar(1)), turn);
          }
          inputs.push_back(body.Gather(whole, place, axes[i]));
        }
        const std::vector<Value> outputs = WalkBody(scope, *graph, inputs);
        LoopTurn next;
        if (outputs.size() != states + growing.size()) return next;
        next.go_on = body.Scalar(1, DataType::kBool);
        next.next.assign(outputs.begin(), outputs.begin() + static_cast<int64_t>(states));
        AddRows(body, growing, std::span(now).subspan(states), std::span(outputs).subspan(states),
                next.next);
        return next;
      });
  if (!at.ok()) return;
  const std::vector<Value> whole = WholeRows(at, growing, std::span(last).subspan(states));
  last.resize(states);
  last.insert(last.end(), whole.begin(), whole.end());
  for (size_t i = 0; i < last.size() && at.ok(); ++i) {
    at.Out(static_cast<int>(i), batches ? at.Unsqueeze(last[i], {0}) : last[i]);
  }
}

}  // namespace

void AddControlRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"If", 1, LowerIf, "If", "B else_branch:graph! then_branch:graph!"},
      {"Loop", 1, LowerLoop, "While", "L? B? _?... body:graph!"},
      {"Scan", 8, LowerScan, "While",
       "_... body:graph! directions:ints<9 num_scan_inputs:int! scan_input_axes:ints@9 "
       "scan_input_directions:ints@9 scan_output_axes:ints@9 scan_output_directions:ints@9"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
