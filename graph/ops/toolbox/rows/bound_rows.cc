#include "graph/ops/toolbox/rows/bound_rows.h"

#include <algorithm>
#include <utility>

#include "graph/ops/toolbox/machine/calls.h"

namespace npumesh {
namespace {

// Bytes between values: what is read and what is written a whole number of 4 KiB apart waits for
// each other. Measured: 5 ns for an element, not 8.
constexpr size_t kApart = 9 * 64;

// Whether memory has the numbers that are computed with: bools may be any byte there.
bool IsPlain(LoopType type, DataType dtype) {
  return type != LoopType::kBool && type != LoopType::kSum && KeptAs(type) == dtype;
}

// Numbers of 64 bits take their time, and twice the place, so that what a row costs beside its
// elements matters less.
bool IsNarrow(const LoopProgram& program) {
  return std::all_of(
      program.instructions.begin(), program.instructions.end(), [](const LoopInstruction& line) {
        return line.type == LoopType::kSum || WidthOf(KeptAs(line.type)) <= sizeof(float);
      });
}

// From so many columns on an instruction is called for each row, so that neither the number of a
// row nor what all rows have in common has to be repeated for a block of rows.
constexpr int64_t kWorthCalls = 64;

// As BoundRows::rows(). Measured with 64 to 4096 columns: half of kMostTogether is best, but two
// rows are better than one. Rows that wait for no sum are read where they lie.
int64_t RowsTogether(const LoopProgram& program) {
  const int64_t columns = std::max<int64_t>(1, program.columns);
  int64_t rows = kRowBlock / columns;
  if (IsNarrow(program) && program.has_row_sums()) {
    rows = kMostTogether / 2 / columns;
    if (rows == 1) rows = 2;
  }
  return std::clamp<int64_t>(rows, 1, std::max<int64_t>(1, program.rows()));
}

// As BoundRows::whole(): some values of a row lie in the second-level cache.
bool WalksWhole(const LoopProgram& program) {
  constexpr int64_t kMostWhole = 32 * kRowBlock;
  return RowsTogether(program) > 1 ||
         (IsNarrow(program) && program.has_row_sums() && program.columns <= kMostWhole);
}

// From so many bytes on the C library copies without reading first what it overwrites, which is
// faster than to compute in the output what can be computed in its arguments' place.
constexpr int64_t kWorthCopying = 8192;

bool Contains(const std::vector<LoopValue>& values, LoopValue v) {
  return std::find(values.begin(), values.end(), v) != values.end();
}

}  // namespace

DataType KeptAs(LoopType type) {
  return type == LoopType::kSum ? DataType::kDouble : ElementOf(type);
}

BoundRows::BoundRows(const LoopProgram& program, bool placed)
    : program_(program),
      stages_of_(program),
      placed_(placed),
      columns_(program.columns),
      rows_(RowsTogether(program)),
      whole_(WalksWhole(program)),
      elements_(rows_ * columns()) {}

bool BoundRows::Bind() {
  lines_.resize(program_.instructions.size());
  CountUses();
  for (LoopValue v = 0; v < size(); ++v) {
    bound(v).fixed = IsFixed(v);
    bound(v).width = WidthOf(KeptAs(line(v).type));
    if (!BindFunction(v)) return false;
  }
  for (const LoopOutput& output : program_.outputs) {
    stores_.push_back(FindConvert(KeptAs(line(output.value).type), output.dtype));
    if (stores_.back() == nullptr) return false;
  }
  for (LoopValue v = 0; v < size(); ++v) JoinPair(v);
  FindOutputs();
  FindKept();
  FindSpread();
  TakeRooms();
  fixed_ = Fixed();
  for (int stage = 0; stage <= stages_of_.count(); ++stage) {
    stages_.push_back(StageOf(stage));
    if (stages_.back().reductions.size() > kMostReductions) return false;
  }
  return true;
}

// What reads a value. Inputs that conversions alone read as another type at once have no reader.
void BoundRows::CountUses() {
  uses_.assign(lines_.size(), 0);
  for (const LoopInstruction& now : program_.instructions) {
    for (const LoopValue arg : now.args) uses_[static_cast<size_t>(arg)] += !ReadsAtOnce(now);
  }
  for (const LoopOutput& output : program_.outputs) ++uses_[static_cast<size_t>(output.value)];
}

bool BoundRows::ReadsAtOnce(const LoopInstruction& now) const {
  return IsConversion(now.op) && now.type != LoopType::kBool &&
         line(now.args[0]).op == LoopOp::kInput && line(now.args[0]).type != LoopType::kBool;
}

// Whether functions of elements alone read the value, which may be called for each row.
bool BoundRows::IsReadByCalls(LoopValue v) const {
  const auto calls = [](const LoopInstruction& now) {
    return !Reduces(now.op) && !IsConversion(now.op) && !HasTarget(now.op);
  };
  return std::all_of(
             program_.instructions.begin(), program_.instructions.end(),
             [&](const LoopInstruction& now) { return !Contains(now.args, v) || calls(now); }) &&
         std::none_of(program_.outputs.begin(), program_.outputs.end(),
                      [v](const LoopOutput& output) { return output.value == v; });
}

// Whether a block of rows is read in the tensor, which has the numbers that are computed with.
bool BoundRows::ReadsInPlace(LoopValue v) const {
  const LoopInput& input = program_.inputs[static_cast<size_t>(line(v).index)];
  if (placed_ || input.step != 1) return false;
  if (rows_ == 1 || input.strides.empty()) return true;
  if (input.strides.size() > 1) return false;
  if (input.strides[0] == columns_) return true;
  return columns_ >= kWorthCalls && !program_.has_row_sums() && IsReadByCalls(v);
}

bool BoundRows::IsFixed(LoopValue v) const {
  const LoopInstruction& now = line(v);
  if (now.op == LoopOp::kInput) {
    const std::vector<int64_t>& strides = program_.inputs[static_cast<size_t>(now.index)].strides;
    return program_.rows() > 1 &&
           std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 0; });
  }
  return !Reduces(now.op) && std::all_of(now.args.begin(), now.args.end(),
                                         [this](LoopValue arg) { return bound(arg).fixed; });
}

bool BoundRows::BindFunction(LoopValue v) {
  const LoopInstruction& now = line(v);
  BoundLine& by = bound(v);
  const DataType own = KeptAs(now.type);
  if (now.op == LoopOp::kConstant) return true;
  if (now.op == LoopOp::kInput || ReadsAtOnce(now)) {
    const LoopInstruction& read = now.op == LoopOp::kInput ? now : line(now.args[0]);
    by.skipped = uses_[static_cast<size_t>(v)] == 0;
    by.input = read.index;
    by.convert = FindConvert(read.dtype, own);
    if (now.op == LoopOp::kInput && !now.row && IsPlain(now.type, read.dtype) && ReadsInPlace(v)) {
      const LoopInput& input = program_.inputs[static_cast<size_t>(read.index)];
      by.place = RowPlace::kInput;
      by.apart = rows_ == 1 || input.strides.empty() ? columns_ : input.strides[0];
    }
    return by.convert != nullptr;
  }
  const LoopType taken = line(now.args.back()).type;
  if (taken == LoopType::kSum) return true;
  if (Reduces(now.op)) {
    by.reduction = FindJoin(now.op, taken);
    by.joined = now.args[0];
    JoinSquares(v);
    return by.reduction != nullptr;
  }
  if (HasTarget(now.op)) {
    by.convert = FindConvert(KeptAs(taken), now.dtype);
    by.back = FindConvert(now.dtype, own);
    return by.convert != nullptr && by.back != nullptr;
  }
  if (IsConversion(now.op)) by.convert = FindConvert(KeptAs(taken), own);
  if (!IsConversion(now.op)) BindLanes(v, taken);
  return by.convert != nullptr || by.lanes != nullptr;
}

void BoundRows::BindLanes(LoopValue v, LoopType taken) {
  const LoopInstruction& now = line(v);
  BoundLine& by = bound(v);
  by.args = now.args;
  const bool calls = rows_ == 1 || columns_ >= kWorthCalls;
  const bool one = calls && !now.row && line(now.args.back()).row;
  by.lanes = one ? FindNumberLanes(now.op, taken) : nullptr;
  if (by.lanes != nullptr) {
    by.number = static_cast<int>(now.args.size()) - 1;
  } else {
    by.lanes = FunctionOf(now.op, taken);
  }
}

// Whether the value is nothing but what its one reader, in the same walk, takes.
bool BoundRows::IsOnlyPassedTo(LoopValue reader, LoopValue v) const {
  return uses_[static_cast<size_t>(v)] == 1 && !line(v).row && !bound(v).fixed &&
         !bound(v).skipped && !Contains(stages_of_.kept(), v) &&
         (Reduces(line(reader).op) || stages_of_.stage(v) == stages_of_.stage(reader));
}

void BoundRows::JoinSquares(LoopValue v) {
  const LoopValue of = line(v).args[0];
  if (line(of).op != LoopOp::kSquare || !IsOnlyPassedTo(v, of)) return;
  const RowJoin* const squares = FindJoin(line(v).op, line(of).type, true);
  if (squares == nullptr) return;
  bound(v).reduction = squares;
  bound(v).joined = line(of).args[0];
  bound(of).skipped = true;
}

void BoundRows::JoinPair(LoopValue v) {
  if (bound(v).lanes == nullptr || line(v).row) return;
  const LoopValue before = line(v).args[0];
  const BoundLine& first = bound(before);
  if (first.lanes == nullptr || line(before).type != LoopType::kFloat) return;
  if (!IsOnlyPassedTo(v, before) || first.args != line(before).args) return;
  const LanePair* const pair = FindPair(line(before).op, line(v).op);
  if (pair == nullptr) return;
  BoundLine& by = bound(v);
  by.lanes = first.number < 0 ? pair->lanes : pair->by_number;
  by.number = first.number;
  by.args = first.args;
  by.args.insert(by.args.end(), line(v).args.begin() + 1, line(v).args.end());
  bound(before).skipped = true;
}

// What is computed as an output has it is computed there.
void BoundRows::FindOutputs() {
  for (size_t o = 0; o < program_.outputs.size() && !placed_; ++o) {
    const auto& [v, dtype] = program_.outputs[o];
    BoundLine& by = bound(v);
    if (line(v).row || by.fixed || by.input >= 0 || by.output >= 0) continue;
    if (IsPlain(line(v).type, dtype)) {
      const bool is_long = elements_ * static_cast<int64_t>(by.width) >= kWorthCopying;
      if (whole_ && is_long && RoomFor(v) != v) continue;
      by.place = RowPlace::kOutput;
      by.output = static_cast<int>(o);
    } else if (by.back != nullptr && line(v).dtype == dtype) {
      by.output = static_cast<int>(o);
      by.only_given = uses_[static_cast<size_t>(v)] == 1;
    }
  }
}

// Values of several walks, and what is read with a conversion or from apart in several.
void BoundRows::FindKept() {
  for (LoopValue v = 0; v < size(); ++v) {
    if (line(v).row) continue;
    int walks = 0;
    for (int stage = 0; line(v).op == LoopOp::kInput && stage < stages_of_.count(); ++stage) {
      walks += Contains(stages_of_.FetchedIn(stage), v);
    }
    bound(v).kept = bound(v).fixed || walks > 1 || Contains(stages_of_.kept(), v);
  }
}

void BoundRows::FindSpread() {
  for (LoopValue v = 0; v < size(); ++v) {
    if (line(v).row || bound(v).skipped) continue;
    BoundLine& by = bound(v);
    const auto apart = [this](LoopValue arg) {
      const BoundLine& read = bound(arg);
      return !line(arg).row && (read.fixed || (read.apart != 0 && read.apart != columns_));
    };
    by.by_rows = by.number >= 0 || (columns_ >= kWorthCalls && !by.fixed &&
                                    std::any_of(by.args.begin(), by.args.end(), apart));
    for (size_t i = 0; i < bound(v).args.size(); ++i) {
      const LoopValue arg = bound(v).args[i];
      if (line(arg).row && static_cast<int>(i) != bound(v).number) bound(arg).spread = true;
    }
  }
}

// When a value is read last: places in time of the lines of a walk, its sums, its outputs.
int BoundRows::LastReader(LoopValue v) const {
  int last = -1;
  for (LoopValue reader = 0; reader < size(); ++reader) {
    const BoundLine& by = bound(reader);
    const LoopInstruction& now = line(reader);
    const bool calls = by.lanes != nullptr, joins = by.reduction != nullptr;
    if (by.skipped || by.input >= 0) continue;
    const bool reads = joins   ? by.joined == v
                       : calls ? Contains(by.args, v)
                               : Contains(now.args, v);
    if (!reads) continue;
    const int walk = stages_of_.stage(reader) - (joins ? 1 : 0);
    last = std::max(last, (3 * walk + (joins ? 1 : 0)) * size() + reader);
  }
  for (const LoopOutput& output : program_.outputs) {
    if (output.value == v) last = std::max(last, (3 * stages_of_.stage(v) + 2) * size());
  }
  return last;
}

// An argument of elements that nothing reads after the value is computed, in whose room it may lie;
// the value itself where it needs one.
LoopValue BoundRows::RoomFor(LoopValue v) const {
  const auto has_room = [this](LoopValue of) {
    const BoundLine& by = bound(of);
    return !line(of).row && !by.fixed && !by.skipped && by.place == RowPlace::kRoom;
  };
  if (!whole_ || !has_room(v) || bound(v).input >= 0) return v;
  for (const LoopValue arg : bound(v).lanes != nullptr ? bound(v).args : line(v).args) {
    const bool last = LastReader(arg) == 3 * stages_of_.stage(v) * size() + v;
    if (last && has_room(arg) && bound(arg).width == bound(v).width) return arg;
  }
  return v;
}

void BoundRows::TakeRooms() {
  for (LoopValue v = 0; v < size(); ++v) {
    BoundLine& by = bound(v);
    if (by.skipped) continue;
    if (const LoopValue other = RoomFor(v); other != v) {
      by.room = bound(other).room;
      continue;
    }
    const int64_t places = line(v).row ? rows_
                           : by.kept   ? std::max(columns_, elements_)
                                       : elements_;
    if (by.place == RowPlace::kRoom) by.room = Take(places, by.width);
    if (by.spread) by.spread_room = Take(elements_, by.width);
  }
}

size_t BoundRows::Take(int64_t places, size_t width) {
  const size_t bytes = (static_cast<size_t>(places) * width + 63) / 64 * 64 + kApart;
  return std::exchange(bytes_, bytes_ + bytes);
}

BoundStage BoundRows::Fixed() const {
  BoundStage fixed;
  for (LoopValue v = 0; v < size(); ++v) {
    const BoundLine& by = bound(v);
    if (!by.fixed || by.skipped || by.place == RowPlace::kInput) continue;
    (line(v).row ? fixed.numbers : fixed.elements).push_back(v);
  }
  return fixed;
}

// Whether a walk reads or computes the elements. What is kept is read in the first walk that reads
// it.
bool BoundRows::ComesIn(LoopValue v, int stage) const {
  if (line(v).op != LoopOp::kInput) return stages_of_.stage(v) == stage;
  for (int before = 0; before < stage && bound(v).kept; ++before) {
    if (Contains(stages_of_.FetchedIn(before), v)) return false;
  }
  return Contains(stages_of_.FetchedIn(stage), v);
}

BoundStage BoundRows::StageOf(int stage) const {
  BoundStage stage_of;
  for (LoopValue v = 0; v < size(); ++v) {
    const BoundLine& by = bound(v);
    if (by.fixed || by.skipped || by.place == RowPlace::kInput) continue;
    if (!line(v).row) {
      if (ComesIn(v, stage)) stage_of.elements.push_back(v);
    } else if (stages_of_.stage(v) == stage + (Reduces(line(v).op) ? 1 : 0)) {
      (Reduces(line(v).op) ? stage_of.reductions : stage_of.numbers).push_back(v);
    }
  }
  for (size_t o = 0; o < program_.outputs.size(); ++o) {
    const LoopValue v = program_.outputs[o].value;
    if (line(v).row || bound(v).output == static_cast<int>(o)) continue;
    if (stages_of_.stage(v) == stage) stage_of.outputs.push_back(o);
  }
  return stage_of;
}

}  // namespace npumesh
