// Calls in any order with any handles: null, live, destroyed, of another kind, and numbers at the
// edges. Each returns; nothing crashes or hangs.
//
//   unit_acl_wrong_calls [--first=SEED] [--seeds=N]
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_dump.h"
#include "acl/acl_prof.h"
#include "acl/acl_rt_memory_soma.h"
#include "acl/acl_tdt.h"
#include "acl/acl_tdt_queue.h"
#include "tests/seed_range.h"

namespace npumesh {
namespace {

SeedRange seeds{1, 100};

// One program of wrong and right calls.
class Caller {
 public:
  explicit Caller(uint64_t seed) : random_(seed) {
    for (auto& handle : handles_) handle = nullptr;
    handles_[1] = &elsewhere_;
    EXPECT_EQ(aclrtMalloc(&device_, kBytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    std::memset(device_, 0, kBytes);
    NewStream();
  }

  // Streams may wait for what never comes.
  ~Caller() {
    for (const aclrtStream stream : streams_) aclrtStreamAbort(stream);
    aclrtStreamAbort(nullptr);
  }

  void Step() {
    static const std::vector<void (Caller::*)()> kSteps = {
        &Caller::NewStream, &Caller::Streams,   &Caller::Options,    &Caller::Limits,
        &Caller::Words,     &Caller::Reduce,    &Caller::Random,     &Caller::Notifies,
        &Caller::Counters,  &Caller::Events,    &Caller::Keys,       &Caller::Copies,
        &Caller::Batches,   &Caller::Registers, &Caller::Allocators, &Caller::Channels,
        &Caller::Marks,     &Caller::Questions, &Caller::Captures,   &Caller::Addresses,
        &Caller::Groups,    &Caller::Builds,    &Caller::Tasks,      &Caller::Queues,
        &Caller::Buffers,   &Caller::Pools,     &Caller::LateCopies};
    (this->*kSteps[random_() % kSteps.size()])();
  }

 private:
  static constexpr size_t kBytes = 4096;

  // A handle that was made here, some time ago, of any kind, or none at all.
  void* Any() { return handles_[random_() % handles_.size()]; }
  void Keep(void* handle) { handles_[2 + random_() % (handles_.size() - 2)] = handle; }
  bool Coin() { return random_() % 2 == 0; }
  uint64_t Number() {
    static constexpr std::array<uint64_t, 12> kNumbers = {
        0, 1, 2, 3, 7, 8, 64, 65, 100, 4096, 4097, std::numeric_limits<uint64_t>::max()};
    return kNumbers[random_() % kNumbers.size()];
  }
  size_t Size() { return static_cast<size_t>(Number()); }
  uint32_t Word() { return static_cast<uint32_t>(Number()); }
  template <typename Enum>
  Enum Kind(int most) {
    return static_cast<Enum>(static_cast<int>(random_() % static_cast<unsigned>(most + 3)) - 1);
  }
  void* Memory() {
    switch (random_() % 4) {
      case 0:
        return nullptr;
      case 1:
        return static_cast<char*>(device_) + random_() % kBytes;
      case 2:
        return device_;
      default:
        return elsewhere_.data();
    }
  }
  template <typename T>
  T* Maybe(T* result) {
    return Coin() ? result : nullptr;
  }

  void NewStream() {
    aclrtStream stream = nullptr;
    aclrtCreateStreamWithConfig(&stream, static_cast<uint32_t>(random_() % 9),
                                static_cast<uint32_t>(random_() % 65));
    KeepStream(stream);
  }
  void KeepStream(aclrtStream stream) {
    streams_.push_back(stream);
    Keep(stream);
  }
  void Streams() {
    int32_t id = 0;
    uint32_t word = 0;
    aclrtStreamGetFlags(Any(), Maybe(&word));
    aclrtStreamGetPriority(Any(), Maybe(&word));
    aclrtStreamGetId(Any(), Maybe(&id));
    aclrtStreamStop(Any());
    if (Coin()) aclrtDestroyStreamForce(Any());
  }
  void Options() {
    if (Coin()) Keep(aclrtCreateStreamConfigHandle());
    auto* const config = static_cast<aclrtStreamConfigHandle*>(Any());
    const uint64_t value = Number();
    aclrtSetStreamConfigOpt(config, Kind<aclrtStreamConfigAttr>(3), Maybe(&value), Coin() ? 8 : 4);
    aclrtStream stream = nullptr;
    if (aclrtCreateStreamV2(Maybe(&stream), config) == ACL_SUCCESS) KeepStream(stream);
    if (Coin()) aclrtDestroyStreamConfigHandle(config);
    aclrtStreamAttrValue attribute = {};
    attribute.failureMode = Number();
    aclrtSetStreamAttribute(Any(), Kind<aclrtStreamAttr>(5), Maybe(&attribute));
    aclrtGetStreamAttribute(Any(), Kind<aclrtStreamAttr>(5), Maybe(&attribute));
  }
  void Limits() {
    uint32_t value = 0;
    const auto kind = Kind<aclrtDevResLimitType>(1);
    aclrtSetDeviceResLimit(static_cast<int32_t>(random_() % 3), kind, Word());
    aclrtGetDeviceResLimit(static_cast<int32_t>(random_() % 3), kind, Maybe(&value));
    aclrtSetStreamResLimit(Any(), kind, Word());
    aclrtGetStreamResLimit(Any(), kind, Maybe(&value));
    aclrtUseStreamResInCurrentThread(Any());
    aclrtGetResInCurrentThread(kind, Maybe(&value));
    aclrtUnuseStreamResInCurrentThread(Any());
  }
  void Words() {
    aclrtValueWrite(Memory(), Number(), static_cast<uint32_t>(random_() % 2), Any());
    aclrtValueWait(Memory(), Number(), static_cast<uint32_t>(random_() % 6), Any());
    aclrtMemsetD32(Memory(), Size(), Word(), Size());
    aclrtMemsetD32Async(Memory(), Size(), Word(), Size(), Any());
  }
  void Reduce() {
    aclrtReduceAsync(Memory(), Memory(), Number(), static_cast<aclrtReduceKind>(9 + random_() % 6),
                     Kind<aclDataType>(28), Any(), nullptr);
  }
  aclrtRandomParaInfo Parameter() {
    aclrtRandomParaInfo parameter = {};
    parameter.isAddr = static_cast<uint8_t>(random_() % 3);
    parameter.size = static_cast<uint8_t>(random_() % 10);
    void* const address = Memory();
    const uint64_t small = random_() % 500;
    std::memcpy(parameter.valueOrAddr,
                parameter.isAddr == 0 ? static_cast<const void*>(&small)
                                      : static_cast<const void*>(&address),
                8);
    return parameter;
  }
  void Random() {
    aclrtRandomNumTaskInfo task = {};
    task.dataType = Kind<aclDataType>(28);
    task.randomNumFuncParaInfo.funcType = Kind<aclrtRandomNumFuncType>(3);
    task.randomNumFuncParaInfo.paramInfo.uniformDisInfo = {Parameter(), Parameter()};
    task.randomResultAddr = Memory();
    task.randomCounterAddr = Memory();
    task.randomSeed = Parameter();
    task.randomNum = Parameter();
    task.randomNum.isAddr = 0;  // a number that is read later may be any
    aclrtRandomNumAsync(Maybe(&task), Any(), nullptr);
  }
  void Notifies() {
    aclrtNotify notify = nullptr;
    if (aclrtCreateNotify(Maybe(&notify), random_() % 3) == ACL_SUCCESS) Keep(notify);
    uint32_t id = 0;
    aclrtRecordNotify(Any(), Any());
    aclrtWaitAndResetNotify(Any(), Any(), static_cast<uint32_t>(random_() % 2));
    aclrtGetNotifyId(Any(), Maybe(&id));
    void* some[2] = {Any(), Any()};
    aclrtNotifyBatchReset(Maybe(&some[0]), random_() % 3);
    if (Coin()) aclrtDestroyNotify(Any());
  }
  void Counters() {
    aclrtCntNotify counter = nullptr;
    if (aclrtCntNotifyCreate(Maybe(&counter), random_() % 3) == ACL_SUCCESS) Keep(counter);
    aclrtCntNotifyRecordInfo record = {Kind<aclrtCntNotifyRecordMode>(4), Word()};
    aclrtCntNotifyRecord(Any(), Any(), Maybe(&record));
    aclrtCntNotifyWaitInfo wait = {};
    wait.mode = Kind<aclrtCntNotifyWaitMode>(4);
    wait.value = Word();
    aclrtCntNotifyWaitWithTimeout(Any(), Any(), Maybe(&wait));
    aclrtCntNotifyReset(Any(), Any());
    if (Coin()) aclrtCntNotifyDestroy(Any());
  }
  void Events() {
    aclrtEvent event = nullptr;
    const uint32_t flag =
        Coin() ? uint32_t{ACL_EVENT_SYNC} : static_cast<uint32_t>(random_() % 130);
    if (aclrtCreateEventExWithFlag(Maybe(&event), flag) == ACL_SUCCESS) Keep(event);
    const auto external = static_cast<uint32_t>(random_() % 3);
    aclrtRecordEventWithFlag(Any(), Any(), external);
    aclrtStreamWaitEventWithFlag(Any(), Any(), static_cast<uint32_t>(random_() % 2), external);
    aclrtStreamWaitEventWithTimeout(Any(), Any(), static_cast<int32_t>(random_() % 3) - 1);
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
    aclrtQueryEventStatus(Any(), Maybe(&status));
    if (Coin()) aclrtDestroyEvent(Any());
  }
  void Keys() {
    char key[65] = "npumesh-";
    const size_t length = Coin() ? 65 : Size() % 70;
    if (Coin()) aclrtIpcMemGetExportKey(Memory(), Size(), Maybe(key), length, random_() % 3);
    if (Coin()) aclrtNotifyGetExportKey(Any(), Maybe(key), length, random_() % 4);
    if (Coin()) key[random_() % 64] = static_cast<char>(random_());
    key[64] = '\0';
    void* imported = nullptr;
    aclrtIpcMemImportByKey(Maybe(&imported), Maybe(key), random_() % 3);
    aclrtNotify notify = nullptr;
    if (aclrtNotifyImportByKey(Maybe(&notify), Maybe(key), random_() % 4) == ACL_SUCCESS) {
      Keep(notify);
    }
    int32_t process = static_cast<int32_t>(Number());
    aclrtIpcMemSetImportPid(Maybe(key), Maybe(&process), random_() % 2);
    aclrtNotifySetImportPid(Any(), Maybe(&process), random_() % 2);
    aclrtIpcMemClose(Maybe(key));
    aclrtIpcEventHandle handle = {};
    std::memcpy(handle.reserved, key, sizeof handle.reserved);
    aclrtIpcGetEventHandle(Any(), Maybe(&handle));
    aclrtEvent event = nullptr;
    if (aclrtIpcOpenEventHandle(handle, Maybe(&event)) == ACL_SUCCESS) Keep(event);
  }
  // Host memory stands only where the copy fits into it.
  void Copies() {
    const auto kind = static_cast<aclrtMemcpyKind>(1 + random_() % 3);
    void* const to = Coin() ? device_ : nullptr;
    void* const from = Coin() ? device_ : nullptr;
    aclrtMemcpy2d(to, Size(), from, Size(), Size(), Size() % 5000, kind);
    aclrtMemcpy2dAsync(to, Size(), from, Size(), Size(), Size() % 5000, kind, Any());
    aclrtMemcpyAsyncWithCondition(to, Size(), from, Size(), kind, Any());
  }
  void Batches() {
    std::array<void*, 2> to = {Coin() ? device_ : nullptr, device_};
    std::array<void*, 2> from = {device_, Coin() ? device_ : nullptr};
    std::array<size_t, 2> most = {Size(), Size()};
    std::array<size_t, 2> sizes = {Size(), Size()};
    std::array<aclrtMemcpyBatchAttr, 2> attributes = {};
    for (auto& attribute : attributes) {
      attribute.srcLoc.type = Kind<aclrtMemLocationType>(4);
      attribute.dstLoc.type = Kind<aclrtMemLocationType>(4);
    }
    std::array<size_t, 2> starts = {Size() % 3, Size() % 3};
    size_t failed = 0;
    aclrtMemcpyBatch(to.data(), Maybe(most.data()), from.data(), sizes.data(), random_() % 3,
                     attributes.data(), Maybe(starts.data()), random_() % 3, Maybe(&failed));
    aclrtMemcpyBatchAsync(to.data(), most.data(), from.data(), sizes.data(), random_() % 3,
                          attributes.data(), starts.data(), random_() % 3, &failed, Any());
  }
  void Registers() {
    void* device = nullptr;
    aclrtHostRegister(Memory(), Number() % 65, Kind<aclrtHostRegisterType>(8), Maybe(&device));
    aclrtHostRegisterV2(Memory(), Number() % 65, Word());
    aclrtHostGetDevicePointer(Memory(), Maybe(&device), static_cast<uint32_t>(random_() % 2));
    aclrtHostUnregister(Memory());
    aclrtPtrAttributes attributes = {};
    aclrtPointerGetAttributes(Memory(), Maybe(&attributes));
    size_t bytes = 0;
    aclrtMemGetAddressRange(Memory(), Maybe(&device), Maybe(&bytes));
  }
  void Allocators() {
    if (Coin()) Keep(aclrtAllocatorCreateDesc());
    aclrtAllocatorSetObjToDesc(Any(), Any());
    aclrtAllocatorRegister(Any(), Any());
    aclrtAllocatorUnregister(Any());
    if (Coin()) aclrtAllocatorDestroyDesc(Any());
  }
  void Channels() {
    if (Coin()) Keep(acltdtCreateChannelWithCapacity(Word(), Coin() ? "x" : "", Size()));
    if (Coin()) Keep(acltdtCreateDataset());
    const int64_t dims[2] = {1, 2};
    Keep(acltdtCreateDataItem(Kind<acltdtTensorType>(4), Maybe(dims), random_() % 3,
                              Kind<aclDataType>(28), device_, Number() % 65));
    auto* const dataset = static_cast<acltdtDataset*>(Any());
    auto* const item = static_cast<acltdtDataItem*>(Any());
    auto* const channel = static_cast<acltdtChannelHandle*>(Any());
    acltdtAddDataItem(dataset, item);
    acltdtSendTensor(channel, dataset, static_cast<int32_t>(random_() % 2));
    acltdtReceiveTensor(channel, static_cast<acltdtDataset*>(Any()), 0);
    acltdtGetDataAddrFromItem(item);
    acltdtGetDataItem(dataset, Size());
    if (Coin()) acltdtDestroyDataItem(item);
    if (Coin()) acltdtDestroyDataset(dataset);
    if (Coin()) acltdtDestroyChannel(channel);
  }
  void Marks() {
    if (Coin()) Keep(aclprofCreateStamp());
    const std::string text(random_() % 200, 'm');
    aclprofSetStampTraceMessage(Any(), Coin() ? text.c_str() : nullptr,
                                static_cast<uint32_t>(text.size()));
    uint32_t range = Word();
    aclprofMark(Any());
    aclprofPush(Any());
    aclprofRangeStart(Any(), Maybe(&range));
    aclprofRangeStop(range);
    aclprofPop();
    aclprofMarkEx(Coin() ? text.c_str() : nullptr, text.size(), Any());
    if (Coin()) aclprofDestroyStamp(Any());
    auto* const step = static_cast<aclprofStepInfo*>(Any());
    aclprofGetStepTimestamp(step, Kind<aclprofStepTag>(1), Any());
  }
  void Questions() {
    int64_t value = 0;
    int32_t number = 0;
    aclrtGetDeviceInfo(Word(), static_cast<aclrtDevAttr>(random_() % 700), Maybe(&value));
    aclrtGetDeviceCapability(static_cast<int32_t>(Word()), Kind<aclrtDevFeatureType>(21),
                             Maybe(&number));
    aclrtUtilizationInfo use = {};
    aclrtGetDeviceUtilizationRate(static_cast<int32_t>(Word()), Maybe(&use));
    char text[ACL_PKG_VERSION_MAX_SIZE] = "runtime";
    aclsysGetVersionNum(Maybe(text), Maybe(&number));
    aclsysGetVersionStr(Maybe(text), Maybe(text));
    aclrtCheckArchCompatibility(Maybe(text), Maybe(&number));
    aclrtGetOverflowStatus(Memory(), Size(), Any());
    aclrtCmoAsync(Memory(), Size(), Kind<aclrtCmoType>(3), Any());
  }
  void Addresses() {
    constexpr size_t kBlock = size_t{2} << 20;
    aclrtPhysicalMemProp prop = {};
    prop.location = {Word() % 3, Kind<aclrtMemLocationType>(1)};
    aclrtDrvMemHandle block = nullptr;
    if (aclrtMallocPhysical(Maybe(&block), Coin() ? kBlock : Size(), Maybe(&prop), 0) ==
        ACL_SUCCESS) {
      Keep(block);
    }
    void* address = nullptr;
    if (aclrtReserveMemAddress(Maybe(&address), Coin() ? kBlock : Size(), 0, nullptr, 0) ==
        ACL_SUCCESS) {
      Keep(address);
      reserved_ = address;
    }
    aclrtMapMem(Any(), Coin() ? kBlock : Size(), 0, Any(), 0);
    if (Coin()) aclrtMemMapNoAccess(Any(), kBlock, 0, Any(), 0);
    aclrtMemAccessDesc wish = {};
    wish.flags = Kind<aclrtMemAccessFlags>(3);
    wish.location = {Word() % 3, Kind<aclrtMemLocationType>(4)};
    void* const accessed = Any();
    aclrtMemSetAccess(accessed, kBlock, Maybe(&wish), random_() % 2);
    uint64_t number = Number();
    aclrtMemGetAccess(Any(), Maybe(&wish.location), Maybe(&number));
    // Of reserved addresses: it fills other memory of the process, too.
    aclrtMemset(reserved_, kBlock, 0, 64);
    if (aclrtMemRetainAllocationHandle(Any(), Maybe(&block)) == ACL_SUCCESS) Keep(block);
    aclrtMemGetAllocationPropertiesFromHandle(Any(), Maybe(&prop));
    aclrtMemFabricHandle fabric = {};
    const auto type = Kind<aclrtMemSharedHandleType>(2);
    aclrtMemExportToShareableHandle(Any(), ACL_MEM_HANDLE_TYPE_NONE, random_() % 3, Maybe(&number));
    aclrtMemExportToShareableHandleV2(Any(), random_() % 3, type, Maybe(&fabric));
    if (Coin()) fabric.data[random_() % sizeof fabric.data] = static_cast<uint8_t>(random_());
    int32_t process = static_cast<int32_t>(Number());
    aclrtMemSetPidToShareableHandle(number, Maybe(&process), random_() % 2);
    aclrtMemSetPidToShareableHandleV2(Maybe(&fabric), type, &process, 1);
    if (aclrtMemImportFromShareableHandle(number, static_cast<int32_t>(random_() % 3),
                                          Maybe(&block)) == ACL_SUCCESS) {
      Keep(block);
    }
    if (aclrtMemImportFromShareableHandleV2(Maybe(&fabric), type, 0, Maybe(&block)) ==
        ACL_SUCCESS) {
      Keep(block);
    }
    if (Coin()) aclrtUnmapMem(Any());
    if (Coin()) aclrtReleaseMemAddress(Any());
    if (Coin()) aclrtFreePhysical(Any());
  }
  // The numbers of queues grow, so the last ones are live.
  uint32_t SomeQueue() {
    return Coin() ? last_queue_ - static_cast<uint32_t>(random_() % 3) : Word();
  }
  void Queues() {
    if (Coin()) Keep(acltdtCreateQueueAttr());
    auto* const attr = static_cast<acltdtQueueAttr*>(Any());
    const uint32_t depth = Word();
    const std::string name(random_() % 130, 'q');
    const char* const text = name.c_str();
    if (Coin()) {
      acltdtSetQueueAttr(attr, ACL_TDT_QUEUE_NAME_PTR, Coin() ? 8 : random_() % 8, Maybe(&text));
    } else {
      acltdtSetQueueAttr(attr, ACL_TDT_QUEUE_DEPTH_UINT32, random_() % 9, Maybe(&depth));
    }
    uint32_t queue = 0;
    if (acltdtCreateQueue(Coin() ? attr : nullptr, Maybe(&queue)) == ACL_SUCCESS)
      last_queue_ = queue;
    acltdtEnqueueData(SomeQueue(), device_, random_() % kBytes, nullptr, Size() % 99, 0, 0);
    size_t bytes = 0;
    acltdtDequeueData(SomeQueue(), device_, random_() % kBytes, Maybe(&bytes), nullptr, 0,
                      static_cast<int32_t>(random_() % 2));
    if (Coin()) Keep(acltdtCreateQueueRoute(SomeQueue(), SomeQueue()));
    if (Coin()) Keep(acltdtCreateQueueRouteList());
    if (Coin()) Keep(acltdtCreateQueueRouteQueryInfo());
    acltdtAddQueueRoute(static_cast<acltdtQueueRouteList*>(Any()),
                        static_cast<acltdtQueueRoute*>(Any()));
    acltdtBindQueueRoutes(static_cast<acltdtQueueRouteList*>(Any()));
    acltdtSetQueueRouteQueryInfo(static_cast<acltdtQueueRouteQueryInfo*>(Any()),
                                 Kind<acltdtQueueRouteQueryInfoParamType>(2), 4, Maybe(&depth));
    acltdtQueryQueueRoutes(static_cast<acltdtQueueRouteQueryInfo*>(Any()),
                           static_cast<acltdtQueueRouteList*>(Any()));
    acltdtGetQueueRoute(static_cast<acltdtQueueRouteList*>(Any()), Size(),
                        static_cast<acltdtQueueRoute*>(Any()));
    if (Coin()) acltdtUnbindQueueRoutes(static_cast<acltdtQueueRouteList*>(Any()));
    if (Coin()) acltdtDestroyQueueRouteList(static_cast<acltdtQueueRouteList*>(Any()));
    acltdtAttachQueue(SomeQueue(), 0, Maybe(&queue));
    acltdtGrantQueue(SomeQueue(), 0, Word(), 0);
    if (Coin()) acltdtDestroyQueue(SomeQueue());
  }
  void Buffers() {
    acltdtBuf buffer = nullptr;
    if (acltdtAllocBuf(random_() % 70, random_() % 2, Maybe(&buffer)) == ACL_SUCCESS) Keep(buffer);
    acltdtAppendBufChain(Any(), Any());
    acltdtSetBufDataLen(Any(), Size());
    char user[96] = "";
    acltdtSetBufUserData(Any(), user, Size() % 99, Size());
    acltdtGetBufUserData(Any(), user, Size() % 99, Size());
    if (acltdtCopyBufRef(Any(), Maybe(&buffer)) == ACL_SUCCESS) Keep(buffer);
    if (acltdtGetBufFromChain(Any(), Word(), Maybe(&buffer)) == ACL_SUCCESS) Keep(buffer);
    acltdtEnqueue(SomeQueue(), Any(), 0);
    if (acltdtDequeue(SomeQueue(), Maybe(&buffer), 0) == ACL_SUCCESS) Keep(buffer);
    if (Coin()) acltdtFreeBuf(Any());
  }
  void Pools() {
    aclrtMemPoolProps props = {};
    props.location = {Word() % 3, Kind<aclrtMemLocationType>(1)};
    props.maxSize = Coin() ? 0 : Size();
    aclrtMemPool pool = nullptr;
    if (aclrtMemPoolCreate(Maybe(&pool), Maybe(&props)) == ACL_SUCCESS) Keep(pool);
    void* block = nullptr;
    if (aclrtMemPoolMallocAsync(Maybe(&block), Size() % 5000, Any(), Any()) == ACL_SUCCESS) {
      Keep(block);
    }
    uint64_t value = Number();
    aclrtMemPoolSetAttr(Any(), Kind<aclrtMemPoolAttr>(9), Maybe(&value));
    aclrtMemPoolGetAttr(Any(), Kind<aclrtMemPoolAttr>(9), Maybe(&value));
    aclrtMemPoolTrimTo(Any(), Size());
    if (Coin()) aclrtMemPoolFreeAsync(Any(), Any());
    if (Coin()) aclrtMemPoolDestroy(Any());
  }
  void LateCopies() {
    constexpr auto kKind = ACL_MEMCPY_DEVICE_TO_DEVICE;
    size_t bytes = 0;
    aclrtGetMemcpyDescSize(Kind<aclrtMemcpyKind>(6), Maybe(&bytes));
    aclrtSetMemcpyDesc(Memory(), kKind, Memory(), Memory(), Size(), Coin() ? nullptr : device_);
    aclrtMemcpyAsyncWithDesc(Memory(), Coin() ? kKind : Kind<aclrtMemcpyKind>(6), Any());
    aclrtMemcpyAsyncWithOffset(static_cast<void**>(Memory()), Size(), Size(),
                               static_cast<const void**>(Memory()), Size(), Size(), kKind, Any());
    uint32_t number = 0;
    aclrtGetThreadLastTaskId(Maybe(&number));
    aclrtGetEventId(Any(), Maybe(&number));
    void* addresses[] = {Memory(), Any()};
    aclrtCheckMemType(Maybe(&addresses[0]), Word() % 3, Word(), Maybe(&number), Word() % 2);
    aclrtCmoSetDesc(Memory(), Memory(), Size());
    if (random_() % 8 == 0) aclrtDeviceTaskAbort(static_cast<int32_t>(random_() % 3), Word());
    const auto type = Kind<acldumpType>(6);
    acldumpGetPath(type);
    aclopStartDumpArgs(Word() % 2, Coin() ? "/tmp" : nullptr);
    aclopStopDumpArgs(Word() % 2);
    char path[64] = "";
    acldumpGetExceptionInfoPath(Maybe(path), Size() % sizeof path);
    acldumpTensorInfo tensor = {};
    tensor.tensorAddr = static_cast<int64_t*>(Memory());
    tensor.tensorSize = Size();
    acldumpSaveExceptionInfo(Coin() ? "name" : nullptr, "tag", Maybe(&tensor), random_() % 2);
  }
  void Captures() {
    const aclrtStream stream = Any();
    if (aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED) != ACL_SUCCESS) return;
    Words();
    Notifies();
    aclmdlRI model = nullptr;
    if (aclmdlRICaptureEnd(stream, &model) == ACL_SUCCESS) Keep(model);
    aclmdlRIExecuteAsync(Any(), Any());
    if (Coin()) aclmdlRIDestroy(Any());
  }
  // Groups, updates and conditions, opened and closed as it comes.
  void Groups() {
    const aclrtStream stream = Any();
    if (Coin()) aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
    aclrtTaskGrp group = nullptr;
    aclmdlRICaptureTaskGrpBegin(stream);
    aclrtValueWrite(Memory(), Number(), 0, stream);
    if (aclmdlRICaptureTaskGrpEnd(stream, Maybe(&group)) == ACL_SUCCESS) Keep(group);
    if (Coin()) aclmdlRICaptureTaskUpdateBegin(Any(), Any());
    if (Coin()) aclmdlRICaptureTaskUpdateEnd(Any());
    aclmdlRICondHandle condition = nullptr;
    if (aclmdlRICondHandleCreate(Any(), Word() % 4, Kind<aclmdlRICondHandleFlag>(1),
                                 Maybe(&condition)) == ACL_SUCCESS) {
      Keep(condition);
    }
    uint64_t* word = nullptr;
    aclmdlRICondHandleGetCondPtr(Any(), Maybe(&word));
    std::array<aclmdlRI, 4> branches = {};
    if (aclmdlRIAddCondTask({Any(), Kind<aclmdlRICondTaskType>(2), Word() % 5, branches.data()},
                            stream, 0) == ACL_SUCCESS) {
      Keep(branches[0]);
    }
    aclmdlRICaptureToModelRIBegin(Any(), Any(), Kind<aclmdlRICaptureMode>(2));
    aclmdlRI model = nullptr;
    if (aclmdlRICaptureEnd(Any(), &model) == ACL_SUCCESS) Keep(model);
  }
  void Builds() {
    aclmdlRI model = nullptr;
    if (Coin() && aclmdlRIBuildBegin(&model, 0) == ACL_SUCCESS) Keep(model);
    aclrtLabel label = nullptr;
    if (Coin() && aclrtCreateLabel(&label) == ACL_SUCCESS) Keep(label);
    aclrtLabelList list = nullptr;
    std::array<aclrtLabel, 2> labels = {Any(), label};
    if (aclrtCreateLabelList(labels.data(), Size() % 3, &list) == ACL_SUCCESS) Keep(list);
    aclmdlRIBindStream(Any(), Any(), Coin() ? 0 : 0x7FFFFFFFU);
    aclrtSetLabel(Any(), Any());
    aclrtSwitchLabelByIndex(Memory(), Word() % 3, Any(), Any());
    aclrtActiveStream(Any(), Any());
    aclrtSwitchStream(Memory(), Kind<aclrtCondition>(5), Memory(), Kind<aclrtCompareDataType>(1),
                      Any(), nullptr, Any());
    if (Coin()) aclmdlRIEndTask(Any(), Any());
    if (Coin()) aclmdlRIBuildEnd(Any(), nullptr);
    if (Coin()) aclmdlRIUnbindStream(Any(), Any());
    if (Coin()) aclmdlRIAbort(Any());
    if (Coin()) aclrtDestroyLabel(Any());
    if (Coin()) aclrtDestroyLabelList(Any());
  }
  void Tasks() {
    std::array<void*, 3> some = {};
    uint32_t count = some.size();
    if (aclmdlRIGetStreams(Any(), some.data(), &count) == ACL_SUCCESS && count > 0) Keep(some[0]);
    count = some.size();
    if (aclmdlRIGetTasksByStream(Any(), some.data(), &count) == ACL_SUCCESS && count > 0) {
      Keep(some[count - 1]);
    }
    aclmdlRITaskType type;
    aclmdlRITaskParams params = {};
    aclmdlRITaskGetType(Any(), &type);
    aclmdlRITaskGetSeqId(Any(), Maybe(&count));
    const aclmdlRITask task = Any();
    aclmdlRITaskGetParams(task, &params);
    if (Coin()) params.valueWriteTaskParams = {Memory(), Number()};
    aclmdlRITaskSetParams(task, &params);
    if (Coin()) aclmdlRITaskDisable(Any());
    aclmdlRIUpdate(Any());
    std::array<char, 4> name;
    aclmdlRISetName(Any(), "a name");
    aclmdlRIGetName(Any(), Word() % 5, name.data());
    aclmdlRIDebugPrint(Any());
  }

  std::mt19937_64 random_;
  std::array<void*, 14> handles_;
  std::vector<aclrtStream> streams_;  // all
  alignas(64) std::array<char, kBytes> elsewhere_ = {};
  void* reserved_ = nullptr;
  void* device_ = nullptr;
  uint32_t last_queue_ = 0;
};

// What a program of this seed leaves behind ends with its devices.
void Play(uint64_t seed) {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  {
    Caller caller(seed);
    for (int step = 0; step < 150; ++step) caller.Step();
  }
  ASSERT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST(WrongCalls, AllReturn) {
  setenv("NPUMESH_HBM_SIZE", "16M", 1);
  setenv("NPUMESH_DEVICE_COUNT", "2", 1);
  for (uint64_t seed = seeds.first; seed < seeds.end(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Play(seed);
  }
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  return npumesh::RunSeededTests(argc, argv, &npumesh::seeds);
}
