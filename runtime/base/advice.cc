#include "runtime/base/advice.h"

#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>

#include "runtime/base/log.h"

namespace npumesh {
namespace {

// A command is one to a process, and so is its standard error.
struct AdviceOutlet {
  std::mutex mutex;
  AdvicePrinter print;
  std::unordered_set<std::string> said;

  static AdviceOutlet& OfProcess() {
    static AdviceOutlet* const outlet = new AdviceOutlet;
    return *outlet;
  }
};

// A text suppressed by the level does not count as shown.
bool PrintOnce(std::string_view text) {
  AdviceOutlet& outlet = AdviceOutlet::OfProcess();
  const std::lock_guard lock(outlet.mutex);
  if (!outlet.print) return false;
  if (outlet.said.contains(std::string(text))) return true;
  if (!outlet.print(text)) return false;
  outlet.said.emplace(text);
  return true;
}

}  // namespace

void Advise(std::string_view text) {
  if (!PrintOnce(text)) NPUMESH_WARNING_ONCE("{}", text);
}

void SetAdvicePrinter(AdvicePrinter printer) {
  AdviceOutlet& outlet = AdviceOutlet::OfProcess();
  const std::lock_guard lock(outlet.mutex);
  outlet.print = std::move(printer);
  outlet.said.clear();
}

}  // namespace npumesh
