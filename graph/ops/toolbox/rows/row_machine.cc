#include "graph/ops/toolbox/rows/row_machine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "graph/ops/toolbox/machine/calls.h"
#include "graph/ops/toolbox/machine/lone_program.h"
#include "graph/ops/toolbox/rows/bound_rows.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

constexpr size_t kMostArgs = 3;

// Elements of rows, in order; several rows are whole.
struct Tile {
  int64_t row = 0, rows = 1;
  int64_t first = 0, columns = 0;

  size_t elements() const { return static_cast<size_t>(rows * columns); }
};

// One thread.
class Walker {
 public:
  Walker(const LoopProgram& program, const BoundRows& bound, const std::optional<RowPlaces>& places,
         const KernelArgs& args, std::byte* rooms)
      : program_(program), bound_(bound), places_(places), args_(args), rooms_(rooms) {
    const Tile numbers = {0, bound.rows(), 0, 1};
    for (const LoopValue v : bound.fixed().numbers) Find(v, numbers);
    Walk(bound.fixed(), {0, bound.rows(), 0, program.columns});
  }

  // Rows [row, row + rows), at most BoundRows::rows().
  void Run(int64_t row, int64_t rows) { Run({row, rows, 0, program_.columns}); }

  // Of what sums nothing up, also some columns alone.
  void Run(const Tile& tile) {
    const Tile numbers = {tile.row, tile.rows, 0, 1};
    for (const BoundStage& stage : bound_.stages()) {
      for (const LoopValue v : stage.numbers) Find(v, numbers);
      Walk(stage, tile);
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

  // Where the elements of a tile, or the numbers of its rows, are.
  std::byte* At(LoopValue v, const Tile& tile) const {
    const BoundLine& by = how(v);
    if (by.place == RowPlace::kRoom) {
      return rooms_ + by.room + (by.kept ? static_cast<size_t>(tile.first) * by.width : 0);
    }
    if (by.place == RowPlace::kOutput) return InOutput(by.output, by.width, tile);
    const LoopInput& input = program_.inputs[static_cast<size_t>(by.input)];
    auto* const data = static_cast<std::byte*>(const_cast<void*>(args_.in[input.tensor]));
    return data + static_cast<size_t>(StartOf(input, tile.row) + tile.first) * by.width;
  }

  std::byte* InOutput(int o, size_t width, const Tile& tile) const {
    const auto at = static_cast<size_t>(tile.row * program_.columns + tile.first);
    return static_cast<std::byte*>(args_.out[o]) + at * width;
  }

  // Computes a number of each row, which stands for each of its elements where elements are
  // computed with it.
  void Find(LoopValue v, const Tile& numbers) const {
    Compute(v, numbers);
    Spread(v, numbers.rows);
  }

  void Spread(LoopValue v, int64_t rows) const {
    if (!how(v).spread) return;
    const int64_t columns = bound_.columns();
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

  void Walk(const BoundStage& stage, const Tile& all) {
    if (stage.elements.empty() && stage.reductions.empty() && stage.outputs.empty()) return;
    const int64_t end = all.first + all.columns, step = bound_.columns();
    int64_t first = all.first;
    do {  // once at least, because rows without elements have numbers, too
      const Tile tile = {all.row, all.rows, first, std::min(step, end - first)};
      for (const LoopValue v : stage.elements) Compute(v, tile);
      for (size_t i = 0; i < stage.reductions.size(); ++i) {
        Join(stage.reductions[i], tile, gathered_[i]);
      }
      for (const size_t o : stage.outputs) Store(o, tile);
      first += step;
    } while (first < end);
    for (const LoopValue v : stage.reductions) Spread(v, all.rows);
  }

  void Join(LoopValue v, const Tile& tile, RowGathered& gathered) const {
    const RowJoin& by = *how(v).reduction;
    const std::byte* const from = At(how(v).joined, tile);
    std::byte* const to = rooms_ + how(v).room;
    const auto columns = static_cast<size_t>(tile.columns), rows = static_cast<size_t>(tile.rows);
    const bool narrow = line(v).type == LoopType::kFloat;
    if (bound_.whole()) {
      double totals[kMostTogether];
      by.each(from, rows, columns, narrow ? totals : reinterpret_cast<double*>(to));
      for (size_t r = 0; narrow && r < rows; ++r) {
        reinterpret_cast<float*>(to)[r] = static_cast<float>(totals[r]);
      }
      return;
    }
    if (tile.first == 0) gathered = {.total = by.start};
    by.join(from, columns, gathered);
    if (tile.first + tile.columns != program_.columns) return;
    if (by.end != nullptr) by.end(gathered);
    if (narrow) {
      *reinterpret_cast<float*>(to) = static_cast<float>(gathered.total);
    } else {
      *reinterpret_cast<double*>(to) = gathered.total;
    }
  }

  void Compute(LoopValue v, const Tile& tile) const {
    const LoopInstruction& now = line(v);
    const BoundLine& by = how(v);
    if (by.input >= 0) return Load(v, tile);
    const size_t count = tile.elements();
    std::byte* const to = At(v, tile);
    if (by.lanes != nullptr) {
      Call(v, to, tile);
    } else if (by.back != nullptr) {
      Round(v, to, tile);
    } else if (by.convert != nullptr) {
      by.convert(At(now.args[0], tile), to, count);
    } else if (now.op == LoopOp::kConstant) {
      const ConvertFn convert = FindConvert(DataType::kDouble, KeptAs(now.type));
      for (size_t i = 0; i < count; ++i) convert(now.params.data(), to + i * by.width, 1);
    } else {
      const auto* const sums = reinterpret_cast<const double*>(At(now.args[0], tile));
      for (size_t i = 0; i < count; ++i) {
        reinterpret_cast<float*>(to)[i] = static_cast<float>(OfSum(now, sums[i]));
      }
    }
  }

  void Call(LoopValue v, std::byte* to, const Tile& tile) const {
    const BoundLine& by = how(v);
    std::array<const void*, kMostArgs> in{};
    for (size_t i = 0; i < by.args.size(); ++i) in[i] = Argument(v, i, tile);
    if (!by.by_rows || tile.rows == 1) {
      by.lanes(in.data(), to, tile.elements(), line(v).params);
      return;
    }
    const auto columns = static_cast<size_t>(tile.columns);
    std::array<size_t, kMostArgs> steps{};
    for (size_t i = 0; i < by.args.size(); ++i) steps[i] = StepOf(v, i, columns);
    for (int64_t r = 0; r < tile.rows; ++r, to += columns * by.width) {
      by.lanes(in.data(), to, columns, line(v).params);
      for (size_t i = 0; i < by.args.size(); ++i) {
        in[i] = static_cast<const std::byte*>(in[i]) + steps[i];
      }
    }
  }

  // Bytes from row to row of what the function of a value takes.
  size_t StepOf(LoopValue v, size_t i, size_t columns) const {
    const LoopValue value = how(v).args[i];
    const BoundLine& arg = how(value);
    if (arg.fixed && !line(value).row) return 0;
    if (static_cast<int>(i) == how(v).number) return arg.width;
    const bool in_tensor = arg.place == RowPlace::kInput;
    return (in_tensor ? static_cast<size_t>(arg.apart) : columns) * arg.width;
  }

  // By way of the numbers to which it rounds, in the output that they are, or block by block.
  void Round(LoopValue v, std::byte* to, const Tile& tile) const {
    const BoundLine& by = how(v);
    const LoopValue of = line(v).args[0];
    const size_t count = tile.elements(), stored_width = WidthOf(line(v).dtype);
    const std::byte* const from = At(of, tile);
    if (by.output >= 0) {
      std::byte* const stored = InOutput(by.output, stored_width, tile);
      by.convert(from, stored, count);
      if (!by.only_given) by.back(stored, to, count);
      return;
    }
    alignas(64) std::byte stored[kJoinBlock * sizeof(double)];
    for (size_t i = 0; i < count; i += kJoinBlock) {
      const size_t now = std::min(kJoinBlock, count - i);
      by.convert(from + i * how(of).width, stored, now);
      by.back(stored, to + i * by.width, now);
    }
  }

  // What the function of a value takes.
  const std::byte* Argument(LoopValue v, size_t i, const Tile& tile) const {
    const LoopValue arg = how(v).args[i];
    const bool spread = line(arg).row && !line(v).row && static_cast<int>(i) != how(v).number;
    return spread ? rooms_ + how(arg).spread_room : At(arg, tile);
  }

  void Load(LoopValue v, const Tile& tile) const {
    const LoopInput& input = program_.inputs[static_cast<size_t>(how(v).input)];
    const RowSide side = {input.tensor, WidthOf(input.dtype), how(v).convert, how(v).width};
    const auto* const data = static_cast<const std::byte*>(args_.in[input.tensor]);
    std::byte* to = At(v, tile);
    if (!places_ && IsOneAfterOther(input)) {
      side.convert(data + static_cast<size_t>(StartOf(input, tile.row) + tile.first) * side.width,
                   to, tile.elements());
      return;
    }
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

  // Whether the rows of a tile are one run of elements.
  bool IsOneAfterOther(const LoopInput& input) const {
    return input.step == 1 && input.strides.size() == 1 && input.strides[0] == program_.columns;
  }

  int64_t StartOf(const LoopInput& input, int64_t row) const {
    int64_t at = input.offset;
    for (size_t d = program_.outer.size(); d-- > 1; row /= program_.outer[d]) {
      at += row % program_.outer[d] * input.strides[d];
    }
    return program_.outer.empty() ? at : at + row * input.strides[0];
  }

  void Store(size_t o, const Tile& tile) const {
    const LoopOutput& output = program_.outputs[o];
    const RowSide side = {static_cast<int>(o), WidthOf(output.dtype), bound_.store(o),
                          how(output.value).width};
    const int64_t columns = line(output.value).row ? 1 : program_.columns;
    const std::byte* from = At(output.value, tile);
    if (!places_) {
      const auto at = static_cast<size_t>(tile.row * columns + tile.first);
      side.convert(from, static_cast<std::byte*>(args_.out[o]) + at * side.width, tile.elements());
      return;
    }
    for (int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
      places_->to.Store(side, from, args_.out[o], row, tile.first, tile.columns);
      from += static_cast<size_t>(tile.columns) * side.computed;
    }
  }

  const LoopProgram& program_;
  const BoundRows& bound_;
  const std::optional<RowPlaces>& places_;
  const KernelArgs& args_;
  std::byte* const rooms_;
  std::array<RowGathered, kMostReductions> gathered_;  // of the current walk, of a long row
};

// What an element of the program costs, counted as WorthThreads does.
double WorkOf(const LoopProgram& program) {
  double work = 0;
  for (const LoopInstruction& now : program.instructions) {
    const bool is_cheap = now.type == LoopType::kFloat && now.op <= LoopOp::kScale;
    work += is_cheap ? 1 : kElementWork;
  }
  return std::max(work, kElementWork);
}

class RowMachine final : public Kernel {
 public:
  RowMachine(LoopProgram program, std::optional<RowPlaces> places, int threads)
      : program_(std::move(program)),
        places_(std::move(places)),
        bound_(program_, places_.has_value()),
        sums_(program_.has_row_sums()) {
    const double elements =
        static_cast<double>(program_.rows()) * static_cast<double>(program_.columns);
    parts_ = WorthThreads(WorkOf(program_) * elements, threads);
    // Threads share rows out, or a single row that sums nothing up.
    by_columns_ = !sums_ && !places_ && program_.rows() == 1;
    if (!by_columns_) parts_ = static_cast<int>(std::clamp<int64_t>(program_.rows(), 1, parts_));
  }

  bool Bind() { return bound_.Bind(); }

  uint64_t scratch_bytes() const override { return bound_.bytes() * static_cast<uint64_t>(parts_); }

  Status Run(const KernelArgs& args) override {
    const int64_t count = by_columns_ ? program_.columns : program_.rows();
    RunRanges(
        parts_, count, by_columns_ ? kRowBlock : 1, [&](int part, int64_t begin, int64_t end) {
          if (begin == end) return;
          auto* const rooms =
              static_cast<std::byte*>(args.scratch) + static_cast<size_t>(part) * bound_.bytes();
          Walker walker(program_, bound_, places_, args, rooms);
          if (by_columns_) return walker.Run({0, 1, begin, end - begin});
          for (int64_t row = begin; row < end; row += bound_.rows()) {
            walker.Run(row, std::min(bound_.rows(), end - row));
          }
        });
    return Status();
  }

 private:
  const LoopProgram program_;
  const std::optional<RowPlaces> places_;
  BoundRows bound_;
  const bool sums_;
  bool by_columns_ = false;
  int parts_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> MakeRowMachine(LoopProgram program, std::optional<RowPlaces> places,
                                       int threads) {
  if (places && places->from.packed() && places->to.packed()) places.reset();
  if (!places) program.Collapse();
  auto machine = std::make_unique<RowMachine>(std::move(program), std::move(places), threads);
  if (!machine->Bind()) return nullptr;
  return machine;
}

Result<std::unique_ptr<Kernel>> MakeRowKernel(const OpContext& op, const LoopFn& loop,
                                              const Shape& space) {
  std::optional<LoopProgram> program = LoneProgram(op, loop, space, LoopTarget::kBlocks);
  std::unique_ptr<Kernel> machine;
  if (program) machine = MakeRowMachine(std::move(*program), std::nullopt, op.threads());
  if (machine == nullptr) {
    return Error(Code::kInternal, "{}: its program does not compute rows of {}", op.Who(), space);
  }
  return machine;
}

}  // namespace npumesh
