#include "graph/ops/toolbox/rows/double_kernel.h"

#include <algorithm>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

class RealKernel final : public Kernel {
 public:
  RealKernel(const OpContext& op, RealBody body) : body_(std::move(body)) {
    for (int slot = 0; slot < op.slots(); ++slot) {
      const ConvertFn load =
          op.has(slot) ? FindConvert(op.in(slot).dtype, DataType::kDouble) : nullptr;
      load_.push_back(load);
      const int64_t count = load != nullptr ? op.in(slot).shape.elements() : 0;
      tensors_.in.emplace_back(static_cast<size_t>(count));
    }
    for (int port = 0; port < op.outputs(); ++port) {
      store_.push_back(FindConvert(DataType::kDouble, op.out(port).dtype));
      tensors_.out.emplace_back(static_cast<size_t>(op.out(port).shape.elements()));
    }
  }

  Status Run(const KernelArgs& args) override {
    for (size_t slot = 0; slot < load_.size(); ++slot) {
      if (load_[slot] == nullptr) continue;
      std::vector<double>& in = tensors_.in[slot];
      load_[slot](args.in[slot], in.data(), in.size());
    }
    for (std::vector<double>& out : tensors_.out) std::fill(out.begin(), out.end(), 0.0);
    NPUMESH_RETURN_IF_ERROR(body_(tensors_));
    for (size_t port = 0; port < store_.size(); ++port) {
      store_[port](tensors_.out[port].data(), args.out[port], tensors_.out[port].size());
    }
    return Status();
  }

 private:
  RealBody body_;
  std::vector<ConvertFn> load_;  // null: not fed
  std::vector<ConvertFn> store_;
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
