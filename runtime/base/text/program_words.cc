#include "runtime/base/text/program_words.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace npumesh {

std::vector<char*> PointersTo(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> WithEnvironment(const std::vector<std::string>& more) {
  std::vector<std::string> all = more;
  const auto given = [&more](std::string_view name) {
    return std::any_of(more.begin(), more.end(), [&](const std::string& entry) {
      return std::string_view(entry).substr(0, entry.find('=')) == name;
    });
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!given(text.substr(0, text.find('=')))) all.emplace_back(text);
  }
  return all;
}

}  // namespace npumesh
