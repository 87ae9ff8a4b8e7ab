// The rule "net": no exception leaves a function of a C interface.
#include <array>
#include <string>
#include <string_view>

#include "tests/layering/layering.h"

namespace npumesh {
namespace {

// A C interface: how a line begins that defines a function of it, and one of the words by which the
// function catches everything.
struct Interface {
  std::string_view begin;
  std::array<std::string_view, 3> nets;
};

constexpr std::array<Interface, 3> kInterfaces = {{
    {"aclError acl", {"FailThrown("}},
    {"HcclResult Hccl", {"AnswerThrown("}},
    {"extern     npumesh_code npumesh_", {"Call(", "CallSession(", "CallGroup("}},
}};

// The function that begins at `at`, up to the brace that closes it in the first column, and to the
// end of a handler after it; empty for a declaration and for a member.
std::string_view FunctionAt(std::string_view code, size_t at) {
  // Not a member of a class.
  if (code.substr(at, code.find('(', at) - at).find(':') != std::string_view::npos) return {};
  const size_t brace = code.find_first_of("{;", at);
  if (brace == std::string_view::npos || code[brace] == ';') return {};
  size_t close = code.find("\n}", brace);
  while (close != std::string_view::npos && code.substr(close).starts_with("\n} catch")) {
    close = code.find("\n}", close + 1);
  }
  return code.substr(at, close == std::string_view::npos ? close : close - at);
}

}  // namespace

std::vector<Violation> CheckNets(const std::string& file, std::string_view code) {
  std::vector<Violation> found;
  int line = 1;
  for (size_t at = 0; at != std::string_view::npos && at < code.size(); ++line) {
    for (const Interface& interface : kInterfaces) {
      const std::string_view function =
          code.substr(at).starts_with(interface.begin) ? FunctionAt(code, at) : std::string_view();
      bool caught = function.empty();
      for (const std::string_view net : interface.nets) {
        caught = caught || (!net.empty() && function.find(net) != std::string_view::npos);
      }
      if (caught) continue;
      const std::string_view head = function.substr(0, function.find('('));
      found.push_back({"net", file, line,
                       std::string(head.substr(head.rfind(' ') + 1)) +
                           " lets exceptions out; a C interface catches them by " +
                           std::string(interface.nets[0]) + "...)"});
    }
    at = code.find('\n', at);
    if (at != std::string_view::npos) ++at;
  }
  return found;
}

}  // namespace npumesh
