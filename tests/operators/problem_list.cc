#include "tests/operators/problem_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace npumesh {
namespace {

// Split at blanks that stand outside of brackets and quotes.
std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quoted && i + 1 < text.size()) {
      word += c;
      word += text[++i];
      continue;
    }
    if (c == '"') quoted = !quoted;
    if (!quoted && c == '#' && word.empty()) break;
    if (!quoted) {
      depth += c == '{' || c == '[' || c == '(';
      depth -= c == '}' || c == ']' || c == ')';
    }
    if (c == ' ' && !quoted && depth == 0) {
      if (!word.empty()) words.push_back(std::exchange(word, ""));
    } else {
      word += c;
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

// What a word is about: "x" of x=..., -x and x:kind=...
std::string_view NameOf(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  return word.substr(0, word.find_first_of(":="));
}

// The name of a set: T of T={a,b}.
std::optional<std::string> SetOf(std::string_view word) {
  const size_t end = word.find('=');
  if (end == 0 || end == std::string_view::npos || word.substr(end + 1, 1) != "{") {
    return std::nullopt;
  }
  const std::string_view name = word.substr(0, end);
  const bool capitals = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
  return capitals ? std::optional(std::string(name)) : std::nullopt;
}

const std::map<std::string_view, std::string_view> kTypeSets = {
    {"floats", "float32,float16,bfloat16"},
    {"reals", "float32,float16,bfloat16,float64"},
    {"ints", "int8,int16,int32,int64,uint8,uint16,uint32,uint64"},
    {"all",
     "float32,float16,bfloat16,float64,int8,int16,int32,int64,uint8,uint16,uint32,uint64,bool"}};

// The members of {a,b}: commas inside of brackets separate nothing.
std::vector<std::string> MembersOf(std::string_view braces) {
  std::vector<std::string> members;
  std::string member;
  int depth = 0;
  const std::string text = std::string(braces.substr(1, braces.size() - 2)) + ",";
  for (const char c : text) {
    depth += c == '[' || c == '{';
    depth -= c == ']' || c == '}';
    if (c != ',' || depth > 0) {
      member += c;
      continue;
    }
    const auto set = kTypeSets.find(member);
    if (set == kTypeSets.end()) {
      members.push_back(member);
    } else {
      for (std::string& type : MembersOf(fmt::format("{{{}}}", set->second)))
        members.push_back(std::move(type));
    }
    member.clear();
  }
  return members;
}

void Replace(const std::string& name, const std::string& value, std::vector<std::string>* words) {
  const std::string mark = "$" + name;
  for (std::string& word : *words) {
    for (size_t at = word.find(mark); at != std::string::npos; at = word.find(mark, at)) {
      word.replace(at, mark.size(), value);
    }
  }
}

// Lines with their numbers; those that end in a backslash together.
std::vector<std::pair<int, std::string>> Lines(std::string_view text) {
  std::vector<std::pair<int, std::string>> lines;
  bool goes_on = false;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const bool more = line.ends_with('\\');
    if (more) line.pop_back();
    if (goes_on) {
      lines.back().second += line;
    } else {
      lines.emplace_back(number, line);
    }
    goes_on = more;
  }
  return lines;
}

}  // namespace

std::vector<std::string> Changed(const std::vector<std::string>& words,
                                 const std::vector<std::string>& changes) {
  std::vector<std::string> changed = words;
  for (const std::string& change : changes) {
    const auto same = std::find_if(changed.begin(), changed.end(), [&](const std::string& word) {
      return NameOf(word) == NameOf(change);
    });
    if (change.starts_with('-')) {
      if (same != changed.end()) changed.erase(same);
    } else if (same != changed.end()) {
      *same = change;
    } else {
      changed.push_back(change);
    }
  }
  return changed;
}

Result<std::vector<Problem>> ReadProblems(std::string_view text) {
  std::vector<Problem> problems;
  std::optional<Problem> base;
  for (const auto& [number, line] : Lines(text)) {
    std::vector<std::string> words = Words(line);
    if (words.empty()) continue;
    const auto relation = std::find_if(words.begin(), words.end(), [](const std::string& word) {
      return word == "->" || word == "==" || word == "!";
    });
    Problem problem{.line = number};
    const bool departs = line.starts_with(' ');
    if (departs && !base) {
      return Error(Code::kInvalidArgument, "line {}: there is no call to depart from", number);
    }
    problem.type = departs ? base->type : words[0];
    problem.call.assign(words.begin() + (departs ? 0 : 1), relation);
    if (departs) problem.call = Changed(base->call, problem.call);
    if (relation == words.end()) {
      if (departs) return Error(Code::kInvalidArgument, "line {}: no ->, == or !", number);
      base = std::move(problem);
      continue;
    }
    problem.relation = *relation;
    problem.expected.assign(relation + 1, words.end());
    if (problem.expected.empty() && problem.relation != "->") {
      return Error(Code::kInvalidArgument, "line {}: nothing behind {}", number, problem.relation);
    }
    if (!departs) base.reset();
    problems.push_back(std::move(problem));
  }
  return problems;
}

Result<std::vector<Problem>> Combinations(const Problem& problem) {
  for (size_t i = 0; i < problem.call.size(); ++i) {
    const std::string word = problem.call[i];
    const std::optional<std::string> name = SetOf(word);
    if (!name) continue;
    std::vector<Problem> all;
    for (const std::string& member : MembersOf(word.substr(word.find('=') + 1))) {
      Problem one = problem;
      one.call.erase(one.call.begin() + static_cast<std::ptrdiff_t>(i));
      Replace(*name, member, &one.call);
      Replace(*name, member, &one.expected);
      NPUMESH_ASSIGN_OR_RETURN(std::vector<Problem> rest, Combinations(one));
      all.insert(all.end(), rest.begin(), rest.end());
    }
    return all;
  }
  return std::vector<Problem>{problem};
}

std::string TextOf(const Problem& problem) {
  return fmt::format("{} {} {} {}", problem.type, fmt::join(problem.call, " "), problem.relation,
                     fmt::join(problem.expected, " "));
}

}  // namespace npumesh
