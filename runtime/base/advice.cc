#include "runtime/base/advice.h"

#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>

#include "runtime/base/log.h"

namespace npumesh {
namespace {

// A command is one to a process, and so is its standard error.
struct Printer {
  std::mutex mutex;
  AdvicePrinter print;
  std::unordered_set<std::string> said;

  static Printer& OfProcess() {
    static Printer printer;
    return printer;
  }
};

// A text that the level hides counts as not said.
bool PrintOnce(std::string_view text) {
  Printer& printer = Printer::OfProcess();
  const std::lock_guard lock(printer.mutex);
  if (!printer.print) return false;
  if (printer.said.contains(std::string(text))) return true;
  if (!printer.print(text)) return false;
  printer.said.emplace(text);
  return true;
}

}  // namespace

void Advise(std::string_view text) {
  if (!PrintOnce(text)) NPUMESH_WARNING_ONCE("{}", text);
}

void SetAdvicePrinter(AdvicePrinter printer) {
  Printer& process = Printer::OfProcess();
  const std::lock_guard lock(process.mutex);
  process.print = std::move(printer);
  process.said.clear();
}

}  // namespace npumesh
