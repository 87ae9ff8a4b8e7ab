#include "tests/unit/op_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "graph/ops/core/bound_axes.h"
#include "tests/unit/op_unknown.h"

namespace npumesh {

std::vector<CallListener*>& call_listeners() {
  static std::vector<CallListener*> listeners;
  return listeners;
}

bool SameBytes(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

namespace op_test {

Node MakeNode(const Operator& op, const OpCall& call) {
  Node node;
  node.id = 0;
  node.name = "node_under_test";
  node.type = call.type;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    node.inputs.push_back(Value{1, static_cast<int>(i)});
    TensorDesc desc;
    desc.name = call.inputs[i].port;
    node.input_descs.push_back(std::move(desc));
  }
  const size_t outputs =
      call.outputs > 0 ? static_cast<size_t>(call.outputs) : op.schema.outputs.size();
  for (size_t i = 0; i < outputs; ++i) {
    TensorDesc desc;
    desc.name = i < op.schema.outputs.size() ? std::string(op.schema.outputs[i].name) : "";
    node.output_descs.push_back(std::move(desc));
  }
  for (const auto& [name, value] : call.attrs) node.attrs[name] = value;
  return node;
}

namespace {

// Letters have one size in all tensors, where values that are known say which axes have them.
void ExpectSizesOfAxes(const Operator& op, const OpContext& context) {
  if (!op.axes.given()) return;
  for (int port = 0; port < context.outputs(); ++port) {
    if (!context.out(port).shape.is_static()) return;
  }
  const Status bound = BindAxes(op.axes, context, ValuesOf(context)).status();
  EXPECT_TRUE(bound.ok() || bound.code() == Code::kUnsupported)
      << op.schema.type << ": " << bound.message();
}

}  // namespace

Result<OpContext> BindAndInfer(const Operator& op, const OpCall& call, const Node& node) {
  NPUMESH_ASSIGN_OR_RETURN(OpContext context, OpContext::Bind(node, op.schema));
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot)) continue;
    const OpInput& input = call.inputs[static_cast<size_t>(context.input_index(slot))];
    context.set_in(slot, input.value.type());
    bool known = input.known == Known::kYes;
    if (input.known == Known::kIfNeeded) {
      for (const std::string_view port : op.value_inputs) {
        const int first = context.slot(port);
        known = known || (slot >= first && slot < first + context.count(port));
      }
    }
    if (known) context.set_value(slot, &input.value);
  }
  context.set_groups(call.groups);
  context.set_threads(call.threads);
  const OpContext types = context;
  NPUMESH_RETURN_IF_ERROR(op.infer(context));
  ExpectSoundWithUnknowns(op, types, context);
  ExpectSizesOfAxes(op, context);
  return context;
}

Result<std::vector<Tensor>> RunOnce(const Operator& op, const OpCall& call,
                                    const OpContext& context, Kernel* kernel, int over) {
  std::vector<std::unique_ptr<GuardedBytes>> in_bytes;
  std::vector<const void*> in(static_cast<size_t>(context.slots()), nullptr);
  std::vector<std::byte*> writable(in.size(), nullptr);
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot)) continue;
    const Tensor& value = call.inputs[static_cast<size_t>(context.input_index(slot))].value;
    in_bytes.push_back(std::make_unique<GuardedBytes>(value.data(), value.bytes()));
    writable[static_cast<size_t>(slot)] = in_bytes.back()->data();
    in[static_cast<size_t>(slot)] = in_bytes.back()->data();
  }

  std::vector<std::unique_ptr<GuardedBytes>> out_bytes;
  std::vector<void*> out;
  std::vector<bool> updated(in.size(), false);
  for (int port = 0; port < context.outputs(); ++port) {
    int place = port == 0 ? over : -1;
    for (const InPlace& pair : InPlacesOf(op, context)) {
      if (pair.output == port) place = pair.slot;
    }
    if (place >= 0) {
      out.push_back(writable[static_cast<size_t>(place)]);
      updated[static_cast<size_t>(place)] = true;
    } else {
      out_bytes.push_back(std::make_unique<GuardedBytes>(context.out(port).bytes()));
      out.push_back(out_bytes.back()->data());
    }
  }

  std::vector<int> hidden;  // slots that are updated without an output port
  for (const InPlace& pair : InPlacesOf(op, context)) {
    if (pair.output < context.outputs() || !context.has(pair.slot)) continue;
    updated[static_cast<size_t>(pair.slot)] = true;
    hidden.push_back(pair.slot);
  }

  if (op.view) {
    const uint64_t bytes = context.out(0).bytes();
    EXPECT_EQ(bytes, context.in(0).bytes()) << "a view keeps its bytes";
    if (bytes > 0) std::memcpy(out[0], in[0], bytes);
  } else {
    GuardedBytes scratch(kernel->scratch_bytes());
    NPUMESH_RETURN_IF_ERROR(kernel->Run({in.data(), out.data(), scratch.data()}));
    EXPECT_TRUE(scratch.guard_is_whole()) << call.type << " wrote behind its scratch memory";
  }

  for (const auto& bytes : in_bytes) {
    EXPECT_TRUE(bytes->guard_is_whole()) << call.type << " wrote behind an input";
  }
  for (const auto& bytes : out_bytes) {
    EXPECT_TRUE(bytes->guard_is_whole()) << call.type << " wrote behind an output";
  }
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot) || updated[static_cast<size_t>(slot)]) continue;
    const Tensor& value = call.inputs[static_cast<size_t>(context.input_index(slot))].value;
    EXPECT_TRUE(value.bytes() == 0 ||
                std::memcmp(value.data(), in[static_cast<size_t>(slot)], value.bytes()) == 0)
        << call.type << " changed input slot " << slot;
  }

  std::vector<Tensor> results;
  for (int port = 0; port < context.outputs(); ++port) {
    Tensor result = Tensor::Allocate(context.out(port));
    if (result.bytes() > 0) {
      std::memcpy(result.mutable_data(), out[static_cast<size_t>(port)], result.bytes());
    }
    results.push_back(std::move(result));
  }
  for (const int slot : hidden) {
    Tensor result = Tensor::Allocate(context.in(slot));
    if (result.bytes() > 0) {
      std::memcpy(result.mutable_data(), in[static_cast<size_t>(slot)], result.bytes());
    }
    results.push_back(std::move(result));
  }
  return results;
}

namespace {

// Input slots whose storage output 0 may take over.
std::vector<int> SlotsToReuse(const Operator& op, const OpContext& context) {
  std::vector<int> slots;
  if (!op.axes.elementwise() || context.outputs() == 0) return slots;
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (context.has(slot) && context.in(slot).shape.elements() == context.out(0).shape.elements() &&
        context.in(slot).bytes() == context.out(0).bytes()) {
      slots.push_back(slot);
    }
  }
  return slots;
}

// The outputs of another run have the same bits; `when` says what was different.
void ExpectSameOutputs(const OpCall& call, const std::vector<Tensor>& outputs,
                       const std::vector<Tensor>& again, const std::string& when) {
  for (size_t port = 0; port < outputs.size(); ++port) {
    EXPECT_TRUE(SameBytes(outputs[port], again[port]))
        << call.type << ": output " << port << " differs " << when;
  }
}

// The outputs have the same bits when three threads share them out, however little there is.
Status ExpectSameWithThreads(const Operator& op, const OpCall& call, OpContext context,
                             const std::vector<Tensor>& outputs) {
  SetWorthThreads(0);
  context.set_threads(3);
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, op.make_kernel(context));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> again,
                           RunOnce(op, call, context, kernel.get(), -1));
  ExpectSameOutputs(call, outputs, again, "with three threads");
  return Status();
}

}  // namespace
}  // namespace op_test

Result<std::vector<TensorType>> InferOp(const OpRegistry& registry, const OpCall& call) {
  const Operator* op = registry.Find(call.type);
  if (op == nullptr) return Error(Code::kNotFound, "no operator \"{}\"", call.type);
  const Node node = op_test::MakeNode(*op, call);
  NPUMESH_ASSIGN_OR_RETURN(const OpContext context, op_test::BindAndInfer(*op, call, node));
  std::vector<TensorType> types;
  for (int port = 0; port < context.outputs(); ++port) types.push_back(context.out(port));
  return types;
}

Result<std::vector<Tensor>> RunOp(const OpRegistry& registry, const OpCall& call) {
  const Operator* op = registry.Find(call.type);
  if (op == nullptr) return Error(Code::kNotFound, "no operator \"{}\"", call.type);
  const Node node = op_test::MakeNode(*op, call);
  NPUMESH_ASSIGN_OR_RETURN(const OpContext context, op_test::BindAndInfer(*op, call, node));
  std::unique_ptr<Kernel> kernel;
  if (!op->view) {
    NPUMESH_ASSIGN_OR_RETURN(kernel, op->make_kernel(context));
  }
  NPUMESH_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                           op_test::RunOnce(*op, call, context, kernel.get(), -1));
  op_test::NoteRun(context);
  op_test::NoteOutputs(context, outputs);
  for (CallListener* const listener : call_listeners()) listener->Ran(*op, context, call, outputs);
  if (op->view || op->collective || !op->pure) return outputs;
  NPUMESH_RETURN_IF_ERROR(op_test::ExpectSameWithThreads(*op, call, context, outputs));

  std::vector<int> placements = op_test::SlotsToReuse(*op, context);
  placements.push_back(-1);
  for (const int over : placements) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> again,
                             op_test::RunOnce(*op, call, context, kernel.get(), over));
    op_test::ExpectSameOutputs(
        call, outputs, again,
        over < 0 ? std::string("when run again") : fmt::format("when placed over slot {}", over));
  }
  return outputs;
}

Tensor RunOne(const OpRegistry& registry, const OpCall& call) {
  Result<std::vector<Tensor>> outputs = RunOp(registry, call);
  EXPECT_TRUE(outputs.ok()) << call.type << ": " << outputs.status().ToString();
  if (!outputs.ok() || outputs->empty()) return Tensor();
  return (*outputs)[0];
}

Status FailOf(const OpRegistry& registry, const OpCall& call) {
  Result<std::vector<Tensor>> outputs = RunOp(registry, call);
  EXPECT_FALSE(outputs.ok()) << call.type << " should have failed";
  return outputs.status();
}

std::string ChoiceOf(const OpRegistry& registry, const OpCall& call) {
  const Operator* op = registry.Find(call.type);
  if (op == nullptr) return "no operator " + call.type;
  const Node node = op_test::MakeNode(*op, call);
  const Result<OpContext> context = op_test::BindAndInfer(*op, call, node);
  if (!context.ok()) return context.status().ToString();
  const Result<std::unique_ptr<Kernel>> kernel = op->make_kernel(*context);
  return kernel.ok() ? (*kernel)->choice().ToString() : kernel.status().ToString();
}

void ExpectFails(const OpRegistry& registry, const OpCall& call, Code code,
                 const std::vector<std::string>& words) {
  const Status status = FailOf(registry, call);
  EXPECT_EQ(status.code(), code) << status.ToString();
  EXPECT_NE(status.message().find("node_under_test"), std::string_view::npos) << status.ToString();
  for (const std::string& word : words) {
    EXPECT_NE(status.message().find(word), std::string_view::npos)
        << "no \"" << word << "\" in: " << status.ToString();
  }
}

Result<std::vector<TensorType>> InferOp(const OpCall& call) {
  return InferOp(BuiltinOps(), call);
}
Result<std::vector<Tensor>> RunOp(const OpCall& call) {
  return RunOp(BuiltinOps(), call);
}
Tensor RunOne(const OpCall& call) {
  return RunOne(BuiltinOps(), call);
}
std::string ChoiceOf(const OpCall& call) {
  return ChoiceOf(BuiltinOps(), call);
}
Status FailOf(const OpCall& call) {
  return FailOf(BuiltinOps(), call);
}
void ExpectFails(const OpCall& call, Code code, const std::vector<std::string>& words) {
  ExpectFails(BuiltinOps(), call, code, words);
}

std::vector<Tensor> Results(const OpCall& call) {
  Result<std::vector<Tensor>> out = RunOp(call);
  EXPECT_TRUE(out.ok()) << call.type << ": " << out.status().ToString();
  return out.ok() ? std::move(out).value() : std::vector<Tensor>(8);
}

}  // namespace npumesh
