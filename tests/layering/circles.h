// Circles of arrows between names.
//
// Thread-safety: free functions without state.
#ifndef NPUMESH_TESTS_LAYERING_CIRCLES_H_
#define NPUMESH_TESTS_LAYERING_CIRCLES_H_

#include <map>
#include <string>
#include <vector>

namespace npumesh {

// From each name to others, and the line that says so. Every name has an entry.
using Arrows = std::map<std::string, std::map<std::string, int>>;

struct Circle {
  std::string first;  // the least of its names
  int line = 0;       // of its first arrow
  std::string way;    // "a -> b -> a"
};

// The shortest circle of each name that is the least of one; nothing where no circle is.
std::vector<Circle> CirclesOf(const Arrows& arrows);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_LAYERING_CIRCLES_H_
