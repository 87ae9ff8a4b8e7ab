// Leaks: what a client has made and not destroyed, for the guard (NPUMESH_GUARD).
//
// Thread-safety: all functions may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_PROCESS_LEAKS_H_
#define NPUMESH_RUNTIME_ACL_PROCESS_LEAKS_H_

#include <string>
#include <string_view>
#include <vector>

namespace npumesh {

// Where in the client's program something was made, or called; empty unless it was looked for.
class Origin {
 public:
  // Whether origins are kept and leaks are told.
  static void SetGuard(bool on);
  static bool guard();

  // The caller of the C interface in this thread.
  static Origin Here() { return guard() ? Search() : Origin(); }
  // The same, whatever the guard is: takes some 10 us.
  static Origin Search();

  // "Load (client+0x1f3)", or "client+0x1f3", which addr2line reads; empty when not known.
  std::string Text() const;

 private:
  const void* address_ = nullptr;
};

struct Leak {
  std::string what;  // "stream 5"
  Origin made;
};

// Says in the log and to aclGetRecentErrMsg how many there are, and which the first ones are;
// nothing without leaks. `kind`: in the plural.
void TellLeaks(std::string_view function, std::string_view kind, const std::vector<Leak>& leaks);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_PROCESS_LEAKS_H_
