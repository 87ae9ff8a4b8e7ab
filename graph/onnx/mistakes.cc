#include "graph/onnx/mistakes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>

namespace npumesh {

Status Unsaid() {
  return Error(Code::kUnsupported, "{}", "");
}

bool IsUnsaid(const Status& status) {
  return !status.ok() && status.message().empty();
}

Status OneOf(const std::vector<Status>& mistakes) {
  std::vector<Status> said;
  std::ranges::copy_if(mistakes, std::back_inserter(said),
                       [](const Status& mistake) { return !IsUnsaid(mistake); });
  if (said.empty()) return mistakes.empty() ? Status() : mistakes[0];
  if (said.size() == 1) return said[0];
  constexpr size_t kMostTexts = 20;
  std::vector<std::string_view> texts;
  for (size_t i = 0; i < std::min(said.size(), kMostTexts); ++i) texts.push_back(said[i].message());
  const std::string rest =
      said.size() > kMostTexts ? fmt::format("; and {} more", said.size() - kMostTexts) : "";
  return Error(said[0].code(), "{} mistakes: {}{}", said.size(), fmt::join(texts, "; "), rest);
}

}  // namespace npumesh
