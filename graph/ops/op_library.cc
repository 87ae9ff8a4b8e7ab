#include "graph/ops/op_library.h"

#include <algorithm>
#include <set>

#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/custom_operator.h"
#include "runtime/base/files/mapped_file.h"
#include "runtime/base/files/shared_library.h"

namespace npumesh {
namespace {

using AddOperators = void (*)(OperatorList&);

class CatchingKernel final : public Kernel {
 public:
  CatchingKernel(std::string who, std::unique_ptr<Kernel> kernel)
      : who_(std::move(who)), kernel_(std::move(kernel)) {
    set_choice(kernel_->choice());
  }
  Status Run(const KernelArgs& args) override {
    return WithoutExceptions(who_, [&] { return kernel_->Run(args); });
  }
  uint64_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  bool reads(int slot) const override { return kernel_->reads(slot); }

 private:
  std::string who_;
  std::unique_ptr<Kernel> kernel_;
};

// The operator with all its functions wrapped in WithoutExceptions.
Operator Catching(Operator op) {
  op.infer = [infer = std::move(op.infer)](OpContext& context) {
    return WithoutExceptions(context.Who(), [&] { return infer(context); });
  };
  if (op.make_kernel) {
    op.make_kernel = [make = std::move(op.make_kernel)](
                         const OpContext& context) -> Result<std::unique_ptr<Kernel>> {
      const std::string who = context.Who();
      NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                               WithoutExceptions(who, [&] { return make(context); }));
      if (kernel == nullptr) return Error(Code::kInternal, "{}: its library made no kernel", who);
      return std::unique_ptr<Kernel>(new CatchingKernel(who, std::move(kernel)));
    };
  }
  if (op.evaluate) {
    op.evaluate = [evaluate = std::move(op.evaluate)](const OpContext& context,
                                                      std::span<const void* const> in) {
      return WithoutExceptions(context.Who(), [&] { return evaluate(context, in); });
    };
  }
  return op;
}

bool HasTwice(std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

// What is wrong with an operator by itself; empty: nothing.
std::string_view Flaw(const Operator& op) {
  const OpSchema& schema = op.schema;
  std::vector<std::string_view> inputs, outputs, attrs;
  for (const PortSpec& port : schema.inputs) inputs.push_back(port.name);
  for (const PortSpec& port : schema.outputs) outputs.push_back(port.name);
  for (const AttrSpec& attr : schema.attrs) attrs.push_back(attr.name);
  const auto is_input = [&](std::string_view port) {
    return std::find(inputs.begin(), inputs.end(), port) != inputs.end();
  };
  if (schema.type.empty()) return "has no name";
  if (HasTwice(inputs) || HasTwice(outputs) || HasTwice(attrs)) return "names something twice";
  if (op.infer == nullptr) return "has no shape inference";
  if (op.control_flow) return "asks for subgraphs, which only built-in operators run";
  if (op.view ? op.make_kernel || op.evaluate : !op.make_kernel == !op.evaluate) {
    return "must have one of make_kernel, evaluate and view";
  }
  if (op.view && (schema.inputs.empty() || schema.outputs.empty())) {
    return "is a view without an input or an output";
  }
  if (!std::all_of(op.value_inputs.begin(), op.value_inputs.end(), is_input)) {
    return "needs the value of an input that it does not have";
  }
  for (const InPlace& place : op.in_place) {
    if (place.slot < 0 || place.output < 0 || static_cast<size_t>(place.slot) >= inputs.size()) {
      return "updates an input that it does not have";
    }
  }
  return "";
}

std::string AbiText(const OperatorAbi& abi) {
  return fmt::format("{} (strings {}; sizes {}, {}, {}, {})", abi.version, abi.cxx11_strings,
                     abi.operator_bytes, abi.context_bytes, abi.node_bytes, abi.tensor_bytes);
}

Status CheckAbi(const OperatorAbi& library) {
  if (library.version != kOperatorAbi.version) {
    return Error(Code::kUnsupported,
                 "built for operator interface {}, this npumesh has {}; build the library again "
                 "with the headers of this npumesh",
                 library.version, kOperatorAbi.version);
  }
  if (library == kOperatorAbi) return Status();
  return Error(Code::kUnsupported,
               "built for operator interface {}, this npumesh has {}; build the library again with "
               "the headers and the standard library of this npumesh",
               AbiText(library), AbiText(kOperatorAbi));
}

// What the library adds, checked but for names that are taken.
Result<std::vector<Operator>> OperatorsOf(const LibraryHandle& library) {
  const auto* abi = static_cast<const OperatorAbi*>(SymbolOf(library, "NpumeshOperatorAbi"));
  const auto add = reinterpret_cast<AddOperators>(SymbolOf(library, "NpumeshAddOperators"));
  if (abi == nullptr || add == nullptr) {
    return Error(Code::kInvalidArgument,
                 "not an operator library: it has no symbol {}; define it with "
                 "NPUMESH_OPERATOR_LIBRARY of graph/ops/core/custom_operator.h",
                 abi == nullptr ? "NpumeshOperatorAbi" : "NpumeshAddOperators");
  }
  NPUMESH_RETURN_IF_ERROR(CheckAbi(*abi));
  OperatorList list;
  NPUMESH_RETURN_IF_ERROR(WithoutExceptions("NpumeshAddOperators", [&] {
    add(list);
    return Status();
  }));
  for (const Operator& op : list.operators()) {
    const std::string_view flaw = Flaw(op);
    if (flaw.empty()) continue;
    return Error(Code::kInvalidArgument, "operator \"{}\" {}", op.schema.type, flaw);
  }
  return std::move(list.operators());
}

Status CheckNames(const std::vector<Operator>& operators, const OpRegistry& registry) {
  std::set<std::string_view> names;
  for (const Operator& op : operators) {
    const bool in_library = !names.insert(op.schema.type).second;
    if (!in_library && registry.Find(op.schema.type) == nullptr) continue;
    return Error(Code::kInvalidArgument, "operator \"{}\" {}; choose another name", op.schema.type,
                 in_library ? "is twice in the library" : "is known already");
  }
  return Status();
}

Status Load(const std::string& path, OpRegistry& registry, LibraryTrust trust) {
  NPUMESH_ASSIGN_OR_RETURN(LibraryHandle library,
                           OpenLibrary(path, trust, "--allow-writable-library"));
  NPUMESH_ASSIGN_OR_RETURN(std::vector<Operator> operators, OperatorsOf(library));
  NPUMESH_RETURN_IF_ERROR(CheckNames(operators, registry));
  for (Operator& op : operators) registry.Add(Catching(std::move(op)));
  static_cast<void>(library.release());
  return Status();
}

}  // namespace

Status LoadOpLibrary(const std::string& path, OpRegistry& registry, LibraryTrust trust) {
  NPUMESH_RETURN_IF_ERROR(
      MappedFile::Open(path).status().WithContext("operator library"));  // a regular file
  return Load(path, registry, trust).WithContext(fmt::format("operator library {}", path));
}

Result<std::shared_ptr<const OpRegistry>> OperatorsWith(const std::vector<std::string>& libraries,
                                                        LibraryTrust trust) {
  if (libraries.empty()) {
    return std::shared_ptr<const OpRegistry>(std::shared_ptr<void>(), &BuiltinOps());
  }
  auto registry = std::make_shared<OpRegistry>(BuiltinOps());
  for (const std::string& path : libraries) {
    NPUMESH_RETURN_IF_ERROR(LoadOpLibrary(path, *registry, trust));
  }
  return std::shared_ptr<const OpRegistry>(std::move(registry));
}

}  // namespace npumesh
