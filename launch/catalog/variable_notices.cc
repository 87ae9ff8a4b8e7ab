#include "launch/catalog/variable_notices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "launch/catalog/environment.h"
#include "runtime/base/env/ascend_env.h"
#include "runtime/base/env/hccl_env.h"
#include "runtime/base/text/nearest_name.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

// Names that commands and libraries read.
std::vector<std::string_view> KnownNames() {
  std::vector<std::string_view> names;
  for (const EnvVariable& variable : AllVariables()) names.push_back(variable.name);
  for (const EnvVariable& variable : HcclEnvTable()) names.push_back(variable.name);
  for (const EnvVariable& variable : AscendEnvTable()) names.push_back(variable.name);
  return names;
}

bool HasNoEffect(std::string_view name) {
  const auto table = AscendEnvTable();
  return std::any_of(table.begin(), table.end(), [&](const EnvVariable& variable) {
    return variable.name == name && variable.meaning.starts_with("Without effect");
  });
}

std::string Nearest(std::string_view name, const std::vector<std::string_view>& known) {
  const std::vector<std::string> near = NearestNames(name, known, 1);
  return near.empty() ? "" : near[0];
}

// All but two characters are the same. The vendor's installation sets names that npumesh need not
// know and that are not far from those it reads (ASCEND_HOME_PATH, ASCEND_WORK_PATH).
bool NearlySame(std::string_view name, std::string_view other) {
  const size_t longest = std::max(name.size(), other.size());
  const size_t shortest = std::min(name.size(), other.size());
  size_t head = 0;
  while (head < shortest && name[head] == other[head]) ++head;
  size_t tail = 0;
  while (tail < shortest - head && name[name.size() - 1 - tail] == other[other.size() - 1 - tail]) {
    ++tail;
  }
  return head + tail + 2 >= longest;
}

// Empty: nothing is to be said.
std::string UnknownNotice(const std::string& name, const std::vector<std::string_view>& known) {
  const bool hccl = name.starts_with("HCCL_");
  const bool ours = name.starts_with("NPUMESH_") && !name.starts_with("NPUMESH_TEST_");
  if (!ours && !hccl && !name.starts_with("ASCEND_") && !name.starts_with("TNG_")) return "";
  if (std::find(known.begin(), known.end(), name) != known.end()) return "";
  const std::string near = Nearest(name, known);
  const std::string shown = Printable(name);
  if (!near.empty() && (hccl || NearlySame(name, near))) {
    return fmt::format("{} is set, which npumesh does not know; did you mean {}?", shown, near);
  }
  if (!hccl) return "";
  return fmt::format(
      "{} is set, which npumesh does not know; npumesh env lists those that it reads", shown);
}

std::vector<std::string> SetNames() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

}  // namespace

std::vector<std::string> VariableNotices(const std::vector<std::string>& set) {
  const std::vector<std::string_view> known = KnownNames();
  std::vector<std::string> notices;
  std::set<std::string> idle;
  for (const std::string& name : set) {
    if (HasNoEffect(name)) idle.insert(name);
    std::string notice = UnknownNotice(name, known);
    if (!notice.empty()) notices.push_back(std::move(notice));
  }
  std::sort(notices.begin(), notices.end());
  if (!idle.empty()) {
    notices.push_back(
        fmt::format("{} without effect here; npumesh env --markdown says why",
                    fmt::format("{} {}", fmt::join(idle, ", "), idle.size() == 1 ? "is" : "are")));
  }
  return notices;
}

std::vector<std::string> VariableNotices() {
  return VariableNotices(SetNames());
}

}  // namespace npumesh
