#include "launch/mpirun/segment_folder.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

namespace stdfs = std::filesystem;

constexpr std::string_view kFolderPrefix = "npumesh-job.";
// A segment and its share of the folder.
uint64_t RoomOfRank(MpiLauncher launcher) {
  return uint64_t{launcher == MpiLauncher::kOpenMpi5 ? 17u : 5u} << 20;
}

bool HasRoom(const std::string& folder, uint64_t bytes) {
  struct statvfs info;
  if (statvfs(folder.c_str(), &info) != 0) return false;
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize >= bytes;
}

bool IsOwn(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && info.st_uid == geteuid();
}

// Entries of `folder` of this user whose names begin with `prefix`.
std::vector<std::string> OwnEntries(const std::string& folder, std::string_view prefix) {
  std::vector<std::string> entries;
  std::error_code error;
  for (stdfs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    if (it->path().filename().string().starts_with(prefix) && IsOwn(path)) entries.push_back(path);
  }
  return entries;
}

bool IsNumber(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Segments of this user's jobs on this host: <kind>_segment.<host>.<user>., where the host's name
// may stand without its domain.
std::vector<std::string> OwnSegments(const std::string& base) {
  char name[256] = {};
  std::vector<std::string> segments;
  if (gethostname(name, sizeof(name) - 1) != 0) return segments;
  const std::string_view host(name);
  for (const std::string_view kind : {"vader", "sm"}) {
    const std::string prefix = fmt::format("{}_segment.{}.", kind, host.substr(0, host.find('.')));
    for (std::string& path : OwnEntries(base, prefix)) segments.push_back(std::move(path));
  }
  return segments;
}

bool HasOpen(const stdfs::path& process, const std::string& path) {
  std::error_code error;
  for (stdfs::directory_iterator it(process / "fd", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unread;
    if (stdfs::read_symlink(it->path(), unread) == path) return true;
  }
  return false;
}

bool HasMapped(const stdfs::path& process, const std::string& path) {
  const Result<std::string> maps = ReadFile((process / "maps").string());
  return maps.ok() && maps->find(path + "\n") != maps->npos;
}

// Takes those out of `segments` that a process of this user uses. A process that maps a file opens
// it before and closes it afterwards, so open files are read first.
void LeaveUnused(std::vector<std::string>& segments) {
  for (const auto uses : {HasOpen, HasMapped}) {
    std::error_code error;
    for (stdfs::directory_iterator it("/proc", error), end; !error && it != end;
         it.increment(error)) {
      const stdfs::path& process = it->path();
      if (!IsNumber(process.filename().string()) || !IsOwn(process.string())) continue;
      std::erase_if(segments, [&](const std::string& path) { return uses(process, path); });
    }
  }
}

}  // namespace

std::unique_ptr<SegmentFolder> SegmentFolder::Make(const std::vector<std::string>& bases, int ranks,
                                                   MpiLauncher launcher) {
  const uint64_t bytes = static_cast<uint64_t>(ranks) * RoomOfRank(launcher);
  for (const std::string& base : bases) {
    if (!HasRoom(base, bytes)) continue;
    std::string path = fmt::format("{}/{}XXXXXX", base, kFolderPrefix);
    if (mkdtemp(path.data()) == nullptr) continue;
    std::unique_ptr<SegmentFolder> folder(new SegmentFolder(path));
    if (!folder->lock_.Take(path) || access(path.c_str(), F_OK) != 0) continue;
    folder->lock_.Inherit();
    return folder;
  }
  return nullptr;
}

SegmentFolder::~SegmentFolder() {
  std::error_code ignored;
  stdfs::remove_all(path_, ignored);
}

std::vector<std::string> SegmentBases() {
  std::vector<std::string> bases = {"/dev/shm"};
  const char* temporary = secure_getenv("TMPDIR");
  if (temporary != nullptr && temporary[0] == '/') bases.emplace_back(temporary);
  bases.emplace_back("/tmp");
  return bases;
}

std::vector<std::string> DeadFolders(const std::vector<std::string>& bases) {
  std::vector<std::string> dead;
  for (const std::string& base : std::set<std::string>(bases.begin(), bases.end())) {
    for (const std::string& path : OwnEntries(base, kFolderPrefix)) {
      PathLock lock;
      if (lock.Take(path)) dead.push_back(path);
    }
  }
  return dead;
}

std::vector<std::string> RemoveDeadFolders(const std::vector<std::string>& bases) {
  std::vector<std::string> removed;
  for (const std::string& path : DeadFolders(bases)) {
    PathLock lock;
    std::error_code error;
    if (!lock.Take(path)) continue;
    stdfs::remove_all(path, error);
    if (!error) removed.push_back(path);
  }
  return removed;
}

std::vector<std::string> DeadSegments(const std::string& base) {
  // The files before the processes: what comes later is not read.
  std::vector<std::string> segments = OwnSegments(base);
  if (!segments.empty()) LeaveUnused(segments);
  return segments;
}

std::vector<std::string> RemoveDeadSegments(const std::string& base) {
  std::vector<std::string> removed;
  for (const std::string& path : DeadSegments(base)) {
    if (unlink(path.c_str()) == 0) removed.push_back(path);
  }
  return removed;
}

}  // namespace npumesh
