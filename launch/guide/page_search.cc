#include "launch/guide/page_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

constexpr int kOfHeading = 10;  // what a word there counts
constexpr int kOfTitle = 4;
constexpr int kMostOfText = 5;
constexpr int kOfOneLine = 8;     // that has all of several words
constexpr size_t kExcerpt = 240;  // bytes

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

int CountOf(std::string_view text, std::string_view word) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

// 1 to 6 of "## Heading"; 0 of another line.
int LevelOf(std::string_view line) {
  const size_t marks = line.find_first_not_of('#');
  const bool heading = marks != std::string_view::npos && marks >= 1 && marks <= 6;
  return heading && line[marks] == ' ' ? static_cast<int>(marks) : 0;
}

// "[text](link)" becomes "text".
std::string WithoutLinks(std::string_view line) {
  std::string text;
  size_t at = 0;
  while (at < line.size()) {
    const size_t open = line.find('[', at);
    const size_t middle = open == std::string_view::npos ? open : line.find("](", open);
    const size_t close = middle == std::string_view::npos ? middle : line.find(')', middle);
    if (close == std::string_view::npos) break;
    text += line.substr(at, open - at);
    text += line.substr(open + 1, middle - open - 1);
    at = close + 1;
  }
  return text + std::string(line.substr(at));
}

// A line as people read it: cells of a table stand beside each other.
std::string Plain(std::string_view line) {
  std::string_view text = Trimmed(line);
  if (text.starts_with("| ") && text.ends_with(" |")) text = text.substr(2, text.size() - 4);
  std::string plain = WithoutLinks(text);
  std::erase(plain, '`');
  size_t marks = plain.find("**");
  for (; marks != std::string::npos; marks = plain.find("**")) plain.erase(marks, 2);
  if (plain.size() <= kExcerpt) return plain;
  size_t end = plain.rfind(' ', kExcerpt);
  if (end == std::string::npos) {
    end = kExcerpt;
    while (end > 0 && (static_cast<unsigned char>(plain[end]) & 0xC0) == 0x80) --end;
  }
  return plain.substr(0, end) + " ...";
}

bool IsFrame(std::string_view line) {  // of a table or of a block of code, or a mark for tests
  return line.starts_with("```") || line.starts_with("|---") || line.starts_with("<!--");
}

int WordsIn(std::string_view line, const std::vector<std::string>& words) {
  const std::string lower = LowerCase(line);
  return static_cast<int>(std::count_if(words.begin(), words.end(), [&](const std::string& word) {
    return CountOf(lower, word) > 0;
  }));
}

std::string Excerpt(const PageSection& section, const std::vector<std::string>& words) {
  const std::string* best = nullptr;
  int most = 0;
  bool code = false;
  for (const std::string& line : section.lines) {
    if (line.starts_with("```")) code = !code;
    if (IsFrame(line) || line.empty()) continue;
    const int found = 2 * WordsIn(line, words) + (code ? 0 : 1);  // code says less
    if (found > most) {
      most = found;
      best = &line;
    }
  }
  return best == nullptr ? "" : Plain(*best);
}

// 0: a word is missing.
int ScoreOf(const PageSection& section, const std::vector<std::string>& words) {
  const std::string title = LowerCase(section.title);
  const std::string heading = LowerCase(section.heading);
  int score = 0;
  for (const std::string& word : words) {
    int count = 0;
    for (const std::string& line : section.lines) {
      if (!IsFrame(line)) count += CountOf(LowerCase(line), word);
    }
    const int in_heading = CountOf(heading, word) > 0 ? kOfHeading : 0;
    const int in_title = CountOf(title, word) > 0 ? kOfTitle : 0;
    if (count + in_heading + in_title == 0) return 0;
    score += in_heading + in_title + std::min(count, kMostOfText);
  }
  const int all = static_cast<int>(words.size());
  const bool together = std::any_of(section.lines.begin(), section.lines.end(),
                                    [&](const auto& line) { return WordsIn(line, words) == all; });
  return score + (all > 1 && together ? kOfOneLine : 0);
}

}  // namespace

std::vector<PageSection> SectionsOf(std::string_view page, std::string_view markdown) {
  std::vector<PageSection> sections;
  std::string title;
  int number = 0;
  bool code = false;
  for (const std::string_view line : Split(markdown, "\n")) {
    ++number;
    if (Trimmed(line).starts_with("```")) code = !code;
    const int level = code ? 0 : LevelOf(line);
    if (level == 1) title = line.substr(2);
    if (level > 0) {
      const std::string_view heading = line.substr(static_cast<size_t>(level) + 1);
      sections.push_back({std::string(page), title, std::string(heading), number, {}});
    } else if (!sections.empty()) {
      sections.back().lines.emplace_back(line);
    }
  }
  return sections;
}

Result<std::vector<PageSection>> ReadPages(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const char* name : {"README.md", "README.zh.md"}) {
    if (std::filesystem::exists(folder + "/" + name, error)) names.emplace_back(name);
  }
  const std::string docs = folder + "/docs";
  std::filesystem::recursive_directory_iterator each(docs, error);
  for (; !error && each != std::filesystem::recursive_directory_iterator(); each.increment(error)) {
    const std::string below = each->path().string().substr(folder.size() + 1);
    if (below.ends_with(".md")) names.push_back(below);
  }
  if (error) return Error(Code::kNotFound, "{}: {}", docs, error.message());
  std::sort(names.begin(), names.end());
  std::vector<PageSection> sections;
  for (const std::string& name : names) {
    std::ifstream file(folder + "/" + name, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file) return Error(Code::kIo, "{}/{} cannot be read", folder, name);
    for (PageSection& section : SectionsOf(name, text)) sections.push_back(std::move(section));
  }
  return sections;
}

std::vector<PageHit> SearchPages(const std::vector<PageSection>& sections,
                                 const std::vector<std::string>& words) {
  std::vector<std::string> wanted;
  bool chinese = false;
  for (const std::string& word : words) {
    if (Trimmed(word).empty()) continue;
    wanted.push_back(LowerCase(Trimmed(word)));
    chinese = chinese || !IsAscii(word);
  }
  if (wanted.empty()) return {};
  std::vector<std::pair<int, PageHit>> found;
  for (const PageSection& section : sections) {
    const bool of_chinese =
        section.page.starts_with("docs/zh/") || section.page.ends_with(".zh.md");
    if (of_chinese != chinese) continue;
    const int score = ScoreOf(section, wanted);
    if (score > 0) found.push_back({score, {&section, Excerpt(section, wanted)}});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<PageHit> hits;
  for (auto& [score, hit] : found) hits.push_back(std::move(hit));
  return hits;
}

std::string HitsAsText(const std::vector<PageHit>& hits, size_t most) {
  std::string text;
  for (size_t at = 0; at < std::min(most, hits.size()); ++at) {
    const PageSection& section = *hits[at].section;
    const bool below = section.heading != section.title;
    text += fmt::format("{}:{}  {}{}{}\n", section.page, section.line, section.title,
                        below ? ": " : "", below ? section.heading : "");
    if (!hits[at].excerpt.empty()) text += fmt::format("    {}\n", hits[at].excerpt);
  }
  if (hits.size() > most) text += fmt::format("{} more\n", hits.size() - most);
  return text;
}

}  // namespace npumesh
