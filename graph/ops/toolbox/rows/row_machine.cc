#include "graph/ops/toolbox/rows/row_machine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "graph/ops/core/loop_stages.h"
#include "graph/ops/toolbox/lanes/lane_table.h"
#include "graph/ops/toolbox/machine/calls.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

constexpr size_t kMostArgs = 3;
constexpr size_t kMostReductions = 4;  // of one walk
// Bytes between values: what is read and what is written a whole number of 4 KiB apart waits for
// each other. Measured: 5 ns for an element, not 8.
constexpr size_t kApart = 9 * 64;
constexpr auto kBlock = static_cast<int64_t>(kJoinBlock);
// The float that an instruction makes of a sum.
float OfSum(const LoopInstruction& line, double sum) {
  if (line.op == LoopOp::kMeanOf) return static_cast<float>(sum / line.params[0]);
  if (line.op == LoopOp::kReciprocalOf) return static_cast<float>(1.0 / sum);
  return static_cast<float>(1.0 / std::sqrt(sum / line.params[0] + line.params[1]));
}

// ---- the program, bound ----

// The type in which a value lies in its room; of a sum its double.
DataType KeptAs(LoopType type) {
  return type == LoopType::kSum ? DataType::kDouble : ElementOf(type);
}

// How a value comes about, and where it lies in the memory of a thread.
struct BoundLine {
  LaneFn lanes = nullptr;              // of what is computed
  ConvertFn convert = nullptr;         // of what is read or converted
  ConvertFn back = nullptr;            // of what is rounded, to the type of the value
  int input = -1;                      // of the program, of what is read
  bool spread = false;                 // a number that elements are computed with
  bool skipped = false;                // read by its conversions alone
  const RowJoin* reduction = nullptr;  // of a number of the row
  size_t width = 0;                    // bytes of an element
  size_t room = 0;
  bool kept = false;  // a whole row, else a block
};

// What is done in one walk, and before it.
struct BoundStage {
  std::vector<LoopValue> numbers;
  std::vector<LoopValue> elements;  // read and computed
  std::vector<LoopValue> reductions;
  std::vector<size_t> outputs;
};

class Bound {
 public:
  explicit Bound(const LoopProgram& program)
      : program_(program), columns_(program.columns), whole_(BlockOf(columns_)) {}

  // False: an instruction is not computed here.
  bool Bind() {
    const LoopStages stages(program_);
    FindSkipped();
    FindSpread();
    for (LoopValue v = 0; v < size(); ++v) {
      const auto& kept = stages.kept();
      if (!Add(v, std::find(kept.begin(), kept.end(), v) != kept.end())) return false;
    }
    for (int stage = 0; stage <= stages.count(); ++stage) {
      stages_.push_back(StageOf(stages, stage));
      if (stages_.back().reductions.size() > kMostReductions) return false;
    }
    for (const LoopOutput& output : program_.outputs) {
      stores_.push_back(FindConvert(KeptAs(line(output.value).type), output.dtype));
      if (stores_.back() == nullptr) return false;
    }
    return true;
  }

  const std::vector<BoundLine>& lines() const { return lines_; }
  const std::vector<BoundStage>& stages() const { return stages_; }
  size_t bytes() const { return bytes_; }
  ConvertFn store(size_t output) const { return stores_[output]; }

 private:
  static int64_t BlockOf(int64_t columns) { return std::clamp<int64_t>(columns, 1, kBlock); }
  LoopValue size() const { return static_cast<LoopValue>(program_.instructions.size()); }
  const LoopInstruction& line(LoopValue v) const {
    return program_.instructions[static_cast<size_t>(v)];
  }

  // A conversion of an input reads it as the other type at once.
  bool ReadsAtOnce(const LoopInstruction& now) const {
    return IsConversion(now.op) && now.type != LoopType::kBool &&
           line(now.args[0]).op == LoopOp::kInput && line(now.args[0]).type != LoopType::kBool;
  }

  void FindSkipped() {
    skipped_.assign(program_.instructions.size(), true);
    for (const LoopInstruction& now : program_.instructions) {
      for (const LoopValue arg : now.args) {
        if (!ReadsAtOnce(now)) skipped_[static_cast<size_t>(arg)] = false;
      }
    }
    for (const LoopOutput& output : program_.outputs) {
      skipped_[static_cast<size_t>(output.value)] = false;
    }
  }

  void FindSpread() {
    spread_.assign(program_.instructions.size(), false);
    for (const LoopInstruction& now : program_.instructions) {
      for (const LoopValue arg : now.args) {
        if (!now.row && line(arg).row) spread_[static_cast<size_t>(arg)] = true;
      }
    }
  }

  bool Add(LoopValue v, bool kept) {
    const LoopInstruction& now = line(v);
    BoundLine bound{.width = WidthOf(KeptAs(now.type)), .kept = kept};
    bound.skipped = now.op == LoopOp::kInput && skipped_[static_cast<size_t>(v)];
    bound.spread = spread_[static_cast<size_t>(v)];
    if (!BindFunction(now, bound)) return false;
    bound.room = bytes_;
    const auto places = static_cast<size_t>(kept ? columns_ : whole_);
    bytes_ += (places * bound.width + 63) / 64 * 64 + kApart;
    lines_.push_back(bound);
    return true;
  }

  bool BindFunction(const LoopInstruction& now, BoundLine& bound) const {
    const DataType own = KeptAs(now.type);
    if (now.op == LoopOp::kConstant) return true;
    if (now.op == LoopOp::kInput || ReadsAtOnce(now)) {
      const LoopInstruction& read = now.op == LoopOp::kInput ? now : line(now.args[0]);
      bound.input = read.index;
      bound.convert = FindConvert(read.dtype, own);
      return bound.convert != nullptr;
    }
    const LoopType taken = line(now.args.back()).type;
    if (taken == LoopType::kSum) return true;
    if (Reduces(now.op)) {
      bound.reduction = FindJoin(now.op, taken);
      return bound.reduction != nullptr;
    }
    if (HasTarget(now.op)) {
      bound.convert = FindConvert(KeptAs(taken), now.dtype);
      bound.back = FindConvert(now.dtype, own);
      return bound.convert != nullptr && bound.back != nullptr;
    }
    if (IsConversion(now.op)) bound.convert = FindConvert(KeptAs(taken), own);
    if (!IsConversion(now.op)) bound.lanes = FunctionOf(now.op, taken);
    return bound.convert != nullptr || bound.lanes != nullptr;
  }

  BoundStage StageOf(const LoopStages& stages, int stage) const {
    BoundStage bound;
    const std::vector<LoopValue> fetched = stages.FetchedIn(stage);
    for (LoopValue v = 0; v < size(); ++v) {
      const LoopInstruction& now = line(v);
      const bool is_fetched = std::find(fetched.begin(), fetched.end(), v) != fetched.end();
      if (now.op == LoopOp::kConstant || lines_[static_cast<size_t>(v)].skipped) continue;
      if (now.row) {
        if (!Reduces(now.op) && stages.stage(v) == stage) bound.numbers.push_back(v);
        if (Reduces(now.op) && stages.stage(v) == stage + 1) bound.reductions.push_back(v);
      } else if (now.op == LoopOp::kInput ? is_fetched : stages.stage(v) == stage) {
        bound.elements.push_back(v);
      }
    }
    for (size_t o = 0; o < program_.outputs.size(); ++o) {
      const LoopValue value = program_.outputs[o].value;
      if (!line(value).row && stages.stage(value) == stage) bound.outputs.push_back(o);
    }
    return bound;
  }

  const LoopProgram& program_;
  const int64_t columns_, whole_;
  std::vector<bool> skipped_, spread_;  // by value
  std::vector<BoundLine> lines_;        // by value
  std::vector<BoundStage> stages_;      // the last one has numbers alone
  std::vector<ConvertFn> stores_;       // by output
  size_t bytes_ = 0;
};

// ---- one thread ----

// Elements of a row, in order.
struct Columns {
  int64_t first = 0;
  int64_t count = 0;
};

class Walker {
 public:
  Walker(const LoopProgram& program, const Bound& bound, const std::optional<RowPlaces>& places,
         const KernelArgs& args, std::byte* rooms)
      : program_(program), bound_(bound), places_(places), args_(args), rooms_(rooms) {
    for (LoopValue v = 0; v < static_cast<LoopValue>(program.instructions.size()); ++v) {
      if (line(v).op != LoopOp::kConstant) continue;
      FindConvert(DataType::kDouble, KeptAs(line(v).type))(line(v).params.data(), Room(v), 1);
      Spread(v);
    }
  }

  void Run(int64_t row) {
    for (const BoundStage& stage : bound_.stages()) {
      for (const LoopValue v : stage.numbers) {
        Compute(v, row, {0, 1});
        Spread(v);
      }
      Walk(stage, row);
    }
    for (size_t o = 0; o < program_.outputs.size(); ++o) {
      if (line(program_.outputs[o].value).row) Store(o, row, {0, 1});
    }
  }

 private:
  const LoopInstruction& line(LoopValue v) const {
    return program_.instructions[static_cast<size_t>(v)];
  }
  const BoundLine& bound(LoopValue v) const { return bound_.lines()[static_cast<size_t>(v)]; }
  std::byte* Room(LoopValue v) const { return rooms_ + bound(v).room; }
  // Where the elements of a value from column `first` on are.
  std::byte* At(LoopValue v, int64_t first) const {
    return Room(v) + (bound(v).kept ? static_cast<size_t>(first) * bound(v).width : 0);
  }

  // A number of the row stands for each element of a block where elements are computed with it.
  void Spread(LoopValue v) const {
    if (!bound(v).spread) return;
    const auto count = static_cast<size_t>(std::min(kBlock, program_.columns));
    std::byte* const room = Room(v);
    ByWidth(bound(v).width, [&](auto element) {
      std::memcpy(&element, room, sizeof(element));
      std::fill_n(reinterpret_cast<decltype(element)*>(room), count, element);
    });
  }

  void Walk(const BoundStage& stage, int64_t row) {
    if (stage.elements.empty() && stage.reductions.empty()) return;
    const size_t reductions = stage.reductions.size();
    for (size_t i = 0; i < reductions; ++i) {
      gathered_[i] = {.total = bound(stage.reductions[i]).reduction->start};
    }
    for (int64_t first = 0; first < program_.columns; first += kBlock) {
      const Columns block = {first, std::min(kBlock, program_.columns - first)};
      for (const LoopValue v : stage.elements) Compute(v, row, block);
      for (size_t i = 0; i < reductions; ++i) Gather(stage.reductions[i], block, gathered_[i]);
      for (const size_t o : stage.outputs) Store(o, row, block);
    }
    for (size_t i = 0; i < reductions; ++i) Finish(stage.reductions[i], gathered_[i]);
  }

  void Gather(LoopValue v, const Columns& block, RowGathered& gathered) const {
    const void* const x = At(line(v).args[0], block.first);
    bound(v).reduction->join(x, static_cast<size_t>(block.count), gathered);
  }

  void Finish(LoopValue v, RowGathered& gathered) const {
    if (const auto end = bound(v).reduction->end; end != nullptr) end(gathered);
    const auto narrow = static_cast<float>(gathered.total);
    const bool is_float = line(v).type == LoopType::kFloat;
    std::memcpy(Room(v), is_float ? static_cast<const void*>(&narrow) : &gathered.total,
                bound(v).width);
    Spread(v);
  }

  void Compute(LoopValue v, int64_t row, const Columns& block) const {
    const LoopInstruction& now = line(v);
    const BoundLine& how = bound(v);
    const auto count = static_cast<size_t>(block.count);
    std::byte* const to = At(v, block.first);
    if (how.input >= 0) return Load(v, row, block);
    std::array<const void*, kMostArgs> in{};
    for (size_t i = 0; i < now.args.size(); ++i) in[i] = At(now.args[i], block.first);
    if (how.lanes != nullptr) {
      how.lanes(in.data(), to, count, now.params);
    } else if (how.back != nullptr) {
      alignas(64) std::byte stored[kBlock * sizeof(double)];
      how.convert(in[0], stored, count);
      how.back(stored, to, count);
    } else if (how.convert != nullptr) {
      how.convert(in[0], to, count);
    } else {
      const float number = OfSum(now, *static_cast<const double*>(in[0]));
      std::memcpy(to, &number, sizeof(number));
    }
  }

  void Load(LoopValue v, int64_t row, const Columns& block) const {
    const LoopInput& input = program_.inputs[static_cast<size_t>(bound(v).input)];
    const size_t width = WidthOf(input.dtype);
    const void* const data = args_.in[input.tensor];
    if (places_) {
      const RowSide side = {input.tensor, width, bound(v).convert, bound(v).width};
      return places_->from.Load(side, data, row, block.first, block.count, At(v, block.first));
    }
    int64_t at = input.offset + block.first * input.step;
    for (size_t d = program_.outer.size(); d-- > 0; row /= program_.outer[d]) {
      at += row % program_.outer[d] * input.strides[d];
    }
    bound(v).convert(static_cast<const std::byte*>(data) + static_cast<size_t>(at) * width,
                     At(v, block.first), static_cast<size_t>(block.count));
  }

  void Store(size_t o, int64_t row, const Columns& block) const {
    const LoopOutput& output = program_.outputs[o];
    const size_t width = WidthOf(output.dtype);
    const ConvertFn convert = bound_.store(o);
    const std::byte* const from = At(output.value, block.first);
    if (places_) {
      const RowSide side = {static_cast<int>(o), width, convert, bound(output.value).width};
      return places_->to.Store(side, from, args_.out[o], row, block.first, block.count);
    }
    const int64_t columns = line(output.value).row ? 1 : program_.columns;
    convert(from,
            static_cast<std::byte*>(args_.out[o]) +
                static_cast<size_t>(row * columns + block.first) * width,
            static_cast<size_t>(block.count));
  }

  const LoopProgram& program_;
  const Bound& bound_;
  const std::optional<RowPlaces>& places_;
  const KernelArgs& args_;
  std::byte* const rooms_;
  std::array<RowGathered, kMostReductions> gathered_;  // of the current walk
};

class RowMachine final : public Kernel {
 public:
  RowMachine(LoopProgram program, std::optional<RowPlaces> places, int threads)
      : program_(std::move(program)), bound_(program_), places_(std::move(places)) {
    const double elements =
        static_cast<double>(program_.rows()) * static_cast<double>(program_.columns);
    const double work = kElementWork * elements * static_cast<double>(program_.instructions.size());
    parts_ = static_cast<int>(std::clamp<int64_t>(program_.rows(), 1, WorthThreads(work, threads)));
  }

  bool Bind() { return bound_.Bind(); }

  uint64_t scratch_bytes() const override { return bound_.bytes() * static_cast<uint64_t>(parts_); }

  Status Run(const KernelArgs& args) override {
    RunRanges(parts_, program_.rows(), 1, [&](int part, int64_t begin, int64_t end) {
      if (begin == end) return;
      auto* const rooms =
          static_cast<std::byte*>(args.scratch) + static_cast<size_t>(part) * bound_.bytes();
      Walker walker(program_, bound_, places_, args, rooms);
      for (int64_t row = begin; row < end; ++row) walker.Run(row);
    });
    return Status();
  }

 private:
  const LoopProgram program_;
  Bound bound_;
  const std::optional<RowPlaces> places_;
  int parts_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> MakeRowMachine(LoopProgram program, std::optional<RowPlaces> places,
                                       int threads) {
  auto machine = std::make_unique<RowMachine>(std::move(program), std::move(places), threads);
  if (!machine->Bind()) return nullptr;
  return machine;
}

}  // namespace npumesh
