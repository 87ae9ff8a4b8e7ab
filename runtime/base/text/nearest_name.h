// "Did you mean": names that look like one that is not known.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_NEAREST_NAME_H_
#define NPUMESH_RUNTIME_BASE_TEXT_NEAREST_NAME_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace npumesh {

// Up to `most` of `names` within an edit distance of a third of `wanted` (at least 2), nearest
// first; case does not count. Names much farther than the nearest are left out. Only the first 64
// characters of `wanted` are compared. A name with dots is also near by its last part: `dump_mode`
// is near `dump_config.dump_mode`.
std::vector<std::string> NearestNames(std::string_view wanted,
                                      std::span<const std::string_view> names, size_t most = 3);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_NEAREST_NAME_H_
