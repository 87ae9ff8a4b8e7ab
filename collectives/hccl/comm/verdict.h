// Verdict: what a call of the HCCL interface returns, with the reason.
//
// The interface answers with an HcclResult; people need a sentence. A Verdict carries both until
// `Answer` hands the code to the caller and the sentence to aclGetRecentErrMsg and the log.
//
// Thread-safety: values; free functions may be called from any thread.
#ifndef NPUMESH_COLLECTIVES_HCCL_COMM_VERDICT_H_
#define NPUMESH_COLLECTIVES_HCCL_COMM_VERDICT_H_

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "hccl/hccl_types.h"
#include "runtime/base/status.h"

namespace npumesh {

struct [[nodiscard]] Verdict {
  HcclResult result = HCCL_SUCCESS;
  std::string why;  // begins with the vendor's event code where there is one: "EI0003: ..."

  bool ok() const { return result == HCCL_SUCCESS; }
};

template <typename... Args>
Verdict Refuse(HcclResult result, fmt::format_string<Args...> format, Args&&... args) {
  return {result, fmt::format(format, std::forward<Args>(args)...)};
}

// The code by which HCCL says what `code` says.
HcclResult ResultOf(Code code);

Verdict VerdictOf(const Status& status);

// Logs a refusal and records it for aclGetRecentErrMsg, with the name of the call in front; returns
// its result.
[[gnu::cold]] HcclResult AnswerRefusal(std::string_view call, const Verdict& verdict);

// For the handler around each function of the interface, because no exception may leave it: records
// what was thrown, and returns HCCL_E_MEMORY without host memory, else HCCL_E_INTERNAL.
HcclResult AnswerThrown(const char* call) noexcept;

// Returns verdict.result; a refusal is told.
inline HcclResult Answer(std::string_view call, const Verdict& verdict) {
  return verdict.ok() ? HCCL_SUCCESS : AnswerRefusal(call, verdict);
}

}  // namespace npumesh

// Returns from the enclosing function when `expr` is a refusal.
#define NPUMESH_RETURN_IF_REFUSED(expr)                                     \
  do {                                                                      \
    if (::npumesh::Verdict npumesh_verdict = (expr); !npumesh_verdict.ok()) \
      return npumesh_verdict;                                               \
  } while (false)

#endif  // NPUMESH_COLLECTIVES_HCCL_COMM_VERDICT_H_
