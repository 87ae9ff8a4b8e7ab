// Findings: what a check of a package has to say. Subjects are files, relative to the package;
// warnings are for what works, perhaps not as it is meant; texts name the field or node, expected
// and seen.
#ifndef NPUMESH_LAUNCH_VALIDATE_FINDINGS_H_
#define NPUMESH_LAUNCH_VALIDATE_FINDINGS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "launch/report/finding.h"
#include "runtime/card/findings.h"

namespace npumesh {

// Findings in the order in which they were made.
class Findings {
 public:
  void Error(std::string file, std::string text) {
    all_.push_back({std::move(file), Severity::kError, std::move(text), ""});
  }
  void Warning(std::string file, std::string text) {
    all_.push_back({std::move(file), Severity::kWarning, std::move(text), ""});
  }
  // Of a node in `file`.
  void OnCard(std::string file, CardFinding finding, const Card& card) {
    const bool fails = finding.refused() && card.fails;
    all_.push_back({std::move(file), fails ? Severity::kError : Severity::kWarning,
                    TextOf(finding, *card.chip), ""});
    on_card_.emplace(all_.size() - 1, std::move(finding));
  }
  // By position in `all`: what a card says.
  const std::map<size_t, CardFinding>& on_card() const { return on_card_; }
  const std::vector<Finding>& all() const { return all_; }
  size_t errors() const { return Count(Severity::kError); }
  size_t warnings() const { return Count(Severity::kWarning); }

 private:
  size_t Count(Severity severity) const {
    size_t count = 0;
    for (const Finding& finding : all_) count += finding.severity == severity ? 1 : 0;
    return count;
  }

  std::vector<Finding> all_;
  std::map<size_t, CardFinding> on_card_;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VALIDATE_FINDINGS_H_
