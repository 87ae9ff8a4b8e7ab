#include "runtime/msprof/vendor_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>

#include "runtime/base/files/folder_reader.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/log.h"
#include "runtime/msprof/communication_json.h"
#include "runtime/msprof/profile_text.h"
#include "runtime/msprof/report_file.h"
#include "runtime/msprof/timeline.h"
#include "runtime/msprof/vendor_info.h"
#include "runtime/msprof/vendor_names.h"
#include "runtime/msprof/vendor_rows.h"
#include "runtime/msprof/vendor_tables.h"
#include "runtime/profile/owner.h"

namespace npumesh {
namespace {

constexpr FileKind kReport = FileKind::kDebug;

// A folder on its way: filled under a name that begins with a dot, then renamed.
class StagedProfile {
 public:
  StagedProfile(const std::string& parent, const std::string& name, FileSystem& fs)
      : parent_(parent),
        target_(fmt::format("{}/{}", parent, name)),
        aside_(fmt::format("{}/.{}.tmp", parent, name)),
        fs_(fs) {}
  ~StagedProfile() {
    if (!kept_) Remove(published_ ? target_ : aside_);
  }
  StagedProfile(const StagedProfile&) = delete;
  StagedProfile& operator=(const StagedProfile&) = delete;

  const std::string& folder() const { return aside_; }

  // Makes the folder aside, without what a killed export has left in it.
  Status Begin() {
    if (std::error_code error; std::filesystem::exists(target_, error) || error) {
      return Error(Code::kInvalidArgument,
                   "{}: {}; remove it or export the profile into another folder", target_,
                   error ? error.message() : "it exists already");
    }
    NPUMESH_RETURN_IF_ERROR(MakeFolders(parent_, kReport, fs_));
    Remove(aside_);
    return MakeFolders(aside_, kReport, fs_);
  }

  // Gives the folder its name. It is removed again unless Keep is called.
  Status Publish() {
    NPUMESH_RETURN_IF_ERROR(fs_.Rename(aside_, target_));
    published_ = true;
    return Status();
  }
  void Keep() { kept_ = true; }

 private:
  static void Remove(const std::string& folder) {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    if (error) NPUMESH_WARNING("cannot remove {}: {}", folder, error.message());
  }

  const std::string parent_;
  const std::string target_;
  const std::string aside_;
  FileSystem& fs_;
  bool published_ = false;
  bool kept_ = false;
};

// `name` without characters that the vendor's readers refuse in paths.
std::string PathName(const std::string& name) {
  std::string clean = name.empty() ? "host" : name;
  for (char& each : clean) {
    const bool letter = (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z');
    const bool digit = each >= '0' && each <= '9';
    if (!letter && !digit && each != '.' && each != '-') each = '-';
  }
  return clean;
}

std::string MsprofOutput(const std::string& folder) {
  return folder + "/mindstudio_profiler_output";
}

std::string TorchOutput(const std::string& folder) {
  return folder + "/ASCEND_PROFILER_OUTPUT";
}

// All but the timeline.
Status WriteMsprofTexts(const VendorRows& rows, const std::string& folder, const std::string& stamp,
                        FileSystem& fs) {
  const std::string device = fmt::format("{}/device_{}", folder, rows.device);
  const std::string host = folder + "/host";
  const std::string output = MsprofOutput(folder);
  const std::string analyze = folder + "/analyze";
  for (const std::string& each : {device, host, output, analyze}) {
    NPUMESH_RETURN_IF_ERROR(MakeFolders(each, kReport, fs));
  }
  const nlohmann::json info = DeviceInfo(rows);
  NPUMESH_RETURN_IF_ERROR(WriteJson(fmt::format("{}/info.json.{}", device, rows.device), info, fs));
  NPUMESH_RETURN_IF_ERROR(WriteJson(host + "/info.json", info, fs));
  NPUMESH_RETURN_IF_ERROR(
      WriteJson(folder + "/profiler_metadata.json", ProfilerMetadata(rows), fs));
  NPUMESH_RETURN_IF_ERROR(WriteReport(output + "/README.txt", ReadMe(rows), fs));
  NPUMESH_RETURN_IF_ERROR(WriteMsprofTables(rows, output, stamp, fs));
  NPUMESH_RETURN_IF_ERROR(
      WriteJson(analyze + "/communication.json", MsprofCommunication(rows), fs));
  return WriteJson(analyze + "/communication_matrix.json", MsprofMatrix(rows), fs);
}

// All of it.
Status WriteMsprof(const VendorRows& rows, const std::string& folder, const std::string& stamp,
                   FileSystem& fs) {
  NPUMESH_RETURN_IF_ERROR(WriteMsprofTexts(rows, folder, stamp, fs));
  return WriteTimeline(rows, {fmt::format("{}/msprof_{}.json", MsprofOutput(folder), stamp)}, fs);
}

// All but the timeline.
Status WriteTorch(const VendorRows& rows, const std::string& folder, FileSystem& fs) {
  const std::string output = TorchOutput(folder);
  NPUMESH_RETURN_IF_ERROR(MakeFolders(output, kReport, fs));
  NPUMESH_RETURN_IF_ERROR(WriteJson(
      fmt::format("{}/profiler_info_{}.json", folder, rows.owner().rank), ProfilerInfo(rows), fs));
  NPUMESH_RETURN_IF_ERROR(
      WriteJson(folder + "/profiler_metadata.json", ProfilerMetadata(rows), fs));
  NPUMESH_RETURN_IF_ERROR(WriteTorchTables(rows, output, fs));
  NPUMESH_RETURN_IF_ERROR(WriteJson(output + "/communication.json", TorchCommunication(rows), fs));
  return WriteJson(output + "/communication_matrix.json", TorchMatrix(rows), fs);
}

// How far CLOCK_MONOTONIC_RAW is ahead of CLOCK_MONOTONIC on this host.
int64_t RawAhead() {
  timespec raw;
  timespec plain;
  clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
  clock_gettime(CLOCK_MONOTONIC, &plain);
  return (raw.tv_sec - plain.tv_sec) * 1'000'000'000 + (raw.tv_nsec - plain.tv_nsec);
}

constexpr std::string_view kData = "/host/data";

// The profile at `path` as raw data of the folder PROF_..: another name of the same file where the
// system allows it.
Status KeepProfile(const std::string& path, const std::string& folder, FileSystem& fs) {
  const std::string place = fmt::format("{}{}", folder, kData);
  NPUMESH_RETURN_IF_ERROR(MakeFolders(place, kReport, fs));
  const std::string kept = place + path.substr(path.rfind('/'));
  std::error_code error;
  std::filesystem::create_hard_link(path, kept, error);
  if (error) std::filesystem::copy_file(path, kept, error);
  return error ? Error(Code::kIo, "{}: {}", kept, error.message()) : Status();
}

// Entries of a folder, in order; empty when it cannot be read.
std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> paths;
  FolderReader reader(folder);
  while (const char* const name = reader.Next())
    paths.push_back(fmt::format("{}/{}", folder, name));
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The PROF_.. folders at or in `folder`.
std::vector<std::string> MsprofFoldersOf(const std::string& folder) {
  std::vector<std::string> found = {folder};
  for (const std::string& path : FilesIn(folder)) {
    if (std::filesystem::path(path).filename().string().starts_with("PROF_")) found.push_back(path);
  }
  return found;
}

// Makes the exports of the profile at `path` aside and puts them into the folder PROF_...
Status ExportAnew(const std::string& path, const std::string& folder) {
  FileSystem& fs = RealFileSystem();
  NPUMESH_ASSIGN_OR_RETURN(const RankProfile profile, ReadRankProfile(path));
  StagedProfile fresh(folder, "export", fs);
  NPUMESH_RETURN_IF_ERROR(fresh.Begin());
  NPUMESH_RETURN_IF_ERROR(
      WriteMsprof(VendorRowsOf(profile, {}), fresh.folder(), Stamp14(RealTime()), fs));
  for (const std::string_view part : {"/mindstudio_profiler_output", "/analyze"}) {
    const std::string place = fmt::format("{}{}", folder, part);
    std::error_code error;
    std::filesystem::remove_all(place, error);
    if (error) return Error(Code::kIo, "{}: {}", place, error.message());
    NPUMESH_RETURN_IF_ERROR(fs.Rename(fmt::format("{}{}", fresh.folder(), part), place));
  }
  return Status();
}

}  // namespace

std::vector<int> NodesOf(const std::vector<RankProfile>& profiles) {
  std::vector<int> nodes;
  for (const RankProfile& profile : profiles) {
    if (profile.owner.rank < 0) continue;
    const auto rank = static_cast<size_t>(profile.owner.rank);
    if (rank >= nodes.size()) nodes.resize(rank + 1, -1);
    nodes[rank] = profile.owner.node;
  }
  return nodes;
}

std::string MsprofFolderName(const ProfileOwner& owner) {
  constexpr uint64_t kLetters = 18;  // the vendor's go from A to R
  uint64_t hash = GroupHash(fmt::format("{} {} {}", owner.host, owner.boot_id, owner.rank));
  std::string letters;
  for (int i = 0; i < 8; ++i, hash /= kLetters) {
    letters += static_cast<char>('A' + hash % kLetters);
  }
  return fmt::format("PROF_000001_{}_{:08}{}", Stamp17(owner.start_realtime_ns), owner.process,
                     letters);
}

std::string TorchFolderName(const ProfileOwner& owner) {
  return fmt::format("{}_rank{}_{}_{}_ascend_pt", PathName(owner.host), owner.rank, owner.process,
                     Stamp17(owner.start_realtime_ns));
}

Status WriteVendorFiles(const RankProfile& profile, const VendorExport& how, FileSystem& fs) {
  const VendorRows rows = VendorRowsOf(profile, how.nodes);
  StagedProfile msprof(how.folder + "/msprof", MsprofFolderName(profile.owner), fs);
  StagedProfile torch(how.folder + "/torch", TorchFolderName(profile.owner), fs);
  NPUMESH_RETURN_IF_ERROR(msprof.Begin());
  NPUMESH_RETURN_IF_ERROR(torch.Begin());
  const std::string stamp = Stamp14(how.realtime_ns);
  NPUMESH_RETURN_IF_ERROR(WriteMsprofTexts(rows, msprof.folder(), stamp, fs));
  NPUMESH_RETURN_IF_ERROR(WriteTorch(rows, torch.folder(), fs));
  NPUMESH_RETURN_IF_ERROR(
      WriteTimeline(rows,
                    {fmt::format("{}/msprof_{}.json", MsprofOutput(msprof.folder()), stamp),
                     TorchOutput(torch.folder()) + "/trace_view.json"},
                    fs));
  NPUMESH_RETURN_IF_ERROR(msprof.Publish());
  NPUMESH_RETURN_IF_ERROR(torch.Publish());
  msprof.Keep();
  torch.Keep();
  return Status();
}

Status WriteVendorFiles(const std::vector<RankProfile>& profiles, const std::string& folder,
                        int64_t realtime_ns, FileSystem& fs) {
  const VendorExport how{folder, realtime_ns, NodesOf(profiles)};
  for (const RankProfile& profile : profiles) {
    NPUMESH_RETURN_IF_ERROR(
        WriteVendorFiles(profile, how, fs)
            .WithContext(fmt::format("vendor's files of rank {}", profile.owner.rank)));
  }
  return Status();
}

Status WriteVendorFilesBeside(const std::string& path, const std::vector<int>& nodes) {
  NPUMESH_ASSIGN_OR_RETURN(const RankProfile profile, ReadRankProfile(path));
  return WriteVendorFiles(profile, {path.substr(0, path.rfind('/')), RealTime(), nodes});
}

Status WriteMsprofFolderBeside(const std::string& path, const std::vector<int>& nodes) {
  FileSystem& fs = RealFileSystem();
  NPUMESH_ASSIGN_OR_RETURN(const RankProfile profile, ReadRankProfile(path));
  const VendorRows rows = VendorRowsOf(profile, nodes);
  const std::string folder = path.substr(0, path.rfind('/'));
  StagedProfile msprof(folder, MsprofFolderName(profile.owner), fs);
  NPUMESH_RETURN_IF_ERROR(msprof.Begin());
  NPUMESH_RETURN_IF_ERROR(WriteMsprof(rows, msprof.folder(), Stamp14(RealTime()), fs));
  NPUMESH_RETURN_IF_ERROR(
      WriteJson(msprof.folder() + "/host/start_info", StartInfo(rows, RawAhead()), fs));
  NPUMESH_RETURN_IF_ERROR(KeepProfile(path, msprof.folder(), fs));
  NPUMESH_RETURN_IF_ERROR(msprof.Publish());
  msprof.Keep();
  return Status();
}

Result<std::vector<std::string>> ExportMsprof(const std::string& folder) {
  std::vector<std::string> exported;
  for (const std::string& each : MsprofFoldersOf(folder)) {
    for (const std::string& path : FilesIn(fmt::format("{}{}", each, kData))) {
      NPUMESH_RETURN_IF_ERROR(ExportAnew(path, each).WithContext(each));
      exported.push_back(each);
    }
  }
  if (!exported.empty()) return exported;
  return Error(Code::kNotFound, "{} has no PROF_* folder with a profile of npumesh", folder);
}

}  // namespace npumesh
