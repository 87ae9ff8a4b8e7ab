#include "runtime/acl/process/leaks.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "runtime/acl/process/errors.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

constexpr size_t kTold = 5;

std::atomic<bool> guard_on{false};

}  // namespace

void Origin::SetGuard(bool on) {
  guard_on = on;
}

bool Origin::guard() {
  return guard_on.load(std::memory_order_relaxed);
}

// The first frame that is in another file than this function, behind those that are in its file: in
// front of them may stand a sanitizer's.
Origin Origin::Search() {
  std::array<void*, 32> frames{};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&TellLeaks), &here);
  Origin origin;
  bool inside = false;
  for (int i = 0; i < count; ++i) {
    Dl_info about{};
    const bool known = dladdr(frames[static_cast<size_t>(i)], &about) != 0;
    const bool ours =
        known && here.dli_fname != nullptr && std::strcmp(about.dli_fname, here.dli_fname) == 0;
    inside = inside || ours;
    if (ours || !inside) continue;
    origin.address_ = frames[static_cast<size_t>(i)];
    break;
  }
  return origin;
}

std::string Origin::Text() const {
  Dl_info about{};
  if (address_ == nullptr || dladdr(address_, &about) == 0) return "";
  const std::string_view path = about.dli_fname;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  const auto offset = static_cast<const char*>(address_) - static_cast<char*>(about.dli_fbase);
  const std::string place = fmt::format("{}+{:#x}", file, offset);
  return about.dli_sname == nullptr ? place : fmt::format("{} ({})", about.dli_sname, place);
}

void TellLeaks(std::string_view function, std::string_view kind, const std::vector<Leak>& leaks) {
  if (leaks.empty()) return;
  std::string text = fmt::format("{}: {} {} were not destroyed: ", function, leaks.size(), kind);
  for (size_t i = 0; i < std::min(leaks.size(), kTold); ++i) {
    const std::string made = leaks[i].made.Text();
    text += fmt::format("{}{}{}", i == 0 ? "" : ", ", leaks[i].what,
                        made.empty() ? "" : ", made in " + made);
  }
  if (leaks.size() > kTold) text += fmt::format(", and {} more", leaks.size() - kTold);
  NPUMESH_ERROR("{}", text);
  RecordRecentError(std::move(text));
}

}  // namespace npumesh
