#include "tests/unit/foreign_record/made_up_job.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "runtime/base/text/plain_pickle.h"

namespace npumesh::testing {
namespace {

using nlohmann::json;

constexpr int64_t kBegin = 1'760'000'000'000'000'000;  // 2025-10-09
constexpr int64_t kMilli = 1'000'000;

struct TorchName {
  std::string_view kind;
  std::string_view torch;
  int in;  // elements handed in and got, of a count of one; 0: as many as ranks
  int out;
};
constexpr std::array<TorchName, 4> kNames = {{{"AllReduce", "all_reduce", 1, 1},
                                              {"AllGather", "_all_gather_base", 1, 0},
                                              {"ReduceScatter", "_reduce_scatter_base", 0, 1},
                                              {"Broadcast", "broadcast", 1, 1}}};

std::string PlogTime(int64_t ns) {
  const time_t seconds = ns / 1'000'000'000;
  tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  strftime(text.data(), text.size(), "%Y-%m-%d-%H:%M:%S", &parts);
  return fmt::format("{}.{:03}.{:03}", text.data(), ns / 1'000'000 % 1000, ns / 1000 % 1000);
}

}  // namespace

MadeUpJob::MadeUpJob(Fault fault, uint32_t seed) : random_(seed) {
  ranks_ = static_cast<int>(4 + 2 * Chance(7));  // 4 to 16
  Program(fault);
  Run();
}

std::vector<int> MadeUpJob::MembersOf(int group) const {
  std::vector<int> members;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (group == 0 || rank % 2 == group - 1) members.push_back(rank);
  }
  return members;
}

void MadeUpJob::Program(Fault fault) {
  programs_.resize(static_cast<size_t>(ranks_));
  const size_t steps = 3 + Chance(8);
  for (size_t step = 0; step < steps; ++step) {
    const std::string all(kNames[Chance(kNames.size())].kind);
    const std::string half(kNames[Chance(kNames.size())].kind);
    const uint64_t count = 1 + Chance(4096);
    for (int rank = 0; rank < ranks_; ++rank) {
      std::vector<Call>& program = programs_[static_cast<size_t>(rank)];
      program.push_back({all, 0, 0, count, 0, false, false});
      program.push_back({half, 1 + rank % 2, 0, count * 2, 0, false, false});
    }
  }
  const int victim = static_cast<int>(Chance(static_cast<uint64_t>(ranks_)));
  std::vector<Call>& program = programs_[static_cast<size_t>(victim)];
  // A call of all ranks, with others behind it.
  const size_t at = 2 * (1 + Chance(steps - 2));
  culprits_ = {victim};
  switch (fault) {
    case Fault::kNone:
      culprits_.clear();
      break;
    case Fault::kMissing:
    case Fault::kDead:
      program.resize(at);
      dead_ = fault == Fault::kDead;
      break;
    case Fault::kSkipped:
      // The whole step, so that its next call of all ranks comes in the place of another kind.
      program.erase(program.begin() + static_cast<ptrdiff_t>(at),
                    program.begin() + static_cast<ptrdiff_t>(at) + 2);
      for (int rank = 0; rank < ranks_; ++rank) {
        std::vector<Call>& other = programs_[static_cast<size_t>(rank)];
        if (at < other.size()) other[at].kind = rank == victim ? "AllGather" : "AllReduce";
      }
      break;
    case Fault::kOther:
      for (int rank = 0; rank < ranks_; ++rank) {
        programs_[static_cast<size_t>(rank)][at].kind =
            rank == victim ? "ReduceScatter" : "AllReduce";
      }
      break;
    case Fault::kSize:
      program[at].count += 1 + Chance(100);
      break;
    case Fault::kOrder:
      std::swap(program[at], program[at + 1]);
      break;
  }
}

// Every rank calls one after the other; a call is done once all members agree on it. What a rank
// calls while it waits is queued.
void MadeUpJob::Run() {
  reached_.assign(static_cast<size_t>(ranks_), 0);
  std::vector<std::array<uint64_t, 3>> numbers(static_cast<size_t>(ranks_));
  for (size_t rank = 0; rank < programs_.size(); ++rank) {
    for (Call& call : programs_[rank])
      call.number = ++numbers[rank][static_cast<size_t>(call.group)];
  }
  bool moved = true;
  while (moved) {
    moved = false;
    for (int group = 0; group < 3; ++group) {
      const std::vector<int> members = MembersOf(group);
      const Call* first = nullptr;
      bool agree = !members.empty();
      for (const int rank : members) {
        const size_t at = reached_[static_cast<size_t>(rank)];
        const std::vector<Call>& program = programs_[static_cast<size_t>(rank)];
        if (at >= program.size() || program[at].group != group) {
          agree = false;
          break;
        }
        if (first == nullptr) first = &program[at];
        agree = agree && first->kind == program[at].kind && first->count == program[at].count &&
                first->number == program[at].number;
      }
      if (!agree) continue;
      for (const int rank : members) {
        programs_[static_cast<size_t>(rank)][reached_[static_cast<size_t>(rank)]++].done = true;
      }
      moved = true;
    }
  }
  int64_t time = kBegin;
  for (size_t rank = 0; rank < programs_.size(); ++rank) {
    for (size_t i = 0; i < programs_[rank].size(); ++i) {
      programs_[rank][i].called_ns =
          time + static_cast<int64_t>(i) * 10 * kMilli + static_cast<int64_t>(Chance(1000)) * 1000;
      programs_[rank][i].queued = i > reached_[rank];
    }
    // Some programs wait for the device, others run ahead by a few calls.
    const size_t ahead = reached_[rank] + 1 + Chance(3);
    if (programs_[rank].size() > ahead) programs_[rank].resize(ahead);
  }
}

std::map<std::string, std::string> MadeUpJob::Files(Library library) const {
  switch (library) {
    case Library::kPickle:
      return Torch(true);
    case Library::kJson:
      return Torch(false);
    case Library::kRas:
      return {{"report.json", Ras()}};
    case Library::kHccl:
      break;
  }
  return Plogs();
}

std::map<std::string, std::string> MadeUpJob::Torch(bool pickle) const {
  std::map<std::string, std::string> files;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (dead_ && rank == culprits_[0]) continue;
    json config = json::object();
    for (const int group : {0, 1 + rank % 2}) {
      std::string ranks;
      for (const int member : MembersOf(group))
        ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", member);
      config[fmt::format("{}", group)] = {{"name", fmt::format("{}", group)},
                                          {"desc", group == 0 ? "default_pg" : "undefined"},
                                          {"ranks", "[" + ranks + "]"}};
    }
    json entries = json::array();
    uint64_t id = 0;
    for (const Call& call : programs_[static_cast<size_t>(rank)]) {
      const auto name = std::find_if(kNames.begin(), kNames.end(), [&](const TorchName& known) {
        return known.kind == call.kind;
      });
      const uint64_t many = MembersOf(call.group).size();
      const uint64_t in = call.count * (name->in == 0 ? many : 1);
      const uint64_t out = call.count * (name->out == 0 ? many : 1);
      const json none = pickle ? json() : json(0);
      const bool started = call.done || !call.queued;
      entries.push_back(
          {{"record_id", id},
           {"pg_id", call.group},
           {"process_group",
            {fmt::format("{}", call.group), call.group == 0 ? "default_pg" : "undefined"}},
           {"collective_seq_id", call.number},
           {"p2p_seq_id", 0},
           {"op_id", id + 1},
           {"profiling_name", fmt::format("nccl:{}", name->torch)},
           {"time_created_ns", call.called_ns},
           {"input_sizes", json::array({json::array({in})})},
           {"input_dtypes", json::array({"BFloat16"})},
           {"output_sizes", json::array({json::array({out})})},
           {"output_dtypes", json::array({"BFloat16"})},
           {"state", call.done ? "completed"
                     : started ? "started"
                               : "scheduled"},
           {"time_discovered_started_ns", started ? json(call.called_ns + kMilli) : none},
           {"time_discovered_completed_ns", call.done ? json(call.called_ns + 2 * kMilli) : none},
           {"retired", call.done},
           {"timeout_ms", 600000},
           {"is_p2p", false}});
      if (pickle) {
        entries.back()["frames"] = {
            {{"name", "all_reduce"},
             {"filename", "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py"},
             {"line", 2806}},
            {{"name", "step"}, {"filename", "/home/me/train.py"}, {"line", 40 + call.group}}};
      }
      ++id;
    }
    const json dump = {{"version", pickle ? "2.4" : "2.10"},
                       {"pg_config", config},
                       {"pg_status", json::object()},
                       {"entries", entries}};
    files[fmt::format("{}{}{}", pickle ? "hccl_trace_rank_" : "rank_", rank,
                      pickle ? "" : ".json")] = pickle ? WritePlainPickle(dump) : dump.dump();
  }
  return files;
}

std::string MadeUpJob::Ras() const {
  json communicators = json::array();
  for (int group = 0; group < 3; ++group) {
    json ranks = json::array();
    json missing = json::array();
    int place = 0;
    for (const int rank : MembersOf(group)) {
      json row = {{"rank", place++},
                  {"host", fmt::format("10.0.0.{}", 1 + rank / 8)},
                  {"pid", 1000 + rank},
                  {"cuda_dev", rank % 8},
                  {"nvml_dev", rank % 8}};
      if (dead_ && rank == culprits_[0]) {
        row["status"] = {{"unresponsive", true}, {"considered_dead", true}};
        missing.push_back(row);
        continue;
      }
      row["status"] = {{"init_state", 0},
                       {"async_error", 0},
                       {"finalize_called", false},
                       {"destroy_flag", false},
                       {"abort_flag", false}};
      json counts = {{"Broadcast", 0},
                     {"Reduce", 0},
                     {"AllGather", 0},
                     {"ReduceScatter", 0},
                     {"AllReduce", 0}};
      for (const Call& call : programs_[static_cast<size_t>(rank)]) {
        // The device launches one after the other.
        if (call.group == group && !call.queued)
          counts[call.kind] = counts[call.kind].get<int>() + 1;
      }
      row["collective_counts"] = counts;
      ranks.push_back(row);
    }
    communicators.push_back({{"hash", fmt::format("0x{:x}", 0xabc0 + group)},
                             {"secondary_hash", "0x1:0x2"},
                             {"size", place},
                             {"ranks_count", ranks.size()},
                             {"missing_ranks_count", missing.size()},
                             {"ranks", ranks},
                             {"missing_ranks", missing}});
  }
  const json report = {{"nccl_version", "2.28.9"},
                       {"cuda_runtime_version", 12090},
                       {"cuda_driver_version", 12090},
                       {"timestamp", "2025-10-09 08:53:20"},
                       {"communicators_count", 3},
                       {"communicators", communicators},
                       {"ras", {{"collection_time_sec", 0.01}, {"timeouts_count", 0}}}};
  std::string text = report.dump(2);
  // NCCL 2.28.9 forgets the comma before the status of a missing rank.
  const size_t dead = text.find("\"considered_dead\"");
  if (dead != text.npos) text.erase(text.rfind(',', text.rfind("\"status\"", dead)), 1);
  return text;
}

std::map<std::string, std::string> MadeUpJob::Plogs() const {
  std::map<std::string, std::string> files;
  const auto group_name = [](int group) {
    return fmt::format("10.0.0.1%eth0_60000_{}_1760000000", group);
  };
  for (int rank = 0; rank < ranks_; ++rank) {
    if (dead_ && rank == culprits_[0]) continue;
    const int process = 2000 + rank;
    std::string run;
    std::string debug;
    const auto say = [&](std::string& log, std::string_view level, int64_t time,
                         std::string_view text) {
      log += fmt::format("[{}] HCCL({},python):{} [op_base.cc:1] [{}]{}\n", level, process,
                         PlogTime(time), process, text);
    };
    for (const int group : {0, 1 + rank % 2}) {
      const std::vector<int> members = MembersOf(group);
      const auto place = std::find(members.begin(), members.end(), rank) - members.begin();
      say(run, "INFO", kBegin - kMilli,
          fmt::format("Entry-HcclCommInitRootInfoInner:ranks[{}], rank[{}], rootinfo: host "
                      "ip[10.0.0.1] port[60000] "
                      "nicDeploy[1] identifier[{}], deviceLogicId[{}]",
                      members.size(), place, group_name(group), rank % 8));
    }
    const std::vector<Call>& program = programs_[static_cast<size_t>(rank)];
    for (const Call& call : program) {
      if (call.done || call.queued) continue;
      const std::vector<int> members = MembersOf(call.group);
      const auto place = std::find(members.begin(), members.end(), rank) - members.begin();
      const int64_t time = kBegin + int64_t{1836} * 1'000'000'000 + rank * kMilli;
      constexpr std::string_view kWhat = "[TaskExecStage][Timeout][Host]Task run failed, ";
      say(debug, "ERROR", time,
          fmt::format("{}base information is streamID:[2], taskID[21], tag[{}_{}], AlgType(level "
                      "0-1-2):[fullmesh-ring-NHR].",
                      kWhat, call.kind, group_name(call.group)));
      say(debug, "ERROR", time,
          fmt::format("{}groupRank information is group:[{}], user define information[], "
                      "rankSize[{}], rankId[{}].",
                      kWhat, group_name(call.group), members.size(), place));
      say(debug, "ERROR", time,
          fmt::format("{}opData information is timeStamp:[{}], deviceId[{}], index[{}], count[{}], "
                      "reduceType[sum], "
                      "src[0x12c0c0013000], dst[0x12c0c0014000], dataType[float32].",
                      kWhat, PlogTime(call.called_ns), rank % 8, call.number - 1, call.count));
    }
    files[fmt::format("run/plog/plog-{}_20251009085320.log", process)] = run;
    if (!debug.empty())
      files[fmt::format("debug/plog/plog-{}_20251009085320.log", process)] = debug;
  }
  return files;
}

}  // namespace npumesh::testing
