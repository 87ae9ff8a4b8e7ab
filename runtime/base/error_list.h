// ErrorList: errors that are found one after the other and reported as one.
//
// Thread-safety: none.
#ifndef NPUMESH_RUNTIME_BASE_ERROR_LIST_H_
#define NPUMESH_RUNTIME_BASE_ERROR_LIST_H_

#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

class ErrorList {
 public:
  // REQUIRES: `error` is not OK.
  void Add(const Status& error) { errors_.push_back(error); }
  bool empty() const { return errors_.empty(); }
  // OK when empty; a single error as it is; otherwise all in one text after `title`, kUnsupported
  // if any is, else the code of the first.
  Status Join(std::string_view title) const;

 private:
  std::vector<Status> errors_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_ERROR_LIST_H_
