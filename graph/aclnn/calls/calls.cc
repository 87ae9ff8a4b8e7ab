#include "graph/aclnn/calls/calls.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "graph/aclnn/calls/objects.h"
#include "graph/aclnn/calls/plan.h"
#include "graph/io/layout.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/base/visit_stored.h"

// A call that was planned.
struct aclOpExecutor {
  std::shared_ptr<npumesh::AclnnPlan> plan;
  std::vector<void*> addresses;                // of the tensors
  std::map<size_t, const aclTensor*> opening;  // those whose shape the run decides
  bool repeatable = false;
};

namespace npumesh {

namespace {

// ---- Plans and executors of the process ----

class Plans {
 public:
  static Plans& Get() {
    static auto* const plans = new Plans;
    return *plans;
  }

  std::shared_ptr<AclnnPlan> Find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = plans_.find(key);
    if (found == plans_.end()) return nullptr;
    ages_.splice(ages_.end(), ages_, found->second.age);
    return found->second.plan;
  }

  // What was used longest ago makes room; it goes when its last executor has ended.
  void Keep(const std::string& key, std::shared_ptr<AclnnPlan> plan) {
    std::vector<std::shared_ptr<AclnnPlan>> old;  // they end without the lock
    const std::lock_guard lock(mutex_);
    if (!ends_with_process_) {
      ends_with_process_ = true;
      AclProcess::Get().AtFinalize([this] { Clear(); });
    }
    const auto [kept, is_new] = plans_.try_emplace(key);
    if (!is_new) return;
    tensors_ += TensorsOf(*plan);
    kept->second = {std::move(plan), ages_.insert(ages_.end(), &kept->first)};
    while (plans_.size() > 1 && (plans_.size() > kMost || tensors_ > kMostTensors)) {
      const auto oldest = plans_.find(*ages_.front());
      tensors_ -= TensorsOf(*oldest->second.plan);
      old.push_back(std::move(oldest->second.plan));
      ages_.pop_front();
      plans_.erase(oldest);
    }
  }

 private:
  static constexpr size_t kMost = 2048;
  // A plan takes some KiB for each of its tensors, and lists have hundreds.
  static constexpr size_t kMostTensors = 8 * kMost;

  static size_t TensorsOf(const AclnnPlan& plan) { return plan.tensors().views.size(); }

  struct Entry {
    std::shared_ptr<AclnnPlan> plan;
    std::list<const std::string*>::iterator age;
  };

  void Clear() {
    std::unordered_map<std::string, Entry> ending;
    const std::lock_guard lock(mutex_);
    ending.swap(plans_);
    ages_.clear();
    tensors_ = 0;
    ends_with_process_ = false;
  }

  std::mutex mutex_;
  std::unordered_map<std::string, Entry> plans_;
  std::list<const std::string*> ages_;
  size_t tensors_ = 0;  // of all plans
  bool ends_with_process_ = false;
};

HandleTable<aclOpExecutor>& Executors() {
  static auto* const executors = new HandleTable<aclOpExecutor>;
  return *executors;
}

// ---- Arguments ----

// The code of what went wrong with a call.
aclnnStatus CodeOf(const Status& status) {
  switch (status.code()) {
    case Code::kInvalidArgument:
    case Code::kUnsupported:
    case Code::kCorrupt:
      return ACLNN_ERR_PARAM_INVALID;
    case Code::kInternal:
      return ACLNN_ERR_INNER;
    default:
      return ACLNN_ERR_RUNTIME_ERROR;
  }
}

aclnnStatus FailCall(const char* name, const Status& status) {
  return Fail(CodeOf(status), name, "{}", status.message());
}

template <typename T>
T Load(const unsigned char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

AclnnScalar ScalarOf(const aclScalar& scalar) {
  AclnnScalar value;
  value.dtype = DataTypeFromRuntime(scalar.dtype).value_or(DataType::kUndefined);
  const auto integer = [&value](int64_t number) {
    value.is_integer = true;
    value.integer = number;
    value.real = static_cast<double>(number);
  };
  VisitStored(
      PartOf(value.dtype),
      [&]<typename T>() {
        const auto number = NumberOf(Load<T>(scalar.bytes));
        if constexpr (std::integral<T>) {
          integer(static_cast<int64_t>(number));
        } else {
          value.real = number;
          const bool complex = PartOf(value.dtype) != value.dtype;
          if (complex) value.imaginary = NumberOf(Load<T>(scalar.bytes + sizeof(T)));
        }
      },
      [&] { integer(Load<int64_t>(scalar.bytes)); });
  return value;
}

// What the client gave, checked; the key of the plan; and the addresses of its tensors.
class Call {
 public:
  Call(const char* name, const AclnnFunction& function) : name_(name), function_(function) {}

  aclnnStatus Take(const AclnnWord* words);
  aclnnStatus FindPlan(std::shared_ptr<AclnnPlan>* plan);
  aclnnStatus MakePlan(AclDevice& device, std::shared_ptr<AclnnPlan>* plan);
  // Tensors that are in FRACTAL_NZ when the call has run say so already.
  void MarkBlocks(const AclnnWord* words) const;
  std::vector<void*> TakeAddresses() { return std::move(addresses_); }
  std::map<size_t, const aclTensor*> TakeOpening() { return std::move(opening_); }

 private:
  aclnnStatus TakeParam(const AclnnParam& param, const AclnnWord& word);
  aclnnStatus TakePointer(const AclnnParam& param, const void* pointer);
  // The object that a pointer must be.
  template <typename T>
  aclnnStatus Need(const AclnnParam& param, const void* pointer, const T** object) const;
  aclnnStatus TakeTensor(const AclnnParam& param, const aclTensor& tensor, TensorType* type);
  aclnnStatus TakeLayout(const AclnnParam& param, const aclTensor& tensor, AclnnView& view) const;
  aclnnStatus CheckAddresses(const AclnnPlan& plan) const;
  void FindOverlaps();
  template <typename T>
  void Key(const T& value) {
    key_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <typename T>
  void KeyAll(const std::vector<T>& values) {
    Key(values.size());
    key_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }

  const char* const name_;
  const AclnnFunction& function_;
  std::vector<AclnnArgument> arguments_;
  AclnnTensors tensors_;
  std::vector<void*> addresses_;
  std::map<size_t, const aclTensor*> opening_;
  std::vector<bool> written_;
  std::vector<bool> overlaps_;
  std::string key_;
};

aclnnStatus Call::Take(const AclnnWord* words) {
  const AclnnFunction* const identity = &function_;
  Key(identity);
  arguments_.resize(function_.params.size());
  for (size_t i = 0; i < function_.params.size(); ++i) {
    const AclnnParam& param = function_.params[i];
    tensors_.first.push_back(tensors_.views.size());
    NPUMESH_ACL_TRY(TakeParam(param, words[i]));
    written_.resize(tensors_.views.size(), param.written);
  }
  tensors_.first.push_back(tensors_.views.size());
  FindOverlaps();
  return ACL_SUCCESS;
}

aclnnStatus Call::TakeParam(const AclnnParam& param, const AclnnWord& word) {
  AclnnArgument& argument = arguments_[tensors_.first.size() - 1];
  switch (param.kind) {
    case AclnnKind::kInt64:
    case AclnnKind::kInt32:
    case AclnnKind::kInt8:
    case AclnnKind::kUint64:
      argument = word.integer;
      break;
    case AclnnKind::kBool:
      argument = word.integer != 0;
      break;
    case AclnnKind::kDouble:
    case AclnnKind::kFloat:
      argument = word.real;
      break;
    case AclnnKind::kDataType: {
      const auto dtype = DataTypeFromRuntime(word.integer);
      if (!dtype) {
        return Fail(ACLNN_ERR_PARAM_INVALID, name_, "{}: data type {} is not known", param.name,
                    word.integer);
      }
      argument = *dtype;
      break;
    }
    default:
      return TakePointer(param, word.pointer);
  }
  Key(word.integer);
  return ACL_SUCCESS;
}

aclnnStatus Call::TakePointer(const AclnnParam& param, const void* pointer) {
  AclnnArgument& argument = arguments_[tensors_.first.size() - 1];
  Key(pointer != nullptr);
  if (pointer == nullptr) {
    if (param.optional) return ACL_SUCCESS;
    return Fail(ACLNN_ERR_PARAM_NULLPTR, name_, "{} is null", param.name);
  }
  switch (param.kind) {
    case AclnnKind::kTensor: {
      const aclTensor* tensor = nullptr;
      NPUMESH_ACL_TRY(Need(param, pointer, &tensor));
      TensorType type;
      NPUMESH_ACL_TRY(TakeTensor(param, *tensor, &type));
      argument = std::move(type);
      return ACL_SUCCESS;
    }
    case AclnnKind::kTensors: {
      const aclTensorList* list = nullptr;
      NPUMESH_ACL_TRY(Need(param, pointer, &list));
      std::vector<TensorType> types;
      Key(list->tensors.size());
      for (const aclTensor* tensor : list->tensors) {
        NPUMESH_ACL_TRY(TakeTensor(param, *tensor, &types.emplace_back()));
      }
      argument = std::move(types);
      return ACL_SUCCESS;
    }
    case AclnnKind::kScalar: {
      const aclScalar* scalar = nullptr;
      NPUMESH_ACL_TRY(Need(param, pointer, &scalar));
      Key(scalar->dtype);
      Key(scalar->bytes);
      argument = ScalarOf(*scalar);
      return ACL_SUCCESS;
    }
    case AclnnKind::kScalars: {
      const aclScalarList* list = nullptr;
      NPUMESH_ACL_TRY(Need(param, pointer, &list));
      std::vector<AclnnScalar> scalars;
      Key(list->scalars.size());
      for (const aclScalar* scalar : list->scalars) {
        Key(scalar->dtype);
        Key(scalar->bytes);
        scalars.push_back(ScalarOf(*scalar));
      }
      argument = std::move(scalars);
      return ACL_SUCCESS;
    }
    case AclnnKind::kInts: {
      const aclIntArray* array = nullptr;
      NPUMESH_ACL_TRY(Need(param, pointer, &array));
      KeyAll(array->values);
      argument = array->values;
      return ACL_SUCCESS;
    }
    case AclnnKind::kFloats: {
      const aclFloatArray* array = nullptr;
      NPUMESH_ACL_TRY(Need(param, pointer, &array));
      KeyAll(array->values);
      argument = std::vector<double>(array->values.begin(), array->values.end());
      return ACL_SUCCESS;
    }
    case AclnnKind::kBools: {
      const aclBoolArray* array = nullptr;
      NPUMESH_ACL_TRY(Need(param, pointer, &array));
      KeyAll(array->values);
      argument = std::vector<bool>(array->values.begin(), array->values.end());
      return ACL_SUCCESS;
    }
    default: {
      std::string text = static_cast<const char*>(pointer);
      key_ += text;
      Key('\0');
      argument = std::move(text);
      return ACL_SUCCESS;
    }
  }
}

template <typename T>
aclnnStatus Call::Need(const AclnnParam& param, const void* pointer, const T** object) const {
  *object = static_cast<const T*>(pointer);
  if (IsLive(*object)) return ACL_SUCCESS;
  return Fail(ACLNN_ERR_PARAM_INVALID, name_, "{} is not what the function takes, or was destroyed",
              param.name);
}

// FRACTAL_NZ and the like may say their inner block by the shape that they are stored in.
Result<LayoutSpec> LayoutOf(const aclTensor& tensor) {
  constexpr size_t kBlockRank = 4;
  if (!IsPrivateLayout(tensor.format)) return LayoutSpec();
  std::optional<LayoutSpec> spec = LayoutSpecOf(LayoutName(tensor.format));
  if (!spec) {
    return Error(
        Code::kInvalidArgument,
        "format {} is not taken; ND, NCHW and the like are, FRACTAL_NZ, NC1HWC0, FRACTAL_Z",
        LayoutName(tensor.format));
  }
  const bool told = spec->layout == Layout::kFractalNz && spec->c0 == 0;
  if (told && tensor.storage_dims.size() >= kBlockRank) spec->c0 = tensor.storage_dims.back();
  return *spec;
}

aclnnStatus Call::TakeTensor(const AclnnParam& param, const aclTensor& tensor, TensorType* type) {
  const auto dtype = DataTypeFromRuntime(tensor.dtype);
  if (!dtype || (BitsOf(*dtype) % 8 != 0 && BitsOf(*dtype) != 4) || BitsOf(*dtype) == 0) {
    return Fail(ACLNN_ERR_PARAM_INVALID, name_, "{}: tensors of data type {} are not taken",
                param.name, static_cast<int>(tensor.dtype));
  }
  AclnnView& view = tensors_.views.emplace_back();
  view.type = {*dtype, Shape(tensor.dims)};
  view.strides = tensor.strides;
  view.offset = tensor.offset;
  if (!view.type.shape.Check().ok()) {
    return Fail(ACLNN_ERR_PARAM_INVALID, name_, "{}: the shape {} is too large", param.name,
                view.type.shape.ToString());
  }
  NPUMESH_ACL_TRY(TakeLayout(param, tensor, view));
  Key(tensor.dtype);
  KeyAll(tensor.dims);
  KeyAll(tensor.strides);
  Key(tensor.offset);
  for (const LayoutSpec& layout : {view.layout, view.becomes}) {
    Key(layout.layout);
    Key(layout.c0);
  }
  if (param.open) opening_.emplace(addresses_.size(), &tensor);
  addresses_.push_back(tensor.data);
  *type = view.type;
  return ACL_SUCCESS;
}

aclnnStatus Call::TakeLayout(const AclnnParam& param, const aclTensor& tensor,
                             AclnnView& view) const {
  const Result<LayoutSpec> layout = LayoutOf(tensor);
  if (!layout.ok()) {
    return Fail(ACLNN_ERR_PARAM_INVALID, name_, "{}: {}", param.name, layout.status().message());
  }
  view.layout = *layout;
  if (param.becomes_blocks) view.becomes = {Layout::kFractalNz};
  if (const Status fits = view.Check(); !fits.ok()) {
    return Fail(ACLNN_ERR_PARAM_INVALID, name_, "{} {} of shape {}: {}", param.name,
                LayoutName(tensor.format), view.type.shape, fits.message());
  }
  // A storage of fewer dimensions only says how many elements there are.
  const bool told = view.layout.is_private() && tensor.storage_dims.size() > tensor.dims.size();
  if (!told) return ACL_SUCCESS;
  const Shape expected = BlocksOf(view)->storage_shape();
  if (expected.dims() == tensor.storage_dims) return ACL_SUCCESS;
  return Fail(ACLNN_ERR_PARAM_INVALID, name_, "{} {} of shape {} is stored as {}, expected {}",
              param.name, LayoutName(tensor.format), view.type.shape, Shape(tensor.storage_dims),
              expected);
}

// What is written into memory of another result goes through the workspace.
void Call::FindOverlaps() {
  const size_t count = tensors_.views.size();
  overlaps_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (!written_[i]) continue;
    const auto* const begin = static_cast<const std::byte*>(addresses_[i]);
    const std::byte* const end = begin + tensors_.views[i].extent();
    for (size_t j = 0; j < count && !overlaps_[i]; ++j) {
      if (i == j || !written_[j]) continue;
      const auto* const other = static_cast<const std::byte*>(addresses_[j]);
      overlaps_[i] = begin < other + tensors_.views[j].extent() && other < end;
    }
    Key(overlaps_[i] ? char{1} : char{0});
  }
}

aclnnStatus Call::CheckAddresses(const AclnnPlan& plan) const {
  const auto& memory = AclProcess::Get().memory;
  for (size_t i = 0; i < addresses_.size(); ++i) {
    if (!plan.Uses(i)) continue;
    const uint64_t bytes = tensors_.views[i].extent();
    if (memory.OnDevice(addresses_[i], bytes)) continue;
    return Fail(ACLNN_ERR_PARAM_INVALID, name_, "tensor {}: {} is no device memory of {} bytes", i,
                fmt::ptr(addresses_[i]), bytes);
  }
  return ACL_SUCCESS;
}

// What a card refuses has the code that it answers with.
aclnnStatus Call::MakePlan(AclDevice& device, std::shared_ptr<AclnnPlan>* plan) {
  const Result<Card> card = Card::FromProcess();
  if (!card.ok()) return FailCall(name_, card.status());
  const auto watch = *card ? std::make_shared<NodeWatch>(*card) : nullptr;
  Result<std::unique_ptr<AclnnPlan>> made =
      AclnnPlan::Make(device, function_, arguments_, tensors_, overlaps_, watch);
  if (made.ok()) {
    *plan = *std::move(made);
    return ACL_SUCCESS;
  }
  if (watch == nullptr || !card->fails) return FailCall(name_, made.status());
  for (const CardFinding& finding : watch->findings().all()) {
    if (!finding.refused()) continue;
    return Fail(finding.code, name_, "{}", made.status().message());
  }
  return FailCall(name_, made.status());
}

aclnnStatus Call::FindPlan(std::shared_ptr<AclnnPlan>* plan) {
  const auto context = AclProcess::CurrentContext();
  if (context == nullptr) {
    return Fail(ACLNN_ERR_RUNTIME_ERROR, name_,
                "the thread has no device; aclrtSetDevice sets one");
  }
  Key(context->device);
  *plan = Plans::Get().Find(key_);
  if (*plan == nullptr) {
    NPUMESH_ACL_TRY(MakePlan(*context->device, plan));
    Plans::Get().Keep(key_, *plan);
  }
  return CheckAddresses(**plan);
}

void Call::MarkBlocks(const AclnnWord* words) const {
  for (size_t i = 0; i < function_.params.size(); ++i) {
    if (!function_.params[i].becomes_blocks) continue;
    const AclnnView view = tensors_.views[tensors_.first[i]].Written();
    auto* const tensor = static_cast<aclTensor*>(const_cast<void*>(words[i].pointer));
    tensor->format = ACL_FORMAT_FRACTAL_NZ;
    tensor->storage_dims = BlocksOf(view)->storage_shape().dims();
  }
}

// Memory may have been freed since phase one.
Status CheckStanding(const AclnnPlan& plan, const std::vector<void*>& addresses, void* workspace) {
  const auto& memory = AclProcess::Get().memory;
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (!plan.Uses(i) || memory.OnDevice(addresses[i], plan.tensors().views[i].extent())) continue;
    return Error(Code::kInvalidArgument, "{}: tensor {} at {} was freed", plan.function().name, i,
                 fmt::ptr(addresses[i]));
  }
  const uint64_t bytes = plan.workspace_bytes();
  if (bytes == 0 || memory.OnDevice(workspace, bytes)) return Status();
  return Error(Code::kInvalidArgument, "{}: the workspace at {} is no device memory of {} bytes",
               plan.function().name, fmt::ptr(workspace), bytes);
}

// Puts a call on the stream.
aclnnStatus Enqueue(const char* name, const aclOpExecutor& executor, void* workspace,
                    aclrtStream stream) {
  std::shared_ptr<AclStream> found;
  if (AclProcess::Get().NeedReadyStream(name, stream, &found) != ACL_SUCCESS) {
    return ACLNN_ERR_RUNTIME_ERROR;
  }
  const uint16_t lane = LaneOfStream(found->id);
  found->stream.Enqueue([plan = executor.plan, addresses = executor.addresses,
                         opening = executor.opening, workspace, lane, put_ns = PutTime()] {
    NPUMESH_RETURN_IF_ERROR(CheckStanding(*plan, addresses, workspace));
    const WorkSpan work(&plan->device(), {.name = plan->function().name,
                                          .type = plan->function().name,
                                          .lane = lane,
                                          .put_ns = put_ns});
    AclnnPlan::Shapes shapes;
    NPUMESH_RETURN_IF_ERROR(
        plan->Run(addresses, workspace, &shapes).WithContext(plan->function().name));
    for (const auto& [tensor, dims] : shapes) ReshapeLive(opening.at(tensor), dims);
    return Status();
  });
  return ACL_SUCCESS;
}

}  // namespace

aclnnStatus PrepareAclnn(const char* name, size_t index, const AclnnWord* words,
                         uint64_t* workspace_size, aclOpExecutor** executor) noexcept try {
  if (workspace_size == nullptr || executor == nullptr) {
    return Fail(ACLNN_ERR_PARAM_NULLPTR, name, "workspaceSize or executor is null");
  }
  Call call(name, AclnnFunctions().functions()[index]);
  NPUMESH_ACL_TRY(call.Take(words));
  auto made = std::make_shared<aclOpExecutor>();
  NPUMESH_ACL_TRY(call.FindPlan(&made->plan));
  call.MarkBlocks(words);
  made->addresses = call.TakeAddresses();
  made->opening = call.TakeOpening();
  *workspace_size = made->plan->workspace_bytes();
  *executor = static_cast<aclOpExecutor*>(Executors().Add(std::move(made)));
  return ACL_SUCCESS;
} catch (...) {
  static_cast<void>(FailThrown(name));
  return ACLNN_ERR_INNER;
}

aclnnStatus ExecuteAclnn(const char* name, void* workspace, uint64_t workspace_size,
                         aclOpExecutor* executor, aclrtStream stream) noexcept try {
  const ApiSpan span(name);
  if (executor == nullptr) return Fail(ACLNN_ERR_PARAM_NULLPTR, name, "executor is null");
  const auto found = Executors().Find(executor);
  if (found == nullptr) {
    return Fail(ACLNN_ERR_PARAM_INVALID, name,
                "{} is no executor, or one that has run; aclSetAclOpExecutorRepeatable keeps it",
                fmt::ptr(executor));
  }
  if (std::string_view(name) != found->plan->function().name) {
    return Fail(ACLNN_ERR_PARAM_INVALID, name, "the executor is one of {}",
                found->plan->function().name);
  }
  const uint64_t needed = found->plan->workspace_bytes();
  if (workspace_size < needed || (workspace == nullptr && needed > 0)) {
    return Fail(ACLNN_ERR_PARAM_INVALID, name, "the workspace has {} bytes, expected {}{}",
                workspace_size, needed, workspace == nullptr ? ", and is null" : "");
  }
  if (!found->repeatable) static_cast<void>(Executors().Take(executor));
  return Enqueue(name, *found, workspace, stream);
} catch (...) {
  static_cast<void>(FailThrown(name));
  return ACLNN_ERR_INNER;
}

namespace {

aclnnStatus NeedExecutor(const char* function, aclOpExecutor* handle,
                         std::shared_ptr<aclOpExecutor>* executor) {
  if (handle == nullptr) return Fail(ACLNN_ERR_PARAM_NULLPTR, function, "executor is null");
  *executor = Executors().Find(handle);
  if (*executor != nullptr) return ACL_SUCCESS;
  return Fail(ACLNN_ERR_PARAM_INVALID, function, "{} is no executor, or one that has run",
              fmt::ptr(handle));
}

}  // namespace
}  // namespace npumesh

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  std::shared_ptr<aclOpExecutor> found;
  NPUMESH_ACL_TRY(npumesh::NeedExecutor(__func__, executor, &found));
  found->repeatable = true;
  return ACL_SUCCESS;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  std::shared_ptr<aclOpExecutor> found;
  NPUMESH_ACL_TRY(npumesh::NeedExecutor(__func__, executor, &found));
  static_cast<void>(npumesh::Executors().Take(executor));
  return ACL_SUCCESS;
}

aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                             void* addr) {
  std::shared_ptr<aclOpExecutor> found;
  NPUMESH_ACL_TRY(npumesh::NeedExecutor(__func__, executor, &found));
  if (addr == nullptr) {
    return npumesh::Fail(ACLNN_ERR_PARAM_NULLPTR, __func__, "addr is null");
  }
  if (!found->repeatable || index >= found->addresses.size()) {
    return npumesh::Fail(ACLNN_ERR_PARAM_INVALID, __func__,
                         "index is {} of {} tensors, and the executor is {}repeatable", index,
                         found->addresses.size(), found->repeatable ? "" : "not ");
  }
  const uint64_t bytes = found->plan->tensors().views[index].extent();
  if (!npumesh::AclProcess::Get().memory.OnDevice(addr, bytes)) {
    return npumesh::Fail(ACLNN_ERR_PARAM_INVALID, __func__, "{} is no device memory of {} bytes",
                         fmt::ptr(addr), bytes);
  }
  found->addresses[index] = addr;
  return tensor == nullptr ? ACL_SUCCESS : aclSetRawTensorAddr(tensor, addr);
}
