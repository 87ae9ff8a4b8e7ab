#include "runtime/profile/profile_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>
#include <system_error>
#include <type_traits>

#include "runtime/base/files/folder_reader.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/json_text.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "npumesh profile";
constexpr std::string_view kEnding = ".npprof";
constexpr std::string_view kBeginning = "rank_";
constexpr size_t kHeadBytes = 8;  // of a block: its type and the length of its payload
constexpr int kMostRanks = 1 << 20;
constexpr int64_t kLatestNs = int64_t{1} << 61;  // sums of two times stay in range

enum class BlockType : uint32_t { kTask = 1, kGroup = 2, kClock = 3, kSpans = 4, kEnd = 5 };

std::string BytesBlock(BlockType type, std::string_view payload) {
  const uint32_t head[2] = {static_cast<uint32_t>(type), static_cast<uint32_t>(payload.size())};
  std::string block(kHeadBytes, '\0');
  std::memcpy(block.data(), head, sizeof(head));
  return block.append(payload);
}

std::string Line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);  // names may be no UTF-8
}

std::string JsonBlock(BlockType type, const json& value) {
  return BytesBlock(type, Line(value));
}

template <typename T>
void Take(const json& object, const char* name, T& value) {
  const auto found = object.find(name);
  if (found != object.end()) found->get_to(value);
}

// The fields of a record by their names in the file: one list to write and to read.
template <typename Record, typename Each>
requires std::same_as<std::remove_const_t<Record>, ProfileOwner>
void EachField(Record& owner, const Each& each) {
  each("rank", owner.rank);
  each("world_size", owner.world_size);
  each("node", owner.node);
  each("local_rank", owner.local_rank);
  each("process", owner.process);
  each("host", owner.host);
  each("boot_id", owner.boot_id);
  each("start_monotonic_ns", owner.start_monotonic_ns);
  each("start_realtime_ns", owner.start_realtime_ns);
  each("command", owner.command);
  each("npumesh", owner.version);
  each("training_trace", owner.training_trace);
  each("task_trace", owner.task_trace);
  each("fp_point", owner.fp_point);
  each("bp_point", owner.bp_point);
}

template <typename Record, typename Each>
requires std::same_as<std::remove_const_t<Record>, ProfiledTask>
void EachField(Record& task, const Each& each) {
  each("id", task.id);
  each("name", task.name);
  each("type", task.type);
  each("state", task.state);
  each("graph", task.graph);
  each("input_shapes", task.input_shapes);
  each("input_types", task.input_types);
  each("input_formats", task.input_formats);
  each("output_shapes", task.output_shapes);
  each("output_types", task.output_types);
  each("output_formats", task.output_formats);
  each("flops", task.flops);
  each("bytes", task.bytes);
  each("kernel", task.kernel);
  each("data_type", task.data_type);
  each("count", task.count);
  each("algorithm", task.algorithm);
  each("peer", task.peer);
}

template <typename Record, typename Each>
requires std::same_as<std::remove_const_t<Record>, ProfiledGroup>
void EachField(Record& group, const Each& each) {
  each("id", group.id);
  each("number", group.number);
  each("name", group.name);
  each("world_ranks", group.world_ranks);
}

template <typename Record, typename Each>
requires std::same_as<std::remove_const_t<Record>, ClockSample>
void EachField(Record& sample, const Each& each) {
  each("local_ns", sample.local_ns);
  each("offset_ns", sample.offset_ns);
  each("bound_ns", sample.bound_ns);
}

template <typename Record>
json ToJson(const Record& record) {
  json object = json::object();
  EachField(record, [&](const char* name, const auto& value) { object[name] = value; });
  return object;
}

// Members that are not there keep what they have: a later version may add some.
template <typename Record>
Record RecordFrom(const json& object) {
  Record record;
  EachField(record, [&](const char* name, auto& value) { Take(object, name, value); });
  return record;
}

// Reads one file from its first byte to the last whole block.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  Result<RankProfile> Read() {
    NPUMESH_RETURN_IF_ERROR(ReadHeader());
    while (bytes_.size() - at_ >= kHeadBytes) {
      uint32_t head[2];
      std::memcpy(head, bytes_.data() + at_, sizeof(head));
      if (bytes_.size() - at_ - kHeadBytes < head[1]) break;
      const Status status = ReadBlock(head[0], bytes_.substr(at_ + kHeadBytes, head[1]));
      if (!status.ok()) return status.WithContext(fmt::format("byte {}", at_));
      at_ += kHeadBytes + head[1];
    }
    NPUMESH_RETURN_IF_ERROR(CheckIds());
    TakeBytes();
    return std::move(profile_);
  }

 private:
  Status ReadHeader() {
    const size_t end = bytes_.substr(0, 1 << 16).find('\n');
    const json header = json::parse(bytes_.substr(0, end == bytes_.npos ? 0 : end), nullptr, false);
    if (!header.is_object() || TextMember(header, "format") != kFormat) {
      return Error(Code::kCorrupt, "it does not begin as a profile of npumesh does");
    }
    int version = 0;
    uint64_t span_bytes = 0;
    try {
      Take(header, "version", version);
      Take(header, "span_bytes", span_bytes);
      profile_.owner = RecordFrom<ProfileOwner>(header);
    } catch (const json::exception& error) {
      return Error(Code::kCorrupt, "its header: {}", error.what());
    }
    if (version != kProfileVersion || span_bytes != sizeof(Span)) {
      return Error(Code::kCorrupt, "it has version {} with spans of {} bytes; expected {} with {}",
                   version, span_bytes, kProfileVersion, sizeof(Span));
    }
    const ProfileOwner& owner = profile_.owner;
    if (owner.rank < 0 || owner.rank >= owner.world_size || owner.world_size > kMostRanks) {
      return Error(Code::kCorrupt, "its header says rank {} of {}", owner.rank, owner.world_size);
    }
    at_ = end + 1;
    return Status();
  }

  // A block of a type that this version does not know is passed over.
  Status ReadBlock(uint32_t type, std::string_view payload) {
    if (type == static_cast<uint32_t>(BlockType::kSpans)) return ReadSpans(payload);
    const json block = json::parse(payload, nullptr, false);
    if (!block.is_object()) return Error(Code::kCorrupt, "block of type {} is no JSON", type);
    try {
      return TakeBlock(static_cast<BlockType>(type), block);
    } catch (const json::exception& error) {
      return Error(Code::kCorrupt, "block of type {}: {}", type, error.what());
    }
  }

  Status TakeBlock(BlockType type, const json& block) {
    switch (type) {
      case BlockType::kTask:
        profile_.tasks.push_back(RecordFrom<ProfiledTask>(block));
        return CheckId("task", profile_.tasks.back().id, profile_.tasks.size());
      case BlockType::kGroup:
        profile_.groups.push_back(RecordFrom<ProfiledGroup>(block));
        return CheckId("group", profile_.groups.back().id, profile_.groups.size());
      case BlockType::kClock:
        profile_.clocks.push_back(RecordFrom<ClockSample>(block));
        return Status();
      case BlockType::kEnd:
        Take(block, "lost_full", profile_.lost_full);
        Take(block, "lost_limit", profile_.lost_limit);
        profile_.ended = true;
        return Status();
      case BlockType::kSpans:
        break;
    }
    return Status();
  }

  static Status CheckId(std::string_view what, uint32_t id, size_t expected) {
    if (id == expected) return Status();
    return Error(Code::kCorrupt, "{} {} stands where {} is expected", what, id, expected);
  }

  Status ReadSpans(std::string_view payload) {
    if (payload.size() % sizeof(Span) != 0) {
      return Error(Code::kCorrupt, "{} bytes of spans are no multiple of {}", payload.size(),
                   sizeof(Span));
    }
    for (size_t at = 0; at < payload.size(); at += sizeof(Span)) {
      Span span;
      std::memcpy(&span, payload.data() + at, sizeof(span));
      if (span.kind != SpanKind::kTasks) {
        profile_.spans.push_back(span);
      } else {
        NPUMESH_RETURN_IF_ERROR(Unpack(std::bit_cast<SpanPack>(span)));
      }
    }
    return Status();
  }

  Status Unpack(const SpanPack& pack) {
    if (pack.count > SpanPack::kMost || pack.begin_ns < 0 || pack.begin_ns > kLatestNs) {
      return Error(Code::kCorrupt, "a pack has {} tasks from {} ns", pack.count, pack.begin_ns);
    }
    Span span;
    span.end_ns = pack.begin_ns;
    span.iteration = pack.iteration;
    span.lane = pack.lane;
    for (uint32_t i = 0; i < pack.count; ++i) {
      span.begin_ns = span.end_ns;
      span.end_ns += pack.lasts_ns[i];
      span.subject = pack.subject + i;
      profile_.spans.push_back(span);
    }
    return Status();
  }

  // Packed tasks do not say their bytes.
  void TakeBytes() {
    for (Span& span : profile_.spans) {
      if (span.kind == SpanKind::kTask && span.bytes == 0 && span.subject != 0) {
        span.bytes = profile_.task(span).bytes;
      }
    }
  }

  // After everything is read: the block of a task stands before its spans, but a thread may write
  // that of another one between.
  Status CheckIds() const {
    for (const Span& span : profile_.spans) {
      if (span.subject > profile_.tasks.size() || span.group > profile_.groups.size()) {
        return Error(Code::kCorrupt, "a span names task {} of {} and group {} of {}", span.subject,
                     profile_.tasks.size(), span.group, profile_.groups.size());
      }
      const bool backwards = span.begin_ns < 0 || span.end_ns < span.begin_ns;
      if (backwards || span.end_ns > kLatestNs) {
        return Error(Code::kCorrupt, "a span of \"{}\" lasts from {} to {} ns",
                     span.subject == 0 ? "" : profile_.task(span).name, span.begin_ns, span.end_ns);
      }
    }
    return Status();
  }

  std::string_view bytes_;
  size_t at_ = 0;
  RankProfile profile_;
};

bool IsProfileName(std::string_view name) {
  return name.starts_with(kBeginning) && name.ends_with(kEnding);
}

}  // namespace

std::string ProfileFileName(int rank) {
  return fmt::format("{}{}{}", kBeginning, rank, kEnding);
}

std::string ProfileHeader(const ProfileOwner& owner) {
  json header = ToJson(owner);
  header["format"] = kFormat;
  header["version"] = kProfileVersion;
  header["span_bytes"] = sizeof(Span);
  return Line(header) + "\n";
}

std::string TaskBlock(const ProfiledTask& task) {
  return JsonBlock(BlockType::kTask, ToJson(task));
}

std::string GroupBlock(const ProfiledGroup& group) {
  return JsonBlock(BlockType::kGroup, ToJson(group));
}

std::string ClockBlock(const ClockSample& sample) {
  return JsonBlock(BlockType::kClock, ToJson(sample));
}

std::string SpansBlock(const Span* spans, size_t count) {
  return BytesBlock(BlockType::kSpans,
                    std::string_view(reinterpret_cast<const char*>(spans), count * sizeof(Span)));
}

std::string EndBlock(uint64_t lost_full, uint64_t lost_limit) {
  return JsonBlock(BlockType::kEnd, json{{"lost_full", lost_full}, {"lost_limit", lost_limit}});
}

Result<RankProfile> ReadRankProfile(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  Result<RankProfile> profile = Reader(bytes).Read();
  if (!profile.ok()) return profile.status().WithContext(path);
  return profile;
}

Result<std::vector<RankProfile>> ReadProfiles(const std::string& folder) {
  std::vector<RankProfile> profiles;
  FolderReader files(folder);
  while (const char* const name = files.Next()) {
    if (!IsProfileName(name)) continue;
    NPUMESH_ASSIGN_OR_RETURN(RankProfile profile,
                             ReadRankProfile(fmt::format("{}/{}", folder, name)));
    profiles.push_back(std::move(profile));
  }
  if (files.error() != 0) return SystemError("open", folder, files.error(), Code::kNotFound);
  if (profiles.empty()) {
    return Error(Code::kNotFound, "{} has no profile: expected files {}", folder,
                 ProfileFileName(0));
  }
  std::ranges::sort(profiles, {}, [](const RankProfile& profile) { return profile.owner.rank; });
  for (size_t i = 1; i < profiles.size(); ++i) {
    const ProfileOwner &first = profiles[0].owner, &other = profiles[i].owner;
    if (first.world_size != other.world_size || other.rank == profiles[i - 1].owner.rank) {
      return Error(Code::kCorrupt,
                   "{} has files of different runs: rank {} of {} beside rank {} of {}; remove "
                   "those of the older run",
                   folder, other.rank, other.world_size, profiles[i - 1].owner.rank,
                   profiles[i - 1].owner.world_size);
    }
  }
  return profiles;
}

}  // namespace npumesh
