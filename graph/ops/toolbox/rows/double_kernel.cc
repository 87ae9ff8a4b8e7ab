#include "graph/ops/toolbox/rows/double_kernel.h"

#include <algorithm>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

class RealKernel final : public Kernel {
 public:
  RealKernel(const OpContext& op, RealBody body) : body_(std::move(body)), threads_(op.threads()) {
    for (int slot = 0; slot < op.slots(); ++slot) {
      const ConvertFn load =
          op.has(slot) ? FindConvert(op.in(slot).dtype, DataType::kDouble) : nullptr;
      load_.push_back({load, load != nullptr ? WidthOf(op.in(slot).dtype) : 0, sizeof(double)});
      const int64_t count = load != nullptr ? op.in(slot).shape.elements() : 0;
      tensors_.in.emplace_back(static_cast<size_t>(count));
    }
    for (int port = 0; port < op.outputs(); ++port) {
      const DataType out = op.out(port).dtype;
      store_.push_back({FindConvert(DataType::kDouble, out), sizeof(double), WidthOf(out)});
      tensors_.out.emplace_back(static_cast<size_t>(op.out(port).shape.elements()));
    }
  }

  Status Run(const KernelArgs& args) override {
    for (size_t slot = 0; slot < load_.size(); ++slot) {
      if (load_[slot].function == nullptr) continue;
      std::vector<double>& in = tensors_.in[slot];
      Convert(load_[slot], args.in[slot], in.data(), in.size());
    }
    for (std::vector<double>& out : tensors_.out) std::fill(out.begin(), out.end(), 0.0);
    NPUMESH_RETURN_IF_ERROR(body_(tensors_));
    for (size_t port = 0; port < store_.size(); ++port) {
      const std::vector<double>& out = tensors_.out[port];
      Convert(store_[port], out.data(), args.out[port], out.size());
    }
    return Status();
  }

 private:
  struct Conversion {
    ConvertFn function;  // null: not fed
    size_t from_bytes, to_bytes;
  };

  // Threads share the elements.
  void Convert(const Conversion& by, const void* from, void* to, size_t count) const {
    const auto* const source = static_cast<const std::byte*>(from);
    auto* const target = static_cast<std::byte*>(to);
    const int parts = WorthThreads(static_cast<double>(count), threads_);
    constexpr int64_t kGrain = 64;  // whole cache lines, whatever the type
    RunRanges(parts, static_cast<int64_t>(count), kGrain, [&](int, int64_t begin, int64_t end) {
      const auto first = static_cast<size_t>(begin);
      by.function(source + first * by.from_bytes, target + first * by.to_bytes,
                  static_cast<size_t>(end - begin));
    });
  }

  RealBody body_;
  const int threads_;
  std::vector<Conversion> load_;
  std::vector<Conversion> store_;
  RealTensors tensors_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeRealKernel(const OpContext& op, RealBody body) {
  std::vector<int64_t> elements;
  for (int slot = 0; slot < op.slots(); ++slot) {
    if (op.has(slot)) elements.push_back(op.in(slot).shape.elements());
  }
  for (int port = 0; port < op.outputs(); ++port) {
    elements.push_back(op.out(port).shape.elements());
  }
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, SumOfDims(Shape(std::move(elements))), sizeof(double)));
  return std::unique_ptr<Kernel>(std::make_unique<RealKernel>(op, std::move(body)));
}

Status ExpectType(const OpContext& op, std::string_view port, TypeSet expected) {
  if (!op.has(port) || expected.Contains(op.in(port).dtype)) return Status();
  return Error(Code::kUnsupported, "{}: \"{}\" is {}, expected {}", op.Who(), port,
               op.in(port).ToString(), expected.ToString());
}

Status ExpectReal(const OpContext& op, std::string_view port) {
  return ExpectType(op, port, kFloatsAndDouble);
}

Status ExpectAllReal(const OpContext& op) {
  for (const PortSpec& port : op.schema().inputs) {
    NPUMESH_RETURN_IF_ERROR(ExpectReal(op, port.name));
  }
  return Status();
}

Status ExpectCount(const OpContext& op, std::string_view port, int64_t count,
                   std::string_view what) {
  if (!op.has(port) || op.in(port).shape.elements() == count) return Status();
  return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected {} elements, one for each {}",
               op.Who(), port, op.in(port).ToString(), count, what);
}

Status ExpectSameShape(const OpContext& op, std::string_view port, std::string_view as) {
  if (op.in(port).shape == op.in(as).shape) return Status();
  return Error(Code::kInvalidArgument, "{}: \"{}\" is {} and \"{}\" {}, expected equal shapes",
               op.Who(), port, op.in(port).ToString(), as, op.in(as).ToString());
}

}  // namespace npumesh
