// The file of atc's --singleop: descriptions of operators, each of which becomes an offline model.
#ifndef NPUMESH_LAUNCH_ATC_SINGLE_OPERATORS_H_
#define NPUMESH_LAUNCH_ATC_SINGLE_OPERATORS_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/offline/single_operator.h"

namespace npumesh {

struct NamedOperator {
  SingleOperator op;
  std::string file;  // of the offline model, without a folder
};

// Reads the vendor's form: a list of objects with "op", "input_desc", "output_desc", "attr" and
// "name". A model without a name is called NUMBER_TYPE_inputs_outputs, each tensor as
// TYPE_FORMAT_dims in numbers. Errors (kInvalidArgument) have the vendor's code and name the
// file, operator, tensor or attribute, and the member.
Result<std::vector<NamedOperator>> ReadSingleOperators(const std::string& path);
Result<std::vector<NamedOperator>> ParseSingleOperators(const std::string& text,
                                                        const std::string& path);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_ATC_SINGLE_OPERATORS_H_
