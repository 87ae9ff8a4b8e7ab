#include "launch/record/foreign/torch_record.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "launch/record/foreign/foreign_call.h"
#include "launch/record/foreign/lines.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

using flight::Stage;
using nlohmann::json;

constexpr int64_t kLatestNs = int64_t{1} << 61;
constexpr size_t kMostNameBytes = 200;

// How an operation of torch counts its elements.
enum class Counted : uint8_t { kSent, kReceived, kListed, kNothing };

struct Operation {
  std::string_view name;  // in small letters, without underscores
  CollectiveKind kind;
  Counted counted;
  std::string_view called = {};  // where our kinds have no such name
};

// Every name that torch/distributed/flight_recorder knows, and those of the recorders that hook
// into process groups.
constexpr std::array<Operation, 34> kOperations = {{
    {"allreduce", CollectiveKind::kAllReduce, Counted::kSent},
    {"allreducecoalesced", CollectiveKind::kAllReduce, Counted::kSent},
    {"allreducebarrier", CollectiveKind::kBarrier, Counted::kNothing},
    {"barrier", CollectiveKind::kBarrier, Counted::kNothing},
    {"broadcast", CollectiveKind::kBroadcast, Counted::kSent},
    {"broadcastoop", CollectiveKind::kBroadcast, Counted::kSent},
    {"reduce", CollectiveKind::kReduce, Counted::kSent},
    {"reduceoop", CollectiveKind::kReduce, Counted::kSent},
    {"allgather", CollectiveKind::kAllGather, Counted::kSent},
    {"allgatherbase", CollectiveKind::kAllGather, Counted::kSent},
    {"allgathersingle", CollectiveKind::kAllGather, Counted::kSent},
    {"allgatherintotensorcoalesced", CollectiveKind::kAllGather, Counted::kSent},
    {"allgathercoalesced", CollectiveKind::kAllGather, Counted::kSent},
    {"allgatherv", CollectiveKind::kAllGatherV, Counted::kNothing},
    {"reducescatter", CollectiveKind::kReduceScatter, Counted::kReceived},
    {"reducescatterbase", CollectiveKind::kReduceScatter, Counted::kReceived},
    {"reducescattersingle", CollectiveKind::kReduceScatter, Counted::kReceived},
    {"reducescattertensorcoalesced", CollectiveKind::kReduceScatter, Counted::kReceived},
    {"reducescattercoalesced", CollectiveKind::kReduceScatter, Counted::kReceived},
    {"reducescatterv", CollectiveKind::kReduceScatterV, Counted::kNothing},
    {"alltoall", CollectiveKind::kAllToAllV, Counted::kListed},
    {"alltoallbase", CollectiveKind::kAllToAllV, Counted::kListed},
    {"alltoallsingle", CollectiveKind::kAllToAllV, Counted::kListed},
    {"alltoallvsingle", CollectiveKind::kAllToAllV, Counted::kListed},
    {"scatter", CollectiveKind::kScatter, Counted::kReceived},
    {"gather", CollectiveKind::kAllGatherV, Counted::kNothing, "gather"},
    {"gathersingle", CollectiveKind::kAllGatherV, Counted::kNothing, "gather"},
    {"split", CollectiveKind::kBarrier, Counted::kNothing, "split"},
    {"newwindow", CollectiveKind::kBarrier, Counted::kNothing, "new_window"},
    {"send", CollectiveKind::kSendRecv, Counted::kSent},
    {"recv", CollectiveKind::kSendRecv, Counted::kReceived},
    {"coalesced", CollectiveKind::kSendRecv, Counted::kNothing},
    {"alltoallv", CollectiveKind::kAllToAllV, Counted::kListed},
    {"monitoredbarrier", CollectiveKind::kBarrier, Counted::kNothing, "monitored_barrier"},
}};

std::string WordsOf(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return "";
  return Printable(it->get_ref<const std::string&>().substr(0, kMostNameBytes));
}

// An integer of a key, in [least, most]. JSON writes 0 where a pickle has None.
std::optional<int64_t> CountOf(const json& object, const char* key, int64_t least,
                               int64_t most = kLatestNs) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_integer()) return std::nullopt;
  if (it->is_number_unsigned() && it->get<uint64_t>() > static_cast<uint64_t>(most)) {
    return std::nullopt;
  }
  const auto number = it->get<int64_t>();
  if (number < least || number > most) return std::nullopt;
  return number;
}

int64_t TimeOf(const json& entry, const char* key) {
  return CountOf(entry, key, 0).value_or(0);
}

// Elements of all tensors of a key; nullopt: that is no list of shapes.
std::optional<uint64_t> ElementsOf(const json& entry, const char* key) {
  const auto it = entry.find(key);
  if (it == entry.end() || !it->is_array()) return std::nullopt;
  uint64_t sum = 0;
  for (const json& shape : *it) {
    if (!shape.is_array()) return std::nullopt;
    uint64_t elements = 1;
    for (const json& extent : shape) {
      if (!extent.is_number_integer() || extent.get<int64_t>() < 0) return std::nullopt;
      if (__builtin_mul_overflow(elements, extent.get<uint64_t>(), &elements)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, elements, &sum)) return std::nullopt;
  }
  return sum;
}

DataType TypeOf(const json& entry) {
  for (const char* const key : {"input_dtypes", "output_dtypes"}) {
    const auto it = entry.find(key);
    if (it == entry.end() || !it->is_array() || it->empty() || !it->front().is_string()) continue;
    return TypeOfTorch(it->front().get_ref<const std::string&>());
  }
  return DataType::kUndefined;
}

// "[0, 1, 2]", as the recorder writes the ranks of a group; empty when it is no such list.
std::vector<int> RanksOf(const std::string& text) {
  std::vector<int> ranks;
  const json list = json::parse(text, nullptr, false);
  if (!list.is_array()) return ranks;
  for (const json& rank : list) {
    if (!rank.is_number_integer() || rank < 0 || rank >= kMostForeignRanks) return {};
    ranks.push_back(rank.get<int>());
  }
  return ranks;
}

// "_All_Gather_base" -> "allgatherbase".
std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != '_') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return plain;
}

// The frame of the user: the innermost one outside of what libraries bring along.
std::string PlaceOf(const json& entry) {
  const auto frames = entry.find("frames");
  if (frames == entry.end() || !frames->is_array()) return "";
  constexpr std::array<std::string_view, 6> kForeign = {
      "site-packages/", "dist-packages/", "/torch/", "lib/python", "<frozen", "<string>"};
  for (const json& frame : *frames) {
    if (!frame.is_object()) continue;
    const std::string file = WordsOf(frame, "filename");
    if (file.empty() || file == "??") continue;
    const bool foreign = std::any_of(kForeign.begin(), kForeign.end(), [&](std::string_view part) {
      return file.find(part) != file.npos;
    });
    if (foreign) continue;
    const size_t slash = file.rfind('/');
    const std::string name = WordsOf(frame, "name");
    return fmt::format("{}:{}{}", slash == file.npos ? file : file.substr(slash + 1),
                       CountOf(frame, "line", 0).value_or(0),
                       name.empty() ? "" : fmt::format(" ({})", name));
  }
  return "";
}

struct Group {
  uint64_t id = 0;
  std::string name;
  std::vector<int> members;  // world ranks in the group's order; empty: not known
};

// An entry as it is read, before what others say about it.
struct Entry {
  const json* source = nullptr;
  const Operation* operation = nullptr;
  std::string unknown_name;  // of an operation that is not in the table
  Group* group = nullptr;
  int peer = -1;  // of a message: the other end's rank in the group
  bool is_message = false;
  uint64_t sequence = 0;  // of the group
  bool started = false;
  bool completed = false;
};

// Reads one record; short-lived.
class TorchReader {
 public:
  TorchReader(const json& dump, int rank, const std::string& path) : dump_(dump) {
    record_.path = path;
    record_.rank = rank;
    record_.world_size = rank + 1;
    record_.foreign = true;
  }

  Result<RankRecord> Run() {
    const std::string version = WordsOf(dump_, "version");
    if (!version.starts_with("2.")) {
      return Error(Code::kCorrupt,
                   "{} is a flight record of torch of version \"{}\"; this npumesh reads 2.0 and "
                   "later ones of 2",
                   record_.path, version);
    }
    ReadGroups();
    ReadEntries();
    if (IsOfTorchComms()) CountCallsOfGroups();
    TakeStatesOfCoalesced();
    for (const Entry& entry : entries_) AddCall(entry);
    MarkQueued();
    Finish();
    return std::move(record_);
  }

 private:
  void ReadGroups() {
    const auto config = dump_.find("pg_config");
    if (config == dump_.end() || !config->is_object()) return;
    for (const auto& [name, facts] : config->items()) {
      if (!facts.is_object()) continue;
      const std::string shown = Printable(name.substr(0, kMostNameBytes));
      GroupOf(shown, WordsOf(facts, "desc"), RanksOf(TextOfWhole(facts, "ranks")));
    }
  }

  static std::string TextOfWhole(const json& object, const char* key) {
    const auto it = object.find(key);
    return it != object.end() && it->is_string() ? it->get<std::string>() : "";
  }

  // The row of a process group, made when it is new.
  Group& GroupOf(const std::string& name, const std::string& described,
                 const std::vector<int>& members = {}) {
    const auto known = groups_.find(name);
    if (known != groups_.end()) return known->second;
    Group& group = groups_[name];
    group.members = members;
    std::vector<int> ascending = members;
    std::sort(ascending.begin(), ascending.end());
    const std::string ranks = RangeText(ascending);
    // Groups that were split off one may have its name.
    group.id = IdOfName(name + " " + ranks);
    const bool is_described = !described.empty() && described != "undefined";
    group.name = is_described ? fmt::format("{} ({})", described, name) : name;
    record_.groups.push_back(
        {group.id, static_cast<uint32_t>(members.size()), 0, group.name, ranks});
    if (!ascending.empty()) record_.world_size = std::max(record_.world_size, ascending.back() + 1);
    return group;
  }

  void ReadEntries() {
    const auto entries = dump_.find("entries");
    if (entries == dump_.end() || !entries->is_array()) return;
    for (const json& source : *entries) {
      const std::optional<Entry> entry = source.is_object() ? ReadEntry(source) : std::nullopt;
      if (entry) {
        entries_.push_back(*entry);
      } else {
        ++record_.damaged;
      }
    }
    if (!entries_.empty()) {
      record_.forgotten =
          static_cast<uint64_t>(CountOf(*entries_.front().source, "record_id", 0).value_or(0));
    }
  }

  std::optional<Entry> ReadEntry(const json& source) {
    Entry entry;
    entry.source = &source;
    const auto names = source.find("process_group");
    const bool named = names != source.end() && names->is_array() && names->size() == 2 &&
                       (*names)[0].is_string() && (*names)[1].is_string();
    const std::optional<int64_t> collective = CountOf(source, "collective_seq_id", 0);
    const std::string title = WordsOf(source, "profiling_name");
    if (!named || !collective || title.empty()) return std::nullopt;
    entry.group =
        &GroupOf(Printable((*names)[0].get_ref<const std::string&>().substr(0, kMostNameBytes)),
                 Printable((*names)[1].get_ref<const std::string&>().substr(0, kMostNameBytes)));
    entry.sequence = static_cast<uint64_t>(*collective);
    if (!ReadTitle(title, entry)) return std::nullopt;
    const std::string state = WordsOf(source, "state");
    entry.completed = state == "completed";
    entry.started = entry.completed || state == "started";
    if (state != "completed" && state != "started" && state != "scheduled") return std::nullopt;
    if (TimeOf(source, "time_discovered_started_ns") != 0) knows_starts_ = true;
    return entry;
  }

  // "nccl:all_reduce", "nccl:send 0->1", "nccl:recv 0<-1".
  static bool ReadTitle(std::string_view title, Entry& entry) {
    const size_t colon = title.find(':');
    const std::string_view words = colon == title.npos ? title : title.substr(colon + 1);
    const std::string_view name = words.substr(0, words.find(' '));
    const std::string plain = Plain(name);
    const auto it = std::find_if(kOperations.begin(), kOperations.end(),
                                 [&](const Operation& known) { return known.name == plain; });
    if (it == kOperations.end()) {
      entry.unknown_name = name;
      return !name.empty();
    }
    entry.operation = &*it;
    if (it->kind != CollectiveKind::kSendRecv || it->name == "coalesced") return true;
    entry.is_message = true;
    const size_t arrow = std::min(words.find("->"), words.find("<-"));
    if (arrow == words.npos) return false;  // TorchComms does not tell the other end
    const Result<int64_t> peer =
        ParseInt(words.substr(arrow + 2), 0, kMostForeignRanks - 1, "rank");
    if (!peer.ok()) return false;
    entry.peer = static_cast<int>(*peer);
    return true;
  }

  // Its recorder has one row of numbers for all groups, the same as record_id.
  bool IsOfTorchComms() const {
    return !entries_.empty() && record_.forgotten == 0 &&
           std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
             return CountOf(*entry.source, "record_id", 0) == static_cast<int64_t>(entry.sequence);
           });
  }

  // Its calls on processors without events stay "scheduled" and are "retired" when they are done.
  void CountCallsOfGroups() {
    std::map<uint64_t, uint64_t> calls;
    for (Entry& entry : entries_) {
      entry.sequence = ++calls[entry.group->id];
      const auto retired = entry.source->find("retired");
      if (retired == entry.source->end() || *retired != true) continue;
      if (entry.source->contains("duration_ms")) entry.started = entry.completed = true;
    }
  }

  static bool EndsCoalesced(const Entry& entry) {
    return entry.operation != nullptr && entry.operation->name.ends_with("coalesced");
  }

  static std::tuple<uint64_t, bool, int64_t> CoalescedKey(const Entry& entry) {
    const bool message = entry.source->value("is_p2p", json()) == true;
    const char* const key = message ? "p2p_seq_id" : "collective_seq_id";
    return {entry.group->id, message, CountOf(*entry.source, key, 0).value_or(-1)};
  }

  // The parts of a coalesced call have no state of their own: the entry that ends them has it. Of
  // messages the parts are the calls, of collectives the end.
  void TakeStatesOfCoalesced() {
    std::map<std::tuple<uint64_t, bool, int64_t>, const Entry*> ends;
    for (const Entry& entry : entries_) {
      if (EndsCoalesced(entry)) ends[CoalescedKey(entry)] = &entry;
    }
    if (ends.empty()) return;
    std::vector<Entry> kept;
    for (Entry& entry : entries_) {
      const auto end = ends.find(CoalescedKey(entry));
      const bool is_part = end != ends.end() && end->second != &entry;
      if (is_part && entry.is_message) {
        entry.started = end->second->started;
        entry.completed = end->second->completed;
      }
      const bool stays = entry.operation == nullptr || entry.operation->name != "coalesced";
      if (stays && (!is_part || entry.is_message)) kept.push_back(entry);
    }
    entries_ = std::move(kept);
  }

  void AddCall(const Entry& entry) {
    const json& source = *entry.source;
    RecordedCall call = UntypedCall();
    call.sequence = record_.calls.size() + 1;
    call.group = entry.group->id;
    call.call = entry.sequence;
    call.kind = entry.operation ? entry.operation->kind : CollectiveKind::kBarrier;
    call.node = entry.operation ? std::string(entry.operation->called) : entry.unknown_name;
    call.dtype = static_cast<int32_t>(TypeOf(source));
    call.place = PlaceOf(source);
    CountElements(entry, call);
    call.entered_ns = TimeOf(source, "time_created_ns");
    call.stage = entry.completed ? Stage::kDone : Stage::kEntered;
    // Queued until MarkQueued knows more.
    call.queued = !entry.completed && !(entry.started && knows_starts_);
    if (entry.completed) {
      const int64_t started = TimeOf(source, "time_discovered_started_ns");
      const int64_t completed = TimeOf(source, "time_discovered_completed_ns");
      call.arrived_ns = std::max(started, call.entered_ns);
      call.done_ns = std::max({completed, call.arrived_ns, int64_t{1}});
    }
    if (entry.is_message && !TakeMessage(entry, call)) {
      ++record_.damaged;
      return;
    }
    record_.calls.push_back(std::move(call));
  }

  void CountElements(const Entry& entry, RecordedCall& call) const {
    const std::optional<uint64_t> sent = ElementsOf(*entry.source, "input_sizes");
    const std::optional<uint64_t> received = ElementsOf(*entry.source, "output_sizes");
    if (entry.operation == nullptr || !sent || !received) return;
    switch (entry.operation->counted) {
      case Counted::kSent:
        call.count = *sent;
        break;
      case Counted::kReceived:
        call.count = *received;
        break;
      case Counted::kListed:
      case Counted::kNothing:
        break;
    }
    if (entry.operation->counted == Counted::kNothing || entry.is_message) return;
    if (entry.operation->kind == CollectiveKind::kScatter) return;  // only the root hands in
    call.sent = *sent;
    call.received = *received;
  }

  // Moves a message into the group of its two ends. False: they are not known.
  bool TakeMessage(const Entry& entry, RecordedCall& call) {
    const std::vector<int>& members = entry.group->members;
    if (entry.peer < 0) return false;
    int peer = entry.peer;
    if (!members.empty()) {
      if (static_cast<size_t>(peer) >= members.size()) return false;
      peer = members[static_cast<size_t>(peer)];
    }
    if (peer == record_.rank) return false;
    const bool sends = entry.operation->name == "send";
    const int from = sends ? record_.rank : peer;
    const int to = sends ? peer : record_.rank;
    const std::string name = fmt::format("{} -> {} of {}", from, to, entry.group->name);
    call.group = IdOfName(name);
    call.call = ++messages_[call.group];
    record_.world_size = std::max(record_.world_size, peer + 1);
    if (!record_.HasGroup(call.group)) {
      std::vector<int> ends = {std::min(from, to), std::max(from, to)};
      record_.groups.push_back(
          {call.group, 2, from == record_.rank ? 0 : 1, name, RangeText(ends)});
    }
    return true;
  }

  // A recorder without timing does not say what has started: then it is the first call of each
  // group that is not completed.
  void MarkQueued() {
    if (knows_starts_) return;
    std::set<uint64_t> in_call;
    for (RecordedCall& call : record_.calls) {
      if (call.queued && in_call.insert(call.group).second) call.queued = false;
    }
  }

  void Finish() {
    int64_t first = 0;
    for (const RecordedCall& call : record_.calls) {
      if (call.entered_ns > 0 && (first == 0 || call.entered_ns < first)) first = call.entered_ns;
    }
    record_.start_realtime_ns = record_.start_monotonic_ns = first;
  }

  const json& dump_;
  RankRecord record_;
  std::map<std::string, Group> groups_;
  std::vector<Entry> entries_;
  std::map<uint64_t, uint64_t> messages_;  // by group of two: how many
  bool knows_starts_ = false;
};

// Of both ends of a pair: the last message that is done has the same number.
void AlignMessages(std::vector<RankRecord>& records) {
  std::map<uint64_t, uint64_t> most_done;  // by group of two
  std::set<uint64_t> forgotten;
  const auto last_done = [](const RankRecord& record, uint64_t group) {
    uint64_t done = 0;
    for (const RecordedCall& call : record.calls) {
      if (call.group == group && call.done()) done = std::max(done, call.call);
    }
    return done;
  };
  for (const RankRecord& record : records) {
    for (const RecordedCall& call : record.calls) {
      if (call.kind != CollectiveKind::kSendRecv) continue;
      if (record.forgotten != 0) forgotten.insert(call.group);
      if (call.done()) most_done[call.group] = std::max(most_done[call.group], call.call);
    }
  }
  for (RankRecord& record : records) {
    for (const uint64_t group : forgotten) {
      const uint64_t done = last_done(record, group);
      if (done == 0) continue;
      const uint64_t shift = most_done[group] - done;
      for (RecordedCall& call : record.calls) {
        if (call.group == group) call.call += shift;
      }
    }
  }
}

}  // namespace

bool LooksLikeTorchRecord(const json& dump) {
  return dump.is_object() && dump.contains("version") &&
         (dump.contains("pg_config") || dump.contains("entries"));
}

Result<RankRecord> TorchRecord(const json& dump, int rank, const std::string& path) {
  if (!LooksLikeTorchRecord(dump)) {
    return Error(
        Code::kCorrupt,
        "{} is no flight record of torch: expected the keys version, pg_config and entries", path);
  }
  return TorchReader(dump, rank, path).Run();
}

void AlignTorchRecords(std::vector<RankRecord>& records) {
  int size = 1;
  for (const RankRecord& record : records) size = std::max(size, record.world_size);
  for (RankRecord& record : records) record.world_size = size;
  AlignMessages(records);
}

}  // namespace npumesh
