#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/layering/layering.h"
#include "tests/layering/texts.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

struct Link {
  std::string page;  // that has it, relative to the root
  int line = 0;
  std::string target;  // as written: a path, "#" and a heading, or both
};

// The name that a heading has in links: lower case, blanks as hyphens, no other punctuation. A link
// in the heading counts as its words.
std::string AnchorOf(const std::string& heading) {
  static const std::regex link(R"re(\[([^\]]*)\]\([^)]*\))re");
  std::string anchor;
  for (const char c : std::regex_replace(heading, link, "$1")) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '_' || byte >= 0x80) {
      anchor += static_cast<char>(std::tolower(byte));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

// The headings and links of all pages below a root. A link that is broken between two lines is not
// seen.
class Pages {
 public:
  explicit Pages(const fs::path& root) {
    VisitTexts(root, [this](const TextLine& line) {
      if (line.in_block || !line.file.ends_with(".md")) return;
      if (const size_t marks = line.text.find_first_not_of('#');
          marks != std::string::npos && marks > 0 && line.text[marks] == ' ') {
        headings_[line.file].insert(AnchorOf(line.text.substr(marks + 1)));
      }
      TakeLinks(line);
    });
  }

  const std::vector<Link>& links() const { return links_; }
  bool HasHeading(const std::string& page, const std::string& anchor) const {
    const auto at = headings_.find(page);
    return at != headings_.end() && at->second.count(anchor) > 0;
  }

 private:
  void TakeLinks(const TextLine& line) {
    static const std::regex pattern(R"re(\]\(([^)\s]+)\))re");
    if (line.text.find("](") == std::string::npos) return;
    for (std::sregex_iterator at(line.text.begin(), line.text.end(), pattern), end; at != end;
         ++at) {
      const std::string target = (*at)[1].str();
      if (target.find("://") == std::string::npos)
        links_.push_back({line.file, line.number, target});
    }
  }

  std::map<std::string, std::set<std::string>> headings_;
  std::vector<Link> links_;
};

}  // namespace

std::vector<Violation> CheckLinks(const fs::path& root) {
  const Pages pages(root);
  std::vector<Violation> found;
  for (const Link& link : pages.links()) {
    const size_t mark = link.target.find('#');
    const std::string path = link.target.substr(0, mark);
    const std::string page =
        path.empty()
            ? link.page
            : (fs::path(link.page).parent_path() / path).lexically_normal().generic_string();
    if (!fs::exists(root / page)) {
      found.push_back({"link", link.page, link.line,
                       "leads to " + link.target + ", but there is no file " + page});
    } else if (mark != std::string::npos && page.ends_with(".md") &&
               !pages.HasHeading(page, link.target.substr(mark + 1))) {
      found.push_back({"link", link.page, link.line,
                       "leads to " + link.target + ", but " + page + " has no such heading"});
    }
  }
  return found;
}

}  // namespace npumesh
