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
  // Where the elements of a block of rows lie, or the whole row of what is kept; of a number, those
  // of the rows.
  size_t room = 0;
  size_t spread_room = 0;  // of a number, as elements
  bool kept = false;
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
      : program_(program),
        columns_(program.columns),
        rows_(std::max<int64_t>(1, kBlock / std::max<int64_t>(1, columns_))),
        elements_(rows_ == 1 ? std::min(columns_, kBlock) : rows_ * columns_) {}

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
  // Rows that are computed together: short ones fill a block.
  int64_t rows() const { return rows_; }
  size_t bytes() const { return bytes_; }
  ConvertFn store(size_t output) const { return stores_[output]; }

 private:
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
    bound.room = Take(now.row ? rows_ : kept ? std::max(columns_, elements_) : elements_, bound);
    if (bound.spread) bound.spread_room = Take(elements_, bound);
    lines_.push_back(bound);
    return true;
  }

  size_t Take(int64_t places, const BoundLine& line) {
    const size_t bytes = (static_cast<size_t>(places) * line.width + 63) / 64 * 64 + kApart;
    return std::exchange(bytes_, bytes_ + bytes);
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
  const int64_t columns_, rows_;
  const int64_t elements_;              // of a block
  std::vector<bool> skipped_, spread_;  // by value
  std::vector<BoundLine> lines_;        // by value
  std::vector<BoundStage> stages_;      // the last one has numbers alone
  std::vector<ConvertFn> stores_;       // by output
  size_t bytes_ = 0;
};

// ---- one thread ----

// Elements of rows, in order; several rows are whole.
struct Tile {
  int64_t row = 0, rows = 1;
  int64_t first = 0, columns = 0;

  size_t elements() const { return static_cast<size_t>(rows * columns); }
};

class Walker {
 public:
  Walker(const LoopProgram& program, const Bound& bound, const std::optional<RowPlaces>& places,
         const KernelArgs& args, std::byte* rooms)
      : program_(program), bound_(bound), places_(places), args_(args), rooms_(rooms) {
    for (LoopValue v = 0; v < static_cast<LoopValue>(program.instructions.size()); ++v) {
      if (line(v).op != LoopOp::kConstant) continue;
      const ConvertFn convert = FindConvert(DataType::kDouble, KeptAs(line(v).type));
      for (int64_t r = 0; r < bound.rows(); ++r) {
        convert(line(v).params.data(), rooms_ + how(v).room + static_cast<size_t>(r) * how(v).width,
                1);
      }
      Spread(v, bound.rows());
    }
  }

  // Rows [row, row + rows), at most Bound::rows().
  void Run(int64_t row, int64_t rows) {
    const Tile numbers = {row, rows, 0, 1};
    for (const BoundStage& stage : bound_.stages()) {
      for (const LoopValue v : stage.numbers) {
        Compute(v, numbers);
        Spread(v, rows);
      }
      if (!stage.elements.empty() || !stage.reductions.empty()) Walk(stage, row, rows);
    }
    for (size_t o = 0; o < program_.outputs.size(); ++o) {
      if (line(program_.outputs[o].value).row) Store(o, numbers);
    }
  }

 private:
  const LoopInstruction& line(LoopValue v) const {
    return program_.instructions[static_cast<size_t>(v)];
  }
  const BoundLine& how(LoopValue v) const { return bound_.lines()[static_cast<size_t>(v)]; }
  // Where the numbers of a value, or its elements from column `first` on, are.
  std::byte* At(LoopValue v, int64_t first) const {
    return rooms_ + how(v).room + (how(v).kept ? static_cast<size_t>(first) * how(v).width : 0);
  }
  // The same as `reader` reads it: a number beside elements is spread.
  const std::byte* Read(LoopValue v, const LoopInstruction& reader, int64_t first) const {
    const bool spread = line(v).row && !reader.row;
    return spread ? rooms_ + how(v).spread_room : At(v, first);
  }

  // A number of a row stands for each of its elements where elements are computed with it.
  void Spread(LoopValue v, int64_t rows) const {
    if (!how(v).spread) return;
    const int64_t columns = std::min(kBlock, program_.columns);
    const std::byte* from = rooms_ + how(v).room;
    std::byte* to = rooms_ + how(v).spread_room;
    ByWidth(how(v).width, [&](auto element) {
      for (int64_t r = 0; r < rows; ++r, from += sizeof(element)) {
        std::memcpy(&element, from, sizeof(element));
        std::fill_n(reinterpret_cast<decltype(element)*>(to), columns, element);
        to += static_cast<size_t>(columns) * sizeof(element);
      }
    });
  }

  void Walk(const BoundStage& stage, int64_t row, int64_t rows) {
    int64_t first = 0;
    do {  // once at least, because rows without elements have numbers, too
      const Tile tile = {row, rows, first, std::min(kBlock, program_.columns - first)};
      for (const LoopValue v : stage.elements) Compute(v, tile);
      for (size_t i = 0; i < stage.reductions.size(); ++i) {
        Gather(stage.reductions[i], tile, gathered_[i]);
      }
      for (const size_t o : stage.outputs) Store(o, tile);
      first += kBlock;
    } while (first < program_.columns);
    for (const LoopValue v : stage.reductions) Spread(v, rows);
  }

  void Gather(LoopValue v, const Tile& tile, RowGathered& gathered) const {
    const RowJoin& by = *how(v).reduction;
    const LoopValue from = line(v).args[0];
    const bool last = tile.first + tile.columns == program_.columns;
    for (int64_t r = 0; r < tile.rows; ++r) {
      if (tile.first == 0) gathered = {.total = by.start};
      by.join(At(from, tile.first) + static_cast<size_t>(r * tile.columns) * how(from).width,
              static_cast<size_t>(tile.columns), gathered);
      if (last) Finish(v, r, gathered);
    }
  }

  void Finish(LoopValue v, int64_t r, RowGathered& gathered) const {
    if (const auto end = how(v).reduction->end; end != nullptr) end(gathered);
    const auto narrow = static_cast<float>(gathered.total);
    const bool is_float = line(v).type == LoopType::kFloat;
    const size_t width = how(v).width;
    std::memcpy(rooms_ + how(v).room + static_cast<size_t>(r) * width,
                is_float ? static_cast<const void*>(&narrow) : &gathered.total, width);
  }

  void Compute(LoopValue v, const Tile& tile) const {
    const LoopInstruction& now = line(v);
    const BoundLine& by = how(v);
    if (by.input >= 0) return Load(v, tile);
    const size_t count = tile.elements();
    std::byte* const to = At(v, tile.first);
    std::array<const void*, kMostArgs> in{};
    for (size_t i = 0; i < now.args.size(); ++i) in[i] = Read(now.args[i], now, tile.first);
    if (by.lanes != nullptr) {
      by.lanes(in.data(), to, count, now.params);
    } else if (by.back != nullptr) {
      alignas(64) std::byte stored[kBlock * sizeof(double)];
      by.convert(in[0], stored, count);
      by.back(stored, to, count);
    } else if (by.convert != nullptr) {
      by.convert(in[0], to, count);
    } else {
      const auto* const sums = static_cast<const double*>(in[0]);
      for (size_t i = 0; i < count; ++i) reinterpret_cast<float*>(to)[i] = OfSum(now, sums[i]);
    }
  }

  void Load(LoopValue v, const Tile& tile) const {
    const LoopInput& input = program_.inputs[static_cast<size_t>(how(v).input)];
    const RowSide side = {input.tensor, WidthOf(input.dtype), how(v).convert, how(v).width};
    const auto* const data = static_cast<const std::byte*>(args_.in[input.tensor]);
    std::byte* to = At(v, tile.first);
    for (int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
      if (places_) {
        places_->from.Load(side, data, row, tile.first, tile.columns, to);
      } else {
        const auto at = static_cast<size_t>(StartOf(input, row) + tile.first * input.step);
        side.convert(data + at * side.width, to, static_cast<size_t>(tile.columns));
      }
      to += static_cast<size_t>(tile.columns) * side.computed;
    }
  }

  int64_t StartOf(const LoopInput& input, int64_t row) const {
    int64_t at = input.offset;
    for (size_t d = program_.outer.size(); d-- > 0; row /= program_.outer[d]) {
      at += row % program_.outer[d] * input.strides[d];
    }
    return at;
  }

  void Store(size_t o, const Tile& tile) const {
    const LoopOutput& output = program_.outputs[o];
    const RowSide side = {static_cast<int>(o), WidthOf(output.dtype), bound_.store(o),
                          how(output.value).width};
    const int64_t columns = line(output.value).row ? 1 : program_.columns;
    const std::byte* from = At(output.value, tile.first);
    for (int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
      if (places_) {
        places_->to.Store(side, from, args_.out[o], row, tile.first, tile.columns);
      } else {
        auto* const to = static_cast<std::byte*>(args_.out[o]);
        side.convert(from, to + static_cast<size_t>(row * columns + tile.first) * side.width,
                     static_cast<size_t>(tile.columns));
      }
      from += static_cast<size_t>(tile.columns) * side.computed;
    }
  }

  const LoopProgram& program_;
  const Bound& bound_;
  const std::optional<RowPlaces>& places_;
  const KernelArgs& args_;
  std::byte* const rooms_;
  std::array<RowGathered, kMostReductions> gathered_;  // of the current walk, of a long row
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
      for (int64_t row = begin; row < end; row += bound_.rows()) {
        walker.Run(row, std::min(bound_.rows(), end - row));
      }
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
