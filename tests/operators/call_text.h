// Words of problem lists as calls.
#ifndef NPUMESH_TESTS_OPERATORS_CALL_TEXT_H_
#define NPUMESH_TESTS_OPERATORS_CALL_TEXT_H_

#include <optional>
#include <string>
#include <vector>

#include "tests/unit/op_test.h"

namespace npumesh {

// The call that the words describe (problem_list.h). Error (kInvalidArgument): a word that
// was not understood.
Result<OpCall> ReadCall(const std::string& type, const std::vector<std::string>& words);

// The code of "invalid", "not_found", "corrupt" and so on.
std::optional<Code> CodeOf(std::string_view name);

// The text between the quotes. Error (kInvalidArgument): there are none.
Result<std::string> Unquoted(std::string_view word);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_OPERATORS_CALL_TEXT_H_
