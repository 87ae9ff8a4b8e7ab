// Search in the pages of docs/, which are installed with the command: `npumesh help WORD`.
//
// Thread-safety: values; free functions without state.
#ifndef NPUMESH_LAUNCH_GUIDE_PAGE_SEARCH_H_
#define NPUMESH_LAUNCH_GUIDE_PAGE_SEARCH_H_

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// What stands below one heading of a page.
struct PageSection {
  std::string page;   // "docs/compare.md"
  std::string title;  // of the page
  std::string heading;
  int line = 0;  // of the heading, from 1 on
  std::vector<std::string> lines;
};

// Sections of one page of Markdown. Lines of code blocks are text, also those that begin with #.
std::vector<PageSection> SectionsOf(std::string_view page, std::string_view markdown);

// Sections of README*.md and of all pages below docs/ in `folder`, page by page in alphabetic
// order. Errors: a folder or file that cannot be read.
Result<std::vector<PageSection>> ReadPages(const std::string& folder);

struct PageHit {
  const PageSection* section = nullptr;  // of those that were searched
  std::string excerpt;  // the line that says most, without links and marks of tables
};

// The sections that have all words, wherever in page title, heading or text; best first: words in
// headings count more than words in text. Case does not count. Pages in Chinese (docs/zh,
// README.zh.md) are searched by words beyond ASCII alone.
std::vector<PageHit> SearchPages(const std::vector<PageSection>& sections,
                                 const std::vector<std::string>& words);

// The first `most` hits with their excerpts, and how many there are besides.
std::string HitsAsText(const std::vector<PageHit>& hits, size_t most);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_GUIDE_PAGE_SEARCH_H_
