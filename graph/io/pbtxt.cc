// The NodeDef-like text of TorchAir, dynamo.pbtxt.
//
// Names stand in double quotes without any escaping, so a line is read up to its last quote. The
// value of an attribute is the text of a message, quoted once more as Python does.
#include "graph/io/model_codec.h"
#include "graph/io/model_file.h"
#include "graph/io/python_bytes.h"
#include "graph/io/wire.h"

namespace npumesh {
namespace {

namespace pb = ge::proto;

std::string_view Trim(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == line.npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

class PbtxtReader {
 public:
  explicit PbtxtReader(std::string_view text) : text_(text) {}

  Result<pb::GraphDef> Read() {
    graph_.set_name("graph_1");
    while (NextLine()) {
      if (line_ != "node {") return Expected("node {");
      NPUMESH_RETURN_IF_ERROR(ReadNode());
    }
    return std::move(graph_);
  }

 private:
  // The next line that is not blank, trimmed; false at the end of the text.
  bool NextLine() {
    while (!text_.empty()) {
      const size_t end = std::min(text_.find('\n'), text_.size());
      line_ = Trim(text_.substr(0, end));
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++number_;
      if (!line_.empty()) return true;
    }
    line_ = {};
    return false;
  }

  Status Expected(std::string_view what) const {
    return Error(Code::kCorrupt, "line {}: expected {}, found \"{}\"", number_, what,
                 line_.empty() ? "end of file" : line_.substr(0, 60));
  }

  Status ExpectLine(std::string_view what) {
    return NextLine() && line_ == what ? Status() : Expected(what);
  }

  // The quoted text after `key: ` of this line.
  Result<std::string> Quoted(std::string_view key) const {
    std::string_view rest = line_;
    if (StartsWith(rest, key)) rest = Trim(rest.substr(key.size()));
    if (rest.size() < 2 || rest.front() != '"' || rest.back() != '"') {
      return Expected(fmt::format("{} \"...\"", key));
    }
    return std::string(rest.substr(1, rest.size() - 2));
  }

  Status ReadNode() {
    pb::OpDef* op = graph_.add_op();
    while (NextLine()) {
      if (line_ == "}") return Status();
      if (line_ == "attr {") {
        NPUMESH_RETURN_IF_ERROR(ReadAttr(op));
      } else if (StartsWith(line_, "name:")) {
        NPUMESH_ASSIGN_OR_RETURN(*op->mutable_name(), Quoted("name:"));
      } else if (StartsWith(line_, "op:")) {
        NPUMESH_ASSIGN_OR_RETURN(*op->mutable_type(), Quoted("op:"));
      } else if (StartsWith(line_, "input:")) {
        NPUMESH_ASSIGN_OR_RETURN(const std::string input, Quoted("input:"));
        op->add_input(StartsWith(input, "^") ? input.substr(1) + ":-1" : input);
      } else {
        return Expected("name, op, input, attr or }");
      }
    }
    return Expected("}");
  }

  Status ReadAttr(pb::OpDef* op) {
    NextLine();
    NPUMESH_ASSIGN_OR_RETURN(const std::string key, Quoted("key:"));
    NPUMESH_RETURN_IF_ERROR(ExpectLine("value {"));
    if (!NextLine() || !StartsWith(line_, "s:")) return Expected("s: '...'");
    const std::optional<std::string> value = FromPythonRepr(Trim(line_.substr(2)));
    if (!value) return Expected("a quoted Python string");
    Status parsed = ReadValue(key, *value, op);
    if (!parsed.ok()) {
      return parsed.WithContext(
          fmt::format("line {}: node \"{}\" attr \"{}\"", number_, op->name(), key));
    }
    NPUMESH_RETURN_IF_ERROR(ExpectLine("}"));
    return ExpectLine("}");
  }

  static Status ReadValue(std::string_view key, const std::string& text, pb::OpDef* op) {
    if (StartsWith(key, "[i]")) return ParseText(text, op->add_input_desc());
    if (StartsWith(key, "[o]")) return ParseText(text, op->add_output_desc());
    return ParseText(text, &(*op->mutable_attr())[std::string(key)]);
  }

  std::string_view text_;
  std::string_view line_;
  int number_ = 0;
  pb::GraphDef graph_;
};

void AppendAttr(std::string_view key, const google::protobuf::Message& value, std::string* text) {
  fmt::format_to(std::back_inserter(*text),
                 "    attr {{\n"
                 "        key: \"{}\"\n"
                 "        value {{\n"
                 "            s: {}\n"
                 "        }}\n"
                 "    }}\n",
                 key, PythonRepr(PrintText(value)));
}

std::string InputText(const std::string& input) {
  const size_t colon = input.rfind(':');
  if (colon == input.npos || input.substr(colon) != ":-1") return input;
  return "^" + input.substr(0, colon);
}

void AppendNode(const pb::OpDef& op, std::string* text) {
  const auto line = [text](std::string_view key, std::string_view value) {
    fmt::format_to(std::back_inserter(*text), "    {}: \"{}\"\n", key, value);
  };
  *text += "node {\n";
  line("name", op.name());
  line("op", op.type());
  for (const std::string& input : op.input()) line("input", InputText(input));
  const std::map<std::string, const pb::AttrDef*> sorted = [&op] {
    std::map<std::string, const pb::AttrDef*> attrs;
    for (const auto& [key, value] : op.attr()) attrs.emplace(key, &value);
    return attrs;
  }();
  for (const auto& [key, value] : sorted) AppendAttr(key, *value, text);
  for (const auto& desc : op.input_desc()) AppendAttr("[i]" + desc.name(), desc, text);
  for (const auto& desc : op.output_desc()) AppendAttr("[o]" + desc.name(), desc, text);
  *text += "}\n";
}

}  // namespace

Result<pb::GraphDef> ParsePbtxt(std::string_view text) {
  return PbtxtReader(text).Read();
}

std::string ToPbtxt(const Model& model) {
  pb::GraphDef graph;
  EncodeGraph(model.graph, Form::kTorchAir, &graph);
  std::string text;
  for (const pb::OpDef& op : graph.op()) AppendNode(op, &text);
  return text;
}

}  // namespace npumesh
