#include "runtime/card/findings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using nlohmann::json;

// Adds a line to the file of NPUMESH_CARD_REPORT, in one piece: other ranks may write there, too.
// A file that cannot be written was an error of Card::FromProcess.
void AddToReport(const CardFinding& finding, std::string_view chip, std::string_view text,
                 bool fails) {
  const char* const path = std::getenv(kCardReport);
  if (path == nullptr || *path == 0) return;
  const auto or_null = [](bool known, json value) { return known ? std::move(value) : json(); };
  const json line = {{"severity", fails ? "error" : "warning"},
                     {"text", text},
                     {"chip", chip},
                     {"rank", or_null(LogRank() >= 0, LogRank())},
                     {"rule", finding.rule},
                     {"where", finding.where},
                     {"operator", or_null(!finding.node.empty(), finding.node)},
                     {"code", or_null(finding.refused(), finding.code)},
                     {"mend", or_null(!finding.mend.empty(), finding.mend)},
                     {"source", finding.source}};
  const std::string bytes = line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return;
  static_cast<void>(!write(file, bytes.data(), bytes.size()));
  close(file);
}

}  // namespace

std::string TextOf(const CardFinding& finding, const Chip& chip) {
  std::string text = fmt::format("{} {} {}: {}", chip.name,
                                 finding.refused() ? "refuses" : "computes something else for",
                                 finding.where, finding.text);
  if (finding.refused()) text += fmt::format("; error code {}", finding.code);
  if (!finding.mend.empty()) text += "; " + finding.mend;
  return text + fmt::format(" (rule {}; {})", finding.rule, finding.source);
}

Status CardFindings::Add(CardFinding finding) {
  const std::string text = TextOf(finding, *card_.chip);
  const bool refused = finding.refused();
  bool fresh = false;
  {
    const std::lock_guard lock(mutex_);
    fresh = std::none_of(all_.begin(), all_.end(), [&](const CardFinding& known) {
      return known.rule == finding.rule && known.where == finding.where;
    });
    if (fresh) all_.push_back(finding);
  }
  const bool fails = refused && card_.fails;
  if (fresh) AddToReport(finding, card_.chip->name, text, fails);
  if (fresh && says_ && !fails) WriteLog(LogLevel::kWarning, {__FILE__, __LINE__}, text);
  return fails ? Error(Code::kInvalidArgument, "{}", text) : Status();
}

std::vector<CardFinding> CardFindings::all() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

}  // namespace npumesh
