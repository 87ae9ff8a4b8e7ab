#include <time.h>

#include <algorithm>
#include <set>

#include "launch/record/foreign/foreign_call.h"
#include "launch/record/foreign/lines.h"
#include "launch/record/foreign/plog.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

constexpr size_t kMostCalls = 1 << 20;  // of all processes

// "2025-10-24-11:18:29.597.044" as nanoseconds of CLOCK_REALTIME; 0: no such time.
int64_t TimeIn(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-dd-dd:dd:dd";
  if (text.size() < kForm.size()) return 0;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !digit : text[i] != kForm[i]) return 0;
  }
  const auto part = [text](size_t at, size_t length) {
    return static_cast<int>(NumberIn(text.substr(at, length)).value_or(0));
  };
  tm parts{};
  parts.tm_year = part(0, 4) - 1900;
  parts.tm_mon = part(5, 2) - 1;
  parts.tm_mday = part(8, 2);
  parts.tm_hour = part(11, 2);
  parts.tm_min = part(14, 2);
  parts.tm_sec = part(17, 2);
  if (parts.tm_year < 70 || parts.tm_year > 200) return 0;
  int64_t ns = static_cast<int64_t>(timegm(&parts)) * 1'000'000'000;
  std::string_view rest = text.substr(kForm.size());
  for (const int64_t unit : {int64_t{1'000'000}, int64_t{1'000}}) {  // ".597.044"
    if (rest.size() < 4 || rest[0] != '.') break;
    ns += static_cast<int64_t>(NumberIn(rest.substr(1, 3)).value_or(0)) * unit;
    rest.remove_prefix(4);
  }
  return ns;
}

// The first time that stands in a line.
int64_t TimeOfLine(std::string_view line) {
  for (size_t at = line.find("20"); at != line.npos && at < 300; at = line.find("20", at + 1)) {
    const int64_t time = TimeIn(line.substr(at));
    if (time != 0) return time;
  }
  return 0;
}

// A tag is the operation, an underscore, the group and what the algorithm appends.
std::string_view OperationOf(std::string_view tag) {
  return tag.substr(0, tag.find('_'));
}

std::string_view StatusOf(std::string_view type) {
  if (type.find("Lost") != type.npos || type.starts_with("LOST")) return "LOST";
  if (type.find("cqe") != type.npos || type.find("CQE") != type.npos) return "ERROR CQE";
  if (type.find("Stuck") != type.npos || type.starts_with("STUCK")) return "STUCK";
  return "";
}

// "node0/run/plog/plog-12_34.log" -> "node0"
std::string HostFolder(const std::string& path) {
  std::string_view folder =
      std::string_view(path).substr(0, path.rfind('/') == path.npos ? 0 : path.rfind('/'));
  while (true) {
    const size_t slash = folder.rfind('/');
    const std::string_view last = slash == folder.npos ? folder : folder.substr(slash + 1);
    const bool inner = last == "run" || last == "debug" || last == "plog" || last == "security" ||
                       last == "log" || last.starts_with("device-");
    if (!inner) return std::string(folder);
    folder = slash == folder.npos ? std::string_view() : folder.substr(0, slash);
    if (slash == folder.npos && folder.empty()) return "";
  }
}

void Join(std::string_view group, std::string_view rank, std::string_view size,
          PlogProcess& process) {
  const auto number = NumberIn(rank.substr(0, rank.find(' ')), kMostForeignRanks - 1);
  const auto members = NumberIn(size, kMostForeignRanks);
  if (group.empty() || !number || !members || *number >= *members) return;
  process.groups[Printable(group)] = {*number, *members};
}

void ReadCreation(std::string_view line, PlogProcess& process) {
  Join(InBrackets(line, "identifier"), InBrackets(line, " rank"), InBrackets(line, "ranks"),
       process);
}

void ReadCount(std::string_view line, PlogProcess& process) {
  const size_t at = line.find("[HCCL_TRACE]rank:");
  const auto parts =
      PartsOf(line.substr(at), "[HCCL_TRACE]rank:{}, count of currently executed operators:{}");
  if (!parts) return;
  process.place = Printable((*parts)[0]);
  const auto count = NumberIn((*parts)[1]);
  if (count) process.operators = *count;
}

void AddFailure(const std::string& group, PlogCall call, PlogProcess& process) {
  const auto [it, added] = process.failures.try_emplace(group, call);
  if (added) return;
  PlogCall& known = it->second;  // told in several ways
  if (known.operation.empty()) known.operation = call.operation;
  if (!known.index && call.index && call.operation == known.operation) {
    known.index = call.index;
    known.count = call.count;
    known.dtype = call.dtype;
    known.reduction = call.reduction;
  }
  if (!known.remote) known.remote = call.remote;
}

void ReadTimeout(std::string_view line, PlogProcess& process) {
  const std::string group = Printable(InBrackets(line, "group"));
  const std::string_view tag = InBrackets(line, "tag");
  PlogCall call;
  call.time_ns = TimeOfLine(line);
  call.operation = Printable(OperationOf(tag));
  call.remote = NumberIn(InBrackets(line, "remote rank"), kMostForeignRanks);
  if (group.empty()) return;
  Join(InBrackets(line, "group"), InBrackets(line, "rankId"), InBrackets(line, "rankSize"),
       process);
  AddFailure(group, std::move(call), process);
}

// "createLink para:rank[7]-..-localIpAddr[80.5.5.39/7], remoteRank[15]-..-remoteIpAddr[..], ..
// tag[..]"
void ReadLink(std::string_view line, PlogProcess& process) {
  const std::string_view para = line.substr(line.find("createLink para:"));
  const std::string_view remote = !InBrackets(para, "remoteRank").empty()
                                      ? InBrackets(para, "remoteRank")
                                      : InBrackets(para, "dst_rank");
  const std::string_view tag = InBrackets(para, "tag");
  const auto own = NumberIn(InBrackets(para, "para:rank"), kMostForeignRanks - 1);
  const auto other = NumberIn(remote, kMostForeignRanks - 1);
  if (!own || !other) return;
  PlogCall call;
  call.time_ns = TimeOfLine(line);
  call.operation = Printable(OperationOf(tag));
  call.remote = other;
  const std::string group =
      tag.find('_') == tag.npos ? std::string("links") : Printable(tag.substr(tag.find('_') + 1));
  if (!process.groups.contains(group)) {
    process.groups[group] = {*own, std::max(*own, *other) + 1};
  }
  if (process.place.empty()) process.place = Printable(InBrackets(para, "localIpAddr"));
  AddFailure(group, std::move(call), process);
}

}  // namespace

bool LooksLikePlog(std::string_view text) {
  const std::string_view front = text.substr(0, 8 << 20);
  for (const std::string_view mark :
       {"] HCCL(", "]HCCL(", "Notify register", "Getting socket times out", "[HCCL_TRACE]"}) {
    if (front.find(mark) != front.npos) return true;
  }
  return false;
}

void PlogReader::Read(std::string_view text, const std::string& path) {
  folder_ = HostFolder(path);
  Lines lines(text);
  std::string_view line;
  while (lines.Next(line)) ReadLine(line);
  CloseDraft();
}

// The process that a line is of: "HCCL(12,name)", "[PID: 12]", "(PID:12, Device:0, ..".
PlogProcess* PlogReader::ProcessOf(std::string_view line) {
  std::optional<uint64_t> number;
  const size_t module = line.find("HCCL(");
  if (module != line.npos) {
    const std::string_view rest = line.substr(module + 5);
    number = NumberIn(rest.substr(0, rest.find_first_of(",)")), INT32_MAX);
  }
  for (const std::string_view mark : {"[PID: ", "(PID:", "[PID:"}) {
    const size_t at = line.find(mark);
    if (number || at == line.npos) continue;
    const std::string_view rest = line.substr(at + mark.size());
    number = NumberIn(rest.substr(0, rest.find_first_of(",])")), INT32_MAX);
  }
  if (!number) return nullptr;
  PlogProcess& process = facts_.processes[{folder_, *number}];
  process.folder = folder_;
  process.number = *number;
  if (process.torch_rank < 0) {
    const size_t at = line.find("[rank");
    if (at != line.npos) {
      const std::string_view rest = line.substr(at + 5);
      const auto rank = NumberIn(rest.substr(0, rest.find(']')), kMostForeignRanks - 1);
      if (rank) process.torch_rank = static_cast<int>(*rank);
    }
  }
  return &process;
}

void PlogReader::ReadLine(std::string_view line) {
  const auto has = [line](std::string_view words) { return line.find(words) != line.npos; };
  const bool names_hccl = has("HCCL") || has("EI00") || has("Task run failed") ||
                          has("Notify register") || has("Cluster Exception") || has("Entry-Hccl") ||
                          has("createLink");
  if (!names_hccl) return;
  PlogProcess* const process = ProcessOf(line);
  if (has("Cluster Exception Location")) ReadException(line);
  if (process == nullptr) return;
  for (const std::string_view name : {"execTimeOut", "HCCL_EXEC_TIMEOUT"}) {
    const auto limit = NumberIn(InBrackets(line, name), 1 << 30);
    if (limit) process->timeout_s = static_cast<int64_t>(*limit);
  }
  if (has("Entry-HcclComm")) {
    ReadCreation(line, *process);
  } else if (has("Entry-Hccl")) {
    ReadCall(line, *process);
  } else if (has("HeartbeatAbnormal") && has("crimer rank")) {
    ReadHeartbeat(line, *process);
  } else if (has("[HCCL_TRACE]rank:")) {
    ReadCount(line, *process);
  } else if (has("Task run failed, ")) {
    ReadFailure(line, *process);
  } else if (has("Notify register")) {
    ReadTimeout(line, *process);
  } else if (has("createLink para:")) {
    ReadLink(line, *process);
  } else if (has("Getting socket times out")) {
    if (process->no_socket_ns < 0) process->no_socket_ns = TimeOfLine(line);
  } else if (has("EI0005")) {
    if (process->disagrees_ns < 0) process->disagrees_ns = TimeOfLine(line);
  }
}

void PlogReader::ReadCall(std::string_view line, PlogProcess& process) {
  const std::string_view tag = InBrackets(line, "tag");
  const size_t cut = tag.find('_');
  if (cut == tag.npos || ++calls_ > kMostCalls) return;
  PlogCall call;
  call.operation = Printable(tag.substr(0, cut));
  call.count = NumberIn(InBrackets(line, "count")).value_or(0);
  call.dtype = Printable(InBrackets(line, "dataType"));
  call.reduction = Printable(InBrackets(line, " op"));
  call.time_ns = TimeOfLine(line);
  process.calls[Printable(tag.substr(cut + 1))].push_back(std::move(call));
}

void PlogReader::ReadHeartbeat(std::string_view line, PlogProcess& process) {
  process.place = Printable(InBrackets(line, "local rank"));
  AddEvent({TimeOfLine(line), std::string(StatusOf(InBrackets(line, "status"))),
            Printable(InBrackets(line, "crimer rank")),
            Printable(InBrackets(line, "informer rank"))});
}

void PlogReader::ReadException(std::string_view line) {
  const std::string_view culprit = InBrackets(line, "Location[IP/ID]");
  AddEvent({TimeOfLine(line), std::string(StatusOf(InBrackets(line, "ExceptionType"))),
            Printable(culprit), Printable(InBrackets(line, "Discoverer"))});
}

void PlogReader::AddEvent(PlogEvent event) {
  if (event.status.empty() || event.culprit.empty()) return;
  const auto [it, added] = facts_.events.try_emplace({event.culprit, event.status}, event);
  const bool earlier = event.time_ns != 0 && event.time_ns < it->second.time_ns;
  if (!added && earlier) it->second = std::move(event);
}

// The lines of a failed task come one after the other.
void PlogReader::ReadFailure(std::string_view line, PlogProcess& process) {
  if (draft_process_ != &process) CloseDraft();
  draft_process_ = &process;
  const bool begins =
      line.find("base information") != line.npos || line.find("para information") != line.npos;
  if (begins && !draft_group_.empty()) CloseDraft();
  draft_process_ = &process;
  if (draft_.time_ns == 0) draft_.time_ns = TimeOfLine(line);
  const std::string_view tag = InBrackets(line, "tag");
  if (!tag.empty() && draft_.operation.empty()) draft_.operation = Printable(OperationOf(tag));
  if (const auto remote = NumberIn(InBrackets(line, "remote rank"), kMostForeignRanks))
    draft_.remote = *remote;
  if (line.find("groupRank information") != line.npos) {
    draft_group_ = Printable(InBrackets(line, "group"));
    Join(InBrackets(line, "group"), InBrackets(line, "rankId"), InBrackets(line, "rankSize"),
         process);
  }
  if (line.find("opData information") != line.npos) {
    draft_.index = NumberIn(InBrackets(line, "index"));
    draft_.count = NumberIn(InBrackets(line, "count")).value_or(0);
    draft_.dtype = Printable(InBrackets(line, "dataType"));
    draft_.reduction = Printable(InBrackets(line, "reduceType"));
    CloseDraft();
  }
}

void PlogReader::CloseDraft() {
  if (draft_process_ != nullptr && !draft_group_.empty()) {
    AddFailure(draft_group_, std::move(draft_), *draft_process_);
  }
  draft_ = {};
  draft_group_.clear();
  draft_process_ = nullptr;
}

}  // namespace npumesh
