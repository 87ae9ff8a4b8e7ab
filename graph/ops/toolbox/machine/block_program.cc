#include "graph/ops/toolbox/machine/block_program.h"

#include <map>
#include <utility>

#include "graph/ops/toolbox/machine/calls.h"
#include "graph/ops/toolbox/machine/lone_program.h"

namespace npumesh {
namespace {

bool Divides(LoopOp op) {
  return op == LoopOp::kDiv || op == LoopOp::kFloorDiv || op == LoopOp::kFloorMod;
}

// Writes the lines of a program. Conversions are no lines where a line or a reader can do them: the
// one that computes a value gives it rounded, and readers read it as the type that they compute in.
class LineWriter {
 public:
  LineWriter(const LoopProgram& program, std::vector<TensorType> inputs, const TensorType& out)
      : program_(program), blocks_{.inputs = std::move(inputs), .out = out} {
    for (const LoopInstruction& line : program.instructions) {
      for (const LoopValue arg : line.args) ++uses_[arg];
    }
  }

  std::optional<BlockProgram> Write() {
    if (program_.outputs.size() != 1) return std::nullopt;
    for (size_t v = 0; v < program_.instructions.size(); ++v) {
      if (!Add(program_.instructions[v])) return std::nullopt;
    }
    const Source y = sources_[static_cast<size_t>(program_.outputs[0].value)];
    const bool given = IsLast(y) && blocks_.lines.back().gives == blocks_.out.dtype;
    if (!given || y.converted) {
      AddLine({.from = {y.from}, .reads = {y.type}, .writes = y.type, .gives = blocks_.out.dtype});
    }
    return std::move(blocks_);
  }

 private:
  // Where a value is found, and as what its readers have to read it.
  struct Source {
    int from = 0;  // as BlockLine::from
    DataType type = DataType::kUndefined;
    bool converted = false;  // the source has another type
  };

  bool IsLast(const Source& source) const {
    return source.from < 0 && source.from == -static_cast<int>(blocks_.lines.size());
  }

  bool Add(const LoopInstruction& line) {
    if (line.op == LoopOp::kConstant || Reduces(line.op) || line.type == LoopType::kSum) {
      return false;
    }
    if (line.op == LoopOp::kInput) {
      const LoopInput& input = program_.inputs[static_cast<size_t>(line.index)];
      sources_.push_back({input.tensor, ElementOf(line.type)});
    } else if (IsConversion(line.op)) {
      sources_.push_back(Converted(line));
    } else if (HasTarget(line.op)) {
      sources_.push_back(Rounded(line));
    } else {
      return Compute(line);
    }
    return true;
  }

  // A value that its readers convert; what was converted already becomes a line.
  Source Converted(const LoopInstruction& line) {
    Source source = sources_[static_cast<size_t>(line.args[0])];
    if (source.converted) source = Given(source, source.type);
    return {source.from, ElementOf(line.type), true};
  }

  // A value with the numbers of another type. The line that computes it gives it so, unless others
  // read it as it is.
  Source Rounded(const LoopInstruction& line) {
    const Source source = sources_[static_cast<size_t>(line.args[0])];
    if (IsLast(source) && !source.converted && uses_[line.args[0]] == 1) {
      BlockLine& before = blocks_.lines.back();
      if (before.gives == before.writes) {
        before.gives = line.dtype;
        return {source.from, ElementOf(line.type)};
      }
    }
    const Source given = Given(source, line.dtype);
    return {given.from, ElementOf(line.type)};
  }

  Source Given(const Source& source, DataType gives) {
    const int from = AddLine(
        {.from = {source.from}, .reads = {source.type}, .writes = source.type, .gives = gives});
    return {from, gives};
  }

  bool Compute(const LoopInstruction& line) {
    const LoopType type = program_.instructions[static_cast<size_t>(line.args.back())].type;
    BlockLine block{.lanes = FunctionOf(line.op, type), .params = line.params};
    if (block.lanes == nullptr) return false;
    for (const LoopValue arg : line.args) {
      const Source& source = sources_[static_cast<size_t>(arg)];
      block.from.push_back(source.from);
      block.reads.push_back(source.type);
    }
    block.writes = block.gives = ElementOf(line.type);
    if (Divides(line.op) && IsInteger(block.writes)) block.divisor = 1;
    const int from = AddLine(std::move(block));
    sources_.push_back({from, ElementOf(line.type)});
    return true;
  }

  // Gives the line as BlockLine::from.
  int AddLine(BlockLine line) {
    blocks_.lines.push_back(std::move(line));
    return -static_cast<int>(blocks_.lines.size());
  }

  const LoopProgram& program_;
  BlockProgram blocks_;
  std::vector<Source> sources_;    // by value
  std::map<LoopValue, int> uses_;  // by value, as an argument
};

// Whether every input is read at the places of the output, repeated where it has one element. A
// norm, whose kernel is dearer to make, is not.
bool AllBroadcastTo(const OpContext& context, const Shape& out) {
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot)) continue;
    const Shape& in = context.in(slot).shape;
    if (in.rank() > out.rank()) return false;
    for (int back = 1; back <= in.rank(); ++back) {
      const int64_t size = in[in.rank() - back];
      if (size != 1 && size != out[out.rank() - back]) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<BlockProgram> BlocksOf(const LoopProgram& program, std::vector<TensorType> inputs,
                                     const TensorType& out) {
  return LineWriter(program, std::move(inputs), out).Write();
}

std::optional<BlockProgram> BlocksOf(const OpContext& op, const LoopFn& loop) {
  const Shape& space = op.out(0).shape;
  const std::optional<LoopProgram> program = LoneProgram(op, loop, space, LoopTarget::kBlocks);
  if (!program) return std::nullopt;
  std::vector<TensorType> inputs;
  for (int slot = 0; slot < op.slots(); ++slot) inputs.push_back(op.in(slot));
  return BlocksOf(*program, std::move(inputs), op.out(0));
}

bool ComputesInBlocks(const Operator& op, const OpContext& context) {
  if (context.outputs() != 1 || op.make_kernel == nullptr || op.loop == nullptr) return false;
  if (!AllBroadcastTo(context, context.out(0).shape)) return false;
  if (op.schema.type != "Cast") {
    const Result<std::unique_ptr<Kernel>> kernel = op.make_kernel(context);
    if (!kernel.ok() || !IsSafeBlockMachine(**kernel)) return false;
  }
  return BlocksOf(context, op.loop).has_value();
}

}  // namespace npumesh
