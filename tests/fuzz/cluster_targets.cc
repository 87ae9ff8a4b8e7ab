#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "collectives/algorithms/selection.h"
#include "graph/export/package_layout.h"
#include "graph/session/group_table.h"
#include "launch/validate/config_check.h"
#include "runtime/base/text/printable.h"
#include "runtime/world/topology.h"
#include "tests/fuzz/targets.h"

namespace npumesh::fuzz {
namespace {

// A folder with both configs, removed with this object.
class ConfigFolder {
 public:
  ConfigFolder() {
    std::error_code ignored;
    const bool memory = std::filesystem::is_directory("/dev/shm", ignored);
    std::string pattern = memory ? "/dev/shm/npumesh_fuzz_XXXXXX" : "/tmp/npumesh_fuzz_XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~ConfigFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ConfigFolder(const ConfigFolder&) = delete;
  ConfigFolder& operator=(const ConfigFolder&) = delete;

  const std::string& path() const { return path_; }
  bool Put(std::string_view name, std::string_view text) const {
    const std::string path = path_ + "/" + std::string(name);
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool put =
        fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (fd >= 0) close(fd);
    return put;
  }

 private:
  std::string path_;
};

}  // namespace

std::string CheckPackageConfigs(std::string_view texts) {
  static const ConfigFolder folder;
  const size_t middle = std::min(texts.find('\0'), texts.size());
  const std::string_view numa = texts.substr(std::min(middle + 1, texts.size()));
  if (!folder.Put(kRelationConfigName, texts.substr(0, middle)) ||
      !folder.Put(kNumaConfigName, numa)) {
    return "no room for the files";
  }
  const PackageFiles files{
      folder.path(),
      {"m0.air", "m1.air"},
      true,
      {"m0.air", "m1.air", std::string(kRelationConfigName), std::string(kNumaConfigName)}};
  Findings findings;
  CheckConfigs(files, true, &findings);
  const Result<GroupTable> groups = ReadGroupTable(folder.path());
  if (!groups.ok()) return FlawOf(groups.status());
  for (const auto& [name, ranks] : *groups) {
    if (ranks.empty()) return "a group without ranks";
  }
  CheckGroups(files, *groups, *groups, &findings);
  return "";
}

std::string CheckAlgorithms(std::string_view text) {
  const Result<Selection> selection = Selection::Parse(text, "HCCL_ALGO");
  if (!selection.ok()) return FlawOf(selection.status());
  const Result<Selection> again = Selection::Parse(text, "HCCL_ALGO");
  if (!again.ok()) return "is refused the second time";
  for (uint32_t kind = 0; kind <= static_cast<uint32_t>(CollectiveKind::kSendRecv); ++kind) {
    for (const bool several : {false, true}) {
      const auto which = static_cast<CollectiveKind>(kind);
      if (selection->RowFor(which, several) != again->RowFor(which, several)) {
        return "chooses otherwise the second time";
      }
    }
  }
  return "";
}

std::string CheckTopology(std::string_view text) {
  const Result<Topology> topology = Topology::FromSynthetic(std::string(text));
  if (!topology.ok()) return FlawOf(topology.status());
  if (topology->numa_nodes().empty() || topology->cpu_count() < 1) return "no processors";
  for (const int ranks : {1, 3, 8}) {
    for (int rank = 0; rank < ranks; ++rank) {
      if (topology->Place(rank, ranks).cpus.empty()) return "a rank without a processor";
    }
  }
  return "";
}

}  // namespace npumesh::fuzz
