#include "collectives/contract/window_wait.h"

namespace npumesh {

std::string WindowWait::Where() const {
  if (!what_.empty()) return what_;
  return fmt::format("{}, call {}", NameOf(request_->kind, request_->node), call_);
}

}  // namespace npumesh
