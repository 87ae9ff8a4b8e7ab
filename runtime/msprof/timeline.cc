#include "runtime/msprof/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/msprof/profile_text.h"
#include "runtime/msprof/report_file.h"
#include "runtime/msprof/vendor_names.h"

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
  Timeline(const VendorRows& rows, const std::vector<std::string>& paths, FileSystem& fs)
      : rows_(rows) {
    for (const std::string& path : paths) files_.push_back(ReportFile(path, fs));
  }

  Status Write() {
    NameLayers();
    const bool tasks = rows_.owner().task_trace;
    ConnectWork(tasks);
    AddHost();
    if (tasks) AddTasks();
    AddCalls();
    AddOverlap();
    for (ReportFile& file : files_) {
      file.Append("\n]\n");
      NPUMESH_RETURN_IF_ERROR(file.Commit());
    }
    return Status();
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

  // Events. There may be millions, so they are put together as text.

  static std::string TextOf(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  void Emit(std::string_view event) {
    for (ReportFile& file : files_) {
      file.Append(first_ ? "[\n" : ",\n");
      file.Append(event);
    }
    first_ = false;
  }

  void EmitName(const Track& track, std::string_view what, json args) {
    Emit(TextOf({{"ph", "M"},
                 {"name", what},
                 {"pid", track.pid},
                 {"tid", track.tid},
                 {"args", std::move(args)}}));
  }

  // The vendor's time stamps are texts, because a double has no room for their nanoseconds.
  std::string Moment(int64_t ns) const { return MicrosecondText(WallClock(rows_.owner(), ns)); }

  // `args`: the text of an object.
  void EmitSpan(const Track& track, std::string_view name, int64_t begin_ns, int64_t duration_ns,
                std::string_view args) {
    Emit(fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":"{}","dur":{},"args":{}}})",
                     TextOf(name), track.pid, track.tid, Moment(begin_ns),
                     MicrosecondText(duration_ns), args));
  }

  void EmitFlowEnd(char end, const Track& track, uint64_t connection, int64_t ns) {
    Emit(fmt::format(R"({{"ph":"{}","cat":"HostToDevice","name":"HostToDevice{}","id":"{}",)"
                     R"("pid":{},"tid":{},"ts":"{}"{}}})",
                     end, connection, connection, track.pid, track.tid, Moment(ns),
                     end == 'f' ? R"(,"bp":"e")" : ""));
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
  // and the host row that had begun last and not ended when a stream took the work, or, where that
  // is not known, when it began.

  void ConnectWork(bool tasks) {
    struct Work {
      int64_t asked_ns;
      const Span* span;
    };
    std::vector<Work> work;
    if (tasks) {
      for (const TaskRow& row : rows_.tasks) {
        const int64_t taken_ns = row.span->arrived_ns;
        work.push_back({taken_ns == 0 ? row.span->begin_ns : taken_ns, row.span});
      }
    }
    for (const CallRow& row : rows_.calls) work.push_back({row.span->begin_ns, row.span});
    std::stable_sort(work.begin(), work.end(),
                     [](const Work& a, const Work& b) { return a.asked_ns < b.asked_ns; });
    connections_of_host_.resize(rows_.host.size());
    std::vector<size_t> open;
    size_t next = 0;
    for (const auto& [asked_ns, span] : work) {
      while (next < rows_.host.size() && rows_.host[next].span->begin_ns <= asked_ns) {
        open.push_back(next++);
      }
      while (!open.empty() && rows_.host[open.back()].span->end_ns <= asked_ns) {
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
      const bool iteration = row.span->kind == SpanKind::kIteration;
      const json args = {{"Thread Id", track.tid},
                         {"Mode", iteration ? "iteration" : "api"},
                         {"level", row.level},
                         {"id", row.name},
                         {"item_id", fmt::format("{}", iteration ? row.span->number : 0)},
                         {"connection_id", started.empty() ? 0 : started.front()}};
      EmitSpan(track, row.name, row.span->begin_ns, row.duration_ns(), TextOf(args));
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
      const std::string args = fmt::format(
          R"({{"Model Id":{},"Task Type":"{}","Physic Stream Id":{},"Task Id":{},"Batch Id":0,)"
          R"("Subtask Id":{},"connection_id":{}{}}})",
          row.model.value_or(kNoNumber), row.copy ? "MEMCPY_ASYNC" : CoreOf(row.task->type),
          row.span->lane, row.task_id, kNoNumber, Arrive(*row.span, track),
          row.copy ? CopyArgs(row) : "");
      const std::string& name = row.task->name;
      EmitSpan(track, !name.empty() ? name : (row.copy ? "MEMCPY_ASYNC" : "N/A"),
               row.span->begin_ns, row.duration_ns(), args);
    }
  }

  static std::string CopyArgs(const TaskRow& row) {
    const uint64_t bytes = row.span->bytes;
    return fmt::format(R"~(,"size(B)":{},"bandwidth(GB/s)":{},"operation":{})~", bytes,
                       Bandwidth(bytes, row.duration_ns()), TextOf(row.task->name));
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
      const json args = {{"rank_size", rows_.group(row).group.world_ranks.size()},
                         {"connection_id", Arrive(*row.span, track)},
                         {"model id", row.model.value_or(kNoNumber)},
                         {"data_type", task.data_type.empty() ? none : json(task.data_type)},
                         {"alg_type", task.algorithm.empty() ? none : json(task.algorithm)},
                         {"count", task.count},
                         {"relay", "no"},
                         {"retry", "no"}};
      EmitSpan(track, row.name, row.span->begin_ns, row.duration_ns(), TextOf(args));
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
               TextOf(PlaneArgs(row, "Notify_Wait", times.waiting_ns, 0)));
    }
    if (times.moving_ns > 0) {
      EmitSpan(track, "Memcpy", begin_ns + times.waiting_ns, times.moving_ns,
               TextOf(PlaneArgs(row, "Memcpy", times.moving_ns, row.span->bytes)));
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
      EmitSpan({Pid(kOverlapLayer), part}, kOverlapParts[part], each.begin_ns, each.length(), "{}");
    }
  }

  const VendorRows& rows_;
  std::vector<ReportFile> files_;
  bool first_ = true;
  uint64_t connections_ = 0;
  std::unordered_map<const Span*, uint64_t> connection_of_;
  std::vector<std::vector<uint64_t>> connections_of_host_;  // by index in VendorRows::host
  std::unordered_set<uint64_t> flows_;
};

}  // namespace

Status WriteTimeline(const VendorRows& rows, const std::vector<std::string>& paths,
                     FileSystem& fs) {
  return Timeline(rows, paths, fs).Write();
}

}  // namespace npumesh
