// Marks and ranges of programs: a part of acl_prof.h.
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl_prof.h"
#include "runtime/acl/msprofiler/stream_place.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/handle_table.h"
#include "runtime/acl/process/process.h"
#include "runtime/acl/without_effect.h"

using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::Fail;
using npumesh::HandleTable;
using npumesh::MarkInStream;
using npumesh::Profiler;

struct aclprofStepInfo {
  uint32_t number = 0;
};

namespace {

constexpr size_t kMostCharacters = 127;

struct Stamp {
  std::mutex mutex;
  std::string message;

  std::string Message() {
    const std::lock_guard lock(mutex);
    return message;
  }
};

// A range that goes on.
struct OpenRange {
  std::string message;
  int64_t begin_ns = 0;
};

struct Marks {
  HandleTable<Stamp> stamps;
  HandleTable<aclprofStepInfo> steps;
  std::atomic<uint32_t> next_step{1};
  std::mutex mutex;
  uint32_t next_range = 1;
  std::map<uint32_t, OpenRange> ranges;  // by id
  std::vector<std::string> texts;        // of aclprofStr2Id, by id - 1
  std::map<std::string, uint64_t> ids;   // the other way round
};

Marks& TheMarks() {
  static Marks* const marks = new Marks;
  return *marks;
}

std::vector<OpenRange>& RangesOfThread() {
  thread_local std::vector<OpenRange> ranges;
  return ranges;
}

std::vector<OpenRange>& OperatorRangesOfThread() {
  thread_local std::vector<OpenRange> ranges;
  return ranges;
}

// Empty for a number that no text has.
std::string TextOf(uint64_t id) {
  Marks& marks = TheMarks();
  const std::lock_guard lock(marks.mutex);
  return id == 0 || id > marks.texts.size() ? "" : marks.texts[id - 1];
}

aclError NeedStamp(const char* function, const void* handle, std::shared_ptr<Stamp>* stamp) {
  *stamp = TheMarks().stamps.Find(handle);
  if (*stamp != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "{} was not returned by aclprofCreateStamp, or was destroyed", fmt::ptr(handle));
}

void EndRange(const OpenRange& range) {
  npumesh::NoteRange({.name = range.message, .type = "Range", .begin_ns = range.begin_ns});
}

aclError CheckMessage(const char* function, const char* text, size_t length) {
  if (text != nullptr && length > 0 && length <= kMostCharacters) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "the message is {}, its length {}, expected 1 to {} characters", fmt::ptr(text),
              length, kMostCharacters);
}

}  // namespace

aclError aclprofSetConfig(aclprofConfigType configType, const char* config,
                          size_t configLength) try {
  NPUMESH_ACL_EXPECT(configType > ACL_PROF_ARGS_MIN && configType < ACL_PROF_ARGS_MAX,
                     "configType is {}, expected 1 to 16", static_cast<int>(configType));
  NPUMESH_ACL_EXPECT(config != nullptr && configLength > 0, "config is null or empty");
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

void* aclprofCreateStamp(void) try {
  return TheMarks().stamps.Add(std::make_shared<Stamp>());
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

void aclprofDestroyStamp(void* stamp) try {
  static_cast<void>(TheMarks().stamps.Take(stamp));
} catch (...) {
  npumesh::FailThrown(__func__);
}

aclError aclprofSetStampTraceMessage(void* stamp, const char* msg, uint32_t msgLen) try {
  std::shared_ptr<Stamp> found;
  NPUMESH_ACL_TRY(NeedStamp(__func__, stamp, &found));
  NPUMESH_ACL_TRY(CheckMessage(__func__, msg, msgLen));
  const std::lock_guard lock(found->mutex);
  found->message.assign(msg, msgLen);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofMark(void* stamp) try {
  std::shared_ptr<Stamp> found;
  NPUMESH_ACL_TRY(NeedStamp(__func__, stamp, &found));
  const std::string message = found->Message();
  npumesh::NoteRange({.name = message, .type = "Mark", .begin_ns = Profiler::Now()});
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofMarkEx(const char* msg, size_t msgLen, aclrtStream stream) try {
  NPUMESH_ACL_TRY(CheckMessage(__func__, msg, msgLen));
  return MarkInStream(__func__, std::string(msg, msgLen), stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofPush(void* stamp) try {
  std::shared_ptr<Stamp> found;
  NPUMESH_ACL_TRY(NeedStamp(__func__, stamp, &found));
  RangesOfThread().push_back({found->Message(), Profiler::Now()});
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofPop(void) try {
  auto& ranges = RangesOfThread();
  NPUMESH_ACL_EXPECT(!ranges.empty(), "this thread has no range to end; aclprofPush begins one");
  EndRange(ranges.back());
  ranges.pop_back();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

uint64_t aclprofStr2Id(const char* message) try {
  if (message == nullptr || *message == '\0') return 0;
  Marks& marks = TheMarks();
  const std::lock_guard lock(marks.mutex);
  const auto [found, is_new] = marks.ids.emplace(message, marks.texts.size() + 1);
  if (is_new) marks.texts.push_back(message);
  return found->second;
} catch (...) {
  npumesh::FailThrown(__func__);
  return 0;
}

aclError aclprofRangePushEx(aclprofEventAttributes* attr) try {
  NPUMESH_ACL_EXPECT(attr != nullptr && attr->message.tensorInfo != nullptr,
                     "attr or its tensorInfo is null");
  NPUMESH_ACL_EXPECT(attr->version == ACL_PROF_EVENT_ATTR_VERSION &&
                         attr->messageType == ACL_PROF_MESSAGE_TYPE_TENSOR_INFO,
                     "version is {}, messageType is {}, expected 1 and 0", attr->version,
                     attr->messageType);
  const aclprofTensorInfo& info = *attr->message.tensorInfo;
  std::string name = TextOf(info.opNameId);
  NPUMESH_ACL_EXPECT(!name.empty(), "opNameId is {}, which aclprofStr2Id did not return",
                     info.opNameId);
  const std::string type = TextOf(info.opTypeId);
  if (!type.empty()) name = type + ":" + name;
  OperatorRangesOfThread().push_back({std::move(name), Profiler::Now()});
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofRangePop(void) try {
  auto& ranges = OperatorRangesOfThread();
  NPUMESH_ACL_EXPECT(!ranges.empty(),
                     "this thread has no range to end; aclprofRangePushEx begins one");
  EndRange(ranges.back());
  ranges.pop_back();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofRangeStart(void* stamp, uint32_t* rangeId) try {
  NPUMESH_ACL_EXPECT(rangeId != nullptr, "rangeId is null");
  std::shared_ptr<Stamp> found;
  NPUMESH_ACL_TRY(NeedStamp(__func__, stamp, &found));
  OpenRange range{found->Message(), Profiler::Now()};
  Marks& marks = TheMarks();
  const std::lock_guard lock(marks.mutex);
  *rangeId = marks.next_range++;
  marks.ranges.emplace(*rangeId, std::move(range));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofRangeStop(uint32_t rangeId) try {
  Marks& marks = TheMarks();
  OpenRange range;
  {
    const std::lock_guard lock(marks.mutex);
    auto found = marks.ranges.extract(rangeId);
    NPUMESH_ACL_EXPECT(!found.empty(), "no range has the id {}, or it has ended", rangeId);
    range = std::move(found.mapped());
  }
  EndRange(range);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclprofStepInfo* aclprofCreateStepInfo(void) try {
  Marks& marks = TheMarks();
  auto step = std::make_shared<aclprofStepInfo>(aclprofStepInfo{marks.next_step++});
  aclprofStepInfo* const handle = step.get();
  marks.steps.Add(std::move(step));
  return handle;
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

void aclprofDestroyStepInfo(aclprofStepInfo* stepinfo) try {
  static_cast<void>(TheMarks().steps.Take(stepinfo));
} catch (...) {
  npumesh::FailThrown(__func__);
}

aclError aclprofGetStepTimestamp(aclprofStepInfo* stepInfo, aclprofStepTag tag,
                                 aclrtStream stream) try {
  NPUMESH_ACL_EXPECT(tag == ACL_STEP_START || tag == ACL_STEP_END, "tag is {}, expected 0 or 1",
                     static_cast<int>(tag));
  const auto step = TheMarks().steps.Find(stepInfo);
  NPUMESH_ACL_EXPECT(step != nullptr,
                     "{} was not returned by aclprofCreateStepInfo, or was destroyed",
                     fmt::ptr(stepInfo));
  const std::string_view word = tag == ACL_STEP_START ? "start" : "end";
  return MarkInStream(__func__, fmt::format("step {} {}", step->number, word), stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
