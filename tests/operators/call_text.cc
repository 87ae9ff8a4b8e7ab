#include "tests/operators/call_text.h"

#include "graph/ops/core/signature.h"
#include "runtime/base/text/parse.h"
#include "tests/operators/tensor_text.h"

namespace npumesh {
namespace {

// "[[1,2],[3]]"
Result<AttrValue> ReadLists(std::string_view text) {
  ListListInt lists;
  for (size_t open = text.find('[', 1); open != std::string_view::npos;
       open = text.find('[', open + 1)) {
    const size_t close = text.find(']', open);
    if (close == std::string_view::npos) break;
    std::vector<int64_t>& list = lists.values.emplace_back();
    std::string_view rest = text.substr(open + 1, close - open - 1);
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(','), rest.size());
      NPUMESH_ASSIGN_OR_RETURN(list.emplace_back(),
                               ParseInt(rest.substr(0, end), INT64_MIN, INT64_MAX, text));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return AttrValue(std::move(lists));
}

Result<AttrValue> ReadAttr(std::string_view name_and_kind, std::string_view value) {
  if (value.starts_with("[[")) return ReadLists(value);
  if (const std::optional<DataType> type = DataTypeFromName(value)) return AttrValue::Type(*type);
  // A list without a kind, which older producers write.
  if (name_and_kind.ends_with(":list") && value == "[]") return AttrValue(ListAttr{});
  const std::string signature = fmt::format("Any(; {}={}) -> y", name_and_kind, value);
  NPUMESH_ASSIGN_OR_RETURN(const OpSchema schema, ParseSignature(signature));
  return *schema.attrs[0].fallback;
}

Result<OpInput> ReadInput(std::string_view port, std::string_view value) {
  OpInput input{.port = std::string(port)};
  for (const auto& [mark, known] : {std::pair<std::string_view, Known>{"known:", Known::kYes},
                                    std::pair<std::string_view, Known>{"late:", Known::kNo}}) {
    if (!value.starts_with(mark)) continue;
    value.remove_prefix(mark.size());
    input.known = known;
  }
  NPUMESH_ASSIGN_OR_RETURN(input.value, ReadTensor(value));
  return input;
}

}  // namespace

Result<OpCall> ReadCall(const std::string& type, const std::vector<std::string>& words) {
  OpCall call{.type = type};
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      return Error(Code::kInvalidArgument, "\"{}\" is no name=value", word);
    }
    const std::string_view name = std::string_view(word).substr(0, equals);
    const std::string_view value = std::string_view(word).substr(equals + 1);
    if (name == "@threads" || name == "@outputs") {
      NPUMESH_ASSIGN_OR_RETURN((name == "@threads" ? call.threads : call.outputs),
                               ParseInt(value, 1, 1000, name));
    } else if (value.starts_with("known:") || value.starts_with("late:") || IsTensorText(value)) {
      NPUMESH_ASSIGN_OR_RETURN(call.inputs.emplace_back(), ReadInput(name, value));
    } else {
      Result<AttrValue> attr = ReadAttr(name, value);
      if (!attr.ok()) return attr.status().WithContext(word);
      call.attrs.emplace_back(name.substr(0, name.find(':')), *std::move(attr));
    }
  }
  return call;
}

std::optional<Code> CodeOf(std::string_view name) {
  static const std::pair<std::string_view, Code> kCodes[] = {{"invalid", Code::kInvalidArgument},
                                                             {"not_found", Code::kNotFound},
                                                             {"corrupt", Code::kCorrupt},
                                                             {"unsupported", Code::kUnsupported},
                                                             {"io", Code::kIo},
                                                             {"out_of_memory", Code::kOutOfMemory},
                                                             {"mismatch", Code::kMismatch},
                                                             {"timeout", Code::kTimeout},
                                                             {"peer_lost", Code::kPeerLost},
                                                             {"internal", Code::kInternal}};
  for (const auto& [known, code] : kCodes) {
    if (known == name) return code;
  }
  return std::nullopt;
}

Result<std::string> Unquoted(std::string_view word) {
  if (word.size() < 2 || word.front() != '"' || word.back() != '"') {
    return Error(Code::kInvalidArgument, "{} has no quotes around it", word);
  }
  std::string text;
  for (size_t i = 1; i + 1 < word.size(); ++i) {
    if (word[i] == '\\' && i + 2 < word.size()) ++i;
    text += word[i];
  }
  return text;
}

}  // namespace npumesh
