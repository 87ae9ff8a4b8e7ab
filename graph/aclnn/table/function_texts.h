// The texts of functions/*.aclnn (table.h says how they are written), and absent.txt.
#ifndef NPUMESH_GRAPH_ACLNN_TABLE_FUNCTION_TEXTS_H_
#define NPUMESH_GRAPH_ACLNN_TABLE_FUNCTION_TEXTS_H_

#include <string_view>

namespace npumesh {

std::string_view AclnnMathText();
std::string_view AclnnNnText();
std::string_view AclnnOperatorsText();
std::string_view AclnnImageText();
std::string_view AclnnQuantText();
std::string_view AclnnAttentionText();
std::string_view AclnnPrivateFormatsText();
std::string_view AclnnAbsentText();

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACLNN_TABLE_FUNCTION_TEXTS_H_
