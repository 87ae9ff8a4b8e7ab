// The one strict parser for numbers that come from outside: command line, environment, file names.
// A text is a number only if all of it is, without blanks, and only if it lies in the stated range.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_PARSE_H_
#define NPUMESH_RUNTIME_BASE_TEXT_PARSE_H_

#include <cstdint>
#include <string_view>

#include "runtime/base/status.h"

namespace npumesh {

// Decimal integer in [min, max]. `what` names the value in the error ("--steps", "HCCL_BUFFSIZE").
Result<int64_t> ParseInt(std::string_view text, int64_t min, int64_t max, std::string_view what);

// Finite decimal number in [min, max].
Result<double> ParseDouble(std::string_view text, double min, double max, std::string_view what);

// "1"/"true"/"on"/"yes" or "0"/"false"/"off"/"no", in any case.
Result<bool> ParseBool(std::string_view text, std::string_view what);

// Bytes: an integer with an optional unit K, M, G, T (powers of 1024; "KiB" and "KB" mean the
// same).
Result<uint64_t> ParseBytes(std::string_view text, std::string_view what);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_PARSE_H_
