#include "launch/record/foreign/ras_report.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "launch/record/foreign/foreign_call.h"
#include "launch/record/foreign/lines.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

using flight::Stage;
using nlohmann::json;

constexpr size_t kMostMembers = 1 << 22;  // of all communicators
constexpr std::string_view kWatcher = "NCCL RAS";

// ncclResult_t, as the text report names them.
constexpr std::array<std::string_view, 9> kErrors = {
    "",
    "Unhandled CUDA error",
    "System error",
    "Internal error",
    "Invalid argument",
    "Invalid usage",
    "Remote process error",
    "",  // in progress
    "Timeout",
};
constexpr int kRemoteError = 6;
constexpr int kInProgress = 7;

int IntegerOf(const json& object, const char* key, int fallback) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_integer()) return fallback;
  const auto number = it->get<int64_t>();
  return number >= 0 && number <= kMostForeignRanks * int64_t{64} ? static_cast<int>(number)
                                                                  : fallback;
}

bool FlagOf(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_boolean() && it->get<bool>();
}

std::string TextOf(const json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || !it->is_string() ? ""
                                                : Printable(it->get<std::string>().substr(0, 200));
}

const json& ObjectOf(const json& object, const char* key) {
  static const json* const kEmpty = new json(json::object());
  const auto it = object.find(key);
  return it == object.end() || !it->is_object() ? *kEmpty : *it;
}

int ErrorOf(int code) {
  const bool known = code > 0 && code < static_cast<int>(kErrors.size()) && code != kInProgress;
  return known ? code : 0;
}

std::optional<RasMember> MemberOf(const json& row) {
  if (!row.is_object()) return std::nullopt;
  RasMember member;
  member.rank = IntegerOf(row, "rank", -1);
  if (member.rank < 0 || member.rank >= kMostForeignRanks) return std::nullopt;
  member.host = TextOf(row, "host");
  member.process = IntegerOf(row, "pid", 0);
  const json& status = ObjectOf(row, "status");
  member.error = ErrorOf(IntegerOf(status, "init_state", 0));
  if (member.error == 0) member.error = ErrorOf(IntegerOf(status, "async_error", 0));
  member.aborted = FlagOf(status, "abort_flag");
  for (const auto& [name, count] : ObjectOf(row, "collective_counts").items()) {
    if (count.is_number_unsigned() && count <= uint64_t{1} << 62) {
      member.launched[Printable(name.substr(0, 40))] = count.get<uint64_t>();
    }
  }
  // Documents place these beside the rank, NCCL writes them in its status.
  member.dead = FlagOf(status, "considered_dead") || FlagOf(row, "considered_dead");
  return member;
}

// ---- text ----

// Reads the text report; short-lived. Lists of ranks are printed only where few deviate, so members
// of one unlisted block are those that nothing else names.
class TextReader {
 public:
  Result<RasReport> Run(std::string_view text, const std::string& path) {
    Lines lines(text);
    std::string_view line;
    while (lines.Next(line) && members_ <= kMostMembers) ReadLine(line);
    Close();
    if (!saw_table_ && report_.communicators.empty() && report_.dead.empty()) {
      return Error(Code::kCorrupt,
                   "{} is no whole report of ncclras: expected a table of communicators", path);
    }
    AddHealthy();
    return std::move(report_);
  }

 private:
  // A report without findings names no rank: those of the largest communicator.
  void AddHealthy() {
    if (!report_.communicators.empty() || !report_.dead.empty()) return;
    int size = 0;
    for (const auto& [group, ranks] : sizes_) size = std::max(size, ranks);
    RasCommunicator& communicator = report_.communicators.emplace_back();
    communicator.hash = "of all";
    communicator.size = size;
    for (int rank = 0; rank < size; ++rank) communicator.members.emplace_back().rank = rank;
  }

  using Parts = std::vector<std::string_view>;

  void ReadLine(std::string_view line) {
    struct Form {
      std::string_view pattern;
      void (TextReader::*read)(const Parts&);
    };
    // As NCCL prints them; the first that fits counts.
    static constexpr std::array<Form, 14> kForms = {{
        {"NCCL version {} {}", &TextReader::ReadVersion},
        {"DEAD", &TextReader::BeginDead},
        {"", &TextReader::EndBlock},
        {"#{}-{} ({}) {}", &TextReader::Open},
        {"Process {} on node {} managing GPU{}", &TextReader::ReadProcess},
        {"Communicator ranks have different {} operation counts", &TextReader::BeginKind},
        {"Missing communicator data from {} rank{}", &TextReader::BeginMissing},
        {"{} ranks have launched up to operation {}", &TextReader::BeginCount},
        {"{} ranks have not launched any operations", &TextReader::BeginCount},
        {"{} ranks have status {}", &TextReader::BeginStatus},
        {"{} ranks reported {}", &TextReader::BeginErrors},
        {"Rank {} has {} -- {}", &TextReader::ReadDeviant},
        {"Rank {} reported {} -- {}", &TextReader::ReadFailed},
        {"Rank {} -- {}", &TextReader::ReadListed},
    }};
    for (const Form& form : kForms) {
      if (const auto parts = PartsOf(line, form.pattern)) return (this->*form.read)(*parts);
    }
    ReadRow(line);
  }

  void ReadVersion(const Parts& parts) { report_.version = Printable(parts[0]); }
  void BeginDead(const Parts&) { in_dead_ = true; }
  void EndBlock(const Parts&) {
    in_dead_ = false;
    CloseKind();
  }
  void ReadProcess(const Parts& parts) {
    if (!in_dead_) return;
    report_.dead.push_back(
        fmt::format("process {} on node {}", Printable(parts[0]), Printable(parts[1])));
    dead_.insert({static_cast<int>(CountOf(parts[0], INT32_MAX)), Printable(parts[1])});
  }
  void BeginKind(const Parts& parts) {
    CloseKind();
    kind_ = Printable(parts[0]);
    block_ = Block::kCounts;
  }
  void BeginMissing(const Parts&) {
    CloseKind();
    block_ = Block::kMissing;
  }
  void BeginCount(const Parts& parts) {
    value_ = parts.size() > 1 ? CountOf(parts[1]) : 0;
    blocks_.push_back({CountOf(parts[0]), value_, 0});
  }
  void BeginStatus(const Parts& parts) {
    CloseKind();
    status_ = parts[1];
    block_ = Block::kStatus;
  }
  void BeginErrors(const Parts& parts) {
    CloseKind();
    error_ = parts[1];
    block_ = Block::kErrors;
  }
  void ReadDeviant(const Parts& parts) {
    if (const auto status = PartsOf(parts[1], "status {}")) {
      status_ = (*status)[0];
      return SetStatus(CountOf(parts[0]), parts[2]);
    }
    const auto launched = PartsOf(parts[1], "launched up to operation {}");
    AddCount(CountOf(parts[0]), launched ? CountOf((*launched)[0]) : 0, parts[2]);
  }
  void ReadFailed(const Parts& parts) { SetError(CountOf(parts[0]), parts[1], parts[2]); }

  // A row of the table: group, communicators, nodes, ranks per node, per communicator and in the
  // group, status, errors.
  void ReadRow(std::string_view line) {
    Parts words;
    while (!line.empty()) {
      const size_t end = std::min(line.find(' '), line.size());
      if (end != 0) words.push_back(line.substr(0, end));
      line.remove_prefix(std::min(line.size(), end + 1));
    }
    if (words.size() != 8 || !NumberIn(words[0]) || !NumberIn(words[1]) || !NumberIn(words[4])) {
      return;
    }
    saw_table_ = true;
    sizes_[CountOf(words[0])] = static_cast<int>(CountOf(words[4], kMostForeignRanks));
  }

  static uint64_t CountOf(std::string_view digits, uint64_t most = uint64_t{1} << 60) {
    return std::min(NumberIn(digits).value_or(0), most);
  }

  // The communicator of a heading; the same one may have several.
  void Open(const Parts& parts) {
    Close();
    const std::string hash = Printable(parts[2]);
    for (RasCommunicator& known : report_.communicators) {
      if (known.hash == hash) {
        current_ = &known - report_.communicators.data();
        return;
      }
    }
    current_ = static_cast<ptrdiff_t>(report_.communicators.size());
    report_.communicators.push_back({hash, sizes_[CountOf(parts[0])], {}});
  }

  RasMember* MemberAt(uint64_t rank, std::string_view where) {
    if (current_ < 0 || rank >= static_cast<uint64_t>(kMostForeignRanks)) return nullptr;
    std::vector<RasMember>& members = report_.communicators[static_cast<size_t>(current_)].members;
    auto it = std::find_if(members.begin(), members.end(), [&](const RasMember& member) {
      return member.rank == static_cast<int>(rank);
    });
    if (it == members.end()) {
      ++members_;
      members.push_back({});
      it = members.end() - 1;
      it->rank = static_cast<int>(rank);
    }
    if (const auto parts = PartsOf(where, "GPU {} managed by process {} on node {}")) {
      it->process = static_cast<int>(CountOf((*parts)[1], INT32_MAX));
      it->host = Printable((*parts)[2]);
    }
    return &*it;
  }

  void AddCount(uint64_t rank, uint64_t count, std::string_view where) {
    RasMember* const member = MemberAt(rank, where);
    if (member == nullptr || kind_.empty()) return;
    member->launched[kind_] = count;
    listed_.insert(static_cast<int>(rank));
  }

  void SetStatus(uint64_t rank, std::string_view where) {
    RasMember* const member = MemberAt(rank, where);
    if (member == nullptr) return;
    member->aborted = status_ == "ABORT";
    member->missing = status_ == "NOCOMM" || status_ == "FINALIZE";
  }

  void SetError(uint64_t rank, std::string_view error, std::string_view where) {
    RasMember* const member = MemberAt(rank, where);
    const auto it = std::find(kErrors.begin(), kErrors.end(), error);
    if (member != nullptr && it != kErrors.end()) {
      member->error = ErrorOf(static_cast<int>(it - kErrors.begin()));
    }
  }

  void ReadListed(const Parts& parts) {
    const uint64_t rank = CountOf(parts[0]);
    const std::string_view where = parts[1];
    switch (block_) {
      case Block::kNone:
        return;
      case Block::kCounts:
        if (!blocks_.empty()) ++blocks_.back().listed;
        AddCount(rank, value_, where);
        return;
      case Block::kMissing:
        if (RasMember* const member = MemberAt(rank, where)) member->missing = true;
        return;
      case Block::kStatus:
        SetStatus(rank, where);
        return;
      case Block::kErrors:
        SetError(rank, error_, where);
        return;
    }
  }

  // Members of the one block whose ranks were not listed.
  void CloseKind() {
    std::vector<CountBlock> unlisted;
    for (const CountBlock& block : blocks_) {
      if (block.listed == 0) unlisted.push_back(block);
    }
    if (current_ >= 0 && !kind_.empty() && unlisted.size() == 1) {
      const int size = report_.communicators[static_cast<size_t>(current_)].size;
      std::set<int> known;
      for (const RasMember& member : report_.communicators[static_cast<size_t>(current_)].members) {
        if (member.missing) known.insert(member.rank);
      }
      if (unlisted[0].ranks + listed_.size() + known.size() == static_cast<uint64_t>(size) &&
          members_ + static_cast<size_t>(size) <= kMostMembers) {
        const std::set<int> listed = listed_;
        for (int rank = 0; rank < size; ++rank) {
          if (listed.contains(rank) || known.contains(rank)) continue;
          AddCount(static_cast<uint64_t>(rank), unlisted[0].value, {});
        }
      }
    }
    kind_.clear();
    blocks_.clear();
    listed_.clear();
    block_ = Block::kNone;
  }

  void Close() {
    CloseKind();
    if (current_ >= 0) {
      std::vector<RasMember>& members =
          report_.communicators[static_cast<size_t>(current_)].members;
      for (RasMember& member : members) {
        if (dead_.contains({member.process, member.host})) member.dead = member.missing = true;
      }
      std::sort(members.begin(), members.end(),
                [](const RasMember& a, const RasMember& b) { return a.rank < b.rank; });
    }
    current_ = -1;
  }

  enum class Block : uint8_t { kNone, kCounts, kMissing, kStatus, kErrors };
  struct CountBlock {
    uint64_t ranks = 0;
    uint64_t value = 0;
    uint64_t listed = 0;
  };

  RasReport report_;
  std::map<uint64_t, int> sizes_;  // of the communicators of a row of the table
  std::set<std::pair<int, std::string>> dead_;
  ptrdiff_t current_ = -1;  // communicator; -1: none
  Block block_ = Block::kNone;
  std::string kind_;
  std::string status_;
  std::string error_;
  uint64_t value_ = 0;
  std::vector<CountBlock> blocks_;
  std::set<int> listed_;
  size_t members_ = 0;
  bool in_dead_ = false;
  bool saw_table_ = false;
};

// ---- records ----

// Makes records of what a report says; short-lived.
class RasBuilder {
 public:
  RasBuilder(const RasReport& report, const RasReport* earlier, const std::string& path)
      : report_(report), earlier_(earlier), path_(path) {}

  std::vector<RankRecord> Run() {
    FindRanks();
    for (const RasCommunicator& communicator : report_.communicators) Add(communicator);
    std::vector<RankRecord> records;
    for (auto& [rank, record] : records_) {
      record.world_size = world_size_;
      records.push_back(std::move(record));
    }
    return records;
  }

 private:
  using Process = std::pair<std::string, int>;  // host and process

  // The largest communicator numbers the processes; those that it does not have come behind.
  void FindRanks() {
    const RasCommunicator* largest = nullptr;
    for (const RasCommunicator& communicator : report_.communicators) {
      if (largest == nullptr || communicator.size > largest->size) largest = &communicator;
    }
    if (largest == nullptr) return;
    world_size_ = std::max(1, largest->size);
    for (const RasMember& member : largest->members) {
      world_size_ = std::max(world_size_, member.rank + 1);
      if (member.process != 0) ranks_.try_emplace({member.host, member.process}, member.rank);
    }
    largest_ = largest;
  }

  // World rank of a member.
  int RankOf(const RasCommunicator& communicator, const RasMember& member) {
    if (&communicator == largest_) return member.rank;
    if (member.process == 0) return -1;
    const auto [it, added] = ranks_.try_emplace({member.host, member.process}, world_size_);
    if (added) ++world_size_;
    return it->second;
  }

  RankRecord& RecordOf(int rank, const RasMember& member) {
    const auto [it, added] = records_.try_emplace(rank);
    RankRecord& record = it->second;
    if (added) {
      record.path = path_;
      record.rank = rank;
      record.foreign = true;
      record.watcher = kWatcher;
    }
    if (record.host.empty()) record.host = member.host;
    if (record.process == 0) record.process = member.process;
    return record;
  }

  // What was launched between the two reports, of all members that both name.
  bool GoesOn(const RasCommunicator& communicator) const {
    if (earlier_ == nullptr) return false;
    const auto before =
        std::find_if(earlier_->communicators.begin(), earlier_->communicators.end(),
                     [&](const RasCommunicator& other) { return other.hash == communicator.hash; });
    if (before == earlier_->communicators.end()) return false;
    bool all = false;
    for (const RasMember& member : communicator.members) {
      const auto same =
          std::find_if(before->members.begin(), before->members.end(),
                       [&](const RasMember& other) { return other.rank == member.rank; });
      if (member.missing) return false;
      if (same == before->members.end()) continue;
      if (same->launched == member.launched) return false;
      all = true;
    }
    return all;
  }

  void Add(const RasCommunicator& communicator) {
    std::vector<int> world;
    for (const RasMember& member : communicator.members) {
      const int rank = RankOf(communicator, member);
      if (rank >= 0) world.push_back(rank);
    }
    std::sort(world.begin(), world.end());
    world.erase(std::unique(world.begin(), world.end()), world.end());
    const uint64_t id = IdOfName(communicator.hash);
    std::map<std::string, uint64_t> least = LeastOf(communicator);
    const bool goes_on = GoesOn(communicator);
    for (const RasMember& member : communicator.members) {
      const int rank = RankOf(communicator, member);
      if (rank < 0) continue;
      RankRecord& record = RecordOf(rank, member);
      if (record.HasGroup(id)) continue;  // a second communicator of that name
      record.groups.push_back({id, static_cast<uint32_t>(communicator.size), member.rank,
                               "communicator " + communicator.hash, RangeText(world)});
      if (member.dead) record.fate = ProcessFate::kGone;
      if (member.missing && !member.dead) {
        AddNotice(rank, Cause::kLate, "it does not answer NCCL RAS, or has left the communicator",
                  record);
      }
      if (member.missing || member.dead) continue;
      if (goes_on) {
        AddCalls(member, member.launched, id, record);
      } else {
        AddCalls(member, least, id, record);
      }
      if (member.error != 0 && member.error != kRemoteError) {
        AddNotice(
            rank, Cause::kFailed,
            fmt::format("NCCL reports \"{}\" there", kErrors[static_cast<size_t>(member.error)]),
            record);
      }
    }
  }

  static std::map<std::string, uint64_t> LeastOf(const RasCommunicator& communicator) {
    std::map<std::string, uint64_t> least;
    bool first = true;
    for (const RasMember& member : communicator.members) {
      if (member.missing || member.dead || member.launched.empty()) continue;
      if (first) {
        least = member.launched;
        first = false;
        continue;
      }
      for (auto& [kind, count] : least) {
        const auto it = member.launched.find(kind);
        count = std::min(count, it == member.launched.end() ? 0 : it->second);
      }
    }
    return least;
  }

  // The last call that all have launched, and the first that only some have.
  static void AddCalls(const RasMember& member, const std::map<std::string, uint64_t>& least,
                       uint64_t group, RankRecord& record) {
    uint64_t common = 0;
    for (const auto& [kind, count] : least) common += count;
    if (common != 0) {
      RecordedCall& call = AddCall(group, common, record);
      call.stage = Stage::kDone;
      call.kind = CollectiveKind::kBarrier;
      call.node = "earlier calls";
    }
    uint64_t extra = 0;
    std::string kind;
    for (const auto& [name, count] : member.launched) {
      const auto it = least.find(name);
      const uint64_t beyond = count - std::min(count, it == least.end() ? 0 : it->second);
      if (beyond > extra) {
        extra = beyond;
        kind = name;
      }
    }
    if (extra == 0) return;
    RecordedCall& call = AddCall(group, common + 1, record);
    call.kind = KindNamed(kind);
    if (call.kind == CollectiveKind::kNone) {
      call.kind = CollectiveKind::kBarrier;
      call.node = kind;
    }
  }

  static RecordedCall& AddCall(uint64_t group, uint64_t number, RankRecord& record) {
    RecordedCall& call = record.calls.emplace_back(UntypedCall());
    call.sequence = record.calls.size();
    call.group = group;
    call.call = number;
    call.stage = Stage::kEntered;
    return call;
  }

  static void AddNotice(int rank, Cause cause, const std::string& why, RankRecord& record) {
    RecordedNotice& recorded = record.notices.emplace_back();
    recorded.notice.ranks = {rank};
    recorded.notice.text = fmt::format("rank {}: {}", rank, why);
    recorded.why = why;
    recorded.cause = cause;
  }

  const RasReport& report_;
  const RasReport* const earlier_;
  const std::string& path_;
  const RasCommunicator* largest_ = nullptr;
  int world_size_ = 1;
  std::map<Process, int> ranks_;
  std::map<int, RankRecord> records_;
};

}  // namespace

bool LooksLikeRasText(std::string_view text) {
  const std::string_view front = text.substr(0, 1 << 16);
  return front.find("NCCL version ") != front.npos && front.find("Communicators...") != front.npos;
}

bool LooksLikeRasJson(const json& object) {
  return object.is_object() && object.contains("nccl_version") && object.contains("communicators");
}

json ParseRasJson(const std::string& text) {
  json object = ParseForeignJson(text);
  if (!object.is_discarded() || text.find("\"nccl_version\"") == text.npos) return object;
  std::string mended;
  std::string_view rest = text;
  constexpr std::string_view kStatus = "\"status\"";
  for (size_t at = rest.find(kStatus); at != rest.npos; at = rest.find(kStatus)) {
    std::string_view before = rest.substr(0, at);
    while (!before.empty() && (before.back() == ' ' || before.back() == '\n'))
      before.remove_suffix(1);
    const bool forgotten = !before.empty() && before.back() >= '0' && before.back() <= '9';
    mended.append(before).append(forgotten ? ", " : " ").append(kStatus);
    rest.remove_prefix(at + kStatus.size());
  }
  return ParseForeignJson(mended.append(rest));
}

Result<RasReport> ReadRasText(std::string_view text, const std::string& path) {
  return TextReader().Run(text, path);
}

Result<RasReport> ReadRasJson(const json& object, const std::string& path) {
  if (!LooksLikeRasJson(object) || !object.at("communicators").is_array()) {
    return Error(Code::kCorrupt,
                 "{} is no report of ncclras: expected the keys nccl_version and communicators",
                 path);
  }
  RasReport report;
  report.version = TextOf(object, "nccl_version");
  report.time = TextOf(object, "timestamp");
  size_t members = 0;
  for (const json& row : object.at("communicators")) {
    if (!row.is_object()) continue;
    RasCommunicator communicator;
    communicator.hash = TextOf(row, "hash");
    communicator.size = std::min(IntegerOf(row, "size", 0), kMostForeignRanks);
    for (const char* const key : {"ranks", "missing_ranks"}) {
      const auto list = row.find(key);
      if (list == row.end() || !list->is_array()) continue;
      for (const json& entry : *list) {
        std::optional<RasMember> member = MemberOf(entry);
        if (!member || ++members > kMostMembers) continue;
        member->missing = std::string_view(key) == "missing_ranks";
        communicator.members.push_back(std::move(*member));
      }
    }
    std::sort(communicator.members.begin(), communicator.members.end(),
              [](const RasMember& a, const RasMember& b) { return a.rank < b.rank; });
    report.communicators.push_back(std::move(communicator));
  }
  return report;
}

std::vector<RankRecord> RasRecords(const RasReport& last, const RasReport* earlier,
                                   const std::string& path) {
  return RasBuilder(last, earlier, path).Run();
}

}  // namespace npumesh
