#include "graph/ops/toolbox/formula/formula_chain.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "graph/ops/toolbox/copy/block_operand.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

// An operand of a link: an input of the chain or the output of an earlier link, and the room for
// what has to be converted.
struct ChainOperand {
  int input = -1;
  std::optional<Operand> stored;  // of an input
  size_t link = 0;                // otherwise
  ConvertFn convert = nullptr;    // of a link's output; null: of the wanted type already
  size_t room = 0;                // index of a BlockBuffer
};

struct BoundLink {
  BlockPlan plan;
  std::vector<ChainOperand> operands;
  ConvertFn convert = nullptr;  // from what the formula writes to the link's dtype
  size_t room = 0;              // of what the formula writes
  size_t output = 0;            // of the output, the same without `convert`
  size_t width = 0;             // bytes of an element of the output
};

class ChainKernel final : public Kernel {
 public:
  ChainKernel(std::vector<ChainLink> links, const std::vector<TensorType>& inputs,
              const TensorType& out, int threads, bool first_in_output)
      : elements_(out.shape.elements()), threads_(threads), first_in_output_(first_in_output) {
    for (size_t i = 0; i < links.size(); ++i) Bind(links, i, inputs, out.shape);
  }

  uint64_t scratch_bytes() const override {
    return rooms_ * sizeof(BlockBuffer) * static_cast<size_t>(threads_);
  }

  Status Run(const KernelArgs& args) override {
    const double work =
        kElementWork * static_cast<double>(elements_) * static_cast<double>(links_.size());
    auto* const rooms = static_cast<BlockBuffer*>(args.scratch);
    RunRanges(WorthThreads(work, threads_), elements_, kBlock,
              [&](int part, int64_t begin, int64_t end) {
                RunRange(args, rooms + static_cast<size_t>(part) * rooms_, begin, end);
              });
    return Status();
  }

 private:
  static constexpr int64_t kBlock = kBlockElements;

  void Bind(std::vector<ChainLink>& links, size_t i, const std::vector<TensorType>& inputs,
            const Shape& shape) {
    ChainLink& link = links[i];
    BoundLink bound;
    for (size_t o = 0; o < link.from.size(); ++o) {
      const DataType wanted = link.plan.operands[o];
      ChainOperand operand{.input = link.from[o], .room = rooms_++};
      if (operand.input >= 0) {
        operand.stored.emplace(inputs[static_cast<size_t>(operand.input)], wanted, shape);
      } else {
        operand.link = static_cast<size_t>(-1 - operand.input);
        const DataType dtype = links[operand.link].dtype;
        if (dtype != wanted) operand.convert = FindConvert(dtype, wanted);
      }
      bound.operands.push_back(std::move(operand));
    }
    const bool casts = link.plan.block == nullptr;
    if (!casts && link.plan.result != link.dtype) {
      bound.convert = FindConvert(link.plan.result, link.dtype);
    }
    bound.room = rooms_++;
    bound.output = bound.convert == nullptr ? bound.room : rooms_++;
    bound.width = WidthOf(link.dtype);
    bound.plan = std::move(link.plan);
    links_.push_back(std::move(bound));
  }

  const void* Input(const KernelArgs& args, int input) const {
    if (!first_in_output_) return args.in[input];
    return input == 0 ? args.out[0] : args.in[input - 1];
  }

  // Elements [begin, end) of the output, in rooms of their own.
  void RunRange(const KernelArgs& args, BlockBuffer* rooms, int64_t begin, int64_t end) const {
    for (const BoundLink& link : links_) {
      for (const ChainOperand& operand : link.operands) {
        if (operand.stored) operand.stored->Start(Input(args, operand.input), rooms[operand.room]);
      }
    }
    const size_t width = links_.back().width;
    auto* out = static_cast<std::byte*>(args.out[0]) + static_cast<size_t>(begin) * width;
    for (; begin < end; begin += kBlock) {
      const auto count = static_cast<size_t>(std::min(kBlock, end - begin));
      RunBlock(args, rooms, begin, count, out);
      out += count * width;
    }
  }

  // Elements [begin, begin + count) of the output, which belong to `out`.
  void RunBlock(const KernelArgs& args, BlockBuffer* rooms, int64_t begin, size_t count,
                std::byte* out) const {
    for (const BoundLink& link : links_) {
      const bool last = &link == &links_.back();
      std::array<const void*, kMostOperands> in{};
      for (size_t o = 0; o < link.operands.size(); ++o) {
        in[o] = Load(args, rooms, link.operands[o], begin, count);
      }
      RunLink(link, in.data(), rooms, count, last ? out : rooms[link.output].bytes);
    }
  }

  const void* Load(const KernelArgs& args, BlockBuffer* rooms, const ChainOperand& operand,
                   int64_t begin, size_t count) const {
    BlockBuffer& room = rooms[operand.room];
    if (operand.stored) {
      return operand.stored->Block(Input(args, operand.input), begin, count, room);
    }
    const void* value = rooms[links_[operand.link].output].bytes;
    if (operand.convert == nullptr) return value;
    operand.convert(value, room.bytes, count);
    return room.bytes;
  }

  // Writes the output of a link to `to`.
  static void RunLink(const BoundLink& link, const void* const* in, BlockBuffer* rooms,
                      size_t count, void* to) {
    if (link.plan.block == nullptr) {
      if (in[0] != to) std::memcpy(to, in[0], count * link.width);
    } else if (link.convert == nullptr) {
      link.plan.block(in, to, count, link.plan.params);
    } else {
      link.plan.block(in, rooms[link.room].bytes, count, link.plan.params);
      link.convert(rooms[link.room].bytes, to, count);
    }
  }

  std::vector<BoundLink> links_;
  int64_t elements_;
  int threads_;
  bool first_in_output_;
  size_t rooms_ = 0;
};

// Whether every input is read at the places of the output, repeated where it has one element. A
// product, whose kernel is dear to make, is not.
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

std::optional<ChainLink> LinkOf(const Operator& op, const OpContext& context) {
  if (context.outputs() != 1 || op.make_kernel == nullptr) return std::nullopt;
  const DataType dtype = context.out(0).dtype;
  if (FindConvert(dtype, DataType::kFloat) == nullptr) return std::nullopt;  // wider than a room
  if (!AllBroadcastTo(context, context.out(0).shape)) return std::nullopt;
  if (op.schema.type == "Cast") return ChainLink{{.operands = {dtype}, .result = dtype}, dtype, {}};
  const Result<std::unique_ptr<Kernel>> kernel = op.make_kernel(context);
  const BlockPlan* plan = kernel.ok() ? BlockPlanOf(**kernel) : nullptr;
  if (plan == nullptr || plan->divisor >= 0) return std::nullopt;
  return ChainLink{*plan, dtype, {}};
}

std::unique_ptr<Kernel> MakeChainKernel(std::vector<ChainLink> links,
                                        const std::vector<TensorType>& inputs,
                                        const TensorType& out, int threads, bool first_in_output) {
  return std::make_unique<ChainKernel>(std::move(links), inputs, out, threads, first_in_output);
}

}  // namespace npumesh
