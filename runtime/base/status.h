// Status and Result: how every function of npumesh says that it failed.
//
// Errors are values, never exceptions, because a rank that unwinds out of a collective leaves its
// peers waiting. A message says who, what, where, expected and seen, and what to do next; each
// layer that knows more adds it in front with `WithContext`.
//
// Thread-safety: a Status may be read by several threads at once.
#ifndef NPUMESH_RUNTIME_BASE_STATUS_H_
#define NPUMESH_RUNTIME_BASE_STATUS_H_

#include <fmt/format.h>

#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace npumesh {

// What a caller can act on. `ExitCode` maps the codes to the exit codes of the command.
enum class Code : uint8_t {
  kOk = 0,
  kInvalidArgument,  // an option or argument is wrong: mend the call
  kNotFound,         // a file, node, group or operator that was named does not exist
  kCorrupt,          // bytes from outside do not say what they should
  kUnsupported,      // well formed, but npumesh cannot do it
  kIo,               // the operating system refused
  kOutOfMemory,      // device or host memory is exhausted
  kMismatch,         // ranks disagree about a collective
  kTimeout,          // a peer did not come in time
  kPeerLost,         // a peer is dead or has left with an error
  kInternal,         // a bug of npumesh
};

std::string_view CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // success costs one null pointer

  bool ok() const { return rep_ == nullptr; }
  Code code() const { return rep_ ? rep_->code : Code::kOk; }
  std::string_view message() const { return rep_ ? std::string_view(rep_->message) : ""; }

  // The same error with `context` + ": " in front of its message; success stays success.
  Status WithContext(std::string_view context) const;

  // "MISMATCH: text", or "OK".
  std::string ToString() const;

 private:
  struct Rep {
    Code code;
    std::string message;
  };
  template <typename... Args>
  friend Status Error(Code code, fmt::format_string<Args...> format, Args&&... args);
  Status(Code code, std::string message);

  std::shared_ptr<const Rep> rep_;
};

// A failure with a formatted message. REQUIRES: code != kOk.
template <typename... Args>
Status Error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

// The exit code of a command that ends with this status: 0 success, 3 input, 4 run-time, 5 peer.
// (2, usage, is returned by the command-line parser itself.)
int ExitCode(const Status& status);

// A value or the reason for its absence.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {  // NOLINT
    assert(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  Status status() const { return status_; }

  // REQUIRES: ok().
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace npumesh

#define NPUMESH_CONCAT_INNER(a, b) a##b
#define NPUMESH_CONCAT(a, b) NPUMESH_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expr` is an error.
#define NPUMESH_RETURN_IF_ERROR(expr)                                                           \
  do {                                                                                          \
    if (::npumesh::Status npumesh_status = (expr); !npumesh_status.ok()) return npumesh_status; \
  } while (false)

// `lhs` = value of the Result `expr`, or returns its error.
#define NPUMESH_ASSIGN_OR_RETURN(lhs, expr) \
  NPUMESH_ASSIGN_OR_RETURN_IMPL(NPUMESH_CONCAT(npumesh_result_, __LINE__), lhs, expr)
#define NPUMESH_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                                  \
  if (!result.ok()) return result.status();              \
  lhs = std::move(result).value()

#endif  // NPUMESH_RUNTIME_BASE_STATUS_H_
