// Advice: what a user should know of what he typed, for example that an option has no effect or
// that a name fits nothing. A command prints it whatever the log level is; elsewhere it is a
// warning of the log.
//
// Thread-safety: all functions may be called from any thread.
#ifndef NPUMESH_RUNTIME_BASE_ADVICE_H_
#define NPUMESH_RUNTIME_BASE_ADVICE_H_

#include <functional>
#include <string_view>

namespace npumesh {

// Says `text`, once in this process.
void Advise(std::string_view text);

// Who prints advice from now on; null: the log. Returns false to leave a text to the log.
using AdvicePrinter = std::function<bool(std::string_view text)>;
void SetAdvicePrinter(AdvicePrinter printer);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_ADVICE_H_
