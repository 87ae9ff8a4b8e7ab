// PackageFinding: one thing that a check of a package has to say.
#ifndef NPUMESH_LAUNCH_VALIDATE_FINDING_H_
#define NPUMESH_LAUNCH_VALIDATE_FINDING_H_

#include <string>
#include <utility>
#include <vector>

namespace npumesh {

struct PackageFinding {
  bool error = true;  // else a warning: the package works, perhaps not as it is meant
  std::string file;   // relative to the package
  std::string text;   // field or node, expected and seen
};

// Findings in the order in which they were made.
class Findings {
 public:
  void Error(std::string file, std::string text) {
    all_.push_back({true, std::move(file), std::move(text)});
  }
  void Warning(std::string file, std::string text) {
    all_.push_back({false, std::move(file), std::move(text)});
  }
  const std::vector<PackageFinding>& all() const { return all_; }
  size_t errors() const {
    size_t count = 0;
    for (const PackageFinding& finding : all_) count += finding.error ? 1 : 0;
    return count;
  }

 private:
  std::vector<PackageFinding> all_;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VALIDATE_FINDING_H_
