// PlainPickle: the data of a file that Python's pickle wrote: None, booleans, integers, floats,
// texts, bytes, lists, tuples and dictionaries. A pickle is a program for a machine that can call
// any function; this one calls none, so that a foreign file can be read safely. Names and calls are
// refused, or read as data like the rest.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_PLAIN_PICKLE_H_
#define NPUMESH_RUNTIME_BASE_TEXT_PLAIN_PICKLE_H_

#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/base/text/json.h"

namespace npumesh {

// True when the bytes begin as those of pickle's protocols 2 to 5 do.
bool LooksLikePickle(std::string_view bytes);

// Tuples become arrays, keys texts. `path` is for messages. kCorrupt names path, offset and what is
// there: an opcode beyond plain data by its name in Python's pickletools, an unfinished file, an
// integer of more than 64 bits, values that contain themselves or are more than 4 million.
Result<nlohmann::json> ReadPlainPickle(std::string_view bytes, const std::string& path);

// The same of a pickle of objects, such as torch's, with what makes them written down and not done:
//   a name                  {"name": "torch.FloatStorage"}
//   a call                  {"call": CALLED, "arguments": [..]}; with the state that an
//                           object is given {.., "state": ..}
//   what lies outside       {"outside": ["storage", ..]}, a persistent id
// A dictionary of the file may have such keys, too: who reads this trusts nothing of it.
Result<nlohmann::json> ReadPickleOfObjects(std::string_view bytes, const std::string& path);

// The data as a pickle of protocol 2, which Python and ReadPlainPickle read. REQUIRES: texts are
// UTF-8, as those of records are.
std::string WritePlainPickle(const nlohmann::json& data);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_PLAIN_PICKLE_H_
