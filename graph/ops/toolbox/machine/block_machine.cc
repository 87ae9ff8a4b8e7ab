#include "graph/ops/toolbox/machine/block_machine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "graph/ops/toolbox/copy/block_operand.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

constexpr size_t kMostOperands = 3;
constexpr int64_t kBlock = kBlockElements;

// Where a block lies in the scratch of a thread; none: nowhere.
using Room = std::optional<size_t>;

// Gives out rooms in the scratch of a thread, those given back first: few lines need few rooms.
class Rooms {
 public:
  size_t Take(size_t width) {
    const size_t bytes = kBlockElements * width;
    const auto free = std::find_if(free_.begin(), free_.end(),
                                   [bytes](const auto& room) { return room.second == bytes; });
    if (free == free_.end()) return TakeAlone(width);
    const size_t room = free->first;
    free_.erase(free);
    return room;
  }
  // A room that nothing had before, for what stays from block to block.
  size_t TakeAlone(size_t width) { return std::exchange(bytes_, bytes_ + kBlockElements * width); }
  void GiveBack(size_t room, size_t width) { free_.emplace_back(room, kBlockElements * width); }

  size_t bytes() const { return bytes_; }

 private:
  std::vector<std::pair<size_t, size_t>> free_;  // place and bytes
  size_t bytes_ = 0;
};

// An operand of a line.
struct BoundOperand {
  int input = -1;                 // of the machine; -1: what a line gave
  std::optional<Operand> stored;  // of an input
  Room given;                     // of what a line gave
  ConvertFn convert = nullptr;    // of what a line gave; null: it is of the wanted type
  Room room;                      // of what is converted or gathered
};

struct BoundLine {
  LaneFn lanes = nullptr;
  LaneParams params = {};
  std::vector<BoundOperand> operands;
  int divisor = -1;
  ConvertFn convert = nullptr;  // of what `lanes` writes
  Room written;                 // before it is converted
  Room given;                   // none: the output of the machine
  size_t width = 0;             // bytes of an element that it gives
};

// Lines with their rooms.
class Binder {
 public:
  explicit Binder(const BlockProgram& program) : program_(program) {
    for (size_t i = 0; i < program.lines.size(); ++i) {
      for (const int from : program.lines[i].from) {
        if (from < 0) last_use_[LineOf(from)] = i;
      }
    }
  }

  std::vector<BoundLine> Bind() {
    for (size_t i = 0; i < program_.lines.size(); ++i) bound_.push_back(Bind(i));
    return std::move(bound_);
  }
  size_t bytes() const { return rooms_.bytes(); }

 private:
  static size_t LineOf(int from) { return static_cast<size_t>(-1 - from); }

  BoundLine Bind(size_t i) {
    const BlockLine& line = program_.lines[i];
    BoundLine bound{.lanes = line.lanes, .params = line.params, .divisor = line.divisor};
    for (size_t o = 0; o < line.from.size(); ++o) {
      bound.operands.push_back(line.from[o] >= 0 ? Input(line.from[o], line.reads[o])
                                                 : Given(line.from[o], line.reads[o]));
    }
    bound.width = WidthOf(line.gives);
    if (line.writes != line.gives) {
      bound.convert = FindNumberConvert(line.writes, line.gives);
      bound.written = rooms_.Take(WidthOf(line.writes));
    }
    const bool last = i + 1 == program_.lines.size();
    if (!last) bound.given = rooms_.Take(bound.width);
    GiveBack(i, bound);
    return bound;
  }

  BoundOperand Input(int input, DataType wanted) {
    const TensorType& type = program_.inputs[static_cast<size_t>(input)];
    BoundOperand operand{.input = input};
    operand.stored.emplace(type, wanted, program_.out.shape);
    if (operand.stored->fills_once()) {
      operand.room = rooms_.TakeAlone(WidthOf(wanted));
    } else if (!operand.stored->in_place()) {
      operand.room = rooms_.Take(WidthOf(wanted));
    }
    return operand;
  }

  BoundOperand Given(int from, DataType wanted) {
    const size_t line = LineOf(from);
    BoundOperand operand{.given = bound_[line].given};
    if (program_.lines[line].gives == wanted) return operand;
    operand.convert = FindNumberConvert(program_.lines[line].gives, wanted);
    operand.room = rooms_.Take(WidthOf(wanted));
    return operand;
  }

  // The rooms that nothing reads after line i. Those of one repeated element stay filled.
  void GiveBack(size_t i, const BoundLine& bound) {
    const BlockLine& line = program_.lines[i];
    for (size_t o = 0; o < bound.operands.size(); ++o) {
      const BoundOperand& operand = bound.operands[o];
      const bool filled = operand.stored && operand.stored->fills_once();
      if (operand.room && !filled) rooms_.GiveBack(*operand.room, WidthOf(line.reads[o]));
    }
    if (bound.written) rooms_.GiveBack(*bound.written, WidthOf(line.writes));
    for (auto use = last_use_.begin(); use != last_use_.end();) {
      if (use->second != i) {
        ++use;
        continue;
      }
      rooms_.GiveBack(*bound_[use->first].given, bound_[use->first].width);
      use = last_use_.erase(use);
    }
  }

  const BlockProgram& program_;
  std::vector<BoundLine> bound_;
  std::map<size_t, size_t> last_use_;  // by line, the last one that reads it
  Rooms rooms_;
};

class BlockMachine final : public Kernel {
 public:
  BlockMachine(const BlockProgram& program, BlockOptions options)
      : options_(std::move(options)), elements_(program.out.shape.elements()) {
    Binder binder(program);
    lines_ = binder.Bind();
    bytes_ = binder.bytes();
    safe_ = std::all_of(lines_.begin(), lines_.end(),
                        [](const BoundLine& line) { return line.divisor < 0; });
  }

  bool safe() const { return safe_; }

  uint64_t scratch_bytes() const override {
    return bytes_ * static_cast<size_t>(safe_ ? options_.threads : 1);
  }

  Status Run(const KernelArgs& args) override {
    auto* const scratch = static_cast<std::byte*>(args.scratch);
    if (!safe_) return RunRange(args, scratch, 0, elements_);  // the first zero is reported
    const double work =
        kElementWork * static_cast<double>(elements_) * static_cast<double>(lines_.size());
    RunRanges(WorthThreads(work, options_.threads), elements_, kBlock,
              [&](int part, int64_t begin, int64_t end) {
                auto* const rooms = scratch + static_cast<size_t>(part) * bytes_;
                static_cast<void>(RunRange(args, rooms, begin, end));  // nothing can fail
              });
    return Status();
  }

 private:
  const void* Input(const KernelArgs& args, int input) const {
    if (!options_.first_in_output) return args.in[input];
    return input == 0 ? args.out[0] : args.in[input - 1];
  }

  // Elements [begin, end) of the output.
  Status RunRange(const KernelArgs& args, std::byte* rooms, int64_t begin, int64_t end) const {
    if (begin == end) return Status();
    for (const BoundLine& line : lines_) {
      for (const BoundOperand& operand : line.operands) {
        if (!operand.stored || !operand.room) continue;
        operand.stored->Start(Input(args, operand.input), rooms + *operand.room);
      }
    }
    const size_t width = lines_.back().width;
    auto* out = static_cast<std::byte*>(args.out[0]) + static_cast<size_t>(begin) * width;
    for (; begin < end; begin += kBlock) {
      const auto count = static_cast<size_t>(std::min(kBlock, end - begin));
      for (const BoundLine& line : lines_) {
        NPUMESH_RETURN_IF_ERROR(RunLine(line, args, rooms, begin, count, out));
      }
      out += count * width;
    }
    return Status();
  }

  // Elements [begin, begin + count) of a line; `out` is where the machine's output has them.
  Status RunLine(const BoundLine& line, const KernelArgs& args, std::byte* rooms, int64_t begin,
                 size_t count, std::byte* out) const {
    std::array<const void*, kMostOperands> in{};
    for (size_t o = 0; o < line.operands.size(); ++o) {
      in[o] = Load(args, rooms, line.operands[o], begin, count);
    }
    if (line.divisor >= 0) {
      const void* const divisors = in[static_cast<size_t>(line.divisor)];
      NPUMESH_RETURN_IF_ERROR(RefuseZeros(options_.who, divisors, begin, count));
    }
    std::byte* const given = line.given ? rooms + *line.given : out;
    const void* written = in[0];
    if (line.lanes != nullptr) {
      void* const to = line.written ? rooms + *line.written : given;
      line.lanes(in.data(), to, count, line.params);
      written = to;
    }
    if (line.convert != nullptr) {
      line.convert(written, given, count);
    } else if (written != given) {
      std::memcpy(given, written, count * line.width);
    }
    return Status();
  }

  const void* Load(const KernelArgs& args, std::byte* rooms, const BoundOperand& operand,
                   int64_t begin, size_t count) const {
    std::byte* const room = operand.room ? rooms + *operand.room : nullptr;
    if (operand.stored) {
      return operand.stored->Block(Input(args, operand.input), begin, count, room);
    }
    const std::byte* const given = rooms + *operand.given;
    if (operand.convert == nullptr) return given;
    operand.convert(given, room, count);
    return room;
  }

  BlockOptions options_;
  std::vector<BoundLine> lines_;
  int64_t elements_;
  size_t bytes_ = 0;  // of the rooms of a thread
  bool safe_ = true;  // no line can fail
};

}  // namespace

std::unique_ptr<Kernel> MakeBlockMachine(const BlockProgram& program, BlockOptions options) {
  return std::make_unique<BlockMachine>(program, std::move(options));
}

bool IsSafeBlockMachine(const Kernel& kernel) {
  const auto* machine = dynamic_cast<const BlockMachine*>(&kernel);
  return machine != nullptr && machine->safe();
}

Status RefuseZeros(const std::string& who, const void* block, int64_t begin, size_t count) {
  const uint64_t* values = static_cast<const uint64_t*>(block);
  const auto at = std::find(values, values + count, 0u) - values;
  if (at == static_cast<int64_t>(count)) return Status();
  return Error(Code::kInvalidArgument,
               "{}: integer division by zero at element {} of the output; give a divisor other "
               "than 0 or divide in a floating type",
               who, begin + at);
}

}  // namespace npumesh
