#include "graph/profile/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/profile/profile_text.h"
#include "graph/profile/report_file.h"
#include "graph/profile/vendor_names.h"

namespace npumesh {
namespace {

using nlohmann::json;

// Layers by the number that the vendor gives them.
constexpr uint64_t kCannLayer = 7;
constexpr uint64_t kHardwareLayer = 14;
constexpr uint64_t kCommunicationLayer = 16;
constexpr uint64_t kOverlapLayer = 31;
// The device number of what runs on the host.
constexpr uint64_t kHostDevice = 31;
// What the vendor writes for "no model" and "no other rank".
constexpr uint32_t kNoNumber = std::numeric_limits<uint32_t>::max();
constexpr std::array<const char*, 4> kOverlapParts = {"Computing", "Communication",
                                                      "Communication(Not Overlapped)", "Free"};

// One thread of a layer.
struct Track {
  uint64_t pid = 0;
  uint64_t tid = 0;
};

class Timeline {
 public:
  Timeline(const VendorRows& rows, const std::string& path, FileSystem& fs)
      : rows_(rows), file_(path, fs) {}

  Status Write() {
    NameLayers();
    const bool tasks = rows_.owner().task_trace;
    ConnectWork(tasks);
    AddHost();
    if (tasks) AddTasks();
    AddCalls();
    AddOverlap();
    file_.Append(first_ ? "[]\n" : "\n]\n");
    return file_.Commit();
  }

 private:
  uint64_t Pid(uint64_t layer) const {
    const uint64_t device =
        layer == kCannLayer ? kHostDevice : static_cast<uint64_t>(rows_.device) % 32;
    return static_cast<uint64_t>(rows_.owner().process) << 10 | layer << 5 | device;
  }

  Track HostTrack() const {
    return {Pid(kCannLayer), static_cast<uint64_t>(rows_.owner().process)};
  }
  // A group has two threads: its calls, and what they consist of.
  Track CallTrack(size_t group) const { return {Pid(kCommunicationLayer), 2 * group}; }
  Track PlaneTrack(size_t group) const { return {Pid(kCommunicationLayer), 2 * group + 1}; }

  // Events.

  void Emit(const json& event) {
    file_.Append(first_ ? "[\n" : ",\n");
    first_ = false;
    file_.Append(event.dump(-1, ' ', false, json::error_handler_t::replace));
  }

  void EmitName(const Track& track, std::string_view what, json args) {
    Emit({{"ph", "M"},
          {"name", what},
          {"pid", track.pid},
          {"tid", track.tid},
          {"args", std::move(args)}});
  }

  // The vendor's time stamps are texts, because a double has no room for their nanoseconds.
  std::string Moment(int64_t ns) const { return MicrosecondText(WallClock(rows_.owner(), ns)); }

  void EmitSpan(const Track& track, std::string_view name, int64_t begin_ns, int64_t duration_ns,
                json args) {
    json event = {{"ph", "X"},        {"name", name},           {"pid", track.pid},
                  {"tid", track.tid}, {"ts", Moment(begin_ns)}, {"dur", Microseconds(duration_ns)}};
    if (!args.is_null()) event["args"] = std::move(args);
    Emit(event);
  }

  void EmitFlowEnd(char end, const Track& track, uint64_t connection, int64_t ns) {
    json event = {{"ph", std::string(1, end)},
                  {"cat", "HostToDevice"},
                  {"name", fmt::format("HostToDevice{}", connection)},
                  {"id", fmt::format("{}", connection)},
                  {"pid", track.pid},
                  {"tid", track.tid},
                  {"ts", Moment(ns)}};
    if (end == 'f') event["bp"] = "e";
    Emit(event);
  }

  // Names of layers and threads.

  void NameLayer(uint64_t layer, std::string_view name, const std::string& label) {
    const Track track{Pid(layer), 0};
    EmitName(track, "process_name", {{"name", name}});
    EmitName(track, "process_labels", {{"labels", label}});
    EmitName(track, "process_sort_index", {{"sort_index", layer}});
  }

  void NameThread(const Track& track, const std::string& name, uint64_t order) {
    EmitName(track, "thread_name", {{"name", name}});
    EmitName(track, "thread_sort_index", {{"sort_index", order}});
  }

  void NameLayers() {
    const std::string device = fmt::format("NPU {}", rows_.device);
    NameLayer(kCannLayer, "CANN", "CPU");
    NameThread(HostTrack(), fmt::format("Thread {}", rows_.owner().process), 0);
    NameLayer(kHardwareLayer, "Ascend Hardware", device);
    std::set<uint16_t> lanes;
    for (const TaskRow& row : rows_.tasks) lanes.insert(row.span->lane);
    for (const uint16_t lane : lanes) {
      NameThread({Pid(kHardwareLayer), lane}, fmt::format("Stream {}", lane), lane);
    }
    NameLayer(kCommunicationLayer, "Communication", device);
    for (size_t i = 0; i < rows_.groups.size(); ++i) {
      NameThread(CallTrack(i), fmt::format("Group {} Communication", rows_.groups[i].hash), 2 * i);
      NameThread(PlaneTrack(i), "Plane 0", 2 * i + 1);
    }
    NameLayer(kOverlapLayer, "Overlap Analysis", device);
    for (size_t i = 0; i < kOverlapParts.size(); ++i) {
      NameThread({Pid(kOverlapLayer), i}, kOverlapParts[i], i);
    }
  }

  // Connections between what the program asked for and what the device did: each work has a number,
  // and the host row that had begun last and not ended when the work began.

  void ConnectWork(bool tasks) {
    std::vector<const Span*> work;
    if (tasks) {
      for (const TaskRow& row : rows_.tasks) work.push_back(row.span);
    }
    for (const CallRow& row : rows_.calls) work.push_back(row.span);
    std::stable_sort(work.begin(), work.end(),
                     [](const Span* a, const Span* b) { return a->begin_ns < b->begin_ns; });
    connections_of_host_.resize(rows_.host.size());
    std::vector<size_t> open;
    size_t next = 0;
    for (const Span* span : work) {
      while (next < rows_.host.size() && rows_.host[next].span->begin_ns <= span->begin_ns) {
        open.push_back(next++);
      }
      while (!open.empty() && rows_.host[open.back()].span->end_ns <= span->begin_ns) {
        open.pop_back();
      }
      const uint64_t connection = ++connections_;
      connection_of_[span] = connection;
      if (!open.empty()) connections_of_host_[open.back()].push_back(connection);
    }
  }

  void AddHost() {
    const Track track = HostTrack();
    for (size_t i = 0; i < rows_.host.size(); ++i) {
      const HostRow& row = rows_.host[i];
      const std::vector<uint64_t>& started = connections_of_host_[i];
      EmitSpan(
          track, row.name, row.span->begin_ns, row.duration_ns(),
          {{"Thread Id", track.tid},
           {"Mode", row.span->kind == SpanKind::kIteration ? "iteration" : "api"},
           {"level", row.level},
           {"id", row.name},
           {"item_id", row.span->kind == SpanKind::kIteration ? fmt::format("{}", row.span->number)
                                                              : std::string("0")},
           {"connection_id", started.empty() ? 0 : started.front()}});
      for (const uint64_t connection : started) {
        EmitFlowEnd('s', track, connection, row.span->begin_ns);
        flows_.insert(connection);
      }
    }
  }

  // The number of some work, whose arrow ends here if it has one.
  uint64_t Arrive(const Span& span, const Track& track) {
    const uint64_t connection = connection_of_.at(&span);
    if (flows_.contains(connection)) EmitFlowEnd('f', track, connection, span.begin_ns);
    return connection;
  }

  void AddTasks() {
    for (const TaskRow& row : rows_.tasks) {
      const Track track{Pid(kHardwareLayer), row.span->lane};
      json args = {{"Model Id", row.model.value_or(kNoNumber)},
                   {"Task Type", row.copy ? "MEMCPY_ASYNC" : CoreOf(row.task->type)},
                   {"Physic Stream Id", row.span->lane},
                   {"Task Id", row.task_id},
                   {"Batch Id", 0},
                   {"Subtask Id", kNoNumber},
                   {"connection_id", Arrive(*row.span, track)}};
      if (row.copy) AddCopyArgs(row, args);
      const std::string& name = row.task->name;
      EmitSpan(track, !name.empty() ? name : (row.copy ? "MEMCPY_ASYNC" : "N/A"),
               row.span->begin_ns, row.duration_ns(), std::move(args));
    }
  }

  static void AddCopyArgs(const TaskRow& row, json& args) {
    args["size(B)"] = row.span->bytes;
    args["bandwidth(GB/s)"] = Bandwidth(row.span->bytes, row.duration_ns());
    args["operation"] = row.task->name;
  }

  // Bytes per nanosecond are 10^9 bytes per second.
  static double Bandwidth(uint64_t bytes, int64_t ns) {
    return ns == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(ns);
  }

  void AddCalls() {
    for (const CallRow& row : rows_.calls) {
      const Track track = CallTrack(row.group);
      const ProfiledTask& task = *row.task;
      const json none = "N/A";
      EmitSpan(track, row.name, row.span->begin_ns, row.duration_ns(),
               {{"rank_size", rows_.group(row).group.world_ranks.size()},
                {"connection_id", Arrive(*row.span, track)},
                {"model id", row.model.value_or(kNoNumber)},
                {"data_type", task.data_type.empty() ? none : json(task.data_type)},
                {"alg_type", task.algorithm.empty() ? none : json(task.algorithm)},
                {"count", task.count},
                {"relay", "no"},
                {"retry", "no"}});
      AddPlane(row);
    }
  }

  // Waiting for the others, then moving data.
  void AddPlane(const CallRow& row) {
    const int64_t begin_ns = row.span->begin_ns;
    const CallTimes& times = row.times;
    const Track track = PlaneTrack(row.group);
    if (times.waiting_ns > 0) {
      EmitSpan(track, "Notify_Wait", begin_ns, times.waiting_ns,
               PlaneArgs(row, "Notify_Wait", times.waiting_ns, 0));
    }
    if (times.moving_ns > 0) {
      EmitSpan(track, "Memcpy", begin_ns + times.waiting_ns, times.moving_ns,
               PlaneArgs(row, "Memcpy", times.moving_ns, row.span->bytes));
    }
  }

  json PlaneArgs(const CallRow& row, const char* type, int64_t duration_ns, uint64_t bytes) const {
    const GroupRow& group = rows_.group(row);
    const bool near =
        std::all_of(group.same_node.begin(), group.same_node.end(), [](bool same) { return same; });
    const json peer = row.peer < 0 ? json(kNoNumber) : json(row.peer);
    const bool receives = row.kind == "receive";
    return {{"notify_id", "N/A"},
            {"duration estimated(us)", Microseconds(duration_ns)},
            {"stream id", row.span->lane},
            {"task id", row.span->number},
            {"context id", "N/A"},
            {"task type", type},
            {"src rank", receives ? peer : json(group.own)},
            {"dst rank", receives ? json(group.own) : peer},
            {"transport type", near ? "SDMA" : "RDMA"},
            {"size(Byte)", bytes},
            {"data type", row.task->data_type.empty() ? "N/A" : row.task->data_type},
            {"link type", near ? "HCCS" : "RoCE"},
            {"bandwidth(GB/s)", Bandwidth(bytes, duration_ns)},
            {"model id", row.model.value_or(kNoNumber)}};
  }

  void AddOverlap() {
    const BusyTimes& busy = rows_.times.busy;
    AddPart(0, busy.computing);
    AddPart(1, busy.communication);
    AddPart(2, busy.not_overlapped);
    AddPart(3, busy.free);
  }

  // The number of a part is that of its thread.
  void AddPart(size_t part, const Intervals& set) {
    for (const Interval& each : set) {
      EmitSpan({Pid(kOverlapLayer), part}, kOverlapParts[part], each.begin_ns, each.length(),
               json());
    }
  }

  const VendorRows& rows_;
  ReportFile file_;
  bool first_ = true;
  uint64_t connections_ = 0;
  std::unordered_map<const Span*, uint64_t> connection_of_;
  std::vector<std::vector<uint64_t>> connections_of_host_;  // by index in VendorRows::host
  std::unordered_set<uint64_t> flows_;
};

}  // namespace

Status WriteTimeline(const VendorRows& rows, const std::string& path, FileSystem& fs) {
  return Timeline(rows, path, fs).Write();
}

}  // namespace npumesh
