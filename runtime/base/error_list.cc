#include "runtime/base/error_list.h"

#include <string>

namespace npumesh {

Status ErrorList::Join(std::string_view title) const {
  if (errors_.empty()) return Status();
  if (errors_.size() == 1) return errors_[0];
  Code code = errors_[0].code();
  std::string text = fmt::format("{}: {} errors:", title, errors_.size());
  for (const Status& error : errors_) {
    if (error.code() == Code::kUnsupported) code = Code::kUnsupported;
    text += fmt::format("\n  {}", error.message());
  }
  return Error(code, "{}", text);
}

}  // namespace npumesh
