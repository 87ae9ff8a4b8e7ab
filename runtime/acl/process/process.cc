#include "runtime/acl/process/process.h"

#include <algorithm>
#include <utility>

#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/life_callbacks.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

// What a thread has made current. The context ends with its device, whatever still points to it.
struct CurrentUse {
  std::weak_ptr<AclContext> context;
  int32_t device_id = 0;
};

CurrentUse& OfThisThread() {
  thread_local CurrentUse use;
  return use;
}

// How long the end of a context waits for work that its client did not wait for.
constexpr std::chrono::seconds kPatience{10};

}  // namespace

AclProcess& AclProcess::Get() {
  static AclProcess* const process = new AclProcess;
  return *process;
}

aclError AclProcess::Init() {
  const std::lock_guard lock(mutex_);
  finalized_ = false;
  return ++initialized_ == 1 ? ACL_SUCCESS : ACL_ERROR_REPEAT_INITIALIZE;
}

aclError AclProcess::Finalize(std::string_view function) {
  {
    const std::lock_guard lock(mutex_);
    if (finalized_ && machine_ == nullptr) {
      return Fail(ACL_ERROR_REPEAT_FINALIZE, function, "it was finalized already");
    }
    initialized_ = 0;
    finalized_ = true;
  }
  EndEverything();
  return ACL_SUCCESS;
}

aclError AclProcess::FinalizeReference(std::string_view function, uint64_t* left) {
  {
    const std::lock_guard lock(mutex_);
    if (finalized_ && machine_ == nullptr) {
      return Fail(ACL_ERROR_REPEAT_FINALIZE, function, "it was finalized already");
    }
    if (initialized_ > 0) --initialized_;
    if (left != nullptr) *left = initialized_;
    if (initialized_ > 0) return ACL_SUCCESS;
    finalized_ = true;
  }
  EndEverything();
  return ACL_SUCCESS;
}

bool AclProcess::Ended() const {
  const std::lock_guard lock(mutex_);
  return finalized_ && machine_ == nullptr;
}

void AclProcess::AtFinalize(std::function<void()> end) {
  const std::lock_guard lock(mutex_);
  ends_.push_back(std::move(end));
}

void AclProcess::set_config_path(const char* path) {
  const std::lock_guard lock(mutex_);
  config_path_ = path == nullptr ? "" : path;
}

std::string AclProcess::config_path() const {
  const std::lock_guard lock(mutex_);
  return config_path_;
}

// Streams first, then who is built upon devices, then the devices.
void AclProcess::EndEverything() {
  static_cast<void>(LifeCallbacks::Get().End());
  std::vector<DeviceUse> uses;
  std::vector<std::function<void()>> ends;
  std::unique_ptr<Machine> machine;
  DeviceProfiles profiles;
  {
    const std::lock_guard lock(mutex_);
    profiles = std::exchange(profiles_, DeviceProfiles());
    uses.swap(uses_);
    ends.swap(ends_);
    machine = std::move(machine_);
    if (machine != nullptr) ended_ids_ = machine->ids();
    start_failure_.reset();
  }
  constexpr std::string_view kFunction = "aclFinalize";
  for (const DeviceUse& use : uses) {
    TellLeaksOf(kFunction, use.contexts);
    for (const auto& context : use.contexts) EndContext(context);
  }
  TellLeaksOfProcess(kFunction);
  captures.Clear();
  run_models.Clear();  // what they hold ends before those who are built upon devices
  events.Clear();
  notifies.Clear();
  shared.Clear();
  std::for_each(ends.rbegin(), ends.rend(), [](const auto& end) { end(); });
  if (const Status status = profiles.End(); !status.ok()) {
    RecordRecentError(status.WithContext("aclFinalize").ToString());
    NPUMESH_WARNING("aclFinalize: profile: {}", status.message());
  }
  if (machine == nullptr) return;
  for (int i = 0; i < machine->local_count(); ++i) {
    DeviceMemory& hbm = machine->local_device(i).memory;
    addresses.Forget(hbm);
    TellLeaksOf(kFunction, hbm);
  }
  memory.Attach({});
  if (const Status status = machine->Shutdown(); !status.ok()) {
    RecordRecentError(status.WithContext("aclFinalize").ToString());
    NPUMESH_WARNING("aclFinalize: {}", status.message());
  }
}

Result<Machine*> AclProcess::NeedMachine() {
  if (machine_) return machine_.get();
  if (start_failure_) return *start_failure_;
  const auto start = []() -> Result<std::unique_ptr<Machine>> {
    NPUMESH_ASSIGN_OR_RETURN(const Env env, Env::FromProcess());
    return Machine::Start(env);
  };
  Result<std::unique_ptr<Machine>> machine = start();
  if (!machine.ok()) {
    start_failure_ = machine.status();
    return machine.status();
  }
  machine_ = *std::move(machine);
  Origin::SetGuard(machine_->guard());
  uses_.resize(static_cast<size_t>(machine_->local_count()));
  while (core_limits_.size() < uses_.size()) core_limits_.emplace_back();
  std::vector<DeviceMemory*> memories;
  for (int i = 0; i < machine_->local_count(); ++i) {
    memories.push_back(&machine_->local_device(i).memory);
  }
  memory.Attach(std::move(memories));
  if (const Status status = profiles_.Attach(*machine_); !status.ok()) {
    RecordRecentError(status.WithContext("aclprofStart").ToString());
    NPUMESH_WARNING("aclprofStart: nothing is profiled: {}", status.message());
  }
  return machine_.get();
}

Result<int> AclProcess::DeviceCount() {
  const std::lock_guard lock(mutex_);
  if (machine_ == nullptr) {
    NPUMESH_ASSIGN_OR_RETURN(const Env env, Env::FromProcess());
    if (const int count = Machine::CountBeforeStart(env); count > 0) return count;
  }
  NPUMESH_ASSIGN_OR_RETURN(const Machine* machine, NeedMachine());
  return machine->device_count();
}

Status AclProcess::StartMachine() {
  const std::lock_guard lock(mutex_);
  return NeedMachine().status();
}

aclError AclProcess::FindDevice(std::string_view function, int32_t device_id, int* index) {
  const Result<Machine*> machine = NeedMachine();
  if (!machine.ok()) {
    return Fail(ACL_ERROR_RT_NO_DEVICE, function, "{}", machine.status().message());
  }
  *index = (*machine)->IndexOf(device_id);
  if (*index >= 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_DEVICEID, function,
              "device {} is not one of this process: a launched rank has its local index and 0, "
              "other processes 0 to {} (NPUMESH_DEVICE_COUNT)",
              device_id, (*machine)->local_count() - 1);
}

// Before the machine has started only the number of devices may be known.
aclError AclProcess::CheckProfiledDevice(std::string_view function, int32_t device_id) {
  int index = 0;
  if (machine_ != nullptr) return FindDevice(function, device_id, &index);
  const Result<Env> env = Env::FromProcess();
  NPUMESH_ACL_TRY(Report(function, env.status()));
  const int count = Machine::CountBeforeStart(*env);
  if (device_id >= 0 && (device_id < count || count == 0)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_DEVICEID, function,
              "device {} does not exist; this node has 0 to {}", device_id, std::max(count, 1) - 1);
}

aclError AclProcess::StartProfile(std::string_view function, ProfileRequest request) {
  const std::lock_guard lock(mutex_);
  for (const int32_t device : request.devices) {
    NPUMESH_ACL_TRY(CheckProfiledDevice(function, device));
  }
  const Status status = profiles_.Begin(std::move(request), machine_.get());
  if (status.ok()) return ACL_SUCCESS;
  return FailWith(ACL_ERROR_PROFILING_FAILURE, function, status.message());
}

aclError AclProcess::StopProfile(std::string_view function) {
  const std::lock_guard lock(mutex_);
  const Status status = profiles_.End();
  if (status.ok()) return ACL_SUCCESS;
  return FailWith(ACL_ERROR_PROFILING_FAILURE, function, status.message());
}

aclError AclProcess::CheckDevice(std::string_view function, int32_t device_id) {
  const std::lock_guard lock(mutex_);
  int index = 0;
  return FindDevice(function, device_id, &index);
}

aclError AclProcess::CheckNodeDevice(std::string_view function, int32_t device_id) {
  const Result<int> count = DeviceCount();
  NPUMESH_ACL_TRY(Report(function, count.status()));
  if (device_id >= 0 && device_id < *count) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_DEVICEID, function, "device is {}, expected 0 to {}", device_id,
              *count - 1);
}

aclError AclProcess::UsageOf(std::string_view function, int32_t device_id, DeviceUsage* usage) {
  const std::lock_guard lock(mutex_);
  int index = 0;
  NPUMESH_ACL_TRY(FindDevice(function, device_id, &index));
  const DeviceMemory& hbm = machine_->local_device(index).memory;
  *usage = {false, hbm.used_bytes(), hbm.peak_bytes(), hbm.total_bytes()};
  for (const auto& stream : StreamsOf(index)) usage->busy |= !stream->stream.Idle();
  return ACL_SUCCESS;
}

aclError AclProcess::FindStreams(std::string_view function, int32_t device_id,
                                 std::vector<std::shared_ptr<AclStream>>* streams) {
  const std::lock_guard lock(mutex_);
  int index = 0;
  NPUMESH_ACL_TRY(FindDevice(function, device_id, &index));
  *streams = StreamsOf(index);
  return ACL_SUCCESS;
}

aclError AclProcess::FindMemory(std::string_view function, int32_t device_id,
                                DeviceMemory** memory) {
  const std::lock_guard lock(mutex_);
  int index = 0;
  NPUMESH_ACL_TRY(FindDevice(function, device_id, &index));
  *memory = &machine_->local_device(index).memory;
  return ACL_SUCCESS;
}

aclError AclProcess::FindCoreLimits(std::string_view function, int32_t device_id,
                                    CoreLimits** limits) {
  const std::lock_guard lock(mutex_);
  int index = 0;
  NPUMESH_ACL_TRY(FindDevice(function, device_id, &index));
  *limits = &core_limits_[static_cast<size_t>(index)];
  return ACL_SUCCESS;
}

CoreLimits& AclProcess::core_limits_of(int index) {
  const std::lock_guard lock(mutex_);
  return core_limits_[static_cast<size_t>(index)];
}

uint32_t AclProcess::DeviceIdOf(int index) {
  const std::lock_guard lock(mutex_);
  const DeviceIds ids = machine_ != nullptr ? machine_->ids() : DeviceIds();
  return static_cast<uint32_t>(ids.launched ? ids.local_rank : index);
}

bool AclProcess::HasImplicitContext(int32_t device_id) {
  const std::lock_guard lock(mutex_);
  const int index = machine_ == nullptr ? -1 : machine_->IndexOf(device_id);
  return index >= 0 && uses_[static_cast<size_t>(index)].implicit != nullptr;
}

aclError AclProcess::SetDevice(std::string_view function, int32_t device_id) {
  std::shared_ptr<AclContext> made;
  {
    const std::lock_guard lock(mutex_);
    int index = 0;
    NPUMESH_ACL_TRY(FindDevice(function, device_id, &index));
    DeviceUse& use = uses_[static_cast<size_t>(index)];
    if (use.implicit == nullptr) made = use.implicit = MakeContext(index, device_id, true);
    ++use.references;
    OfThisThread() = {use.implicit, device_id};
    const World& world = machine_->local_device(index).world;
    SetLogRank(world.size() > 1 ? world.rank() : -1);
  }
  if (made != nullptr) TellStreams(made->Streams(), ACL_RT_STREAM_STATE_CREATE_POST);
  return ACL_SUCCESS;
}

std::vector<std::shared_ptr<AclStream>> AclProcess::StreamsOf(int index) const {
  std::vector<std::shared_ptr<AclStream>> all;
  for (const auto& context : uses_[static_cast<size_t>(index)].contexts) {
    for (auto& stream : context->Streams()) all.push_back(std::move(stream));
  }
  return all;
}

void AclProcess::TellStreams(const std::vector<std::shared_ptr<AclStream>>& streams,
                             aclrtStreamState state) {
  for (const auto& stream : streams) stream_callbacks.Tell(stream.get(), state);
}

int AclProcess::IndexOf(int32_t device_id) const {
  if (machine_ != nullptr) return machine_->IndexOf(device_id);
  return finalized_ && ended_ids_ ? ended_ids_->IndexOf(device_id) : -1;
}

aclError AclProcess::ResetDevice(std::string_view function, int32_t device_id) {
  int index = 0;
  std::vector<std::shared_ptr<AclStream>> ending;
  {
    const std::lock_guard lock(mutex_);
    index = IndexOf(device_id);
    if (index >= 0 && machine_ == nullptr) return ACL_SUCCESS;
    if (index < 0 || uses_[static_cast<size_t>(index)].references == 0) {
      return Fail(ACL_ERROR_RT_INVALID_DEVICEID, function,
                  "device {} is not in use; aclrtSetDevice takes a reference to it", device_id);
    }
    if (--uses_[static_cast<size_t>(index)].references > 0) return ACL_SUCCESS;
    ending = StreamsOf(index);
  }
  TellStreams(ending, ACL_RT_STREAM_STATE_DESTROY_PRE);
  const std::lock_guard lock(mutex_);
  const bool used_again = machine_ == nullptr || uses_[static_cast<size_t>(index)].references > 0;
  if (!used_again) EndDevice(function, index);
  return ACL_SUCCESS;
}

aclError AclProcess::ResetDeviceForce(std::string_view function, int32_t device_id) {
  int index = 0;
  std::vector<std::shared_ptr<AclStream>> ending;
  {
    const std::lock_guard lock(mutex_);
    index = IndexOf(device_id);
    if (index < 0) {
      return Fail(ACL_ERROR_RT_INVALID_DEVICEID, function,
                  "device {} is not one of this process, or was never set", device_id);
    }
    if (machine_ != nullptr) ending = StreamsOf(index);
  }
  TellStreams(ending, ACL_RT_STREAM_STATE_DESTROY_PRE);
  const std::lock_guard lock(mutex_);
  if (machine_ != nullptr) EndDevice(function, index);
  return ACL_SUCCESS;
}

void AclProcess::EndDevice(std::string_view function, int index) {
  DeviceUse use = std::exchange(uses_[static_cast<size_t>(index)], DeviceUse());
  TellLeaksOf(function, use.contexts);
  for (const auto& context : use.contexts) EndContext(context);
  DeviceMemory& hbm = machine_->local_device(index).memory;
  addresses.Forget(hbm);
  TellLeaksOf(function, hbm);
  memory.FreeAllOf(hbm);
  core_limits_[static_cast<size_t>(index)].Reset();
}

void AclProcess::TellLeaksOf(std::string_view function,
                             const std::vector<std::shared_ptr<AclContext>>& contexts) {
  if (!Origin::guard()) return;
  std::vector<Leak> lost_contexts;
  std::vector<Leak> lost_streams;
  for (const auto& context : contexts) {
    if (!context->implicit) {
      lost_contexts.push_back(
          {fmt::format("a context of device {}", context->device_id), context->made});
    }
    for (const auto& stream : context->Streams()) {
      if (stream->is_default) continue;
      lost_streams.push_back({fmt::format("stream {}", stream->id), stream->made});
    }
  }
  TellLeaks(function, "contexts", lost_contexts);
  TellLeaks(function, "streams", lost_streams);
}

void AclProcess::TellLeaksOf(std::string_view function, DeviceMemory& hbm) {
  if (!Origin::guard()) return;
  TellLeaks(function, "blocks of device memory", memory.LeaksOf(hbm));
  for (const std::string& damage : hbm.Damage()) {
    const std::string text = fmt::format("{}: {}", function, damage);
    NPUMESH_ERROR("{}", text);
    RecordRecentError(text);
  }
}

void AclProcess::TellLeaksOfProcess(std::string_view function) {
  if (!Origin::guard()) return;
  std::vector<Leak> lost;
  for (const auto& event : events.All()) lost.push_back({"an event", event->made});
  TellLeaks(function, "events", lost);
  lost.clear();
  for (const auto& notify : notifies.All()) {
    lost.push_back({fmt::format("notify {}", notify->id()), Origin()});
  }
  TellLeaks(function, "notifies", lost);
  TellLeaks(function, "blocks of host memory", memory.HostLeaks());
}

aclError AclProcess::CreateContext(std::string_view function, int32_t device_id,
                                   aclrtContext* context) {
  std::shared_ptr<AclContext> made;
  {
    const std::lock_guard lock(mutex_);
    int index = 0;
    NPUMESH_ACL_TRY(FindDevice(function, device_id, &index));
    made = MakeContext(index, device_id, false);
    OfThisThread() = {made, device_id};
    *context = made.get();
  }
  TellStreams(made->Streams(), ACL_RT_STREAM_STATE_CREATE_POST);
  return ACL_SUCCESS;
}

aclError AclProcess::DestroyContext(std::string_view function, aclrtContext handle) {
  const auto context = contexts_.Find(handle);
  if (context == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, function, "{} is not a context", fmt::ptr(handle));
  }
  if (context->implicit) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "the implicit context of device {} ends with aclrtResetDevice", context->device_id);
  }
  TellStreams(context->Streams(), ACL_RT_STREAM_STATE_DESTROY_PRE);
  const std::lock_guard lock(mutex_);
  if (contexts_.Find(handle) != context) return ACL_SUCCESS;  // another thread has ended it
  std::erase(uses_[static_cast<size_t>(context->index)].contexts, context);
  EndContext(context);
  return ACL_SUCCESS;
}

aclError AclProcess::SetContext(std::string_view function, aclrtContext handle) {
  const auto context = contexts_.Find(handle);
  if (context == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, function, "{} is not a context", fmt::ptr(handle));
  }
  OfThisThread() = {context, context->device_id};
  return ACL_SUCCESS;
}

std::shared_ptr<AclContext> AclProcess::MakeContext(int index, int32_t device_id, bool implicit) {
  auto context = std::make_shared<AclContext>();
  context->index = index;
  context->device_id = device_id;
  context->implicit = implicit;
  context->device = &machine_->local_device(index);
  context->default_stream = MakeStream(context, true);
  uses_[static_cast<size_t>(index)].contexts.push_back(context);
  contexts_.Add(context);
  return context;
}

void AclProcess::EndContext(const std::shared_ptr<AclContext>& context) {
  static_cast<void>(contexts_.Take(context.get()));
  const Deadline deadline = Deadline::After(kPatience);
  for (const auto& stream : context->Streams()) {
    EndStream(stream, !stream->stream.SynchronizeUntil(deadline));
  }
}

std::shared_ptr<AclContext> AclProcess::CurrentContext() {
  return OfThisThread().context.lock();
}

aclError AclProcess::NeedContext(std::string_view function, std::shared_ptr<AclContext>* context) {
  *context = CurrentContext();
  if (*context != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_CONTEXT_NULL, function,
              "this thread has no current device; call aclrtSetDevice in it first");
}

int32_t AclProcess::CurrentDeviceId() {
  return OfThisThread().device_id;
}

std::shared_ptr<AclStream> AclProcess::MakeStream(const std::shared_ptr<AclContext>& context,
                                                  bool is_default,
                                                  const AclStreamOptions& options) {
  auto stream = std::make_shared<AclStream>(next_stream_id_.fetch_add(1), is_default, context,
                                            context->device, options);
  streams.Add(stream);
  const std::lock_guard lock(context->mutex);
  context->streams.push_back(stream);
  return stream;
}

void AclProcess::EndStream(const std::shared_ptr<AclStream>& stream, bool force) {
  static_cast<void>(streams.Take(stream.get()));
  StreamUse::ForgetLast();
  if (force) {
    reports.Forget(stream.get());  // the stream may be waiting for its subscriber
    host_functions.Forget(stream.get());
    stream->stream.Abort();
  } else {
    static_cast<void>(stream->stream.Synchronize());  // its failure is the client's to ask for
    reports.Forget(stream.get());
    host_functions.Forget(stream.get());
  }
  if (const auto context = stream->context.lock()) {
    const std::lock_guard lock(context->mutex);
    std::erase(context->streams, stream);
  }
}

aclError AclProcess::NeedStream(std::string_view function, aclrtStream handle,
                                std::shared_ptr<AclStream>* stream) {
  if (handle == nullptr) {
    std::shared_ptr<AclContext> context;
    NPUMESH_ACL_TRY(NeedContext(function, &context));
    *stream = context->default_stream;
    return ACL_SUCCESS;
  }
  *stream = streams.Find(handle);
  if (*stream == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, function, "{} is not a stream", fmt::ptr(handle));
  }
  return Origin::guard() ? CheckContextOf(function, **stream) : ACL_SUCCESS;
}

aclError AclProcess::CheckContextOf(std::string_view function, const AclStream& stream) {
  const auto context = CurrentContext();
  const auto own = stream.context.lock();
  if (context != nullptr && context == own) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_STREAM_CONTEXT, function,
              "stream {} is of {}, but this thread has {} (NPUMESH_GUARD)", stream.id,
              own == nullptr ? "a context that has ended"
                             : fmt::format("a context of device {}", own->device_id),
              context == nullptr ? "no current context"
                                 : fmt::format("another one of device {}", context->device_id));
}

aclError AclProcess::PermitStream(std::string_view function) {
  return card_limits.Permit(function, "streams", ACL_ERROR_RT_NO_STREAM_RESOURCE, [this] {
    size_t live = streams.size();
    for (const auto& model : run_models.models.All()) {
      const auto recording = model->recording();
      if (model->origin == AclModel::Origin::kCaptured && recording != nullptr &&
          recording->ended()) {
        live += recording->streams().size();
      }
    }
    return live;
  });
}

aclError AclProcess::NeedReadyStream(std::string_view function, aclrtStream handle,
                                     std::shared_ptr<AclStream>* stream) {
  NPUMESH_ACL_TRY(NeedStream(function, handle, stream));
  return Report(function, (*stream)->stream.Ready());
}

aclError AclProcess::NeedRunningStream(std::string_view function, aclrtStream handle,
                                       std::shared_ptr<AclStream>* stream) {
  NPUMESH_ACL_TRY(NeedStream(function, handle, stream));
  if (!(*stream)->stream.records()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_STREAM_CAPTURED, function,
              "stream {} is being captured and runs nothing; {} ends that", (*stream)->id,
              run_models.BoundTo(handle) == nullptr ? "aclmdlRICaptureEnd" : "aclmdlRIBuildEnd");
}

StreamUse::Last& StreamUse::OfThisThread() {
  thread_local Last last;
  return last;
}

uint64_t StreamUse::Version() {
  return AclProcess::Get().streams.version();
}

StreamUse::StreamUse(aclrtStream handle) {
  HandleTable<AclStream>& streams = AclProcess::Get().streams;
  Last& last = OfThisThread();
  if (last.in_use) {
    from_table_ = streams.Find(handle);
    return;
  }
  const uint64_t version = streams.version();  // before the look-up: a later death is noticed
  std::shared_ptr<AclStream> before;  // may end with work that uses streams, so it ends last
  if (last.stream.get() != handle || last.version != version) {
    before = std::exchange(last.stream, streams.Find(handle));
    last.version = version;
  }
  if (last.stream == nullptr) return;
  last.in_use = true;
  last_ = &last;
}

void StreamUse::ForgetLast() {
  Last& last = OfThisThread();
  last.forgotten = last.in_use;
  if (!last.in_use) last.stream.reset();
}

}  // namespace npumesh
