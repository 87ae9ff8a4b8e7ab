// Lines of reports and logs that other programs write for people.
#ifndef NPUMESH_LAUNCH_RECORD_FOREIGN_LINES_H_
#define NPUMESH_LAUNCH_RECORD_FOREIGN_LINES_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace npumesh {

// What of a line is read; the rest of a longer one is left out.
inline constexpr size_t kMostLineBytes = 1 << 16;

// The lines of a text, without blanks at their ends.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  // False after the last one.
  bool Next(std::string_view& line);

 private:
  std::string_view rest_;
};

// What stands in `line` where `pattern` has "{}", each as short as it can be, the one at the end
// the rest; nullopt when the line is not such. REQUIRES: something stands between two "{}".
std::optional<std::vector<std::string_view>> PartsOf(std::string_view line,
                                                     std::string_view pattern);

// What stands between the brackets behind `name` ("rankId" of "rankId[3]" or "rankId:[3]"), with
// the brackets in it; empty when it is not there.
std::string_view InBrackets(std::string_view line, std::string_view name);

// The decimal number of a text from 0 to `most`; nullopt when it is no such number.
std::optional<uint64_t> NumberIn(std::string_view text, uint64_t most = uint64_t{1} << 60);

// A number of a name that is equal wherever the name is; never 0.
uint64_t IdOfName(std::string_view name);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_FOREIGN_LINES_H_
