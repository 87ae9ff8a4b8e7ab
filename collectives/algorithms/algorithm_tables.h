// AlgorithmTables: the tables of all collectives, with the rows of a user's libraries before the
// built-in ones (custom_algorithm.h).
//
// A library stays loaded until the process ends, because communicators hold its code.
//
// Thread-safety: immutable after construction.
#ifndef NPUMESH_COLLECTIVES_ALGORITHMS_ALGORITHM_TABLES_H_
#define NPUMESH_COLLECTIVES_ALGORITHMS_ALGORITHM_TABLES_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {

class AlgorithmTables {
 public:
  // The built-in rows alone.
  AlgorithmTables() = default;

  // The rows of the libraries first, in the order of `paths`. Errors name the file: as OpenLibrary,
  // and kInvalidArgument (no algorithms in it, a row is incomplete or its name is taken),
  // kUnsupported (built for another npumesh).
  static Result<std::shared_ptr<const AlgorithmTables>> Load(const std::vector<std::string>& paths);

  // The table of a collective; the last row never refuses.
  std::span<const Algorithm> For(CollectiveKind kind) const;
  // The names of the rows of all tables, each once: what a user may ask for by HCCL_ALGO.
  std::vector<std::string_view> Names() const;
  // True for a row of a library.
  bool IsCustom(CollectiveKind kind, const Algorithm& row) const;

 private:
  Status Add(const std::string& path);

  // Of collectives that have rows from libraries: those, then the built-in ones.
  std::map<CollectiveKind, std::vector<Algorithm>> tables_;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_ALGORITHMS_ALGORITHM_TABLES_H_
