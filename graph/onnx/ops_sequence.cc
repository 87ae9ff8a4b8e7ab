// Sequences and optionals, which a graph of ours has no values for: an import knows their elements.
#include "graph/onnx/graph_scope.h"
#include "graph/onnx/op_table.h"
#include "runtime/base/type_numbers.h"

namespace npumesh {
namespace {

OnnxValue SequenceOf(std::vector<Value> items, DataType dtype) {
  return {OnnxKind::kSequence, std::move(items), true, dtype};
}

// A sequence operand. Error: a tensor.
OnnxValue SequenceIn(Lowering& at, int input) {
  const OnnxValue& value = at.operand(input);
  if (at.ok() && value.kind != OnnxKind::kSequence) {
    at.Fail(Code::kCorrupt, "input {} is no sequence", input);
  }
  return value;
}

// A position in a sequence of `size` elements, counted from the end when negative; `last` may be
// one past its end. Error: it is not known, or outside.
size_t PositionIn(Lowering& at, int input, size_t size, bool past_end) {
  const std::optional<std::vector<int64_t>> known = at.KnownInts(at.in(input));
  if (!known || known->size() != 1) {
    at.Refuse("the position in a sequence is not known when it is imported");
    return 0;
  }
  const auto count = static_cast<int64_t>(size);
  const int64_t position = (*known)[0] < 0 ? (*known)[0] + count : (*known)[0];
  if (position >= 0 && position < count + (past_end ? 1 : 0)) return static_cast<size_t>(position);
  at.Fail(Code::kCorrupt, "position {} in a sequence of {} elements", (*known)[0], size);
  return 0;
}

// ---- any kind of value ----

void LowerIdentity(Lowering& at) {
  OnnxValue value = at.operand(0);
  if (!at.ok()) return;
  if (value.kind == OnnxKind::kTensor && value.items.size() == 1) {
    return at.Out(0, at.Node("Identity", {value.items[0]}));
  }
  at.Out(0, std::move(value));
}

void LowerOptional(Lowering& at) {
  if (at.has(0)) return at.Out(0, at.operand(0));
  if (!at.has_attr("type")) {
    return at.Fail(Code::kCorrupt, "has neither an element nor the attribute \"type\"");
  }
  at.Out(0, OnnxValue{OnnxKind::kOptional, {}, false});
}

void LowerOptionalHasElement(Lowering& at) {
  const bool has = at.has(0) && at.operand(0).present;
  at.Out(0, at.Scalar(has ? 1 : 0, DataType::kBool));
}

void LowerOptionalGetElement(Lowering& at) {
  const OnnxValue& value = at.operand(0);
  if (at.ok() && !value.present) return at.Fail(Code::kCorrupt, "the optional is empty");
  LowerIdentity(at);
}

// ---- sequences ----

void LowerSequenceConstruct(Lowering& at) {
  std::vector<Value> items;
  for (int i = 0; i < at.inputs(); ++i) items.push_back(at.in(i));
  if (!at.ok()) return;
  at.Out(0, SequenceOf(items, items.empty() ? DataType::kUndefined : at.dtype(items[0])));
}

void LowerSequenceEmpty(Lowering& at) {
  at.Out(0, SequenceOf({}, DataTypeFromOnnx(at.Int("dtype", 1))));
}

void LowerSequenceInsert(Lowering& at) {
  OnnxValue sequence = SequenceIn(at, 0);
  const Value item = at.in(1);
  if (!at.ok()) return;
  const size_t size = sequence.items.size();
  const size_t place = at.has(2) ? PositionIn(at, 2, size, true) : size;
  sequence.items.insert(sequence.items.begin() + static_cast<int64_t>(place), item);
  at.Out(0, std::move(sequence));
}

void LowerSequenceErase(Lowering& at) {
  OnnxValue sequence = SequenceIn(at, 0);
  if (!at.ok() || sequence.items.empty()) return at.Fail(Code::kCorrupt, "the sequence is empty");
  const size_t size = sequence.items.size();
  const size_t place = at.has(1) ? PositionIn(at, 1, size, false) : size - 1;
  sequence.items.erase(sequence.items.begin() + static_cast<int64_t>(place));
  at.Out(0, std::move(sequence));
}

void LowerSequenceAt(Lowering& at) {
  const OnnxValue sequence = SequenceIn(at, 0);
  const size_t place = PositionIn(at, 1, sequence.items.size(), false);
  if (at.ok()) at.Out(0, sequence.items[place]);
}

void LowerSequenceLength(Lowering& at) {
  const OnnxValue sequence = SequenceIn(at, 0);
  at.Out(0, at.IntScalar(static_cast<int64_t>(sequence.items.size())));
}

void LowerConcatFromSequence(Lowering& at) {
  const OnnxValue sequence = SequenceIn(at, 0);
  const int64_t axis = at.Int("axis", 0);
  std::vector<Value> items = sequence.items;
  if (!at.ok()) return;
  if (items.empty()) return at.Refuse("joins an empty sequence");
  if (at.Int("new_axis", 0) != 0) {
    for (Value& item : items) item = at.Unsqueeze(item, {axis});
  }
  at.Out(0, at.Concat(items, axis));
}

// Parts of one length, or of given lengths; without lengths rows without their dimension
// (keepdims 0).
void LowerSplitToSequence(Lowering& at) {
  const Value x = at.in(0);
  const int axis = at.Axis(at.Int("axis", 0), at.Rank(x));
  const int64_t whole = at.Dim(x, axis);
  std::vector<int64_t> sizes;
  const bool squeezes = !at.has(1) && at.Int("keepdims", 1) == 0;
  if (!at.ok()) return;
  if (at.has(1)) {
    const std::optional<std::vector<int64_t>> known = at.KnownInts(at.in(1));
    if (!known) return at.Refuse("the lengths are not known when it is imported");
    sizes = *known;
    if (at.Rank(at.in(1)) == 0 && (*known)[0] > 0) {
      sizes.clear();
      if (!at.Affords(whole / (*known)[0])) return;
      for (int64_t left = whole; left > 0; left -= (*known)[0]) {
        sizes.push_back(std::min(left, (*known)[0]));
      }
    }
  } else {
    if (!at.Affords(whole)) return;
    sizes.assign(static_cast<size_t>(whole), 1);
  }
  if (!at.Affords(static_cast<int64_t>(sizes.size()))) return;
  std::vector<Value> items;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > whole - begin) {
      return at.Fail(Code::kCorrupt, "length {} of a part, expected at most {}, what is left of {}",
                     size, whole - begin, whole);
    }
    const Value item = at.Slice(x, axis, begin, begin + size);
    items.push_back(squeezes ? at.Squeeze(item, {axis}) : item);
    begin += size;
  }
  at.Out(0, SequenceOf(items, at.dtype(x)));
}

// The body once for each element of operand 0; other sequences give the element at its place,
// tensors are the same each time.
void LowerSequenceMap(Lowering& at) {
  const OnnxAttribute* const body = at.node().Find("body");
  const OnnxValue sequence = SequenceIn(at, 0);
  if (!at.ok()) return;
  if (body == nullptr || body->graph == nullptr) return at.Fail(Code::kCorrupt, "has no body");
  std::vector<OnnxValue> results(static_cast<size_t>(at.outputs()), SequenceOf({}, {}));
  for (size_t i = 0; i < sequence.items.size() && at.ok(); ++i) {
    GraphScope scope(at.scope(), true);
    for (int input = 0; input < at.inputs(); ++input) {
      const OnnxValue& operand = at.operand(input);
      const auto place = static_cast<size_t>(input);
      if (place >= body->graph->inputs.size()) break;
      const bool many = operand.kind == OnnxKind::kSequence;
      if (many && operand.items.size() != sequence.items.size()) {
        return at.Fail(Code::kCorrupt, "sequences of {} and {} elements", sequence.items.size(),
                       operand.items.size());
      }
      scope.Define(body->graph->inputs[place].name,
                   many ? OnnxValue::Of(operand.items[i]) : operand);
    }
    scope.Walk(*body->graph);
    const std::vector<OnnxValue> outputs = scope.OutputsOf(*body->graph);
    for (size_t o = 0; o < outputs.size() && o < results.size(); ++o) {
      if (outputs[o].items.size() != 1) return at.Refuse("a body that makes sequences");
      results[o].items.push_back(outputs[o].items[0]);
    }
  }
  for (size_t o = 0; o < results.size() && at.ok(); ++o) {
    at.Out(static_cast<int>(o), results[o]);
  }
}

}  // namespace

void AddSequenceRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"ConcatFromSequence", 11, LowerConcatFromSequence, "ConcatD", "_ axis:int! new_axis:int"},
      {"Identity", 1, LowerIdentity, "Identity", "_"},
      {"Optional", 15, LowerOptional, "no node", "_? type:type"},
      {"OptionalGetElement", 15, LowerOptionalGetElement, "Identity", "_"},
      {"OptionalHasElement", 15, LowerOptionalHasElement, "Const", "_?"},
      {"SequenceAt", 11, LowerSequenceAt, "no node", "_ I"},
      {"SequenceConstruct", 11, LowerSequenceConstruct, "no node", "T..."},
      {"SequenceEmpty", 11, LowerSequenceEmpty, "no node", "dtype:int"},
      {"SequenceErase", 11, LowerSequenceErase, "no node", "_ I?"},
      {"SequenceInsert", 11, LowerSequenceInsert, "no node", "_ _ I?"},
      {"SequenceLength", 11, LowerSequenceLength, "Const", "_"},
      {"SequenceMap", 17, LowerSequenceMap, "the body for each element", "_ _?... body:graph!"},
      {"SplitToSequence", 11, LowerSplitToSequence, "StridedSliceV2", "_ I? axis:int keepdims:int"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
