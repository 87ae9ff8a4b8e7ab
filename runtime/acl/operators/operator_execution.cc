#include "runtime/acl/operators/operator_execution.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>

#include "runtime/acl/operators/operators.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/process.h"

namespace npumesh {
namespace {

constexpr int kMostTensors = 4096;  // more than any operator takes

// ---- Descriptions ----

CallTensor TensorOf(const aclTensorDesc& desc) {
  CallTensor tensor;
  tensor.dtype = desc.dtype;
  if (tensor.absent()) return tensor;
  tensor.format = desc.format;
  tensor.dims = desc.dims;
  tensor.name = desc.name;
  tensor.list = desc.dynamic_input;
  tensor.origin_format = desc.origin_format;
  tensor.origin_dims = desc.origin_dims;
  if (desc.constant) tensor.value = std::make_shared<const std::vector<std::byte>>(desc.value);
  if (desc.storage_format == ACL_FORMAT_UNDEFINED) return tensor;
  // What it was created with is what is stored without a conversion.
  if (tensor.origin_dims.empty()) tensor.origin_dims = tensor.dims;
  if (tensor.origin_format == ACL_FORMAT_UNDEFINED) tensor.origin_format = tensor.format;
  tensor.format = desc.storage_format;
  if (!desc.storage_dims.empty()) tensor.dims = desc.storage_dims;
  return tensor;
}

template <typename Handle>
aclError CheckArray(const char* function, const char* what, int count, Handle array) {
  if (count >= 0 && count <= kMostTensors && (count == 0 || array != nullptr)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "{} {}{}", count, what,
              array == nullptr ? " at null" : ", expected 0 to 4096");
}

aclError FindTensors(const char* function, const char* what, int count,
                     const aclTensorDesc* const* handles,
                     std::vector<std::shared_ptr<aclTensorDesc>>* tensors) {
  NPUMESH_ACL_TRY(CheckArray(function, what, count, handles));
  for (int i = 0; i < count; ++i) {
    tensors->push_back(
        FindObject(ModelObjects::Get().tensors, handles[i], function, "tensor description"));
    if (tensors->back() == nullptr) return ACL_ERROR_INVALID_PARAM;
  }
  return ACL_SUCCESS;
}

struct FoundTensors {
  std::vector<std::shared_ptr<aclTensorDesc>> inputs, outputs;
};

aclError Describe(const OperatorArguments& given, OutputShapes shapes, FoundTensors* found,
                  OperatorCall* call) {
  if (given.type == nullptr || *given.type == '\0') {
    return Fail(ACL_ERROR_INVALID_PARAM, given.function, "opType is {}",
                given.type == nullptr ? "null" : "empty");
  }
  call->type = given.type;
  NPUMESH_ACL_TRY(FindTensors(given.function, "descriptions of inputs", given.input_count,
                              given.inputs, &found->inputs));
  NPUMESH_ACL_TRY(FindTensors(given.function, "descriptions of outputs", given.output_count,
                              given.outputs, &found->outputs));
  if (given.attr != nullptr) {
    const auto attr = FindObject(ModelObjects::Get().op_attrs, given.attr, given.function,
                                 "attributes of an operator");
    if (attr == nullptr) return ACL_ERROR_INVALID_PARAM;
    call->attrs = attr->values;
  }
  for (const auto& tensor : found->inputs) call->inputs.push_back(TensorOf(*tensor));
  for (const auto& tensor : found->outputs) {
    CallTensor& output = call->outputs.emplace_back(TensorOf(*tensor));
    if (shapes == OutputShapes::kInferred && !output.absent()) output.dims = {-2};
  }
  return ACL_SUCCESS;
}

// ---- Memory ----

// A tensor that is absent or constant needs no buffer.
aclError FindBuffer(const char* function, const char* what, const CallTensor& tensor,
                    const aclDataBuffer* handle, ModelBuffer* memory) {
  memory->dims = tensor.dims;
  if (handle == nullptr && (tensor.absent() || tensor.value != nullptr)) return ACL_SUCCESS;
  const auto buffer = FindObject(ModelObjects::Get().buffers, handle, function, what);
  if (buffer == nullptr) return ACL_ERROR_INVALID_PARAM;
  memory->data = buffer->data;
  memory->bytes = buffer->size;
  return ACL_SUCCESS;
}

KnownBytes CopyOf(const ModelBuffer& memory, uint64_t bytes) {
  const auto* first = static_cast<const std::byte*>(memory.data);
  return std::make_shared<const std::vector<std::byte>>(first, first + bytes);
}

// Host memory is read by the call: it becomes a constant, or, where it shall not be a part of what
// is compiled, a copy that the run keeps.
void TakeHostMemory(const aclTensorDesc& desc, CallTensor* tensor, ModelBuffer* memory,
                    std::vector<KnownBytes>* copies) {
  if (desc.place == ACL_MEMTYPE_DEVICE || tensor->absent() || tensor->value != nullptr) return;
  const uint64_t bytes = std::min(BytesOfTensor(tensor->dtype, tensor->dims), memory->bytes);
  if (memory->data == nullptr && memory->bytes > 0) return;
  if (desc.place == ACL_MEMTYPE_HOST) {
    tensor->value = CopyOf(*memory, bytes);
    return;
  }
  copies->push_back(CopyOf(*memory, bytes));
  memory->data = const_cast<std::byte*>(copies->back()->data());
  memory->bytes = bytes;
}

// ---- Running ----

// By position in the call those that the operator takes.
std::vector<ModelBuffer> Chosen(const std::vector<ModelBuffer>& all,
                                const std::vector<size_t>& positions) {
  std::vector<ModelBuffer> chosen;
  for (const size_t position : positions) chosen.push_back(all[position]);
  return chosen;
}

aclError CheckMemory(const char* function, const OperatorCall& call, const MadeOperator& made,
                     const std::vector<ModelBuffer>& inputs,
                     const std::vector<ModelBuffer>& outputs) {
  const ModelFacts& facts = made.model->facts();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint64_t bytes = BytesOfTensor(facts.inputs[i].dtype, inputs[i].dims);
    const bool open = std::any_of(inputs[i].dims.begin(), inputs[i].dims.end(),
                                  [](int64_t dim) { return dim < 0; });
    if (!open && inputs[i].bytes >= bytes && (bytes == 0 || inputs[i].data != nullptr)) continue;
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "operator {}: input {} is [{}], {} bytes; its buffer has {}{}{}", call.type,
                made.inputs[i], fmt::join(inputs[i].dims, ","), bytes, inputs[i].bytes,
                inputs[i].data == nullptr ? " at null" : "",
                open ? "; a run needs all dimensions" : "");
  }
  if (facts.shapes.empty()) return ACL_SUCCESS;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<int64_t>& dims = facts.shapes[0].outputs[i];
    const uint64_t bytes = BytesOfTensor(facts.outputs[i].dtype, dims);
    if (outputs[i].bytes >= bytes && (bytes == 0 || outputs[i].data != nullptr)) continue;
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "operator {}: output {} is [{}], {} bytes; its buffer has {}{}", call.type,
                made.outputs[i], fmt::join(dims, ","), bytes, outputs[i].bytes,
                outputs[i].data == nullptr ? " at null" : "");
  }
  return ACL_SUCCESS;
}

std::vector<ModelPort> PortsOf(const OperatorCall& call, const MadeOperator& made,
                               const std::vector<std::vector<int64_t>>& dims) {
  std::vector<ModelPort> ports(call.outputs.size());
  for (size_t i = 0; i < made.outputs.size(); ++i) {
    ports[made.outputs[i]].dtype = made.model->facts().outputs[i].dtype;
    ports[made.outputs[i]].dims = dims[i];
  }
  return ports;
}

// What a run leaves, for the call that waits for it.
struct Left {
  std::mutex mutex;
  std::vector<std::vector<int64_t>> dims;
};

// An output without elements may lie nowhere.
Result<void*> NoMemory(uint64_t bytes) {
  static char nothing = 0;
  if (bytes == 0) return static_cast<void*>(&nothing);
  return Error(Code::kInvalidArgument, "an output of {} bytes has no memory", bytes);
}

}  // namespace

aclError DescribeCall(const OperatorArguments& given, OutputShapes shapes, OperatorCall* call) {
  FoundTensors found;
  return Describe(given, shapes, &found, call);
}

aclError TakeBuffers(const char* function, int input_count, const aclDataBuffer* const* inputs,
                     int output_count, aclDataBuffer* const* outputs, OperatorRun* run) {
  const OperatorCall& call = run->call;
  NPUMESH_ACL_TRY(CheckArray(function, "inputs", input_count, inputs));
  NPUMESH_ACL_TRY(CheckArray(function, "outputs", output_count, outputs));
  if (static_cast<size_t>(input_count) != call.inputs.size() ||
      static_cast<size_t>(output_count) != call.outputs.size()) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "{} inputs and {} outputs, the operator was described with {} and {}", input_count,
                output_count, call.inputs.size(), call.outputs.size());
  }
  run->inputs.resize(call.inputs.size());
  run->outputs.resize(call.outputs.size());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    NPUMESH_ACL_TRY(FindBuffer(function, "data buffer of an input", call.inputs[i], inputs[i],
                               &run->inputs[i]));
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    NPUMESH_ACL_TRY(FindBuffer(function, "data buffer of an output", call.outputs[i], outputs[i],
                               &run->outputs[i]));
  }
  return ACL_SUCCESS;
}

aclError DescribeRun(const OperatorArguments& given, OutputShapes shapes,
                     const aclDataBuffer* const* inputs, aclDataBuffer* const* outputs,
                     OperatorRun* run) {
  FoundTensors found;
  NPUMESH_ACL_TRY(Describe(given, shapes, &found, &run->call));
  NPUMESH_ACL_TRY(
      TakeBuffers(given.function, given.input_count, inputs, given.output_count, outputs, run));
  for (size_t i = 0; i < found.inputs.size(); ++i) {
    TakeHostMemory(*found.inputs[i], &run->call.inputs[i], &run->inputs[i], &run->copies);
  }
  return ACL_SUCCESS;
}

aclError FailOperator(const char* function, const Status& status) {
  switch (status.code()) {
    case Code::kNotFound:
      return FailWith(ACL_ERROR_OP_NOT_FOUND, function, status.message());
    case Code::kUnsupported:
      return FailWith(ACL_ERROR_FEATURE_UNSUPPORTED, function, status.message());
    case Code::kInvalidArgument:
    case Code::kMismatch:
    case Code::kCorrupt:
      return FailWith(ACL_ERROR_INVALID_PARAM, function, status.message());
    default:
      return Report(function, status);
  }
}

aclError FindOperator(const char* function, const OperatorCall& call,
                      std::shared_ptr<MadeOperator>* made) {
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(function, &context));
  const std::string key = KeyOf(call);
  *made = Operators::Get().Find(*context->device, key);
  if (*made != nullptr) return ACL_SUCCESS;
  const Result<ModelMachine*> machine = ModelMachine::Get();
  if (!machine.ok()) return Report(function, machine.status());
  Result<MadeOperator> found = (*machine)->MakeOperator(*context->device, call);
  if (!found.ok()) return FailOperator(function, found.status());
  *made = std::make_shared<MadeOperator>(*std::move(found));
  Operators::Get().Keep(*context->device, key, *made);
  return ACL_SUCCESS;
}

aclError CompileOperator(const char* function, const OperatorCall& call) {
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(function, &context));
  if (Operators::Get().Find(*context->device, KeyOf(call)) != nullptr) return ACL_SUCCESS;
  const Result<ModelMachine*> machine = ModelMachine::Get();
  if (!machine.ok()) return Report(function, machine.status());
  Operators::Get().EndWithProcess();
  const Status compiled = (*machine)->CompileOperator(*context->device, call);
  return compiled.ok() ? ACL_SUCCESS : FailOperator(function, compiled);
}

aclError RunOperator(const char* function, OperatorRun run, std::shared_ptr<MadeOperator> made,
                     aclrtStream stream, bool waits, std::vector<ModelPort>* outputs) {
  std::vector<ModelBuffer> inputs = Chosen(run.inputs, made->inputs);
  std::vector<ModelBuffer> results = Chosen(run.outputs, made->outputs);
  NPUMESH_ACL_TRY(CheckMemory(function, run.call, *made, inputs, results));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(function, stream, &found));
  const ModelFacts& facts = made->model->facts();
  const bool known = !facts.shapes.empty();
  if (!known && waits) {
    NPUMESH_ACL_TRY(AclProcess::Get().NeedRunningStream(function, stream, &found));
  }
  const auto left = std::make_shared<Left>();
  found->stream.Enqueue([made, inputs = std::move(inputs), results = std::move(results),
                         copies = std::move(run.copies), type = run.call.type, left,
                         device = found->device, lane = LaneOfStream(found->id),
                         put_ns = PutTime()] {
    const WorkSpan work(device, {.name = type, .type = type, .lane = lane, .put_ns = put_ns});
    std::vector<ModelBuffer> mine = results;
    NPUMESH_RETURN_IF_ERROR(made->model->Run(inputs, mine, NoMemory));
    const std::lock_guard lock(left->mutex);
    left->dims.clear();
    for (const ModelBuffer& result : mine) left->dims.push_back(result.dims);
    return Status();
  });
  if (known) {
    if (outputs != nullptr) *outputs = PortsOf(run.call, *made, facts.shapes[0].outputs);
    return ACL_SUCCESS;
  }
  if (!waits) return ACL_SUCCESS;
  NPUMESH_ACL_TRY(aclrtSynchronizeStream(stream));
  const std::lock_guard lock(left->mutex);
  if (outputs != nullptr) *outputs = PortsOf(run.call, *made, left->dims);
  return ACL_SUCCESS;
}

aclError ExecuteOperator(const OperatorArguments& given, OutputShapes shapes,
                         const aclDataBuffer* const* inputs, aclDataBuffer* const* outputs,
                         aclrtStream stream, Compiling compiling) {
  OperatorRun run;
  NPUMESH_ACL_TRY(DescribeRun(given, shapes, inputs, outputs, &run));
  if (compiling == Compiling::kNow) NPUMESH_ACL_TRY(CompileOperator(given.function, run.call));
  std::shared_ptr<MadeOperator> made;
  NPUMESH_ACL_TRY(FindOperator(given.function, run.call, &made));
  const bool tells = shapes == OutputShapes::kInferred;
  std::vector<ModelPort> told;
  NPUMESH_ACL_TRY(RunOperator(given.function, std::move(run), std::move(made), stream, tells,
                              tells ? &told : nullptr));
  for (size_t i = 0; i < told.size(); ++i) {
    const auto desc = ModelObjects::Get().tensors.Find(given.outputs[i]);
    if (desc != nullptr && told[i].dtype != ACL_DT_UNDEFINED) desc->dims = told[i].dims;
  }
  return ACL_SUCCESS;
}

aclError MakeHandle(const char* function, OperatorCall call, aclopHandle** handle) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "handle is null");
  auto made = std::make_shared<aclopHandle>();
  made->call = std::move(call);
  NPUMESH_ACL_TRY(FindOperator(function, made->call, &made->made));
  *handle = static_cast<aclopHandle*>(ModelObjects::Get().op_handles.Add(std::move(made)));
  return ACL_SUCCESS;
}

}  // namespace npumesh
