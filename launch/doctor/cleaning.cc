#include "launch/doctor/cleaning.h"

#include <fmt/format.h>

#include <filesystem>

#include "graph/export/work_folder.h"
#include "launch/mpirun/segment_folder.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

namespace stdfs = std::filesystem;

void Append(std::vector<std::string> more, std::vector<std::string>& all) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void CleanWorkFolders(const std::string& place, Cleaning& cleaning) {
  for (const Leftover& leftover : WorkFoldersIn(place)) {
    if (leftover.running) continue;
    if (leftover.interrupted) {
      cleaning.interrupted.push_back(leftover.folder.path);
      continue;
    }
    leftover.folder.Remove(RealFileSystem());
    cleaning.removed.push_back(leftover.folder.path);
  }
}

// Before the files: those of a work folder go with it, or stay with it.
void CleanWorkFoldersOf(const CleanedFolder& folder, Cleaning& cleaning) {
  CleanWorkFolders(folder.path, cleaning);
  if (folder.depth == LeftoverDepth::kFolder) return;
  std::vector<std::string> below;
  std::error_code error;
  const auto options = stdfs::directory_options::skip_permission_denied;
  for (stdfs::recursive_directory_iterator it(folder.path, options, error), end;
       !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && !it->is_symlink(ignored)) below.push_back(it->path().string());
  }
  for (const std::string& place : below) CleanWorkFolders(place, cleaning);
}

}  // namespace

Cleaning CleanUp(const std::vector<CleanedFolder>& folders) {
  Cleaning cleaning;
  for (const CleanedFolder& folder : folders) {
    CleanWorkFoldersOf(folder, cleaning);
    Append(RemoveLeftovers(folder.path, folder.depth), cleaning.removed);
  }
  Append(RemoveDeadFolders(SegmentBases()), cleaning.removed);
  Append(RemoveDeadSegments(SegmentBases().front()), cleaning.removed);
  return cleaning;
}

std::string ToText(const Cleaning& cleaning) {
  std::string text;
  for (const std::string& path : cleaning.removed) {
    text += fmt::format("removed {}\n", Printable(path));
  }
  for (const std::string& path : cleaning.interrupted) {
    text += fmt::format("left    {}: its package is half replaced; export into it again\n",
                        Printable(path));
  }
  const size_t removed = cleaning.removed.size();
  return text + fmt::format("{} leftover{} removed\n", removed, removed == 1 ? "" : "s");
}

}  // namespace npumesh
