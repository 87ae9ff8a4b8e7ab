#include "launch/record/foreign/job_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "launch/record/foreign/foreign_call.h"
#include "launch/record/foreign/lines.h"
#include "launch/record/foreign/plog.h"
#include "launch/record/foreign/ras_report.h"
#include "launch/record/foreign/torch_record.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/plain_pickle.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr uint64_t kMostFileBytes = uint64_t{1} << 30;
constexpr size_t kMostFiles = 1 << 16;
constexpr int kMostFolders = 8;

// The number that ends a file's name, before ".json" and the like.
std::optional<int> RankOfName(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const std::string_view ending : {".json", ".pickle", ".pkl", ".bin", ".txt", ".trace"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  const auto rank = NumberIn(std::string_view(name).substr(digits), kMostForeignRanks - 1);
  if (!rank) return std::nullopt;
  return static_cast<int>(*rank);
}

// Regular files below a folder, in order of their names.
Result<std::vector<std::string>> FilesBelow(const std::string& path) {
  std::error_code failed;
  if (std::filesystem::is_regular_file(path, failed)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (auto it = std::filesystem::recursive_directory_iterator(path, failed);
       !failed && it != std::filesystem::recursive_directory_iterator(); it.increment(failed)) {
    if (it.depth() >= kMostFolders) it.disable_recursion_pending();
    std::error_code error;
    if (it->is_symlink(error) || !it->is_regular_file(error)) continue;
    files.push_back(it->path().string());
    if (files.size() > kMostFiles) {
      return Error(Code::kInvalidArgument, "{} has more than {} files; name the folder of one job",
                   path, kMostFiles);
    }
  }
  if (failed) return Error(Code::kNotFound, "cannot read folder {}: {}", path, failed.message());
  std::sort(files.begin(), files.end());
  return files;
}

// Takes file after file; short-lived.
class Collector {
 public:
  explicit Collector(const std::string& path) : path_(path) {}

  Status Read(const std::string& file) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file, kMostFileBytes));
    if (LooksLikePickle(bytes)) {
      NPUMESH_ASSIGN_OR_RETURN(const json dump, ReadPlainPickle(bytes, file));
      return ReadTorch(dump, file);
    }
    const size_t first = bytes.find_first_not_of(" \t\r\n");
    if (first != bytes.npos && bytes[first] == '{') {
      const json object = ParseRasJson(bytes);
      if (LooksLikeRasJson(object)) return ReadRas(ReadRasJson(object, file), file);
      if (LooksLikeTorchRecord(object)) return ReadTorch(object, file);
      if (object.is_object() && object.contains("ray_train_dump_error")) return Status();
      if (object.is_discarded() && bytes.find("\"pg_config\"") != bytes.npos) {
        return Error(Code::kCorrupt, "{} is no whole JSON; was it copied whole?", file);
      }
    }
    if (LooksLikeRasText(bytes)) return ReadRas(ReadRasText(bytes, file), file);
    if (LooksLikePlog(bytes)) {
      plog_.Read(bytes, file);
      has_plog_ = true;
    }
    return Status();
  }

  // What was found, the most detailed first.
  std::vector<std::pair<std::string, std::vector<RankRecord>>> Found() {
    std::vector<std::pair<std::string, std::vector<RankRecord>>> found;
    if (!torch_.empty()) {
      std::vector<RankRecord> records;
      for (auto& [rank, record] : torch_) records.push_back(std::move(record));
      AlignTorchRecords(records);
      found.emplace_back("flight records of torch", std::move(records));
    }
    if (!reports_.empty()) {
      // A text has no time; it is what was asked for last.
      std::stable_sort(reports_.begin(), reports_.end(), [](const auto& a, const auto& b) {
        return std::make_pair(a.report.time.empty(), a.report.time) <
               std::make_pair(b.report.time.empty(), b.report.time);
      });
      const Report& last = reports_.back();
      const RasReport* const earlier =
          reports_.size() < 2 ? nullptr : &reports_[reports_.size() - 2].report;
      found.emplace_back("report of NCCL RAS", RasRecords(last.report, earlier, last.file));
    }
    if (has_plog_) found.emplace_back("logs of HCCL", PlogRecords(plog_.facts(), path_));
    std::erase_if(found, [](const auto& kind) { return kind.second.empty(); });
    return found;
  }

 private:
  struct Report {
    RasReport report;
    std::string file;
  };

  Status ReadTorch(const json& dump, const std::string& file) {
    if (!LooksLikeTorchRecord(dump)) return Status();  // a pickle of something else
    const std::optional<int> rank = RankOfName(file);
    if (!rank) {
      return Error(Code::kInvalidArgument,
                   "{} is a flight record of torch, but its name does not end with its rank", file);
    }
    NPUMESH_ASSIGN_OR_RETURN(RankRecord record, TorchRecord(dump, *rank, file));
    const auto [it, added] = torch_.try_emplace(*rank, std::move(record));
    if (added) return Status();
    return Error(Code::kInvalidArgument,
                 "{} and {} are both of rank {}; name the folder of one dump", it->second.path,
                 file, *rank);
  }

  Status ReadRas(Result<RasReport> report, const std::string& file) {
    NPUMESH_RETURN_IF_ERROR(report.status());
    reports_.push_back({std::move(*report), file});
    return Status();
  }

  const std::string& path_;
  std::map<int, RankRecord> torch_;
  std::vector<Report> reports_;
  PlogReader plog_;
  bool has_plog_ = false;
};

Result<Job> ReadForeignJob(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesBelow(path));
  Collector collector(path);
  for (const std::string& file : files) NPUMESH_RETURN_IF_ERROR(collector.Read(file));
  std::optional<Job> best;
  for (auto& [source, records] : collector.Found()) {
    Job job;
    job.source = source;
    job.records = std::move(records);
    NPUMESH_ASSIGN_OR_RETURN(job.joined, Join(job.records));
    const bool better =
        !best || (best->joined.blame.ranks.empty() && !job.joined.blame.ranks.empty());
    if (better) best = std::move(job);
  }
  if (best) return std::move(*best);
  return Error(
      Code::kNotFound,
      "{} has no flight records of npumesh (rank_<R>.npr: start the ranks with "
      "NPUMESH_RECORD set to a folder) or of torch, no report of ncclras and no log of HCCL",
      path);
}

}  // namespace

Result<Job> ReadJob(const std::string& path) {
  std::error_code failed;
  bool has_own = false;
  for (auto it = std::filesystem::directory_iterator(path, failed);
       !failed && it != std::filesystem::directory_iterator(); it.increment(failed)) {
    has_own = has_own || it->path().extension() == ".npr";
  }
  if (!has_own) return ReadForeignJob(path);
  Job job;
  NPUMESH_ASSIGN_OR_RETURN(job.records, ReadRecords(path));
  NPUMESH_ASSIGN_OR_RETURN(job.note, ReadLaunchNote(path));
  NPUMESH_ASSIGN_OR_RETURN(job.joined, Join(job.records, job.note));
  return job;
}

}  // namespace npumesh
