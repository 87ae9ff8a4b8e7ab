// Events: a part of acl_rt.h.
#include <algorithm>
#include <chrono>

#include "acl/acl_rt.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/base/process/wait.h"
#include "runtime/device/running_task.h"

using npumesh::AclContext;
using npumesh::AclEvent;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::AclTaskNote;
using npumesh::ApiSpan;
using npumesh::Event;
using npumesh::Fail;
using npumesh::Recording;
using npumesh::SharedKind;
using npumesh::SharedTicket;
using npumesh::Stream;

namespace {

constexpr uint32_t kEventFlags = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS |
                                 ACL_EVENT_TIME_LINE | ACL_EVENT_DEVICE_USE_ONLY |
                                 ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;

aclError NeedEvent(std::string_view function, aclrtEvent handle, std::shared_ptr<AclEvent>* event) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "event is null");
  *event = AclProcess::Get().events.Find(handle);
  if (*event != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, function, "{} is not an event", fmt::ptr(handle));
}

// An event whose state can be asked for.
aclError NeedReachableEvent(const char* function, aclrtEvent handle,
                            std::shared_ptr<AclEvent>* event) {
  NPUMESH_ACL_TRY(NeedEvent(function, handle, event));
  if (!(*event)->event.InRecording()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_EVENT_CAPTURED, function,
              "the event was recorded in a stream that is being captured, and is never reached");
}

aclError NeedBoth(const char* function, aclrtEvent event, aclrtStream stream,
                  std::shared_ptr<AclEvent>* found_event,
                  std::shared_ptr<AclStream>* found_stream) {
  NPUMESH_ACL_TRY(NeedEvent(function, event, found_event));
  return AclProcess::Get().NeedReadyStream(function, stream, found_stream);
}

aclError MakeEvent(const char* function, aclrtEvent* event, uint32_t flag, Event::Kind kind,
                   AclEvent::Family family = AclEvent::Family::kPlain) {
  if (event == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "event is null");
  if (flag == 0 || (flag & ~kEventFlags) != 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "flag is {:#x}, expected a union of {:#x}", flag,
                kEventFlags);
  }
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(function, &context));
  NPUMESH_ACL_TRY(
      AclProcess::Get().card_limits.Permit(function, "events", ACL_ERROR_RT_NO_EVENT_RESOURCE,
                                           [] { return AclProcess::Get().events.size(); }));
  auto made = std::make_shared<AclEvent>(family, kind, flag);
  if (family == AclEvent::Family::kEx && (flag & ACL_EVENT_IPC) != 0) {
    auto ticket = SharedTicket::Create(SharedKind::kEvent);
    NPUMESH_ACL_TRY(npumesh::Report(function, ticket.status()));
    (*ticket)->AllowAnyone();
    made->shared = *std::move(ticket);
  }
  *event = AclProcess::Get().events.Add(std::move(made));
  return ACL_SUCCESS;
}

// Records of an event over processes are counted in its page: when they are queued, and when they
// are reached.

bool SharedReached(const SharedTicket& ticket, uint64_t record) {
  return ticket.page().value.load(std::memory_order_acquire) >= record;
}

void Raise(std::atomic<uint64_t>& word, uint64_t value) {
  uint64_t seen = word;
  while (seen < value && !word.compare_exchange_weak(seen, value)) continue;
}

// Tasks of a captured stream run in the order of their calls; a stream of a model that is built is
// none.
bool Captured(const AclStream& stream) {
  const auto recording = stream.stream.recording();
  return recording != nullptr && recording->kind() == Recording::Kind::kCaptured;
}

aclError RefuseSharedInCapture(const char* function, const AclStream& stream) {
  if (!stream.stream.records()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, function,
              "stream {} is being captured, and an event of ACL_EVENT_IPC belongs to no capture",
              stream.id);
}

aclError RecordShared(const char* function, const AclEvent& event, AclStream& stream) {
  NPUMESH_ACL_TRY(RefuseSharedInCapture(function, stream));
  const uint64_t record = event.shared->page().announced.fetch_add(1) + 1;
  stream.stream.Enqueue([ticket = event.shared, record] {
    Raise(ticket->page().value, record);
    return npumesh::Status();
  });
  return ACL_SUCCESS;
}

aclError WaitShared(const char* function, const AclEvent& event, AclStream& stream,
                    std::chrono::seconds limit) {
  NPUMESH_ACL_TRY(RefuseSharedInCapture(function, stream));
  const uint64_t record = event.shared->page().announced;
  stream.stream.Enqueue([ticket = event.shared, record, limit] {
    return npumesh::AwaitInTask([&] { return SharedReached(*ticket, record); },
                                {.what = "for an event of another process",
                                 .limit = limit,
                                 .watch = [&] { return ticket->CheckOthers(); }});
  });
  return ACL_SUCCESS;
}

bool Complete(const AclEvent& event) {
  if (event.shared == nullptr) return event.complete();
  return SharedReached(*event.shared, event.shared->page().announced);
}

// A host waits. Errors: kTimeout, kPeerLost.
npumesh::Status AwaitShared(const SharedTicket& ticket, npumesh::Deadline deadline) {
  const uint64_t record = ticket.page().announced;
  npumesh::WaitPolicy policy;
  policy.watch_every = std::chrono::milliseconds(5);
  return npumesh::WaitUntil(
      policy, [&] { return SharedReached(ticket, record); },
      [&]() -> npumesh::Status {
        if (deadline.expired()) {
          return npumesh::Error(npumesh::Code::kTimeout, "not reached");
        }
        return ticket.CheckOthers();
      });
}

// ---- Tasks of models that concern an event ----

enum class EventTask { kRecord, kWait, kReset };

// Whether the event belongs to the order of the model, or comes from outside and can be exchanged.
enum class EventSide { kInside, kOutside };

aclmdlRITaskParams ParamsOf(EventTask task, aclrtEvent handle, const AclEvent& event,
                            EventSide side) {
  aclmdlRITaskParams params{};
  const uint32_t flag = side == EventSide::kOutside ? 1 : 0;  // ACL_EVENT_RECORD_EXTERNAL, _WAIT_
  switch (task) {
    case EventTask::kRecord:
      params.type = ACL_MODEL_RI_TASK_EVENT_RECORD;
      params.eventRecordTaskParams = {handle, event.flag, flag};
      break;
    case EventTask::kWait:
      params.type = ACL_MODEL_RI_TASK_EVENT_WAIT;
      params.eventWaitTaskParams = {handle, event.flag, flag};
      break;
    case EventTask::kReset:
      params.type = ACL_MODEL_RI_TASK_EVENT_RESET;
      params.eventResetTaskParams = {handle, event.flag, flag};
      break;
  }
  return params;
}

const char* NameOf(EventTask task) {
  switch (task) {
    case EventTask::kRecord:
      return "EVENT_RECORD";
    case EventTask::kWait:
      return "EVENT_WAIT";
    default:
      return "EVENT_RESET";
  }
}

// What the task of an event from outside does in a model.
npumesh::Task OutsideTask(EventTask task, std::shared_ptr<AclEvent> point) {
  switch (task) {
    case EventTask::kRecord:
      return [point] {
        point->event.Reach();
        return npumesh::Status();
      };
    case EventTask::kWait:
      return [point] {
        return npumesh::AwaitInTask([&point] { return point->event.Reached(); },
                                    {.what = "for an event from outside of its capture"});
      };
    default:
      return [point] {
        point->event.Clear();
        return npumesh::Status();
      };
  }
}

aclrtEvent EventOf(EventTask task, const aclmdlRITaskParams& params) {
  switch (task) {
    case EventTask::kRecord:
      return params.eventRecordTaskParams.event;
    case EventTask::kWait:
      return params.eventWaitTaskParams.event;
    default:
      return params.eventResetTaskParams.event;
  }
}

std::shared_ptr<AclTaskNote> NoteOf(EventTask task, aclrtEvent handle, const AclEvent& event,
                                    EventSide side) {
  AclTaskNote::Remake remake;
  if (side == EventSide::kOutside) {
    remake = [task](std::string_view function, const aclmdlRITaskParams& asked,
                    Recording::Change* change) {
      std::shared_ptr<AclEvent> point;
      const aclrtEvent other = EventOf(task, asked);
      NPUMESH_ACL_TRY(NeedEvent(function, other, &point));
      change->note = NoteOf(task, other, *point, EventSide::kOutside);
      change->work = OutsideTask(task, std::move(point));
      return ACL_SUCCESS;
    };
  }
  return std::make_shared<AclTaskNote>(NameOf(task), ParamsOf(task, handle, event, side),
                                       std::move(remake));
}

// The same for a stream that may take nothing down, not even from the wait for the event on.
std::shared_ptr<AclTaskNote> NoteFor(const AclStream& stream, EventTask task, aclrtEvent handle,
                                     const AclEvent& event) {
  const bool joins =
      task == EventTask::kWait && stream.stream.PlaceOf(event.event) == Stream::Place::kJoins;
  if (!stream.stream.records() && !joins) return nullptr;
  return NoteOf(task, handle, event, EventSide::kInside);
}

void EnqueueOutside(AclStream& stream, EventTask task, aclrtEvent handle,
                    std::shared_ptr<AclEvent> point) {
  auto note = NoteOf(task, handle, *point, EventSide::kOutside);
  stream.stream.Enqueue(OutsideTask(task, std::move(point)), std::move(note));
}

// A group of tasks that can be exchanged holds none of the order of the model.
aclError RefuseInGroup(const char* function, const AclStream& stream) {
  size_t member = 0;
  const auto recording = stream.stream.recording(&member);
  if (recording == nullptr || !recording->InGroup(member)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, function,
              "stream {} has a task group open, and an event cannot be exchanged", stream.id);
}

aclError WaitForEvent(const char* function, aclrtStream stream, aclrtEvent event,
                      std::chrono::seconds limit) {
  std::shared_ptr<AclEvent> point;
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(NeedBoth(function, event, stream, &point, &on));
  NPUMESH_ACL_TRY(RefuseInGroup(function, *on));
  if (point->shared != nullptr) return WaitShared(function, *point, *on, limit);
  if (point->external && Captured(*on)) {
    EnqueueOutside(*on, EventTask::kWait, event, std::move(point));
    return ACL_SUCCESS;
  }
  if (Captured(*on) && on->stream.PlaceOf(point->event) == Stream::Place::kOutside) {
    AclProcess::Get().captures.Invalidate(on->stream.recording());
    return Fail(ACL_ERROR_RT_CAPTURE_DEPENDENCY, function,
                "stream {} is being captured, and the event was not recorded in this capture",
                on->id);
  }
  if (on->stream.PlaceOf(point->event) == Stream::Place::kForeign) {
    AclProcess::Get().captures.Invalidate(on->stream.recording());
    return Fail(ACL_ERROR_STREAM_CAPTURE_CONFLICT, function,
                "the event was recorded in another capture than that of stream {}", on->id);
  }
  on->stream.Wait(point->event, limit, NoteFor(*on, EventTask::kWait, event, *point));
  return ACL_SUCCESS;
}

// For the flags EXTERNAL: a task of a captured stream, and an event that others see.
aclError NeedOutside(const char* function, aclrtEvent event, aclrtStream stream,
                     std::shared_ptr<AclEvent>* point, std::shared_ptr<AclStream>* on) {
  NPUMESH_ACL_TRY(NeedBoth(function, event, stream, point, on));
  if ((*point)->family != AclEvent::Family::kEx || (*point)->flag != ACL_EVENT_SYNC) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "the flag EXTERNAL takes events of aclrtCreateEventExWithFlag with ACL_EVENT_SYNC");
  }
  if ((*on)->stream.records()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, function,
              "the flag EXTERNAL is for captured streams, and stream {} is not captured",
              (*on)->id);
}

}  // namespace

aclError aclrtCreateEvent(aclrtEvent* event) try {
  return MakeEvent(__func__, event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE, Event::Kind::kPoint);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) try {
  const bool signal = (flag & (ACL_EVENT_SYNC | ACL_EVENT_EXTERNAL)) != 0;
  return MakeEvent(__func__, event, flag, signal ? Event::Kind::kSignal : Event::Kind::kPoint);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) try {
  return MakeEvent(__func__, event, flag, Event::Kind::kPoint, AclEvent::Family::kEx);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDestroyEvent(aclrtEvent event) try {
  // Clients that destroy their events at the process's end, as torch_npu does, come after
  // aclFinalize, which has destroyed them.
  AclProcess& process = AclProcess::Get();
  if (process.events.Take(event) != nullptr || process.Ended()) return ACL_SUCCESS;
  std::shared_ptr<AclEvent> none;
  return NeedEvent(__func__, event, &none);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) try {
  std::shared_ptr<AclEvent> point;
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(NeedBoth(__func__, event, stream, &point, &on));
  NPUMESH_ACL_TRY(RefuseInGroup(__func__, *on));
  if (point->shared != nullptr) return RecordShared(__func__, *point, *on);
  if (point->external && Captured(*on)) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, __func__,
                "an event with ACL_EVENT_EXTERNAL cannot be recorded in a captured stream");
  }
  on->stream.Record(point->event, NoteFor(*on, EventTask::kRecord, event, *point));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) try {
  std::shared_ptr<AclEvent> point;
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(NeedBoth(__func__, event, stream, &point, &on));
  if (point->family != AclEvent::Family::kPlain ||
      (point->flag & (ACL_EVENT_SYNC | ACL_EVENT_EXTERNAL)) == 0) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, __func__,
                "only an event of aclrtCreateEvent, or of aclrtCreateEventWithFlag with "
                "ACL_EVENT_SYNC or ACL_EVENT_EXTERNAL, can be reset");
  }
  NPUMESH_ACL_TRY(RefuseInGroup(__func__, *on));
  if (point->external && Captured(*on)) {
    EnqueueOutside(*on, EventTask::kReset, event, std::move(point));
    return ACL_SUCCESS;
  }
  on->stream.Reset(point->event, NoteFor(*on, EventTask::kReset, event, *point));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) try {
  return WaitForEvent(__func__, stream, event,
                      std::chrono::seconds(AclProcess::Get().event_wait_seconds));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event,
                                         int32_t timeout) try {
  NPUMESH_ACL_EXPECT(timeout >= 0, "timeout is {}, expected 0 (without limit) or seconds", timeout);
  return WaitForEvent(__func__, stream, event, std::chrono::seconds(timeout));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout,
                                      uint32_t flag) try {
  NPUMESH_ACL_EXPECT(flag <= ACL_EVENT_WAIT_EXTERNAL, "flag is {}, expected 0 or 1", flag);
  if (flag == ACL_EVENT_WAIT_DEFAULT) {
    return WaitForEvent(__func__, stream, event, std::chrono::seconds(timeout));
  }
  NPUMESH_ACL_EXPECT(timeout == 0, "timeout is {}, expected 0 with ACL_EVENT_WAIT_EXTERNAL",
                     timeout);
  std::shared_ptr<AclEvent> point;
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(NeedOutside(__func__, event, stream, &point, &on));
  EnqueueOutside(*on, EventTask::kWait, event, std::move(point));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) try {
  NPUMESH_ACL_EXPECT(flag <= ACL_EVENT_RECORD_EXTERNAL, "flag is {}, expected 0 or 1", flag);
  if (flag == ACL_EVENT_RECORD_DEFAULT) return aclrtRecordEvent(event, stream);
  std::shared_ptr<AclEvent> point;
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(NeedOutside(__func__, event, stream, &point, &on));
  EnqueueOutside(*on, EventTask::kRecord, event, std::move(point));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) try {
  NPUMESH_ACL_EXPECT(status != nullptr, "status is null");
  std::shared_ptr<AclEvent> point;
  NPUMESH_ACL_TRY(NeedReachableEvent(__func__, event, &point));
  *status =
      Complete(*point) ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) try {
  NPUMESH_ACL_EXPECT(status != nullptr, "status is null");
  std::shared_ptr<AclEvent> point;
  NPUMESH_ACL_TRY(NeedReachableEvent(__func__, event, &point));
  *status = Complete(*point) ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) try {
  NPUMESH_ACL_EXPECT(status != nullptr, "status is null");
  std::shared_ptr<AclEvent> point;
  NPUMESH_ACL_TRY(NeedEvent(__func__, event, &point));
  *status =
      point->event.Awaited() ? ACL_EVENT_WAIT_STATUS_NOT_READY : ACL_EVENT_WAIT_STATUS_COMPLETE;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSynchronizeEvent(aclrtEvent event) try {
  const ApiSpan span(__func__);
  std::shared_ptr<AclEvent> point;
  NPUMESH_ACL_TRY(NeedReachableEvent(__func__, event, &point));
  if (point->shared != nullptr) {
    return npumesh::Report(__func__, AwaitShared(*point->shared, npumesh::Deadline::Never()));
  }
  point->event.Synchronize();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) try {
  NPUMESH_ACL_EXPECT(timeout == -1 || timeout > 0, "timeout is {}, expected -1 or more than 0",
                     timeout);
  if (timeout == -1) return aclrtSynchronizeEvent(event);
  const ApiSpan span(__func__);
  std::shared_ptr<AclEvent> point;
  NPUMESH_ACL_TRY(NeedReachableEvent(__func__, event, &point));
  const auto deadline = npumesh::Deadline::After(std::chrono::milliseconds(timeout));
  if (point->shared != nullptr) {
    const npumesh::Status status = AwaitShared(*point->shared, deadline);
    if (status.code() != npumesh::Code::kTimeout) return npumesh::Report(__func__, status);
  } else if (point->event.SynchronizeUntil(deadline)) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, __func__, "the event was not reached within {} ms",
              timeout);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) try {
  NPUMESH_ACL_EXPECT(ms != nullptr, "ms is null");
  std::shared_ptr<AclEvent> start;
  std::shared_ptr<AclEvent> end;
  NPUMESH_ACL_TRY(NeedEvent(__func__, startEvent, &start));
  NPUMESH_ACL_TRY(NeedEvent(__func__, endEvent, &end));
  if (!start->has_time || !end->has_time) {
    return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, __func__,
                "an event was created without ACL_EVENT_TIME_LINE");
  }
  const auto elapsed = Event::Elapsed(start->event, end->event);
  if (!elapsed.ok()) {
    return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, __func__, "{}", elapsed.status().message());
  }
  if (elapsed->count() < 0) {
    return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, __func__,
                "the end was reached {} ns before the start", -elapsed->count());
  }
  *ms = std::chrono::duration<float, std::milli>(*elapsed).count();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) try {
  NPUMESH_ACL_EXPECT(timestamp != nullptr, "timestamp is null");
  std::shared_ptr<AclEvent> point;
  NPUMESH_ACL_TRY(NeedEvent(__func__, event, &point));
  const auto time = point->event.Time();
  if (!time.ok() || !point->has_time) {
    return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, __func__,
                "the event is not reached, or was created without ACL_EVENT_TIME_LINE");
  }
  const auto since_start =
      std::chrono::duration_cast<std::chrono::microseconds>(time->time_since_epoch());
  *timestamp = static_cast<uint64_t>(since_start.count());
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId) try {
  NPUMESH_ACL_EXPECT(event != nullptr && eventId != nullptr, "event or eventId is null");
  const auto found = AclProcess::Get().events.Find(event);
  if (found == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, __func__, "{} is not an event", fmt::ptr(event));
  }
  *eventId = found->id;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetEventAvailNum(uint32_t* eventCount) try {
  constexpr size_t kMost = 65536;  // of a card; here the memory of the host is the limit
  NPUMESH_ACL_EXPECT(eventCount != nullptr, "eventCount is null");
  const size_t live = AclProcess::Get().events.All().size();
  *eventCount = static_cast<uint32_t>(kMost - std::min(kMost, live));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
