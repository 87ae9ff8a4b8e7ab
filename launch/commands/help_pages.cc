#include "launch/commands/help_pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "launch/guide/page_search.h"

namespace npumesh {
namespace {

constexpr size_t kMostHits = 8;

// Where the pages are installed; in a build folder a link to the sources.
Result<std::string> PagesFolder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Error(Code::kIo, "/proc/self/exe: {}", error.message());
  const std::filesystem::path folder =
      self.parent_path().parent_path() / "share" / "doc" / "npumesh";
  if (std::filesystem::exists(folder / "docs", error)) return folder.string();
  return Error(Code::kNotFound, "the pages are not in {}; the package npumesh-doc has them",
               folder.string());
}

}  // namespace

Result<std::string> HelpOfPages(const std::vector<std::string>& words) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string folder, PagesFolder());
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<PageSection> sections, ReadPages(folder));
  const std::vector<PageHit> hits = SearchPages(sections, words);
  if (hits.empty()) {
    return Error(Code::kNotFound, "no page has \"{}\"", fmt::join(words, " "));
  }
  return fmt::format("{}the pages are in {}\n", HitsAsText(hits, kMostHits), folder);
}

}  // namespace npumesh
