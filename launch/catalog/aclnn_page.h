// Functions of aclnn as pages of `npumesh ops --aclnn`.
#ifndef NPUMESH_LAUNCH_CATALOG_ACLNN_PAGE_H_
#define NPUMESH_LAUNCH_CATALOG_ACLNN_PAGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "launch/report/command_report.h"
#include "runtime/base/status.h"

namespace npumesh {

// What is told of one function.
struct AclnnFacts {
  std::string name;
  std::string state;                   // "available", "absent"
  std::string reason;                  // why it is absent
  std::string header;                  // of one that is available, as all below
  std::string signature;               // of phase one in C, without what all functions have
  std::vector<std::string> operators;  // that compute it, and functions that it is one form of
  std::vector<std::string> limits;     // what it refuses, in the words of the error
};

// Error (kNotFound): neither npumesh nor the vendor has the function, with names that look alike.
Result<AclnnFacts> AclnnFactsOf(std::string_view name);

// Several lines.
std::string AclnnPage(const AclnnFacts& facts);

// Verdict "ok", key "functions".
CommandReport AclnnReport(const std::vector<AclnnFacts>& functions);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_CATALOG_ACLNN_PAGE_H_
